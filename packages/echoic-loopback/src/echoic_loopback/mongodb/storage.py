"""Collections with snapshots, transactions, unique indexes and a log of changes. In memory, in one thread.

Isolation is the server's: a transaction reads what was committed when it first looked, the first to write a
document wins, and who comes second in a transaction is told `WriteConflict` at once.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from echoic_loopback.mongodb.indexes import Index, Key
from echoic_loopback.mongodb.matching import Document, compiled, equalities, order, values_at
from echoic_loopback.mongodb.refusals import (
    DUPLICATE_KEY,
    INDEX_OPTIONS_CONFLICT,
    INVALID_NAMESPACE,
    TRANSIENT,
    WRITE_CONFLICT,
    Refusal,
)

LOG_ENTRIES = 20_000
"""Changes kept for streams that begin at an earlier moment."""


class Busy(Exception):
    """Another transaction holds what is to be written; who is outside of any waits until it ends."""

    def __init__(self, holder: Transaction) -> None:
        super().__init__("held by another transaction")
        self.holder = holder


@dataclass(slots=True)
class Collection:
    """The committed documents of one namespace, and what they were for those who still look at the past."""

    documents: dict[Key, Document] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    past: dict[Key, list[tuple[int, Document | None]]] = field(default_factory=dict)
    """By document: before which moment it was what; ascending."""
    search_indexes: dict[str, Any] = field(default_factory=dict)

    def at(self, key: Key, moment: int | None) -> Document | None:
        """A document as it was at `moment`, None for now."""
        if moment is not None:
            for until, document in self.past.get(key, ()):
                if until > moment:
                    return document
        return self.documents.get(key)

    def likely(self, query: Mapping[str, Any]) -> Iterator[Key]:
        """The keys of all committed documents that `query` may find, by the best index there is."""
        bound = equalities(query)
        if "_id" in bound:
            yield bound["_id"]
            return
        best: tuple[int, Index | None] = (0, None)
        for index in self.indexes.values():
            n = 0
            while n < len(index.fields) and index.fields[n] in bound:
                n += 1
            if n > best[0] and index.serves(query):
                best = (n, index)
        n, chosen = best
        if chosen is None:
            yield from list(self.documents)
        else:
            yield from list(chosen.found.get(tuple(bound[path] for path in chosen.fields[:n]), ()))

    def add_index(self, definition: Mapping[str, Any]) -> bool:
        """Build an index; False where the same is there already.

        Raises:
            Refusal: another of its name is there, or documents collide in it.
        """
        index = Index(definition)
        there = self.indexes.get(index.name)
        if there is not None:
            if {**there.definition, "v": 2} == {**index.definition, "v": 2}:
                return False
            raise Refusal(
                INDEX_OPTIONS_CONFLICT,
                f"An existing index has the same name as the requested index: {index.name}",
            )
        entries: set[Key] = set()
        for key, document in self.documents.items():
            entry = index.entry(document)
            if index.unique and entry is not None:
                if entry in entries:
                    raise Refusal(DUPLICATE_KEY, f"E11000 duplicate key error index: {index.name}")
                entries.add(entry)
            index.add(key, document)
        self.indexes[index.name] = index
        return True


Place = tuple[str, Key]
"""A namespace and a document in it."""


class Transaction:
    """Writes that become visible together. Also carries a single statement outside of any."""

    def __init__(self, storage: Storage, *, explicit: bool) -> None:
        self._storage = storage
        self.explicit = explicit
        self.moment: int | None = None
        """What was committed up to here is seen; None: whatever is there at each look."""
        self.writes: dict[Place, Document | None] = {}
        self.entries: dict[tuple[str, str, Key], Key] = {}
        """Unique entries this transaction took, and by which document."""
        self.ended = asyncio.Event()

    def begin(self) -> None:
        """Fix what is seen, at the first look."""
        if self.explicit and self.moment is None:
            self.moment = self._storage.moment
            self._storage.looking.add(self)

    def find(self, namespace: str, query: Mapping[str, Any]) -> list[Document]:
        """Copies of the documents that `query` finds, in the order they were first written."""
        self.begin()
        test = compiled(query)
        collection = self._storage.collections.get(namespace)
        found: dict[Key, Document] = {}
        keys: dict[Key, None] = {}
        if collection is not None:
            keys.update(dict.fromkeys(collection.likely(query)))
            keys.update(dict.fromkeys(collection.past if self.moment is not None else ()))
        keys.update({key: None for space, key in self.writes if space == namespace})
        for key in keys:
            document = self.get(namespace, key)
            if document is not None and test(document):
                found[key] = document
        return [copy.deepcopy(document) for document in found.values()]

    def get(self, namespace: str, key: Key) -> Document | None:
        """One document as this transaction sees it; not a copy."""
        if (namespace, key) in self.writes:
            return self.writes[namespace, key]
        collection = self._storage.collections.get(namespace)
        return collection.at(key, self.moment) if collection else None

    def put(self, namespace: str, document: Document) -> None:
        """Write a document whole.

        Raises:
            Refusal: `WriteConflict`, or `DuplicateKey`.
            Busy: this is no transaction, and one holds the document.
        """
        key = order(document["_id"])
        self._claim((namespace, key))
        collection = self._storage.collection(namespace)
        for index in collection.indexes.values():
            entry = index.entry(document) if index.unique else None
            if entry is not None:
                self._claim_entry(namespace, index, entry, key, document)
        self.writes[namespace, key] = document

    def remove(self, namespace: str, key: Key) -> None:
        """Remove a document; raises as `put` does."""
        self._claim((namespace, key))
        self.writes[namespace, key] = None

    def _claim(self, place: Place) -> None:
        self._hold(place)
        collection = self._storage.collections.get(place[0])
        past = collection.past.get(place[1]) if collection else None
        if self.moment is not None and past and past[-1][0] > self.moment:
            raise conflict()  # who wrote it after this transaction first looked has won

    def _hold(self, thing: tuple[Any, ...]) -> None:
        holder = self._storage.held.setdefault(thing, self)
        if holder is not self:
            if self.explicit:
                raise conflict()
            raise Busy(holder)

    def _claim_entry(self, namespace: str, index: Index, entry: Key, key: Key, document: Document) -> None:
        self._hold((namespace, index.name, entry))
        place = (namespace, index.name, entry)
        mine = self.entries.get(place)
        if mine is not None and mine != key and self._has(namespace, mine, index, entry):
            raise duplicate(namespace, index, document)
        for owner in self._storage.collection(namespace).indexes[index.name].found.get(entry, ()):
            if owner != key and (
                (namespace, owner) not in self.writes or self._has(namespace, owner, index, entry)
            ):
                if self.moment is not None and not self._has(namespace, owner, index, entry):
                    raise conflict()
                raise duplicate(namespace, index, document)
        self.entries[place] = key

    def _has(self, namespace: str, key: Key, index: Index, entry: Key) -> bool:
        document = self.get(namespace, key)
        return document is not None and index.entry(document) == entry

    def commit(self) -> None:
        """Let all writes be seen."""
        self._storage.apply(self)
        self.abort()

    def abort(self) -> None:
        """Let go of everything."""
        self._storage.release(self)
        self.ended.set()


class Storage:
    """All namespaces of a server, and the log that change streams follow."""

    def __init__(self) -> None:
        self.collections: dict[str, Collection] = {}
        self.moment = 0
        self.log: list[dict[str, Any]] = []
        self.log_start = 0
        """The place in the log of its first entry: earlier ones were let go."""
        self.looking: set[Transaction] = set()
        self.held: dict[tuple[Any, ...], Transaction] = {}
        self.grew = asyncio.Event()
        self.changed: list[Collection] = []
        """Those whose past is kept."""

    def collection(self, namespace: str) -> Collection:
        """That of the name, made if it is not there."""
        found = self.collections.get(namespace)
        if found is None:
            found = self.collections[namespace] = Collection()
            found.add_index({"v": 2, "key": {"_id": 1}, "name": "_id_"})
        return found

    def apply(self, transaction: Transaction) -> None:
        """Commit the writes of `transaction`."""
        if not transaction.writes:
            return
        self.moment += 1
        others = any(other is not transaction for other in self.looking)
        for (namespace, key), document in transaction.writes.items():
            collection = self.collection(namespace)
            before = collection.documents.get(key)
            if before is None and document is None:
                continue
            if others:
                collection.past.setdefault(key, []).append((self.moment, before))
                self.changed.append(collection)
            self._replace(collection, key, before, document)
            self.log.append(_event(namespace, before, document))
        if len(self.log) > LOG_ENTRIES:
            self.log_start += LOG_ENTRIES // 2
            del self.log[: LOG_ENTRIES // 2]
        self.grew.set()
        self.grew = asyncio.Event()

    @staticmethod
    def _replace(
        collection: Collection, key: Key, before: Document | None, document: Document | None
    ) -> None:
        for index in collection.indexes.values():
            if before is not None:
                index.drop(key, before)
            if document is not None:
                index.add(key, document)
        if document is None:
            collection.documents.pop(key, None)
        else:
            collection.documents[key] = document

    def release(self, transaction: Transaction) -> None:
        """Forget what `transaction` held, and the past nobody looks at any more."""
        self.looking.discard(transaction)
        for thing in [thing for thing, holder in self.held.items() if holder is transaction]:
            del self.held[thing]
        if not self.looking:
            for collection in self.changed:
                collection.past.clear()
            self.changed.clear()


def _event(namespace: str, before: Document | None, after: Document | None) -> dict[str, Any]:
    event: dict[str, Any] = {"ns": namespace, "documentKey": {"_id": (after or before or {})["_id"]}}
    if after is None:
        return {**event, "operationType": "delete"}
    if before is None:
        return {**event, "operationType": "insert", "fullDocument": after}
    updated = {name: value for name, value in after.items() if name not in before or before[name] != value}
    removed = [name for name in before if name not in after]
    description = {"updatedFields": updated, "removedFields": removed, "truncatedArrays": []}
    return {**event, "operationType": "update", "updateDescription": description}


def namespace_of(command: Mapping[str, Any]) -> str:
    """The namespace a command is about: its database, and the collection that its first field names.

    Raises:
        Refusal: there is no collection of such a name.
    """
    collection = next(iter(command.values()))
    if not isinstance(collection, str) or not collection or "$" in collection or "\0" in collection:
        raise Refusal(INVALID_NAMESPACE, f"Invalid collection name: {collection!r}")
    return f"{command['$db']}.{collection}"


def conflict() -> Refusal:
    """Another operation came first."""
    return Refusal(
        WRITE_CONFLICT,
        "Caused by :: Write conflict during plan execution and yielding is disabled. "
        ":: Please retry your operation or multi-document transaction.",
        labels=[TRANSIENT],
    )


def duplicate(namespace: str, index: Index, document: Mapping[str, Any]) -> Refusal:
    """A unique index has the entry already."""
    values = {path: (values_at(document, path) or [None])[0] for path in index.fields}
    return Refusal(
        DUPLICATE_KEY,
        f"E11000 duplicate key error collection: {namespace} index: {index.name} dup key: {values}",
    )
