"""The part of `StoreConformance` about writing and erasing: atomic batches, versions, rows, vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic.errors import WriteConflict
from echoic.partition import Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Put, Record, Require, Store
from echoic.testing.store_histories import (
    ANA,
    BOB,
    EVERYONE,
    OTHER_ANA,
    attach,
    everything,
    exact,
    expected,
    loaded,
    memory,
    note,
    opened,
    put,
    told,
    unit,
)
from echoic.types import Scope

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
"""What a store has to keep exactly: any Unicode except NUL and lone surrogates."""
NAMES = TEXT.filter(lambda name: bool(name.strip()))
_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
# names that a memory's data has, so that stores with columns for some of them get unexpected values there
JSON_DATA = st.dictionaries(
    st.sampled_from(["text", "category", "valid_from", "id", "version", "data"]) | TEXT,
    JSON_VALUES | st.sampled_from(["fact", "preference", "2026-11-20T10:00:00+00:00"]),
    max_size=6,
)
_EXAMPLES = settings(
    max_examples=min(40, settings().max_examples),  # fewer where your profile says so
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
_DATA: dict[str, Any] = {"source": ["t1"], "confidence": 0.5, "more": {"é": None, "sure": True, "n": 1}}
_ERASURES = pytest.mark.parametrize(
    "drops", [None, [Drop(kind="memory", id="a")]], ids=["everything", "one of them"]
)


class StoreWriting:
    """Needs `live`, an open store that holds nothing."""

    @pytest_asyncio.fixture
    async def live(self, store: Store) -> Any:
        """The store under test, open."""
        async with opened(store):
            yield store

    async def test_a_batch_with_a_conflict_writes_nothing_of_itself(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "likes tea")), put(note("n", n=1))])
        before = [told(record) for record in await everything(live, ANA)], await loaded(live, ANA)
        stored = (await live.read(ANA, "memory", ["a"]))[0]
        batch: list[Change] = [put(memory("b")), put(note("m")), Drop(kind="note", id="n"), attach(stored)]
        batch.append(put(memory("c"), 1))
        with pytest.raises(WriteConflict):
            await live.write(ANA, batch)
        assert ([told(r) for r in await everything(live, ANA)], await loaded(live, ANA)) == before
        await live.write(ANA, [put(memory("b"))])
        assert (await live.read(ANA, "memory", ["b"]))[0].seq == 1, "a batch that failed used up a row"

    async def test_expecting_nothing_there_fails_where_something_is(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "one"), 0)])
        with pytest.raises(WriteConflict):
            await live.write(ANA, [put(memory("a", "two"), 0)])
        await live.write(ANA, [Drop(kind="memory", id="a"), put(memory("a", "three"), 0)])
        assert (await live.read(ANA, "memory", ["a"]))[0].data == {"text": "three"}

    async def test_expecting_a_version_fails_once_it_is_another(self, live: Store) -> None:
        await live.write(ANA, [put(note("n", n=1))])
        await live.write(ANA, [put(note("n", n=2), 1)])
        for wrong in (0, 1, 3):
            with pytest.raises(WriteConflict):
                await live.write(ANA, [put(note("n", n=9), wrong)])
        with pytest.raises(WriteConflict):
            await live.write(ANA, [put(note("unknown"), 1)])
        assert [told(r) for r in await live.read(ANA, "note", ["n"])] == [
            ("note", "n", None, 2, FIRST_UNSEARCHABLE, exact({"n": 2}))
        ]

    @_ERASURES
    async def test_expecting_what_it_held_fails_once_it_was_forgotten_and_written_anew(
        self, live: Store, drops: Sequence[Drop] | None
    ) -> None:
        """Versions begin anew with a record: only what it held tells it from the one that was forgotten."""
        await live.write(ANA, [put(memory("a", "one", **_DATA))])
        old = (await live.read(ANA, "memory", ["a"]))[0]
        await live.erase(ANA, drops)
        with pytest.raises(WriteConflict):
            await live.write(ANA, [Put(record=memory("a", "two"), was=old.data)])
        await live.write(ANA, [put(memory("a", "another", **_DATA)), put(note("n", n=1))])
        before = [told(r) for r in await everything(live, ANA)], await loaded(live, ANA)
        new = (await live.read(ANA, "memory", ["a"]))[0]
        assert new.version == old.version
        overtaken = Put(record=memory("a", "two"), expect=old.version, was=old.data)
        with pytest.raises(WriteConflict):
            await live.write(ANA, [put(note("n", n=2)), overtaken])
        assert ([told(r) for r in await everything(live, ANA)], await loaded(live, ANA)) == before
        await live.write(ANA, [replace(overtaken, was=new.data)])
        taken = (await live.read(ANA, "memory", ["a"]))[0]
        assert (taken.version, taken.data) == (2, {"text": "two"})

    @_ERASURES
    async def test_what_belongs_to_something_is_written_only_while_that_is_there(
        self, live: Store, drops: Sequence[Drop] | None
    ) -> None:
        owner = Require(kind="memory", id="a")
        with pytest.raises(WriteConflict):
            await live.write(ANA, [put(note("n", n=1)), owner])
        assert await live.scopes() == [], "a batch that failed began a scope"
        await live.write(ANA, [put(memory("a", "one"))])
        await live.write(ANA, [owner, put(note("n", n=1))])
        await live.write(ANA, [owner])
        kept = await live.read(ANA, "memory", ["a"])
        assert [(record.version, record.data) for record in kept] == [(1, {"text": "one"})]
        await live.erase(ANA, drops)
        before = [told(r) for r in await everything(live, ANA)]
        batches: list[list[Change]] = [[owner], [owner, put(note("n", n=2))], [put(note("n", n=2)), owner]]
        for batch in batches:
            with pytest.raises(WriteConflict):
                await live.write(ANA, batch)
        assert [told(r) for r in await everything(live, ANA)] == before
        await live.write(ANA, [put(memory("a", "anew")), owner, Drop(kind="memory", id="a")])
        with pytest.raises(WriteConflict):
            await live.write(ANA, [owner])

    async def test_a_batch_sees_what_it_did_before(self, live: Store) -> None:
        changes: list[Change] = [
            put(note("n", n=1), 0),
            put(note("n", n=2), 1),
            Drop(kind="note", id="n"),
            put(note("n", n=3), 0),
            put(memory("a", "one"), 0),
            attach(Record(kind="memory", id="a", data={}, version=1)),
        ]
        await live.write(ANA, changes)
        record = (await live.read(ANA, "note", ["n"]))[0]
        assert (record.version, record.data) == (1, {"n": 3})
        records = await everything(live, ANA)
        assert await loaded(live, ANA) == expected(records, {("memory", "a"): unit(0)})

    async def test_a_version_says_how_often_it_was_put(self, live: Store) -> None:
        for n in range(1, 6):
            await live.write(ANA, [put(memory("a", f"number {n}"))])
            assert [r.version for r in await live.read(ANA, "memory", ["a"])] == [n]
        await live.write(ANA, [put(memory("a")), put(memory("a"))])
        assert [r.version for r in await live.read(ANA, "memory", ["a"])] == [7]

    async def test_version_and_place_are_the_stores_to_set(self, live: Store) -> None:
        await live.write(ANA, [put(Record(kind="memory", id="a", data={"text": "x"}, version=40, seq=7))])
        record = (await live.read(ANA, "memory", ["a"]))[0]
        assert (record.version, record.seq) == (1, 0)

    async def test_what_is_put_again_keeps_its_place_and_changes_whole(self, live: Store) -> None:
        await live.write(ANA, [put(memory(name, key="k", extra=1)) for name in "abc"])
        await live.write(ANA, [put(memory("b", "other", key="l"))])
        records = await live.scan(ANA, "memory")
        assert [(r.id, r.seq, r.version, r.key) for r in records] == [
            ("a", 0, 1, "k"),
            ("b", 1, 2, "l"),
            ("c", 2, 1, "k"),
        ]
        assert records[1].data == {"text": "other"}

    async def test_rows_are_counted_from_0_and_the_others_from_2_to_the_31(self, live: Store) -> None:
        first = [put(note("n")), put(memory("a")), put(Record(kind="turn", id="t", data={"text": "hi"}))]
        await live.write(ANA, [*first, put(note("m")), put(memory("b"))])
        records = {r.id: r.seq for r in await everything(live, ANA)}
        assert records == {"a": 0, "t": 1, "b": 2, "n": FIRST_UNSEARCHABLE, "m": FIRST_UNSEARCHABLE + 1}

    async def test_a_place_is_never_given_to_another(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a")), put(memory("b")), put(note("n"))])
        await live.write(ANA, [Drop(kind="memory", id=name) for name in "ab"] + [Drop(kind="note", id="n")])
        assert await live.scopes() == []
        await live.write(ANA, [put(memory("c")), put(memory("a")), put(note("n"))])
        assert [r.seq for r in await everything(live, ANA)] == [2, 3, FIRST_UNSEARCHABLE + 1]

    async def test_kind_and_id_together_name_a_record(self, live: Store) -> None:
        await live.write(ANA, [put(memory("x", "one")), put(note("x", n=2))])
        await live.write(ANA, [Drop(kind="note", id="x"), Drop(kind="note", id="unknown")])
        assert [told(r)[:2] for r in await everything(live, ANA)] == [("memory", "x")]

    async def test_nothing_to_write_leaves_nothing_behind(self, live: Store) -> None:
        await live.write(ANA, [])
        await live.write(ANA, [Drop(kind="memory", id="a")])
        await live.write(ANA, [attach(Record(kind="memory", id="a", data={}, version=1))])
        assert await live.scopes() == []
        await live.write(Scope("acme", "bob"), [put(note("n"))])
        await live.write(ANA, [put(note("n"))])
        assert await live.scopes() == [Scope("acme", "bob"), ANA], "a scope begins with its first record"

    async def test_what_its_owner_does_to_the_data_afterwards_stays_with_the_owner(self, live: Store) -> None:
        data: dict[str, Any] = {"text": "likes tea", "source": ["t1"]}
        await live.write(ANA, [put(Record(kind="memory", id="a", data=data))])
        data["source"].append("t2")
        data["text"] = "changed"
        assert (await live.read(ANA, "memory", ["a"]))[0].data == {"text": "likes tea", "source": ["t1"]}

    async def test_what_a_reader_does_to_a_record_stays_with_the_reader(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "likes tea", source=["t1"]))])
        for mine in (
            (await live.read(ANA, "memory", ["a"]))[0],
            (await live.rows(ANA, [0]))[0],
            (await live.scan(ANA, "memory"))[0],
            (await live.waiting(1))[0].record,
        ):
            mine.data["source"].append("t2")
        assert (await live.read(ANA, "memory", ["a"]))[0].data["source"] == ["t1"]

    async def test_a_vector_is_attached_at_its_version_only(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "one")), put(memory("b", "two"))])
        old = (await live.read(ANA, "memory", ["a"]))[0]
        await live.write(ANA, [put(memory("a", "another"))])
        await live.write(ANA, [attach(old, 1)])
        assert (await loaded(live, ANA)).vectors == {}
        new = (await live.read(ANA, "memory", ["a"]))[0]
        await live.write(ANA, [attach(new, 2)])
        assert await loaded(live, ANA) == expected(await everything(live, ANA), {("memory", "a"): unit(2)})
        await live.write(ANA, [attach(new, 3)])
        assert (await loaded(live, ANA)).vectors == {0: unit(3).tobytes()}, "a second vector takes its place"

    @_ERASURES
    async def test_a_vector_of_what_was_forgotten_is_not_taken_for_the_one_of_what_was_written_anew(
        self, live: Store, drops: Sequence[Drop] | None
    ) -> None:
        await live.write(ANA, [put(memory("a", "one", **_DATA))])
        old = (await live.waiting(1))[0].record
        await live.erase(ANA, drops)
        await live.write(ANA, [put(memory("a", "another", **_DATA))])
        new = (await live.waiting(1))[0].record
        assert new.version == old.version
        await live.write(ANA, [replace(attach(old, 1), was=old.data)])
        records = await everything(live, ANA)
        assert await loaded(live, ANA) == expected(records, {})
        assert [waiting.record.id for waiting in await live.waiting(10)] == ["a"]
        await live.write(ANA, [replace(attach(new, 2), was=new.data)])
        assert await loaded(live, ANA) == expected(records, {("memory", "a"): unit(2)})
        assert await live.waiting(10) == []

    async def test_a_vector_for_what_is_gone_or_not_searchable_is_passed_over(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a")), put(note("n")), put(memory("b"))])
        records = [*await live.read(ANA, "memory", ["a"]), *await live.read(ANA, "note", ["n"])]
        await live.write(ANA, [Drop(kind="memory", id="a")])
        await live.write(ANA, [attach(record) for record in records])
        await live.write(Scope("acme", "nobody"), [attach(records[0])])
        assert (await loaded(live, ANA)).vectors == {}
        assert Scope("acme", "nobody") not in await live.scopes()

    async def test_a_vector_stays_while_the_text_to_embed_does(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "likes tea")), put(memory("b", "likes rain"))])
        await live.write(ANA, [attach(r, r.seq) for r in await live.scan(ANA, "memory")])
        await live.write(ANA, [put(memory("a", "likes tea", key="drink", past=True, said_at_ms=99))])
        kept = {("memory", "a"): unit(0), ("memory", "b"): unit(1)}
        found = await loaded(live, ANA)
        assert found == expected(await everything(live, ANA), kept)
        assert found.rows[0][1] == Flag.EMBEDDED | Flag.PAST
        assert await live.waiting(10) == []
        await live.write(ANA, [put(memory("a", "likes coffee"))])
        assert await loaded(live, ANA) == expected(await everything(live, ANA), {("memory", "b"): unit(1)}), (
            "a vector outlived its text"
        )
        assert [waiting.record.id for waiting in await live.waiting(10)] == ["a"]
        await live.write(ANA, [put(memory("a", "likes tea"))])
        assert 0 not in (await loaded(live, ANA)).vectors, "the vector of an earlier text came back"

    async def test_what_is_dropped_takes_its_words_and_vector_with_it(self, live: Store) -> None:
        texts = ["likes tea", "likes tea and rain", "has a sister in Porto"]
        await live.write(ANA, [put(memory(str(n), text)) for n, text in enumerate(texts)])
        await live.write(ANA, [attach(r, r.seq) for r in await live.scan(ANA, "memory")])
        await live.write(ANA, [Drop(kind="memory", id="1")])
        kept = {("memory", "0"): unit(0), ("memory", "2"): unit(2)}
        assert await loaded(live, ANA) == expected(await everything(live, ANA), kept)
        await live.write(ANA, [Drop(kind="memory", id=name) for name in "02"])
        assert await loaded(live, ANA) == expected([], {})

    async def test_no_update_is_lost_among_many_writers(self, live: Store) -> None:
        async def count_up(name: str) -> None:
            while True:
                found = await live.read(ANA, "note", [name])
                version, n = (found[0].version, found[0].data["n"]) if found else (0, 0)
                try:
                    await live.write(ANA, [put(note(name, n=n + 1), version), put(memory(f"{name}{n}"), 0)])
                except WriteConflict:
                    continue
                return

        await asyncio.gather(*(count_up("xy"[n % 2]) for n in range(24)))
        counters = await live.read(ANA, "note", ["x", "y"])
        assert [(r.data["n"], r.version) for r in counters] == [(12, 12), (12, 12)]
        records = await everything(live, ANA)
        assert await loaded(live, ANA) == expected(records, {})
        assert len(records) == 26

    async def test_what_is_appended_at_once_is_all_there_each_in_a_place_of_its_own(
        self, live: Store
    ) -> None:
        scopes = [ANA, Scope("acme", None), Scope("other", "ana")]

        async def append(n: int) -> None:
            await live.write(scopes[n % 3], [put(memory(f"m{n}", f"number {n}")), put(note(f"n{n}"))])

        await asyncio.gather(*(append(n) for n in range(90)))
        for place, scope in enumerate(scopes):
            records = await everything(live, scope)
            assert {r.id for r in records} == {f"{kind}{n}" for n in range(place, 90, 3) for kind in "mn"}
            assert sorted(r.seq for r in records if r.kind == "memory") == list(range(30))
            assert await loaded(live, scope) == expected(records, {})

    @_EXAMPLES
    @given(data=JSON_DATA, kind=st.sampled_from(["memory", "turn", "note"]))
    async def test_json_comes_back_as_it_went_in(self, live: Store, data: dict[str, Any], kind: str) -> None:
        await live.write(ANA, [put(Record(kind=kind, id="x", data=data))])
        assert [exact(r.data) for r in await live.read(ANA, kind, ["x"])] == [exact(data)]
        records = await everything(live, ANA)
        assert await loaded(live, ANA) == expected(records, {})

    @_EXAMPLES
    @given(user=NAMES | st.none(), deployment=NAMES, name=NAMES, key=NAMES, text=TEXT, kind=NAMES)
    async def test_any_unicode_comes_back_as_it_went_in(
        self, live: Store, user: str | None, deployment: str, name: str, key: str, text: str, kind: str
    ) -> None:
        scope = Scope(deployment, user)
        mine = [memory(name, text, key=key), Record(kind=f"~{kind}", id=name, key=key, data={text: text})]
        await live.write(scope, [put(record) for record in mine])
        for record in mine:
            found = await live.read(scope, record.kind, [name])
            assert [(r.kind, r.id, r.key, exact(r.data)) for r in found] == [
                (record.kind, name, key, exact(record.data))
            ]
            assert [r.id for r in await live.scan(scope, record.kind, key=key)] == [name]
        assert scope in await live.scopes(deployment)
        await live.write(scope, [Drop(kind=record.kind, id=name) for record in mine])
        assert await live.read(scope, "memory", [name]) == []

    async def test_a_vector_comes_back_bit_for_bit(self, live: Store) -> None:
        await live.write(ANA, [put(memory(f"m{n}", f"number {n}")) for n in range(70)])
        records = await live.scan(ANA, "memory")
        await live.write(ANA, [attach(r, r.seq) for r in records if r.seq % 3])
        vectors = {("memory", r.id): unit(r.seq) for r in records if r.seq % 3}
        assert await loaded(live, ANA) == expected(records, vectors)

    async def test_what_its_owner_does_to_a_vector_afterwards_stays_with_the_owner(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a"))])
        mine = unit(1)
        await live.write(ANA, [Attach(kind="memory", id="a", version=1, vector=mine)])
        mine[:] = 0
        assert (await loaded(live, ANA)).vectors == {0: unit(1).tobytes()}

    async def test_erasing_a_scope_leaves_nothing_of_it_and_all_of_the_others(self, live: Store) -> None:
        scopes = [ANA, BOB, EVERYONE, OTHER_ANA]
        for scope in scopes:
            await live.write(scope, [put(memory(f"m{n}", f"likes tea {n}")) for n in range(40)])
            await live.write(
                scope, [put(note("n", n=1)), put(Record(kind="turn", id="t", data={"text": "hi"}))]
            )
            await live.write(scope, [attach(r, r.seq) for r in await live.scan(scope, "memory", limit=7)])
        others = [await loaded(live, scope) for scope in scopes[1:]]
        erased = await live.erase(ANA)
        assert dict(erased.records) == {"memory": 40, "turn": 1, "note": 1}
        assert (erased.vectors, erased.verified) == (7, True)
        assert await everything(live, ANA) == []
        assert await loaded(live, ANA) == expected([], {})
        assert await live.scopes() == scopes[1:]
        assert {w.scope for w in await live.waiting(1000)} == set(scopes[1:])
        assert [await loaded(live, scope) for scope in scopes[1:]] == others
        again = await live.erase(ANA)
        assert (dict(again.records), again.vectors, again.verified) == ({}, 0, True)

    async def test_erasing_some_records_leaves_the_others_as_they_were(self, live: Store) -> None:
        await live.write(ANA, [put(memory(f"m{n}", f"likes tea {n}")) for n in range(40)])
        await live.write(ANA, [put(note("n", n=1)), put(note("m", n=2))])
        await live.write(ANA, [attach(r, r.seq) for r in await live.scan(ANA, "memory", limit=10)])
        names = [("memory", f"m{n}") for n in range(5, 15)] + [
            ("note", "n"),
            ("note", "unknown"),
            ("memory", "m"),
        ]
        erased = await live.erase(ANA, [Drop(kind=kind, id=name) for kind, name in [*names, *names]])
        assert dict(erased.records) == {"memory": 10, "note": 1}
        assert (erased.vectors, erased.verified) == (5, True)
        left = await everything(live, ANA)
        assert [r.id for r in left] == [f"m{n}" for n in range(40) if not 5 <= n < 15] + ["m"]
        vectors = {("memory", r.id): unit(r.seq) for r in left if r.seq < 5}
        assert await loaded(live, ANA) == expected(left, vectors)
        assert {w.record.seq for w in await live.waiting(1000)} == set(range(15, 40))
        nothing = await live.erase(ANA, [])
        assert (dict(nothing.records), nothing.vectors) == ({}, 0)
        assert len(await everything(live, ANA)) == len(left)

    @pytest.mark.parametrize("text", ["", "the", "?", "ab", "likes tea"])
    async def test_erasing_what_says_next_to_nothing_is_verified_too(self, live: Store, text: str) -> None:
        await live.write(ANA, [put(memory("a", text, key="k")), put(memory("b", text)), put(note("n"))])
        await live.write(BOB, [put(memory("a", text))])
        for drops in ([Drop(kind="memory", id="a")], [Drop(kind="memory", id="b")], None):
            assert (await live.erase(ANA, drops)).verified
        assert (await live.erase(BOB)).verified

    async def test_what_was_replaced_by_an_erasure_is_gone_and_the_rest_stands_where_it_stood(
        self, live: Store
    ) -> None:
        said = ["lives in Reading", "works in Leeds and her sister is called Quillonda", "likes tea"]
        await live.write(ANA, [put(memory(f"m{n}", text, key="k")) for n, text in enumerate(said)])
        await live.write(ANA, [attach(r, r.seq) for r in await live.scan(ANA, "memory")])
        await live.write(ANA, [put(note("n", n=1))])
        old = (await live.read(ANA, "memory", ["m1"]))[0]
        left = memory("m1", "works in Leeds", key="k")
        with pytest.raises(WriteConflict):
            await live.erase(ANA, [Drop(kind="note", id="n"), Put(record=left, expect=old.version + 1)])
        assert await live.read(ANA, "note", ["n"]), "half of it was done"
        erased = await live.erase(ANA, [Drop(kind="note", id="n"), Put.over(old, left)])
        assert (dict(erased.records), erased.rewritten) == ({"note": 1}, 1)
        assert (erased.vectors, erased.verified) == (1, True)
        there = await everything(live, ANA)
        assert [(r.id, r.seq) for r in there] == [("m0", 0), ("m1", 1), ("m2", 2)]
        assert "Quillonda" not in str(there)
        vectors = {("memory", r.id): unit(r.seq) for r in there if r.id != "m1"}
        assert await loaded(live, ANA) == expected(there, vectors)
        assert [w.record.id for w in await live.waiting(10)] == ["m1"]

    async def test_a_scope_ends_with_its_last_erased_record(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a")), put(note("n"))])
        await live.write(BOB, [put(note("n"))])
        await live.erase(ANA, [Drop(kind="memory", id="a"), Drop(kind="note", id="n")])
        assert await live.scopes() == [BOB]
        await live.write(ANA, [put(memory("b"))])
        assert await live.scopes() == [BOB, ANA], "its name had stayed"
        assert await loaded(live, ANA) == expected(await everything(live, ANA), {})

    async def test_a_scope_may_be_written_again_after_it_was_erased(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "the old one")), put(memory("b"))])
        await live.write(ANA, [attach(r) for r in await live.scan(ANA, "memory")])
        await live.write(BOB, [put(note("n"))])
        await live.erase(ANA)
        await live.write(ANA, [put(memory("a", "the new one"), 0)])
        records = await everything(live, ANA)
        assert [(r.id, r.version, exact(r.data)) for r in records] == [
            ("a", 1, exact({"text": "the new one"}))
        ]
        assert await loaded(live, ANA) == expected(records, {})
        assert await live.scopes() == [BOB, ANA]
        assert [w.record.id for w in await live.waiting(10)] == ["a"]

    async def test_what_was_loaded_before_an_erasure_holds_nothing_after_the_next_load(
        self, live: Store
    ) -> None:
        await live.write(ANA, [put(memory("a")), put(memory("b"))])
        await live.write(ANA, [attach(r) for r in await live.scan(ANA, "memory")])
        await live.load(ANA)
        await live.erase(ANA, [Drop(kind="memory", id="a")])
        found = await loaded(live, ANA)
        assert (set(found.rows), set(found.vectors)) == ({1}, {1})
        await asyncio.gather(live.erase(ANA), *(live.load(ANA) for _ in range(5)))
        assert await loaded(live, ANA) == expected([], {})


__all__ = ["StoreWriting"]
