"""What the stores share that search in their database: which segments the rows that were found lie in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS

REACH = 4
"""As far from a found row as the ranking's windows look."""


def segments_around(rows: Iterable[int]) -> list[int]:
    """The segments that hold `rows` and whatever a window around them reaches; the last may not be there."""
    found: set[int] = set()
    for row in rows:
        found.update(range(max(0, row - REACH) // SEGMENT_ROWS, (row + REACH) // SEGMENT_ROWS + 1))
    return sorted(found)


def origins(segments: Sequence[int]) -> NDArray[np.int64]:
    """[32 * len(segments)] The number in its scope of each row of `segments`, one behind the other."""
    starts = np.array(segments, np.int64) * SEGMENT_ROWS
    return (starts[:, None] + np.arange(SEGMENT_ROWS)).reshape(-1)


__all__ = ["REACH", "origins", "segments_around"]
