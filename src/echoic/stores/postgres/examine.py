"""What an operator is told of a PostgreSQL server: version, durability, indexes, lag, permissions.

Reads the catalogue, and sends itself one notification, which means nothing to anybody else.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

from echoic.stores.base import Finding, timed
from echoic.stores.postgres.database import Connection, Database, let_go
from echoic.stores.postgres.schema import TABLES

INDEXES = frozenset(
    """
    scopes_pkey scopes_deployment_usr_key records_pkey records_by_name records_by_key segments_pkey
    conversations_by_status conversations_by_agent conversations_by_time
    searchable_pkey tokens_pkey pending_pkey pending_scope_seq_key writers_pkey meta_pkey
    """.split()
)
LAG_S = 10.0
"""How far a replica may be behind, and how long a notification may take."""
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
    return Finding(
        name="version", well=True, detail=f"PostgreSQL {server}, pgvector {vector}{between}{compiles}"
    )


async def _durability(database: Database) -> Finding:
    ((fsync, commit),) = await _rows(database, _DURABLE)
    well = fsync == "on" and commit != "off"
    advice = (
        "" if well else "set fsync = on and synchronous_commit = on: else what is acknowledged may be lost"
    )
    detail = f"fsync {fsync}, synchronous_commit {commit}"
    return Finding(name="durability", well=well, detail=detail, advice=advice)


async def _indexes(database: Database) -> Finding:
    there = {row[0] for row in await _rows(database, _VALID, database.names.schema)}
    missing = sorted(INDEXES - there)
    if missing:
        advice = "make them anew with REINDEX, or as src/echoic/stores/postgres/schema.py has them"
        return Finding(
            name="indexes", well=False, detail=f"missing or not valid: {', '.join(missing)}", advice=advice
        )
    return Finding(name="indexes", well=True, detail=f"all {len(INDEXES)} are there and valid")


async def _lag(database: Database) -> Finding:
    ((replicas, behind_s),) = await _rows(database, _REPLICAS)
    if not replicas:
        return Finding(name="lag", well=True, detail="no replica is connected, or this role may not see it")
    advice = "" if behind_s <= LAG_S else "see what holds the replica up: pg_stat_replication"
    detail = f"{replicas} replicas, the slowest {behind_s:.1f} s behind"
    return Finding(name="lag", well=not advice, detail=detail, advice=advice)


async def _told(database: Database) -> Finding:
    """How long it takes until another connection is told of a write."""
    if not database.direct:
        detail = "a pooler stands between, so nobody is told: the next query sees what was written"
        return Finding(name="told", well=True, detail=detail)
    mark, heard = f"doctor {uuid4().hex}", asyncio.Event()
    connection = await database.listen(lambda payload: heard.set() if payload == mark else None, lambda: None)
    try:
        began = time.monotonic()
        await _rows(database, "select pg_notify($1, $2)", database.channel, mark)
        async with asyncio.timeout(LAG_S):
            await heard.wait()
    except TimeoutError:
        advice = "see whether a transaction holds up the queue: pg_notification_queue_usage()"
        return Finding(name="told", well=False, detail=f"not within {LAG_S:g} s", advice=advice)
    finally:
        await let_go(connection)
    took_ms = 1000 * (time.monotonic() - began)
    return Finding(name="told", well=True, detail=f"other processes hear of a write after {took_ms:.1f} ms")


async def _permissions(database: Database) -> Finding:
    tables = [*TABLES, "writers", "meta"]
    lacking = [
        row[0] for row in await _rows(database, _LACKING, database.names.schema, tables, list(_RIGHTS))
    ]
    if lacking:
        advice = f"grant {', '.join(_RIGHTS)} on all tables in schema {database.names.schema} to this role"
        return Finding(
            name="permissions", well=False, detail=f"this role may not: {', '.join(lacking)}", advice=advice
        )
    fence = ", behind row-level security" if database.fence else ""
    return Finding(name="permissions", well=True, detail=f"this role may do all that is needed{fence}")
