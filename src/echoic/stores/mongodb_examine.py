"""What an operator is told of a MongoDB server: version, indexes, lag, permissions, each looked at for real.

How far the search indexes are behind no server says; a document is written, searched until it is found, and
removed. It belongs to nobody, so that no search of anybody's and no taking over ever meets it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
from bson.objectid import ObjectId

from echoic.stores.base import Finding
from echoic.stores.mongodb_connection import Connection
from echoic.stores.mongodb_documents import Document, packed
from echoic.stores.mongodb_facts import ANYBODY, UNKNOWN, missing_indexes
from echoic.stores.mongodb_schema import (
    FUSING_SERVER,
    TEXT_INDEX,
    VECTOR_INDEX,
    Collections,
    search_states,
    searchable,
)

BUILT_S = 120.0
"""How long search indexes that are being built are waited for."""
LAG_S = 10.0
"""Up to here a lag is nothing to worry about: segments changed within a minute are looked at anyway."""
_LOOK_S = 0.05
_ROLE = "grant the user the role readWrite on the database"


async def examined(connection: Connection, dimensions: int, missing: list[str] | str) -> list[Finding]:
    """Version, indexes, lag and permissions.

    Args:
        connection: to the database.
        dimensions: of the vectors kept there.
        missing: the permissions, from `not_allowed`.
    """
    collections = connection.collections
    states = await search_states(collections)
    found = [await _timed(_version(connection)), await _timed(_indexes(collections, states))]
    found.append(await _timed(_replicas(connection)))
    if searchable(states):
        found.append(await _timed(_search_lag(collections, dimensions)))
    return [*found, await _timed(_permissions(missing))]


async def _timed(looking: Awaitable[Finding]) -> Finding:
    began = time.perf_counter()
    found = await looking
    return replace(found, ms=round(1000 * (time.perf_counter() - began), 2))


async def _version(connection: Connection) -> Finding:
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


async def _replicas(connection: Connection) -> Finding:
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


__all__ = ["BUILT_S", "LAG_S", "examined"]
