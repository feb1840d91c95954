"""The embedded store: one SQLite file, no server. One thread writes, another one reads.

`schema` has the layout and the settings, `writer` the writing thread and erasure.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from echoic.errors import NotOpen, StoreCorrupt, StoreUnavailable
from echoic.partition import SEGMENT_ROWS, Partition, Segment
from echoic.stores.apply import begins
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    LISTED,
    Attach,
    Change,
    Erasable,
    Erased,
    Index,
    Record,
    Waiting,
    Wanted,
    check_model,
    model_from,
    model_text,
    not_open,
)
from echoic.stores.scope_state import Loaded, ScopeCache
from echoic.stores.sqlite import schema
from echoic.stores.sqlite.schema import (
    NAMED,
    SCOPE_BITS,
    SqliteScopeChanges,
    find_scope,
    listed_of,
    select_records,
    select_rows,
)
from echoic.stores.sqlite.writer import Writer, erase, write_snapshot
from echoic.text import ANALYSIS
from echoic.types import EmbeddingSpec, Scope

T = TypeVar("T")
_UNKNOWN = -1
"""A mark that no connection returns."""
_NOWHERE = 0
"""The number of an empty scope; SQLite counts from 1."""
_FEW_SEGMENTS = 8
_FEW_ROWS = 50
_LATEST = """scope = (select id from scopes where deployment = ? and user = ?)
  and kind = ? and key = ? order by id desc limit 1"""
CACHE_BYTES = 256 << 20
"""Memory limit of loaded partitions: about 150,000 memories with 384-dimension vectors."""


class SQLiteStore:
    """Memory in one file, safe to share between processes of one machine.

    Args:
        path: the file; its folder must exist. SQLite adds `-wal` and `-shm` beside it, and Echoic `-lock`.
        cache_bytes: memory limit of loaded scopes; the least recently used ones are evicted.
        vfs: the SQLite VFS to open it with; for tests that make the disk fail.
    """

    def __init__(self, path: str | Path, *, cache_bytes: int = CACHE_BYTES, vfs: str | None = None) -> None:
        self._path = Path(path)
        self._vfs = vfs
        self._writer = Writer(str(path), vfs)
        self._cache: ScopeCache[Loaded] = ScopeCache(cache_bytes)
        self._thread: ThreadPoolExecutor | None = None
        self._reader: apsw.Connection | None = None
        self._reader_closed: Future[None] | None = None
        self._watch: apsw.Connection | None = None
        self._index: Index | None = None
        self._spec = EmbeddingSpec("", 0)
        self._opening = asyncio.Lock()

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        async with self._opening:
            await self._open(embedding, index)

    async def _open(self, embedding: EmbeddingSpec, index: Index) -> None:
        if self._thread is not None:
            return
        await self._close()  # left by a cancelled `aclose`
        self._index = index
        try:
            await asyncio.wrap_future(self._writer.start())
            await asyncio.wrap_future(self._writer.submit(lambda c: self._settle(c, embedding)))
            self._spec = embedding
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="echoic-reader")
            await self._read(self._begin_watch)
        except BaseException:
            await self._close()
            raise

    async def aclose(self) -> None:
        async with self._opening:
            await self._close()

    async def _close(self) -> None:
        thread, self._thread = self._thread, None
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
        if thread is not None:
            self._reader_closed = thread.submit(self._close_reader)
            thread.shutdown(wait=False)
        if self._reader_closed is not None:  # if this is cancelled, the next `aclose` waits
            await asyncio.shield(asyncio.wrap_future(self._reader_closed))
        # marks belong to a connection; cleared last, since loads in progress cached until now
        self._cache.clear()
        closing = self._writer.stop()
        if closing is not None:
            await asyncio.shield(asyncio.wrap_future(closing))

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        index = self._opened()
        begin = begins(changes)
        attaches = any(isinstance(change, Attach) for change in changes)

        def work(connection: apsw.Connection) -> None:
            if not begin and find_scope(connection, scope) is None:
                return  # a scope is created with its first record
            if attaches:
                self._check_model(connection, self._spec)
            change = SqliteScopeChanges(connection, scope, index)
            change.apply(changes)
            change.finish()

        if changes:
            await asyncio.wrap_future(self._writer.submit(work))

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        def work(connection: apsw.Connection) -> list[Record]:
            found = find_scope(connection, scope)
            if found is None:
                return []
            return [r for i in ids for r in select_records(connection, NAMED, (found[0], kind, i))]

        return await self._read_few(work, len(ids))

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        def work(connection: apsw.Connection) -> list[Record]:
            found = find_scope(connection, scope)
            if found is None:
                return []
            base = found[0] << SCOPE_BITS
            ours = [base | row for row in rows if 0 <= row < FIRST_UNSEARCHABLE]
            records: dict[int, Record] = {}
            for first in range(0, len(ours), _FEW_ROWS):
                some = ours[first : first + _FEW_ROWS]
                marks = ",".join("?" * len(some))
                records |= {r.seq: r for r in select_records(connection, f"id in ({marks})", some)}
            return [records[row] for row in rows if row in records]

        return await self._read_few(work, len(rows))

    async def scan(
        self,
        scope: Scope,
        kind: str,
        *,
        key: str | None = None,
        after: int = -1,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Record]:
        def work(connection: apsw.Connection) -> list[Record]:
            found = find_scope(connection, scope)
            if found is None:
                return []
            first, last = found[0] << SCOPE_BITS, ((found[0] + 1) << SCOPE_BITS) - 1
            if newest_first:
                last = first + after - 1 if after >= 0 else last
            else:
                first = first + after + 1
            where = "scope = ? and kind = ? and id between ? and ?"
            values: list[Any] = [found[0], kind, first, last]
            if key is not None:
                where, values = f"{where} and key = ?", [*values, key]
            order = "desc" if newest_first else "asc"
            return select_records(connection, f"{where} order by id {order} limit ?", [*values, limit])

        # without a key many records may be skipped before enough are found
        return await (self._read(work) if key is None else self._read_few(work, limit))

    async def load(self, scope: Scope) -> Partition:
        self._opened()
        mark = self._mark()
        loaded = self._cache.get(scope)
        if loaded is not None and loaded.seen == mark != _UNKNOWN:
            return loaded.partition  # nothing was written since: no need for the other thread
        return await self._read(lambda connection: self._load(connection, scope, mark))

    async def waiting(self, limit: int) -> list[Waiting]:
        def work(connection: apsw.Connection) -> list[Waiting]:
            rows = connection.execute(
                "select r.id, r.kind, r.name, r.key, r.version, r.data, s.deployment, s.user "
                "from pending p join records r on r.id = p.record join scopes s on s.id = r.scope "
                "order by p.place limit ?",
                (limit,),
            )
            return [Waiting(scope=Scope(row[6], row[7] or None), record=listed_of(row)) for row in rows]

        return await self._read(work)

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        index = self._opened()
        # drop the cached partition first: no copy in this process may outlive the receipt
        await self._read(lambda _connection: self._cache.drop(scope))
        erased = await asyncio.wrap_future(
            self._writer.alone(lambda connection: erase(connection, self._path, scope, changes, index))
        )
        # it may have been loaded before the erasure
        await self._read(lambda _connection: self._cache.drop(scope))
        return erased

    async def snapshot(self, path: Path) -> None:
        """Write a consistent snapshot of the file to the new file `path`, while writing continues.

        Raises:
            StoreUnavailable: the file could not be read, or the snapshot not written.
            StoreCorrupt: the snapshot is damaged.
        """
        await self._read(lambda connection: write_snapshot(connection, path))

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        def work(connection: apsw.Connection) -> list[Scope]:
            rows = connection.execute(
                "select deployment, user from scopes s "
                "where exists (select 1 from records where scope = s.id) order by id"
            )
            return [Scope(row[0], row[1] or None) for row in rows if deployment in {None, row[0]}]

        return await self._read(work)

    async def listed(self, wanted: Wanted) -> list[tuple[Scope, Record]]:
        where = ["r.kind = 'conversation'", "s.deployment = ?"]
        values: list[Any] = [wanted.deployment]
        status = json.dumps(wanted.status) if wanted.status else None
        for field, how, given in (
            ("status", "in (select value from json_each(?))", status),
            ("agent", "= ?", wanted.agent),
            ("started_at", ">= ?", wanted.since),
            ("started_at", "< ?", wanted.until),
        ):
            if given is not None:
                where.append(f"json_extract(r.data, '$.{field}') {how}")
                values.append(given)
        # cross join: from the index to the scopes, never through every scope
        tables = (
            f"records r indexed by conversations_by_{_index(wanted)} cross join scopes s on s.id = r.scope"
        )
        if wanted.user is not None:
            where.append("s.user = ?")
            values.append(wanted.user)
            tables = "scopes s cross join records r indexed by records_by_name on r.scope = s.id"
        order = ""
        if wanted.newest is not None:
            order = " order by json_extract(r.data, '$.started_at') desc limit ?"
            values.append(wanted.newest)

        def work(connection: apsw.Connection) -> list[tuple[Scope, Record]]:
            rows = connection.execute(
                "select r.id, r.kind, r.name, r.key, r.version, r.data, s.deployment, s.user "  # noqa: S608 - ours
                f"from {tables} where {' and '.join(where)}{order}",
                values,
            )
            return [(Scope(row[6], row[7] or None), listed_of(row)) for row in rows]

        return await self._read(work) if wanted.kind == LISTED else []

    async def latest(self, kind: str, keys: Sequence[tuple[Scope, str]]) -> list[tuple[Scope, Record]]:
        def work(connection: apsw.Connection) -> list[tuple[Scope, Record]]:
            found: list[tuple[Scope, Record]] = []
            for scope, key in keys:
                place = (scope.deployment, scope.user or "", kind, key)
                found += [(scope, listed_of(row)) for row in select_rows(connection, _LATEST, place)]
            return found

        return await self._read_few(work, len(keys))

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        index = self._opened()
        waiting = await asyncio.wrap_future(
            self._writer.submit(lambda connection: _index_again(connection, index, embedding))
        )
        self._spec = embedding
        await self._read(lambda _connection: self._cache.clear())
        return waiting

    async def check(self) -> Mapping[str, Any]:
        def work(connection: apsw.Connection) -> dict[str, Any]:
            count = "select count(*) from "
            return {
                "engine": f"SQLite {apsw.sqlite_lib_version()}",
                "file": str(self._path),
                "bytes": self._path.stat().st_size if self._path.exists() else 0,
                "schema": connection.pragma("user_version"),
                "embedding": schema.get_meta(connection, "embedding"),
                "scopes": connection.execute(count + "scopes").get,
                "records": connection.execute(count + "records").get,
                "waiting": connection.execute(count + "pending").get,
                "loaded_scopes": len(self._cache),
                "loaded_bytes": self._cache.nbytes,
                "durable": True,
            }

        facts = await self._read(work)
        refused: str | None = None
        try:
            await asyncio.wrap_future(self._writer.submit(lambda c: schema.set_meta(c, "checked", "ok")))
        except StoreUnavailable as error:
            refused = str(error)
        failure = self._writer.suspect or refused
        return {**facts, "writable": failure is None, "failure": failure}

    def _opened(self) -> Index:
        if self._thread is None or self._index is None:
            raise not_open()
        return self._index

    async def _read_few(self, work: Callable[[apsw.Connection], T], most: int) -> T:
        """Read on the event loop if at most `_FEW_ROWS` records come back."""
        self._opened()
        if self._watch is not None and most <= _FEW_ROWS:
            # these pages are usually in memory: waking another thread would take longer
            with contextlib.suppress(apsw.Error, UnicodeError):  # busy, or worse: the other thread handles it
                return work(self._watch)
        return await self._read(work)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        self._opened()
        thread = self._thread
        if thread is None:  # closed meanwhile
            raise NotOpen("the store was closed")
        return await asyncio.wrap_future(thread.submit(self._with_reader, work))

    def _with_reader(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            if self._reader is None:
                self._reader = schema.connect_reader(str(self._path), self._vfs)
            return work(self._reader)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise StoreCorrupt(
                f"{str(self._path)!r} cannot be read: {error}; it is left untouched"
            ) from error
        except UnicodeError:
            raise StoreCorrupt(
                f"{str(self._path)!r} is damaged: a text in it is not UTF-8; it is left untouched"
            ) from None
        except apsw.Error as error:
            self._close_reader()
            raise StoreUnavailable(f"{str(self._path)!r} could not be read: {error}. Retry.") from error

    def _begin_watch(self, _connection: apsw.Connection) -> None:
        self._watch = schema.connect_reader(str(self._path), self._vfs)
        self._watch.set_busy_timeout(0)  # used on the event loop, so it must never wait
        self._watch.pragma("data_version")

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with contextlib.suppress(apsw.Error):
                reader.close()

    def _mark(self) -> int:
        """Changes with every commit, of any process. Some microseconds on the event loop."""
        try:
            return int(self._watch.execute("pragma data_version").get) if self._watch else _UNKNOWN
        except apsw.Error:  # busy, as while another process recovers the log: use the other thread
            return _UNKNOWN

    def _load(self, connection: apsw.Connection, scope: Scope, mark: int) -> Partition:
        loaded = self._cache.get(scope)
        with connection:  # one snapshot for the version and what it covers
            number, version, rows, _ = find_scope(connection, scope) or (_NOWHERE, 0, 0, 0)
            if new := loaded is None or loaded.number != number:
                loaded = Loaded(Partition(self._spec.dimensions), number, _UNKNOWN)
            assert loaded is not None
            partition = loaded.partition
            if changed := partition.version != version:
                if new:
                    _fill(connection, partition, number, rows)
                else:
                    _renew(connection, partition, number)
                partition.version = version
            loaded.seen = mark
            if new or changed:  # last: readers use a cached partition as it is
                self._cache.put(scope, loaded)
        return partition

    def _settle(self, connection: apsw.Connection, embedding: EmbeddingSpec) -> None:
        """Check or record the model of the vectors and the analysis version."""
        if schema.get_meta(connection, "embedding") is None:
            schema.set_meta(connection, "embedding", model_text(embedding))
        self._check_model(connection, embedding)
        if self._index is not None and schema.get_meta(connection, "analysis") != str(ANALYSIS):
            _index_again(connection, self._index, None)
            schema.set_meta(connection, "analysis", str(ANALYSIS))

    def _check_model(self, connection: apsw.Connection, ours: EmbeddingSpec) -> None:
        theirs = model_from(schema.get_meta(connection, "embedding") or "")
        check_model(theirs, ours, repr(str(self._path)))


def _index(wanted: Wanted) -> str:
    """The index to read by. Most conversations are completed: the newest of those are found by their time."""
    by_status = wanted.status and (wanted.newest is None or "completed" not in wanted.status)
    return "status" if by_status else "agent" if wanted.agent is not None else "time"


def _fill(connection: apsw.Connection, partition: Partition, number: int, rows: int) -> None:
    """Load scope `number` of at most `rows` rows into `partition`, which nobody else uses yet."""
    partition.reserve(-(-rows // SEGMENT_ROWS) * SEGMENT_ROWS)
    segments = _segments_since(connection, number, 0)
    places: list[int] = []
    # a few at a time, to reuse memory
    while part := [*itertools.islice(segments, _FEW_SEGMENTS)]:
        partition.patch(part)
        places += [at for at, _ in part]
    partition.add_tokens(_tokens_of(connection, number, places))


def _renew(connection: apsw.Connection, partition: Partition, number: int) -> None:
    """Update `partition` of scope `number`; concurrent readers see all of the update or nothing."""
    segments = [*_segments_since(connection, number, partition.version)]
    tokens = _tokens_of(connection, number, [at for at, _ in segments])
    with partition.lock:
        partition.patch(segments)
        partition.add_tokens(tokens)


def _segments_since(connection: apsw.Connection, number: int, version: int) -> Iterator[tuple[int, Segment]]:
    """The segments of scope `number` changed since `version`, in order, without word pieces."""
    first, last = number << SCOPE_BITS, ((number + 1) << SCOPE_BITS) - 1
    rows = connection.execute(
        "select s.id, s.words, v.data from segments s left join vectors v on v.id = s.id "
        "where s.id between ? and ? and s.version > ? order by s.id",
        (first, last, version),
    )
    return ((key - first, Segment.from_bytes(words, vectors)) for key, words, vectors in rows)


def _tokens_of(connection: apsw.Connection, number: int, segments: list[int]) -> dict[int, bytes]:
    """The word pieces of the rows of `segments`, in order, of scope `number`."""
    found: dict[int, bytes] = {}
    first = number << SCOPE_BITS
    if not segments:
        return found
    # one scan for a whole scope; after a patch the few changed segments may be adjacent or scattered
    whole = len(segments) > _FEW_SEGMENTS
    spans = [(segments[0], segments[-1])] if whole else [(at, at) for at in segments]
    changed = set(segments)
    for start, end in spans:
        rows = (first + start * SEGMENT_ROWS, first + end * SEGMENT_ROWS + SEGMENT_ROWS - 1)
        for key, data in connection.execute("select id, data from tokens where id between ? and ?", rows):
            found[key - first] = data
    if len(changed) <= segments[-1] - segments[0]:  # some segments in the range are unchanged
        found = {row: data for row, data in found.items() if row // SEGMENT_ROWS in changed}
    return found


def _index_again(connection: apsw.Connection, index: Index, embedding: EmbeddingSpec | None) -> int:
    """Index every searchable record again; with `embedding`, drop all vectors as well."""
    if embedding is not None:
        schema.set_meta(connection, "embedding", model_text(embedding))
        connection.execute("delete from vectors")
        connection.execute("delete from tokens")
        connection.execute("delete from pending")
    scopes: list[Any] = connection.execute("select id, deployment, user from scopes").fetchall()
    for number, deployment, user in scopes:
        changes = SqliteScopeChanges(connection, Scope(deployment, user or None), index)
        first = number << SCOPE_BITS
        rows = (first, first | (FIRST_UNSEARCHABLE - 1))
        records = select_records(connection, "id between ? and ? order by id", rows)
        changes.index_again(records, detach=embedding is not None)
        changes.finish()
    waiting: int = connection.execute("select count(*) from pending").get
    return waiting
