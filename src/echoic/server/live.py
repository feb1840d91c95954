"""What is learned of a caller, told to their open pages as it happens.

Nothing is kept for a page that is not open: one that was away asks for what holds. Whose pages they are is
decided by the routes; here is only a scope to listen under.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Final

from echoic.memory.hooks import Extraction, Forgotten, Trouble
from echoic.memory.service import MemoryService
from echoic.types import Scope

BACKLOG: Final = 100
"""Events that wait for one page; a page further behind misses some, and sees what holds when it asks."""
LISTENERS: Final = 8
"""Pages of one caller at a time; another one ends the oldest."""

PAGES: Final = 100
"""Of all callers, likewise: a page that listens holds a connection, of which a server has only so many."""

Told = Extraction | Forgotten | Trouble


class Live:
    """The pages that listen to one service."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._pages: defaultdict[Scope, list[asyncio.Queue[Told | None]]] = defaultdict(list)
        self._oldest: dict[asyncio.Queue[Told | None], Scope] = {}
        """Every page that listens and whose it is, in the order they came."""
        self._closed = False

    def open(self) -> None:
        """Begin to be told."""
        self._closed = False
        self._memory.on_memory_extraction(self._tell)
        self._memory.on_forgotten(self._tell)
        self._memory.on_trouble(self._tell)

    def close(self) -> None:
        """End every page's listening, so that a server that stops waits for none. May be called twice."""
        self._closed = True
        self._memory.remove_hook(self._tell)
        for queues in self._pages.values():
            for queue in queues:
                _put(queue, None)

    async def listen(self, scope: Scope, *, beat_s: float) -> AsyncIterator[Told | None]:
        """What happens to the memory of `scope` from now on; None every `beat_s` in which nothing does."""
        if self._closed:
            return
        queue: asyncio.Queue[Told | None] = asyncio.Queue(BACKLOG)
        while len(self._pages.get(scope, ())) >= LISTENERS:
            self._end(self._pages[scope][0])
        while len(self._oldest) >= PAGES:
            self._end(next(iter(self._oldest)))
        self._pages[scope].append(queue)
        self._oldest[queue] = scope
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

    def _end(self, queue: asyncio.Queue[Told | None]) -> None:
        self._leave(queue)
        _put(queue, None)

    def _leave(self, queue: asyncio.Queue[Told | None]) -> None:
        scope = self._oldest.pop(queue, None)
        if scope is None:
            return  # it was ended
        pages = self._pages[scope]
        pages.remove(queue)
        if not pages:
            del self._pages[scope]

    def _tell(self, event: Told) -> None:
        if event.scope is None:
            return
        for queue in self._pages.get(event.scope, ()):
            _put(queue, event)


def _put(queue: asyncio.Queue[Told | None], told: Told | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(told)


__all__ = ["Live", "Told"]
