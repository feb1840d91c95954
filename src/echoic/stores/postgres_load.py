"""From rows in the database to segments of a partition, in pieces, so that the event loop gets its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from echoic.errors import StoreCorrupt
from echoic.partition import SEGMENT_ROWS, Partition, Segment
from echoic.stores.base import Record
from echoic.stores.postgres_changes import RECORD, VECTOR_HEADER, record_of
from echoic.stores.postgres_database import Connection
from echoic.stores.postgres_schema import Names

_AT_ONCE = 32
"""Segments read by one statement: 1,024 rows, about 2 MB and 5 ms."""
_ROW_BYTES = 300
"""What a record takes beside its JSON."""
REMEMBERED = "stores.postgres.records"
"""Where a loaded partition's scratch holds its records."""

_CHANGED = "select number from {s}.segments where scope = $1 and version > $2 order by number"
_SEGMENTS = "select number, words from {s}.segments where scope = $1 and number = any($2::int[])"
# Rows that lie together are asked for as a range, others one by one: a join with ranges is what the planner
# gets wrong, and then compares all with all.
_RANGE = "scope = $1 and seq >= $2 and seq < $3"
_EACH = "scope = $1 and seq = any($2::bigint[])"
_VECTORS = "select seq, e from {s}.searchable where {rows} and e is not null"
_TOKENS = "select seq, data from {s}.tokens where {rows}"
_RECORDS = f"select {RECORD} from {{s}}.records where {{rows}}"  # noqa: S608 - column names


@dataclass(slots=True)
class Remembered:
    """The records of a loaded scope, for when the database cannot be asked for them."""

    by_segment: dict[int, dict[int, Sequence[Any]]] = field(default_factory=dict)
    """By segment and row, as the database gave them."""
    _bytes: dict[int, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        return sum(self._bytes.values())

    def put(self, number: int, rows: dict[int, Sequence[Any]]) -> None:
        """The records of segment `number`, in place of those it had."""
        self.by_segment[number] = rows
        self._bytes[number] = sum(_ROW_BYTES + len(row[5]) for row in rows.values())

    def at(self, rows: Iterable[int]) -> list[Record]:
        """The records at these rows, in the order asked."""
        found = (self.by_segment.get(row // SEGMENT_ROWS, {}).get(row) for row in rows)
        return [record_of(row) for row in found if row is not None]


Part = tuple[int, Segment, dict[int, Sequence[Any]]]
"""A segment's number, what it holds, and the records of its rows."""


async def catch_up(
    connection: Connection, names: Names, number: int, partition: Partition, version: int
) -> None:
    """Bring `partition` to `version` of scope `number`. In a transaction that sees one state."""
    changed = [row[0] for row in await connection.fetch(names.sql(_CHANGED), number, partition.version)]
    parts: list[Part] = []
    # all is read before any is put in place: a connection that is lost halfway leaves what was there
    for at in range(0, len(changed), _AT_ONCE):
        parts += await read_parts(connection, names, number, changed[at : at + _AT_ONCE])
    if len(parts) > _AT_ONCE:
        await asyncio.to_thread(_put_in_place, partition, parts)
    else:
        _put_in_place(partition, parts)
    partition.version = version


def _put_in_place(partition: Partition, parts: Sequence[Part]) -> None:
    with partition.lock:
        partition.patch([(number, segment) for number, segment, _ in parts])
        remembered = partition.scratch.setdefault(REMEMBERED, Remembered())
        for number, _, records in parts:
            remembered.put(number, records)


async def read_parts(
    connection: Connection, names: Names, number: int, segments: Sequence[int], *, records: bool = True
) -> list[Part]:
    """Those `segments` of scope `number` with vectors, word pieces and `records`, in order."""

    async def rows(statement: str) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = await connection.fetch(
            names.sql(statement.replace("{rows}", where)), number, *wanted
        )
        return found

    where, wanted = _wanted(segments)
    made = {
        at: Segment.from_bytes(words)
        for at, words in await connection.fetch(names.sql(_SEGMENTS), number, segments)
    }
    kept: dict[int, dict[int, Sequence[Any]]] = {at: {} for at in made}
    for seq, vector in await rows(_VECTORS):
        _attach(made[seq // SEGMENT_ROWS], seq % SEGMENT_ROWS, vector)
    for seq, data in await rows(_TOKENS):
        made[seq // SEGMENT_ROWS].tokens[seq % SEGMENT_ROWS] = data
    for row in await rows(_RECORDS) if records else ():
        kept[row[0] // SEGMENT_ROWS][row[0]] = row
    return [(at, made[at], kept[at]) for at in sorted(made)]


def _wanted(segments: Sequence[int]) -> tuple[str, list[Any]]:
    """The condition for the rows of `segments`, which are in order, and its values behind the scope."""
    if segments and segments[-1] - segments[0] == len(segments) - 1:
        return _RANGE, [segments[0] * SEGMENT_ROWS, (segments[-1] + 1) * SEGMENT_ROWS]
    return _EACH, [[row for at in segments for row in range(at * SEGMENT_ROWS, (at + 1) * SEGMENT_ROWS)]]


def _attach(segment: Segment, slot: int, vector: bytes) -> None:
    dimensions, _ = VECTOR_HEADER.unpack_from(vector)
    if segment.vectors is None:
        segment.vectors = np.zeros((SEGMENT_ROWS, dimensions), np.float32)
    if segment.vectors.shape[1] != dimensions:
        raise StoreCorrupt(
            f"vectors of {segment.vectors.shape[1]} and of {dimensions} dimensions lie together"
        )
    segment.vectors[slot] = np.frombuffer(vector, ">f4", offset=VECTOR_HEADER.size)


__all__ = ["REMEMBERED", "Part", "Remembered", "catch_up", "read_parts"]
