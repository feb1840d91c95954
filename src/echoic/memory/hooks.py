"""Hooks: events about memory for the application, after the fact. A hook cannot change, delay or stop
anything.

A hook is a plain or async callable that takes one event. It gets events one at a time, in order, on the event
loop, after the caller was answered; a plain callable should therefore be quick. If it raises, the type of the
exception is logged, and the hook is called again for the next event.

Events contain memories in the clear: they are the application's own. Traces and metrics contain none; see
`telemetry`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from echoic.errors import InvalidInput
from echoic.stores.base import Record
from echoic.types import Memory, Recall, Receipt, Scope

log = logging.getLogger(__name__)

BACKLOG: Final = 1000
"""Events that wait for one hook at most; what comes while it is that far behind is not told to it."""
CLOSE_S: Final = 2.0
"""How long closing waits for hooks that are still at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Memories were learned from what was said. They are durable."""

    scope: Scope
    """Whose."""
    conversation: str
    reader: str
    """The extractor: "rules", or its name."""
    turns: int
    """How many were read."""
    added: tuple[Memory, ...] = ()
    """New current memories, including corrected ones."""
    superseded: tuple[Memory, ...] = ()
    """Memories that were corrected by them."""
    confirmed: tuple[Memory, ...] = ()
    """Known memories that were said again."""
    retracted: tuple[Memory, ...] = ()
    """Memories that were taken back, with nothing in their place."""
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Something was searched for. A search that could not look at all raised instead."""

    scope: Scope
    recall: Recall
    """With its hits and its outcome."""
    duration_ms: float


Forgetting = Literal["everything", "key", "conversation", "id"]
"""What somebody had destroyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Something was destroyed at the user's wish."""

    scope: Scope
    what: Forgetting
    receipt: Receipt
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Work behind the scenes did not get on. Nothing is lost: it waits in the store."""

    what: Literal["embedding", "distilling"]
    reason: str
    """The kind of failure, such as "EmbedderUnavailable". No contents."""
    scope: Scope | None = None
    """The scope that was being worked on; None if it was more than one."""
    conversation: str | None = None
    again_s: float | None = None
    """In how many seconds a conversation is read again; None: it was given up until an operator has it tried
    again, or, for embedding, soon and by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed:
    """A model used a memory tool. Secrets in its arguments are masked."""

    scope: Scope
    """The scope of the memory."""
    tool: str
    """Its name, such as "agentMemory"."""
    operation: str
    """The operation: "set", "get", "delete" or "query"; for other tools their name."""
    conversation: str | None = None
    key: str | None = None
    value: str | None = None
    query: str | None = None
    outcome: Literal["done", "failed"] = "done"
    """failed: the model was told that it could not be done, or not in time."""
    memory: Memory | None = None
    """What was set or read; `visibility` says who may see it, and `reason` why."""
    recall: Recall | None = None
    """The result of a query, and how it was found (`Recall.pipeline`)."""
    deleted: bool | None = None
    """Whether there was anything to take back."""
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWritten:
    """A record of a call was written or rewritten: a turn, or an exchange. It is durable."""

    scope: Scope
    """The scope of the call."""
    record: Record
    """A record of kind "turn" or "call_exchange"; its key is the conversation."""


Event = Extraction | Recalled | Forgotten | Failure | ToolUsed | CallWritten
E = TypeVar("E", Extraction, Recalled, Forgotten, Failure, ToolUsed, CallWritten)
Hook = Callable[[E], object]
"""Called with an event; what an async one returns is awaited, anything else is ignored."""


class Hooks:
    """The hooks of one service."""

    def __init__(self) -> None:
        self._lines: dict[type[Event], list[_HookQueue]] = {}

    def add(self, kind: type[E], hook: Hook[E]) -> None:
        """Tell `hook` of every event of `kind` from now on. Adding it twice tells it twice.

        Raises:
            InvalidInput: `hook` cannot be called.
        """
        if not callable(hook):
            raise InvalidInput(f"a hook is a function of one event, not {type(hook).__name__}")
        self._lines.setdefault(kind, []).append(_HookQueue(hook))

    def remove(self, hook: Callable[..., object]) -> None:
        """Tell `hook` of nothing more; what waits for it is dropped. Nothing happens if it is not there."""
        for kind, lines in self._lines.items():
            for line in [line for line in lines if line.hook == hook]:
                line.drop()
                self._lines[kind].remove(line)

    def wants(self, kind: type[Event]) -> bool:
        """Whether any hook listens for events of `kind`."""
        return bool(self._lines.get(kind))

    def emit(self, event: Event) -> None:
        """Have every hook of its kind told. Returns at once and never raises. Call it from the event loop."""
        for line in self._lines.get(type(event), ()):
            line.put(event)

    async def settle(self, timeout_s: float = CLOSE_S) -> bool:
        """Wait until no event waits for a hook; whether it came to that."""
        tasks = [task for task in self._tasks() if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        return all(task.done() for task in tasks)

    async def aclose(self) -> None:
        """Wait for hooks to finish, at most `CLOSE_S`. May be called twice."""
        await self.settle()
        for task in self._tasks():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _tasks(self) -> list[asyncio.Task[None]]:
        every = [line.task for lines in self._lines.values() for line in lines]
        return [task for task in every if task is not None]


class _HookQueue:
    """The events that wait for one hook, and the task that hands them over."""

    def __init__(self, hook: Callable[[Any], object]) -> None:
        self.hook = hook
        self.task: asyncio.Task[None] | None = None
        self._waiting: deque[Event] = deque()
        self._behind = False

    def put(self, event: Event) -> None:
        if len(self._waiting) >= BACKLOG:
            if not self._behind:
                log.warning("a hook is %d events behind; it is not told of more until it catches up", BACKLOG)
            self._behind = True
            return
        self._waiting.append(event)
        if self.task is None or self.task.done():
            # in a context of its own: what a hook does is no part of the call that happened to cause it
            self.task = asyncio.create_task(self._tell(), name="echoic-hook", context=contextvars.Context())

    def drop(self) -> None:
        self._waiting.clear()

    async def _tell(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            try:
                told = self.hook(event)
                if inspect.isawaitable(told):
                    await told
            except Exception as error:  # noqa: BLE001 - whatever a hook raises, memory goes on
                # its message may hold what the event held
                log.warning("a hook raised %s on %s", type(error).__name__, type(event).__name__)
        self._behind = False
