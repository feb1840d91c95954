"""Facts as people read and edit them, and as the records they are. Pure; knows no layout.

A record of kind "memory" that has a text is a fact: its text, category and `valid_from` are shown. What else
we know of it stands in our own fields: id, key, version, seq, when it began to wait for its vector, a mark,
and the rest of its data. The mark tells whether a person changed the fact since we wrote it: then it is at a
new version. A fact without our fields is somebody's own; it becomes a memory, and gets our fields the next
time that we write the file. What we do not know is kept as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from echoic.errors import InvalidInput
from echoic.stores.base import Record
from echoic.stores.files_source import Source
from echoic.stores.held import Name
from echoic.types import checked_text

MEMORY = "memory"
_OWN = ("kind", "id", "key", "version", "seq", "since", "mark", "data")


@dataclass(slots=True, eq=False)
class Item:
    """One entry of a file."""

    raw: dict[str, Any]
    """The object it was read from, with whatever others put there."""
    record: Record
    since: int = 0
    """When it began to wait for its vector, in microseconds."""
    touched: bool = True
    """Whether it was put since, so that what is shown in the file has to be made anew."""
    noted: bool = True
    """Whether the file tells its version and place, or will once it is written."""
    line: str = ""
    """How it is written; empty where that has to be made anew."""


class Found(NamedTuple):
    """An entry of a file that may be a fact."""

    shown: Mapping[str, Any]
    """What of the record's data stands where people read it."""
    own: Any
    """Our fields; None if it has none."""
    raw: dict[str, Any]
    where: str
    """Its place in the file, for messages."""


class Intake:
    """Turns the entries of one file into records."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: set[Name] = set()
        self._places: set[int] = set()
        self._contents: Counter[str] = Counter()

    def others(self, entries: Any, where: str) -> list[Item]:
        """Records that are no facts.

        Raises:
            StoreCorrupt: one of them is none of ours.
        """
        if not isinstance(entries, list):
            raise self._source.corrupt(f"{where} is no list")
        items = []
        for number, raw in enumerate(entries):
            item = self._ours(Found({}, raw, raw, f"{where}[{number}]"))
            if item is None:
                raise self._source.corrupt(f"{where}[{number}] is there twice")
            items.append(item)
        return items

    def facts(self, found: Sequence[Found]) -> list[Item | None]:
        """Facts, in their order; None for what has no content that can be kept.

        Raises:
            StoreCorrupt: our fields are not what we wrote there.
        """
        # those with a name of their own first, so that none is given away
        items = [None if entry.own is None else self._ours(entry, kind=MEMORY) for entry in found]
        return [item or self._somebodys(entry) for item, entry in zip(items, found, strict=True)]

    def _ours(self, found: Found, kind: str | None = None) -> Item | None:
        """The record our fields tell of; None for a copy of one that was there before."""
        record, since = self._checked(found, kind)
        name = (record.kind, record.id)
        if name in self._names or record.seq in self._places:
            return None
        self._names.add(name)
        self._places.add(record.seq)
        mark, (said, whole) = str(found.own.get("mark")), marks(record)
        if mark == said + whole:
            return Item(found.raw, record, since, touched=False)
        if is_fact(record):
            record = self._edited(record, found.where, reworded=not mark.startswith(said))
        edited = replace(record, version=record.version + 1)
        return Item(found.raw, edited, self._source.moment_us, touched=False, noted=False)

    def _edited(self, record: Record, where: str, *, reworded: bool) -> Record:
        data = {**self._unsaid(), **record.data}
        if reworded:
            try:
                checked_text(data["text"], "a fact")
            except InvalidInput as error:
                raise self._source.corrupt(f"{where} has no text, or one that cannot be kept") from error
            data.pop("statement", None)  # a sentence made of the former words
        return replace(record, data=data)

    def _somebodys(self, found: Found) -> Item | None:
        try:
            text = checked_text(found.shown.get("text"), "a fact")
        except InvalidInput:
            return None
        name = self._named(text)
        record = Record(kind=MEMORY, id=name, data={**self._unsaid(), **found.shown}, version=1)
        return Item(found.raw, record, self._source.moment_us, touched=False, noted=False)

    def _named(self, text: str) -> str:
        """An id made of the text, so that it is the same each time the file is read.

        The same words again are another fact, told apart by how often they were there before.
        """
        while True:
            self._contents[text] += 1
            made = sha256(f"{self._contents[text]}\0{text}".encode()).hexdigest()
            name = (MEMORY, f"file-{made[:20]}")
            if name not in self._names:
                self._names.add(name)
                return name[1]

    def _unsaid(self) -> dict[str, Any]:
        return {"category": "fact", "valid_from": self._source.moment}

    def _checked(self, found: Found, known: str | None) -> tuple[Record, int]:
        own, where = found.own, found.where
        if not isinstance(own, dict):
            raise self._source.corrupt(f"{where} is no object")
        kind, name, key = known or own.get("kind"), own.get("id"), own.get("key")
        version, seq, since = own.get("version"), own.get("seq"), own.get("since", 0)
        data = own.get("data", {})
        if not (isinstance(kind, str) and isinstance(name, str) and isinstance(key, str | None)):
            raise self._source.corrupt(f"{where} has no kind and id of ours")
        if not (_counts(version, 1) and _counts(seq, 0) and _counts(since, 0)):
            raise self._source.corrupt(f"{where} has no version and seq of ours")
        if not isinstance(data, dict):
            raise self._source.corrupt(f"the data of {where} is no object")
        # what people see goes before what we noted
        data = {**data, **found.shown}
        if known is not None and not isinstance(data.get("text"), str):
            raise self._source.corrupt(f"{where} has no text")
        record = Record(
            kind=kind,
            id=name,
            key=key,
            data=data,
            version=int(version or 0),
            seq=int(seq or 0),
        )
        return record, since


def is_fact(record: Record) -> bool:
    """Whether `record` is one that people read."""
    return record.kind == MEMORY and isinstance(record.data.get("text"), str)


def own_fields(item: Item, shown: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Our fields beside what is `shown` of a record, and whatever else stood among them `before`.

    What is shown has to be what the record says.
    """
    record = item.record
    found: dict[str, Any] = {} if is_fact(record) else {"kind": record.kind}
    found["id"] = record.id
    if record.key is not None:
        found["key"] = record.key
    found |= {"version": record.version, "seq": record.seq}
    if item.since:
        found["since"] = item.since
    found["mark"] = "".join(marks(record))
    rest = {name: value for name, value in record.data.items() if name not in shown}
    if rest:
        found["data"] = rest
    return found | {name: value for name, value in before.items() if name not in _OWN}


def marks(record: Record) -> tuple[str, str]:
    """What `record` says, and all of it, in eight letters each: others after almost any change."""
    return _mark(record.data.get("text")), _mark([record.key, record.data])


def _mark(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return blake2b(said.encode(), digest_size=4).hexdigest()


def _counts(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


__all__ = ["MEMORY", "Found", "Intake", "Item", "is_fact", "marks", "own_fields"]
