"""One scope held in memory, shared by the in-memory, files and document stores; and a cache of scopes.

A scope knows nothing of files or of other scopes, and is not thread-safe: its holder is responsible.
`HeldReads` answers the reads of these stores. `Listings` finds the conversations of all users for stores
without an index in a database.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import nlargest
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Entry, Flag, Partition, Segment
from echoic.stores.apply import Name, check_expected, check_required, erasing, name_of, takes
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    LISTED,
    Attach,
    Change,
    Drop,
    Erasable,
    Index,
    Put,
    Record,
    Require,
    Waiting,
    Wanted,
)
from echoic.types import Scope

T = TypeVar("T")


class WaitingText(NamedTuple):
    """The text of a row that is to be embedded."""

    digest: bytes
    since: int
    """When the row began to wait for its vector, by the holder's clock; meaningless once it has one."""


class ChangeStep(NamedTuple):
    """One change, the record it finds and the record it leaves."""

    change: Change
    old: Record | None
    left: Record | None
    entry: Entry | None = None
    keep: bool = False
    """Whether the text to embed stayed the same, so that its vector is kept."""


@dataclass(slots=True)
class Staged:
    """Changes that were checked against a scope and not yet committed to it."""

    records: dict[Name, Record | None] = field(default_factory=dict)
    """The new state of each changed record; None if removed."""
    texts: dict[int, WaitingText] = field(default_factory=dict)
    """The new text of each changed row."""
    embedded: dict[int, bool] = field(default_factory=dict)
    """Whether each touched row has the vector of its text."""
    steps: list[ChangeStep] = field(default_factory=list)
    next_row: int = 0
    next_other: int = FIRST_UNSEARCHABLE


class Queue:
    """Rows waiting for their vector, the oldest first, of all scopes that share it.

    Updated with each change, because it is read after each: searching for rows without a vector would visit
    every row.
    """

    def __init__(self) -> None:
        self._since: dict[tuple[HeldScope, int], int] = {}
        self._latest = 0
        self._in_order = True

    def __len__(self) -> int:
        """How many wait."""
        return len(self._since)

    def add(self, held: HeldScope, row: int, since: int) -> None:
        """Add a pending row; one that is pending already keeps its position."""
        if self._since.get((held, row)) == since:
            return
        self.discard(held, row)
        self._since[held, row] = since
        # clocks count up, so a row belongs at the end, unless it was read from a file or lost its vector
        self._in_order = self._in_order and since >= self._latest
        self._latest = max(self._latest, since)

    def discard(self, held: HeldScope, row: int) -> None:
        """Remove a row, which has its vector or is gone."""
        self._since.pop((held, row), None)

    def first(self, limit: int) -> list[tuple[int, Waiting]]:
        """At most `limit` waiting rows, and since when, the oldest first."""
        if not self._in_order:
            self._since = dict(sorted(self._since.items(), key=lambda item: (item[1], item[0][1])))
            self._in_order = True
        first = islice(self._since.items(), limit)
        return [(since, Waiting(scope=held.scope, record=held.at([row])[0])) for (held, row), since in first]


