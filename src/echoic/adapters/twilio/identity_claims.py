"""Identity claims: what callers say about who they are, and codes they say. English rules; pure.

Rules, not the model, decide whose memory is read, before any of it reaches the model.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import DamerauLevenshtein

from echoic.english.lexicon import DAYS, DEMONYMS, wordlike
from echoic.text.analysis import STOP, fold, sound

CODE_DIGITS: Final = 6

_DENIED = re.compile(
    r"\b(?:this is not|this isn't|it is not|it's not|it isn't|i am not|i'm not"
    r"|(?:you're|you are) not (?:talking|speaking) to|not)\s+(?:the\s+)?(?P<name>[^\W\d_][\w'-]*)"
)
_OTHER = re.compile(
    r"\b(?:(?:you have|you've got|you got|i'm|i am|this is|wrong)\s+(?:the\s+)?"
    r"(?:wrong|other|different) (?:person|caller)"
    r"|(?:this is|i'm|i am) (?:actually )?(?:someone|somebody) else(?!')"
    r"|(?:someone|somebody) else (?:is|who is|who's) (?:calling|speaking|talking|on the (?:line|phone))"
    r"|not the usual (?:caller|person)"
    r"|(?:i'm|i am) (?:using|on|calling from) (?:his|her|their) (?:phone|line|number))\b"
    r"|^\W*(?:no\W+|sorry\W+)*(?:wrong person|(?:someone|somebody) else)\W*$"
)
"""Not "someone else" or "the wrong person" in passing: "book it for someone else"."""
_NAMED = re.compile(
    r"\b(?:my name is|my name's|i am called|i'm called|you're (?:talking|speaking) to"
    r"|this is|it is|it's|i am|i'm)\s+(?P<name>[^\W\d_][\w'-]+)"
)
_FORMAL = re.compile(
    r"\b(?:my name is|my name's|you're (?:talking|speaking) to)\s+(?P<a>[^\W\d_][\w'-]+)"
    r"|\bthis is\s+(?P<b>[^\W\d_][\w'-]+)"
    r"(?=\s+(?:speaking|calling|here|on the (?:line|phone))\b|\s*[.,!]|\s*$)"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
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

_DIGITS_IN: Final = {
    language: {word: str(digit) for digit, said in enumerate(words.split()) for word in said.split("/")}
    for language, words in {
        "de": "null eins/ein zwei/zwo drei vier funf/fuenf sechs sieben acht neun",
        "es": "cero uno/un dos tres cuatro cinco seis siete ocho nueve",
        "fr": "zero un/une deux trois quatre cinq six sept huit neuf",
        "it": "zero uno/un due tre quattro cinque sei sette otto nove",
        "pt": "zero um dois tres quatro cinco seis/meia sete oito nove",
    }.items()
}
_TIMES: Final = {"double": 2, "triple": 3}
_ALSO_WORDS: Final = frozenset({"to", "too", "for"})
_LEAST_MASKED: Final = 4
"""Digits in a row that may be an incompletely heard PIN."""
MASK: Final = "[code]"
"""Replaces digits that may be a proof in what is stored."""
_ANNOUNCED = re.compile(
    r"\b(?:pin|pins|p\.i\.n|passcode|pass code|code|codes|codigo|codice|geheimzahl|geheimnummer|clave)\b"
)
_OTHER_CODES = re.compile(
    r"\b(?:zip|post|postal|area|country|dialling|promo|promotion|discount|voucher|coupon|bar|qr|error|product"
    r"|booking|source|dress)\s+(?:pin\s+)?codes?\b"
)
_PIN_NAMED = re.compile(r"\b(?:pin|p\.i\.n|geheimzahl|geheimnummer|clave|codice segreto)\b")
_WANTS_PIN = re.compile(r"\b(?:set|change|choose|create|make|give|have|want|like|new)\b.{0,60}\bpin\b")
_SETS_PIN = re.compile(
    r"\b(?:set|change|choose|create|make|new)\b.{0,60}\bpin\b"
    r"|\bpin\b.{0,40}\bto be\b|\bas (?:my|a|the) (?:new )?pin\b"
)
_FILLING: Final = frozenset("it is s its it's um uh er okay ok yes well so and the my number here".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityClaim:
    """What the caller said about who is speaking."""

    denied: bool = False
    """Whether they are not the assumed caller."""
    name: str | None = None
    """The name they gave, as transcribed."""


def claim_in(said: str, *, taken_for: str | None, known: Collection[str] = ()) -> IdentityClaim | None:
    """The claim in `said`, given the name of the assumed caller and of others on this line; None if there is
    none.
    """
    text = fold(said)
    denials = [match["name"] for match in _DENIED.finditer(text)]
    denied = bool(_OTHER.search(text)) or (
        taken_for is not None
        and any(
            [name] == fold(taken_for).split()[:1] or (_may_be_name(name, said) and same_name(name, taken_for))
            for name in denials
        )
    )
    names = [match["name"] for match in _NAMED.finditer(text) if match["name"] not in denials]
    names = [name for name in names if _may_be_name(name, said)]
    if denied:
        return IdentityClaim(denied=True, name=_written(names[0], said) if names else None)
    for name in names:
        for other in known:
            if same_name(name, other):
                return IdentityClaim(
                    denied=taken_for is not None and not same_name(name, taken_for), name=other
                )
    formal = [match["a"] or match["b"] for match in _FORMAL.finditer(text)]
    cased = said != said.lower() and said != said.upper()
    formal = [name for name in formal if name in names and (not cased or _is_capital(name, said))]
    if formal and taken_for is not None and not same_name(formal[0], taken_for):
        return IdentityClaim(denied=True, name=_written(formal[0], said))
    if formal and taken_for is None:
        return IdentityClaim(name=_written(formal[0], said))
    return None


def _may_be_name(word: str, said: str) -> bool:
    """Whether a word of `said` may be somebody's name: no English word, or written with a capital.

    Every other word sounds like some name: "not sure" like Sarah, "not on" like Anna, "I'm done" like Dan.
    """
    if word in _NO_NAMES or word in STOP or word in DAYS or word in DEMONYMS:
        return False
    return not wordlike(word) or (said != said.upper() and _is_capital(word, said))


def _is_capital(word: str, said: str) -> bool:
    """Whether `said` has this folded word with a capital."""
    return any(each[0].isupper() and fold(each) == word for each in _WORD.findall(said))


def same_name(a: str, b: str) -> bool:
    """Whether two names may be the same: as written, nearly, or by sound. First names count."""
    first, second = fold(a).split(), fold(b).split()
    if not first or not second:
        return False
    x, y = first[0], second[0]
    if x == y or bool(set(sound(x)) & set(sound(y))):
        return True
    return min(len(x), len(y)) >= 4 and DamerauLevenshtein.distance(x, y) <= 1


def codes_in(said: str, language: str = "en") -> list[str]:
    """Every code of `CODE_DIGITS` digits that `said` may contain, said digit by digit or typed."""
    codes: list[str] = []
    for run in _runs(said, language):
        digits = "".join(digit for _, _, digit in run)
        # "to" and "for" before or after a code are words
        codes += [digits[at : at + CODE_DIGITS] for at in range(len(digits) - CODE_DIGITS + 1)]
    return list(dict.fromkeys(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Digits that were said as a proof, or as a new PIN."""

    digits: str
    """The digits that may be a PIN or code; empty if there are none of that length."""
    announced: bool
    """Whether they were called a PIN or code; otherwise nothing else was said, and they may be anything."""
    masked: str
    """The utterance without these digits, as it may be stored."""


