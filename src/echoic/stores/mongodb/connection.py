"""One open database: the client, its collections, transactions, and the change stream.

A transaction is repeated if that is safe. The driver's errors are translated here; a server's error message
is never repeated, since it may quote a document. `ChangeStream` refreshes loaded scopes before they are asked
for; it only saves time, since every load compares versions anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pymongo
from dns.exception import DNSException
from pymongo.asynchronous.mongo_client import AsyncMongoClient
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    InvalidOperation,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.server_description import ServerDescription
from pymongo.topology_description import TopologyDescription

from echoic.errors import EchoicError, InvalidInput, NotOpen, StoreFull, StoreUnavailable
from echoic.stores.base import Uses
from echoic.stores.mongodb.schema import DURABLE, Collections, Document, Session, look_at_server, scope_of
from echoic.types import Scope

_NO_SPACE = {14031}
_NOT_ALLOWED = {13, 18, 8000}
"""Unauthorized, AuthenticationFailed, and Atlas's own code for both."""
_TOO_LARGE = {10334, 17419, 17420}
_TOO_LARGE_MESSAGE = "a record is larger or deeper than a MongoDB document may be, 16 MB: split it"


@contextmanager
def told(where: str) -> Iterator[None]:
    """Translate the driver's errors; `where` names server and database, without credentials."""
    try:
        yield
    except EchoicError:
        raise
    except (PyMongoError, RecursionError) as error:
        # not chained: a server's error message may contain the data
        raise ours(error, where) from None


def ours(error: BaseException, where: str) -> EchoicError:
    """Our exception for the driver's `error`."""
    if isinstance(error, OperationFailure) and not isinstance(error, ExecutionTimeout):
        return _refused(error, where)
    if isinstance(error, (DocumentTooLarge, RecursionError)):
        return InvalidInput(_TOO_LARGE_MESSAGE)
    if isinstance(error, InvalidOperation):
        return NotOpen(f"the store on {where} was closed")
    if isinstance(error, ConfigurationError):
        return InvalidInput(f"the MongoDB URL cannot be used ({type(error).__name__}): check its options")
    nobody = isinstance(error, ServerSelectionTimeoutError)
    late = isinstance(error, (ExecutionTimeout, NetworkTimeout)) or getattr(error, "timeout", False)
    what = (
        "did not answer in time" if late and not nobody else f"could not be reached ({type(error).__name__})"
    )
    return StoreUnavailable(f"MongoDB on {where} {what}. Retry.")


def not_found(
    error: PyMongoError, tried: TopologyDescription, now: TopologyDescription
) -> EchoicError | None:
    """Our exception if no server of a URL could be reached, naming the servers and causes; None for other
    errors.

    `tried` are the servers in the URL, `now` their current state.
    """
    servers = tried.server_descriptions()
    if isinstance(error.__cause__, DNSException):  # mongodb+srv: the servers are listed in DNS
        why = {host: f"{type(error.__cause__).__name__}: {error.__cause__}" for host, _ in servers}
    elif isinstance(error, ConnectionFailure):
        left = now.server_descriptions()
        why = {_address(one): _why(left.get(address)) for address, one in (servers | left).items()}
    else:
        return None
    told = ", ".join(f"{address} ({reason})" for address, reason in why.items())
    return StoreUnavailable(f"MongoDB could not be reached: {told}. Is it running, and is the URL right?")


def _address(server: ServerDescription) -> str:
    host, port = server.address
    return host if port is None else f"{host}:{port}"  # a Unix socket has no port


def _why(server: ServerDescription | None) -> str:
    if server is None:
        return "not of the replica set that the URL names"
    if server.error is None:
        return (
            "no answer" if server.server_type_name == "Unknown" else f"no primary: {server.server_type_name}"
        )
    # errors on our side begin with the address; a server's own message is not repeated
    address, _, failed = str(server.error).partition(": ")
    return failed.partition(" (configured")[0] if address == _address(server) else type(server.error).__name__


def _refused(error: OperationFailure, where: str) -> EchoicError:
    code, name = _code_of(error)
    if error.timeout:
        return StoreUnavailable(f"MongoDB on {where} did not answer in time. Retry.")
    if code in _NO_SPACE or "space quota" in str(error):
        return StoreFull(f"MongoDB on {where} has no space left: writes resume once there is some")
    if code in _NOT_ALLOWED:
        return StoreUnavailable(
            f"MongoDB on {where} does not allow it (code {code}): check user and password, and grant the "
            "role readWrite on the database"
        )
    if code in _TOO_LARGE:
        return InvalidInput(_TOO_LARGE_MESSAGE)
    return StoreUnavailable(f"MongoDB on {where} refused: code {code} {name}. Retry.")


def _code_of(error: OperationFailure) -> tuple[int | None, str]:
    details = error.details or {}
    if isinstance(error, BulkWriteError):
        first = (details.get("writeErrors") or details.get("writeConcernErrors") or [{}])[0]
        return first.get("code"), str(first.get("codeName", ""))
    return error.code, str(details.get("codeName", ""))


@contextlib.asynccontextmanager
async def cancellable() -> AsyncIterator[None]:
    """Raise CancelledError at the end if the task was cancelled meanwhile.

    The driver loses a cancellation that arrives together with an answer, or mistakes it for a broken
    connection and retries; a task that nothing ends would keep whoever closes the service waiting.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except Exception:
        if task and task.cancelling() > before:
            await _cancelled()
        raise
    if task and task.cancelling() > before:
        await _cancelled()


async def _cancelled() -> None:
    await asyncio.sleep(0)  # a scope of anyio cancels again by itself, and only that does it take for its own
    raise asyncio.CancelledError


T = TypeVar("T")
DATABASE = "echoic"
"""The database used if the URL names none."""
_SELECTION_MS = 5000
"""Time to look for a server if the URL does not say; the driver's 30 s are too long for a caller."""
_ATTEMPTS = 12


