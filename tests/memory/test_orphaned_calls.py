"""Live calls that nobody took up again are closed by whoever runs next: once, whole, and never while they go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from echoic import InvalidInput, Turn
from echoic.embedding import embedder_from
from echoic.errors import StoreUnavailable, WriteConflict
from echoic.memory import checkpoints
from echoic.memory.checkpoints import RESUMABLE_FOR_S, Checkpoint, as_json
from echoic.memory.conversation import OpenConversation
from echoic.memory.records import CALL, CHECKPOINT
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put, Record
from echoic.stores.in_memory import InMemoryStore

SIGN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
"""The last one of the call."""
UNKEPT = (
    Turn(speaker="user", text="My name is Pavel.", id="t2", conversation="talk", said_at=SIGN),
    Turn(speaker="agent", text="one two three", heard="one", id="t3", conversation="talk", said_at=SIGN),
)
CALL_OF = Checkpoint(
    session="call", conversation="talk", agent="robin", messages="[]", unkept=UNKEPT, cursor=1, saved_at=SIGN
)


class Clock:
    def __init__(self):
        self.now = SIGN

    def __call__(self):
        return self.now

    def so_long_after(self, seconds):
        self.now = SIGN + timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


def service(store, clock, **options):
    return MemoryService(store, embedder_from("lexical"), clock=clock, **options)


def held(checkpoint):
    return Put(record=Record(kind=CHECKPOINT, id=checkpoint.session, data=as_json(checkpoint)))


async def broken_off(memory, *checkpoints):
    """A call that ended without an end, as it stands in the store."""
    ana = memory.user("ana")
    talk = await ana.conversation("talk", agent="robin")
    await talk.append(Turn(speaker="user", text="I live in Lisbon.", id="t1", said_at=SIGN))
    call = {"id": "call", "conversation": "talk", "ended_at": None, "reason": None}
    call_of = Put(record=Record(kind=CALL, id="call", key="talk", data=call))
    await ana.backing_store.write(ana.scope, [call_of, *map(held, checkpoints or [CALL_OF])])
    return ana


async def left(ana):
    return [record.id for record in await ana.backing_store.scan(ana.scope, CHECKPOINT)]


async def end(ana):
    """All that the end of a call leaves."""
    (call,) = await ana.backing_store.read(ana.scope, CALL, ["call"])
    task = await ana.task("talk")
    return {
        "turns": [(turn.id, turn.heard_text) for turn in task.turns],
        "facts": sorted((memory.key, memory.text, memory.times_said) for memory in await ana.facts()),
        "status": ("distilled" if task.conversation.distilled else task.conversation.status),
        "updated": task.conversation.updated_at,
        "call": (call.data["ended_at"], call.data["reason"]),
        "checkpoints": await left(ana),
    }


CLOSED = {
    "turns": [("t1", "I live in Lisbon."), ("t2", "My name is Pavel."), ("t3", "one")],
    "facts": [("home", "Lisbon", 1), ("user_name", "Pavel", 1)],
    "status": "distilled",
    "updated": SIGN,
    "call": (SIGN.isoformat(), "abandoned"),
    "checkpoints": [],
}


async def test_it_ends_as_if_its_own_process_had_ended_it_and_not_a_moment_too_soon(url, clock):
    async with service(store_from(url), clock) as memory:
        ana = await broken_off(memory)
        clock.so_long_after(RESUMABLE_FOR_S)
        await memory.distil()
        assert await left(ana) == ["call"], "it can be taken up until then"
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        for _ in range(2):
            await memory.distil()
            assert await end(ana) == CLOSED


async def test_a_worker_closes_it_as_well(clock):
    async with service(InMemoryStore(), clock) as memory:
        ana = await broken_off(memory)
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        await memory.distil_due()
        assert await end(ana) == CLOSED


async def test_a_service_that_runs_looks_for_them_again_and_again(clock, monkeypatch):
    monkeypatch.setattr(checkpoints, "SWEEP_AFTER_S", 0.0)
    monkeypatch.setattr(checkpoints, "_SWEEPS", 10**7)
    store, looked, scopes = InMemoryStore(), asyncio.Semaphore(0), InMemoryStore.scopes

    async def counted(*given):
        looked.release()
        return await scopes(*given)

    monkeypatch.setattr(InMemoryStore, "scopes", counted)
    async with asyncio.timeout(60), service(store, clock) as memory:
        ana = await broken_off(memory)
        for _ in range(3):
            await looked.acquire()
        assert await left(ana) == ["call"]
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        while await left(ana):
            await looked.acquire()
        await memory.settle()
        assert await end(ana) == CLOSED


async def test_two_processes_close_it_once(tmp_path, clock):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with service(store_from(url), clock) as one, service(store_from(url), clock) as other:
        ana = await broken_off(one)
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        closed = await asyncio.gather(*(each._abandoned.close_all() for each in (one, other) * 3))
        assert sum(closed) == 1
        await one.distil()
        assert await end(ana) == CLOSED


class Failing(InMemoryStore):
    """Its write number `fails_at` fails; `after`: only its answer is lost."""

    fails_at, after, writes = 0, False, 0

    async def write(self, scope, changes):
        self.writes += 1
        if self.writes != self.fails_at:
            await super().write(scope, changes)
            return
        if self.after:
            await super().write(scope, changes)
        raise StoreUnavailable("the disk was away for a moment")


@pytest.mark.parametrize("after", [False, True])
async def test_wherever_it_fails_the_next_one_finishes_it(clock, after):
    for number in range(1, 20):
        store = Failing()
        async with service(store, clock) as memory:
            clock.so_long_after(0)
            ana = await broken_off(memory)
            await memory.settle()
            clock.so_long_after(RESUMABLE_FOR_S + 1)
            store.writes, store.fails_at, store.after = 0, number, after
            await memory._abandoned.close_all()
            failed, store.fails_at = store.writes >= number, 0
            await memory.distil()
            assert await end(ana) == CLOSED, number
        if not failed:
            break
    assert 3 <= number < 19, "each of its writes failed once"


async def test_who_takes_it_up_in_this_moment_has_it(clock, monkeypatch):
    store, listen = InMemoryStore(), OpenConversation.learn
    again = replace(CALL_OF, unkept=(), saved_at=SIGN + timedelta(days=2))

    async def taken_up_first(conversation):
        monkeypatch.setattr(OpenConversation, "learn", listen)
        await ana.backing_store.write(ana.scope, [held(again)])
        return await listen(conversation)

    async with service(store, clock) as memory:
        ana = await broken_off(memory)
        clock.so_long_after(2 * 24 * 3600)
        monkeypatch.setattr(OpenConversation, "learn", taken_up_first)
        assert await memory._abandoned.close_all() == 0
        assert await left(ana) == ["call"]
        assert (await ana.find_conversation("talk")).status == "active"


async def test_what_is_forgotten_in_this_moment_stays_so(clock, monkeypatch):
    append = OpenConversation.append

    async def forgotten_first(conversation, *turns, **options):
        monkeypatch.setattr(OpenConversation, "append", append)
        await ana.forget(conversation="talk")
        return await append(conversation, *turns, **options)

    async with service(InMemoryStore(), clock) as memory:
        ana = await broken_off(memory)
        await memory.settle()
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        monkeypatch.setattr(OpenConversation, "append", forgotten_first)
        await memory.distil()
        await memory.distil()
        assert await left(ana) == []
        assert await ana.task("talk") is None
        assert [memory.text for memory in await ana.facts()] == ["Lisbon"]


async def test_a_checkpoint_whose_conversation_is_gone_goes_and_brings_nothing_back(clock):
    async with service(InMemoryStore(), clock) as memory:
        ana = memory.user("ana")
        await ana.backing_store.write(ana.scope, [held(CALL_OF)])
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        await memory.distil()
        assert await left(ana) == []
        assert await ana.conversations() == []


async def test_a_conversation_in_which_another_call_goes_on_is_left_to_that_one(clock):
    other = replace(CALL_OF, session="other", unkept=(), saved_at=SIGN + timedelta(days=1))
    async with service(InMemoryStore(), clock) as memory:
        ana = await broken_off(memory, CALL_OF, other)
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        await memory.distil()
        assert await end(ana) == {**CLOSED, "status": "active", "checkpoints": ["other"]}


async def test_two_calls_of_one_conversation_that_both_broke_off_end_it_whoever_closes_which(clock):
    other = replace(CALL_OF, session="other", unkept=())
    async with service(InMemoryStore(), clock) as memory:
        ana = await broken_off(memory, CALL_OF, other)
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        records = await ana.backing_store.scan(ana.scope, CHECKPOINT)
        closing = (memory._abandoned._closed(ana.scope, record) for record in records)
        assert await asyncio.gather(*closing) == [True, True]
        await memory.distil()
        assert await end(ana) == CLOSED


async def test_one_that_cannot_be_read_is_left_alone_and_keeps_no_other_back(clock):
    async with service(InMemoryStore(), clock) as memory:
        ana = await broken_off(memory)
        odd = Record(kind=CHECKPOINT, id="a newer form", data={"conversation": "elsewhere"})
        await ana.backing_store.write(ana.scope, [Put(record=odd)])
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        await memory.distil()
        assert await end(ana) == {**CLOSED, "checkpoints": ["a newer form"]}


async def test_a_service_may_wait_longer_or_for_good_and_not_too_short(clock):
    clock.so_long_after(30 * RESUMABLE_FOR_S)
    for ever in (None, float("inf"), 1e15):
        async with service(InMemoryStore(), clock, resumable_for_s=ever) as memory:
            ana = await broken_off(memory)
            await memory.distil()
            assert await left(ana) == ["call"]
    for short in (0, 299.0, float("nan")):
        with pytest.raises(InvalidInput, match="resumable_for_s must be 300 at least"):
            service(InMemoryStore(), clock, resumable_for_s=short)


async def test_a_process_that_hung_so_long_finds_that_the_call_is_no_longer_its_own(clock):
    from echoic.session import RecordSessionStore  # the extra "voice"

    async with service(InMemoryStore(), clock) as memory:
        ana = memory.user("ana")
        await ana.conversation("talk")
        sessions = RecordSessionStore(ana.backing_store)
        await sessions.save(ana.scope, CALL_OF)
        clock.so_long_after(RESUMABLE_FOR_S + 1)
        await memory.distil()
        with pytest.raises(WriteConflict):
            await sessions.save(ana.scope, replace(CALL_OF, summary="later"))
        assert await left(ana) == []
