"""Everything that is known of every row, as scored channels: computed when a fusion asks for them.

A channel has one score for each row of all partitions, one partition behind the other. NaN says that the
channel does not find the row. A signal finds nothing; it says how well a row fits, and is absent where the
question says nothing of the kind, or no row does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch
from echoic.partition import Flag
from echoic.ranking import signals
from echoic.ranking.bm25 import NearScores, TextScores, near_scores, text_scores
from echoic.ranking.candidates import Candidates, TermStatistics
from echoic.ranking.late_interaction import Closer, late, piece_weights, vector_without
from echoic.ranking.layout import Floats, Mask, Pairs
from echoic.ranking.quantised_scan import Coarse
from echoic.ranking.query import Query
from echoic.ranking.signals import heard_right

FINDING = ("vector", "text", "fuzzy", "window")
"""The channels that find: by meaning, by words, by near words, by the words of neighbouring turns.

What words or near words find, the window finds as well.
"""

_NAN = np.float32(np.nan)


class LookedAt(NamedTuple):
    """The candidates that were looked at closely."""

    rows: NDArray[np.intp]
    """Counted over all partitions, ascending."""
    closer: Closer


class Channels(Mapping[str, Floats]):
    """The channels of one query over some places, each computed once and when first asked for.

    | channel | score |
    | --- | --- |
    | vector | cosine, where it reaches the floor |
    | text | BM25 |
    | fuzzy | near words, as `near` scores them; absent where there are none |
    | window | `text_window`, where it is above 0 |
    | text_window | BM25 and near words of a turn and its neighbours, found or not |
    | vector_own | cosine, whatever it is; NaN without a vector |
    | vector_window | cosine of a turn's and its neighbours' summed vector; NaN without a vector of its own |
    | late | see `late`; only of the candidates that `look_closer` was given |
    | answer | how well the question before it matches (its BM25, from 0 to 1) |
    | speaker, date, key | see `signals` |
    | length | characters up to 200, over 200; 1 for a memory |
    | asking, keyed, past | 1 where the row has the flag |
    | when, many | 1 where it says when or how many, if the question asks for that |

    Channels are not to be written to: some are the partition's own.
    """

    def __init__(
        self, query: Query, places: Sequence[Candidates], floor: float, *, calls: bool = False
    ) -> None:
        """Nothing is computed yet.

        Args:
            query: what is asked.
            places: where. Their partitions' locks are held for as long as this is used.
            floor: the least cosine at which the vector channel finds a row.
            calls: whether people speak with an agent here, whatever its turns call it.
        """
        self.calls = calls
        # here, so that whoever weighs channels weighs those of what was meant
        self._floor = floor
        self.query, self.places = heard_right(query, places), places
        self.looked_at: LookedAt | None = None
        """What was looked at closely, once something was."""
        self._made: dict[str, Floats | None] = {}
        self.starts = np.cumsum([0, *(place.partition.size for place in places)])
        self._size = int(self.starts[-1])

    def __getitem__(self, name: str) -> Floats:
        scores: Floats | None = self.get(name)
        if scores is None:
            raise KeyError(name)
        return scores

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping; most signals are absent, and need not be raised to be missed."""
        if name not in self._made:
            self._made[name] = self.STEPS[name](self) if name in self.STEPS else None
        scores = self._made[name]
        return default if scores is None else scores

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.STEPS if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def later(self, name: str) -> Callable[[], Floats] | None:
        """`self[name]` when it is called, without the places and their locks. None: it is absent."""
        if name in FINDING:
            scored = self._scored(name)
            return None if scored is None else partial(_where, *scored)
        scores = self.get(name)
        return None if scores is None else partial(_where, scores)

    def _scored(self, name: str) -> tuple[Floats, float, float] | None:
        """Of a channel that finds: its scores, the least that finds a row, and what it has to lie above."""
        if name == "vector":
            return self["vector_own"], self._floor, -np.inf
        if name == "window":
            return self["text_window"], -np.inf, 0.0
        words = self.words if name == "text" else self.near_words
        return None if words is None else (_joined(words.own), -np.inf, 0.0)

    def _found(self, name: str) -> Floats | None:
        scored = self._scored(name)
        return None if scored is None else _where(*scored)

    def missed(self) -> Mask:
        """[rows] Whether no channel finds a row: what words or near words find, the window finds as well."""
        missed: Mask = ~((self["vector_own"] >= self._floor) | (self["text_window"] > 0))
        return missed

    @property
    def rows(self) -> int:
        """How many rows count in how rare a word is."""
        return self._statistics.rows

    @cached_property
    def _statistics(self) -> TermStatistics:
        return TermStatistics(self.places)

    @cached_property
    def words(self) -> TextScores:
        return text_scores(self.query, self.places, self._statistics)

    @cached_property
    def near_words(self) -> NearScores | None:
        return near_scores(self.query, self.places, self._statistics, self.words.unsaid)

    @cached_property
    def _cosines(self) -> list[Floats]:
        return [_cosines(self.query.vector, place) for place in self.places]

    @cached_property
    def _cosines_without_names(self) -> list[Floats]:
        """Who is meant is the speaker signal's; what is said about is found better without the name."""
        query = self.query
        called = self.called if query.pieces and query.vector is not None else None
        if not called or query.pieces is None:
            return self._cosines
        vector = vector_without(query.text, query.pieces, called)
        return self._cosines if vector is None else [_cosines(vector, place) for place in self.places]

    @cached_property
    def called(self) -> frozenset[str]:
        """The words of the question that call speakers by name; see `signals.names`."""
        return signals.names(self.query, self.places)

    @cached_property
    def _hidden(self) -> NDArray[np.intp]:
        return self._counted([place.eligible.hidden for place in self.places])

    @cached_property
    def _without_vector(self) -> NDArray[np.intp]:
        if self.query.vector is None:
            return np.arange(self._size)
        return self._counted([place.eligible.without_vector for place in self.places])

    @cached_property
    def sources(self) -> Pairs | None:
        """Memories and the turns they were learned from, counted over all partitions; None: none."""
        found = [place.sources for place in self.places]
        if not any(len(pairs) for pairs in found):
            return None
        return Pairs(
            self._counted([pairs.memories for pairs in found]),
            self._counted([pairs.turns for pairs in found]),
        )

    def look_closer(self, candidates: NDArray[np.intp]) -> Floats | None:
        """[candidates] The late channel at these rows, counted over all partitions; None without word pieces.

        From then on the channel is there. NaN where a row's word pieces are not known, or not yet.
        """
        pieces = self.query.pieces
        if pieces is None or not len(candidates) or not any(p.partition.tokens for p in self.places):
            return None
        order = np.sort(candidates)
        split = np.split(order, np.searchsorted(order, self.starts[1:-1]))
        by_place = [rows - start for rows, start in zip(split, self.starts.tolist(), strict=False)]
        weights = piece_weights(self.query.text, pieces, self.words.worth, self.query.meant)
        scores = np.full(self._size, _NAN)
        closer = late(pieces, weights, self.places, by_place)
        scores[order] = closer.scores
        self._made["late"], self.looked_at = scores, LookedAt(order, closer)
        return scores[candidates]

    def _vector_own(self) -> Floats:
        own = _joined(self._cosines).copy()
        own[self._without_vector] = _NAN
        return own

    def _vector_window(self) -> Floats:
        cosines = self._cosines_without_names
        if cosines is self._cosines and not any(len(place.layout.turns) for place in self.places):
            return self["vector_own"]
        pairs = zip(self.places, cosines, strict=True)
        window = _joined([place.layout.spread_vectors(own) for place, own in pairs])
        if any(window is own for own in cosines):
            window = window.copy()
        window[self._without_vector] = _NAN
        return window

    def _text_window(self) -> Floats:
        window = _joined(self.words.window)
        window = window.copy() if self.near_words is None else window + _joined(self.near_words.window)
        window[self._hidden] = _NAN
        return window

    def _answer(self) -> Floats | None:
        own = self.words.nameless
        if not any(len(place.layout.asked) for place in self.places):
            return None
        high = max(float(scores.max()) for scores in own if len(scores))
        answer = [np.zeros(len(scores), np.float32) for scores in own]
        for place, into, scores in zip(self.places, answer, own, strict=True):
            # From 0, the least there is: some row always says nothing of it.
            into[place.layout.answered] = scores[place.layout.asked] * np.float32(1 / (high + 1e-9))
        return _joined(answer)

    def _asking(self) -> Floats | None:
        given = [place.layout.asking for place in self.places]
        if not any(asking is not None for asking in given):
            return None
        sizes = [place.partition.size for place in self.places]
        return _joined(
            [np.zeros(n, np.float32) if a is None else a for n, a in zip(sizes, given, strict=True)]
        )

    def _keyed(self) -> Floats | None:
        rows = self._counted([place.layout.keyed for place in self.places])
        if not len(rows):
            return None
        keyed = np.zeros(self._size, np.float32)
        keyed[rows] = 1
        return keyed

    def _flagged(self, flag: Flag) -> Floats:
        return _joined([(place.layout.flags & flag != 0).astype(np.float32) for place in self.places])

    def _counted(self, rows: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Rows of each place, counted over all."""
        if len(rows) == 1:
            return rows[0]
        starts = self.starts.tolist()
        return _joined([some + start for some, start in zip(rows, starts, strict=False)]).astype(np.intp)

    STEPS: ClassVar[Mapping[str, Callable[[Channels], Floats | None]]] = {
        "vector": lambda self: self._found("vector"),
        "text": lambda self: self._found("text"),
        "fuzzy": lambda self: self._found("fuzzy"),
        "window": lambda self: self._found("window"),
        "text_window": _text_window,
        "vector_own": _vector_own,
        "vector_window": _vector_window,
        "late": lambda _: None,  # until somebody looks closer
        "answer": _answer,
        "speaker": lambda self: _joined_if_any(signals.speaker(self.query, self.places)),
        "date": lambda self: _joined_if_any(signals.date(self.query, self.places)),
        "key": lambda self: _joined_if_any(signals.key(self.query, self.places)),
        "length": lambda self: _joined([place.layout.fullness for place in self.places]),
        "asking": _asking,
        "keyed": _keyed,
        "when": lambda self: self._flagged(Flag.TIME) if self.query.asks_when else None,
        "many": lambda self: self._flagged(Flag.NUMBER) if self.query.asks_many else None,
        "past": lambda self: (
            self._flagged(Flag.PAST) if self.query.include_past and not self.query.wants_past else None
        ),
    }
    """How each channel is computed, by name; None: it is absent."""


def _where(scores: Floats, least: float = -np.inf, above: float = -np.inf) -> Floats:
    """`scores`, NaN where they do not reach `least` or do not lie above `above`."""
    found = scores.copy()
    np.copyto(found, _NAN, where=(scores < least) | (scores <= above))
    return found


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _joined_if_any(parts: Sequence[Floats] | None) -> Floats | None:
    return None if parts is None else _joined(parts)


def _cosines(vector: Floats | None, place: Candidates) -> Floats:
    """[rows]; 0 where a row has no vector."""
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
