"""Readers of what a speaker names: numbers, dates and addresses as people say them, and phrases for unnamed
things, which a speaker likes, avoids or needs, with the condition under which that holds.

Every reader starts at a word and returns the written form and where it ended, or None: "twenty two" is 22,
"double five" is 55, "ana at gmail dot com" is ana@gmail.com.

A phrase is read completely or not at all. Cut short it can mean the opposite ("I like coffee when it's
late"), so one with an unknown condition, with a reference only the listener can resolve ("this one"), or
without a clear end is refused. Conditions are read ("only at work", "when I'm driving"); hypotheticals,
politeness and recollections ("if I may", "when I was a child") are not conditions.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from echoic.english.lexicon import (
    ADJECTIVES,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    DISCOURSE,
    FUNCTION,
    MONTHS,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    pattern,
    source,
    table,
    words,
)
from echoic.english.sentences import Sentence
from echoic.temporal.rules import A_DAY, number_of_day

# -- numbers, dates and addresses

PHONE_DIGITS: Final = range(6, 16)
"""Digits of a telephone number: at most 15 (E.164); under six it is an extension or a code."""

_YEAR_BEHIND: Final = re.compile(r", (?:19|20)[0-9]{2}$|^[0-9]")
LAST_CENTURY: Final = range(30, 100)
"""Two digits of a year in which somebody who speaks was born."""

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
EMAIL_MARKS: Final = table("spoken.email_marks")
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
    head, _, tail = word.partition("-")
    if head in _TENS and tail in _UNITS:
        return Number(_TENS[head] + _UNITS[tail], at + 1)
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
    return _dated(said, _month_and_day(said, at) or _day_and_month(said, at))


def _dated(said: Sentence, found: tuple[int, int, int] | None) -> Value | None:
    """A month, a day and the word where they end, with the year behind them if there is one."""
    if found is None:
        return None
    month, day, end = found
    if day > _DAYS[month]:
        return None
    born = year(said, end + (said.low(end) == "in"))
    text = f"{MONTHS[month].capitalize()} {day}"
    return Value(f"{text}, {born.value}", born.end) if born else Value(text, end)


def birthday(said: Sentence, at: int) -> Value | None:
    """A day on which somebody was born, with a year of two digits, too: "third of May eighty-four".

    From thirty on they can only be of the last century; below ten, with the "oh", of this one. The month may
    be counted: "the ninth of the second".
    """
    found = date(said, at) or _dated(said, _counted_month(said, at))
    if found is None or _YEAR_BEHIND.search(found.text) or found.end >= len(said):
        return found
    oh = said.low(found.end) in {"oh", "o"}
    last = said.low(found.end + 1) if oh else ""
    rest = Number(_UNITS[last], found.end + 2) if last in _UNITS else number(said, found.end)
    closes = rest is not None and (said.gap(rest.end) or said.low(rest.end) in CONJUNCTIONS)
    if rest is None or not closes or not (oh or rest.value in LAST_CENTURY):
        return found
    return Value(f"{found.text}, {rest.value + (2000 if oh else 1900)}", rest.end)


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


def _counted_month(said: Sentence, at: int) -> tuple[int, int, int] | None:
    day = _day(said, at + (said.low(at) == "the"))
    if day is None or (said.low(day.end), said.low(day.end + 1)) != ("of", "the"):
        return None
    # "the first of the three" counts something else
    month = _day(said, day.end + 2) if said.match(_A_DAY, day.end + 2) else None
    return (month.value - 1, day.value, month.end) if month and month.value <= len(MONTHS) else None


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
    return address.endswith((".", "-")) or said.low(index) in EMAIL_MARKS


def _email_step(said: Sentence, at: int, *, local: bool) -> Value | None:
    word = said.low(at)
    if word in {"at", "@"} and local:
        return Value("@", at + 1)
    if word in EMAIL_MARKS:
        return Value(EMAIL_MARKS[word], at + 1)
    if word == "double" and len(said.low(at + 1)) == 1:
        return Value(said.low(at + 1) * 2, at + 2)
    spoken = number(said, at) if word not in {"a", "o"} else None
    if spoken:
        return Value(str(spoken.value), spoken.end)
    plain = re.fullmatch(r"[a-z0-9@._+-]{1,80}", word) is not None
    grammar = word in FUNCTION and word not in {"a", "i", "me", "hello", "hi", "will", "may"}
    return Value(word, at + 1) if plain and not grammar else None


# -- conditions

_CONDITIONAL: Final = tuple(
    """preference: favourite: least_favourite: avoids: avoid_topic: answer_length contact_time
    no_contact_time""".split()
)
"""Prefixes of the keys whose values can hold under a condition of any kind."""
_PLACES: Final = frozenset("home employer workplace".split())
# A move "after the divorce" is under no condition, and "just outside York" says where.
_AT_TIMES: Final = re.compile(
    r"(?:(?:only|mostly|mainly|usually) )?(?:when|whenever|while|during|except|unless|on|at|in) "
)


# "During the day and at Asda at night", "in the evening call them": the words go on to something else.
_ANOTHER: Final = re.compile(
    r"\b(?:(?:and|or) (?:in|at|on|for|with|near|outside|after|before|around|from|by)|(?<!on )call|"
    r"ring|phone|text|e-?mail|contact|reach|try|message|otherwise)\b|"
    r"^(?:during|in|on|at) (?:the )?[a-z]+ (?:at|in|for|with) "
)


def holds_condition(key: str, condition: str | None) -> bool:
    """Whether a value of `key` can hold under `condition`: one may live or work somewhere at times."""
    place, timed = key.partition(":")[0] in _PLACES, key.startswith(("contact_time", "no_contact_time"))
    if condition and (place or timed) and _ANOTHER.search(condition.casefold()):
        return False
    if place:
        return condition is not None and _AT_TIMES.match(condition) is not None
    return key.startswith(_CONDITIONAL)


_CONDITION_WORDS: Final = 10
_AFTER: Final = pattern("phrases.after")
_BEFORE: Final = pattern("phrases.before")
_ADJUNCT: Final = pattern("phrases.adjunct")
# No conditions of a preference: past, hypothetical, only now, or out of politeness.
_NOT_ONE: Final = pattern("phrases.not_one")
_TELLING: Final = words("phrases.telling")
_THEIRS: Final = table("phrases.theirs")


def condition_after(said: Sentence, at: int) -> tuple[str, int] | None:
    """The condition after the word `at`, and where it ends, or None."""
    found = said.match(_AFTER, at)
    if found is None:
        return None
    start = said.at.get(found.start("context"))
    if start is None:
        return None
    return _read(said, start)


def condition_before(said: Sentence) -> tuple[str, int] | None:
    """The condition a sentence begins with, and where its main clause begins: "At work I prefer tea"."""
    found = said.match(_BEFORE, 0)
    start = said.at.get(found.start("context")) if found else None
    if start is None:
        return None
    for end in range(start + 2, min(len(said), start + _CONDITION_WORDS + 1)):
        mine = said.low(end) in {"i", "my", "i'm"}
        told = said.low(end - 1) in _TELLING  # "if people know I like it": it belongs to the condition
        clause = said.gap(end) or re.match(rf"{source('phrases.when')}$", said.low(start)) is None or not told
        if mine and clause and _is_one(said.text(start, end)):
            return _theirs(said.text(start, end)), end
    return None


def condition_within(text: str) -> str | None:
    """The condition at the end of a preference: "in the evening" of "prefers tea in the evening"."""
    found = _ADJUNCT.search(text)
    return found.group("context") if found else None


def _read(said: Sentence, start: int) -> tuple[str, int] | None:
    end = start + 1
    while end < len(said) and not said.gap(end) and said.low(end) not in {"but", "because", "so"}:
        joined = said.low(end) in {"and", "or"} and said.low(end + 1) in {"i", "my", "we", "i'm", "please"}
        if joined or end - start > _CONDITION_WORDS:
            break
        end += 1
    text = said.text(start, end)
    if end - start > _CONDITION_WORDS or not _is_one(text):
        return None
    return _theirs(text), end


def _is_one(text: str) -> bool:
    return _NOT_ONE.search(text.casefold()) is None


def _theirs(text: str) -> str:
    """The speaker's words about themselves, reworded in the third person."""
    words = text.split()
    words[0] = words[0].lower()  # it follows what it is a condition of
    return " ".join(_THEIRS.get(word.casefold().replace("’", "'"), word) for word in words)


