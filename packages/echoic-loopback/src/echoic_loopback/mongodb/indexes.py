"""Indexes of a collection: what they find, what they leave out, and which definitions are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from echoic_loopback.mongodb.matching import Predicate, compiled, order, values_at
from echoic_loopback.mongodb.refusals import CANNOT_CREATE_INDEX, Refusal, unknown_fields

Key = tuple[Any, ...]
"""A document's `_id`, or an index entry, as `matching.order` has it."""
_INDEX_FIELDS = {"v", "key", "name", "unique", "sparse", "partialFilterExpression", "background"}
_PARTIAL_OPERATORS = {"$eq", "$exists", "$gt", "$gte", "$lt", "$lte", "$type", "$in"}


class Index:
    """One index: whom each prefix of its fields finds, and whether its entries are unique."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        unknown_fields(list(definition), _INDEX_FIELDS, "createIndexes.indexes")
        for direction in definition["key"].values():
            if direction not in {1, -1}:
                raise Refusal(
                    CANNOT_CREATE_INDEX, f"Values in the index key pattern must be 1 or -1: {direction!r}"
                )
        if not definition["key"]:
            raise Refusal(CANNOT_CREATE_INDEX, "Index keys cannot be an empty object.")
        if "partialFilterExpression" in definition and definition.get("sparse"):
            raise Refusal(CANNOT_CREATE_INDEX, 'cannot mix "partialFilterExpression" and "sparse" options')
        self.definition = dict(definition)
        self.name = str(definition["name"])
        self.fields = list(definition["key"])
        self.unique, self.sparse = bool(definition.get("unique")), bool(definition.get("sparse"))
        partial = definition.get("partialFilterExpression", {})
        _check_partial(partial)
        self.covers: Predicate = compiled(partial)
        self.found: dict[Key, dict[Key, None]] = {}

    def entry(self, document: Mapping[str, Any]) -> Key | None:
        """The document's entry; None if the index does not cover it."""
        if not self.covers(document):
            return None
        if self.sparse and not any(values_at(document, path) for path in self.fields):
            return None
        return tuple(order((values_at(document, path) or [None])[0]) for path in self.fields)

    def serves(self, query: Mapping[str, Any]) -> bool:
        """Whether everything `query` finds is in this index: a partial one leaves documents out."""
        if self.sparse:
            return False
        clauses = self.definition.get("partialFilterExpression", {})
        return all(
            condition == {"$exists": True} and _needs(query, path) for path, condition in clauses.items()
        )

    def add(self, key: Key, document: Mapping[str, Any]) -> None:
        """Take in a committed document."""
        entry = self.entry(document)
        for n in range(1, len(self.fields) + 1 if entry else 0):
            self.found.setdefault((entry or ())[:n], {})[key] = None

    def drop(self, key: Key, document: Mapping[str, Any]) -> None:
        """Let go of one."""
        entry = self.entry(document)
        for n in range(1, len(self.fields) + 1 if entry else 0):
            holders = self.found.get((entry or ())[:n], {})
            holders.pop(key, None)
            if not holders:
                self.found.pop((entry or ())[:n], None)


def _needs(query: Mapping[str, Any], path: str) -> bool:
    """Whether `query` finds only documents that have something at `path`."""
    condition = query.get(path)
    if isinstance(condition, Mapping) and any(name.startswith("$") for name in condition):
        return condition.get("$exists") is True or bool(condition.keys() & {"$gt", "$gte", "$lt", "$lte"})
    return condition is not None


def _check_partial(expression: Mapping[str, Any]) -> None:
    for name, condition in expression.items():
        if name == "$and":
            for part in condition:
                _check_partial(part)
        elif name.startswith("$"):
            raise Refusal(CANNOT_CREATE_INDEX, f"unsupported expression in partial index: {name}")
        elif isinstance(condition, Mapping):
            for operator, argument in condition.items():
                if operator not in _PARTIAL_OPERATORS or (operator == "$exists" and argument is not True):
                    raise Refusal(CANNOT_CREATE_INDEX, f"unsupported expression in partial index: {operator}")


__all__ = ["Index", "Key"]
