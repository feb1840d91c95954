"""The same memory for code that does not await: a loop in a thread behind a blocking façade.

    with echoic.sync.open("sqlite:///echoic.db") as memory:
        memory.user("ana").set("user_name", "Ana")

There is no second implementation: every verb is the asynchronous one, run to its end.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from echoic import opening
from echoic.memory.conversation import OpenConversation
from echoic.memory.experience import AgentExperience
from echoic.memory.proposals import Proposals
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory

_HANDLES = (UserMemory, OpenConversation, Proposals, AgentExperience)


class Blocking:
    """An asynchronous handle whose verbs block. Handles they return are wrapped as well."""

    def __init__(self, handle: object, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = handle
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._handle, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.isawaitable(result):
                result = asyncio.run_coroutine_threadsafe(_awaited(result), self._loop).result()
            return Blocking(result, self._loop) if isinstance(result, _HANDLES) else result

        return call

    def __dir__(self) -> list[str]:
        return dir(self._handle)


class BlockingService(Blocking):
    """A memory service for `with`. Safe to share between threads."""

    def __init__(self, make: Callable[[], MemoryService]) -> None:
        loop = asyncio.new_event_loop()
        super().__init__(make(), loop)
        self._thread = threading.Thread(target=loop.run_forever, name="echoic-loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.open()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.aclose()
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def open(*args: Any, **kwargs: Any) -> BlockingService:  # noqa: A001 - as echoic.open
    """As `echoic.open`, to be used with `with`."""
    return BlockingService(lambda: opening.open(*args, **kwargs))


async def _awaited(result: Any) -> Any:
    return await result
