"""Everything that is known about every row, as scored channels: computed when a fusion asks for them.

A channel has one score for each row of all partitions, one partition behind the other. NaN says that the
channel does not find the row; a signal finds nothing and merely says how well a row fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch
from echoic.partition import Flag
from echoic.ranking import signals
from echoic.ranking.layout import VECTOR_WINDOW, Floats
from echoic.ranking.near import NearScores, near_scores
from echoic.ranking.place import Place, Statistics
from echoic.ranking.query import Query
from echoic.ranking.text import TextScores, text_scores

Scores = NDArray[np.float64]
"""[rows of all partitions]; NaN where a row is not found."""

FINDING = ("vector", "text", "fuzzy", "window")
"""The channels that find: by meaning, by words, by near words, by the words of neighbouring turns."""


class Channels(Mapping[str, Scores]):
    """The channels of one query over some places, each computed once and when first asked for.

    Args:
        query: what is asked.
        places: where. Their partitions' locks are held for as long as this is used.
        floor: the least cosine at which the vector channel finds a row.
    """

    def __init__(self, query: Query, places: Sequence[Place], floor: float) -> None:
        self._query, self._places, self._floor = query, places, floor
        self.eligible = _joined([place.eligible for place in places]).astype(np.bool_)
        self._made: dict[str, Scores] = {}
        self._cosines: list[Floats] | None = None
        self._text: TextScores | None = None
        self._near: NearScores | None = None
        self._makers: dict[str, Callable[[], Scores]] = {
            "vector": self._vector,
            "text": lambda: self._where_found(self._by_row(self._texts().own)),
            "fuzzy": lambda: self._where_found(self._by_row(self._nears().own)),
            "window": lambda: self._where_found(self["text_window"]),
            "text_window": lambda: self._only_eligible(self._by_row(self._texts().window) + self._by_row(self._nears().window)),
            "vector_own": lambda: self._only_eligible(_joined(self._all_cosines())),
            "vector_window": self._vector_window,
            "answer": self._answer,
            "speaker": lambda: _joined(signals.speaker(query, places)),
            "date": lambda: _joined(signals.date(query, places)),
            "length": lambda: _joined(signals.length(places)),
            "memory": lambda: _joined(signals.memory(places)),
            "asking": lambda: _joined(signals.flagged(places, Flag.ASKING)),
            "when": lambda: _joined(signals.flagged(places, Flag.TIME, wanted=query.asks_when)),
            "many": lambda: _joined(signals.flagged(places, Flag.NUMBER, wanted=query.asks_many)),
            "past": lambda: _joined(signals.flagged(places, Flag.PAST, wanted=query.include_past)),
        }

    def __getitem__(self, name: str) -> Scores:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def _texts(self) -> TextScores:
        if self._text is None:
            self._statistics = Statistics(self._places)
            self._text = text_scores(self._query, self._places, self._statistics)
        return self._text

    def _nears(self) -> NearScores:
        if self._near is None:
            unsaid = self._texts().unsaid
            self._near = near_scores(self._query, self._places, self._statistics, unsaid)
        return self._near

    def _all_cosines(self) -> list[Floats]:
        if self._cosines is None:
            self._cosines = [_cosines(self._query.vector, place) for place in self._places]
        return self._cosines

    def _vector(self) -> Scores:
        own = self["vector_own"]
        return np.where(own >= self._floor, own, np.nan)

    def _vector_window(self) -> Scores:
        found = []
        for place, cosines in zip(self._places, self._all_cosines(), strict=True):
            layout = place.layout
            by_slot = np.zeros(layout.width)
            by_slot[layout.slot_of] = np.nan_to_num(cosines)
            by_slot[-1] = 0
            around = layout.spread(by_slot, VECTOR_WINDOW) / layout.window_norms
            found.append(np.where(np.isnan(cosines), np.nan, layout.by_row(around)))
        return self._only_eligible(_joined(found))

    def _answer(self) -> Scores:
        """The turn before asks something: how well it matches the question."""
        own = self._texts().nameless
        low = min((float(scores.min()) for scores in own), default=0.0)
        high = max((float(scores.max()) for scores in own), default=0.0)
        found = []
        for place, scores in zip(self._places, own, strict=True):
            before = np.zeros(place.layout.width)
            before[1:] = (scores[:-1] - low) / (high - low + 1e-9)
            found.append(place.layout.by_row(before * place.layout.follows_question))
        return _joined(found)

    def _by_row(self, by_slot: Sequence[Floats]) -> Scores:
        pairs = zip(self._places, by_slot, strict=True)
        return _joined([place.layout.by_row(scores) for place, scores in pairs])

    def _only_eligible(self, scores: Scores) -> Scores:
        return np.where(self.eligible, scores, np.nan)

    def _where_found(self, scores: Scores) -> Scores:
        return np.where(self.eligible & (scores > 0), scores, np.nan)


def _joined(parts: Sequence[NDArray[np.generic]]) -> Scores:
    if len(parts) == 1:
        return parts[0].astype(np.float64, copy=False)
    return np.concatenate(parts or [np.zeros(0)]).astype(np.float64, copy=False)


def _cosines(vector: NDArray[np.float32] | None, place: Place) -> Floats:
    partition = place.partition
    embedded = partition.rows["flags"] & Flag.EMBEDDED != 0
    if vector is None or not embedded.any():
        return np.full(partition.size, np.nan)
    if partition.vectors.shape[1] != len(vector):
        raise EmbeddingMismatch(
            f"the query has {len(vector)} dimensions and the rows have {partition.vectors.shape[1]}: "
            "embed it with the model the store was opened with"
        )
    cosines: Floats = np.where(embedded, partition.vectors @ vector, np.nan).astype(np.float64)
    return cosines


__all__ = ["FINDING", "Channels", "Scores"]
