"""What is in the file, and how an older file becomes a newer one. SQL and nothing else.

Everything of a scope lies together: `id = scope << 32 | n`, so one range reads it and one range erases it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import quote

import apsw

from echoic.errors import StoreCorrupt, StoreTooNew, StoreUnavailable

APPLICATION_ID = 0x45_43_48_4F  # "ECHO"

# One step per schema version, each a list of statements run in the transaction of the whole migration.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "create table meta (name text primary key, value text not null) without rowid",
        # autoincrement: the number of an erased scope is never given to another
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
    # what operators look for across users: any of the three alone finds its rows
    (
        """create index conversations_by_status on records (json_extract(data, '$.status'),
             json_extract(data, '$.agent'), json_extract(data, '$.started_at'))
             where kind = 'conversation'""",
        """create index conversations_by_agent on records (json_extract(data, '$.agent'),
             json_extract(data, '$.started_at')) where kind = 'conversation'""",
        """create index conversations_by_time on records (json_extract(data, '$.started_at'))
             where kind = 'conversation'""",
    ),
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
    """A connection for writing, with every setting durability and erasure rest on."""
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
    """Close it, whatever the disk says to that: nothing that was acknowledged rests on it."""
    with contextlib.suppress(apsw.Error):
        connection.close()


def inspect(path: str, vfs: str | None) -> None:
    """Look at a file before touching it: first without its log and locks, so that nothing at all is changed.

    Raises:
        StoreCorrupt: it is not ours, or not a database.
        StoreTooNew: a newer version wrote it.
    """
    if Path(path).exists():
        as_it_lies = f"file:{quote(str(Path(path).absolute()))}?immutable=1"
        # what is amiss without the log may be well with it
        with contextlib.suppress(apsw.Error):
            _inspect(path, apsw.Connection(as_it_lies, vfs=vfs, flags=_READ_ONLY))
    logged = Path(path + "-wal").exists()
    try:
        connection = apsw.Connection(path, vfs=vfs)
        if logged:  # another program's log is not ours to copy into its file
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


def migrate(connection: apsw.Connection) -> None:
    """Bring the file to `VERSION` in one transaction: wholly or not at all. Writes nothing if it is there."""
    if connection.pragma("user_version") == VERSION:
        return
    connection.execute("begin immediate")
    try:
        for number in range(connection.pragma("user_version"), VERSION):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {VERSION}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def get_meta(connection: apsw.Connection, name: str) -> str | None:
    """A fact about the file, such as the embedding model its vectors are of."""
    value: str | None = connection.execute("select value from meta where name = ?", (name,)).get
    return value


def set_meta(connection: apsw.Connection, name: str, value: str) -> None:
    """Record a fact about the file."""
    connection.execute("insert or replace into meta values (?, ?)", (name, value))


def drop_meta(connection: apsw.Connection, name: str) -> None:
    """Forget a fact about the file."""
    connection.execute("delete from meta where name = ?", (name,))
