"""How uvicorn serves public connections: with time limits, and without paths or content in logs; and how late
the event loop is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope


HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on concurrent connections and calls.

    Raises:
        InvalidInput: a number below 1, or a proxy that is not an address or network.
    """

    connections: int = 896
    """Total connections. At the limit, idle ones are closed first: those of the address with the most."""
    connections_per_address: int = 384
    """Connections of one address; a trusted proxy may have any number."""
    health_connections: int = 16
    """Additional connections, on which only health checks are answered."""
    requests_per_address: int = 128
    """Concurrent requests of one address, event streams included; more are refused with 429."""
    requests_per_identity: int = 32
    """Concurrent requests of one caller; more are refused with 429."""
    streams: int = 128
    """Event streams. One more closes the oldest stream of the address with the most."""
    streams_per_address: int = 64
    streams_per_identity: int = 8
    """Event streams of one identity; one more closes the oldest, such as that of a forgotten page."""
    calls_per_address: int = 20
    """Live calls and unused tickets; an unused ticket makes room for the next call."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks ("10.0.0.0/8") whose X-Forwarded-For and X-Forwarded-Proto are trusted."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise InvalidInput(f"{field.name} must be at least 1, not {value!r}")
        for proxy in self.trusted_proxies:
            _network(proxy)

    def trusts(self, host: str) -> bool:
        """Whether `host`, the other end of a socket, is a trusted proxy."""
        address = _address(host)
        return address is not None and any(address in _network(proxy) for proxy in self.trusted_proxies)


@lru_cache(maxsize=4096)
def address_of(host: str | None) -> str:
    """The address or network under which `host` is counted."""
    address = _address(host or "")
    if address is None:
        return host or "unknown"
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _network(proxy: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(proxy, strict=False)
    except ValueError as error:
        raise InvalidInput(
            f"trusted_proxies takes addresses and networks, as in '10.0.0.0/8', not {proxy!r:.80}"
        ) from error


HEAD_S: Final = 10.0
"""How long the head of a request may take to arrive, from the connection or its first byte on."""
_HEAD_BYTES: Final = 16 * 1024
_AHEAD: Final = 16
"""Pipelined requests of one connection."""
READ_S: Final = 60.0
"""How long a client may read nothing of an answer."""


class Gate:
    """The connections of a server: limited per address and in total, closing idle ones first.

    uvicorn counts idle connections like busy ones and refuses everybody at its limit, so that one address
    with idle sockets could block the server.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._most = _openable(limits.connections)
        self._of: dict[str, dict[GuardedConnection, None]] = {}
        """By address, oldest first; "" stands for all trusted proxies."""
        self._spare: dict[GuardedConnection, None] = {}
        self._held = 0

    def enter(self, connection: GuardedConnection, host: str) -> str | None:
        """Admit a connection from `host`, in place of an idle one if there is no room.

        Returns:
            "full", "health" for health checks only, or None if there is no room.
        """
        address = "" if self._limits.trusts(host) else address_of(host)
        own = self._of.get(address, {})
        crowds: list[dict[GuardedConnection, None]] = []
        if address and len(own) >= self._limits.connections_per_address:
            crowds = [own]
        elif self._held >= self._most:
            # trusted proxies last, and the address with the most connections first
            busiest = sorted(self._of, key=lambda name: (name == "", -len(self._of[name])))
            crowds = [self._of[name] for name in busiest]
        connection.address = address
        if not crowds or any(self._one_out(crowd) for crowd in crowds):
            self._of.setdefault(address, {})[connection] = None
            self._held += 1
            return "full"
        if len(self._spare) < self._limits.health_connections or self._one_spare_out():
            self._spare[connection] = None
            return "health"
        return None

    def leave(self, connection: GuardedConnection) -> None:
        """Stop counting a connection. May be called twice."""
        self._spare.pop(connection, None)
        own = self._of.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._held -= 1
            if not own:
                del self._of[connection.address]

    def _one_spare_out(self) -> bool:
        busiest = Counter(connection.address for connection in self._spare).most_common(1)[0][0]
        return self._one_out([spare for spare in self._spare if spare.address == busiest])

    def _one_out(self, crowd: Iterable[GuardedConnection]) -> bool:
        """Close the oldest idle connection of `crowd`; returns whether there was one."""
        idle = next((connection for connection in crowd if connection.is_idle), None)
        if idle is None:
            return False
        self.leave(idle)
        idle.transport.abort()
        return True


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's connection with time limits for heads and for reading answers, without which a few clients
    could block the server.

    It also limits heads and pipelining, and refuses requests with several hosts.
    """

    gate: ClassVar[Gate | None] = None
    """The gate of the server; None if connections are not counted."""
    address: str = ""
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _in_head: bool = False
    """Whether a head has arrived in part."""
    _head_bytes: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Count a new connection and wait for its request."""
        super().connection_made(transport)
        if self.gate is not None:
            room = self.gate.enter(self, self.client[0] if self.client else "")
            if room is None:
                transport.abort()
                return
            if room == "health":
                self.app = _HealthAlone(self.app)
        self._late = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    @property
    def is_idle(self) -> bool:
        """Whether it waits for its client: for a request, or for the rest of one."""
        return self._in_head or self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def handle_websocket_upgrade(self) -> None:
        """Stop counting a connection that became a WebSocket: those are limited when they are admitted."""
        self._leave()
        self._in_time()
        super().handle_websocket_upgrade()

    def data_received(self, data: bytes) -> None:
        """Require the head within its time limit; later data is limited by the guards."""
        began = self._in_head
        super().data_received(data)
        if self.transport.get_protocol() is not self:
            return
        if self._in_head and began:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self.send_400_response("The head of the request is too long.")
        if self.cycle is not None and not self.cycle.response_complete and not self._in_head:
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Strip white space around the value (RFC 9110)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Refuse other protocols, several hosts, and too many pipelined requests; errors here are answered
        with 400.
        """
        self._in_head = False
        hosts = sum(name == b"host" for name, _ in self.headers)
        version = self.parser.get_http_version()
        if version not in {"1.0", "1.1"} or hosts > 1 or hosts < (version == "1.1"):
            raise InvalidInput("an HTTP/1 request must have exactly one Host header")
        if len(self.pipeline) >= _AHEAD:
            raise InvalidInput("too many pipelined requests")
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        self._in_time()
        self._read_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start a timer: the client must read on."""
        super().pause_writing()
        self._read_on()
        self._unread = self.loop.call_later(READ_S, self._look, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the timer: the client has read."""
        super().resume_writing()
        self._read_on()

    def _look(self, before: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:  # slow, but reading
            self._unread = self.loop.call_later(READ_S, self._look, left)

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _leave(self) -> None:
        if self.gate is not None:
            self.gate.leave(self)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _HealthAlone:
    """An application that only answers health checks."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return
        body = b'{"success":false,"error":"there are too many connections; try again","code":"busy"}'
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"retry-after", b"1"),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class LoopLag:
    """The lag of the event loop: the smallest of its recent delays, over at least a quarter of a second.

    One slow step delays one sample; overload delays all of them.
    """

    _EVERY_S: Final = 0.05
    _SAMPLES: Final = 5
    _UNASKED_S: Final = 1.0
    """How long to keep measuring after the last call of `lasting_s`."""

    def __init__(self, needed: Callable[[], bool] = lambda: False) -> None:
        self._needed = needed
        self._delays_s: deque[float] = deque(maxlen=self._SAMPLES)
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0

    def lasting_s(self) -> float:
        """The lag in seconds; 0 until enough was measured, which starts with this call."""
        loop = asyncio.get_running_loop()
        self._until = loop.time() + self._UNASKED_S
        if self._timer is None:
            self._delays_s.clear()
            self._wait(loop)
        return min(self._delays_s) if len(self._delays_s) == self._SAMPLES else 0.0

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._EVERY_S, self._sample, loop, loop.time() + self._EVERY_S)

    def _sample(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._timer = None
        self._delays_s.append(loop.time() - due)
        if loop.time() < self._until or self._needed():
            self._wait(loop)


def _openable(wanted: int) -> int:
    """How many of `wanted` sockets this process may open, with some files left for the store."""
    try:
        import resource
    except ImportError:  # not on Windows
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(32, min(wanted, soft - 128))


def guarded(limits: Limits | None = None) -> dict[str, Any]:
    """Options of `uvicorn.Config`: limited connections, and no paths (which may contain a ticket) or content
    in logs.
    """
    # `access_log=False` only removes its handlers; one that is added later would log paths again
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(_wordless)
    return {
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "http": type("GatedConnection", (GuardedConnection,), {"gate": Gate(limits or Limits())}),
        "ws": "websockets-sansio",
        "timeout_graceful_shutdown": 10,
        "log_config": None,
    }


def _wordless(record: logging.LogRecord) -> bool:
    """Whether uvicorn's record has no content: for sockets it would log the path with its ticket, and at
    debug level each message.
    """
    return record.levelno > logging.DEBUG and "WebSocket %s" not in str(record.msg)
