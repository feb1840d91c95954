"""Checkpoints of live calls: their JSON, where they are kept, and how the calls of processes that died are
closed.

They are kept in the service's store; to keep them elsewhere, implement `SessionStore`. A live call rewrites
its checkpoint at least every `SIGN_EVERY_S`, so the checkpoint alone shows whether the call is over. The next
process that opens the store closes a call that was not resumed, as its own process would have.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol
from uuid import uuid4

from echoic.checks import AsDict, checked_name, checked_time
from echoic.errors import EchoicError, InvalidInput, QuotaExceeded, StoreCorrupt, WriteConflict, brief
from echoic.memory.assurance import Sensitivity
from echoic.memory.concurrency import Sweeper, until_written
from echoic.memory.records import (
    CALL,
    CHECKPOINT,
    CONVERSATION,
    conversation_of,
    cursor_of,
    record_of_conversation,
    record_of_turn,
    scan_all,
    turn_of,
)
from echoic.memory.service_context import Parts
from echoic.stores.base import Change, Drop, Put, Record, Require, Store
from echoic.types import Scope, Turn

if TYPE_CHECKING:
    from echoic.memory.user import UserMemory

SIGN_EVERY_S: Final = 60.0
"""Seconds within which a live call writes its checkpoint, even if nothing is said; see `Checkpoint.saved_at`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTool:
    """A tool call that was started and has no result yet."""

    call: str
    """The provider's id of the call."""
    name: str
    arguments: Annotated[Mapping[str, Any], AsDict()] = field(default_factory=dict)
    """JSON."""
    idempotent: bool = False
    """Whether it may be run again; if not, the model is told that it did not finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state needed to continue a live call in another process, on any provider."""

    session: str
    conversation: str
    agent: str
    """The agent serving the call."""
    messages: str
    """The messages of the call as PydanticAI's JSON; agents' words only as far as they were heard."""
    unkept: tuple[Turn, ...] = ()
    """Turns not yet appended to the conversation; on resume they are appended first, by their ids."""
    pending: tuple[PendingTool, ...] = ()
    summary: str | None = None
    """A summary of what precedes `messages`, if the call was too long to keep all of them."""
    learns: bool = True
    """Whether memories may be learned from the call."""
    evicted: int = 0
    """How many turns `summary` stands for."""
    tokens: int = 0
    """Approximate tokens of messages and summary, by `estimate_tokens`."""
    cursor: int = 0
    """How many turns of the call the conversation had."""
    resumption: str | None = None
    """A provider's handle, if it gave one. Resuming does not require it."""
    told: Sensitivity = "sensitive"
    """The most sensitive content that a caller was told in the call, and that `messages` may repeat."""
    saved_at: datetime

    def __post_init__(self) -> None:
        checked_name(self.session, "session")
        checked_name(self.conversation, "conversation")
        checked_name(self.agent, "agent")
        object.__setattr__(self, "saved_at", checked_time(self.saved_at, "saved_at"))


def as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as JSON, for stores of any kind."""
    return {
        **{each.name: getattr(checkpoint, each.name) for each in fields(checkpoint)},
        "unkept": [{"id": turn.id, **record_of_turn(turn).data} for turn in checkpoint.unkept],
        "pending": [
            {
                "call": tool.call,
                "name": tool.name,
                "arguments": dict(tool.arguments),
                "idempotent": tool.idempotent,
            }
            for tool in checkpoint.pending
        ],
        "saved_at": checkpoint.saved_at.isoformat(),
    }


def from_json(data: Mapping[str, Any]) -> Checkpoint:
    """The inverse of `as_json`; InvalidInput if `data` is not a checkpoint."""
    try:
        turns = [
            turn_of(Record(kind="turn", id=turn["id"], key=data["conversation"], data=turn))
            for turn in data["unkept"]
        ]
        read = {
            "unkept": tuple(replace(turn, conversation=data["conversation"]) for turn in turns),
            "pending": tuple(PendingTool(**tool) for tool in data["pending"]),
            "cursor": data["cursor"],
            "saved_at": datetime.fromisoformat(data["saved_at"]),
        }
        known = {each.name: data[each.name] for each in fields(Checkpoint) if each.name in data}
        return Checkpoint(**known | read)
    except (KeyError, TypeError, ValueError, StoreCorrupt) as error:
        raise InvalidInput(f"this is not a checkpoint of a call: {type(error).__name__}") from error


log = logging.getLogger(__name__)

RESUMABLE_FOR_S: Final = 24 * 3600.0
"""Default number of seconds in which a call can be resumed."""
LEAST_S: Final = 5 * SIGN_EVERY_S
"""The shortest limit: a live call's checkpoint may be late if its store was down or two clocks differ."""
REASON: Final = "abandoned"
"""The reason noted in the call's record."""
SWEEP_AFTER_S: Final = 2.0
"""Seconds before the first sweep; a short-lived command does none."""
_SWEEPS: Final = 4
"""Sweeps per `resumable_for_s`."""


