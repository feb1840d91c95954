"""What waits for its vector is found by words alone, and an answer that rests on that says so."""

from __future__ import annotations

import asyncio

import pytest

from echoic import Turn
from echoic.embedding import LexicalEmbedder, embedder_from
from echoic.memory.service import MemoryService
from echoic.partition import Partition
from echoic.prompt.answer import NOT_ALL_SEEN
from echoic.stores import store_from
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Scope


class Slow:
    """Embeds questions at once, and nothing else before it is let."""

    semantic = True

    def __init__(self):
        self._inner = embedder_from("lexical")
        self.spec = self._inner.spec
        self.let = asyncio.Event()

    async def open(self):
        await self._inner.open()

    async def aclose(self):
        await self._inner.aclose()

    async def embed(self, texts, kind):
        if kind == "document":
            await self.let.wait()
        return await self._inner.embed(texts, kind)


@pytest.fixture
async def memory():
    embedder = Slow()
    async with MemoryService(store_from("memory://"), embedder) as service:
        yield service, embedder
        embedder.let.set()  # else its end would be waited for


async def say(user, count):
    call = await user.conversation("call")
    await call.append(*(Turn(speaker="user", text=f"The gate has {n} bolts.") for n in range(count)))


async def test_a_backlog_is_not_a_complete_look(memory):
    service, embedder = memory
    ana = service.user("ana")
    await say(ana, 40)
    nothing, some = await ana.recall("zeppelin"), await ana.recall("bolts")
    assert (nothing.outcome, nothing.cut, nothing.hits) == ("unavailable", ("unembedded",), ())
    assert (some.outcome, some.cut) == ("unavailable", ("unembedded",))
    assert some.hits
    assert NOT_ALL_SEEN in (await ana.brief("zeppelin")).text
    embedder.let.set()
    assert await service.settle()
    assert (await ana.recall("zeppelin")).outcome == "complete"


async def test_where_the_final_finds_nothing_in_a_backlog_its_alternatives_are_tried(memory):
    service, _ = memory
    ana = service.user("ana")
    await say(ana, 40)
    async with ana.listen() as listening:
        recall = await listening.final("zeppelin", alternatives=["bolts"])
    assert recall.hits
    assert (recall.outcome, recall.cut) == ("unavailable", ("unembedded",))


async def test_what_was_said_just_now_is_no_backlog(memory):
    service, _ = memory
    ana = service.user("ana")
    await say(ana, 20)
    assert ((await ana.recall("bolts")).outcome, (await ana.recall("zeppelin")).outcome) == ("complete",) * 2


async def test_a_backlog_of_one_is_no_other_users(memory):
    service, _ = memory
    await say(service.user("ana"), 40)
    assert (await service.user("bob").recall("bolts")).outcome == "complete"


class ComesBack(InMemoryStore):
    """A store whose database is away while the user's own scope is loaded, and back when the next is."""

    failure: str | None = None

    async def load(self, scope: Scope) -> Partition:
        self.failure = "away" if scope.user else None
        return await super().load(scope)


async def test_what_was_loaded_before_the_database_was_back_is_not_called_the_newest() -> None:
    async with MemoryService(ComesBack(), LexicalEmbedder()) as memory:
        await memory.user("ana").set("home", "Porto")
        await memory.settle(60)
        recall = await memory.user("ana").recall("what is my home?")
        assert (recall.outcome, recall.hits[0].text) == ("unavailable", "Porto")
        assert "newest" in recall.cut
