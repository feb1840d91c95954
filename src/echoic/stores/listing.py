"""Conversations of all users by status, agent and time, for stores that keep no index in a database.

In this process's memory: of a record its fields are kept, and where it is. Used by one thread at a time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any

from echoic.stores.base import LISTED, Record, Wanted
from echoic.types import Scope

_Place = tuple[str, tuple[str, str], str]
"""When it began, whose it is and its id."""


class Listings:
    """Where the conversations of each deployment, status and agent are."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, Any, Any], list[_Place]] = {}
        self._of: dict[Scope, dict[str, tuple[tuple[str, Any, Any], _Place]]] = {}

    def put(self, scope: Scope, records: Iterable[Record]) -> None:
        """List those of `records` that operators look for, in place of what was listed under their ids."""
        for record in records:
            if record.kind == LISTED and scope.user is not None:
                self.drop(scope, [record.id])
                data = record.data
                bucket = (scope.deployment, data.get("status"), data.get("agent"))
                place = (str(data.get("started_at")), (scope.deployment, scope.user), record.id)
                insort(self._places.setdefault(bucket, []), place)
                self._of.setdefault(scope, {})[record.id] = bucket, place

    def drop(self, scope: Scope, ids: Iterable[str] | None = None) -> None:
        """Let go of these, or of all that are of `scope`."""
        listed = self._of.get(scope, {})
        for name in list(listed if ids is None else ids):
            if name in listed:
                bucket, place = listed.pop(name)
                places = self._places[bucket]
                del places[bisect_left(places, place)]
                if not places:
                    del self._places[bucket]
        if not listed:
            self._of.pop(scope, None)

    def replace(self, scope: Scope, records: Iterable[Record]) -> None:
        """List exactly these of `scope` from now on."""
        self.drop(scope)
        self.put(scope, records)

    def find(self, wanted: Wanted) -> dict[Scope, list[str]]:
        """By scope, the ids of those that are `wanted`."""
        found: dict[Scope, list[str]] = {}
        for (deployment, status, agent), places in self._places.items():
            if deployment != wanted.deployment or (wanted.status and status not in wanted.status):
                continue
            if wanted.agent is not None and agent != wanted.agent:
                continue
            first = 0 if wanted.since is None else bisect_left(places, (wanted.since,))
            last = len(places) if wanted.until is None else bisect_left(places, (wanted.until,))
            for _, whose, name in places[first:last]:
                found.setdefault(Scope(*whose), []).append(name)
        return found


__all__ = ["Listings"]
