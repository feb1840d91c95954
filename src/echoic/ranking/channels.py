"""Channels: scores of every row, computed in one pass before they are fused.

A channel has one score for each row of all partitions, concatenated. NaN means that the channel does not find
the row. A signal finds no rows; it scores how well a row fits, and is absent if the question gives no such
information or no row has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch
from echoic.partition import SEGMENT_ROWS, Flag, Partition, Pieces, number_of
from echoic.ranking import kernel
from echoic.ranking.bm25 import is_said, word_scores
from echoic.ranking.indexing import USER
from echoic.ranking.late_interaction import Closer, late, piece_weights, vector_without, words_of_pieces
from echoic.ranking.layout import VECTOR_WINDOW, Candidates, Floats, Mask, Pairs
from echoic.ranking.query import Query, heard_right
from echoic.temporal import Span
from echoic.temporal.rules import DAY_MS, spans_of
from echoic.types import Rank

FINDING = ("vector", "text", "fuzzy", "window")
"""The channels that find rows: by meaning, words, near words, and the words of neighbouring turns. The window
finds all that words and near words find."""
DATE_DECAY_DAYS = 7.0

_NAN = np.float32(np.nan)


class LookedAt(NamedTuple):
    """The candidates compared by late interaction."""

    rows: NDArray[np.intp]
    """Row numbers over all partitions, ascending."""
    closer: Closer


class Scored(NamedTuple):
    """Scores of a channel, and which of them find a row."""

    scores: Floats
    least: float = -np.inf
    above: float = -np.inf

    def found(self) -> Floats:
        """The scores, NaN where they are below `least` or not above `above`."""
        found = self.scores.copy()
        np.copyto(found, _NAN, where=(self.scores < self.least) | (self.scores <= self.above))
        return found


class Explained:
    """The hits of one search in each channel."""

    def __init__(self, channels: Mapping[str, Scored], hits: NDArray[np.intp]) -> None:
        """`channels` are scores by name; `hits` are rows in the order of the hits."""
        self._channels, self._hits = channels, hits
        self._by_hit: list[dict[str, Rank]] | None = None

    def __getitem__(self, hit: int) -> dict[str, Rank]:
        if self._by_hit is None:
            by_hit: list[dict[str, Rank]] = [{} for _ in self._hits]
            for name, scored in self._channels.items():
                for ranks, rank in zip(by_hit, _ranks_of(scored.found(), self._hits), strict=True):
                    if rank is not None:
                        ranks[name] = rank
            self._by_hit, self._channels = by_hit, {}
        return self._by_hit[hit]


class Ranks(Mapping[str, Rank]):
    """One hit's rank and score in each channel that found it. Copied or pickled, it is a dict."""

    __slots__ = ("_explained", "_hit")

    def __init__(self, explained: Explained, hit: int) -> None:
        self._explained, self._hit = explained, hit

    def __getitem__(self, channel: str) -> Rank:
        return self._explained[self._hit][channel]

    def __iter__(self) -> Iterator[str]:
        return iter(self._explained[self._hit])

    def __len__(self) -> int:
        return len(self._explained[self._hit])

    def __repr__(self) -> str:
        return repr(self._explained[self._hit])

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._explained[self._hit],)


def _ranks_of(scores: Floats, hits: NDArray[np.intp]) -> list[Rank | None]:
    """Rank the hits of a channel; ties keep their order."""
    values = scores[hits]
    # comparisons with NaN are false: it is never counted
    near = scores[scores >= np.fmin.reduce(values, initial=np.inf)]
    near.sort()
    last = np.searchsorted(near, values, "right")
    ahead = len(near) - last
    for i in np.flatnonzero(last - np.searchsorted(near, values) > 1).tolist():
        ahead[i] += np.count_nonzero(scores[: hits[i]] == values[i])
    return [
        None if np.isnan(score) else Rank(rank=before + 1, score=score)
        for score, before in zip(values.tolist(), ahead.tolist(), strict=True)
    ]


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One array of all; of one it is that one, of none it has no numbers."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, np.float32)


