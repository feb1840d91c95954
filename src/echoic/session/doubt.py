"""Doubt in a live call: with a threshold of the call's own, and over all its turns.

What is learned is doubted as it is learned (`memory/distilling/doubt.py`), by the threshold that holds
everywhere. A call may have its own, and what the agent reads back may be affirmed many turns later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from echoic.errors import WriteConflict
from echoic.memory.distilling.doubt import THRESHOLD, affirms, delicate, is_sure, mentions
from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope, Turn


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
        sure = sure or any(mentions(text, memory) for text in affirmed)
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
        await store.write(scope, [Put.over(record, replace(marked, data=data))])
    except WriteConflict:
        return False  # it was changed meanwhile; the next turn looks again
    return True


__all__ = ["THRESHOLD", "affirms", "confidence_of", "delicate", "is_sure", "weigh"]
