"""Loaded scopes, kept as fresh as the database: looked at before every answer, told by others in between.

Every `load` compares versions, one cheap statement, so that the next query sees what any process wrote. That
other processes tell of their writes (LISTEN) only means that most of the catching up is done by then, and
that what was erased elsewhere leaves this memory at once.

While the database cannot be asked, what was loaded goes on answering, for `stale_s` since it was last known
to be current; but not where this process itself has written since, for a caller must not be told less than he
was.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from weakref import WeakValueDictionary

from echoic.errors import StoreError, StoreUnavailable
from echoic.partition import SEGMENT_ROWS, Partition, Segment
from echoic.stores.base import Record
from echoic.stores.cache import Loaded, PartitionCache
from echoic.stores.postgres.database import LOST, Connection, Database, let_go
from echoic.stores.postgres.load import REMEMBERED, Remembered, catch_up
from echoic.types import Scope

log = logging.getLogger(__name__)

VERSION = "select id, version from {s}.scopes where deployment = $1 and usr = $2"
ERASED = -1
"""The version that is told of a scope that is no more."""
_NOWHERE = 0
"""The number of a scope that holds nothing; PostgreSQL counts from 1."""
PATIENCE_S = 1.0
"""How long a call waits for the database before it goes on with what is loaded."""
_REST_S = 0.25
"""After it could not be asked: how long calls go on without trying again."""
_GATHER_S = 0.01
"""How long news are gathered before they are read."""
_LISTEN_AGAIN_S = 1.0


class FreshPartitions:
    """The scopes that are loaded.

    Args:
        database: where they come from.
        cache_bytes: how much they may take.
        stale_s: how long they answer without having been compared.
        listen: whether to be told of other processes' writes.
    """

    def __init__(self, database: Database, *, cache_bytes: int, stale_s: float, listen: bool) -> None:
        self._database = database
        self._cache = PartitionCache(cache_bytes)
        self._stale_s = stale_s
        self._listen = listen
        self._dimensions = 0
        self._scopes: dict[int, Scope] = {}
        self._behind: dict[Scope, int] = {}
        """Scopes this process wrote to since they were loaded, and the version they had then."""
        self._turns: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._news: set[Scope] = set()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._rest_until = 0.0
        self._drops = 0
        """How often something was let go of because it was erased."""
        self.trouble: str | None = None
        """Why the database could not be asked the last time; None while it can."""
        self.listening = False

    def start(self, dimensions: int) -> None:
        """Begin to catch up with news, for vectors of `dimensions`."""
        self._dimensions = dimensions
        self._wake = asyncio.Event()
        self._tasks = [asyncio.create_task(self._catch_up(), name="echoic-postgres-news")]
        if self._listen and self._database.direct:
            self._tasks.append(asyncio.create_task(self._keep_listening(), name="echoic-postgres-listen"))

    async def stop(self) -> None:
        """Let go of everything."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clear()

    def clear(self, dimensions: int | None = None) -> None:
        """Let go of what is loaded, as when the vectors become others, of `dimensions`."""
        self._cache.clear()
        self._scopes.clear()
        self._behind.clear()
        self._dimensions = self._dimensions if dimensions is None else dimensions

    @property
    def facts(self) -> dict[str, int]:
        """How much is loaded."""
        return {"loaded_scopes": len(self._cache), "loaded_bytes": self._cache.nbytes}

    def size(self, scope: Scope) -> int | None:
        """Rows of `scope` as it is loaded, rounded up to whole segments; None: it is not."""
        loaded = self._cache.get(scope)
        return loaded.partition.size if loaded is not None else None

    async def load(self, scope: Scope) -> Partition:
        """`scope` as it is now, or as it was when the database could last be asked.

        Raises:
            StoreUnavailable: it cannot be asked, and nothing that may still be used is loaded.
        """
        if self._resting(scope):
            return self._as_it_was(scope).partition
        try:
            loaded = await self._current(scope)
        except StoreUnavailable as error:
            self._missed(error)
            return self._as_it_was(scope).partition
        self._reached()
        return loaded.partition

    async def rows(
        self, scope: Scope, rows: Sequence[int], ask: Callable[[bool], Awaitable[list[Record]]]
    ) -> list[Record]:
        """The records at `rows`, as the database has them now, or as they were loaded when it could be asked.

        Args:
            scope: whose.
            rows: which.
            ask: asks the database; with True only once, for there is something to go on with.

        Raises:
            StoreUnavailable: it cannot be asked, and nothing that may still be used is loaded.
        """
        if self._resting(scope):
            return self._remembered(scope, rows)
        try:
            return await ask(self._cache.get(scope) is not None)
        except StoreUnavailable as error:
            self._missed(error)
            return self._remembered(scope, rows)

    def _resting(self, scope: Scope) -> bool:
        """Whether the database was out of reach a moment ago, and `scope` may do without it."""
        resting = time.monotonic() < self._rest_until
        return resting and self._cache.get(scope) is not None and scope not in self._behind

    def _remembered(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        kept = self._as_it_was(scope).partition.scratch.get(REMEMBERED)
        return kept.at(rows) if isinstance(kept, Remembered) else []

    def wrote(self, scope: Scope, version: int) -> None:
        """This process wrote: what is loaded lacks it."""
        loaded = self._cache.get(scope)
        if loaded is not None:
            self._behind[scope] = max(version, self._behind.get(scope, 0))
            self._tell(scope)

    def drop(self, scope: Scope) -> None:
        """Let go of `scope`, and empty what somebody may still hold of it: it was erased."""
        loaded = self._cache.get(scope)
        self._drops += 1
        self._cache.drop(scope)
        self._behind.pop(scope, None)
        if loaded is None:
            return
        self._scopes.pop(loaded.number, None)
        partition = loaded.partition
        with partition.lock:
            partition.patch([(number, Segment()) for number in range(partition.size // SEGMENT_ROWS)])
            partition.scratch.pop(REMEMBERED, None)

    async def _current(self, scope: Scope) -> Loaded:
        # who has it loaded goes on with that soon; who has not waits as long as for anything else
        once = self._cache.get(scope) is not None
        wait_s = PATIENCE_S if once else None
        number, version = await self._database.read(
            scope, lambda connection: self._version(connection, scope), wait_s=wait_s, once=once
        )
        loaded = self._cache.get(scope)
        if loaded is None or (loaded.number, loaded.partition.version) != (number, version):
            async with self._turns.setdefault(scope, asyncio.Lock()):
                loaded = await self._database.read(
                    scope, lambda connection: self._loaded(connection, scope), snapshot=True, once=once
                )
        loaded.seen = _now_ms()
        return loaded

    async def _version(self, connection: Connection, scope: Scope) -> tuple[int, int]:
        names = self._database.names
        found = await connection.fetchrow(names.sql(VERSION), scope.deployment, scope.user or "")
        return (found[0], found[1]) if found else (_NOWHERE, 0)

    async def _loaded(self, connection: Connection, scope: Scope) -> Loaded:
        number, version = await self._version(connection, scope)
        loaded = self._cache.get(scope)
        if loaded is None or loaded.number != number:
            self.drop(scope)
            loaded = Loaded(Partition(self._dimensions), number, _now_ms())
        drops = self._drops
        if loaded.partition.version < version:
            await catch_up(connection, self._database.names, number, loaded.partition, version)
        if self._drops != drops:
            return loaded  # it may have been erased meanwhile: for who asked before that, and not kept
        self._cache.put(scope, loaded)
        self._scopes[number] = scope
        if self._behind.get(scope, 0) <= version:
            self._behind.pop(scope, None)
        return loaded

    def _as_it_was(self, scope: Scope) -> Loaded:
        loaded = self._cache.get(scope)
        if loaded is None:
            raise StoreUnavailable("PostgreSQL cannot be reached and nothing of this user is loaded. Retry.")
        if scope in self._behind:
            raise StoreUnavailable(
                "PostgreSQL cannot be reached, and what is loaded lacks the last write. Retry."
            )
        if _now_ms() - loaded.seen > 1000 * self._stale_s:
            raise StoreUnavailable(
                f"PostgreSQL was out of reach for {self._stale_s:g} s: what is loaded is too old to use. "
                "Retry."
            )
        return loaded

    def _missed(self, error: StoreUnavailable) -> None:
        if self.trouble is None:
            log.warning("PostgreSQL cannot be asked; going on with what is loaded")
        self.trouble = str(error)
        self._rest_until = time.monotonic() + _REST_S

    def _reached(self) -> None:
        if self.trouble is not None:
            log.warning("PostgreSQL can be asked again")
        self.trouble, self._rest_until = None, 0.0

    def _tell(self, scope: Scope) -> None:
        self._news.add(scope)
        self._wake.set()

    def _heard(self, payload: str) -> None:
        number, _, version = payload.partition(" ")
        try:
            scope, told = self._scopes.get(int(number)), int(version)
        except ValueError:  # anybody in the database may send something here
            return
        loaded = self._cache.get(scope) if scope is not None else None
        if scope is None or loaded is None:
            return
        if told == ERASED:
            self.drop(scope)
        elif loaded.partition.version < told:
            self._tell(scope)

    async def _catch_up(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            self._wake.clear()
            scopes, self._news = self._news, set()
            for scope in scopes:
                if self._cache.get(scope) is not None:
                    with contextlib.suppress(StoreError, TimeoutError):
                        await self._current(scope)
            # numbers of scopes that were let go of
            if len(self._scopes) > 2 * len(self._cache) + 100:
                self._scopes = {n: s for n, s in self._scopes.items() if self._cache.get(s) is not None}

    async def _keep_listening(self) -> None:
        """Nobody has to be told: a server without a connection to spare is as good."""
        while True:
            ended = asyncio.Event()
            with contextlib.suppress(StoreError, *LOST):
                connection = await self._database.listen(self._heard, ended.set)
                self.listening = True
                try:
                    await ended.wait()
                finally:
                    self.listening = False
                    await let_go(connection)
            await asyncio.sleep(_LISTEN_AGAIN_S)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
