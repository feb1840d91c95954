"""What is particular to one SQLite file. Crashes, power cuts and full disks are tried in `tests/durability`."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from echoic.errors import EmbeddingMismatch, NotOpen, StoreCorrupt, StoreTooNew, StoreUnavailable
from echoic.partition import Entry
from echoic.stores import sqlite
from echoic.stores.apply import text_needles
from echoic.stores.base import Drop, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.testing.store_histories import (
    ANA,
    OTHER_SPEC,
    SPEC,
    PartitionContent,
    attach,
    content,
    everything,
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
from echoic.text import content_words
from echoic.types import Scope

SECRET = "the secret is a blue giraffe named Aurelio"

WRITER = """
import asyncio, sys
from echoic.stores.sqlite import SQLiteStore
from echoic.testing.store_histories import ANA, attach, memory, note, opened, put

async def main():
    async with opened(SQLiteStore(sys.argv[1])) as store:
        for line in sys.stdin:
            n = int(line)
            await store.write(ANA, [put(memory(f"m{n % 5}", f"likes number {n}")), put(note("n", n=n))])
            await store.write(ANA, [attach(r, n) for r in await store.read(ANA, "memory", [f"m{n % 5}"])])
            print(n, flush=True)

asyncio.run(main())
"""


async def filled(path: Path) -> list[tuple[object, ...]]:
    """A file with something of everything in it, closed."""
    async with opened(SQLiteStore(path)) as store:
        await store.write(
            ANA, [put(memory("a", "likes tea", key="k")), put(memory("b")), put(note("n", n=1))]
        )
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory", limit=1)])
        return [told(r) for r in await everything(store, ANA)]


def query(path: Path, statement: str) -> object:
    with apsw.Connection(str(path)) as connection:
        found = connection.execute(statement).get
    connection.close()
    return found


async def refused(path: Path, error: type[Exception], match: str) -> None:
    """Opening fails, the file stays as it was, byte for byte, and the store stays closed."""
    before = await asyncio.to_thread(path.read_bytes)
    store = SQLiteStore(path)
    with pytest.raises(error, match=match):
        await store.open(SPEC, index)
    with pytest.raises(NotOpen):
        await store.scopes()
    assert path.read_bytes() == before


async def test_a_file_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    await filled(path)
    query(path, f"pragma user_version = {sqlite_schema.VERSION + 1}")
    await refused(path, StoreTooNew, f"schema {sqlite_schema.VERSION + 1}.*upgrade")


async def test_another_programs_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table records (id integer)")
        connection.execute("insert into records values (1)")
    connection.close()
    await refused(path, StoreCorrupt, "another program's")


async def test_what_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    path.write_bytes(b"this is a letter, not a database\n" * 200)
    await refused(path, StoreCorrupt, "not a readable database")


@pytest.mark.parametrize(
    ("start", "end", "match"),
    [
        (100, 4096, "not a readable"),
        (4096, None, "damaged"),
        (-8192, None, "not a readable"),
        (-2048, None, "of a page"),
    ],
    ids=["schema overwritten", "pages overwritten", "pages cut off", "half a page cut off"],
)
async def test_a_damaged_file_is_refused_untouched(
    tmp_path: Path, start: int, end: int | None, match: str
) -> None:
    path = tmp_path / "e.db"
    await filled(path)
    damaged = bytearray(path.read_bytes())
    span = slice(start, end)
    damaged[span] = b"" if start < 0 else b"\xa5" * len(damaged[span])
    path.write_bytes(damaged)
    await refused(path, StoreCorrupt, match)


@pytest.mark.parametrize(
    ("damage", "match"), [("cast(x'7bc37d' as text)", "not UTF-8"), ("'{},{}'", "echoic doctor")]
)
async def test_a_damaged_text_is_told_as_damage(tmp_path: Path, damage: str, match: str) -> None:
    path = tmp_path / "e.db"
    await filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"update records set data = {damage}")
    connection.close()
    async with opened(SQLiteStore(path)) as store:
        with pytest.raises(StoreCorrupt, match=match):
            await store.read(ANA, "memory", ["a"])


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"nowhere.*folder"):
        await SQLiteStore(tmp_path / "nowhere" / "e.db").open(SPEC, index)


async def test_a_migration_happens_wholly_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e.db"
    records = await filled(path)
    steps = (
        "create table later (x)",
        "insert into later values (1)",
        "alter table records add column more text",
    )
    for broken in range(len(steps)):
        halves = (*steps[:broken], "this is no statement", *steps[broken:])
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_schema, "MIGRATIONS", (*sqlite_schema.MIGRATIONS, halves))
            patch.setattr(sqlite_schema, "VERSION", sqlite_schema.VERSION + 1)
            with pytest.raises(StoreUnavailable):
                await SQLiteStore(path).open(SPEC, index)
        assert query(path, "pragma user_version") == sqlite_schema.VERSION
        assert query(path, "select count(*) from sqlite_schema where name = 'later'") == 0
        async with opened(SQLiteStore(path)) as store:
            assert [told(r) for r in await everything(store, ANA)] == records
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*sqlite_schema.MIGRATIONS, steps[:2]))
    monkeypatch.setattr(sqlite_schema, "VERSION", sqlite_schema.VERSION + 1)
    async with opened(SQLiteStore(path)) as store:
        assert [told(r) for r in await everything(store, ANA)] == records
    assert query(path, "pragma user_version") == sqlite_schema.VERSION
    assert query(path, "select count(*) from later") == 1


async def test_another_models_vectors_are_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    await filled(path)
    store = SQLiteStore(path)
    with pytest.raises(EmbeddingMismatch, match=r"test:eight 8.*test:twelve 12.*echoic reindex"):
        await store.open(OTHER_SPEC, index)
    async with opened(SQLiteStore(path)) as store:
        assert (await loaded(store, ANA)).vectors == {0: unit(0).tobytes()}


async def test_reindexing_leaves_no_old_vector_in_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    await filled(path)
    async with opened(SQLiteStore(path)) as store:
        assert await store.reindex(OTHER_SPEC) == 2
        assert query(path, "select count(*) from vectors") == 0
        await store.write(ANA, [attach(w.record, 4, 12) for w in await store.waiting(10)])
        assert query(path, "select length(data) from vectors") == 32 * 12 * 4


async def test_words_are_cut_again_when_their_cutting_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_anew(record: Record) -> Entry | None:
        entry = index(record)
        return entry and replace(entry, words=Entry.counted(content_words(f"{entry.text} anew")))

    path = tmp_path / "e.db"
    await filled(path)
    today = sqlite.ANALYSIS
    for analysis in (today, today + 1):
        monkeypatch.setattr(sqlite, "ANALYSIS", analysis)
        store = SQLiteStore(path)
        await store.open(SPEC, cut_anew)
        found, words = await loaded(store, ANA), set((await store.load(ANA)).vocabulary.terms)
        waiting = [w.record.id for w in await store.waiting(10)]
        await store.aclose()
        assert ("anew" in words) == (analysis > today)
        assert found.vectors == {0: unit(0).tobytes()}, "its vector is of the text, which is the same"
        assert waiting == ["b"]


async def test_what_another_process_writes_is_loaded_at_once(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    async with opened(SQLiteStore(path)) as store:
        await store.load(ANA)
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            partition = None
            for n in range(25):
                writer.stdin.write(f"{n}\n".encode())
                assert int(await asyncio.to_thread(writer.stdout.readline)) == n
                records = await everything(store, ANA)
                assert [r.data["n"] for r in await store.read(ANA, "note", ["n"])] == [n]
                vectors = {("memory", f"m{i % 5}"): unit(i) for i in range(n + 1)}
                assert await loaded(store, ANA) == expected(records, vectors)
                assert partition in {None, await store.load(ANA)}, (
                    "a loaded scope was loaded again, not patched"
                )
                partition = await store.load(ANA)
            writer.stdin.close()
            assert await asyncio.to_thread(writer.wait, 30) == 0


async def test_a_loaded_scope_is_patched_after_our_own_writes(tmp_path: Path) -> None:
    async with opened(SQLiteStore(tmp_path / "e.db")) as store:
        await store.write(ANA, [put(memory(f"m{n}", f"likes {n}")) for n in range(100)])
        partition = await store.load(ANA)
        for n in range(10):
            revision = partition.revision
            await store.write(ANA, [put(memory(f"m{n * 7}", f"likes something else {n}"))])
            await store.write(ANA, [attach(r, n) for r in await store.read(ANA, "memory", [f"m{n * 7}"])])
            assert await store.load(ANA) is partition
            assert (partition.patched > revision).sum() == 1, "segments that did not change were read again"
        vectors = {("memory", f"m{n * 7}"): unit(n) for n in range(10)}
        assert content(partition) == expected(await everything(store, ANA), vectors)
        await store.write(Scope("acme", "bob"), [put(memory("x"))])
        revision = partition.revision
        assert await store.load(ANA) is partition
        assert partition.revision == revision, "another scope's write patched this one"


async def test_loaded_scopes_are_let_go_beyond_the_bound(tmp_path: Path) -> None:
    scopes = [Scope("acme", f"user{n}") for n in range(30)]
    async with opened(SQLiteStore(tmp_path / "e.db", cache_bytes=100_000)) as store:
        for scope in scopes:
            await store.write(scope, [put(memory(f"m{n}", f"likes number {n}")) for n in range(40)])
            await store.load(scope)
            assert (await store.check())["loaded_bytes"] <= 100_000
        assert 1 < (await store.check())["loaded_scopes"] < 30
        for scope in [*scopes, *scopes[::-1]]:
            assert await loaded(store, scope) == expected(await everything(store, scope), {})
        await store.load(scopes[0])
        kept = await store.load(scopes[0])
        await store.load(scopes[1])
        assert await store.load(scopes[0]) is kept, "the most recently used one was let go"


async def test_erased_words_and_vectors_are_in_no_byte_of_the_file_and_its_log(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    async with opened(SQLiteStore(path)) as store:
        await store.write(
            ANA, [put(memory("a", SECRET)), put(memory("b", "likes tea")), put(note("n", x=SECRET))]
        )
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
        erased = await store.erase(ANA, [Drop(kind="memory", id="a"), Drop(kind="note", id="n")])
        assert erased.verified
        assert erased.bytes_searched >= path.stat().st_size
        found = b"".join(p.read_bytes() for p in tmp_path.iterdir())
        assert not [n for n in (b"giraffe", b"Aurelio", b"aurelio", unit(0).tobytes()[:8]) if n in found]
        assert unit(1).tobytes() in found


async def test_what_is_searched_for_is_what_was_said_not_when(tmp_path: Path) -> None:
    """A time or an id is often the longest text of a record, and gone or there whatever was said."""
    path = tmp_path / "e.db"
    began = "2026-03-01T10:00:00.123456+00:00"
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(note("n", text="Quillonda", said_at=began)), put(note("m", text="tea"))])
        await store.write(ANA, [put(note("Quillonda", text="unlike")), put(note("o", key="Quillonda"))])
        await store.write(Scope("default", "Quillonda"), [put(note("p", text="other"))])
        assert (await store.erase(ANA, [Drop(kind="note", id="n")])).verified, "the names of others stay"
    needles = text_needles({"text": "Quillonda", "said_at": began}, lambda text: [text.encode()])
    assert needles == [b"Quillonda"]


async def test_the_number_of_an_erased_scope_is_never_anothers(tmp_path: Path) -> None:
    async with (
        opened(SQLiteStore(tmp_path / "e.db")) as store,
        opened(SQLiteStore(tmp_path / "e.db")) as other,
    ):
        await store.write(ANA, [put(memory("a", "the old one"))])
        assert len((await loaded(other, ANA)).rows) == 1
        await store.erase(ANA)
        await store.write(Scope("acme", "eve"), [put(memory("a", "somebody else's"))])
        assert await loaded(other, ANA) == expected([], {})
        await store.write(ANA, [put(memory("a", "the new one"))])
        assert await loaded(other, ANA) == expected(await everything(store, ANA), {})


async def test_a_disk_file_is_what_a_path_names(tmp_path: Path) -> None:
    path = tmp_path / "100% ö?#&.db"
    records = await filled(path)
    async with opened(SQLiteStore(path)) as store:
        assert [told(r) for r in await everything(store, ANA)] == records
    assert path.exists()


async def test_a_scope_larger_than_the_bound_is_not_loaded_anew_because_everyones_is(tmp_path: Path) -> None:
    async with opened(SQLiteStore(tmp_path / "e.db", cache_bytes=1)) as store:
        await store.write(ANA, [put(memory(f"m{n}", f"likes {n}")) for n in range(100)])
        first = await store.load(ANA)
        for _ in range(3):
            await store.load(ANA.everyone)
            assert await store.load(ANA) is first


class SlowLoading:
    """Reads the segments of a scope once it may."""

    def __init__(self) -> None:
        self.at_it, self.go_on = threading.Event(), threading.Event()
        self._segments_since = sqlite._segments_since

    def __call__(self, *args: Any) -> Any:
        self.at_it.set()
        assert self.go_on.wait(60)
        return self._segments_since(*args)


async def test_who_asks_while_a_scope_is_loaded_gets_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a scope is warmed because the telephone rings, and the caller is quick."""
    await filled(tmp_path / "echoic.db")
    slow = SlowLoading()
    monkeypatch.setattr(sqlite, "_segments_since", slow)
    async with opened(SQLiteStore(tmp_path / "echoic.db")) as store:

        async def asked() -> PartitionContent:
            return content(await store.load(ANA))

        first = asyncio.create_task(asked())
        assert await asyncio.to_thread(slow.at_it.wait, 10)
        second = asyncio.create_task(asked())
        await asyncio.sleep(0)
        slow.go_on.set()
        found = await asyncio.gather(first, second)
        whole = expected(await everything(store, ANA), {("memory", "a"): unit(0)})
        assert found == [whole, whole]


