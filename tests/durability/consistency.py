"""What must hold in every file, whatever happened to it; and what it holds, read without the store.

Written against the tables, not against the store's code: a mistake of the store is not repeated here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from durability.workload import Found, Kept, index
from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE, Record
from echoic.types import Scope

_SEQ = (1 << 32) - 1


@contextlib.contextmanager
def connected(path: Path) -> Iterator[apsw.Connection]:
    """A connection of our own, closed afterwards."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    try:
        yield connection
    finally:
        connection.close()


def check_consistent(path: Path) -> Found:
    """What the file holds.

    Raises:
        AssertionError: records, words, vectors, marks and versions do not agree with one another.
    """
    with connected(path) as connection:
        report = connection.execute("pragma integrity_check").fetchall()
        assert report == [("ok",)], report
        connection.execute("begin")  # one snapshot, also while others write
        found: Found = {}
        scopes = connection.execute("select id, deployment, user, version, next_row, next_other from scopes")
        numbers = set()
        for number, deployment, user, *marks in scopes.fetchall():
            numbers.add(number)
            records = _scope(connection, number, marks)
            if records:
                found[Scope(deployment, user or None)] = records
        for table in ("records", "segments", "vectors"):
            owners = {i >> 32 for (i,) in connection.execute(f"select id from {table}")}
            assert owners <= numbers, f"{table} of scopes that are not there: {owners - numbers}"
        owners = {i >> 32 for (i,) in connection.execute("select record from pending")}
        assert owners <= numbers, f"pending of scopes that are not there: {owners - numbers}"
        return found


def _scope(connection: apsw.Connection, number: int, marks: list[int]) -> dict[tuple[str, str], Kept]:
    version, next_row, next_other = marks
    first, last = number << 32, ((number + 1) << 32) - 1
    segments = _segments(connection, first, last, version)
    pending = {
        i & _SEQ for (i,) in connection.execute(f"select record from pending where {_in(first, last)}")
    }
    found: dict[tuple[str, str], Kept] = {}
    rows = set()
    for key, scope, kind, name, mark, ver, data in connection.execute(
        "select id, scope, kind, name, key, version, data from records where id between ? and ?",
        (first, last),
    ):
        assert key >> 32 == scope, f"{kind} {name} lies with scope {key >> 32} but says {scope}"
        assert ver >= 1, f"{kind} {name} has version {ver}"
        seq = key & _SEQ
        vector = None
        record = Record(kind=kind, id=name, key=mark, version=ver, data=json.loads(data), seq=seq)
        if seq < FIRST_UNSEARCHABLE:
            assert seq < next_row, f"{kind} {name} is row {seq}, the next one would be {next_row}"
            rows.add(seq)
            vector = _row(record, segments, pending)
        else:
            assert seq < next_other, f"{kind} {name} is {seq}, the next one would be {next_other}"
            assert index(record) is None, f"{kind} {name} is searchable but has no row"
        found[kind, name] = Kept(record.data, mark, ver, seq, vector)
    filled = {
        number * SEGMENT_ROWS + int(slot)
        for number, segment in segments.items()
        for slot in np.flatnonzero(segment.rows["kind"])
    }
    assert filled == rows, f"rows without a record {filled - rows}, records without a row {rows - filled}"
    assert pending <= rows, f"waiting although gone: {pending - rows}"
    return found


def _in(first: int, last: int) -> str:
    return f"record between {first} and {last}"


def _segments(connection: apsw.Connection, first: int, last: int, version: int) -> dict[int, Segment]:
    vectors = dict(
        connection.execute("select id, data from vectors where id between ? and ?", (first, last)).fetchall()
    )
    segments: dict[int, Segment] = {}
    for key, mark, words in connection.execute(
        "select id, version, words from segments where id between ? and ?", (first, last)
    ):
        assert mark <= version, f"segment {key & _SEQ} is of version {mark}, its scope of {version}"
        segment = segments[key & _SEQ] = Segment.from_bytes(words, vectors.pop(key, None))
        _tidy(segment)
    assert not vectors, f"vectors without a segment: {[key & _SEQ for key in vectors]}"
    return segments


def _tidy(segment: Segment) -> None:
    """Nothing in a segment is of a row that is not there."""
    filled = set(np.flatnonzero(segment.rows["kind"]).tolist())
    assert set(segment.slots.tolist()) <= filled, "words of an empty row"
    assert set(segment.which.tolist()) == set(range(len(segment.words))), "a word that no row says"
    assert len(set(segment.words)) == len(segment.words), "a word twice"
    empty = [slot for slot in range(SEGMENT_ROWS) if slot not in filled]
    blank = np.zeros(1, segment.rows.dtype).tobytes()
    assert all(segment.rows[slot].tobytes() == blank for slot in empty), "something left of an empty row"
    if segment.vectors is not None:
        assert not segment.vectors[empty].any(), "the vector of an empty row"


def _row(record: Record, segments: dict[int, Segment], pending: set[int]) -> bytes | None:
    """Check a searchable record against its row; its vector."""
    name = f"{record.kind} {record.id}"
    entry = index(record)
    segment = segments.get(record.seq // SEGMENT_ROWS)
    assert entry is not None, f"{name} has a row but is not searchable"
    assert segment is not None, f"{name} has no segment"
    slot = record.seq % SEGMENT_ROWS
    row: Any = segment.rows[slot]
    embedded = bool(row["flags"] & Flag.EMBEDDED)
    assert row.item() == entry.row(Flag.EMBEDDED if embedded else Flag.NONE), (
        f"the row of {name} is another's"
    )
    _words(name, segment, slot, entry.words)
    assert (record.seq in pending) is not embedded, f"{name}: waiting {not embedded}, embedded {embedded}"
    vector = None if segment.vectors is None else segment.vectors[slot]
    assert (vector is not None and bool(vector.any())) is embedded, (
        f"{name}: flag {embedded}, vector {vector}"
    )
    return vector.tobytes() if embedded and vector is not None else None


def _words(name: str, segment: Segment, slot: int, words: Any) -> None:
    said = segment.slots == slot
    places = segment.which[said].tolist()
    kept = {
        (segment.words[place], segment.codes[place], int(segment.terms[place]), int(count))
        for place, count in zip(places, segment.counts[said].tolist(), strict=True)
    }
    meant = _meant(words)
    assert kept == meant, f"the words of {name}: {kept ^ meant}"


@lru_cache(maxsize=1 << 14)
def _meant(words: Any) -> frozenset[Any]:
    return frozenset((word.text, " ".join(word.codes), word.term, min(count, 255)) for word, count in words)


__all__ = ["check_consistent", "connected"]