class AbandonedCalls(Sweeper):
    """Closes calls whose process died and that nobody resumed within `resumable_for_s` (None: no limit).

    A limit so short that it would close live calls raises InvalidInput.
    """

    def __init__(self, parts: Parts, resumable_for_s: float | None) -> None:
        if resumable_for_s is not None and not resumable_for_s >= LEAST_S:
            raise InvalidInput(
                f"resumable_for_s must be {LEAST_S:.0f} at least or None, not {brief(resumable_for_s)}: "
                f"a call that goes on gives a sign only every {SIGN_EVERY_S:.0f} seconds"
            )
        self._parts = parts
        self._resumable_for_s = resumable_for_s
        every_s = None if resumable_for_s is None else resumable_for_s / _SWEEPS
        super().__init__(
            None if every_s is None else self.close_all,
            after_s=SWEEP_AFTER_S,
            every_s=every_s,
            later="calls that broke off are looked for",
            job="closing broken calls",
        )

    async def close_all(self, deployment: str | None = None) -> int:
        """Close every call that is over, of one deployment or of all; returns how many."""
        if self._resumable_for_s is None:
            return 0
        closed = 0
        for scope in await self._parts.store.scopes(deployment):
            try:
                for record in await scan_all(self._parts.store, scope, CHECKPOINT):
                    closed += await self._closed(scope, record)
            except Exception as error:  # noqa: BLE001 - a user who cannot be read keeps no other's calls open
                log.warning("calls of a user that broke off are looked for later: %s", type(error).__name__)
                await self._parts.store.scopes(deployment)  # raises if it is the store that is away
        return closed

    async def _closed(self, scope: Scope, record: Record) -> bool:
        """Close a checkpoint's call if it is over; logs errors, so that others are closed."""
        try:
            if not self._is_over(from_json(record.data)):
                return False
            return await until_written(lambda: self._close(scope, record.id), "call", record.id)
        except Exception as error:  # noqa: BLE001 - whatever a damaged record raises
            log.warning("a call that broke off is not closed yet: %s", type(error).__name__)
            return False

    async def _close(self, scope: Scope, name: str) -> bool:
        """Try to close a call once; returns whether this process closed it.

        Turns are stored by id and learned from behind a cursor, and the rest is one write that expects the
        checkpoint as it was read. So the call is closed exactly once, however many processes try and wherever
        one dies.
        """
        store = self._parts.store
        records = await store.read(scope, CHECKPOINT, [name])
        if not records or not self._is_over(checkpoint := from_json(records[0].data)):
            return False  # closed by another process, forgotten, or resumed
        unchanged, drop = Put.over(records[0], records[0]), Drop(kind=CHECKPOINT, id=name)
        ends = await self._ends(scope, checkpoint)
        await store.write(scope, [unchanged, *ends, drop])
        if ends:
            self._parts.background.poke((scope, checkpoint.conversation))
        return True

    def _is_over(self, checkpoint: Checkpoint) -> bool:
        assert self._resumable_for_s is not None
        # in seconds: an infinite limit is not a timedelta
        return (self._parts.clock() - checkpoint.saved_at).total_seconds() > self._resumable_for_s

    async def _ends(self, scope: Scope, checkpoint: Checkpoint) -> list[Change]:
        """Store the turns, learn from them, and return the other changes that end the call."""
        store = self._parts.store
        if not await store.read(scope, CONVERSATION, [checkpoint.conversation]):
            return []  # the conversation was forgotten
        from echoic.memory.conversation import OpenConversation

        conversation = OpenConversation(self._parts, scope, checkpoint.conversation, None)
        await conversation.append(*checkpoint.unkept, learn=checkpoint.learns)
        try:
            await conversation.learn()
        except (InvalidInput, QuotaExceeded) as error:  # would be so each time, and the call never end
            log.warning("nothing was learned from a call that broke off: %s", type(error).__name__)
        ends = [_ended(call, checkpoint) for call in await store.read(scope, CALL, [checkpoint.session])]
        if not await self._goes_on(scope, checkpoint):
            there = await store.read(scope, CONVERSATION, [checkpoint.conversation])
            ends += [_completed(record, checkpoint) for record in there]
        return [change for change in ends if change is not None]

    async def _goes_on(self, scope: Scope, checkpoint: Checkpoint) -> bool:
        """Whether another live call uses the same conversation; that call then ends it."""
        held = await scan_all(self._parts.store, scope, CHECKPOINT)
        return any(
            other.data.get("conversation") == checkpoint.conversation and self._gives_signs(other)
            for other in held
            if other.id != checkpoint.session
        )

    def _gives_signs(self, record: Record) -> bool:
        """Whether the call may still be live; assumed if the checkpoint cannot be read."""
        try:
            return not self._is_over(from_json(record.data))
        except InvalidInput:
            return True


