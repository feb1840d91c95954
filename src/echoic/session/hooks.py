"""Hooks for the application during a call: events, and captions of what is being said.

Hooks run beside the call and cannot break it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic_ai.messages import PartDeltaEvent, PartEndEvent, PartStartEvent, SpeechPart, SpeechPartDelta
from pydantic_ai.realtime import RealtimeEvent

from echoic.memory.concurrency import stop_tasks
from echoic.session.provider import ProviderSession

if TYPE_CHECKING:
    from echoic.session.agents import CallContext

log = logging.getLogger(__name__)

T = TypeVar("T")

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
        """Add an event to the queue for the listener."""
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


def caption_of(provider: ProviderSession, event: RealtimeEvent) -> Caption | None:
    """The caption of an event, once `provider` has processed it; None if the event adds no words."""
    if isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
        return _caption(provider, event.index, event.part.speaker, final=isinstance(event, PartEndEvent))
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
        if event.delta.transcript is None:
            return None
        return _caption(provider, event.index, event.delta.speaker, final=False)
    return None


def _caption(provider: ProviderSession, index: int, speaker: str | None, *, final: bool) -> Caption | None:
    agent = provider.setup.agent.name
    if speaker == "assistant":
        utterance = provider.utterances.get(index)
        if utterance is None or not utterance.trace.text:
            return None
        return Caption(
            id=utterance.turn_id, speaker="agent", agent=agent, text=utterance.trace.text, final=final
        )
    said = provider.said.get(index)
    if said is None or not said.text:
        return None
    return Caption(id=said.turn_id, speaker="user", agent=agent, text=said.text, final=final)


class CallTasks:
    """Background work that must end before the call does."""

    def __init__(self) -> None:
        self._in_flight: set[asyncio.Task[Any]] = set()

    async def in_flight(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`; the call is not over before it is done."""
        task = asyncio.current_task()
        assert task is not None
        self._in_flight.add(task)
        try:
            return await work
        finally:
            self._in_flight.discard(task)

    def later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in the background."""
        task = asyncio.ensure_future(work)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        return task

    async def durably(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, which finishes even if the waiting task is cancelled."""
        return await asyncio.shield(self.later(work))

    async def settle(self, timeout_s: float) -> None:
        """Wait for work in progress, until the timeout."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=timeout_s)
