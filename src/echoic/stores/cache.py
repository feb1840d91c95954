"""Partitions kept in memory, the least recently used ones let go when they outgrow a bound in bytes.

The last few stay whatever they take: one recall reads a user's own scope, everyone's and perhaps a shared
one, and would else load them anew each time. `Listings` finds the conversations of all users for stores that
keep no index in a database.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from echoic.partition import Partition
from echoic.stores.base import LISTED, Record, Wanted
from echoic.types import Scope


@dataclass(slots=True)
class Loaded:
    """A partition and what it was loaded from."""

    partition: Partition
    number: int
    """The store's own number of the scope: another number is another scope of the same name."""
    seen: int
    """The store's change mark when it was last found to be current."""
    nbytes: int = 0


_OF_ONE_RECALL = 3
_LEAST_BYTES = 2048
"""What even an empty scope takes, so that asking for a million strangers does not fill the memory."""


class PartitionCache:
    """One store's partitions. May be asked from several threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._loaded: OrderedDict[Scope, Loaded] = OrderedDict()
        self._lock = threading.RLock()
        self.nbytes = 0

    def get(self, scope: Scope) -> Loaded | None:
        """The partition of `scope`, now the most recently used one."""
        with self._lock:
            loaded = self._loaded.get(scope)
            if loaded is not None:
                self._loaded.move_to_end(scope)
            return loaded

    def put(self, scope: Scope, loaded: Loaded) -> None:
        """Keep `loaded`, or weigh it again after it grew; older ones go until the bound holds."""
        with self._lock:
            self.drop(scope)
            loaded.nbytes = max(loaded.partition.nbytes, _LEAST_BYTES)
            self._loaded[scope] = loaded
            self.nbytes += loaded.nbytes
            while self.nbytes > self._limit and len(self._loaded) > _OF_ONE_RECALL:
                _, gone = self._loaded.popitem(last=False)
                self.nbytes -= gone.nbytes

    def drop(self, scope: Scope) -> None:
        """Let go of `scope`, if it is here."""
        with self._lock:
            gone = self._loaded.pop(scope, None)
            if gone is not None:
                self.nbytes -= gone.nbytes

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._loaded.clear()
            self.nbytes = 0

    def __len__(self) -> int:
        return len(self._loaded)


_Place = tuple[str, tuple[str, str], str]
"""When it began, whose it is and its id."""


class Listings:
    """The conversations of every user by deployment, status, agent and time, for operators."""

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
        """Remove these, or all of `scope`."""
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
        """The ids of the records that are `wanted`, by scope."""
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
