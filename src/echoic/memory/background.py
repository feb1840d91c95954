"""Background work after a write is answered: vectors for new records, and memories extracted from turns.

Durability and word search do not depend on it. All of it can stop at any instant and resumes from what the
store lists as pending.

`Distiller` decides when a conversation is read, and by which extractor. Rules read every turn at once; a
model, if there is one, reads later. Without a model, and with the local embedder, a trained clause reader
takes its place. Each proposes changes to what is known; none rewrites the list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from echoic.embedding.base import Embedder, embedded_documents
from echoic.errors import (
    EchoicError,
    EmbedderError,
    EmbedderMissing,
    QuotaExceeded,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
)
from echoic.memory.audit import working
from echoic.memory.concurrency import RunsPerUser, Wanted, stop_tasks
from echoic.memory.consent import from_what_is_kept, keeps_nothing
from echoic.memory.guarded_store import HomeLoop
from echoic.memory.hooks import Extraction, Failure, Hooks
from echoic.memory.records import CONVERSATION, MEMORY, TURN, cursor_of, index, memory_of, scan_all
from echoic.memory.telemetry import Telemetry
from echoic.stores.base import Attach, Record, Store, Waiting
from echoic.stores.bulk_copy import Progress as ReportProgress
from echoic.types import Memory, Scope

if TYPE_CHECKING:
    from echoic.memory.extraction.model_reader import ModelReader, Progress, Run
    from echoic.memory.extraction.reconciliation import Distilled, Extractor, ThirdParties
    from echoic.memory.extraction.rule_reader import RuleReader

EVERY = 5
"""User turns after which a model reads a conversation in progress."""
RULES = "rules"
"""The name of the rules where a reader is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A conversation a model failed on so often that it is not retried until an operator asks for it."""

    scope: Scope
    conversation: str
    attempts: int
    reason: str
    """The kind of the last failure, such as "TimeoutError"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Pending distillation, for operators. Holds no content."""

    waiting: int = 0
    """Conversations with unread turns, or completed and not yet marked as read."""
    failing: int = 0
    """Conversations a model failed on that will be retried."""
    parked: tuple[Parked, ...] = ()
    unreadable: int = 0
    """Users whose conversations cannot be read, as of a damaged record; they are in no other count. A damaged
    memory or turn is not looked for here: `echoic doctor` reads them."""


@dataclass(frozen=True, slots=True)
class Learning:
    extractor: Extractor | None
    """A model that reads in addition to the rules; None for rules alone."""
    _: KW_ONLY
    every: int = EVERY
    """User turns after which the model reads a conversation in progress."""
    sentences: bool = True
    """Whether, without a model, durable statements that no rule has a slot for are kept as sentences; needs
    the local embedder."""
    third_parties: ThirdParties = "keep"
    """What is stored about people other than the user."""


class Distiller:
    """Extracts memories from what users said in their conversations. Only the user's own words count."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        clock: Callable[[], datetime],
        telemetry: Telemetry,
        hooks: Hooks,
        *,
        learning: Learning,
    ) -> None:
        self._store, self._telemetry, self._hooks = store, telemetry, hooks
        self._damaged: set[Scope] = set()
        """Users of whom a damaged record was logged."""
        self._learning, self._extractor, self._embedder = learning, learning.extractor, embedder
        self._clock, self._worker = clock, uuid4().hex
        self._made: tuple[RuleReader, ModelReader | None] | None = None

    async def _readers(self) -> tuple[RuleReader, ModelReader | None]:
        """The extraction module, imported on first use: it loads most of this library."""
        if self._made is None:
            # in a thread: the import takes longer than a caller should wait
            made = await asyncio.to_thread(self._make)
            self._made = self._made or made
        return self._made

    def _make(self) -> tuple[RuleReader, ModelReader | None]:
        from echoic.memory.extraction.model_reader import ModelReader
        from echoic.memory.extraction.rule_reader import RuleReader
        from echoic.memory.extraction.sentence_extractor import SentenceExtractor

        extractor = self._extractor
        if extractor is None and self._learning.sentences:
            extractor = SentenceExtractor.fitting(self._embedder)
        rules = RuleReader(self._store, alone=extractor is None, third_parties=self._learning.third_parties)
        if extractor is None:
            return rules, None
        model = ModelReader(
            self._store,
            extractor,
            self._embedder,
            clock=self._clock,
            worker=self._worker,
            every=self._learning.every,
            third_parties=self._learning.third_parties,
        )
        return rules, model

    async def model(self) -> str | None:
        """The name of the reader that reads in addition to the rules; None without one."""
        _, model = await self._readers()
        return None if model is None else model.extractor.name

    async def open(self) -> None:
        """Prepare the model, if any; InvalidInput if it is not set up correctly."""
        if self._extractor is not None:
            await self._extractor.open()

    async def aclose(self) -> None:
        """Close the model. May be called twice."""
        if self._extractor is not None:
            await self._extractor.aclose()

    async def apply_rules(self, scope: Scope, conversation: str) -> Distilled:
        """Read the new turns of `conversation` by rules; cheap enough to run after every turn."""
        from echoic.memory.extraction.reconciliation import Distilled

        if await keeps_nothing(self._store, scope):
            return Distilled()
        started = time.perf_counter()
        with self._telemetry.operation("distil", scope) as doing:
            rules, _ = await self._readers()
            with from_what_is_kept():
                distilled = await rules.read(scope, conversation)
            doing.count = len(distilled.kept)
            doing.attributes = {"reader": RULES, "turns": distilled.turns}
        await self._tell(scope, conversation, RULES, distilled, started)
        return distilled

    async def ask(
        self, scope: Scope, conversation: str, *, now: bool = False, soon: bool = False, parked: bool = False
    ) -> tuple[Distilled, Run]:
        """Run the model, if it is due, until it has nothing more to read; returns what was learned and the
        last run.

        `soon` skips the wait for more turns, `now` the pause after a failure as well; `parked` also reads a
        parked conversation.
        """
        from echoic.memory.extraction.model_reader import Run

        total = await self.apply_rules(scope, conversation)
        _, model = await self._readers()
        run = Run()
        while model is not None and not await keeps_nothing(self._store, scope):
            run = await self._read(model, scope, conversation, now=now, soon=soon, parked=parked)
            if run.distilled is None:
                break
            total = _joined(total, run.distilled)
        return total, run

    async def _read(
        self, model: ModelReader, scope: Scope, conversation: str, *, now: bool, soon: bool, parked: bool
    ) -> Run:
        """One run of the model, with its telemetry."""
        from echoic.memory.extraction.reconciliation import Distilled

        started = time.perf_counter()
        reader = model.extractor.name
        with self._telemetry.operation("distil", scope) as doing:
            with from_what_is_kept():
                run = await model.read(scope, conversation, now=now, soon=soon, parked=parked)
            read = run.distilled or Distilled()
            doing.count, doing.attributes = len(read.kept), {"reader": reader, "turns": read.turns}
            if run.failed:
                doing.outcome, doing.error = "failed", run.failed
        if run.failed:
            trouble = Failure(
                what="distilling",
                reason=run.failed,
                scope=scope,
                conversation=conversation,
                again_s=run.again_s,
            )
            self._hooks.emit(trouble)
        await self._tell(scope, conversation, reader, read, started)
        return run

    async def _tell(
        self, scope: Scope, conversation: str, reader: str, learned: Distilled, started: float
    ) -> None:
        """Count what was learned, and notify the hooks."""
        if not (learned.kept or learned.confirmed or learned.retracted or learned.superseded):
            return
        duration_ms = (time.perf_counter() - started) * 1000
        self._telemetry.distilled(reader, learned)
        if not self._hooks.wants(Extraction):
            return
        event = Extraction(
            scope=scope,
            conversation=conversation,
            reader=reader,
            turns=learned.turns,
            added=learned.kept,
            superseded=await self._memories(scope, learned.superseded),
            confirmed=learned.confirmed,
            retracted=learned.retracted,
            duration_ms=duration_ms,
        )
        self._hooks.emit(event)

    async def _memories(self, scope: Scope, names: Sequence[str]) -> tuple[Memory, ...]:
        """Those memories of `names` that can be read; what was learned is durable even if none can."""
        try:
            records = await self._store.read(scope, MEMORY, list(names)) if names else []
        except StoreError:
            return ()
        return tuple(memory_of(record) for record in records)

    async def distil(self, scope: Scope, conversation: str, *, parked: bool = True) -> Distilled:
        """Learn now from every unread turn of `conversation`.

        If another worker is reading it, this waits for that worker to finish or for its lease to expire. If
        the model fails, nothing changes and it is asked again later.
        """
        while True:
            distilled, run = await self.ask(scope, conversation, now=True, parked=parked)
            if run.again_s is None or run.failed:
                return distilled
            await asyncio.sleep(min(run.again_s, 0.2))

    async def distil_all(self, deployment: str | None, *, parked: bool = False) -> Distilled:
        """Learn from every conversation of a deployment (None: of all), parked ones only if asked."""

        async def every(scope: Scope) -> list[str]:
            return [record.id for record in await scan_all(self._store, scope, CONVERSATION)]

        return await self._each(deployment, every, partial(self.distil, parked=parked))

    async def distil_due(self, deployment: str | None = None) -> Distilled:
        """Learn from every conversation that is due; one that another worker is reading is skipped."""

        async def read(scope: Scope, conversation: str) -> Distilled:
            return (await self.ask(scope, conversation))[0]

        return await self._each(deployment, self.unfinished, read)

    async def _each(
        self,
        deployment: str | None,
        conversations: Callable[[Scope], Awaitable[Sequence[str]]],
        read: Callable[[Scope, str], Awaitable[Distilled]],
    ) -> Distilled:
        """What `read` learns from the `conversations` of every user. One that fails keeps no other back.

        The first error is raised at the end, except QuotaExceeded: its user has to make room.
        """
        from echoic.memory.extraction.reconciliation import Distilled

        total, failed = Distilled(), None
        for scope in await self._store.scopes(deployment):
            try:
                for conversation in await conversations(scope):
                    try:
                        total += await read(scope, conversation)
                    except StoreUnavailable:  # nor could another of this user be read
                        raise
                    except QuotaExceeded:
                        log.warning("QuotaExceeded: nothing more is learned from a conversation")
                    except Exception as error:  # noqa: BLE001 - whatever a damaged record raises
                        failed = failed or self._told(scope, error)
            except StoreUnavailable as error:
                failed = failed or error
                await self._store.scopes(deployment)  # raises if it is the store that is away
            except Exception as error:  # noqa: BLE001 - whatever a damaged record raises
                failed = failed or self._told(scope, error)
        if failed is not None:
            raise failed
        return total

    async def unfinished(self, scope: Scope) -> list[str]:
        """The conversations of a user that are due, including those of processes that died."""
        if scope.user is None or await keeps_nothing(self._store, scope):
            return []
        due: list[str] = []
        for record in await scan_all(self._store, scope, CONVERSATION):
            try:
                last = await self._last(scope, record)
                if await self._unread(record, last) or await self._is_due(scope, record, last):
                    due.append(record.id)
            except StoreUnavailable:  # nor could another of this user be read
                raise
            except Exception:  # noqa: BLE001 - it keeps no other back: whoever tries to read it reports why not
                due.append(record.id)
        return due

    async def jobs(self, deployment: str | None = None) -> Jobs:
        """The pending, failing and parked conversations. Reads every conversation."""
        jobs, unreadable = list[Jobs](), 0
        for scope in await self._store.scopes(deployment):
            try:
                jobs.append(await self.jobs_of(scope))
            except StoreUnavailable:
                unreadable += 1
                await self._store.scopes(deployment)  # raises if it is the store that is away
            except Exception as error:  # noqa: BLE001 - whatever a damaged record raises
                unreadable += 1
                self._told(scope, error)
        return Jobs(
            waiting=sum(of.waiting for of in jobs),
            failing=sum(of.failing for of in jobs),
            parked=tuple(parked for of in jobs for parked in of.parked),
            unreadable=unreadable,
        )

    async def jobs_of(self, scope: Scope) -> Jobs:
        """What is pending, failing or parked for one user."""
        from echoic.memory.extraction.model_reader import PROGRESS

        records = await scan_all(self._store, scope, CONVERSATION)
        failed = [kept for kept in await scan_all(self._store, scope, PROGRESS) if kept.data.get("attempts")]
        failures = [
            progress for kept in failed for record in records if (progress := _failure(kept, record.id))
        ]
        parked = [
            Parked(scope=scope, conversation=one.conversation, attempts=one.attempts, reason=one.reason)
            for one in failures
            if one.parked
        ]
        waiting = sum([await self._waits(scope, record) for record in records])
        return Jobs(waiting=waiting, failing=len(failures) - len(parked), parked=tuple(parked))

    async def _waits(self, scope: Scope, record: Record) -> bool:
        from echoic.memory.extraction.turns import is_unmarked

        return is_unmarked(record) or await self._unread(record, await self._last(scope, record))

    async def _last(self, scope: Scope, record: Record) -> int:
        """The `seq` of the last turn of a conversation; -1 if it has none."""
        last = await self._store.scan(scope, TURN, key=record.id, limit=1, newest_first=True)
        return last[0].seq if last else -1

    async def _unread(self, record: Record, last: int) -> bool:
        """Whether the rules have turns to read or, if they work alone, a conversation to mark as read."""
        from echoic.memory.extraction.turns import is_unmarked

        if last > cursor_of(record):
            return True
        return is_unmarked(record) and await self.model() is None

    def _told(self, scope: Scope, error: Exception) -> EchoicError:
        """`error` as callers know it, without what a record says: another kind comes of a damaged record."""
        kind = type(error).__name__
        if isinstance(error, EchoicError) and not isinstance(error, StoreCorrupt):
            return error
        if scope not in self._damaged:  # once: the health page asks all the time
            self._damaged.add(scope)
            log.warning("%s: what is kept of a user cannot be read; run `echoic doctor`", kind)
        if isinstance(error, StoreCorrupt):
            return error
        return StoreCorrupt(
            f"what is kept of a user cannot be read ({kind}); run `echoic doctor`: it says whose"
        )

    async def _is_due(self, scope: Scope, record: Record, last: int) -> bool:
        _, model = await self._readers()
        return model is not None and await model.due(scope, record, last)


