"""What a scope holds, read through the seam of any store: page by page, or as a digest to compare."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Flag, Partition
from echoic.stores.base import FIRST_UNSEARCHABLE, Record, Store
from echoic.types import Scope

PAGE = 200
"""Records read at once: under 10 MB if each is as large as may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a scope holds, as two stores can compare it."""

    records: int
    vectors: int
    waiting: int
    """Searchable records without a vector."""
    digest: str
    """Of kind, id, key, place and data of every record, in order; BLAKE2b, 32 bytes in hex."""
    vector_digest: str
    """Likewise of vectors and word pieces."""
    embedded: frozenset[int]
    """The rows whose vectors that is made of."""


class Kept(NamedTuple):
    """A record with what was made of it."""

    record: Record
    vector: NDArray[np.float32] | None = None
    tokens: bytes | None = None


Pages = AsyncGenerator[list[Kept], None]


async def content_of(
    store: Store, scope: Scope, kinds: Sequence[str], rows: Collection[int] | None = None
) -> Content:
    """What `scope` holds.

    Args:
        store: where.
        scope: whose.
        kinds: of the records that are not searchable.
        rows: whose vectors are looked at; None: of all that have one.
    """
    records, vectors = blake2b(digest_size=32), blake2b(digest_size=32)
    count = waiting = 0
    embedded: set[int] = set()
    async with aclosing(all_pages(store, scope, kinds)) as pages:
        async for page in pages:
            count += len(page)
            for record, vector, tokens in page:
                records.update(told(record) + b"\n")
                waiting += vector is None and record.seq < FIRST_UNSEARCHABLE
                if vector is not None and (rows is None or record.seq in rows):
                    embedded.add(record.seq)
                    said = tokens or b""
                    vectors.update(record.seq.to_bytes(8) + len(said).to_bytes(8))
                    vectors.update(vector.astype("<f4").tobytes() + said)
    return Content(
        records=count,
        vectors=len(embedded),
        waiting=waiting,
        digest=records.hexdigest(),
        vector_digest=vectors.hexdigest(),
        embedded=frozenset(embedded),
    )


async def flat(pages: Pages) -> AsyncGenerator[Record, None]:
    """The records of `pages`, one by one."""
    async for page in pages:
        for kept in page:
            yield kept.record


async def all_pages(store: Store, scope: Scope, kinds: Sequence[str]) -> Pages:
    """All of `scope` in order, searchable records first; each page is of one sort."""
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


def with_vectors(partition: Partition, records: Sequence[Record]) -> list[Kept]:
    """Searchable records with what `partition` has of them."""
    found: list[Kept] = []
    with partition.lock:
        for record in records:
            there = record.seq < partition.size and partition.rows["flags"][record.seq] & Flag.EMBEDDED
            vector = partition.vectors[record.seq].copy() if there else None
            found.append(Kept(record, vector, partition.tokens.get(record.seq) if there else None))
    return found


async def other_pages(store: Store, scope: Scope, kinds: Sequence[str]) -> Pages:
    """The records of `kinds` that are not searchable, merged in the order of first writing."""
    read: dict[str, deque[Record]] = {kind: deque() for kind in kinds}
    after = dict.fromkeys(kinds, FIRST_UNSEARCHABLE - 1)
    page: list[Kept] = []
    while read:
        for kind in [kind for kind, records in read.items() if not records]:
            records = await store.scan(scope, kind, after=after[kind], limit=PAGE)
            if not records:
                del read[kind]
                continue
            read[kind].extend(records)
            after[kind] = records[-1].seq
        if read:
            page.append(Kept(min(read.values(), key=lambda records: records[0].seq).popleft()))
        if page and (len(page) == PAGE or not read):
            yield page
            page = []


def told(record: Record) -> bytes:
    """What two stores have to agree on: JSON that tells 1 from 1.0, and does not mind the order of names."""
    said = [record.kind, record.id, record.key, record.seq, record.data]
    return json.dumps(said, sort_keys=True, ensure_ascii=True).encode()


__all__ = [
    "PAGE",
    "Content",
    "Kept",
    "Pages",
    "all_pages",
    "content_of",
    "flat",
    "other_pages",
    "searchable_pages",
    "told",
    "with_vectors",
]
