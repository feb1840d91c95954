"""Guards that every request passes before it reaches a route: rate, origin, size, concurrency.

Pure ASGI, outermost first: `SecurityHeaders`, `RequestLog` (log and last resort), `RequestLimit` (concurrent
requests of one address, and of all while the server is overloaded), the Host allow-list (Starlette's),
`OriginGuard`, `BodyGuard`, `WriteQueue`. Overload is refused by `RequestLimit`, before a body is read. None
of them knows the routes. `CellLimiter` counts requests for the dependencies in `request_callers`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Self

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from echoic.adapters.connections import HEALTH_PATHS, LoopLag, address_of
from echoic.errors import InvalidInput, brief
from echoic.server.problems import Problem, answer, overloaded, refused, too_many_at_once

_SECONDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_RATE: Final = re.compile(r"([0-9]{1,9})/(second|minute|hour)")
_SWEEP: Final = 1024
"""Number of principals from which idle ones are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate limit: a number of requests in a time, in a burst or spread out."""

    requests: int
    seconds: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse "600/minute", or raise `InvalidInput`."""
        read = _RATE.fullmatch(text.strip().lower())
        if read is None or int(read[1]) == 0:
            raise InvalidInput(f"{brief(text)} is not a rate: write '600/minute', or /second or /hour")
        return cls(requests=int(read[1]), seconds=_SECONDS[read[2]])


USER: Final = Rate(requests=600, seconds=60.0)
"""Limit of one caller. A voice agent makes one or two requests a turn."""
ADDRESS: Final = Rate(requests=60, seconds=60.0)
"""Limit of one address that requests identities; an office may share one address."""
OPERATOR: Final = Rate(requests=600, seconds=60.0)
AGENT: Final = Rate(requests=3000, seconds=60.0)
"""Limit of user tokens requested with the agent keys of one deployment: one per call, fifty a second."""
REFUSED: Final = Rate(requests=30, seconds=60.0)
"""Limit of invalid tokens and keys from one address."""


class CellLimiter:
    """A rate limiter for each principal (GCRA).

    Args:
        user: rate of one caller; None for no limit.
        address: rate of one address without an identity.
        operator: rate of all operator, read-only and auditor keys together.
        agent: rate of the agent keys of one deployment.
        refused: rate of invalid tokens and keys from one address.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        user: Rate | None = USER,
        address: Rate = ADDRESS,
        operator: Rate = OPERATOR,
        agent: Rate = AGENT,
        refused: Rate = REFUSED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = {
            "user": user,
            "address": address,
            "operator": operator,
            "agent": agent,
            "refused": refused,
        }
        self._clock = clock
        self._due: dict[str, float] = {}
        self._sweep_at = _SWEEP

    async def retry_after_s(self, principal: str) -> float | None:
        """Count one request of `principal`; returns the seconds it must wait, or None if it may pass.

        A request that is refused is not counted: whoever waits as long as told may pass.
        """
        rate = self._rates.get(principal.partition(":")[0], self._rates["address"])
        if rate is None:
            return None
        now = self._clock()
        each_s = rate.seconds / rate.requests
        due = max(self._due.get(principal, now), now)
        wait_s = due - now - (rate.seconds - each_s)
        if wait_s > each_s * 1e-6:  # less is a rounding error
            return wait_s
        self._due[principal] = due + each_s
        if len(self._due) > self._sweep_at:
            self._sweep(now)
        return None

    def _sweep(self, now: float) -> None:
        """Remove idle principals, whose state is that of a new one."""
        self._due = {principal: due for principal, due in self._due.items() if due > now}
        self._sweep_at = max(_SWEEP, 2 * len(self._due))


log = logging.getLogger(__name__)
access = logging.getLogger("echoic.access")

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # a text assigned to innerHTML throws instead of becoming markup
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(self)",
}


class RequestLog:
    """Logs method, route, status and time of each request, and answers uncaught exceptions with 500.

    The route's pattern is logged, not the path, which may contain a key. Of an exception only type and place
    are logged, since its message may contain what somebody said.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:  # noqa: BLE001 - the outermost loop; anything else would log contents
            log.error("%s at %s: answered 500", type(error).__name__, _place(error))  # noqa: TRY400 - no trace
            if status == 0:
                failed = answer(
                    500, Problem(error="something went wrong here; it was logged", code="internal")
                )
                await failed(scope, receive, note)
        finally:
            route = getattr(scope.get("route"), "path", "-")
            elapsed_ms = (time.perf_counter() - started) * 1000
            access.info("%s %s %d %.1f ms", scope["method"], route, status, elapsed_ms)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - as above
            log.error("%s at %s: a socket was closed", type(error).__name__, _place(error))  # noqa: TRY400
            with contextlib.suppress(Exception):  # it may be closed, or was never accepted
                await send({"type": "websocket.close", "code": 1011, "reason": ""})


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "an unknown place"


