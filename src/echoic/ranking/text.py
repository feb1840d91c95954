"""The channels that go by exact words: BM25 of each row, and the same over windows of turns.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1
0.9 and b 0.4, the values of Anserini's baselines, which suit short texts. Frequencies and mean lengths are
those of the given partitions taken together: nobody else's words weigh in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from echoic.ranking.layout import TEXT_WINDOW, Floats
from echoic.ranking.place import Place, Statistics, look_up, rows_saying
from echoic.ranking.query import Query
from echoic.words import word_of

K1, B = 0.9, 0.4


@dataclass(frozen=True, slots=True)
class TextScores:
    """[slots] of each place; 0 where a row says nothing of it."""

    own: list[Floats]
    """BM25 of the row's own words."""
    window: list[Floats]
    """BM25 of the words of the row and its neighbours."""
    nameless: list[Floats]
    """`own`, without the words of speakers' names."""
    worth: Mapping[int, float]
    """Inverse document frequency of each term asked for that some row says."""
    unsaid: frozenset[int]
    """Terms asked for that no row says."""


def norms(lengths: Floats, mean_length: float) -> Floats:
    """BM25's k1 (1 - b + b length / mean)."""
    return np.float32(K1 * (1 - B)) + lengths * np.float32(K1 * B / mean_length)


def bm25(counts: Floats, norm: Floats, worth: Floats) -> Floats:
    """[terms, slots] worth count (k1 + 1) / (count + norm), of terms that are worth so much ([terms])."""
    weight = counts + norm
    np.divide(counts, weight, out=weight)
    weight *= (worth * np.float32(K1 + 1))[:, None]
    return weight


def text_scores(query: Query, places: Sequence[Place], statistics: Statistics) -> TextScores:
    """What the words of `query` find."""
    asked = Counter(word.term for word in query.words)
    terms = np.fromiter(asked, np.uint32, len(asked))
    times = np.fromiter(asked.values(), np.float32, len(asked))
    names = _terms_of_names(places)
    is_name = np.array([term in names for term in asked], np.bool_)
    own, window, named = ([np.zeros(p.layout.width, np.float32) for p in places] for _ in range(3))
    said: dict[int, float] = {}
    for some, matrices in look_up(terms, places):
        saying = rows_saying(matrices)
        idf = statistics.idf(saying)
        there = saying > 0
        said |= zip(terms[some][there].tolist(), idf[there].tolist(), strict=True)
        worth = idf * times[some]
        for i, (place, counts) in enumerate(zip(places, matrices, strict=True)):
            layout = place.layout
            # Summed term by term, not by a matrix product: equal rows then have equal scores to the last bit.
            weight = bm25(counts, norms(layout.lengths, statistics.mean_length), worth)
            scores = weight.sum(axis=0)
            own[i] += scores
            if is_name[some].any():
                named[i] += weight[is_name[some]].sum(axis=0)
            if layout.head or statistics.mean_window != statistics.mean_length:
                around = layout.spread(counts, TEXT_WINDOW)
                scores = bm25(around, norms(layout.window_lengths, statistics.mean_window), worth).sum(axis=0)
            window[i] += scores  # without sessions every row is its own window
    nameless = [a - b for a, b in zip(own, named, strict=True)] if is_name.any() else own
    return TextScores(own, window, nameless, said, frozenset(asked.keys() - said.keys()))


def _terms_of_names(places: Sequence[Place]) -> set[int]:
    return {word_of(word).term for place in places for name in place.names.values() for word in name}


__all__ = ["K1", "B", "TextScores", "bm25", "norms", "text_scores"]
