"""What `echoic doctor` tells of a MongoDB server: version, indexes, lag, permissions, what waits.

No server says how far its search indexes are behind. So a document is written, searched for until it is
found, and removed. It belongs to nobody: no search and no taking over ever meets it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
from bson.objectid import ObjectId
from pymongo.errors import OperationFailure

from echoic.stores.base import Finding, timed
from echoic.stores.mongodb.connection import DatabaseClient
from echoic.stores.mongodb.documents import Document, packed
from echoic.stores.mongodb.schema import (
    FUSING_SERVER,
    RECORD_INDEXES,
    SEGMENT_INDEXES,
    TEXT_INDEX,
    VECTOR_INDEX,
    Collections,
    search_states,
    searchable,
)

_NEEDED = ("find", "insert", "update", "remove", "createIndex", "changeStream", "createSearchIndexes")
"""Actions on the database's collections; the role readWrite holds them all."""


UNKNOWN, ANYBODY = "unknown", "none: the server lets anybody in"
"""Instead of the permissions that are missing."""


async def facts(connection: DatabaseClient, now: datetime) -> dict[str, Any]:
    """The state of the database and of its server. Writes a mark, to see whether it can be written.

    Args:
        connection: to it.
        now: for the mark.
    """
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
    """The names of the regular indexes that are not there."""
    missing: list[str] = []
    for collection, wanted in (
        (collections.records, RECORD_INDEXES),
        (collections.segments, SEGMENT_INDEXES),
    ):
        there = await collection.index_information()
        missing += [index.document["name"] for index in wanted if index.document["name"] not in there]
    return missing


def _told(states: Mapping[str, Document] | None) -> Mapping[str, str] | str:
    if states is None:
        return "none on this server: large scopes are loaded"
    return {name: str(state.get("status", "unknown")) for name, state in states.items()}


async def not_allowed(connection: DatabaseClient) -> list[str] | str:
    """The actions this user lacks; a sentence where that cannot be told."""
    try:
        found = await connection.client.admin.command("connectionStatus", showPrivileges=True)
    except OperationFailure:  # some hosts keep privileges to themselves
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
"""How long search indexes that are being built are waited for."""
LAG_S = 10.0
"""Up to here a lag is nothing to worry about: segments changed within a minute are looked at anyway."""
_LOOK_S = 0.05
_ROLE = "grant the user the role readWrite on the database"


async def examined(connection: DatabaseClient, dimensions: int, missing: list[str] | str) -> list[Finding]:
    """Version, indexes, lag and permissions.

    Args:
        connection: to the database.
        dimensions: of the vectors kept there.
        missing: the permissions, from `not_allowed`.
    """
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
    return Finding(name="version", well=True, detail=f"MongoDB {told['version']}, {kind}; {search}")


async def _indexes(collections: Collections, states: Any) -> Finding:
    missing = await missing_indexes(collections)
    if missing:
        detail, advice = (
            f"missing: {', '.join(missing)}",
            "open it once with a role that may make them",
        )
    elif states is None:
        detail, advice = "all are there; no search on this server, large scopes are loaded", ""
    else:
        told = {name: states.get(name, {}).get("status", "not there") for name in (VECTOR_INDEX, TEXT_INDEX)}
        detail = "all are there; " + ", ".join(f"{name} {state}" for name, state in told.items())
        slow = f"they were waited for {BUILT_S:g} s: look again later, and meanwhile large scopes are loaded"
        advice = "" if searchable(states) else slow
    return Finding(name="indexes", well=not advice, detail=detail, advice=advice)


async def _replicas(connection: DatabaseClient) -> Finding:
    """How far the majority of the members, which every write waits for, is behind the primary."""
    written = (await connection.client.admin.command("hello")).get("lastWrite", {})
    own, most = written.get("lastWriteDate"), written.get("majorityWriteDate")
    if not isinstance(own, datetime) or not isinstance(most, datetime):
        return Finding(name="lag", well=True, detail="this server does not tell how far its members are")
    behind_s = max(0.0, (own - most).total_seconds())
    advice = "" if behind_s <= LAG_S else "see which member is slow: rs.printSecondaryReplicationInfo()"
    detail = f"the majority of the members is {behind_s:.1f} s behind the primary"
    return Finding(name="lag", well=not advice, detail=detail, advice=advice)


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
    return Finding(name="search lag", well=not advice, detail=f"behind the data: {told}", advice=advice)


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
    """Seconds since `began` when the search first found something; None: not within `LAG_S`."""
    while (passed := time.monotonic() - began) <= LAG_S:
        if await (await collections.search.aggregate([*stages, {"$limit": 1}])).to_list():
            return time.monotonic() - began
        await asyncio.sleep(min(_LOOK_S, max(0.0, LAG_S - passed)))
    return None


async def _permissions(missing: list[str] | str) -> Finding:
    if missing == UNKNOWN:
        return Finding(name="permissions", well=True, detail="this server does not tell what the user may do")
    if missing == ANYBODY:
        detail = "the server lets anybody in who reaches it: turn on access control"
        return Finding(name="permissions", well=True, detail=detail)
    if missing:
        return Finding(
            name="permissions", well=False, detail=f"the user may not {', '.join(missing)}", advice=_ROLE
        )
    return Finding(name="permissions", well=True, detail="the user may do all that is needed")
