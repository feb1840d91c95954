"""What a recogniser was not sure of: which memories rest on it, and when they are sure after all. Pure.

A name, number or address heard with little confidence is kept and used, marked as unconfirmed, so that the
agent reads it back. Said again clearly, or affirmed when it is read back, it is confirmed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

from echoic.types import Memory, Turn

THRESHOLD: Final = 0.7
"""A recogniser's confidence below which a delicate word is not to be relied on. A default, not a measurement:
recognisers differ; set your own where yours has told you its own."""

_DELICATE_KEYS: Final = re.compile(
    r"name|phone|mail|number|birth|date|age|zip|postal|address|account|code", re.IGNORECASE
)
_DELICATE_TEXT: Final = re.compile(r"\d|@|(?<!^)(?<![.!?]\s)\b[A-Z]\w+")
"""Digits, addresses, and words with a capital that begin no sentence."""
_AFFIRMED: Final = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|right|correct|exactly|that(?:'?s| is) (?:right|it|correct)|sure)\b",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(r"\b(?:no|not|wrong|but)\b|n't\b", re.IGNORECASE)


def delicate(memory: Memory) -> bool:
    """Whether it holds what is easily misheard: a name, a number, an address."""
    return bool(memory.key and _DELICATE_KEYS.search(memory.key)) or bool(_DELICATE_TEXT.search(memory.text))


def is_sure(turn: Turn, threshold: float = THRESHOLD) -> bool:
    """Whether the recogniser was sure enough, or did not say."""
    return turn.confidence is None or turn.confidence >= threshold


def is_doubted(memory: Memory, cited: Iterable[Turn], threshold: float = THRESHOLD) -> bool:
    """Whether a memory that rests on these turns alone is not to be relied on."""
    return delicate(memory) and not any(is_sure(turn, threshold) for turn in cited)


def affirms(said: str) -> bool:
    """Whether a turn says yes to what was said before it, and nothing against it. English."""
    return bool(_AFFIRMED.search(said)) and not _DENIED.search(said)


def affirmed(turns: Sequence[Turn]) -> list[tuple[str, Turn]]:
    """What the agent said, and was heard, right before a turn that says yes to it; with that turn."""
    return [
        (before.heard_text, after)
        for before, after in itertools.pairwise(turns)
        if before.speaker == "agent" and after.speaker == "user" and affirms(after.heard_text)
    ]


def mentions(text: str, memory: Memory) -> bool:
    """Whether what the memory holds stands in `text`."""
    return memory.text.casefold() in text.casefold()
