"""Time in a user's questions, and the time zone it is read in.

A question is read in the zone the user set or said; an event it goes by ("before the move") is looked up
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from echoic.errors import InvalidInput, StoreUnavailable
from echoic.memory.profile import read_directives
from echoic.memory.records import MEMORY, memory_of
from echoic.stores.base import Store
from echoic.temporal import NOTHING, ZONE_KEYS, NamedEvent, Spans, may_mean_time, spans_of_phrase, zone_of
from echoic.temporal.questions import LOOKED_AT, moment_of, span_around
from echoic.types import Memory, Recall, Scope


class Searches(Protocol):
    """A search that reads no time itself."""

    async def recall(
        self, scope: Scope, text: str, *, limit: int, deadline_ms: float | None, include_past: bool
    ) -> Recall:
        """See `Recaller.recall`."""
        ...


class TimeReader:
    """Reads the time out of one user's questions. It keeps the zone it read last, for when the store is away.

    Args:
        store: where time zones are remembered.
        searches: finds events ("before the move").
        clock: the moment of speaking, aware.
    """

    def __init__(self, store: Store, searches: Searches, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._searches = searches
        self._clock = clock
        self._last: tzinfo = UTC

    async def read(self, scope: Scope, text: str, zone: str | tzinfo | None = None) -> Spans:
        """What `text`, asked now in `scope`, says about time; an event becomes a range where it is clear.

        If the store cannot say which zone is remembered, the last one that was read is assumed, or UTC, and
        `Spans.assumed` says so: days are off by some hours at most.

        Args:
            scope: who asks; events are looked for in what they and everyone know.
            text: the question.
            zone: of the speaker; None stands for the one remembered for them, else for everyone, else UTC.

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
        spans = spans_of_phrase(text, now, known)
        spans = replace(spans, assumed=assumed and bool(spans.ranges or spans.event))
        return spans if spans.event is None else await self._found(scope, spans, spans.event, now, known)

    async def zone(self, scope: Scope, given: str | tzinfo | None = None) -> tzinfo:
        """The time zone of the user of `scope`: as given, else as remembered, else UTC.

        Raises:
            InvalidInput: there is no such zone as was given.
            StoreUnavailable: could not look.
        """
        if (zone := await _given(given)) is not None:
            return zone
        self._last = await remembered_zone(self._store, scope) or UTC
        return self._last

    async def _found(
        self, scope: Scope, spans: Spans, event: NamedEvent, now: datetime, zone: tzinfo
    ) -> Spans:
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


async def remembered_zone(store: Store, scope: Scope, newer: Sequence[Memory] = ()) -> tzinfo | None:
    """The time zone that the user set, else said, else that is set for everyone; None where nobody said any.

    Args:
        store: where it is remembered.
        scope: whose zone.
        newer: memories of it that are not kept yet.
    """
    directives = await read_directives(store, scope)
    said = [directives.free[key] for key in ZONE_KEYS if key in directives.free]
    said += [memory.text for memory in newer]
    for whose in (scope, scope.everyone):
        for key in ZONE_KEYS:
            newest = await store.scan(whose, MEMORY, key=key, limit=1, newest_first=True)
            said += [memory.text for record in newest if (memory := memory_of(record)).current]
    return await first_zone(said)


async def first_zone(names: Iterable[str]) -> tzinfo | None:
    """The first time zone that one of `names` means. Looked up in a thread: the zone database is files."""
    for name in names:
        try:
            return await asyncio.to_thread(zone_of, name)
        except InvalidInput:
            continue  # "wherever I am": what was said names no zone
    return None
