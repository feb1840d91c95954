"""The searches of one user: what is asked is checked, read for times, looked up, traced and told to hooks.

How hits are found is `recall`'s, their order `ranking`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from echoic.errors import InvalidInput, brief
from echoic.memory.deadline import checked_deadline
from echoic.memory.hooks import Recalled
from echoic.memory.parts import Parts
from echoic.memory.user_timezone import TimeReader
from echoic.partition import Partition
from echoic.types import Recall, Scope, checked_query

MAX_LIMIT = 1000
"""Hits of one search, at most."""


class Searching:
    """What one user may search. Holds no state of its own."""

    def __init__(self, parts: Parts, scope: Scope, times: TimeReader) -> None:
        self._parts = parts
        self._scope = scope
        self._times = times

    async def recall(
        self,
        text: str,
        *,
        limit: int,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        meanwhile: str | None = None,
        min_relevance: float | None = None,
    ) -> Recall:
        """See `UserMemory.recall`.

        Args:
            text: as there.
            limit: as there.
            deadline_ms: as there.
            include_past: as there.
            timezone: as there.
            meanwhile: another text, whose vector stands in for one that is late where it is known already.
            min_relevance: as there.
        """
        checked_query(text)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {brief(limit)}")
        checked_deadline(deadline_ms)
        checked_relevance(min_relevance)
        with self._parts.telemetry.operation("recall", self._scope) as doing:
            recall = await self._parts.recaller.recall(
                self._scope,
                text,
                limit=limit,
                deadline_ms=deadline_ms,
                include_past=include_past,
                meant=self._times.read(self._scope, text, timezone),
                meanwhile=meanwhile,
                min_relevance=min_relevance,
            )
            doing.outcome = recall.outcome
            doing.note(hits=len(recall.hits), cut=",".join(recall.cut))
        self._parts.telemetry.found(len(recall.hits))
        event = Recalled(scope=self._scope, recall=recall, duration_ms=doing.duration_ms)
        self._parts.hooks.emit(event)
        return recall

    def may_see(self, recall: Recall) -> bool:
        """Whether all hits of `recall` are of places this user searches."""
        places = self._parts.shares.places(self._scope)
        return all(hit.scope in places for hit in recall.hits)

    async def partitions(self) -> list[Partition | None]:
        """Everything that is searched for this user, as it stands; None for what is not loaded."""
        return await self._parts.recaller.partitions(self._scope)


@dataclass(frozen=True, slots=True)
class ListenerSearching:
    """The searches of one listener; see `speculation.Searcher`."""

    searching: Searching
    limit: int
    timezone: str | tzinfo | None
    min_relevance: float | None = None

    async def search(
        self, text: str, *, deadline_ms: float | None = None, meanwhile: str | None = None
    ) -> Recall:
        """What is known for `text`."""
        return await self.searching.recall(
            text,
            limit=self.limit,
            deadline_ms=deadline_ms,
            timezone=self.timezone,
            meanwhile=meanwhile,
            min_relevance=self.min_relevance,
        )

    async def partitions(self) -> list[Partition | None]:
        """Where it is searched, as it stands; None for what is not loaded."""
        return await self.searching.partitions()


def checked_relevance(value: object) -> None:
    """Check that `value` can be the least relevance of a hit.

    Raises:
        InvalidInput: it is neither None nor a number from 0 to 1.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"min_relevance must be a number from 0 to 1, or None, not {type(value).__name__}")
    if not 0 <= value <= 1:
        raise InvalidInput(f"min_relevance must be from 0 to 1, not {value:g}")


__all__ = ["MAX_LIMIT", "ListenerSearching", "Searching", "checked_relevance"]
