"""Erasure, and checks of a server.

Erasure deletes in one transaction, reads back, and searches what is left. It covers what a client can read.
The server's journal, its oplog, the files of a search process and every backup keep deleted data until they
roll over; docs/mongodb.md says for how long.

`examine` is for `echoic doctor`. No server reports the lag of its search indexes, so a document is written,
searched for until it is found, and removed. It belongs to no scope, so no other search finds it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
from bson.objectid import ObjectId
from pymongo.errors import OperationFailure

from echoic.partition import SEGMENT_ROWS
from echoic.stores.apply import erasing
from echoic.stores.base import FIRST_UNSEARCHABLE, Erasable, Erased, Finding, Index, finding, timed
from echoic.stores.mongodb.changes import Clock, MongoScopeChanges, claim
from echoic.stores.mongodb.connection import DatabaseClient
from echoic.stores.mongodb.load import head_of, read_segments
from echoic.stores.mongodb.schema import (
    FUSING_SERVER,
    RECORD_INDEXES,
    SEGMENT_INDEXES,
    TEXT_INDEX,
    VECTOR_INDEX,
    Collections,
    Document,
    Session,
    packed,
    scope_fields,
    search_states,
    searchable,
)
from echoic.types import Scope

_LOOKS = 10


@dataclass(slots=True)
class DeletedDocuments:
    """What was deleted, for the receipt and the verification."""

    kinds: Counter[str] = field(default_factory=Counter)
    vectors: int = 0
    places: list[Any] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    rewritten: dict[Any, int] = field(default_factory=dict)
    """The previous versions of replaced records, by position."""


async def erase(
    connection: DatabaseClient, scope: Scope, erased: Sequence[Erasable] | None, index: Index, clock: Clock
) -> Erased:
    """Destroy what is dropped and replaced, or the whole scope, and verify that it is gone."""

    async def work(session: Session) -> DeletedDocuments | None:
        head = await claim(connection.collections, session, scope, begin=None)
        if head is None:
            return None
        if erased is None:
            return await _delete_scope(connection.collections, session, scope)
        changes = MongoScopeChanges(connection.collections, session, head, index, clock)
        return await _drop(connection.collections, session, scope, changes, erased)

    gone = await connection.transact(work)
    searched = 0
    if gone is None or erased is None:
        gone = gone or DeletedDocuments()
        verified = await _nothing_left(connection.collections, scope)
    else:
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
    # whatever the kind: documents that another program added are this user's too
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
    _, rewritten = erasing([kept.record for kept in changes.found], erased)
    stays = {(record.kind, record.id) for record, _ in rewritten}
    for kept in changes.found:
        searchable = kept.record.seq < FIRST_UNSEARCHABLE
        gone.vectors += searchable and not kept.waits
        if (kept.record.kind, kept.record.id) in stays:
            gone.rewritten[kept.place] = kept.record.version
            continue
        gone.kinds[kept.record.kind] += 1
        gone.places.append(kept.place)
        gone.rows += [kept.record.seq] if searchable else []
    changes.apply(erased)
    await changes.finish()
    if not changes.left:
        await _end_scope(collections, session, scope)  # no user's name stays without data
    return gone


async def _nothing_left(collections: Collections, scope: Scope) -> bool:
    """Whether the scope is empty, or holds only what was written to it since."""
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
    """Whether neither a document nor a word of its row is left, and how many bytes were searched."""
    left = await collections.records.count_documents({"_id": {"$in": gone.places}, **scope_fields(scope)})
    for place, version in gone.rewritten.items():  # the record before the erasure
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


_NEEDED = ("find", "insert", "update", "remove", "createIndex", "changeStream", "createSearchIndexes")
"""Required actions on the database's collections; the role readWrite has them all."""


UNKNOWN, ANYBODY = "unknown", "none: the server lets anybody in"
"""Results in place of the list of missing permissions."""


async def facts(connection: DatabaseClient, now: datetime) -> dict[str, Any]:
    """The state of the database and of its server. Writes a mark to test whether it can write."""
    collections = connection.collections
    await collections.meta.update_one({"_id": "checked"}, {"$set": {"at": now}}, upsert=True)
    waiting = {"waitsSince": {"$exists": True}}
    return {
        "engine": f"MongoDB {connection.facts['version']}",
        "database": connection.where,
        "sharded": connection.facts["sharded"],
        "scopes": await collections.scopes.count_documents({"records": {"$gt": 0}}),
        "records": await collections.records.count_documents({"kind": {"$exists": True}}),
        "waiting": await collections.records.count_documents(waiting),
        "left alone": await collections.records.count_documents({"kind": {"$exists": False}}),
        "indexes missing": await missing_indexes(collections),
        "search": _told(await search_states(collections)),
        "permissions missing": await not_allowed(connection),
        "durable": True,
        "writable": True,
    }


async def missing_indexes(collections: Collections) -> list[str]:
    """The names of missing regular indexes."""
    missing: list[str] = []
    for collection, wanted in (
        (collections.records, RECORD_INDEXES),
        (collections.segments, SEGMENT_INDEXES),
    ):
        there = await collection.index_information()
        missing += [name for index in wanted if (name := index.document["name"]) not in there]
    return missing


def _told(states: Mapping[str, Document] | None) -> Mapping[str, str] | str:
    if states is None:
        return "none on this server: large scopes are loaded"
    return {name: str(state.get("status", "unknown")) for name, state in states.items()}


