"""The SQLite schema, its migrations, and how changes to one scope are written.

All rows of a scope are adjacent: `id = scope << 32 | n`, so one range reads it and one range erases it.
Changes are made inside the caller's transaction: records, segments, vectors, pending rows.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw
import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt, StoreTooNew, StoreUnavailable, WriteConflict
from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.apply import Changing, takes
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Drop, Index, Put, Record, damaged
from echoic.types import Scope

APPLICATION_ID = 0x45_43_48_4F  # "ECHO"

# queries of operators across users: any of the three alone finds its rows
CONVERSATION_INDEXES: Final = {
    "conversations_by_status": """create index conversations_by_status on records
         (json_extract(data, '$.status'), json_extract(data, '$.agent'), json_extract(data, '$.started_at'))
         where kind = 'conversation'""",
    "conversations_by_agent": """create index conversations_by_agent on records
         (json_extract(data, '$.agent'), json_extract(data, '$.started_at')) where kind = 'conversation'""",
    "conversations_by_time": """create index conversations_by_time on records
         (json_extract(data, '$.started_at')) where kind = 'conversation'""",
}

# One step per schema version, each a list of statements run in the transaction of the whole migration.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "create table meta (name text primary key, value text not null) without rowid",
        # autoincrement: the number of an erased scope is never reused
        """create table scopes (
             id integer primary key autoincrement,
             deployment text not null,
             user text not null,  -- '' is everyone's: no user has an empty name
             version integer not null default 0,
             next_row integer not null default 0,
             next_other integer not null default 0x80000000,
             unique (deployment, user))""",
        """create table records (
             id integer primary key,  -- scope << 32 | seq
             scope integer not null,
             kind text not null,
             name text not null,
             key text,
             version integer not null,
             data text not null)""",
        "create unique index records_by_name on records (scope, kind, name)",
        "create index records_by_key on records (scope, kind, key) where key is not null",
        """create table segments (
             id integer primary key,  -- scope << 32 | row / 32
             version integer not null,  -- the scope's, when it last changed
             words blob not null)""",
        "create table vectors (id integer primary key, data blob not null)",
        "create table pending (place integer primary key, record integer not null unique)",
    ),
    # a row each, where a vector shares its blob with 31 others: they differ in length
    ("create table tokens (id integer primary key, data blob not null)",),  # scope << 32 | row
    tuple(CONVERSATION_INDEXES.values()),
)
VERSION = len(MIGRATIONS)

# FULL: an acknowledged write is on the disk; NORMAL lost 255 of 1,150 at a power cut, FULL none.
# secure_delete: what is removed is overwritten in the same transaction.
# wal_autocheckpoint=0: the writer checkpoints between writes, after their callers were answered.
# busy_timeout: only for processes without our lock file, such as a backup tool.
_SETTINGS = (
    "pragma synchronous = full",
    "pragma secure_delete = on",
    "pragma wal_autocheckpoint = 0",
    "pragma mmap_size = 0",
    "pragma temp_store = memory",
    "pragma trusted_schema = off",
)
BUSY_TIMEOUT_MS = 10_000
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def connect(path: str, vfs: str | None) -> apsw.Connection:
    """A connection for writing, with every setting that durability and erasure need."""
    connection = apsw.Connection(path, vfs=vfs)
    try:
        _settle(connection, path)
    except BaseException:
        close(connection)
        raise
    return connection


def _settle(connection: apsw.Connection, path: str) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    if connection.readonly("main"):
        raise StoreUnavailable(f"{path!r} is read-only: let this user write it, and its folder")
    if connection.pragma("journal_mode") != "wal" and connection.pragma("journal_mode", "wal") != "wal":
        raise StoreCorrupt(f"{path!r} cannot be put into WAL mode; is it on a network file system?")
    for setting in _SETTINGS:
        connection.execute(setting)


def connect_reader(path: str, vfs: str | None) -> apsw.Connection:
    """A connection that cannot write."""
    connection = apsw.Connection(path, vfs=vfs, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("pragma query_only = on")
    connection.execute("pragma mmap_size = 0")
    return connection


def close(connection: apsw.Connection) -> None:
    """Close it, ignoring disk errors: acknowledged data does not depend on it."""
    with contextlib.suppress(apsw.Error):
        connection.close()


def inspect(path: str, vfs: str | None) -> None:
    """Check a file before using it: first without its log and locks, so that nothing is changed.

    Raises StoreCorrupt if it is damaged or not ours, and StoreTooNew.
    """
    if Path(path).exists():
        as_it_lies = f"file:{quote(str(Path(path).absolute()))}?immutable=1"
        # a file that looks damaged without its log may be fine with it
        with contextlib.suppress(apsw.Error):
            _inspect(path, apsw.Connection(as_it_lies, vfs=vfs, flags=_READ_ONLY))
    logged = Path(path + "-wal").exists()
    try:
        connection = apsw.Connection(path, vfs=vfs)
        if logged:  # do not apply another program's log to its file
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        page_size = _inspect(path, connection)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreCorrupt(f"{path!r} is not a readable database ({error}); it was left untouched") from error
    # SQLite takes the missing rest of a last page for zeros; a log may still hold the whole page
    if Path(path).stat().st_size % page_size and not logged:
        raise StoreCorrupt(f"{path!r} ends in the middle of a page: part of it is missing; not touched")


def _inspect(path: str, connection: apsw.Connection) -> int:
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        owner = connection.pragma("application_id")
        version = connection.pragma("user_version")
        tables = connection.execute("select count(*) from sqlite_schema").get
        page_size: int = connection.pragma("page_size")
    finally:
        close(connection)
    if owner != APPLICATION_ID and (tables or version):
        raise StoreCorrupt(f"{path!r} is another program's database (application id {owner}); not touched")
    if version > VERSION:
        raise StoreTooNew(
            f"{path!r} has schema {version}, this Echoic knows {VERSION}: upgrade Echoic to open it"
        )
    return page_size


@contextlib.contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """One write transaction, rolled back by an exception."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def migrate(connection: apsw.Connection) -> None:
    """Migrate the file to `VERSION` in one transaction. Writes nothing if it has that version."""
    if connection.pragma("user_version") == VERSION:
        return
    with transaction(connection):
        for number in range(connection.pragma("user_version"), VERSION):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {VERSION}")


