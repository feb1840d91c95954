"""Scopes read into partitions: the segments that changed, or the likely ones of a large scope. Read-only.

Several reads give one consistent state without a transaction: the version of the scope is read before and
after, and only what changed in between is read again, so that loading ends however much is written meanwhile.

For a scope too large to load, the search indexes choose likely rows, by meaning and by words; the ranking
shared by all stores orders the segments that contain them. Search indexes lag behind the data, so segments
that changed in the last minute are included as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE, origins, segments_around
from echoic.stores.mongodb.schema import (
    TEXT_INDEX,
    VECTOR_INDEX,
    Collections,
    Document,
    packed,
    scope_fields,
    unpacked,
)
from echoic.types import Scope

_BATCH = 2000
_MANY_ROWS = 4000
"""From this many rows on, a range is requested instead of row numbers."""
_AT_A_TIME = 64
"""Segments processed before the event loop gets its turn: about a millisecond."""
_HEAD = {"version": 1, "begun": 1, "nextRow": 1, "model": 1, "dimensions": 1}


class Moved(Exception):
    """The scope was erased and begun again while it was being read."""


async def head_of(collections: Collections, scope: Scope) -> Document | None:
    """The scope's version and counters; None if it is empty."""
    return await collections.scopes.find_one({"_id": scope_fields(scope)}, _HEAD)


async def catch_up(
    collections: Collections, scope: Scope, partition: Partition, head: Document, model: Mapping[str, Any]
) -> None:
    """Update `partition`, at any earlier version of this scope (0: empty), to its current version.

    `head` is the scope's document, just read. A scope with vectors of another model than `model` is loaded
    without them. Raises Moved if the scope was erased and created again.
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
    """Patch `partition`, in a thread if there are many segments."""

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
    """The segments of `scope` found by `query`, by number, without vectors; at most the `newest` ones."""
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
    """Add the vectors and word pieces of their rows to `segments`.

    A row whose vector is missing or has other dimensions, because another program changed the document, stays
    without and is found by its words.
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


VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
"""The weights of the published voice memory demo; they select candidates and do not order them."""
LAG = timedelta(seconds=60)
"""The longest expected lag of a search index: usually about a second, more under heavy writing."""
YOUNG_SEGMENTS = 32
"""The most segments changed within `LAG` that are included: a thousand rows."""
MAX_WORDS = 64
"""Words of a question that are searched for."""
_FUZZY = {"maxEdits": 1, "prefixLength": 0, "maxExpansions": 50}
"""No common prefix is required: misheard names often differ in their first letter."""
_ASKED = {"_id": 0, "seq": 1, "deploymentId": 1, "userCookie": 1, "isGlobal": 1}


def vector_stage(scope: Scope, vector: NDArray[np.float32], *, limit: int, include_past: bool) -> Document:
    """`$vectorSearch` within one scope. Exact: the filter leaves few enough rows to compare each."""
    own: list[Document] = [{name: value} for name, value in scope_fields(scope).items()]
    if not include_past:
        own.append({"isPast": False})
    return {
        "$vectorSearch": {
            "index": VECTOR_INDEX,
            "path": "embedding",
            "queryVector": packed(vector),
            "exact": True,
            "limit": limit,
            "filter": {"$and": own},
        }
    }


def text_stage(scope: Scope, text: str, *, include_past: bool) -> Document:
    """`$search` within one scope: by stems, and by words one letter off."""
    own: list[Document] = [{"equals": {"path": n, "value": v}} for n, v in scope_fields(scope).items()]
    if not include_past:
        own.append({"equals": {"path": "isPast", "value": False}})
    paths = ["value", "entryText"]
    as_they_stand = [{"value": path, "multi": "words"} for path in paths]
    return {
        "$search": {
            "index": TEXT_INDEX,
            "compound": {
                "should": [
                    {"text": {"query": text, "path": paths}},
                    {"text": {"query": text, "path": as_they_stand, "fuzzy": dict(_FUZZY)}},
                ],
                "minimumShouldMatch": 1,
                "filter": own,
            },
        }
    }


def pipelines(
    scope: Scope,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    limit: int,
    include_past: bool,
    fusing: bool,
) -> list[list[Document]]:
    """The pipelines that find likely rows: one, or two if the server cannot fuse them."""
    inputs: dict[str, list[Document]] = {}
    if vector is not None and np.any(vector):
        inputs["vector"] = [vector_stage(scope, vector, limit=limit, include_past=include_past)]
    question = " ".join(text.split()[:MAX_WORDS])
    if any(letter.isalnum() for letter in question):
        inputs["text"] = [text_stage(scope, question, include_past=include_past), {"$limit": limit}]
    asked: Document = {"$project": dict(_ASKED)}
    if len(inputs) < 2 or not fusing:
        return [[*stages, asked] for stages in inputs.values()]
    fusion = {
        "$rankFusion": {
            "input": {"pipelines": inputs},
            "combination": {"weights": {"vector": VECTOR_WEIGHT, "text": TEXT_WEIGHT}},
        }
    }
    return [[fusion, {"$limit": 2 * limit}, asked]]


def shown(asked: Iterable[list[Document]]) -> tuple[list[Document], ...]:
    """A pipeline as JSON for people, with a vector's length in its place."""
    return tuple([_shown(stage) for stage in pipeline] for pipeline in asked)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    vector = unpacked(value)
    return value if vector is None else f"[{len(vector)} dimensions]"


async def likely_rows(collections: Collections, scope: Scope, asked: Iterable[list[Document]]) -> list[int]:
    """The rows that the pipelines find, each checked against the scope again."""
    own = scope_fields(scope)

    async def found(pipeline: list[Document]) -> list[Document]:
        return await (await collections.search.aggregate(pipeline)).to_list()

    answers = await asyncio.gather(*(found(pipeline) for pipeline in asked))
    ours = [d for answer in answers for d in answer if {name: d.get(name) for name in own} == own]
    return list(dict.fromkeys(int(document["seq"]) for document in ours if "seq" in document))


async def narrowed(
    collections: Collections, scope: Scope, rows: Iterable[int], dimensions: int, now: datetime
) -> Partition:
    """A partition of the segments around `rows` and those that just changed, concatenated."""
    found = await read_segments(collections, scope, {"number": {"$in": segments_around(rows)}})
    young = {"changedAt": {"$gte": now - LAG}}
    found |= await read_segments(collections, scope, young, newest=YOUNG_SEGMENTS)
    await read_vectors(collections, scope, found, dimensions)
    numbers = sorted(found)
    partition = Partition(dimensions)
    await put_in_place(partition, [(place, found[number]) for place, number in enumerate(numbers)])
    partition.origin = origins(numbers)
    return partition
