"""Changes to one scope, in a transaction that the caller began: records, segments, searchable rows, pending
rows.

A write takes three round trips, however many changes it has: lock the scope, read what they touch, write the
result, which is computed here in between. `index_again` indexes every searchable record again, and removes
vectors, in one transaction.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt
from echoic.partition import SEGMENT_ROWS, Entry, Flag, Segment
from echoic.stores.apply import Changing, Name, begins, name_of, takes
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Index, Put, Record, damaged
from echoic.stores.postgres import schema
from echoic.stores.postgres.database import SLOW_S, Connection
from echoic.stores.postgres.schema import Names
from echoic.text import Word
from echoic.types import Scope

RECORD = "seq, kind, name, key, version, data"
VECTOR_HEADER = struct.Struct(">HH")
"""pgvector's binary form: dimensions, an unused number, and big-endian 32-bit floats."""

_LOCK = """update {s}.scopes set version = version + 1 where deployment = $1 and usr = $2
  returning id, version, next_row, next_other"""
_BEGIN = """insert into {s}.scopes as s (deployment, usr, version, next_row, next_other)
  values ($1, $2, 1, 0, $3) on conflict (deployment, usr) do update set version = s.version + 1
  returning id, version, next_row, next_other"""

# A separate statement after the lock: only then does it see what the previous holder of the lock wrote.
_TOUCHED = """with asked as (select * from unnest($2::text[], $3::text[]) as a (kind, name)),
  found as (select r.* from {s}.records r join asked using (kind, name) where r.scope = $1)
  select seq, kind, name, key, version, data, null::bytea as words from found
  union all select number, null, null, null, null, null, words from {s}.segments
  where scope = $1 and number = any (
    array(select (seq / 32)::int from found where seq < 2147483648) || $4::int)
  union all select null, null, 'embedding', value, null, null, null from {s}.meta
  where name = 'embedding'"""

_REMOVE = """with
  r as (delete from {s}.records where scope = $1 and seq = any($2::bigint[])),
  s as (delete from {s}.searchable where scope = $1 and seq = any($2::bigint[])),
  t as (delete from {s}.tokens where scope = $1 and seq = any($2::bigint[]))
  delete from {s}.pending where scope = $1 and (seq = any($2::bigint[]) or seq = any($3::bigint[]))"""

# One statement, each part on rows of its own: a vector is kept where the row's flags say that it has one.
_WRITE = """with
  r as (insert into {s}.records (scope, seq, kind, name, key, version, data)
    select $1, seq, kind, name, key, version, data::json
    from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
      as u (seq, kind, name, key, version, data)
    on conflict (scope, seq) do update
      set key = excluded.key, version = excluded.version, data = excluded.data),
  g as (insert into {s}.segments (scope, number, version, words)
    select $1, number, $10, words from unnest($8::int[], $9::bytea[]) as u (number, words)
    on conflict (scope, number) do update set version = excluded.version, words = excluded.words),
  f as (insert into {s}.searchable as o (scope, seq, flags, length, terms, sounds, e)
    select $1, seq, flags, length, terms::int[], sounds::int[], e
    from unnest($11::bigint[], $12::int[], $13::int[], $14::text[], $15::text[], $16::{v}.vector[])
      as u (seq, flags, length, terms, sounds, e)
    on conflict (scope, seq) do update set flags = excluded.flags, length = excluded.length,
      terms = excluded.terms, sounds = excluded.sounds,
      e = case when excluded.flags & 1 = 1 then coalesce(excluded.e, o.e) end),
  a as (update {s}.searchable o set flags = o.flags | 1, e = u.e
    from unnest($17::bigint[], $18::{v}.vector[]) as u (seq, e) where o.scope = $1 and o.seq = u.seq),
  x as (delete from {s}.tokens where scope = $1 and seq = any($19::bigint[])),
  t as (insert into {s}.tokens (scope, seq, data)
    select $1, seq, data from unnest($20::bigint[], $21::bytea[]) as u (seq, data)
    on conflict (scope, seq) do update set data = excluded.data),
  w as (insert into {s}.pending (scope, seq)
    select $1, seq from unnest($22::bigint[]) as u (seq) on conflict do nothing),
  d as (delete from {s}.pending where scope = $1 and seq = any($23::bigint[])),
  c as (update {s}.scopes set next_row = $24, next_other = $25
    where id = $1 and (next_row, next_other) <> ($24, $25))
  select case when $26::text <> '' then pg_notify($26, $27) end"""


def record_of(row: Sequence[Any]) -> Record:
    """The record in `RECORD`'s columns; raises StoreCorrupt if its data is no JSON object."""
    data = json.loads(row[5])
    if not isinstance(data, dict):
        raise damaged(row[1], row[2])
    return Record(seq=row[0], kind=row[1], id=row[2], key=row[3], version=row[4], data=data)


