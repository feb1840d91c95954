"""What was acknowledged survives a power cut, with unsynced writes torn, reordered and lost, and failing syncs."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from durability import controls
from durability.consistency import check_consistent
from durability.programs import grouped
from durability.workload import SPEC, Found, State, Step, after, found, history, index, perform
from echoic.errors import StoreUnavailable, WriteConflict
from echoic.stores import sqlite_writer
from echoic.stores.sqlite import SQLiteStore
from echoic.testing.disks import Fault, Operation, PowerDisk, at_chance, broken

STEPS = 24


@dataclass(slots=True)
class Cut:
    """A power cut: where its remains lie, and what may be in them."""

    folder: Path
    allowed: list[Found]


@dataclass(slots=True)
class Lost:
    """What became of the cuts of many histories."""

    histories: int = 0
    cuts: int = 0
    failures: int = 0
    """Operations that failed before the power was cut."""
    lost: int = 0
    corrupt: int = 0
    first: str = ""

    def judge(self, cut: Cut, name: str) -> None:
        """Look at what a cut left."""
        self.cuts += 1
        if not (cut.folder / "a.db").exists():
            bad = {} not in cut.allowed
            self.lost += bad
        else:
            bad = not self._sound(cut)
        if bad and not self.first:
            self.first = name

    def _sound(self, cut: Cut) -> bool:
        try:
            held = check_consistent(cut.folder / "a.db")
        except AssertionError:
            self.corrupt += 1
            return False
        except Exception as error:
            if "no such table" not in str(error):
                self.corrupt += 1
                return False
            held = {}
        self.lost += held not in cut.allowed
        return held in cut.allowed

    def __str__(self) -> str:
        return (
            f"{self.histories} histories, {self.failures} failed operations, {self.cuts} power cuts: "
            f"{self.lost} lost, {self.corrupt} corrupt"
        )


@dataclass
class Machine:
    """A store on a disk whose power will be cut at some of its operations."""

    folder: Path
    disk: PowerDisk
    moments: set[int]
    allowed: Callable[[], list[Found]] = list
    cuts: list[Cut] = field(default_factory=list)
    cutting: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        plan = self.disk.plan

        def cutting(operation: Operation) -> Fault | None:
            if operation.number in self.moments:
                self.cut()
            return plan(operation)

        self.disk.plan = cutting

    def cut(self) -> None:
        """Take what a power cut would leave now."""
        with self.cutting:  # the writer's thread and the test's may both do so
            remains = self.folder / f"cut-{len(self.cuts)}"
            remains.mkdir()
            allowed = self.allowed()
            self.disk.cut(remains)
            self.cuts.append(Cut(remains, allowed))

    def store(self) -> SQLiteStore:
        (self.folder / "live").mkdir()
        return SQLiteStore(self.folder / "live" / "a.db", vfs=self.disk.name)


@pytest.fixture(autouse=True)
def often_checkpointed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short histories meet many checkpoints."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 30)


async def concurrent_history(machine: Machine, rng: Random, control: str | None) -> None:
    """Writes, several at a time, on a disk that does as it is told."""
    steps = list(history(rng, STEPS))
    state: State = {}
    states = [found(state)]
    for step in steps:
        state = after(state, step)
        states.append(found(state))
    begun = done = 0
    machine.allowed = lambda: states[done : begun + 1]

    async def ask(step: Step) -> None:
        nonlocal begun, done
        begun += 1
        try:
            await perform(store, step)
        except WriteConflict:
            pass
        done += 1

    store = machine.store()
    with controls.applied(store, control):
        await store.open(SPEC, index)
        for group in grouped(rng, steps):
            await asyncio.gather(*(ask(step) for _, step in group))
        machine.cut()
        await store.aclose()
        machine.cut()


async def stubborn_history(machine: Machine, rng: Random, control: str | None) -> None:
    """Each step again until it succeeds, on a disk that fails."""
    state: State = {}
    coming: State = {}
    machine.allowed = lambda: [found(state), found(coming)]
    store = machine.store()
    with controls.applied(store, control):
        await _until(lambda: store.open(SPEC, index))
        for step in history(rng, STEPS):
            coming = after(state, step)
            await _until(lambda step=step: perform(store, step))
            state = coming
        machine.cut()
        await store.aclose()
        machine.cut()


async def _until(attempt: Callable) -> None:
    for _ in range(200):
        try:
            await attempt()
        except StoreUnavailable:
            continue
        except WriteConflict:
            return
        return
    raise AssertionError("writes did not resume in 200 attempts")


async def tried(
    run: Callable, folder: Path, seed: int, histories: int, disk: Callable[[Random], PowerDisk], control: str | None
) -> Lost:
    """Run `histories` histories on new disks and look at what their power cuts left."""
    lost = Lost(histories=histories)
    for number in range(histories):
        # one generator for what is asked, one for the disk: they are asked from different threads
        rng, fate = Random(seed + number), Random(-seed - number)
        machine = Machine(folder / str(number), disk(fate), set(fate.sample(range(1, 900), 5)))
        machine.folder.mkdir()
        await run(machine, rng, control)
        for nth, cut in enumerate(machine.cuts):
            lost.judge(cut, f"seed {seed + number}, cut {nth}")
        lost.failures += machine.disk.failed
        shutil.rmtree(machine.folder)
    return lost


def failing_syncs(rng: Random) -> PowerDisk:
    return PowerDisk(rng, at_chance(0.15, "sync", rng, broken))


class RetriesSyncs(PowerDisk):
    """Takes the kernel's word when it asks a second time after a failed sync."""

    def lost(self, path: str) -> None:
        super().lost(path)
        self.synced(path)

    def ask(self, kind, path):  # noqa: ANN001, ANN201
        fault = super().ask(kind, path)
        if fault is not None:
            self.lost(path)
        return None


async def test_an_acknowledged_write_survives_a_power_cut(
    tmp_path: Path, seed: int, many: Callable[[int], int], tally: Callable[[str], None]
) -> None:
    came = await tried(concurrent_history, tmp_path, seed, many(200), PowerDisk, None)
    tally(str(came))
    assert (came.lost, came.corrupt) == (0, 0), came.first


async def test_a_failed_sync_is_never_reported_as_success_later(
    tmp_path: Path, seed: int, many: Callable[[int], int], tally: Callable[[str], None]
) -> None:
    came = await tried(stubborn_history, tmp_path, seed, many(200), failing_syncs, None)
    tally(str(came))
    assert came.failures > came.histories
    assert (came.lost, came.corrupt) == (0, 0), came.first


async def test_control_without_a_sync_at_each_commit_a_power_cut_loses_writes(
    tmp_path: Path, seed: int, many: Callable[[int], int], tally: Callable[[str], None]
) -> None:
    control = "synchronous = normal"
    came = await tried(concurrent_history, tmp_path, seed, many(20), PowerDisk, control)
    tally(str(came))
    assert came.lost


async def test_control_syncing_again_after_a_failed_sync_loses_writes(
    tmp_path: Path, seed: int, many: Callable[[int], int], tally: Callable[[str], None]
) -> None:
    came = await tried(
        stubborn_history, tmp_path, seed, many(20), lambda rng: RetriesSyncs(rng, failing_syncs(rng).plan), None
    )
    tally(str(came))
    assert came.lost + came.corrupt


@pytest.mark.parametrize("control", ["reopen first", "go on"])
async def test_control_xx(
    tmp_path: Path, seed: int, many: Callable[[int], int], tally: Callable[[str], None], control: str
) -> None:
    came = await tried(stubborn_history, tmp_path, seed, many(100), failing_syncs, control)
    tally(str(came))
    assert came.lost
