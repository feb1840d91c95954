"""One writer wins: of increments that expect a version none is lost, and their order is one that could have been."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from durability.children import Zygote
from durability.consistency import check_consistent
from durability.programs import SHARED, lines
from scale import many

TASKS = 4
PROCESSES = 3
VERBS = ("counted", "saw")


@dataclass(frozen=True, slots=True)
class Count:
    """What processes of tasks did that all counted with one counter."""

    total: int
    """The counter in the end."""
    increments: list[list[int]]
    """Total, start and end (monotonic ns) of each that was acknowledged."""
    reads: list[list[int]]
    """Total, start and end of each read."""


def count(zygote: Zygote, folder: Path, times: int, control: str | None) -> Count:
    """Let them count `times` times each."""
    children = [
        zygote.start(
            "count_up",
            path=str(folder / "a.db"),
            log=str(folder / f"log{number}"),
            name=f"process{number}",
            times=times,
            tasks=TASKS,
            control=control,
        )
        for number in range(PROCESSES)
    ]
    for child in children:
        child.go()
    assert [child.wait() for child in children] == [0] * PROCESSES
    held = check_consistent(folder / "a.db")[SHARED]["counter", "counter"]
    logs = [line for number in range(PROCESSES) for line in lines(folder / f"log{number}")]
    said = {verb: [[int(word) for word in line[2:]] for line in logs if line[0] == verb] for verb in VERBS}
    return Count(held.data["n"], said["counted"], said["saw"])


def out_of_order(increments: list[list[int]]) -> int:
    """How many increments ended before another began and yet came after it.

    Where none did, ordering them by their totals respects real time: the history is linearizable, every
    increment being a compare-and-set that saw the total just below its own.
    """
    wrong = 0
    latest_start = 0
    for _, began, ended in sorted(increments):
        wrong += ended < latest_start
        latest_start = max(latest_start, began)
    return wrong


def stale(increments: list[list[int]], reads: list[list[int]]) -> int:
    """How many reads missed an increment that was acknowledged before they began, or saw one not begun yet."""
    ends = sorted((ended, total) for total, _, ended in increments)
    begins = {total: began for total, began, _ in increments}
    reached = list(accumulate((total for _, total in ends), max))
    wrong = 0
    for total, began, ended in reads:
        before = bisect_left(ends, (began, 0))
        wrong += before > 0 and total < reached[before - 1]
        wrong += total > 0 and begins[total] > ended
    return wrong


def test_no_increment_is_lost_and_all_happens_in_an_order_of_real_time(
    zygote: Zygote, tmp_path: Path, tally: Callable[[str], None]
) -> None:
    times = many(30, least=8)
    came = count(zygote, tmp_path, times, None)
    made = len(came.increments)
    tally(
        f"{made} increments by {PROCESSES} processes of {TASKS} tasks, {len(came.reads)} reads: 0 lost or stale"
    )
    assert made == came.total == PROCESSES * TASKS * times
    assert sorted(total for total, _, _ in came.increments) == list(range(1, made + 1))
    assert out_of_order(came.increments) == 0
    assert stale(came.increments, came.reads) == 0
    assert len(came.reads) > made, "nobody was ever slower than another: this proves nothing"


def test_control_increments_that_expect_nothing_are_lost(
    zygote: Zygote, tmp_path: Path, tally: Callable[[str], None]
) -> None:
    times = 10
    came = count(zygote, tmp_path, times, "no expectations")
    made = len(came.increments)
    tally(f"{made - came.total} of {made} increments lost")
    assert came.total < made == PROCESSES * TASKS * times


def test_control_an_order_against_real_time_and_a_stale_read_are_seen() -> None:
    fine = [[1, 10, 20], [2, 15, 30], [3, 31, 40]]
    assert out_of_order(fine) == 0
    assert out_of_order([[1, 25, 30], [2, 10, 20]]) == 1
    assert stale(fine, [[0, 5, 9], [0, 19, 20], [1, 25, 26], [2, 31, 33], [3, 35, 36]]) == 0
    assert stale(fine, [[0, 21, 22], [1, 35, 36], [3, 5, 9]]) == 3
