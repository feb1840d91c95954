"""How values compare and which documents a filter finds: the server's rules for the operators in `OPERATORS`.

A filter is compiled before any document is looked at, so that a wrong one is refused in an empty collection
too. Collations, regular expressions, `$expr` and geometry are not here, and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bson.binary import Binary
from bson.objectid import ObjectId

from echoic_loopback.mongodb.refusals import BAD_VALUE, NOT_IMPLEMENTED, Refusal

Document = dict[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]
_Test = Callable[[list[Any]], bool]

# https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
_NULL, _NUMBER, _STRING, _OBJECT, _ARRAY, _BINARY, _OBJECT_ID, _BOOLEAN, _DATE = range(1, 10)
_TYPES = {
    "double": (float,),
    "string": (str,),
    "object": (dict,),
    "array": (list,),
    "binData": (bytes,),
    "objectId": (ObjectId,),
    "bool": (bool,),
    "date": (datetime,),
    "null": (type(None),),
    "int": (int,),
    "long": (int,),
    "number": (int, float),
}
_NOT_HERE = {
    "$expr",
    "$text",
    "$where",
    "$jsonSchema",
    "$comment",
    "$regex",
    "$elemMatch",
    "$all",
    "$size",
    "$mod",
}


def bracket(value: Any) -> int:
    """The place of a value's type in the order of types; only values of one bracket are greater or less."""
    match value:
        case None:
            return _NULL
        case bool():
            return _BOOLEAN
        case int() | float():
            return _NUMBER
        case str():
            return _STRING
        case Mapping():
            return _OBJECT
        case list() | tuple():
            return _ARRAY
        case bytes():
            return _BINARY
        case ObjectId():
            return _OBJECT_ID
        case datetime():
            return _DATE
    raise Refusal(NOT_IMPLEMENTED, f"the stand-in cannot compare values of {type(value).__name__}")


def order(value: Any) -> tuple[Any, ...]:
    """What sorts, and is equal, as the value does on a server."""
    kind = bracket(value)
    if kind == _OBJECT:
        return (kind, tuple((bracket(v), k, order(v)) for k, v in value.items()))
    if kind == _ARRAY:
        return (kind, tuple(order(item) for item in value))
    if kind == _BINARY:
        return (kind, len(value), value.subtype if isinstance(value, Binary) else 0, bytes(value))
    if kind == _NUMBER and value != value:
        return (kind, float("-inf"))
    return (kind, None if value is None else value)


def values_at(document: Any, path: str) -> list[Any]:
    """What stands at a dotted path, through arrays; nothing where it is missing."""
    head, _, rest = path.partition(".")
    if isinstance(document, list):
        found = [value for item in document if isinstance(item, dict) for value in values_at(item, path)]
        if head.isdigit() and int(head) < len(document):
            item = document[int(head)]
            found += values_at(item, rest) if rest else [item]
        return found
    if not isinstance(document, Mapping) or head not in document:
        return []
    return values_at(document[head], rest) if rest else [document[head]]


def compiled(query: Any) -> Predicate:
    """The filter as a function.

    Raises:
        Refusal: it is none, or holds an operator that is not known.
    """
    if not isinstance(query, Mapping):
        raise Refusal(14, "Expected field filter to be of type object")
    tests = [_clause(name, condition) for name, condition in query.items()]
    return lambda document: all(test(document) for test in tests)


def _clause(name: str, condition: Any) -> Predicate:
    if name in {"$and", "$or", "$nor"}:
        if not isinstance(condition, list) or not condition:
            raise Refusal(BAD_VALUE, f"{name} argument must be a non-empty array")
        parts = [compiled(part) for part in condition]
        if name == "$and":
            return lambda document: all(part(document) for part in parts)
        wanted = name == "$or"
        return lambda document: any(part(document) for part in parts) == wanted
    if name.startswith("$"):
        if name in _NOT_HERE:
            raise Refusal(NOT_IMPLEMENTED, f"the stand-in has no {name}")
        raise Refusal(BAD_VALUE, f"unknown top level operator: {name}")
    test = _condition(condition)
    return lambda document: test(values_at(document, name))


