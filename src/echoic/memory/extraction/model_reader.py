"""Runs a slow or fallible extractor, such as a model, behind the rules, with a cursor of its own.

A run reads, asks the extractor, and writes. While it waits it holds only a lease. Its result takes effect
only if the conversation still exists, no other worker read the same turns, and not too many memories would
end. Cursor, lease and failures are one record, written with optimistic concurrency. The cursor makes each
turn count once; the lease only avoids duplicate work, so a wrong clock costs time, never a memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from echoic.embedding.base import Embedder
from echoic.errors import QuotaExceeded, StoreError, WriteConflict
from echoic.memory.concurrency import until_written
from echoic.memory.extraction.grounding import MOST_CHANGES, consistent, ended_by, grounded
from echoic.memory.extraction.known_facts import KnownMemories, compared, known_of
from echoic.memory.extraction.reconciliation import (
    Add,
    Change,
    Distilled,
    Extractor,
    Reading,
    Reconciler,
    Supersede,
    ThirdParties,
    Unusable,
)
from echoic.memory.extraction.turns import (
    Stretch,
    conversation_record,
    is_unmarked,
    marked,
    of_user,
    standing,
    stretch_of,
    withheld,
)
from echoic.memory.records import (
    TURN,
    Ledger,
    conversation_of,
    hidden_in,
    is_unlearned,
    memory_id,
    recalled_turn,
    turn_of,
)
from echoic.memory.retraction import hide_taken_back, withdraw
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope

PROGRESS = "progress"
LEASE = "lease"

ATTEMPTS = 5
"""Consecutive failures after which a conversation is parked."""
FIRST_RETRY_S = 30.0
"""Seconds after the first failure; doubled after each further one: 30 s, 1 min, 2 min, 4 min."""
_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one reader has read in one conversation."""

    reader: str
    conversation: str
    cursor: int = -1
    """The `seq` of the last turn that was read; -1 before the first."""
    attempts: int = 0
    """Failures since the cursor last moved."""
    retry_at: datetime | None = None
    """When it may be retried; None: now."""
    reason: str = ""
    """The kind of the last failure, such as "TimeoutError". No contents."""
    version: int = 0
    """The version of its record; 0 if there is none yet."""

    @property
    def parked(self) -> bool:
        """Whether it failed so often that only an operator can have it retried."""
        return self.attempts >= ATTEMPTS

    def moved(self, cursor: int) -> Progress:
        """The progress after everything up to `cursor` was read."""
        return replace(self, cursor=cursor, attempts=0, retry_at=None, reason="")

    def failed(self, reason: str, now: datetime) -> Progress:
        """The progress after another failure."""
        wait = timedelta(seconds=FIRST_RETRY_S * 2**self.attempts)
        return replace(self, attempts=self.attempts + 1, retry_at=now + wait, reason=reason)

    def put(self) -> Put:
        """The change that stores this, if its record is unchanged since it was read."""
        data = {
            "cursor": self.cursor,
            "attempts": self.attempts or None,
            "retry_at": self.retry_at.isoformat() if self.retry_at else None,
            "reason": self.reason or None,
        }
        kept = {name: value for name, value in data.items() if value is not None}
        # its id is a hash and its key the reader's name: when a conversation is forgotten, no trace of its id
        # is left here
        record = Record(
            kind=PROGRESS, id=progress_id(self.reader, self.conversation), key=self.reader, data=kept
        )
        return Put(record=record, expect=self.version)


def progress_id(reader: str, conversation: str) -> str:
    """The id of the record that holds the progress of `reader`."""
    return memory_id(PROGRESS, reader, conversation)


async def progress_of(store: Store, scope: Scope, reader: str, conversation: str) -> Progress:
    """The stored progress of `reader`, or the initial one."""
    records = await store.read(scope, PROGRESS, [progress_id(reader, conversation)])
    return (
        progress_in(records[0], reader, conversation)
        if records
        else Progress(reader=reader, conversation=conversation)
    )


