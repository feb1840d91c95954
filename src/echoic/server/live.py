"""What a server holds between requests about one service, from `open` to `close`: the pages that receive
events, the recalls of the last hour, and recalls begun while a caller speaks. Nothing of it is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from echoic.adapters.connections import Limits
from echoic.errors import EchoicError
from echoic.memory.assurance import Level
from echoic.memory.background import Jobs
from echoic.memory.block import HITS
from echoic.memory.concurrency import noted
from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, Recalled, ToolUsed
from echoic.memory.service import MemoryService
from echoic.memory.speculation import Speculation
from echoic.memory.user import UserMemory
from echoic.server.models import ResponseModel
from echoic.session.call_record import read_exchanges
from echoic.types import Recall, Scope

# -- server-sent events (WHATWG HTML, section 9.2)

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
    """The pages that listen to one service.

    Nothing is kept for pages that are not open: a page that reconnects requests the current state.
    """

    def __init__(self, memory: MemoryService, limits: Limits | None = None) -> None:
        self._memory = memory
        self._limits = limits or Limits()
        self._pages: defaultdict[Scope, list[asyncio.Queue[Told | None]]] = defaultdict(list)
        self._oldest: dict[asyncio.Queue[Told | None], tuple[Scope, str]] = {}
        """Every open page with its scope and address, oldest first."""
        self._closed = False

    def open(self) -> None:
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
                    async with asyncio.timeout(beat_s):
                        told = await queue.get()
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


# -- memory health, for operators: counts and durations, never what was said

MINUTES: Final = 60
"""How far it looks back."""
_TIMES_KEPT: Final = 2000
"""Recalls per minute whose duration is kept."""
_CALLS_READ: Final = 50
"""Number of recent calls whose turns are counted."""
_LATELY: Final = 10
"""Minutes that alarms consider."""
_ENOUGH: Final = 20
"""Minimum number of recalls or turns for an alarm about a share."""
_SLOW_MS: Final = 150.0
_INCOMPLETE: Final = 0.05
_READY: Final = 0.5
_CHECK_S: Final = 5.0


@dataclass(slots=True)
class Minute:
    """The recalls of one minute."""

    number: int
    """Minutes since the epoch."""
    recalls: int = 0
    silent: int = 0
    """Complete searches that found nothing likely to answer."""
    incomplete: int = 0
    """Searches that ran out of time, or could not search everything."""
    times_ms: list[float] = field(default_factory=list)

    @property
    def at(self) -> datetime:
        """When the minute began."""
        return datetime.fromtimestamp(60 * self.number, UTC)

    @property
    def p50_ms(self) -> float | None:
        """The median duration."""
        return quantile(self.times_ms, 0.5)

    @property
    def p95_ms(self) -> float | None:
        """The 95th percentile of the durations."""
        return quantile(self.times_ms, 0.95)


class MinuteView(ResponseModel):
    """The recalls of one minute."""

    at: datetime
    recalls: int
    silent: int = Field(description="Complete searches that found nothing likely to answer.")
    incomplete: int = Field(description="Searches that ran out of time, or could not search everything.")
    p50_ms: float | None
    p95_ms: float | None


class AlarmView(ResponseModel):
    """A problem."""

    severity: Literal["critical", "warning", "note"]
    what: str
    do: str = Field(description="What to do about it.")


class TurnsView(ResponseModel):
    """The spoken turns of the calls of the last hour."""

    count: int
    ready: int = Field(description="Turns whose recall was ready when the caller stopped speaking.")
    first_word_ms: float | None = Field(
        description="The median from the end of the caller's words to the first audio of the answer."
    )


class HealthView(ResponseModel):
    """The health of a deployment now and in the last hour, in this process since it started."""

    at: datetime
    store: Literal["ok", "unavailable"]
    embedder: str
    embedding_failure: str | None = Field(description="Why embedding fails; null if it works.")
    learning_failures: dict[str, int] = Field(
        description="Conversations that cannot be learned from for now, by the kind of error, a user of "
        "whom nothing can be read as one; without those that a model fails on.",
        examples=[{"StoreCorrupt": 1}],
    )
    waiting: int = Field(description="Conversations that are still to be read.")
    failing: int = Field(description="Conversations that wait for a retry of the model.")
    parked: int = Field(description="Conversations that were given up.")
    unreadable: int = Field(description="Users whose conversations cannot be read.")
    audit: bool = Field(description="Whether an audit log is written.")
    minutes: list[MinuteView] = Field(description="The last 60, oldest first.")
    turns: TurnsView
    alarms: list[AlarmView]


class HealthWatch:
    """Counts the recalls of one service, from when it is opened."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._minutes: defaultdict[str, deque[Minute]] = defaultdict(lambda: deque(maxlen=MINUTES))
        self._changed: set[asyncio.Event] = set()
        self._trying: asyncio.Task[tuple[bool, bool]] | None = None
        self.closed = False

    def open(self) -> None:
        self.closed = False
        self._memory.on_recall(self._note)

    def close(self) -> None:
        """End all waiting. May be called twice."""
        self.closed = True
        self._memory.remove_hook(self._note)
        self._tell()

    async def ready(self) -> tuple[bool, bool]:
        """Whether the store can be read and written, and whether the embedder works.

        Whoever asks while both are being tried shares the answer: anybody may ask, and each try is a write to
        the store and, with a hosted embedder, a request that costs.
        """
        if self._trying is None or self._trying.done():
            self._trying = asyncio.create_task(self._tried())
            self._trying.add_done_callback(noted)  # its askers may be gone
        return await asyncio.shield(self._trying)

    async def changed(self, within_s: float) -> None:
        """Wait until something was recalled or the watch ends, or until the timeout."""
        event = asyncio.Event()
        self._changed.add(event)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await event.wait()
        finally:
            self._changed.discard(event)

    async def health(self, deployment: str) -> HealthView:
        store: Literal["ok", "unavailable"] = "ok"
        jobs = Jobs()
        turns = TurnsView(count=0, ready=0, first_word_ms=None)
        try:
            async with asyncio.timeout(_CHECK_S):
                store = "ok" if await self._store_works() else "unavailable"
                jobs = await self._memory.jobs(deployment)
                with contextlib.suppress(Exception):  # of one user, whatever a damaged record raises
                    turns = await self._turns(deployment)
        except (EchoicError, TimeoutError):
            store = "unavailable"
        minutes = self._last_hour(deployment)
        now = HealthView(
            at=datetime.now(UTC),
            store=store,
            embedder=self._memory.embedder.spec.model,
            embedding_failure=self._memory.embedding_failure,
            learning_failures=dict(self._memory.learning_failures(deployment)),
            audit=self._memory.audit is not None,
            waiting=jobs.waiting,
            failing=jobs.failing,
            parked=len(jobs.parked),
            unreadable=jobs.unreadable,
            minutes=[MinuteView.of(minute) for minute in minutes],
            turns=turns,
            alarms=[],
        )
        alarms = _alarms(now, minutes[-_LATELY:], semantic=self._memory.embedder.semantic)
        return now.model_copy(update={"alarms": alarms})

    async def _tried(self) -> tuple[bool, bool]:
        store, embedder = await asyncio.gather(self._store_works(), self._embedder_works())
        return store, embedder

    async def _store_works(self) -> bool:
        try:
            async with asyncio.timeout(_CHECK_S):
                facts = await self._memory.check()
                # a store may report its state while it cannot be read
                await self._memory.user("readyz", "readyz").get("readyz")
        except (EchoicError, TimeoutError):
            return False
        return bool(facts.get("writable"))

    async def _embedder_works(self) -> bool:
        try:
            async with asyncio.timeout(_CHECK_S):
                await self._memory.embedder.embed(["ready?"], "query")
        except (EchoicError, TimeoutError):
            return False
        return True

    def _note(self, recalled: Recalled) -> None:
        minutes, number = self._minutes[recalled.scope.deployment], _this_minute()
        if not minutes or minutes[-1].number != number:
            minutes.append(Minute(number))
        minute, outcome = minutes[-1], recalled.recall.outcome
        minute.recalls += 1
        minute.incomplete += outcome != "complete"
        minute.silent += outcome == "complete" and not recalled.recall.hits
        if len(minute.times_ms) < _TIMES_KEPT:
            minute.times_ms.append(recalled.duration_ms)
        self._tell()

    def _tell(self) -> None:
        for event in self._changed:
            event.set()

    def _last_hour(self, deployment: str) -> tuple[Minute, ...]:
        there = {minute.number: minute for minute in self._minutes.get(deployment, ())}
        now = _this_minute()
        return tuple(there.get(number, Minute(number)) for number in range(now - MINUTES + 1, now + 1))

    async def _turns(self, deployment: str) -> TurnsView:
        since = datetime.now(UTC) - timedelta(minutes=MINUTES)
        recent = await self._memory.newest_conversations(deployment, since=since, limit=_CALLS_READ)
        count = ready = 0
        first: list[float] = []
        for listed in recent.conversations:
            memory = self._memory.user(listed.user, deployment)
            for each in await read_exchanges(memory.backing_store, memory.scope, listed.conversation.id):
                if each.latency_ms is not None:
                    first.append(each.latency_ms)
                if each.recall is not None and "speech_ended" in each.stages:
                    count, ready = count + 1, ready + each.recall.ready
        return TurnsView(count=count, ready=ready, first_word_ms=quantile(first, 0.5))


