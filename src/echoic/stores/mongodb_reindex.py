"""Everything indexed again: with other words, or for another model's vectors. Scope by scope, and in parts.

A database says that it is unfinished until the last scope is done, so that whoever opens it goes on. A scope
says whose vectors it holds: until it is done it is loaded without, and nobody attaches any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bson.binary import Binary
from pymongo import UpdateOne

from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.base import Index
from echoic.stores.mongodb_changes import WITHOUT_VECTORS, Clock, claim
from echoic.stores.mongodb_connection import Connection
from echoic.stores.mongodb_documents import Document, fields_of, moment, record_of, scope_fields, scope_of
from echoic.stores.mongodb_schema import Collections, Session
from echoic.types import Scope

ROWS = 32 * SEGMENT_ROWS
"""Done in one transaction: well within the minute a server gives one."""
_DERIVED = ("entryText", "isPast")


async def index_again(
    connection: Connection, wanted: Mapping[str, Any], index: Index, clock: Clock, *, detach: bool = False
) -> None:
    """Bring every scope to `wanted`: its analysis, its model and dimensions.

    Where the model changes, or with `detach`, the vectors go, and every searchable record waits.
    """
    collections = connection.collections
    await collections.meta.update_one({"_id": "store"}, {"$set": {**wanted, "unfinished": True}})
    if detach:  # from now on each is of no model, also should this process die here
        await collections.scopes.update_many({}, {"$set": {"model": ""}})
    other: Document = {"$or": [{name: {"$ne": value}} for name, value in wanted.items()]}
    for head in await collections.scopes.find(other).sort("begun", 1).to_list():
        await _scope_again(connection, head, wanted, index, clock)
    await collections.meta.update_one({"_id": "store"}, {"$set": {"unfinished": False}})


async def _scope_again(
    connection: Connection, head: Document, wanted: Mapping[str, Any], index: Index, clock: Clock
) -> None:
    scope = scope_of(head["_id"])
    detach = any(head.get(name) != wanted[name] for name in ("model", "dimensions"))
    since, first, done = clock(), 0, False
    while not done:

        async def work(session: Session, first: int = first) -> bool:
            found = await claim(connection.collections, session, scope, begin=None)
            if found is None:
                return True  # erased meanwhile
            part = _Part(connection.collections, session, scope, first, found["version"])
            await part.index_again(index, clock, since if detach else None)
            if found["nextRow"] > first + ROWS:
                return False
            await connection.collections.scopes.update_one(
                {"_id": found["_id"]}, {"$set": dict(wanted)}, session=session
            )
            return True

        done = await connection.transact(work)
        first += ROWS


class _Part:
    """`ROWS` rows of a scope from `first` on, in a transaction."""

    def __init__(
        self, collections: Collections, session: Session, scope: Scope, first: int, version: int
    ) -> None:
        self._collections, self._session = collections, session
        self._own = scope_fields(scope)
        self._first, self._version = first, version
        self._rows = {**self._own, "seq": {"$gte": first, "$lt": first + ROWS}}

    async def index_again(self, index: Index, clock: Clock, waits_since: int | None) -> None:
        """Cut the words anew; with `waits_since`, vectors go, and who had one waits from then on."""
        segments: dict[int, Segment] = {}
        updates: list[UpdateOne] = []
        numbers = {"$gte": self._first // SEGMENT_ROWS, "$lt": (self._first + ROWS) // SEGMENT_ROWS}
        stored = self._collections.segments.find(
            {**self._own, "number": numbers}, {"number": 1}, session=self._session
        )
        async for document in stored:
            segments[document["number"]] = Segment()  # also one that is empty now
        async for document in self._collections.records.find(
            self._rows, WITHOUT_VECTORS, session=self._session
        ):
            record = record_of(document)
            entry = index(record)
            if entry is None:
                continue
            segment, slot = (
                segments.setdefault(record.seq // SEGMENT_ROWS, Segment()),
                record.seq % SEGMENT_ROWS,
            )
            segment.put(slot, entry)
            if waits_since is None and "waitsSince" not in document:
                segment.rows["flags"][slot] |= Flag.EMBEDDED
            fields = fields_of(record, entry)
            derived = {name: fields[name] for name in _DERIVED if name in fields}
            if derived != {name: document[name] for name in _DERIVED if name in document}:
                gone = [name for name in _DERIVED if name not in derived]
                update: Document = {"$set": derived, **({"$unset": dict.fromkeys(gone, "")} if gone else {})}
                updates.append(UpdateOne({"_id": document["_id"]}, update))
        if updates:
            await self._collections.records.bulk_write(updates, session=self._session)
        if waits_since is not None:
            await self._detach(waits_since)
        await self._write(segments, clock)

    async def _detach(self, waits_since: int) -> None:
        await self._collections.records.update_many(
            {**self._rows, "waitsSince": {"$exists": False}},
            {"$unset": {"embedding": "", "tokens": ""}, "$set": {"waitsSince": waits_since}},
            session=self._session,
        )

    async def _write(self, segments: Mapping[int, Segment], clock: Clock) -> None:
        now = moment(clock())
        operations = [
            UpdateOne(
                {**self._own, "number": number},
                {"$set": {"version": self._version, "words": Binary(segment.to_bytes()), "changedAt": now}},
                upsert=True,
            )
            for number, segment in sorted(segments.items())
        ]
        if operations:
            await self._collections.segments.bulk_write(operations, session=self._session)


__all__ = ["index_again"]
