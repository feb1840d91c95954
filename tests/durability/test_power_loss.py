"""What was acknowledged survives a power cut, with unsynced writes torn, reordered and lost, and failing syncs."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from durability import controls
from durability.machines import Cut, Machine, WriterAlone, failing_syncs
from durability.programs import grouped
from durability.workload import SPEC, State, Step, after, history, index, perform
from echoic.errors import StoreCorrupt, StoreUnavailable, WriteConflict
from echoic.stores.sqlite import writer as sqlite_writer
from echoic_loopback.disks import Fault, Kind, PowerDisk
from scale import many

STEPS = 14
CONTROLLED = 20
"""Tries of a planted fault: how many it takes to find one has nothing to do with the scale of a run."""
History = Callable[[Machine, Random, str | None], Awaitable[None]]


@dataclass(slots=True)
class Outcome:
    """What became of the cuts of many histories."""

    histories: int
    cuts: int = 0
    failures: int = 0
    """Operations that failed before the power was cut."""
    wrong: int = 0
    """Cuts that left something else than what was acknowledged: less, or what was reported as failed."""
    corrupt: int = 0
    unborn: int = 0
    """Cuts during the creation, several syncs of which had failed, that left what is no database."""
    first: str = ""

    def judge(self, cut: Cut, name: str) -> None:
        """Look at what a cut left."""
        self.cuts += 1
        try:
            survivor = cut.survivor()
        except (AssertionError, StoreCorrupt, apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError):
            if not cut.born:
                self.unborn += 1
                return
            self.corrupt += 1
            self.first = self.first or name
            return
        if survivor is None:
            self.wrong += 1
            self.first = self.first or name

    def __str__(self) -> str:
        return (
            f"{self.histories} histories, {self.failures} failed operations, {self.cuts} power cuts: "
            f"{self.wrong} wrong, {self.corrupt} corrupt, {self.unborn} unborn"
        )


@pytest.fixture(autouse=True)
def often_checkpointed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short histories meet many checkpoints."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 30)


async def concurrent_history(machine: Machine, rng: Random, control: str | None) -> None:
    """Writes, several at a time, on a disk that does as it is told."""
    steps = list(history(rng, STEPS))
    states: list[State] = [{}]
    for step in steps:
        states.append(after(states[-1], step))
    begun = done = 0
    machine.allowed = lambda: states[done : begun + 1]

    async def ask(step: Step) -> None:
        nonlocal begun, done
        begun += 1
        with contextlib.suppress(WriteConflict):
            await perform(store, step)
        done += 1

    store = machine.store()
    with controls.applied(store, control):
        await store.open(SPEC, index)
        machine.born = True
        for group in grouped(rng, steps):
            await asyncio.gather(*(ask(step) for _, step in group))
        machine.cut()
        await store.aclose()
        machine.cut()


async def stubborn_history(machine: Machine, rng: Random, control: str | None) -> None:
    """Each step again until it succeeds, on a disk that fails."""
    await _stubborn(machine, machine.store(), rng, control)


async def stubborn_history_alone(machine: Machine, rng: Random, control: str | None) -> None:
    """The same without a reader in the process."""
    await _stubborn(machine, WriterAlone(machine.store()), rng, control)


async def _stubborn(machine: Machine, store: Any, rng: Random, control: str | None) -> None:
    state: State = {}
    coming: State = {}
    machine.allowed = lambda: [state, coming]
    with controls.applied(store, control):
        await _until(store.open, SPEC, index)
        machine.born = True
        for step in history(rng, STEPS):
            coming = after(state, step)
            await _until(perform, store, step)
            state = coming
        machine.cut()
        await store.aclose()
        machine.cut()


async def _until(attempt: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
    for _ in range(200):
        with contextlib.suppress(StoreUnavailable, WriteConflict):
            try:
                await attempt(*arguments)
            except WriteConflict:
                return
            return
    raise AssertionError("writes did not resume in 200 attempts")


async def tried(
    run: History,
    folder: Path,
    seed: int,
    histories: int,
    disk: Callable[[Random], PowerDisk],
    control: str | None,
) -> Outcome:
    """Run `histories` histories on new disks and look at what their power cuts left."""
    outcome = Outcome(histories)
    for number in range(histories):
        # one generator for what is asked, one for the disk: they are asked from different threads
        rng, fate = Random(seed + number), Random(-seed - number)
        machine = Machine(folder / str(number), disk(fate), set(fate.sample(range(1, 450), 4)))
        machine.folder.mkdir()
        await run(machine, rng, control)
        for nth, cut in enumerate(machine.cuts):
            outcome.judge(cut, f"seed {seed + number}, cut {nth}")
        outcome.failures += machine.disk.failed
        shutil.rmtree(machine.folder)
    return outcome


async def until_wrong(
    run: History,
    folder: Path,
    seed: int,
    histories: int,
    disk: Callable[[Random], PowerDisk],
    control: str | None,
) -> Outcome:
    """`tried` until something goes wrong, ten times at most: how threads meet is not in the seed."""
    for attempt in range(10):
        (folder / f"attempt {attempt}").mkdir()
        came = await tried(
            run, folder / f"attempt {attempt}", seed + 1000 * attempt, histories, disk, control
        )
        if came.wrong:
            break
    return came


class RetriesSyncs(PowerDisk):
    """Takes the kernel's word when it asks a second time after a failed sync."""

    def ask(self, kind: Kind, path: str) -> Fault | None:
        if super().ask(kind, path) is not None:
            self.lost(path)
        return None


def retrying_syncs(rng: Random) -> PowerDisk:
    return RetriesSyncs(rng, failing_syncs(rng).plan)


async def test_an_acknowledged_write_survives_a_power_cut(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    came = await tried(concurrent_history, scratch, seed, many(200), PowerDisk, None)
    tally(str(came))
    assert (came.wrong, came.corrupt) == (0, 0), came.first


async def test_a_failed_sync_is_never_reported_as_success_later(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    for run in (stubborn_history, stubborn_history_alone):
        came = await tried(run, scratch, seed, many(110, least=20), failing_syncs, None)
        tally(str(came))
        assert came.failures > came.histories
        assert (came.wrong, came.corrupt) == (0, 0), came.first


async def test_control_without_a_sync_at_each_commit_a_power_cut_loses_writes(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    control = "synchronous = normal"
    came = await tried(concurrent_history, scratch, seed, CONTROLLED, PowerDisk, control)
    tally(str(came))
    assert came.wrong


async def test_control_syncing_again_after_a_failed_sync_loses_writes(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    came = await until_wrong(stubborn_history, scratch, seed, CONTROLLED, retrying_syncs, None)
    tally(str(came))
    assert came.wrong


async def test_control_opening_anew_before_the_log_is_emptied_brings_back_what_had_failed(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    came = await until_wrong(stubborn_history_alone, scratch, seed, CONTROLLED, failing_syncs, "reopen first")
    tally(str(came))
    assert came.wrong
