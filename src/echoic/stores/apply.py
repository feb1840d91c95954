"""Changes to one scope in order, as every database applies them: version, position, and kept vector.

Each store defines how it writes a record, a row or a vector.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from echoic.errors import WriteConflict, brief
from echoic.partition import SEGMENT_ROWS, Entry, Segment
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Erasable, Index, Put, Record, Require

T = TypeVar("T")
NEEDLE_BYTES = 40
TELLING_BYTES = 8
"""Shorter texts occur in any file by chance."""
_SAID = ("text", "heard", "statement", "context", "value", "summary")
"""What was said or stored; a time or an id beside it is often longer, but proves nothing."""


def text_needles(data: Mapping[str, Any], forms: Callable[[str], Iterable[bytes]]) -> list[bytes]:
    """The beginning of the longest text in `data`, in each of the `forms` in which it may be written."""
    longest = max(_telling(data), key=len, default="")
    return [form[:NEEDLE_BYTES] for form in forms(longest) if len(form) >= TELLING_BYTES]


def as_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


def vector_needle(vector: NDArray[np.float32]) -> bytes:
    """The ten adjacent numbers with the fewest zeros, as bytes; empty if mostly zeros."""
    width = NEEDLE_BYTES // vector.itemsize
    filled = np.convolve(vector != 0, np.ones(width, int), "valid" if len(vector) >= width else "same")
    at = int(filled.argmax())
    return vector[at : at + width].tobytes() if filled[at] > width // 2 else b""


def sample(items: Sequence[T], most: int) -> list[T]:
    """At most `most` of `items`, evenly spread."""
    return list(items[:: max(1, -(-len(items) // most))])


def removed(old: Record, new: Record) -> Record:
    """`old` with only the texts that `new` no longer has, each from the first difference on.

    The words before are still stored, and must not be searched for.
    """
    left = set(strings(new.data))
    gone = [text for text in _telling(old.data) if text not in left]
    told = [(text, max(left, key=lambda other: _shared(text, other), default="")) for text in gone]
    return replace(old, data={str(n): text[_shared(text, other) :] for n, (text, other) in enumerate(told)})


def _telling(data: Mapping[str, Any]) -> list[str]:
    """What was said or stored in `data`; every text if that is too short to be searched for."""
    said = [text for field in _SAID for text in strings(data.get(field))]
    return said if any(len(as_json(text)) >= TELLING_BYTES for text in said) else list(strings(data))


def strings(data: Any) -> Iterator[str]:
    """Every text in the JSON value `data`."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from strings(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from strings(value)


def _shared(one: str, other: str) -> int:
    """The length of the common prefix."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(min(one, other, key=len))
    )


Name = tuple[str, str]
"""Kind and id."""


class Changing(ABC):
    """One scope being changed, in a transaction that the caller began."""

    def __init__(self, index: Index, next_row: int = 0, next_other: int = FIRST_UNSEARCHABLE) -> None:
        self._index = index
        self._next_row, self._next_other = next_row, next_other
        self._segments: dict[int, Segment] = {}
        self._touched: set[int] = set()
        """The segments to be written."""

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply each change in order; after WriteConflict roll the transaction back."""
        for change in changes:
            match change:
                case Put():
                    self._put(change)
                case Drop():
                    self._drop(change)
                case Attach():
                    self._attach(change)
                case Require():
                    check_required(change, self._stands(change.kind, change.id))

    @abstractmethod
    def _stands(self, kind: str, name: str) -> Record | None:
        """The record of that name in the middle of the batch."""

    @abstractmethod
    def _put(self, put: Put) -> None: ...

    @abstractmethod
    def _drop(self, drop: Drop) -> None: ...

    @abstractmethod
    def _attach(self, attach: Attach) -> None: ...

    def _written(self, put: Put, old: Record | None) -> tuple[Record, Entry | None, bool]:
        """The new record, its index entry, and whether its text to embed stayed the same."""
        record, version = put.record, old.version if old else 0
        check_expected(put, old)
        entry = self._index(record)
        before = self._index(old) if old and entry else None
        seq = old.seq if old else self._next(searchable=entry is not None)
        same = before is not None and entry is not None and before.text == entry.text
        return replace(record, version=version + 1, seq=seq), entry, same

    def _segment(self, seq: int) -> Segment:
        """The segment of a row, to be changed."""
        number = seq // SEGMENT_ROWS
        self._touched.add(number)
        if number not in self._segments:
            self._segments[number] = self._stored_segment(number)
        return self._segments[number]

    def _stored_segment(self, number: int) -> Segment:  # noqa: ARG002 - for stores that read it only now
        return Segment()

    def _next(self, *, searchable: bool) -> int:
        if searchable:
            self._next_row += 1
            return self._next_row - 1
        self._next_other += 1
        return self._next_other - 1


def check_expected(put: Put, old: Record | None) -> None:
    """Raise WriteConflict if `old` is not what `put` expects to replace."""
    record, version = put.record, old.version if old else 0
    if put.expect is not None and put.expect != version:
        raise WriteConflict(
            f"{record.kind} {brief(record.id)} is at version {version}, not {put.expect}; "
            "nothing was written. Read it again and retry."
        )
    if put.was is not None and (old is None or old.data != put.was):
        raise WriteConflict(
            f"{record.kind} {brief(record.id)} was forgotten and written anew; nothing was written. "
            "Read it again and retry."
        )


def check_required(require: Require, there: Record | None) -> None:
    """Raise WriteConflict if what `require` names does not exist."""
    if there is None:
        raise WriteConflict(
            f"{require.kind} {brief(require.id)}, which this belongs to, is not there; nothing was written."
        )


def begins(changes: Sequence[Change]) -> bool:
    """Whether `changes` create the scope if it does not exist."""
    return any(isinstance(change, Put | Require) for change in changes)


def takes(old: Record | None, attach: Attach) -> TypeGuard[Record]:
    """Whether `old` is the record that the vector of `attach` was made for."""
    if old is None or old.version != attach.version or old.seq >= FIRST_UNSEARCHABLE:
        return False
    return attach.was is None or old.data == attach.was


def erasing(
    there: Iterable[Record], changes: Iterable[Erasable]
) -> tuple[list[Record], list[tuple[Record, Record]]]:
    """Those of the records `there` that `changes` destroy; and those they rewrite, with their new state."""
    last = {name_of(change): change for change in changes}
    gone: list[Record] = []
    rewritten: list[tuple[Record, Record]] = []
    for record in there:
        change = last.get((record.kind, record.id))
        if isinstance(change, Put):
            rewritten.append((record, change.record))
        else:
            gone.append(record)
    return gone, rewritten


def name_of(change: Change) -> Name:
    """The kind and id of the record that `change` is about."""
    return (change.record.kind, change.record.id) if isinstance(change, Put) else (change.kind, change.id)
