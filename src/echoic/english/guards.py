"""Guards: suppositions, questions, other people's words, jokes and an agent's words are not believed.

There are two checks around every rule. Before it, `Ground` says whether a clause of the speaker's own begins
here; after it, `withdrawn` says whether the rest of the sentence takes it back. Both look at words only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from echoic.english.lexicon import pattern, words
from echoic.english.sentences import Sentence

GREETINGS: Final = words("guards.greetings")
CONNECTING: Final = GREETINGS | words("guards.connecting")
"""Words a clause of the speaker's own may follow."""
# Words that make what follows a question, a relative clause, a hedge or somebody's words.
_FORBIDDING: Final = words("guards.forbidding")
_SHADOWING: Final = words("guards.shadowing")
_LIFTING: Final = frozenset("but anyway anyways however".split())
# Phrases that cast a shadow though none of their words does.
_SHADOWS: Final = pattern("guards.shadows")
# Phrases that cast none though their words do: polite conditions and the speaker's own insistence.
_HARMLESS: Final = pattern("guards.harmless")
# Phrases after which the speaker vouches for what follows.
_VOUCHING: Final = pattern("guards.vouching")
_AGENT: Final = pattern("guards.agent")
_STAGED: Final = pattern("guards.staged")
_AGENTS: Final = frozenset("assistant agent system bot ai".split())
_QUESTIONING: Final = words("guards.questioning")
_ASSENTING: Final = frozenset("ok okay alright please yeah".split())
_TAGS: Final = pattern("guards.tags")
_TAKEN_BACK: Final = pattern("guards.taken_back")
# What makes a home, a job or a diet one of a season, or one that was left.
_PASSING: Final = pattern("guards.passing")
_PASSING_KEYS: Final = ("home", "employer", "workplace", "occupation", "industry", "diet:")
# What says that nothing before it holds, of whatever kind it is.
_UNSAID: Final = pattern("guards.unsaid")
# The same, but of what was denied anyway it is only said once more: "I don't live there, not any more".
_ENDED: Final = re.compile(r"(?:no more|(?:but )?not (?:now|any ?more)) ")
_JOKE: Final = pattern("guards.joke")
_TIMELESS: Final = tuple(
    "contact_time no_contact_time requirement: decision: note: phone email preference:".split()
)


def by_an_agent(utterance: Sequence[Sentence]) -> bool:
    """Whether an assistant says this, or somebody who wants to instruct one."""
    first = utterance[0] if utterance else None
    labelled = first is not None and first.low(0) in _AGENTS and len(first) > 1 and first.gap(1)
    return labelled or any(_AGENT.search(said.line) for said in utterance)


def staged(utterance: Sequence[Sentence]) -> bool:
    """Whether it is sung, acted or broadcast: then nothing in it is meant."""
    return any(_STAGED.search(said.line) for said in utterance)


def greets(said: Sentence) -> bool:
    """Whether the sentence is nothing but a greeting."""
    words = [token.low for token in said.tokens]
    return not GREETINGS.isdisjoint(words) and all(word in CONNECTING for word in words)


class Ground:
    """Where in one sentence a clause of the speaker's own may begin. Computed once, in one pass."""

    def __init__(self, said: Sentence, *, greeted: bool) -> None:
        self._said = said
        self._vouched = _ends_of(_VOUCHING, said)
        self._shadow = _shadow(said)
        self._greeting = _greeting(said, greeted=greeted)

    def greeted(self, index: int) -> bool:
        """Whether only a greeting and small words come before `index`."""
        return index <= self._greeting

    def vouch(self, index: int) -> None:
        """Let a clause begin at `index`, whatever stands before it."""
        self._vouched.add(index)

    def bears(self, index: int, *, firm: bool, value_end: int, asked: bool = False) -> bool:
        """Whether a rule may begin at `index`.

        Args:
            index: the first word of the trigger.
            firm: whether the trigger is plain enough to begin anywhere but after a word that forbids it.
            value_end: where the value read last ended: a new clause may begin right there.
            asked: whether the trigger is a request, which a shadow does not touch.
        """
        said = self._said
        if said.tokens[index].quoted:
            return False
        if index in self._vouched:
            return True
        if self._shadow[index] and not asked:
            return False
        before = said.low(index - 1)
        if index in (0, value_end):
            return True
        if before in _FORBIDDING:
            return False
        thanked = (said.low(index - 2), before) == ("thank", "you")
        return firm or said.tokens[index].gap or thanked or before in CONNECTING


def _shadow(said: Sentence) -> list[bool]:
    """For each word, whether a supposition or somebody else's words reach over it."""
    harmless = _covered(_HARMLESS, said)
    starts = set(_ends_of(_SHADOWS, said))
    shadow: list[bool] = []
    dark = False
    for index, token in enumerate(said.tokens):
        dark = (dark or index in starts) and token.low not in _LIFTING
        shadow.append(dark)
        dark = dark or (token.low in _SHADOWING and index not in harmless)
    return shadow


def _covered(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    found: set[int] = set()
    for match in _matches(pattern, said):
        start, end = said.at[match.start()], said.at[match.end()]
        found.update(range(start, end))
    return found


def _ends_of(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    harmless = _covered(_HARMLESS, said) if pattern is _SHADOWS else set()
    return {
        said.at[match.end()] for match in _matches(pattern, said) if said.at[match.start()] not in harmless
    }


def _matches(pattern: re.Pattern[str], said: Sentence) -> list[re.Match[str]]:
    """Matches that begin and end with a word."""
    return [m for m in pattern.finditer(said.line) if m.start() in said.at and m.end() in said.at]


def _greeting(said: Sentence, *, greeted: bool) -> int:
    """The last word before which there is only a greeting; -1 where there is none."""
    seen = greeted
    for index, token in enumerate(said.tokens):
        seen = seen or token.low in GREETINGS
        if token.low not in CONNECTING:
            return index if seen else -1
    return -1


def withdrawn(said: Sentence, end: int, key: str, *, denied: bool = False) -> bool:
    """Whether what follows a value at `end` makes it a question, a joke, a guess or a passing state.

    Args:
        said: the sentence.
        end: the word after the value.
        key: the key of the value.
        denied: whether the value was denied ("I don't live in Rome").
    """
    if end >= len(said):
        return said.question
    takes_back = (
        said.match(_TAGS, end)
        or said.match(_UNSAID, end)
        or (not denied and said.match(_ENDED, end))
        or (key.startswith(_PASSING_KEYS) and said.match(_PASSING, end))
        or (not key.startswith(_TIMELESS) and said.match(_TAKEN_BACK, end))
    )
    return bool(takes_back) or (said.question and not _asks_later(said, end))


def _asks_later(said: Sentence, end: int) -> bool:
    """Whether the question is a later clause, or only asks for assent: "I'm Ana, can you help me?"."""
    rest = [said.low(index) for index in range(end, min(len(said), end + 40))]
    return not _QUESTIONING.isdisjoint(rest) or said.low(len(said) - 1) in _ASSENTING


def jokes(said: Sentence) -> bool:
    """Whether the sentence says that the one before was a joke."""
    return said.match(_JOKE, 0) is not None
