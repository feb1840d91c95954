"""Opening creates or upgrades a file wholly or not at all, and leaves alone what is not ours to touch."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import apsw
import pytest

from durability.children import KILLED, Zygote
from durability.consistency import check_consistent, connected
from durability.programs import lines
from durability.workload import SPEC, State, Write, after, found, history, index, perform, read_back
from echoic.errors import (
    EmbeddingMismatch,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
    WriteConflict,
)
from echoic.stores.base import Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.types import EmbeddingSpec, Scope

GREETING = Write(
    Scope("acme", "ana"), (Put(record=Record(kind="memory", id="m", data={"text": "good day"})),)
)


async def comes_to_life(path: Path) -> None:
    """Open, write, read back and close."""
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    await perform(store, GREETING)
    assert (await store.read(GREETING.scope, "memory", ["m"]))[0].data == {"text": "good day"}
    await store.aclose()
    check_consistent(path)


async def filled(path: Path, seed: int, steps: int = 12) -> State:
    """A store with a history behind it, closed; what it holds."""
    state: State = {}
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    for step in history(Random(seed), steps):
        try:
            await perform(store, step)
        except WriteConflict:
            continue
        state = after(state, step)
    await store.aclose()
    return state


def killed_everywhere(
    zygote: Zygote, fresh: Callable[[], Path], **arguments: object
) -> Iterator[tuple[int, Path]]:
    """Open a fresh file again and again, killed one operation of the disk later each time, until it succeeds."""
    for number in range(1, 1000):
        path = fresh()
        code = zygote.run("only_open", path=str(path), kill_at=number, **arguments)
        if code == 0:
            return
        assert code == KILLED
        yield number, path


async def test_a_kill_at_any_moment_of_the_creation_leaves_a_file_that_opens(
    zygote: Zygote, tmp_path: Path, tally: Callable[[str], None]
) -> None:
    def fresh() -> Path:
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        (tmp_path / "new").mkdir()
        return tmp_path / "new" / "a.db"

    points = 0
    for number, path in killed_everywhere(zygote, fresh):
        await comes_to_life(path)
        points = number
    tally(f"{points} kill points")
    assert points > 20


@pytest.fixture
def older(tmp_path: Path, seed: int) -> tuple[Callable[[], Path], State]:
    """Makes copies of a file of today's schema, which the children take for an older one."""
    (tmp_path / "older").mkdir()
    state = asyncio.run(filled(tmp_path / "older" / "a.db", seed))

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "older", tmp_path / "copy")
        return tmp_path / "copy" / "a.db"

    return fresh, state


def test_a_kill_at_any_moment_of_a_migration_leaves_the_old_file_or_the_new_one(
    zygote: Zygote, older: tuple[Callable[[], Path], State], tally: Callable[[str], None]
) -> None:
    fresh, state = older
    were_old = were_new = 0
    for _, path in killed_everywhere(zygote, fresh, older=True):
        assert check_consistent(path) == found(state)
        if migrated(path, state):
            were_new += 1
            with pytest.raises(StoreTooNew):
                asyncio.run(comes_to_life(path))
        else:
            were_old += 1
            asyncio.run(comes_to_life(path))
        assert zygote.run("only_open", path=str(path), older=True) == 0
        assert migrated(path)
    tally(f"{were_old} kills left the old schema, {were_new} the new one")
    assert were_old
    assert were_new


def test_control_a_migration_without_a_transaction_is_left_halfway(
    zygote: Zygote, older: tuple[Callable[[], Path], State], tally: Callable[[str], None]
) -> None:
    fresh, _ = older
    halves = 0
    for _, path in killed_everywhere(zygote, fresh, older=True, control="migrate by statements"):
        try:
            migrated(path)
        except AssertionError:
            halves += 1
            assert zygote.run("only_open", path=str(path), older=True) == 1
    tally(f"{halves} kills left half a migration")
    assert halves


def migrated(path: Path, state: State | None = None) -> bool:
    """Whether the file is of the next schema.

    Raises:
        AssertionError: it is neither of the one nor of the other.
    """
    with connected(path) as connection:
        version = connection.pragma("user_version")
        tables = {name for (name,) in connection.execute("select name from sqlite_schema")}
        columns = {row[1] for row in connection.execute("pragma table_info(meta)")}
        signs = {"later" in tables, "records_by_version" in tables, "changed" in columns}
        signs.add(version == sqlite_schema.VERSION + 1)
        assert len(signs) == 1, f"half migrated: version {version}, {sorted(tables)}, {sorted(columns)}"
        if state is not None and "later" in tables:
            notes = connection.execute("select count(*) from later").get
            assert notes == sum(len(held.records) for held in state.values())
    return signs == {True}


def newer(path: Path) -> None:
    asyncio.run(filled(path, 1))
    with connected(path) as connection:
        connection.pragma("user_version", sqlite_schema.VERSION + 1)


def another_programs(path: Path) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute("create table messages (id integer primary key, body text)")
        connection.execute("insert into messages (body) values ('hello')")
    connection.close()


def another_programs_log(path: Path) -> None:
    """All of it still in the write-ahead log, as after a crash of the other program."""
    source = path.with_name("source")
    connection = apsw.Connection(str(source))
    connection.pragma("journal_mode", "wal")
    connection.execute("create table messages (id integer primary key, body text)")
    for end in ("", "-wal"):
        shutil.copy(f"{source}{end}", f"{path}{end}")
    connection.close()


