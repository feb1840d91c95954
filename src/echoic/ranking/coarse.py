"""Cosines over very many rows: a signed byte an axis for all of them, and the nearest exactly.

Of a large scope every query reads every vector, and reading is what takes the time: bytes are a quarter of
it, and a processor multiplies 32 or 64 of them at once. Optional: numpy cannot, so it takes `simsimd` (the
extra "fast"); without it, and for smaller scopes, all cosines are exact.

What it is worth: `benchmarks/results/speed.json`, at 100,000 memories.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Partition

Floats = NDArray[np.float32]

LEAST_ROWS: Final = 30_000
"""Below, reading everything takes little, and the bytes are not worth being kept."""
EXACT: Final = 500
"""How many of the nearest are looked at as they are: far more than are ever looked at closely."""

_KEY = "ranking.coarse"
_MOST = 127


class Coarse:
    """The vectors of one partition as bytes, each with its scale. Kept in the partition's scratch."""

    def __init__(self, dimensions: int) -> None:
        """Of no rows yet."""
        self._bytes = np.zeros((0, dimensions), np.int8)
        self._scales = np.zeros(0, np.float32)
        self._revision = 0

    @classmethod
    def of(cls, partition: Partition) -> Coarse | None:
        """Those of `partition`, brought up to date; None where they are not worth it, or cannot be had.

        The caller holds the partition's lock.
        """
        if partition.size < LEAST_ROWS or _simsimd() is None:
            return None
        kept = partition.scratch.get(_KEY)
        if kept is None or kept.dimensions != partition.vectors.shape[1]:
            kept = partition.scratch[_KEY] = cls(partition.vectors.shape[1])
        assert isinstance(kept, cls)
        kept.catch_up(partition)
        return kept

    @property
    def dimensions(self) -> int:
        """Of each vector."""
        return self._bytes.shape[1]

    def catch_up(self, partition: Partition) -> None:
        """Take in what was patched since the last time."""
        if self._revision == partition.revision:
            return
        if len(self._bytes) != partition.size:
            self._bytes = _grown(self._bytes, partition.size)
            self._scales = _grown(self._scales, partition.size)
        for number in np.flatnonzero(partition.patched > self._revision).tolist():
            rows = slice(number * SEGMENT_ROWS, (number + 1) * SEGMENT_ROWS)
            self._bytes[rows], self._scales[rows] = as_bytes(partition.vectors[rows])
        self._revision = partition.revision

    def cosines(self, vectors: Floats, vector: Floats) -> Floats:
        """[rows] Within 0.01 of the cosine of each of `vectors` and `vector`; of the nearest `EXACT`, it.

        Args:
            vectors: [rows, dimensions] those these bytes were made of.
            vector: [dimensions], unit length.
        """
        simsimd = _simsimd()
        assert simsimd is not None
        asked, scale = as_bytes(vector[None])
        products = np.asarray(simsimd.cdist(asked, self._bytes, "inner")).reshape(-1)
        cosines: Floats = products.astype(np.float32) * self._scales * scale
        near = np.flatnonzero(cosines >= np.partition(cosines, -EXACT)[-EXACT])  # equals all or none
        cosines[near] = np.vecdot(vectors[near], vector)
        return cosines

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return self._bytes.nbytes + self._scales.nbytes


def as_bytes(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """[n, dimensions] rounded to 127 steps of each one's largest axis, and [n] how long a step is."""
    largest = np.abs(vectors).max(axis=1)
    steps = np.divide(_MOST, largest, out=np.zeros_like(largest), where=largest > 0)
    rounded = np.round(vectors * steps[:, None]).astype(np.int8)
    return rounded, largest / np.float32(_MOST)


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


__all__ = ["EXACT", "LEAST_ROWS", "Coarse", "as_bytes"]
