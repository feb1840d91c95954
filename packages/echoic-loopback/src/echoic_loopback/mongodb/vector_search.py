"""`$vectorSearch`: its grammar, and the nearest vectors, each compared: what `exact` means, and what is found
without it where the approximation does not err.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from bson.binary import Binary
from numpy.typing import NDArray

from echoic_loopback.mongodb.matching import Document, Predicate, compiled, values_at
from echoic_loopback.mongodb.search_indexes import SearchIndex, bad

MAX_CANDIDATES = 10_000
_FILTER_OPERATORS = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not"}
_VECTOR_SUBTYPE = 9


class VectorSearch:
    """`$vectorSearch`, checked, then run."""

    _FIELDS = frozenset(
        {"index", "path", "queryVector", "query", "model", "numCandidates", "limit", "exact", "filter"}
    )

    def __init__(self, stage: Any) -> None:
        if not isinstance(stage, Mapping):
            raise bad("$vectorSearch must be an object")
        for name in stage:
            if name not in self._FIELDS:
                raise bad(f'"{name}" unrecognized field')
        for name in ("index", "path", "queryVector", "limit"):
            if name not in stage:
                raise bad(f'"{name}" is required')
        self.index, self.path = str(stage["index"]), str(stage["path"])
        self.limit = stage["limit"]
        self.vector = vector_of(stage["queryVector"])
        if self.vector is None:
            raise bad('"queryVector" must be an array of numbers or a binary vector')
        if not isinstance(self.limit, int) or self.limit < 1:
            raise bad('"limit" must be positive')
        self._check_candidates(stage)
        self.filter = stage.get("filter", {})
        self.paths = set(_filter_paths(self.filter))

    def _check_candidates(self, stage: Mapping[str, Any]) -> None:
        candidates = stage.get("numCandidates")
        if stage.get("exact"):
            if candidates is not None:
                raise bad('"numCandidates" must be omitted when "exact" is true')
            return
        if candidates is None:
            raise bad('"numCandidates" is required unless "exact" is true')
        if not self.limit <= candidates <= MAX_CANDIDATES:
            raise bad(f'"numCandidates" must be between "limit" and {MAX_CANDIDATES}')

    def run(self, index: SearchIndex, documents: Iterable[Document]) -> list[tuple[Document, float]]:
        """The nearest documents and their scores, the nearest first."""
        fields = index.definition["fields"]
        vector = next((f for f in fields if f["type"] == "vector" and f["path"] == self.path), None)
        if vector is None:
            raise bad(f'"{self.path}" is not indexed as vector')
        filters = {f["path"] for f in fields if f["type"] == "filter"}
        for path in sorted(self.paths - filters):
            raise bad(f"Path '{path}' needs to be indexed as filter")
        if self.vector is None or len(self.vector) != vector["numDimensions"]:
            raise bad(
                f"vector field is indexed with {vector['numDimensions']} dimensions but queried with another"
            )
        test: Predicate = compiled(self.filter)
        scored = []
        for document in documents:
            own = vector_of((values_at(document, self.path) or [None])[0])
            # a vector of other dimensions is left out of the index
            if own is not None and len(own) == len(self.vector) and test(document):
                scored.append((document, _similarity(vector["similarity"], self.vector, own)))
        scored.sort(key=lambda pair: -pair[1])
        return scored[: self.limit]


def _similarity(name: str, one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    if name == "euclidean":
        return float(1 / (1 + np.sum((one - other) ** 2)))
    product = float(one @ other)
    if name == "cosine":
        length = float(np.linalg.norm(one) * np.linalg.norm(other))
        product = product / length if length else 0.0
    return (1 + product) / 2


def vector_of(value: Any) -> NDArray[np.float32] | None:
    """[dimensions] A stored or queried vector; None where it is none."""
    if isinstance(value, Binary) and value.subtype == _VECTOR_SUBTYPE:
        return np.array(value.as_vector().data, np.float32)
    if isinstance(value, list) and value and all(isinstance(n, (int, float)) for n in value):
        return np.array(value, np.float32)
    return None


def _filter_paths(query: Any) -> Iterator[str]:
    if not isinstance(query, Mapping):
        raise bad('"filter" must be a document')
    for name, condition in query.items():
        if name in {"$and", "$or", "$nor"}:
            for part in condition:
                yield from _filter_paths(part)
        elif name.startswith("$"):
            raise bad(f'Operator "{name}" is not supported in "filter"')
        else:
            _check_filter(name, condition)
            yield name


def _check_filter(path: str, condition: Any) -> None:
    operators = isinstance(condition, Mapping) and any(key.startswith("$") for key in condition)
    for operator in condition if operators else ():
        if operator not in _FILTER_OPERATORS:
            raise bad(f'Operator "{operator}" is not supported in "filter" at {path}')
    for value in condition.values() if operators else [condition]:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (Mapping, bytes)):
                raise bad(
                    f'Operand of "filter" at {path} must be a boolean, date, number, objectId, string or UUID'
                )


__all__ = ["VectorSearch", "vector_of"]
