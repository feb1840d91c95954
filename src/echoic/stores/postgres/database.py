"""Connections to PostgreSQL, and recovery from a lost one: reads are repeated, a change happens exactly once.

If the answer to a commit is lost, its outcome is looked up: the transaction has written a unique number into
a row of this process (`Marks`), and it was committed if the number is there. Only a transaction that was
rolled back is retried. `pg_xact_status` cannot be used after a crash: the id of a lost transaction may be
reused. A row is used by one transaction at a time, and there are as many rows as connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import asyncpg

from echoic.errors import (
    InvalidInput,
    NotOpen,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
    WriteConflict,
)
from echoic.stores.postgres import schema
from echoic.types import Scope

_MAKE = "insert into {s}.writers (id) select unnest($1::bigint[]) on conflict (id) do update set at = now()"
_DROP = "delete from {s}.writers where id = any($1::bigint[])"
_TIDY = "delete from {s}.writers where at < now() - interval '7 days'"
"""Removes the rows of processes that died. A live process creates its rows again."""
# waits for the transaction if it is still in progress
_MARK = "select mark from {s}.writers where id = $1 for update"


class Marks:
    """The rows of one process; `count` is the most open transactions."""

    def __init__(self, count: int) -> None:
        self.rows = [secrets.randbits(62) for _ in range(count)]
        self._free: asyncio.LifoQueue[int] = asyncio.LifoQueue()
        for row in self.rows:
            self._free.put_nowait(row)

    @contextlib.asynccontextmanager
    async def row(self, left_s: float) -> AsyncIterator[int]:
        """A row of our own until the outcome of its transaction is known; may raise StoreUnavailable."""
        try:
            async with asyncio.timeout(left_s):
                row = await self._free.get()
        except TimeoutError:
            raise StoreUnavailable("too many writes wait for PostgreSQL already. Retry.") from None
        try:
            yield row
        finally:
            self._free.put_nowait(row)


T = TypeVar("T")
Connection: TypeAlias = asyncpg.Connection
Work = Callable[[Connection], Awaitable[T]]

# The server was unreachable or did not finish, so retrying may help.
LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,  # the connection was closed during use
    asyncpg.InternalClientError,  # likewise, during a statement
    asyncpg.OperatorInterventionError,  # shut down, crashed, starting up, cancelled
    asyncpg.TooManyConnectionsError,
    asyncpg.TransactionRollbackError,  # deadlock, serialization
    asyncpg.ReadOnlySQLTransactionError,  # the server became a standby
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_FIRST_PAUSE_S = 0.05
_LAST_PAUSE_S = 1.0
_LEAST_S = 0.1
"""The least time to wait for a connection, however late it is."""
_CONNECT_S = 10.0
_LET_GO_S = 5.0
SLOW_S = 600.0
"""Time limit of statements over all data: creating the schema, reindexing, erasing a large scope."""


class Database:
    """A connection pool, and one connection that listens.

    `dsn` is never shown, since it may hold a password. A lost server is retried for `wait_s`. `fence`: enable
    row-level security; where it is on, it is used anyway.
    """

    def __init__(self, dsn: str, name: str, *, pool: int, wait_s: float, fence: bool) -> None:
        self._dsn = dsn
        self._size = pool
        self._wait_s = wait_s
        self.names = schema.Names(name)
        self.fence = fence
        self.direct = False
        """Whether the server itself answers, rather than a pooler that shares its connections."""
        self._pool: asyncpg.Pool | None = None
        self._marks = Marks(pool)

    async def open(self) -> None:
        """Create or migrate the schema (see `schema.prepared`) and start the pool."""
        async with translated():
            connection = await self._connect(command_timeout=SLOW_S, statement_cache_size=0)
            try:
                # a pooler invents the process id it sends first, since it has not chosen a connection yet
                self.direct = connection.get_server_pid() == await connection.fetchval(
                    "select pg_backend_pid()"
                )
                self.names = await schema.prepared(connection, self.names.schema, fence=self.fence)
                await self._check_fence(connection)
                self._marks = Marks(self._size)  # its queue belongs to this event loop
                await self._make_marks(connection)
            finally:
                await let_go(connection)
            self._pool = await asyncpg.create_pool(
                min_size=0, max_size=self._size, init=self._prepare, reset=_reset, **self._how()
            )

    async def _check_fence(self, connection: Connection) -> None:
        holds = await schema.fence_holds(connection, self.names)
        if self.fence and not holds:
            raise InvalidInput(
                "rls=on, but row-level security does not bind this role: connect as one that is not a "
                "superuser and has no bypassrls"
            )
        self.fence = holds

    def _how(self) -> dict[str, Any]:
        return {
            "dsn": self._dsn,
            "timeout": _CONNECT_S,
            "command_timeout": max(self._wait_s, 1.0),
            # a pooler in transaction mode may use a connection without the statement next
            "statement_cache_size": 200 if self.direct else 0,
        }

    async def _connect(self, **how: Any) -> Connection:
        try:
            connection: Connection = await asyncpg.connect(**self._how() | how)
        except (ValueError, OverflowError):  # an invalid port may be a part of a password
            raise InvalidInput(
                "the PostgreSQL URL cannot be read: postgresql://user:password@host:port/database, with %23 "
                "for # and %2F for / in user and password"
            ) from None
        return connection

    async def _prepare(self, connection: Connection) -> None:
        try:
            await connection.set_type_codec(
                "vector", schema=self.names.vector, encoder=bytes, decoder=bytes, format="binary"
            )
        except ValueError:  # the driver's error for a type that the database lacks
            raise StoreCorrupt(
                "PostgreSQL no longer has pgvector where the store was made: restore the database, or "
                f"`create extension vector` in schema {self.names.vector}"
            ) from None

    async def aclose(self) -> None:
        """Close every connection. The caller ensures that none is in use."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(*LOST, asyncpg.PostgresError, StoreError):
                async with asyncio.timeout(_LET_GO_S):
                    await pool.execute(self.names.sql(_DROP), self._marks.rows)
                    await pool.close()
            pool.terminate()

    async def listen(self, heard: Callable[[str], None], ended: Callable[[], None]) -> Connection:
        """A connection that calls `heard` with each notification, and `ended` when it is lost."""
        async with translated():
            connection = await self._connect()
            try:
                await connection.add_listener(self.channel, lambda *told: heard(str(told[3])))
                connection.add_termination_listener(lambda _connection: ended())
            except BaseException:
                await let_go(connection)
                raise
            return connection

    @property
    def channel(self) -> str:
        return f"echoic_{self.names.schema}"

    async def read(
        self,
        scope: Scope | None,
        work: Work[T],
        *,
        snapshot: bool = False,
        wait_s: float | None = None,
        once: bool = False,
    ) -> T:
        """The answer of `work`, which changes nothing; retried if the server is lost, unless `once`.

        Behind a fence `work` sees the rows of `scope` (None: an operator, who sees all). With `snapshot` it
        may run several statements on the same state.
        """
        until = self._until(wait_s)
        tries = _Tries(until)
        while await tries.another():
            with contextlib.suppress(*LOST):
                # limited only if the caller says so: how long a scope takes to load depends on its size
                async with translated(), asyncio.timeout(wait_s), self._acquired(until) as connection:
                    if not snapshot and not self.fence:
                        return await work(connection)
                    isolation = "repeatable_read" if snapshot else None
                    async with connection.transaction(isolation=isolation, readonly=True):
                        await self._say(connection, scope)
                        return await work(connection)
            if once:
                break
        raise _unavailable("could not be read from")

    async def change(self, scope: Scope | None, work: Work[T]) -> T:
        """Run `work` in a transaction that is committed exactly once; it may run again after a rollback.

        After StoreUnavailable nothing was kept, or the server was lost before it could say.
        """
        until = self._until(None)
        tries = _Tries(until)
        async with self._marks.row(self._left(until)) as row:
            while await tries.another():
                mark = secrets.randbits(62)
                answer: list[T] = []
                try:
                    async with translated(), self._acquired(until) as connection:
                        if await self._began(connection, row, mark):
                            answer.append(await self._done(connection, scope, work))
                            await self._commit(connection)
                            return answer[0]
                except LOST:
                    if answer and await self._committed(row, mark, until):
                        return answer[0]
        raise _unavailable("could not be written to")

    async def _began(self, connection: Connection, row: int, mark: int) -> bool:
        """Begin a transaction; False if our rows had been removed, and exist again now."""
        # in one round trip; both numbers are ours, and several statements at once take no parameters
        begin = f"BEGIN; update {{s}}.writers set mark = {mark:d}, at = now() where id = {row:d};"  # noqa: S608
        if await connection.execute(self.names.sql(begin)) == "UPDATE 1":
            return True
        await connection.execute("ROLLBACK;")
        await self._make_marks(connection)
        return False

    async def _done(self, connection: Connection, scope: Scope | None, work: Work[T]) -> T:
        try:
            await self._say(connection, scope)
            return await work(connection)
        except BaseException:
            with contextlib.suppress(*LOST):
                await connection.execute("ROLLBACK;")
            raise

    @staticmethod
    async def _commit(connection: Connection) -> None:
        if await connection.execute("COMMIT;") != "COMMIT":
            raise StoreUnavailable("PostgreSQL rolled back instead of committing; nothing was kept. Retry.")

    async def _committed(self, row: int, mark: int, until: float) -> bool:
        """Whether the transaction that left `mark` in `row` was committed; retried until it is known."""
        tries = _Tries(until)
        while await tries.another():
            with contextlib.suppress(*LOST):
                async with translated(), self._acquired(until) as connection:
                    return bool(await connection.fetchval(self.names.sql(_MARK), row) == mark)
        raise StoreUnavailable(
            "PostgreSQL was lost during a commit, whose outcome is unknown. Read before you retry."
        )

    async def _make_marks(self, connection: Connection) -> None:
        await connection.execute(self.names.sql(_TIDY))
        await connection.execute(self.names.sql(_MAKE), self._marks.rows)

    async def alone(self, statement: str, timeout_s: float) -> None:
        """Run `statement`, such as vacuum, outside a transaction; cancelled when late."""
        async with translated(), self._acquired(self._until(None)) as connection:
            await connection.execute(self.names.sql(statement), timeout=timeout_s)

    async def _say(self, connection: Connection, scope: Scope | None) -> None:
        """Set the user whose rows this transaction may access."""
        if self.fence:
            await connection.execute(
                "select set_config('echoic.deployment', $1, true), set_config('echoic.user', $2, true), "
                "set_config('echoic.operator', $3, true)",
                scope.deployment if scope else "",
                (scope.user or "") if scope else "",
                "off" if scope else "on",
            )

    @contextlib.asynccontextmanager
    async def _acquired(self, until: float) -> AsyncIterator[Connection]:
        pool = self._pool
        if pool is None:
            raise NotOpen("the store was closed")
        async with pool.acquire(timeout=self._left(until)) as connection:
            try:
                yield connection
            # its state is unknown; or its server became a standby: only a new connection looks for another
            except (asyncpg.InternalClientError, asyncpg.ReadOnlySQLTransactionError):
                connection.terminate()
                raise

    def _until(self, wait_s: float | None) -> float:
        return asyncio.get_running_loop().time() + (self._wait_s if wait_s is None else wait_s)

    @staticmethod
    def _left(until: float) -> float:
        return max(_LEAST_S, until - asyncio.get_running_loop().time())