class Clock:
    """Microseconds since 1970 that strictly increase within one process."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def not_before(self, moment_us: int) -> None:
        """Continue after a time that was stored earlier, by a clock that may have been ahead."""
        with self._lock:
            self._last = max(self._last, moment_us)

    def __call__(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last


class HeldScope:
    """The records of one scope and the partition over them.

    `clock` is one for all scopes of a store, as is `queue`, where rows wait for their vectors.
    """

    def __init__(
        self,
        scope: Scope,
        index: Index,
        dimensions: int,
        clock: Callable[[], int],
        queue: Queue | None = None,
    ) -> None:
        self.scope = scope
        self.queue = Queue() if queue is None else queue
        self.records: dict[Name, Record] = {}
        self.texts: dict[int, WaitingText] = {}
        self.partition = Partition(dimensions)
        self.next_row = 0
        self.next_other = FIRST_UNSEARCHABLE
        self._index = index
        self._clock = clock
        self._names: dict[int, Name] = {}
        self._order: dict[tuple[str, ...], list[int]] = {}
        """The sorted `seq` of every record of a kind, and of a kind and key."""
        self._segments: dict[int, Segment] = {}

    def stage(self, changes: Sequence[Change]) -> Staged:
        """Check `changes` and compute their result without applying anything, or raise WriteConflict."""
        staged = Staged(next_row=self.next_row, next_other=self.next_other)
        for change in changes:
            name = name_of(change)
            old = staged.records[name] if name in staged.records else self.records.get(name)
            match change:
                case Require():
                    check_required(change, old)
                    continue
                case Put():
                    step = self._staged_put(staged, change, old)
                case Drop():
                    step = ChangeStep(change, old, None)
                case Attach():
                    taken = takes(old, change)
                    step = ChangeStep(change, old, old if taken else None)
                    if old and taken:
                        staged.embedded[old.seq] = True
            if not isinstance(change, Attach):
                staged.records[name] = step.left
            staged.steps.append(step)
        return staged

    def _staged_put(self, staged: Staged, put: Put, old: Record | None) -> ChangeStep:
        version = old.version if old else 0
        check_expected(put, old)
        entry = self._index(put.record)
        if old:
            seq = old.seq
        elif entry is not None:
            seq, staged.next_row = staged.next_row, staged.next_row + 1
        else:
            seq, staged.next_other = staged.next_other, staged.next_other + 1
        keep = entry is not None and self._staged_text(staged, seq, entry.text)
        # a copy: the caller may change its data afterwards
        left = replace(put.record, data=copied(put.record.data), version=version + 1, seq=seq)
        return ChangeStep(put, old, left, entry, keep)

    def _staged_text(self, staged: Staged, row: int, text: str) -> bool:
        """Whether the row had the same `text` before; from now on it does."""
        digest = text_digest(text)
        before = staged.texts.get(row, self.texts.get(row))
        if before is not None and before.digest == digest:
            return True
        embedded = staged.embedded.get(row, before is not None and self._embedded(row))
        # a pending row keeps its place: otherwise one that changes often would never be embedded
        waits_since = before.since if before is not None and not embedded else self._clock()
        staged.texts[row], staged.embedded[row] = WaitingText(digest, waits_since), False
        return False

    def commit(self, staged: Staged) -> None:
        """Apply the staged changes to the records and the partition."""
        touched: set[int] = set()
        for step in staged.steps:
            name = name_of(step.change)
            if isinstance(step.change, Attach):
                if step.left is not None:
                    self._attach(step.change, touched)
            elif step.left is None:
                self._remove(name, touched)
            else:
                self._put(step.left, step.entry, touched, keep=step.keep)
        self.texts.update((row, text) for row, text in staged.texts.items() if row in self._names)
        for step in staged.steps:
            if step.left is not None:
                self._queue(step.left.seq)
        self.next_row, self.next_other = staged.next_row, staged.next_other
        self._patch(touched)

    def restore(
        self,
        records: Sequence[Record],
        *,
        index: Index | None = None,
        since: Mapping[int, int],
        vectors: Mapping[int, tuple[bytes, NDArray[np.float32], bytes | None]],
        counters: tuple[int, int],
    ) -> None:
        """Replace the records by exactly these; unchanged ones stay as they are.

        By row, `since` has when it began to wait, and `vectors` the digest of a text, its vector and word
        pieces, ignored for another text. `counters` are the next row and seq. `index` indexes the new and
        changed records in place of the scope's own, to raise errors of its own; then nothing has changed.
        """
        index = self._index if index is None else index
        entries = {
            record.seq: index(record)
            for record in records
            if record.seq < FIRST_UNSEARCHABLE and self.records.get((record.kind, record.id)) != record
        }
        touched: set[int] = set()
        kept = {(record.kind, record.id): record for record in records}
        for name, old in list(self.records.items()):
            if name not in kept or kept[name].seq != old.seq:
                self._remove(name, touched)
        for name, record in kept.items():
            if self.records.get(name) != record:
                self._restore(record, entries.get(record.seq), touched)
        for row, text in self.texts.items():
            self.texts[row] = WaitingText(text.digest, since.get(row, 0))
            self._restore_vector(row, vectors.get(row), touched)
            self._queue(row)
        self.next_row, self.next_other = counters
        self._patch(touched)

    def _restore(self, record: Record, entry: Entry | None, touched: set[int]) -> None:
        keep = False
        if entry is not None:
            before, digest = self.texts.get(record.seq), text_digest(entry.text)
            keep = before is not None and before.digest == digest
            self.texts[record.seq] = WaitingText(digest, 0)
        self._put(record, entry, touched, keep=keep)

    def _restore_vector(
        self, row: int, stored: tuple[bytes, NDArray[np.float32], bytes | None] | None, touched: set[int]
    ) -> None:
        slot, there = row % SEGMENT_ROWS, self._embedded(row)
        if stored is None or stored[0] != self.texts[row].digest:
            entry = self._index(self.records[self._names[row]]) if there else None
            if entry is not None:
                self._segment(row, touched).put(slot, entry)
            return
        segment, (_, vector, tokens) = self._segments[row // SEGMENT_ROWS], stored
        known = there and segment.vectors is not None and np.array_equal(segment.vectors[slot], vector)
        if not known or segment.tokens.get(slot) != tokens:
            self._segment(row, touched).attach(slot, vector, tokens)

    def _put(self, record: Record, entry: Entry | None, touched: set[int], *, keep: bool) -> None:
        if entry is not None:
            self._segment(record.seq, touched).put(record.seq % SEGMENT_ROWS, entry, keep_vector=keep)
        name = (record.kind, record.id)
        old = self.records.get(name)
        if old is None or (old.key, old.seq) != (record.key, record.seq):
            if old is not None:
                self._unlist(old)
            for listed in _lists(record):
                insort(self._order.setdefault(listed, []), record.seq)
        self.records[name] = record
        self._names[record.seq] = name

    def _unlist(self, record: Record) -> None:
        for listed in _lists(record):
            order = self._order[listed]
            del order[bisect_left(order, record.seq)]
            if not order:
                del self._order[listed]

    def _queue(self, row: int) -> None:
        """Queue a row exactly while it has no vector."""
        text = self.texts.get(row)
        if text is not None and not self._embedded(row):
            self.queue.add(self, row, text.since)
        else:
            self.queue.discard(self, row)

    def _attach(self, attach: Attach, touched: set[int]) -> None:
        old = self.records.get(name_of(attach))
        if old and old.version == attach.version and old.seq < FIRST_UNSEARCHABLE:
            self._segment(old.seq, touched).attach(old.seq % SEGMENT_ROWS, attach.vector, attach.tokens)

    def _remove(self, name: Name, touched: set[int]) -> None:
        old = self.records.pop(name, None)
        if old is None:
            return
        del self._names[old.seq]
        self.texts.pop(old.seq, None)
        self._unlist(old)
        self.queue.discard(self, old.seq)
        if old.seq < FIRST_UNSEARCHABLE:
            self._segment(old.seq, touched).drop(old.seq % SEGMENT_ROWS)

    def _segment(self, row: int, touched: set[int]) -> Segment:
        touched.add(row // SEGMENT_ROWS)
        return self._segments.setdefault(row // SEGMENT_ROWS, Segment())

    def _patch(self, touched: set[int]) -> None:
        with self.partition.lock:
            self.partition.patch((number, self._segments[number]) for number in sorted(touched))

    def read(self, kind: str, ids: Iterable[str]) -> list[Record]:
        """The records of `kind` among `ids`, in the order asked."""
        return [own_copy(self.records[kind, i]) for i in ids if (kind, i) in self.records]

    def at(self, rows: Iterable[int]) -> list[Record]:
        """The searchable records at these rows, in the order asked."""
        found = (row for row in rows if row < FIRST_UNSEARCHABLE and row in self._names)
        return [own_copy(self.records[self._names[row]]) for row in found]

    def scan(
        self,
        kind: str,
        *,
        key: str | None = None,
        after: int = -1,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Record]:
        """One page of the records of `kind`; see `Store.scan`."""
        order = self._order.get((kind,) if key is None else (kind, key), [])
        if newest_first:
            end = len(order) if after < 0 else bisect_left(order, after)
            page = order[max(0, end - limit) : end][::-1]
        else:
            begin = bisect_right(order, after)
            page = order[begin : begin + limit]
        return [own_copy(self.records[self._names[seq]]) for seq in page]

    def detach_all(self, dimensions: int) -> int:
        """Drop every vector, for new ones of `dimensions`; returns how many records wait now."""
        for segment in self._segments.values():
            segment.detach_all()
        self.partition = Partition(dimensions)
        self._patch(set(self._segments))
        for row in self.texts:
            self._queue(row)
        return len(self.texts)

    def drops(self) -> list[Drop]:
        """The changes that destroy every record."""
        return [Drop(kind=record.kind, id=record.id) for record in self.records.values()]

    def erasing(self, changes: Sequence[Erasable]) -> tuple[list[Record], list[tuple[Record, Record]]]:
        """The records that `changes` destroy, and those they rewrite, each with its new state."""
        names = dict.fromkeys(map(name_of, changes))
        return erasing([self.records[name] for name in names if name in self.records], changes)

    def vectors(self, records: Iterable[Record]) -> Iterator[NDArray[np.float32]]:
        """[dimensions] The vectors of those of `records` that have one."""
        for record in records:
            segment = self._segments.get(record.seq // SEGMENT_ROWS)
            if segment is not None and segment.vectors is not None and self._embedded(record.seq):
                yield segment.vectors[record.seq % SEGMENT_ROWS]

    def embedded(self, records: Iterable[Record]) -> int:
        """How many of `records` have a vector."""
        return sum(r.seq < FIRST_UNSEARCHABLE and self._embedded(r.seq) for r in records)

    def _embedded(self, row: int) -> bool:
        segment = self._segments.get(row // SEGMENT_ROWS)
        return segment is not None and bool(segment.rows[row % SEGMENT_ROWS]["flags"] & Flag.EMBEDDED)

    @staticmethod
    def kinds(records: Iterable[Record]) -> dict[str, int]:
        """How many of each kind."""
        return dict(Counter(record.kind for record in records))


class HeldReads(ABC):
    """The reads of a `Store` that holds a scope in memory while it is used."""

    @abstractmethod
    async def _ask(self, scope: Scope, question: Callable[[HeldScope], T]) -> T:
        """The answer to `question` from the scope as it is now."""

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        return await self._ask(scope, lambda held: held.read(kind, ids))

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        return await self._ask(scope, lambda held: held.at(rows))

    async def scan(self, scope: Scope, kind: str, **page: Any) -> list[Record]:
        return await self._ask(scope, lambda held: held.scan(kind, **page))

    async def load(self, scope: Scope) -> Partition:
        return await self._ask(scope, lambda held: held.partition)


def text_digest(text: str) -> bytes:
    """A 16-byte digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def copied(value: Any) -> Any:
    """JSON that shares nothing with `value`."""
    if isinstance(value, Mapping):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return value