# -- phrases

_MAX_WORDS: Final = 7
_POINTING: Final = words("phrases.pointing")
# "that", "when", "if": the phrase holds only on a condition, which would be lost.
_CONDITIONS: Final = words("phrases.conditions")
_ENDS: Final = words("phrases.ends")
_THINGS_TOO: Final = words("phrases.things_too")
_DANGLING: Final = PREPOSITIONS | DETERMINERS
_VERBS: Final = words("phrases.verbs")
_TAILS: Final = tuple(
    f"{tail} "
    for tail in (
        "a lot|quite a|so much|very much|more than|the most|the best|as well|by the way|at all|to be honest|"
        "any more|of course|in general"
    ).split("|")
)
_PAIRS: Final = words("phrases.pairs")
_GENERIC: Final = words("phrases.generic")
_PASTIMES: Final = words("phrases.pastimes")
_NO_FOOD: Final = words("phrases.no_food")
_EMPTY_DOINGS: Final = words("phrases.empty_doings")
_SPELT: Final = table("phrases.spelt")
_VAGUE: Final = words("phrases.vague")


def item(
    said: Sentence, at: int, *, definite: bool = False, limit: int = _MAX_WORDS, conditional: bool = False
) -> Value | None:
    """One thing named in general ("jazz", "long walks on the beach"), or None.

    `definite`: whether "the aisle seat" counts; "I like the blue one" never does. `conditional`: whether a
    condition may follow that `condition_after` can read, so that it is not lost.
    """
    start = at
    first = said.low(at)
    if first == "the" and not definite and not _generic(said, at + 1):
        return None
    if first == "to" and not (said.low(at + 1) in _PASTIMES or definite):
        return None
    if first in {"a", "an"} and not definite:
        return None
    end = _phrase_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not words or len(words) > limit or not _POINTING.isdisjoint(words) or words[-1] in _DANGLING:
        return None
    lost = _conditional(said, end) and not (conditional and condition_after(said, end))
    if not _starts_well(words[0]) or lost or _cut_short(said, start, end):
        return None
    vague = words[-1] in _EMPTY_DOINGS or (len(words) == 1 and words[0] in ADJECTIVES - _THINGS_TOO)
    return None if vague else Value(said.text(start, end), end)