def _ended(call: Record, checkpoint: Checkpoint) -> Change | None:
    """The end of the call for its record, unless the record has one."""
    if call.data.get("ended_at") is not None:
        return None
    end = {"ended_at": checkpoint.saved_at.isoformat(), "reason": REASON}
    return Put.over(call, replace(call, data={**call.data, **end}))


def _completed(record: Record, checkpoint: Checkpoint) -> Change | None:
    """The end of the conversation at the last sign of its call, unless it has ended."""
    known = conversation_of(record)
    if known.status != "active":
        return None
    at = max(known.updated_at, checkpoint.saved_at)
    done = record_of_conversation(replace(known, status="completed", updated_at=at), cursor=cursor_of(record))
    return Put.over(record, replace(done, data={**record.data, **done.data}))


class SessionStore(Protocol):
    """Stores the checkpoints of calls. The owner is always an argument, never taken from what was said."""

    async def save(self, scope: Scope, checkpoint: Checkpoint) -> None:
        """Replace the previous checkpoint atomically.

        Raises:
            WriteConflict: another process continues the call, or it was forgotten.
            StoreUnavailable: the previous checkpoint is unchanged.
        """

    async def load(self, scope: Scope, session: str) -> Checkpoint | None:
        """The last checkpoint of `session`, or None if this user has none.

        Raises:
            StoreUnavailable: it could not be read.
        """

    async def delete(self, scope: Scope, session: str) -> None:
        """Remove it, if it exists."""


class RecordSessionStore:
    """Checkpoints as records of a store, on every backend. Each instance serves one session.

    It detects that another process continues the call: then the record has a version this one did not write.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: int | None = None
        self._writer = uuid4().hex
        """Written into the record: a write may succeed although its answer is lost."""

    async def save(self, scope: Scope, checkpoint: Checkpoint, *beside: Change) -> None:
        """See `SessionStore`. `beside` is written in the same transaction."""
        data = as_json(checkpoint) | {"writer": self._writer}
        record = Record(kind=CHECKPOINT, id=checkpoint.session, data=data)
        # the first write of a call may arrive while its conversation is forgotten
        of_it = Require(kind=CONVERSATION, id=checkpoint.conversation)
        try:
            await self._store.write(scope, [of_it, Put(record=record, expect=self._version or 0), *beside])
        except WriteConflict:
            there = await self._store.read(scope, CHECKPOINT, [checkpoint.session])
            if not there or there[0].data.get("writer") != self._writer:
                raise
            self._version = there[0].version
            await self._store.write(scope, [of_it, Put(record=record, expect=self._version), *beside])
        self._version = (self._version or 0) + 1

    def erased(self) -> None:
        """The record was erased, and the next write creates it again. If it is still there, as where the
        user's data is on hold, it is replaced only if this writer wrote it last.
        """
        self._version = None

    async def load(self, scope: Scope, session: str) -> Checkpoint | None:
        """See `SessionStore`."""
        records = await self._store.read(scope, CHECKPOINT, [checked_name(session, "session")])
        if not records:
            return None
        self._version = records[0].version
        return from_json(records[0].data)

    async def delete(self, scope: Scope, session: str) -> None:
        """See `SessionStore`."""
        there = await self._store.read(scope, CHECKPOINT, [session])
        if there and there[0].version != self._version and there[0].data.get("writer") != self._writer:
            raise WriteConflict(f"call {brief(session)} continues in another process")
        await self._store.write(scope, [Drop(kind=CHECKPOINT, id=session)])
        self._version = None


_MISSED: Final = 5
"""Missed checkpoints after which a call with unsaved words counts as dead."""


async def kept_of_earlier_calls(memory: UserMemory, session_id: str, every_s: float) -> None:
    """Store the unsaved turns of this caller's earlier calls whose process died, and learn from them.

    A caller who was cut off calls again and rarely resumes. A live call saves a checkpoint every `every_s`
    seconds while it has unsaved words. `session_id` is the call that begins; it restores its own turns.
    """
    dead = datetime.now(UTC) - timedelta(seconds=_MISSED * every_s)
    try:
        for record in await scan_all(memory.backing_store, memory.scope, CHECKPOINT):
            checkpoint = from_json(record.data)
            if checkpoint.unkept and checkpoint.saved_at < dead and checkpoint.session != session_id:
                await _keep(memory, checkpoint, record)
    except EchoicError as error:
        log.warning("what was said on an earlier call is not kept yet: %s", type(error).__name__)


async def _keep(memory: UserMemory, checkpoint: Checkpoint, record: Record) -> None:
    if await memory.find_conversation(checkpoint.conversation) is not None:  # otherwise it was forgotten
        conversation = await memory.conversation(checkpoint.conversation)
        await conversation.append(*checkpoint.unkept, learn=checkpoint.learns)
        await conversation.learn()
    data = {**record.data, "unkept": [], "cursor": checkpoint.cursor + len(checkpoint.unkept)}
    await memory.backing_store.write(memory.scope, [Put.over(record, replace(record, data=data))])
