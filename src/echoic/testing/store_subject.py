"""What store tests write, and how they see what a store made of it: an index, records, vectors, a partition
laid open. Proves nothing by itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import AXES, MEMORY, TURN, Entry, Flag, Partition, number_of
from echoic.stores.base import Attach, Put, Record, Store
from echoic.types import EmbeddingSpec, Scope
from echoic.words import content_words

SPEC = EmbeddingSpec("test:eight", 8)
OTHER_SPEC = EmbeddingSpec("test:twelve", 12)
ANA = Scope("acme", "ana")
BOB = Scope("acme", "bob")
EVERYONE = Scope("acme", None)
OTHER_ANA = Scope("other", "ana")
SEARCHABLE = ("memory", "turn")

ODD_NAMES = (
    "../x",
    "..",
    ".",
    ".hidden",
    "a/b",
    "a\\b",
    "/etc/passwd",
    "C:\\x",
    "CON",
    "con.txt",
    "x.json",
    "x.md",
    "x.lock",
    "x.vectors",
    "%2e%2e",
    "%everyone",
    "Ana",
    "ana",
    "ana ",
    " ana",
    "ana.",
    "ANA",
    "é",
    "e\u0301",
    "日本語",
    "a\nb",
    "a\r\nb",
    "'; drop table scopes; --",
    "*",
    "?",
    "a:b",
    "None",
    "null",
    "🦜" * 256,
    "🦜" * 255 + "!",
    "a" * 256,
    "a" * 255 + "b",
)
"""Users, deployments, ids and keys that a path, a query or a careless comparison would take for another."""


def index(record: Record) -> Entry | None:
    """Memories and turns by their text; everything else by kind, id and key only."""
    if record.kind not in SEARCHABLE:
        return None
    data = record.data
    text = str(data.get("text", ""))
    said_at = data.get("said_at_ms", 0)
    flags = Flag.QUESTION if "?" in text else Flag.NONE
    return Entry(
        text=text,
        kind=MEMORY if record.kind == "memory" else TURN,
        words=Entry.counted(content_words(text)),
        characters=len(text),
        session=number_of(record.key),
        said_at_ms=said_at if type(said_at) is int and abs(said_at) < 1 << 60 else 0,
        flags=flags | Flag.PAST if data.get("past") else flags,
    )


def memory(name: str, text: str = "likes tea", /, *, key: str | None = None, **data: Any) -> Record:
    """A searchable record."""
    return Record(kind="memory", id=name, key=key, data={"text": text, **data})


def note(name: str, /, *, key: str | None = None, **data: Any) -> Record:
    """A record that is not searchable."""
    return Record(kind="note", id=name, key=key, data=data)


def put(record: Record, expect: int | None = None) -> Put:
    """The change that writes `record`."""
    return Put(record=record, expect=expect)


def attach(record: Record, seed: int = 0, dimensions: int = SPEC.dimensions) -> Attach:
    """The change that gives `record`, as it was read, the vector of `seed` and its word pieces."""
    return attached(record.kind, record.id, record.version, unit(seed, dimensions))


def attached(kind: str, name: str, version: int, vector: NDArray[np.float32]) -> Attach:
    """The change that attaches `vector` with its word pieces."""
    return Attach(kind=kind, id=name, version=version, vector=vector, tokens=pieces_of(vector))


def pieces_of(vector: NDArray[np.float32]) -> bytes | None:
    """Made-up word pieces, always the same for a vector: none, one, two or three of them."""
    data = vector.tobytes()
    count = data[0] % 4
    return (data * (count * AXES // len(data) + 1))[: count * AXES] or None


def unit(seed: int, dimensions: int = SPEC.dimensions) -> NDArray[np.float32]:
    """[dimensions] A direction, always the same for a seed, at length 1."""
    vector = np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)
    return vector / np.linalg.norm(vector).astype(np.float32)


def exact(value: Any) -> str:
    """JSON that tells 1 from 1.0 and true, and does not mind the order of an object's names."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def told(record: Record) -> tuple[str, str, str | None, int, int, str]:
    """Everything of a record, comparable."""
    return record.kind, record.id, record.key, record.version, record.seq, exact(record.data)


