"""Follows what other processes write, so that loaded scopes are current before anybody asks.

It only saves time: every load compares versions anyway. Where a change stream cannot be had, nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from pymongo.errors import OperationFailure, PyMongoError

from echoic.errors import EchoicError
from echoic.stores.mongodb.documents import scope_of
from echoic.stores.mongodb.schema import Collections
from echoic.types import Scope

_PAUSE_S = 1.0
_AWAIT_MS = 1000
_CANCEL_S = 0.05
# Not allowed to this user, or not offered by this server: trying again would not help.
_NEVER = {13, 59, 115, 40324, 40573}


async def stopped(task: asyncio.Task[None]) -> None:
    """Cancel `task` until it has ended: the driver may take a cancellation for a broken connection."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_S)


class Watch:
    """One change stream over the scopes' documents.

    Args:
        collections: where.
        wanted: whether a change to a scope is of interest.
        refresh: brings what is loaded of it up to date.
    """

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
        """Whether changes are seen at the moment."""
        self.trouble: str | None = None
        """Why there is no change stream here at all."""

    async def aclose(self) -> None:
        """Stop following."""
        for task in self._tasks:
            await stopped(task)
        self.following = False

    async def _follow(self) -> None:
        while self.trouble is None:
            try:
                await self._stream()
            except OperationFailure as error:
                if error.code in _NEVER:
                    self.trouble = f"no change stream: code {error.code}"
            except PyMongoError:
                pass  # whatever was missed meanwhile, the next load finds
            self.following = False
            await asyncio.sleep(_PAUSE_S)

    async def _stream(self) -> None:
        pipeline = [{"$project": {"documentKey": 1}}]
        async with await self._collections.scopes.watch(pipeline, max_await_time_ms=_AWAIT_MS) as stream:
            self.following = True
            async for event in stream:
                with contextlib.suppress(KeyError, EchoicError):  # a document that is no scope of ours
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
                with contextlib.suppress(EchoicError):  # the next load says what is the matter
                    await self._refresh(scope)


__all__ = ["Watch", "stopped"]