def proof_in(said: str, language: str = "en") -> Proof | None:
    """The digits in `said` that may prove who is calling; None if there are none.

    A wrong number of digits proves nothing but is masked all the same: it may be a misrecognised code.
    """
    runs = [run for run in _runs(said, language) if len(run) >= _LEAST_MASKED]
    announced = speaks_of_proof(said)
    if not runs or not (announced or _is_bare(said, runs)):
        return None
    masked = said
    for run in reversed(runs):
        masked = f"{masked[: run[0][0]]}{MASK}{masked[run[-1][1] :]}"
    exact = [digits for run in runs if len(digits := _without_words(run, said)) == CODE_DIGITS]
    return Proof(digits=exact[0] if len(exact) == 1 else "", announced=announced, masked=masked)


def masked(said: str, language: str = "en") -> str:
    """The utterance without digits that may prove something."""
    proof = proof_in(said, language)
    return said if proof is None else proof.masked


def _without_words(run: list[tuple[int, int, str]], said: str) -> str:
    """The digits of `run`, without leading words that only sound like one if there are too many."""
    while len(run) > CODE_DIGITS and fold(said[run[0][0] : run[0][1]]) in _ALSO_WORDS:
        run = run[1:]
    return "".join(digit for _, _, digit in run)


def wants_pin(said: str) -> bool:
    """Whether the caller asks to set or change their PIN. English."""
    return bool(_WANTS_PIN.search(fold(said)))


def sets_pin(said: str) -> bool:
    """Whether the digits in `said` are a new PIN, and not the caller's own: "I have a PIN, it's …"."""
    return bool(_SETS_PIN.search(fold(said)))


def speaks_of_proof(said: str) -> bool:
    """Whether a PIN or a code is mentioned, so that the next digits may be it."""
    return bool(_ANNOUNCED.search(_OTHER_CODES.sub(" ", fold(said))))


def names_pin(said: str) -> bool:
    """Whether a PIN is mentioned by that name."""
    return bool(_PIN_NAMED.search(_OTHER_CODES.sub(" ", fold(said))))


def _runs(said: str, language: str) -> list[list[tuple[int, int, str]]]:
    """Digits that follow one another, as (start, end, digit), said or typed."""
    words = _DIGITS | _DIGITS_IN.get(language.partition("-")[0].casefold(), {})
    runs: list[list[tuple[int, int, str]]] = [[]]
    times = 1
    start = 0
    for token in re.finditer(r"[^\W\d_]+|\d", said):
        word = token.group()
        word = word.lower() if word.isascii() else fold(word)
        if word in _TIMES:
            times, start = _TIMES[word], token.start()
            continue
        digit = words.get(word)
        if digit is None:
            runs.append([])
        else:
            first = start if times > 1 else token.start()
            runs[-1] += [(first, token.end(), digit)] * times
        times = 1
    return [run for run in runs if run]


def _is_bare(said: str, runs: list[list[tuple[int, int, str]]]) -> bool:
    """Whether nothing but digits and fillers is said."""
    rest = said
    for run in reversed(runs):
        rest = f"{rest[: run[0][0]]} {rest[run[-1][1] :]}"
    return set(re.findall(r"\w+", fold(rest))) <= _FILLING


def _written(name: str, said: str) -> str:
    """`name` as written in `said`, which may have accents, capitalised."""
    for word in _WORD.findall(said):
        if fold(word) == name:
            return f"{word[:1].upper()}{word[1:]}"
    return name.capitalize()