def another_programs_journal(path: Path) -> None:
    """In the middle of its transaction, which the other program will want to undo itself."""
    another_programs(path)
    source = path.with_name("source")
    shutil.copy(path, source)
    connection = apsw.Connection(str(source))
    connection.execute("pragma cache_size = 1")
    connection.execute("begin")
    for _ in range(300):
        connection.execute("insert into messages (body) values (hex(randomblob(500)))")
    for end in ("", "-journal"):
        shutil.copy(f"{source}{end}", f"{path}{end}")
    connection.close()


def another_models(path: Path) -> None:
    asyncio.run(filled(path, 2))
    with connected(path) as connection:
        connection.execute("update meta set value = 'another 8' where name = 'embedding'")


def shortened(share: float) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        asyncio.run(filled(path, 3))
        os.truncate(path, int(path.stat().st_size * share))

    make.__name__ = f"shortened to {share:.2%}"
    return make


def a_text(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def noise(path: Path) -> None:
    path.write_bytes(Random(4).randbytes(50_000))


REFUSED: list[tuple[Callable[[Path], None], type[Exception]]] = [
    (newer, StoreTooNew),
    (another_programs, StoreCorrupt),
    (another_programs_log, StoreCorrupt),
    (another_programs_journal, StoreCorrupt),
    (another_models, EmbeddingMismatch),
    (a_text, StoreCorrupt),
    (noise, StoreCorrupt),
    *((shortened(share), StoreCorrupt) for share in (0.9999, 0.75, 0.5, 0.1, 0.01)),
]


@pytest.mark.parametrize(("make", "error"), REFUSED, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_not_ours_to_open_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], error: type[Exception]
) -> None:
    path = tmp_path / "a.db"
    make(path)
    before = contents(tmp_path)
    store = SQLiteStore(path)
    for _ in range(2):  # nor does having been refused change anything
        with pytest.raises(error, match="a.db"):
            asyncio.run(store.open(SPEC, index))
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but our lock and the scratch memory of a log, neither of which holds anything."""
    return {
        file.name: file.read_bytes()
        for file in sorted(folder.iterdir())
        if not file.name.endswith(("-lock", "-shm")) and file.name != "source"
    }


async def test_an_empty_file_is_made_a_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    await comes_to_life(path)


async def test_damage_is_reported_as_damage_and_never_as_an_empty_answer(tmp_path: Path, seed: int) -> None:
    state = await filled(tmp_path / "a.db", seed, steps=40)
    with connected(tmp_path / "a.db") as connection:
        size = connection.pragma("page_size")
        leaves = connection.execute("select pageno from dbstat where name = 'records' and pagetype = 'leaf'")
        pages = [page for (page,) in leaves]
    with (tmp_path / "a.db").open("r+b") as stream:
        for page in pages:
            stream.seek((page - 1) * size)
            stream.write(Random(seed).randbytes(size))
    store = SQLiteStore(tmp_path / "a.db")
    await store.open(SPEC, index)
    for scope, records in found(state).items():
        # where a scope has no memory, the index, which is whole, says so truthfully
        if any(kind == "memory" for kind, _ in records):
            with pytest.raises(StoreCorrupt):
                await store.scan(scope, "memory")
        with pytest.raises(StoreCorrupt):
            await store.write(scope, [Put(record=Record(kind="memory", id="new", data={"text": "more"}))])
    await store.aclose()


async def test_opening_what_is_up_to_date_writes_nothing(tmp_path: Path, seed: int) -> None:
    state = await filled(tmp_path / "a.db", seed)
    before = contents(tmp_path)
    store = SQLiteStore(tmp_path / "a.db")
    await store.open(SPEC, index)
    assert await read_back(store) == found(state)
    await store.aclose()
    assert contents(tmp_path) == before


@pytest.fixture
def common_folder() -> Iterator[Path]:
    """A folder that any user may reach; the tests' own are for their user alone."""
    folder = Path(tempfile.mkdtemp(prefix="echoic-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a child of another user")
@pytest.mark.parametrize(
    ("there", "file_mode", "folder_mode"),
    [(True, 0o444, 0o777), (True, 0o666, 0o555), (False, 0, 0o555), (True, 0o000, 0o777)],
    ids=["read-only file", "read-only folder", "nothing, in a read-only folder", "unreadable file"],
)
def test_what_may_not_be_written_says_so(
    zygote: Zygote, common_folder: Path, tmp_path: Path, there: bool, file_mode: int, folder_mode: int
) -> None:
    path, log = common_folder / "a.db", tmp_path / "log"
    if there:
        asyncio.run(filled(path, 5))
        path.chmod(file_mode)
        (common_folder / "a.db-lock").chmod(0o666)
    before = path.read_bytes() if there else b""
    common_folder.chmod(folder_mode)
    assert zygote.run("open_as_another_user", path=str(path), log=str(log)) == 0
    error, *message = lines(log)[0]
    assert error == "StoreUnavailable", message
    assert "a.db" in " ".join(message)
    assert "this user" in " ".join(message)
    assert (path.read_bytes() if there else b"") == before


@pytest.mark.parametrize("where", ["no/such/folder/a.db", "."])
async def test_a_place_that_cannot_be_a_file_says_so(tmp_path: Path, where: str) -> None:
    store = SQLiteStore(tmp_path / where)
    with pytest.raises(StoreUnavailable, match="Does its folder exist"):
        await store.open(SPEC, index)


async def test_a_store_that_was_refused_opens_once_the_reason_is_gone(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "later" / "a.db")
    with pytest.raises(StoreError):
        await store.open(SPEC, index)
    (tmp_path / "later").mkdir()
    await store.open(SPEC, index)
    await perform(store, GREETING)
    await store.aclose()
    with pytest.raises(EmbeddingMismatch):
        await store.open(EmbeddingSpec("another", 8), index)
    await store.open(SPEC, index)
    assert await store.read(GREETING.scope, "memory", ["m"])
    await store.aclose()
