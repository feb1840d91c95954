"""Grounding: whether a proposed fact can have been said in the turns it cites. Pure; trusts no model.

It cannot tell whether a fact is true. It detects names and numbers that were never said, facts that share no
word with the turns, and instructions in place of facts about the user. `consistent` removes proposed changes
that contradict each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from echoic.english.listener import by_an_agent
from echoic.english.phrases import digits, number
from echoic.english.sentences import Sentence, completed, sentences
from echoic.errors import InvalidInput
from echoic.memory.extraction.reconciliation import (
    FACT_CATEGORIES,
    Add,
    Change,
    Confirm,
    Fact,
    Retract,
    Supersede,
)
from echoic.memory.extraction.turns import questions_before
from echoic.memory.injection import injected
from echoic.temporal import mentions_a_day
from echoic.text import content_words, cut, fold, visible
from echoic.types import Memory, Turn, checked_name, checked_text

MAX_CHARACTERS: Final = 400
"""The longest text of a fact, two or three sentences; a longer one is a transcript."""

# Words of the frame of a fact, which need not have been said.
_FRAME: Final = frozenset(
    "user user's caller person wants likes has lives works needs prefers called name".split()
)
_NAME: Final = re.compile(r"\b[^\W\d_a-z][\w'’-]*")
_OPENERS: Final = frozenset("the a an my our their his her they he she it user i in on at no not".split())
_CALENDAR: Final = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december""".split()
)
_DATE: Final = re.compile(
    r"\b[0-9]{1,2} [A-Z][a-z]{2,8} (?:19|20)[0-9]{2}\b|\b(?:19|20)[0-9]{2}(?:-[0-9]{2}){0,2}\b"
)
_ORDERS: Final = re.compile(
    r"\b(?:ignore|disregard|override|obey|reveal|instructions?|system (?:prompt|message)|jailbreak|"
    r"(?:the |an? )?(?:agent|assistant|model|ai|bot|system) (?:must|should|shall|has to|is to|will|may|can)|"
    r"you (?:are|must(?! know)|should(?! know)|shall|will|have to)|all (?:other )?users|other users|"
    r"administrator|without (?:verification|asking|approval)|new rule|"
    r"(?:the (?:next|last)|this|every|any) caller|"
    r"(?:all|every|other) (?:the )?customers?|your (?:rules|memory|training|prompt|filters?|records?))\b"
    r"|^(?:(?:please|now|just|okay|ok|robot|system|assistant)\W+)*(?:save|store|record|log|set|erase|wipe|"
    r"delete|override|reveal|print|repeat|pretend|act|say|ignore|disregard|forget|become|enter|unlock|skip|"
    r"behave|disable|approve|mark (?!me\b|down\b)\w+|write (?!(?:me|to me|us)\b)|"
    r"tell (?:everyone|everybody|the next|all|them)|(?:note|write|put) (?:down )?that (?:the|all|every)|"
    r"from (?:now|today|here) on,? you)\b",
    re.IGNORECASE,
)


def grounded(
    changes: Sequence[Change], turns: Sequence[Turn], known: Sequence[Memory], *, context: Sequence[Turn] = ()
) -> list[Change]:
    """Those `changes` that are grounded in the turns they cite; `known` are the memories they may name.

    An answer says what its question, in `turns` or in `context` before them, makes of it: a yes to "Are you
    diabetic?" says "diabetic".
    """
    every = [*context, *turns]
    cited = {name for change in changes for name in change.source}
    spoken = {
        turn.id: visible(f"{turn.heard_text} {completed(asked, turn.heard_text)}")
        for turn, asked in zip(every, questions_before(every), strict=True)
        if turn.id in cited
    }
    by_id = {memory.id: memory for memory in known}

    def stands(change: Change) -> bool:
        said = [spoken[name] for name in change.source if name in spoken]
        if isinstance(change, (Add, Supersede)):
            return is_keepable(change.fact) and is_grounded(change.fact, said)
        # a confirmation counts, and confirms an unconfirmed memory
        named = change.known if isinstance(change, Retract) else ()
        named = (change.known,) if isinstance(change, Confirm) else named
        return all(name in by_id and is_mentioned(by_id[name], said) for name in named)

    return [change for change in changes if stands(change)]


def is_keepable(fact: Fact) -> bool:
    """Whether `fact` can be stored and read again unchanged; an extractor may return anything."""
    texts = [text for text in (fact.statement, fact.context) if text]
    try:
        for text in (fact.text, *texts):
            checked_text(text, "fact")
        if fact.key is not None:
            checked_name(fact.key, "key")
    except InvalidInput:
        return False
    return fact.category in FACT_CATEGORIES


