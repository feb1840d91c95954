"""Scopes read into partitions: the segments that changed, and the vectors of their rows. Writes nothing.

Several reads make one picture here without a transaction: the scope's version is read before and after, and
what was changed in between is read again. Only that, so that it ends however much is written meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE
from echoic.stores.mongodb_documents import Document, scope_fields, unpacked
from echoic.stores.mongodb_schema import Collections
from echoic.types import Scope

_BATCH = 2000
_MANY_ROWS = 4000
"""From here on a range of rows is asked for instead of each by its number."""
_AT_A_TIME = 64
"""Segments decoded or put in place before the event loop gets its turn: about a millisecond."""
_HEAD = {"version": 1, "begun": 1, "nextRow": 1, "model": 1, "dimensions": 1}


class Moved(Exception):
    """The scope was erased and begun anew while it was being read."""


async def head_of(collections: Collections, scope: Scope) -> Document | None:
    """The scope's version and counters; None where it holds nothing."""
    return await collections.scopes.find_one({"_id": scope_fields(scope)}, _HEAD)


async def catch_up(
    collections: Collections, scope: Scope, partition: Partition, head: Document, model: Mapping[str, Any]
) -> None:
    """Bring `partition` to the scope's present version.

    Args:
        collections: where.
        scope: which.
        partition: of this scope, at any earlier version; 0 for nothing yet.
        head: the scope's document, read just now.
        model: whose vectors are wanted; a scope that holds others' is loaded without.

    Raises:
        Moved: it is another scope of the same name by now.
    """
    changed: dict[int, Segment] = {}
    since = partition.version
    while True:
        found = await read_segments(collections, scope, {"version": {"$gt": since}})
        if any(head.get(name) != value for name, value in model.items()):
            for segment in found.values():
                segment.detach_all()
        else:
            await read_vectors(collections, scope, found, int(model["dimensions"]))
        changed.update(found)
        since = head["version"]
        again = await head_of(collections, scope)
        if again is None or again["begun"] != head["begun"]:
            raise Moved
        if again["version"] == head["version"]:
            break
        head = again
    await put_in_place(partition, sorted(changed.items()))
    partition.version = head["version"]


async def put_in_place(partition: Partition, segments: list[tuple[int, Segment]]) -> None:
    """Patch `partition`; many segments are copied beside the event loop."""

    def work() -> None:
        with partition.lock:
            partition.patch(segments)

    if len(segments) > _AT_A_TIME:
        await asyncio.to_thread(work)
    else:
        work()


async def read_segments(
    collections: Collections, scope: Scope, query: Document, *, newest: int = 0
) -> dict[int, Segment]:
    """By number, the segments of `scope` that `query` finds, without vectors; `newest`: so many at most."""
    cursor = collections.segments.find(
        {**scope_fields(scope), **query}, {"_id": 0, "number": 1, "words": 1}, batch_size=_BATCH
    )
    if newest:
        cursor = cursor.sort("version", -1).limit(newest)
    found: dict[int, Segment] = {}
    async for document in cursor:
        found[document["number"]] = Segment.from_bytes(bytes(document["words"]))
        if len(found) % _AT_A_TIME == 0:
            await asyncio.sleep(0)
    return found


async def read_vectors(
    collections: Collections, scope: Scope, segments: Mapping[int, Segment], dimensions: int
) -> None:
    """Give `segments` the vectors and word pieces of their rows.

    A row that says it has a vector, and has none of these dimensions, is left without: another program
    changed the document. It is found by its words.
    """
    wanted = set(_embedded(segments))
    if not wanted:
        return
    some: Document = {"$in": sorted(wanted)}
    if len(wanted) > _MANY_ROWS:
        some = {"$gte": min(wanted), "$lte": min(max(wanted), FIRST_UNSEARCHABLE - 1)}
    cursor = collections.records.find(
        {**scope_fields(scope), "seq": some},
        {"_id": 0, "seq": 1, "embedding": 1, "tokens": 1},
        batch_size=_BATCH,
    )
    async for document in cursor:
        vector = unpacked(document.get("embedding"))
        row = int(document["seq"])
        if row not in wanted or vector is None or len(vector) != dimensions:
            continue
        wanted.discard(row)
        segment, slot = segments[row // SEGMENT_ROWS], row % SEGMENT_ROWS
        if segment.vectors is None:
            segment.vectors = np.zeros((SEGMENT_ROWS, dimensions), np.float32)
        segment.vectors[slot] = vector
        if document.get("tokens"):
            segment.tokens[slot] = bytes(document["tokens"])
    for row in wanted:
        segments[row // SEGMENT_ROWS].rows["flags"][row % SEGMENT_ROWS] &= 0xFF ^ int(Flag.EMBEDDED)


def _embedded(segments: Mapping[int, Segment]) -> Iterable[int]:
    for number, segment in segments.items():
        for slot in np.flatnonzero(segment.rows["flags"] & int(Flag.EMBEDDED)).tolist():
            yield number * SEGMENT_ROWS + slot


__all__ = ["Moved", "catch_up", "head_of", "put_in_place", "read_segments", "read_vectors"]
