"""One scope held in memory: records, their rows and words. What the in-memory and the files store share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from echoic.errors import WriteConflict
from echoic.partition import SEGMENT_ROWS, Entry, Flag, Partition, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Index, Put, Record

Name = tuple[str, str]


@dataclass(slots=True)
class Staged:
    """Changes that were checked against a scope and wait to be committed to it."""

    records: dict[Name, Record | None] = field(default_factory=dict)
    """What each touched record becomes; None: removed."""
    steps: list[tuple[Change, Record | None]] = field(default_factory=list)
    """Each change with the record it leaves behind."""
    next_row: int = 0
    next_other: int = 0


class HeldScope:
    """The records of one scope and the partition over them."""

    def __init__(self, index: Index, dimensions: int) -> None:
        self.records: dict[Name, Record] = {}
        self.partition = Partition(dimensions)
        self._index = index
        self._names: dict[int, Name] = {}
        self._segments: dict[int, Segment] = {}
        self._next_row = 0
        self._next_other = FIRST_UNSEARCHABLE

    def stage(self, changes: Sequence[Change]) -> Staged:
        """Check `changes` and work out what they lead to, without touching anything.

        Raises:
            WriteConflict: a `Put.expect` does not hold.
        """
        staged = Staged(next_row=self._next_row, next_other=self._next_other)
        for change in changes:
            name = _name(change)
            old = (
                staged.records.get(name, self.records.get(name))
                if name in staged.records
                else self.records.get(name)
            )
            left = self._staged_put(staged, change, old) if isinstance(change, Put) else old
            if isinstance(change, Drop):
                left = None
            if not isinstance(change, Attach):
                staged.records[name] = left
            staged.steps.append((change, left))
        return staged

    def _staged_put(self, staged: Staged, put: Put, old: Record | None) -> Record:
        version = old.version if old else 0
        if put.expect is not None and put.expect != version:
            raise WriteConflict(
                f"{put.record.kind} {put.record.id!r} is at version {version}, not {put.expect}; "
                "nothing was written. Read it again and retry."
            )
        if old:
            seq = old.seq
        elif self._index(put.record) is not None:
            seq, staged.next_row = staged.next_row, staged.next_row + 1
        else:
            seq, staged.next_other = staged.next_other, staged.next_other + 1
        return replace(put.record, version=version + 1, seq=seq)

    def commit(self, staged: Staged) -> None:
        """Let what was staged happen, in the records and in the partition."""
        touched: set[int] = set()
        for change, left in staged.steps:
            old = self.records.get(_name(change))
            if isinstance(change, Attach):
                if old and old.version == change.version and old.seq < FIRST_UNSEARCHABLE:
                    self._segment(old.seq, touched).attach(old.seq % SEGMENT_ROWS, change.vector)
            elif left is None:
                self._remove(change, old, touched)
            else:
                self._put(left, old, touched)
        self._next_row, self._next_other = staged.next_row, staged.next_other
        with self.partition.lock:
            self.partition.patch((number, self._segments[number]) for number in sorted(touched))

    def _put(self, record: Record, old: Record | None, touched: set[int]) -> None:
        entry = self._index(record)
        if entry is not None:
            keep = old is not None and _text(self._index(old)) == entry.text
            self._segment(record.seq, touched).put(record.seq % SEGMENT_ROWS, entry, keep_vector=keep)
        self.records[_name_of(record)] = record
        self._names[record.seq] = _name_of(record)

    def _remove(self, change: Change, old: Record | None, touched: set[int]) -> None:
        if old is None:
            return
        del self.records[_name(change)], self._names[old.seq]
        if old.seq < FIRST_UNSEARCHABLE:
            self._segment(old.seq, touched).drop(old.seq % SEGMENT_ROWS)

    def _segment(self, row: int, touched: set[int]) -> Segment:
        touched.add(row // SEGMENT_ROWS)
        return self._segments.setdefault(row // SEGMENT_ROWS, Segment())

    def at(self, rows: Iterable[int]) -> list[Record]:
        """The searchable records at these rows, in the order asked."""
        return [self.records[self._names[row]] for row in rows if row in self._names]

    def ordered(self, kind: str, key: str | None) -> list[Record]:
        """Records of `kind`, and of `key` if one is given, in the order of first writing."""
        found = (r for r in self.records.values() if r.kind == kind and (key is None or r.key == key))
        return sorted(found, key=lambda record: record.seq)

    def waiting(self) -> list[Record]:
        """Searchable records without a vector, the oldest first."""
        found = [
            self.records[self._names[number * SEGMENT_ROWS + slot]]
            for number, segment in self._segments.items()
            for slot in range(SEGMENT_ROWS)
            if segment.rows[slot]["kind"] and not segment.rows[slot]["flags"] & Flag.EMBEDDED
        ]
        return sorted(found, key=lambda record: record.seq)

    def detach_all(self) -> int:
        """Let go of every vector; how many records wait now."""
        for segment in self._segments.values():
            segment.detach_all()
        with self.partition.lock:
            self.partition.patch(self._segments.items())
        return len(self.waiting())

    def embedded(self, records: Iterable[Record]) -> int:
        """How many of `records` have a vector."""
        rows = self.partition.rows
        return sum(r.seq < FIRST_UNSEARCHABLE and bool(rows[r.seq]["flags"] & Flag.EMBEDDED) for r in records)

    @staticmethod
    def kinds(records: Iterable[Record]) -> dict[str, int]:
        """How many of each kind."""
        return dict(Counter(record.kind for record in records))


def page(records: list[Record], after: int, limit: int, *, newest_first: bool) -> list[Record]:
    """One page of `records`, which are in order; see `Store.scan`."""
    if newest_first:
        return [r for r in reversed(records) if after < 0 or r.seq < after][:limit]
    return [r for r in records if r.seq > after][:limit]


def _name(change: Change) -> Name:
    return _name_of(change.record) if isinstance(change, Put) else (change.kind, change.id)


def _name_of(record: Record) -> Name:
    return record.kind, record.id


def _text(entry: Entry | None) -> str | None:
    return entry.text if entry else None
