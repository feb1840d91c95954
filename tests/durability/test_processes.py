"""Several processes on one file, killed and started again at random: nothing is lost, torn or starved."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from durability import controls
from durability.children import KILLED, Child, Zygote
from durability.consistency import check_consistent
from durability.programs import SHARED, lines
from durability.workload import SPEC, history, index, perform
from echoic.errors import WriteConflict
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import writer as sqlite_writer
from echoic_loopback.disks import Disk, Fault, Operation
from scale import many

RUN_S = 5


@dataclass
class House:
    """Processes on one file."""

    folder: Path
    zygote: Zygote
    rng: Random
    living: dict[str, Child] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)

    def start(self, name: str) -> None:
        """A process by its name: the letters say what it does."""
        path, log = str(self.folder / "a.db"), str(self.folder / name)
        match name[:-1]:
            case "writer":
                child = self.zygote.start(
                    "keep_writing", path=path, log=log, name=name, seed=self.rng.random()
                )
            case "reader":
                child = self.zygote.start("keep_reading", path=path, log=log)
            case "eraser":
                child = self.zygote.start("keep_erasing", path=path, log=log, name=name)
            case _:
                child = self.zygote.start("keep_checkpointing", path=path)
        self.living[name] = child.go()

    def kill(self, name: str) -> None:
        """Kill it, if it did not die of an error of its own."""
        assert self.living.pop(name).kill() == KILLED, f"{name} met an error: see its traceback above"
        self.kills[name] += 1

    def live(self, seconds: float, worked: Callable[[], bool]) -> None:
        """Kill one or the other and start it anew, for a while and until they `worked`; at last all of them."""
        until = time.monotonic() + seconds
        while time.monotonic() < until or not worked():
            time.sleep(self.rng.uniform(0.05, 0.4))
            name = self.rng.choice(sorted(self.living))
            self.kill(name)
            self.start(name)
        for name in sorted(self.living):
            self.kill(name)


def allowed_versions(log: list[list[str]]) -> dict[str, set[int]]:
    """At which version each record may be: as last acknowledged, or as attempted since. 0: gone."""
    allowed: dict[str, set[int]] = {}
    began: tuple[str, int] | None = None
    for line in log:
        if line[0] == "begun":
            began = (line[1], int(line[2]))
            allowed.setdefault(line[1], {0}).add(began[1])
        elif line[0] == "done" and began is not None and began[0] == line[1]:
            allowed[line[1]] = {began[1]}
            began = None
    return allowed


def check_counter(logs: list[list[list[str]]], kills: int, total: int) -> int:
    """Every increment that was acknowledged is in `total`, once. How many were."""
    counted = [int(line[2]) for log in logs for line in log if line[0] == "counted" and line[1] == "common"]
    assert len(counted) == len(set(counted)), "two increments were told the same total"
    assert len(counted) <= total <= len(counted) + kills, (len(counted), total, kills)
    return len(counted)


@pytest.fixture
def house(zygote: Zygote, tmp_path: Path, seed: int) -> Iterator[House]:
    made = House(tmp_path, zygote, Random(seed))
    yield made
    for child in made.living.values():
        child.kill()


@pytest.mark.parametrize("writers", [2, 3])
def test_processes_that_are_killed_at_random_lose_and_tear_nothing(
    house: House, tmp_path: Path, seed: int, tally: Callable, writers: int
) -> None:
    names = [f"writer{number}" for number in range(writers)]
    for name in (*names, "reader0", "eraser0", "checkpointer0"):
        house.start(name)

    def count(name: str, what: str) -> int:
        return sum(line[0] == what for line in lines(tmp_path / name))

    def worked() -> bool:
        """Whether each of them came to something: a busy machine takes longer."""
        return all(count(name, "done") and count(name, "counted") for name in names) and bool(
            count("reader0", "read") and count("eraser0", "erased")
        )

    house.live(many(RUN_S), worked)
    logs = {name: lines(tmp_path / name) for name in names}
    held = check_consistent(tmp_path / "a.db")[SHARED]
    for name, log in logs.items():
        for record, versions in allowed_versions(log).items():
            kept = held.get(("memory", record))
            assert (kept.version if kept else 0) in versions, (seed, name, record)
    kills = sum(house.kills[name] for name in names)
    counter = held["counter", "common"].data["n"]
    counted = check_counter(list(logs.values()), kills, counter)
    waits = [float(line[2]) for log in logs.values() for line in log if line[0] == "done"]
    reads, erased = count("reader0", "read"), count("eraser0", "erased")
    tally(
        f"{len(waits) + counted} writes, {reads} reads, {erased} erasures, {sum(house.kills.values())} kills; "
        f"0 lost; longest wait for a write {max(waits) * 1000:.0f} ms"
    )
    assert min(reads, erased, counted) > 0


class Watch:
    """Sees every write, sync and truncation of a disk, and whether anybody had the turn at that moment."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock
        self.seen = 0
        self.without: list[Operation] = []

    def __call__(self, operation: Operation) -> Fault | None:
        self.seen += 1
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            self.without.append(operation)
        finally:
            os.close(descriptor)
        return None


async def watched(path: Path, seed: int, control: str | None) -> Watch:
    """A whole life of a store, from its creation to its closing, under the eyes of a watch."""
    watch = Watch(path.with_name(path.name + "-lock"))
    store = SQLiteStore(path, vfs=(disk := Disk(watch)).name)
    with controls.applied(store, control):
        await store.open(SPEC, index)
        for step in history(Random(seed), 60):
            with contextlib.suppress(WriteConflict):
                await perform(store, step)
        await store.aclose()
    assert disk.operations == watch.seen
    return watch


async def test_no_byte_is_written_out_of_turn(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, tally: Callable[[str], None]
) -> None:
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 30)
    watch = await watched(tmp_path / "a.db", seed, None)
    assert watch.without == []
    tally(f"{watch.seen} operations, all in turn")


async def test_control_without_the_lock_bytes_are_written_out_of_turn(tmp_path: Path, seed: int) -> None:
    watch = await watched(tmp_path / "a.db", seed, "no lock")
    assert len(watch.without) == watch.seen > 0


def locked_by_us(path: Path) -> bool:
    """Whether this process holds the lock on the database file that says it is in use."""
    inode = str(path.stat().st_ino)
    held = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(
        lock[1] == "POSIX" and lock[4] == str(os.getpid()) and lock[5].split(":")[2] == inode for lock in held
    )


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="this system does not list its locks")
async def test_an_erasure_keeps_the_locks_that_tell_others_the_file_is_in_use(
    tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    for step in history(Random(seed), 10, erasing=False):
        with contextlib.suppress(WriteConflict):
            await perform(store, step)
    assert locked_by_us(path)
    for scope in await store.scopes():
        assert (await store.erase(scope)).verified
    assert locked_by_us(path)
    path.read_bytes()  # control: this is what looking at the bytes in the obvious way does
    assert not locked_by_us(path)
    await store.aclose()
