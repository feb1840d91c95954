"""The channels by words: BM25 of each row, the same over windows of turns, near words, and keys.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1
0.9 and b 0.4, the values of Anserini's baselines, which suit short texts. Frequencies and mean lengths are
those of the given partitions together: no other user's words count.

Near words replace, at a discount, a word that no row says ("Caitlyn" for "Kaitlin"), because it was misheard
or mistyped; and, at half the weight, a word written like a name, which may be spelled otherwise elsewhere.
The near channel never scores exact words: the text channel does.

`Postings` keeps a partition's postings in the partition's scratch, in about as many buckets as postings, by
the low bits of the term. Segments patched since are scanned; when there are many, the buckets are filled
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Partition
from echoic.ranking import kernel
from echoic.ranking.fuzzy import Lexicon, nearest
from echoic.ranking.indexing import key_facet, key_terms, key_words
from echoic.ranking.layout import REACH, TEXT_WINDOW, Candidates, Floats, Layout
from echoic.ranking.query import Query
from echoic.text import Word, content_words, word_of

K1, B = 0.9, 0.4

Terms = NDArray[np.uint32]
"""Unique stems as numbers."""

_KEY = "ranking.postings"
_RARITIES = "ranking.rarities"
_FEWEST_BITS, _MOST_BITS = 6, 16  # bits of a bucket's number
_NOBODY = np.zeros(0, np.int32), np.zeros(0, np.uint8)
# Segments patched since the buckets were filled: at most so many, or this share of all.
_FEW, _FEW_SHARE = 8, 0.05
_REACHED = np.arange(REACH, -REACH - 1, -1)
_CELLS = 1 << 21  # cells of a matrix of terms by slots: 8 MB


@dataclass(frozen=True, slots=True)
class SpeakerCounts:
    """Postings of some terms; a term that only names a speaker has a count of 0."""

    bounds: NDArray[np.int64]
    """[terms + 1] Where the postings of each term begin, and where the last ones end."""
    row: NDArray[np.int32]
    count: NDArray[np.uint8]

    @property
    def which(self) -> NDArray[np.int64]:
        """The term of each posting, by its index among those looked up."""
        return np.arange(len(self.bounds) - 1).repeat(self.lengths)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[terms] How many postings each term has."""
        return self.bounds[1:] - self.bounds[:-1]

    def some(self, keep: NDArray[np.bool_]) -> SpeakerCounts:
        """The postings where `keep` is true."""
        ends = np.concatenate([[0], np.cumsum(keep)])
        return SpeakerCounts(ends[self.bounds], self.row[keep], self.count[keep])

    def of(self, terms: slice) -> SpeakerCounts:
        """The postings of a slice of the terms."""
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
        order = np.argsort(bucket, kind="stable")  # 16 bits: a radix sort, 0.6 ms for 120,000
        self._rows, self._terms, self._counts = rows[order], terms[order], counts[order]
        self._starts = np.zeros(self._mask + 2, np.int32)
        np.cumsum(np.bincount(bucket, minlength=self._mask + 1), out=self._starts[1:])
        self._revision = self._seen = partition.revision
        self._patched: NDArray[np.bool_] | None = None
        self._fresh = partition.postings_of(())
        self.held = self._hold()
        """These postings as the kernel takes them; see `kernel.hold`."""

    @classmethod
    def of(cls, partition: Partition) -> Postings:
        """The current postings of `partition`. The caller holds the partition's lock."""
        kept = partition.scratch.get(_KEY)
        assert kept is None or isinstance(kept, cls)
        if kept is None or not kept.catch_up(partition):
            kept = partition.scratch[_KEY] = cls(partition)
        return kept

    def catch_up(self, partition: Partition) -> bool:
        """Take in what was patched; False, with nothing done, if that is too much."""
        if self._seen == partition.revision:
            return True
        patched = partition.patched > self._revision
        fresh = np.flatnonzero(patched)
        if len(fresh) > max(_FEW, _FEW_SHARE * len(patched)):
            return False
        self._seen, self._patched = partition.revision, patched
        self._fresh = partition.postings_of(fresh.tolist())
        self.held = self._hold()
        return True

    def _hold(self) -> Any:
        patched = np.zeros(0, np.bool_) if self._patched is None else self._patched
        kept = self._rows, self._terms, self._counts, self._starts
        return kernel.hold(SEGMENT_ROWS, *kept, patched, *self._fresh)

    def find(self, terms: Terms, among: NDArray[np.bool_] | None = None) -> SpeakerCounts:
        """Every posting of `terms`, at least one, in the rows `among` (None: all)."""
        if kernel.compiled is not None:
            bounds = np.empty(len(terms) + 1, np.int64)
            kept = self._rows, self._terms, self._counts, self._starts, SEGMENT_ROWS, self._patched
            found = kernel.compiled.find(terms, *kept, *self._fresh, among, bounds)
            return SpeakerCounts(bounds, np.frombuffer(found[0], np.int32), np.frombuffer(found[1], np.uint8))
        said = self._find(terms)
        return said if among is None else said.some(among[said.row])

    def _find(self, terms: Terms) -> SpeakerCounts:
        bucket = terms.astype(np.intp) & self._mask
        spans = zip(terms, self._starts[bucket].tolist(), self._starts[bucket + 1].tolist(), strict=True)
        found = [self._of(term, first, last) for term, first, last in spans]
        bounds = np.cumsum([0, *(len(rows) for rows, _ in found)])
        if len(found) == 1:
            return SpeakerCounts(bounds, *found[0])
        rows, counts = zip(*found, strict=True)
        return SpeakerCounts(bounds, np.concatenate(rows), np.concatenate(counts))

    def _of(self, term: np.uint32, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Rows and counts of one term, whose bucket spans `first` to `last`."""
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
        """Bytes of memory it takes."""
        arrays = (self._rows, self._terms, self._counts, self._starts, *self._fresh)
        return sum(array.nbytes for array in arrays)


def find(place: Candidates, terms: Terms) -> SpeakerCounts:
    """The eligible rows that contain any of `terms`."""
    # rows without words do not count
    return Postings.of(place.partition).find(terms, None if place.eligible.all else place.eligible.rows)


def has_key(partition: Partition, key: str) -> bool:
    """Whether any memory in `partition`, current or not, may have the key `key`. Takes its lock."""
    with partition.lock:
        if not Layout.of(partition).remembers:
            return False
        term = key_facet(content_words(key_words(key))).term
        return len(Postings.of(partition).find(np.array([term], np.uint32)).row) > 0


def is_said(places: Sequence[Candidates], word: Word) -> bool:
    """Whether an eligible row contains `word`."""
    return any(len(find(place, np.array([word.term], np.uint32)).row) for place in places)


@dataclass(frozen=True, slots=True)
class Touched:
    """The slots in which some terms occur: for rare words only a few."""

    slots: NDArray[np.intp]
    counts: Floats
    """[terms, slots] How often each slot says each term."""
    around: Floats
    """[terms, slots] The same with weighted neighbours."""


def touched_by(said: SpeakerCounts, layout: Layout) -> Touched:
    """The slots that say one of the terms, or have a neighbour that does."""
    which, slot = said.which, layout.slot_of[said.row]
    inside = np.flatnonzero(slot < layout.head)
    # A turn counts for the slots whose windows reach it; sessions are separated by gaps without rows.
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


def _summed(cells: NDArray[np.intp], weights: NDArray[Any], shape: tuple[int, int]) -> Floats:
    # in 64 bits these sums are exact, so equal rows stay equal in any order of postings
    summed = np.bincount(cells, weights, minlength=shape[0] * shape[1])
    return summed.astype(np.float32).reshape(shape)


class TermStatistics:
    """Statistics over all eligible rows, across partitions."""

    def __init__(self, places: Sequence[Candidates]) -> None:
        self.rows = sum(place.eligible.count for place in places)
        """The number of rows."""
        count = max(self.rows, 1)
        self.mean_length = max(sum(place.eligible.words for place in places) / count, 1e-9)
        """Content words of a row."""
        self.mean_window = max(sum(place.eligible.window_words for place in places) / count, 1e-9)
        """Content words of a row with its weighted neighbours."""
        self.compiled: tuple[Any, ...] = ()
        """What `_compiled_scores` takes of all this."""

    def idf(self, rows_saying: NDArray[np.int64]) -> Floats:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), as in Lucene, by document frequency."""
        idf: Floats = np.log(1 + (self.rows - rows_saying + 0.5) / (rows_saying + 0.5)).astype(np.float32)
        return idf

    def rarities(self, partition: Partition) -> Floats:
        """[rows + 2] `idf` of each number of rows, kept with `partition`."""
        scratch = partition.scratch
        kept = scratch.get(_RARITIES)
        if kept is None or len(kept) != self.rows + 2:
            kept = scratch[_RARITIES] = self.idf(np.arange(self.rows + 2))
        found: Floats = kept
        return found


def rows_saying(places: Sequence[Candidates], found: Sequence[SpeakerCounts]) -> NDArray[np.int64]:
    """[terms] How many rows of all partitions say each term: at least one if any row does."""
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


@dataclass(frozen=True, slots=True)
class TextScores:
    """[rows] of each partition; 0 for a row without any of the terms."""

    own: list[Floats]
    """BM25 of the row's own words."""
    window: list[Floats]
    """BM25 of the words of the row and its neighbours."""
    nameless: list[Floats]
    """`own` without the words of speakers' names."""
    worth: Mapping[int, float]
    """Inverse document frequency of each queried term that some row says."""
    unsaid: frozenset[int]
    """Queried terms that no row says."""


def norms(lengths: Floats, mean_length: float) -> Floats:
    """BM25's k1 (1 - b + b length / mean)."""
    return np.float32(K1 * (1 - B)) + lengths * np.float32(K1 * B / mean_length)


def bm25(counts: Floats, norm: Floats, worth: Floats) -> Floats:
    """[terms, slots] worth count (k1 + 1) / (count + norm), with `worth` [terms]."""
    return _saturated(counts, norm, worth[:, None])


def _saturated(counts: NDArray[Any], norm: Floats, worth: Floats) -> Floats:
    weight: Floats = counts + norm
    np.divide(counts, weight, out=weight)
    weight *= worth * np.float32(K1 + 1)
    return weight


def text_scores(query: Query, places: Sequence[Candidates], statistics: TermStatistics) -> TextScores:
    """The text scores of the words of `query`."""
    asked: dict[int, int] = {}
    for word in query.words:
        asked[word.term] = asked.get(word.term, 0) + 1
    if not asked:
        nothing = [np.zeros(place.partition.size, np.float32) for place in places]
        return TextScores(nothing, nothing, nothing, {}, frozenset())
    names = _terms_of_names(places)
    if kernel.compiled is not None:
        rarity, own, window, nameless = _compiled_scores(places, asked, statistics, names & asked.keys())
        known = {term: rare for term, rare in zip(asked, rarity, strict=True) if rare is not None}
        return TextScores(own, window, nameless, known, frozenset(asked.keys() - known.keys()))
    terms = np.fromiter(asked, np.uint32, len(asked))
    found = [find(place, terms) for place in places]
    saying = rows_saying(places, found)
    idf = statistics.idf(saying)
    there = saying > 0
    known = dict(zip(terms[there].tolist(), idf[there].tolist(), strict=True))
    worth = idf * np.fromiter(asked.values(), np.float32, len(asked))
    pairs = list(zip(places, found, strict=True))
    own, window = _own_and_window(pairs, worth, statistics)
    nameless = own
    if not names.isdisjoint(asked):
        others = np.array([0 if term in names else 1 for term in asked], np.float32)
        nameless = [_own(place, said, worth * others, statistics.mean_length) for place, said in pairs]
    return TextScores(own, window, nameless, known, frozenset(asked.keys() - known.keys()))


def _own_and_window(
    pairs: Sequence[tuple[Candidates, SpeakerCounts]], worth: Floats, statistics: TermStatistics
) -> tuple[list[Floats], list[Floats]]:
    """By partition, [rows] BM25 of each row, and of each row with its neighbours."""
    own = [_own(place, said, worth, statistics.mean_length) for place, said in pairs]
    if statistics.mean_window == statistics.mean_length and not any(p.layout.head for p, _ in pairs):
        return own, own  # without sessions every row is its own window
    return own, [_window(place, said, worth, statistics.mean_window) for place, said in pairs]


def _compiled_scores(
    places: Sequence[Candidates],
    asked: Mapping[int, float] | Sequence[Mapping[int, float]],
    statistics: TermStatistics,
    names: AbstractSet[int] = frozenset(),
) -> tuple[list[float | None], list[Floats], list[Floats], list[Floats]]:
    """The rarity of each term, None if no row says it; and by partition `own`, `window` and `nameless`.

    `asked` are terms with how often they are asked for; or, for each word, terms with their closeness, of
    which the best counts.
    """
    assert kernel.compiled is not None
    sizes = [place.partition.size for place in places]
    own, window, nameless = room = np.empty((3, sum(sizes)), np.float32)
    if not statistics.compiled:
        means = statistics.mean_length, statistics.mean_window
        norm = np.array([K1 * (1 - B), *(K1 * B / mean for mean in means), K1 + 1], np.float32)
        held = tuple((Postings.of(p.partition).held, p.layout.held, p.eligible.held) for p in places)
        statistics.compiled = held, statistics.rarities(places[0].partition), norm
    held, rare, norm = statistics.compiled
    into = own, window, nameless if names else None
    rarity = kernel.compiled.words(held, asked, rare, norm, TEXT_WINDOW, names, *into)
    if len(sizes) == 1:
        return rarity, [own], [window], [nameless if names else own]
    ends = list(accumulate(sizes))
    spans = list(zip([0, *ends], ends, strict=False))
    by_place = [[scores[first:end] for first, end in spans] for scores in room]
    return rarity, by_place[0], by_place[1], by_place[2] if names else by_place[0]


def _own(place: Candidates, said: SpeakerCounts, worth: Floats, mean: float) -> Floats:
    """[rows] BM25 of the words of each row."""
    norm = norms(place.layout.row_lengths.take(said.row), mean)
    weight = _saturated(said.count, norm, worth.repeat(said.lengths))
    # Summed term by term, not by a matrix product: equal rows then have equal scores to the last bit.
    return np.bincount(said.row, weight, place.partition.size).astype(np.float32)


def _window(place: Candidates, said: SpeakerCounts, worth: Floats, mean: float) -> Floats:
    """[rows] BM25 of the words of each row and its neighbours."""
    layout = place.layout
    inside = layout.slot_of[said.row] < layout.head
    window = _own(place, said if not layout.head else said.some(~inside), worth, mean)
    if not inside.any():
        return window
    window = np.append(window, np.float32(0))  # one more column for slots in gaps, which have no row
    size = max(1, _CELLS // layout.width)
    turns = said.some(inside)
    for first in range(0, len(worth), size):  # one small matrix at a time, however many rows there are
        some = slice(first, min(first + size, len(worth)))
        touched = touched_by(turns.of(some), layout)
        norm = norms(layout.window_lengths[touched.slots], mean)
        # slots in gaps are added to the extra column
        window[layout.row_at[touched.slots]] += bm25(touched.around, norm, worth[some]).sum(axis=0)
    return window[:-1]


def _terms_of_names(places: Sequence[Candidates]) -> set[int]:
    return {word_of(word).term for place in places for name in place.names.values() for word in name}


MAX_ASKED = 16
"""Words of a query for which near ones are looked up."""

# Of a near word's closeness where the name itself was said too. With the names of half the turns respelled,
# LoCoMo's R@10 rises from 81.9 to 82.3; with the full closeness clean text would lose 0.3.
_SAID_TOO = 0.5


@dataclass(frozen=True, slots=True)
class NearScores:
    """By partition, [rows] BM25 of near words times their closeness, the best one for each queried word."""

    own: list[Floats]
    window: list[Floats]
    """With neighbours."""


def near_scores(
    query: Query, places: Sequence[Candidates], statistics: TermStatistics, unsaid: frozenset[int]
) -> NearScores | None:
    """The scores of near words for the queried words in `unsaid` and for names; None if there are none."""
    words = _stand_ins(query, places, unsaid)
    if not words:
        return None
    if kernel.compiled is not None:
        _, own, window, _ = _compiled_scores(places, words, statistics)
        return NearScores(own, window)
    terms = np.array(list(dict.fromkeys(term for stand_ins in words for term in stand_ins)), np.uint32)
    at = {term: i for i, term in enumerate(terms.tolist())}
    words = [{at[term]: closeness for term, closeness in stand_ins.items()} for stand_ins in words]
    found = [find(place, terms) for place in places]
    idf = statistics.idf(rows_saying(places, found))
    own, window = ([np.zeros(p.partition.size + 1, np.float32) for p in places] for _ in range(2))
    for i, (place, said) in enumerate(zip(places, found, strict=True)):
        layout, touched = place.layout, touched_by(said, place.layout)
        rows = layout.row_at[touched.slots]
        norm = norms(layout.lengths[touched.slots], statistics.mean_length)
        own[i][rows] += _best(bm25(touched.counts, norm, idf), words)
        norm = norms(layout.window_lengths[touched.slots], statistics.mean_window)
        window[i][rows] += _best(bm25(touched.around, norm, idf), words)
    return NearScores([scores[:-1] for scores in own], [scores[:-1] for scores in window])


def _best(weight: Floats, words: Sequence[dict[int, float]]) -> Floats:
    """[slots] The sum over queried words of the weight of the best near word, times its closeness."""
    total = np.zeros(weight.shape[1], np.float32)
    for stand_ins in words:
        best = np.zeros_like(total)
        for which, closeness in stand_ins.items():
            np.maximum(best, weight[which] * np.float32(closeness), out=best)
        total += best
    return total


def _stand_ins(query: Query, places: Sequence[Candidates], unsaid: frozenset[int]) -> list[dict[int, float]]:
    """For each queried word that has near words, their terms with their closeness."""
    asked = list(dict.fromkeys(w for w in query.words if w.term in unsaid or w.text in query.names))
    found = []
    lexicons = [Lexicon.of(place.partition) for place in places] if asked else []
    for word in asked[:MAX_ASKED]:
        share = 1.0 if word.term in unsaid else _SAID_TOO
        closeness = nearest(word, lexicons, name=word.text in query.names)
        if closeness:
            found.append({term: share * close for term, close in closeness.items()})
    return found


MAX_KEY_WORDS = 4
"""The most words of a key that a question can name."""


def key_scores(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
    """The share of the question's words that form a row's whole key, as neighbours in any order.

    "What's my wife's name?" names wife_name fully, and user_name by half.
    """
    if not any(place.layout.remembers for place in places):
        return None
    named = key_terms([word.stem for word in query.words], MAX_KEY_WORDS)
    if not named:
        return None
    found = [find(place, np.fromiter(named, np.uint32, len(named))) for place in places]
    if not any(len(said.row) for said in found):
        return None
    shares = np.array([count / len(query.words) for count in named.values()], np.float32)
    by_row = [np.zeros(place.partition.size, np.float32) for place in places]
    for scores, said in zip(by_row, found, strict=True):
        np.maximum.at(scores, said.row, shares[said.which])
    return by_row


class WordScores(NamedTuple):
    """Everything that the words of a question say about each row."""

    rows: int
    """How many rows count in document frequencies."""
    text: TextScores
    near: NearScores | None
    keys: list[Floats] | None


def word_scores(query: Query, places: Sequence[Candidates]) -> WordScores:
    """The scores of the words of `query`, of near words for unsaid ones, and of the keys it names."""
    statistics = TermStatistics(places)
    text = text_scores(query, places, statistics)
    near = near_scores(query, places, statistics, text.unsaid)
    return WordScores(statistics.rows, text, near, key_scores(query, places))
