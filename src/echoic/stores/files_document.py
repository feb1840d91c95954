"""One user's memory as a file has it: facts that people read and edit, and beside each what is ours. Pure.

A record of kind "memory" that has a text is a fact: `text` is its content, `category` its category and
`valid_from` its timestamp. What else we know of it stands in our own fields: id, key, version, seq, when it
began to wait for its vector, a mark, and the rest of its data. The mark tells whether a person changed the
fact since we wrote it: then it is at a new version. A fact without our fields is somebody's own; it becomes a
memory, and gets our fields the next time that we write the file. What we do not know is kept as it is.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew
from echoic.stores.base import FIRST_UNSEARCHABLE, Index, Record
from echoic.stores.held import Name
from echoic.types import CATEGORIES, checked_name, checked_text

FORMAT = 1
"""Version of the files; a higher one is left untouched."""
MEMORY = "memory"
_OWN = ("kind", "id", "key", "version", "seq", "since", "mark", "data")
_HEADER = ("format", "deployment", "user", "began", "next_row", "next_other")


@dataclass(slots=True, eq=False)
class Item:
    """One entry of a file."""

    raw: dict[str, Any]
    """The object it was read from, with whatever others put there."""
    record: Record
    since: int = 0
    """When it began to wait for its vector, in microseconds."""
    touched: bool = True
    """Whether the record is no longer what `raw` says."""
    line: str = ""
    """How it is written; empty where that has to be made anew."""


@dataclass(slots=True)
class Header:
    """What a file says of itself."""

    began: int = 0
    """When its scope was first written, in microseconds: the order of scopes. 0: before we knew it."""
    next_row: int = 0
    next_other: int = FIRST_UNSEARCHABLE
    owner: tuple[str, str | None] | None = None
    """Deployment and user, where the file's name does not tell."""
    others: dict[str, Any] = field(default_factory=dict)
    """Fields that are not ours."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document was read from, for messages and for what the file leaves unsaid."""

    path: Path
    mtime_ns: int

    def corrupt(self, what: str) -> StoreCorrupt:
        """The error that says what is wrong with the file."""
        return StoreCorrupt(
            f"{str(self.path)!r} cannot be read: {what}. It is left untouched: mend it, or move it away"
        )

    @property
    def moment_us(self) -> int:
        """When it was last changed, in microseconds."""
        return self.mtime_ns // 1000

    @property
    def moment(self) -> str:
        """When it was last changed: what it says was said by then."""
        return datetime.fromtimestamp(self.mtime_ns // 10**9, UTC).isoformat()


class Document(ABC):
    """A file in memory. Subclasses know its layout; `changed` and `to_bytes` are the way back."""

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
    def parse(cls, text: str, source: Source) -> Document:
        """The document that `text` is.

        Raises:
            StoreCorrupt: it is none, or not ours.
            StoreTooNew: a newer version wrote it.
        """

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
        """Take in what became of some records; every other gets our fields if it had none.

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
            if record is not None:
                self._put(item, record)
        for item in self.items:
            item.since = since(item.record.seq)

    def _put(self, item: Item | None, record: Record) -> None:
        if item is not None:
            if is_fact(record) and item.record.data.get("category") != record.data.get("category"):
                self.removed(item)
                item.record = record
                self.added(item)
            item.record, item.touched, item.line = record, True, ""
            return
        item = Item({}, record)
        if is_fact(record):
            self.facts.append(item)
            self.added(item)
        else:
            self.others.append(item)

    def _remove(self, item: Item) -> None:
        if is_fact(item.record):
            self.facts.remove(item)
            self.removed(item)
        else:
            self.others.remove(item)

    def number(self, index: Index, source: Source) -> None:
        """Give places to the records that have none, in the order they stand in the file.

        Raises:
            StoreCorrupt: a record is not what its kind has to be.
        """
        taken = {item.record.seq for item in self.items}
        rows = [seq for seq in taken if 0 <= seq < FIRST_UNSEARCHABLE]
        others = [seq for seq in taken if seq >= FIRST_UNSEARCHABLE]
        self.header.next_row = max(self.header.next_row, *(seq + 1 for seq in [*rows, -1]))
        self.header.next_other = max(self.header.next_other, *(seq + 1 for seq in [*others, -1]))
        for item in self.items:
            if item.record.seq >= 0:
                continue
            try:
                searchable = index(item.record) is not None
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise source.corrupt(f"{item.record.kind} {item.record.id!r} is not complete") from error
            if searchable:
                seq, self.header.next_row = self.header.next_row, self.header.next_row + 1
            else:
                seq, self.header.next_other = self.header.next_other, self.header.next_other + 1
            item.record = replace(item.record, seq=seq)


def is_fact(record: Record) -> bool:
    """Whether `record` is one that people read."""
    return record.kind == MEMORY and isinstance(record.data.get("text"), str)


class Intake:
    """Turns the entries of one file into records, one after the other."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._names: set[Name] = set()
        self._places: set[int] = set()
        self._contents: Counter[str] = Counter()

    def fact(self, shown: Mapping[str, Any], own: Any, raw: dict[str, Any], where: str) -> Item | None:
        """A fact; None if its content is none that can be kept.

        Args:
            shown: what of the record's data stands where people read it.
            own: our fields, if there are any.
            raw: what the entry was read from.
            where: its place, for messages.
        """
        if own is not None:
            item = self._ours({"kind": MEMORY, **_object(own, self.source, where)}, shown, raw, where)
            if item is not None:
                return item
        try:
            checked_text(shown.get("text"), "a fact")
        except InvalidInput:
            return None
        return self._somebodys(shown, raw)

    def other(self, own: Any, where: str) -> Item:
        """A record that is no fact."""
        raw = _object(own, self.source, where)
        item = self._ours(raw, {}, raw, where)
        if item is None:
            raise self.source.corrupt(f"{where} is there twice")
        return item

    def _ours(
        self, own: dict[str, Any], shown: Mapping[str, Any], raw: dict[str, Any], where: str
    ) -> Item | None:
        """The record our fields tell of; None for a copy of one that was there before."""
        record, since = self._checked(own, shown, where)
        name = (record.kind, record.id)
        if name in self._names or record.seq in self._places:
            return None
        said, whole = marks(record)
        mark = own.get("mark")
        if mark != said + whole:
            record, since = self._edited(record, own, reworded=str(mark)[:8] != said), self.source.moment_us
        self._names.add(name)
        self._places.add(record.seq)
        return Item(raw, record, since, touched=mark != said + whole)

    def _edited(self, record: Record, own: Mapping[str, Any], *, reworded: bool) -> Record:
        data = dict(record.data)
        if is_fact(record):
            data = {**self._unsaid(), **data}
            if reworded:  # a sentence made of the former words
                data.pop("statement", None)
        return replace(record, data=data, version=int(own["version"]) + 1)

    def _somebodys(self, shown: Mapping[str, Any], raw: dict[str, Any]) -> Item:
        text = shown["text"]
        # the same words again are another fact: told apart by how often they were there before
        self._contents[text] += 1
        while True:
            made = sha256(f"{self._contents[text]}\0{text}".encode()).hexdigest()[:20]
            if (MEMORY, f"file-{made}") not in self._names:
                break
            self._contents[text] += 1
        record = Record(kind=MEMORY, id=f"file-{made}", data={**self._unsaid(), **shown}, version=1)
        self._names.add((MEMORY, record.id))
        return Item(raw, record, self.source.moment_us, touched=False)

    def _unsaid(self) -> dict[str, Any]:
        return {"category": "fact", "valid_from": self.source.moment}

    def _checked(self, own: dict[str, Any], shown: Mapping[str, Any], where: str) -> tuple[Record, int]:
        kind, name, key = own.get("kind"), own.get("id"), own.get("key")
        version, seq, since = own.get("version"), own.get("seq"), own.get("since", 0)
        data = own.get("data", {})
        if not (isinstance(kind, str) and isinstance(name, str) and isinstance(key, str | None)):
            raise self.source.corrupt(f"{where} has no kind and id of ours")
        if not all(type(n) is int and n >= least for n, least in ((version, 1), (seq, 0), (since, 0))):
            raise self.source.corrupt(f"{where} has no version and seq of ours")
        if not isinstance(data, dict):
            raise self.source.corrupt(f"the data of {where} is no object")
        return Record(kind=kind, id=name, key=key, data={**shown, **data}, version=version, seq=seq), since


def own_fields(item: Item, shown: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Our fields beside what is `shown` of a record, and whatever else stood among them `before`."""
    record = item.record
    rest = {name: value for name, value in record.data.items() if name not in shown or shown[name] != value}
    found: dict[str, Any] = {} if is_fact(record) else {"kind": record.kind}
    found["id"] = record.id
    if record.key is not None:
        found["key"] = record.key
    found |= {"version": record.version, "seq": record.seq}
    if item.since:
        found["since"] = item.since
    found["mark"] = "".join(marks(record))
    if rest:
        found["data"] = rest
    return found | {name: value for name, value in before.items() if name not in _OWN}


def marks(record: Record) -> tuple[str, str]:
    """What `record` says, and all of it, in eight letters each: another after almost any change."""
    return _mark(record.data.get("text")), _mark([record.key, record.data])


def header_from(own: Mapping[str, Any], source: Source) -> Header:
    """What our own object of a file says of it.

    Raises:
        StoreCorrupt: it is not ours.
        StoreTooNew: a newer version wrote it.
    """
    version = own.get("format", FORMAT)
    if type(version) is not int:
        raise source.corrupt(f"its format is {version!r}")
    if version > FORMAT:
        raise StoreTooNew(
            f"{str(source.path)!r} has format {version}, this Echoic knows {FORMAT}: upgrade Echoic to read it"
        )
    counts = [own.get("began", 0), own.get("next_row", 0), own.get("next_other", FIRST_UNSEARCHABLE)]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise source.corrupt("its counters are not numbers")
    owner = (own["deployment"], own.get("user")) if "deployment" in own else None
    if owner is not None:
        checked_name(owner[0], "deployment")
        if owner[1] is not None:
            checked_name(owner[1], "user")
    others = {name: value for name, value in own.items() if name not in _HEADER}
    return Header(*counts, owner, others)


def header_fields(header: Header) -> dict[str, Any]:
    """The inverse of `header_from`."""
    found: dict[str, Any] = {"format": FORMAT}
    if header.owner is not None:
        found |= {"deployment": header.owner[0], "user": header.owner[1]}
    counts = {"began": header.began, "next_row": header.next_row, "next_other": header.next_other}
    return found | counts | header.others


def moment(value: Any) -> str | None:
    """A timestamp as ISO 8601 with its zone, from that or from milliseconds since 1970; None if it is neither.

    0 is what a program writes that does not know when, and a time without a zone is taken as UTC.
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
    """`value` if it is a category."""
    return value if isinstance(value, str) and value in CATEGORIES else None


def json_of(value: Any, what: str) -> str:
    """`value` on one line.

    Raises:
        InvalidInput: JSON cannot say it; the message names `what`.
    """
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} holds what JSON cannot say: {error}. Nothing was written.") from error
    try:
        line.encode()
    except UnicodeEncodeError:  # half a character that somebody wrote as an escape
        return json.dumps(value, allow_nan=False)
    return line


def json_from(text: str, source: Source) -> Any:
    """What `text` says.

    Raises:
        StoreCorrupt: it is not JSON, or holds a number that no JSON is.
    """
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise source.corrupt(f"it is not JSON ({error.msg} in line {error.lineno})") from error
    except (ValueError, RecursionError) as error:
        raise source.corrupt(f"it is not JSON ({type(error).__name__})") from error


def joined(lines: Iterable[str], indent: int) -> str:
    """JSON lines as the inside of a list, each on a line of its own."""
    inside = ",\n".join(f"{' ' * indent}{line}" for line in lines)
    return f"[\n{inside}\n{' ' * (indent - 2)}]" if inside else "[]"


def _finite(digits: str) -> float:
    value = float(digits)
    return value if value not in {float("inf"), float("-inf")} else _no_number(digits)


def _no_number(digits: str) -> float:
    raise ValueError(digits)


def _mark(value: Any) -> str:
    said = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str)
    return blake2b(said.encode(), digest_size=4).hexdigest()


def _object(value: Any, source: Source, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise source.corrupt(f"{where} is no object")
    return value


__all__ = [
    "FORMAT",
    "Document",
    "Header",
    "Intake",
    "Item",
    "Source",
    "header_fields",
    "header_from",
    "is_fact",
    "joined",
    "json_from",
    "json_of",
    "known_category",
    "marks",
    "moment",
    "own_fields",
]
