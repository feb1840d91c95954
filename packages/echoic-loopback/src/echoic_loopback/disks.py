"""Disks that fail on purpose: they count, refuse, forget what was not synced, and lie about what was.

SQLite VFSes over real files, to be named to a store as `vfs`. They model one disk as the kernel shows it:
what was written is read back at once, what was synced survives, and nothing else is certain. They do not
model a disk that lies about a sync it reported as done, nor one that loses what was synced before.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal, NoReturn

import apsw

PAGE = 4096
"""Of the kernel's page cache: what it marks as written, all or nothing."""
SECTOR = 512
"""What a disk writes all or nothing."""

Kind = Literal["write", "sync", "truncate", "delete"]
Fault = Callable[[], NoReturn]
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Operation:
    """Something asked of a disk that changes what is on it."""

    number: int
    """From 1, over all files of the disk."""
    kind: Kind
    path: str


Plan = Callable[[Operation], Fault | None]
"""What befalls an operation; None: it succeeds. Called before anything is done."""


def full() -> NoReturn:
    """The disk has no space left.

    Raises:
        apsw.FullError: always.
    """
    raise apsw.FullError("no space left on this disk")


def broken() -> NoReturn:
    """The disk cannot do it.

    Raises:
        apsw.IOError: always.
    """
    raise apsw.IOError("this disk failed")


def killed() -> NoReturn:
    """This process is killed here and now, with nothing flushed and no handler run."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL came back")


def at(numbers: set[int], fault: Fault) -> Plan:
    """`fault` at these operations, counted from 1."""
    return lambda operation: fault if operation.number in numbers else None


def at_syncs(numbers: set[int], fault: Fault) -> Plan:
    """`fault` at these syncs, counted from 1; writes are not counted."""
    syncs = itertools.count(1)
    return lambda operation: fault if operation.kind == "sync" and next(syncs) in numbers else None


def at_chance(chance: float, kind: Kind, rng: Random, fault: Fault) -> Plan:
    """`fault` at each operation of `kind` with this probability."""
    return lambda operation: fault if operation.kind == kind and rng.random() < chance else None


def nothing(_operation: Operation) -> Fault | None:
    """The plan of a sound disk."""
    return None


class Disk(apsw.VFS):
    """A disk that counts what is asked of it and fails where its plan says so.

    A write that fails has written its first half, as a real one may have. `plan` may be changed at any time.
    """

    def __init__(self, plan: Plan = nothing) -> None:
        self.name = f"echoic-disk-{next(_numbers)}"
        self.plan = plan
        self.operations = 0
        """How many operations there were so far."""
        self.failed = 0
        """How many of them failed."""
        self._counting = threading.Lock()
        super().__init__(self.name, "")

    def excepthook(self, *_: object) -> bool:
        """A fault that SQLite has no way to report, as when closing: it is meant."""
        return True

    def ask(self, kind: Kind, path: str) -> Fault | None:
        """Count an operation; what befalls it."""
        with self._counting:
            self.operations += 1
            fault = self.plan(Operation(self.operations, kind, path))
            self.failed += fault is not None
        return fault

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return self.file(path, name, flags) if path else apsw.VFSFile("", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's
        fault = self.ask("delete", filename)
        if fault is not None:
            fault()
        super().xDelete(filename, syncdir)

    def file(self, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """An open file of this disk."""
        return _File(self, path, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.disk, self.path = disk, path
        super().__init__("", name, flags)

    def excepthook(self, *_: object) -> bool:
        return True

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's
        fault = self.disk.ask("write", self.path)
        if fault is not None:
            self.put(bytes(data[: len(data) // 2]), offset)
            fault()
        self.put(bytes(data), offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's
        fault = self.disk.ask("sync", self.path)
        if fault is not None:
            self.forget()
            fault()
        self.settle(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's
        fault = self.disk.ask("truncate", self.path)
        if fault is not None:
            fault()
        self.shorten(size)

    def put(self, data: bytes, offset: int) -> None:
        """Write, for the moment into the kernel's cache."""
        super().xWrite(data, offset)

    def settle(self, flags: int) -> None:
        """Sync, successfully."""
        super().xSync(flags)

    def forget(self) -> None:
        """What a failing sync does to what it should have written."""

    def shorten(self, size: int) -> None:
        super().xTruncate(size)


@dataclass(slots=True)
class _Image:
    """One file: what is read back now, and what a power cut would leave for certain."""

    live: bytearray
    durable: bytearray
    dirty: set[int] = field(default_factory=set)
    """Pages whose live bytes differ, as far as the kernel knows."""
    shortest: int | None = None
    """The smallest size it was truncated to since the last sync."""
    known: bool = False
    """Whether its name is on the disk."""


