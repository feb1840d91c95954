"""One partition as a query sees it, and what several count together. Matches words; scores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Partition
from echoic.ranking.layout import Eligible, Floats, Layout, Mask
from echoic.ranking.lexicon import Lexicon

Terms = NDArray[np.uint32]
"""Stems as numbers, each once."""

_CELLS = 1 << 21  # of a matrix of terms by slots: 8 MB


@dataclass(frozen=True, slots=True)
class Place:
    """One partition. Where it stands among several is its number; whose it is does not matter here."""

    partition: Partition
    layout: Layout
    lexicon: Lexicon
    eligible: Eligible
    """The rows this query may find."""

    @classmethod
    def of(cls, partition: Partition, *, include_past: bool = False) -> Place:
        """`partition` as it stands. The caller holds its lock for as long as the place is used."""
        layout = Layout.of(partition)
        eligible = layout.with_past if include_past else layout.current
        return cls(partition, layout, Lexicon.of(partition), eligible)

    def said(self, terms: Terms) -> Said:
        """Which rows that may be found say any of `terms`."""
        rows, said, counts = self.partition.postings
        maybe = np.flatnonzero(_among(said, terms))
        order = np.argsort(terms)
        which = np.searchsorted(terms, said[maybe], sorter=order)
        which = order[np.minimum(which, len(terms) - 1)]
        keep = (terms[which] == said[maybe]) & self.eligible.rows[rows[maybe]]
        maybe = maybe[keep]
        return Said(which[keep], self.layout.slot_of[rows[maybe]], counts[maybe].astype(np.float32))


def _among(said: NDArray[np.uint32], terms: Terms) -> Mask:
    """Whether each of `said` is one of `terms`; of many terms, whether it may be."""
    if len(terms) <= 8:
        return np.isin(said, terms, kind="sort")  # for so few it compares one after another and sorts nothing
    table = np.zeros(1 << 16, np.bool_)
    table[terms.astype(np.uint16)] = True
    return table.take(said.astype(np.uint16))


@dataclass(frozen=True, slots=True)
class Said:
    """Postings of some terms in one place."""

    which: NDArray[np.intp]
    """The term, by its place among those looked up."""
    slot: NDArray[np.intp]
    count: Floats

    def matrix(self, terms: slice, width: int) -> Floats:
        """[terms, slots] How often each row says each."""
        size = terms.stop - terms.start
        found = np.zeros(size * width, np.float32)
        if size == terms.stop and size > self.which.max(initial=-1):
            np.add.at(found, self.which * width + self.slot, self.count)
        else:
            some = (self.which >= terms.start) & (self.which < terms.stop)
            cells = (self.which[some] - terms.start) * width + self.slot[some]
            np.add.at(found, cells, self.count[some])
        return found.reshape(size, width)


class Statistics:
    """What is counted over all rows that may be found, of all places together."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.rows = sum(place.eligible.count for place in places)
        """How many."""
        count = max(self.rows, 1)
        self.mean_length = max(sum(place.eligible.words for place in places) / count, 1e-9)
        """Content words of a row."""
        self.mean_window = max(sum(place.eligible.window_words for place in places) / count, 1e-9)
        """Likewise, neighbours weighted in."""

    def idf(self, rows_saying: NDArray[np.int64]) -> Floats:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene, of terms that so many rows say."""
        idf: Floats = np.log(1 + (self.rows - rows_saying + 0.5) / (rows_saying + 0.5)).astype(np.float32)
        return idf


def look_up(terms: Terms, places: Sequence[Place]) -> Iterator[tuple[slice, list[Floats]]]:
    """How often each row says each of `terms`: [terms, slots] of every place, a few terms at a time.

    A matrix at a time stays small however many rows there are.
    """
    if not len(terms):
        return
    said = [place.said(terms) for place in places]
    widest = max((place.layout.width for place in places), default=1)
    size = max(1, _CELLS // widest)
    for first in range(0, len(terms), size):
        some = slice(first, min(first + size, len(terms)))
        yield some, [s.matrix(some, p.layout.width) for s, p in zip(said, places, strict=True)]


def rows_saying(matrices: Sequence[Floats]) -> NDArray[np.int64]:
    """[terms] How many rows of all places say each term."""
    by_place = [[np.count_nonzero(row > 0) for row in matrix] for matrix in matrices]
    total: NDArray[np.int64] = np.array(by_place, np.int64).sum(axis=0)
    return total


__all__ = ["Place", "Statistics", "Terms", "look_up", "rows_saying"]
