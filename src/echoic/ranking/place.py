"""One partition as a query sees it, and what several of them count together. Matches words; scores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Partition
from echoic.ranking.layout import Floats, Layout
from echoic.ranking.lexicon import Lexicon

Terms = NDArray[np.uint32]
"""Stems as numbers, each once."""

_CELLS = 1 << 21  # of a matrix of terms by slots: 16 MB


@dataclass(frozen=True, slots=True)
class Place:
    """One partition. Only what its rows say counts; whose they are does not matter here."""

    partition: Partition
    layout: Layout
    lexicon: Lexicon
    eligible: NDArray[np.bool_]
    """[rows] Which rows this query may find."""

    @classmethod
    def of(cls, partition: Partition, *, include_past: bool) -> Place:
        """`partition` as it stands. The caller holds its lock for as long as the place is used."""
        layout = Layout.of(partition)
        eligible = layout.findable if include_past else layout.findable & ~layout.past
        return cls(partition, layout, Lexicon.of(partition), eligible)

    def counts(self, terms: Terms) -> Floats:
        """[terms, slots] How often each row that may be found says each term."""
        rows, said, counts = self.partition.postings
        # A table of the low 16 bits passes over nearly all postings in one go; the rest is compared in full.
        table = np.zeros(1 << 16, np.bool_)
        table[terms.astype(np.uint16)] = True
        maybe = np.flatnonzero(table[said.astype(np.uint16)])
        order = np.argsort(terms)
        which = np.searchsorted(terms, said[maybe], sorter=order)
        which = order[np.minimum(which, len(terms) - 1)]
        keep = (terms[which] == said[maybe]) & self.eligible[rows[maybe]]
        which, maybe = which[keep], maybe[keep]
        cells = which * self.layout.width + self.layout.slot_of[rows[maybe]]
        found = np.bincount(cells, counts[maybe], len(terms) * self.layout.width)
        return found.reshape(len(terms), self.layout.width)


class Statistics:
    """What is counted over all rows that may be found, of all places together."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.rows = sum(int(place.eligible.sum()) for place in places)
        """How many."""
        self.mean_length = self._mean([place.layout.lengths for place in places], places)
        """Content words of a row."""
        self.mean_window = self._mean([place.layout.window_lengths for place in places], places)
        """Likewise, neighbours weighted in."""

    def _mean(self, lengths: Sequence[Floats], places: Sequence[Place]) -> float:
        pairs = zip(lengths, places, strict=True)
        total = sum(float(by_slot[place.layout.slot_of[place.eligible]].sum()) for by_slot, place in pairs)
        return max(total / max(self.rows, 1), 1e-9)

    def idf(self, rows_saying: NDArray[np.int64]) -> Floats:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene, of terms that so many rows say."""
        idf: Floats = np.log(1 + (self.rows - rows_saying + 0.5) / (rows_saying + 0.5))
        return idf


def groups(terms: Terms, places: Sequence[Place]) -> Iterator[slice]:
    """`terms` in slices whose matrices stay small."""
    widest = max((place.layout.width for place in places), default=1)
    size = max(1, _CELLS // widest)
    for first in range(0, len(terms), size):
        yield slice(first, first + size)


def rows_saying(matrices: Sequence[Floats]) -> NDArray[np.int64]:
    """[terms] How many rows of all places say each term, from what `Place.counts` gave for each place."""
    total = np.zeros(len(matrices[0]) if matrices else 0, np.int64)
    for counts in matrices:
        total += np.count_nonzero(counts, axis=1)
    return total


__all__ = ["Place", "Statistics", "Terms", "groups", "rows_saying"]