def _failure(kept: Record, conversation: str) -> Progress | None:
    """The failure in `kept`, if it is about `conversation`; otherwise None."""
    from echoic.memory.extraction.model_reader import progress_id, progress_in

    reader = kept.key or ""
    about = kept.id == progress_id(reader, conversation)
    return progress_in(kept, reader, conversation) if about else None


def _joined(total: Distilled, more: Distilled) -> Distilled:
    """The sum of two runs over the same turns."""
    return replace(total + more, turns=max(total.turns, more.turns))


log = logging.getLogger(__name__)

BATCH = 32
"""Texts embedded at once: one segment of a scope, and short enough that a query does not wait long."""
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
_REPORT_S = 0.1
"""Seconds between two progress reports."""
QUIET_S = 0.02
"""How long nothing must have been written before texts are embedded, so that bursts share their runs."""
BUSY_S = 0.25
"""How long embedding waits for such a pause; where there is none, `BATCH` texts are embedded each time."""
_AHEAD = 16 * BATCH
"""Texts embedded before what waits is read again."""
_MOST_ASIDE = 64 * BATCH
"""Records of scopes set aside that a write reads past; what has waited less long waits for the next retry."""
_VAIN = 8
"""Batches in a row of which nothing could be written before the rest waits for the next retry: then it is the
store that fails, and not a scope."""
SWEEP_AFTER_S = 2.0
"""Seconds before the first sweep for conversations that nobody distilled; a short-lived command does none."""


