"""Versions of the same key among hits, in the order that the time asked for puts them in. Pure.

Ranking knows what holds and what held, not from when until when. Versions of one key say nearly the same
words, so which of them answers is a matter of time alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from echoic.memory.times.calendar import milliseconds
from echoic.memory.times.phrases import Spans
from echoic.types import Hit, Memory, Scope


def in_time(hits: Sequence[Hit], spans: Spans) -> tuple[Hit, ...]:
    """`hits`, with the versions of each key among the places that versions of that key have.

    What held in the time asked for comes first; where only the past is asked for, what no longer holds; else
    what holds. Of equals the later.
    """
    places = defaultdict[tuple[Scope, str], list[int]](list)
    for place, hit in enumerate(hits):
        if hit.memory is not None and hit.memory.key is not None:
            places[hit.scope, hit.memory.key].append(place)
    ordered = list(hits)
    for taken in places.values():
        versions = sorted((hits[place] for place in taken), key=lambda hit: _order(hit, spans))
        for place, version in zip(taken, versions, strict=True):
            ordered[place] = version
    return tuple(ordered)


def _order(hit: Hit, spans: Spans) -> tuple[int, int]:
    memory = hit.memory
    assert memory is not None
    first = -milliseconds(memory.valid_from)
    if spans.ranges:
        return (not _held(memory, spans), first)
    if spans.past:
        # what was corrected was true once; what was taken back perhaps never
        return (2 if memory.current else 1 if memory.superseded_by is None else 0, first)
    return (not memory.current, first)


def _held(memory: Memory, spans: Spans) -> bool:
    begins = milliseconds(memory.valid_from)
    ends = milliseconds(memory.valid_until) if memory.valid_until else None
    return any(begins <= last and (ends is None or ends > first) for first, last in spans.ranges)


__all__ = ["in_time"]
