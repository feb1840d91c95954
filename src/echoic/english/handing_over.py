"""Tells when a caller gives the telephone to somebody else, and when they have it back.

Only in so many words ("I'll hand you over to Mei", "me again"): no voice is heard here.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from echoic.english.lexicon import GIVEN, pattern, wordlike
from echoic.english.sentences import GREETINGS, Sentence, sentences

_AWAY: Final = pattern("telephone.away")
_STAYS: Final = pattern("telephone.stays")
_BACK: Final = pattern("telephone.back")
_NAMES: Final = pattern("telephone.names")
# Every text that gives the telephone away contains one of these; others need not be cut into sentences.
_MAY: Final = re.compile(
    r"\b(?:i?ll|will|me|to|gonna|i)(?: just| quickly)? (?:hand|pass|put|give|switch)\b"
    r"|\bhere(?:['’]s| is| he| she)\b",
    re.IGNORECASE,
)


def hands_over(text: str) -> bool:
    """Whether `text` gives the telephone to somebody: "I'll put my wife on"."""
    if not _MAY.search(text):
        return False
    said = sentences(text)
    return any(_goes_away(one, then) for one, then in itertools.zip_longest(said, said[1:]))


def takes_over(text: str) -> bool:
    """Whether `text` begins as somebody does who was given the telephone: it greets, or says a name."""
    said = sentences(text)[:2]
    return bool(said) and (said[0].low(0) in GREETINGS or any(_of_person(_NAMES, one) for one in said))


def is_back(text: str) -> bool:
    """Whether `text` says that the one who gave the telephone away speaks again: "me again"."""
    return any(_of_person(_BACK, said) for said in sentences(text)[:2])


def _goes_away(said: Sentence, then: Sentence | None) -> bool:
    """Whether `said` gives the telephone away, and neither it nor `then`, the next, takes that back."""
    found = _of_person(_AWAY, said)
    if found is None or _STAYS.search(said.line, found.end()):
        return False
    return then is None or not _STAYS.match(then.line)


def _of_person(pattern: re.Pattern[str], said: Sentence) -> re.Match[str] | None:
    """The first match of `pattern` whose group, if it has matched, is a name."""
    for found in pattern.finditer(said.line):
        if not found.lastindex:
            return found
        low = found[found.lastindex]
        at = said.at.get(found.start(found.lastindex), len(said))
        written = said.cased and at < len(said) and said.tokens[at].capital
        if low in GIVEN or (written and not wordlike(low)):
            return found
    return None
