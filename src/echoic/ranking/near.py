"""The channel for words that were misheard or mistyped: near words stand in for them, at a discount.

A word stands in for one that nobody said ("Caitlyn" for "Kaitlin"), and for half as much for one that is
written like a name, which may be spelled otherwise elsewhere. Exact words are the text channel's; this one
never scores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echoic.ranking.layout import Floats
from echoic.ranking.place import Place, Statistics, rows_saying
from echoic.ranking.query import Query
from echoic.ranking.text import bm25, norms
from echoic.words import Word

MAX_ASKED = 16
"""Words of a query for which near ones are looked up."""
MAX_NEAR = 5
"""Words that may stand in for one, the nearest first."""

# Of a near word's closeness where the name itself was said too. With the names of half the turns respelled,
# LoCoMo's R@10 rises from 81.9 to 82.3; with the full closeness clean text would lose 0.3.
_SAID_TOO = 0.5


@dataclass(frozen=True, slots=True)
class NearScores:
    """[rows] of each place: BM25 of stand-ins times their closeness, the best for each word asked."""

    own: list[Floats]
    window: list[Floats]
    """With neighbours."""


def near_scores(
    query: Query, places: Sequence[Place], statistics: Statistics, unsaid: frozenset[int]
) -> NearScores | None:
    """What near words find for those in `unsaid` and for names; None where there are none."""
    words = _stand_ins(query, places, unsaid)
    if not words:
        return None
    terms = np.array(list(dict.fromkeys(term for stand_ins in words for term in stand_ins)), np.uint32)
    at = {term: i for i, term in enumerate(terms.tolist())}
    words = [{at[term]: closeness for term, closeness in stand_ins.items()} for stand_ins in words]
    found = [place.find(terms) for place in places]
    idf = statistics.idf(rows_saying(places, found))
    own, window = ([np.zeros(p.partition.size + 1, np.float32) for p in places] for _ in range(2))
    for i, (place, touched) in enumerate(zip(places, map(Place.touched, places, found), strict=True)):
        layout, slots = place.layout, touched.slots
        norm = norms(layout.lengths[slots], statistics.mean_length)
        place.add(slots, _best(bm25(touched.counts, norm, idf), words), own[i])
        norm = norms(layout.window_lengths[slots], statistics.mean_window)
        place.add(slots, _best(bm25(touched.around, norm, idf), words), window[i])
    return NearScores([scores[:-1] for scores in own], [scores[:-1] for scores in window])


def _best(weight: Floats, words: Sequence[dict[int, float]]) -> Floats:
    """[slots] Summed over the words asked: the weight of its best stand-in, times closeness."""
    total = np.zeros(weight.shape[1], np.float32)
    for stand_ins in words:
        best = np.zeros_like(total)
        for which, closeness in stand_ins.items():
            np.maximum(best, weight[which] * np.float32(closeness), out=best)
        total += best
    return total


def _stand_ins(query: Query, places: Sequence[Place], unsaid: frozenset[int]) -> list[dict[int, float]]:
    """Of each word asked for that has any: the terms of its stand-ins, with what each is worth."""
    asked = [w for w in dict.fromkeys(query.words) if w.term in unsaid or w.text in query.names]
    found = []
    for word in asked[:MAX_ASKED]:
        share = 1.0 if word.term in unsaid else _SAID_TOO
        closeness = _nearest(word, places, name=word.text in query.names)
        if closeness:
            found.append({term: share * close for term, close in closeness.items()})
    return found


def _nearest(word: Word, places: Sequence[Place], *, name: bool) -> dict[int, float]:
    """Terms of the nearest words, with their closeness."""
    closeness: dict[int, float] = {}
    for place in places:
        vocabulary = place.partition.vocabulary
        for other, weight in place.lexicon.near(word, vocabulary, name=name).items():
            term = vocabulary.terms[other]
            closeness[term] = max(weight, closeness.get(term, 0.0))
    return dict(sorted(closeness.items(), key=lambda item: (-item[1], item[0]))[:MAX_NEAR])


__all__ = ["MAX_ASKED", "MAX_NEAR", "NearScores", "near_scores"]
