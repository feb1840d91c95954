"""What a recogniser was not sure of: which facts rest on it, and when they are sure after all.

A name, number or address heard with little confidence is kept and used, marked as unconfirmed, so that the
agent reads it back. Said again clearly, or affirmed when it is read back, it is confirmed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from echoic.errors import WriteConflict
from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope, Turn

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


def affirms(said: str) -> bool:
    """Whether a turn says yes to what was said before it, and nothing against it. English."""
    return bool(_AFFIRMED.search(said)) and not _DENIED.search(said)


async def weigh(
    store: Store,
    scope: Scope,
    turns: Mapping[str, Turn],
    affirmed: Sequence[str] = (),
    *,
    threshold: float = THRESHOLD,
) -> list[Memory]:
    """Mark what rests on doubtful turns, and unmark what no longer does; the memories that changed.

    Args:
        store: where they are.
        scope: whose.
        turns: of the call so far, by id.
        affirmed: what the agent read back and the caller said yes to.
        threshold: of confidence.

    Raises:
        StoreUnavailable: nothing was changed.
    """
    if all(is_sure(turn, threshold) for turn in turns.values()):
        return []
    changed: list[Memory] = []
    for record in await store.scan(scope, MEMORY, newest_first=True):
        memory = memory_of(record)
        cited = [turns[name] for name in memory.source if name in turns]
        if not cited or not memory.current or not delicate(memory):
            continue
        others = len(cited) < len(memory.source)
        sure = others or any(is_sure(turn, threshold) for turn in cited)
        sure = sure or any(_mentions(text, memory) for text in affirmed)
        if memory.confirmed != sure and await _mark(store, scope, record, memory, sure=sure):
            changed.append(replace(memory, confirmed=sure))
    return changed


def confidence_of(logprobs: Sequence[float]) -> float | None:
    """A turn's confidence: that of its least sure token, for one wrong letter spoils a name."""
    return min(1.0, math.exp(min(logprobs))) if logprobs else None


async def _mark(store: Store, scope: Scope, record: Record, memory: Memory, *, sure: bool) -> bool:
    marked = record_of_memory(replace(memory, confirmed=sure))
    number = record.data.get("number")
    data = dict(marked.data) | ({"number": number} if number is not None else {})
    try:
        await store.write(scope, [Put(record=replace(marked, data=data), expect=record.version)])
    except WriteConflict:
        return False  # it was changed meanwhile; the next turn looks again
    return True


def _mentions(text: str, memory: Memory) -> bool:
    return memory.text.casefold() in text.casefold()


__all__ = ["THRESHOLD", "affirms", "confidence_of", "delicate", "is_sure", "weigh"]
