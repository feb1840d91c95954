from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from bson.binary import Binary

from echoic.partition import Partition
from echoic.ranking import query_of, rank
from echoic.stores import store_from
from echoic.stores.base import Change, Drop, segments_around
from echoic.stores.mongodb import MongoDBStore
from echoic.stores.mongodb.load import pipelines
from echoic.stores.mongodb.schema import model_fields
from echoic.testing.store_histories import (
    ANA,
    OTHER_SPEC,
    attach,
    memory,
    note,
    opened,
    put,
    unit,
)
from echoic.types import Scope
from echoic_loopback.mongodb import MongoServer
from stores import mongodb_golden, mongodb_server

pytestmark = pytest.mark.usefixtures("closed_while_connecting")

ROWS = 700
BOB = Scope("acme", "bob")
PLACES = "Porto Lisbon Madrid Paris Berlin Rome Vienna Prague Oslo Dublin".split()
THINGS = "tea coffee rain chess jazz bread cheese sailing poetry cycling gardens trains".split()


def text_of(n: int) -> str:
    return f"{PLACES[n % 10]} and {THINGS[n % 12]} number {n}"


async def filled(store: MongoDBStore, scope: Scope, rows: int = ROWS) -> None:
    for start in range(0, rows, 100):
        changes: list[Change] = [put(memory(f"m{n}", text_of(n))) for n in range(start, start + 100)]
        await store.write(scope, changes)
        found = await store.scan(scope, "memory", after=start - 1, limit=100)
        await store.write(scope, [attach(r, r.seq) for r in found])


@pytest_asyncio.fixture
async def store() -> AsyncIterator[MongoDBStore]:
    made = store_from(mongodb_server.url(options="narrow_above=100"))
    async with opened(made):
        assert await made.until_searchable(300)
        yield made


def found_in(partition: Partition, text: str, vector: Any, limit: int = 8) -> list[int]:
    hits = rank(query_of(text, vector=vector), [partition], limit=limit)
    return [int(h.row if partition.origin is None else partition.origin[h.row]) for h in hits]


async def aged(store: MongoDBStore) -> None:
    """Let every segment be older than what is looked at because it is young, and the indexes have caught up."""
    live = store._live
    assert live is not None
    await live.connection.collections.segments.update_many({}, {"$unset": {"changedAt": ""}})
    if mongodb_server.REAL:
        await asyncio.sleep(5)


