"""What a caller says about who they are, and codes they say. Rules, in English; pure.

Rules and not the model: whose memory is read is decided before anything of it reaches a model.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import DamerauLevenshtein

from echoic.words import STOP, fold, sound

CODE_DIGITS: Final = 6

_DENIED = re.compile(
    r"\b(?:this is not|this isn't|it is not|it's not|it isn't|i am not|i'm not"
    r"|(?:you're|you are) not (?:talking|speaking) to|not)\s+(?:the\s+)?(?P<name>[^\W\d_][\w'-]*)"
)
_OTHER = re.compile(
    r"\b(?:(?:you have|you've got|you got|i'm|i am|this is|wrong)\s+(?:the\s+)?"
    r"(?:wrong|other|different) (?:person|caller)"
    r"|someone else|somebody else|not the usual (?:caller|person)"
    r"|(?:i'm|i am) (?:using|on|calling from) (?:his|her|their) (?:phone|line|number)|wrong person)\b"
)
_NAMED = re.compile(
    r"\b(?:my name is|my name's|i am called|i'm called|you're (?:talking|speaking) to"
    r"|this is|it is|it's|i am|i'm)\s+(?P<name>[^\W\d_][\w'-]+)"
)
_FORMAL = re.compile(
    r"\b(?:my name is|my name's|you're (?:talking|speaking) to)\s+(?P<a>[^\W\d_][\w'-]+)"
    r"|\bthis is\s+(?P<b>[^\W\d_][\w'-]+)"
    r"(?=\s+(?:speaking|calling|here|on the (?:line|phone))\b|\s*[.,!]|\s*$)"
)
_NO_NAMES: Final = frozenset(
    """
    a an the my his her their your our someone somebody me us here there very so just really about calling
    speaking sure not for from with that this what why how when great good bad fine nice true false right
    wrong ok okay important urgent ridiculous terrible awful amazing perfect fantastic late early new old one
    two another different usual hungry tired sorry happy sad ready back home busy hers it everything nothing
    """.split()
)
_DIGITS: Final = {
    **{str(digit): str(digit) for digit in range(10)},
    "zero": "0",
    "oh": "0",
    "o": "0",
    "one": "1",
    "two": "2",
    "to": "2",
    "too": "2",
    "three": "3",
    "four": "4",
    "for": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "ate": "8",
    "nine": "9",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What was said about who is speaking."""

    denied: bool = False
    """They are not who they were taken for."""
    name: str | None = None
    """Who they say they are, as the recogniser wrote it."""


def claim_in(said: str, *, taken_for: str | None, known: Collection[str] = ()) -> Claim | None:
    """What `said` claims; None: nothing about who is speaking.

    Args:
        said: what the caller said.
        taken_for: the name of whom the call was taken to be from, if it has one.
        known: names of others who call from there.
    """
    text = fold(said)
    denials = [match["name"] for match in _DENIED.finditer(text)]
    denied = bool(_OTHER.search(text)) or (
        taken_for is not None and any(same_name(name, taken_for) for name in denials)
    )
    names = [match["name"] for match in _NAMED.finditer(text) if match["name"] not in denials]
    names = [name for name in names if name not in _NO_NAMES and name not in STOP]
    if denied:
        return Claim(denied=True, name=_written(names[0], said) if names else None)
    for name in names:
        for other in known:
            if same_name(name, other):
                return Claim(denied=taken_for is not None and not same_name(name, taken_for), name=other)
    formal = [match["a"] or match["b"] for match in _FORMAL.finditer(text)]
    formal = [name for name in formal if name in names]
    if formal and taken_for is not None and not same_name(formal[0], taken_for):
        return Claim(denied=True, name=_written(formal[0], said))
    if formal and taken_for is None:
        return Claim(name=_written(formal[0], said))
    return None


def same_name(a: str, b: str) -> bool:
    """Whether two names may be one: as written, nearly, or by their sound. First names count."""
    first, second = fold(a).split(), fold(b).split()
    if not first or not second:
        return False
    x, y = first[0], second[0]
    if x == y or bool(set(sound(x)) & set(sound(y))):
        return True
    return min(len(x), len(y)) >= 4 and DamerauLevenshtein.distance(x, y) <= 1


def codes_in(said: str) -> list[str]:
    """Every code of `CODE_DIGITS` digits that `said` may hold, said digit by digit or typed."""
    tokens = re.findall(r"[a-z]+|[0-9]", fold(said))
    codes: list[str] = []
    run = ""
    for token in [*tokens, ""]:
        digit = _DIGITS.get(token)
        if digit is not None:
            run += digit
            continue
        # "to" and "for" before a code are words; behind it too
        codes += [run[at : at + CODE_DIGITS] for at in range(len(run) - CODE_DIGITS + 1)]
        run = ""
    return list(dict.fromkeys(codes))


def _written(name: str, said: str) -> str:
    """`name` as `said` has it, which may have accents, with a capital."""
    for word in re.findall(r"[^\W\d_][\w'’-]*", said):
        if fold(word) == name:
            return f"{word[:1].upper()}{word[1:]}"
    return name.capitalize()


__all__ = ["CODE_DIGITS", "Claim", "claim_in", "codes_in", "same_name"]
