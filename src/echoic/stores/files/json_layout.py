"""The JSON layout: facts as a list of content, category and timestamp, as other programs write it too.

    {
      "directives": {"pacing": "slow"},
      "facts": [
        {"content": "Likes tea", "category": "preference", "timestamp": "2026-…", "echoic": {"id": "…", …}}
      ],
      "echoic": {"format": 1, …, "records": [{"kind": "turn", "id": "…", …}]}
    }

What stands under "echoic", at either level, is ours; everything else is kept, in its order. The directives
that hold in every session are read from where they are shown, and changed there; what is no directive of
ours, such as an object or a long text, is left as it is. A timestamp may be ISO 8601 or milliseconds since
1970, and stays what it was while its fact does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from echoic.errors import InvalidInput, brief
from echoic.stores.base import Record
from echoic.stores.files.document import (
    Document,
    DocumentOrigin,
    EntryReader,
    FactCandidate,
    FileEntry,
    Header,
    json_from,
    json_of,
    known_category,
    listed,
    moment,
    own_fields,
)
from echoic.types import MAX_FREE_DIRECTIVES, PRESETS, Directives, Scope

DIRECTIVES: Final = "directives"
"""The kind of their record, and its id."""
_NAMED: Final = (*PRESETS, "language")


def is_directives(record: Record) -> bool:
    """Whether `record` is the one that a file shows."""
    return (record.kind, record.id) == (DIRECTIVES, DIRECTIVES)


def directives_in(shown: Any) -> dict[str, str]:
    """Those of `shown` that can be directives of ours, in their order."""
    found: dict[str, str] = {}
    for name, value in shown.items() if isinstance(shown, Mapping) else ():
        free = [other for other in found if other not in _NAMED]
        if _is_directive(name, value) and (name in _NAMED or len(free) < MAX_FREE_DIRECTIVES):
            found[name] = value
    return found


def data_of(directives: Mapping[str, str]) -> dict[str, Any]:
    """The data of the record that says the same."""
    named = {name: directives[name] for name in _NAMED if name in directives}
    return {**named, "free": {name: text for name, text in directives.items() if name not in _NAMED}}


def shown_by(data: Mapping[str, Any]) -> dict[str, str]:
    """The inverse of `data_of`."""
    free = data.get("free")
    named = {name: data[name] for name in _NAMED if data.get(name) is not None}
    return named | (dict(free) if isinstance(free, Mapping) else {})


def changed_in(shown: Any, data: Mapping[str, Any] | None) -> Any:
    """`shown` once it says what the record's `data` says, the rest of it as it was; None: no record."""
    before, now = directives_in(shown), shown_by(data or {})
    if before == now or not isinstance(shown, Mapping | None):
        return shown
    shown = shown or {}
    kept = {name: now.get(name, value) for name, value in shown.items() if name not in before or name in now}
    return kept | now


