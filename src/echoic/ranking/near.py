"""The channel for words that were misheard or mistyped: near words stand in for them, at a discount.

A word stands in for one that nobody said ("Kaitlin" for "Caitlyn"), or for one that is written like a name and
may be spelled otherwise elsewhere. Exact words are the text channel's; this one never scores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from echoic.ranking.layout import TEXT_WINDOW, Floats
from echoic.ranking.place import Place, Statistics, groups, rows_saying
from echoic.ranking.query import Query
from echoic.ranking.text import saturated
from echoic.words import Word

MAX_ASKED = 16
"""Words of a query for which near ones are looked up."""
MAX_NEAR = 8
"""Words that may stand in for one, the nearest first."""


@dataclass(frozen=True, slots=True)
class NearScores:
    """[slots] of each place: idf times closeness times saturated count, the best stand-in of each word asked."""

    own: list[Floats]
    window: list[Floats]
    """With neighbours, and only for words that nobody said."""


@dataclass(frozen=True, slots=True)
class _StandIn:
    asked: int
    """Which word asked for, by its place among them."""
    term: int
    closeness: float
    unsaid: bool
    """Whether nobody said the word it stands in for."""


def near_scores(
    query: Query, places: Sequence[Place], statistics: Statistics, unsaid: frozenset[int]
) -> NearScores:
    """What near words find for those in `unsaid` and for names."""
    found = NearScores(*([np.zeros(place.layout.width) for place in places] for _ in range(2)))
    for _, group in groupby(_stand_ins(query, places, unsaid), key=lambda stand_in: stand_in.asked):
        _add(found, list(group), places, statistics)
    return found


def _add(
    found: NearScores, stand_ins: list[_StandIn], places: Sequence[Place], statistics: Statistics
) -> None:
    terms = np.array([s.term for s in stand_ins], np.uint32)
    closeness = np.array([s.closeness for s in stand_ins])
    own, window = ([np.zeros(place.layout.width) for place in places] for _ in range(2))
    for some in groups(terms, places):
        matrices = [place.counts(terms[some]) for place in places]
        worth = (statistics.idf(rows_saying(matrices)) * closeness[some])[:, None]
        for i, (place, counts) in enumerate(zip(places, matrices, strict=True)):
            layout = place.layout
            here = worth * saturated(counts, layout.lengths, statistics.mean_length)
            own[i] = np.maximum(own[i], here.max(axis=0))
            if stand_ins[0].unsaid:
                around = layout.spread(counts, TEXT_WINDOW)
                there = worth * saturated(around, layout.window_lengths, statistics.mean_window)
                window[i] = np.maximum(window[i], there.max(axis=0))
    for i in range(len(places)):
        found.own[i] += own[i]
        found.window[i] += window[i]


def _stand_ins(query: Query, places: Sequence[Place], unsaid: frozenset[int]) -> list[_StandIn]:
    found: list[_StandIn] = []
    for i, word in enumerate(dict.fromkeys(query.words)):
        if i == MAX_ASKED:
            break
        if word.term in unsaid or word.text in query.names:
            nearest = _nearest(word, places, name=word.text in query.names)
            found += [_StandIn(i, term, weight, word.term in unsaid) for term, weight in nearest]
    return found


def _nearest(word: Word, places: Sequence[Place], *, name: bool) -> list[tuple[int, float]]:
    """Terms of the nearest words, each once, with their closeness."""
    closeness: dict[int, float] = {}
    for place in places:
        vocabulary = place.partition.vocabulary
        for other, weight in place.lexicon.near(word, vocabulary, name=name).items():
            term = vocabulary.terms[other]
            closeness[term] = max(weight, closeness.get(term, 0.0))
    return sorted(closeness.items(), key=lambda item: (-item[1], item[0]))[:MAX_NEAR]


__all__ = ["MAX_ASKED", "MAX_NEAR", "NearScores", "near_scores"]
