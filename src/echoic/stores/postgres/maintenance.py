"""Erasure, and checks of a server.

What "verified" means on PostgreSQL: in a new snapshot, no table holds a row of what was erased, none holds a
row without a record, and no segment holds a word that no remaining record says. It is a statement about rows.
A deleted row's bytes stay in its page until a vacuum, which is run at once if this role may (it is postponed
while an older transaction might still see them), and may stay in that page's free space until something is
written there. The write-ahead log, replicas and backups keep copies as long as their operator configured: no
client can reach those, and a receipt does not cover them.

`examine` is for `echoic doctor`: it reads the catalogue, and sends itself one notification, which other
processes ignore.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from echoic.errors import StoreError
from echoic.partition import SEGMENT_ROWS, Segment
from echoic.stores.apply import erasing
from echoic.stores.base import FIRST_UNSEARCHABLE, Erasable, Finding, Index, finding, timed
from echoic.stores.postgres import schema
from echoic.stores.postgres.changes import RECORD, PostgresScopeChanges, record_of
from echoic.stores.postgres.database import LOST, SLOW_S, Connection, Database, let_go
from echoic.stores.postgres.load import ERASED
from echoic.stores.postgres.schema import TABLES, Names
from echoic.types import Scope

log = logging.getLogger(__name__)

_LOCK = "select id from {s}.scopes where deployment = $1 and usr = $2 for update"
_KINDS = "select kind, count(*) from {s}.records where scope = $1 group by kind"
_VECTORS = "select count(*) from {s}.searchable where scope = $1 and e is not null"
_DELETE = """with
  r as (delete from {s}.records where scope = $1), g as (delete from {s}.segments where scope = $1),
  f as (delete from {s}.searchable where scope = $1), t as (delete from {s}.tokens where scope = $1),
  p as (delete from {s}.pending where scope = $1), c as (delete from {s}.scopes where id = $1)
  select case when $2::text <> '' then pg_notify($2, $3) end"""
_LEFT_OF_SCOPE = " union all ".join(
    f"select count(*) from {{s}}.{table} where {column} = $1"  # noqa: S608 - ours
    for table, column in [("scopes", "id"), *((table, "scope") for table in schema.OF_A_SCOPE)]
)
_LEFT_OF_ROWS = " union all ".join(
    [
        *(
            f"select count(*) from {{s}}.{table} where scope = $1 and seq = any($2::bigint[])"  # noqa: S608
            for table in ("records", "searchable", "tokens", "pending")
        ),
        *(
            f"select count(*) from {{s}}.{table} t where scope = $1 and not exists "  # noqa: S608 - ours
            "(select from {s}.records r where r.scope = t.scope and r.seq = t.seq)"
            for table in ("searchable", "tokens", "pending")
        ),
    ]
)
_SEGMENTS = "select number, words from {s}.segments where scope = $1 and number = any($2::int[])"
_ROWS = f"select {RECORD} from {{s}}.records where scope = $1 and seq between $2 and $3"  # noqa: S608 - ours
_VACUUM = "vacuum (skip_locked) " + ", ".join(f"{{s}}.{table}" for table in schema.TABLES)


_VACUUM_S = 30.0
"""Time limit of a vacuum; a table that takes longer is left to the automatic one."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    number: int = 0
    """The number of the scope; 0 if there is none."""
    whole: bool = False
    rows: Sequence[int] = ()
    """The positions of the records, unless the whole scope was deleted."""
    rewritten: Sequence[int] = ()
    """The positions of rows of which only the replaced content was deleted."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    vectors: int = 0


async def delete_scope(connection: Connection, names: Names, scope: Scope, channel: str) -> DeletedRows:
    number = await connection.fetchval(names.sql(_LOCK), scope.deployment, scope.user or "")
    if number is None:
        return DeletedRows()
    kinds = dict(await connection.fetch(names.sql(_KINDS), number, timeout=SLOW_S))
    vectors = await connection.fetchval(names.sql(_VECTORS), number, timeout=SLOW_S)
    await connection.execute(names.sql(_DELETE), number, channel, f"{number} {ERASED}", timeout=SLOW_S)
    return DeletedRows(number=number, whole=True, kinds=kinds, vectors=vectors)


async def delete_records(
    connection: Connection,
    names: Names,
    index: Index,
    scope: Scope,
    erased: Sequence[Erasable],
    *,
    channel: str,
) -> DeletedRows:
    """Delete and replace records of `scope`, and the scope itself with its last record."""
    changes = PostgresScopeChanges(connection, names, index, channel)
    if not await changes.begin(scope, erased):
        return DeletedRows()
    there = changes.found
    vectors = sum(changes.embedded(record) for record in there)
    records, rewritten = erasing(there, erased)
    changes.apply(erased)
    await changes.finish()
    left = await connection.fetchval(
        names.sql("select exists (select from {s}.records where scope = $1)"), changes.number
    )
    if not left:  # no user's name stays without data
        await connection.execute(names.sql(_DELETE), changes.number, channel, f"{changes.number} {ERASED}")
    return DeletedRows(
        number=changes.number,
        whole=not left,
        rows=sorted(record.seq for record in records),
        rewritten=sorted(record.seq for record, _ in rewritten),
        kinds=dict(Counter(record.kind for record in records)),
        vectors=vectors,
    )


async def verify(connection: Connection, names: Names, gone: DeletedRows, index: Index) -> tuple[bool, int]:
    """Whether nothing of `gone` is left, and how many bytes were searched.

    Run it in a transaction that sees one state, as an operator: behind the fence of a deleted scope
    everything would look empty.
    """
    if gone.whole:
        left = await connection.fetch(names.sql(_LEFT_OF_SCOPE), gone.number, timeout=SLOW_S)
        return not any(row[0] for row in left), 0
    left = await connection.fetch(names.sql(_LEFT_OF_ROWS), gone.number, gone.rows, timeout=SLOW_S)
    clean, searched = not any(row[0] for row in left), 0
    places = (*gone.rows, *gone.rewritten)
    numbers = sorted({row // SEGMENT_ROWS for row in places if row < FIRST_UNSEARCHABLE})
    for number, words in await connection.fetch(names.sql(_SEGMENTS), gone.number, numbers):
        first = number * SEGMENT_ROWS
        rows = await connection.fetch(names.sql(_ROWS), gone.number, first, first + SEGMENT_ROWS - 1)
        entries = (index(record_of(row)) for row in rows)
        said = {word.text for entry in entries if entry for word, _ in entry.words}
        clean = clean and set(Segment.from_bytes(words).words) <= said
        searched += len(words) + sum(len(row["data"]) for row in rows)
    return clean, searched


async def vacuum(database: Database) -> None:
    """Remove deleted rows from the pages now; if that is not permitted, the next automatic vacuum does."""
    with contextlib.suppress(*LOST):
        try:
            await database.alone(_VACUUM, _VACUUM_S)
        except StoreError as error:
            log.warning("no vacuum after an erasure: %s", type(error).__name__)


INDEXES = frozenset(
    """
    scopes_pkey scopes_deployment_usr_key records_pkey records_by_name records_by_key segments_pkey
    conversations_by_status conversations_by_agent conversations_by_time
    searchable_pkey tokens_pkey pending_pkey pending_scope_seq_key writers_pkey meta_pkey
    """.split()
)
LAG_S = 10.0
"""An acceptable lag of a replica, and delay of a notification."""
_RIGHTS = ("select", "insert", "update", "delete")

_VERSION = """select current_setting('server_version'),
  (select extversion from pg_extension where extname = 'vector'), current_setting('jit') = 'on'"""
_DURABLE = "select current_setting('fsync'), current_setting('synchronous_commit')"
_VALID = """select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and i.indisvalid"""
_REPLICAS = """select count(*), coalesce(max(extract(epoch from replay_lag)), 0)::float8
  from pg_stat_replication"""
_LACKING = """select t || ' ' || r from unnest($2::text[]) t, unnest($3::text[]) r
  where not has_table_privilege(format('%I.%I', $1::text, t), r) order by 1"""


async def examined(database: Database) -> list[Finding]:
    """Version, durability, indexes, lag and permissions of the server behind `database`."""
    looking = (_version, _durability, _indexes, _lag, _told, _permissions)
    return [await timed(look(database)) for look in looking]


async def _rows(database: Database, statement: str, *values: Any) -> list[Any]:
    async def work(connection: Connection) -> list[Any]:
        return list(await connection.fetch(statement, *values))

    return await database.read(None, work)


async def _version(database: Database) -> Finding:
    ((server, vector, jit),) = await _rows(database, _VERSION)
    between = "" if database.direct else ", through a pooler"
    compiles = "; jit is on: searching large scopes may be faster with it off" if jit else ""
    return finding("version", f"PostgreSQL {server}, pgvector {vector}{between}{compiles}")


async def _durability(database: Database) -> Finding:
    ((fsync, commit),) = await _rows(database, _DURABLE)
    advice = "set fsync = on and synchronous_commit = on: else what is acknowledged may be lost"
    if fsync == "on" and commit != "off":
        advice = ""
    return finding("durability", f"fsync {fsync}, synchronous_commit {commit}", advice)


async def _indexes(database: Database) -> Finding:
    there = {row[0] for row in await _rows(database, _VALID, database.names.schema)}
    missing = sorted(INDEXES - there)
    if missing:
        advice = "make them anew with REINDEX, or as src/echoic/stores/postgres/schema.py has them"
        return finding("indexes", f"missing or not valid: {', '.join(missing)}", advice)
    return finding("indexes", f"all {len(INDEXES)} are there and valid")


async def _lag(database: Database) -> Finding:
    ((replicas, behind_s),) = await _rows(database, _REPLICAS)
    if not replicas:
        return finding("lag", "no replica is connected, or this role may not see it")
    advice = "" if behind_s <= LAG_S else "see what holds the replica up: pg_stat_replication"
    return finding("lag", f"{replicas} replicas, the slowest {behind_s:.1f} s behind", advice)


async def _told(database: Database) -> Finding:
    """How long a notification takes to reach another connection."""
    if not database.direct:
        return finding(
            "told", "a pooler stands between, so nobody is told: the next query sees what was written"
        )
    mark, heard = f"doctor {uuid4().hex}", asyncio.Event()
    connection = await database.listen(lambda payload: heard.set() if payload == mark else None, lambda: None)
    try:
        began = time.monotonic()
        await _rows(database, "select pg_notify($1, $2)", database.channel, mark)
        async with asyncio.timeout(LAG_S):
            await heard.wait()
    except TimeoutError:
        advice = "see whether a transaction holds up the queue: pg_notification_queue_usage()"
        return finding("told", f"not within {LAG_S:g} s", advice)
    finally:
        await let_go(connection)
    took_ms = 1000 * (time.monotonic() - began)
    return finding("told", f"other processes hear of a write after {took_ms:.1f} ms")


async def _permissions(database: Database) -> Finding:
    tables = [*TABLES, "writers", "meta"]
    lacking = [
        row[0] for row in await _rows(database, _LACKING, database.names.schema, tables, list(_RIGHTS))
    ]
    if lacking:
        advice = f"grant {', '.join(_RIGHTS)} on all tables in schema {database.names.schema} to this role"
        return finding("permissions", f"this role may not: {', '.join(lacking)}", advice)
    fence = ", behind row-level security" if database.fence else ""
    return finding("permissions", f"this role may do all that is needed{fence}")
