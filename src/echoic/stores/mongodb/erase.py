"""Erasure: deleted in one transaction, then read back, and what is left looked through.

It ends at what a client can read. The server's journal, its log of operations, the files of a search process
and every backup keep what was deleted until they roll over; docs/mongodb.md says for how long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from echoic.partition import SEGMENT_ROWS
from echoic.stores.apply import name_of
from echoic.stores.base import FIRST_UNSEARCHABLE, Erasable, Erased, Index, Put
from echoic.stores.mongodb.changes import Clock, MongoScopeChanges, claim
from echoic.stores.mongodb.connection import DatabaseClient
from echoic.stores.mongodb.documents import scope_fields
from echoic.stores.mongodb.load import head_of, read_segments
from echoic.stores.mongodb.schema import Collections, Session
from echoic.types import Scope

_LOOKS = 10


@dataclass(slots=True)
class DeletedDocuments:
    """What was deleted, for the receipt and for looking whether it is gone."""

    kinds: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    places: list[Any] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    rewritten: dict[Any, int] = field(default_factory=dict)
    """The former versions of the records that were replaced, by place."""


async def erase(
    connection: DatabaseClient, scope: Scope, erased: Sequence[Erasable] | None, index: Index, clock: Clock
) -> Erased:
    """Destroy what is dropped and replaced, or the whole scope, and look whether it is gone."""

    async def work(session: Session) -> DeletedDocuments | None:
        head = await claim(connection.collections, session, scope, begin=None)
        if head is None:
            return None
        if erased is None:
            return await _delete_scope(connection.collections, session, scope)
        changes = MongoScopeChanges(connection.collections, session, head, index, clock)
        return await _drop(connection.collections, session, scope, changes, erased)

    gone = await connection.transact(work)
    if gone is None:
        return Erased(verified=await _nothing_left(connection.collections, scope))
    if erased is None:
        return Erased(
            records=dict(gone.kinds),
            vectors=gone.vectors,
            verified=await _nothing_left(connection.collections, scope),
        )
    verified, searched = await _rows_gone(connection.collections, scope, gone)
    return Erased(
        records=dict(gone.kinds),
        rewritten=len(gone.rewritten),
        vectors=gone.vectors,
        verified=verified,
        bytes_searched=searched,
    )


async def _delete_scope(collections: Collections, session: Session, scope: Scope) -> DeletedDocuments:
    own = scope_fields(scope)
    records = {**own, "kind": {"$exists": True}}
    by_kind = [{"$match": records}, {"$group": {"_id": "$kind", "n": {"$sum": 1}}}]
    gone = DeletedDocuments()
    async for group in await collections.records.aggregate(by_kind, session=session):
        gone.kinds[group["_id"]] = group["n"]
    gone.vectors = await collections.records.count_documents(
        {**records, "embedding": {"$exists": True}}, session=session
    )
    # without a kind: also what another program left there meanwhile is this person's
    await collections.records.delete_many(own, session=session)
    await _end_scope(collections, session, scope)
    return gone


async def _end_scope(collections: Collections, session: Session, scope: Scope) -> None:
    await collections.segments.delete_many(scope_fields(scope), session=session)
    await collections.scopes.delete_one({"_id": scope_fields(scope)}, session=session)


async def _drop(
    collections: Collections,
    session: Session,
    scope: Scope,
    changes: MongoScopeChanges,
    erased: Sequence[Erasable],
) -> DeletedDocuments:
    await changes.gather(erased)
    gone = DeletedDocuments()
    puts = {name_of(change) for change in erased if isinstance(change, Put)}
    for kept in changes.found:
        searchable = kept.record.seq < FIRST_UNSEARCHABLE
        gone.vectors += searchable and not kept.waits
        if (kept.record.kind, kept.record.id) in puts:
            gone.rewritten[kept.place] = kept.record.version
            continue
        gone.kinds[kept.record.kind] += 1
        gone.places.append(kept.place)
        gone.rows += [kept.record.seq] if searchable else []
    changes.apply(erased)
    await changes.finish()
    if not changes.left:
        await _end_scope(collections, session, scope)  # nobody's name stays for nothing
    return gone


async def _nothing_left(collections: Collections, scope: Scope) -> bool:
    """Whether the scope holds nothing, or only what was written to it since."""
    own = scope_fields(scope)
    for _ in range(_LOOKS):
        before = await collections.scopes.find_one({"_id": own})
        records = await collections.records.count_documents({**own, "kind": {"$exists": True}})
        segments = await collections.segments.count_documents(own)
        if before == await collections.scopes.find_one({"_id": own}):
            expected = before["records"] if before else 0
            return records == expected and (before is not None or not segments)
    return False


async def _rows_gone(collections: Collections, scope: Scope, gone: DeletedDocuments) -> tuple[bool, int]:
    """Whether neither a document nor a word of its row is left, and how many bytes were looked through."""
    left = await collections.records.count_documents({"_id": {"$in": gone.places}, **scope_fields(scope)})
    for place, version in gone.rewritten.items():  # as it was before
        left += await collections.records.count_documents({"_id": place, "version": version})
    numbers = sorted({row // SEGMENT_ROWS for row in gone.rows})
    begun = await head_of(collections, scope)
    segments = await read_segments(collections, scope, {"number": {"$in": numbers}}) if begun else {}
    clean = all(
        not segments[row // SEGMENT_ROWS].rows["kind"][row % SEGMENT_ROWS]
        and row % SEGMENT_ROWS not in segments[row // SEGMENT_ROWS].slots
        for row in gone.rows
        if row // SEGMENT_ROWS in segments
    )
    return left == 0 and clean, sum(len(segment.to_bytes()) for segment in segments.values())
