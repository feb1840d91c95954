"""The database schema and its migrations. Only SQL.

Everything is in one PostgreSQL schema. In every statement `{s}` stands for it and `{v}` for the schema of
pgvector, so that nothing depends on a search path: poolers share connections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zlib import crc32

import asyncpg

from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew, StoreUnavailable

APPLICATION = "echoic"

# One step per schema version, each a list of statements run in the transaction of the whole migration.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """create table {s}.scopes (
             id bigint generated always as identity primary key,  -- never given to another
             deployment text collate "C" not null,
             usr text collate "C" not null,  -- '' is everyone's: no user has an empty name
             version bigint not null,
             next_row bigint not null,
             next_other bigint not null,
             unique (deployment, usr)) with (fillfactor = 50)""",
        """create table {s}.records (
             scope bigint not null,
             seq bigint not null,
             kind text collate "C" not null,
             name text collate "C" not null,
             key text collate "C",
             version bigint not null,
             data json not null,  -- not jsonb, which keeps no number as it was written
             primary key (scope, seq))""",
        "create unique index records_by_name on {s}.records (scope, kind, name)",
        "create index records_by_key on {s}.records (scope, kind, key, seq) where key is not null",
        """create table {s}.segments (
             scope bigint not null,
             number integer not null,  -- row / 32
             version bigint not null,  -- the scope's, when it last changed
             words bytea not null,
             primary key (scope, number))""",
        # A vector a row, not packed by 32: giving one to a row writes 1.5 KB instead of 48, and the same
        # bytes serve loading and searching. Loading 10,000 takes 50 ms instead of 15.
        # toast_tuple_target: up to 2,000 dimensions lie in the row itself, where a scan reads them at once.
        """create table {s}.searchable (
             scope bigint not null,
             seq bigint not null,
             flags smallint not null,
             length integer not null,  -- content words
             terms integer[] not null,  -- its stems, as numbers
             sounds integer[] not null,  -- its sounds, likewise
             e {v}.vector,
             primary key (scope, seq)) with (toast_tuple_target = 8160)""",
        "alter table {s}.searchable alter e set storage external",
        """create table {s}.tokens (
             scope bigint not null, seq bigint not null, data bytea not null, primary key (scope, seq))""",
        "alter table {s}.tokens alter data set storage external",
        """create table {s}.pending (
             place bigint generated always as identity primary key,
             scope bigint not null,
             seq bigint not null,
             unique (scope, seq))""",
        """create table {s}.writers (
             id bigint primary key,  -- of a process, as many as it has connections
             mark bigint not null default 0,  -- of the transaction that was committed last
             at timestamptz not null default now()) with (fillfactor = 50)""",
    ),
    # queries of operators across users: any of the three alone finds its rows
    (
        """create index conversations_by_status on {s}.records (((data->>'status') collate "C"),
             ((data->>'agent') collate "C"), ((data->>'started_at') collate "C"))
             where kind = 'conversation'""",
        """create index conversations_by_agent on {s}.records (((data->>'agent') collate "C"),
             ((data->>'started_at') collate "C")) where kind = 'conversation'""",
        """create index conversations_by_time on {s}.records (((data->>'started_at') collate "C"))
             where kind = 'conversation'""",
    ),
)
VERSION = len(MIGRATIONS)
TABLES = ("scopes", "records", "segments", "searchable", "tokens", "pending")
OF_A_SCOPE = TABLES[1:]
"""The tables that hold a scope's number in the column `scope`."""

_META = "create table {s}.meta (name text primary key, value text not null)"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,48}")

# The fence: a row is seen and written by who said, in the same transaction, whose it is. A subquery that
# names no column of the row is run once a statement.
_OPERATOR = "current_setting('echoic.operator', true) = 'on'"
_MINE = (
    "deployment = current_setting('echoic.deployment', true) and usr = current_setting('echoic.user', true)"
)
_OF_MINE = f"scope = (select id from {{s}}.scopes where {_MINE})"  # noqa: S608 - no value of anybody's in it
FENCE: tuple[str, ...] = tuple(
    statement
    for table, whose in [("scopes", _MINE), *((table, _OF_MINE) for table in OF_A_SCOPE)]
    for statement in (
        f"alter table {{s}}.{table} enable row level security",
        f"alter table {{s}}.{table} force row level security",
        f"create policy fence on {{s}}.{table} using ({whose} or {_OPERATOR})",
    )
)


@dataclass(frozen=True, slots=True)
class Names:
    """The schemas a statement refers to, quoted."""

    schema: str
    vector: str = "public"
    """The schema of pgvector."""

    def sql(self, statement: str) -> str:
        """`statement` with its placeholders filled in."""
        return statement.replace("{s}", f'"{self.schema}"').replace("{v}", f'"{self.vector}"')

    @property
    def lock(self) -> int:
        """The database-wide lock held while the schema is created or migrated."""
        return crc32(f"{APPLICATION} {self.schema}".encode())


def checked_schema(name: str) -> str:
    """`name`, if it is a schema name that needs no quoting; raises InvalidInput otherwise."""
    if not _NAME.fullmatch(name) or name.startswith("pg_"):
        raise InvalidInput(
            f"schema={name!r}: use lower-case letters, digits and _, 49 at most, and no digit or pg_ in front"
        )
    return name


