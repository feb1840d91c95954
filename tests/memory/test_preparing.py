"""What ranking derives from a scope is derived when something is written, and not when the next question comes."""

from __future__ import annotations

import asyncio

from echoic.embedding import embedder_from
from echoic.memory import recall as recalling
from echoic.memory.service import MemoryService
from echoic.partition import Partition
from echoic.stores import store_from
from echoic.types import Scope, Turn


class Watched:
    """A store's `load` and `scan`, counted."""

    def __init__(self, store):
        self._store = store
        self.loads: list[Scope] = []
        self.scans: list[Scope] = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def load(self, scope: Scope) -> Partition:
        self.loads.append(scope)
        return await self._store.load(scope)

    async def scan(self, scope: Scope, kind: str, **how):
        self.scans.append(scope)
        return await self._store.scan(scope, kind, **how)


async def prepared(memory):
    """Wait until nothing is stale."""
    recaller = memory._parts.recaller
    while recaller._stale:
        await asyncio.sleep(0.01)
    if recaller._preparing is not None:
        await asyncio.wait_for(asyncio.shield(recaller._preparing), 30)


async def test_the_first_question_after_a_write_finds_everything_laid_out():
    store = Watched(store_from("memory://"))
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        call = await ana.conversation("c")
        await call.append(*(Turn(speaker="user", text=f"Line {n} is about tulips.") for n in range(40)))
        await memory.settle(30)
        await ana.recall("tulips")
        await call.append(Turn(speaker="user", text="My tulips are in the cellar."))
        await memory.settle(30)
        await prepared(memory)
        (partition,) = [p for at, p in memory._parts.recaller._searched.items() if at == ana.scope]
        assert (partition.rows["kind"] != 0).sum() >= 41
        assert partition.scratch["ranking.layout"].revision == partition.revision
        before = len(store.loads)
        laid_out = partition.scratch["ranking.layout"]
        found = await ana.recall("cellar")
        assert found.hits[0].text == "My tulips are in the cellar."
        assert partition.scratch["ranking.layout"] is laid_out
        assert len(store.loads) > before


async def test_the_first_question_after_a_write_reads_no_more_than_the_second():
    store = Watched(store_from("memory://"))
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        call = await ana.conversation("c")
        await call.append(*(Turn(speaker="Ana", text=f"Line {n} is about tulips.") for n in range(40)))
        await memory.settle(30)
        await ana.recall("tulips")  # among people called by name: whether an agent takes part is looked up
        assert store.scans
        store.loads.clear()
        await call.append(Turn(speaker="Bo", text="My tulips are in the cellar."))
        await memory.settle(30)
        await prepared(memory)
        assert ana.scope.everyone in store.loads
        (partition,) = [p for at, p in memory._parts.recaller._searched.items() if at == ana.scope]
        assert partition.scratch["ranking.speakers"][0] == partition.revision
        store.scans.clear()
        assert (await ana.recall("cellar")).hits[0].text == "My tulips are in the cellar."
        assert store.scans == []


async def test_many_writes_are_prepared_together_and_a_user_nobody_asks_about_not_at_all(monkeypatch):
    prepares = []
    monkeypatch.setattr(recalling, "prepare", prepares.append)
    store = Watched(store_from("memory://"))
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana, bo = memory.user("ana"), memory.user("bo")
        await ana.set("flower", "tulips")
        await ana.recall("tulips")
        await prepared(memory)
        prepares.clear()
        await asyncio.gather(*(user.set(f"k{n}", "tulips") for n in range(50) for user in (ana, bo)))
        await prepared(memory)
        assert bo.scope not in store.loads
        assert 1 <= len(prepares) < 50


async def test_writes_that_follow_one_another_are_prepared_once(monkeypatch):
    monkeypatch.setattr(recalling, "_TOGETHER_S", 0.0)
    store = Watched(store_from("memory://"))
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        await ana.set("flower", "tulips")
        await memory.settle(30)
        await ana.recall("tulips")
        await prepared(memory)
        monkeypatch.setattr(recalling, "_TOGETHER_S", 3600.0)
        store.loads.clear()
        for number in range(5):
            await ana.set(f"flower {number}", "tulips")
            await memory.settle(30)
        assert store.loads == []
        assert list(memory._parts.recaller._stale) == [ana.scope]
        assert (await ana.recall("tulips")).hits


async def test_a_write_does_not_wait_for_the_preparation_and_closing_ends_it(monkeypatch):
    begun, free = asyncio.Event(), asyncio.Event()
    store = Watched(store_from("memory://"))
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        await ana.set("flower", "tulips")
        await memory.settle(30)
        await ana.recall("tulips")
        await prepared(memory)

        async def stuck(scope: Scope) -> Partition:
            begun.set()
            await free.wait()
            raise AssertionError(scope)

        monkeypatch.setattr(store, "load", stuck)
        await ana.set("flower", "poppies")
        await asyncio.wait_for(begun.wait(), 30)
        await ana.set("flower", "roses")
        assert (await ana.get("flower")).text == "roses"
    assert memory._parts.recaller._preparing is None
