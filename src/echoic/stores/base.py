"""The store seam: records go in, records and partitions come out, always of a given scope.

A store keeps bytes. It does not know what a record means, which one is current, or what may be shared. Every
store passes `echoic.testing.StoreConformance` and agrees with the in-memory one on random histories.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch, InvalidInput, NotOpen, StoreCorrupt, brief
from echoic.partition import MAX_BYTES, SEGMENT_ROWS, Entry, Partition
from echoic.types import EmbeddingSpec, Scope

FIRST_UNSEARCHABLE = 1 << 31
"""Searchable records are numbered from 0, which is their row in the partition; the others from this number.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a store. `(kind, id)` is unique within a scope."""

    kind: str
    id: str
    data: Mapping[str, Any]
    """JSON: strings, numbers, booleans, null, lists and objects of them."""
    key: str | None = None
    """A name that several records may share, such as the versions of one memory."""
    version: int = 0
    """How often it was written, from 1; set by the store."""
    seq: int = -1
    """Its position in the order of first writing, set by the store; its row, if it is searchable."""


Index = Callable[[Record], Entry | None]
"""Returns how a record is found; None for records that are not searchable. Pure; a kind is searchable or not.
Given to a store at `open`, so that it can index its content again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write `record`, replacing the record of its kind and id.

    The vector is kept if the text to embed is the same; otherwise the record waits for a new one.
    """

    record: Record
    expect: int | None = None
    """The version the record must have: 0 for "does not exist", None for any."""
    was: Mapping[str, Any] | None = None
    """The data the record must have; None for any. A record that was forgotten and written again may have the
    same version."""

    @classmethod
    def over(cls, old: Record | None, record: Record) -> Put:
        """Replace `old` as it was read (None: nothing). Putting `old` itself only checks."""
        return cls(record=record, expect=old.version if old else 0, was=old.data if old else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Remove a record with its words and vector, if it exists."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """Apply the batch only if this record exists, whatever it holds. Changes nothing itself.

    It ensures that a dependent record is never written after this record was forgotten, without a read first.
    """

    kind: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Give a searchable record its vector, unless it is gone or no longer at `version`."""

    kind: str
    id: str
    version: int
    vector: NDArray[np.float32]
    """[dimensions], unit length, of the model the store was opened with."""
    tokens: bytes | None = None
    """The packed word pieces of the text (`partition.tokens`); stored and removed with the vector."""
    was: Mapping[str, Any] | None = None
    """The data the vector was made from; the vector is not attached to other data. None for any."""

    def __post_init__(self) -> None:
        if (size := len(self.tokens or b"")) > MAX_BYTES:
            raise InvalidInput(f"{size} bytes of word pieces: a text has {MAX_BYTES} at most")


