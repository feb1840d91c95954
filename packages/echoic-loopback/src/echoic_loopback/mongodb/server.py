"""A server on a loopback port, in a thread of its own: OP_MSG over TCP, spoken to by the real driver.

https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
"""

from __future__ import annotations

import asyncio
import itertools
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

import bson

from echoic_loopback.mongodb.commands import Commands
from echoic_loopback.mongodb.faults import Dropped
from echoic_loopback.mongodb.matching import Document
from echoic_loopback.mongodb.refusals import Refusal

T = TypeVar("T")
_HEADER = struct.Struct("<iiii")  # length, request, response to, operation
_OP_REPLY, _OP_QUERY, _OP_MSG = 1, 2004, 2013
_CHECKSUM_PRESENT, _MORE_TO_COME = 1, 2
_MAX_MESSAGE_BYTES = 48_000_000
# By (major, minor); https://github.com/mongodb/mongo, src/mongo/db/wire_version.h
_WIRE_VERSIONS = {
    (4, 2): 8,
    (4, 4): 9,
    (5, 0): 13,
    (6, 0): 17,
    (7, 0): 21,
    (8, 0): 25,
    (8, 1): 26,
    (8, 2): 27,
}
_HELLO = {"hello", "isMaster", "ismaster"}


class MongoServer:
    """A stand-in for `mongod`, with a search process beside it if asked for. Start it, or use it in `with`.

    It computes its answers and refuses what a server refuses, as far as it goes; it is no MongoDB, and keeps
    everything in memory.

    Args:
        replica_set: its name; None: a standalone server, without transactions and change streams.
        search: whether `$search`, `$vectorSearch` and `$rankFusion` are answered.
        version: what it says it is.
        build_looks: how often a new search index is listed as being built before it is ready.
        lifetime_s: how long a transaction may take before it is aborted, as that of a client that died.
        allowed: the actions that whoever connects may do; None: all, as without access control.
        behind: how far the majority of the members says that it is behind.
    """

    def __init__(
        self,
        *,
        replica_set: str | None = "rs0",
        search: bool = True,
        version: tuple[int, int, int] = (8, 2, 0),
        build_looks: int = 1,
        lifetime_s: float = 60,
        allowed: Sequence[str] | None = None,
        behind: timedelta = timedelta(0),
    ) -> None:
        self._allowed, self._behind = allowed, behind
        self._replica_set, self._version = replica_set, version
        self._search, self._build_looks, self._lifetime_s = search, build_looks, lifetime_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._replies = itertools.count(1)
        self.port = 0
        self.seen: Counter[str] = Counter()
        """How often each command was sent."""
        self._commands: Commands | None = None

    def start(self) -> MongoServer:
        """Listen; returns itself."""
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._live, args=(self._loop, ready), daemon=True, name="mongo-server"
        )
        self._thread.start()
        ready.wait()
        self.on_loop(self._listen)
        return self

    def stop(self) -> None:
        """Drop every connection and everything that was kept."""
        if self._loop is not None and self._thread is not None:
            self.on_loop(self._hang_up)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def uri(self) -> str:
        """Where it listens, without a database."""
        suffix = f"?replicaSet={self._replica_set}" if self._replica_set else ""
        return f"mongodb://127.0.0.1:{self.port}/{suffix}"

    def url(self, database: str, options: str = "") -> str:
        """The URL of one database on it."""
        base, _, query = self.uri.partition("?")
        joined = "&".join(part for part in (query, options) if part)
        return f"{base}{database}" + (f"?{joined}" if joined else "")

    def drop_connections(self) -> None:
        """Close every connection, in the middle of whatever it is doing."""
        self.on_loop(self._drop)

    def go_down(self) -> None:
        """Listen no more and drop every connection. What was kept stays, for `come_up`."""
        self.on_loop(self._hang_up)

    def come_up(self) -> None:
        """Listen again, on the same port."""
        self.on_loop(self._listen)

    def pause_search(self) -> None:
        """Let the search indexes fall behind from now on."""

        async def work() -> None:
            commands = self._served()
            found = {name: c.documents for name, c in commands.storage.collections.items()}
            commands.search_indexes.pause(found)

        self.on_loop(work)

    def resume_search(self) -> None:
        """Let the search indexes catch up."""

        async def work() -> None:
            self._served().search_indexes.go_on()

        self.on_loop(work)

    def cut_log(self) -> None:
        """Let go of the whole log of changes, as a server does of the oldest of it when it is full."""

        async def work() -> None:
            storage = self._served().storage
            storage.log_start += len(storage.log) + 1
            storage.log.clear()

        self.on_loop(work)

    def documents(self, namespace: str) -> list[Document]:
        """The committed documents of "database.collection", as they are kept."""

        async def work() -> list[Document]:
            return [dict(d) for d in self._served().storage.collection(namespace).documents.values()]

        return self.on_loop(work)

    def on_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of `work`, run in the server's thread."""
        if self._loop is None:
            raise RuntimeError("the server was not started")
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    def _live(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(ready.set)
        loop.run_forever()

    def _served(self) -> Commands:
        if self._commands is None:
            self._commands = Commands(
                replicated=self._replica_set is not None,
                search=self._search,
                version=self._version,
                build_looks=self._build_looks,
                lifetime_s=self._lifetime_s,
                allowed=self._allowed,
            )
        return self._commands

    async def _listen(self) -> None:
        self._served()
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        await self._drop()

    async def _drop(self) -> None:
        await asyncio.sleep(0)  # so that who was just let in is known
        writers, tasks = list(self._writers), list(self._tasks)
        for writer in writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(w.wait_closed() for w in writers), return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        self._writers.add(writer)
        try:
            while True:
                await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, Dropped, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()
            if task is not None:
                self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length, request, _, operation = _HEADER.unpack(await reader.readexactly(_HEADER.size))
        if not _HEADER.size < length <= _MAX_MESSAGE_BYTES:
            raise Dropped
        body = await reader.readexactly(length - _HEADER.size)
        if operation == _OP_QUERY:
            head = struct.pack("<iqii", 8, 0, 0, 1)
            await self._send(
                writer, request, _OP_REPLY, head + bson.encode(await self._answer(_queried(body)))
            )
        elif operation == _OP_MSG:
            flags, command = parsed(body)
            reply = await self._answer(command)
            if not flags & _MORE_TO_COME:
                await self._send(writer, request, _OP_MSG, struct.pack("<iB", 0, 0) + bson.encode(reply))
        else:
            raise Dropped

    async def _send(self, writer: asyncio.StreamWriter, request: int, operation: int, body: bytes) -> None:
        writer.write(_HEADER.pack(_HEADER.size + len(body), next(self._replies), request, operation) + body)
        await writer.drain()

    async def _answer(self, command: Mapping[str, Any]) -> Document:
        name = next(iter(command))
        self.seen[name] += 1
        if name in _HELLO:
            return {**self._hello(), "ok": 1.0}
        commands = self._served()
        try:
            await commands.fail_point.strike(name, command)
            return {**await commands.answer(command), "ok": 1.0}
        except Refusal as refusal:
            return dict(refusal.reply())

    def _hello(self) -> Document:
        me = f"127.0.0.1:{self.port}"
        told: Document = {
            "helloOk": True,
            "isWritablePrimary": True,
            "ismaster": True,
            "maxBsonObjectSize": 16 << 20,
            "maxMessageSizeBytes": _MAX_MESSAGE_BYTES,
            "maxWriteBatchSize": 100_000,
            "logicalSessionTimeoutMinutes": 30,
            "minWireVersion": 0,
            "maxWireVersion": _WIRE_VERSIONS[self._version[:2]],
            "readOnly": False,
        }
        if self._replica_set:
            told |= {"setName": self._replica_set, "setVersion": 1, "secondary": False}
            told |= {"hosts": [me], "primary": me, "me": me}
            now = datetime.now(UTC)
            told["lastWrite"] = {"lastWriteDate": now, "majorityWriteDate": now - self._behind}
        return told


def _queried(body: bytes) -> Document:
    """The command in an OP_QUERY, which opens a connection of older fashion."""
    end = body.index(b"\0", 4)
    return {**bson.decode(body[end + 9 :]), "$db": "admin"}


def parsed(body: bytes) -> tuple[int, Document]:
    """The flags and the command of an OP_MSG.

    Raises:
        Dropped: it is none.
    """
    flags = struct.unpack_from("<I", body)[0]
    end = len(body) - (4 if flags & _CHECKSUM_PRESENT else 0)
    if flags & 0xFFFF & ~(_CHECKSUM_PRESENT | _MORE_TO_COME):
        raise Dropped  # of the lower bits the unknown ones must not be passed over
    command: Document = {}
    more: Document = {}
    at = 4
    while at < end:
        kind = body[at]
        size = struct.unpack_from("<i", body, at + 1)[0]
        if kind == 0:
            command = bson.decode(body[at + 1 : at + 1 + size])
        elif kind == 1:
            name_end = body.index(b"\0", at + 5)
            more[body[at + 5 : name_end].decode()] = bson.decode_all(body[name_end + 1 : at + 1 + size])
        else:
            raise Dropped
        at += 1 + size
    return flags, {**command, **more}


__all__ = ["MongoServer", "parsed"]
