"""Server-sent events (WHATWG HTML, section 9.2), and the open pages that receive them.

Nothing is stored for pages that are not open: a page that reconnects requests the current state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from echoic.adapters.connections import Limits
from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, ToolUsed
from echoic.memory.service import MemoryService
from echoic.types import Scope

MEDIA_TYPE: Final = "text/event-stream"
BEAT: Final = b": still here\n\n"
"""A comment, which clients ignore."""


def event(name: str, data: BaseModel) -> bytes:
    """One event. JSON contains no line breaks."""
    shown = data.model_dump_json(by_alias=True, exclude_none=False)
    return f"event: {name}\ndata: {shown}\n\n".encode()


def streamed(events: AsyncIterator[bytes]) -> StreamingResponse:
    """`events` as a response that proxies should not buffer."""
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})


def described(what: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of an event stream."""
    content = {MEDIA_TYPE: {"schema": {"type": "string", "description": what}}}
    return {200: {"description": "Server-sent events.", "content": content}}


BACKLOG: Final = 100
"""Events that wait for one page; a page further behind misses some, and sees the state when it reloads."""
Told = Extraction | Forgotten | Failure | ToolUsed | CallWritten


class EventStreams:
    """The pages that listen to one service."""

    def __init__(self, memory: MemoryService, limits: Limits | None = None) -> None:
        self._memory = memory
        self._limits = limits or Limits()
        self._pages: defaultdict[Scope, list[asyncio.Queue[Told | None]]] = defaultdict(list)
        self._oldest: dict[asyncio.Queue[Told | None], tuple[Scope, str]] = {}
        """Every open page with its scope and address, oldest first."""
        self._closed = False

    def open(self) -> None:
        """Subscribe to events."""
        self._closed = False
        self._memory.on_memory_extraction(self._tell)
        self._memory.on_forgotten(self._tell)
        self._memory.on_failure(self._tell)
        self._memory.on_tool_use(self._tell)

    def close(self) -> None:
        """End all streams, so that a server that stops does not wait for them. May be called twice."""
        self._closed = True
        self._memory.remove_hook(self._tell)
        self._memory.remove_hook(self._tell_deployment)
        for queues in self._pages.values():
            for queue in queues:
                _put(queue, None)

    async def listen(self, scope: Scope, *, beat_s: float, address: str = "") -> AsyncIterator[Told | None]:
        """Yield events of the memory of `scope` as they happen, and None after each `beat_s` without one.

        For a scope without user: events of every user of the deployment, and what is said in their calls.
        `address` is the address of the page.
        """
        if self._closed:
            return
        queue: asyncio.Queue[Told | None] = asyncio.Queue(BACKLOG)
        self._make_room(scope, address)
        if scope.user is None and not self._deployment_is_heard():
            self._memory.on_call_written(self._tell_deployment)  # only while somebody listens
        self._pages[scope].append(queue)
        self._oldest[queue] = (scope, address)
        try:
            while True:
                told: Told | None = None
                with contextlib.suppress(TimeoutError):
                    told = await asyncio.wait_for(queue.get(), beat_s)
                    if told is None:
                        return
                yield told
        finally:
            self._leave(queue)

    def _make_room(self, scope: Scope, address: str) -> None:
        """End streams until one more of `scope` and `address` is allowed."""
        while len(self._pages.get(scope, ())) >= self._limits.streams_per_identity:
            self._end(self._pages[scope][0])
        by_address = Counter(place for _, place in self._oldest.values())
        if by_address[address] >= self._limits.streams_per_address:
            self._end_oldest_of(address)
        elif len(self._oldest) >= self._limits.streams:
            self._end_oldest_of(by_address.most_common(1)[0][0])

    def _end_oldest_of(self, address: str) -> None:
        self._end(next(queue for queue, (_, place) in self._oldest.items() if place == address))

    def _end(self, queue: asyncio.Queue[Told | None]) -> None:
        self._leave(queue)
        _put(queue, None)

    def _leave(self, queue: asyncio.Queue[Told | None]) -> None:
        scope, _ = self._oldest.pop(queue, (None, ""))
        if scope is None:
            return  # already ended
        pages = self._pages[scope]
        pages.remove(queue)
        if not pages:
            del self._pages[scope]
            if scope.user is None and not self._deployment_is_heard():
                self._memory.remove_hook(self._tell_deployment)

    def _deployment_is_heard(self) -> bool:
        return any(scope.user is None for scope in self._pages)

    def _tell(self, event: Told) -> None:
        if event.scope is None:
            return
        for scope in {event.scope, event.scope.everyone}:
            for queue in self._pages.get(scope, ()):
                _put(queue, event)

    def _tell_deployment(self, event: CallWritten) -> None:
        for queue in self._pages.get(event.scope.everyone, ()):
            _put(queue, event)


def _put(queue: asyncio.Queue[Told | None], told: Told | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(told)