def items(
    said: Sentence, at: int, *, limit: int = _MAX_WORDS, conditional: bool = False
) -> tuple[list[Value], int]:
    """Things joined by commas, "and" or "or", up to the first that is unclear, and where they ended."""
    found: list[Value] = []
    index: int | None = at
    closed = False
    while index is not None and index < len(said) and len(found) < 12:
        one = item(said, index, limit=limit, conditional=conditional)
        if one is None or (found and not _alike(found[-1], one)):
            break
        found.append(one)
        closed = closed or said.low(index - 1) in {"and", "or"}
        index = _joint(said, one.end)
    # commas alone do not make a list: "I love Italian food, great place"
    found = found if closed else found[:1]
    return found, found[-1].end if found else at


def _alike(last: Value, following: Value) -> bool:
    """Whether two things are joined as equals; the second of "books about art and music" is not."""
    words = last.text.lower().split()
    doing = words[0].endswith("ing")
    if doing and following.text.split()[0].lower().endswith("ing"):
        return True
    return PREPOSITIONS.isdisjoint(words) and not (doing and len(words) > 1)


def foods(said: Sentence, at: int) -> tuple[list[Value], int]:
    """Things to eat, drink or touch: short items that are not meals, measures or complaints."""
    found, end = items(said, at, limit=3)
    clear = all(_is_food(one) for one in found)
    return (found, end) if found and clear else ([], at)


