"""What a live session kept of a call goes with what is forgotten."""

from __future__ import annotations

from echoic.embedding import embedder_from
from echoic.memory.records import CALL, CHECKPOINT, EXCHANGE, GIVEN
from echoic.memory.service import MemoryService
from echoic.stores.base import Put, Record
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Scope, Turn

ANA = Scope("default", "ana")


async def left(store):
    return {
        (r.kind, r.id) for kind in (CALL, EXCHANGE, GIVEN, CHECKPOINT) for r in await store.scan(ANA, kind)
    }


async def kept(store):
    parts = [
        Record(kind=kind, id=f"{c}:{kind}", key=c, data={}) for c in "ab" for kind in (CALL, EXCHANGE, GIVEN)
    ]
    states = [Record(kind=CHECKPOINT, id=f"session-{c}", data={"conversation": c}) for c in "ab"]
    await store.write(ANA, [Put(record=record) for record in parts + states])


async def test_a_forgotten_conversation_leaves_nothing_of_its_call():
    store = InMemoryStore()
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        for name in "ab":
            call = await ana.conversation(name)
            await call.append(Turn(speaker="user", text="hello", id=f"{name}-1"))
        await kept(store)
        await ana.forget(conversation="a")
        assert await left(store) == {
            (CALL, "b:call"), (EXCHANGE, "b:call_exchange"), (GIVEN, "b:call_given"), (CHECKPOINT, "session-b")
        }  # fmt: skip


async def test_a_forgotten_user_leaves_nothing_of_any_call():
    store = InMemoryStore()
    async with MemoryService(store, embedder_from("lexical")) as memory:
        await kept(store)
        receipt = await memory.user("ana").forget()
        assert (receipt.other, receipt.verified) == (8, True)
        assert await left(store) == set()


async def test_a_forgotten_key_leaves_nothing_a_model_was_given_with_it():
    store = InMemoryStore()
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        await ana.set("user_name", "Ana")
        await kept(store)
        await ana.forget(key="user_name")
        assert {kind for kind, _ in await left(store)} == {CALL, EXCHANGE}
