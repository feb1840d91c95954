"""The MongoDB store: a replica set, Atlas or a sharded cluster shared by many processes.

`schema` has the layout; a write is one transaction (`changes`). The store needs the extra `mongodb`. It does
not know what a record means, except for the collections of one published demo that it adopts
(`changes.adopt`).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EchoicError, StoreUnavailable
from echoic.partition import Partition
from echoic.stores.apply import begins
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    Attach,
    Change,
    Erasable,
    Erased,
    Finding,
    Index,
    Record,
    Waiting,
    Wanted,
    not_open,
)
from echoic.stores.mongodb.changes import (
    WITHOUT_VECTORS,
    Clock,
    MongoScopeChanges,
    adopt,
    claim,
    index_again,
    unlike,
)
from echoic.stores.mongodb.connection import ChangeStream, DatabaseClient, connect, stopped
from echoic.stores.mongodb.load import Moved, catch_up, head_of, likely_rows, narrowed, pipelines, shown
from echoic.stores.mongodb.maintenance import BUILT_S, erase, examined, facts, not_allowed
from echoic.stores.mongodb.schema import (
    FUSING_SERVER,
    Collections,
    Document,
    Session,
    checked_meta,
    listed_of,
    make_indexes,
    make_search_indexes,
    model_fields,
    moment,
    record_of,
    scope_fields,
    scope_of,
    search_states,
    searchable,
    settle,
)
from echoic.stores.scope_state import Loaded, ScopeCache
from echoic.text import ANALYSIS
from echoic.types import EmbeddingSpec, Scope

CACHE_BYTES = 256 << 20
"""Memory limit of loaded scopes: about 50,000 memories with 384-dimension vectors and word pieces."""
NARROW_ABOVE = 50_000
"""Rows of a scope from which the database searches: about what `CACHE_BYTES` hold, so that one large scope
does not evict all others. That loading is faster up to there was measured on PostgreSQL (docs/scale.md)."""
TIMEOUT_S = 10.0
_NEVER = sys.maxsize
_LOOK_S, _LONGEST_LOOK_S = 0.5, 30.0
"""First and longest pause between two checks of search indexes being built, which takes minutes."""


@dataclass(slots=True)
class _OpenStore:
    connection: DatabaseClient
    embedding: EmbeddingSpec
    index: Index
    cache: ScopeCache[Loaded]
    watch: ChangeStream | None = None
    searching: asyncio.Task[None] | None = None
    adopted: int = 0
    locks: WeakValueDictionary[Scope, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def lock(self, scope: Scope) -> asyncio.Lock:
        """Held while this process writes to a scope, to avoid conflicts in the database."""
        return self.locks.setdefault(scope, asyncio.Lock())

    @property
    def wanted(self) -> Document:
        """The model and analysis version that every scope must have."""
        return {"analysis": ANALYSIS, **model_fields(self.embedding)}


class MongoDBStore:
    """Memory in a MongoDB database."""

    def __init__(
        self,
        url: str,
        *,
        cache_bytes: int = CACHE_BYTES,
        narrow_above: int = NARROW_ABOVE,
        timeout_s: float = TIMEOUT_S,
        clock: Clock = time.time_ns,
    ) -> None:
        self._url = url
        self._cache_bytes, self._narrow_above, self._timeout_s = cache_bytes, narrow_above, timeout_s
        self._clock, self._ticked = clock, 0
        self.narrow_above: int = _NEVER
        """The given threshold once the search indexes answer; infinite before, and without search."""
        self._live: _OpenStore | None = None
        self._opening = asyncio.Lock()
        self._closing: asyncio.Future[None] | None = None

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        async with self._opening:
            if self._live is not None:
                return
            connection = await connect(self._url, self._timeout_s)
            live = _OpenStore(connection, embedding, index, ScopeCache(self._cache_bytes))
            try:
                await self._prepare(live)
            except BaseException:
                await connection.aclose()
                raise
            live.watch = ChangeStream(
                connection.collections,
                lambda scope: live.cache.get(scope) is not None,
                lambda scope: self._refresh(live, scope),
            )
            live.searching = asyncio.ensure_future(self._await_search(live))
            self._live = live

    async def _prepare(self, live: _OpenStore) -> None:
        connection, collections = live.connection, live.connection.collections
        async with connection.used():
            meta = await settle(collections, live.embedding, connection.where)
            await make_indexes(collections)
        # work that may take long has no time limit
        async with connection.used(limited=False):
            again = meta.get("unfinished") or meta.get("analysis") != ANALYSIS
            # or a server of before began one while all were indexed again
            if again or await collections.scopes.find_one(unlike(live.wanted), {"_id": 1}):
                await index_again(connection, live.wanted, live.index, self._tick)
            live.adopted = await adopt(connection, live.embedding, live.index, self._tick, live.wanted)

    async def aclose(self) -> None:
        live, self._live = self._live, None
        self.narrow_above = _NEVER
        if live is not None:
            self._closing = asyncio.ensure_future(self._let_go(live))
        if self._closing is not None:
            await asyncio.shield(self._closing)

    @staticmethod
    async def _let_go(live: _OpenStore) -> None:
        if live.searching is not None:
            await stopped(live.searching)
        if live.watch is not None:
            await live.watch.aclose()
        await live.connection.aclose()
        live.cache.clear()

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        live = self._opened()
        if not changes:
            return
        needs_scope = begins(changes)
        attaches = any(isinstance(change, Attach) for change in changes)

        async with live.connection.used() as collections, live.lock(scope):

            async def work(session: Session) -> None:
                begin = {"begun": self._tick(), **live.wanted} if needs_scope else None
                head = await claim(collections, session, scope, begin=begin)
                if head is None:
                    return  # a scope begins with its first record
                if head["version"] == 1:
                    await self._begun(live, collections, session, head)
                if attaches:
                    await self._check_model(live, collections, session, head)
                change = MongoScopeChanges(collections, session, head, live.index, self._tick)
                await change.gather(changes)
                change.apply(changes)
                await change.finish()

            await live.connection.transact(work)

    @staticmethod
    async def _begun(live: _OpenStore, collections: Collections, session: Session, head: Document) -> None:
        """Have a new scope wait for vectors of the model that the database is for now.

        Another process may have changed it since this one opened the database. What is said is stored all the
        same, and the other process embeds it.
        """
        meta = await collections.meta.find_one({"_id": "store"}, session=session) or {}
        model = {name: meta[name] for name in model_fields(live.embedding) if name in meta}
        if any(head[name] != value for name, value in model.items()):
            await collections.scopes.update_one({"_id": head["_id"]}, {"$set": model}, session=session)
            head.update(model)

    @staticmethod
    async def _check_model(
        live: _OpenStore, collections: Collections, session: Session, head: Document
    ) -> None:
        meta = await collections.meta.find_one({"_id": "store"}, session=session)
        checked_meta(meta, live.embedding, live.connection.where)
        if any(head.get(name) != value for name, value in model_fields(live.embedding).items()):
            raise StoreUnavailable("this scope is being embedded anew by another process. Retry in a moment.")

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        self._opened()
        query = {"kind": kind, "id": {"$in": list(dict.fromkeys(ids))}}
        found = {record.id: record for record in await self._find(scope, query)} if ids else {}
        return [found[name] for name in ids if name in found]

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        self._opened()
        asked = sorted({row for row in rows if 0 <= row < FIRST_UNSEARCHABLE})
        found = {r.seq: r for r in await self._find(scope, {"seq": {"$in": asked}})} if asked else {}
        return [found[row] for row in rows if row in found]

    async def scan(
        self,
        scope: Scope,
        kind: str,
        *,
        key: str | None = None,
        after: int = -1,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Record]:
        query: Document = {"kind": kind}
        if key is not None:
            query["key"] = key
        # always bounded: a partial index serves no other query
        query["seq"] = (
            {"$lt": after} if newest_first and after >= 0 else {"$gt": -1 if newest_first else after}
        )
        if limit < 1:
            self._opened()
            return []
        return await self._find(scope, query, order=-1 if newest_first else 1, limit=limit)

    async def _find(self, scope: Scope, query: Document, *, order: int = 0, limit: int = 0) -> list[Record]:
        async with self._opened().connection.used() as collections:
            cursor = collections.records.find({**scope_fields(scope), **query}, WITHOUT_VECTORS)
            if order:
                cursor = cursor.sort("seq", order).limit(limit)
            return [record_of(document) async for document in cursor]

    async def listed(self, wanted: Wanted) -> list[tuple[Scope, Record]]:
        query: Document = {"kind": wanted.kind, "deploymentId": wanted.deployment, "isGlobal": False}
        if wanted.user is not None:
            query |= scope_fields(Scope(wanted.deployment, wanted.user))
        if wanted.status:
            query["data.status"] = {"$in": list(wanted.status)}
        if wanted.agent is not None:
            query["data.agent"] = wanted.agent
        times = {"$gte": wanted.since, "$lt": wanted.until}
        if any(time is not None for time in times.values()):
            query["data.started_at"] = {how: time for how, time in times.items() if time is not None}
        async with self._opened().connection.used() as collections:
            found = collections.records.find(query, WITHOUT_VECTORS)
            if wanted.newest is not None:
                found = found.sort("data.started_at", -1).limit(wanted.newest)
            return [(scope_of(document), listed_of(document)) async for document in found]

    async def load(self, scope: Scope) -> Partition:
        live = self._opened()
        async with live.connection.used() as collections:
            while True:
                head = await head_of(collections, scope)
                if head is None:
                    live.cache.drop(scope)
                    return Partition(live.embedding.dimensions)
                loaded = live.cache.get(scope)
                if loaded and loaded.number == head["begun"] and loaded.partition.version == head["version"]:
                    return loaded.partition
                with contextlib.suppress(Moved):
                    return await self._catch_up(live, collections, scope)

    async def _catch_up(self, live: _OpenStore, collections: Collections, scope: Scope) -> Partition:
        async with live.lock(scope):
            head = await head_of(collections, scope)
            if head is None:
                raise Moved
            loaded = live.cache.get(scope)
            dimensions = live.embedding.dimensions
            if loaded is None or loaded.number != head["begun"]:
                loaded = Loaded(Partition(dimensions), head["begun"], 0)
            if loaded.partition.version != head["version"]:
                model = model_fields(live.embedding)
                await catch_up(collections, scope, loaded.partition, head, model)
            live.cache.put(scope, loaded)
            return loaded.partition

    async def _refresh(self, live: _OpenStore, scope: Scope) -> None:
        if self._live is live and live.cache.get(scope) is not None:
            await self.load(scope)

    async def waiting(self, limit: int) -> list[Waiting]:
        async with self._opened().connection.used() as collections:
            if limit < 1:
                return []
            cursor = collections.records.find({"waitsSince": {"$exists": True}}, WITHOUT_VECTORS)
            ordered = cursor.sort([("waitsSince", 1), ("seq", 1)]).limit(limit)
            return [Waiting(scope=scope_of(d), record=listed_of(d)) async for d in ordered]

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        live = self._opened()
        live.cache.drop(scope)  # no copy in this process may outlive the receipt
        await live.connection.ask()
        async with live.connection.used(limited=False), live.lock(scope):
            erased = await erase(live.connection, scope, changes, live.index, self._tick)
        live.cache.drop(scope)
        return erased

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        query: Document = {"records": {"$gt": 0}}
        if deployment is not None:
            query["_id.deploymentId"] = deployment
        async with self._opened().connection.used() as collections:
            found = collections.scopes.find(query, {"_id": 1}).sort("begun", 1)
            return [scope_of(document["_id"]) async for document in found]

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        live = self._opened()
        await live.connection.ask()
        async with live.connection.used(limited=False) as collections:
            wanted = {"analysis": ANALYSIS, **model_fields(embedding)}
            try:
                await index_again(live.connection, wanted, live.index, self._tick, detach=True)
            finally:  # the database names the wanted model, whether or not all scopes are done
                meta = await collections.meta.find_one({"_id": "store"}) or {}
                if all(meta.get(name) == value for name, value in wanted.items()):
                    live.embedding = embedding
            live.cache.clear()
            self.narrow_above = _NEVER
            waiting = await collections.records.count_documents({"waitsSince": {"$exists": True}})
        if live.searching is not None:
            await stopped(live.searching)
        live.searching = asyncio.ensure_future(self._await_search(live))
        return waiting

    async def size(self, scope: Scope) -> int:
        async with self._opened().connection.used() as collections:
            head = await head_of(collections, scope)
            return int(head["nextRow"]) if head else 0

    async def narrow(
        self, scope: Scope, text: str, vector: NDArray[np.float32] | None, *, limit: int, include_past: bool
    ) -> Partition:
        live = self._opened()
        if self.narrow_above == _NEVER:
            return await self.load(scope)
        fusing = tuple(live.connection.facts["numbers"]) >= FUSING_SERVER
        asked = pipelines(scope, text, vector, limit=limit, include_past=include_past, fusing=fusing)
        async with live.connection.used() as collections:
            head = await head_of(collections, scope)
            if head is None:
                return Partition(live.embedding.dimensions)
            if all(head.get(n) == v for n, v in model_fields(live.embedding).items()):
                rows = await likely_rows(collections, scope, asked)
                now = moment(self._clock())
                partition = await narrowed(collections, scope, rows, live.embedding.dimensions, now)
                partition.asked = shown(asked)
                return partition
        return await self.load(scope)  # another process indexes it again: its words are there all the same

    async def until_searchable(self, timeout_s: float) -> bool:
        """Wait for the search indexes; returns whether they answer, False without search."""
        live = self._opened()
        if live.searching is not None:
            await asyncio.wait([live.searching], timeout=timeout_s)
        return self.narrow_above != _NEVER

    async def _await_search(self, live: _OpenStore) -> None:
        """Create the search indexes, and search in the database once they answer."""
        collections, pause_s = live.connection.collections, _LOOK_S
        while True:
            with contextlib.suppress(EchoicError):
                async with live.connection.used():
                    if not await make_search_indexes(collections, live.embedding.dimensions):
                        return
                    if searchable(await search_states(collections)):
                        self.narrow_above = self._narrow_above
                        return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)

    async def check(self) -> Mapping[str, Any]:
        live = self._opened()
        async with live.connection.used():
            found = await facts(live.connection, moment(self._clock()))
        return {
            **found,
            "embedding": f"{live.embedding.model} {live.embedding.dimensions}",
            "taken over": live.adopted,
            "narrows above": None if self.narrow_above == _NEVER else self.narrow_above,
            "change stream": bool(live.watch and live.watch.following),
            "loaded_scopes": len(live.cache),
            "loaded_bytes": live.cache.nbytes,
        }

    async def examine(self) -> list[Finding]:
        """The server's health and configuration; see `Examines`."""
        live = self._opened()
        async with live.connection.used(limited=False):
            missing = await not_allowed(live.connection)
            if "createSearchIndexes" not in missing:  # otherwise the search indexes would never be built
                await self.until_searchable(BUILT_S)
            return await examined(live.connection, live.embedding.dimensions, missing)

    def _opened(self) -> _OpenStore:
        if self._live is None:
            raise not_open()
        return self._live

    def _tick(self) -> int:
        """The time, increasing with each call, which orders pending records."""
        self._ticked = max(self._ticked + 1, self._clock())
        return self._ticked


__all__ = ["CACHE_BYTES", "NARROW_ABOVE", "TIMEOUT_S", "MongoDBStore"]
