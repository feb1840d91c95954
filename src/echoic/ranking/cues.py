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
# A noun in the plural ("what books …", "which of her hobbies …"), or a word for all there is. Of LoCoMo's
# development half it marks 15 % of the questions, with 2.6 turns of evidence on average; the others have 1.2.
_NO_PLURAL = r"(?!(?:was|is|does|has|this|his|its|always|ours|yours|hers|theirs|news|series)\b)"
_PLURAL = rf"{_NO_PLURAL}(?:people|children|[a-z'’-]{{2,}}(?<![sui'’])s)"
_WHOSE = r"all|some|the|my|your|our|his|her|their|of"
_ASKS_LIST = re.compile(
    rf"\b(?:what|which)(?: of)?(?: (?:{_WHOSE}|other|kinds?|types?|sorts?))*(?: [a-z'’-]+){{0,2}}? {_PLURAL}"
    r" (?:did|do|does|have|has|had|are|were|is|was|can|could|will|would|should|might|i|you|we|they|he|she)\b"
    rf"|\bwhat (?:are|were) (?:(?:{_WHOSE}|[a-z]+['’]s) )+(?:[a-z-]+ )?{_PLURAL}\b"
    r"|\b(?:what|which) (?:kinds|types|sorts) of\b"
    r"|\b(?:list|name|tell me) (?:all|every|the names of)\b|\bhow many\b|\bwho all\b|\bwhat else\b"
    r"|\b(?:everything|everyone|everybody|all the things)\b",
    re.IGNORECASE,
)
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


def asks_list(text: str) -> bool:
    """Whether the question `text` wants more than one thing: a list, or a number to be counted up."""
    return _ASKS_LIST.search(text) is not None


def _asks(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS) or _unpunctuated_question(text)


def _ends_asking(text: str) -> bool:
    return text.rstrip().endswith(tuple(_QUESTION_MARKS)) or _unpunctuated_question(text)


def _unpunctuated_question(text: str) -> bool:
    return _STOPPED.search(text) is None and _OPENING.match(text) is not None


__all__ = ["asks_list", "asks_many", "asks_when", "flags_of"]
