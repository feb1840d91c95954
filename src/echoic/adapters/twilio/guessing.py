"""How often somebody guessed: counted before a guess is looked at, so that no crowd gets by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from echoic.memory.concurrency import until_written
from echoic.memory.records import LINK_GUESSES
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope


class Guesses:
    """Counts guesses over a time, for all processes on a store.

    Args:
        store: where the counts are kept.
        scope: the deployment's own.
        clock: the time, aware.
        within_s: how long a guess counts.
    """

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime], within_s: float) -> None:
        self._store, self._scope, self._clock = store, scope, clock
        self._within = timedelta(seconds=within_s)

    async def count(self, name: str, limit: int) -> bool:
        """Count a guess at `name`, unless there were `limit` of them; whether there may be one more."""

        async def attempt() -> bool:
            version, times = await self._read(name)
            if len(times) >= limit:
                return False
            await self._write(name, [*times, self._clock()], version)
            return True

        return await until_written(attempt, "the count of guesses")

    async def uncount(self, name: str) -> None:
        """The last one was no guess."""

        async def attempt() -> None:
            version, times = await self._read(name)
            await self._write(name, times[:-1], version)

        await until_written(attempt, "the count of guesses")

    async def _read(self, name: str) -> tuple[int, list[datetime]]:
        """Which version of the count there is, and when there were guesses."""
        found = await self._store.read(self._scope, LINK_GUESSES, [name])
        if not found:
            return 0, []
        since = self._clock() - self._within
        times = [datetime.fromisoformat(at) for at in found[0].data["times"]]
        return found[0].version, [at for at in times if at > since]

    async def _write(self, name: str, times: list[datetime], version: int) -> None:
        data = {"times": [at.isoformat() for at in times]}
        record = Record(kind=LINK_GUESSES, id=name, data=data)
        await self._store.write(self._scope, [Put(record=record, expect=version)])


__all__ = ["Guesses"]