class TestNarrowing:
    async def test_the_best_hits_are_those_of_the_loaded_scope(self, store: MongoDBStore) -> None:
        await filled(store, ANA)
        await aged(store)
        whole = await store.load(ANA)
        for n in (3, 250, 411, 699):
            text, vector = f"what about {text_of(n)}", unit(n)
            small = await store.narrow(ANA, text, vector, limit=20, include_past=False)
            assert small.size < whole.size
            assert found_in(small, text, vector, 1) == found_in(whole, text, vector, 1) == [n]

    async def test_a_row_stands_under_its_own_number_with_its_neighbours(self, store: MongoDBStore) -> None:
        await filled(store, ANA)
        await aged(store)
        small = await store.narrow(ANA, "number 389", None, limit=1, include_past=False)
        assert small.origin is not None
        assert small.origin.shape == (small.size,)
        whole = await store.load(ANA)
        assert {385, 386, 387, 388, 389, 390, 391, 392, 393} <= set(small.origin.tolist())
        for row, place in enumerate(small.origin.tolist()):
            assert small.rows[row] == whole.rows[place]
            assert np.array_equal(small.vectors[row], whole.vectors[place])
            assert small.tokens.get(row) == whole.tokens.get(place)
        records = await store.rows(ANA, small.origin.tolist())
        assert [r.seq for r in records] == small.origin.tolist()

    def test_a_row_near_an_edge_brings_the_segment_beside_it(self) -> None:
        assert segments_around([0]) == [0]
        assert segments_around([3, 27]) == [0]
        assert segments_around([28]) == [0, 1]
        assert segments_around([35]) == [0, 1]
        assert segments_around([36]) == [1]

    async def test_a_misheard_word_is_found(self, store: MongoDBStore) -> None:
        await filled(store, ANA)
        await store.write(ANA, [put(memory("s", "has a sister called Katherine"))])
        await aged(store)
        for heard in ("Catherine", "Katherina", "Kathrine"):
            small = await store.narrow(ANA, heard, None, limit=3, include_past=False)
            assert small.origin is not None
            assert ROWS in small.origin.tolist()

    async def test_nothing_of_anybody_else_is_found(self, store: MongoDBStore) -> None:
        await filled(store, ANA, 200)
        others = [
            BOB,
            Scope("acme", None),
            Scope("other", "ana"),
            Scope("acme", "global"),
            Scope("acme", "ANA"),
        ]
        for scope in others:
            await store.write(scope, [put(memory("x", "Porto and tea number 120"))])
            await store.write(scope, [attach(r, 120) for r in await store.scan(scope, "memory")])
        await aged(store)
        for scope in others:
            small = await store.narrow(
                scope, "Porto and tea number 120", unit(120), limit=50, include_past=True
            )
            assert small.size == 32
            assert small.origin is not None
            assert np.count_nonzero(small.rows["kind"]) == 1
        empty = await store.narrow(Scope("acme", "nobody"), "Porto", unit(1), limit=50, include_past=True)
        assert empty.size == 0

    async def test_the_past_is_found_only_if_asked_for(self, store: MongoDBStore) -> None:
        await filled(store, ANA, 200)
        await store.write(ANA, [put(memory("m150", "a bicycle in Utrecht", past=True))])
        await aged(store)
        now = await store.narrow(ANA, "Utrecht bicycle", None, limit=5, include_past=False)
        past = await store.narrow(ANA, "Utrecht bicycle", None, limit=5, include_past=True)
        assert now.origin is None or 150 not in now.origin.tolist()
        assert past.origin is not None
        assert 150 in past.origin.tolist()

    async def test_what_is_not_searchable_takes_no_place(self, store: MongoDBStore) -> None:
        await filled(store, ANA, 100)
        await store.write(ANA, [put(note(f"n{n}", text="Reykjavik", value="Reykjavik")) for n in range(50)])
        await store.write(ANA, [put(memory("r", "Reykjavik in winter"))])
        await aged(store)
        small = await store.narrow(ANA, "Reykjavik", None, limit=1, include_past=True)
        assert small.origin is not None
        assert 100 in small.origin.tolist()

    @mongodb_server.stand_in_only
    async def test_what_is_younger_than_the_search_index_is_found(self) -> None:
        mongodb_server.note("the wire stand-in, search behind")
        with MongoServer() as server:
            made = store_from(server.url("echoic", "narrow_above=100"))
            async with opened(made):
                assert await made.until_searchable(20)
                await filled(made, ANA, 300)
                await aged(made)
                server.pause_search()
                await made.write(ANA, [put(memory("new", "moved to Utrecht"))])
                await made.write(ANA, [put(memory("m7", "bought a canoe"))])
                await made.write(ANA, [Drop(kind="memory", id="m9")])
                for text, row in (("Utrecht", 300), ("a canoe", 7)):
                    small = await made.narrow(ANA, text, unit(1), limit=5, include_past=False)
                    assert found_in(small, text, None, 1) == [row]
                gone = await made.narrow(ANA, text_of(9), unit(9), limit=5, include_past=False)
                assert 9 not in found_in(gone, text_of(9), unit(9), 50)
                await aged(made)
                blind = await made.narrow(ANA, "Utrecht", None, limit=5, include_past=False)
                assert blind.size == 0, "without the overlay the index alone would have found it"

    async def test_a_question_without_words_or_vector_finds_only_what_is_young(
        self, store: MongoDBStore
    ) -> None:
        await filled(store, ANA, 100)
        await aged(store)
        assert (await store.narrow(ANA, "?!", None, limit=5, include_past=False)).size == 0
        assert (await store.narrow(ANA, "", np.zeros(8, np.float32), limit=5, include_past=False)).size == 0

    async def test_size_is_told_without_counting(self, store: MongoDBStore) -> None:
        assert await store.size(ANA) == 0
        await store.write(ANA, [put(memory(f"m{n}")) for n in range(40)])
        await store.write(ANA, [Drop(kind="memory", id="m3"), put(note("n"))])
        assert await store.size(ANA) == 40

    @mongodb_server.stand_in_only
    async def test_a_server_that_cannot_fuse_searches_twice(self) -> None:
        mongodb_server.note("the wire stand-in, 7.0")
        with MongoServer(version=(7, 0, 12)) as server:
            made = store_from(server.url("echoic", "narrow_above=100"))
            async with opened(made):
                assert await made.until_searchable(20)
                await filled(made, ANA, 200)
                await aged(made)
                text, vector = f"what about {text_of(123)}", unit(123)
                small = await made.narrow(ANA, text, vector, limit=10, include_past=False)
                assert found_in(small, text, vector, 1) == [123]

    async def test_after_reindexing_the_indexes_are_of_the_new_dimensions(self, store: MongoDBStore) -> None:
        await filled(store, ANA, 100)
        assert await store.reindex(OTHER_SPEC) == 100
        assert await store.until_searchable(300)
        found = await store.scan(ANA, "memory")
        await store.write(ANA, [attach(r, r.seq, OTHER_SPEC.dimensions) for r in found])
        await aged(store)
        vector = unit(55, OTHER_SPEC.dimensions)
        small = await store.narrow(ANA, "", vector, limit=1, include_past=False)
        assert found_in(small, "", vector, 1) == [55]

    async def test_a_scope_that_another_process_indexes_again_is_loaded(self, store: MongoDBStore) -> None:
        await filled(store, ANA, 200)
        assert store._live is not None
        of_another = {"$set": model_fields(OTHER_SPEC)}
        await store._live.connection.collections.scopes.update_many({}, of_another)
        found = await store.narrow(ANA, text_of(55), None, limit=1, include_past=False)
        assert found.origin is None
        assert found_in(found, text_of(55), None, 1) == [55]

    @mongodb_server.stand_in_only
    async def test_until_the_indexes_are_built_scopes_are_loaded(self) -> None:
        with MongoServer(build_looks=10**9) as server:
            made = store_from(server.url("echoic", "narrow_above=1"))
            async with opened(made):
                await made.write(ANA, [put(memory("a")), put(memory("b"))])
                assert not await made.until_searchable(0.2)
                assert (await made.narrow(ANA, "tea", None, limit=1, include_past=False)).origin is None
                assert (await made.check())["search"]["echoic_vector"] == "BUILDING"


