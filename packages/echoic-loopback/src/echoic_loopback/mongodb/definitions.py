"""Commands that define: collections, indexes, search indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echoic_loopback.mongodb.matching import Document
from echoic_loopback.mongodb.reads import Reads
from echoic_loopback.mongodb.refusals import NAMESPACE_NOT_FOUND, SEARCH_NOT_ENABLED, Refusal, unknown_fields
from echoic_loopback.mongodb.search_indexes import SearchIndex
from echoic_loopback.mongodb.storage import Storage, Transaction, namespace_of
from echoic_loopback.mongodb.streams import FIRST_BATCH, Cursor


class Definitions:
    """What makes, lists and removes collections and indexes."""

    def __init__(self, storage: Storage, reads: Reads, *, search: bool, build_looks: int) -> None:
        self.storage, self._reads = storage, reads
        self._search, self._build_looks = search, build_looks

    async def create_indexes(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        collection = self.storage.collection(namespace_of(command))
        before = len(collection.indexes)
        for definition in command["indexes"]:
            collection.add_index(definition)
        return {"numIndexesBefore": before, "numIndexesAfter": len(collection.indexes)}

    async def list_indexes(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)
        if namespace not in self.storage.collections:
            raise Refusal(NAMESPACE_NOT_FOUND, f"ns does not exist: {namespace}")
        listed = [
            {"v": 2, **index.definition} for index in self.storage.collections[namespace].indexes.values()
        ]
        return await self._reads.opened(Cursor(namespace, listed), FIRST_BATCH)

    async def drop_indexes(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        collection = self.storage.collection(namespace_of(command))
        if command["index"] not in collection.indexes or command["index"] == "_id_":
            raise Refusal(27, f"index not found with name [{command['index']}]")
        del collection.indexes[command["index"]]
        return {}

    async def list_collections(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        prefix = f"{command['$db']}."
        names = [n.removeprefix(prefix) for n in self.storage.collections if n.startswith(prefix)]
        wanted = command.get("filter", {}).get("name")
        listed = [{"name": n, "type": "collection", "options": {}} for n in names if wanted in {None, n}]
        return await self._reads.opened(Cursor(f"{prefix}$cmd.listCollections", listed), FIRST_BATCH)

    async def drop(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        self.storage.collections.pop(namespace_of(command), None)
        return {}

    async def drop_database(self, command: Mapping[str, Any], _transaction: Transaction | None) -> Document:
        for namespace in [n for n in self.storage.collections if n.startswith(f"{command['$db']}.")]:
            del self.storage.collections[namespace]
        return {"dropped": command["$db"]}

    def _searching(self, command: Mapping[str, Any]) -> dict[str, SearchIndex]:
        if not self._search:
            raise Refusal(
                SEARCH_NOT_ENABLED,
                "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires "
                "additional configuration. Please connect to Atlas or an AtlasCLI local deployment.",
            )
        return self.storage.collection(namespace_of(command)).search_indexes

    async def create_search_indexes(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        indexes = self._searching(command)
        made = []
        for given in command["indexes"]:
            unknown_fields(list(given), {"name", "type", "definition"}, "createSearchIndexes.indexes")
            name = given.get("name", "default")
            if name in indexes:
                raise Refusal(68, f"Index {name} already exists with a different definition. Drop it first")
            indexes[name] = SearchIndex(
                name, given.get("type", "search"), given["definition"], self._build_looks
            )
            made.append({"id": indexes[name].id, "name": name})
        return {"indexesCreated": made}

    async def update_search_index(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        indexes = self._searching(command)
        found = indexes.get(command.get("name", ""))
        if found is None:
            raise Refusal(27, f"search index {command.get('name')} cannot be found")
        indexes[found.name] = SearchIndex(
            found.name, found.kind, command["definition"], self._build_looks, found.id
        )
        return {}

    async def drop_search_index(
        self, command: Mapping[str, Any], _transaction: Transaction | None
    ) -> Document:
        if self._searching(command).pop(command.get("name", ""), None) is None:
            raise Refusal(27, f"search index {command.get('name')} cannot be found")
        return {}


__all__ = ["Definitions"]
