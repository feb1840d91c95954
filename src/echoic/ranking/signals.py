"""What the wording of a question says about its answer: who said it, and when.

Soft: signals order what was found and find nothing themselves. Each is [rows] of every place, from 0 to 1, or
None where the question says nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from echoic.partition import number_of
from echoic.ranking.entries import USER, key_term
from echoic.ranking.hearing import calls
from echoic.ranking.layout import Floats
from echoic.ranking.place import Place
from echoic.ranking.query import Query, Span
from echoic.temporal.dates import DAY_MS, spans_of

DATE_DECAY_DAYS = 7.0
MAX_KEY_WORDS = 4
"""Of a key that a question can name."""


def speaker(query: Query, places: Sequence[Place]) -> list[Floats] | None:
    """1 where a row's speaker is the one the question means: one person named, or by "I" and "you" a role.

    What is remembered in the first place, the caller's own, counts as said by the caller.
    """
    person = _person(query, places)
    if person is None and query.role is None:
        return None
    number = number_of(query.role) if person is None else person
    means = [place.layout.speakers == number for place in places]
    if person is None and query.role == USER and places:
        means[0] |= places[0].layout.memories
    return [mask.astype(np.float32) for mask in means]


def date(query: Query, places: Sequence[Place]) -> list[Floats] | None:
    """e^(-days / 7), with the days from when a row was said to the nearest that the question names."""
    spans = query.spans or spans_of(query.dates, _years(places) if query.dates else ())
    if not spans:
        return None
    return [_nearness(place.layout.said_at, spans) for place in places]


def key(query: Query, places: Sequence[Place]) -> list[Floats] | None:
    """The share of the question's words that make up a row's whole key, as neighbours in any order.

    "What's my wife's name?" names wife_name wholly, and user_name by half.
    """
    if not any(place.layout.remembers for place in places):
        return None
    stems, named = [word.stem for word in query.words], dict[int, float]()
    for count in range(1, min(MAX_KEY_WORDS, len(stems)) + 1):  # of one key the longest wording counts
        share = count / len(stems)
        named |= {key_term(stems[i : i + count]): share for i in range(len(stems) - count + 1)}
    if not named:
        return None
    found = [place.find(np.fromiter(named, np.uint32, len(named))) for place in places]
    if not any(len(said.row) for said in found):
        return None
    shares = np.fromiter(named.values(), np.float32, len(named))
    by_row = [np.zeros(place.partition.size, np.float32) for place in places]
    for scores, said in zip(by_row, found, strict=True):
        np.maximum.at(scores, said.row, shares[said.which])
    return by_row


def _nearness(said_at: NDArray[np.int64], spans: Sequence[Span]) -> Floats:
    gap_ms = np.full(len(said_at), np.iinfo(np.int64).max, np.int64)
    for first, last in spans:
        np.minimum(gap_ms, np.maximum(np.maximum(first - said_at, said_at - last), 0), out=gap_ms)
    # Rounded up, so that the evening before the day asked for is a day away and not hours.
    days = np.ceil(gap_ms / DAY_MS)
    return np.exp(-days / DATE_DECAY_DAYS).astype(np.float32)


def _years(places: Sequence[Place]) -> range:
    """Those in which something was said that may be found."""
    said = [place.layout.said_at[place.eligible.rows] for place in places]
    moments = [(int(at.min()), int(at.max())) for at in said if len(at)]
    if not moments:
        return range(0)
    ends = np.array([min(m[0] for m in moments), max(m[1] for m in moments)], "datetime64[ms]")
    first, last = ends.astype("datetime64[Y]").astype(int) + 1970
    return range(max(1, int(first)), min(9998, int(last)) + 1)


def _person(query: Query, places: Sequence[Place]) -> int | None:
    """The number of the one speaker whom the question names."""
    named = {number for number, _ in _called(query, places)}
    return named.pop() if len(named) == 1 else None


def names(query: Query, places: Sequence[Place]) -> frozenset[str]:
    """The words of the question, folded and as they were heard, that call speakers by name."""
    called = {word for _, word in _called(query, places)}
    return frozenset(called | {heard for heard, name in query.meant.items() if name in called})


def _called(query: Query, places: Sequence[Place]) -> list[tuple[int, str]]:
    """Speakers that the question names: the number of each and the word that does it."""
    known = {number: name for place in places for number, name in place.names.items()}
    return calls(query.folded, known) if known else []


__all__ = ["DATE_DECAY_DAYS", "MAX_KEY_WORDS", "date", "key", "names", "speaker"]