class _Tries:
    """Retries with growing pauses until a deadline; random, so that processes do not retry at once."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._pause_s = 0.0

    async def another(self) -> bool:
        """Whether there is time for another try, after the pause before it."""
        if not self._pause_s:
            self._pause_s = _FIRST_PAUSE_S
            return True
        left = self._until - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, self._pause_s * random.uniform(0.5, 1)))  # noqa: S311 - no secret
        self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)
        return True


@contextlib.asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Translate the driver's errors, except those in `LOST`, which are retried."""
    try:
        yield
    except asyncpg.InterfaceError as error:
        if isinstance(error, ValueError):  # the driver's error for a value it cannot send
            raise InvalidInput("PostgreSQL cannot keep a value: a number is too large for it") from error
        raise
    except LOST:
        raise
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError) as error:
        raise ours(error) from None  # their details contain the value
    except asyncpg.PostgresError as error:
        raise ours(error) from error


def ours(error: asyncpg.PostgresError) -> StoreError | InvalidInput:  # noqa: PLR0911 - a table, as code
    """Our exception for the driver's `error`. Its message may quote data, so only its name is repeated."""
    what = type(error).__name__
    match error:
        case asyncpg.DiskFullError():
            return StoreFull("PostgreSQL has no space left; reads go on, free some and retry")
        case asyncpg.DataCorruptedError() | asyncpg.IndexCorruptedError():
            return StoreCorrupt(f"PostgreSQL reports damage ({what}); it is left untouched")
        case asyncpg.UndefinedTableError() | asyncpg.InvalidSchemaNameError():
            return StoreCorrupt(f"the tables of the store are gone or were changed ({what}): {error}")
        case asyncpg.InsufficientPrivilegeError():
            return StoreUnavailable(f"this role may not do that: {error}. Grant it what the docs name.")
        case asyncpg.DataError():
            return InvalidInput(f"PostgreSQL cannot keep a value ({what}); nothing was written")
        case asyncpg.IntegrityConstraintViolationError():
            return WriteConflict(f"somebody else wrote first ({what}); nothing was written. Retry.")
        case asyncpg.InvalidAuthorizationSpecificationError() | asyncpg.InvalidCatalogNameError():
            return StoreUnavailable(f"PostgreSQL refuses the connection: {error}. Is the URL right?")
        case _:
            return StoreUnavailable(f"PostgreSQL could not do it ({what}). Retry.")


def _unavailable(what: str) -> StoreUnavailable:
    return StoreUnavailable(f"PostgreSQL {what} in time. Is it running and reachable? Retry.")


async def _reset(connection: Connection) -> None:
    """In place of the driver's reset: all our settings end with the transaction, even if it was cancelled."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK;")


async def let_go(connection: Connection) -> None:
    """Close `connection`, ignoring errors."""
    with contextlib.suppress(*LOST):
        await connection.close(timeout=_LET_GO_S)
