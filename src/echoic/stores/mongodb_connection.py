"""One open database: the client, its collections, and transactions, tried again where that is safe."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import pymongo
from pymongo.asynchronous.mongo_client import AsyncMongoClient
from pymongo.errors import ConfigurationError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference

from echoic.errors import InvalidInput
from echoic.stores.mongodb_documents import Document
from echoic.stores.mongodb_errors import is_duplicate, not_found, told
from echoic.stores.mongodb_schema import DURABLE, Collections, Session, look_at_server

T = TypeVar("T")
DATABASE = "echoic"
"""Where a URL names none."""
_SELECTION_MS = 5000
"""How long to look for a server, where the URL does not say: the driver's 30 s are too long for a caller."""
_ATTEMPTS = 12


class Connection:
    """A client of one database. Made by `connect`.

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
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextlib.asynccontextmanager
    async def used(self, *, limited: bool = True) -> AsyncIterator[Collections]:
        """The collections, for work that has to be done in time unless it is not `limited`; errors are ours.

        Raises:
            StoreUnavailable: a server could not be reached or refused, or did not answer in time.
        """
        self._users += 1
        self._idle.clear()
        try:
            with told(self.where), pymongo.timeout(self._timeout_s if limited else None):
                yield self.collections
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def ask(self) -> None:
        """Make sure that somebody answers, in the time a verb may take: before work that has no limit.

        Raises:
            StoreUnavailable: nobody does. The driver would try a transaction again for two minutes.
        """
        async with self.used():
            await self.client.admin.command("ping")

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of `work`, done wholly or not at all. It may be called several times.

        Who meets another's write begins anew, and so does who made a document that another made first.
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
                if not is_duplicate(error) or attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311 - not to meet again

    async def aclose(self) -> None:
        """Wait for what is under way, then let go of the server."""
        await self._idle.wait()
        await self.client.close()


async def connect(url: str, timeout_s: float) -> Connection:
    """Look for the server of `url`.

    Raises:
        InvalidInput: the URL cannot be read. It is not repeated: it may hold a password.
        StoreUnavailable: nobody answers there, or a server that cannot be used.
    """
    chosen: dict[str, Any] = {"appname": "echoic", "tz_aware": True}
    if "serverselectiontimeoutms" not in url.lower():
        chosen["serverSelectionTimeoutMS"] = _SELECTION_MS
    try:
        # beside the event loop: it reads certificates, and looks whether it runs in a container
        client: AsyncMongoClient[Document] = await asyncio.to_thread(AsyncMongoClient, url, **chosen)
    except (ConfigurationError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"the MongoDB URL cannot be read ({type(error).__name__}): see docs/mongodb.md"
        ) from None
    try:
        connection = Connection(client, timeout_s)
        async with connection.used(limited=False):  # how long to look for a server is the URL's to say
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
    """Wait until a server answers; where none does, say which were asked, and what failed."""
    tried = client.topology_description
    try:
        await client.admin.command("ping")
    except PyMongoError as error:
        if (ours := not_found(error, tried, client.topology_description)) is None:
            raise
        raise ours from None


__all__ = ["DATABASE", "Connection", "connect"]
