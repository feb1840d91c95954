"""A rule: a trigger, which is matched against folded words, and a reader for the value behind it.

The rules are data (`data/rules.txt`). A trigger is a regular expression over `Sentence.line`. It is only ever
matched at the start of a word and holds no unbounded repetition, so matching costs a constant per word. It
begins with a whole literal word (`(?:call|calls) me`, not `calls? me`): rules are found by their words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType

from echoic.english.lexicon import expanded, triggers
from echoic.english.sentences import Sentence
from echoic.english.slots import SelfStatement, hear
from echoic.english.spoken_values import Value


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a trigger matched."""

    said: Sentence
    match: re.Match[str]
    at: int
    """The word after the trigger."""
    greeted: bool
    """Whether nothing but a greeting came before."""

    def group(self, name: str) -> str:
        """The words of a group of the trigger; empty where it took no part."""
        return (self.match.groupdict().get(name) or "").strip()


@dataclass(frozen=True, slots=True)
class RuleReading:
    """What a rule made of its spot."""

    heard: tuple[SelfStatement, ...]
    end: int
    """The word after the last one read."""


Reader = Callable[[Spot], RuleReading | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying one thing."""

    trigger: re.Pattern[str]
    words: frozenset[str]
    """Every word of the trigger: no match begins with another."""
    read: Reader
    firm: bool
    """Whether the trigger is plain enough to begin anywhere, not only where a clause begins."""
    elides: bool
    """Whether its "i" may be left out after "and" ("I live in Oslo and work for …")."""
    request: bool
    """Whether it may be put as a question ("could you call me in the evenings?")."""


def rules_of(readers: Mapping[str, ModuleType]) -> tuple[Rule, ...]:
    """The rules of `data/rules.txt`, read by functions of the modules given for its sections."""
    found = []
    for section, reader, flags, trigger in triggers():
        whole = expanded(trigger, section)
        if not whole.endswith((" )?", " ){0,2}", "[ ]")):  # what is optional at its end brings its own space
            whole += " "
        words = frozenset(re.findall(r"[a-z][a-z'-]*", whole))
        read: Reader = getattr(readers[section], reader, None) or _filling(reader, readers[section])
        found.append(
            Rule(re.compile(whole), words, read, "loose" not in flags, "elides" in flags, "request" in flags)
        )
    return tuple(found)


def _filling(slot: str, readers: ModuleType) -> Reader:
    """A reader that only fills a slot."""
    value = readers.VALUES[slot]
    return lambda spot: one(value(spot.said, spot.at), lambda text: hear(slot, text))


def index_of(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """For each word, the rules whose trigger may begin with it, in their order."""
    listed = tuple(rules)
    words = frozenset[str]().union(*(one.words for one in listed))
    return {word: tuple(one for one in listed if word in one.words) for word in words}


def one(value: Value | None, make: Callable[[str], SelfStatement]) -> RuleReading | None:
    """The reading of a single value."""
    return RuleReading((make(value.text),), value.end) if value else None


def many(values: Iterable[Value], end: int, make: Callable[[str], SelfStatement]) -> RuleReading | None:
    """The reading of several values of one kind; None where there are none."""
    heard = tuple(make(value.text) for value in values)
    return RuleReading(heard, end) if heard else None
