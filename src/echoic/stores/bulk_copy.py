"""Bulk copy of a whole store into another, record by record: resumable, and compared at the end.

Unlike in an export, no record is interpreted, except for how far it was read (`Cursors`). A record keeps its
kind, id, key, data and position (`seq`). So cursors stay valid in the other store, neighbours stay
neighbours, and empty positions stay empty. Vectors and word pieces are copied if both stores use the same
model. Only `Record.version`, which counts the writes to one store, starts again.

There is no record of progress. The target's content of a scope must be a prefix of the source's, and copying
continues after it. Both are read through the `Store` seam, page by page.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput, StoreCorrupt, WriteConflict
from echoic.partition import Flag, Partition
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Put, Record, Store
from echoic.types import Scope

PAGE = 200
"""Records read at once: under 10 MB if each has the maximum size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeContent:
    """The content of a scope, in a form in which two stores can be compared."""

    records: int
    vectors: int
    waiting: int
    """Searchable records without a vector."""
    digest: str
    """BLAKE2b, 32 bytes in hex, of the kind, id, key, position and data of every record, in order."""
    vector_digest: str
    """The digest of the vectors and word pieces."""
    embedded: frozenset[int]
    """The rows whose vectors are in `vector_digest`."""


class CopiedRecord(NamedTuple):
    record: Record
    vector: NDArray[np.float32] | None = None
    tokens: bytes | None = None


Pages = AsyncGenerator[list[CopiedRecord], None]


Kept = Callable[[NDArray[np.float32], bytes | None], tuple[NDArray[np.float32], bytes | None]]
"""What a store returns of a vector and its word pieces: its method `kept`, if it does not keep all of it."""


async def content_of(
    store: Store,
    scope: Scope,
    kinds: Sequence[str],
    rows: Collection[int] | None = None,
    *,
    kept: Kept | None = None,
) -> ScopeContent:
    """The content of `scope`.

    `kinds` are those that are not searchable; `rows` those whose vectors are compared, None for all with a
    vector; `kept` is what is left of them in the store they are compared with.
    """
    summing = _Summing(rows, kept)
    async with aclosing(all_pages(store, scope, kinds)) as pages:
        async for page in pages:
            summing.add(page)
    return summing.content()


class _Summing:
    """Sums up the pages of a scope; see `content_of`."""

    def __init__(self, rows: Collection[int] | None, kept: Kept | None) -> None:
        self._rows, self._kept = rows, kept
        self._records, self._vectors = blake2b(digest_size=32), blake2b(digest_size=32)
        self._count = self._waiting = 0
        self._embedded: set[int] = set()

    def add(self, page: Sequence[CopiedRecord]) -> None:
        self._count += len(page)
        for record, vector, tokens in page:
            self._records.update(told(record) + b"\n")
            self._waiting += vector is None and record.seq < FIRST_UNSEARCHABLE
            if vector is not None and (self._rows is None or record.seq in self._rows):
                self._embedded.add(record.seq)
                stored, pieces = (vector, tokens) if self._kept is None else self._kept(vector, tokens)
                said = pieces or b""
                self._vectors.update(record.seq.to_bytes(8) + len(said).to_bytes(8))
                self._vectors.update(stored.astype("<f4").tobytes() + said)

    def content(self) -> ScopeContent:
        return ScopeContent(
            records=self._count,
            vectors=len(self._embedded),
            waiting=self._waiting,
            digest=self._records.hexdigest(),
            vector_digest=self._vectors.hexdigest(),
            embedded=frozenset(self._embedded),
        )


async def flat(pages: Pages) -> AsyncGenerator[Record, None]:
    async for page in pages:
        for kept in page:
            yield kept.record


async def all_pages(store: Store, scope: Scope, kinds: Sequence[str]) -> Pages:
    """All records of `scope` in order, searchable ones first; each page holds one sort."""
    async for page in searchable_pages(store, scope):
        yield page
    async for page in other_pages(store, scope, kinds):
        yield page


async def searchable_pages(store: Store, scope: Scope) -> Pages:
    """The searchable records of `scope`, in the order of first writing."""
    partition = await store.load(scope)
    with partition.lock:
        rows: list[int] = np.flatnonzero(partition.rows["kind"]).tolist()
    for first in range(0, len(rows), PAGE):
        records = await store.rows(scope, rows[first : first + PAGE])
        # loaded after the records were read: a vector may be newer than its record, which is found out in the
        # end, but never one of words that the record does not say any more
        yield with_vectors(await store.load(scope), records)


