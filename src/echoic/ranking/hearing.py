"""Names heard right: a word of the question that sounds like somebody who speaks here is taken for the name.

A recogniser writes the words it knows: "garlic" for Caroline. Where a question names nobody as they are
spelled, its words are tried by sound: first those that stand where a person stands ("when did garlic
move?", "garlic's job"), and if there is none any word that is spelled alike, too. Only names of speakers are
put right; all other words that were misheard find their like through `near`.

LoCoMo with every name misheard: R@10 81, 79.5 without; clean questions are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from echoic.ranking.lexicon import NEAR_SOUND_SPELLING, SAME_SOUND_SPELLING, alike
from echoic.ranking.place import Place
from echoic.ranking.query import Query
from echoic.words import STOP, sound, word_of

Name = tuple[str, ...]
"""The words of a speaker's name, folded."""

_LEAST_LETTERS = 3
_LEAST_CODE = 2
_BEFORE_A_PERSON = frozenset(
    "did does do has have had is are was were would will could can should might and to with from".split()
)
_POSSESSIVE = "'s"


def heard_right(query: Query, places: Sequence[Place]) -> Query:
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


__all__ = ["calls", "heard_right"]
