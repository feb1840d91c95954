"""Collections of the published MongoDB voice-memory demo, taken over where they lie.

Its documents have no kind and no place: `deploymentId`, `key`, `value`, `userCookie`, `isGlobal`,
`embedding`, `createdAt`, `updatedAt`. They become records where they stand, and keep every field but the
vector, which is kept only if it is of the model the store is opened with. What is blank or belongs to nobody
is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from bson.objectid import ObjectId
from numpy.typing import NDArray

from echoic.errors import InvalidInput
from echoic.stores.base import Index, Record
from echoic.stores.mongodb.changes import Clock, MongoScopeChanges, claim
from echoic.stores.mongodb.connection import DatabaseClient
from echoic.stores.mongodb.documents import Document, unpacked
from echoic.stores.mongodb.schema import Session
from echoic.types import EmbeddingSpec, Scope, checked_name, checked_text

THEIR_MODEL = "voyage-3.5-lite"
"""Whose vectors the demo keeps, made of "key: value". They stay where that model is the store's too."""
_PAGE = 200
_UNADOPTED = {"kind": {"$exists": False}, "deploymentId": {"$exists": True}, "value": {"$exists": True}}


@dataclass(frozen=True, slots=True)
class Adoption:
    """Makes records of the documents that are none yet."""

    connection: DatabaseClient
    embedding: EmbeddingSpec
    index: Index
    clock: Clock
    begin: Document
    """What a scope that begins with them is of."""

    async def run(self) -> int:
        """Go through the collection; how many became records."""
        adopted, after = 0, None
        while True:
            query: Document = {**_UNADOPTED, **({"_id": {"$gt": after}} if after is not None else {})}
            page = await self.connection.collections.records.find(query).sort("_id", 1).limit(_PAGE).to_list()
            if not page:
                return adopted
            after = page[-1]["_id"]
            by_scope: dict[Scope, list[Any]] = {}
            for document in page:
                scope = _whose(document)
                if scope is not None:
                    by_scope.setdefault(scope, []).append(document["_id"])
            for scope, places in by_scope.items():
                adopted += await self._into(scope, places)

    async def _into(self, scope: Scope, places: list[Any]) -> int:
        collections = self.connection.collections

        async def work(session: Session) -> int:
            query = {"_id": {"$in": places}, "kind": {"$exists": False}}
            found = await collections.records.find(query, session=session).sort("_id", 1).to_list()
            if not found:
                return 0  # another process was first
            begin = {**self.begin, "begun": self.clock()}
            head = await claim(collections, session, scope, begin=begin)
            if head is None:
                return 0
            changes = MongoScopeChanges(collections, session, head, self.index, self.clock)
            await changes.gather([])
            for document in found:
                vector = _vector_of(document, self.embedding)
                changes.adopt(document["_id"], _record_of(document), vector)
            await changes.finish()
            return len(found)

        return await self.connection.transact(work)


def _whose(document: Mapping[str, Any]) -> Scope | None:
    """The scope of a document; None if it cannot be a memory of anybody."""
    try:
        checked_text(document["value"], "value")
        checked_name(document.get("key"), "key")
        # what does not plainly say that it is everyone's is somebody's
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
        data["author"] = document["userCookie"]  # so that its owner corrects it, and not only adds to it
    return Record(kind="memory", id=str(document["_id"]), key=document["key"], data=data)


def _said_at(document: Mapping[str, Any]) -> datetime:
    for name in ("updatedAt", "createdAt"):
        value = document.get(name)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    place = document["_id"]
    return place.generation_time if isinstance(place, ObjectId) else datetime.fromtimestamp(0, UTC)


def _vector_of(document: Mapping[str, Any], embedding: EmbeddingSpec) -> NDArray[np.float32] | None:
    """[dimensions] Its vector at unit length, if it is one of the store's model."""
    vector = unpacked(document.get("embedding"))
    if vector is None or len(vector) != embedding.dimensions or THEIR_MODEL not in embedding.model:
        return None
    length = float(np.linalg.norm(vector))
    return (vector / length).astype(np.float32) if length > 0 else None
