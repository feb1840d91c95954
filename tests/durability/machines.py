"""A machine: a store on a disk whose power is cut at chosen operations, and what may be left of it then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw

from durability.consistency import check_consistent
from durability.workload import Found, State, found, index
from echoic.stores.base import Change, Erasable, Erased, Index
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import writer as sqlite_writer
from echoic.stores.sqlite.schema import SqliteScopeChanges
from echoic.stores.sqlite.writer import Writer
from echoic.types import EmbeddingSpec, Scope
from echoic_loopback.disks import Fault, Operation, PowerDisk, at_chance, broken


@dataclass(frozen=True, slots=True)
class Cut:
    """A power cut: where its remains lie, and what may be in them."""

    folder: Path
    allowed: Sequence[State]
    born: bool
    """Whether opening had been acknowledged."""

    def survivor(self) -> State | None:
        """Which of the states that may be there is there; None: none of them.

        Raises:
            AssertionError: the file is corrupt, or its parts do not agree.
        """
        path = self.folder / "a.db"
        held: Found = {}
        try:
            held = check_consistent(path) if path.exists() else {}
        except apsw.SQLError as error:
            if "no such table" not in str(error):  # it was cut before it was a store at all
                raise
        return next((state for state in reversed(self.allowed) if found(state) == held), None)


@dataclass
class Machine:
    """A store on a disk whose power is cut when these operations are asked of it."""

    folder: Path
    disk: PowerDisk
    moments: set[int]
    allowed: Callable[[], Sequence[State]] = list
    """What may be found after a cut at this moment; set by who asks the store for changes."""
    cuts: list[Cut] = field(default_factory=list)
    born: bool = False
    """Whether opening was acknowledged; set by who opened the store."""

    def __post_init__(self) -> None:
        self._cutting = threading.RLock()
        plan = self.disk.plan

        def cutting(operation: Operation) -> Fault | None:
            if operation.number in self.moments:
                self.cut()
            return plan(operation)

        self.disk.plan = cutting

    def cut(self) -> None:
        """Take what a power cut would leave now. The machine goes on: it is somebody else's power."""
        with self._cutting:  # the writer's thread and the test's may both do so
            remains = self.folder / f"cut-{len(self.cuts)}"
            remains.mkdir()
            allowed, born = self.allowed(), self.born
            self.disk.cut(remains)
            self.cuts.append(Cut(remains, allowed, born))

    def store(self, folder: Path | None = None) -> SQLiteStore:
        """A store on this machine, in `folder` or a new one."""
        if folder is None:
            folder = self.folder / "live"
            folder.mkdir()
        return SQLiteStore(folder / "a.db", vfs=self.disk.name)


class WriterAlone:
    """A writer without a reader beside it: when it closes its connection, that was the last one to the file."""

    def __init__(self, store: SQLiteStore) -> None:
        self._path, self._vfs = store._path, store._vfs
        self._writer = Writer(str(self._path), self._vfs)

    async def open(self, _embedding: EmbeddingSpec, _index: Index) -> None:
        """As a store does."""
        await asyncio.wrap_future(self._writer.start())

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        """As a store does."""

        def work(connection: apsw.Connection) -> None:
            change = SqliteScopeChanges(connection, scope, index)
            change.apply(changes)
            change.finish()

        await asyncio.wrap_future(self._writer.submit(work))

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        """As a store does."""

        def work(connection: apsw.Connection) -> Erased:
            return sqlite_writer.erase(connection, self._path, scope, changes, index)

        return await asyncio.wrap_future(self._writer.alone(work))

    async def aclose(self) -> None:
        """As a store does."""
        closing = self._writer.stop()
        if closing is not None:
            await asyncio.wrap_future(closing)


def failing_syncs(rng: Random) -> PowerDisk:
    """A disk of which one sync in seven fails."""
    return PowerDisk(rng, at_chance(0.15, "sync", rng, broken))


__all__ = ["Cut", "Machine", "WriterAlone", "failing_syncs"]
