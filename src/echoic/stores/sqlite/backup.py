"""A whole copy of the file at one moment, made by SQLite's own backup while others read and write."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from echoic.errors import StoreCorrupt, StoreUnavailable
from echoic.stores.permissions import create_private


def write_snapshot(source: apsw.Connection, path: Path) -> None:
    """Copy what `source` sees to `path` in one step, which is one read transaction; then check the copy.

    Raises:
        StoreUnavailable: `path` could not be written.
        StoreCorrupt: the copy is not whole.
    """
    create_private(path)
    try:
        target = apsw.Connection(str(path))
        try:
            with target.backup("main", source, "main") as copying:
                copying.step(-1)
            target.pragma("journal_mode", "delete")  # one file, with no log beside it
            found = [row[0] for row in target.execute("pragma integrity_check(3)")]
        finally:
            target.close()
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(f"the store cannot be backed up: {error}") from error
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be written: {error}") from error
    if found != ["ok"]:
        raise StoreCorrupt(f"the store cannot be backed up, it is damaged: {found[0]}; run `echoic doctor`")
