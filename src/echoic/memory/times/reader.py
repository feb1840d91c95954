"""Reads the time out of questions: in a thread, since a parser is needed; in the zone the user's clocks stand
in; in two steps where an event says when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from echoic.errors import InvalidInput, StoreUnavailable
from echoic.memory.times import rules
from echoic.memory.times.events import LOOKED_AT, moment_of, span_around
from echoic.memory.times.phrases import NOTHING, Event, Spans, may_mean_time, spans_of_phrase
from echoic.memory.times.remembered import remembered_zone
from echoic.memory.times.zones import zone_of
from echoic.stores.base import Store
from echoic.types import Recall, Scope


class Searches(Protocol):
    """What is asked of a recaller: a search that reads no time itself."""

    async def recall(
        self, scope: Scope, text: str, *, limit: int, deadline_ms: float | None, include_past: bool
    ) -> Recall:
        """As `Recaller.recall`."""
        ...


class TimeReader:
    """Of one user. It knows the zone it read last, for when the store is away."""

    def __init__(self, store: Store, searches: Searches, clock: Callable[[], datetime]) -> None:
        """Nothing is loaded yet.

        Args:
            store: where time zones are remembered.
            searches: finds events.
            clock: the moment of speaking, aware.
        """
        self._store = store
        self._searches = searches
        self._clock = clock
        self._last: tzinfo = UTC

    async def warm(self) -> None:
        """Load the parser, off the loop: the first question that names a time then does not wait for it."""
        await asyncio.to_thread(rules.warm)

    async def read(self, scope: Scope, text: str, zone: str | tzinfo | None = None) -> Spans:
        """What `text`, asked now in `scope`, says about time; an event becomes a range where it is clear.

        Args:
            scope: who asks; events are looked for in what they and everyone know.
            text: the question.
            zone: of the speaker; None is the one remembered of them, else of everyone, else UTC.

        Where the store cannot say which zone is remembered, the last one that was read is assumed, UTC where
        there is none, and `Spans.assumed` says so: days are off by some hours at most.

        Raises:
            InvalidInput: there is no such zone.
            StoreUnavailable: an event could not be looked for.
        """
        zone = await _given(zone)
        if not may_mean_time(text):
            return NOTHING
        now, assumed = self._clock(), False
        try:
            known = await self.zone(scope, zone)
        except StoreUnavailable:
            known, assumed = self._last, True
        spans = await asyncio.to_thread(spans_of_phrase, text, now, known)
        spans = replace(spans, assumed=assumed and bool(spans.ranges or spans.event))
        return spans if spans.event is None else await self._found(scope, spans, spans.event, now, known)

    async def zone(self, scope: Scope, given: str | tzinfo | None = None) -> tzinfo:
        """Where the clocks of the user of `scope` stand: as given, else as remembered, else UTC.

        Raises:
            InvalidInput: there is no such zone as was given.
            StoreUnavailable: could not look.
        """
        if (zone := await _given(given)) is not None:
            return zone
        self._last = await remembered_zone(self._store, scope) or UTC
        return self._last

    async def _found(self, scope: Scope, spans: Spans, event: Event, now: datetime, zone: tzinfo) -> Spans:
        recall = await self._searches.recall(
            scope, event.text, limit=LOOKED_AT, deadline_ms=None, include_past=True
        )
        moment = moment_of(event, recall.hits)
        span = None if moment is None else span_around(event, moment, now, zone)
        return spans if span is None else replace(spans, ranges=(span,))


async def _given(zone: str | tzinfo | None) -> tzinfo | None:
    if isinstance(zone, str):
        return await asyncio.to_thread(zone_of, zone)
    if zone is not None and not isinstance(zone, tzinfo):
        raise InvalidInput(f"timezone must be a name or a tzinfo, not {type(zone).__name__}")
    return zone


__all__ = ["Searches", "TimeReader"]