def with_vectors(partition: Partition, records: Sequence[Record]) -> list[CopiedRecord]:
    """Searchable records with their vectors and word pieces in `partition`."""
    found: list[CopiedRecord] = []
    with partition.lock:
        for record in records:
            there = record.seq < partition.size and partition.rows["flags"][record.seq] & Flag.EMBEDDED
            vector = partition.vectors[record.seq].copy() if there else None
            found.append(CopiedRecord(record, vector, partition.tokens.get(record.seq) if there else None))
    return found


async def other_pages(store: Store, scope: Scope, kinds: Sequence[str]) -> Pages:
    """The records of `kinds`, which are not searchable, merged in the order of first writing."""
    read: dict[str, deque[Record]] = {kind: deque() for kind in kinds}
    after = dict.fromkeys(kinds, FIRST_UNSEARCHABLE - 1)
    page: list[CopiedRecord] = []
    while read:
        for kind in [kind for kind, records in read.items() if not records]:
            records = await store.scan(scope, kind, after=after[kind], limit=PAGE)
            if not records:
                del read[kind]
                continue
            read[kind].extend(records)
            after[kind] = records[-1].seq
        if read:
            page.append(CopiedRecord(min(read.values(), key=lambda records: records[0].seq).popleft()))
        if page and (len(page) == PAGE or not read):
            yield page
            page = []


def told(record: Record) -> bytes:
    """A JSON form that two stores must agree on: 1 differs from 1.0, the order of names is ignored."""
    said = [record.kind, record.id, record.key, record.seq, record.data]
    return json.dumps(said, sort_keys=True, ensure_ascii=True).encode()


_ATTEMPTS = 20
"""How often a scope that changes meanwhile is read: in milliseconds, and a call writes every few seconds."""
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
"""Between readings: what writes many times in a row, as a reader of turns does, then comes to its end."""
_PLACEHOLDER = "echoic-copy-placeholder"

Progress = Callable[[int, int], None]
"""Called with the number of records copied and the approximate total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedScope:
    scope: Scope
    records: int
    """How many records it has now, in either store."""
    new: int
    """How many of these were written this time."""
    vectors: int
    """How many vectors were copied, or existed already."""
    waiting: int
    """Searchable records the target has yet to embed."""
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    scopes: tuple[CopiedScope, ...]

    @property
    def records(self) -> int:
        return sum(one.records for one in self.scopes)

    @property
    def new(self) -> int:
        """Records written this time."""
        return sum(one.new for one in self.scopes)

    @property
    def vectors(self) -> int:
        return sum(one.vectors for one in self.scopes)

    @property
    def waiting(self) -> int:
        """Records without a vector in the target."""
        return sum(one.waiting for one in self.scopes)


class Cursors(NamedTuple):
    """Which records say up to which row others were read, such as the turns of a conversation.

    What was at the last rows may be gone. If these were free in the target, what is written there next would
    count as read.
    """

    of: Callable[[Record], int]
    """The last row that was read by what a record that is not searchable says; -1 for none."""
    filler: Record


class _TargetProgress(NamedTuple):
    """The last position the target has filled, among searchable records and among the others; -1 for none."""

    row: int = -1
    other: int = -1
    read: int = -1
    """The last row that was read, by what its records say."""


async def copy_store(
    source: Store,
    target: Store,
    kinds: Sequence[str],
    *,
    vectors: bool,
    cursors: Cursors | None = None,
    anew: Collection[Scope] = (),
    progress: Progress = lambda _done, _total: None,
) -> Copied:
    """Copy every scope of `source`, and compare each at the end. One scope at a time is held in memory.

    All existing content of these scopes in the target is compared before anything is written. The source is
    not changed, except for the mark that its `check` leaves. Other scopes of the target stay unchanged.

    Args:
        source: open.
        target: open.
        kinds: the kinds of records that are not searchable; the seam cannot list them.
        vectors: whether both hold vectors of the same model, so that these are copied too.
        cursors: which rows are not free in the target although nothing is left in them.
        anew: scopes that are replaced in the target whatever it has of them, once the others were compared.
        progress: called with the progress.

    Raises:
        InvalidInput: the target has other content in one of these scopes; nothing was written.
        WriteConflict: a store was written to meanwhile; copy again.
        StoreCorrupt: part of the source cannot be read, or has unknown kinds.
        StoreUnavailable: a store could not be reached; copy again to resume.
    """
    total = await _countable(source)
    scopes = await source.scopes()
    there = set(await target.scopes()) - set(anew)
    begun = {at: await _begun(source, target, at, kinds, cursors) for at in scopes if at in there}
    for at in [at for at in scopes if at in anew]:
        await target.erase(at)
    copied: list[CopiedScope] = []
    done = 0
    for at in scopes:
        writer = _ScopeWriter(target, at, begun.get(at, _TargetProgress()), cursors, vectors=vectors)
        async with aclosing(all_pages(source, at, kinds)) as pages:
            async for page in pages:
                await writer.take(page)
                done += len(page)
                progress(done, max(total, done))
        kept = getattr(target, "kept", None)
        ours = await content_of(source, at, kinds, None if vectors else (), kept=kept)
        copied.append(await _checked(target, at, kinds, ours, new=writer.new))
    result = Copied(scopes=tuple(copied))
    if result.records < await _countable(source):
        raise StoreCorrupt(
            f"the source holds more than the {result.records} records that were copied: somebody wrote to it "
            "meanwhile (copy again), or a newer version of Echoic did, in kinds that are not known here"
        )
    return result


async def copy_while_written(
    source: Store,
    target: Store,
    kinds: Sequence[str],
    *,
    cursors: Cursors | None = None,
    first: Scope | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Copied:
    """Copy every scope of `source` to a new `target` while others write to the source, `first` first.

    Each scope is a consistent snapshot: it is read until it is twice the same, and only then written to the
    target. One scope at a time is held in memory.

    Raises:
        WriteConflict: a scope changed each time it was read.
        StoreError: as for `copy_store`.
    """
    total, done = await _countable(source), 0
    copied: list[CopiedScope] = []
    for at in sorted(await source.scopes(), key=lambda at: at != first):
        pages, ours = await _at_one_moment(source, at, kinds, getattr(target, "kept", None))
        writer = _ScopeWriter(target, at, _TargetProgress(), cursors, vectors=True)
        for page in pages:
            await writer.take(page)
        copied.append(await _checked(target, at, kinds, ours, new=writer.new))
        done += ours.records
        progress(done, max(total, done))
    return Copied(scopes=tuple(one for one in copied if one.records))


async def _at_one_moment(
    source: Store, scope: Scope, kinds: Sequence[str], kept: Kept | None
) -> tuple[list[list[CopiedRecord]], ScopeContent]:
    """All pages of a scope that others write to, and their sum; raises WriteConflict if it never rests."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(min(_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S))
        summing = _Summing(None, kept)
        pages: list[list[CopiedRecord]] = []
        async with aclosing(all_pages(source, scope, kinds)) as reading:
            async for page in reading:
                pages.append(page)
                summing.add(page)
        ours = summing.content()
        # a vector that was made meanwhile is no difference
        again = await content_of(source, scope, kinds, ours.embedded, kept=kept)
        if (ours.digest, ours.vector_digest) == (again.digest, again.vector_digest):
            return pages, ours
    raise WriteConflict(
        f"{_whose(scope)}: somebody wrote to it each of the {_ATTEMPTS} times that it was read. Copy again "
        "while less is written"
    )


