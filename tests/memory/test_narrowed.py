"""Scopes too large to load: the store finds the likely rows, the shared ranking orders them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from echoic.embedding import embedder_from
from echoic.memory.service import MemoryService
from echoic.partition import SEGMENT_ROWS, Partition
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Scope


class Narrowing(InMemoryStore):
    """Hands over the segments whose rows say one of the words asked for, numbered anew."""

    narrow_above = 40

    def __init__(self) -> None:
        super().__init__()
        self.narrowed: list[Scope] = []
        self.loaded: list[Scope] = []

    async def load(self, scope: Scope) -> Partition:
        self.loaded.append(scope)
        return await super().load(scope)

    async def size(self, scope: Scope) -> int:
        return len(self._scopes[scope].records) if scope in self._scopes else 0

    async def narrow(self, scope, text, vector, *, limit, include_past):
        self.narrowed.append(scope)
        held = self._scopes[scope]
        words = set(text.lower().strip("?").split())
        rows = [r.seq for r in held.records.values() if words & set(str(r.data["text"]).lower().split())]
        numbers = sorted({row // SEGMENT_ROWS for row in rows})
        found = Partition(held.partition.vectors.shape[1])
        found.patch((place, held._segments[number]) for place, number in enumerate(numbers))
        found.origin = np.concatenate(
            [np.arange(n * SEGMENT_ROWS, (n + 1) * SEGMENT_ROWS) for n in numbers] or [np.zeros(0, np.int64)]
        )
        return found


@pytest.fixture
async def large():
    store = Narrowing()
    async with MemoryService(store, embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        for number in range(200):
            await ana.remember(f"Thing {number} is about stones")
        await ana.remember("Plays the theremin on Sundays")
        await memory.user("bob").remember("Plays the oboe")
        await memory.settle()
        yield memory, store


async def test_what_was_found_in_the_database_is_ranked_and_read_by_its_own_number(large):
    memory, store = large
    hits = await memory.user("ana").query("theremin?")
    assert hits[0].text == "Plays the theremin on Sundays"
    assert set(store.narrowed) == {Scope("default", "ana")}


async def test_an_ordinary_scope_is_loaded_as_ever(large):
    memory, store = large
    store.loaded.clear()
    hits = await memory.user("bob").query("oboe?")
    assert [hit.text for hit in hits] == ["Plays the oboe"]
    assert store.narrowed == []
    assert Scope("default", "bob") in store.loaded


async def test_nothing_that_is_likely_is_nothing_known(large):
    memory, _ = large
    assert await memory.user("ana").query("zeppelin?") == []


async def test_where_the_database_finds_nothing_because_nothing_has_its_vector_the_answer_says_so(large):
    memory, store = large
    ana = memory.user("ana")
    assert (await ana.recall("zeppelin")).outcome == "complete"
    await store.reindex(memory._parts.embedder.spec)  # as for another model: all of it waits
    recall = await ana.recall("zeppelin")
    assert (recall.outcome, recall.cut, recall.hits) == ("unavailable", ("unembedded",), ())
    assert await memory.settle()
    assert (await ana.recall("zeppelin")).outcome == "complete"


async def test_a_question_for_nothing_but_a_time_says_that_a_large_scope_cannot_answer_it(large):
    memory, _ = large
    recall = await memory.user("ana").recall("What did I say today?")
    assert (recall.outcome, recall.cut, recall.hits) == ("unavailable", ("date",), ())
    assert (await memory.user("ana").recall("theremin today?")).outcome == "complete"
    recall = await memory.user("bob").recall("What did I say today?")
    assert (recall.outcome, [hit.text for hit in recall.hits]) == ("complete", ["Plays the oboe"])


async def test_who_listens_loads_no_more_than_who_asks_and_finds_what_was_written_meanwhile(large):
    memory, store = large
    ana = memory.user("ana")
    store.loaded.clear()
    async with ana.listen() as listening:
        listening.partial("what is played on")
        await asyncio.sleep(0.05)
        listening.partial("what is played on sundays")
        await asyncio.sleep(0.05)
        await ana.remember("Sundays are for the zither, which is played at noon")
        found = await listening.final("What is played on Sundays?")
    assert Scope("default", "ana") not in store.loaded
    assert {"Plays the theremin on Sundays", "Sundays are for the zither, which is played at noon"} <= {
        hit.text for hit in found.hits
    }


async def test_a_scope_whose_size_is_known_late_is_loaded_only_once_it_is_known_to_be_small(
    large, monkeypatch
):
    memory, store = large
    ana, bob = Scope("default", "ana"), Scope("default", "bob")
    size, known, answered = store.size, asyncio.Event(), []

    async def late(scope):
        await known.wait()
        answered.append(scope)
        return await size(scope)

    monkeypatch.setattr(store, "size", late)
    store.loaded.clear()
    for user in (ana.user, bob.user):
        recall = await memory.user(user).recall("theremin", deadline_ms=10)
        assert recall.outcome == "deadline"
        assert "own" in recall.cut
    assert store.loaded == []
    known.set()
    async with asyncio.timeout(20):
        while bob not in store.loaded or ana not in answered:
            await asyncio.sleep(0.01)
    assert (await memory.user("ana").query("theremin?"))[0].text == "Plays the theremin on Sundays"
    assert ana not in store.loaded