class PowerDisk(Disk):
    """A disk whose power can be cut: what was not synced survives in part, in any order, torn at sectors.

    A sync that fails is the kernel's: the pages it could not write are marked clean all the same, so the next
    sync of the file succeeds without them (fsyncgate, 2018).

    Args:
        rng: decides what the kernel writes back early and what survives.
        plan: which operations fail.
    """

    def __init__(self, rng: Random, plan: Plan = nothing) -> None:
        super().__init__(plan)
        self.rng = rng
        self._images: dict[str, _Image] = {}
        self._ghosts: dict[str, _Image] = {}
        self._changing = threading.RLock()

    def file(self, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """An open file of this disk."""
        with self._changing:
            if path not in self._images:
                there = Path(path).read_bytes() if Path(path).exists() else None
                content = there or b""
                self._images[path] = _Image(bytearray(content), bytearray(content), known=there is not None)
        return _PowerFile(self, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's
        super().xDelete(filename, syncdir)
        with self._changing:
            image = self._images.pop(filename, None)
            if syncdir:
                self._names_synced()
            elif image is not None and image.known:
                self._ghosts[filename] = image

    def cut(self, into: Path) -> None:
        """The power goes now: leave in `into` what is on the disk. The files as they are stay untouched."""
        survival = self.rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        with self._changing:
            for path, image in self._ghosts.items():
                if self.rng.random() >= survival:
                    (into / Path(path).name).write_bytes(image.durable)
            for path, image in self._images.items():
                if image.known or self.rng.random() < survival:
                    (into / Path(path).name).write_bytes(self._remains(image, survival))

    def written(self, path: str, data: bytes, offset: int) -> None:
        """`data` is in the kernel's cache; it may write some of it back whenever it likes."""
        with self._changing:
            image = self._images[path]
            _overwrite(image.live, data, offset)
            image.dirty.update(range(offset // PAGE, (offset + len(data) - 1) // PAGE + 1))
            if self.rng.random() < 0.02:
                self._write_back(image, 0.5)

    def synced(self, path: str) -> None:
        """What was written to `path` is on the disk, and so is its name."""
        with self._changing:
            image = self._images[path]
            self._resize(image)
            for page in image.dirty:
                _overwrite(image.durable, image.live[page * PAGE : (page + 1) * PAGE], page * PAGE)
            image.dirty.clear()
            if not image.known and path.endswith(("-wal", "-journal")):
                self._names_synced()  # SQLite syncs the folder with the first sync of a new log
            image.known = True
            self._ghosts.pop(path, None)

    def lost(self, path: str) -> None:
        """A sync failed: some of it was written, and the kernel believes that all of it was."""
        with self._changing:
            image = self._images[path]
            self._write_back(image, self.rng.choice((0.0, 0.3)))
            image.dirty.clear()

    def shortened(self, path: str, size: int) -> None:
        """`path` was cut to `size` bytes, which is not on the disk before the next sync."""
        with self._changing:
            image = self._images[path]
            del image.live[size:]
            image.shortest = size if image.shortest is None else min(size, image.shortest)
            image.dirty = {page for page in image.dirty if page * PAGE < size}

    def _names_synced(self) -> None:
        self._ghosts.clear()
        for image in self._images.values():
            image.known = True

    def _write_back(self, image: _Image, survival: float) -> None:
        """Sectors of dirty pages reach the disk without a sync; the pages stay dirty."""
        for page in sorted(image.dirty):
            for start in range(page * PAGE, min((page + 1) * PAGE, len(image.live)), SECTOR):
                if self.rng.random() < survival:
                    _overwrite(image.durable, image.live[start : start + SECTOR], start)

    def _resize(self, image: _Image) -> None:
        if image.shortest is not None:
            del image.durable[image.shortest :]
            image.shortest = None
        image.durable.extend(bytes(max(0, len(image.live) - len(image.durable))))

    def _remains(self, image: _Image, survival: float) -> bytes:
        left = _Image(image.live, bytearray(image.durable), set(image.dirty), image.shortest)
        if self.rng.random() < survival:
            self._resize(left)
        self._write_back(left, survival)
        return bytes(left.durable)


class _PowerFile(_File):
    disk: PowerDisk

    def put(self, data: bytes, offset: int) -> None:
        super().put(data, offset)
        if data:
            self.disk.written(self.path, data, offset)

    def settle(self, flags: int) -> None:  # noqa: ARG002 - the real disk need not spin for a model of it
        self.disk.synced(self.path)

    def forget(self) -> None:
        self.disk.lost(self.path)

    def shorten(self, size: int) -> None:
        super().shorten(size)
        self.disk.shortened(self.path, size)


def _overwrite(image: bytearray, data: bytes | bytearray, offset: int) -> None:
    if len(image) < offset:
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(data)] = data


__all__ = [
    "PAGE",
    "SECTOR",
    "Disk",
    "Fault",
    "Kind",
    "Operation",
    "Plan",
    "PowerDisk",
    "at",
    "at_chance",
    "at_syncs",
    "broken",
    "full",
    "killed",
    "nothing",
]
