"""Search indexes: their definitions, by the rules of the search process, and what it has read of the data.

An index follows the data with a delay; `SearchIndexes.pause` holds it, as a busy one is held.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bson.objectid import ObjectId

from echoic_loopback.mongodb.analysis import ANALYZERS, DEFAULT_ANALYZER
from echoic_loopback.mongodb.matching import Document
from echoic_loopback.mongodb.refusals import FAILED_TO_PARSE, INVALID_OPTIONS, Refusal, unknown_fields

_SIMILARITIES = {"cosine", "euclidean", "dotProduct"}
_MAX_DIMENSIONS = 8192
_TYPES = {"string", "token", "boolean", "number", "date", "objectId", "uuid", "document"}


def bad(message: str, code: int = FAILED_TO_PARSE) -> Refusal:
    """What the search process finds wrong; it has one code for nearly everything."""
    return Refusal(code, message)


@dataclass(slots=True)
class SearchIndex:
    """One search index: its definition, and how far it has got."""

    name: str
    kind: str
    definition: Mapping[str, Any]
    looks_until_ready: int = 0
    """How often it is listed as being built before it is ready."""
    id: str = field(default_factory=lambda: str(ObjectId()))

    def __post_init__(self) -> None:
        if self.kind == "vectorSearch":
            _check_vector_definition(self.definition)
        elif self.kind == "search":
            _check_text_definition(self.definition)
        else:
            raise Refusal(INVALID_OPTIONS, f'"type" must be one of [search, vectorSearch]: {self.kind}')

    @property
    def ready(self) -> bool:
        """Whether it answers."""
        return self.looks_until_ready <= 0

    def listed(self) -> Document:
        """As `$listSearchIndexes` tells of it."""
        told = {
            "id": self.id,
            "name": self.name,
            "type": self.kind,
            "status": "READY" if self.ready else "BUILDING",
            "queryable": self.ready,
            "latestDefinition": dict(self.definition),
        }
        self.looks_until_ready -= 1
        return told


def _check_vector_definition(definition: Mapping[str, Any]) -> None:
    unknown_fields(list(definition), {"fields", "numPartitions", "storedSource"}, "definition")
    fields = definition.get("fields")
    if not isinstance(fields, list) or not any(f.get("type") == "vector" for f in fields):
        raise bad('"fields" must hold at least one "vector" field', INVALID_OPTIONS)
    for one in fields:
        if one.get("type") == "filter":
            unknown_fields(list(one), {"type", "path"}, "definition.fields")
            continue
        if one.get("type") != "vector":
            raise bad(f'"fields.type" must be one of [filter, vector]: {one.get("type")}', INVALID_OPTIONS)
        unknown_fields(
            list(one), {"type", "path", "numDimensions", "similarity", "quantization"}, "definition.fields"
        )
        dimensions = one.get("numDimensions")
        if not isinstance(dimensions, int) or not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise bad(f'"numDimensions" must be in [1, {_MAX_DIMENSIONS}]: {dimensions!r}', INVALID_OPTIONS)
        if one.get("similarity") not in _SIMILARITIES:
            raise bad('"similarity" must be one of [cosine, dotProduct, euclidean]', INVALID_OPTIONS)


def _check_text_definition(definition: Mapping[str, Any]) -> None:
    unknown_fields(
        list(definition),
        {"mappings", "analyzer", "searchAnalyzer", "analyzers", "storedSource"},
        "definition",
    )
    mappings = definition.get("mappings")
    if not isinstance(mappings, Mapping):
        raise bad('"mappings" is required', INVALID_OPTIONS)
    unknown_fields(list(mappings), {"dynamic", "fields"}, "definition.mappings")
    for path, given in mappings.get("fields", {}).items():
        for one in given if isinstance(given, list) else [given]:
            _check_mapping(path, one)


def _check_mapping(path: str, one: Mapping[str, Any]) -> None:
    if one.get("type") not in _TYPES:
        raise bad(f'"mappings.fields.{path}.type" is not known: {one.get("type")}', INVALID_OPTIONS)
    known = {"type", "analyzer", "searchAnalyzer", "multi", "indexOptions", "norms", "store", "ignoreAbove"}
    unknown_fields(list(one), known if one["type"] == "string" else {"type", "normalizer"}, f"fields.{path}")
    for name in ("analyzer", "searchAnalyzer"):
        if one.get(name, DEFAULT_ANALYZER) not in ANALYZERS:
            raise bad(
                f'"mappings.fields.{path}.{name}" references non-existent analyzer: {one[name]}',
                INVALID_OPTIONS,
            )
    for multi in one.get("multi", {}).values():
        _check_mapping(path, multi)


class SearchIndexes:
    """What the search process has read of one server's data."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[Any, Document]] | None = None

    def pause(self, data: Mapping[str, Mapping[Any, Document]]) -> None:
        """Read nothing more from now on."""
        self._seen = {namespace: copy.deepcopy(dict(documents)) for namespace, documents in data.items()}

    def go_on(self) -> None:
        """Catch up."""
        self._seen = None

    def documents(self, namespace: str, live: Mapping[Any, Document]) -> list[tuple[Any, Document]]:
        """What is indexed, by key. What was deleted since is looked up in vain, and so not found."""
        if self._seen is None:
            return list(live.items())
        return [(key, d) for key, d in self._seen.get(namespace, {}).items() if key in live]


__all__ = ["SearchIndex", "SearchIndexes", "bad"]
