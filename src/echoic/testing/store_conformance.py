"""Conformance suite for stores. Subclass it and override one fixture, and `reopen` if the store is durable.

    class TestMine(StoreConformance):
        @pytest.fixture
        def store(self, tmp_path: Path) -> Store:
            return MyStore(tmp_path)

        def reopen(self, store: Store) -> Store | None:
            return MyStore(store.path)

Tests the contract of `echoic.stores.base.Store` by examples; `store_histories` adds random ones. Does not
test crashes or speed. Needs pytest, pytest-asyncio and hypothesis.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch, NotOpen, WriteConflict
from echoic.partition import Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Change, Drop, Record, Store, latest
from echoic.testing.store_histories import (
    ANA,
    BOB,
    EVERYONE,
    ODD_NAMES,
    OTHER_ANA,
    OTHER_SPEC,
    SPEC,
    attach,
    everything,
    exact,
    expected,
    index,
    loaded,
    memory,
    note,
    opened,
    put,
    told,
    unit,
)
from echoic.testing.store_writing import StoreWriting
from echoic.types import Scope

VERBS: Mapping[str, Callable[[Store], Awaitable[object]]] = {
    "write": lambda store: store.write(ANA, [put(note("n"))]),
    "read": lambda store: store.read(ANA, "note", ["n"]),
    "rows": lambda store: store.rows(ANA, [0]),
    "scan": lambda store: store.scan(ANA, "note"),
    "load": lambda store: store.load(ANA),
    "waiting": lambda store: store.waiting(1),
    "erase": lambda store: store.erase(ANA),
    "erase some": lambda store: store.erase(ANA, [Drop(kind="note", id="n")]),
    "scopes": lambda store: store.scopes(),
    "reindex": lambda store: store.reindex(SPEC),
    "check": lambda store: store.check(),
}


async def _not_open(store: Store) -> None:
    """Every method raises `NotOpen`."""
    worked = []
    for name, verb in VERBS.items():
        with contextlib.suppress(NotOpen):
            await verb(store)
            worked.append(name)
    assert worked == []


@pytest.mark.asyncio
class StoreConformance(StoreWriting):
    """The suite. Each test opens and closes the store it is given."""

    @pytest.fixture
    def store(self) -> Store:
        """The store under test, not yet open, holding nothing."""
        raise NotImplementedError("override the fixture `store` with one that returns your store")

    def reopen(self, store: Store) -> Store | None:  # noqa: ARG002 - for those who override it
        """Another instance on the storage of `store`; None if its records are not durable."""
        return None

    def again(self, store: Store) -> Store:
        """`reopen`; skips the test if that returns None."""
        other = self.reopen(store)
        if other is None:
            pytest.skip("this store's records do not outlast it, so there is no other instance to look")
        return other

    async def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    async def test_no_verb_works_before_open_or_after_aclose(self, store: Store) -> None:
        await _not_open(store)
        async with opened(store):
            for verb in VERBS.values():
                await verb(store)
        await _not_open(store)

    async def test_closing_twice_or_unopened_does_no_harm(self, store: Store) -> None:
        await store.aclose()
        async with opened(store):
            await store.write(ANA, [put(note("n"))])
        await store.aclose()
        await asyncio.gather(store.aclose(), store.aclose())

    async def test_opening_twice_changes_nothing(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a")), put(note("n"))])
        await live.write(ANA, [attach(r) for r in await live.scan(ANA, "memory")])
        before = [told(r) for r in await everything(live, ANA)], await loaded(live, ANA)
        await live.open(SPEC, index)
        await asyncio.gather(live.open(SPEC, index), live.open(SPEC, index))
        assert ([told(r) for r in await everything(live, ANA)], await loaded(live, ANA)) == before

    async def test_opening_at_once_opens_once_and_closing_lets_go_of_it(self, store: Store) -> None:
        before = await _threads_and_files()
        await asyncio.gather(store.open(SPEC, index), store.open(SPEC, index), store.open(SPEC, index))
        try:
            await asyncio.gather(*(store.write(ANA, [put(memory(f"m{n}"))]) for n in range(10)))
            assert sorted(r.seq for r in await everything(store, ANA)) == list(range(10))
        finally:
            await store.aclose()
        with pytest.raises(NotOpen):
            await store.scopes()
        threads, files = await _threads_and_files(at_most=before)
        assert threads <= before[0], "a thread outlived the store"
        assert files <= before[1], "a file is still open"

    async def test_what_was_begun_before_aclose_is_finished_or_refused(self, store: Store) -> None:
        other = self.again(store)
        await store.open(SPEC, index)
        writes = [asyncio.ensure_future(store.write(ANA, [put(note(f"n{n}"))])) for n in range(20)]
        await asyncio.sleep(0)
        await store.aclose()
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert all(answer is None or isinstance(answer, NotOpen) for answer in answers)
        async with opened(other):
            there = {r.id for r in await everything(other, ANA)}
        assert there == {f"n{n}" for n, answer in enumerate(answers) if answer is None}

    async def test_everything_is_there_after_reopening(self, store: Store) -> None:
        async with opened(store):
            await store.write(BOB, [put(note("first"))])
            await store.write(ANA, [put(memory(f"m{n}", f"likes {n}?", key=f"k{n % 3}")) for n in range(50)])
            await store.write(ANA, [put(note("n", n=1)), put(memory("m1", "other", past=True))])
            await store.write(ANA, [Drop(kind="memory", id="m49"), Drop(kind="memory", id="m9")])
            await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory", limit=30)])
            records = [told(r) for r in await everything(store, ANA)]
            before = await loaded(store, ANA), await store.scopes(), await self._waiting(store)
        async with opened(self.again(store)) as other:
            assert [told(r) for r in await everything(other, ANA)] == records
            assert (await loaded(other, ANA), await other.scopes(), await self._waiting(other)) == before
            await other.write(ANA, [put(memory("new"), 0), put(note("n", n=2), 1)])
            assert [r.seq for r in await other.read(ANA, "memory", ["new"])] == [50]

    async def test_the_vector_of_an_earlier_text_is_not_found_by_reopening(self, store: Store) -> None:
        async with opened(store):
            await store.write(ANA, [put(memory("a", "likes tea"))])
            await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
            await store.write(ANA, [put(memory("a", "likes coffee"))])
            await store.write(ANA, [put(memory("a", "likes tea"))])
        async with opened(self.again(store)) as other:
            assert (await loaded(other, ANA)).vectors == {}
            assert [w.record.id for w in await other.waiting(10)] == ["a"]

    async def test_an_erasure_lasts(self, store: Store) -> None:
        async with opened(store):
            await store.write(ANA, [put(memory("a")), put(memory("b"))])
            await store.write(BOB, [put(memory("a"))])
            await store.erase(ANA)
            await store.erase(BOB, [Drop(kind="memory", id="a")])
        async with opened(self.again(store)) as other:
            assert await other.scopes() == []
            assert await other.waiting(10) == []

    async def test_what_is_put_and_dropped_in_one_erasure_is_destroyed(self, store: Store) -> None:
        async with opened(store):
            await store.write(ANA, [put(memory("a")), put(memory("b"))])
            erased = await store.erase(ANA, [put(memory("a", "again")), Drop(kind="memory", id="a")])
            assert (erased.records, erased.rewritten, erased.verified) == ({"memory": 1}, 0, True)
            assert [record.id for record in await everything(store, ANA)] == ["b"]

    async def test_what_one_instance_writes_another_reads_at_once(self, store: Store) -> None:
        async with opened(store), opened(self.again(store)) as other:
            pair = [store, other]
            for n in range(30):
                writer, reader = pair[n % 2], pair[1 - n % 2]
                await writer.write(
                    ANA, [put(memory(f"m{n % 7}", f"likes number {n}")), put(note(f"n{n % 5}"))]
                )
                if n % 3 == 0:
                    await writer.write(
                        ANA, [attach(r, n) for r in await writer.read(ANA, "memory", [f"m{n % 7}"])]
                    )
                records = await everything(reader, ANA)
                assert [told(r) for r in records] == [told(r) for r in await everything(writer, ANA)]
                content = await loaded(reader, ANA)
                assert content == await loaded(writer, ANA)
                assert set(content.rows) <= {r.seq for r in records}
                assert await self._waiting(reader) == await self._waiting(writer)
            await store.erase(ANA)
            assert await everything(other, ANA) == []
            assert await loaded(other, ANA) == expected([], {})
            await store.write(ANA, [put(memory("new", "begun anew"))])
            assert await loaded(other, ANA) == expected(await everything(store, ANA), {})

    async def test_no_update_is_lost_between_instances(self, store: Store) -> None:
        async def count_up(instance: Store) -> None:
            while True:
                found = await instance.read(ANA, "note", ["n"])
                version, n = (found[0].version, found[0].data["n"]) if found else (0, 0)
                try:
                    return await instance.write(ANA, [put(note("n", n=n + 1), version)])
                except WriteConflict:
                    continue

        async with opened(store), opened(self.again(store)) as other:
            await asyncio.gather(*(count_up([store, other][n % 2]) for n in range(24)))
            for instance in (store, other):
                assert [r.data for r in await instance.read(ANA, "note", ["n"])] == [{"n": 24}]

    async def test_a_store_of_another_models_vectors_is_refused_and_left_as_it_was(
        self, store: Store
    ) -> None:
        async with opened(store):
            await store.write(ANA, [put(memory("a"))])
            await store.write(ANA, [attach(r, 1) for r in await store.scan(ANA, "memory")])
        other = self.again(store)
        with pytest.raises(EmbeddingMismatch):
            await other.open(OTHER_SPEC, index)
        with pytest.raises(NotOpen):
            await other.scopes()
        async with opened(self.again(store)) as same:
            records = await everything(same, ANA)
            assert await loaded(same, ANA) == expected(records, {("memory", "a"): unit(1)})

    async def test_reindexing_lets_go_of_every_vector_and_of_nothing_else(self, live: Store) -> None:
        for scope in (ANA, BOB):
            await live.write(scope, [put(memory(f"m{n}", f"likes {n}")) for n in range(40)])
            await live.write(scope, [put(note("n")), Drop(kind="memory", id="m7")])
            await live.write(scope, [attach(r) for r in await live.scan(scope, "memory", limit=20)])
        records = [told(r) for r in await everything(live, ANA)]
        assert await live.reindex(OTHER_SPEC) == 78
        assert [told(r) for r in await everything(live, ANA)] == records
        assert await loaded(live, ANA) == expected(await everything(live, ANA), {})
        assert (await live.load(ANA)).vectors.shape[1] == OTHER_SPEC.dimensions
        waiting = await live.waiting(1000)
        assert len({(w.scope, w.record.id) for w in waiting}) == len(waiting) == 78
        await live.write(ANA, [attach(w.record, 5, OTHER_SPEC.dimensions) for w in waiting if w.scope == ANA])
        vectors = {("memory", w.record.id): unit(5, OTHER_SPEC.dimensions) for w in waiting}
        assert await loaded(live, ANA) == expected(await everything(live, ANA), vectors)
        assert {w.scope for w in await live.waiting(1000)} == {BOB}

    async def test_a_reindexed_store_is_of_the_new_model(self, store: Store) -> None:
        async with opened(store):
            await store.write(ANA, [put(memory("a"))])
            await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
            assert await store.reindex(OTHER_SPEC) == 1
        with pytest.raises(EmbeddingMismatch):
            await self.again(store).open(SPEC, index)
        async with opened(self.again(store), OTHER_SPEC) as other:
            assert await loaded(other, ANA) == expected(await everything(other, ANA), {})
            assert [w.record.id for w in await other.waiting(10)] == ["a"]

    async def test_who_still_has_the_old_model_cannot_mix_its_vectors_in(self, store: Store) -> None:
        async with opened(store), opened(self.again(store)) as other:
            await store.write(ANA, [put(memory("a")), put(memory("b"))])
            records = await other.scan(ANA, "memory")
            await other.load(ANA)
            await store.reindex(OTHER_SPEC)
            await store.write(ANA, [attach(records[0], 1, OTHER_SPEC.dimensions)])
            with pytest.raises(EmbeddingMismatch):
                await other.write(ANA, [attach(records[1], 2)])
            vectors = {("memory", "a"): unit(1, OTHER_SPEC.dimensions)}
            assert await loaded(store, ANA) == expected(await everything(store, ANA), vectors)

    async def test_check_tells_facts_and_no_contents(self, live: Store) -> None:
        await live.write(ANA, [put(memory("secret id", "a secret text", key="secret key")), put(note("n"))])
        facts = await live.check()
        assert {"engine", "durable", "writable"} <= set(facts)
        assert facts["writable"] is True
        assert "secret" not in repr(facts)
        if hasattr(live, "until_searchable"):  # it says whether it searches, which changes once
            await live.until_searchable(60)
        assert await live.check() == await live.check()

    async def test_a_partition_may_be_scanned_while_it_is_patched(self, live: Store) -> None:
        await live.write(ANA, [put(memory(f"m{n}", f"likes number {n}")) for n in range(40)])
        records = await live.scan(ANA, "memory")

        def scanned() -> None:
            for _ in range(200):
                with partition.lock:
                    embedded = (partition.rows["flags"] & Flag.EMBEDDED) > 0
                    lengths = (partition.vectors**2).sum(axis=1)
                    rows, terms, counts = partition.postings
                    assert ((lengths > 0.99) == embedded).all()
                    assert len(rows) == len(terms) == len(counts)
                    assert partition.rows["kind"][rows].all()

        partition = await live.load(ANA)
        scanning = asyncio.ensure_future(asyncio.to_thread(scanned))
        for record in records:
            await live.write(ANA, [attach(record, record.seq)])
            await live.write(
                ANA,
                [put(memory(f"m{record.seq // 2}", f"likes {record.seq}")), put(memory(f"x{record.seq}"))],
            )
            await live.load(ANA)
        await scanning

    async def test_records_are_read_in_the_order_asked_and_the_unknown_are_absent(self, live: Store) -> None:
        await live.write(ANA, [put(memory(name)) for name in "abc"] + [put(note("d"))])
        found = await live.read(ANA, "memory", ["c", "unknown", "a", "d", "c"])
        assert [r.id for r in found] == ["c", "a", "c"]
        assert await live.read(ANA, "memory", []) == []
        assert await live.read(ANA, "unknown", ["a"]) == []
        assert await live.read(Scope("acme", "nobody"), "memory", ["a"]) == []

    async def test_rows_are_read_in_the_order_asked_and_the_unknown_are_absent(self, live: Store) -> None:
        await live.write(ANA, [put(memory(name)) for name in "abcd"])
        await live.write(ANA, [Drop(kind="memory", id="b")])
        assert [r.id for r in await live.rows(ANA, [3, 1, 0, 31, 32, 3])] == ["d", "a", "d"]
        assert [told(r) for r in await live.rows(ANA, [2])] == [
            told(r) for r in await live.read(ANA, "memory", ["c"])
        ]
        assert await live.rows(ANA, []) == []
        assert await live.rows(Scope("acme", "nobody"), [0]) == []

    async def test_what_is_no_row_of_this_scope_is_not_found_by_row(self, live: Store) -> None:
        scopes = [Scope("acme", f"user {n}") for n in range(5)]
        for scope in scopes:
            await live.write(scope, [put(memory("a")), put(note("n"))])
        for scope in scopes:
            beyond = [-1, 1, FIRST_UNSEARCHABLE, 1 << 32, 2 << 32, (1 << 32) + 1, 1 << 40]
            assert await live.rows(scope, beyond) == []

    async def test_a_scan_goes_through_one_kind_in_the_order_of_first_writing(self, live: Store) -> None:
        for n in range(25):
            await live.write(ANA, [put(memory(f"m{n}")), put(note(f"n{n}"))])
        await live.write(ANA, [put(memory("m3", "again")), Drop(kind="memory", id="m11")])
        names = [f"m{n}" for n in range(25) if n != 11]
        assert [r.id for r in await live.scan(ANA, "memory")] == names
        assert [r.id for r in await live.scan(ANA, "memory", newest_first=True)] == names[::-1]
        assert [r.id for r in await live.scan(ANA, "note", limit=3)] == ["n0", "n1", "n2"]
        assert [r.id for r in await live.scan(ANA, "note", limit=2, newest_first=True)] == ["n24", "n23"]
        assert await live.scan(ANA, "unknown") == []
        assert await live.scan(Scope("acme", "nobody"), "memory") == []

    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize("kind", ["memory", "note"])
    @pytest.mark.parametrize("key", [None, "even"])
    async def test_pages_meet_without_gap_or_overlap(
        self, live: Store, kind: str, key: str | None, newest_first: bool
    ) -> None:
        records = [
            Record(kind=kind, id=str(n), key=["even", "odd", None][n % 3], data={"text": str(n)})
            for n in range(23)
        ]
        await live.write(ANA, [put(record) for record in records])
        names = [r.id for r in records if key in {None, r.key}]
        found: list[str] = []
        after = -1
        while page := await live.scan(ANA, kind, key=key, after=after, limit=4, newest_first=newest_first):
            assert len(page) <= 4
            found += [r.id for r in page]
            after = page[-1].seq
            await live.write(ANA, [Drop(kind=kind, id=page[-1].id)])  # the next page begins behind it anyhow
        assert found == (names[::-1] if newest_first else names)

    async def test_a_key_finds_those_that_have_it_now(self, live: Store) -> None:
        await live.write(
            ANA, [put(memory("a", key="k")), put(memory("b", key="k")), put(memory("c", key="K"))]
        )
        await live.write(ANA, [put(memory("a", key="l")), put(memory("c", key="k")), put(note("n", key="k"))])
        assert [r.id for r in await live.scan(ANA, "memory", key="k")] == ["b", "c"]
        assert [r.id for r in await live.scan(ANA, "memory", key="K")] == []
        await live.write(ANA, [put(memory("b"))])
        assert [r.id for r in await live.scan(ANA, "memory", key="k")] == ["c"]

    async def test_the_latest_of_many_keys_and_scopes_is_what_a_scan_finds_for_each(
        self, live: Store
    ) -> None:
        keys = ["k", *ODD_NAMES]
        places = [(scope, key) for scope in (ANA, EVERYONE, OTHER_ANA) for key in keys]
        for scope in (ANA, EVERYONE):
            some = [memory(f"{n}.{m}", key=key) for n, key in enumerate(keys) for m in range(n % 3)]
            await live.write(scope, list(map(put, [*some, *(note(key, key=key) for key in keys[::2])])))
        changed = [put(memory("2.0", "changed last, but not the last", key=keys[2])), put(note("k", key="l"))]
        await live.write(ANA, [*changed, Drop(kind="memory", id="5.1")])
        for kind, number in (("memory", None), ("note", 2 * len(keys[::2]) - 1), ("other", 0)):
            expected_there = {
                (scope, key): told(page[0])
                for scope, key in places
                if (page := await live.scan(scope, kind, key=key, newest_first=True, limit=1))
            }
            found = await latest(live, kind, [*places, (BOB, "k")])
            assert {place: told(record) for place, record in found.items()} == expected_there
            assert number in {None, len(found)}
        assert await latest(live, "memory", []) == {}

    async def test_a_scope_is_loaded_as_its_records_are_after_every_write(self, live: Store) -> None:
        vectors: dict[tuple[str, str], NDArray[np.float32]] = {}
        for n in range(80):
            name = f"m{n * 7 % 40}"
            changes: list[Change] = [put(memory(name, f"likes number {n} and tea?", past=n % 3 == 0))]
            vectors.pop(("memory", name), None)
            if n % 4 == 3:
                changes.append(Drop(kind="memory", id=f"m{n % 40}"))
                vectors.pop(("memory", f"m{n % 40}"), None)
            await live.write(ANA, changes)
            for record in await live.read(ANA, "memory", [name] if n % 2 else []):
                await live.write(ANA, [attach(record, n)])
                vectors["memory", name] = unit(n)
            assert await loaded(live, ANA) == expected(await everything(live, ANA), vectors)

    async def test_a_scope_that_holds_nothing_loads_empty(self, live: Store) -> None:
        await live.write(BOB, [put(note("n"))])
        for scope in (ANA, BOB):
            partition = await live.load(scope)
            assert partition.vectors.shape == (partition.size, SPEC.dimensions)
            assert await loaded(live, scope) == expected([], {})

    async def test_the_words_of_a_scope_can_be_found_by_their_sound(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "My sister Katherine moved")), put(memory("b", "Catherine"))])
        vocabulary = (await live.load(ANA)).vocabulary
        assert {"katherine", "catherine", "sister", "moved"} <= set(vocabulary.terms)
        assert any({"katherine", "catherine"} <= words for words in vocabulary.sounds.values())
        await live.write(ANA, [put(memory("c", "and Kathryn"))])
        assert "kathryn" in (await live.load(ANA)).vocabulary.terms

    async def test_who_waits_longest_comes_first_in_every_scope(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "one"))])
        await live.write(BOB, [put(memory("b", "two"))])
        await live.write(ANA, [put(memory("c", "three")), put(note("n"))])
        await live.write(ANA, [put(memory("a", "one, or more"))])
        waiting = await live.waiting(10)
        assert [(w.scope, w.record.id) for w in waiting] == [(ANA, "a"), (BOB, "b"), (ANA, "c")]
        assert exact(waiting[0].record.data) == exact({"text": "one, or more"})
        assert [w.record.id for w in await live.waiting(2)] == ["a", "b"]
        await live.write(ANA, [attach(waiting[0].record)])
        assert [w.record.id for w in await live.waiting(10)] == ["b", "c"]
        await live.write(ANA, [put(memory("a", "something else"))])
        assert [w.record.id for w in await live.waiting(10)] == ["b", "c", "a"]
        await live.write(BOB, [Drop(kind="memory", id="b")])
        assert [w.record.id for w in await live.waiting(10)] == ["c", "a"]

    async def test_scopes_are_told_in_the_order_of_first_writing(self, live: Store) -> None:
        scopes = [BOB, OTHER_ANA, EVERYONE, ANA]
        for scope in scopes:
            await live.write(scope, [put(note("n"))])
        await live.write(BOB, [put(note("m"))])
        assert await live.scopes() == scopes
        assert await live.scopes("acme") == [BOB, EVERYONE, ANA]
        assert await live.scopes("unknown") == []
        await live.write(EVERYONE, [Drop(kind="note", id="n")])
        assert await live.scopes() == [BOB, OTHER_ANA, ANA]

    async def test_scopes_of_like_names_share_nothing(self, live: Store) -> None:
        users = [Scope("acme", user) for user in (*ODD_NAMES, None)]
        users += [Scope("Acme", user) for user in (*ODD_NAMES[::4], None)]
        scopes = [*users, *(Scope(deployment, "ana") for deployment in ODD_NAMES)]
        for n, scope in enumerate(scopes):
            await live.write(scope, [put(memory("x", f"number {n}", key="k")), put(note("n", n=n))])
        assert sorted(map(repr, await live.scopes())) == sorted(map(repr, set(scopes)))
        for n, scope in enumerate(scopes):
            if scope in scopes[n + 1 :]:
                continue
            assert [r.data["text"] for r in await live.read(scope, "memory", ["x"])] == [f"number {n}"]
            assert [r.data["text"] for r in await live.rows(scope, [0])] == [f"number {n}"]
            assert [r.data for r in await live.scan(scope, "note")] == [{"n": n}]
            assert await loaded(live, scope) == expected(await live.scan(scope, "memory", key="k"), {})
        for scope in scopes[::2]:
            await live.erase(scope)
        assert set(await live.scopes()) == set(scopes) - set(scopes[::2])
        for scope in set(scopes) - set(scopes[::2]):
            assert len(await everything(live, scope)) == 2

    async def test_any_name_will_do_for_an_id_and_a_key(self, live: Store) -> None:
        left = set(ODD_NAMES)
        await live.write(ANA, [put(memory(name, name, key=name)) for name in ODD_NAMES])
        for name in ODD_NAMES:
            await live.write(ANA, [put(memory(name, "this", key=name)), put(note(name, key=name))])
            assert [r.data["text"] for r in await live.read(ANA, "memory", [name])] == ["this"], name
            assert [r.id for r in await live.scan(ANA, "memory", key=name)] == [name]
            await live.write(ANA, [Drop(kind="memory", id=name)])
            left.remove(name)
            found = await live.scan(ANA, "memory")
            assert {r.id: r.data["text"] for r in found} == {other: other for other in left}, name

    async def test_flags_say_what_the_index_said(self, live: Store) -> None:
        deleted = memory("c", "coffee", past=True, unheard=True)
        await live.write(
            ANA, [put(memory("a", "is it tea?", past=True)), put(memory("b", "tea")), put(deleted)]
        )
        rows = (await loaded(live, ANA)).rows
        flags = [Flag(rows[n][1]) for n in range(3)]
        assert flags == [Flag.PAST | Flag.QUESTION, Flag.NONE, Flag.PAST | Flag.UNHEARD]

    @staticmethod
    async def _waiting(store: Store) -> list[tuple[object, str, str]]:
        return [(w.scope, w.record.kind, w.record.id) for w in await store.waiting(1000)]


async def _threads_and_files(at_most: tuple[int, int] | None = None) -> tuple[int, int]:
    """How many threads and open files there are, once they are no more than `at_most`, or in the end."""
    found = (0, 0)
    for _ in range(100):
        gc.collect()
        files = await asyncio.to_thread(_open_files)
        # the event loop keeps threads of its own for whoever asks
        found = (sum(not t.name.startswith("asyncio_") for t in threading.enumerate()), files)
        if at_most is None or (found[0] <= at_most[0] and found[1] <= at_most[1]):
            break
        await asyncio.sleep(0.02)
    return found


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


__all__ = ["StoreConformance"]