class _ScopeWriter:
    """Writes what the target lacks of one scope."""

    def __init__(
        self, target: Store, scope: Scope, begun: _TargetProgress, cursors: Cursors | None, *, vectors: bool
    ) -> None:
        self.new = 0
        self._target, self._scope, self._begun, self._vectors = target, scope, begun, vectors
        self._cursors = cursors
        self._next_row = max(begun.row, begun.read) + 1
        self._next_other = max(begun.other + 1, FIRST_UNSEARCHABLE)

    async def take(self, page: Sequence[CopiedRecord]) -> None:
        """Write what is missing of `page`, whose records are all searchable or all not.

        If the target gives them other positions, they are removed again and WriteConflict is raised.
        """
        missing = [kept for kept in page if not self._there(kept.record)]
        changes = [change for kept in missing for change in self._written(kept)]
        changes += await self._vectors_missing([kept for kept in page if self._there(kept.record)])
        if not changes:
            return
        await self._target.write(self._scope, changes)
        self.new += len(missing)
        if missing:
            await self._check_places(missing)

    def _there(self, record: Record) -> bool:
        if record.seq < FIRST_UNSEARCHABLE:
            return record.seq <= self._begun.row
        return record.seq <= self._begun.other

    def _written(self, kept: CopiedRecord) -> list[Change]:
        record = kept.record
        changes = [*self._read_rows(record), *self._emptied(record)]
        changes.append(Put(record=record, expect=0))
        if self._vectors and kept.vector is not None:
            changes.append(self._attach(kept, version=1))
        return changes

    def _emptied(self, record: Record) -> list[Change]:
        """Fill the positions before `record` and empty them again: in the source they are empty as well."""
        searchable = record.seq < FIRST_UNSEARCHABLE
        gap = record.seq - (self._next_row if searchable else self._next_other)
        if searchable:
            self._next_row = record.seq + 1
        else:
            self._next_other = record.seq + 1
        # searchability follows from kind and data
        return _filler(record) * gap

    def _read_rows(self, record: Record) -> list[Change]:
        """Fill the rows that `record` says were read and nothing is left in, and empty them again.

        With that record, so that what the target holds tells which rows are free in it.
        """
        if self._cursors is None or record.seq < FIRST_UNSEARCHABLE:
            return []
        gap = self._cursors.of(record) + 1 - self._next_row
        self._next_row += max(gap, 0)
        return _filler(self._cursors.filler) * gap

    @staticmethod
    def _attach(kept: CopiedRecord, version: int) -> Attach:
        assert kept.vector is not None
        record = kept.record
        return Attach(kind=record.kind, id=record.id, version=version, vector=kept.vector, tokens=kept.tokens)

    async def _vectors_missing(self, present: Sequence[CopiedRecord]) -> list[Change]:
        """The vectors of records that were copied before they had one."""
        embedded = {kept.record.seq: kept for kept in present if kept.vector is not None}
        if not (self._vectors and embedded):
            return []
        records = await self._target.rows(self._scope, sorted(embedded))
        there = with_vectors(await self._target.load(self._scope), records)
        return [
            self._attach(embedded[one.record.seq], one.record.version) for one in there if one.vector is None
        ]

    async def _check_places(self, written: Sequence[CopiedRecord]) -> None:
        last = written[-1].record
        found = await self._target.read(self._scope, last.kind, [last.id])
        if found and found[0].seq == last.seq:
            return
        drops = [Drop(kind=kept.record.kind, id=kept.record.id) for kept in written]
        await self._target.write(self._scope, drops)
        raise WriteConflict(
            f"the target numbers the records of {_whose(self._scope)} otherwise than the source: somebody "
            "writes to it, or what was last in it was erased. Forget this scope there and copy again, or "
            "copy into another store"
        )


