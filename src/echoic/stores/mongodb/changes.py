"""Changes to one scope, in a transaction that the caller began: records, words, vectors, pending records.

`index_again` updates every scope to another analysis or model, scope by scope and in parts. The database is
marked unfinished until the last scope is done, so that the next process that opens it goes on. Each scope
names the model of its vectors: until it is done it is loaded without vectors, and none are attached.

Collections of the published MongoDB voice-memory demo are adopted in place. Their documents have no kind and
no position: `deploymentId`, `key`, `value`, `userCookie`, `isGlobal`, `embedding`, `createdAt`, `updatedAt`.
They become records and keep every field except the vector, which is kept only if it is of the store's model.
Documents that are blank or have no owner are left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from bson.binary import Binary
from bson.objectid import ObjectId
from numpy.typing import NDArray
from pymongo import DeleteOne, InsertOne, ReturnDocument, UpdateOne

from echoic.errors import InvalidInput
from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.apply import Changing, Name, name_of, takes
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Index, Put, Record
from echoic.stores.mongodb.connection import DatabaseClient
from echoic.stores.mongodb.schema import (
    OPTIONAL_FIELDS,
    VECTOR_FIELDS,
    Collections,
    Document,
    Session,
    fields_of,
    moment,
    packed,
    record_of,
    scope_fields,
    scope_of,
    unpacked,
)
from echoic.types import EmbeddingSpec, Scope, checked_name, checked_text

Clock = Callable[[], int]
"""Nanoseconds since 1970, never the same twice."""
WITHOUT_VECTORS = dict.fromkeys(VECTOR_FIELDS, 0)
"""A projection: a record without its vector."""
ROWS = 32 * SEGMENT_ROWS
"""Rows that are indexed again in a transaction: well within the minute that a server allows."""
_DERIVED = ("entryText", "isPast")


async def claim(
    collections: Collections, session: Session, scope: Scope, *, begin: Document | None
) -> Document | None:
    """The scope's document at its next version, held until the transaction ends; None if there is none.

    Every change to a scope starts here, so that no two interleave. `begin`: its first counters if it may be
    created, else None.
    """
    update: Document = {"$inc": {"version": 1}}
    if begin is not None:
        update["$setOnInsert"] = {"nextRow": 0, "nextOther": FIRST_UNSEARCHABLE, "records": 0, **begin}
    found: Document | None = await collections.scopes.find_one_and_update(
        {"_id": scope_fields(scope)},
        update,
        upsert=begin is not None,
        return_document=ReturnDocument.AFTER,
        session=session,
    )
    return found


@dataclass(slots=True)
class ChangedRecord:
    """A record in the middle of a batch, with the fields of its document to write."""

    record: Record
    place: Any
    """The document's `_id`."""
    waits: bool = False
    fresh: bool = False
    sets: Document = field(default_factory=dict)
    unsets: set[str] = field(default_factory=set)

    def set(self, **fields: Any) -> None:
        self.sets.update(fields)
        self.unsets -= fields.keys()

    def unset(self, names: Iterable[str]) -> None:
        for name in names:
            self.sets.pop(name, None)
            if not self.fresh:
                self.unsets.add(name)

    def operation(self) -> InsertOne[Document] | UpdateOne | None:
        """The write operation; None if nothing changed."""
        if self.fresh:
            return InsertOne({"_id": self.place, **self.sets})
        update: Document = {"$set": self.sets} if self.sets else {}
        if self.unsets:
            update["$unset"] = dict.fromkeys(sorted(self.unsets), "")
        return UpdateOne({"_id": self.place}, update) if update else None


