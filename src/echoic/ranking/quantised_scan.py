"""Cosines over very many rows: of 16 bits an axis, or of a signed byte and the nearest exactly.

Of a large scope every query reads every vector, and reading is what takes the time. Floats of 16 bits are
half of it: the compiled kernel multiplies them, and cosines are right to 0.0001. Bytes are a quarter: where
there is no kernel, `simsimd` (the extra "fast") multiplies these. Both are optional: without them, for
smaller scopes, and until the first queries have made what is read, a few rows each, all cosines are exact.
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
"""Below, reading everything takes little, and the bytes are not worth being kept."""
EXACT: Final = 256
"""How many of the nearest are looked at as they are: far more than are ever looked at closely."""
QUERIES: Final = 16
"""About so many queries share the making of the bytes, 0.5 ms a thousand rows: none waits for all of it."""
LEAST_MADE: Final = 32
"""Segments that a query takes in at least: as many as a call writes are always current."""

_AT_ONCE: Final = 8
"""Segments made in one go: what fits into a processor's own cache."""
_KEY = "ranking.coarse"
_MOST = 127


class Coarse:
    """The vectors of one partition in fewer bits. Kept in the partition's scratch."""

    def __init__(self, dimensions: int) -> None:
        """Of no rows yet."""
        self.halved = kernel.multiplies()
        """Whether these are floats of 16 bits; else bytes, each row with its scale."""
        self._rows: NDArray[Any] = np.zeros((0, dimensions), np.float16 if self.halved else np.int8)
        self._scales = np.zeros(0, np.float32)
        self._made = np.zeros(0, np.int64)  # by segment: of which revision its bytes are

    @classmethod
    def of(cls, partition: Partition) -> Coarse | None:
        """Those of `partition`, current; None where they are not worth it, cannot be had, or are not ready.

        The caller holds the partition's lock.
        """
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
        """Of each vector."""
        return int(self._rows.shape[1])

    def catch_up(self, partition: Partition, segments: int) -> bool:
        """Take in what was patched since the last time, `segments` of it at most; whether that was all."""
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
        """[rows] The cosine of each of `vectors` and `vector`, right to 0.0001.

        Of bytes to 0.01, and of the nearest `EXACT` exactly.

        Args:
            vectors: [rows, dimensions] those these rows were made of.
            vector: [dimensions], unit length.
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
        near = np.flatnonzero(cosines >= np.partition(cosines, -EXACT)[-EXACT])  # equals all or none
        cosines[near] = np.vecdot(vectors[near], vector)
        return cosines

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return self._rows.nbytes + self._scales.nbytes + self._made.nbytes


def as_bytes(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """[n, dimensions] rounded to 127 steps of each one's largest axis, and [n] how long a step is."""
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    steps = np.divide(_MOST, largest, out=np.zeros_like(largest), where=largest > 0)
    scaled = vectors * steps[:, None]
    return np.rint(scaled, out=scaled).astype(np.int8), largest / np.float32(_MOST)


def _stretches(numbers: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """First and end of runs of consecutive numbers among `numbers`, which ascend; `_AT_ONCE` at most."""
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