def own_copy(record: Record) -> Record:
    """A copy whose data the caller may change."""
    return replace(record, data=copied(record.data))


def _lists(record: Record) -> list[tuple[str, ...]]:
    """The lists that contain a record: by kind and, if it has a key, by kind and key."""
    return [(record.kind,)] if record.key is None else [(record.kind,), (record.kind, record.key)]


class Weighed(Protocol):
    """What `ScopeCache` holds of a scope."""

    @property
    def nbytes(self) -> int:
        """Approximate memory it takes."""


W = TypeVar("W", bound=Weighed)


class ScopeCache(Generic[W]):
    """The most recently used scopes of one store, within `limit_bytes`. Thread-safe.

    The last `least` stay whatever their size: one recall reads a user's own scope, the global and perhaps a
    shared one.
    """

    def __init__(self, limit_bytes: int, least: int = 3) -> None:
        self._limit, self._least = limit_bytes, least
        self._held: OrderedDict[Scope, tuple[W, int]] = OrderedDict()
        """Each with its size when it was put here, which may change."""
        self._lock = threading.RLock()
        self.nbytes = 0

    def get(self, scope: Scope) -> W | None:
        """What is held of `scope`, now the most recently used one."""
        with self._lock:
            if scope not in self._held:
                return None
            self._held.move_to_end(scope)
            return self._held[scope][0]

    def put(self, scope: Scope, held: W) -> None:
        """Cache `held`, or weigh it again; evicts others over the limit."""
        with self._lock:
            self.drop(scope)
            self._held[scope] = held, (size := held.nbytes)
            self.nbytes += size
            while self.nbytes > self._limit and len(self._held) > self._least:
                _, (_, size) = self._held.popitem(last=False)
                self.nbytes -= size

    def drop(self, scope: Scope) -> None:
        with self._lock:
            _, size = self._held.pop(scope, (None, 0))
            self.nbytes -= size

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self.nbytes = 0

    def __len__(self) -> int:
        return len(self._held)


