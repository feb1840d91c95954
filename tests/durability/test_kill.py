"""An acknowledged write survives `kill -9` at any instant, and nothing is ever half there."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from durability.children import KILLED, Child, Zygote, traced
from durability.consistency import check_consistent
from durability.programs import lines
from durability.workload import SPEC, Found, after, found, history, index
from echoic.stores.sqlite import SQLiteStore
from scale import many

STEPS = 24
CONTROLLED = 40
"""Tries of a planted fault: how many it takes to find one has nothing to do with the scale of a run."""
SYSTEM_CALLS = ("pwrite64", "fdatasync", "ftruncate", "unlink")


def states(seed: int) -> list[Found]:
    """What the history of `seed` leaves behind after each of its steps."""
    state: dict = {}
    left = [found(state)]
    for step in history(Random(seed), STEPS):
        state = after(state, step)
        left.append(found(state))
    return left


def verdict(folder: Path, expected: list[Found]) -> str:
    """What became of a file whose writer was killed: "lost", "half" or "sound"."""
    log = lines(folder / "log")
    begun = sum(line[0] == "begun" for line in log)
    done = sum(line[0] == "done" for line in log)
    try:
        held = check_consistent(folder / "a.db") if (folder / "a.db").exists() else {}
    except AssertionError:
        return "half"
    except Exception as error:
        if done == 0 and "no such table" in str(error):  # killed before it was a store at all
            return "sound"
        raise
    if held in expected[done : begun + 1]:
        return "sound"
    return "lost" if held in expected[:done] else "half"


async def opens_and_writes(path: Path) -> bool:
    """Whether the store comes back to life."""
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    health = await store.check()
    await store.aclose()
    return bool(health["writable"])


@pytest.fixture
def folders(scratch: Path) -> Iterator[Callable[[], Path]]:
    """An empty folder at a time."""
    folder = scratch / "killed"

    def empty() -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    return empty


def arguments(folder: Path, seed: int, **more: object) -> dict:
    return {"path": str(folder / "a.db"), "log": str(folder / "log"), "seed": seed, "steps": STEPS, **more}


def spread(total: int, points: int) -> list[int]:
    """`points` numbers from 1 to `total`, or all of them."""
    if points <= 1:
        return [total // 2] if points > 0 else []
    if points >= total:
        return list(range(1, total + 1))
    return sorted({1 + round(i * (total - 1) / (points - 1)) for i in range(points)})


class Outcomes:
    """Counts what became of files, and fails at the first that did not survive."""

    def __init__(self, zygote: Zygote, folders: Callable[[], Path]) -> None:
        self.zygote, self.folders = zygote, folders
        self.survived = 0
        self.ran_through = 0

    def begin(self, seed: int) -> None:
        """From now on with this history."""
        self.seed, self.expected = seed, states(seed)

    def start(self, folder: Path, **more: object) -> Child:
        """A child that performs the history."""
        return self.zygote.start("write_history", **arguments(folder, self.seed, **more))

    def take(self, folder: Path, code: int, point: object) -> None:
        result = verdict(folder, self.expected)
        assert result == "sound", f"{result} after a kill at {point}, seed {self.seed}"
        if code == KILLED:
            self.survived += 1
        else:  # groups of writes form by chance, so the last calls of one run are missing in another
            assert code == 0, (code, point)
            self.ran_through += 1
        if self.survived % 8 == 1:
            assert asyncio.run(opens_and_writes(folder / "a.db"))
            check_consistent(folder / "a.db")

    def __str__(self) -> str:
        return f"{self.survived} killed, 0 lost, 0 half; {self.ran_through} ended before their point came"


@pytest.fixture
def outcomes(zygote: Zygote, folders: Callable[[], Path]) -> Outcomes:
    return Outcomes(zygote, folders)


@pytest.mark.usefixtures("strace")
def test_an_acknowledged_write_survives_a_kill_at_any_system_call(
    outcomes: Outcomes, seed: int, tally: Callable[[str], None]
) -> None:
    points = {call: many(45, least=11) for call in SYSTEM_CALLS}
    calls = 0
    while any(left > 0 for left in points.values()):  # with another history once all points of one are taken
        outcomes.begin(seed)
        seed += 1
        folder = outcomes.folders()
        trace = ["-e", f"trace={','.join(SYSTEM_CALLS)}"]
        assert traced(outcomes.start(folder), trace, folder / "t") == 0
        made = re.findall(r"^\d+ +(\w+)\(", (folder / "t").read_text(), re.MULTILINE)
        calls += len(made)
        for call in SYSTEM_CALLS:
            assert call in made, f"the store makes no {call} any more: trace what it makes instead"
            for number in spread(made.count(call), points[call]):
                folder = outcomes.folders()
                inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
                outcomes.take(
                    folder, traced(outcomes.start(folder), inject, folder / "t"), f"{call} {number}"
                )
            points[call] -= max(made.count(call), many(45, least=11) // 3)  # there are few of some calls
    assert outcomes.survived > 4 * outcomes.ran_through
    tally(f"{outcomes}; of {calls} system calls")


def test_an_acknowledged_write_survives_a_kill_in_the_middle_of_any_operation_on_the_disk(
    outcomes: Outcomes, seed: int, tally: Callable[[str], None]
) -> None:
    left, operations = many(110, least=24), 0
    while left > 0:  # with another history once all points of one are taken
        outcomes.begin(seed)
        seed += 1
        folder = outcomes.folders()
        assert outcomes.start(folder, kill_at=1 << 30).go().wait() == 0
        total = int(lines(folder / "log")[-1][1])
        for number in spread(total, left):
            folder = outcomes.folders()
            outcomes.take(folder, outcomes.start(folder, kill_at=number).go().wait(), f"operation {number}")
        left -= total
        operations += total
    assert outcomes.survived > 4 * outcomes.ran_through
    tally(f"{outcomes}; of {operations} operations")


def test_an_acknowledged_write_survives_a_kill_at_any_moment(
    outcomes: Outcomes, seed: int, tally: Callable[[str], None]
) -> None:
    rng = Random(seed)
    outcomes.begin(seed)
    for number in range(many(40, least=8)):
        folder = outcomes.folders()
        child = outcomes.start(folder).go()
        time.sleep(rng.uniform(0, 0.09))
        outcomes.take(folder, child.kill(), f"moment {number}")
    assert outcomes.survived
    tally(str(outcomes))


def test_control_acknowledging_before_the_commit_loses_writes(
    zygote: Zygote, folders: Callable[[], Path], seed: int, tally: Callable
) -> None:
    expected = states(seed)
    came: list[str] = []
    for number in spread(600, CONTROLLED):
        folder = folders()
        zygote.run("write_history", **arguments(folder, seed, kill_at=number, control="acknowledge first"))
        came.append(verdict(folder, expected))
    assert "lost" in came
    tally(f"{came.count('lost')} of {len(came)} kills lost an acknowledged write")


def test_control_committing_in_the_middle_of_a_write_leaves_halves(
    zygote: Zygote, folders: Callable[[], Path], seed: int, tally: Callable
) -> None:
    expected = states(seed)
    came: list[str] = []
    for number in spread(600, CONTROLLED):
        folder = folders()
        zygote.run("write_history", **arguments(folder, seed, kill_at=number, control="two transactions"))
        came.append(verdict(folder, expected))
    assert "half" in came
    tally(f"{came.count('half')} of {len(came)} kills left half a write")
