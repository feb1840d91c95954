"""Secrets said near the words for them, not directly after: "the box by the meter, seven oh three one".

`labels` reads what a sentence says about a cue. People say more loosely what they know by heart: the number
comes a clause or a sentence later, or the agent named what it is. A number said digit by digit identifies
something, so the nearest words decide: those for a secret, or those for an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from echoic.secrets import values
from echoic.secrets.labels import CODE, LABELS, Secret, harmless, is_plain_code
from echoic.text import END, START, any_of, patterns, word_lists
from echoic.text.spoken_numbers import ENGLISH, View, is_bare, runs

_PATTERNS = patterns("echoic.secrets", "topics")

_LISTS = word_lists("echoic.secrets")

_DIGITS: dict[Secret, tuple[int, int]] = {
    "PIN": (4, 8),
    "security code": (3, 4),
    "one-time code": (4, 8),
    "password": (3, 12),
    "card": (8, 19),
    "account number": (6, 20),
    "ID number": (6, 20),
}
"""How many digits such a number has."""
_REACH = 160
"""The most characters between the words for a secret and its number."""
_SINGLE = frozenset(word for word in ENGLISH.vocabulary if len(ENGLISH.numerals.get((word,), "")) == 1)
_REPEATS = frozenset(ENGLISH.repeats)
# Things that are opened with a number.
_THINGS = _PATTERNS["things"]
_OPENED = re.compile(START + _THINGS + END, re.IGNORECASE)
_OPENS = re.compile(_PATTERNS["opens"], re.IGNORECASE)
_BACK = re.compile(_PATTERNS["back"], re.IGNORECASE)
_SENT = re.compile(_PATTERNS["sent"], re.IGNORECASE)
_BANK = re.compile(
    r"\b(?:bank|building\s+society|branch|direct\s+debit|standing\s+order|wire|giro)\b", re.IGNORECASE
)
_OTHER = re.compile(START + any_of(_LISTS["other"]) + END, re.IGNORECASE)
_STREET = re.compile(_PATTERNS["street"], re.IGNORECASE)
DECLINES = re.compile(_PATTERNS["declines"], re.IGNORECASE | re.VERBOSE)
"""What an agent says about a secret that it was told."""
REGRETS = re.compile(_PATTERNS["regrets"], re.IGNORECASE | re.VERBOSE)
"""What a speaker says who told a secret."""
_LOCKS = re.compile(
    r"\b(?:(?:pad)?locks?|comb(?:o|ination)|dial)"
    r"(?:'s|\s+is|\s+was|\s+opens?\s+(?:with|on|at|to))?\W*$",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"(?<![^\W_])(?:[A-Z][ ,.-]{0,2}){1,4}$")
_ABOUT_ANSWERS = re.compile(r"\b(?:security|secret)\s+(?:question|word|answer)s?\b", re.IGNORECASE)
_SCALES = frozenset("hundred thousand million hundreds thousands lakh crore".split())
_NAMED = re.compile(r"(?<=[a-z,:] )(?!I\b)[^\W\d_a-z][\w'’-]+(?:\s+(?!I\b)[^\W\d_a-z][\w'’-]+){0,3}")
_SAYS = _PATTERNS["says"]
_TYPED = re.compile(_SAYS, re.IGNORECASE)
_ENTERED = re.compile(rf"{_SAYS}|[,:.?!;]\s*$", re.IGNORECASE)
_IS = re.compile(r"(?:'s|\s+is|\s+was)\s+", re.IGNORECASE)
_DATE = re.compile(r"[0-3]?[0-9][ .-][0-3]?[0-9][ .-](?:19|20)?[0-9]{2}|[0-2]?[0-9] [0-5][05]")
_YEAR = re.compile(r"(?:1[89]|20)[0-9]{2}")
_SIGNED_WORD = re.compile(r"(?<!\S)(?=[^\s,.]*[0-9])(?=[^\s,.]*[A-Za-z])[^\s,.;:!?]{5,64}")


_PLACE = _PATTERNS["place"]
_HIDDEN = re.compile(_PATTERNS["hidden"], re.IGNORECASE)
_ANYWHERE = re.compile(r"\b" + _PLACE, re.IGNORECASE)
_KEY = re.compile(r"\b(?:keys?|get\s+in|let\s+(?:myself|himself|herself|themselves)\s+in)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """A secret that was named, and its position."""

    kind: Secret
    end: int
    """The end of its words; -1 if they are in another text."""
    thing: bool = False
    """Whether it is only what a number opens."""


def topics(text: str) -> list[Topic]:
    """The secrets that `text` names, in order."""
    found = [
        Topic(label.kind, cue.end())
        for label in LABELS
        for cue in label.cue.finditer(text)
        if not harmless(label, cue, text)
    ]
    found += [Topic("one-time code", cue.end()) for cue in CODE.finditer(text) if is_plain_code(cue)]
    found += [Topic("one-time code", cue.end()) for cue in _SENT.finditer(text)]
    found += [Topic("security code", cue.end()) for cue in _BACK.finditer(text)]
    found += [Topic("security answer", cue.end()) for cue in _ABOUT_ANSWERS.finditer(text)]
    found += [Topic("account number", cue.end()) for cue in _BANK.finditer(text)]
    found += [Topic("PIN", cue.end(), thing=True) for cue in _OPENED.finditer(text)]
    return sorted(found, key=lambda topic: topic.end)


def near(view: View, original: str, named: Sequence[Topic] = ()) -> Iterator[tuple[Secret, int, int]]:
    """Numbers of `view`, a reading of `original`, that are dictated after a secret was named.

    `named` are secrets named before the text.
    """
    said = list(runs(view))
    numbers = [each for each in said if _is_read_out(view, original, *each)]
    keyed = [each for each in said if each not in numbers and _is_keyed_in(view, original, *each)]
    here = topics(view.text) if numbers or keyed else []
    for digits, start, end in numbers + keyed:
        before = [topic for topic in here if topic.end <= start and start - topic.end <= _REACH]
        other = [cue.end() for cue in _OTHER.finditer(view.text, max(0, start - _REACH), start)]
        if before:
            before = [topic for topic in before if not other or topic.end >= other[-1]]
        elif named and not other and not _LETTERS.search(view.text, max(0, start - 12), start):
            before = [replace(topic, end=-1) for topic in named]
        kinds = [topic.kind for topic in before if not topic.thing or _enters(view.text, topic, start)]
        if 10 <= len(digits) <= 11 and digits[0] == "0" and "account" not in view.text.lower():
            kinds = [kind for kind in kinds if kind != "account number"]  # a bank has a telephone too
        if _OPENS.match(view.text, end):
            kinds.append("PIN")
        kind = _fitting(kinds, view.text, digits, start)
        if kind is not None:
            yield kind, start, end


def _is_keyed_in(view: View, original: str, digits: str, start: int, end: int) -> bool:
    """Whether four digits that could be a year or a time are what to type: "it's 1954"."""
    return (
        len(digits) == 4
        and _TYPED.search(view.text, max(0, start - 24), start) is not None
        and not values.is_amount(view.text, start)
        and not values.UNITS.match(view.text, end)
        and not is_scaled(original[slice(*view.origin(start, end))])
    )


def _enters(text: str, thing: Topic, start: int) -> bool:
    """Whether the code of `thing` is said at `start`: "door 1422" is something else."""
    between = _LETTERS.sub("", text[max(0, thing.end) : start])
    if re.search(r"\bnumber\b", between, re.IGNORECASE):
        return False
    if thing.end < 0 and is_bare(text):  # named by the agent who asked
        return True
    return _ENTERED.search(between) is not None or _IS.fullmatch(between) is not None


def read_out(view: View, original: str) -> Iterator[tuple[Secret, int, int]]:
    """Every dictated number that is not an order's or a telephone's, for a speaker who regrets it."""
    numbers = [each for each in runs(view) if _is_read_out(view, original, *each)]
    here = topics(view.text) if numbers else []
    for digits, start, end in numbers:
        other = [cue.end() for cue in _OTHER.finditer(view.text, max(0, start - 60), start)]
        kinds = [topic.kind for topic in here if topic.end <= start]
        if (
            _LETTERS.search(view.text, max(0, start - 12), start)
            or (other and not any(topic.end >= other[-1] for topic in here if topic.end <= start))
            or (9 <= len(digits) <= 11 and not kinds)
        ):
            continue
        kind = _fitting(kinds, view.text, digits, start)
        if kind is None and len(digits) > 3:
            kind = _fitting(["PIN", "card"], view.text, digits, start)
        if kind is not None:
            yield kind, start, end


def _fitting(kinds: Sequence[Secret], text: str, digits: str, start: int) -> Secret | None:
    """The last of `kinds` that a number may be."""
    for kind in reversed(kinds):
        least, most = _DIGITS.get(kind, (1, 0))
        if kind == "PIN" and _LOCKS.search(text, max(0, start - 24), start):
            least = 3  # a dial usually has three numbers
        if least <= len(digits) <= most:
            return kind
    return None


def _is_read_out(view: View, original: str, digits: str, start: int, end: int) -> bool:
    """Whether a number is said digit by digit, or written unlike an amount, date or year."""
    first, last = view.origin(start, end)
    if (
        len(digits) < 3
        or is_scaled(original[first:last])
        or values.is_amount(view.text, start)
        or values.UNITS.match(view.text, end)
        or _STREET.match(view.text, end)
    ):
        return False
    words = re.findall(r"[^\W_]+", original[first:last].lower())
    single = sum(
        word in _SINGLE or word in _REPEATS or (word.isdecimal() and len(word) == 1) for word in words
    )
    if len(words) >= 3 and original.count(",", first, last) >= 2 and len(digits) <= 2 * len(words):
        return True
    if single >= 3 or (single == 2 and not _REPEATS.isdisjoint(words)):
        return bool(single * 2 >= len(words))
    written = len(digits) >= 4 and all(word.isdecimal() for word in words)
    return written and not _YEAR.fullmatch(digits) and not _DATE.fullmatch(original, first, last)


def hidden(text: str, asked: str = "") -> Iterator[tuple[int, int]]:
    """Where a key is hidden, which opens a house like a code; `asked` is what was said before."""
    places = _ANYWHERE if _KEY.search(asked) else _HIDDEN
    yield from (place.span("place") for place in places.finditer(text))


def is_scaled(number: str) -> bool:
    """Whether a number is said as an amount: "four thousand three hundred"."""
    return any(word in _SCALES for word in re.findall(r"[^\W_]+", number.lower()))


def mixed(text: str) -> Iterator[tuple[int, int]]:
    """Words with both letters and digits, as in passwords and hardly anything else that is said."""
    yield from (word.span() for word in _SIGNED_WORD.finditer(text))


def names(text: str) -> Iterator[tuple[int, int]]:
    """Names inside a sentence, where the answer to a security question is."""
    yield from (name.span() for name in _NAMED.finditer(text))
