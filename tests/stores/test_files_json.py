from __future__ import annotations

import json
import os
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from echoic.errors import InvalidInput, NotOpen, StoreCorrupt, StoreTooNew
from echoic.memory.records import index as real_index
from echoic.memory.records import memory_of
from echoic.stores.base import Attach, Drop, Record
from echoic.stores.files import FilesStore
from echoic.testing.store_histories import (
    SPEC,
    attach,
    everything,
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

ANA = Scope("default", "ana")
THEIRS = {
    "directives": {"pacing": "slow", "é": {"deep": [1, 2.5, None]}},
    "facts": [
        {"content": "Likes tea", "category": "preference"},
        {"content": "Works at Acme", "category": "entity", "timestamp": 1767225600000, "confidence": 0.9},
        {"content": "Likes tea", "category": "preference", "timestamp": "2026-02-03T04:05:06Z"},
        {"content": "Chose the red one", "category": "hobby", "timestamp": 0},
        "not a fact",
        {"category": "fact"},
        {"content": "   "},
    ],
    "version": "7",
}


def write_theirs(folder: Path, name: str = "ana.json", what: Any = THEIRS) -> Path:
    path = folder / name
    path.write_text(json.dumps(what, indent=2, ensure_ascii=False))
    return path


def edit(path: Path, change: Any) -> dict[str, Any]:
    """What a person does in an editor."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=4, ensure_ascii=False))
    return data


async def test_a_folder_of_another_program_opens_as_it_is(tmp_path: Path) -> None:
    path = write_theirs(tmp_path)
    write_theirs(tmp_path, "María.json", {"facts": [{"content": "Lives in Porto", "category": "entity"}]})
    write_theirs(tmp_path, "bob@example.com.json", {"directives": {}, "facts": []})
    before = path.read_bytes()
    async with opened(FilesStore(tmp_path)) as store:
        assert await store.scopes() == [Scope("default", "María"), ANA]
        records = await store.scan(ANA, "memory")
        assert [(r.data["text"], r.data["category"], r.version, r.seq) for r in records] == [
            ("Likes tea", "preference", 1, 0),
            ("Works at Acme", "entity", 1, 1),
            ("Likes tea", "preference", 1, 2),
            ("Chose the red one", "fact", 1, 3),
        ]
        changed = datetime.fromtimestamp(int(path.stat().st_mtime)).astimezone()
        told_at = [datetime.fromisoformat(r.data["valid_from"]) for r in records]
        assert told_at == [
            changed,
            datetime.fromisoformat("2026-01-01T00:00:00+00:00"),
            datetime.fromisoformat("2026-02-03T04:05:06+00:00"),
            changed,
        ]
        assert await loaded(store, ANA) == expected(records, {})
        assert len({r.id for r in records}) == 4
        assert await store.read(Scope("default", "bob@example.com"), "memory", []) == []
    assert path.read_bytes() == before, "looking changed the file"


async def test_what_the_service_makes_of_another_programs_facts_is_whole(tmp_path: Path) -> None:
    write_theirs(tmp_path)
    store = FilesStore(tmp_path)
    await store.open(SPEC, real_index)
    try:
        memories = [memory_of(record) for record in await store.scan(ANA, "memory")]
        assert [m.text for m in memories] == ["Likes tea", "Works at Acme", "Likes tea", "Chose the red one"]
        assert all(m.valid_from.utcoffset() is not None for m in memories)
        assert (await store.load(ANA)).rows["kind"][:4].tolist() == [1] * 4
    finally:
        await store.aclose()


async def test_their_ids_are_the_same_each_time_and_for_each_process(tmp_path: Path) -> None:
    path = write_theirs(tmp_path)
    ids = []
    for _ in range(2):
        async with opened(FilesStore(tmp_path)) as store:
            ids.append([told(r) for r in await store.scan(ANA, "memory")])
        other = path.stat()
        edit(path, lambda data: data["facts"].insert(0, {"content": "new", "category": "fact"}))
        edit(path, lambda data: data["facts"].pop(0))
        os.utime(path, ns=(other.st_mtime_ns, other.st_mtime_ns))
    assert ids[0] == ids[1]


async def test_every_field_that_is_not_ours_is_kept_when_the_file_is_rewritten(tmp_path: Path) -> None:
    path = write_theirs(tmp_path)
    async with opened(FilesStore(tmp_path)) as store:
        records = [told(r) for r in await store.scan(ANA, "memory")]
        await store.write(ANA, [put(memory("new", "Likes rain", category="fact")), put(note("n", n=1))])
        now = json.loads(path.read_text())
        assert {k: v for k, v in now.items() if k not in {"facts", "echoic"}} == {
            k: v for k, v in THEIRS.items() if k != "facts"
        }
        assert list(now)[:3] == ["directives", "facts", "version"]
        stripped = [
            {k: v for k, v in fact.items() if k != "echoic"} if isinstance(fact, dict) else fact
            for fact in now["facts"]
        ]
        assert stripped[:7] == THEIRS["facts"]
        assert stripped[7:] == [{"content": "Likes rain", "category": "fact"}]
        assert [told(r) for r in await store.scan(ANA, "memory")][:4] == records
        edit(
            path,
            lambda data: data["echoic"].update(
                theirs=[1], records=[{**data["echoic"]["records"][0], "x": 2}]
            ),
        )
        edit(path, lambda data: data["facts"][1]["echoic"].update(theirs="kept"))
        await store.write(ANA, [put(memory("new", "Likes snow", category="fact"))])
        now = json.loads(path.read_text())
        assert (now["echoic"]["theirs"], now["echoic"]["records"][0]["x"]) == ([1], 2)
        assert now["facts"][1]["echoic"]["theirs"] == "kept"
    async with opened(FilesStore(tmp_path)) as store:
        assert [told(r) for r in await store.scan(ANA, "memory")][:4] == records


async def test_a_touched_fact_changes_what_was_changed_and_keeps_the_rest(tmp_path: Path) -> None:
    path = write_theirs(tmp_path)
    async with opened(FilesStore(tmp_path)) as store:
        old = (await store.scan(ANA, "memory"))[1]
        new = Record(kind="memory", id=old.id, key="work", data={**old.data, "text": "Works at Zenith"})
        await store.write(ANA, [put(new, 1)])
    fact = json.loads(path.read_text())["facts"][1]
    own = fact.pop("echoic")
    assert fact == {**THEIRS["facts"][1], "content": "Works at Zenith"}, "its timestamp keeps its form"
    assert (own["id"], own["key"], own["version"], own["seq"]) == (old.id, "work", 2, 1)
    assert "data" not in own, "what stands beside is not repeated"


async def test_our_own_facts_read_as_the_other_program_writes_them(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        said = {"text": "Likes tea", "category": "preference", "valid_from": "2026-11-20T10:00:00+00:00"}
        record = Record(kind="memory", id="m1", key="drink", data={**said, "author": "ana"})
        await store.write(ANA, [put(record), put(note("n", n=1))])
    data = json.loads((tmp_path / "ana.json").read_text())
    assert data["directives"] == {}
    own = data["facts"][0].pop("echoic")
    assert data["facts"] == [
        {"content": "Likes tea", "category": "preference", "timestamp": "2026-11-20T10:00:00+00:00"}
    ]
    assert (own["id"], own["key"], own["data"]) == ("m1", "drink", {"author": "ana"})
    assert [(r["kind"], r["id"], r["data"]) for r in data["echoic"]["records"]] == [("note", "n", {"n": 1})]


async def test_what_a_person_edits_is_known_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "ana.json"
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(
            ANA, [put(memory(name, f"likes {name}", statement="x")) for name in ("tea", "rain", "fog")]
        )
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])

        def change(data: dict[str, Any]) -> None:
            data["facts"][0]["content"] = "likes green tea"
            del data["facts"][1]
            data["facts"].append({"content": "has a sister", "category": "entity"})

        edit(path, change)
        records = await store.scan(ANA, "memory")
        assert [(r.data["text"], r.version, r.seq) for r in records] == [
            ("likes green tea", 2, 0),
            ("likes fog", 1, 2),
            ("has a sister", 1, 3),
        ]
        assert "statement" not in records[0].data, "a sentence of the former words outlived them"
        assert await loaded(store, ANA) == expected(records, {("memory", "fog"): unit(2)})
        waiting = await store.waiting(10)
        assert {w.record.data["text"] for w in waiting} == {"likes green tea", "has a sister"}
        await store.write(ANA, [attach(w.record, 7) for w in waiting])
        assert await store.waiting(10) == []
        assert (await loaded(store, ANA)).vectors == {
            0: unit(7).tobytes(),
            2: unit(2).tobytes(),
            3: unit(7).tobytes(),
        }
    async with opened(FilesStore(tmp_path)) as store:
        assert [told(r)[:5] for r in await store.scan(ANA, "memory")] == [told(r)[:5] for r in records]


@pytest.mark.parametrize("reopen", [False, True])
async def test_a_vector_of_words_that_a_person_changed_meanwhile_is_passed_over(
    tmp_path: Path, reopen: bool
) -> None:
    path = write_theirs(tmp_path, what={"facts": [{"content": "likes tea"}]})
    store = FilesStore(tmp_path)
    await store.open(SPEC, real_index)
    try:
        for words in ("likes coffee", "likes milk"):
            waiting = (await store.waiting(10))[0].record
            edit(path, lambda data, words=words: data["facts"][0].update(content=words))
            if reopen:
                await store.aclose()
                await store.open(SPEC, real_index)
            late = Attach(kind="memory", id=waiting.id, version=waiting.version, vector=unit(1))
            await store.write(ANA, [late])
            assert [w.record.data["text"] for w in await store.waiting(10)] == [words]
    finally:
        await store.aclose()


async def test_a_copied_fact_is_another_fact(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", "likes tea", key="k"))])
        edit(tmp_path / "ana.json", lambda data: data["facts"].append(dict(data["facts"][0])))
        records = await store.scan(ANA, "memory")
        assert [(r.data["text"], r.seq, r.key) for r in records] == [
            ("likes tea", 0, "k"),
            ("likes tea", 1, None),
        ]
        assert records[0].id == "a" != records[1].id
        await store.write(ANA, [put(note("n"))])
        assert [told(r) for r in await store.scan(ANA, "memory")] == [told(r) for r in records]


async def test_an_edited_category_and_timestamp_count(tmp_path: Path) -> None:
    path = tmp_path / "ana.json"
    async with opened(FilesStore(tmp_path)) as store:
        data = {"text": "likes tea", "category": "odd", "valid_from": "2026-01-01"}
        await store.write(ANA, [put(Record(kind="memory", id="a", data=data))])
        edit(
            path,
            lambda file: file["facts"][0].update(category="decision", timestamp="2026-05-05T00:00:00+00:00"),
        )
        found = (await store.read(ANA, "memory", ["a"]))[0]
        assert (found.data["category"], found.data["valid_from"]) == ("decision", "2026-05-05T00:00:00+00:00")
        edit(path, lambda file: file["facts"][0].update(timestamp="2026-05-06"))
        found = (await store.read(ANA, "memory", ["a"]))[0]
        assert found.data["valid_from"] == "2026-05-06T00:00:00+00:00"


async def test_an_edit_that_means_nothing_here_is_kept_and_harms_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ana.json"
    store = FilesStore(tmp_path)
    await store.open(SPEC, real_index)
    try:
        data = {"text": "likes tea", "category": "fact", "valid_from": "2026-01-01T00:00:00+00:00"}
        await store.write(ANA, [put(Record(kind="memory", id="a", data=data))])
        edit(path, lambda file: file["facts"][0].update(category="hobby", timestamp="one fine day", x=[1]))
        found = memory_of((await store.read(ANA, "memory", ["a"]))[0])
        assert (found.category, found.valid_from.utcoffset() is not None) == ("fact", True)
        await store.write(ANA, [put(note("n"))])
        fact = json.loads(path.read_text())["facts"][0]
        assert (fact["category"], fact["timestamp"], fact["x"]) == ("hobby", "one fine day", [1])
        again = (await store.read(ANA, "memory", ["a"]))[0]
        assert (memory_of(again), again.version) == (found, 2)
    finally:
        await store.aclose()


async def test_an_editor_may_begin_the_file_with_a_mark_and_end_lines_as_it_likes(tmp_path: Path) -> None:
    text = json.dumps({"facts": [{"content": "likes tea"}]}, indent=2).replace("\n", "\r\n")
    (tmp_path / "ana.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    async with opened(FilesStore(tmp_path)) as store:
        assert [r.data["text"] for r in await store.scan(ANA, "memory")] == ["likes tea"]


CORRUPT = {
    "empty": b"",
    "blank": b" \n",
    "half": b'{"facts": [{"content": "likes te',
    "zeros": bytes(200),
    "not UTF-8": b'{"facts": [{"content": "\xff"}]}',
    "a list": b"[]",
    "a string": b'"x"',
    "somebody else's": b'{"name": "package", "dependencies": {}}',
    "facts no list": b'{"facts": {"content": "x"}}',
    "echoic no object": b'{"facts": [], "echoic": 5}',
    "echoic of a fact no object": b'{"facts": [{"content": "x", "echoic": "y"}]}',
    "a fact without text": b'{"facts": [{"content": 5, "echoic": {"id": "x", "version": 1, "seq": 0}}]}',
    "a fact without version": b'{"facts": [{"content": "x", "echoic": {"id": "x", "seq": 0}}]}',
    "a version of text": b'{"facts": [{"content": "x", "echoic": {"id": "x", "version": "1", "seq": 0}}]}',
    "a seq below 0": b'{"facts": [{"content": "x", "echoic": {"id": "x", "version": 1, "seq": -1}}]}',
    "records no list": b'{"facts": [], "echoic": {"records": {}}}',
    "a record of nothing": b'{"facts": [], "echoic": {"records": [{}]}}',
    "a record twice": b'{"facts": [], "echoic": {"records": [%s, %s]}}'
    % ((b'{"kind": "note", "id": "n", "version": 1, "seq": 2147483648, "data": {}}',) * 2),
    "a format of text": b'{"facts": [], "echoic": {"format": "new"}}',
    "counters of text": b'{"facts": [], "echoic": {"next_row": "5"}}',
    "no number": b'{"facts": [], "x": NaN}',
    "beyond numbers": b'{"facts": [], "x": 1e999}',
    "too deep": b'{"facts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("what", CORRUPT)
async def test_a_file_that_cannot_be_read_is_never_an_empty_memory(tmp_path: Path, what: str) -> None:
    path = tmp_path / "ana.json"
    path.write_bytes(CORRUPT[what])
    write_theirs(tmp_path, "bob.json")
    bob = Scope("default", "bob")
    async with opened(FilesStore(tmp_path)) as store:
        for _ in range(2):
            for verb in (
                store.scan(ANA, "memory"),
                store.read(ANA, "memory", ["x"]),
                store.rows(ANA, [0]),
                store.load(ANA),
                store.write(ANA, [put(memory("new"))]),
                store.write(ANA, [Drop(kind="memory", id="x")]),
                store.erase(ANA),
                store.erase(ANA, [Drop(kind="memory", id="x")]),
            ):
                with pytest.raises(StoreCorrupt, match=r"ana\.json"):
                    await verb
        assert path.read_bytes() == CORRUPT[what]
        assert len(await store.scan(bob, "memory")) == 4, "another user's memory suffered"
        await store.write(bob, [put(memory("new"))])
        assert await store.scopes() == [bob]
        assert {w.scope for w in await store.waiting(100)} == {bob}
        facts = await store.check()
        assert (len(facts["unreadable"]), "ana.json" in facts["unreadable"][0]) == (1, True)
        path.unlink()
        assert await store.scan(ANA, "memory") == []
        await store.write(ANA, [put(memory("new"))])
        assert len(await store.scan(ANA, "memory")) == 1


async def test_a_record_that_is_not_what_its_kind_has_to_be_is_told_by_name(tmp_path: Path) -> None:
    store = FilesStore(tmp_path)
    await store.open(SPEC, real_index)
    try:
        turn = {"speaker": "user", "text": "hi", "said_at": "2026-11-20T10:00:00+00:00"}
        await store.write(ANA, [put(Record(kind="turn", id="t1", key="c", data=turn))])
        edit(tmp_path / "ana.json", lambda data: data["echoic"]["records"][0]["data"].pop("said_at"))
        with pytest.raises(StoreCorrupt, match="turn 't1' is not complete"):
            await store.load(ANA)
    finally:
        await store.aclose()


async def test_a_file_of_a_newer_version_is_left_untouched(tmp_path: Path) -> None:
    path = write_theirs(tmp_path, what={"facts": [], "echoic": {"format": 2, "something": "new"}})
    before = path.read_bytes()
    async with opened(FilesStore(tmp_path)) as store:
        for verb in (store.scan(ANA, "memory"), store.write(ANA, [put(memory("a"))]), store.erase(ANA)):
            with pytest.raises(StoreTooNew, match=r"format 2.*knows 1.*upgrade"):
                await verb
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (b'{"format": 2, "layout": "json", "model": "x", "dimensions": 8}', StoreTooNew),
        (b"{", StoreCorrupt),
        (b"[]", StoreCorrupt),
        (b'{"format": "1", "dimensions": 8}', StoreCorrupt),
        (b"", StoreCorrupt),
    ],
)
async def test_settings_that_are_not_ours_are_left_untouched(
    tmp_path: Path, settings: bytes, error: type[Exception]
) -> None:
    (tmp_path / ".echoic.json").write_bytes(settings)
    store = FilesStore(tmp_path)
    with pytest.raises(error):
        await store.open(SPEC, real_index)
    with pytest.raises(NotOpen):
        await store.scopes()
    assert (tmp_path / ".echoic.json").read_bytes() == settings


async def test_a_folder_of_one_format_is_not_read_as_an_empty_one_of_the_other(tmp_path: Path) -> None:
    write_theirs(tmp_path)
    with pytest.raises(InvalidInput, match="format='json'"):
        await FilesStore(tmp_path, "markdown").open(SPEC, real_index)
    async with opened(FilesStore(tmp_path)) as store:
        (tmp_path / "ana.json").unlink()
        assert await store.scopes() == []
    with pytest.raises(InvalidInput, match="format='json'"):
        await FilesStore(tmp_path, "markdown").open(SPEC, real_index)


async def test_what_is_no_folder_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(StoreCorrupt, match="not a folder"):
        await FilesStore(path).open(SPEC, real_index)
    assert path.read_text() == "mine"


async def test_what_json_cannot_say_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(note("n", n=1))])
        before = (tmp_path / "ana.json").read_bytes()
        for data in ({"n": float("nan")}, {"n": {1, 2}}, {"n": b"bytes"}):
            with pytest.raises(InvalidInput, match="note 'm'"):
                await store.write(ANA, [put(note("k")), put(Record(kind="note", id="m", data=data))])
            assert (tmp_path / "ana.json").read_bytes() == before
            assert [told(r)[1] for r in await everything(store, ANA)] == ["n"]


async def test_a_write_that_failed_leaves_what_is_held_as_the_file_is(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a", "likes tea"))])
        await store.write(ANA, [attach(r) for r in await store.scan(ANA, "memory")])
        with pytest.raises(InvalidInput):
            await store.write(ANA, [put(memory("a", "other")), put(note("m", n=float("inf")))])
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {("memory", "a"): unit(0)})


async def test_a_file_that_is_deleted_by_hand_is_nothing_known(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path)) as store:
        await store.write(ANA, [put(memory("a")), put(note("n"))])
        (tmp_path / "ana.json").unlink()
        assert await everything(store, ANA) == []
        assert await loaded(store, ANA) == expected([], {})
        assert await store.scopes() == []


async def test_a_write_by_hand_in_the_same_instant_is_not_missed(tmp_path: Path) -> None:
    """Same size, same inode, and dated by a clock that ticks every few milliseconds."""
    path = tmp_path / "ana.json"
    async with opened(FilesStore(tmp_path)) as store:
        for n in range(20):
            await store.write(ANA, [put(memory("a", f"number {n:03}"))])
            with path.open("r+b") as stream:
                text = stream.read()
                stream.seek(0)
                stream.write(text.replace(b"number", b"NUMBER"))
            assert [r.data["text"] for r in await store.scan(ANA, "memory")] == [f"NUMBER {n:03}"]


async def test_time_that_runs_backwards_hides_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr("echoic.stores.files.disk.time.time_ns", lambda: now - 10**12)
    async with opened(FilesStore(tmp_path)) as store, opened(FilesStore(tmp_path)) as other:
        for n in range(10):
            await store.write(ANA, [put(memory("a", f"number {n}"))])
            assert [r.data["text"] for r in await other.scan(ANA, "memory")] == [f"number {n}"]
