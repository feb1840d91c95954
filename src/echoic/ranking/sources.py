"""Which memories were learned from which turns of the same partition: they share a place among the hits.

A memory and the sentence it came from say the same. Kept apart they would take two places of ten, and count
twice in how rare a word is. Kept in the partition's scratch and renewed where a segment was patched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import MEMORY, SEGMENT_ROWS, TURN, Partition

Rows = NDArray[np.intp]
Floats = NDArray[np.floating]

_KEY = "ranking.sources"
_TABLE_BITS = 16


@dataclass(frozen=True, slots=True)
class Pairs:
    """A memory and one of its source turns each."""

    memories: Rows
    turns: Rows

    def __len__(self) -> int:
        return len(self.memories)

    def among(self, rows: NDArray[np.bool_]) -> Pairs:
        """Those of which both are among `rows`."""
        both = rows[self.memories] & rows[self.turns]
        return Pairs(self.memories[both], self.turns[both])


class Sources:
    """The ids of a partition's turns and those that its memories name, as numbers.

    Both are facets, words with a count of 0: a turn's own stands last among its words, and a memory's are all
    there may be. What else has no count is no turn's number.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._revision = 0
        self._own = np.zeros(0, np.uint32)
        self._naming = np.zeros(0, np.int32)
        self._named = np.zeros(0, np.uint32)

    @classmethod
    def of(cls, partition: Partition) -> Pairs:
        """Every memory of `partition` with each of its source turns. The caller holds the lock."""
        kept = partition.scratch.setdefault(_KEY, cls())
        assert isinstance(kept, cls)
        return kept.update(partition)

    def update(self, partition: Partition) -> Pairs:
        """Take in what was patched since the last time; what there is by now."""
        if self._revision != partition.revision:
            self._read(partition)
        return self._pairs()

    def _read(self, partition: Partition) -> None:
        patched = partition.patched > self._revision
        self._revision = partition.revision
        stale = np.repeat(patched, SEGMENT_ROWS)
        own = np.zeros(partition.size, np.uint32)
        own[: len(self._own)] = self._own
        own[stale] = 0
        rows, terms, counts = partition.postings_of(np.flatnonzero(patched).tolist())
        facets = np.flatnonzero(counts == 0)
        rows, terms = rows[facets], terms[facets]
        kinds = partition.rows["kind"][rows]
        said = kinds == TURN
        own[rows[said]] = terms[said]  # of several the last one counts
        kept, new = ~stale[self._naming], kinds == MEMORY
        self._own = own
        self._naming = np.concatenate([self._naming[kept], rows[new]])
        self._named = np.concatenate([self._named[kept], terms[new]])

    def _pairs(self) -> Pairs:
        if not len(self._named):
            return Pairs(np.zeros(0, np.intp), np.zeros(0, np.intp))
        # few turns are anybody's source: a table of the low bits finds them without sorting all
        low = np.uint32((1 << _TABLE_BITS) - 1)
        table = np.zeros(1 << _TABLE_BITS, np.bool_)
        table[self._named & low] = True
        turns = np.flatnonzero(table[self._own & low])
        turns = turns[np.argsort(self._own[turns], kind="stable")]
        numbers = self._own[turns]
        first = np.searchsorted(numbers, self._named, "left")
        there = first < len(numbers)
        there[there] = numbers[first[there]] == self._named[there]
        return Pairs(self._naming[there].astype(np.intp), turns[first[there]])

    @property
    def nbytes(self) -> int:
        """What this takes."""
        return self._own.nbytes + self._naming.nbytes + self._named.nbytes


@dataclass(frozen=True, slots=True)
class Shared:
    """Memories that were found, each with the best of its source turns: the place it shares."""

    memories: Rows
    homes: Rows

    @classmethod
    def of(cls, pairs: Pairs, fused: Floats) -> Shared:
        """Where each memory belongs by these scores; NaN was not found, and counts as the least.

        Of equals the later turn.
        """
        found = ~np.isnan(fused[pairs.memories])
        memories, turns = pairs.memories[found], pairs.turns[found]
        scores = np.nan_to_num(fused[turns], nan=-np.inf)
        order = np.lexsort((turns, scores, memories))
        memories, turns = memories[order], turns[order]
        last = np.ones(len(memories), np.bool_)
        last[:-1] = memories[1:] != memories[:-1]
        return cls(memories[last], turns[last])

    def __len__(self) -> int:
        return len(self.memories)

    def folded(self, fused: Floats) -> Floats:
        """`fused` by place: a turn has the best score of its own and its memories', and these have none."""
        by_place = fused.copy()
        np.fmax.at(by_place, self.homes, fused[self.memories])
        by_place[self.memories] = np.nan
        return by_place

    def within(self, rows: Rows) -> Shared:
        """Those that share a place with one of `rows`."""
        here = np.isin(self.homes, rows)
        return Shared(self.memories[here], self.homes[here])


__all__ = ["Pairs", "Shared", "Sources"]
