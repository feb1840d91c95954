"""Keyed memories: one current version under each key of a user, and the earlier versions behind it.

Decides where a version is stored (private, proposed, global). `sharing` decides which texts may be shared,
and `Ledger` how versions follow each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Final

from echoic.checks import not_ahead
from echoic.errors import QuotaExceeded, WriteConflict
from echoic.memory.concurrency import until_written
from echoic.memory.hits import unsigned
from echoic.memory.records import MEMORY, PROPOSAL, Ledger, memory_id, memory_of, record_of_memory, scan_all
from echoic.memory.service_context import Parts
from echoic.memory.sharing import Shareable, Verdict, weigh
from echoic.stores.base import Drop, Put
from echoic.types import (
    Category,
    Memory,
    Scope,
    Sharing,
    checked_category,
    checked_name,
    checked_sharing,
    checked_text,
    checked_time,
)

log = logging.getLogger(__name__)

_PRIVATE: Final = Verdict("private", "asked")
_AT_ONCE: Final = 50
"""Versions of a key in one write of `delete`."""


class KeyedMemories:
    """The keyed memories of one user."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self._parts = parts
        self._scope = scope
        self._everyone = scope.everyone
        self._user = scope.user or ""

    async def set(
        self, key: str, value: str, category: Category, context: str | None, visibility: Sharing
    ) -> Memory:
        """See `UserMemory.set`."""
        memory = Memory(
            id="",
            key=checked_name(key, "key"),
            text=checked_text(value, "value"),
            context=context if context is None else checked_text(context, "context"),
            category=checked_category(category),
            author=self._user,
            valid_from=self._parts.clock(),
        )
        visibility = checked_sharing(visibility)
        self._parts.write_filter.refuse_instructions("value", memory.text, context, key=key)
        self._parts.write_filter.refuse_third_parties("value", memory.text, context, key=key)
        memory = self._parts.write_filter.memory(self._scope, memory)
        weighed = _PRIVATE if visibility == "private" else await self._weighed(memory)
        shareable = weighed if isinstance(weighed, Shareable) else None
        pending = shareable is not None and self._parts.judge is not None
        memory = replace(memory, reason="pending" if pending else weighed.reason)
        kept = await until_written(lambda: self._set(memory, shareable), "key", key)
        self._parts.background.poke()
        return kept

    async def get(self, key: str) -> Memory | None:
        checked_name(key, "key")
        if own := await self._own(key):
            return own
        everyones = await self._parts.store.scan(self._everyone, MEMORY, key=key, newest_first=True)
        current = [memory for record in everyones if (memory := memory_of(record)).current]
        # first the user's own, then the deployment's, then the newest of anyone's
        current.sort(key=lambda m: 0 if m.author == self._user else 1 if m.author is None else 2)
        if current:
            return current[0]
        # it may have become the user's own between the two reads
        return await self._own(key) or await self._shared(key)

    async def remember(
        self, text: str, category: Category, context: str | None, said_at: datetime | None
    ) -> Memory:
        """See `UserMemory.remember`."""
        now = self._parts.clock()
        memory = Memory(
            id="",
            text=checked_text(text, "text"),
            category=checked_category(category),
            context=context if context is None else checked_text(context, "context"),
            author=self._user,
            valid_from=now if said_at is None else not_ahead([checked_time(said_at, "said_at")], now)[0],
        )
        self._parts.write_filter.refuse_instructions("text", memory.text, context)
        self._parts.write_filter.refuse_third_parties("text", memory.text, context, key=None)
        memory = self._parts.write_filter.memory(self._scope, memory)
        for number in count():
            # the id follows from the stored text, so that two processes store it once
            named = memory_id("", memory.text, category, memory.context or "", str(number))
            new = replace(memory, id=named)
            known = await self._parts.store.read(self._scope, MEMORY, [new.id])
            if known and memory_of(known[0]).current:
                return memory_of(known[0])
            if known:  # it was retracted, and is said again
                continue
            with contextlib.suppress(WriteConflict):  # another process stored the same
                await self._parts.store.write(self._scope, [Put(record=record_of_memory(new), expect=0)])
            self._parts.background.poke()
            return new
        raise AssertionError  # count() does not end

    async def _own(self, key: str) -> Memory | None:
        """The user's own current memory under `key`."""
        own = await self._parts.store.scan(self._scope, MEMORY, key=key, limit=1, newest_first=True)
        return memory_of(own[0]) if own and memory_of(own[0]).current else None

    async def delete(self, key: str) -> bool:
        """See `UserMemory.delete`."""
        from echoic.memory.retraction import hide

        checked_name(key, "key")
        at = self._parts.clock()
        # first, so that after a crash the memory is current, and not global without being current
        await hide(self._parts.store, self._scope, await self.history(key), at=at, deleted=True)
        deleted = [
            await until_written(partial(self._delete, scope, key, at), "key", key)
            for scope in (self._scope, self._everyone)
        ]
        await self._withdraw(key)
        return any(deleted)

    async def take_back(self, name: str) -> bool:
        """See `UserMemory.delete`, by the id of a memory or a turn."""
        from echoic.memory.retraction import hide, named, shared_of, unlearn_turn

        at, store = self._parts.clock(), self._parts.store
        checked_name(name, "id")
        await unlearn_turn(store, self._scope, name)  # first: what was learned by now is named
        memories, whole = await named(store, self._scope, name)
        await hide(store, self._scope, memories, whole=whole, at=at, deleted=True)

        async def attempt(scope: Scope, names: Sequence[str]) -> bool:
            ledger = Ledger(store, scope)
            ended = [await ledger.end(name, at, deleted=True) for name in names]
            await store.write(scope, ledger.changes)
            return any(ended)

        shared = await shared_of(store, self._scope, memories)
        own = [memory.id for memory in memories if memory.id]
        everyones = [record.id for record in shared if record.kind == MEMORY]
        ended = [
            await until_written(partial(attempt, scope, names), "memory", name)
            for scope, names in ((self._scope, own), (self._everyone, everyones))
        ]
        for proposal in shared:
            if proposal.kind == PROPOSAL:
                await self._withdraw(proposal.key or "")
        return any(ended) or bool(whole)

    async def history(self, key: str) -> list[Memory]:
        """See `UserMemory.history`."""
        checked_name(key, "key")
        own = await scan_all(self._parts.store, self._scope, MEMORY, key=key)
        everyones = await scan_all(self._parts.store, self._everyone, MEMORY, key=key)
        shared = [memory for record in everyones if (memory := memory_of(record)).author == self._user]
        versions = [memory_of(record) for record in own] + shared
        return sorted(versions, key=lambda memory: memory.valid_from) if shared else versions

    async def _shared(self, key: str) -> Memory | None:
        """The current memory under `key` in the first deployment that shares one."""
        for scope in self._parts.recaller.shares.of(self._scope):
            records = await self._parts.store.scan(scope, MEMORY, key=key, newest_first=True)
            current = [memory for record in records if (memory := memory_of(record)).current]
            if current:  # first what its operator wrote, then the newest of anyone's
                return unsigned(next((memory for memory in current if memory.author is None), current[0]))
        return None

    async def _weighed(self, memory: Memory) -> Shareable | Verdict:
        """The gate's verdict on `memory`, which passed the write filter."""
        verdict = None
        if self._parts.classifier is not None and memory.context is None:
            try:
                verdict = await self._parts.classifier.classify(memory.text, memory.key)
            except Exception as error:  # noqa: BLE001 - whatever a classifier raises, the text stays private
                log.warning("a memory stays private, its classifier failed: %s", type(error).__name__)
                return Verdict("private", "failed")
        elif self._parts.classifier is not None or self._parts.judge is not None:
            verdict = Verdict("global", "pending")  # the model decides about everything that is not personal
        weighed = weigh(memory.text, memory.key, verdict=verdict, masked=self._parts.write_filter.masks)
        if memory.context is not None and isinstance(weighed, Shareable):
            return Verdict("private", "condition")  # free text, which the gate does not read
        return weighed

    async def _set(self, memory: Memory, shareable: Shareable | None) -> Memory:
        judge = self._parts.judge
        if shareable is None or judge is not None:
            await self._withdraw(memory.key or "")
            kept = await self._set_own(memory, judged=shareable is not None)
            if judge is not None and shareable is not None:
                judge.want(self._scope, kept.id)
            return kept
        from echoic.memory.proposals import is_global_by_itself, publish, put_proposal, still_proposed

        shared = replace(memory, text=shareable.text, redacted=shareable.kinds)
        by_itself = partial(
            is_global_by_itself,
            self._parts.store,
            self._everyone,
            shareable,
            self._parts.global_kinds,
            self._user,
        )
        if not await by_itself():
            proposal = replace(shared, id=memory_id(self._user, memory.key or ""), visibility="proposed")
            await self._parts.store.write(self._everyone, [put_proposal(proposal)])
            try:
                kept = await self._set_own(replace(memory, visibility="proposed"))
            except QuotaExceeded:  # do not propose what its author could not store
                await self._withdraw(memory.key or "")
                raise
            kept = await still_proposed(self._parts.store, self._scope, kept, proposal.id)
            if kept.visibility != "proposed" or not await by_itself():  # others may have said it meanwhile
                return kept
        kept = await publish(self._parts.store, self._everyone, replace(shared, visibility="global"))
        await self._end_older(self._scope, memory)
        return kept

    async def _set_own(self, memory: Memory, *, judged: bool = False) -> Memory:
        """Store it; if `judged`, with a request for a judgement in the same write."""
        ledger = Ledger(self._parts.store, self._scope)
        kept = await ledger.set(memory)
        changes = ledger.changes
        if judged:
            from echoic.memory.proposals import waits

            changes = [*changes, waits(kept)]
        await self._parts.store.write(self._scope, changes)
        await self._end_older(self._everyone, memory)
        return kept

    async def _end_older(self, scope: Scope, than: Memory) -> None:
        """End the version under the key in `scope` unless it was set later: then that one ends `than`."""
        ledger = Ledger(self._parts.store, scope)
        held = await ledger.current(than.key or "", self._user)
        if held is None or held.valid_from > than.valid_from:
            return
        # of two set at the same moment the user's own stays, unless that is what was shared
        if held.valid_from < than.valid_from or scope.user is None or held.text == than.text:
            await ledger.retract(than.key or "", self._user, than.valid_from)
            await self._parts.store.write(scope, ledger.changes)

    async def _delete(self, scope: Scope, key: str, at: datetime) -> bool:
        """Delete every version that the user has under `key` in `scope`; returns whether one held."""
        versions = await scan_all(self._parts.store, scope, MEMORY, key=key)
        own = [
            one for one in versions if one.data.get("author") == self._user and not one.data.get("deleted")
        ]
        own.sort(key=lambda one: one.data.get("valid_until") is None)  # after a crash it still holds
        ended = False
        for first in range(0, len(own), _AT_ONCE):
            ledger, some = Ledger(self._parts.store, scope), own[first : first + _AT_ONCE]
            ledger.hold(some)
            ended = any([await ledger.end(one.id, at, deleted=True) for one in some])
            await self._parts.store.write(scope, ledger.changes)
            await asyncio.sleep(0)  # audio runs on this loop
        return ended

    async def _withdraw(self, key: str) -> None:
        """Withdraw the user's proposal under `key`."""
        name = memory_id(self._user, self._parts.write_filter.key(key))
        if await self._parts.store.read(self._everyone, PROPOSAL, [name]):
            await self._parts.store.write(self._everyone, [Drop(kind=PROPOSAL, id=name)])
