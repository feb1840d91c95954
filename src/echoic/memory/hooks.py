"""Hooks: events about memory for your application, after the fact. A hook cannot change, delay or stop
anything.

A hook is a plain or async callable that takes one event. It gets events one at a time, in order, on the event
loop, after the caller was answered; a plain callable should therefore be quick. If it raises, the type of the
exception is logged, and the hook is called again for the next event.

Events contain memories in the clear: they are your own data. Traces and metrics contain none; see
`telemetry`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from echoic.errors import InvalidInput
from echoic.memory.concurrency import stop_tasks
from echoic.stores.base import Record
from echoic.types import Memory, Recall, Receipt, Scope

log = logging.getLogger(__name__)

BACKLOG: Final = 1000
"""The most events waiting for one hook; further ones are dropped."""
CLOSE_S: Final = 2.0
"""Seconds for which closing waits for hooks in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Memories were learned from turns. They are durable."""

    scope: Scope
    """The scope of the memories."""
    conversation: str
    reader: str
    """The extractor: "rules", or its name."""
    turns: int
    """How many turns were read."""
    added: tuple[Memory, ...] = ()
    """New current memories, including corrected ones."""
    superseded: tuple[Memory, ...] = ()
    """Memories that these replaced."""
    confirmed: tuple[Memory, ...] = ()
    """Known memories that were said again."""
    retracted: tuple[Memory, ...] = ()
    """Memories that were retracted without a replacement."""
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A search was made. One that failed raised instead."""

    scope: Scope
    recall: Recall
    """The result, with its hits and outcome."""
    duration_ms: float


Forgetting = Literal["everything", "key", "conversation", "id"]
"""What was destroyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Something was destroyed at the user's request."""

    scope: Scope
    what: Forgetting
    receipt: Receipt
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Background work failed. Nothing is lost: it stays pending in the store."""

    what: Literal["embedding", "distilling"]
    reason: str
    """The kind of failure, such as "EmbedderUnavailable". No contents."""
    scope: Scope | None = None
    """The scope being worked on; None if it was more than one."""
    conversation: str | None = None
    again_s: float | None = None
    """Seconds after which a conversation is read again. None: it is parked until an operator retries it; for
    embedding, a retry follows soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed:
    """A model used a memory tool. Secrets in its arguments are masked."""

    scope: Scope
    """The scope of the memory."""
    tool: str
    """The name of the tool, such as "agentMemory"."""
    operation: str
    """"set", "get", "delete" or "query"; for other tools their name."""
    conversation: str | None = None
    key: str | None = None
    value: str | None = None
    query: str | None = None
    outcome: Literal["done", "failed"] = "done"
    """"failed": the model was told that it failed or was late."""
    memory: Memory | None = None
    """What was set or read; its `visibility` says who may see it, and `reason` why."""
    recall: Recall | None = None
    """The result of a query, and how it was found (`Recall.pipeline`)."""
    deleted: bool | None = None
    """Whether there was anything to retract."""
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
"""Takes an event; an awaitable result is awaited, any other is ignored."""


class Hooks:
    """The hooks of one service."""

    def __init__(self) -> None:
        self._lines: dict[type[Event], list[_HookQueue]] = {}

    def add(self, kind: type[E], hook: Hook[E]) -> None:
        """Call `hook` with every event of `kind` from now on. Adding it twice calls it twice.

        Raises:
            InvalidInput: `hook` cannot be called.
        """
        if not callable(hook):
            raise InvalidInput(f"a hook is a function of one event, not {type(hook).__name__}")
        self._lines.setdefault(kind, []).append(_HookQueue(hook))

    def remove(self, hook: Callable[..., object]) -> None:
        """Call `hook` no more; events waiting for it are dropped. An unknown hook is ignored."""
        for kind, lines in self._lines.items():
            for line in [line for line in lines if line.hook == hook]:
                line.drop()
                self._lines[kind].remove(line)

    def wants(self, kind: type[Event]) -> bool:
        """Whether any hook listens for events of `kind`."""
        return bool(self._lines.get(kind))

    def emit(self, event: Event) -> None:
        """Queue `event` for every hook of its kind; never waits or raises. On the event loop only."""
        for line in self._lines.get(type(event), ()):
            line.put(event)

    async def settle(self, timeout_s: float = CLOSE_S) -> bool:
        """Wait until no event waits for a hook; returns whether that was reached in time."""
        tasks = [task for task in self._tasks() if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        return all(task.done() for task in tasks)

    async def aclose(self) -> None:
        """Wait for hooks to finish, at most `CLOSE_S`. May be called twice."""
        await self.settle()
        await stop_tasks(self._tasks())

    def _tasks(self) -> list[asyncio.Task[None]]:
        every = [line.task for lines in self._lines.values() for line in lines]
        return [task for task in every if task is not None]


class _HookQueue:
    """The events waiting for one hook, and the task that delivers them."""

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
            # in a context of its own: a hook is not part of the call that caused it
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
                # its message may contain content of the event
                log.warning("a hook raised %s on %s", type(error).__name__, type(event).__name__)
        self._behind = False
