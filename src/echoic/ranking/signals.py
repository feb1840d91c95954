"""What the wording of a question says about its answer: who said it, and when.

Signals are soft: they order what was found and find nothing themselves. Each is [rows] of every place, from 0
to 1, or None where the question says nothing of the kind.

Names are corrected first. A recogniser writes the words it knows: "garlic" for Caroline. Where a question
names nobody as they are spelled, its words are tried by sound: first those that stand where a person stands
("when did garlic move?", "garlic's job"), and if there is none any word that is spelled alike, too. Only
names of speakers are corrected; all other words that were misheard find their like through near words. LoCoMo
with every name misheard: R@10 81, 79.5 without; clean questions are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from echoic.partition import number_of
from echoic.ranking.candidates import Candidates
from echoic.ranking.fuzzy import NEAR_SOUND_SPELLING, SAME_SOUND_SPELLING, alike
from echoic.ranking.indexing import USER, key_term
from echoic.ranking.layout import Floats
from echoic.ranking.query import Query
from echoic.temporal import Span
from echoic.temporal.dates import DAY_MS, spans_of
from echoic.words import STOP, sound, word_of

Name = tuple[str, ...]
"""The words of a speaker's name, folded."""

_LEAST_LETTERS = 3
_LEAST_CODE = 2
_BEFORE_A_PERSON = frozenset(
    "did does do has have had is are was were would will could can should might and to with from".split()
)
_POSSESSIVE = "'s"


def heard_right(query: Query, places: Sequence[Candidates]) -> Query:
    """`query` with misheard names of speakers in their own spelling; as it is where it names somebody.

    Args:
        query: what is asked.
        places: whose speakers are known.
    """
    known = {number: name for place in places for number, name in place.names.items()}
    if not known or calls(query.folded, known):
        return query
    meant = _meant(query.folded, list(known.values()))
    if not meant:
        return query
    words = tuple(word_of(meant.get(word.text, word.text)) for word in query.words)
    folded = tuple(meant.get(word, word) for word in query.folded)
    return replace(query, words=words, folded=folded, meant=meant)


def calls(folded: Sequence[str], known: Mapping[int, Name]) -> list[tuple[int, str]]:
    """Speakers whom words call by name, as it is spelled or, if nobody's is so, shortened: number, word."""
    words = [word for word in folded if word not in STOP]
    for is_name in (str.__eq__, _shortens):
        called = [
            (number, word)
            for number, name in known.items()
            for word in words
            if any(is_name(word.removesuffix(_POSSESSIVE), part) for part in name)
        ]
        if called:
            return called
    return []


def _meant(folded: Sequence[str], names: Sequence[Name]) -> dict[str, str]:
    """Words and what they are taken for, where that is one name and not several."""
    parts = sorted({part for name in names for part in name if len(part) >= _LEAST_LETTERS})
    persons: dict[str, str] = {}
    others: dict[str, str] = {}
    for before, word in zip(("", *folded), folded, strict=False):
        bare = word.removesuffix(_POSSESSIVE)
        if len(bare) < _LEAST_LETTERS or bare in STOP:
            continue
        person = before in _BEFORE_A_PERSON or bare != word
        near = sorted(
            (apart, -alike(bare, part), part)
            for part in parts
            if (apart := _apart(bare, part, person=person)) is not None
        )
        if near and (len(near) == 1 or near[0][:2] < near[1][:2]):
            (persons if person else others)[word] = near[0][2] + word[len(bare) :]
    return persons or others


def _apart(word: str, name: str, *, person: bool) -> int | None:
    """How many sounds lie between them, 0 or 1; None: it cannot be meant."""
    apart = min((_codes_apart(a, b) for a in sound(word) for b in sound(name)), default=2)
    if apart > 1:
        return None
    if person:
        return apart
    if apart and word[0] != name[0]:
        return None
    return apart if alike(word, name) >= (NEAR_SOUND_SPELLING if apart else SAME_SOUND_SPELLING) else None


def _codes_apart(code: str, other: str) -> int:
    if code[0] != other[0] or min(len(code), len(other)) < _LEAST_CODE:
        return 0 if code == other else 2
    return Levenshtein.distance(code, other)


def _shortens(word: str, name: str) -> bool:
    # "Mel" of Melanie, or a name that ran together with what follows ("Johns")
    return (len(word) >= _LEAST_LETTERS and name.startswith(word)) or word in {name + "s", name + "es"}


DATE_DECAY_DAYS = 7.0
MAX_KEY_WORDS = 4
"""The most words of a key that a question can name."""


def speaker(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
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


def date(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
    """e^(-days / 7), with the days from when a row was said to the nearest that the question names."""
    spans = query.spans or spans_of(query.dates, _years(places) if query.dates else ())
    if not spans:
        return None
    return [_nearness(place.layout.said_at, spans) for place in places]


def key(query: Query, places: Sequence[Candidates]) -> list[Floats] | None:
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


def _years(places: Sequence[Candidates]) -> range:
    """Those in which something was said that may be found."""
    said = [place.layout.said_at[place.eligible.rows] for place in places]
    moments = [(int(at.min()), int(at.max())) for at in said if len(at)]
    if not moments:
        return range(0)
    ends = np.array([min(m[0] for m in moments), max(m[1] for m in moments)], "datetime64[ms]")
    first, last = ends.astype("datetime64[Y]").astype(int) + 1970
    return range(max(1, int(first)), min(9998, int(last)) + 1)


def _person(query: Query, places: Sequence[Candidates]) -> int | None:
    """The number of the one speaker whom the question names."""
    named = {number for number, _ in _called(query, places)}
    return named.pop() if len(named) == 1 else None


def names(query: Query, places: Sequence[Candidates]) -> frozenset[str]:
    """The words of the question, folded and as they were heard, that call speakers by name."""
    called = {word for _, word in _called(query, places)}
    return frozenset(called | {heard for heard, name in query.meant.items() if name in called})


def _called(query: Query, places: Sequence[Candidates]) -> list[tuple[int, str]]:
    """Speakers that the question names: the number of each and the word that does it."""
    known = {number: name for place in places for number, name in place.names.items()}
    return calls(query.folded, known) if known else []
