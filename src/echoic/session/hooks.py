"""Hooks for the application during a call: events, and captions of what is being said.

Hooks run beside the call and cannot break it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from echoic.memory.concurrency import stop_tasks

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


Listener = Callable[["CallContext", Event], Awaitable[None] | None]
"""Called with each event: an async function, or a plain one, which must not wait."""


class CallHooks:
    """Calls a listener with events, in order, without the call waiting for it."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._waiting: asyncio.Queue[tuple[CallContext, Event]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def tell(self, context: CallContext, what: What, **details: Any) -> None:
        if self._listener is None:
            return
        self._waiting.put_nowait((context, Event(what=what, details=MappingProxyType(details))))
        if self._task is None:
            self._task = asyncio.create_task(self._run(self._listener), name="echoic-hooks")

    async def aclose(self, timeout_s: float = 2.0) -> None:
        """Deliver waiting events to the listeners, within a time limit."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._waiting.join()
        except TimeoutError:
            log.warning("%d events of the call were not heard in time", self._waiting.qsize())
        await stop_tasks([self._task])

    async def _run(self, listener: Listener) -> None:
        while True:
            context, event = await self._waiting.get()
            try:
                told = listener(context, event)
                if inspect.isawaitable(told):
                    await told
            except (Exception, asyncio.CancelledError) as error:  # the last frame of somebody else's code
                if cancelled_here(error):
                    raise
                log.warning("a hook failed at %s: %s", event.what, type(error).__name__)
            finally:
                self._waiting.task_done()


def cancelled_here(error: BaseException) -> bool:
    """Whether `error` cancels this task, rather than something awaited in it."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The text so far of one utterance."""

    id: str
    """The id of the turn that this caption becomes."""
    speaker: Literal["user", "agent"]
    agent: str
    """The agent that serves."""
    text: str
    final: bool
    """Whether the text is complete. How much of an agent's words was heard is in the turn."""


Captions = Callable[[Caption], None]
"""Called with each caption; must not wait."""


def show(captions: Captions, caption: Caption) -> None:
    """Call `captions`; whatever it raises, the call goes on."""
    try:
        captions(caption)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - somebody else's code
        log.warning("captions failed: %s", type(error).__name__)
