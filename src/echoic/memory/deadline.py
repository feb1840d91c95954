"""A moment by which an answer must be there, and waiting for work no longer than until then."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from numbers import Real
from typing import Any, TypeVar

from echoic.errors import InvalidInput, brief

_T = TypeVar("_T")
_LEAST_MS = 0.01


def checked_deadline(after_ms: object) -> float | None:
    """`after_ms` as a deadline from now; None is none.

    Raises:
        InvalidInput: it is no number above 0.
    """
    if after_ms is None:
        return None
    number = float(after_ms) if isinstance(after_ms, Real) else 0.0
    if not number > 0:  # not a number is none above 0 either
        raise InvalidInput(f"deadline_ms must be a number above 0, not {brief(after_ms)}")
    return number


class Deadline:
    """Counts from when it is made. What is late goes on by itself: asked for again, it is there."""

    def __init__(self, after_ms: float | None) -> None:
        """Set the moment.

        Args:
            after_ms: from now on; None is never.
        """
        self._at = None if after_ms is None else asyncio.get_running_loop().time() + after_ms / 1000
        self.missed = False
        """Whether anything waited for was late."""

    @property
    def left_ms(self) -> float | None:
        """Until it, a little at least; None is forever."""
        if self._at is None:
            return None
        return max(1000 * (self._at - asyncio.get_running_loop().time()), _LEAST_MS)

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """The outcome of `work`, begun now; None, and `missed`, if it is not there in time."""
        if self._at is None:
            return await work  # without a task: most recalls have no deadline, and most work no need to wait
        return await self.wait(asyncio.ensure_future(work))

    async def wait(self, work: asyncio.Future[_T]) -> _T | None:
        """The outcome of `work`; None, and `missed`, if it is not there in time. Its failure is raised."""
        if work.done():
            return work.result()
        try:
            async with asyncio.timeout_at(self._at):
                return await asyncio.shield(work)
        except TimeoutError:
            # a store or model of its own may time out: that is its failure, and not this deadline
            if work.done():
                return work.result()
            self.missed = True
            work.add_done_callback(noted)
            return None


def noted(work: asyncio.Future[_T]) -> None:
    """A late failure is nobody's any more; asking for it keeps the loop from complaining."""
    if not work.cancelled():
        work.exception()


__all__ = ["Deadline", "noted"]
