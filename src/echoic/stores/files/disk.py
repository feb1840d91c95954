"""Files that are replaced atomically, locked across processes, and overwritten when they are removed; and a
file of vectors. Blocking; independent of their content.

A process killed at any instant leaves a file as it was before or after, at worst with a temporary file beside
it, which `sweep` removes. Readers need no lock.

The vectors of a user are in a file beside the memory: a cache that may be lost, but is never wrong. A header
names the model; then each row follows at its own offset, with a digest of its text and a checksum. A row is
written in place. One that was cut short fails its check, one of another text or model is ignored, and the
record waits for a vector again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt, StoreFull, StoreUnavailable
from echoic.partition import MAX_BYTES
from echoic.stores.base import without_others
from echoic.types import EmbeddingSpec

try:
    import fcntl
except ImportError:  # not on Windows, where only threads of this process are excluded
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".tmp"
LOCK_TIMEOUT_S = 10.0
"""Seconds to wait for another process's lock on a user's file: a write takes milliseconds."""
_STEP_NS = 1000
"""The least difference between the dates of two writes; file systems keep 100 ns or better."""
_CHUNK = 1 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileStamp(NamedTuple):
    """Identifies one state of a file. Our own writes always differ in the first field."""

    mtime_ns: int
    size: int
    inode: int


@contextlib.contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Translate operating system errors into StoreFull (no space left) or StoreUnavailable, naming `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(
                f"no space left to write {str(path)!r} ({error.strerror}); it is as it was before. "
                "Reads go on, free some and retry"
            ) from error
        raise StoreUnavailable(
            f"{str(path)!r} could not be {doing}: {error.strerror or error}. It is as it was before; retry"
        ) from error


def seen(path: Path | str) -> FileStamp | None:
    """The state of `path`; None if there is no such file."""
    try:
        found = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - one system call, on the way of every read
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileStamp(found.st_mtime_ns, found.st_size, found.st_ino)


def read(path: Path) -> bytes:
    """The bytes of `path`; FileNotFoundError without it, StoreCorrupt for a link or device."""
    try:
        fd = os.open(path, os.O_RDONLY | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK") | _flag("O_BINARY"))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreCorrupt(f"{str(path)!r} is a symbolic link; it is left untouched") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise StoreCorrupt(f"{str(path)!r} is not an ordinary file; it is left untouched")
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def replace(path: Path, data: bytes, *, overwrite_old: bool = False) -> FileStamp:
    """Replace the content of `path` by `data` atomically; durable when it returns. Its folder must exist.

    `overwrite_old`: overwrite the previous bytes once nobody can open them any more.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    before = seen(path)
    old = _open_old(path) if overwrite_old else None
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flag("O_BINARY"), 0o600)
        try:
            if before is not None and hasattr(os, "fchmod"):
                mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116 - beside the other calls
                os.fchmod(fd, without_others(mode))
            _write_all(fd, data)
            state = _date(fd, before)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)  # noqa: PTH105 - beside the other calls of its kind
        sync_folder(path.parent)
        if old is not None:
            _overwrite(old)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 - likewise
        raise
    finally:
        if old is not None:
            os.close(old)
    return state


def patch(path: Path, pieces: dict[int, bytes]) -> FileStamp:
    """Write `pieces` at their offsets into the existing `path`, durable when it returns. Not atomic."""
    fd = os.open(path, os.O_RDWR | _flag("O_NOFOLLOW") | _flag("O_BINARY"))
    try:
        for offset, data in pieces.items():
            os.lseek(fd, offset, os.SEEK_SET)
            _write_all(fd, data)
        found = os.fstat(fd)
        state = _date(fd, FileStamp(found.st_mtime_ns, found.st_size, found.st_ino))
        os.fsync(fd)
        return state
    finally:
        os.close(fd)


def append(path: Path, data: bytes) -> None:
    """Append `data` to `path`, created if needed, concurrently with others. Not synced."""
    fd = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _flag("O_NOFOLLOW") | _flag("O_BINARY"), 0o600
    )
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def shred(path: Path) -> None:
    """Overwrite `path` with zeros and remove it, if it exists.

    It is renamed first, so that nobody reads it half overwritten, and `sweep` finishes it after a crash.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    if not path.name.endswith(TEMPORARY):
        try:
            os.rename(path, hidden)  # noqa: PTH104 - beside the other calls of its kind
        except FileNotFoundError:
            return
        sync_folder(path.parent)
        path = hidden
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDWR | _flag("O_NOFOLLOW") | _flag("O_BINARY"))
        try:
            _overwrite(fd)
        finally:
            os.close(fd)
        os.unlink(path)  # noqa: PTH108 - likewise
    sync_folder(path.parent)


def leftovers(folder: Path, name: str = "") -> list[Path]:
    """Temporary files in `folder`, only those of the file `name` if given."""
    # the whole name: the users "ana" and "ana.json" have similar file names
    whose = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{8}}{re.escape(TEMPORARY)}" if name else r"\..*")
    with contextlib.suppress(FileNotFoundError):
        return [
            folder / entry
            for entry in os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
            if entry.endswith(TEMPORARY) and whose.fullmatch(entry)
        ]
    return []


def make_folder(folder: Path) -> None:
    """Create `folder`, and its parents, durable when it returns."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    if os.name == "nt":  # Windows cannot open a folder, and journals its names
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(path: Path, *, timeout_s: float | None = None) -> Iterator[None]:
    """Hold the lock file `path` among all processes of this machine; a process that dies releases it.

    Raises StoreUnavailable if another process holds it for `timeout_s`, or `LOCK_TIMEOUT_S`.
    """
    fd = _acquire(path, time.monotonic() + (LOCK_TIMEOUT_S if timeout_s is None else timeout_s))
    try:
        yield
    finally:
        os.close(fd)


