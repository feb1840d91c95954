"""From rows in the database to segments of a partition: a whole scope, or the likely rows of a large one.

Segments are read in pieces, so that the event loop gets its turns. For a scope too large to load, the
database chooses likely rows by meaning, words and sounds, and the segments they lie in are ranked as in every
store. The vector search is exact: the rows of a scope are found by their key and all of them compared, so
nothing is missed, no index has to be built, and nothing outlives an erasure in one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt
from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.stores.base import Record, origins
from echoic.stores.postgres.changes import RECORD, VECTOR_HEADER, packed, record_of, signed, sounds_of
from echoic.stores.postgres.database import Connection
from echoic.stores.postgres.schema import Names
from echoic.words import content_words

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
    """The records as the database gave them, by segment and row."""
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


_K1, _B = 1.2, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009)."""
_MAX_WORDS = 64

# One pass over the scope's rows serves words and sounds, one serves the vectors. BM25 with a word said or
# not, and with the mean length of the rows that say one, for that of all rows would be another pass. A sound
# counts for words that nobody said: `unsaid` holds the sounds of those alone.
_SEARCH = f"""with
  mine as materialized (select seq, length, terms, sounds from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and (terms && $3::int[] or sounds && $4::int[])),
  facts as (select (select next_row from {{s}}.scopes where id = $1)::float8 as n,
    greatest(avg(length), 1)::float8 as mean from mine),
  said as materialized (select seq, length, term from mine
    join unnest($3::int[]) as term on term = any(terms)),
  rare as (select term, ln(1 + greatest(n - count(*), 0) / (count(*) + 0.5)) as idf
    from said, facts group by term, n),
  worded as (select seq from said join rare using (term), facts group by seq, length, mean
    order by sum(idf) / (1 + {_K1}::float8 * ({1 - _B}::float8 + {_B}::float8 * length / mean)) desc, seq
    limit $5),
  unsaid as (select distinct sound from unnest($6::int[], $7::int[]) as u (term, sound)
    where term not in (select term from rare)),
  sounded as (select seq from mine where sounds && array(select sound from unsaid)
    order by (select count(*) from unnest(sounds) as s where s in (select sound from unsaid)) desc, seq
    limit $5),
  near as (select seq from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and e is not null and $8::{{v}}.vector is not null
    order by e operator({{v}}.<#>) $8::{{v}}.vector, seq limit $5)
  select seq from near union select seq from worded union select seq from sounded"""  # noqa: S608


def shown(vector: NDArray[np.float32] | None, limit: int) -> tuple[dict[str, object], ...]:
    """What is asked, as JSON for people. The statement is always the same; what was said is a parameter."""
    ways = {"words": "BM25", "sounds": "of words nobody said"}
    meaning = {} if vector is None else {"meaning": f"exact inner product of {len(vector)} dimensions"}
    return ({"union": {**meaning, **ways}, "limitEach": limit},)


async def likely_rows(
    connection: Connection,
    names: Names,
    number: int,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    limit: int,
    include_past: bool,
) -> list[int]:
    """At most `limit` rows of scope `number` by each of meaning, words, and sounds of words nobody said."""
    words = list(dict.fromkeys(content_words(text)))[:_MAX_WORDS]
    heard = [(term, sound) for word in words for term in signed([word.term]) for sound in sounds_of([word])]
    rows = await connection.fetch(
        names.sql(_SEARCH),
        number,
        int(Flag.UNHEARD if include_past else Flag.UNHEARD | Flag.PAST),
        sorted(set(signed(word.term for word in words))),
        sorted({sound for _, sound in heard}),
        limit,
        [term for term, _ in heard],
        [sound for _, sound in heard],
        None if vector is None else packed(vector / max(float(np.linalg.norm(vector)), 1e-12)),
    )
    return [row[0] for row in rows]


async def compact(
    connection: Connection, names: Names, number: int, segments: list[int], dimensions: int
) -> Partition:
    """A partition of these segments of scope `number` alone, one behind the other."""
    parts = await read_parts(connection, names, number, segments, records=False)
    partition = Partition(dimensions)
    placed: list[tuple[int, Segment]] = [(place, segment) for place, (_, segment, _) in enumerate(parts)]
    with partition.lock:
        partition.patch(placed)
    partition.origin = origins([number for number, _, _ in parts])
    return partition
