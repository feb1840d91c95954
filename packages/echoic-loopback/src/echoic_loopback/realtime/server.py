"""The listening half of a stand-in: sockets, TLS, the queue of scripts, and the reckoning at the end.

It listens on this machine only. It is no web server: a request a connection, no pipelining, no keep-alive.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import h11

from echoic_loopback.realtime.record import LoopbackFailure, Violation
from echoic_loopback.realtime.script import Refusal, Script
from echoic_loopback.realtime.session import Session, SocketLine
from echoic_loopback.realtime.websocket import WebSocket

HEAD_BYTES = 64 * 1024
BODY_BYTES = 16 * 1024 * 1024
S = TypeVar("S", bound=Session)
Chooser = Callable[[int], Script[S]]
"""From a session's number, from 0, to its script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, status: int, body: Any, **headers: str) -> HttpResponse:
        return cls(
            status=status,
            body=json.dumps(body).encode(),
            headers={"content-type": "application/json", **headers},
        )


class LoopbackServer(ABC, Generic[S]):
    """A stand-in for a provider, on this machine, on a port of its own.

    `async with` starts and stops it. Leaving it raises `LoopbackFailure` where a client broke the protocol
    or a script failed, unless another error is already under way.

    Args:
        scripts: session n plays script n, and the last script serves all further ones; or a function of n.
        tolerate: codes of violations that are expected, so that they do not fail the test.
        keep_audio: keep audio, in `Session.input_audio` and in items, and every event that carries some.
            Without it a long call leaves only its words.
        keep_events: how many of a session's last events are kept at least; all where None.
        patience_s: how long a step waits for the client before the script counts as stuck.
        speed: how many times as fast as in life speech passes: words, pauses, and the silence that ends a
            turn. Words under 60 ms (`speed` above 3) are too short for `words_heard`.
    """

    def __init__(
        self,
        *scripts: Script[S] | Chooser[S],
        tolerate: Collection[str] = (),
        keep_audio: bool = True,
        keep_events: int | None = None,
        patience_s: float = 30.0,
        speed: float = 1.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.sessions: list[S] = []
        self.requests: list[HttpRequest] = []
        """HTTP requests and handshakes, in order."""
        self.violations: list[Violation] = []
        self.faults: list[BaseException] = []
        self.tolerate = frozenset(tolerate)
        self.keep_audio = keep_audio
        self.keep_events = keep_events
        self.patience_s = patience_s
        self.speed = speed
        self._scripts = scripts
        self._tls = tls
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener: asyncio.Server | None = None
        self._opened = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, ssl=self._tls, limit=HEAD_BYTES
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.close()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            self.check()

    def check(self) -> None:
        """Raises what leaving the server would.

        Raises:
            LoopbackFailure: a client broke the protocol, or a script failed.
        """
        wrong = [violation for violation in self.violations if violation.code not in self.tolerate]
        if wrong or self.faults:
            raise LoopbackFailure(wrong, self.faults)

    @property
    def port(self) -> int:
        """Where it listens.

        Raises:
            RuntimeError: the server is not running; use `async with`.
        """
        if self._listener is None or not self._listener.sockets:
            raise RuntimeError("the stand-in is not running; enter it with `async with` first")
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def session(self, number: int = 0) -> S:
        """Waits for session `number` to open.

        Raises:
            TimeoutError: it did not within the server's patience.
        """
        async with asyncio.timeout(self.patience_s):
            while len(self.sessions) <= number:
                await self._opened.wait()
        return self.sessions[number]

    # For the provider's server.

    @abstractmethod
    async def http(self, request: HttpRequest) -> HttpResponse:
        """Answers an HTTP request."""

    @abstractmethod
    async def websocket(self, request: HttpRequest, opening: Opening[S]) -> None:
        """Serves a WebSocket until it ends."""

    def next_script(self) -> Script[S]:
        """Of the session that opens next; an empty one where none was given."""
        number = len(self.sessions)
        if not self._scripts:
            return Script()
        chosen = self._scripts[min(number, len(self._scripts) - 1)]
        return chosen if isinstance(chosen, Script) else chosen(number)

    def opened(self, session: S) -> None:
        """Counts a session among those that exist."""
        session.record.limit = self.keep_events
        self.sessions.append(session)
        self._opened.set()
        self._opened = asyncio.Event()

    def violation(self, session: S, violation: Violation) -> None:
        session.violations.append(violation)
        self.violations.append(violation)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs something for as long as the server lives; what it raises is a fault."""
        task = asyncio.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as fault:  # noqa: BLE001 - whatever a script raises is shown to the test at the end
            self.faults.append(fault)

    # One connection.

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self.spawn(self._serve(reader, writer))
        with suppress(asyncio.CancelledError):
            await task

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"upgrade: websocket" in head.lower():
                await self._serve_websocket(head, reader, writer)
            else:
                await self._serve_http(head, reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # the other side left, or never spoke HTTP
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await asyncio.wait_for(writer.wait_closed(), 1)

    async def _serve_websocket(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        socket = WebSocket(reader, writer)
        handshake = socket.read_request(head)
        target = urlsplit(handshake.path)
        request = HttpRequest(
            method="GET",
            path=target.path,
            query=dict(parse_qsl(target.query)),
            headers={name.lower(): value for name, value in handshake.headers.raw_items()},
        )
        self.requests.append(request)
        try:
            await self.websocket(request, Opening(socket, handshake, writer))
        finally:
            await socket.finish()

    async def _serve_http(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        parser.receive_data(head)
        try:
            request = await _read_request(parser, reader)
        except h11.RemoteProtocolError as error:
            response = HttpResponse(status=error.error_status_hint, body=str(error).encode())
        else:
            self.requests.append(request)
            response = await self.http(request)
        await _write(writer, parser, response)


class Opening(Generic[S]):
    """A WebSocket handshake that was not answered yet."""

    def __init__(self, socket: WebSocket, handshake: Any, writer: asyncio.StreamWriter) -> None:
        self.socket = socket
        self.handshake = handshake
        self._writer = writer

    async def refuse(self, response: HttpResponse) -> None:
        """Answers with an HTTP error."""
        await _write(self._writer, None, response)

    async def accept(self, script: Script[S]) -> bool:
        """Answers as the script says; False where no WebSocket came of it."""
        await asyncio.sleep(script.accept_after_s)
        if script.refuse is not None:
            await self.refuse(refused(script.refuse))
            return False
        return await self.socket.accept(self.handshake)


async def serve_line(session: Session, line: SocketLine, receive: Callable[[str | bytes], None]) -> None:
    """Moves messages both ways until the line ends."""
    session.lines.append(line)
    sender = asyncio.create_task(line.run())
    try:
        async for message in line.socket.messages():
            receive(message)
            session.news()
    finally:
        sender.cancel()
        with suppress(asyncio.CancelledError):
            await sender
        session.lines.remove(line)


def refused(refusal: Refusal) -> HttpResponse:
    """The HTTP answer to a handshake that a script refuses, in the shape both providers use."""
    headers = {} if refusal.retry_after_s is None else {"retry-after": str(refusal.retry_after_s)}
    error = {
        "error": {"message": refusal.message, "type": "invalid_request_error", "code": None, "param": None}
    }
    return HttpResponse.of_json(refusal.status, error, **headers)


async def _read_request(parser: h11.Connection, reader: asyncio.StreamReader) -> HttpRequest:
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(HEAD_BYTES))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES:
                raise h11.RemoteProtocolError("the body is too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return _request(request, bytes(body))
        else:
            raise ConnectionError("the request ended early")


def _request(request: h11.Request, body: bytes) -> HttpRequest:
    target = urlsplit(request.target.decode("ascii"))
    return HttpRequest(
        method=request.method.decode("ascii"),
        path=target.path,
        query=dict(parse_qsl(target.query)),
        headers={name.decode(): value.decode("latin-1") for name, value in request.headers},
        body=body,
    )


async def _write(writer: asyncio.StreamWriter, parser: h11.Connection | None, response: HttpResponse) -> None:
    if parser is None:
        # a handshake was read by the WebSocket core; to h11 it is told again, as far as h11 needs to know
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        parser.next_event()
    headers = {"content-length": str(len(response.body)), "connection": "close", **response.headers}
    for event in (
        h11.Response(status_code=response.status, headers=list(headers.items())),
        h11.Data(data=response.body),
        h11.EndOfMessage(),
    ):
        writer.write(parser.send(event) or b"")
    await writer.drain()


__all__ = ["Chooser", "HttpRequest", "HttpResponse", "LoopbackServer", "Opening", "refused", "serve_line"]