@dataclass(slots=True)
class Loaded:
    """A partition and what it was loaded from."""

    partition: Partition
    number: int
    """The store's own number of the scope; it differs for a new scope of the same name."""
    seen: int
    """The store's change mark when it was last known to be current."""

    @property
    def nbytes(self) -> int:
        # even an empty one counts: asking for a million strangers must not fill the memory
        return max(self.partition.nbytes, 2048)


_Place = tuple[str, tuple[str, str], str]
"""Start time, scope and id."""


class Listings:
    """The conversations of every user by deployment, status, agent and time, for operators."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, Any, Any], list[_Place]] = {}
        self._of: dict[Scope, dict[str, tuple[tuple[str, Any, Any], _Place]]] = {}

    def put(self, scope: Scope, records: Iterable[Record]) -> None:
        """Update the operators' index with `records`, replacing entries with the same ids."""
        for record in records:
            if record.kind == LISTED and scope.user is not None:
                self.drop(scope, [record.id])
                data = record.data
                bucket = (scope.deployment, data.get("status"), data.get("agent"))
                place = (str(data.get("started_at")), (scope.deployment, scope.user), record.id)
                insort(self._places.setdefault(bucket, []), place)
                self._of.setdefault(scope, {})[record.id] = bucket, place

    def drop(self, scope: Scope, ids: Iterable[str] | None = None) -> None:
        """Remove these ids, or all of `scope`."""
        listed = self._of.get(scope, {})
        for name in list(listed if ids is None else ids):
            if name in listed:
                bucket, place = listed.pop(name)
                places = self._places[bucket]
                del places[bisect_left(places, place)]
                if not places:
                    del self._places[bucket]
        if not listed:
            self._of.pop(scope, None)

    def replace(self, scope: Scope, records: Iterable[Record]) -> None:
        """Replace the entries of `scope` by exactly these."""
        self.drop(scope)
        self.put(scope, records)

    def find(self, wanted: Wanted) -> dict[Scope, list[str]]:
        """The ids of the records that are `wanted`, by scope."""
        places: list[_Place] = []
        for (deployment, status, agent), there in self._buckets(wanted):
            if deployment != wanted.deployment or (wanted.status and status not in wanted.status):
                continue
            if wanted.agent is not None and agent != wanted.agent:
                continue
            first = 0 if wanted.since is None else bisect_left(there, (wanted.since,))
            last = len(there) if wanted.until is None else bisect_left(there, (wanted.until,))
            if wanted.newest is not None:
                first = max(first, last - wanted.newest)
            places += there[first:last]
        if wanted.newest is not None:
            places = nlargest(wanted.newest, places)
        found: dict[Scope, list[str]] = {}
        for _, whose, name in places:
            found.setdefault(Scope(*whose), []).append(name)
        return found

    def _buckets(self, wanted: Wanted) -> Iterable[tuple[tuple[str, Any, Any], list[_Place]]]:
        if wanted.user is None:
            return self._places.items()
        of_user = self._of.get(Scope(wanted.deployment, wanted.user), {})
        return [(bucket, [place]) for bucket, place in of_user.values()]
