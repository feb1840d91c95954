"""One user's memory file in memory: its records, what it says of itself, and what others put there. Pure.

`files_json` and `files_markdown` know how it is laid out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from echoic.errors import InvalidInput, StoreTooNew, brief
from echoic.stores.base import FIRST_UNSEARCHABLE, Index, Record
from echoic.stores.files_facts import Item, is_fact
from echoic.stores.files_source import Source
from echoic.stores.held import Name
from echoic.types import Scope

FORMAT = 1
"""Version of the files; a higher one is left untouched."""
_HEADER = ("format", "deployment", "user", "began", "next_row", "next_other")


@dataclass(slots=True)
class Header:
    """What a file says of itself."""

    began: int = 0
    """When its scope was first written, in microseconds: the order of scopes. 0: before we knew it."""
    next_row: int = 0
    next_other: int = FIRST_UNSEARCHABLE
    owner: Scope | None = None
    """Whose it is, where the file's name does not tell."""
    others: dict[str, Any] = field(default_factory=dict)
    """Fields that are not ours."""

    @classmethod
    def parse(cls, own: Mapping[str, Any], source: Source) -> Header:
        """What our own object of a file says of it.

        Raises:
            StoreCorrupt: it is not ours.
            StoreTooNew: a newer version wrote it.
        """
        version = own.get("format", FORMAT)
        if type(version) is not int:
            raise source.corrupt("its format is no number")
        if version > FORMAT:
            raise StoreTooNew(
                f"{str(source.path)!r} has format {version}, this Echoic knows {FORMAT}: upgrade Echoic"
            )
        began, row, other = own.get("began", 0), own.get("next_row", 0), own.get("next_other", 0)
        if not all(type(count) is int and count >= 0 for count in (began, row, other)):
            raise source.corrupt("its counters are not numbers")
        others = {name: value for name, value in own.items() if name not in _HEADER}
        return cls(began, row, max(other, FIRST_UNSEARCHABLE), cls._owner(own, source), others)

    @staticmethod
    def _owner(own: Mapping[str, Any], source: Source) -> Scope | None:
        if "deployment" not in own:
            return None
        try:
            return Scope(own["deployment"], own.get("user"))
        except InvalidInput as error:
            raise source.corrupt("it does not tell whose it is") from error

    def fields(self) -> dict[str, Any]:
        """The inverse of `parse`."""
        found: dict[str, Any] = {"format": FORMAT}
        if self.owner is not None:
            found |= {"deployment": self.owner.deployment, "user": self.owner.user}
        counts = {"began": self.began, "next_row": self.next_row, "next_other": self.next_other}
        return found | counts | self.others


class Document(ABC):
    """A file in memory. `changed` and `to_bytes` are the way back."""

    def __init__(self) -> None:
        self.header = Header()
        self.facts: list[Item] = []
        self.others: list[Item] = []

    @property
    def items(self) -> list[Item]:
        """Every record's entry."""
        return [*self.facts, *self.others]

    @classmethod
    @abstractmethod
    def new(cls, scope: Scope) -> Document:
        """One that holds nothing yet."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str, source: Source) -> Document:
        """The document that `text` is.

        Raises:
            StoreCorrupt: it is none, or not ours.
            StoreTooNew: a newer version wrote it.
        """

    @property
    @abstractmethod
    def holds_more(self) -> bool:
        """Whether anything stands in it that is neither a record nor ours."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The file.

        Raises:
            InvalidInput: a record holds what JSON cannot say.
        """

    @abstractmethod
    def added(self, item: Item) -> None:
        """A new fact takes its place in the layout."""

    @abstractmethod
    def removed(self, item: Item) -> None:
        """A fact leaves the layout."""

    def changed(self, records: Mapping[Name, Record | None], since: Callable[[int], int]) -> None:
        """Take in what became of some records.

        Args:
            records: what each touched one is now; None: removed.
            since: by row, when it began to wait.
        """
        items = {(item.record.kind, item.record.id): item for item in self.items}
        for name, record in records.items():
            item = items.get(name)
            if item is not None and (record is None or is_fact(record) != is_fact(item.record)):
                self._remove(item)
                item = None
            if record is None:
                continue
            if item is None:
                self._add(Item({}, record, since(record.seq)))
            else:
                self._change(item, record, since(record.seq))
        for item in self.items:
            item.noted = True

    def number(self, index: Index, source: Source) -> None:
        """Give places to the records that have none, in the order they stand in the file.

        Raises:
            StoreCorrupt: a record is not what its kind has to be.
        """
        header, taken = self.header, [item.record.seq for item in self.items]
        header.next_row = max(
            header.next_row, 1 + max((n for n in taken if n < FIRST_UNSEARCHABLE), default=-1)
        )
        header.next_other = max(header.next_other, 1 + max(taken, default=-1))
        for item in self.items:
            if item.record.seq >= 0:
                continue
            try:
                searchable = index(item.record) is not None
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise source.corrupt(f"{item.record.kind} {brief(item.record.id)} is not complete") from error
            if searchable:
                seq, header.next_row = header.next_row, header.next_row + 1
            else:
                seq, header.next_other = header.next_other, header.next_other + 1
            item.record = replace(item.record, seq=seq)

    def _add(self, item: Item) -> None:
        if is_fact(item.record):
            self.facts.append(item)
            self.added(item)
        else:
            self.others.append(item)

    def _change(self, item: Item, record: Record, since: int) -> None:
        moved = is_fact(record) and item.record.data.get("category") != record.data.get("category")
        if moved:
            self.removed(item)
        item.record, item.since, item.touched, item.line = record, since, True, ""
        if moved:
            self.added(item)

    def _remove(self, item: Item) -> None:
        if is_fact(item.record):
            self.facts.remove(item)
            self.removed(item)
        else:
            self.others.remove(item)


__all__ = ["FORMAT", "Document", "Header"]