def get_meta(connection: apsw.Connection, name: str) -> str | None:
    """A fact about the file, such as the model of its vectors."""
    value: str | None = connection.execute("select value from meta where name = ?", (name,)).get
    return value


def set_meta(connection: apsw.Connection, name: str, value: str) -> None:
    connection.execute("insert or replace into meta values (?, ?)", (name, value))


def drop_meta(connection: apsw.Connection, name: str) -> None:
    connection.execute("delete from meta where name = ?", (name,))


SCOPE_BITS = 32
SEQ_MASK = (1 << SCOPE_BITS) - 1
_RECORD = "select id, kind, name, key, version, data from records"
NAMED = "scope = ? and kind = ? and name = ?"


def record_of(row: Sequence[Any]) -> Record:
    """The record in a row of `records`, as selected by `select_records`."""
    return _record(row, parsed(row[5], row[1], row[2]))


def _record(row: Sequence[Any], data: dict[str, Any]) -> Record:
    return Record(id=row[2], kind=row[1], key=row[3], version=row[4], data=data, seq=row[0] & SEQ_MASK)


def listed_of(row: Sequence[Any]) -> Record:
    """The same in a list over many users: a damaged one has no data there, and keeps no other back."""
    try:
        return record_of(row)
    except StoreCorrupt:
        return _record(row, {})


