"""What the wording of a question says about its answer: who said it, when, in how many words. Soft: they order
what was found and find nothing themselves.

Weights are in `fusion`. Each signal is [rows] of one place, from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from echoic.partition import MEMORY, Flag, number_of
from echoic.ranking.dates import DAY_MS, spans_of
from echoic.ranking.entries import AGENT, USER
from echoic.ranking.layout import Floats
from echoic.ranking.place import Place
from echoic.ranking.query import Query, Span
from echoic.words import STOP, sound

LONG_CHARACTERS = 200
"""A turn of this many characters or more says as much as a turn can."""
DATE_DECAY_DAYS = 7.0


def speaker(query: Query, places: Sequence[Place]) -> list[Floats]:
    """1 where a row's speaker is the one the question means: one person named, or by "I" and "you" a role.

    What is kept about a caller counts as said by the caller, in the first place: that is the caller's own.
    """
    person = _person(query, places)
    if person is not None:
        return [(place.partition.rows["speaker"] == person).astype(np.float64) for place in places]
    if query.role is None:
        return [np.zeros(place.partition.size) for place in places]
    means = [(place.partition.rows["speaker"] == number_of(query.role)) for place in places]
    if query.role == USER:
        means[0] |= places[0].partition.rows["kind"] == MEMORY
    return [mask.astype(np.float64) for mask in means]


def date(query: Query, places: Sequence[Place]) -> list[Floats]:
    """e^(-days / 7) with the days from a row's own to the nearest the question names; 0 where it names none."""
    spans = query.spans or spans_of(query.dates, _years(places))
    return [_nearness(place.partition.rows["said_at"], spans) for place in places]


def length(places: Sequence[Place]) -> list[Floats]:
    """How much is said: characters up to 200, over 200. A memory is brief because it was distilled: 1."""
    found = []
    for place in places:
        rows = place.partition.rows
        said = np.minimum(rows["characters"], LONG_CHARACTERS) / LONG_CHARACTERS
        found.append(np.where(rows["kind"] == MEMORY, 1.0, said))
    return found


def memory(places: Sequence[Place]) -> list[Floats]:
    """1 for what is kept as a memory, 0 for a turn."""
    return [(place.partition.rows["kind"] == MEMORY).astype(np.float64) for place in places]


def flagged(places: Sequence[Place], flag: Flag, *, wanted: bool = True) -> list[Floats]:
    """1 where a row has `flag`; 0 everywhere unless it is `wanted`."""
    if not wanted:
        return [np.zeros(place.partition.size) for place in places]
    return [(place.partition.rows["flags"] & flag != 0).astype(np.float64) for place in places]


def _nearness(said_at: NDArray[np.int64], spans: Sequence[Span]) -> Floats:
    if not spans:
        return np.zeros(len(said_at))
    gap = np.full(len(said_at), np.inf)
    for first, last in spans:
        apart = np.maximum(np.maximum(first - said_at, said_at - last), 0)
        gap = np.minimum(gap, np.ceil(apart / DAY_MS))
    return np.exp(-gap / DATE_DECAY_DAYS)


def _years(places: Sequence[Place]) -> range:
    """Those in which something was said."""
    moments = [place.partition.rows["said_at"][place.eligible] for place in places]
    said = np.concatenate(moments) if moments else np.zeros(0, np.int64)
    if not len(said):
        return range(0)
    years = np.array([said.min(), said.max()]).astype("datetime64[ms]").astype("datetime64[Y]").astype(int) + 1970
    return range(max(1, int(years[0])), min(9998, int(years[1])) + 1)


def _person(query: Query, places: Sequence[Place]) -> int | None:
    """The number of the one speaker whom the question names; by sound if no name is spelled so."""
    known = {number: name for place in places for number, name in place.lexicon.speakers.items()}
    if not known:
        return None
    words = [word.removesuffix("'s") for word in query.folded if word not in STOP]
    for calls in (str.__eq__, _shortens, _sounds):
        named = [n for n, name in known.items() if any(calls(word, part) for word in words for part in name)]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _shortens(word: str, name: str) -> bool:
    """ "Mel" of Melanie, or a name with an ending that speech recognition ran together with it ("Johns")."""
    return (len(word) >= 3 and name.startswith(word)) or word in {name + "s", name + "es"}


def _sounds(word: str, name: str) -> bool:
    if len(word) < 3:
        return False
    pairs = [(heard, said) for heard in sound(word) for said in sound(name)]
    return any(
        heard == said or (len(said) > 2 and word[0] == name[0] and Levenshtein.distance(heard, said) <= 1)
        for heard, said in pairs
    )


__all__ = ["DATE_DECAY_DAYS", "LONG_CHARACTERS", "date", "flagged", "length", "speaker"]