Change = Put | Drop | Attach | Require
Erasable = Drop | Put
"""What `Store.erase` takes: a record to destroy, or its replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What `erase` removed, and whether that was verified."""

    records: Mapping[str, int] = field(default_factory=dict)
    """How many records were destroyed, by kind."""
    rewritten: int = 0
    """Records that were replaced: only their previous content was destroyed."""
    vectors: int = 0
    verified: bool = False
    """Whether the remaining bytes were searched for the removed content and contained none of it."""
    bytes_searched: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A searchable record that has no vector yet."""

    scope: Scope
    record: Record


@runtime_checkable
class Store(Protocol):
    """The seam that every store implements.

    A constructor does no I/O. Every method may raise `StoreUnavailable` (it could not read or write; retry)
    and `NotOpen`. What is not found is missing from the result, never an error.
    """

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        """Open the store, creating or upgrading it if needed; a second call changes nothing.

        Args:
            embedding: the model of the vectors to be attached. A new store records it.
            index: how records are found.

        Raises:
            EmbeddingMismatch: the store holds vectors of another model; nothing was changed.
            StoreCorrupt: the store cannot be read, or belongs to another program; it is left unchanged.
            StoreTooNew: a newer version wrote it; it is left unchanged.
        """

    async def aclose(self) -> None:
        """Finish writing and close. May be called twice."""

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        """Apply `changes` in order: all or none, durable when it returns, visible to the next read.

        Raises:
            WriteConflict: a `Put.expect`, `Put.was` or `Require` did not hold; nothing was written.
        """

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        """The records of `kind` among `ids`, in the order asked."""

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        """The searchable records at these rows, in the order asked, such as the hits of a search."""

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
        """Records of `kind` in the order of first writing; fewer than `limit` if there are no more.

        Args:
            scope: the scope.
            kind: the kind of record.
            key: only records with this key.
            after: start after this `seq` (before it, if newest first): the last one of the previous page.
            limit: maximum number.
            newest_first: reverse the order.
        """

    async def load(self, scope: Scope) -> Partition:
        """The scope ready for ranking, with every write acknowledged before the call, by any process.

        The same object may be returned again, patched; hold its `lock` while scanning.
        """

    async def waiting(self, limit: int) -> list[Waiting]:
        """Searchable records without a vector, the longest-waiting first."""

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        """Destroy records, or with None the whole scope, and verify that they cannot be read back.

        Words, sounds and vectors are destroyed with the records, everywhere the store keeps bytes. Of a
        record with a `Put`, only the previous content is destroyed. All of it happens in one step.

        Raises:
            WriteConflict: a `Put.expect` or `was` did not hold; nothing was destroyed.
        """

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        """Every scope that has a record, in order of first writing. For operators and workers."""

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        """Change the embedding model: all vectors are dropped; returns how many records now wait for one."""

    async def check(self) -> Mapping[str, Any]:
        """Facts for `echoic doctor`, such as size and pending records. No contents."""


@runtime_checkable
class Narrows(Protocol):
    """A store that finds the likely rows of a scope too large to load, so that only those are ranked.

    Optional, in addition to `Store`. The database finds candidates by meaning and by words; the ranking
    shared by all stores decides their order.
    """

    narrow_above: int
    """Rows of a scope from which `load` is no longer used; measured (docs/scale.md)."""

    async def size(self, scope: Scope) -> int:
        """About how many rows the scope has, removed ones included. Cheap: nothing is counted.

        Raises:
            StoreUnavailable: it could not be looked up.
        """

    async def narrow(
        self, scope: Scope, text: str, vector: NDArray[np.float32] | None, *, limit: int, include_past: bool
    ) -> Partition:
        """A small partition with the rows of `scope` most likely to answer, and their neighbours.

        It consists of whole segments of 32 rows: those with the found rows, and the next one if a row is
        within four of its edge, so that windows over turns see what they see in a loaded scope. Its rows are
        renumbered; `Partition.origin` maps them back. It belongs to the caller and is not cached.

        Args:
            scope: the scope.
            text: the question, as it was said.
            vector: [dimensions], unit length; None to search by words alone.
            limit: maximum number of rows for each way of searching.
            include_past: whether past records may be found too.

        Raises:
            StoreUnavailable: the search failed.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which records an operator looks for, across the users of a deployment, by fields of their data.

    A store that finds conversations by an index has a method `listed(wanted)`, which returns pairs of scope
    and record in any order; only kind `LISTED` is indexed. In other stores every user is visited.
    """

    kind: str
    deployment: str
    status: tuple[str, ...] = ()
    """Any of these; empty for any status."""
    agent: str | None = None
    since: str | None = None
    """The least `started_at`, compared as text (ISO 8601)."""
    until: str | None = None
    """Only records with an earlier `started_at`."""
    user: str | None = None
    """Only records of this user."""
    newest: int | None = None
    """At most so many, those with the latest `started_at`; among equals any."""


LISTED: Final = "conversation"
"""The kind of record that stores index by `status`, `agent` and `started_at` of its data."""


async def latest(
    store: Store, kind: str, keys: Sequence[tuple[Scope, str]]
) -> dict[tuple[Scope, str], Record]:
    """Return the last record of `kind` for each key in its scope, in the order of first writing.

    A store with a method `latest(kind, keys)`, which returns pairs of scope and record, is asked once. Any
    other is scanned once for each key.

    Raises:
        StoreUnavailable: could not look.
    """
    found: list[tuple[Scope, Record]]
    if hasattr(store, "latest"):
        found = await store.latest(kind, keys)
    else:
        pages = await asyncio.gather(*(_last(store, scope, kind, key) for scope, key in keys))
        found = [(scope, page[0]) for (scope, _), page in zip(keys, pages, strict=True) if page]
    return {(scope, record.key or ""): record for scope, record in found}


async def _last(store: Store, scope: Scope, kind: str, key: str) -> list[Record]:
    """The last record under `key`; none of a user who cannot be read, who keeps no other out of the list."""
    try:
        return await store.scan(scope, kind, key=key, newest_first=True, limit=1)
    except StoreCorrupt:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of a server, and whether its result is healthy."""

    name: str
    well: bool
    detail: str
    advice: str = ""
    """What to do about it, if it is not healthy."""
    ms: float = 0.0
    """Milliseconds the check took."""


