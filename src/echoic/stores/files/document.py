"""A memory file in memory: its facts, its other records, and fields of other programs. Pure.

A record of kind "memory" with a text is a fact: its text, category and `valid_from` are shown to people. Our
own fields hold the rest: id, key, version, seq, when it began to wait for its vector, a mark, and the rest of
its data. The mark tells whether a person changed the fact since we wrote it: then it gets a new version. A
fact without our fields was added by a person or another program; it becomes a memory, and gets our fields at
the next write. Unknown fields are kept unchanged.

`layouts` converts the document to text.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew, brief
from echoic.stores.apply import Name
from echoic.stores.base import FIRST_UNSEARCHABLE, Index, Record
from echoic.types import CATEGORIES, Scope, checked_text


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """The origin of a document, for messages and for what the file does not say itself."""

    path: Path
    mtime_ns: int

    def corrupt(self, what: str) -> StoreCorrupt:
        """An error that names the file and what is wrong with it."""
        return StoreCorrupt(
            f"{str(self.path)!r} cannot be read: {what}. It is left untouched: mend it, or move it away"
        )

    @property
    def moment_us(self) -> int:
        """When it was last changed, in microseconds."""
        return self.mtime_ns // 1000

    @property
    def moment(self) -> str:
        """When it was last changed, which stands for facts without a time."""
        return datetime.fromtimestamp(self.mtime_ns // 10**9, UTC).isoformat()


def moment(value: Any) -> str | None:
    """A timestamp as ISO 8601 with its zone, from that or from milliseconds since 1970; None if it is
    neither.

    0 counts as unknown, and a time without a zone as UTC.
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return value if found.utcoffset() is not None else found.replace(tzinfo=UTC).isoformat()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
    return None


def known_category(value: Any) -> str | None:
    return value if isinstance(value, str) and value in CATEGORIES else None


def json_of(value: Any, what: str) -> str:
    """`value` as JSON on one line; if that is impossible, InvalidInput names `what`."""
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} holds what JSON cannot say: {error}. Nothing was written.") from error
    try:
        line.encode()
    except UnicodeEncodeError:  # a lone surrogate written as an escape
        return json.dumps(value, allow_nan=False)
    return line


def json_from(text: str, source: DocumentOrigin) -> Any:
    """The JSON value in `text`, or StoreCorrupt."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise source.corrupt(f"it is not JSON ({error.msg} in line {error.lineno})") from error
    except (ValueError, RecursionError) as error:
        raise source.corrupt(f"it is not JSON ({type(error).__name__})") from error


def listed(lines: Iterable[str], indent: int) -> str:
    """JSON values as a list, each on its own line, indented by `indent` spaces."""
    inside = ",\n".join(f"{' ' * indent}{line}" for line in lines)
    return f"[\n{inside}\n{' ' * (indent - 2)}]" if inside else "[]"


def _finite(digits: str) -> float:
    value = float(digits)
    return value if value not in {float("inf"), float("-inf")} else _no_number(digits)


def _no_number(digits: str) -> float:
    raise ValueError(digits)


MEMORY = "memory"
_OWN = ("kind", "id", "key", "version", "seq", "since", "mark", "data")


@dataclass(slots=True, eq=False)
class FileEntry:
    raw: dict[str, Any]
    """The object it was read from, including fields of others."""
    record: Record
    since: int = 0
    """When it began to wait for its vector, in microseconds."""
    touched: bool = True
    """Whether it was written since, so that its text in the file must be generated again."""
    noted: bool = True
    """Whether the file states its version and position, or will once it is written."""
    line: str = ""
    """Its text in the file; empty if it must be generated again."""


class FactCandidate(NamedTuple):
    """An entry of a file that may be a fact."""

    shown: Mapping[str, Any]
    """The part of the record's data that people read in the file."""
    own: Any
    """Our fields; None if it has none."""
    raw: dict[str, Any]
    where: str
    """Its position in the file, for messages."""


