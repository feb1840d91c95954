"""Checkpoints of live calls: where they are kept.

By default in the store that keeps everything else; any other place implements `SessionStore`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from echoic.errors import EchoicError, WriteConflict, brief
from echoic.memory.checkpoints import Checkpoint, as_json, from_json
from echoic.memory.records import CHECKPOINT, CONVERSATION, scan_all
from echoic.stores.base import Change, Drop, Put, Record, Require, Store
from echoic.types import Scope, checked_name

if TYPE_CHECKING:
    from echoic.memory.user import UserMemory

log = logging.getLogger(__name__)


class SessionStore(Protocol):
    """Keeps the checkpoints of calls. Whose they are is always said, and never comes from what was said."""

    async def save(self, scope: Scope, checkpoint: Checkpoint) -> None:
        """Keep it in place of the one before: whole, or not at all.

        Raises:
            WriteConflict: another process goes on with this call, or it was forgotten.
            StoreUnavailable: the one before stands.
        """
        ...

    async def load(self, scope: Scope, session: str) -> Checkpoint | None:
        """The last one; None: there is none for this user.

        Raises:
            StoreUnavailable: could not look.
        """
        ...

    async def delete(self, scope: Scope, session: str) -> None:
        """Remove it; nothing happens if it is not there."""
        ...


class RecordSessionStore:
    """Checkpoints as records of a store, on every backend. One of these serves one session.

    It notices when another process took the call over: then the record is at a version it did not write.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: int | None = None
        self._writer = uuid4().hex
        """Stands in what it writes: a write may arrive though its answer does not."""

    async def save(self, scope: Scope, checkpoint: Checkpoint, *beside: Change) -> None:
        """See `SessionStore`. `beside` is written with it, all or nothing."""
        data = as_json(checkpoint) | {"writer": self._writer}
        record = Record(kind=CHECKPOINT, id=checkpoint.session, data=data)
        # the first one of a call may be on its way while its conversation is forgotten
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
"""Checkpoints that did not come, after which a call with words on its way is taken for dead."""


async def kept_of_earlier_calls(memory: UserMemory, session_id: str, every_s: float) -> None:
    """Keep what was said on calls of this caller whose process died before it kept it, and learn from it.

    Who is cut off calls again, and seldom resumes. While words are on their way a call that lives saves a
    checkpoint every time. What could not be kept now is kept at a later call.

    Args:
        memory: the caller's.
        session_id: of the call that begins; it takes up its own.
        every_s: how often a call saves a checkpoint.
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
    if await memory.find_conversation(checkpoint.conversation) is not None:  # else it was forgotten
        conversation = await memory.conversation(checkpoint.conversation)
        await conversation.append(*checkpoint.unkept, learn=checkpoint.learns)
        await conversation.learn()
    data = {**record.data, "unkept": [], "cursor": checkpoint.cursor + len(checkpoint.unkept)}
    await memory.backing_store.write(memory.scope, [Put.over(record, replace(record, data=data))])
