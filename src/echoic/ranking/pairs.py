"""Inner products of turns that lie near one another: from them follows how long a window's summed vector is.

Kept from one layout to the next: after an append only the products of the new turn are computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Partition

Rows = NDArray[np.intp]

_BLOCK = 256  # turns whose vectors are multiplied at a time: 400 KB stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Pairs:
    """The products of each turn with those that follow it in its session."""

    revision: int
    """Of the partition they were computed from."""
    partners: NDArray[np.int32]
    """[rows, reach] The row 1, 2, … turns later; -1: none."""
    products: NDArray[np.float32]
    """[rows, reach]; 0 where there is no partner or one of the two has no vector."""

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return self.partners.nbytes + self.products.nbytes

    @classmethod
    def of(cls, partition: Partition, turns: Rows, slots: Rows, reach: int, before: Pairs | None) -> Pairs:
        """Compute what is not known from `before`.

        Args:
            partition: whose vectors.
            turns: rows, session by session.
            slots: where each of them sits; `reach` slots or more are free between sessions.
            reach: how many turns later the last partner comes.
            before: as computed for an earlier revision of `partition`.
        """
        at = np.full(int(slots[-1]) + 1 + reach if len(slots) else 0, -1, np.int32)
        at[slots] = turns
        partners = np.full((partition.size, reach), -1, np.int32)
        partners[turns] = at[slots[:, None] + np.arange(1, reach + 1)]
        products = np.zeros(partners.shape, np.float32)
        stale = np.ones(len(turns), np.bool_)
        if before is not None:
            known = _known(partition, partners, turns, before)
            products[np.flatnonzero(known)] = before.products[np.flatnonzero(known)]
            stale = ~known[turns]
        for first in range(0, len(turns), _BLOCK):
            if stale[first : first + _BLOCK].any():
                ours = turns[first : first + _BLOCK]
                vectors = partition.vectors[turns[first : first + _BLOCK + reach]]
                products[ours] = _products(vectors, len(ours), reach)
        products[partners < 0] = 0
        return cls(partition.revision, partners, products)


def _known(
    partition: Partition, partners: NDArray[np.int32], turns: Rows, before: Pairs
) -> NDArray[np.bool_]:
    """[rows] Whose products hold from before: the same rows follow, and none of them was patched since."""
    size = min(len(before.partners), len(partners))
    known = np.zeros(len(partners), np.bool_)
    known[:size] = (partners[:size] == before.partners[:size]).all(axis=1)
    fresh = np.repeat(partition.patched > before.revision, SEGMENT_ROWS)[turns]
    touched = fresh.copy()
    for steps in range(1, partners.shape[1] + 1):
        touched[:-steps] |= fresh[steps:]
    known[turns[touched]] = False
    return known


def _products(vectors: NDArray[np.float32], count: int, reach: int) -> NDArray[np.float32]:
    """[count, reach] of the first `count` rows with the 1, 2, … rows that follow each."""
    found = np.zeros((count, reach), np.float32)
    for steps in range(1, reach + 1):
        later = vectors[steps : steps + count]
        found[: len(later), steps - 1] = np.vecdot(vectors[: len(later)], later)
    return found


__all__ = ["Pairs"]