@asynccontextmanager
async def opened(store: Store, spec: EmbeddingSpec = SPEC) -> AsyncIterator[Store]:
    """`store`, open."""
    await store.open(spec, index)
    try:
        yield store
    finally:
        await store.aclose()


@dataclass(frozen=True, slots=True)
class PartitionContent:
    """A partition laid open, for comparison. Empty rows do not count."""

    rows: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The fields of each row."""
    postings: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """Row, term and count, each as often as it stands there."""
    vectors: Mapping[int, bytes] = field(default_factory=dict)
    """The vectors of the rows that have one, as bytes."""
    tokens: Mapping[int, bytes] = field(default_factory=dict)
    """The word pieces of the rows that have some."""


def content(partition: Partition) -> PartitionContent:
    """What `partition` holds.

    Raises:
        AssertionError: a row without a vector holds one all the same, or a posting an empty row.
    """
    with partition.lock:
        rows = {i: tuple(row) for i, row in enumerate(partition.rows.tolist()) if row[0]}
        docs, terms, counts = (array.tolist() for array in partition.postings)
        embedded = {i for i, row in rows.items() if row[1] & Flag.EMBEDDED}
        vectors = {i: partition.vectors[i].tobytes() for i in embedded}
        bare = [i for i in range(partition.size) if i not in embedded]
        assert not partition.vectors[bare].any(), "a row that has no vector holds the bytes of one"
        assert set(docs) <= set(rows), "words are left of a row that is gone"
        tokens = dict(partition.tokens)
        assert set(tokens) <= embedded, "word pieces are left of a vector that is gone"
    return PartitionContent(rows, Counter(zip(docs, terms, counts, strict=True)), vectors, tokens)


def expected(
    records: Iterable[Record], vectors: Mapping[tuple[str, str], NDArray[np.float32]]
) -> PartitionContent:
    """What a partition over `records` has to hold.

    Args:
        records: as a store handed them out.
        vectors: by kind and id, of those that have one.
    """
    rows: dict[int, tuple[int, ...]] = {}
    postings: Counter[tuple[int, int, int]] = Counter()
    made: dict[int, bytes] = {}
    tokens: dict[int, bytes] = {}
    for record in records:
        entry = index(record)
        if entry is None:
            continue
        vector = vectors.get((record.kind, record.id))
        rows[record.seq] = entry.row(Flag.NONE if vector is None else Flag.EMBEDDED)
        if vector is not None:
            made[record.seq] = vector.tobytes()
            if pieces := pieces_of(vector):
                tokens[record.seq] = pieces
        postings.update((record.seq, word.term, min(n, 255)) for word, n in entry.words)
    return PartitionContent(rows, postings, made, tokens)


async def everything(store: Store, scope: Scope) -> list[Record]:
    """Every record of `scope` of the kinds written here, page by page."""
    found: list[Record] = []
    for kind in (*SEARCHABLE, "note"):
        after = -1
        while page := await store.scan(scope, kind, after=after, limit=50):
            found += page
            after = page[-1].seq
    return found


async def loaded(store: Store, scope: Scope) -> PartitionContent:
    """What `scope` holds when it is loaded now."""
    return content(await store.load(scope))


__all__ = [
    "ANA",
    "ODD_NAMES",
    "OTHER_SPEC",
    "SEARCHABLE",
    "SPEC",
    "PartitionContent",
    "attach",
    "attached",
    "content",
    "everything",
    "exact",
    "expected",
    "index",
    "loaded",
    "memory",
    "note",
    "opened",
    "pieces_of",
    "put",
    "told",
    "unit",
]