async def prepared(connection: asyncpg.Connection, schema: str, *, fence: bool) -> Names:
    """Create the schema or migrate it to `VERSION`, in one transaction.

    Raises:
        StoreCorrupt: the schema belongs to another program; it is left unchanged.
        StoreTooNew: a newer version wrote it; it is left unchanged.
        StoreUnavailable: the server cannot hold a store, or this role may not create one.
    """
    await _check_server(connection)
    names = Names(schema, await _vector_schema(connection) or "public")
    if await _version(connection, names) == VERSION and not (fence and not await fenced(connection, names)):
        return names
    try:
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock($1)", names.lock)
            return await _migrate(connection, names, fence=fence)
    except asyncpg.InsufficientPrivilegeError as error:
        raise StoreUnavailable(
            f"this role may not make or upgrade the schema {schema!r} ({error}): let its owner open the "
            "store once, or grant it create on the database"
        ) from error


async def _check_server(connection: asyncpg.Connection) -> None:
    encoding, standby = await connection.fetchrow(
        "select current_setting('server_encoding'), pg_is_in_recovery()"
    )
    if encoding != "UTF8":
        raise StoreUnavailable(f"the database is encoded in {encoding}: create one with encoding 'UTF8'")
    if standby:
        raise StoreUnavailable("the server is a standby and takes no writes: name the primary in the URL")


async def _vector_schema(connection: asyncpg.Connection) -> str | None:
    found: str | None = await connection.fetchval(
        "select nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace "
        "where extname = 'vector'"
    )
    return found


async def _version(connection: asyncpg.Connection, names: Names) -> int:
    """The version of the existing schema; 0 if there is none."""
    tables = await connection.fetch(
        "select tablename::text from pg_tables where schemaname = $1", names.schema
    )
    if not tables:
        return 0
    version = application = None
    if ("meta",) in {tuple(row) for row in tables}:
        try:
            meta = dict(await connection.fetch(names.sql("select name, value from {s}.meta")))
            application, version = meta.get("application"), meta.get("schema")
        except (asyncpg.UndefinedColumnError, ValueError, TypeError):
            pass  # another program's table with this name
    if application != APPLICATION or version is None:
        raise StoreCorrupt(
            f"the schema {names.schema!r} is another program's ({len(tables)} tables); not touched. "
            "Name another one in the URL: ?schema=echoic"
        )
    if int(version) > VERSION:
        raise StoreTooNew(
            f"the schema {names.schema!r} is of version {version}, this Echoic knows {VERSION}: upgrade it"
        )
    return int(version)


async def _migrate(connection: asyncpg.Connection, names: Names, *, fence: bool) -> Names:
    version = await _version(connection, names)  # another process may have been first
    if await _vector_schema(connection) is None:
        await _create_vector(connection)
    names = Names(names.schema, await _vector_schema(connection) or "public")
    if version == 0:
        if not await connection.fetchval("select to_regnamespace($1) is not null", names.schema):
            await connection.execute(names.sql("create schema {s}"))
        await connection.execute(names.sql(_META))
        await set_meta(connection, names, "application", APPLICATION)
    for step in MIGRATIONS[version:]:
        for statement in step:
            await connection.execute(names.sql(statement))
    await set_meta(connection, names, "schema", str(VERSION))
    if fence and not await fenced(connection, names):
        for statement in FENCE:
            await connection.execute(names.sql(statement))
    return names


async def _create_vector(connection: asyncpg.Connection) -> None:
    try:
        async with connection.transaction():
            await connection.execute("create extension if not exists vector")
    except asyncpg.PostgresError as error:
        raise StoreUnavailable(
            f"the extension pgvector is needed and could not be created ({error}): install it on the server "
            "and let a superuser run `create extension vector` in this database"
        ) from error


async def fenced(connection: asyncpg.Connection, names: Names) -> bool:
    """Whether the tables have row-level security."""
    on: bool = await connection.fetchval(
        "select coalesce(bool_and(relrowsecurity), false) from pg_class c "
        "join pg_namespace n on n.oid = c.relnamespace where nspname = $1 and relname = any($2::text[])",
        names.schema,
        list(TABLES),
    )
    return on


async def fence_holds(connection: asyncpg.Connection, names: Names) -> bool:
    """Whether row-level security applies to this role; superusers may bypass it."""
    holds: bool = await connection.fetchval(
        names.sql("select row_security_active('{s}.scopes') and row_security_active('{s}.records')")
    )
    return holds


async def get_meta(connection: asyncpg.Connection, names: Names, name: str) -> str | None:
    """A fact about the store, such as the model of its vectors."""
    value: str | None = await connection.fetchval(
        names.sql("select value from {s}.meta where name = $1"), name
    )
    return value


async def set_meta(connection: asyncpg.Connection, names: Names, name: str, value: str) -> None:
    """Record a fact about the store."""
    await connection.execute(
        names.sql(
            "insert into {s}.meta values ($1, $2) on conflict (name) do update set value = excluded.value"
        ),
        name,
        value,
    )
