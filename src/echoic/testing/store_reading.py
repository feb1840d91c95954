"""What `Store` promises of reading and erasing: order, absence, freshness, whose it is, what is gone. Part of
`StoreConformance`.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from numpy.typing import NDArray

from echoic.errors import WriteConflict
from echoic.partition import Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Change, Drop, Put, Record, Store
from echoic.testing.store_subject import (
    ANA,
    ODD_NAMES,
    SPEC,
    attach,
    everything,
    exact,
    expected,
    loaded,
    memory,
    note,
    put,
    told,
    unit,
)
from echoic.types import Scope

BOB = Scope("acme", "bob")
EVERYONE = Scope("acme", None)
OTHER_ANA = Scope("other", "ana")


class StoreReading:
    """Needs `live`, an open store that holds nothing."""

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
        users = [Scope(deployment, user) for deployment in ("acme", "Acme") for user in (*ODD_NAMES, None)]
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

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_any_name_will_do_for_an_id_and_a_key(self, live: Store, name: str) -> None:
        others = [other for other in ODD_NAMES if other != name]
        await live.write(ANA, [put(memory(other, other, key=other)) for other in others])
        await live.write(ANA, [put(memory(name, "this", key=name)), put(note(name, key=name))])
        assert [r.data["text"] for r in await live.read(ANA, "memory", [name])] == ["this"]
        assert [r.id for r in await live.scan(ANA, "memory", key=name)] == [name]
        await live.write(ANA, [Drop(kind="memory", id=name)])
        assert {r.id for r in await live.scan(ANA, "memory")} == set(others)

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

    async def test_flags_say_what_the_index_said(self, live: Store) -> None:
        await live.write(ANA, [put(memory("a", "is it tea?", past=True)), put(memory("b", "tea"))])
        rows = (await loaded(live, ANA)).rows
        assert [Flag(rows[n][1]) for n in (0, 1)] == [Flag.PAST | Flag.QUESTION, Flag.NONE]


__all__ = ["StoreReading"]
