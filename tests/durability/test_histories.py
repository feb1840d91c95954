"""Every operation is all or nothing, over lives that each end in a power cut and begin with what it left."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from durability import controls
from durability.machines import Machine
from durability.workload import SPEC, State, after, found, history, index, perform, read_back
from echoic.errors import WriteConflict
from echoic.stores.sqlite import writer as sqlite_writer
from echoic_loopback.disks import PowerDisk
from scale import many

LIVES = 6
STEPS = 14


async def live(machine: Machine, folder: Path | None, state: State, rng: Random, control: str | None) -> int:
    """Go on from `folder`, which holds `state`, until the power is cut; how many steps were done."""
    coming = state
    done = 0
    machine.allowed = lambda: [state, coming]
    store = machine.store(folder)
    with controls.applied(store, control):
        await store.open(SPEC, index)
        assert await read_back(store) == found(state)
        for step in history(rng, STEPS, state):
            coming = after(state, step)
            with contextlib.suppress(WriteConflict):
                await perform(store, step)
            state = coming
            done += 1
            if machine.cuts:
                break
        machine.cut()
        await store.aclose()
    return done


async def lives(folder: Path, seed: int, control: str | None = None) -> int:
    """One file through several lives; how many steps were done in them.

    Raises:
        AssertionError: a cut left something that is neither before nor after a step, or does not agree.
    """
    rng, fate = Random(seed), Random(-seed)
    state: State = {}
    remains: Path | None = None
    steps = 0
    for number in range(LIVES):
        machine = Machine(folder / str(number), PowerDisk(fate), {fate.randrange(1, 300)})
        machine.folder.mkdir(parents=True)
        steps += await live(machine, remains, state, rng, control)
        cut = machine.cuts[0]
        survivor = cut.survivor()
        assert survivor is not None, f"seed {seed}, life {number}: half a step"
        state, remains = survivor, cut.folder
    return steps


@pytest.fixture(autouse=True)
def often_checkpointed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short lives meet checkpoints."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 30)


async def test_every_operation_is_all_or_nothing_through_lives_that_end_at_random(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    histories = many(30)
    steps = 0
    for number in range(histories):
        steps += await lives(scratch / str(number), seed + number)
        shutil.rmtree(scratch / str(number))
    tally(f"{histories} files of {LIVES} lives, {steps} steps: each whole or not there")


async def test_control_a_write_in_two_transactions_is_found_in_half(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    halves = 0
    for number in range(20):
        try:
            await lives(scratch / str(number), seed + number, "two transactions")
        except AssertionError:
            halves += 1
    tally(f"{halves} of 20 files were found with half a step")
    assert halves