async def test_what_was_being_loaded_while_the_store_closed_is_not_taken_for_new_when_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection counts from the same mark on, so one mark says nothing of two of them."""
    path = tmp_path / "echoic.db"
    await filled(path)
    slow = SlowLoading()
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "_segments_since", slow)
        loading = asyncio.create_task(store.load(ANA))
        assert await asyncio.to_thread(slow.at_it.wait, 10)
        closing = asyncio.create_task(store.aclose())
        await asyncio.sleep(0)
        slow.go_on.set()
        await asyncio.gather(loading, closing)
    async with opened(SQLiteStore(path)) as other:
        await other.write(ANA, [put(memory(f"m{n}")) for n in range(4)])
    async with opened(store):
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {("memory", "a"): unit(0)})


@pytest.mark.parametrize("cancelled", [False, True])
async def test_opened_while_it_closes_it_is_open_when_it_says_so(tmp_path: Path, cancelled: bool) -> None:
    store = SQLiteStore(tmp_path / "echoic.db")
    await store.open(SPEC, index)
    at_it, go_on = threading.Event(), threading.Event()

    def busy(_connection: apsw.Connection) -> None:
        at_it.set()
        assert go_on.wait(60)

    writing = asyncio.wrap_future(store._writer.submit(busy))
    assert await asyncio.to_thread(at_it.wait, 10)
    closing = asyncio.create_task(store.aclose())
    while store._writer._thread is not None:  # until it waits for the writer
        await asyncio.sleep(0)
    if cancelled:
        closing.cancel()
    opening = asyncio.create_task(store.open(SPEC, index))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(writing, closing, opening, return_exceptions=True)
    await store.write(ANA, [put(memory("a"))])
    assert await loaded(store, ANA) == expected(await everything(store, ANA), {})
    await store.aclose()


async def test_closed_after_a_close_that_was_cancelled_nothing_of_it_stays_open(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "echoic.db")
    await store.open(SPEC, index)
    await store.write(ANA, [put(memory("a"))])
    at_it, go_on = threading.Event(), threading.Event()

    def busy(connection: apsw.Connection) -> None:
        assert connection.execute("select count(*) from records").get == 1
        at_it.set()
        assert go_on.wait(60)

    reading = asyncio.ensure_future(store._read(busy))
    assert await asyncio.to_thread(at_it.wait, 10)
    closing = asyncio.create_task(store.aclose())
    while store._thread is not None:  # until it waits for the reader
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    go_on.set()
    await reading
    await store.aclose()
    assert [path.name for path in tmp_path.iterdir() if path.name != "echoic.db-lock"] == ["echoic.db"]


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_removed_or_replaced_is_written_no_more(tmp_path: Path, replaced: bool) -> None:
    path, other = tmp_path / "echoic.db", tmp_path / "backup.db"
    before = await filled(other)
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(memory("new"))])
        await store.check()
        for name in path, Path(f"{path}-wal"), Path(f"{path}-shm"):
            name.unlink()
        if replaced:
            other.rename(path)
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await store.write(ANA, [put(memory("lost"))])
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await store.erase(ANA)
        facts = await store.check()
        assert (facts["writable"], "removed or replaced" in str(facts["failure"])) == (False, True)
        await store.aclose()
        await store.open(SPEC, index)
        assert [told(r) for r in await everything(store, ANA)] == (before if replaced else [])
        await store.write(ANA, [put(memory("kept"))])
    async with opened(SQLiteStore(path)) as store:
        assert [r.id for r in await store.read(ANA, "memory", ["kept"])] == ["kept"]


@pytest.mark.parametrize("error", [apsw.BusyError("busy"), apsw.IOError("the disk")])
async def test_what_could_not_be_loaded_is_not_taken_for_nothing_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await filled(tmp_path / "echoic.db")
    segments_since = sqlite._segments_since

    def broken(*args: Any) -> Any:
        yield next(iter(segments_since(*args)))
        raise error

    async with opened(SQLiteStore(tmp_path / "echoic.db")) as store:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite, "_segments_since", broken)
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    await store.load(ANA)
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {("memory", "a"): unit(0)})


async def test_a_file_that_cannot_be_watched_is_looked_at_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while another process recovers the log: nobody can say then whether somebody wrote."""
    async with opened(SQLiteStore(tmp_path / "echoic.db")) as store:
        monkeypatch.setattr(store, "_mark", lambda: sqlite._UNKNOWN)
        await store.load(ANA)
        await store.write(ANA, [put(memory("a"))])
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {})
