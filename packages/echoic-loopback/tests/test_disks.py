"""The disks of these tests do what they say: count, fail, tear, and forget what was not synced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from echoic_loopback.disks import PAGE, SECTOR, Disk, Fault, PowerDisk, at, at_syncs, broken, full, nothing

FLAGS = [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_DB, 0]
OLD, NEW = b"o", b"n"


def made(disk: Disk, path: Path, content: bytes) -> apsw.VFSFile:
    """A file with this content, synced."""
    file = disk.file(str(path), str(path), list(FLAGS))
    file.xWrite(content, 0)
    file.xSync(apsw.SQLITE_SYNC_NORMAL)
    return file


def remains(disk: PowerDisk, folder: Path, times: int = 40) -> set[bytes]:
    """What `times` power cuts at this moment leave of a file, each as its own."""
    found = set()
    for number in range(times):
        into = folder / f"cut{number}"
        into.mkdir()
        disk.cut(into)
        found.add((into / "file").read_bytes())
    return found


def test_what_was_synced_survives_every_cut(tmp_path: Path) -> None:
    disk = PowerDisk(Random(1))
    file = made(disk, tmp_path / "file", OLD * 3 * PAGE)
    assert remains(disk, tmp_path) == {OLD * 3 * PAGE}
    file.xClose()


def test_what_was_not_synced_survives_in_any_part_torn_only_at_sectors(tmp_path: Path) -> None:
    disk = PowerDisk(Random(2))
    file = made(disk, tmp_path / "file", OLD * 3 * PAGE)
    file.xWrite(NEW * 2 * PAGE, PAGE)
    assert file.xRead(PAGE, PAGE) == NEW * PAGE
    found = remains(disk, tmp_path)
    assert {OLD * 3 * PAGE, OLD * PAGE + NEW * 2 * PAGE} < found
    for content in found:
        assert content[:PAGE] == OLD * PAGE
        sectors = [content[at : at + SECTOR] for at in range(0, len(content), SECTOR)]
        assert set(sectors) <= {OLD * SECTOR, NEW * SECTOR}
    file.xClose()


def test_a_page_whose_sync_failed_is_not_written_by_the_next_sync(tmp_path: Path) -> None:
    disk = PowerDisk(Random(3), at_syncs({2}, broken))
    file = made(disk, tmp_path / "file", OLD * 2 * PAGE)
    file.xWrite(NEW * PAGE, PAGE)
    with pytest.raises(apsw.IOError):
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    file.xSync(apsw.SQLITE_SYNC_NORMAL)
    assert file.xRead(PAGE, PAGE) == NEW * PAGE, "the kernel still shows it"
    assert any(OLD in content[PAGE:] for content in remains(disk, tmp_path))
    file.xWrite(NEW, PAGE)  # to write into the page again makes all of it dirty
    file.xSync(apsw.SQLITE_SYNC_NORMAL)
    (tmp_path / "again").mkdir()
    assert remains(disk, tmp_path / "again") == {OLD * PAGE + NEW * PAGE}
    file.xClose()


def test_a_file_cut_short_is_short_for_certain_once_synced(tmp_path: Path) -> None:
    disk = PowerDisk(Random(4))
    file = made(disk, tmp_path / "file", OLD * 2 * PAGE)
    file.xTruncate(PAGE)
    assert remains(disk, tmp_path) == {OLD * PAGE, OLD * 2 * PAGE}
    file.xSync(apsw.SQLITE_SYNC_NORMAL)
    (tmp_path / "again").mkdir()
    assert remains(disk, tmp_path / "again") == {OLD * PAGE}
    file.xClose()


def test_a_file_never_synced_may_not_be_there_at_all(tmp_path: Path) -> None:
    disk = PowerDisk(Random(5))
    file = disk.file(str(tmp_path / "file"), str(tmp_path / "file"), list(FLAGS))
    file.xWrite(NEW * PAGE, 0)
    there = set()
    for number in range(40):
        into = tmp_path / f"cut{number}"
        into.mkdir()
        disk.cut(into)
        there.add((into / "file").exists())
    assert there == {True, False}
    file.xClose()


@pytest.mark.parametrize(("fault", "error"), [(full, apsw.FullError), (broken, apsw.IOError)])
def test_the_planned_operation_fails_half_written_and_no_other(
    tmp_path: Path, fault: Fault, error: type[apsw.Error]
) -> None:
    disk = Disk(at({3}, fault))
    file = made(disk, tmp_path / "file", OLD * 100)
    with pytest.raises(error):
        file.xWrite(NEW * 100, 100)
    assert (disk.operations, disk.failed) == (3, 1)
    assert file.xRead(150, 0) == OLD * 100 + NEW * 50
    disk.plan = nothing
    file.xWrite(NEW * 100, 100)
    assert file.xRead(200, 0) == OLD * 100 + NEW * 100
    file.xClose()


def test_a_database_on_a_sound_disk_is_like_any_other(tmp_path: Path) -> None:
    kinds: list[Callable[[], Disk]] = [Disk, lambda: PowerDisk(Random(6))]
    for number, kind in enumerate(kinds):
        disk = kind()
        connection = apsw.Connection(str(tmp_path / f"{number}.db"), vfs=disk.name)
        connection.pragma("journal_mode", "wal")
        connection.execute("create table t (x); insert into t values (1), (2)")
        assert connection.execute("select sum(x) from t").get == 3
        connection.close()
        assert disk.operations > 5
        again = apsw.Connection(str(tmp_path / f"{number}.db"))
        assert again.execute("select sum(x) from t").get == 3
        again.close()