_BUSY: Final = refused(overloaded())
_TOO_MANY: Final = refused(too_many_at_once())
"""Made once: under overload they are most of the answers."""


class RequestLimit:
    """Limits concurrent requests of an address, and of all addresses while there is too much to do.

    With more requests than processor time, all would be answered late. Beyond `_LATE_REQUESTS` waiting ones
    new requests are refused with 503, so that those that wait are answered. Health checks are never refused.

    A route can add counters of its own to the `ExitStack` under `HELD`, which is closed when the answer has
    ended.
    """

    HELD = "echoic.held"
    _LATE_S: Final = 0.05
    """Lag of the event loop above which the server is overloaded."""
    _LATE_REQUESTS: Final = 16
    """Number of waiting requests that are accepted whatever the lag."""
    _LATE_WRITE_S: Final = 0.1
    _LATE_WRITES: Final = 24
    """Number of writes that may wait whatever the delay of the first."""

    def __init__(self, app: ASGIApp, *, per_address: int, writes: re.Pattern[str]) -> None:
        self._app = app
        self._per_address = per_address
        self._writes = writes
        self._busy: Counter[str] = Counter()
        self._waiting: tuple[dict[object, float], dict[object, float]] = ({}, {})
        """Complete requests whose answer has not begun, with their time of arrival: reads, and writes, which
        wait in a `WriteQueue` and must not cause recalls to be refused."""
        self._lag = LoopLag()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        address = address_of(client[0] if client else None)
        is_write = _is_write(scope, self._writes)
        waiting, now = self._waiting[is_write], asyncio.get_running_loop().time
        if no := self._refusal(address, is_write=is_write):
            # the connection stays open: accepting another one would cost more than this answer
            await no(scope, receive, send)
            return
        this, sent, begun = object(), False, False

        async def receive_body() -> Message:
            nonlocal sent
            if not sent:
                waiting.pop(this, None)  # it waits for its client, not for us
            message = await receive()
            sent = sent or not message.get("more_body")
            if sent and not begun:
                waiting.setdefault(this, now())
            return message

        async def begin(message: Message) -> None:
            nonlocal begun
            begun = True
            waiting.pop(this, None)
            await send(message)

        with ExitStack() as held:
            held.enter_context(counted(self._busy, address))
            held.callback(waiting.pop, this, None)
            waiting[this] = now()
            scope[self.HELD] = held
            await self._app(scope, receive_body, begin)

    def _refusal(self, address: str, *, is_write: bool) -> Response | None:
        waiting = self._waiting[is_write]
        if self._busy[address] >= self._per_address:
            return _TOO_MANY
        if is_write and len(waiting) >= self._LATE_WRITES:
            first = next(iter(waiting.values()))
            if asyncio.get_running_loop().time() - first > self._LATE_WRITE_S:
                return _BUSY
        if len(waiting) < self._LATE_REQUESTS or self._lag.lasting_s() <= self._LATE_S:
            return None
        return _BUSY


@contextlib.contextmanager
def counted(busy: Counter[str], name: str) -> Iterator[None]:
    """Count `name` while this context is open."""
    busy[name] += 1
    try:
        yield
    finally:
        busy[name] -= 1
        if not busy[name]:
            del busy[name]