def listed_of(row: Sequence[Any]) -> Record:
    """The same in a list over many users: a damaged one has no data there, and keeps no other back."""
    try:
        return record_of(row)
    except StoreCorrupt:
        return Record(seq=row[0], kind=row[1], id=row[2], key=row[3], version=row[4], data={})


def packed(vector: NDArray[np.float32]) -> bytes:
    """[dimensions] A vector in pgvector's binary form."""
    return VECTOR_HEADER.pack(len(vector), 0) + vector.astype(">f4").tobytes()


def signed(terms: Iterable[int]) -> list[int]:
    """32-bit numbers as PostgreSQL's signed integers."""
    return [term - (1 << 32) if term >= 1 << 31 else term for term in terms]


def sounds_of(words: Iterable[Word]) -> list[int]:
    """The sounds of `words` as numbers."""
    return signed({crc32(code.encode()) for word in words for code in word.codes})


def _array(numbers: Iterable[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


@dataclass(slots=True)
class _Row:
    """The planned change of one searchable row."""

    entry: Entry | None = None
    """None: unchanged."""
    vector: bytes | None = None
    """A new one."""
    tokens: bytes | None = None
    bare: bool = False
    """Whether its vector and word pieces are removed."""
    waits: bool | None = None
    """None: unchanged."""


class PostgresScopeChanges(Changing):
    """One scope being changed, in a transaction: `begin`, `apply`, `finish`; notifies `channel`."""

    def __init__(self, connection: Connection, names: Names, index: Index, channel: str = "") -> None:
        super().__init__(index)
        self._connection, self._names, self._channel = connection, names, channel
        self.number = 0
        self.version = 0
        self._held: dict[Name, Record | None] = {}
        # the result of the changes
        self._records: dict[int, Record] = {}
        self._rows: dict[int, _Row] = {}
        self._gone: set[int] = set()
        self._again: set[int] = set()
        """Rows that wait again, at the end of the queue."""
        self.model = ""
        """The model of the stored vectors."""

    async def begin(self, scope: Scope, changes: Sequence[Change]) -> bool:
        """Lock the scope and read what `changes` touch; False if it does not exist and stays so."""
        whose = (scope.deployment, scope.user or "")
        found = await self._connection.fetchrow(self._names.sql(_LOCK), *whose)
        if found is None:
            if not begins(changes):
                return False
            found = await self._connection.fetchrow(self._names.sql(_BEGIN), *whose, FIRST_UNSEARCHABLE)
        self.number, self.version, self._next_row, self._next_other = found
        await self._read(list(dict.fromkeys(name_of(change) for change in changes)))
        return True

    async def _read(self, names: list[Name]) -> None:
        kinds, ids = [kind for kind, _ in names], [name for _, name in names]
        last = self._next_row // SEGMENT_ROWS
        for row in await self._connection.fetch(self._names.sql(_TOUCHED), self.number, kinds, ids, last):
            if row["words"] is not None:
                self._segments[row["seq"]] = Segment.from_bytes(row["words"])
            elif row["seq"] is None:
                self.model = row["key"]
            else:
                self._held[row["kind"], row["name"]] = record_of(row)

    @property
    def found(self) -> list[Record]:
        """The records that the changes touch."""
        return [record for record in self._held.values() if record is not None]

    def embedded(self, record: Record) -> bool:
        """Whether `record`, which the changes touch, has a vector."""
        return record.seq < FIRST_UNSEARCHABLE and bool(self._flags(record.seq) & Flag.EMBEDDED)

    def _stands(self, kind: str, name: str) -> Record | None:
        return self._held.get((kind, name))

    def _put(self, put: Put) -> None:
        name = name_of(put)
        record, entry, same = self._written(put, self._held.get(name))
        self._held[name] = self._records[record.seq] = record
        if entry is not None:
            self._put_row(record.seq, entry, keep=same)

    def _put_row(self, seq: int, entry: Entry, *, keep: bool) -> None:
        row = self._row(seq)
        row.entry = entry
        self._segment(seq).put(seq % SEGMENT_ROWS, entry, keep_vector=keep)
        if not keep:
            if row.waits is False:
                self._again.add(seq)
            row.vector, row.tokens, row.bare, row.waits = None, None, True, True

    def _drop(self, drop: Drop) -> None:
        old = self._held.get((drop.kind, drop.id))
        if old is None:
            return
        self._held[drop.kind, drop.id] = None
        self._records.pop(old.seq, None)
        self._gone.add(old.seq)
        if old.seq < FIRST_UNSEARCHABLE:
            self._rows.pop(old.seq, None)
            self._segment(old.seq).drop(old.seq % SEGMENT_ROWS)

    def _attach(self, attach: Attach) -> None:
        old = self._held.get((attach.kind, attach.id))
        if not takes(old, attach):
            return
        row = self._row(old.seq)
        row.vector, row.tokens, row.waits = packed(attach.vector), attach.tokens or None, False
        row.bare = row.bare or not attach.tokens
        self._segment(old.seq).rows["flags"][old.seq % SEGMENT_ROWS] |= Flag.EMBEDDED

    async def index_again(self, scope: Sequence[int], first: int, *, detach: bool) -> None:
        """Index `_AT_ONCE` rows of a locked scope from `first` on again; with `detach`, remove their vectors.

        `scope`: its number, new version, next row and next other.
        """
        self.number, self.version, self._next_row, self._next_other = scope
        end = min(first + _AT_ONCE, FIRST_UNSEARCHABLE)
        numbers = (first // SEGMENT_ROWS, end // SEGMENT_ROWS)
        words = await self._connection.fetch(self._names.sql(_WORDS), self.number, *numbers)
        self._segments = {number: Segment.from_bytes(data) for number, data in words}
        rows = await self._connection.fetch(self._names.sql(_ROWS), self.number, first, end)
        for record in map(record_of, rows):
            entry = self._index(record)
            if entry is None:
                continue
            row = self._row(record.seq)
            segment, slot = self._segment(record.seq), record.seq % SEGMENT_ROWS
            segment.put(slot, entry, keep_vector=not detach)
            row.entry, row.bare = entry, detach
            if not segment.rows[slot]["flags"] & Flag.EMBEDDED:
                row.waits = True
        await self.finish()

    def _row(self, seq: int) -> _Row:
        return self._rows.setdefault(seq, _Row())

    async def finish(self) -> None:
        """Write the result, and the scope's new version."""
        if self._gone or self._again:
            await self._connection.execute(
                self._names.sql(_REMOVE), self.number, sorted(self._gone), sorted(self._again)
            )
        await self._connection.execute(
            self._names.sql(_WRITE),
            self.number,
            *self._record_columns(),
            *self._segment_columns(),
            self.version,
            *self._row_columns(),
            *self._token_columns(),
            *self._pending_columns(),
            self._next_row,
            self._next_other,
            self._channel,
            f"{self.number} {self.version}",
        )

    def _record_columns(self) -> list[list[Any]]:
        records = [self._records[seq] for seq in sorted(self._records)]
        return [
            [r.seq for r in records],
            [r.kind for r in records],
            [r.id for r in records],
            [r.key for r in records],
            [r.version for r in records],
            [json.dumps(r.data, ensure_ascii=False, separators=(",", ":")) for r in records],
        ]

    def _segment_columns(self) -> list[list[Any]]:
        # keep an emptied segment without words: processes that loaded it must see that it is empty
        numbers = sorted(self._touched)
        return [numbers, [self._segments[number].to_bytes() for number in numbers]]

    def _row_columns(self) -> list[list[Any]]:
        put = [(seq, row, row.entry) for seq, row in self._rows.items() if row.entry is not None]
        attached = [(seq, row) for seq, row in self._rows.items() if row.entry is None and row.vector]
        return [
            [seq for seq, _, _ in put],
            [self._flags(seq) for seq, _, _ in put],
            [sum(count for _, count in entry.words) for _, _, entry in put],
            [_array(signed(sorted({word.term for word, _ in entry.words}))) for _, _, entry in put],
            [_array(sounds_of(word for word, _ in entry.words)) for _, _, entry in put],
            [row.vector for _, row, _ in put],
            [seq for seq, _ in attached],
            [row.vector for _, row in attached],
        ]

    def _flags(self, seq: int) -> int:
        return int(self._segments[seq // SEGMENT_ROWS].rows["flags"][seq % SEGMENT_ROWS])

    def _token_columns(self) -> list[list[Any]]:
        gone = [seq for seq, row in self._rows.items() if row.bare and row.tokens is None]
        kept = [(seq, row.tokens) for seq, row in self._rows.items() if row.tokens is not None]
        return [gone, [seq for seq, _ in kept], [tokens for _, tokens in kept]]

    def _pending_columns(self) -> list[list[int]]:
        waits = [seq for seq, row in self._rows.items() if row.waits]
        return [waits, [seq for seq, row in self._rows.items() if row.waits is False]]


_AT_ONCE = 1024
"""Rows: a whole number of segments."""
# writers change the row of a scope, and wait here until all is done
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
    """Index all words again; with `model`, remove all vectors of other models. Atomic.

    Returns how many records wait for a vector now.
    """
    await connection.execute(names.sql(_NO_WRITERS), timeout=SLOW_S)
    if model is not None:
        await schema.set_meta(connection, names, "embedding", model)
        for statement in _DETACH:
            await connection.execute(names.sql(statement), timeout=SLOW_S)
    for row in await connection.fetch(names.sql(_ALL), timeout=SLOW_S):
        for first in range(0, row["next_row"], _AT_ONCE):
            changes = PostgresScopeChanges(connection, names, index)
            await changes.index_again(row, first, detach=model is not None)
    count: int = await connection.fetchval(names.sql("select count(*) from {s}.pending"), timeout=SLOW_S)
    return count