def subject(said: Sentence, at: int, *, limit: int = 3) -> Value | None:
    """The words before "is" or "are": the subject of "my favourite colour is"."""
    index = at
    while index < min(len(said), at + limit) and said.low(index) not in {"is", "are"}:
        if said.low(index) in (PRONOUNS | AUXILIARIES | CONJUNCTIONS) or (index > at and said.gap(index)):
            return None
        index += 1
    start = at + 2 * (said.low(at) in {"type", "kind", "sort"} and said.low(at + 1) == "of")
    words = {said.low(i) for i in range(start, index)}
    if index <= start or said.low(index) not in {"is", "are"} or not words.isdisjoint(_POINTING | DISCOURSE):
        return None
    return Value(said.text(start, index), index)


def clause(said: Sentence, at: int, *, limit: int = 30) -> Value | None:
    """Everything to the end of the sentence."""
    end = len(said)
    while end > at and said.low(end - 1) in {"please", "okay", "ok", "thanks", "thank", "too"}:
        end -= 1
    return Value(said.text(at, end), end) if 0 < end - at <= limit else None


def slug(text: str) -> str:
    """`text` as part of a key: in lower case, without article and commas, at most 60 characters.

    Recognisers write one spoken word differently ("color", "colour"): both become one key.
    """
    words = [_SPELT.get(word, word) for word in text.lower().replace(",", " ").split()]
    if words and words[0] in {"a", "an", "the", "some"}:
        words = words[1:] or words
    return " ".join(words)[:60].strip()


def _is_food(one: Value) -> bool:
    words = one.text.lower().split()
    if not _NO_FOOD.isdisjoint(words) or not _VAGUE.isdisjoint(words):
        return False
    # "cats dogs": a list that lost its commas, not one thing
    return not any(w.endswith("s") and not w.endswith("ss") for w in words[:-1])


def _generic(said: Sentence, at: int) -> bool:
    return said.low(at) in _GENERIC or (at < len(said) and said.tokens[at].capital)


def _starts_well(word: str) -> bool:
    bad = word in NUMBERS or word in CONJUNCTIONS or word in AUXILIARIES or word in DISCOURSE
    return (
        not bad and (word == "to" or word not in PREPOSITIONS) and word not in {"any", "some", "all", "every"}
    )


def _conditional(said: Sentence, end: int) -> bool:
    pair = (said.low(end), said.low(end + 1))
    over = said.gap(end + 2) or said.low(end + 2) in CONJUNCTIONS  # not "after all that"
    return pair[0] in _CONDITIONS and pair != ("that", "is") and not (pair == ("after", "all") and over)


def _cut_short(said: Sentence, start: int, end: int) -> bool:
    """Whether the next word is the object of the last ("seeing my friends", "to watch it fall")."""
    doing = said.low(end - 1).endswith("ing") or said.low(start) == "to"
    return doing and not said.gap(end) and said.low(end) in _POINTING


def _phrase_end(said: Sentence, at: int) -> int:
    index = at
    while index < len(said) and not (index > at and said.gap(index)):
        word = said.low(index)
        if word in {"and", "or"} and not _paired(said, index):
            break
        if index > at and (word in _ENDS or word in _CONDITIONS) and not _after_preposition(said, index):
            break
        if index > at and said.line.startswith(_TAILS, said.starts[index]):
            break
        index += 1
        if index - at > _MAX_WORDS + 1:
            break
    return index


def _after_preposition(said: Sentence, index: int) -> bool:
    return said.low(index - 1) in PREPOSITIONS and said.low(index) in {"my", "me", "you", "these", "it"}


def _paired(said: Sentence, index: int) -> bool:
    return f"{said.low(index - 1)}|{said.low(index + 1)}" in _PAIRS


def _joint(said: Sentence, end: int) -> int | None:
    """The start of the next item of a list after `end`; None at the end of the list."""
    joined = said.low(end) in {"and", "or"}
    if not joined and not (said.gap(end) and end < len(said)):
        return None
    start = end + joined
    opener = (
        said.low(start) in _ENDS | _VERBS or said.low(start) in AUXILIARIES or said.low(start) in CONJUNCTIONS
    )
    return None if opener or start >= len(said) else start