class EntryReader:
    """Turns the entries of one file into records."""

    def __init__(self, source: DocumentOrigin) -> None:
        self._source = source
        self._names: set[Name] = set()
        self._places: set[int] = set()
        self._contents: Counter[str] = Counter()

    def others(self, entries: Any, where: str) -> list[FileEntry]:
        """Records that are not facts; StoreCorrupt if an entry is no record."""
        if not isinstance(entries, list):
            raise self._source.corrupt(f"{where} is not a list")
        items = []
        for number, raw in enumerate(entries):
            item = self._ours(FactCandidate({}, raw, raw, f"{where}[{number}]"))
            if item is None:
                raise self._source.corrupt(f"{where}[{number}] is there twice")
            items.append(item)
        return items

    def facts(self, found: Sequence[FactCandidate]) -> list[FileEntry | None]:
        """Facts in order, None without usable content; StoreCorrupt if our fields were changed."""
        # first those with ids, so that no other fact gets one of these
        items = [None if entry.own is None else self._ours(entry, kind=MEMORY) for entry in found]
        return [item or self._somebodys(entry) for item, entry in zip(items, found, strict=True)]

    def _ours(self, found: FactCandidate, kind: str | None = None) -> FileEntry | None:
        """The record that our fields describe; None for a copy of an existing one."""
        record, since = self._checked(found, kind)
        name = (record.kind, record.id)
        if name in self._names or record.seq in self._places:
            return None
        self._names.add(name)
        self._places.add(record.seq)
        mark, (said, whole) = str(found.own.get("mark")), marks(record)
        if mark == said + whole:
            return FileEntry(found.raw, record, since, touched=False)
        if is_fact(record):
            record = self._edited(record, found.where, reworded=not mark.startswith(said))
        edited = replace(record, version=record.version + 1)
        return FileEntry(found.raw, edited, self._source.moment_us, touched=False, noted=False)

    def _edited(self, record: Record, where: str, *, reworded: bool) -> Record:
        data = {**self._unsaid(), **record.data}
        if reworded:
            try:
                checked_text(data["text"], "a fact")
            except InvalidInput as error:
                raise self._source.corrupt(f"{where} has no text, or one that cannot be kept") from error
            data.pop("statement", None)  # a sentence made from the previous text
        return replace(record, data=data)

    def _somebodys(self, found: FactCandidate) -> FileEntry | None:
        try:
            text = checked_text(found.shown.get("text"), "a fact")
        except InvalidInput:
            return None
        name = self._named(text)
        record = Record(kind=MEMORY, id=name, data={**self._unsaid(), **found.shown}, version=1)
        return FileEntry(found.raw, record, self._source.moment_us, touched=False, noted=False)

    def _named(self, text: str) -> str:
        """An id derived from the text, so that it is the same each time the file is read.

        A repeated text is another fact, distinguished by how often it occurred before.
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

    def _checked(self, found: FactCandidate, known: str | None) -> tuple[Record, int]:
        own, where = found.own, found.where
        if not isinstance(own, dict):
            raise self._source.corrupt(f"{where} is not an object")
        kind, name, key = known or own.get("kind"), own.get("id"), own.get("key")
        version, seq, since = own.get("version"), own.get("seq"), own.get("since", 0)
        data = own.get("data", {})
        if not (isinstance(kind, str) and isinstance(name, str) and isinstance(key, str | None)):
            raise self._source.corrupt(f"{where} has no kind and id of ours")
        if not (_counts(version, 1) and _counts(seq, 0) and _counts(since, 0)):
            raise self._source.corrupt(f"{where} has no version and seq of ours")
        if not isinstance(data, dict):
            raise self._source.corrupt(f"the data of {where} is not an object")
        # the visible text overrides our fields
        data = {**data, **found.shown}
        if known is not None and not isinstance(data.get("text"), str):
            raise self._source.corrupt(f"{where} has no text")
        record = Record(kind=kind, id=name, key=key, data=data, version=int(version or 0), seq=int(seq or 0))
        return record, since


def is_fact(record: Record) -> bool:
    """Whether `record` is shown to people."""
    return record.kind == MEMORY and isinstance(record.data.get("text"), str)


def own_fields(item: FileEntry, shown: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Our fields beside what is `shown` of a record, plus other fields that were among them `before`.

    What is shown must equal what the record says.
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
    """Two eight-letter digests: of the text of `record`, and of all of it."""
    return _mark(record.data.get("text")), _mark([record.key, record.data])


def _mark(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return blake2b(said.encode(), digest_size=4).hexdigest()


def _counts(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


FORMAT = 1
"""Version of the files; files of a higher version are left unchanged."""
_HEADER = ("format", "deployment", "user", "began", "next_row", "next_other")


@dataclass(slots=True)
class Header:
    """The metadata in a file."""

    began: int = 0
    """When its scope was first written, in microseconds, which orders scopes; 0 if unknown."""
    next_row: int = 0
    next_other: int = FIRST_UNSEARCHABLE
    owner: Scope | None = None
    """The scope it belongs to, if the file's name does not tell."""
    others: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, own: Mapping[str, Any], source: DocumentOrigin) -> Header:
        """The metadata in our own object of a file; raises StoreCorrupt or StoreTooNew."""
        version = own.get("format", FORMAT)
        if type(version) is not int:
            raise source.corrupt("its format is not a number")
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
    def _owner(own: Mapping[str, Any], source: DocumentOrigin) -> Scope | None:
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
    """A file in memory. `changed` and `to_bytes` write it back."""

    suffix: ClassVar[str]

    def __init__(self) -> None:
        self.header = Header()
        self.facts: list[FileEntry] = []
        self.others: list[FileEntry] = []

    @property
    def items(self) -> list[FileEntry]:
        return [*self.facts, *self.others]

    @classmethod
    @abstractmethod
    def new(cls, scope: Scope) -> Document:
        """One that holds nothing yet."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str, source: DocumentOrigin) -> Document:
        """The document in `text`; raises StoreCorrupt or StoreTooNew."""

    @property
    @abstractmethod
    def holds_more(self) -> bool:
        """Whether the file contains anything besides records and our fields."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The file; raises InvalidInput if JSON cannot represent a record."""

    @abstractmethod
    def added(self, item: FileEntry) -> None:
        """Place a new fact in the layout."""

    @abstractmethod
    def removed(self, item: FileEntry) -> None:
        """Remove a fact from the layout."""

    def changed(self, records: Mapping[Name, Record | None], since: Callable[[int], int]) -> None:
        """Update the given records (None: removed); `since` tells by row when each began to wait."""
        items = {(item.record.kind, item.record.id): item for item in self.items}
        for name, record in records.items():
            item = items.get(name)
            if item is not None and (record is None or is_fact(record) != is_fact(item.record)):
                self._remove(item)
                item = None
            if record is None:
                continue
            if item is None:
                self._add(FileEntry({}, record, since(record.seq)))
            else:
                self._change(item, record, since(record.seq))
        for item in self.items:
            item.noted = True

    def number(self, index: Index, source: DocumentOrigin) -> None:
        """Number new records in the order of the file; StoreCorrupt if one is not valid for its kind."""
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

    def _add(self, item: FileEntry) -> None:
        if is_fact(item.record):
            self.facts.append(item)
            self.added(item)
        else:
            self.others.append(item)

    def _change(self, item: FileEntry, record: Record, since: int) -> None:
        moved = is_fact(record) and item.record.data.get("category") != record.data.get("category")
        if moved:
            self.removed(item)
        item.record, item.since, item.touched, item.line = record, since, True, ""
        if moved:
            self.added(item)

    def _remove(self, item: FileEntry) -> None:
        if is_fact(item.record):
            self.facts.remove(item)
            self.removed(item)
        else:
            self.others.remove(item)
