"""Erasure: delete, have the server clear away deleted rows, and look whether anything is left.

What "verified" means on PostgreSQL: in a new snapshot, no table holds a row of what was erased, none holds a
row that belongs to no record, and no segment holds a word that none of the remaining records says. It is a
statement about rows. A deleted row's bytes stay in its page until a vacuum, which is run at once where this
role may (it is put off while an older transaction might still see them), and may stay in that page's free
space until something is written there. The write-ahead log, replicas and backups keep copies for as long as
their operator has them do so: no client can reach those, and a receipt does not speak of them.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from echoic.errors import StoreError
from echoic.partition import SEGMENT_ROWS, Segment
from echoic.stores.apply import name_of
from echoic.stores.base import FIRST_UNSEARCHABLE, Erasable, Index, Put
from echoic.stores.postgres import schema
from echoic.stores.postgres.cache_invalidation import ERASED
from echoic.stores.postgres.changes import RECORD, PostgresScopeChanges, record_of
from echoic.stores.postgres.database import LOST, SLOW_S, Connection, Database
from echoic.stores.postgres.schema import Names
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
"""Large tables that were long not vacuumed may take longer; then the automatic one goes on."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """What was deleted."""

    number: int = 0
    """The number of the scope; 0 if there was none."""
    whole: bool = False
    rows: Sequence[int] = ()
    """The places of the records, where not the whole scope went."""
    rewritten: Sequence[int] = ()
    """The places of those of which only what was replaced is gone."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    vectors: int = 0


async def delete_scope(connection: Connection, names: Names, scope: Scope, channel: str) -> DeletedRows:
    """Everything of `scope`."""
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
    """What of `scope` is dropped and replaced, and with the last record the scope itself."""
    changes = PostgresScopeChanges(connection, names, index, channel)
    if not await changes.begin(scope, erased):
        return DeletedRows()
    there = changes.found
    vectors = sum(changes.embedded(record) for record in there)
    puts = {name_of(change) for change in erased if isinstance(change, Put)}
    records = [record for record in there if (record.kind, record.id) not in puts]
    rewritten = sorted(record.seq for record in there if (record.kind, record.id) in puts)
    changes.apply(erased)
    await changes.finish()
    left = await connection.fetchval(
        names.sql("select exists (select from {s}.records where scope = $1)"), changes.number
    )
    if not left:  # nobody's name stays for nothing
        await connection.execute(names.sql(_DELETE), changes.number, channel, f"{changes.number} {ERASED}")
    kinds = dict(Counter(record.kind for record in records))
    rows = sorted(record.seq for record in records)
    return DeletedRows(
        number=changes.number,
        whole=not left,
        rows=rows,
        rewritten=rewritten,
        kinds=kinds,
        vectors=vectors,
    )


async def verify(connection: Connection, names: Names, gone: DeletedRows, index: Index) -> tuple[bool, int]:
    """Whether nothing of `gone` is left, and how many bytes of words and records were looked through.

    In a transaction that sees one state, as an operator: behind the fence of a scope that is no more,
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
    """Have the server clear deleted rows away now; where that is denied, the next automatic vacuum does."""
    with contextlib.suppress(*LOST):
        try:
            await database.alone(_VACUUM, _VACUUM_S)
        except StoreError as error:
            log.warning("no vacuum after an erasure: %s", type(error).__name__)