@runtime_checkable
class Examines(Protocol):
    """A store with a server that may be misconfigured in ways that show only later.

    Optional, in addition to `Store`; for `echoic doctor`.
    """

    async def examine(self) -> list[Finding]:
        """Version, indexes, lag and permissions. It writes test data and removes it again.

        May take many seconds. The result contains no user data.
        """


def finding(name: str, detail: str, advice: str = "") -> Finding:
    """A result that is healthy unless there is something to advise."""
    return Finding(name=name, well=not advice, detail=detail, advice=advice)


async def timed(looking: Awaitable[Finding]) -> Finding:
    """A finding with the time the check took."""
    began = time.perf_counter()
    found = await looking
    return replace(found, ms=round(1000 * (time.perf_counter() - began), 2))


ENCRYPTED: Final = "encrypted:"
"""Prefix of the model name of an encrypted store, whose vectors are sealed."""


def check_model(theirs: EmbeddingSpec, ours: EmbeddingSpec, where: str) -> None:
    """Raise EmbeddingMismatch if `where` holds vectors of `theirs` and that is not `ours`."""
    if theirs.model.startswith(ENCRYPTED) != ours.model.startswith(ENCRYPTED):
        is_, way = ("", "name its keys in its URL, as in ?encryption=file:PATH (docs/encryption.md)")
        if ours.model.startswith(ENCRYPTED):
            is_, way = (
                "not ",
                "open it without keys, or copy it into an encrypted store (docs/encryption.md)",
            )
        raise EmbeddingMismatch(f"{where} is {is_}encrypted: {way}")
    if theirs != ours:
        raise EmbeddingMismatch(
            f"{where} holds vectors of {model_text(theirs)!r}, not of {model_text(ours)!r}: open it with "
            "that embedder, or run `echoic reindex` to embed everything anew",
            model=theirs.model,
            dimensions=theirs.dimensions,
        )


def model_text(spec: EmbeddingSpec) -> str:
    """`spec` as a database records it: "<model> <dimensions>"."""
    return f"{spec.model} {spec.dimensions}"


def model_from(text: str) -> EmbeddingSpec:
    """The inverse of `model_text`."""
    model, _, dimensions = text.rpartition(" ")
    return EmbeddingSpec(model, int(dimensions) if dimensions.isdecimal() else 0)


def not_open() -> NotOpen:
    """The error of every method of a store that is not open."""
    return NotOpen("the store is not open: use `async with` or await open() first")


def damaged(kind: str, name: str) -> StoreCorrupt:
    """The error for a record that is not what was written; `echoic doctor` says whose it is."""
    return StoreCorrupt(f"{kind} {brief(name)} is damaged; it is left untouched: run `echoic doctor`")


class Uses:
    """Counts the methods in progress, so that `aclose` can wait for them."""

    def __init__(self) -> None:
        self._running = 0
        self._none = asyncio.Event()

    def __enter__(self) -> None:
        self._running += 1

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._none.set()

    async def ended(self) -> None:
        """Wait until none is in progress."""
        while self._running:
            self._none = asyncio.Event()  # a future of this loop: the store may later be opened in another
            await self._none.wait()


REACH = 4
"""How far from a found row the windows of the ranking reach."""


def segments_around(rows: Iterable[int]) -> list[int]:
    """The segments that contain `rows` and a window around them; the last one may not exist."""
    found: set[int] = set()
    for row in rows:
        found.update(range(max(0, row - REACH) // SEGMENT_ROWS, (row + REACH) // SEGMENT_ROWS + 1))
    return sorted(found)


def origins(segments: Sequence[int]) -> NDArray[np.int64]:
    """[32 * len(segments)] The row number in the scope of each row of the concatenated `segments`."""
    starts = np.array(segments, np.int64) * SEGMENT_ROWS
    return (starts[:, None] + np.arange(SEGMENT_ROWS)).reshape(-1)


def fsync_path(path: str | Path) -> None:
    """Make a file, or the names in a folder, durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def without_others(mode: int) -> int:
    """`mode` for a file with user data.

    A file that everyone may read becomes private to its owner. One shared with a group only stays so: Echoic
    never creates one, so it is intended.
    """
    return mode & ~0o077 if mode & 0o007 else mode
