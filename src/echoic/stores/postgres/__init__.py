"""The store for many processes: PostgreSQL with pgvector. Writers of a scope queue at the lock of its row.

`schema` has the tables, `database` the connections and their recovery, `load` the cache of partitions,
`maintenance` erasure and what it can promise. The store detects PgBouncer in transaction mode, and then uses
no prepared statements and no notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreUnavailable
from echoic.partition import Partition
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    LISTED,
    Attach,
    Change,
    Erasable,
    Erased,
    Finding,
    Index,
    Record,
    Uses,
    Waiting,
    Wanted,
    check_model,
    model_from,
    model_text,
    not_open,
    segments_around,
)
from echoic.stores.postgres import maintenance, schema
from echoic.stores.postgres.changes import RECORD, PostgresScopeChanges, index_again, listed_of, record_of
from echoic.stores.postgres.database import LOST, Connection, Database
from echoic.stores.postgres.load import PATIENCE_S, VERSION, FreshPartitions, compact, likely_rows, shown
from echoic.stores.postgres.maintenance import examined
from echoic.stores.scope_state import own_copy
from echoic.text import ANALYSIS
from echoic.types import EmbeddingSpec, Scope

CACHE_BYTES = 256 << 20
"""Memory limit of loaded partitions, with their records."""
POOL = 10
"""The most connections; with the listening one, eleven a process."""
WAIT_S = 10.0
"""Seconds a write or read waits for a server that restarts."""
STALE_S = 300.0
"""Seconds for which loaded scopes answer while the server is unreachable."""
NARROW_ABOVE = 50_000
"""Rows of a scope from which the database searches: as many as `CACHE_BYTES` hold, since within a call
loading is faster at every size measured. Source: "threshold" of benchmarks/results/stores.json;
docs/scale.md."""

_OF = "from {s}.records where scope = (select id from {s}.scopes where deployment = $1 and usr = $2)"
_READ = f"select {RECORD} {_OF} and kind = $3 and name = any($4::text[])"
_ROWS = f"select {RECORD} {_OF} and seq = any($3::bigint[])"
_SCAN = f"""select {RECORD} {_OF} and kind = $3 and ($4::text is null or key = $4)
  and seq > $5 and seq < $6 order by seq {{order}} limit $7"""
_LISTED = """select r.seq, r.kind, r.name, r.key, r.version, r.data, s.deployment, s.usr
  from {s}.records r join {s}.scopes s on s.id = r.scope
  where r.kind = 'conversation' and s.deployment = $1"""
_LATEST = """select r.seq, r.kind, r.name, r.key, r.version, r.data, s.deployment, s.usr
  from unnest($1::text[], $2::text[], $3::text[]) as asked (deployment, usr, key)
  join {s}.scopes s on s.deployment = asked.deployment and s.usr = asked.usr
  cross join lateral (select * from {s}.records where scope = s.id and kind = $4 and key = asked.key
    order by seq desc limit 1) r"""
_WAITING = """select r.seq, r.kind, r.name, r.key, r.version, r.data, s.deployment, s.usr
  from {s}.pending p join {s}.records r on r.scope = p.scope and r.seq = p.seq
  join {s}.scopes s on s.id = p.scope order by p.place limit $1"""
_SCOPES = """select deployment, usr from {s}.scopes s where ($1::text is null or deployment = $1)
  and exists (select from {s}.records where scope = s.id) order by id"""
_SIZE = "select next_row from {s}.scopes where deployment = $1 and usr = $2"
_COUNTS = """select (select count(*) from {s}.scopes), (select count(*) from {s}.records),
  (select count(*) from {s}.pending), (select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
  join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and relname = any($2::text[]))"""
_END = 1 << 62


class PostgresStore:
    """Memory in PostgreSQL with pgvector, shared by any number of processes.

    Args:
        dsn: a DSN for asyncpg, "postgresql://user:password@host/database".
        name: the schema of the tables; created if it does not exist.
        cache_bytes: memory limit of loaded scopes; the least recently used ones are evicted.
        pool: maximum number of connections.
        wait_s: how long to wait for a lost server before raising `StoreUnavailable`.
        stale_s: how long loaded scopes keep answering `load` and `rows` while the server is unreachable.
        fence: enable row-level security on the tables, as a second barrier between users. It must apply to
            the role that connects. A store that has it keeps it, whatever is passed here.
        listen: receive notifications of other processes' writes; only latency depends on it.
        notify: send notifications of writes. Commits that notify wait for each other.
        narrow_above: number of rows from which the database searches a scope; raise it with `cache_bytes`.
    """

    def __init__(
        self,
        dsn: str,
        name: str = "echoic",
        *,
        cache_bytes: int = CACHE_BYTES,
        pool: int = POOL,
        wait_s: float = WAIT_S,
        stale_s: float = STALE_S,
        fence: bool = False,
        listen: bool = True,
        notify: bool = True,
        narrow_above: int = NARROW_ABOVE,
    ) -> None:
        self.narrow_above = narrow_above
        self._database = Database(dsn, schema.checked_schema(name), pool=pool, wait_s=wait_s, fence=fence)
        self._fresh = FreshPartitions(self._database, cache_bytes=cache_bytes, stale_s=stale_s, listen=listen)
        self._channel = self._database.channel if notify else ""
        self._index: Index | None = None
        self._spec = EmbeddingSpec("", 0)
        self._turns: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._opening = asyncio.Lock()
        self._uses = Uses()

    @property
    def failure(self) -> str | None:
        """Why the server could not be reached last time, so that answers may be old; None if it was."""
        return self._fresh.failure

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        async with self._opening:
            if self._index is not None:
                return
            try:
                await self._database.open()
                await self._settle(embedding, index)
            except BaseException as error:  # noqa: BLE001 - also where it is cancelled, nothing stays open
                await self._database.aclose()
                raise _not_opened(error) or error from None
            self._spec = embedding
            self._fresh.start(embedding.dimensions)
            self._index = index

    async def aclose(self) -> None:
        async with self._opening:
            self._index = None
            await self._fresh.stop()
            await self._uses.ended()
            await self._database.aclose()

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        async with self._at_work() as index:
            if not changes:
                return
            attaches = any(isinstance(change, Attach) for change in changes)

            async def work(connection: Connection) -> int:
                made = PostgresScopeChanges(connection, self._database.names, index, self._channel)
                if not await made.begin(scope, changes):
                    return 0  # a scope is created with its first record
                if attaches:
                    check_model(model_from(made.model), self._spec, "the store")
                made.apply(changes)
                await made.finish()
                return made.version

            # queue in this process first: writers of one scope must not hold every connection
            async with self._turns.setdefault(scope, asyncio.Lock()):
                version = await self._database.change(scope, work)
            self._fresh.wrote(scope, version)

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        found = {r.id: r for r in await self._records(scope, _READ, kind, list(dict.fromkeys(ids)))}
        return [own_copy(found[name]) for name in ids if name in found]

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        ours = list(dict.fromkeys(row for row in rows if 0 <= row < FIRST_UNSEARCHABLE))
        async with self._at_work():
            found = {
                r.seq: r
                for r in await self._fresh.rows(
                    scope, ours, lambda once: self._records(scope, _ROWS, ours, once=once)
                )
            }
        return [own_copy(found[row]) for row in rows if row in found]

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
        first, last = (-1, after if after >= 0 else _END) if newest_first else (after, _END)
        statement = _SCAN.replace("{order}", "desc" if newest_first else "asc")
        return await self._records(scope, statement, kind, key, first, last, limit)

    async def load(self, scope: Scope) -> Partition:
        async with self._at_work():
            return await self._fresh.load(scope)

    async def waiting(self, limit: int) -> list[Waiting]:
        async with self._at_work():
            found = await self._fetch(None, _WAITING, limit)
        return [Waiting(scope=Scope(row[6], row[7] or None), record=listed_of(row)) for row in found]

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        async with self._at_work() as index:
            names = self._database.names

            async def delete(connection: Connection) -> maintenance.DeletedRows:
                if changes is None:
                    return await maintenance.delete_scope(connection, names, scope, self._channel)
                return await maintenance.delete_records(
                    connection, names, index, scope, changes, channel=self._channel
                )

            async with self._turns.setdefault(scope, asyncio.Lock()):
                gone = await self._database.change(scope, delete)
            # no copy in this process may outlive the receipt
            self._fresh.drop(scope)
            if not gone.number:
                return Erased(verified=True)
            await maintenance.vacuum(self._database)
            verified, searched = await self._database.read(
                None, lambda connection: maintenance.verify(connection, names, gone, index), snapshot=True
            )
        return Erased(
            records=gone.kinds,
            rewritten=len(gone.rewritten),
            vectors=gone.vectors,
            verified=verified,
            bytes_searched=searched,
        )

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        async with self._at_work():
            return [Scope(row[0], row[1] or None) for row in await self._fetch(None, _SCOPES, deployment)]

    async def listed(self, wanted: Wanted) -> list[tuple[Scope, Record]]:
        asked: list[Any] = [wanted.deployment]
        where = ""
        for field, how, given in (
            ("status", "= any(${n}::text[])", list(wanted.status) or None),
            ("agent", "= ${n}", wanted.agent),
            ("started_at", ">= ${n}", wanted.since),
            ("started_at", "< ${n}", wanted.until),
        ):
            if given is not None:
                asked.append(given)
                where += f""" and (r.data->>'{field}') collate "C" {how.replace("{n}", str(len(asked)))}"""
        if wanted.user is not None:
            asked.append(wanted.user)
            where += f" and s.usr = ${len(asked)}"
        if wanted.newest is not None:
            asked.append(wanted.newest)
            where += f""" order by (r.data->>'started_at') collate "C" desc limit ${len(asked)}"""
        whose = None if wanted.user is None else Scope(wanted.deployment, wanted.user)
        async with self._at_work():
            found = await self._fetch(whose, _LISTED + where, *asked) if wanted.kind == LISTED else []
        return [(Scope(row[6], row[7] or None), listed_of(row)) for row in found]

    async def latest(self, kind: str, keys: Sequence[tuple[Scope, str]]) -> list[tuple[Scope, Record]]:
        asked = zip(*((scope.deployment, scope.user or "", key) for scope, key in keys), strict=True)
        async with self._at_work():
            found = await self._fetch(None, _LATEST, *map(list, asked), kind) if keys else []
        return [(Scope(row[6], row[7] or None), listed_of(row)) for row in found]

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        async with self._at_work() as index:
            waiting = await self._database.change(
                None, lambda c: index_again(c, self._database.names, index, model_text(embedding))
            )
            self._spec = embedding
            self._fresh.clear(embedding.dimensions)
            return waiting

    async def size(self, scope: Scope) -> int:
        """Rows of `scope`; see `Narrows`."""
        async with self._at_work():
            loaded = self._fresh.size(scope)
            if loaded is not None:  # approximate, but without a query
                return loaded
            found = await self._fetch(scope, _SIZE, scope.deployment, scope.user or "")
        return int(found[0][0]) if found else 0

    async def narrow(
        self, scope: Scope, text: str, vector: NDArray[np.float32] | None, *, limit: int, include_past: bool
    ) -> Partition:
        """The likely rows of `scope`; see `Narrows`."""
        names = self._database.names

        async def work(connection: Connection) -> Partition:
            found = await connection.fetchrow(names.sql(VERSION), scope.deployment, scope.user or "")
            if found is None:
                return Partition(self._spec.dimensions)
            rows = await likely_rows(
                connection, names, found[0], text, vector, limit=limit, include_past=include_past
            )
            partition = await compact(
                connection, names, found[0], segments_around(rows), self._spec.dimensions
            )
            partition.version = found[1]
            partition.asked = shown(vector, limit)
            return partition

        async with self._at_work():
            return await self._database.read(scope, work, snapshot=True)

    async def check(self) -> Mapping[str, Any]:
        names = self._database.names

        async def facts(connection: Connection) -> dict[str, Any]:
            counts = await connection.fetchrow(names.sql(_COUNTS), names.schema, list(schema.TABLES))
            return {
                "engine": f"PostgreSQL {await connection.fetchval('show server_version')}",
                "pgvector": await connection.fetchval(
                    "select extversion from pg_extension where extname = 'vector'"
                ),
                "schema_name": names.schema,
                "schema": schema.VERSION,
                "embedding": await schema.get_meta(connection, names, "embedding"),
                **dict(zip(("scopes", "records", "waiting", "bytes"), counts, strict=True)),
                "synchronous_commit": await connection.fetchval("show synchronous_commit"),
                "fsync": await connection.fetchval("show fsync"),
            }

        async with self._at_work():
            found = await self._database.read(None, facts, snapshot=True)
            failure = await self._write_failure()
        return {
            **found,
            **self._fresh.facts,
            "pooler": not self._database.direct,
            "fence": self._database.fence,
            "durable": found["fsync"] == "on" and found["synchronous_commit"] != "off",
            "writable": failure is None,
            "failure": failure,
        }

    async def examine(self) -> list[Finding]:
        """The server's health and configuration; see `Examines`."""
        async with self._at_work():
            return await examined(self._database)

    async def _write_failure(self) -> str | None:
        names = self._database.names
        try:
            await self._database.change(None, lambda c: schema.set_meta(c, names, "checked", "ok"))
        except StoreUnavailable as error:
            return str(error)
        return None

    async def _records(self, scope: Scope, statement: str, *values: Any, once: bool = False) -> list[Record]:
        async with self._at_work():
            whose = (scope.deployment, scope.user or "")
            found = await self._fetch(scope, statement, *whose, *values, once=once)
        return [record_of(row) for row in found]

    async def _fetch(
        self, scope: Scope | None, statement: str, *values: Any, once: bool = False
    ) -> list[Any]:
        sql = self._database.names.sql(statement)
        wait_s = PATIENCE_S if once else None
        found: list[Any] = await self._database.read(
            scope, lambda connection: connection.fetch(sql, *values), wait_s=wait_s, once=once
        )
        return found

    @contextlib.asynccontextmanager
    async def _at_work(self) -> AsyncIterator[Index]:
        """The index while the store is open; `aclose` waits until this block ends."""
        if self._index is None:
            raise not_open()
        with self._uses:
            yield self._index

    async def _settle(self, embedding: EmbeddingSpec, index: Index) -> None:
        """Check or record the model of the vectors and the analysis version."""
        names, ours = self._database.names, model_text(embedding)

        async def meta(connection: Connection) -> tuple[str | None, str | None]:
            return (
                await schema.get_meta(connection, names, "embedding"),
                await schema.get_meta(connection, names, "analysis"),
            )

        async def begin(connection: Connection) -> None:
            await connection.execute("select pg_advisory_xact_lock($1)", names.lock)
            theirs, analysis = await meta(connection)
            if theirs is None:
                await schema.set_meta(connection, names, "embedding", ours)
            if analysis not in {None, str(ANALYSIS)}:
                await index_again(connection, names, index, None)
            await schema.set_meta(connection, names, "analysis", str(ANALYSIS))

        theirs, analysis = await self._database.read(None, meta)
        if theirs is not None:
            check_model(model_from(theirs), embedding, "the store")
        if theirs is None or analysis != str(ANALYSIS):
            await self._database.change(None, begin)
            await self._settle(embedding, index)  # another process may have been first, with another model


def _not_opened(error: BaseException) -> Exception | None:
    """A clearer error in place of `error`, or None. It does not repeat the URL, which may hold a password."""
    if isinstance(error, LOST):
        return StoreUnavailable(
            f"PostgreSQL could not be reached ({type(error).__name__}: {error}). Is it running, and is the "
            "URL right?"
        )
    return None


__all__ = ["CACHE_BYTES", "NARROW_ABOVE", "POOL", "STALE_S", "WAIT_S", "PostgresStore"]
