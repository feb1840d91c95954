"""What update operators make of a document. The operators in `OPERATORS`; others are refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import bson

from echoic_loopback.mongodb.matching import Document, order
from echoic_loopback.mongodb.refusals import (
    BAD_VALUE,
    CONFLICTING_UPDATE,
    FAILED_TO_PARSE,
    IMMUTABLE_FIELD,
    TOO_LARGE,
    TYPE_MISMATCH,
    Refusal,
)

MAX_BYTES = 16 << 20
"""Of one document."""
_MAX_DEPTH = 180


def checked(document: Document) -> Document:
    """A document that may be kept.

    Raises:
        Refusal: it is too large or too deep, or a name of its top level opens with a dollar sign.
    """
    for name in document:
        if name.startswith("$"):
            raise Refusal(52, f"The dollar ($) prefixed field '{name}' is not allowed in this context.")
    if len(bson.encode(document)) > MAX_BYTES:
        raise Refusal(TOO_LARGE, f"object to insert too large. max size is {MAX_BYTES}")
    _check_depth(document, 1)
    return document


def _check_depth(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise Refusal(15, f"nesting depth exceeds {_MAX_DEPTH}")
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check_depth(item, depth + 1)


def changed(document: Document, update: Any, *, inserting: bool = False) -> Document:
    """A copy of `document` as `update` leaves it.

    Args:
        document: what was found, or for an upsert what its filter says.
        update: an object of update operators. Replacements and pipelines are refused here.
        inserting: whether `$setOnInsert` applies.

    Raises:
        Refusal: an operator is not known, two touch one path, or `_id` would change.
    """
    check_update(update)
    after = copy.deepcopy(document)
    for name, fields in update.items():
        if name == "$setOnInsert" and not inserting:
            continue
        for path, argument in fields.items():
            OPERATORS[name](after, path, argument)
    if "_id" in document and order(after.get("_id")) != order(document["_id"]):
        raise Refusal(
            IMMUTABLE_FIELD, "Performing an update on the path '_id' would modify the immutable field '_id'"
        )
    return checked(after)


def check_update(update: Any) -> None:
    """Refuse what is no object of known operators.

    Raises:
        Refusal: so it is.
    """
    if not isinstance(update, Mapping) or not update or not next(iter(update)).startswith("$"):
        raise Refusal(FAILED_TO_PARSE, "the stand-in takes updates by operators only")
    paths: list[str] = []
    for name, fields in update.items():
        if name not in OPERATORS:
            raise Refusal(FAILED_TO_PARSE, f"Unknown modifier: {name}. Expected a valid update modifier")
        if not isinstance(fields, Mapping):
            raise Refusal(
                FAILED_TO_PARSE, f"Modifiers operate on fields but we found another type for {name}"
            )
        paths += fields
    _check_paths(paths)


def _check_paths(paths: Iterable[str]) -> None:
    taken: list[str] = []
    for path in paths:
        if not path or path.startswith("$") or ".." in path or path.endswith("."):
            raise Refusal(BAD_VALUE, f"The update path '{path}' contains an empty or a dollar ($) field name")
        for other in taken:
            if path == other or path.startswith(other + ".") or other.startswith(path + "."):
                raise Refusal(
                    CONFLICTING_UPDATE, f"Updating the path '{path}' would create a conflict at '{other}'"
                )
        taken.append(path)


def _parent(document: Document, path: str, *, make: bool) -> tuple[Document | None, str]:
    *heads, last = path.split(".")
    for head in heads:
        if head not in document:
            if not make:
                return None, last
            document[head] = {}
        if not isinstance(document[head], dict):
            raise Refusal(28, f"Cannot create field '{last}' in element of another type: {head}")
        document = document[head]
    return document, last


def _set(document: Document, path: str, value: Any) -> None:
    parent, last = _parent(document, path, make=True)
    if parent is not None:
        parent[last] = copy.deepcopy(value)


def _unset(document: Document, path: str, _argument: Any) -> None:
    parent, last = _parent(document, path, make=False)
    if parent is not None:
        parent.pop(last, None)


def _increase(document: Document, path: str, amount: Any) -> None:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise Refusal(TYPE_MISMATCH, f"Cannot increment with non-numeric argument: {{{path}}}")
    parent, last = _parent(document, path, make=True)
    if parent is None:
        return
    before = parent.get(last, 0)
    if isinstance(before, bool) or not isinstance(before, (int, float)):
        raise Refusal(TYPE_MISMATCH, f"Cannot apply $inc to a value of non-numeric type at '{path}'")
    parent[last] = before + amount


OPERATORS: Mapping[str, Callable[[Document, str, Any], None]] = {
    "$set": _set,
    "$unset": _unset,
    "$inc": _increase,
    "$setOnInsert": _set,
}
