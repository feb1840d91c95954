"""A disk that fails, or loses its power, at a chosen operation: stands in for `os` in `files_disk`.

It changes real files through the real calls, and keeps beside them what would be left after a power cut: the
bytes of a file as they were when it was last synced, under the names its folder had when that was.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Fault = Callable[[str], None]
"""Raises, at an operation that is to fail."""


class Died(BaseException):
    """The process is no more. Nothing of it runs any longer."""


def broken(operation: str) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO), operation)


def full(operation: str) -> None:
    if operation in {"write", "create"}:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), operation)


def dead(operation: str) -> None:
    raise Died(operation)


@dataclass
class Disk:
    """Stands in for the module `os`; everything but what it counts is passed on."""

    root: Path
    first: int = 1 << 62
    """The first operation that fails, counted from 1 once the store is open."""
    last: int = 1 << 62
    fault: Fault = dead
    syncs_files: bool = True
    syncs_folders: bool = True
    operations: list[str] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _bytes: dict[int, bytes] = field(default_factory=dict)
    _names: dict[Path, dict[str, int]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _count(self, operation: str) -> None:
        self.operations.append(operation)
        if self.first <= len(self.operations) <= self.last:
            self.fault(operation)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        with self._lock:
            creates = bool(flags & os.O_CREAT) and not os.path.lexists(path)
            if creates:
                self._count("create")
            fd = os.open(path, flags, mode)
            if creates:
                self._bytes[os.fstat(fd).st_ino] = b""  # a number may have been another file's
            return fd

    def write(self, fd: int, data: Any) -> int:
        with self._lock:
            try:
                self._count("write")
            except BaseException:
                os.write(fd, bytes(data)[: len(data) // 2])
                raise
            return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        with self._lock:
            self._count("sync")
            found = os.fstat(fd)
            if not stat.S_ISDIR(found.st_mode):
                if self.syncs_files:
                    self._bytes[found.st_ino] = Path(f"/proc/self/fd/{fd}").read_bytes()
            elif self.syncs_folders:
                folder = Path(f"/proc/self/fd/{fd}").readlink()
                self._names[folder] = {entry.name: entry.inode() for entry in os.scandir(folder)}

    def replace(self, source: Any, target: Any) -> None:
        with self._lock:
            self._count("replace")
            os.replace(source, target)  # noqa: PTH105 - what stands in is the module os

    def rename(self, source: Any, target: Any) -> None:
        with self._lock:
            self._count("rename")
            os.rename(source, target)  # noqa: PTH104 - what stands in is the module os

    def unlink(self, path: Any) -> None:
        with self._lock:
            self._count("unlink")
            os.unlink(path)  # noqa: PTH108 - what stands in is the module os

    def utime(self, *args: Any, **kwargs: Any) -> None:
        with self._lock:
            self._count("date")
            os.utime(*args, **kwargs)

    @property
    def supports_fd(self) -> set[Any]:
        return {self.utime}

    def after_a_power_cut(self, folder: Path, into: Path) -> None:
        """Make `into` what a new start would find of `folder`."""
        into.mkdir()
        for name, inode in self._names.get(folder, {}).items():
            if (folder / name).is_dir():
                self.after_a_power_cut(folder / name, into / name)
            else:
                (into / name).write_bytes(self._bytes.get(inode, b""))