def _acquire(path: Path, until: float) -> int:
    pause_s = 0.0005
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | _flag("O_CLOEXEC") | _flag("O_NOFOLLOW"), 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            state = seen(path)
            # an erasure removes the lock file: a waiting process would then hold a deleted one
            if fcntl is None or (state is not None and state.inode == os.fstat(fd).st_ino):
                return fd
        except BlockingIOError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if time.monotonic() > until:
            raise StoreUnavailable(f"another process holds {str(path)!r}; nothing was written. Retry.")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.01)


def folds_case(folder: Path) -> bool:
    """Whether the file system of `folder` ignores case in names."""
    probe = folder / f".echoic-{secrets.token_hex(4)}-case{TEMPORARY}"
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        return probe.with_name(probe.name.upper()).exists()
    finally:
        probe.unlink()


def _open_old(path: Path) -> int | None:
    if os.name == "nt":  # Windows cannot replace an open file
        return None
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR | _flag("O_NOFOLLOW") | _flag("O_BINARY"))
    return None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[: 64 * _CHUNK]) :]


def _overwrite(fd: int) -> None:
    size = os.fstat(fd).st_size
    os.lseek(fd, 0, os.SEEK_SET)
    for offset in range(0, size, _CHUNK):
        _write_all(fd, bytes(min(_CHUNK, size - offset)))
    os.fsync(fd)


def _date(fd: int, before: FileStamp | None) -> FileStamp:
    """Date the file later than `before`, however coarse or wrong the clock."""
    if before is not None and os.utime in os.supports_fd:
        mtime_ns = max(time.time_ns(), before.mtime_ns + _STEP_NS)
        os.utime(fd, ns=(mtime_ns, mtime_ns))
    found = os.fstat(fd)
    return FileStamp(found.st_mtime_ns, found.st_size, found.st_ino)


def _flag(name: str) -> int:
    """A flag of `os.open`; 0 if the system has none of that name."""
    flag: int = getattr(os, name, 0)
    return flag


class Stored(NamedTuple):
    """The vector stored for one text."""

    text: bytes
    """The text's digest, 16 bytes."""
    vector: NDArray[np.float32]
    tokens: bytes | None = None
    """Its packed word pieces, if there are any."""


_MAGIC = b"ECV2"
_HEADER = struct.Struct("<4sI16s8x")  # magic, dimensions, the model's digest
_CHECK = struct.Struct("<II")  # checksum, bytes of word pieces


class VectorFile:
    """Vectors of one model at `path`. Blocking; only the holder of the user's lock may write."""

    def __init__(self, path: Path, spec: EmbeddingSpec) -> None:
        self.path = path
        model = blake2b(spec.model.encode(), digest_size=16).digest()
        self._header = _HEADER.pack(_MAGIC, spec.dimensions, model)
        self._row = np.dtype(
            [
                ("text", "V16"),
                ("check", "<u4"),
                ("size", "<u4"),
                ("vector", "<f4", (spec.dimensions,)),
                ("tokens", f"V{MAX_BYTES}"),
            ]
        )

    def read(self) -> dict[int, Stored]:
        """Every valid vector by row; empty if the file is missing or of another model."""
        try:
            data = read(self.path)
        except FileNotFoundError:
            return {}
        if not data.startswith(self._header):
            return {}
        count = (len(data) - _HEADER.size) // self._row.itemsize
        rows = np.frombuffer(data, self._row, count, _HEADER.size)
        there = np.flatnonzero(rows["check"]).tolist()
        found = {}
        for row in there:
            stored = Stored(
                rows["text"][row].tobytes(),
                rows["vector"][row],
                rows["tokens"][row].tobytes()[: rows["size"][row]] or None,
            )
            if _checksum(stored) == rows["check"][row]:
                found[row] = stored
        return found

    def write(self, rows: Mapping[int, Stored]) -> FileStamp:
        """Write vectors at their rows, durable when it returns. A file of another model is replaced."""
        pieces = {self._at(row): self._packed(stored) for row, stored in rows.items()}
        if not self._is_ours():
            return replace(self.path, self._whole(pieces), overwrite_old=True)
        return patch(self.path, pieces)

    def clear(self, rows: Iterable[int]) -> FileStamp | None:
        """Overwrite the vectors at `rows` with zeros, durable when it returns."""
        state = seen(self.path)
        inside = [row for row in rows if state is not None and self._at(row) < state.size]
        if not inside or not self._is_ours():
            return state
        return patch(self.path, {self._at(row): bytes(self._row.itemsize) for row in inside})

    def _is_ours(self) -> bool:
        try:
            with self.path.open("rb") as stream:
                return stream.read(_HEADER.size) == self._header
        except FileNotFoundError:
            return False

    def _at(self, row: int) -> int:
        return _HEADER.size + row * self._row.itemsize

    def _packed(self, stored: Stored) -> bytes:
        tokens = stored.tokens or b""
        check = _CHECK.pack(_checksum(stored), len(tokens))
        used = stored.text + check + np.ascontiguousarray(stored.vector, "<f4").tobytes() + tokens
        # the whole slot: its previous content may have been longer
        return used.ljust(self._row.itemsize, b"\0")

    def _whole(self, pieces: Mapping[int, bytes]) -> bytes:
        data = bytearray(self._header)
        for offset in sorted(pieces):
            data += bytes(offset - len(data)) + pieces[offset]
        return bytes(data)


def _checksum(stored: Stored) -> int:
    said = stored.text + np.ascontiguousarray(stored.vector, "<f4").tobytes() + (stored.tokens or b"")
    return zlib.crc32(said) or 1  # an empty row has 0
