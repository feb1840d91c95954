"""Quantised scan: cosines over many rows, from vectors of fewer bits.

A query reads every vector of a scope, and in a large scope memory bandwidth takes most of the time. With the
compiled kernel, vectors are 16-bit floats (half the bytes), and cosines are right to 0.0001. Without it,
`simsimd` (the extra "fast") multiplies signed bytes (a quarter), and the nearest rows are computed exactly.
Both are optional. Cosines are exact without them, in scopes below `LEAST_ROWS`, and until the first queries
have quantised the vectors, a few segments each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Partition
from echoic.ranking import kernel

Floats = NDArray[np.float32]

LEAST_ROWS: Final = 5_000
"""Smaller scopes are scanned exactly, which is fast enough."""
EXACT: Final = 256
"""How many of the nearest rows get an exact cosine after a scan of bytes: more than later steps use."""
QUERIES: Final = 16
"""Number of queries over which quantising is spread (0.5 ms per thousand rows)."""
LEAST_MADE: Final = 32
"""The least number of segments a query quantises: what one call writes is always current."""

_AT_ONCE: Final = 8
"""Segments quantised at once: what fits into a processor cache."""
_KEY = "ranking.coarse"
_MOST = 127


class Coarse:
    """The quantised vectors of one partition. Kept in the partition's `scratch`."""

    def __init__(self, dimensions: int) -> None:
        self.halved = kernel.multiplies()
        """Whether vectors are 16-bit floats; if not, bytes with a scale for each row."""
        self._rows: NDArray[Any] = np.zeros((0, dimensions), np.float16 if self.halved else np.int8)
        self._scales = np.zeros(0, np.float32)
        self._made = np.zeros(0, np.int64)  # by segment: the revision of its bytes

    @classmethod
    def of(cls, partition: Partition) -> Coarse | None:
        """The current vectors of `partition`; None if there are none yet. The caller holds its lock."""
        halved = kernel.multiplies()
        if partition.size < LEAST_ROWS or not (halved or _simsimd()):
            return None
        kept = partition.scratch.get(_KEY)
        if kept is None or (kept.dimensions, kept.halved) != (partition.vectors.shape[1], halved):
            kept = partition.scratch[_KEY] = cls(partition.vectors.shape[1])
        assert isinstance(kept, cls)
        segments = partition.size // SEGMENT_ROWS
        return kept if kept.catch_up(partition, max(LEAST_MADE, segments // QUERIES)) else None

    @property
    def dimensions(self) -> int:
        """The number of axes of a vector."""
        return int(self._rows.shape[1])

    def catch_up(self, partition: Partition, segments: int) -> bool:
        """Quantise at most `segments` segments that changed since the last call. True if none is left."""
        if len(self._rows) != partition.size:
            self._rows = _grown(self._rows, partition.size)
            self._scales = _grown(self._scales, partition.size)
            self._made = _grown(self._made, len(partition.patched))
        behind = np.flatnonzero(partition.patched > self._made)
        if not len(behind):
            return True
        now = behind[:segments]
        for first, end in _stretches(now):
            rows = slice(first * SEGMENT_ROWS, end * SEGMENT_ROWS)
            if self.halved:
                self._rows[rows] = partition.vectors[rows]
            else:
                self._rows[rows], self._scales[rows] = as_bytes(partition.vectors[rows])
        self._made[now] = partition.patched[now]
        return len(now) == len(behind)

    def cosines(self, vectors: Floats, vector: Floats) -> Floats:
        """[rows] The cosine of each row with the unit vector `vector`, right to 0.0001.

        With bytes, right to 0.01, and exact for the nearest `EXACT` rows. `vectors` are the exact [rows,
        dimensions].
        """
        if self.halved:
            assert kernel.compiled is not None
            found = np.empty(len(vectors), np.float32)
            kernel.compiled.cosines(self._rows, vector, found)
            return found
        simsimd = _simsimd()
        assert simsimd is not None
        asked, scale = as_bytes(vector[None])
        products = np.asarray(simsimd.cdist(asked, self._rows, "inner")).reshape(-1)
        cosines: Floats = products.astype(np.float32) * self._scales * scale
        near = np.flatnonzero(
            cosines >= np.partition(cosines, -EXACT)[-EXACT]
        )  # include all equal rows or none
        cosines[near] = np.vecdot(vectors[near], vector)
        return cosines

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._rows.nbytes + self._scales.nbytes + self._made.nbytes


def as_bytes(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantise to int8 [n, dimensions], with the scale of each row [n]: its largest axis has 127 steps."""
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    steps = np.divide(_MOST, largest, out=np.zeros_like(largest), where=largest > 0)
    scaled = vectors * steps[:, None]
    return np.rint(scaled, out=scaled).astype(np.int8), largest / np.float32(_MOST)


def _stretches(numbers: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """First and end of runs of consecutive numbers among the ascending `numbers`; at most `_AT_ONCE` each."""
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
        for start in range(0, len(run), _AT_ONCE):
            part = run[start : start + _AT_ONCE]
            yield int(part[0]), int(part[-1]) + 1


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array[:size]
    return grown


@cache
def _simsimd() -> ModuleType | None:
    try:
        import simsimd
    except ImportError:
        return None
    module: ModuleType = simsimd
    return module
