"""Changes to one scope, one after another, as every database does them: version, place, and kept vector.

What a record, a row or a vector is written to is each store's own and not known here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from echoic.errors import WriteConflict, brief
from echoic.partition import Entry
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Change, Drop, Index, Put, Record, Require

Name = tuple[str, str]
"""Kind and id."""


class Changing(ABC):
    """One scope being changed, in a transaction somebody else began.

    Args:
        index: how records are found.
        next_row: the place of the next searchable record.
        next_other: the place of the next of the others.
    """

    def __init__(self, index: Index, next_row: int = 0, next_other: int = FIRST_UNSEARCHABLE) -> None:
        self._index = index
        self._next_row, self._next_other = next_row, next_other

    def apply(self, changes: Iterable[Change]) -> None:
        """Each change in order.

        Raises:
            WriteConflict: a `Put.expect` does not hold, or a `Require`; the transaction is to be rolled back.
        """
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
        """What stands in place of `old`, how it is found, and whether its text to embed stayed the same.

        Raises:
            WriteConflict: `old` is not at the version that `put` expects.
        """
        record, version = put.record, old.version if old else 0
        check_expected(put, old)
        entry = self._index(record)
        before = self._index(old) if old and entry else None
        seq = old.seq if old else self._next(searchable=entry is not None)
        same = before is not None and entry is not None and before.text == entry.text
        return replace(record, version=version + 1, seq=seq), entry, same

    def _next(self, *, searchable: bool) -> int:
        if searchable:
            self._next_row += 1
            return self._next_row - 1
        self._next_other += 1
        return self._next_other - 1


def check_expected(put: Put, old: Record | None) -> None:
    """Whether `old` is what `put` is to replace.

    Raises:
        WriteConflict: it is not.
    """
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
    """Whether what `require` names is there.

    Raises:
        WriteConflict: it is not.
    """
    if there is None:
        raise WriteConflict(
            f"{require.kind} {brief(require.id)}, which this belongs to, is not there; nothing was written."
        )


def begins(changes: Sequence[Change]) -> bool:
    """Whether `changes` need a scope, so that one is begun where there is none."""
    return any(isinstance(change, Put | Require) for change in changes)


def takes(old: Record | None, attach: Attach) -> TypeGuard[Record]:
    """Whether `old` is the record that the vector of `attach` was made for."""
    if old is None or old.version != attach.version or old.seq >= FIRST_UNSEARCHABLE:
        return False
    return attach.was is None or old.data == attach.was


def name_of(change: Change) -> Name:
    """The kind and id of the record that `change` is about."""
    return (change.record.kind, change.record.id) if isinstance(change, Put) else (change.kind, change.id)


__all__ = ["Changing", "Name", "begins", "check_expected", "check_required", "name_of", "takes"]
