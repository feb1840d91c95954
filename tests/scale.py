"""How many random histories a run draws, and which: the one place that every test of them asks.

`ECHOIC_TEST_SCALE` multiplies how many there are (1 is full scale, `make test` takes a tenth), and
`ECHOIC_TEST_SEED` chooses them. The seed is another one in each run, and is printed: set it to see a failure again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from random import Random
from typing import TypeVar

Point = TypeVar("Point", int, str)

os.environ.setdefault("ECHOIC_TEST_SCALE", "0.1")
# set before workers are started: they inherit it, and draw the same
os.environ.setdefault("ECHOIC_TEST_SEED", str(secrets.randbelow(10**9)))

SCALE = float(os.environ["ECHOIC_TEST_SCALE"])
SEED = int(os.environ["ECHOIC_TEST_SEED"])


def many(number: int, *, least: int = 1) -> int:
    """`number` at full scale, and as many as that makes at this run's; never fewer than `least`."""
    return max(least, round(number * SCALE))


def some(points: Sequence[Point], *, least: int = 1) -> list[Point]:
    """As many of `points` as this run's scale makes, drawn by its seed and in order; all of them at full scale."""
    return sorted(Random(SEED).sample(points, min(len(points), many(len(points), least=least))))
