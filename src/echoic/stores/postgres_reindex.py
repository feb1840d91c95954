"""Cutting every searchable record into words again, and letting go of vectors, all in one transaction."""

from __future__ import annotations

from typing import Any

from echoic.partition import SEGMENT_ROWS, Segment
from echoic.stores import postgres_schema as schema
from echoic.stores.base import FIRST_UNSEARCHABLE, Index
from echoic.stores.postgres_changes import RECORD, ScopeChanges, record_of
from echoic.stores.postgres_database import SLOW_S, Connection
from echoic.stores.postgres_schema import Names

_AT_ONCE = 1024
"""Rows: a whole number of segments."""
# who writes changes the row of a scope, and waits here until all is done
_NO_WRITERS = "lock table {s}.scopes in share row exclusive mode"
_DETACH = (
    "update {s}.searchable set e = null, flags = flags & ~1 where e is not null",
    "delete from {s}.tokens",
    "delete from {s}.pending",
)
_ALL = "update {s}.scopes set version = version + 1 returning id, version, next_row, next_other"
_ROWS = f"""select {RECORD} from {{s}}.records
  where scope = $1 and seq >= $2 and seq < $3 order by seq"""  # noqa: S608 - column names
_WORDS = "select number, words from {s}.segments where scope = $1 and number >= $2 and number < $3"


async def index_again(connection: Connection, names: Names, index: Index, model: str | None) -> int:
    """Cut all words anew; with `model`, let go of all vectors for those of that one. All of it or nothing.

    Returns:
        how many records wait for a vector now.
    """
    await connection.execute(names.sql(_NO_WRITERS), timeout=SLOW_S)
    if model is not None:
        await schema.set_meta(connection, names, "embedding", model)
        for statement in _DETACH:
            await connection.execute(names.sql(statement), timeout=SLOW_S)
    for row in await connection.fetch(names.sql(_ALL), timeout=SLOW_S):
        for first in range(0, row["next_row"], _AT_ONCE):
            await _again(connection, names, index, row, first, detach=model is not None)
    count: int = await connection.fetchval(names.sql("select count(*) from {s}.pending"), timeout=SLOW_S)
    return count


async def _again(
    connection: Connection, names: Names, index: Index, scope: Any, first: int, *, detach: bool
) -> None:
    end = min(first + _AT_ONCE, FIRST_UNSEARCHABLE)
    numbers = (first // SEGMENT_ROWS, end // SEGMENT_ROWS)
    words = await connection.fetch(names.sql(_WORDS), scope["id"], *numbers)
    rows = await connection.fetch(names.sql(_ROWS), scope["id"], first, end)
    segments = {number: Segment.from_bytes(data) for number, data in words}
    changes = ScopeChanges.of_segments(connection, names, index, tuple(scope), segments)
    changes.index_again((record_of(row) for row in rows), detach=detach)
    await changes.finish()


__all__ = ["index_again"]
