"""Numbers, dates, telephone numbers and e-mail addresses as people say them.

Every reader starts at a word and returns the written form and where it ended, or None: "twenty two" is 22,
"double five" is 55, "ana at gmail dot com" is ana@gmail.com.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from echoic.english.lexicon import FUNCTION, MONTHS, table
from echoic.english.sentences import Sentence
from echoic.temporal.rules import A_DAY, number_of_day

PHONE_DIGITS: Final = range(6, 16)
"""Digits of a telephone number: at most 15 (E.164); under six it is an extension or a code."""

CODE_LENGTH: Final = range(3, 21)
"""Letters and digits of a reference."""

_UNITS: Final = {
    word: value
    for value, words in enumerate("zero|oh|o|nought|nil one two three four five six seven eight nine".split())
    for word in words.split("|")
}
_TEENS: Final = {
    word: 10 + value
    for value, word in enumerate(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    )
}
_TENS: Final = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
} | {"fourty": 40}
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_A_DAY: Final = re.compile(rf"{A_DAY} ")
_WRITTEN_DATE: Final = re.compile(r"[0-9]{1,4}[/.-][0-9]{1,2}[/.-][0-9]{2,4}")
_WRITTEN_DIGITS: Final = re.compile(r"[+(]?[0-9][0-9()+./-]{0,30}")
_EMAIL: Final = re.compile(r"[a-z0-9._+-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,4}[a-z]{2,24}")
_EMAIL_MARKS: Final = table("spoken.email_marks")
_EMAIL_WORDS: Final = 16
"""The most words of one address: enough for one spelled letter by letter."""


class Value(NamedTuple):
    """A spoken value in its written form."""

    text: str
    end: int
    """The word after the last one read."""


class Number(NamedTuple):
    """A whole number that was said."""

    value: int
    end: int


def number(said: Sentence, at: int) -> Number | None:
    """A whole number under 1000: "34", "thirty four", "thirty-four", "a hundred and two"."""
    head, _, tail = said.low(at).partition("-")
    if tail and head in _TENS and tail in _UNITS:
        return Number(_TENS[head] + _UNITS[tail], at + 1)
    word = said.low(at)
    if word.isascii() and word.isdigit() and len(word) <= 3:
        return Number(int(word), at + 1)
    small = _under_hundred(said, at + (word == "a"))
    if said.low(at + 1) == "hundred" and (word == "a" or word in _UNITS):
        rest = _under_hundred(said, at + 2 + (said.low(at + 2) == "and"))
        hundreds = 100 * _UNITS.get(word, 1)
        return Number(hundreds + rest.value, rest.end) if rest else Number(hundreds, at + 2)
    return None if word == "a" else small


def _under_hundred(said: Sentence, at: int) -> Number | None:
    word = said.low(at)
    if word in _TENS:
        unit = _UNITS.get(said.low(at + 1), 0)
        joined = unit > 0 and not said.gap(at + 1)
        return Number(_TENS[word] + unit * joined, at + 1 + joined)
    if word in _TEENS:
        return Number(_TEENS[word], at + 1)
    if word in _UNITS and word not in {"o", "oh"}:
        return Number(_UNITS[word], at + 1)
    return None


def year(said: Sentence, at: int) -> Number | None:
    """A year from 1900 to 2099: "1990", "nineteen ninety", "nineteen oh five", "two thousand and five"."""
    word = said.low(at)
    if word.isascii() and word.isdigit() and len(word) == 4 and 1900 <= int(word) <= 2099:
        return Number(int(word), at + 1)
    if word == "two" and said.low(at + 1) == "thousand":
        rest = _under_hundred(said, at + 2 + (said.low(at + 2) == "and"))
        return Number(2000 + rest.value, rest.end) if rest else Number(2000, at + 2)
    century = {"nineteen": 1900, "twenty": 2000}.get(word)
    if century is None:
        return None
    if said.low(at + 1) in {"oh", "o"} and said.low(at + 2) in _UNITS:
        return Number(century + _UNITS[said.low(at + 2)], at + 3)
    rest = _under_hundred(said, at + 1)
    return Number(century + rest.value, rest.end) if rest and rest.value >= 10 else None


def date(said: Sentence, at: int) -> Value | None:
    """A day of the year: "May 3", or "May 3, 1990" if the year was said; digits stay as they are."""
    if _WRITTEN_DATE.fullmatch(said.low(at)):
        return Value(said.tokens[at].text, at + 1)
    found = _month_and_day(said, at) or _day_and_month(said, at)
    if found is None:
        return None
    month, day, end = found
    if day > _DAYS[month]:
        return None
    born = year(said, end + (said.low(end) == "in"))
    text = f"{MONTHS[month].capitalize()} {day}"
    return Value(f"{text}, {born.value}", born.end) if born else Value(text, end)


def _month_and_day(said: Sentence, at: int) -> tuple[int, int, int] | None:
    if said.low(at) not in MONTHS:
        return None
    day = _day(said, at + 1 + (said.low(at + 1) == "the"))
    return (MONTHS.index(said.low(at)), day.value, day.end) if day else None


def _day_and_month(said: Sentence, at: int) -> tuple[int, int, int] | None:
    day = _day(said, at + (said.low(at) == "the"))
    if day is None:
        return None
    month = day.end + (said.low(day.end) == "of")
    return (MONTHS.index(said.low(month)), day.value, month + 1) if said.low(month) in MONTHS else None


def _day(said: Sentence, at: int) -> Number | None:
    written = said.match(_A_DAY, at)
    if written:
        found = Number(number_of_day(written.group().strip()), said.at[written.end()])
    else:
        cardinal = number(said, at)
        if cardinal is None:
            return None
        found = cardinal
    return found if 1 <= found.value <= 31 else None


def digits(said: Sentence, at: int) -> Value | None:
    """A run of spoken or written digits, with a leading + if one was said. Any length above 0."""
    plus = "+" if said.low(at) == "plus" or said.low(at).startswith("+") else ""
    index = at + (said.low(at) == "plus")
    run = ""
    while index < len(said):
        step = _digit_step(said, index)
        if step is None:
            break
        run += step.text
        index = step.end
    return Value(plus + run, index) if run else None


def _digit_step(said: Sentence, at: int) -> Value | None:
    word = said.low(at)
    if _WRITTEN_DIGITS.fullmatch(word):
        return Value(re.sub(r"\D", "", word), at + 1)
    times = {"double": 2, "triple": 3, "treble": 3}.get(word)
    if times and said.low(at + 1) in _UNITS:
        return Value(str(_UNITS[said.low(at + 1)]) * times, at + 2)
    if word in {"hundred", "thousand"} and at:
        return Value("00" if word == "hundred" else "000", at + 1)
    if word in {"dash", "hyphen", "and"} and (said.low(at + 1) in _UNITS or said.low(at + 1)[:1].isdigit()):
        return Value("", at + 1)
    if word in {"o", "oh"}:
        return Value("0", at + 1)
    spoken = _under_hundred(said, at)
    return Value(str(spoken.value), spoken.end) if spoken else None


def phone(said: Sentence, at: int) -> Value | None:
    """A telephone number as digits: "five five five, one two three four" is 5551234."""
    found = digits(said, at)
    return found if found and len(found.text.lstrip("+")) in PHONE_DIGITS else None


def code(said: Sentence, at: int) -> Value | None:
    """Letters and digits of a reference as one word: "a b one two dash nine" is AB129."""
    run, index = "", at
    while index < len(said) and (step := _code_step(said, index)):
        run, index = run + step.text, step.end
    good = len(run) in CODE_LENGTH and any(map(str.isdigit, run))
    return Value(run.upper(), index) if good else None


def _code_step(said: Sentence, at: int) -> Value | None:
    word = said.low(at)
    if re.fullmatch(r"(?=.*[0-9])[a-z0-9]+(?:[-/.#][a-z0-9]+)*", word) or _is_letter(said, at):
        return Value(re.sub(r"[^a-z0-9]", "", word), at + 1)
    if word in {"dash", "hyphen", "slash"} and at + 1 < len(said):
        return Value("", at + 1)
    return _digit_step(said, at)


def _is_letter(said: Sentence, at: int) -> bool:
    """Whether a single letter is meant: "a" and "i" are words as well, and end no reference."""
    word = said.low(at)
    if len(word) != 1 or not word.isascii() or not word.isalpha() or word == "o":
        return False
    return word not in {"a", "i"} or _is_letter(said, at + 1) or _digit_step(said, at + 1) is not None


def email(said: Sentence, at: int) -> Value | None:
    """An e-mail address, written or spoken ("ana at gmail dot com"), in lower case."""
    address, index = "", at
    while index < min(len(said), at + _EMAIL_WORDS):
        if "@" in address and "." in address.partition("@")[2] and not _goes_on(said, index, address):
            break
        step = _email_step(said, index, local="@" not in address)
        if step is None:
            return None
        address += step.text
        index = step.end
    return Value(address, index) if _EMAIL.fullmatch(address) else None


def _goes_on(said: Sentence, index: int, address: str) -> bool:
    return address.endswith((".", "-")) or said.low(index) in _EMAIL_MARKS


def _email_step(said: Sentence, at: int, *, local: bool) -> Value | None:
    word = said.low(at)
    if word in {"at", "@"} and local:
        return Value("@", at + 1)
    if word in _EMAIL_MARKS:
        return Value(_EMAIL_MARKS[word], at + 1)
    if word == "double" and len(said.low(at + 1)) == 1:
        return Value(said.low(at + 1) * 2, at + 2)
    spoken = number(said, at) if word not in {"a", "o"} else None
    if spoken:
        return Value(str(spoken.value), spoken.end)
    plain = re.fullmatch(r"[a-z0-9@._+-]{1,80}", word) is not None
    grammar = word in FUNCTION and word not in {"a", "i", "me", "hello", "hi", "will", "may"}
    return Value(word, at + 1) if plain and not grammar else None
