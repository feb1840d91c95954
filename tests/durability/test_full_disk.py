"""A full or broken disk: a typed error, nothing half there, reads go on, writes resume when it is well again."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest

from durability import controls
from durability.consistency import check_consistent
from durability.workload import (
    SCOPES,
    SPEC,
    Erase,
    State,
    Step,
    after,
    found,
    history,
    index,
    perform,
    read_back,
    vector,
)
from echoic.errors import StoreFull, StoreUnavailable, WriteConflict
from echoic.stores.base import Drop, Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import writer as sqlite_writer
from echoic.types import Scope
from echoic_loopback.disks import Disk, Fault, Operation, Plan, broken, full, nothing
from scale import many, some

STEPS = 8
FAULTS: dict[str, tuple[Fault, type[StoreUnavailable]]] = {
    "full": (full, StoreFull),
    "broken": (broken, StoreUnavailable),
}


def from_the(number: int, fault: Fault) -> Plan:
    """From this operation on; a full disk can still sync, shorten and delete."""

    def plan(operation: Operation) -> Fault | None:
        spared = fault is full and operation.kind != "write"
        return fault if operation.number >= number and not spared else None

    return plan


@dataclass(slots=True)
class Patient:
    """A store on a disk that fails, and what it must hold."""

    disk: Disk
    store: SQLiteStore
    error: type[StoreUnavailable]
    state: State
    refused: int = 0
    operations: int = 0
    """Of the disk, until the store was closed."""

    async def ask(self, step: Step) -> None:
        """`step`, again after the disk was healed if it failed."""
        try:
            await self._attempt(step)
        except StoreUnavailable as error:
            assert type(error) is self.error, error
            self.refused += 1
            await self._suffers(step)
            self.disk.plan = nothing
            await self._attempt(step)
            health = await self.store.check()
            assert (health["writable"], health["failure"]) == (True, None)
        self.state = after(self.state, step)

    async def _attempt(self, step: Step) -> None:
        try:
            done = await perform(self.store, step)
        except WriteConflict:
            assert after(self.state, step) == self.state
            return
        assert done is None or done.verified

    async def _suffers(self, step: Step) -> None:
        allowed = [found(self.state)]
        if isinstance(step, Erase):  # it may be gone already, but nobody was told so
            allowed.append(found(after(self.state, step)))
        assert await read_back(self.store) in allowed
        health = await self.store.check()
        assert health["writable"] is False
        assert health["failure"]
        with pytest.raises(self.error):
            await self.store.write(SCOPES[0], [Put(record=Record(kind="profile", id="x", data={}))])
        assert await read_back(self.store) in allowed


@pytest.fixture(autouse=True)
def often_checkpointed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short history meets checkpoints."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 30)


@lru_cache(maxsize=1)
def steps_of(seed: int) -> tuple[Step, ...]:
    """A history with both kinds of erasure in it."""
    steps = list(history(Random(seed), STEPS - 2, erasing=False))
    drops = tuple(change for step in steps[:3] for change in _drops(step))[:3]
    return (*steps[:4], Erase(steps[0].scope, drops), *steps[4:], Erase(steps[1].scope, None))


def _drops(step: Step) -> Iterator:
    assert not isinstance(step, Erase)
    for change in step.changes:
        if isinstance(change, Put):
            yield Drop(kind=change.record.kind, id=change.record.id)


async def live_through(folder: Path, seed: int, plan: Plan, error: type[StoreUnavailable]) -> Patient:
    """A whole history on a disk with this plan."""
    disk = Disk(plan)
    patient = Patient(disk, SQLiteStore(folder / "a.db", vfs=disk.name), error, {})
    try:
        await patient.store.open(SPEC, index)
    except StoreUnavailable as refusal:
        assert type(refusal) is error
        patient.refused += 1
        disk.plan = nothing
        await patient.store.open(SPEC, index)
    for step in steps_of(seed):
        await patient.ask(step)
    disk.plan = nothing
    patient.operations = disk.operations
    await patient.store.aclose()
    return patient


@pytest.mark.parametrize("kind", FAULTS)
async def test_a_disk_that_fails_from_any_operation_on_is_survived(
    scratch: Path, seed: int, tally: Callable[[str], None], kind: str
) -> None:
    fault, error = FAULTS[kind]
    points = refused = 0
    for history_seed in range(seed, seed + many(1)):
        (scratch / "sound").mkdir()
        sound = await live_through(scratch / "sound", history_seed, nothing, error)
        shutil.rmtree(scratch / "sound")
        for number in some(range(1, sound.operations + 1)):
            folder = scratch / str(number)
            folder.mkdir()
            patient = await live_through(folder, history_seed, from_the(number, fault), error)
            held = check_consistent(folder / "a.db")
            assert held == found(patient.state), f"seed {history_seed}, {kind} from {number}"
            shutil.rmtree(folder)
            points, refused = points + 1, refused + patient.refused
    tally(f"failed from {points} operations on, {refused} refusals, 0 lost, 0 half")
    assert refused >= points * 0.9


async def test_control_swallowing_the_error_loses_what_was_acknowledged(
    scratch: Path, seed: int, tally: Callable[[str], None]
) -> None:
    lost = 0
    for number in range(60, 120, 5):
        folder = scratch / str(number)
        folder.mkdir()
        disk = Disk()
        store = SQLiteStore(folder / "a.db", vfs=disk.name)
        state: State = {}
        with controls.applied(store, "swallow errors"):
            await store.open(SPEC, index)
            disk.plan = from_the(number, full)
            for step in history(Random(seed), STEPS, erasing=False):
                try:
                    await perform(store, step)
                except WriteConflict:
                    continue
                state = after(state, step)
            disk.plan = nothing
            await store.aclose()
        lost += check_consistent(folder / "a.db") != found(state)
    tally(f"{lost} of 12 lost acknowledged writes")
    assert lost


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 2 MiB."""
    where = tmp_path / "small"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"may not mount a small file system: {mounted.stderr.strip()}")
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


