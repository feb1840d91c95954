"""Everything that is known of every row, as scored channels: computed when a fusion asks for them.

A channel has one score for each row of all partitions, one partition behind the other. NaN says that the
channel does not find the row. A signal finds nothing; it says how well a row fits, and is absent where the
question says nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch
from echoic.partition import Flag
from echoic.ranking import signals
from echoic.ranking.hearing import heard_right
from echoic.ranking.late import late
from echoic.ranking.layout import VECTOR_WINDOW, Floats, Mask
from echoic.ranking.near import NearScores, near_scores
from echoic.ranking.pieces import piece_weights, vector_without
from echoic.ranking.place import Place, Statistics
from echoic.ranking.query import Query
from echoic.ranking.text import TextScores, text_scores

FINDING = ("vector", "text", "fuzzy", "window")
"""The channels that find: by meaning, by words, by near words, by the words of neighbouring turns."""


class Channels(Mapping[str, Floats]):
    """The channels of one query over some places, each computed once and when first asked for.

    | channel | score |
    | --- | --- |
    | vector | cosine, where it reaches the floor |
    | text | BM25 |
    | fuzzy | near words, as `near` scores them |
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
    """

    def __init__(self, query: Query, places: Sequence[Place], floor: float) -> None:
        """Nothing is computed yet.

        Args:
            query: what is asked.
            places: where. Their partitions' locks are held for as long as this is used.
            floor: the least cosine at which the vector channel finds a row.
        """
        # here, so that whoever weighs channels weighs those of what was meant
        self._query, self._places, self._floor = heard_right(query, places), places, floor
        self._made: dict[str, Floats | None] = {}
        self._makers: dict[str, Callable[[], Floats | None]] = {
            "vector": self._vector,
            "text": lambda: _where_found(self._by_row(self._text.own)),
            "fuzzy": self._fuzzy,
            "window": lambda: _where_found(self["text_window"]),
            "text_window": self._text_window,
            "vector_own": self._vector_own,
            "vector_window": self._vector_window,
            "late": lambda: None,
            "answer": self._answer,
            "speaker": lambda: _joined_if_any(signals.speaker(query, places)),
            "date": lambda: _joined_if_any(signals.date(query, places)),
            "key": lambda: _joined_if_any(signals.key(query, places)),
            "length": lambda: _joined([place.layout.fullness for place in places]),
            "asking": lambda: _joined([place.layout.asking for place in places]),
            "keyed": lambda: _joined([place.layout.keyed for place in places]),
            "when": lambda: self._flagged(Flag.TIME) if query.asks_when else None,
            "many": lambda: self._flagged(Flag.NUMBER) if query.asks_many else None,
            "past": lambda: self._flagged(Flag.PAST) if query.include_past and not query.wants_past else None,
        }

    def __getitem__(self, name: str) -> Floats:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        scores = self._made[name]
        if scores is None:
            raise KeyError(name)
        return scores

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._makers if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def _statistics(self) -> Statistics:
        return Statistics(self._places)

    @cached_property
    def _text(self) -> TextScores:
        return text_scores(self._query, self._places, self._statistics)

    @cached_property
    def _near(self) -> NearScores | None:
        return near_scores(self._query, self._places, self._statistics, self._text.unsaid)

    @cached_property
    def _cosines(self) -> list[Floats]:
        return [_cosines(self._query.vector, place) for place in self._places]

    @cached_property
    def _cosines_without_names(self) -> list[Floats]:
        """Who is meant is the speaker signal's; what is said about is found better without the name."""
        query = self._query
        called = signals.names(query, self._places) if query.pieces and query.vector is not None else None
        if not called or query.pieces is None:
            return self._cosines
        vector = vector_without(query.text, query.pieces, called)
        return self._cosines if vector is None else [_cosines(vector, place) for place in self._places]

    @cached_property
    def _ineligible(self) -> Mask:
        eligible: Mask = _joined([place.eligible.rows for place in self._places])
        return ~eligible

    @cached_property
    def _without_vector(self) -> Mask:
        if self._query.vector is None:
            return np.ones(len(self._ineligible), np.bool_)
        embedded = _joined([place.layout.flags & Flag.EMBEDDED != 0 for place in self._places])
        without: Mask = self._ineligible | ~embedded
        return without

    def look_closer(self, candidates: NDArray[np.intp]) -> Floats | None:
        """[candidates] The late channel at these rows, counted over all partitions; None without word pieces.

        From then on the channel is there. NaN where a row's word pieces are not known, or not yet.
        """
        pieces = self._query.pieces
        if pieces is None or not len(candidates) or not any(p.partition.tokens for p in self._places):
            return None
        ends = np.cumsum([place.partition.size for place in self._places])
        order = np.sort(candidates)
        split = np.split(order, np.searchsorted(order, ends[:-1]))
        starts = [0, *ends[:-1].tolist()]
        by_place = [rows - start for rows, start in zip(split, starts, strict=True)]
        weights = piece_weights(self._query.text, pieces, self._text.worth, self._query.meant)
        scores = np.full(len(self._ineligible), np.nan, np.float32)
        scores[order] = late(pieces, weights, self._places, by_place)
        self._made["late"] = scores
        return scores[candidates]

    def _vector_own(self) -> Floats:
        own = _joined(self._cosines).copy()
        own[self._without_vector] = np.nan
        return own

    def _vector(self) -> Floats:
        own = self["vector_own"]
        return np.where(own >= self._floor, own, np.float32(np.nan))

    def _vector_window(self) -> Floats:
        found = []
        for place, cosines in zip(self._places, self._cosines_without_names, strict=True):
            layout = place.layout
            by_slot = np.zeros(layout.width, np.float32)
            by_slot[layout.slot_of] = cosines
            by_slot[-1] = 0
            found.append(layout.by_row(layout.spread(by_slot, VECTOR_WINDOW) / layout.window_norms))
        window = _joined(found)
        window[self._without_vector] = np.nan
        return window

    def _fuzzy(self) -> Floats:
        if self._near is None:
            return np.full(len(self._ineligible), np.nan, np.float32)
        return _where_found(self._by_row(self._near.own))

    def _text_window(self) -> Floats:
        window = self._by_row(self._text.window)
        if self._near is not None:
            window = window + self._by_row(self._near.window)
        window[self._ineligible] = np.nan
        return window

    def _answer(self) -> Floats:
        own = self._text.nameless
        high = max((float(scores.max()) for scores in own), default=0.0)
        found = []
        for place, scores in zip(self._places, own, strict=True):
            before = np.zeros(place.layout.width, np.float32)
            # From 0, the least there is: in every trash slot nobody says anything.
            np.multiply(scores[:-1], np.float32(1 / (high + 1e-9)), out=before[1:])
            found.append(place.layout.by_row(before * place.layout.follows_question))
        return _joined(found)

    def _flagged(self, flag: Flag) -> Floats:
        return _joined([(place.layout.flags & flag != 0).astype(np.float32) for place in self._places])

    def _by_row(self, by_slot: Sequence[Floats]) -> Floats:
        pairs = zip(self._places, by_slot, strict=True)
        return _joined([place.layout.by_row(scores) for place, scores in pairs])


def _where_found(scores: Floats) -> Floats:
    return np.where(scores > 0, scores, np.float32(np.nan))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _joined_if_any(parts: Sequence[Floats] | None) -> Floats | None:
    return None if parts is None else _joined(parts)


def _cosines(vector: Floats | None, place: Place) -> Floats:
    """[rows]; 0 where a row has no vector."""
    vectors = place.partition.vectors
    if vector is None or not vectors.shape[1] or not (place.layout.flags & Flag.EMBEDDED).any():
        return np.zeros(len(vectors), np.float32)
    if vectors.shape[1] != len(vector):
        raise EmbeddingMismatch(
            f"the query has {len(vector)} dimensions and the rows have {vectors.shape[1]}: "
            "embed it with the model the store was opened with"
        )
    # Row by row and not as a matrix product: equal rows are then equal to the last bit, and no thread pool of
    # a linear algebra library is waited for (two busy cores, 10,000 rows: 0.3 ms instead of 16).
    cosines: Floats = np.vecdot(vectors, vector)
    return cosines


__all__ = ["FINDING", "Channels"]