async def not_allowed(connection: DatabaseClient) -> list[str] | str:
    """The actions this user lacks, or a sentence if that is unknown."""
    try:
        found = await connection.client.admin.command("connectionStatus", showPrivileges=True)
    except OperationFailure:  # some hosts do not show privileges
        return UNKNOWN
    told = found.get("authInfo", {})
    if not told.get("authenticatedUsers"):
        return ANYBODY
    database = connection.collections.database.name
    allowed: set[str] = set()
    for privilege in told.get("authenticatedUserPrivileges", []):
        resource = privilege.get("resource", {})
        if resource.get("anyResource") or resource.get("db") in {database, ""}:
            allowed.update(privilege.get("actions", []))
    return [action for action in _NEEDED if action not in allowed]


BUILT_S = 120.0
"""Seconds to wait for search indexes being built."""
LAG_S = 10.0
"""An acceptable lag: segments changed within a minute are searched anyway."""
_LOOK_S = 0.05
_ROLE = "grant the user the role readWrite on the database"


async def examined(connection: DatabaseClient, dimensions: int, missing: list[str] | str) -> list[Finding]:
    """Version, indexes, lag and permissions; `missing` comes from `not_allowed`."""
    collections = connection.collections
    states = await search_states(collections)
    found = [await timed(_version(connection)), await timed(_indexes(collections, states))]
    found.append(await timed(_replicas(connection)))
    if searchable(states):
        found.append(await timed(_search_lag(collections, dimensions)))
    return [*found, await timed(_permissions(missing))]


async def _version(connection: DatabaseClient) -> Finding:
    told = connection.facts
    kind = "a sharded cluster" if told["sharded"] else "a replica set"
    search = "fuses searches itself" if tuple(told["numbers"]) >= FUSING_SERVER else "makes two searches"
    return finding("version", f"MongoDB {told['version']}, {kind}; {search}")


async def _indexes(collections: Collections, states: Any) -> Finding:
    missing = await missing_indexes(collections)
    if missing:
        detail, advice = (f"missing: {', '.join(missing)}", "open it once with a role that may make them")
    elif states is None:
        detail, advice = "all are there; no search on this server, large scopes are loaded", ""
    else:
        told = {name: states.get(name, {}).get("status", "not there") for name in (VECTOR_INDEX, TEXT_INDEX)}
        detail = "all are there; " + ", ".join(f"{name} {state}" for name, state in told.items())
        slow = f"they were waited for {BUILT_S:g} s: look again later, and meanwhile large scopes are loaded"
        advice = "" if searchable(states) else slow
    return finding("indexes", detail, advice)


async def _replicas(connection: DatabaseClient) -> Finding:
    """How far the majority of members, which every write waits for, is behind the primary."""
    written = (await connection.client.admin.command("hello")).get("lastWrite", {})
    own, most = written.get("lastWriteDate"), written.get("majorityWriteDate")
    if not isinstance(own, datetime) or not isinstance(most, datetime):
        return finding("lag", "this server does not tell how far its members are")
    behind_s = max(0.0, (own - most).total_seconds())
    advice = "" if behind_s <= LAG_S else "see which member is slow: rs.printSecondaryReplicationInfo()"
    return finding("lag", f"the majority of the members is {behind_s:.1f} s behind the primary", advice)


async def _search_lag(collections: Collections, dimensions: int) -> Finding:
    mark, vector = f"echoic doctor {uuid4().hex}", np.full(dimensions, dimensions**-0.5, np.float32)
    probe: Document = {
        "_id": ObjectId(),
        "userCookie": mark,
        "isGlobal": False,
        "isPast": False,
        "value": "echoic doctor",
        "embedding": packed(vector),
    }
    try:
        began = time.monotonic()
        await collections.records.insert_one(probe)
        lags = await asyncio.gather(
            *(_found_after(collections, [stage], began) for stage in _searches(mark, vector))
        )
    finally:
        await asyncio.shield(collections.records.delete_one({"_id": probe["_id"]}))
    told = ", ".join(
        f"{name} more than {LAG_S:g} s" if lag is None else f"{name} {lag:.2f} s"
        for name, lag in zip((VECTOR_INDEX, TEXT_INDEX), lags, strict=True)
    )
    advice = "" if None not in lags else "the search process does not keep up: see its log, give it memory"
    return finding("search lag", f"behind the data: {told}", advice)


def _searches(mark: str, vector: Any) -> list[Document]:
    near = {
        "index": VECTOR_INDEX,
        "path": "embedding",
        "queryVector": packed(vector),
        "exact": True,
        "limit": 1,
        "filter": {"userCookie": mark},
    }
    words = {"index": TEXT_INDEX, "equals": {"path": "userCookie", "value": mark}}
    return [{"$vectorSearch": near}, {"$search": words}]


async def _found_after(collections: Collections, stages: list[Document], began: float) -> float | None:
    """Seconds from `began` until the search found something; None if not within `LAG_S`."""
    while (passed := time.monotonic() - began) <= LAG_S:
        if await (await collections.search.aggregate([*stages, {"$limit": 1}])).to_list():
            return time.monotonic() - began
        await asyncio.sleep(min(_LOOK_S, max(0.0, LAG_S - passed)))
    return None


async def _permissions(missing: list[str] | str) -> Finding:
    if missing == UNKNOWN:
        return finding("permissions", "this server does not tell what the user may do")
    if missing == ANYBODY:
        return finding("permissions", "the server lets anybody in who reaches it: turn on access control")
    if missing:
        return finding("permissions", f"the user may not {', '.join(missing)}", _ROLE)
    return finding("permissions", "the user may do all that is needed")
