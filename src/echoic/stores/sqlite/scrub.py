"""Erasure down to the bytes: delete, empty the log, check what is left, and rewrite the file if needed.

`delete` alone, even with `secure_delete`, leaves copies in the write-ahead log, and a rebuilt page keeps
fragments of its previous cells between its pointers and its cells, including content replaced long ago that
cannot be searched for. So the log is emptied, every page is checked, and a file with such fragments is
rewritten. Samples of the removed content are also searched for. An interrupted erasure is marked in the file
and finished by the next one.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import apsw
import numpy as np

from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.apply import (
    NEEDLE_BYTES,
    TELLING_BYTES,
    as_json,
    name_of,
    removed,
    sample,
    text_needles,
    vector_needle,
)
from echoic.stores.base import FIRST_UNSEARCHABLE, Erasable, Erased, Index, Put, Record
from echoic.stores.sqlite import schema
from echoic.stores.sqlite.schema import SCOPE_BITS, SqliteScopeChanges, find_scope, select_records
from echoic.stores.sqlite.writer import truncate_log
from echoic.types import Scope

_CHUNK = 8 << 20
_SAMPLES = 16
"""The most texts, words and vectors searched for: they check the rewriting, which does not depend on them."""
_MEMORY_BYTES = 64 << 20
"""Larger files are rewritten through an unnamed temporary file instead of memory."""
_UNFINISHED = "unfinished erasure"


def erase(
    connection: apsw.Connection, path: Path, scope: Scope, changes: Sequence[Erasable] | None, index: Index
) -> Erased:
    """Destroy what `changes` drop and replace, or the whole scope, and verify it on the bytes.

    Handles its own transactions.
    """
    found = find_scope(connection, scope)
    unfinished = schema.get_meta(connection, _UNFINISHED) is not None
    if found is None and not unfinished:
        return Erased(verified=True)
    records: list[Record] = []
    needles: list[bytes] = []
    vectors = rewritten = 0
    if found is not None:
        with _transaction(connection):
            puts = {name_of(put): put for put in changes or () if isinstance(put, Put)}
            there = _records(connection, found[0], changes)
            records = [record for record in there if (record.kind, record.id) not in puts]
            rewritten = len(there) - len(records)
            said = [_removed(record, puts.get((record.kind, record.id))) for record in there]
            needles, vectors = _needles(connection, found[0], said)
            if changes is None:
                _delete_scope(connection, found[0])
            else:
                _apply(connection, scope, changes, index)
                if not connection.execute("select 1 from records where scope = ?", (found[0],)).get:
                    _delete_scope(connection, found[0])  # no user's name stays without data
            schema.set_meta(connection, _UNFINISHED, "yes")
    verified, searched = _scrub(connection, path, needles, rewrite=unfinished)
    if verified:
        schema.drop_meta(connection, _UNFINISHED)
    kinds = dict(Counter(record.kind for record in records))
    return Erased(
        records=kinds, rewritten=rewritten, vectors=vectors, verified=verified, bytes_searched=searched
    )


def _removed(record: Record, put: Put | None) -> Record:
    """The removed content of `record`: all of it, or what `put` leaves out."""
    return record if put is None else removed(record, put.record)


@contextlib.contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _records(connection: apsw.Connection, number: int, changes: Sequence[Erasable] | None) -> list[Record]:
    if changes is None:
        return select_records(connection, "scope = ?", (number,))
    where = "scope = ? and kind = ? and name = ?"
    names = dict.fromkeys(map(name_of, changes))  # count each once
    return [r for name in names for r in select_records(connection, where, (number, *name))]


def _delete_scope(connection: apsw.Connection, number: int) -> None:
    first, last = number << SCOPE_BITS, ((number + 1) << SCOPE_BITS) - 1
    connection.execute("delete from pending where record between ? and ?", (first, last))
    for table in ("records", "segments", "vectors", "tokens"):
        connection.execute(f"delete from {table} where id between ? and ?", (first, last))  # noqa: S608 - ours
    connection.execute("delete from scopes where id = ?", (number,))


def _apply(connection: apsw.Connection, scope: Scope, changes: Iterable[Erasable], index: Index) -> None:
    changing = SqliteScopeChanges(connection, scope, index)
    changing.apply(changes)
    changing.finish()


def _needles(connection: apsw.Connection, number: int, records: Sequence[Record]) -> tuple[list[bytes], int]:
    """Samples of what is about to be removed, and how many vectors there are."""
    texts = [
        needle
        for record in sample(records, _SAMPLES)
        for needle in text_needles(record.data, lambda text: [as_json(text)])
    ]
    words: list[bytes] = []
    vectors = _token_needles(connection, number, records)
    count = 0
    by_segment: dict[int, list[int]] = {}
    for record in records:
        if record.seq < FIRST_UNSEARCHABLE:
            by_segment.setdefault(record.seq // SEGMENT_ROWS, []).append(record.seq % SEGMENT_ROWS)
    for place, slots in by_segment.items():
        key = (number << SCOPE_BITS) | place
        stored = connection.execute("select words from segments where id = ?", (key,)).get
        data = connection.execute("select data from vectors where id = ?", (key,)).get
        if stored is None:
            continue
        segment = Segment.from_bytes(stored, data)
        embedded = [slot for slot in slots if segment.rows[slot]["flags"] & Flag.EMBEDDED]
        count += len(embedded)
        if segment.vectors is not None:
            vectors += [needle for slot in embedded[:1] if (needle := vector_needle(segment.vectors[slot]))]
        if len(slots) == int((segment.rows["kind"] != 0).sum()):  # all of its words are removed
            listed = "\n".join(segment.words).encode()[:NEEDLE_BYTES]
            words += [listed] if len(listed) >= TELLING_BYTES else []
    return [*texts, *sample(words, _SAMPLES), *sample(vectors, _SAMPLES)], count


def _token_needles(connection: apsw.Connection, number: int, records: Sequence[Record]) -> list[bytes]:
    found: list[bytes] = []
    for record in sample([r for r in records if r.seq < FIRST_UNSEARCHABLE], _SAMPLES):
        key = (number << SCOPE_BITS) | record.seq
        data: bytes = connection.execute("select data from tokens where id = ?", (key,)).get or b""
        found += [data[:NEEDLE_BYTES]] if len(data) >= NEEDLE_BYTES and any(data[:NEEDLE_BYTES]) else []
    return found


def _scrub(
    connection: apsw.Connection, path: Path, needles: Iterable[bytes], *, rewrite: bool
) -> tuple[bool, int]:
    """Remove deleted bytes; returns whether no needle is left, and the bytes searched."""
    truncate_log(connection)
    rewrite = rewrite or _has_stale_page(connection)
    if rewrite:
        _rewrite(connection)
    left, searched = _search(connection, path, set(needles))
    if left and not rewrite:
        _rewrite(connection)
        left, again = _search(connection, path, left)
        searched += again
    return not left, searched


def _rewrite(connection: apsw.Connection) -> None:
    size = connection.pragma("page_count") * connection.pragma("page_size")
    if size > _MEMORY_BYTES:
        connection.execute("pragma temp_store = file")
    try:
        connection.execute("vacuum")
    finally:
        connection.execute("pragma temp_store = memory")
    truncate_log(connection)


def _search(connection: apsw.Connection, path: Path, needles: set[bytes]) -> tuple[set[bytes], int]:
    """Which needles the file or its log contains though no row does, and how many bytes were read."""
    found: set[bytes] = set()
    read = 0
    tail = b""
    for chunk in chain(_pages(connection), _log(path)):
        read += len(chunk)
        window = tail + chunk
        found.update(needle for needle in needles - found if needle in window)
        tail = window[-NEEDLE_BYTES:]
    return {needle for needle in found if not _alive(connection, needle)}, read


def _pages(connection: apsw.Connection) -> Iterator[bytes]:
    """The database file, many whole pages at a time.

    Read through SQLite's own handle: closing another one would release this process's locks on the file.
    """
    page_size = connection.pragma("page_size")
    size = connection.pragma("page_count") * page_size
    for offset in range(0, size, _CHUNK):  # a multiple of every page size
        yield connection.read("main", 0, offset, min(_CHUNK, size - offset))[1]


def _log(path: Path) -> Iterator[bytes]:
    log = path.with_name(path.name + "-wal")
    if log.exists():
        with log.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk


def _has_stale_page(connection: apsw.Connection) -> bool:
    page_size = connection.pragma("page_size")
    for pages in _pages(connection):
        kinds = np.frombuffer(pages, np.uint8)[::page_size]
        for number in np.flatnonzero(np.isin(kinds, _WITH_CONTENT)):
            if _is_stale(pages[number * page_size : (number + 1) * page_size]):
                return True
    return False


# Index pages and leaves of tables; the inner pages of a table hold numbers only. A page of an overflowing
# record begins with the number of the next one, far below these in the first byte of a file under 128 GiB.
_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE = 2, 10, 13
_WITH_CONTENT = (_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE)


def _is_stale(page: bytes) -> bool:
    """Whether the unused bytes before the cells are not empty (SQLite's file format, section 1.6)."""
    cells, first_cell = struct.unpack_from(">HH", page, 3)
    at = (12 if page[0] == _INNER_INDEX else 8) + 2 * cells
    end = first_cell or 65536
    for (pointer,) in struct.iter_unpack(">H", page[at : end - (end - at) % 2]):
        if not 0 < pointer <= len(page):  # old pointers contain no data
            break
        at += 2
    return any(page[at:end])


def _alive(connection: apsw.Connection, needle: bytes) -> bool:
    """Whether a remaining row contains the same: two people may live in the same town."""
    places = (("records", "data"), ("segments", "words"), ("vectors", "data"), ("tokens", "data"))
    queries = (f"select 1 from {t} where instr(cast({c} as blob), ?) limit 1" for t, c in places)  # noqa: S608 - ours
    return any(connection.execute(query, (needle,)).get for query in queries)
