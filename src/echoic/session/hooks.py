"""What an application is told of a call while it goes on. Hooks run beside the call and cannot break it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from echoic.session.agents import CallContext

log = logging.getLogger(__name__)

What = Literal[
    "session_start",
    "session_end",
    "state",
    "turn",
    "turn_latency",
    "tool_call",
    "tool_result",
    "transfer",
    "memory_extracted",
    "recall",
    "barge_in",
    "error",
]
"""state: `state`. turn: `speaker`, `text`, `heard`, `unheard`, `id`. turn_latency: `ms` from the end of the
caller's words to the first audio of the reply. tool_call: `name`, `call`, `arguments`. tool_result: `name`,
`call`, `outcome`. transfer: `from`, `to`, `gap_ms`. memory_extracted: `kept`, `retracted` (ids). recall:
`outcome`, `ready`, `delay_ms`, `shown`. error: `kind`. session_end: `reason`, `kept`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened on a call."""

    what: What
    details: Mapping[str, Any] = field(default_factory=dict)


Listener = Callable[["CallContext", Event], Awaitable[None]]


class Hooks:
    """Tells listeners, in the order things happened, without the call waiting for them."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._waiting: asyncio.Queue[tuple[CallContext, Event]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def tell(self, context: CallContext, what: What, **details: Any) -> None:
        """Put an event behind those that wait."""
        if self._listener is None:
            return
        self._waiting.put_nowait((context, Event(what=what, details=MappingProxyType(details))))
        if self._task is None:
            self._task = asyncio.create_task(self._run(self._listener), name="echoic-hooks")

    async def aclose(self, timeout_s: float = 2.0) -> None:
        """Let listeners hear what waits, within a time."""
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._waiting.join(), timeout_s)
        except TimeoutError:
            log.warning("%d events of the call were not heard in time", self._waiting.qsize())
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, listener: Listener) -> None:
        while True:
            context, event = await self._waiting.get()
            try:
                await listener(context, event)
            except (Exception, asyncio.CancelledError) as error:  # the last frame of somebody else's code
                if cancelled_here(error):
                    raise
                log.warning("a hook failed at %s: %s", event.what, type(error).__name__)
            finally:
                self._waiting.task_done()


def cancelled_here(error: BaseException) -> bool:
    """Whether `error` ends this task, and not only what somebody else's code waited for in it."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


__all__ = ["Event", "Hooks", "Listener", "What", "cancelled_here"]