class DatabaseClient:
    """A client of one database. Created by `connect`.

    Attributes:
        where: server and database, for messages: never user or password.
        facts: what kind of server it is.
    """

    def __init__(self, client: AsyncMongoClient[Document], timeout_s: float) -> None:
        self.client = client
        database = client.get_default_database(DATABASE)
        self.collections = Collections(database)
        self.where = database.name
        self.facts: Document = {}
        self._timeout_s = timeout_s
        self._uses = Uses()

    @contextlib.asynccontextmanager
    async def used(self, *, limited: bool = True) -> AsyncIterator[Collections]:
        """The collections, for work within the time limit if `limited`; errors are translated."""
        limit_s = self._timeout_s if limited else None
        async with cancellable():
            with self._uses, told(self.where), pymongo.timeout(limit_s):
                yield self.collections

    async def ask(self) -> None:
        """Check that a server answers: the driver would retry a transaction for two minutes."""
        async with self.used():
            await self.client.admin.command("ping")

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of `work`, run in a transaction. `work` may be called several times.

        It is retried after a write conflict, and after another client created the same document first.
        """
        attempt = 0
        while True:
            try:
                async with self.client.start_session() as session:
                    return await session.with_transaction(
                        work,
                        read_concern=ReadConcern("snapshot"),
                        write_concern=DURABLE,
                        read_preference=ReadPreference.PRIMARY,
                    )
            except PyMongoError as error:
                attempt += 1
                is_duplicate = isinstance(error, OperationFailure) and _code_of(error)[0] == 11000
                if not is_duplicate or attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311 - not to meet again

    async def aclose(self) -> None:
        """Wait for operations in progress, then close the client."""
        await self._uses.ended()
        await self.client.close()


async def connect(url: str, timeout_s: float) -> DatabaseClient:
    """Connect to the server of `url`, which errors do not repeat: it may hold a password."""
    chosen: dict[str, Any] = {"appname": "echoic", "tz_aware": True}
    if "serverselectiontimeoutms" not in url.lower():
        chosen["serverSelectionTimeoutMS"] = _SELECTION_MS
    try:
        # in a thread: it reads certificates, and checks whether it runs in a container
        client: AsyncMongoClient[Document] = await asyncio.to_thread(AsyncMongoClient, url, **chosen)
    except (ConfigurationError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"the MongoDB URL cannot be read ({type(error).__name__}): see docs/mongodb.md"
        ) from None
    try:
        connection = DatabaseClient(client, timeout_s)
        async with connection.used(limited=False):  # the URL may set how long to look for a server
            await _found(client)
        async with connection.used():
            connection.facts = await look_at_server(client, connection.where)
            address = await client.address
            if address is not None:
                connection.where = f"{address[0]}:{address[1]}/{connection.where}"
    except BaseException:
        await client.close()
        raise
    return connection


async def _found(client: AsyncMongoClient[Document]) -> None:
    """Wait until a server answers; otherwise raise an error that names the servers and causes."""
    tried = client.topology_description
    try:
        await client.admin.command("ping")
    except PyMongoError as error:
        if (ours := not_found(error, tried, client.topology_description)) is None:
            raise
        raise ours from None


_PAUSE_S = 1.0
_AWAIT_MS = 1000
_CANCEL_S = 0.05
# Not permitted to this user, or not supported by this server: retrying would not help.
_NEVER = {13, 59, 115, 40324, 40573}


async def stopped(task: asyncio.Task[None]) -> None:
    """Cancel `task` until it has ended: the driver may mistake a cancellation for a broken connection."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_S)


class ChangeStream:
    """Calls `refresh` for changes of scopes that are `wanted`."""

    def __init__(
        self,
        collections: Collections,
        wanted: Callable[[Scope], bool],
        refresh: Callable[[Scope], Awaitable[object]],
    ) -> None:
        self._collections, self._wanted, self._refresh = collections, wanted, refresh
        self._changed: dict[Scope, None] = {}
        self._waking = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._follow()), asyncio.ensure_future(self._work())]
        self.following = False
        """Whether changes are currently received."""
        self.failure: str | None = None
        """Why the server has no change stream."""

    async def aclose(self) -> None:
        for task in self._tasks:
            await stopped(task)
        self.following = False

    async def _follow(self) -> None:
        while self.failure is None:
            try:
                await self._stream()
            except OperationFailure as error:
                if error.code in _NEVER:
                    self.failure = f"no change stream: code {error.code}"
            except PyMongoError:
                pass  # the next load finds what was missed meanwhile
            self.following = False
            await asyncio.sleep(_PAUSE_S)

    async def _stream(self) -> None:
        pipeline = [{"$project": {"documentKey": 1}}]
        async with await self._collections.scopes.watch(pipeline, max_await_time_ms=_AWAIT_MS) as stream:
            self.following = True
            async for event in stream:
                with contextlib.suppress(KeyError, EchoicError):  # a document that is not a scope
                    scope = scope_of(event["documentKey"]["_id"])
                    if self._wanted(scope):
                        self._changed[scope] = None
                        self._waking.set()

    async def _work(self) -> None:
        while True:
            await self._waking.wait()
            self._waking.clear()
            while self._changed:
                scope = next(iter(self._changed))
                del self._changed[scope]
                with contextlib.suppress(EchoicError):  # the next load raises the error
                    await self._refresh(scope)