class MongoScopeChanges(Changing):
    """One scope being changed: `gather` what the changes touch, `apply` them, `finish` before the commit."""

    def __init__(
        self, collections: Collections, session: Session, head: Document, index: Index, clock: Clock
    ) -> None:
        super().__init__(index, head["nextRow"], head["nextOther"])
        self._collections, self._session = collections, session
        self._scope: Document = dict(head["_id"])
        self._version: int = head["version"]
        self._count: int = head["records"]
        self._clock = clock
        self._kept: dict[Name, ChangedRecord | None] = {}
        self._gone: list[Any] = []

    @property
    def found(self) -> list[ChangedRecord]:
        """The records that `gather` found and no change removed."""
        return [kept for kept in self._kept.values() if kept]

    @property
    def left(self) -> int:
        """How many records the scope will have."""
        return self._count

    async def gather(self, changes: Sequence[Change]) -> None:
        """Read the records and segments that `changes` touch."""
        names: dict[str, set[str]] = {}
        for change in changes:
            kind, name = name_of(change)
            names.setdefault(kind, set()).add(name)
        for kind, ids in names.items():
            found = self._collections.records.find(
                {**self._scope, "kind": kind, "id": {"$in": sorted(ids)}},
                WITHOUT_VECTORS,
                session=self._session,
            )
            async for document in found:
                record = record_of(document)
                self._kept[kind, record.id] = ChangedRecord(record, document["_id"], "waitsSince" in document)
        rows = {kept.record.seq for kept in self._kept.values() if kept}
        numbers = {row // SEGMENT_ROWS for row in rows if row < FIRST_UNSEARCHABLE}
        await self._gather_segments(numbers | {self._next_row // SEGMENT_ROWS})

    async def _gather_segments(self, numbers: Iterable[int]) -> None:
        query = {**self._scope, "number": {"$in": sorted(numbers)}}
        async for document in self._collections.segments.find(query, session=self._session):
            self._segments[document["number"]] = Segment.from_bytes(bytes(document["words"]))

    def _stands(self, kind: str, name: str) -> Record | None:
        kept = self._kept.get((kind, name))
        return kept.record if kept else None

    def _put(self, put: Put) -> None:
        old = self._kept.get(name_of(put))
        record, entry, same = self._written(put, old.record if old else None)
        kept = old or self._begun(record)
        fields = fields_of(record, entry)
        kept.unset(field for field in OPTIONAL_FIELDS if field not in fields)
        kept.set(**fields, updatedAt=moment(self._clock()))
        kept.record = record
        self._kept[name_of(put)] = kept
        if entry is None:
            return
        if not same:
            self._let_wait(kept)
        self._segment(record.seq).put(record.seq % SEGMENT_ROWS, entry, keep_vector=same)

    def _begun(self, record: Record) -> ChangedRecord:
        self._count += 1
        kept = ChangedRecord(record, ObjectId(), fresh=True)
        kept.set(**self._scope, createdAt=moment(self._clock()))
        return kept

    def _let_wait(self, kept: ChangedRecord) -> None:
        kept.unset(VECTOR_FIELDS)
        if not kept.waits:  # a pending record keeps its place
            kept.waits = True
            kept.set(waitsSince=self._clock())

    def _drop(self, drop: Drop) -> None:
        old = self._kept.get((drop.kind, drop.id))
        if old is None:
            return
        self._kept[drop.kind, drop.id] = None
        self._count -= 1
        if not old.fresh:
            self._gone.append(old.place)
        if old.record.seq < FIRST_UNSEARCHABLE:
            self._segment(old.record.seq).drop(old.record.seq % SEGMENT_ROWS)

    def _attach(self, attach: Attach) -> None:
        kept = self._kept.get((attach.kind, attach.id))
        if kept is None or not takes(kept.record, attach):
            return
        kept.waits = False
        kept.unset(["waitsSince", "tokens"])
        kept.set(embedding=packed(attach.vector))
        if attach.tokens:
            kept.set(tokens=Binary(attach.tokens))
        self._segment(kept.record.seq).attach(kept.record.seq % SEGMENT_ROWS, attach.vector)

    def adopt(self, place: Any, record: Record, vector: NDArray[np.float32] | None) -> None:
        """Turn a foreign document at `place` into a record; InvalidInput if it cannot be indexed."""
        entry = self._index(record)
        if entry is None:
            return
        record = replace(record, version=1, seq=self._next(searchable=True))
        self._count += 1
        kept = ChangedRecord(record, place)
        kept.set(**self._scope, **fields_of(record, entry))
        self._kept[record.kind, record.id] = kept
        slot = record.seq % SEGMENT_ROWS
        self._segment(record.seq).put(slot, entry)
        if vector is None:
            self._let_wait(kept)
        else:
            kept.set(embedding=packed(vector))
            self._segment(record.seq).attach(slot, vector)

    async def index_again(self, first: int, *, waits_since: int | None) -> None:
        """Index the words of `ROWS` rows from `first` on again.

        With `waits_since`, remove their vectors: those records are pending since then.
        """
        numbers = {"$gte": first // SEGMENT_ROWS, "$lt": (first + ROWS) // SEGMENT_ROWS}
        query = {**self._scope, "number": numbers}
        stored = self._collections.segments.find(query, {"number": 1}, session=self._session)
        # including segments that are empty now
        self._segments = {document["number"]: Segment() async for document in stored}
        self._touched.update(self._segments)
        rows = {**self._scope, "seq": {"$gte": first, "$lt": first + ROWS}}
        records, updates = self._collections.records, list[UpdateOne]()
        async for document in records.find(rows, WITHOUT_VECTORS, session=self._session):
            record = record_of(document)
            entry = self._index(record)
            if entry is None:
                continue
            segment = self._segment(record.seq)
            segment.put(record.seq % SEGMENT_ROWS, entry)
            if waits_since is None and "waitsSince" not in document:
                segment.rows["flags"][record.seq % SEGMENT_ROWS] |= Flag.EMBEDDED
            fields = fields_of(record, entry)
            derived = {name: fields[name] for name in _DERIVED if name in fields}
            if derived != {name: document[name] for name in _DERIVED if name in document}:
                gone = [name for name in _DERIVED if name not in derived]
                update: Document = {"$set": derived, **({"$unset": dict.fromkeys(gone, "")} if gone else {})}
                updates.append(UpdateOne({"_id": document["_id"]}, update))
        if updates:
            await records.bulk_write(updates, session=self._session)
        if waits_since is not None:
            await records.update_many(
                {**rows, "waitsSince": {"$exists": False}},
                {"$unset": dict.fromkeys(VECTOR_FIELDS, ""), "$set": {"waitsSince": waits_since}},
                session=self._session,
            )
        await self._write_segments()

    async def _write_segments(self) -> None:
        now, writes = moment(self._clock()), list[UpdateOne]()
        for number in sorted(self._touched):
            # keep an emptied segment without words: processes that loaded it must see that it is empty
            words = Binary(self._segments[number].to_bytes())
            fields = {"version": self._version, "words": words, "changedAt": now}
            writes.append(UpdateOne({**self._scope, "number": number}, {"$set": fields}, upsert=True))
        if writes:
            await self._collections.segments.bulk_write(writes, session=self._session)

    async def finish(self) -> None:
        """Write the records and segments that changed, and the scope's counters."""
        operations: list[Any] = [DeleteOne({"_id": place}) for place in self._gone]
        written = [kept.operation() for kept in self._kept.values() if kept]
        operations += [operation for operation in written if operation is not None]
        if operations:  # in order: a reused id is free by then
            await self._collections.records.bulk_write(operations, session=self._session)
        await self._write_segments()
        counters = {"nextRow": self._next_row, "nextOther": self._next_other, "records": self._count}
        await self._collections.scopes.update_one(
            {"_id": self._scope}, {"$set": counters}, session=self._session
        )


async def index_again(
    connection: DatabaseClient, wanted: Mapping[str, Any], index: Index, clock: Clock, *, detach: bool = False
) -> None:
    """Update every scope to `wanted`: analysis, model and dimensions.

    If the model changes, or with `detach`, vectors are removed and every searchable record waits for a new
    one.
    """
    collections = connection.collections
    await collections.meta.update_one({"_id": "store"}, {"$set": {**wanted, "unfinished": True}})
    if detach:  # from now on no scope has a model, even if this process dies here
        await collections.scopes.update_many({}, {"$set": {"model": ""}})
    # again until none is left: a server that goes on may have begun one meanwhile
    while heads := await collections.scopes.find(unlike(wanted)).sort("begun", 1).to_list():
        for head in heads:
            await _scope_again(connection, head, wanted, index, clock)
    await collections.meta.update_one({"_id": "store"}, {"$set": {"unfinished": False}})


def unlike(wanted: Mapping[str, Any]) -> Document:
    """The query for scopes of another analysis or model than is `wanted`."""
    return {"$or": [{name: {"$ne": value}} for name, value in wanted.items()]}


async def _scope_again(
    connection: DatabaseClient, head: Document, wanted: Mapping[str, Any], index: Index, clock: Clock
) -> None:
    scope = scope_of(head["_id"])
    detach = any(head.get(name) != wanted[name] for name in ("model", "dimensions"))
    since, first, done = clock(), 0, False
    while not done:

        async def work(session: Session, first: int = first) -> bool:
            found = await claim(connection.collections, session, scope, begin=None)
            if found is None:
                return True  # erased meanwhile
            changes = MongoScopeChanges(connection.collections, session, found, index, clock)
            await changes.index_again(first, waits_since=since if detach else None)
            if found["nextRow"] > first + ROWS:
                return False
            await connection.collections.scopes.update_one(
                {"_id": found["_id"]}, {"$set": dict(wanted)}, session=session
            )
            return True

        done = await connection.transact(work)
        first += ROWS


THEIR_MODEL = "voyage-3.5-lite"
"""The model of the demo's vectors, made from "key: value". They are kept if the store uses it too."""
_PAGE = 200
_UNADOPTED = {"kind": {"$exists": False}, "deploymentId": {"$exists": True}, "value": {"$exists": True}}


async def adopt(
    connection: DatabaseClient, embedding: EmbeddingSpec, index: Index, clock: Clock, begin: Document
) -> int:
    """Turn the foreign documents of the collection into records; returns how many.

    `begin`: the model and analysis version of a scope that begins with them.
    """
    collections = connection.collections

    async def into(scope: Scope, places: list[Any], session: Session) -> int:
        query = {"_id": {"$in": places}, "kind": {"$exists": False}}
        found = await collections.records.find(query, session=session).sort("_id", 1).to_list()
        if not found:
            return 0  # another process adopted them first
        head = await claim(collections, session, scope, begin={**begin, "begun": clock()})
        if head is None:
            return 0
        changes = MongoScopeChanges(collections, session, head, index, clock)
        await changes.gather([])
        for document in found:
            changes.adopt(document["_id"], _record_of(document), _vector_of(document, embedding))
        await changes.finish()
        return len(found)

    adopted, after = 0, None
    while True:
        query: Document = {**_UNADOPTED, **({"_id": {"$gt": after}} if after is not None else {})}
        page = await collections.records.find(query).sort("_id", 1).limit(_PAGE).to_list()
        if not page:
            return adopted
        after = page[-1]["_id"]
        by_scope: dict[Scope, list[Any]] = {}
        for document in page:
            scope = _whose(document)
            if scope is not None:
                by_scope.setdefault(scope, []).append(document["_id"])
        for scope, places in by_scope.items():
            adopted += await connection.transact(partial(into, scope, places))


def _whose(document: Mapping[str, Any]) -> Scope | None:
    """The scope of a document; None if it cannot be a memory."""
    try:
        checked_text(document["value"], "value")
        checked_name(document.get("key"), "key")
        # only an explicit flag makes it global
        user = None if document.get("isGlobal") is True else document.get("userCookie")
        if user is None and document.get("isGlobal") is not True:
            return None
        return Scope(document["deploymentId"], user)
    except InvalidInput:
        return None


def _record_of(document: Mapping[str, Any]) -> Record:
    data: dict[str, Any] = {
        "text": document["value"],
        "category": "fact",
        "valid_from": _said_at(document).isoformat(),
    }
    if document.get("isGlobal") is True:
        data["visibility"] = "global"
    else:
        data["author"] = document["userCookie"]  # so that its owner can correct it, not only add to it
    return Record(kind="memory", id=str(document["_id"]), key=document["key"], data=data)


def _said_at(document: Mapping[str, Any]) -> datetime:
    for name in ("updatedAt", "createdAt"):
        value = document.get(name)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    place = document["_id"]
    return place.generation_time if isinstance(place, ObjectId) else datetime.fromtimestamp(0, UTC)


def _vector_of(document: Mapping[str, Any], embedding: EmbeddingSpec) -> NDArray[np.float32] | None:
    """[dimensions] Its vector at unit length, if it is of the store's model."""
    vector = unpacked(document.get("embedding"))
    if vector is None or len(vector) != embedding.dimensions or THEIR_MODEL not in embedding.model:
        return None
    length = float(np.linalg.norm(vector))
    return (vector / length).astype(np.float32) if length > 0 else None
