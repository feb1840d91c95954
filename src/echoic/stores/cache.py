"""Partitions kept in memory, the least recently used ones let go when they outgrow a bound in bytes.

The last few stay whatever they take: one recall reads a user's own scope, everyone's and perhaps a shared
one, and would else load them anew each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from echoic.partition import Partition
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