async def test_a_file_system_without_space_refuses_writes_and_resumes_when_space_returns(
    small_disk: Path, seed: int, tally: Callable[[str], None]
) -> None:
    store = SQLiteStore(small_disk / "a.db")
    await store.open(SPEC, index)
    scope, rng = Scope("acme", "ana"), Random(seed)
    kept = 0
    refused: StoreUnavailable | None = None
    while refused is None:
        try:
            await store.write(scope, [_long_memory(kept, rng)])
            kept += 1
        except StoreUnavailable as error:
            refused = error
    assert type(refused) is StoreFull
    with pytest.raises(OSError, match="No space"):
        fill(small_disk / "ballast")  # what the failed write gave back is taken, too
    assert len(await store.scan(scope, "memory", limit=10_000)) == kept
    assert (await store.load(scope)).size >= kept
    health = await store.check()
    assert health["writable"] is False
    for _ in range(3):
        with pytest.raises(StoreFull):
            await store.write(scope, [_long_memory(kept, rng)])
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    await asyncio.gather(*(store.write(scope, [_long_memory(kept + i, rng)]) for i in range(20)))
    health = await store.check()
    assert (health["writable"], health["failure"]) == (True, None)
    assert len(await store.scan(scope, "memory", limit=10_000)) == kept + 20
    await store.aclose()
    assert len(check_consistent(small_disk / "a.db")[scope]) == kept + 20
    tally(f"full after {kept} memories, {kept + 20} after space returned")


def fill(path: Path) -> None:
    """Write until there is no space left."""
    with path.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))


def _long_memory(number: int, rng: Random) -> Put:
    text = " ".join(f"word{rng.randrange(10_000)}" for _ in range(100))
    return Put(record=Record(kind="memory", id=f"m{number}", data={"text": text, "v": str(vector(rng)[0])}))
