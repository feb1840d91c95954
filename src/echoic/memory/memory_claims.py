"""What a memory says, as it is looked for in texts: its value, and what shows that it is meant. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from echoic.english.lexicon import wordlike
from echoic.ranking.indexing import key_words
from echoic.types import Memory
from echoic.words import STOP, fold, word_of

_WORD: Final = re.compile(r"[eE]-mails?|[^\W_]+(?:['’][^\W_]+)*")
LONG: Final = 4
"""A value of so many content words or more is a statement: it is said where most of it is."""
_SAYS_SO: Final = frozenset("yes no true false".split())
"""Values that say nothing: there the key does."""
NUMBER_FIGURES: Final = 9
"""Figures of a telephone number that count; those before them differ by where one dials from."""

_GENERIC: Final = frozenset("user my our the a of and is current own main primary favourite favorite".split())
# One line means one thing; what a key is called and how people speak of it.
_ABOUT: Final = """
    name call called named
    home house live lives living lived city town village address residence reside move moved based location
    employer job work works working worked workplace company occupation profession career employed firm
    phone telephone mobile cell number
    email mail e-mail
    age old years
    birthday birth born birthdate
    wife spouse married
    husband spouse married
    partner spouse girlfriend boyfriend fiance fiancee
    mother mom mum mama parent
    father dad papa parent
    sister sibling sis
    brother sibling bro
    child son daughter kid baby children boy girl
    pet dog cat puppy kitten
    allergy allergies allergic intolerance intolerant
    medication medicine drug pill tablet take takes taking prescribed prescription
    condition diagnosis diagnosed illness disease
    diet eat vegetarian vegan
    car vehicle drive drives driving
    plan subscription tier
    preference prefer prefers preferred like likes love loves enjoy
    language speak speaks
    doctor gp physician
"""


def stem_of(word: str) -> str:
    return word_of(fold(word)).stem


def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _ABOUT.strip().splitlines():
        stems = frozenset(map(stem_of, line.split()))
        for stem in stems:
            found[stem] = found.get(stem, frozenset()) | stems
    return found


_MEANT: Final = _groups()
_RELATIONS: Final = frozenset(
    stem_of(word)
    for word in "wife husband partner mother father sister brother child son daughter pet dog cat friend boss"
    " aunt uncle cousin niece nephew grandmother grandfather neighbour colleague manager doctor".split()
)
"""Who has these is the speaker, whoever does something in the sentence."""


@dataclass(frozen=True)
class ClaimToken:
    """One word of a text, with its place in it."""

    start: int
    end: int
    text: str
    """Folded."""
    stem: str
    stop: bool


@dataclass(frozen=True)
class Claim:
    """What one memory says, as it is looked for."""

    key: str | None
    value: tuple[str, ...]
    """Stems of the value's content words in order; of all its words where it has none."""
    text: str
    """The value, folded."""
    subject: frozenset[str]
    """Stems of which one at least shows that it is about the same; empty where it has no key."""
    stems: frozenset[str]
    """The stems of the whole statement."""
    sources: frozenset[str]
    """The turns it was learned from."""
    named: bool
    """Whether the value is written with a capital."""
    telling: bool
    """Whether nobody else's can be the same: an e-mail address, a number of four digits or more."""

    @classmethod
    def of(cls, memory: Memory) -> Claim:
        """What `memory` says."""
        said = memory.statement or memory.text
        keyed = [word for word in cut_up(key_words(memory.key or "")) if word.text not in _GENERIC]
        about = [word for word in keyed if word.text not in {"name", "names"}] or keyed
        subject = frozenset(stem for word in about for stem in _MEANT.get(word.stem, {word.stem}))
        says_so = fold(memory.text).strip(" .!") in _SAYS_SO and bool(keyed)
        content = [word.stem for word in (keyed if says_so else cut_up(memory.text)) if not word.stop]
        whole = {word.stem for word in cut_up(said) if not word.stop and word.text not in _GENERIC}
        whole -= {stem_of("user"), stem_of("user's"), fold(memory.author or "")}
        return cls(
            key=memory.key,
            value=tuple(content or [word.stem for word in cut_up(memory.text)]),
            text=" ".join(word.text for word in keyed) if says_so else fold(memory.text).strip(" .!?"),
            subject=subject,
            stems=frozenset(whole),
            sources=frozenset(memory.source),
            named=memory.text[:1].isupper() and not says_so,
            telling=says_so or "@" in memory.text or sum(c.isdigit() for c in memory.text) >= LONG,
        )

    @property
    def is_statement(self) -> bool:
        """Whether it is looked for by most of its words, and not by a value."""
        return len(self.value) >= LONG or self.key is None

    @property
    def figures(self) -> str:
        """The digits of a number, as far as they tell it from others."""
        return "".join(c for c in self.text if c.isdigit())[-NUMBER_FIGURES:]

    @property
    def is_common(self) -> bool:
        """Whether the value is a word that people use without meaning it: "reading"."""
        return len(self.text.split()) == 1 and wordlike(self.text)

    @property
    def calls(self) -> bool:
        """Whether it is how the speaker is called: an agent that says it says just that."""
        return not self.relates and stem_of("name") in self.subject

    @property
    def relates(self) -> bool:
        """Whether it is about somebody the speaker knows, and not about the speaker."""
        return bool(self.subject & _RELATIONS)


def cut_up(text: str) -> list[ClaimToken]:
    """The words of `text` with their places."""
    found = []
    for match in _WORD.finditer(text):
        folded = fold(match.group()).replace("-", "")
        found.append(ClaimToken(match.start(), match.end(), folded, word_of(folded).stem, folded in STOP))
    return found
