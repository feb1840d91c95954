"""How far a reader has got with a conversation, what went wrong, and who is reading: records of the store.

All are written expecting what was read. The cursor makes a turn count once; the lease only spares two workers
the same work, so a clock that is wrong costs time, never a memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from echoic.errors import WriteConflict
from echoic.memory.records import memory_id
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope

PROGRESS = "progress"
LEASE = "lease"

ATTEMPTS = 5
"""Failures of one conversation in a row after which it is parked."""
FIRST_RETRY_S = 30.0
"""After the first failure; twice as long after each further one: 30 s, 1 min, 2 min, 4 min."""
_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of one reader in one conversation."""

    reader: str
    conversation: str
    cursor: int = -1
    """The `seq` of the last turn that was read; -1 before the first."""
    attempts: int = 0
    """Failures since the cursor moved last."""
    retry_at: datetime | None = None
    """When it may be tried again; None: now."""
    reason: str = ""
    """The kind of the last failure, such as "TimeoutError". No contents."""
    version: int = 0
    """The version of its record; 0: there is none yet."""

    @property
    def parked(self) -> bool:
        """Whether it failed so often that only an operator has it tried again."""
        return self.attempts >= ATTEMPTS

    def moved(self, cursor: int) -> Progress:
        """After everything up to `cursor` was read."""
        return replace(self, cursor=cursor, attempts=0, retry_at=None, reason="")

    def failed(self, reason: str, now: datetime) -> Progress:
        """After another failure."""
        wait = timedelta(seconds=FIRST_RETRY_S * 2**self.attempts)
        return replace(self, attempts=self.attempts + 1, retry_at=now + wait, reason=reason)

    def put(self) -> Put:
        """The change that keeps this, if nobody changed it since it was read."""
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
    """The id of the record that says how far `reader` has got."""
    return memory_id(PROGRESS, reader, conversation)


async def progress_of(store: Store, scope: Scope, reader: str, conversation: str) -> Progress:
    """How far `reader` has got; the beginning where nothing is known."""
    records = await store.read(scope, PROGRESS, [progress_id(reader, conversation)])
    return (
        progress_in(records[0], reader, conversation)
        if records
        else Progress(reader=reader, conversation=conversation)
    )


def progress_in(record: Record, reader: str, conversation: str) -> Progress:
    """What `record` says."""
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
    """Whose turn it is to read a user's conversations: one worker at a time, until it is done or has died.

    Args:
        store: where leases are kept, each in the scope of the user it is about.
        worker: the name of this one.
        clock: the time, aware.
    """

    def __init__(self, store: Store, worker: str, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock

    async def take(self, scope: Scope, reader: str, seconds: float, *, standing: Put) -> float:
        """Hold the lease for `seconds`.

        Args:
            scope: whose conversations.
            reader: on whose behalf.
            seconds: longer than one run can take.
            standing: what must still be there, so that no lease outlives an erasure.

        Returns:
            0.0 if it is ours now, else for how many seconds another may yet hold it.
        """
        records = await self._store.read(scope, LEASE, [reader])
        now = self._clock()
        left = _left(records[0], now) if records else 0.0
        # one that runs longer than any lease was written by a clock that is wrong
        if 0 < left <= seconds and records[0].data["holder"] not in {"", self._worker}:
            return left
        until = (now + timedelta(seconds=seconds)).isoformat()
        lease = Record(kind=LEASE, id=reader, data={"holder": self._worker, "until": until})
        held = records[0] if records else None
        try:
            await self._store.write(scope, [standing, Put.over(held, lease)])
        except WriteConflict:  # another took it in this moment, or the conversation was written to
            return _AGAIN_S
        return 0.0

    async def give_back(self, scope: Scope, reader: str) -> None:
        """Let others at it, if it is still ours."""
        records = await self._store.read(scope, LEASE, [reader])
        if records and records[0].data["holder"] == self._worker:
            free = replace(records[0], data={"holder": "", "until": self._clock().isoformat()})
            with contextlib.suppress(WriteConflict):
                await self._store.write(scope, [Put.over(records[0], free)])


def _left(record: Record, now: datetime) -> float:
    return (datetime.fromisoformat(record.data["until"]) - now).total_seconds()