class SecurityHeaders:
    """Adds security headers to every answer, and keeps the API's answers out of caches."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        page = scope["path"] == "/" or scope["path"].startswith("/static/")
        # the page's files change with the version: the browser must revalidate them
        cache = b"no-cache" if page else b"no-store"

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {**_HEADERS, b"cache-control": cache}
                own = [header for header in message["headers"] if header[0] not in ours]
                message["headers"] = [*own, *ours.items()]
            await send(message)

        await self._app(scope, receive, guarded)


_ORIGIN = re.compile(r"(?P<scheme>[a-z]+)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


class OriginGuard:
    """Refuses requests that another site's page makes in a user's browser (CSRF).

    Browsers send an `Origin` header with every request that can change something. A request without one does
    not come from a browser, or only reads; then its token decides.
    """

    def __init__(self, app: ASGIApp, *, allowed_origins: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and not self._passes(scope):
            # browsers let any origin open a socket and only name it; closed before it is accepted, the
            # client gets 403
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        if scope["type"] == "http" and not self._passes(scope):
            refused = Problem(
                error="requests from this page are not accepted here", code="origin_not_allowed"
            )
            await answer(403, refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _passes(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        origins = headers.getlist("origin")
        if not origins:
            from_here = headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
            return from_here or scope.get("method") in {"GET", "HEAD"}
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        own = f"{scheme}://{headers.get('host', '')}".lower()
        return len(origins) == 1 and (_same(origins[0], own) or origins[0].lower() in self._allowed)


def _same(origin: str, own: str) -> bool:
    """Whether both are the same origin; a default port may be omitted."""
    said = _ORIGIN.fullmatch(origin.lower())
    ours = _ORIGIN.fullmatch(own)
    return said is not None and ours is not None and _triple(said) == _triple(ours)


def _triple(origin: re.Match[str]) -> tuple[str, str, str]:
    default = {"http": "80", "https": "443"}.get(origin["scheme"], "")
    return origin["scheme"], origin["host"], origin["port"] or default


class BodyGuard:
    """Reads the whole body of a request, within limits of size, depth and time, before anything parses it.

    `larger` has other limits of size, by the beginning of the path.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        max_depth: int,
        deadline_s: float,
        larger: Mapping[str, int] | None = None,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._larger = larger or {}
        self._max_depth = max_depth
        self._deadline_s = deadline_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        of_path = (limit for prefix, limit in self._larger.items() if scope["path"].startswith(prefix))
        max_bytes = next(of_path, self._max_bytes)
        body = self._wrong_head(Headers(scope=scope), max_bytes) or await self._read(receive, max_bytes)
        if body is None:
            return  # disconnected before the body was complete
        if isinstance(body, Problem):
            status = {"too_large": 413, "too_slow": 408, "two_lengths": 400}.get(body.code, 422)
            # otherwise all of the rest would be read, to keep the connection
            headers = {} if status == 422 else {"Connection": "close"}
            await answer(status, body, headers)(scope, receive, send)
            return
        read = False

        async def replay() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)

    @staticmethod
    def _too_large(max_bytes: int) -> Problem:
        return Problem(error=f"the body has more than {max_bytes} bytes", code="too_large")

    def _wrong_head(self, headers: Headers, max_bytes: int) -> Problem | None:
        if "content-length" in headers and "transfer-encoding" in headers:
            # a proxy that uses the other length would take the rest for another request (smuggling)
            return Problem(
                error="the request has both Content-Length and Transfer-Encoding", code="two_lengths"
            )
        declared = headers.get("content-length", "0")
        return self._too_large(max_bytes) if declared.isdigit() and int(declared) > max_bytes else None

    async def _read(self, receive: Receive, max_bytes: int) -> bytes | Problem | None:
        body = bytearray()
        try:
            async with asyncio.timeout(self._deadline_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > max_bytes:
                        return self._too_large(max_bytes)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return Problem(error=f"the body took longer than {self._deadline_s} s to arrive", code="too_slow")
        whole = bytes(body)
        if len(whole) <= self._max_bytes:
            return self._wrong(whole) or whole
        # it takes up to half a second, in which other requests go on
        return await asyncio.to_thread(self._wrong, whole) or whole

    def _wrong(self, body: bytes) -> Problem | None:
        if _depth(body) > self._max_depth:
            return Problem(error=f"the body nests deeper than {self._max_depth} levels", code="too_deep")
        if _names_twice(body):
            return Problem(error="the body has a field twice; nothing was done", code="invalid_input")
        return None


def _names_twice(body: bytes) -> bool:
    """Whether an object in a JSON text has a field twice, which parsers read differently."""

    def once(pairs: list[tuple[str, object]]) -> None:
        if len(pairs) != len({name for name, _ in pairs}):
            raise _NamedTwice

    try:
        json.loads(body, object_pairs_hook=once)
    except _NamedTwice:
        return True
    except (ValueError, RecursionError):  # not JSON: reported by whoever parses it
        return False
    return False


class _NamedTwice(Exception):
    """Ends the parsing of a body."""


_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def _depth(body: bytes) -> int:
    """The nesting depth of brackets in a JSON text, outside strings, in one pass."""
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.finditer(body):
        mark = body[token.start()]
        if mark in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in b"]}":
            depth -= 1
    return deepest


class WriteQueue:
    """Runs a few writes at once and queues the others, so that a recall waits for a few at most.

    The event loop serves whatever is ready in order: next to 500 writes, each step of a recall would wait for
    a step of each. If queued writes cannot be answered soon, `RequestLimit` refuses further ones.

    `paths` matches the requests that are queued, all of which are short writes.
    """

    _AT_ONCE: Final = 8
    """Enough for commits to share a disk sync."""

    def __init__(self, app: ASGIApp, *, paths: re.Pattern[str]) -> None:
        self._app = app
        self._paths = paths
        self._free = self._AT_ONCE
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_write(scope, self._paths):
            await self._app(scope, receive, send)
            return
        await self._turn()
        try:
            await self._app(scope, receive, send)
        finally:
            self._next()

    async def _turn(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had its turn already
                self._next()
            raise

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


def _is_write(scope: Scope, paths: re.Pattern[str]) -> bool:
    return scope["method"] not in {"GET", "HEAD"} and paths.fullmatch(scope["path"]) is not None