class Background:
    """Embeds pending records and runs the rules over conversations with new turns, in one task.

    A model runs in a task of its own for each user, so that it delays neither.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        distiller: Distiller,
        home: HomeLoop | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._distiller = distiller
        self._home = home or HomeLoop()
        self._hooks = hooks or Hooks()
        self._poked: dict[tuple[Scope, str], bool] = {}
        self._task: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._embedded = 0
        """Texts embedded since this object was made."""
        self.failure: str | None = None
        """Why learning or embedding fails, such as "StoreUnavailable"; None while both work."""
        self.embedding_failure: str | None = None
        """Why embedding fails, such as "EmbedderUnavailable"; None while it works."""
        self._begin()

    def _begin(self) -> None:
        """Begin with nothing: what a run had may belong to a loop that has ended."""
        self._wake, self._idle, self._hurry = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._runs = RunsPerUser(self._ask)
        self._closed = asyncio.Event()
        """Set when this run is stopped."""
        self._settling: set[object] = set()
        """Those who wait until nothing waits: for them nothing is put off."""
        self._aside: dict[Scope, Exception] = {}
        """Scopes to which no vector could be written, and why: left out until the next retry."""
        self._retry: asyncio.TimerHandle | None = None
        self.unread: dict[tuple[Scope, str | None], str] = {}
        """Conversations that could not be read, and why, until they are; None stands for all of a user who
        could not be read. What a model fails on is in the store."""

    def start(self) -> None:
        """Start, and resume what an earlier process left pending."""
        if self._task is None:
            self._begin()
            self._wake.set()
            self._task = asyncio.create_task(self._run(), name="echoic-background")
            self._sweeper = asyncio.create_task(self._sweep(), name="echoic-sweep")

    def poke(self, conversation: tuple[Scope, str] | None = None, *, urgent: bool = False) -> None:
        """Announce a write; several pokes for a conversation during a run cause one more run.

        `urgent` has a model read `conversation` now, however little is new, unless it failed a moment ago.
        Raises NotOpen in another event loop.
        """
        self._home.check()
        if conversation is not None:
            self._poked[conversation] = self._poked.get(conversation, False) or urgent
        self._idle.clear()
        self._wake.set()

    async def settle(self, timeout_s: float, progress: ReportProgress | None = None) -> bool:
        """Wait until nothing is pending and no model runs; returns whether that was in time.

        If the service is closed meanwhile, it returns False at once.
        """
        self._home.check()
        if self._task is None or self._task.done():
            return False
        # it may be stopped and started again meanwhile, with new ones
        settling, hurry, closed = self._settling, self._hurry, self._closed
        settling.add(me := object())
        hurry.set()
        self._aside.clear()
        self.poke()
        settled = asyncio.ensure_future(self._settled() if progress is None else self._reported(progress))
        stopped = asyncio.ensure_future(closed.wait())
        try:
            await asyncio.wait((settled, stopped), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if reached := settled.done():
                settled.result()
        finally:
            settling.discard(me)
            if not settling:
                hurry.clear()
            settled.cancel()
            stopped.cancel()
            await asyncio.wait((settled, stopped))
        return reached and not closed.is_set() and self.failure is None

    async def _settled(self) -> None:
        await self._idle.wait()
        # a model's run that ended just now left memories that need vectors, and is idle already
        while not (self._runs.idle and self._idle.is_set()):
            await self._runs.settle()
            self.poke()  # memories that a model added need vectors
            await self._idle.wait()

    async def _reported(self, progress: ReportProgress) -> None:
        """`_settled`, reporting to `progress` how many of the pending texts have a vector."""
        before, waiting = self._embedded, int((await self._store.check())["waiting"])
        settled = asyncio.ensure_future(self._settled())
        try:
            while not settled.done():
                progress(done := self._embedded - before, max(done, waiting))
                await asyncio.wait([settled], timeout=_REPORT_S)
            progress(done := self._embedded - before, max(done, waiting))
        finally:
            settled.cancel()
        settled.result()

    async def stop(self) -> None:
        """Stop at once; unfinished work stays pending in the store."""
        self._closed.set()
        tasks = [self._sweeper, self._task]
        self._sweeper = self._task = None
        await stop_tasks([task for task in tasks if task is not None])
        await self._runs.stop()

    def abandon(self) -> None:
        """Drop the tasks of an event loop that has ended: they can no longer be cancelled."""
        self._sweeper = self._task = None

    async def _run(self) -> None:
        working("learning and embedding")
        retry_s = FIRST_RETRY_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                failed = await self._hear_poked()
                failed = await self._until_quiet() or failed
            except Exception as error:  # noqa: BLE001 - the outermost frame: nothing ends this task unseen
                failed = error
            try:
                await self.embed_waiting()  # a failing conversation must not delay vectors
            except Exception as error:  # noqa: BLE001 - as above
                failed, self.embedding_failure = error, type(error).__name__
            else:
                self.embedding_failure = None
            if failed is None:
                self.failure, retry_s = None, FIRST_RETRY_S
            else:
                self.failure = type(failed).__name__
                if self._retry is None:  # one at a time: writes go on meanwhile, each with a round that fails
                    level = logging.DEBUG if isinstance(failed, EmbedderMissing) else logging.WARNING
                    log.log(level, "%s: what waits is tried again in %.0f s", self.failure, retry_s)
                    self._retry = asyncio.get_running_loop().call_later(retry_s, self._try_again)
                    retry_s = min(2 * retry_s, LAST_RETRY_S)
            if not self._wake.is_set():
                self._idle.set()

    def _try_again(self) -> None:
        self._retry = None
        self._aside.clear()
        self._wake.set()

    async def _until_quiet(self) -> Exception | None:
        """Wait for a pause between writes, running the rules meanwhile; returns as `_hear_poked`.

        Embedding takes as much processor time as the rest of a write, and is not urgent: words and sounds
        are searched at once.
        """
        loop, failed = asyncio.get_running_loop(), None
        until = loop.time() + BUSY_S
        while not self._hurry.is_set() and loop.time() < until:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIET_S):
                    await self._hurry.wait()
            if not self._wake.is_set():
                break
            self._wake.clear()
            failed = await self._hear_poked() or failed
        return failed

    async def _hear_poked(self) -> Exception | None:
        """Run the rules over new turns; returns an error to retry after a pause, or None."""
        failed: Exception | None = None
        again: dict[tuple[Scope, str], bool] = {}
        while self._poked:
            (scope, conversation), urgent = next(iter(self._poked.items()))
            del self._poked[scope, conversation]
            try:
                await self._distiller.apply_rules(scope, conversation)
            except QuotaExceeded as error:  # until there is room, only its next turn has it read again
                log.warning("%s: nothing more is learned from a conversation", type(error).__name__)
                self.unread.pop((scope, conversation), None)
                continue
            except Exception as error:  # noqa: BLE001 - one conversation keeps no other back
                failed, again[scope, conversation] = error, urgent
                self.unread[scope, conversation] = type(error).__name__
                continue
            self.unread.pop((scope, conversation), None)
            if await self._distiller.model() is not None:
                self._runs.want(scope, conversation, urgent=urgent)
        for name, urgent in again.items():  # without waking the task: it is retried after the pause
            self._poked[name] = self._poked.get(name, False) or urgent
        return failed

    async def _ask(self, scope: Scope, wanted: Wanted) -> Mapping[str, float]:
        """Run the model for one user; returns the seconds after which to retry, by conversation."""
        working("learning")
        later: dict[str, float] = {}
        for conversation, urgent in wanted.items():
            try:
                _, run = await self._distiller.ask(scope, conversation, soon=urgent)
            except QuotaExceeded as error:  # as in `_hear_poked`
                log.warning("%s: nothing more is learned from a conversation", type(error).__name__)
            except Exception as error:  # noqa: BLE001 - the outermost frame: one conversation ends no other's run
                log.warning("%s: distilling is tried again later", type(error).__name__)
                later[conversation] = LAST_RETRY_S
                self.unread[scope, conversation] = type(error).__name__
                continue
            else:
                later |= {} if run.again_s is None else {conversation: run.again_s}
            self.unread.pop((scope, conversation), None)
        self.poke()  # vectors for the new memories
        return later

    async def _sweep(self) -> None:
        """Pick up conversations that nobody distilled, as after a process died."""
        working("learning")
        await asyncio.sleep(SWEEP_AFTER_S)
        left = await self._swept(None)
        while left is None or left:
            await asyncio.sleep(LAST_RETRY_S)
            left = await self._swept(left)

    async def _swept(self, scopes: Sequence[Scope] | None) -> Sequence[Scope] | None:
        """Have what is unfinished in `scopes` read (None: in all); returns those to look at again."""
        left: list[Scope] = []
        failed: Exception | None = None
        listed = True
        try:
            for scope in await self._store.scopes() if scopes is None else scopes:
                try:
                    for conversation in await self._distiller.unfinished(scope):
                        self.poke((scope, conversation))
                    self.unread.pop((scope, None), None)
                except Exception as error:  # noqa: BLE001 - a user who cannot be read keeps no other back
                    failed = error
                    self.unread[scope, None] = type(error).__name__
                    left.append(scope)
        except EchoicError as error:
            failed, listed = error, False
        if failed is not None:
            log.warning(
                "%s: what was left undistilled is looked for in %.0f s", type(failed).__name__, LAST_RETRY_S
            )
        return left if listed else None

    async def embed_waiting(self) -> int:
        """Embed everything pending; returns how many. After EmbedderUnavailable they stay pending.

        A scope that takes no vectors, as while another process indexes it again, keeps no other waiting: its
        error is raised once all others are embedded.
        """
        done = vain = 0
        async with contextlib.aclosing(self._batches()) as batches:
            async for batch in batches:
                written = await self._embed(batch)
                done, vain = done + written, 0 if written else vain + 1
                if vain >= _VAIN:
                    break
                if written and self._wake.is_set() and not self._hurry.is_set():
                    break  # more is being written: what is left waits for the next pause
        for failed in self._aside.values():
            raise failed
        return done

    async def _batches(self) -> AsyncGenerator[list[Waiting], None]:
        """What waits, except in scopes set aside, the longest-waiting first."""
        limit = BATCH
        # after a retry nothing is aside, and all is read; each write would otherwise read all that is aside
        most = _MOST_ASIDE if self._aside else math.inf
        while waiting := await self._store.waiting(limit):
            ready = [one for one in waiting if one.scope not in self._aside][:_AHEAD]
            for at in range(0, len(ready), BATCH):
                if batch := [one for one in ready[at : at + BATCH] if one.scope not in self._aside]:
                    yield batch
            if not ready:  # only those set aside have waited as long
                if len(waiting) < limit or limit >= most:
                    break
                limit *= 8

    async def _embed(self, batch: Sequence[Waiting]) -> int:
        """Embed `batch`; returns how many were written. Sets scopes aside whose write fails, or of which a
        record is damaged.
        """
        texts, readable = list[str](), list[Waiting]()
        for waiting in batch:
            try:
                entry = index(waiting.record)
            except StoreCorrupt as error:
                self._aside[waiting.scope] = error
                continue
            texts.append(entry.text if entry else "")
            readable.append(waiting)
        if not readable:
            return 0
        try:
            made = await embedded_documents(self._embedder, texts)
        except EmbedderError as error:
            self._hooks.emit(Failure(what="embedding", reason=type(error).__name__))
            raise
        tokens = [one.packed() for one in made.pieces] if made.pieces else [None] * len(readable)
        by_scope: dict[Scope, list[Attach]] = {}
        for waiting, vector, pieces in zip(readable, made.vectors, tokens, strict=True):
            record = waiting.record
            attach = Attach(
                kind=record.kind,
                id=record.id,
                version=record.version,
                vector=vector,
                tokens=pieces,
                was=record.data,
            )
            by_scope.setdefault(waiting.scope, []).append(attach)
        # concurrently, so that the commits share a disk sync
        writing = [self._store.write(scope, attaches) for scope, attaches in by_scope.items()]
        done, ends = 0, await asyncio.gather(*writing, return_exceptions=True)
        for (scope, attaches), ended in zip(by_scope.items(), ends, strict=True):
            if ended is None:
                done += len(attaches)
            elif isinstance(ended, Exception):
                self._aside[scope] = ended
            else:
                raise ended
        self._embedded += done
        return done
