"""Append-only files of JSON lines, each with the hash of the line before it, shared by processes. Blocking.

Whoever changes, removes or inserts a line breaks the chain at that line. Lines cut off the end are missed
only by those who know the hash of the last one.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from echoic.errors import StoreCorrupt, StoreUnavailable

try:
    import fcntl
except ImportError:  # not on Windows: there, one process at a time may write
    fcntl = None  # type: ignore[assignment]

BEGIN: Final = "0" * 64
"""What stands for the hash of the line before the first one."""
_TAIL: Final = 1 << 16


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file at `path`, which is created; other processes and threads wait."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)  # which releases it


class ChainedLog:
    """One such file.

    Args:
        path: where; its folder must exist by the time something is appended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path.with_name(path.name + "-lock")
        self._thread_lock = threading.Lock()

    def append(self, *entries: Mapping[str, Any], durable: bool = True) -> None:
        """Add one line for each of `entries`; on the disk when it returns, where that is to be `durable`.

        Raises:
            StoreUnavailable: it could not be written.
            StoreCorrupt: the last line cannot be read.
        """
        try:
            with self._thread_lock, locked(self._lock):
                self._append(entries, durable=durable)
        except OSError as error:
            raise StoreUnavailable(f"{str(self.path)!r} cannot be written: {error.strerror}") from error

    def _append(self, entries: tuple[Mapping[str, Any], ...], *, durable: bool) -> None:
        new = not self.path.exists()
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            number, before = self._last(fd)
            lines = b""
            for entry in entries:
                number += 1
                line = json.dumps({"n": number, "prev": before, **entry}, ensure_ascii=True).encode()
                lines, before = lines + line + b"\n", sha256(line).hexdigest()
            written = 0
            while written < len(lines):
                written += os.write(fd, lines[written:])
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        if new and durable:
            _sync_folder(self.path.parent)

    def _last(self, fd: int) -> tuple[int, str]:
        """Number and hash of the last whole line. What a killed process left behind it is cut off."""
        size = os.fstat(fd).st_size
        if not size:
            return 0, BEGIN
        reach = _TAIL
        while True:
            start = max(0, size - reach)
            tail = os.pread(fd, size - start, start)
            whole = tail[: tail.rfind(b"\n") + 1]
            first = whole[:-1].rfind(b"\n")
            if first >= 0 or start == 0:
                break
            reach *= 4
        if len(whole) < len(tail):
            os.ftruncate(fd, size - len(tail) + len(whole))
        if not whole:
            return 0, BEGIN
        line = whole[first + 1 : -1]
        return _number(line, self.path), sha256(line).hexdigest()

    def entries(self) -> list[dict[str, Any]]:
        """Every entry in order, the chain checked; none where there is no file.

        Raises:
            StoreCorrupt: a line was changed, removed or inserted; which one, is said.
            StoreUnavailable: it cannot be read.
        """
        return list(self.read()[0])

    def read(self) -> tuple[list[dict[str, Any]], str]:
        """The entries, and the hash of the last line; see `entries`."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return [], BEGIN
        except OSError as error:
            raise StoreUnavailable(f"{str(self.path)!r} cannot be read: {error.strerror}") from error
        found: list[dict[str, Any]] = []
        before: str | None = None
        for line in raw[: raw.rfind(b"\n") + 1].splitlines():
            entry = _entry(line, self.path)
            here = BEGIN if entry["n"] == 1 else before or entry["prev"]  # older lines may be removed by age
            last = found[-1]["n"] if found else entry["n"] - 1
            if entry["prev"] != here or entry["n"] != last + 1:
                raise StoreCorrupt(
                    f"{str(self.path)!r}: line {entry['n']} does not follow the one before it: "
                    "a line was changed, removed or inserted there"
                )
            found.append(entry)
            before = sha256(line).hexdigest()
        return found, before or BEGIN

    def remove_before(self, at: str, note: Mapping[str, Any]) -> int:
        """Remove the entries whose "at" is before `at`, and append `note`; how many went.

        The rest stays byte for byte, so that whoever knows a later hash can still check it.

        Raises:
            StoreCorrupt: the chain is broken; nothing was removed.
        """
        with self._thread_lock, locked(self._lock):
            entries, _ = self.read()
            keep = next((i for i, entry in enumerate(entries) if entry["at"] >= at), len(entries))
            keep = min(keep, max(0, len(entries) - 1))  # the last one stays: the chain goes on from it
            if not keep:
                return 0
            lines = self.path.read_bytes().splitlines(keepends=True)[keep:]
            new = self.path.with_name(self.path.name + "-new")
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
            self._append(({**note, "removed": keep},), durable=True)
        return keep


def _number(line: bytes, path: Path) -> int:
    number: int = _entry(line, path)["n"]
    return number


def _entry(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        if isinstance(entry["n"], int) and isinstance(entry["prev"], str):
            return dict(entry)
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreCorrupt(f"{str(path)!r} holds a line that cannot be read: restore the file from a copy of it")


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not on every system
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