def progress_in(record: Record, reader: str, conversation: str) -> Progress:
    """The progress stored in `record`."""
    retry_at = record.data.get("retry_at")
    return Progress(
        reader=reader,
        conversation=conversation,
        cursor=record.data["cursor"],
        attempts=record.data.get("attempts", 0),
        retry_at=datetime.fromisoformat(retry_at) if retry_at else None,
        reason=record.data.get("reason", ""),
        version=record.version,
    )


class Leases:
    """Leases on users' conversations: one worker reads a user's conversations until it finishes or dies."""

    def __init__(self, store: Store, worker: str, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock

    async def take(self, scope: Scope, reader: str, seconds: float, *, standing: Put) -> float:
        """Take or extend the lease for `seconds`, more than one run can take.

        `standing` must still hold in the store, so that no lease outlives an erasure. Returns 0.0 if the
        lease is ours, else the seconds for which another worker may hold it.
        """
        records = await self._store.read(scope, LEASE, [reader])
        now = self._clock()
        left = _left(records[0], now) if records else 0.0
        # a lease longer than any run comes from a wrong clock
        if 0 < left <= seconds and records[0].data["holder"] not in {"", self._worker}:
            return left
        until = (now + timedelta(seconds=seconds)).isoformat()
        lease = Record(kind=LEASE, id=reader, data={"holder": self._worker, "until": until})
        held = records[0] if records else None
        try:
            await self._store.write(scope, [standing, Put.over(held, lease)])
        except WriteConflict:  # another worker took it, or the conversation was written to
            return _AGAIN_S
        return 0.0

    async def give_back(self, scope: Scope, reader: str) -> None:
        """Release the lease, if this process still holds it."""
        records = await self._store.read(scope, LEASE, [reader])
        if records and records[0].data["holder"] == self._worker:
            free = replace(records[0], data={"holder": "", "until": self._clock().isoformat()})
            with contextlib.suppress(WriteConflict):
                await self._store.write(scope, [Put.over(records[0], free)])


def _left(record: Record, now: datetime) -> float:
    return (datetime.fromisoformat(record.data["until"]) - now).total_seconds()


log = logging.getLogger(__name__)

TURNS = 60
"""Turns read in one run; a longer conversation takes several runs."""
CHARACTERS = 24_000
"""Characters of the turns of a run, about 6,000 tokens. At least one turn is read, however long."""
ABANDONED_S = 1800.0
"""Seconds without a turn after which an uncompleted call counts as over: its process has died."""
MOST_ENDED = 0.25
"""The share of known memories that one run may end. Callers correct a few things in a call; a run that would
end more has misread, or was manipulated."""
ALWAYS_ENDED = 3
"""Memories a run may end however few are known."""
BUSY_S = 1.0
"""Seconds after which to look again while another worker is reading."""
_LATER = 50
"""Turns after those read that are checked for "forget that" before writing."""
_LEASE_MARGIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcome of one look at a conversation."""

    distilled: Distilled | None = None
    """None: nothing was read."""
    again_s: float | None = None
    """Seconds after which to look again: another worker is reading, or the run failed. None: not needed."""
    failed: str = ""
    """The kind of failure, such as "TimeoutError"; empty without one."""


class ModelReader:
    """Reads a user's conversations with a model, one at a time.

    `worker` is a unique name of this process. A conversation in progress is read after `every` user turns.
    Without an `embedder`, paraphrases are recognised by words only.
    """

    def __init__(
        self,
        store: Store,
        extractor: Extractor,
        embedder: Embedder | None,
        *,
        clock: Callable[[], datetime],
        worker: str,
        every: int,
        third_parties: ThirdParties = "keep",
    ) -> None:
        self.extractor, self._third_parties = extractor, third_parties
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._leases = Leases(store, worker, clock)
        self._every = every
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self, scope: Scope, conversation: str, *, now: bool = False, soon: bool = False, parked: bool = False
    ) -> Run:
        """Learn from the next unread turns of `conversation`, if it is due.

        `soon` skips the wait for more turns, `now` the pause after a failure as well; `parked` also reads a
        parked conversation.
        """
        async with self._locks.setdefault(scope, asyncio.Lock()):
            record = await conversation_record(self._store, scope, conversation)
            if record is None:
                return Run()
            progress = await self._progress(scope, conversation)
            wait_s = None if parked or (now and not progress.parked) else self._wait_s(progress)
            if wait_s is not None or (progress.parked and not parked):
                return Run(again_s=wait_s)
            stretch = await stretch_of(self._store, scope, conversation, progress.cursor, TURNS)
            if not stretch.turns:
                await self._mark(scope, conversation)
                return Run()
            if not (now or soon) and not self._is_time(record, stretch):
                return Run()
            return await self._leased(scope, record, progress, stretch.within(CHARACTERS))

    async def due(self, scope: Scope, record: Record, last: int) -> bool:
        """Whether a conversation whose last turn is `last` is due to be read or marked."""
        progress = await self._progress(scope, record.id)
        if progress.parked or self._wait_s(progress) is not None:
            return False
        if last <= progress.cursor:
            return is_unmarked(record)
        stretch = await stretch_of(self._store, scope, record.id, progress.cursor, TURNS)
        return self._is_time(record, stretch)

    async def _progress(self, scope: Scope, conversation: str) -> Progress:
        return await progress_of(self._store, scope, self.extractor.name, conversation)

    def _wait_s(self, progress: Progress) -> float | None:
        """Seconds to wait after a failure; None without a retry."""
        if progress.retry_at is None or progress.parked:
            return None
        left = (progress.retry_at - self._clock()).total_seconds()
        return left if left > 0 else None

    def _is_time(self, record: Record, stretch: Stretch) -> bool:
        status = conversation_of(record).status
        if not stretch.turns:
            return is_unmarked(record)
        if status in {"completed", "failed"} or sum(map(of_user, stretch.turns)) >= self._every:
            return True
        silent_s = (self._clock() - stretch.turns[-1].said_at).total_seconds()
        return silent_s > ABANDONED_S

    async def _mark(self, scope: Scope, conversation: str) -> None:
        """Mark a completed conversation as distilled once its last turn was read."""
        record = await conversation_record(self._store, scope, conversation)
        mark = marked(record) if record else None
        if mark:
            with contextlib.suppress(WriteConflict):  # it was written to: the worker that reads that marks it
                await self._store.write(scope, [mark])

    async def _leased(self, scope: Scope, record: Record, progress: Progress, stretch: Stretch) -> Run:
        seconds = self.extractor.timeout_s + _LEASE_MARGIN_S
        name = self.extractor.name
        busy_s = await self._leases.take(scope, name, seconds, standing=standing(record))
        if busy_s:
            return Run(again_s=min(busy_s, BUSY_S))
        try:
            return await self._learn(scope, progress, stretch)
        finally:
            await self._leases.give_back(scope, name)

    async def _learn(self, scope: Scope, progress: Progress, stretch: Stretch) -> Run:
        try:
            known, changes = await self._ask(scope, stretch)
            distilled = await until_written(
                lambda: self._commit(scope, progress, stretch, known, changes), "the conversation"
            )
        except StoreError as error:
            if not isinstance(error, QuotaExceeded):  # the store failed, not the model
                raise
            return await self._fail(scope, progress, error)  # this user is full, and may be for long
        except Exception as error:  # noqa: BLE001 - whatever a model, its driver or its answer brings about
            return await self._fail(scope, progress, error)
        # another worker read these turns: there may be more
        return Run(distilled=distilled, again_s=None if distilled else 0.0)

    async def _ask(self, scope: Scope, stretch: Stretch) -> tuple[KnownMemories, list[Change]]:
        known = await known_of(self._store, scope)
        hushed = withheld([*stretch.context, *stretch.turns]) | stretch.unlearned
        turns = stretch.shown(stretch.turns, hushed)
        if not any(map(of_user, turns)):
            return known, []
        reading = Reading(
            turns=turns,
            context=stretch.shown(stretch.context, hushed),
            known=known.nearest(turns),
            withheld=hushed,
            of_another=stretch.of_another,
        )
        async with asyncio.timeout(self.extractor.timeout_s):
            proposed = await self.extractor.extract(reading)
        if len(proposed) > MOST_CHANGES:
            raise Unusable(f"{len(proposed)} changes for {len(turns)} turns; {MOST_CHANGES} at most")
        # before filtering: a model that would end so much has misread the rest as well
        _guard(ended_by(proposed), stretch, known)
        changes = grounded(consistent(proposed, turns), turns, known.memories)
        statements = [_statement(c) for c in changes if isinstance(c, (Add, Supersede))]
        return await compared(known, self._store, scope, self._embedder, statements), changes

    async def _commit(
        self,
        scope: Scope,
        progress: Progress,
        stretch: Stretch,
        known: KnownMemories,
        changes: Sequence[Change],
    ) -> Distilled | None:
        """Write memories and cursor together; None if another worker read these turns, or they are gone."""
        record = await conversation_record(self._store, scope, progress.conversation)
        fresh = await self._progress(scope, progress.conversation)
        if record is None or fresh.version != progress.version:
            return None
        there = await self._store.read(scope, TURN, [turn.id for turn in stretch.turns])
        turns = [turn_of(one) for one in there]
        later = await self._store.scan(
            scope, TURN, key=progress.conversation, after=stretch.end, limit=_LATER
        )
        # also skip what the user asked to forget while the model was running
        hushed = withheld([*stretch.context, *turns, *map(turn_of, later)])
        hushed |= {one.id for one in there if is_unlearned(one)}
        if any(map(hidden_in, there)):  # or take back
            changes = grounded(changes, list(map(recalled_turn, there)), known.memories)
        ledger = Ledger(self._store, scope)
        reconciler = Reconciler(
            ledger,
            turns,
            hushed,
            past=known.past,
            duplicates=known.duplicate,
            undone=known.undone,
            third_parties=self._third_parties,
        )
        distilled = await reconciler.take(changes)
        _guard(ledger.ended, stretch, known)
        if distilled.retracted:
            await hide_taken_back(
                self._store, scope, stretch, changes, distilled.retracted, kept=distilled.kept
            )
            await withdraw(self._store, scope, distilled.retracted)
        moved = progress.moved(stretch.end).put()
        await self._store.write(scope, [*ledger.changes, moved, standing(record)])
        return distilled

    async def _fail(self, scope: Scope, progress: Progress, error: Exception) -> Run:
        """Record the failure, so that any process can retry later."""
        kind = type(error).__name__
        failed = progress.failed(kind, self._clock())

        async def attempt() -> None:
            record = await conversation_record(self._store, scope, progress.conversation)
            fresh = await self._progress(scope, progress.conversation)
            if record is not None and fresh.version == progress.version:
                await self._store.write(scope, [failed.put(), standing(record)])

        await until_written(attempt, "the conversation")
        if failed.parked:
            log.warning("a conversation is parked: %s, %d times in a row", kind, failed.attempts)
        else:
            log.warning("a model could not distil: %s; it is asked again later", kind)
        return Run(again_s=self._wait_s(failed), failed=kind)


def _guard(ends: frozenset[str], stretch: Stretch, known: KnownMemories) -> None:
    """Raise Unusable if a run would end more memories than it may, apart from those learned from the turns it
    reads: what rules learn from words that were not meant, it may end.
    """
    turns = {turn.id for turn in stretch.turns}
    fresh = {one.id for one in known.memories if one.source and turns.issuperset(one.source)}
    ended = len(ends - fresh)
    most = max(ALWAYS_ENDED, int(MOST_ENDED * len(known.memories)))
    if ended > most:
        raise Unusable(f"it would end {ended} of {len(known.memories)} memories, {most} at most")


def _statement(change: Add | Supersede) -> str:
    return change.fact.statement or change.fact.text