def quantile(values: Sequence[float], part: float) -> float | None:
    """The value below which `part` of `values` lie; None if there are none."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else None


def _this_minute() -> int:
    return int(time.time() // 60)


_Condition = tuple[bool, Literal["critical", "warning", "note"], str, str]
"""Whether an alarm holds, and the alarm."""


def _of_learning(now: HealthView) -> list[_Condition]:
    unread, why = sum(now.learning_failures.values()), ", ".join(sorted(now.learning_failures))
    return [
        (
            bool(now.learning_failures),
            "warning",
            f"{unread} conversations cannot be learned from for now ({why})",
            "Nothing, if this passes: they are tried again. Otherwise run `echoic doctor`.",
        ),
        (
            now.parked > 0,
            "warning",
            f"{now.parked} conversations were given up after model failures: nothing is learned from them",
            "Fix the model, then run `echoic distil --parked`.",
        ),
        (
            now.failing > 0,
            "note",
            f"The model failed on {now.failing} conversations; they are retried",
            "Nothing, if this passes. Otherwise check the model's status and quota.",
        ),
    ]


def _alarms(now: HealthView, lately: Sequence[Minute], *, semantic: bool) -> list[AlarmView]:
    recalls = sum(minute.recalls for minute in lately)
    incomplete = sum(minute.incomplete for minute in lately)
    slow = quantile([ms for minute in lately for ms in minute.times_ms], 0.95) or 0.0
    enough = recalls >= _ENOUGH
    few_ready = now.turns.count >= _ENOUGH and now.turns.ready < _READY * now.turns.count
    wrong: list[_Condition] = [
        (
            now.store != "ok",
            "critical",
            "The store cannot be read or written",
            "Run `echoic doctor`: it says whether it is the disk, the permissions or the database.",
        ),
        (
            now.embedding_failure is not None,
            "critical",
            f"Embedding fails ({now.embedding_failure}): recall uses words only",
            "Check the embedder's key and network with `echoic doctor`. Embedding is retried automatically.",
        ),
        (
            now.unreadable > 0,
            "critical",
            f"{now.unreadable} users cannot be read; everybody else can",
            "Run `echoic doctor`: it says what is damaged, and whether a backup has to be restored.",
        ),
        *_of_learning(now),
        (
            enough and incomplete > _INCOMPLETE * recalls,
            "warning",
            f"{incomplete} of {recalls} recalls in {_LATELY} minutes ran out of time",
            "Give the process more CPU time, or raise the deadline: docs/scale.md.",
        ),
        (
            enough and slow > _SLOW_MS,
            "warning",
            f"One recall in twenty takes {slow:.0f} ms or longer",
            "Check whether the CPU is busy; docs/scale.md has the capacity of one process.",
        ),
        (
            few_ready,
            "warning",
            f"Recall was ready for {now.turns.ready} of {now.turns.count} turns when the caller stopped",
            "Pass on partial transcripts as they come: docs/voice.md.",
        ),
        (
            not semantic,
            "note",
            "Search is by words and sounds, not by meaning",
            "Install `echoic[local]`, or set `--embedder`.",
        ),
    ]
    return [AlarmView(severity=how, what=what, do=do) for holds, how, what, do in wrong if holds]


# -- speculative recall over HTTP

MOST_FOLLOWED_PER_USER: Final = 8
MOST_FOLLOWED: Final = 1024
"""Conversations followed at once; one more ends the one that was silent for longest."""

_EarName = tuple[Scope, str, Level]
"""Whose memory, in which conversation, and what the caller may be told: what was found for one level is never
told to another."""


@dataclass(slots=True)
class _InterimListener:
    speculation: Speculation
    number: int = -1
    """The number of the newest transcript."""


class Speculations:
    """Follows the interim transcripts of every conversation of one service.

    Each conversation of a caller has a `Speculation`, as `UserMemory.listen` returns it. If one is lost, the
    final transcript is searched for from scratch.
    """

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._ears: OrderedDict[_EarName, _InterimListener] = OrderedDict()

    def open(self) -> None:
        """Subscribe to erasures."""
        self._memory.on_forgotten(self._forgotten)

    async def aclose(self) -> None:
        """End all listening. May be called twice."""
        self._memory.remove_hook(self._forgotten)
        while self._ears:
            await self._drop(next(iter(self._ears)))

    async def partial(
        self,
        memory: UserMemory,
        conversation: str,
        *,
        text: str,
        alternatives: Sequence[str] = (),
        number: int | None = None,
    ) -> bool:
        """Search for an interim transcript; returns False if a newer one arrived before, so that it is
        ignored.

        Raises:
            InvalidInput: `conversation` is not a valid name.
        """
        ear = await self._ear(memory, conversation)
        if not _is_newest(ear, number):
            return False
        ear.speculation.partial(text, alternatives)
        return True

    async def final(
        self,
        memory: UserMemory,
        conversation: str,
        *,
        text: str,
        alternatives: Sequence[str] = (),
        number: int | None = None,
        deadline_ms: float | None = None,
    ) -> Recall:
        """The results for the whole utterance; see `Speculation.final`."""
        ear = await self._ear(memory, conversation)
        _is_newest(ear, number)  # from now on, partials that were overtaken are ignored
        return await ear.speculation.final(text, alternatives=alternatives, deadline_ms=deadline_ms)

    async def end(self, memory: UserMemory, conversation: str) -> None:
        for name in [name for name in self._ears if name[:2] == (memory.scope, conversation)]:
            await self._drop(name)

    async def _ear(self, memory: UserMemory, conversation: str) -> _InterimListener:
        name = (memory.scope, conversation, memory.level)
        if name not in self._ears:
            speculation = memory.listen(limit=HITS, besides=conversation)
            own = [key for key in self._ears if key[0] == memory.scope]
            if len(own) >= MOST_FOLLOWED_PER_USER:
                await self._drop(own[0])
            elif len(self._ears) >= MOST_FOLLOWED:
                await self._drop(next(iter(self._ears)))
            self._ears.setdefault(name, _InterimListener(speculation))
        self._ears.move_to_end(name)
        return self._ears[name]

    async def _forgotten(self, event: Forgotten) -> None:
        """Drop results that were found before an erasure."""
        for name in [name for name in self._ears if name[0] == event.scope]:
            await self._drop(name)

    async def _drop(self, name: _EarName) -> None:
        ear = self._ears.pop(name, None)
        if ear is not None:
            await ear.speculation.aclose()


def _is_newest(ear: _InterimListener, number: int | None) -> bool:
    """Whether no higher number arrived before. Transcripts without a number count in order of arrival."""
    if number is None:
        return True
    if number <= ear.number:
        return False
    ear.number = number
    return True
