"""One partition as a query sees it: which rows say a word, and what several partitions count together.

Matches words; scores nothing. `Postings` has the partition's postings in buckets by the low bits of the
word's number: about as many buckets as postings. What was patched since they were filled is few and is looked
through as it is; when it is no longer few, they are filled again. Kept in the partition's scratch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Partition
from echoic.ranking.fuzzy import Lexicon
from echoic.ranking.layout import REACH, TEXT_WINDOW, Eligible, Floats, Layout, Pairs

Terms = NDArray[np.uint32]
"""Stems as numbers, each once."""

_KEY = "ranking.postings"
_FEWEST_BITS, _MOST_BITS = 6, 16  # of a bucket's number
_NOBODY = np.zeros(0, np.int32), np.zeros(0, np.uint8)
# Segments that may have been patched since the buckets were filled: so many, or this share of all.
_FEW, _FEW_SHARE = 8, 0.05


@dataclass(frozen=True, slots=True)
class SpeakerCounts:
    """Who says some terms, and how often: term by term, and nobody says one twice but with a count of 0."""

    bounds: NDArray[np.int64]
    """[terms + 1] Where the postings of each term begin, and where those of the last one end."""
    row: NDArray[np.int32]
    count: NDArray[np.uint8]

    @property
    def which(self) -> NDArray[np.int64]:
        """The term of each posting, by its place among those looked up."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def some(self, keep: NDArray[np.bool_]) -> SpeakerCounts:
        """Those postings to be kept."""
        ends = np.concatenate([[0], np.cumsum(keep)])
        return SpeakerCounts(ends[self.bounds], self.row[keep], self.count[keep])

    def of(self, terms: slice) -> SpeakerCounts:
        """Those of the terms in the slice."""
        bounds = self.bounds[terms.start : terms.stop + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        return SpeakerCounts(bounds - part.start, self.row[part], self.count[part])


class Postings:
    """The postings of one partition, found by term."""

    def __init__(self, partition: Partition) -> None:
        rows, terms, counts = partition.postings
        bits = min(max(len(terms).bit_length(), _FEWEST_BITS), _MOST_BITS)
        self._mask = (1 << bits) - 1
        bucket = (terms & np.uint32(self._mask)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")  # of 16 bits: a radix sort, 0.6 ms for 120,000
        self._rows, self._terms, self._counts = rows[order], terms[order], counts[order]
        self._starts = np.zeros(self._mask + 2, np.int32)
        np.cumsum(np.bincount(bucket, minlength=self._mask + 1), out=self._starts[1:])
        self._revision = self._seen = partition.revision
        self._patched: NDArray[np.bool_] | None = None
        self._fresh = partition.postings_of(())

    @classmethod
    def of(cls, partition: Partition) -> Postings:
        """The postings of `partition`, brought up to date. The caller holds the partition's lock."""
        kept = partition.scratch.get(_KEY)
        assert kept is None or isinstance(kept, cls)
        if kept is None or not kept.catch_up(partition):
            kept = partition.scratch[_KEY] = cls(partition)
        return kept

    def catch_up(self, partition: Partition) -> bool:
        """Take in what was patched; False, and nothing done, where that is too much."""
        if self._seen == partition.revision:
            return True
        patched = partition.patched > self._revision
        fresh = np.flatnonzero(patched)
        if len(fresh) > max(_FEW, _FEW_SHARE * len(patched)):
            return False
        self._seen, self._patched = partition.revision, patched
        self._fresh = partition.postings_of(fresh.tolist())
        return True

    def find(self, terms: Terms) -> SpeakerCounts:
        """Every posting of `terms`, of which there is one at least."""
        bucket = terms.astype(np.intp) & self._mask
        spans = zip(terms, self._starts[bucket].tolist(), self._starts[bucket + 1].tolist(), strict=True)
        found = [self._of(term, first, last) for term, first, last in spans]
        bounds = np.cumsum([0, *(len(rows) for rows, _ in found)])
        if len(found) == 1:
            return SpeakerCounts(bounds, *found[0])
        rows, counts = zip(*found, strict=True)
        return SpeakerCounts(bounds, np.concatenate(rows), np.concatenate(counts))

    def _of(self, term: np.uint32, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Rows and counts of one term, whose bucket reaches from `first` to `last`."""
        fresh = len(self._fresh[0])
        if first == last and not fresh:
            return _NOBODY
        rows, counts = self._rows[first:last], self._counts[first:last]
        same = self._terms[first:last] == term
        if self._patched is not None:
            same &= ~self._patched[rows // SEGMENT_ROWS]
        if not same.all():
            rows, counts = rows[same], counts[same]
        if fresh:
            late = self._fresh[1] == term
            rows = np.concatenate([rows, self._fresh[0][late]])
            counts = np.concatenate([counts, self._fresh[2][late]])
        return rows, counts

    @property
    def nbytes(self) -> int:
        """What this takes."""
        arrays = (self._rows, self._terms, self._counts, self._starts, *self._fresh)
        return sum(array.nbytes for array in arrays)


_REACHED = np.arange(REACH, -REACH - 1, -1)


@dataclass(frozen=True, slots=True)
class Candidates:
    """One partition. Where it stands among several is its number; whose it is does not matter here."""

    partition: Partition
    layout: Layout
    postings: Postings
    eligible: Eligible
    """The rows this query may find."""
    leaves_out: bool = False
    """Whether turns are left out."""

    @classmethod
    def of(
        cls, partition: Partition, *, include_past: bool = False, without: Collection[int] = ()
    ) -> Candidates:
        """`partition` as it stands, without the turns of some sessions, by number.

        The caller holds its lock for as long as the place is used.
        """
        layout = Layout.of(partition)
        eligible = layout.with_past if include_past else layout.current
        left_out = partition.turns_of(without) if without else None
        if left_out is None or not left_out.any():
            return cls(partition, layout, Postings.of(partition), eligible)
        eligible = layout.without(eligible, left_out)
        return cls(partition, layout, Postings.of(partition), eligible, leaves_out=True)
        return cls(partition, layout, Postings.of(partition), eligible)

    @property
    def lexicon(self) -> Lexicon:
        """Made when first asked for: many questions can do without, and it takes the whole vocabulary."""
        return Lexicon.of(self.partition)

    @property
    def sources(self) -> Pairs:
        """Memories and the turns they were learned from, of the turns that are not left out."""
        pairs = self.layout.sources
        if not self.leaves_out or not len(pairs):
            return pairs
        there = self.eligible.rows[pairs.turns]
        return Pairs(pairs.memories[there], pairs.turns[there])

    @property
    def names(self) -> Mapping[int, tuple[str, ...]]:
        """Number of each speaker who is called by name -> the words of the name."""
        return self.lexicon.speakers if self.layout.persons else {}

    def find(self, terms: Terms) -> SpeakerCounts:
        """Who of the rows that may be found says any of `terms`."""
        said = self.postings.find(terms)
        # a row that says nothing is no row of anybody's
        return said if self.eligible.all else said.some(self.eligible.rows[said.row])

    def touched(self, said: SpeakerCounts) -> Touched:
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


class TermStatistics:
    """What is counted over all rows that may be found, of all places together."""

    def __init__(self, places: Sequence[Candidates]) -> None:
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


def rows_saying(places: Sequence[Candidates], found: Sequence[SpeakerCounts]) -> NDArray[np.int64]:
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
