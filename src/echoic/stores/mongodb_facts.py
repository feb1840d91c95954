"""What `echoic doctor` wants to know of a database: version, indexes, permissions, what waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pymongo.errors import OperationFailure

from echoic.stores.mongodb_connection import Connection
from echoic.stores.mongodb_documents import Document
from echoic.stores.mongodb_schema import (
    RECORD_INDEXES,
    SEGMENT_INDEXES,
    Collections,
    search_states,
)

_NEEDED = ("find", "insert", "update", "remove", "createIndex", "changeStream", "createSearchIndexes")
"""Actions on the database's collections; the role readWrite holds them all."""


UNKNOWN, ANYBODY = "unknown", "none: the server lets anybody in"
"""Instead of the permissions that are missing."""


async def facts(connection: Connection, now: datetime) -> dict[str, Any]:
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


async def not_allowed(connection: Connection) -> list[str] | str:
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


__all__ = ["ANYBODY", "UNKNOWN", "facts", "missing_indexes", "not_allowed"]
