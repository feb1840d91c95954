"""Who may read the files of a store: their owner alone, whatever the umask, and other processes add nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.stores.files import FilesStore
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite.writer import truncate_log
from echoic.testing.store_histories import ANA, memory, note, opened, put

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there, a mode says nothing of others")

SECOND = """
import asyncio, os, sys
os.umask(0)
from echoic.stores.sqlite import SQLiteStore
from echoic.testing.store_histories import ANA, memory, opened, put

async def main():
    async with opened(SQLiteStore(sys.argv[1])) as store:
        await store.write(ANA, [put(memory("b"))])
        print("written", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
async def test_a_database_and_its_log_are_for_their_owner_alone(tmp_path: Path) -> None:
    private = {f"a.db{end}": 0o600 for end in ("", "-wal", "-shm", "-lock")}
    path = tmp_path / "a.db"
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(memory("a"))])
        assert modes(tmp_path) == private
        await asyncio.wrap_future(store._writer.alone(truncate_log))
        await store.write(ANA, [put(note("n"))])
        assert modes(tmp_path) == private


async def test_a_second_process_makes_nothing_that_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(memory("a"))])
    assert not (tmp_path / "a.db-wal").exists()  # so that the other one makes it
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SECOND, str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert await other.stdout.readline() == b"written\n"
    assert (tmp_path / "a.db-wal").exists()
    assert set(modes(tmp_path).values()) == {0o600}
    other.stdin.write(b"\n")
    await other.communicate()
    assert other.returncode == 0


async def test_a_database_that_everybody_may_read_is_tightened_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(memory("a"))])
        for file in tmp_path.glob("a.db*"):
            file.chmod(0o644)
        async with opened(SQLiteStore(path)):  # while the log of another is there
            assert {n: m for n, m in modes(tmp_path).items() if n != "a.db-lock"} == {
                "a.db": 0o600,
                "a.db-wal": 0o600,
                "a.db-shm": 0o600,
            }


async def test_a_database_that_is_shared_with_a_group_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with opened(SQLiteStore(path)):
        pass
    path.chmod(0o660)
    async with opened(SQLiteStore(path)) as store:
        await store.write(ANA, [put(memory("a"))])
        assert modes(tmp_path)["a.db"] == modes(tmp_path)["a.db-wal"] == 0o660


async def test_where_it_may_not_be_tightened_the_operator_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    async with opened(SQLiteStore(path)):
        pass
    path.chmod(0o666)

    def not_the_owner(_path: Path, _mode: int) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", not_the_owner)
    with caplog.at_level(logging.WARNING):
        async with opened(SQLiteStore(path)) as store:
            await store.write(ANA, [put(memory("a"))])
    assert "chmod 600" in caplog.text


async def test_a_file_that_everybody_may_read_is_tightened_when_it_is_written(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path / "f")) as store:
        await store.write(ANA, [put(memory("a"))])
        (path,) = tmp_path.rglob("ana.json")
        path.chmod(0o664)
        await store.write(ANA, [put(note("n"))])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