def _filler(like: Record) -> list[Change]:
    """Takes a position and leaves nothing in it: the record is dropped in the same batch."""
    return [Put(record=replace(like, id=_PLACEHOLDER), expect=0), Drop(kind=like.kind, id=_PLACEHOLDER)]


async def _checked(
    target: Store, scope: Scope, kinds: Sequence[str], ours: ScopeContent, *, new: int
) -> CopiedScope:
    """What the target holds of a scope now; raises WriteConflict if it is not `ours`."""
    # a vector that only the target made meanwhile is no difference
    theirs = await content_of(target, scope, kinds, ours.embedded)
    if (ours.digest, ours.vector_digest) != (theirs.digest, theirs.vector_digest):
        raise WriteConflict(
            f"{_whose(scope)}: the source holds {ours.records} records now and the target {theirs.records}, "
            "and they are not the same: somebody wrote to either meanwhile. Copy again while nobody does"
        )
    return CopiedScope(
        scope=scope,
        records=theirs.records,
        new=new,
        vectors=theirs.vectors,
        waiting=theirs.waiting,
        digest=theirs.digest,
    )


async def _begun(
    source: Store, target: Store, scope: Scope, kinds: Sequence[str], cursors: Cursors | None
) -> _TargetProgress:
    """How much of `scope` the target has; raises InvalidInput if it has other content."""
    row, _ = await _last_shared(searchable_pages(source, scope), searchable_pages(target, scope), scope, None)
    other, read = await _last_shared(
        other_pages(source, scope, kinds), other_pages(target, scope, kinds), scope, cursors
    )
    return _TargetProgress(row, other, read)


async def _last_shared(ours: Pages, theirs: Pages, scope: Scope, cursors: Cursors | None) -> tuple[int, int]:
    last = read = -1
    async with aclosing(flat(ours)) as expected, aclosing(flat(theirs)) as present:
        async for record in present:
            wanted = await anext(expected, None)
            if wanted is None or told(wanted) != told(record):
                raise InvalidInput(
                    f"the target holds something else of {_whose(scope)} than the source: they differ from "
                    f"the {record.kind} at place {record.seq} on. Nothing was copied. Forget this scope "
                    "there, or copy into another store"
                )
            last = record.seq
            read = max(read, -1 if cursors is None else cursors.of(record))
    return last, read


async def _countable(source: Store) -> int:
    """How many records the source has; raises StoreCorrupt if it cannot read all of them."""
    facts = await source.check()
    if unreadable := facts.get("unreadable"):
        raise StoreCorrupt(f"part of the source cannot be read, so nothing was copied: {unreadable[0]}")
    count = facts.get("records", 0)
    return count if isinstance(count, int) else 0


def _whose(scope: Scope) -> str:
    whose = "everyone" if scope.user is None else f"user {scope.user!r}"
    return f"{whose} of deployment {scope.deployment!r}"
