"""Erasure that reaches the bytes: delete, empty the log, then search the file for what was there.

`delete` alone, even with `secure_delete`, leaves copies in the write-ahead log; and a page that was split may
keep stale cells in its gap. So the log is emptied and samples of what was removed are looked for; if one is
still there the file is rewritten whole and searched again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE, Drop, Erased, Index, Record
from echoic.stores.sqlite_changes import SCOPE_BITS, ScopeChanges, find_scope, select_records
from echoic.stores.sqlite_writer import truncate_log
from echoic.types import Scope

_CHUNK = 8 << 20
_SAMPLES = 48
"""Of texts, and as many of words and vectors: enough to see a page left behind, cheap on a large file."""
_NEEDLE_BYTES = 40


def erase(
    connection: apsw.Connection, path: Path, scope: Scope, drops: Sequence[Drop] | None, index: Index
) -> Erased:
    """Destroy `drops`, or the whole scope, and verify it on the bytes. Handles its own transactions."""
    found = find_scope(connection, scope)
    if found is None:
        return Erased(verified=True)
    number = found[0]
    connection.execute("begin immediate")
    try:
        records = _records(connection, number, drops)
        needles, vectors = _needles(connection, number, records)
        if drops is None:
            _delete_scope(connection, number)
        else:
            _drop(connection, scope, records, index)
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
    verified, searched = _verify(connection, path, needles)
    kinds: dict[str, int] = {}
    for record in records:
        kinds[record.kind] = kinds.get(record.kind, 0) + 1
    return Erased(records=kinds, vectors=vectors, verified=verified, bytes_searched=searched)


def _records(connection: apsw.Connection, number: int, drops: Sequence[Drop] | None) -> list[Record]:
    if drops is None:
        return select_records(connection, "scope = ?", (number,))
    where = "scope = ? and kind = ? and name = ?"
    return [r for d in drops for r in select_records(connection, where, (number, d.kind, d.id))]


def _delete_scope(connection: apsw.Connection, number: int) -> None:
    first, last = number << SCOPE_BITS, ((number + 1) << SCOPE_BITS) - 1
    connection.execute("delete from pending where record between ? and ?", (first, last))
    for table in ("records", "segments", "vectors"):
        connection.execute(f"delete from {table} where id between ? and ?", (first, last))  # noqa: S608 - ours
    connection.execute("delete from scopes where id = ?", (number,))


def _drop(connection: apsw.Connection, scope: Scope, records: Iterable[Record], index: Index) -> None:
    changes = ScopeChanges(connection, scope, index)
    changes.apply(Drop(kind=record.kind, id=record.id) for record in records)
    changes.finish()


def _needles(connection: apsw.Connection, number: int, records: Sequence[Record]) -> tuple[list[bytes], int]:
    """Samples of what is about to go, and how many vectors there are."""
    texts = [needle for record in _sample(records) for needle in _text_needles(record.data)]
    words: list[bytes] = []
    vectors: list[bytes] = []
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
            vectors += [segment.vectors[slot].tobytes()[:_NEEDLE_BYTES] for slot in embedded[:1]]
        if len(slots) == int((segment.rows["kind"] != 0).sum()):  # all of its words go
            words.append("\n".join(segment.words).encode()[:_NEEDLE_BYTES])
    return [*texts, *_sample(words), *_sample(vectors)], count


def _text_needles(data: Any) -> Iterator[bytes]:
    longest = max(_strings(data), key=len, default="")
    needle = json.dumps(longest, ensure_ascii=False)[1:-1].encode()[:_NEEDLE_BYTES]
    if len(needle) >= 8:  # shorter ones are somebody else's too, more often than not
        yield needle


def _strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from _strings(value)


def _sample(items: Sequence[Any]) -> list[Any]:
    step = max(1, len(items) // _SAMPLES)
    return list(items[::step][:_SAMPLES])


def _verify(connection: apsw.Connection, path: Path, needles: list[bytes]) -> tuple[bool, int]:
    truncate_log(connection)
    left, searched = _search(connection, path, needles)
    if left:
        connection.execute("vacuum")
        truncate_log(connection)
        left, again = _search(connection, path, left)
        searched += again
    return not left, searched


def _search(connection: apsw.Connection, path: Path, needles: list[bytes]) -> tuple[list[bytes], int]:
    """Which needles the file or its log holds although no living row does, and how many bytes were read."""
    found: set[bytes] = set()
    read = 0
    for file in (path, path.with_name(path.name + "-wal")):
        if not file.exists():
            continue
        with file.open("rb") as stream:
            tail = b""
            while chunk := stream.read(_CHUNK):
                read += len(chunk)
                window = tail + chunk
                found.update(needle for needle in needles if needle in window)
                tail = window[-_NEEDLE_BYTES:]
    return [needle for needle in found if not _alive(connection, needle)], read


def _alive(connection: apsw.Connection, needle: bytes) -> bool:
    """Whether a row that was not erased says the same: two people may live in the same town."""
    places = (("records", "data"), ("segments", "words"), ("vectors", "data"))
    queries = (f"select 1 from {t} where instr(cast({c} as blob), ?) limit 1" for t, c in places)  # noqa: S608 - ours
    return any(connection.execute(query, (needle,)).get for query in queries)
