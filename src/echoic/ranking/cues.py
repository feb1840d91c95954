"""What the wording of a text tells at a glance: does it ask, say when, or count? Patterns only; no ranking.

Entries keep the answers as flags and queries are read with the same patterns, so a change here changes the
meaning of stored flags: raise `echoic.words.ANALYSIS` when you make one.
"""

from __future__ import annotations

import re

from echoic.partition import Flag

# Saying when: 2.6 points of R@10 on questions about time, on LoCoMo's development half.
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|recently|just|ago|last|the other day|years? old|since \d"
    r"|(?:next|this) (?:week|weekend|month|year|morning|afternoon|evening|spring|summer|autumn|fall|winter)"
    r"|for \w+ years?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:19|20)\d\d"
    # "march" and "may" are verbs more often than months
    r"|january|february|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|couple|few|several|both"
    r"|once|twice|first|second|third)\b",
    re.IGNORECASE,
)
_QUESTION_MARKS = "?？؟"
_STOPPED = re.compile(r"[.!?。！？؟…]\s*$")
# How a question opens where the recogniser writes no punctuation.
_OPENING = re.compile(
    r"\W*(?:(?:so|and|but|well|okay|ok|um|uh)\s+)*"
    r"(?:who|whose|what|what's|when|where|where's|which|why|how|how's"
    r"|(?:do|does|did|are|is|was|were|have|has|can|could|would|will|should)(?:n't)?"
    r" (?:i|you|we|they|he|she|it|there|that|this|your|my|the))\b",
    re.IGNORECASE,
)
_ASKS_WHEN = re.compile(r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow (?:long|old)\b", re.IGNORECASE)
_ASKS_MANY = re.compile(r"\bhow (?:many|much|often)\b", re.IGNORECASE)


def flags_of(text: str) -> Flag:
    """QUESTION, ASKING, TIME and NUMBER as they hold for `text`."""
    flags = Flag.NONE
    if _asks(text):
        flags |= Flag.QUESTION
    if _ends_asking(text):
        flags |= Flag.ASKING
    if _TIME.search(text):
        flags |= Flag.TIME
    if _NUMBER.search(text):
        flags |= Flag.NUMBER
    return flags


def asks_when(text: str) -> bool:
    """Whether the question `text` wants a moment or a duration."""
    return _ASKS_WHEN.search(text) is not None


def asks_many(text: str) -> bool:
    """Whether the question `text` wants a number."""
    return _ASKS_MANY.search(text) is not None


def _asks(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS) or _unpunctuated_question(text)


def _ends_asking(text: str) -> bool:
    return text.rstrip().endswith(tuple(_QUESTION_MARKS)) or _unpunctuated_question(text)


def _unpunctuated_question(text: str) -> bool:
    return _STOPPED.search(text) is None and _OPENING.match(text) is not None


__all__ = ["asks_many", "asks_when", "flags_of"]
