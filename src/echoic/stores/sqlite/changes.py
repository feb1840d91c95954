"""Changes to one scope, inside a transaction somebody else began: records, segments, vectors, what waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from echoic.errors import WriteConflict
from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.apply import Changing, takes
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Drop, Index, Put, Record
from echoic.types import Scope

SCOPE_BITS = 32
_SEQ_MASK = (1 << SCOPE_BITS) - 1
_RECORD = "select id, kind, name, key, version, data from records"


def record_of(row: Sequence[Any]) -> Record:
    """A row of `records` as selected by `select_records`."""
    return Record(
        id=row[2], kind=row[1], key=row[3], version=row[4], data=json.loads(row[5]), seq=row[0] & _SEQ_MASK
    )


def select_records(connection: apsw.Connection, where: str, values: Sequence[Any]) -> list[Record]:
    """The records for which the SQL condition `where` holds."""
    rows: Sequence[Sequence[Any]] = connection.execute(f"{_RECORD} where {where}", values).fetchall()
    # read as one document: half of what it takes to read a hit's is to begin
    data = json.loads(f"[{','.join(row[5] for row in rows)}]")
    return [
        Record(id=row[2], kind=row[1], key=row[3], version=row[4], data=said, seq=row[0] & _SEQ_MASK)
        for row, said in zip(rows, data, strict=True)
    ]


def find_scope(connection: apsw.Connection, scope: Scope) -> tuple[int, int, int, int] | None:
    """Number, version, next row and next unsearchable seq of `scope`; None if it holds nothing."""
    found: tuple[int, int, int, int] | None = connection.execute(
        "select id, version, next_row, next_other from scopes where deployment = ? and user = ?",
        (scope.deployment, scope.user or ""),
    ).get
    return found


class SqliteScopeChanges(Changing):
    """One scope being changed. Build it in a transaction, `apply`, then `finish` before the commit."""

    def __init__(self, connection: apsw.Connection, scope: Scope, index: Index) -> None:
        self._connection = connection
        self._segments: dict[int, Segment] = {}
        found = find_scope(connection, scope)
        if found is None:
            connection.execute(
                "insert into scopes (deployment, user) values (?, ?)", (scope.deployment, scope.user or "")
            )
            found = find_scope(connection, scope)
        if found is None:
            raise WriteConflict(f"the scope {scope} could not be created")
        self.number, version, next_row, next_other = found
        super().__init__(index, next_row, next_other)
        self._version = version + 1
        self._base = self.number << SCOPE_BITS

    def index_again(self, records: Iterable[Record], *, detach: bool) -> None:
        """Cut the words of `records` anew; with `detach` their vectors are let go of as well."""
        for record in records:
            entry = self._index(record)
            if entry is None:
                continue
            segment, slot = self._segment(record.seq), record.seq % SEGMENT_ROWS
            segment.put(slot, entry, keep_vector=not detach)
            if not segment.rows[slot]["flags"] & Flag.EMBEDDED:
                self._wait(record.seq)

    def finish(self) -> None:
        """Write back what was changed in segments, and the scope's new version."""
        for number, segment in self._segments.items():
            key = self._base | number
            if segment.empty:
                self._connection.execute("delete from vectors where id = ?", (key,))
            # the words of an emptied segment stay, as no words: who loaded it must see that it is empty
            self._connection.execute(
                "insert or replace into segments values (?, ?, ?)", (key, self._version, segment.to_bytes())
            )
        self._connection.execute(
            "update scopes set version = ?, next_row = ?, next_other = ? where id = ?",
            (self._version, self._next_row, self._next_other, self.number),
        )

    def _stands(self, kind: str, name: str) -> Record | None:
        found = select_records(
            self._connection, "scope = ? and kind = ? and name = ?", (self.number, kind, name)
        )
        return found[0] if found else None

    def _put(self, put: Put) -> None:
        record, entry, same = self._written(put, self._stands(put.record.kind, put.record.id))
        data = json.dumps(record.data, ensure_ascii=False, separators=(",", ":"))
        self._connection.execute(
            "insert into records values (?, ?, ?, ?, ?, ?, ?) on conflict (id) do update set "
            "key = excluded.key, version = excluded.version, data = excluded.data",
            (self._base | record.seq, self.number, record.kind, record.id, record.key, record.version, data),
        )
        if entry is None:
            return
        if not same:
            self._overwrite_vector(record.seq)
            self._wait(record.seq)
        self._segment(record.seq).put(record.seq % SEGMENT_ROWS, entry, keep_vector=same)

    def _wait(self, seq: int) -> None:
        self._connection.execute("insert or ignore into pending (record) values (?)", (self._base | seq,))

    def _drop(self, drop: Drop) -> None:
        old = self._stands(drop.kind, drop.id)
        if old is None:
            return
        key = self._base | old.seq
        self._connection.execute("delete from records where id = ?", (key,))
        self._connection.execute("delete from pending where record = ?", (key,))
        if old.seq < FIRST_UNSEARCHABLE:
            self._overwrite_vector(old.seq)
            self._segment(old.seq).drop(old.seq % SEGMENT_ROWS)

    def _attach(self, attach: Attach) -> None:
        old = self._stands(attach.kind, attach.id)
        if not takes(old, attach):
            return
        segment = self._segment(old.seq)
        self._write_vector(old.seq, np.ascontiguousarray(attach.vector, np.float32))
        self._write_tokens(old.seq, attach.tokens)
        segment.attach(old.seq % SEGMENT_ROWS, attach.vector)
        self._connection.execute("delete from pending where record = ?", (self._base | old.seq,))

    def _segment(self, seq: int) -> Segment:
        number = seq // SEGMENT_ROWS
        segment = self._segments.get(number)
        if segment is None:
            words = self._connection.execute(
                "select words from segments where id = ?", (self._base | number,)
            ).get
            segment = self._segments[number] = Segment.from_bytes(words) if words else Segment()
        return segment

    def _write_vector(self, seq: int, vector: NDArray[np.float32]) -> None:
        """Write a vector in place: one page of a segment's 48 KB is written, not all twelve."""
        key = self._base | (seq // SEGMENT_ROWS)
        size = self._connection.execute("select length(data) from vectors where id = ?", (key,)).get
        if size is None:
            self._connection.execute(
                "insert into vectors values (?, zeroblob(?))", (key, vector.nbytes * SEGMENT_ROWS)
            )
        with self._connection.blob_open("main", "vectors", "data", key, writeable=True) as blob:
            blob.seek(seq % SEGMENT_ROWS * vector.nbytes)
            blob.write(vector.tobytes())

    def _write_tokens(self, seq: int, tokens: bytes | None) -> None:
        key = self._base | seq
        if tokens:
            self._connection.execute("insert or replace into tokens values (?, ?)", (key, tokens))
        else:
            self._connection.execute("delete from tokens where id = ?", (key,))

    def _overwrite_vector(self, seq: int) -> None:
        self._write_tokens(seq, None)
        key = self._base | (seq // SEGMENT_ROWS)
        size = self._connection.execute("select length(data) from vectors where id = ?", (key,)).get
        if size:
            self._write_vector(seq, np.zeros(size // SEGMENT_ROWS // 4, np.float32))
