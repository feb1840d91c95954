"""Commands that read: `find`, `aggregate`, and the cursors they open."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from echoic_loopback.mongodb import pipelines
from echoic_loopback.mongodb.matching import Document, sorted_by
from echoic_loopback.mongodb.pipelines import Source, projected
from echoic_loopback.mongodb.refusals import BAD_VALUE, CURSOR_NOT_FOUND, FAILED_TO_PARSE, Refusal
from echoic_loopback.mongodb.search_indexes import SearchIndexes
from echoic_loopback.mongodb.storage import Storage, Transaction, namespace_of
from echoic_loopback.mongodb.streams import FIRST_BATCH, ChangeStream, Cursor


class Reads:
    """What reads documents, and the cursors that are open."""

    def __init__(
        self,
        storage: Storage,
        indexed: SearchIndexes,
        *,
        replicated: bool,
        search: bool,
        version: Sequence[int],
    ) -> None:
        self._version = tuple(version)
        self.storage, self.search_indexes = storage, indexed
        self._replicated, self._search = replicated, search
        self._cursors: dict[int, Cursor] = {}
        self._cursor_ids = itertools.count(1)

    async def find(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)
        looking = transaction or Transaction(self.storage, explicit=False)
        found = looking.find(namespace, command.get("filter", {}))
        if command.get("sort"):
            found = sorted_by(found, command["sort"])
        found = found[command.get("skip", 0) :]
        limit = command.get("limit", 0)
        if limit < 0:
            raise Refusal(BAD_VALUE, "BSON field 'limit' value must be >= 0")
        found = found[:limit] if limit else found
        if command.get("projection"):
            found = [projected(document, command["projection"]) for document in found]
        size = command.get("batchSize", FIRST_BATCH)
        return await self.opened(Cursor(namespace, found), size, single=bool(command.get("singleBatch")))

    async def aggregate(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        whole = command["aggregate"] == 1
        namespace = f"{command['$db']}.$cmd.aggregate" if whole else namespace_of(command)
        if "cursor" not in command:
            raise Refusal(
                FAILED_TO_PARSE, "The 'cursor' option is required, except for aggregate with explain"
            )
        pipeline = command.get("pipeline")
        size = command["cursor"].get("batchSize", FIRST_BATCH)
        if isinstance(pipeline, list) and pipeline and "$changeStream" in pipeline[0]:
            stream = ChangeStream(self.storage, namespace, pipeline, self._now, replicated=self._replicated)
            return await self.opened(stream, size)
        pipelines.check(pipeline)
        pipelines.check_version(pipeline or [], self._version, strict=bool(command.get("apiStrict")))
        level = command.get("readConcern", {}).get("level", "local")
        pipelines.check_concern(pipeline or [], level, in_transaction=transaction is not None)
        found = pipelines.run(self._source(namespace, transaction), pipeline or [])
        return await self.opened(Cursor(namespace, found), size)

    def _source(self, namespace: str, transaction: Transaction | None) -> Source:
        collection = self.storage.collection(namespace)
        looking = transaction or Transaction(self.storage, explicit=False)
        return Source(
            lambda query: looking.find(namespace, query),
            lambda: self.search_indexes.documents(namespace, collection.documents),
            collection.search_indexes,
            searches=self._search,
        )

    def _now(self, namespace: str, key: Any) -> Document | None:
        return self.storage.collection(namespace).documents.get(key)

    async def opened(self, cursor: Cursor, size: int, *, single: bool = False) -> Document:
        """The first batch of `cursor`; it stays open where there is more."""
        batch = await cursor.take(size, 0) if size else []
        number = 0
        if not cursor.done and not single:
            number = next(self._cursor_ids)
            self._cursors[number] = cursor
        return _batch(cursor, number, "firstBatch", batch)

    async def get_more(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        number = command["getMore"]
        cursor = self._cursors.get(number)
        if cursor is None:
            raise Refusal(CURSOR_NOT_FOUND, f"cursor id {number} not found")
        batch = await cursor.take(command.get("batchSize"), command.get("maxTimeMS", 1000))
        if cursor.done:
            del self._cursors[number]
        return _batch(cursor, 0 if cursor.done else number, "nextBatch", batch)

    async def kill_cursors(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        killed = [number for number in command["cursors"] if self._cursors.pop(number, None)]
        return {"cursorsKilled": killed, "cursorsNotFound": [], "cursorsAlive": [], "cursorsUnknown": []}


def _batch(cursor: Cursor, number: int, name: str, documents: list[Document]) -> Document:
    told: Document = {"id": number, "ns": cursor.namespace, name: documents}
    token = cursor.token()
    return {"cursor": {**told, "postBatchResumeToken": token} if token else told}


__all__ = ["Reads"]