def _condition(condition: Any) -> _Test:
    if not (isinstance(condition, Mapping) and any(name.startswith("$") for name in condition)):
        return _equal(condition)
    tests = []
    for name, argument in condition.items():
        if name in _NOT_HERE:
            raise Refusal(NOT_IMPLEMENTED, f"the stand-in has no {name}")
        if name not in OPERATORS:
            raise Refusal(BAD_VALUE, f"unknown operator: {name}")
        tests.append(OPERATORS[name](argument))
    return lambda values: all(test(values) for test in tests)


def _spread(values: list[Any]) -> list[Any]:
    """The values and, of arrays, their items: a filter finds either."""
    return values + [item for value in values if isinstance(value, list) for item in value]


def _equal(wanted: Any) -> _Test:
    key = order(wanted)
    if wanted is None:
        return lambda values: not values or any(order(value) == key for value in _spread(values))
    return lambda values: any(order(value) == key for value in _spread(values))


def _differs(wanted: Any) -> _Test:
    equal = _equal(wanted)
    return lambda values: not equal(values)


def _compares(holds: Callable[[Any, Any], bool]) -> Callable[[Any], _Test]:
    def operator(bound: Any) -> _Test:
        key, kind = order(bound), bracket(bound)
        return lambda values: any(
            bracket(value) == kind and holds(order(value), key) for value in _spread(values)
        )

    return operator


def _among(name: str, *, inside: bool) -> Callable[[Any], _Test]:
    def operator(wanted: Any) -> _Test:
        if not isinstance(wanted, list):
            raise Refusal(BAD_VALUE, f"{name} needs an array")
        keys = {order(value) for value in wanted}
        absent = order(None) in keys

        def test(values: list[Any]) -> bool:
            found = (absent and not values) or any(order(value) in keys for value in _spread(values))
            return found == inside

        return test

    return operator


def _exists(wanted: Any) -> _Test:
    return lambda values: bool(values) == bool(wanted)


def _of_type(wanted: Any) -> _Test:
    names: Sequence[Any] = wanted if isinstance(wanted, list) else [wanted]
    if any(name not in _TYPES for name in names):
        raise Refusal(BAD_VALUE, f"Unknown type name alias: {wanted}")
    kinds = tuple(kind for name in names for kind in _TYPES[name])
    return lambda values: any(
        isinstance(value, kinds) and (isinstance(value, bool) <= (bool in kinds)) for value in _spread(values)
    )


def _negated(condition: Any) -> _Test:
    if not isinstance(condition, Mapping):
        raise Refusal(BAD_VALUE, "$not needs a regex or a document")
    inner = _condition(condition)
    return lambda values: not inner(values)


OPERATORS: Mapping[str, Callable[[Any], _Test]] = {
    "$eq": _equal,
    "$ne": _differs,
    "$gt": _compares(lambda a, b: a > b),
    "$gte": _compares(lambda a, b: a >= b),
    "$lt": _compares(lambda a, b: a < b),
    "$lte": _compares(lambda a, b: a <= b),
    "$in": _among("$in", inside=True),
    "$nin": _among("$nin", inside=False),
    "$exists": _exists,
    "$type": _of_type,
    "$not": _negated,
}


def equalities(query: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The fields that a filter binds to one value, for choosing an index."""
    bound: dict[str, tuple[Any, ...]] = {}
    for name, condition in query.items():
        if name == "$and":
            for part in condition:
                bound.update(equalities(part))
        elif (
            not name.startswith("$") and condition is not None and not isinstance(condition, (dict, list))
        ) or (isinstance(condition, dict) and not any(key.startswith("$") for key in condition)):
            bound[name] = order(condition)
    return bound


def sorted_by(documents: list[Document], keys: Any) -> list[Document]:
    """The documents in the order of a sort specification.

    Raises:
        Refusal: a direction is not 1 or -1.
    """
    if not isinstance(keys, Mapping) or not keys:
        raise Refusal(15976, "$sort stage must have at least one sort key")
    for direction in keys.values():
        if direction not in {1, -1}:
            raise Refusal(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
    found = list(documents)
    for path, direction in reversed(list(keys.items())):
        found.sort(key=lambda d, path=path: _sort_key(d, path), reverse=direction < 0)  # type: ignore[misc]
    return found


def _sort_key(document: Document, path: str) -> tuple[Any, ...]:
    values = values_at(document, path)
    if any(isinstance(value, list) for value in values):
        raise Refusal(NOT_IMPLEMENTED, "the stand-in does not sort by arrays")
    return min((order(value) for value in values), default=order(None))
