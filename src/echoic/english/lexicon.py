"""English as data: sets of words, tables and patterns, read from `data` once, on first use.

Everything is folded: lower case, no accents, straight apostrophes. Lists of names are evidence only: a name
need not be listed. Names that are ordinary words too ("will", "grace", "hunter") are in `AMBIGUOUS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from echoic.temporal.rules import MONTHS as MONTH_NAMES
from echoic.text import sections

_MACRO: Final = re.compile(r"\{([a-z_.]+)\}")


def _sections(file: str) -> Mapping[str, list[str]]:
    return sections("echoic.english", f"data/{file}.txt")


@cache
def words(name: str) -> frozenset[str]:
    """A set of words."""
    return frozenset(word for line in _sections("words")[name] for word in line.split())


@cache
def table(name: str) -> dict[str, str]:
    """A table from words to words."""
    return dict(line.split(" = ", 1) for line in _sections("words")[name])


@cache
def source(name: str) -> str:
    """The text of a pattern, with the patterns it refers to inserted."""
    return expanded("".join(_sections("patterns")[name]), name.partition(".")[0])


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A regular expression."""
    return re.compile(source(name))


def expanded(text: str, section: str) -> str:
    """`text` with each {name} replaced by a pattern of `section`, a macro, or {section.name}."""
    own = _sections("patterns")

    def named(said: re.Match[str]) -> str:
        places = (f"{section}.{said[1]}", f"macros.{said[1]}", said[1])
        return source(next(name for name in places if name in own))

    return _MACRO.sub(named, text)


def triggers() -> list[tuple[str, str, list[str], str]]:
    """Each rule as module, reader, flags and trigger; see `data/rules.txt`."""
    found = []
    for section, lines in _sections("rules").items():
        for line in "\n".join(lines).replace("\n    ", "").splitlines():
            head, _, trigger = line.partition(": ")
            reader, *flags = head.split()
            found.append((section, reader, flags, trigger))
    return found


FIRMS: Final = words("lexicon.firms")
"""Firms that are better known than any person of that name; some are ordinary words too."""
PLACES: Final = words("lexicon.places")
"""Places that are recognised even without a capital in a text that has others ("I live in boston")."""
AMBIGUOUS: Final = words("lexicon.ambiguous")
"""Names that are also words a speaker may say about themselves, and so prove nothing after "I'm"."""
GIVEN: Final = words("lexicon.given")
"""Given names that are hardly ever anything else."""
TITLES: Final = words("names.titles")
PLACE_WORDS: Final = words("names.place_words")
"""Ordinary words that occur in many place names."""
PRONOUNS: Final = words("lexicon.pronouns")
DETERMINERS: Final = words("lexicon.determiners")
CONJUNCTIONS: Final = words("lexicon.conjunctions")
AUXILIARIES: Final = words("lexicon.auxiliaries")
PREPOSITIONS: Final = words("lexicon.prepositions")
DISCOURSE: Final = words("lexicon.discourse")
FUNCTION: Final = PRONOUNS | DETERMINERS | CONJUNCTIONS | AUXILIARIES | PREPOSITIONS | DISCOURSE
"""Function words: none begins a value, and most end one."""
NUMBERS: Final = words("lexicon.numbers")
DAYS: Final = words("lexicon.days")
MONTHS: Final = tuple(month.lower() for month in MONTH_NAMES)
FIELDS: Final = words("lexicon.fields")
"""Lines of business."""
ADJECTIVES: Final = words("lexicon.adjectives")
DEMONYMS: Final = words("lexicon.demonyms")
COMMON: Final = (
    FUNCTION
    | FIRMS
    | NUMBERS
    | DAYS
    | frozenset(MONTHS)
    | ADJECTIVES
    | words("lexicon.nouns")
    | words("lexicon.verbs")
    | DEMONYMS
) - (AMBIGUOUS | GIVEN)
"""English words that are neither names nor places by themselves."""
_WORDLIKE_ENDINGS: Final = tuple(
    "ing ed ly ful less ous able ible ish ness tion sion ment ative ctive ional aholic phobic istic"
    " n't 'll 've 're 'd 's".split()
)
"""Endings by which an unknown word counts as an English adjective, participle or adverb, not as a name."""


def wordlike(low: str) -> bool:
    """Whether a folded word is English, judging by the lists and its ending, and not a known name."""
    if low in GIVEN or low in AMBIGUOUS:
        return False
    if low in COMMON or low.endswith(_WORDLIKE_ENDINGS):
        return True
    plural = low.endswith(("shes", "ches", "sses", "xes"))
    singular = low.removesuffix("es") if plural else low.removesuffix("s")
    return (singular != low and singular in COMMON) or ("-" in low and set(low.split("-")) <= COMMON)