class Channels(dict[str, Floats]):
    """The channels of one query over some partitions.

    | channel | score |
    | --- | --- |
    | vector | cosine, where it reaches the floor |
    | text | BM25 |
    | fuzzy | near words, as in `near_scores`; absent without any |
    | window | `text_window`, where it is above 0 |
    | text_window | BM25 and near words of a turn and its neighbours, found or not |
    | vector_own | cosine, whatever it is; NaN without a vector |
    | vector_window | cosine of the summed vector of a turn and its neighbours; NaN without its own |
    | late | see `late`; only of the candidates of `blend` |
    | answer | how well the preceding question matches (its BM25, from 0 to 1) |
    | speaker | 1 where the person whom the question names said it, or the role that "I" and "you" mean |
    | date | how near to the time the question names it was said: e^(-days / 7) |
    | key | the share of the question that names its key, see `key_scores` |
    | length | characters up to 200, over 200; 1 for a memory |
    | asking, keyed, past | 1 where the row has the flag |
    | when, many | 1 where it says when or how many, if the question asks for that |

    Do not write to channels: some are the partition's own arrays. Those that find rows (`FINDING`) are
    derived from others on first use.
    """

    def __init__(
        self, query: Query, places: Sequence[Candidates], floor: float, *, calls: bool = False
    ) -> None:
        """Compute every channel except `late`.

        The partitions' locks are held while this object is used. `floor` is the least cosine at which the
        vector channel finds a row; `calls` says that people speak with an agent here, under whatever name.
        """
        super().__init__()
        self.places, self._floor = places, floor
        self.starts = np.array([0, *accumulate(place.partition.size for place in places)])
        self.sources = self._sources()
        """Memories and the turns they were learned from, numbered over all partitions; None without any."""
        named = {place.layout.among_people for place in places} - {None}
        self.among_people = not calls and named == {True}
        """Whether all speakers are called by their names: no user, and no agent."""
        self.in_calls = calls or False in named
        """Whether a user speaks with an agent. Without turns, neither is true."""
        # corrected here, so that all channels use the corrected words
        names = {number: name for place in places for number, name in place.names.items()}
        # in a call the only name may be the caller's, whom the question seldom names: what was said is meant
        said = None if self.among_people else partial(is_said, places)
        self.query = query = heard_right(query, names, said)
        called = {word for _, word in query.called}
        self.called = frozenset(called | {heard for heard, name in query.meant.items() if name in called})
        """The words of the question, folded and as heard, that call speakers by name."""
        self.spelled = [] if query.pieces is None else words_of_pieces(query.text, query.pieces)
        """The word that each piece of the question is part of; see `words_of_pieces`."""
        self.looked_at: LookedAt | None = None
        """What was compared by late interaction, once it was."""
        by_words = word_scores(query, places)
        self.rows, self.words, self.near_words = by_words.rows, by_words.text, by_words.near
        self.asked = self._asked()
        """The word pieces of the question with their weights; None if there are none to compare."""
        self._add("key", by_words.keys)
        self.missed: Mask = self._add_compiled() if kernel.compiled is not None else self._add_scores()
        """[rows] Whether no channel finds a row."""
        self._add("speaker", _speaker(query, places))
        self._add("date", _date(query, places))
        self._add_flags()

    def __missing__(self, name: str) -> Floats:
        scored = self.scored((name,)) if name in FINDING else {}
        if not scored:
            raise KeyError(name)
        found = self[name] = scored[name].found()
        return found

    def scored(self, names: Iterable[str]) -> dict[str, Scored]:
        """The scores of each channel and what they find, without the partitions and their locks."""
        known: dict[str, Scored] = {
            "vector": Scored(self["vector_own"], self._floor),
            "window": Scored(self["text_window"], above=0.0),
            "text": Scored(joined(self.words.own), above=0.0),
        }
        if self.near_words is not None:
            known["fuzzy"] = Scored(joined(self.near_words.own), above=0.0)
        known |= {name: Scored(self[name]) for name in names if name not in known and name in self}
        return {name: known[name] for name in names if name in known}

    def look_closer(self, candidates: NDArray[np.intp]) -> Floats | None:
        """[candidates] Compute the late channel at these rows, numbered over all partitions; None without
        word pieces.

        NaN for rows whose word pieces are not known (yet).
        """
        if self.asked is None or not len(candidates):
            return None
        order = np.sort(candidates)
        by_place = [order]
        if len(self.places) > 1:
            ends = zip(self.starts.tolist(), order.searchsorted(self.starts).tolist(), strict=True)
            by_place = [order[first:end] - start for (start, first), (_, end) in pairwise(ends)]
        scores = np.empty(self.starts[-1], np.float32)
        scores.fill(_NAN)
        closer = late(*self.asked, self.places, by_place)
        scores[order] = closer.scores
        self["late"], self.looked_at = scores, LookedAt(order, closer)
        return scores[candidates]

    def _asked(self) -> tuple[Pieces, Floats] | None:
        pieces = self.query.pieces
        if pieces is None or not any(place.partition.tokens for place in self.places):
            return None
        return pieces, piece_weights(self.spelled, self.words.worth, self.query.meant)

    def _add(self, name: str, parts: Sequence[Floats] | None) -> None:
        if parts is not None:
            self[name] = joined(parts)

    def _sources(self) -> Pairs | None:
        found = [place.sources for place in self.places]
        if not any(len(pairs.memories) for pairs in found):
            return None
        if len(found) == 1:
            return found[0]
        return Pairs(
            self._counted([pairs.memories for pairs in found]),
            self._counted([pairs.turns for pairs in found]),
        )

    def _add_scores(self) -> Mask:
        """Add the channels of words and vectors; returns which rows none of them finds."""
        self._add_words()
        self._add_vectors()
        missed: Mask = ~((self["vector_own"] >= self._floor) | (self["text_window"] > 0))
        return missed

    def _add_compiled(self) -> Mask:
        """As `_add_scores`, by the kernel."""
        assert kernel.compiled is not None
        vector, nameless, starts = self.query.vector, self._nameless(), self.starts.tolist()
        answer, *into = np.empty((4, starts[-1]), np.float32)
        missed = np.empty(starts[-1], np.bool_)
        has_answers = any(len(place.layout.asked) for place in self.places)
        said = joined(self.words.nameless) if has_answers else answer
        for number, place in enumerate(self.places):
            here = slice(starts[number], starts[number + 1])
            near = None if self.near_words is None else self.near_words.window[number]
            own = _cosines(vector, place)
            around = own if nameless is None else _cosines(nameless, place)
            hidden, blind = place.eligible.hidden, place.eligible.without_vector
            if vector is None:
                blind = np.arange(place.partition.size)
            by_words, by_vectors = (self.words.window[number], near), (own, around)
            how = hidden, blind, self._floor, VECTOR_WINDOW
            room = (*(scores[here] for scores in into), missed[here])
            kernel.compiled.channels(place.layout.held, *by_words, *by_vectors, *how, *room)
            if has_answers:
                kernel.compiled.answers(said, place.layout.held, here.start, answer)
        self["text_window"], self["vector_own"], self["vector_window"] = into
        if has_answers:
            self["answer"] = answer
        return missed

    def _nameless(self) -> Floats | None:
        """The vector of the question without the names of speakers; None if it is the same.

        The speaker signal handles the name; the topic is found better without it.
        """
        query = self.query
        if not self.called or query.pieces is None or query.vector is None:
            return None
        return vector_without(self.spelled, query.pieces, self.called)

    def _add_words(self) -> None:
        window = joined(self.words.window)
        window = window.copy() if self.near_words is None else window + joined(self.near_words.window)
        window[self._counted([place.eligible.hidden for place in self.places])] = _NAN
        self["text_window"] = window
        if not any(len(place.layout.asked) for place in self.places):
            return
        own = self.words.nameless
        high = max(float(scores.max()) for scores in own if len(scores))
        answer = [np.zeros(len(scores), np.float32) for scores in own]
        for place, into, scores in zip(self.places, answer, own, strict=True):
            # From 0, the minimum: some row always has no such words.
            into[place.layout.answered] = scores[place.layout.asked] * np.float32(1 / (high + 1e-9))
        self["answer"] = joined(answer)

    def _add_vectors(self) -> None:
        query, places = self.query, self.places
        cosines = [_cosines(query.vector, place) for place in places]
        without_vector = (
            np.arange(self.starts[-1])
            if query.vector is None
            else self._counted([place.eligible.without_vector for place in places])
        )
        own = joined(cosines).copy()
        own[without_vector] = _NAN
        self["vector_own"] = self["vector_window"] = own
        nameless = self._nameless()
        if nameless is None and not any(len(place.layout.turns) for place in places):
            return
        around = cosines if nameless is None else [_cosines(nameless, place) for place in places]
        pairs = zip(places, around, strict=True)
        window = joined([place.layout.spread_vectors(cosine) for place, cosine in pairs])
        if any(window is cosine for cosine in around):
            window = window.copy()
        window[without_vector] = _NAN
        self["vector_window"] = window

    def _add_flags(self) -> None:
        query, places = self.query, self.places
        self["length"] = joined([place.layout.fullness for place in places])
        for name in ("asking", "keyed"):
            given = [(getattr(place.layout, name), place.partition.size) for place in places]
            if any(marked is not None for marked, _ in given):
                self[name] = joined([np.zeros(n, np.float32) if m is None else m for m, n in given])
        wanted = {
            "when": (Flag.TIME, query.asks_when),
            "many": (Flag.NUMBER, query.asks_many),
            "past": (Flag.PAST, query.include_past and not query.wants_past),
        }
        for name, (flag, is_wanted) in wanted.items():
            if is_wanted:
                self[name] = joined([(p.layout.flags & flag != 0).astype(np.float32) for p in places])

    def _counted(self, rows: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Rows of each partition, numbered over all."""
        if len(rows) == 1:
            return rows[0]
        starts = self.starts.tolist()
        return joined([some + start for some, start in zip(rows, starts, strict=False)]).astype(np.intp)


def _cosines(vector: Floats | None, place: Candidates) -> Floats:
    """[rows]; 0 for a row without a vector."""
    vectors = place.partition.vectors
    if vector is None or not vectors.shape[1] or len(place.eligible.without_vector) == len(vectors):
        return np.zeros(len(vectors), np.float32)
    if vectors.shape[1] != len(vector):
        raise EmbeddingMismatch(
            f"the query has {len(vector)} dimensions and the rows have {vectors.shape[1]}: "
            "embed it with the model the store was opened with"
        )
    coarse = Coarse.of(place.partition)
    if coarse is not None:
        return coarse.cosines(vectors, vector)
    # Row by row and not as a matrix product: equal rows are then equal to the last bit, and no thread pool of
    # a linear algebra library is waited for (two busy cores, 10,000 rows: 0.3 ms instead of 16).
    cosines: Floats = np.vecdot(vectors, vector)
    return cosines


def _speaker(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
    """1 where a row's speaker is the person named, or the role that "I" or "you" mean.

    Memories of the first partition, the caller's own, count as said by the caller.
    """
    named = {number for number, _ in query.called}
    person = named.pop() if len(named) == 1 else None
    if person is None and query.role is None:
        return None
    number = number_of(query.role) if person is None else person
    means = [place.layout.speakers == number for place in places]
    if person is None and query.role == USER and places:
        means[0] |= places[0].layout.memories
    return [mask.astype(np.float32) for mask in means]


def _date(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
    """e^(-days / 7), with the days from when a row was said to the nearest date in the question."""
    if not (query.spans or query.dates):
        return None
    spans = query.spans or spans_of(query.dates, _years(places))
    if not spans:
        return None
    return [_nearness(place.layout.said_at, spans) for place in places]


def _nearness(said_at: NDArray[np.int64], spans: Sequence[Span]) -> Floats:
    gap_ms = np.full(len(said_at), np.iinfo(np.int64).max, np.int64)
    for first, last in spans:
        np.minimum(gap_ms, np.maximum(np.maximum(first - said_at, said_at - last), 0), out=gap_ms)
    # Rounded up, so that the evening before the day asked for is a day away and not hours.
    days = np.ceil(gap_ms / DAY_MS)
    return np.exp(-days / DATE_DECAY_DAYS).astype(np.float32)


def _years(places: Sequence[Candidates]) -> list[int]:
    """The years in which eligible rows were said, in order."""
    said = np.concatenate([place.layout.said_at[place.eligible.rows] for place in places])
    years = said.astype("datetime64[ms]").astype("datetime64[Y]").astype(int) + 1970
    counts = np.bincount(years[(years >= 1) & (years <= 9998)])  # rows are many, years few: no sort
    found: list[int] = np.flatnonzero(counts).tolist()
    return found


# -- quantised scan: cosines over many rows, from vectors of fewer bits

LEAST_COARSE_ROWS: Final = 5_000
"""Smaller scopes are scanned exactly, which is fast enough."""
EXACT_ROWS: Final = 256
"""How many of the nearest rows get an exact cosine after a scan of bytes: more than later steps use."""
SPREAD_QUERIES: Final = 16
"""Number of queries over which quantising is spread (0.5 ms per thousand rows)."""
LEAST_SEGMENTS: Final = 32
"""The least number of segments a query quantises: what one call writes is always current."""

_AT_ONCE: Final = 8
"""Segments quantised at once: what fits into a processor cache."""
_COARSE = "ranking.coarse"
_STEPS = 127


class Coarse:
    """The quantised vectors of one partition. Kept in the partition's `scratch`.

    A query reads every vector of a scope, and in a large scope memory bandwidth takes most of the time. With
    the compiled kernel, vectors are 16-bit floats (half the bytes), and cosines are right to 0.0001. Without
    it, `simsimd` (the extra "fast") multiplies signed bytes (a quarter), and the nearest rows are computed
    exactly. Both are optional. Cosines are exact without them, in scopes below `LEAST_COARSE_ROWS`, and until
    the first queries have quantised the vectors, a few segments each.
    """

    def __init__(self, dimensions: int) -> None:
        self.halved = kernel.multiplies()
        """Whether vectors are 16-bit floats; if not, bytes with a scale for each row."""
        self._rows: NDArray[Any] = np.zeros((0, dimensions), np.float16 if self.halved else np.int8)
        self._scales = np.zeros(0, np.float32)
        self._made = np.zeros(0, np.int64)  # by segment: the revision of its bytes

    @classmethod
    def of(cls, partition: Partition) -> Coarse | None:
        """The current vectors of `partition`; None if there are none yet. The caller holds its lock."""
        if partition.size < LEAST_COARSE_ROWS:
            return None
        halved = kernel.multiplies()
        if not (halved or _simsimd()):
            return None
        kept = partition.scratch.get(_COARSE)
        if kept is None or (kept.dimensions, kept.halved) != (partition.vectors.shape[1], halved):
            kept = partition.scratch[_COARSE] = cls(partition.vectors.shape[1])
        assert isinstance(kept, cls)
        segments = partition.size // SEGMENT_ROWS
        return kept if kept.catch_up(partition, max(LEAST_SEGMENTS, segments // SPREAD_QUERIES)) else None

    @property
    def dimensions(self) -> int:
        """The number of axes of a vector."""
        return int(self._rows.shape[1])

    def catch_up(self, partition: Partition, segments: int) -> bool:
        """Quantise at most `segments` segments that changed since the last call. True if none is left."""
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
        """[rows] The cosine of each row with the unit vector `vector`, right to 0.0001.

        With bytes, right to 0.01, and exact for the nearest `EXACT_ROWS` rows. `vectors` are the exact [rows,
        dimensions].
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
        near = np.flatnonzero(
            cosines >= np.partition(cosines, -EXACT_ROWS)[-EXACT_ROWS]
        )  # include all equal rows or none
        cosines[near] = np.vecdot(vectors[near], vector)
        return cosines

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._rows.nbytes + self._scales.nbytes + self._made.nbytes


def as_bytes(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantise to int8 [n, dimensions], with the scale of each row [n]: its largest axis has 127 steps."""
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    steps = np.divide(_STEPS, largest, out=np.zeros_like(largest), where=largest > 0)
    scaled = vectors * steps[:, None]
    return np.rint(scaled, out=scaled).astype(np.int8), largest / np.float32(_STEPS)


def _stretches(numbers: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """First and end of runs of consecutive numbers among the ascending `numbers`; at most `_AT_ONCE` each."""
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
