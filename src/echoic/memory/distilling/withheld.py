"""Which turns the user asked not to be kept: "don't remember this", "off the record", "forget that". Pure.

Decided by the rules that hear it, never by a model: it is obeyed at once, whatever a model would make of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.explicit import hushed
from echoic.english.sentences import sentences
from echoic.types import Turn
from echoic.words import fold

RECENT: Final = 2
"""Utterances of the user that a correction, or "forget that", may refer to."""

# What every such request holds one of; the others need not be heard twice.
_MAY_ASK: Final = re.compile(
    r"forget|disregard|unlearn|delete|erase|remove|scratch|strike|remember|save|store|record|keep|write|note"
    r"|memori[sz]e|between"
)
# Stands for whatever was said before: the rules take it back exactly where they take back what was heard.
_ANYTHING: Final = SelfStatement(
    key="anything", text="anything", sentence="", category="fact", confidence=1.0
)


def withheld(turns: Sequence[Turn]) -> frozenset[str]:
    """Ids of the user's turns among `turns`, in order, that must not be learned from."""
    ids: set[str] = set()
    recent: deque[str] = deque(maxlen=RECENT)
    for turn in turns:
        if not of_user(turn):
            continue
        if takes_back(turn.heard_text):
            ids.update(recent, [turn.id])
        elif hushes(turn.heard_text):
            ids.add(turn.id)
        recent.append(turn.id)
    return frozenset(ids)


def of_user(turn: Turn) -> bool:
    """Whether facts may rest on `turn`: the user's own words, of which something was heard."""
    return turn.speaker == "user" and bool(turn.heard_text)


def takes_back(text: str) -> bool:
    """Whether `text` asks to forget what was said just before it."""
    if not _MAY_ASK.search(fold(text)):
        return False
    return any(one.retracts and one.key == _ANYTHING.key for one in listen(text, [_ANYTHING]))


def hushes(text: str) -> bool:
    """Whether `text` asks that what is said in it be not kept."""
    return bool(_MAY_ASK.search(fold(text))) and any(hushed(said) for said in sentences(text))