def is_mentioned(memory: Memory, said: Sequence[str]) -> bool:
    """Whether `said` mentions `memory`; otherwise it neither repeats nor ends it."""
    about = f"{memory.key or ''} {memory.text} {memory.statement or ''}".replace("_", " ").replace(":", " ")
    stems = {word.stem for utterance in said for word in content_words(utterance)}
    return any(word.stem in stems for word in content_words(about) if word.text not in _FRAME)


def is_grounded(fact: Fact, said: Sequence[str]) -> bool:
    """Whether `fact` can follow from the utterances `said`."""
    texts = [text for text in (fact.text, fact.statement, fact.context) if text]
    if not said or any(len(text) > MAX_CHARACTERS or instructs(text) for text in texts):
        return False
    words = {word for utterance in said for word in _without_s(utterance)}
    stems = {word.stem for utterance in said for word in content_words(utterance)}
    numbers = _numbers(said)
    dated = any(map(mentions_a_day, said))
    if not all(_names_said(text, words, dated=dated) for text in texts):
        return False
    if not all(_numbers_said(text, numbers, dated=dated) for text in texts):
        return False
    told = {word.stem for word in content_words(fact.text) if word.text not in _FRAME}
    return bool(told & stems) or (bool(told) and told <= numbers)


def instructs(text: str) -> bool:
    """Whether `text` gives an order, rather than a fact about the user."""
    return bool(_ORDERS.search(text)) or injected(text) is not None or by_an_agent(sentences(text))


def _without_s(text: str) -> list[str]:
    """The words of `text`: "Cadi's two" and "Tanner's Row" say the names Cadi and Tanner."""
    return [word.removesuffix("'s") for word in cut(text)]


def _names_said(text: str, words: set[str], *, dated: bool) -> bool:
    """Whether every capitalised word of `text` was said, including the first word of a value."""
    for name in _NAME.findall(text):
        parts = _without_s(name)
        opens = all(part in _OPENERS for part in parts)
        calendar = dated and all(part in _CALENDAR for part in parts)
        begins = text.startswith(name) and " " in text and len(text.split()) > 3
        if not (opens or calendar or begins) and not all(part in words for part in parts):
            return False
    return True


def _numbers_said(text: str, numbers: set[str], *, dated: bool) -> bool:
    rest = _DATE.sub(" ", text) if dated else text
    return all(run in numbers for run in re.findall(r"[0-9]+", rest))


def _numbers(said: Sequence[str]) -> set[str]:
    """Every number in what was said, in digits."""
    found: set[str] = set()
    for utterance in said:
        found.update(re.findall(r"[0-9]+", utterance))
        for sentence in sentences(utterance):
            found.update(_spoken(sentence))
    return found


def _spoken(sentence: Sentence) -> set[str]:
    found: set[str] = set()
    for at in range(len(sentence)):
        value, run = number(sentence, at), digits(sentence, at)
        found |= {str(value.value)} if value else set()
        found |= {fold(run.text).lstrip("+")} if run else set()
    return found


MOST_CHANGES = 100
"""The most changes of one run that are read. Sixty turns contain fewer facts."""


def consistent(changes: Sequence[Change], turns: Sequence[Turn]) -> list[Change]:
    """`changes` in spoken order, without those that contradict each other.

    Only one change may end a memory, and a slot may be filled once in a turn: if a turn gives two values,
    neither is used. A slot filled in two turns gets the later value.
    """
    # the same change twice contradicts nothing
    changes = [change for at, change in enumerate(changes) if change not in changes[:at]]
    place = {turn.id: at for at, turn in enumerate(turns)}

    def said_at(change: Change) -> int:
        return max((place[name] for name in change.source if name in place), default=-1)

    named = Counter(name for change in changes for name in _named(change))
    ended = ended_by(changes)
    filled: dict[tuple[str, int], set[str]] = {}
    for change in changes:
        if isinstance(change, (Add, Supersede)) and change.fact.key:
            filled.setdefault((change.fact.key, said_at(change)), set()).add(change.fact.text.casefold())
    kept = [
        change
        for change in changes
        if all(named[name] == 1 or name not in ended for name in _named(change))
        and not (
            isinstance(change, (Add, Supersede))
            and change.fact.key
            and len(filled[change.fact.key, said_at(change)]) > 1
        )
    ]
    return sorted(kept, key=said_at)


def ended_by(changes: Sequence[Change]) -> frozenset[str]:
    """Ids of the memories that `changes` end by name."""
    ends = [change.known for change in changes if isinstance(change, (Supersede, Retract))]
    return frozenset(name for known in ends for name in known)


def _named(change: Change) -> frozenset[str]:
    """Ids of the memories a change refers to."""
    if isinstance(change, (Supersede, Retract)):
        return frozenset(change.known)
    return frozenset([change.known]) if isinstance(change, Confirm) else frozenset()
