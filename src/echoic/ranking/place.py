"""One partition as a query sees it, and what several count together. Matches words; scores nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Partition
from echoic.ranking.layout import REACH, TEXT_WINDOW, Eligible, Floats, Layout
from echoic.ranking.lexicon import Lexicon
from echoic.ranking.postings import Postings, Said, Terms

_REACHED = np.arange(REACH, -REACH - 1, -1)


@dataclass(frozen=True, slots=True)
class Place:
    """One partition. Where it stands among several is its number; whose it is does not matter here."""

    partition: Partition
    layout: Layout
    postings: Postings
    eligible: Eligible
    """The rows this query may find."""

    @classmethod
    def of(cls, partition: Partition, *, include_past: bool = False) -> Place:
        """`partition` as it stands. The caller holds its lock for as long as the place is used."""
        layout = Layout.of(partition)
        eligible = layout.with_past if include_past else layout.current
        return cls(partition, layout, Postings.of(partition), eligible)

    @property
    def lexicon(self) -> Lexicon:
        """Made when first asked for: many questions can do without, and it takes the whole vocabulary."""
        return Lexicon.of(self.partition)

    @property
    def names(self) -> Mapping[int, tuple[str, ...]]:
        """Number of each speaker who is called by name -> the words of the name."""
        return self.lexicon.speakers if self.layout.persons else {}

    def find(self, terms: Terms) -> Said:
        """Who of the rows that may be found says any of `terms`."""
        said = self.postings.find(terms)
        # a row that says nothing is no row of anybody's
        return said if self.eligible.all else said.some(self.eligible.rows[said.row])

    def touched(self, said: Said) -> Touched:
        """The slots that say one of the terms that were looked up, or have a neighbour that does."""
        layout = self.layout
        which, slot = said.which, layout.slot_of[said.row]
        inside = np.flatnonzero(slot < layout.head)
        # A turn counts for the slots whose windows reach it; beside a session lie gaps, which hold no row.
        near = (slot[inside, None] + _REACHED).reshape(-1)
        mark = np.zeros(layout.width, np.bool_)
        mark[near] = mark[slot] = True
        slots = np.flatnonzero(mark)
        place_of = np.empty(layout.width, np.intp)
        place_of[slots] = np.arange(len(slots))
        shape = len(said.bounds) - 1, len(slots)
        counts = _summed(which * len(slots) + place_of[slot], said.count, shape)
        cells = np.repeat(which[inside] * len(slots), len(_REACHED)) + place_of[near]
        around = _summed(cells, (said.count[inside, None] * TEXT_WINDOW).reshape(-1), shape)
        tail = slots >= layout.head
        around[:, tail] = counts[:, tail]
        return Touched(slots, counts, around)

    def add(self, slots: NDArray[np.intp], scores: Floats, into: Floats) -> None:
        """Add `scores` of `slots` to `into`, [rows + 1]; what sits in a gap is no row's: behind all."""
        into[self.layout.row_at[slots]] += scores


@dataclass(frozen=True, slots=True)
class Touched:
    """Those slots of a place for which some terms mean anything: of rare words, a few of many."""

    slots: NDArray[np.intp]
    counts: Floats
    """[terms, slots] How often each says each of the terms."""
    around: Floats
    """[terms, slots] Likewise, neighbours weighted in."""


def _summed(cells: NDArray[np.intp], weights: NDArray[Any], shape: tuple[int, int]) -> Floats:
    # in 64 bits these sums are exact: in whatever order postings stand, equal rows stay equal
    summed = np.bincount(cells, weights, minlength=shape[0] * shape[1])
    return summed.astype(np.float32).reshape(shape)


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


def rows_saying(places: Sequence[Place], found: Sequence[Said]) -> NDArray[np.int64]:
    """[terms] How many rows of all places say each term: one at least, where any row does."""
    by_place = [
        [np.count_nonzero(said.count[first:last]) for first, last in pairwise(said.bounds.tolist())]
        for said in found
    ]
    total: NDArray[np.int64] = np.array(by_place, np.int64).sum(axis=0)
    for place, said in zip(places, found, strict=True):
        counted = place.eligible.counted
        if counted is not None:
            twice = np.flatnonzero((said.count > 0) & ~counted[said.row])
            terms = np.searchsorted(said.bounds, twice, "right") - 1
            there = total > 0
            total -= np.bincount(terms, minlength=len(total))
            np.maximum(total, 1, out=total, where=there)
    return total


__all__ = ["Place", "Statistics", "Touched", "rows_saying"]
