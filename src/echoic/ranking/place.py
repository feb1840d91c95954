"""One partition as a query sees it, and what several count together. Matches words; scores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Partition
from echoic.ranking.layout import Eligible, Floats, Layout
from echoic.ranking.lexicon import Lexicon
from echoic.ranking.postings import Postings, Said, Terms

_CELLS = 1 << 21  # of a matrix of terms by slots: 8 MB


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
        keep = self.eligible.rows[said.row]
        return said if keep.all() else Said(said.which[keep], said.row[keep], said.count[keep])

    def counts(self, said: Said, terms: slice) -> Floats:
        """[terms, slots] How often each row says each of the terms in the slice."""
        width = self.layout.width
        some = (said.which >= terms.start) & (said.which < terms.stop)
        cells = (said.which[some] - terms.start) * width + self.layout.slot_of[said.row[some]]
        found = np.zeros((terms.stop - terms.start) * width, np.float32)
        np.add.at(found, cells, said.count[some].astype(np.float32))
        return found.reshape(-1, width)


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
    said = [place.find(terms) for place in places]
    widest = max((place.layout.width for place in places), default=1)
    size = max(1, _CELLS // widest)
    for first in range(0, len(terms), size):
        some = slice(first, min(first + size, len(terms)))
        yield some, [place.counts(found, some) for place, found in zip(places, said, strict=True)]


def rows_saying(matrices: Sequence[Floats]) -> NDArray[np.int64]:
    """[terms] How many rows of all places say each term."""
    by_place = [[np.count_nonzero(row > 0) for row in matrix] for matrix in matrices]
    total: NDArray[np.int64] = np.array(by_place, np.int64).sum(axis=0)
    return total


__all__ = ["Place", "Statistics", "look_up", "rows_saying"]