class TestGolden:
    """What goes over the wire, held against files."""

    @pytest.fixture(autouse=True)
    def recording(self) -> Iterator[None]:
        mongodb_golden.sent.recording = True
        mongodb_golden.sent.commands.clear()
        yield
        mongodb_golden.sent.recording = False
        mongodb_golden.sent.commands.clear()

    @pytest.mark.parametrize("past", [False, True])
    @pytest.mark.parametrize("by", ["both", "words", "meaning"])
    async def test_pipelines_are_the_golden_ones(self, store: MongoDBStore, by: str, *, past: bool) -> None:
        await store.write(ANA, [put(memory("a"))])
        before = len(mongodb_golden.sent.named("aggregate"))
        text = "" if by == "meaning" else "what is my sister called?"
        vector = None if by == "words" else unit(1)
        await store.narrow(ANA, text, vector, limit=30, include_past=past)
        made = [
            c for c in mongodb_golden.sent.named("aggregate")[before:] if "$listSearchIndexes" not in str(c)
        ]
        mongodb_golden.compare(f"mongodb_narrow_{by}{'_past' if past else ''}", made)

    def test_the_pipelines_of_a_server_that_cannot_fuse_are_the_golden_ones(self) -> None:
        asked = pipelines(ANA, "my sister?", unit(1), limit=30, include_past=False, fusing=False)
        mongodb_golden.compare("mongodb_narrow_two", _shown(asked))

    async def test_index_definitions_are_the_golden_ones(self) -> None:
        before = len(mongodb_golden.sent.named("createIndexes", "createSearchIndexes"))
        made = store_from(mongodb_server.url())
        async with opened(made):
            await made.until_searchable(300)
        found = mongodb_golden.sent.named("createIndexes", "createSearchIndexes")[before:]
        mongodb_golden.compare("mongodb_indexes", found)

    async def test_writes_hold_to_the_scope_and_are_durable(self) -> None:
        before = len(mongodb_golden.sent.commands)
        async with opened(store_from(mongodb_server.url())) as made:
            await made.write(ANA, [put(memory("a", "likes tea", key="drink"))])
            await made.write(ANA, [attach(r) for r in await made.scan(ANA, "memory")])
            await made.erase(ANA)
        del mongodb_golden.sent.commands[:before]
        commits = mongodb_golden.sent.named("commitTransaction")
        assert len(commits) == 3
        assert all(c["writeConcern"] == {"w": "majority", "j": True} for c in commits)
        for command in mongodb_golden.sent.named("find", "delete", "update"):
            collection = command.get("find") or command.get("delete") or command.get("update")
            if collection not in {"memories", "echoic_segments"}:
                continue
            filters = [command["filter"]] if "filter" in command else []
            filters += [s["q"] for s in command.get("deletes", command.get("updates", []))]
            for one in filters:
                scoped = {"deploymentId", "userCookie", "isGlobal"} <= set(one)
                # by its own address, found in the scope within the same transaction; or what no scope has yet
                assert scoped or "_id" in one or one.get("kind") == {"$exists": False}, one


def _shown(value: Any) -> Any:
    if isinstance(value, Binary):
        return f"a binary vector of {len(value) // 4} numbers"
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value