def _is_directive(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        record = data_of({name: value})
        Directives(**record)
    except InvalidInput:
        return False
    return True


_OURS = ("facts", "directives", "echoic")
_SHOWN = "shows_directives"
"""Whether directives stand where they are shown; earlier versions kept them among the records alone."""


class JsonDocument(Document):
    """A memory file in JSON."""

    suffix = ".json"

    def __init__(self) -> None:
        super().__init__()
        self._top: dict[str, Any] = {"directives": {}, "facts": [], "echoic": {}}
        # facts, and what stands among them but is none
        self._entries: list[FileEntry | str] = []

    @classmethod
    def new(cls, scope: Scope) -> JsonDocument:  # noqa: ARG003 - the name of the file says it
        return cls()

    @classmethod
    def parse(cls, text: str, source: DocumentOrigin) -> JsonDocument:
        top = json_from(text, source)
        if not isinstance(top, dict):
            raise source.corrupt("it is no JSON object")
        if top and not any(name in top for name in _OURS):
            raise source.corrupt("it is no memory file: it has neither facts nor directives")
        facts, own = top.get("facts", []), top.get("echoic", {})
        if not isinstance(facts, list):
            raise source.corrupt("its facts are no list")
        if not isinstance(own, dict):
            raise source.corrupt("what stands under 'echoic' is no object")
        document = cls()
        document._top = {**top, "facts": [], "echoic": {}}
        intake = EntryReader(source)
        document.others = intake.others(own.get("records", []), "echoic.records")
        document.header = Header.parse({k: v for k, v in own.items() if k not in {"records", _SHOWN}}, source)
        document._take(facts, intake)
        document._take_directives(shown=own.get(_SHOWN) is True)
        return document

    def _take_directives(self, *, shown: bool) -> None:
        """Let the record say what stands in the file: people and other programs change it there."""
        item = next((item for item in self.others if is_directives(item.record)), None)
        there = self._top.get(DIRECTIVES, {} if shown else None)
        theirs = directives_in(there)
        if item is None:
            if theirs:
                record = Record(kind=DIRECTIVES, id=DIRECTIVES, data=data_of(theirs), version=1)
                self.others.append(FileEntry({}, record, touched=False, noted=False))
            return
        # before they were shown there, what we kept was said later than what stands there
        said = theirs if shown else theirs | shown_by(item.record.data)
        if isinstance(there, Mapping) and said != shown_by(item.record.data):
            record = replace(item.record, data=data_of(said), version=item.record.version + 1)
            self.others[self.others.index(item)] = FileEntry(item.raw, record, touched=True, noted=False)

    def _take(self, facts: list[Any], intake: EntryReader) -> None:
        found = [
            FactCandidate(_shown(raw), raw.get("echoic"), raw, f"facts[{number}]")
            if isinstance(raw, dict)
            else FactCandidate({}, None, {}, "")
            for number, raw in enumerate(facts)
        ]
        for raw, item in zip(facts, intake.facts(found), strict=True):
            self._entries.append(item or json_of(raw, "a fact"))
            if item is not None:
                self.facts.append(item)

    @property
    def holds_more(self) -> bool:
        others = [value for name, value in self._top.items() if name not in _OURS]
        others.append(changed_in(self._top.get(DIRECTIVES), None))
        return any(others) or bool(self.header.others) or any(isinstance(e, str) for e in self._entries)

    def to_bytes(self) -> bytes:
        parts = []
        shown = changed_in(self._top.get(DIRECTIVES), self._directives())
        if shown is not None:
            self._top[DIRECTIVES] = shown
        for name, value in self._top.items():
            if name == "facts":
                text = listed((e if isinstance(e, str) else _fact_line(e) for e in self._entries), 4)
            elif name == "echoic":
                text = self._own()
            else:
                text = json_of(value, f"the field {brief(name)}")
            parts.append(f"  {json_of(name, 'a name')}: {text}")
        return ("{\n" + ",\n".join(parts) + "\n}\n").encode()

    def _directives(self) -> Mapping[str, Any] | None:
        return next((item.record.data for item in self.others if is_directives(item.record)), None)

    def _own(self) -> str:
        fields = self.header.fields() | {_SHOWN: True}
        parts = [f"    {json_of(name, 'a name')}: {json_of(fields[name], name)}" for name in fields]
        records = sorted(self.others, key=lambda item: item.record.seq)
        parts.append(f'    "records": {listed(map(_other_line, records), 6)}')
        return "{\n" + ",\n".join(parts) + "\n  }"

    def added(self, item: FileEntry) -> None:
        if item not in self._entries:
            self._entries.append(item)

    def removed(self, item: FileEntry) -> None:
        self._entries.remove(item)


def _shown(raw: dict[str, Any]) -> dict[str, Any]:
    """What `raw` says of a memory without our fields."""
    said = {
        "text": raw.get("content") if isinstance(raw.get("content"), str) else None,
        "category": known_category(raw.get("category")),
        "valid_from": moment(raw.get("timestamp")),
    }
    return {name: value for name, value in said.items() if value is not None}


def _fact_line(item: FileEntry) -> str:
    if not item.line:
        raw = dict(item.raw)
        before = raw.pop("echoic", None) or {}
        if item.touched:
            _show(raw, item)
        raw["echoic"] = own_fields(item, _shown(raw), before)
        item.line = json_of(raw, f"memory {brief(item.record.id)}")
        item.raw, item.touched = raw, False
    return item.line


def _show(raw: dict[str, Any], item: FileEntry) -> None:
    """Let `raw` say what the record says now; what it says already stays in the form it has."""
    data = item.record.data
    raw["content"] = data["text"]
    for name, field in (("category", "category"), ("valid_from", "timestamp")):
        value = data.get(name)
        if _shown(raw).get(name) != value:
            raw[field] = value
            if _shown(raw).get(name) != value:  # not in a form that is read back: it stands among our fields
                del raw[field]


def _other_line(item: FileEntry) -> str:
    if not item.line:
        item.raw = own_fields(item, {}, item.raw)
        item.line = json_of(item.raw, f"{item.record.kind} {brief(item.record.id)}")
    return item.line
