"""The reference store: in memory, lost with the process. The simplest implementation of the contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

from echoic.stores.base import (
    LISTED,
    Change,
    Erasable,
    Erased,
    Index,
    Put,
    Record,
    Waiting,
    Wanted,
    check_model,
    not_open,
)
from echoic.stores.scope_state import HeldReads, HeldScope, Listings, Queue, Staged
from echoic.types import EmbeddingSpec, Scope

T = TypeVar("T")


class InMemoryStore(HeldReads):
    """A store for tests and trials. `aclose` keeps the contents, so that a test can open it again."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, HeldScope] = {}
        self._listings = Listings()
        self._embedding: EmbeddingSpec | None = None
        self._index: Index | None = None
        self._clock = count().__next__
        self._queue = Queue()

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        if self._embedding is not None:
            check_model(self._embedding, embedding, "this store")
        self._embedding, self._index = embedding, index

    async def aclose(self) -> None:
        self._index = None

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        held = self._held(scope) or self._new(scope)
        staged = held.stage(changes)
        held.commit(staged)
        self._list(scope, staged)
        if any(isinstance(change, Put) for change in changes):
            self._scopes[scope] = held

    async def _ask(self, scope: Scope, question: Callable[[HeldScope], T]) -> T:
        return question(self._held(scope) or self._new(scope))

    async def waiting(self, limit: int) -> list[Waiting]:
        self._opened()
        return [waiting for _, waiting in self._queue.first(limit)]

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        held = self._held(scope)
        if held is None:
            return Erased(verified=True)
        changes = held.drops() if changes is None else changes
        gone, rewritten = held.erasing(changes)
        vectors = held.embedded([*gone, *(old for old, _ in rewritten)])
        # also empty a dropped scope: a caller may hold its partition
        staged = held.stage(changes)
        held.commit(staged)
        self._list(scope, staged)
        if not held.records:
            del self._scopes[scope]
        return Erased(records=held.kinds(gone), rewritten=len(rewritten), vectors=vectors, verified=True)

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        self._opened()
        holding = [scope for scope, held in self._scopes.items() if held.records]
        return [scope for scope in holding if deployment in {None, scope.deployment}]

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        self._opened()
        self._embedding = embedding
        return sum(held.detach_all(embedding.dimensions) for held in self._scopes.values())

    async def check(self) -> Mapping[str, Any]:
        self._opened()
        return {
            "engine": "memory",
            "durable": False,
            "scopes": sum(bool(held.records) for held in self._scopes.values()),
            "records": sum(len(held.records) for held in self._scopes.values()),
            "waiting": len(self._queue),
            "writable": True,
        }

    async def listed(self, wanted: Wanted) -> list[tuple[Scope, Record]]:
        self._opened()
        found = self._listings.find(wanted) if wanted.kind == LISTED else {}
        return [(s, record) for s, ids in found.items() for record in self._scopes[s].read(LISTED, ids)]

    def _list(self, scope: Scope, staged: Staged) -> None:
        for (kind, name), record in staged.records.items():
            if kind == LISTED:
                self._listings.drop(scope, [name])
                self._listings.put(scope, [] if record is None else [record])

    def _opened(self) -> tuple[EmbeddingSpec, Index]:
        if self._index is None or self._embedding is None:
            raise not_open()
        return self._embedding, self._index

    def _new(self, scope: Scope) -> HeldScope:
        embedding, index = self._opened()
        return HeldScope(scope, index, embedding.dimensions, self._clock, self._queue)

    def _held(self, scope: Scope) -> HeldScope | None:
        self._opened()
        return self._scopes.get(scope)
