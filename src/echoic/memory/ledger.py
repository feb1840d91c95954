"""Memories of one scope being changed: what holds, and the changes that make something else hold.

Versions of a key are numbered, and a version's id follows from key and number; so two processes that correct
the same key at once ask for the same id, and the store lets only one of them have it. What has no key has an
id that follows from what it says, for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Any

from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.stores.base import Change, Put, Record, Store
from echoic.types import Memory, Scope

_LOOK_BACK = 64
"""Versions of a key read at once for the newest of one author; in a user's own scope the first is it."""
_SOURCES = 8
"""Turns named as the source of one memory: the one it was first heard in, and the last ones that said it."""


def memory_id(*parts: str) -> str:
    """An id that follows from `parts`: 128 bits, so that two never meet by chance."""
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class _PendingMemory:
    """A memory as it will be, and what its record was when it was read."""

    memory: Memory
    version: int
    """0: there is no such record yet."""
    number: int
    """Of the version of its key; 0 without one."""
    was: Mapping[str, Any] | None = None
    """What its record held when it was read."""


class Ledger:
    """Collects changes to one scope. Nothing is written until `changes` go to the store in one write."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.scope = scope
        self.store = store
        self._held: dict[str, _PendingMemory] = {}
        self._newest: dict[tuple[str, str | None], str | None] = {}
        self._changed: dict[str, None] = {}
        self._ended: dict[str, None] = {}

    @property
    def changes(self) -> list[Change]:
        """One change for every memory that will not stay as it was, expecting it as it was read."""
        return [_put(self._held[name]) for name in self._changed]

    @property
    def ended(self) -> int:
        """How many memories that held in the store no longer will."""
        return sum(self._held[name].version > 0 for name in self._ended)

    async def newest(self, key: str, author: str | None) -> Memory | None:
        """The last version of `key` that `author` wrote, whether it still holds or not."""
        found = await self._find(key, author)
        return found.memory if found else None

    async def current(self, key: str, author: str | None) -> Memory | None:
        """The same, if it still holds."""
        memory = await self.newest(key, author)
        return memory if memory and memory.current else None

    async def holding(self, name: str) -> Memory | None:
        """The memory with the id `name`, if it still holds."""
        held = await self._take(name)
        return held.memory if held and held.memory.current else None

    async def set(self, memory: Memory) -> Memory:
        """Make `memory` the current version of its key; what held before is superseded and stays as history.

        Returns:
            the memory as it will be kept: with its id and what it supersedes. If the same was known already,
            the one that is known, and nothing is changed.
        """
        key = memory.key or ""
        found = await self._find(key, memory.author)
        if found and found.memory.current and _same(found.memory, memory):
            return found.memory
        number = found.number + 1 if found else 1
        new = replace(memory, id=memory_id(key, memory.author or "", str(number)))
        if found and found.memory.current:
            new = replace(new, supersedes=found.memory.id)
            self._end(found, memory.valid_from, superseded_by=new.id)
        self._newest[key, memory.author] = new.id
        return self._add(new, number)

    async def add(self, memory: Memory) -> Memory:
        """Keep a memory that has no key; if it says exactly what one that holds says, that one."""
        for number in count():  # pragma: no branch - it ends where an id is free
            name = memory_id("", memory.text, memory.category, memory.context or "", str(number))
            held = await self._take(name)
            if held is None:
                return self._add(replace(memory, id=name), 0)
            if held.memory.current:
                return held.memory
        raise AssertionError

    async def supersede(self, known: Memory, new: Memory) -> Memory:
        """End `known`, which holds, because `new` is so; `new` as it will be kept."""
        if new.key is not None and new.key == known.key:
            return await self.set(new)
        kept = await (self.set(new) if new.key is not None else self.add(new))
        return await self.give_way(known, kept, new.valid_from)

    async def give_way(self, known: Memory, to: Memory, at: datetime) -> Memory:
        """End `known`, which holds, because `to` is so, which is kept already; `to` as it will be kept."""
        ends, stays = await self._take(known.id), await self._take(to.id)
        if ends is None or stays is None or ends is stays:
            return to
        self._end(ends, at, superseded_by=to.id)
        if stays.memory.supersedes is None:
            stays.memory = replace(stays.memory, supersedes=known.id)
            self._changed[to.id] = None
        return stays.memory

    async def confirm(self, known: Memory, turn_id: str, at: datetime, *, sure: bool = True) -> Memory | None:
        """Note that `known`, which holds, was said again in this turn; None if that was counted before.

        Args:
            known: what was said.
            turn_id: where.
            at: when.
            sure: whether it was heard clearly: then what was doubted no longer is.
        """
        held = await self._take(known.id)
        if held is None or turn_id in held.memory.source:
            return None
        memory = held.memory
        sources = (*memory.source, turn_id)
        held.memory = replace(
            memory,
            source=sources if len(sources) <= _SOURCES else (sources[0], *sources[1 - _SOURCES :]),
            times_said=memory.times_said + 1 if memory.source else memory.times_said,
            last_said_at=max(at, memory.last_said_at or at),
            confirmed=memory.confirmed or sure,
        )
        self._changed[known.id] = None
        return held.memory

    async def affirm(self, name: str) -> Memory | None:
        """Note that the memory with the id `name` is so, though it was doubted; None if it does not hold or
        was not doubted.
        """
        held = await self._take(name)
        if held is None or not held.memory.current or held.memory.confirmed:
            return None
        held.memory = replace(held.memory, confirmed=True)
        self._changed[name] = None
        return held.memory

    async def retract(self, key: str, author: str | None, at: datetime) -> Memory | None:
        """End the current version of `key`; None if nothing holds. It stays as history."""
        found = await self._find(key, author)
        return self._end(found, at) if found and found.memory.current else None

    async def end(self, name: str, at: datetime) -> Memory | None:
        """End the memory with the id `name`; None if it does not hold. It stays as history."""
        held = await self._take(name)
        return self._end(held, at) if held and held.memory.current else None

    def _end(self, held: _PendingMemory, at: datetime, superseded_by: str | None = None) -> Memory:
        held.memory = replace(held.memory, valid_until=at, superseded_by=superseded_by)
        self._changed[held.memory.id] = None
        self._ended[held.memory.id] = None
        return held.memory

    def _add(self, memory: Memory, number: int) -> Memory:
        self._held[memory.id] = _PendingMemory(memory, 0, number)
        self._changed[memory.id] = None
        return memory

    async def _find(self, key: str, author: str | None) -> _PendingMemory | None:
        """The newest memory under `key` by `author`."""
        if (key, author) not in self._newest:
            newest = await self._look_back(key, author)
            self._newest[key, author] = newest.memory.id if newest else None
        name = self._newest[key, author]
        return self._held[name] if name else None

    async def _look_back(self, key: str, author: str | None) -> _PendingMemory | None:
        """What `author` wrote last under `key`, page by page: many others may have written since."""
        after = -1
        while True:
            page = await self.store.scan(
                self.scope, MEMORY, key=key, after=after, limit=_LOOK_BACK, newest_first=True
            )
            own = next((record for record in page if record.data.get("author") == author), None)
            if own is not None:
                return self._hold(own)
            if len(page) < _LOOK_BACK:
                return None
            after = page[-1].seq

    async def _take(self, name: str) -> _PendingMemory | None:
        if name not in self._held:
            records = await self.store.read(self.scope, MEMORY, [name])
            return self._hold(records[0]) if records else None
        return self._held[name]

    def _hold(self, record: Record) -> _PendingMemory:
        fresh = _PendingMemory(memory_of(record), record.version, record.data.get("number", 0), record.data)
        return self._held.setdefault(record.id, fresh)


def _put(held: _PendingMemory) -> Put:
    record = record_of_memory(held.memory)
    if held.number:
        record = replace(record, data={**record.data, "number": held.number})
    return Put(record=record, expect=held.version, was=held.was)


def _same(known: Memory, said: Memory) -> bool:
    return (known.text, known.category, known.context, known.visibility) == (
        said.text,
        said.category,
        said.context,
        said.visibility,
    )
