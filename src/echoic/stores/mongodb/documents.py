"""How scopes, records and vectors lie in documents, and back. Knows no server.

A searchable record has the shape of MongoDB's published voice-memory demo, so that its collections open as
they are and ours can be read by its tools: `deploymentId`, `userCookie` ("global" for everyone's) and
`isGlobal` say whose it is, `key` and `value` what it says, `embedding` how it is found by meaning. Our own
fields stand beside these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from bson.binary import Binary
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt
from echoic.partition import Entry, Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Record
from echoic.types import Scope

Document = dict[str, Any]

EVERYONE = "global"
"""The `userCookie` of what is everyone's; a user of that name is told apart by `isGlobal`."""
OPTIONAL_FIELDS = ("key", "value", "data", "dataJson", "entryText", "isPast")
"""The fields a record may be without; what a new version of it lacks is removed."""
VECTOR_FIELDS = ("embedding", "tokens")
_VECTOR_SUBTYPE = 9
_FLOAT32 = b"\x27\x00"
"""Opens a binary vector: 32-bit floats, no padding. https://bsonspec.org, subtype 9."""
_MAX_DEPTH = 40
"""The deepest nested data kept as documents; BSON ends at 100, and a document of ours adds a few levels."""
_INT64 = 1 << 63


def scope_fields(scope: Scope) -> Document:
    """What tells whose a document is; also the `_id` of the scope's own document, in this order."""
    user = EVERYONE if scope.user is None else scope.user
    return {"deploymentId": scope.deployment, "userCookie": user, "isGlobal": scope.user is None}


def scope_of(fields: Mapping[str, Any]) -> Scope:
    """The inverse of `scope_fields`."""
    return Scope(fields["deploymentId"], None if fields["isGlobal"] else fields["userCookie"])


def fields_of(record: Record, entry: Entry | None) -> Document:
    """The fields of a record that a write sets; those of `OPTIONAL_FIELDS` only where there is something.

    Args:
        record: with the version and place it is kept at.
        entry: how it is found; None: by kind, id and key only.
    """
    fields: Document = {"kind": record.kind, "id": record.id, "seq": record.seq, "version": record.version}
    if record.key is not None:
        fields["key"] = record.key
    data: Mapping[str, Any] = record.data
    if entry is not None:
        text = data.get("text")
        if isinstance(text, str) and _is_unicode(text):
            fields["value"] = text
            data = {name: value for name, value in data.items() if name != "text"}
        if entry.text != text and entry.text and _is_unicode(entry.text):
            fields["entryText"] = entry.text
        fields["isPast"] = bool(entry.flags & Flag.PAST)
    if not data:
        return fields
    if _fits(data, 0):
        fields["data"] = data
    else:
        fields["dataJson"] = json.dumps(data)
    return fields


def _fits(value: Any, depth: int) -> bool:
    """Whether BSON keeps `value` exactly, and a server takes its names for nothing but names."""
    match value:
        case None | bool() | float():
            return True
        case str():
            return _is_unicode(value)
        case int():
            return -_INT64 <= value < _INT64
        case list() | tuple():
            return depth < _MAX_DEPTH and all(_fits(item, depth + 1) for item in value)
        case Mapping():
            return depth < _MAX_DEPTH and all(
                isinstance(name, str) and _is_name(name) and _fits(item, depth + 1)
                for name, item in value.items()
            )
    return False


def _is_name(name: str) -> bool:
    return (
        bool(name) and not name.startswith("$") and "." not in name and "\0" not in name and _is_unicode(name)
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON keeps and BSON does not
        return False
    return True


def record_of(document: Mapping[str, Any]) -> Record:
    """The inverse of `fields_of`.

    Raises:
        StoreCorrupt: these are not the fields of a record.
    """
    try:
        data: dict[str, Any] = {}
        if "value" in document and document["seq"] < FIRST_UNSEARCHABLE:
            data["text"] = document["value"]
        data.update(
            json.loads(document["dataJson"]) if "dataJson" in document else _plain(document.get("data", {}))
        )
        return Record(
            kind=document["kind"],
            id=document["id"],
            key=document.get("key"),
            version=int(document["version"]),
            seq=int(document["seq"]),
            data=data,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"the document {document.get('_id')} is no record ({type(error).__name__}); it is left as it is"
        ) from error


def _plain(value: Any) -> Any:
    """Without the driver's own kinds of numbers."""
    match value:
        case bool():
            return value
        case int():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
    return value


def packed(vector: NDArray[np.float32]) -> Binary:
    """[dimensions] A vector as the binary vector that search indexes read: 4 bytes a number."""
    return Binary(_FLOAT32 + np.ascontiguousarray(vector, "<f4").tobytes(), _VECTOR_SUBTYPE)


def unpacked(value: Any) -> NDArray[np.float32] | None:
    """[dimensions] The inverse of `packed`, also of a plain array of numbers; None where it is neither."""
    if isinstance(value, bytes) and getattr(value, "subtype", None) == _VECTOR_SUBTYPE:
        data = bytes(value)
        if data[:2] != _FLOAT32 or len(data) % 4 != 2:
            return None
        return np.frombuffer(data, "<f4", offset=2).astype(np.float32, copy=False)
    if isinstance(value, list) and value and all(isinstance(n, (int, float)) for n in value):
        return np.array(value, np.float32)
    return None


def moment(clock_ns: int) -> datetime:
    """A clock's nanoseconds as a date, which is exact to the millisecond in a document."""
    return datetime.fromtimestamp(clock_ns // 1_000_000 / 1000, UTC)
