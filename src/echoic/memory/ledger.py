"""Keyed memories of one scope being changed: what is current under each key, and the changes that make it so.

Versions of a key are numbered, and a version's id follows from key and number; so two processes that correct
the same key at once ask for the same id, and the store lets only one of them have it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from hashlib import blake2b

from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.stores.base import Change, Put, Record, Store
from echoic.types import Memory, Scope

_LOOK_BACK = 64
"""Versions of a key looked through for the newest of one author; in a user's own scope the first is it."""


def memory_id(*parts: str) -> str:
    """An id that follows from `parts`: 128 bits, so that two never meet by chance."""
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


class Ledger:
    """Collects changes to one scope. Nothing is written until `changes` go to the store in one write."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.scope = scope
        self.changes: list[Change] = []
        self._store = store
        self._newest: dict[tuple[str, str | None], tuple[Memory, int, int] | None] = {}

    async def newest(self, key: str, author: str | None) -> Memory | None:
        """The last version of `key` that `author` wrote, whether it still holds or not."""
        found = await self._find(key, author)
        return found[0] if found else None

    async def current(self, key: str, author: str | None) -> Memory | None:
        """The same, if it still holds."""
        memory = await self.newest(key, author)
        return memory if memory and memory.current else None

    async def set(self, memory: Memory) -> Memory:
        """Make `memory` the current version of its key; what held before is superseded and stays as history.

        Returns:
            the memory as it will be kept: with its id and what it supersedes. If the same was known already,
            the one that is known, and nothing is changed.
        """
        key = memory.key or ""
        found = await self._find(key, memory.author)
        if found and found[0].current and _same(found[0], memory):
            return found[0]
        number = found[2] + 1 if found else 1
        new = replace(memory, id=memory_id(key, memory.author or "", str(number)))
        if found and found[0].current:
            old = replace(found[0], valid_until=memory.valid_from, superseded_by=new.id)
            self._put(old, found[1], found[2])
            new = replace(new, supersedes=old.id)
        self._put(new, 0, number)
        self._newest[key, memory.author] = (new, 1, number)
        return new

    async def retract(self, key: str, author: str | None, at: datetime) -> Memory | None:
        """End the current version of `key`; None if nothing holds. It stays as history."""
        found = await self._find(key, author)
        if found is None or not found[0].current:
            return None
        memory, version, number = found
        ended = replace(memory, valid_until=at)
        self._put(ended, version, number)
        self._newest[key, author] = (ended, version + 1, number)
        return ended

    def _put(self, memory: Memory, version: int, number: int) -> None:
        record = record_of_memory(memory)
        record = replace(record, data={**record.data, "number": number})
        self.changes.append(Put(record=record, expect=version))

    async def _find(self, key: str, author: str | None) -> tuple[Memory, int, int] | None:
        """The newest memory under `key` by `author`, its record's version and its number."""
        if (key, author) not in self._newest:
            records = await self._store.scan(self.scope, MEMORY, key=key, limit=_LOOK_BACK, newest_first=True)
            self._newest[key, author] = next(
                (found for record in records if (found := _numbered(record))[0].author == author), None
            )
        return self._newest[key, author]


def _numbered(record: Record) -> tuple[Memory, int, int]:
    return memory_of(record), record.version, record.data.get("number", 0)


def _same(known: Memory, said: Memory) -> bool:
    return (known.text, known.category, known.context, known.visibility) == (
        said.text,
        said.category,
        said.context,
        said.visibility,
    )
