"""Search inside the database, for scopes too large to load: which rows are likely, by meaning and by words.

It only chooses; the order is made by the ranking that all stores share, over the segments the rows lie in.
Search indexes follow the data with a delay, so segments changed in the last minute are looked at as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Partition
from echoic.stores.mongodb_documents import Document, packed, scope_fields, unpacked
from echoic.stores.mongodb_load import put_in_place, read_segments, read_vectors
from echoic.stores.mongodb_schema import TEXT_INDEX, VECTOR_INDEX, Collections
from echoic.stores.narrowing import origins, segments_around
from echoic.types import Scope

VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
"""As in the voice memory demo that others know; they decide what is chosen, not how it is ordered."""
LAG = timedelta(seconds=60)
"""How far behind the data a search index may be: usually about a second, more while much is written."""
YOUNG_SEGMENTS = 32
"""Of those changed within `LAG`, the newest so many: a thousand rows."""
MAX_WORDS = 64
"""Of a question."""
_FUZZY = {"maxEdits": 1, "prefixLength": 0, "maxExpansions": 50}
"""Misheard names differ in their first letter as often as elsewhere, so no prefix is asked for."""
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
    """What to ask, so that likely rows come out: one pipeline, or two where the server cannot fuse them."""
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
    """The same as JSON for people: a vector stands there by its length."""
    return tuple([_shown(stage) for stage in pipeline] for pipeline in asked)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    vector = unpacked(value)
    return value if vector is None else f"[{len(vector)} dimensions]"


async def likely_rows(collections: Collections, scope: Scope, asked: Iterable[list[Document]]) -> list[int]:
    """The rows that `asked` find. Each is held against the scope again: a mistake in a filter is no leak."""
    own = scope_fields(scope)

    async def found(pipeline: list[Document]) -> list[Document]:
        return await (await collections.search.aggregate(pipeline)).to_list()

    answers = await asyncio.gather(*(found(pipeline) for pipeline in asked))
    ours = [d for answer in answers for d in answer if {name: d.get(name) for name in own} == own]
    return list(dict.fromkeys(int(document["seq"]) for document in ours if "seq" in document))


async def narrowed(
    collections: Collections, scope: Scope, rows: Iterable[int], dimensions: int, now: datetime
) -> Partition:
    """A partition of the segments around `rows` and of those changed just now, one behind the other."""
    found = await read_segments(collections, scope, {"number": {"$in": segments_around(rows)}})
    young = {"changedAt": {"$gte": now - LAG}}
    found |= await read_segments(collections, scope, young, newest=YOUNG_SEGMENTS)
    await read_vectors(collections, scope, found, dimensions)
    numbers = sorted(found)
    partition = Partition(dimensions)
    await put_in_place(partition, [(place, found[number]) for place, number in enumerate(numbers)])
    partition.origin = origins(numbers)
    return partition


__all__ = ["likely_rows", "narrowed", "pipelines", "shown", "text_stage", "vector_stage"]