def select_records(connection: apsw.Connection, where: str, values: Sequence[Any]) -> list[Record]:
    """The records for which the SQL condition `where` holds."""
    rows = select_rows(connection, where, values)
    # parsed as one JSON document: for small records half the time is overhead
    try:
        data = json.loads(f"[{','.join(row[5] for row in rows)}]")
    except ValueError:
        data = []
    if len(data) != len(rows) or not all(isinstance(said, dict) for said in data):  # as of `{},{}`
        return [record_of(row) for row in rows]  # raises, and says which
    return [_record(row, said) for row, said in zip(rows, data, strict=True)]


def select_rows(connection: apsw.Connection, where: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The rows for which the SQL condition `where` holds, for `record_of`."""
    return connection.execute(f"{_RECORD} where {where}", values).fetchall()


def parsed(data: str | bytes, kind: str, name: str) -> dict[str, Any]:
    """The JSON object in a record's `data`; raises StoreCorrupt if it is none."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise damaged(kind, name)
    return said


def find_scope(connection: apsw.Connection, scope: Scope) -> tuple[int, int, int, int] | None:
    """Number, version, next row and next unsearchable seq of `scope`; None if it is empty."""
    found: tuple[int, int, int, int] | None = connection.execute(
        "select id, version, next_row, next_other from scopes where deployment = ? and user = ?",
        (scope.deployment, scope.user or ""),
    ).get
    return found


class SqliteScopeChanges(Changing):
    """One scope being changed. Create it in a transaction, `apply`, then `finish` before the commit."""

    def __init__(self, connection: apsw.Connection, scope: Scope, index: Index) -> None:
        self._connection = connection
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
        """Index the words of `records` again; with `detach`, remove their vectors too."""
        for record in records:
            entry = self._index(record)
            if entry is None:
                continue
            segment, slot = self._segment(record.seq), record.seq % SEGMENT_ROWS
            segment.put(slot, entry, keep_vector=not detach)
            if not segment.rows[slot]["flags"] & Flag.EMBEDDED:
                self._wait(record.seq)

    def finish(self) -> None:
        """Write back the changed segments, and the scope's new version."""
        for number, segment in self._segments.items():
            key = self._base | number
            if segment.empty:
                self._connection.execute("delete from vectors where id = ?", (key,))
            # keep an emptied segment without words: processes that loaded it must see that it is empty
            self._connection.execute(
                "insert or replace into segments values (?, ?, ?)", (key, self._version, segment.to_bytes())
            )
        self._connection.execute(
            "update scopes set version = ?, next_row = ?, next_other = ? where id = ?",
            (self._version, self._next_row, self._next_other, self.number),
        )

    def _stands(self, kind: str, name: str) -> Record | None:
        found = select_records(self._connection, NAMED, (self.number, kind, name))
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
        # not read: a damaged record can be removed too
        found = self._connection.execute(
            f"select id from records where {NAMED}",  # noqa: S608 - ours
            (self.number, drop.kind, drop.id),
        )
        if (key := found.get) is None:
            return
        self._connection.execute("delete from records where id = ?", (key,))
        self._connection.execute("delete from pending where record = ?", (key,))
        if (seq := key & SEQ_MASK) < FIRST_UNSEARCHABLE:
            self._overwrite_vector(seq)
            self._segment(seq).drop(seq % SEGMENT_ROWS)

    def _attach(self, attach: Attach) -> None:
        old = self._stands(attach.kind, attach.id)
        if not takes(old, attach):
            return
        segment = self._segment(old.seq)
        self._write_vector(old.seq, np.ascontiguousarray(attach.vector, np.float32))
        self._write_tokens(old.seq, attach.tokens)
        segment.attach(old.seq % SEGMENT_ROWS, attach.vector)
        self._connection.execute("delete from pending where record = ?", (self._base | old.seq,))

    def _stored_segment(self, number: int) -> Segment:
        key = self._base | number
        words = self._connection.execute("select words from segments where id = ?", (key,)).get
        return Segment.from_bytes(words) if words else Segment()

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
