"""Phrases for unnamed things: what a speaker likes, avoids or needs, and under which condition.

A phrase is read completely or not at all. Cut short it can mean the opposite ("I like coffee when it's
late"), so one with an unknown condition, with a reference only the listener can resolve ("this one"), or
without a clear end is refused. Conditions are read ("only at work", "when I'm driving"); hypotheticals,
politeness and recollections ("if I may", "when I was a child") are not conditions.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english.lexicon import (
    ADJECTIVES,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    DISCOURSE,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    pattern,
    source,
    table,
    words,
)
from echoic.english.sentences import Sentence
from echoic.english.spoken_values import Value

# -- conditions

CONDITIONAL_KEYS: Final = tuple(
    "preference: favourite: least_favourite: avoids: avoid_topic: answer_length".split()
)
"""Prefixes of the keys whose values can hold under a condition."""
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
    return said.low(end) in _CONDITIONS and not (said.low(end) == "that" and said.low(end + 1) == "is")


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
