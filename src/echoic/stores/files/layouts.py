"""The two layouts of a user's file: JSON, as other programs write it too, and Markdown, for people.

JSON: facts as a list of content, category and timestamp.

    {
      "directives": {"pacing": "slow"},
      "facts": [
        {"content": "Likes tea", "category": "preference", "timestamp": "2026-…", "echoic": {"id": "…", …}}
      ],
      "echoic": {"format": 1, …, "records": [{"kind": "turn", "id": "…", …}]}
    }

The objects under "echoic", at either level, are ours; everything else is kept, in its order. The directives
that apply in every session are read and changed under "directives"; entries that cannot be one, such as an
object or a long text, are kept unchanged. A timestamp may be ISO 8601 or milliseconds since 1970, and keeps
its form while its fact is unchanged.

Markdown: a heading for each category, a line for each fact, and our fields at the end.

    # Memory of ana

    ## Preferences

    - Likes tea <!-- id=1f… -->

    ```json echoic
    {"format": 1, …, "facts": [{"id": "1f…", …}], "records": […]}
    ```

Lines under the heading of a category, or under "Other", are facts: one without an id is new, one that is gone
was forgotten, one that was moved has another category. Such headings and lines alone, as other programs write
them, are enough. Every other line stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

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
    """Whether `record` holds the directives that a file shows."""
    return (record.kind, record.id) == (DIRECTIVES, DIRECTIVES)


def directives_in(shown: Any) -> dict[str, str]:
    """The entries of `shown` that can be directives, in order."""
    found: dict[str, str] = {}
    for name, value in shown.items() if isinstance(shown, Mapping) else ():
        free = [other for other in found if other not in _NAMED]
        if _is_directive(name, value) and (name in _NAMED or len(free) < MAX_FREE_DIRECTIVES):
            found[name] = value
    return found


def data_of(directives: Mapping[str, str]) -> dict[str, Any]:
    named = {name: directives[name] for name in _NAMED if name in directives}
    return {**named, "free": {name: text for name, text in directives.items() if name not in _NAMED}}


def shown_by(data: Mapping[str, Any]) -> dict[str, str]:
    """The inverse of `data_of`."""
    free = data.get("free")
    named = {name: data[name] for name in _NAMED if data.get(name) is not None}
    return named | (dict(free) if isinstance(free, Mapping) else {})


def changed_in(shown: Any, before: Mapping[str, str], now: Mapping[str, str]) -> Any:
    """`shown`, where the directives `before` become those of `now`; other entries stay."""
    if before == now or not isinstance(shown, Mapping | None):
        return shown
    shown = shown or {}
    kept = {name: now.get(name, value) for name, value in shown.items() if name not in before or name in now}
    return kept | dict(now)


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
"""Whether directives are shown in the file; earlier versions kept them only among the records."""


class JsonDocument(Document):
    suffix = ".json"

    def __init__(self) -> None:
        super().__init__()
        self._top: dict[str, Any] = {"directives": {}, "facts": [], "echoic": {}}
        # facts, and other entries among them
        self._entries: list[FileEntry | str] = []
        self._directives_there: Mapping[str, str] = {}
        """Those of the record when the file was last read or made; what else the file holds is not ours."""

    @classmethod
    def new(cls, scope: Scope) -> JsonDocument:  # noqa: ARG003 - the name of the file says it
        return cls()

    @classmethod
    def parse(cls, text: str, source: DocumentOrigin) -> JsonDocument:
        top = json_from(text, source)
        if not isinstance(top, dict):
            raise source.corrupt("it is not a JSON object")
        if top and not any(name in top for name in _OURS):
            raise source.corrupt("it is not a memory file: it has neither facts nor directives")
        facts, own = top.get("facts", []), top.get("echoic", {})
        if not isinstance(facts, list):
            raise source.corrupt("its facts are no list")
        if not isinstance(own, dict):
            raise source.corrupt("what stands under 'echoic' is not an object")
        document = cls()
        document._top = {**top, "facts": [], "echoic": {}}
        intake = EntryReader(source)
        document.others = intake.others(own.get("records", []), "echoic.records")
        document.header = Header.parse({k: v for k, v in own.items() if k not in {"records", _SHOWN}}, source)
        document._take(facts, intake)
        document._take_directives(shown=own.get(_SHOWN) is True)
        return document

    def _take_directives(self, *, shown: bool) -> None:
        """Update the record from the file, where people and other programs change it."""
        item = next((item for item in self.others if is_directives(item.record)), None)
        there = self._top.get(DIRECTIVES, {} if shown else None)
        theirs = self._directives_there = directives_in(there)
        if item is None:
            if theirs:
                record = Record(kind=DIRECTIVES, id=DIRECTIVES, data=data_of(theirs), version=1)
                self.others.append(FileEntry({}, record, touched=False, noted=False))
            return
        # written by a version that did not show them: our record is newer
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
        shown = self._top.get(DIRECTIVES)
        others.append(changed_in(shown, directives_in(shown), {}))
        return any(others) or bool(self.header.others) or any(isinstance(e, str) for e in self._entries)

    def to_bytes(self) -> bytes:
        parts = []
        kept = next((item.record.data for item in self.others if is_directives(item.record)), {})
        now = shown_by(kept)
        shown = changed_in(self._top.get(DIRECTIVES), self._directives_there, now)
        self._directives_there = now
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

    def _own(self) -> str:
        fields = self.header.fields() | {_SHOWN: True}
        return _own_object(fields, {"records": map(_other_line, _by_place(self.others))}, indent=4)

    def added(self, item: FileEntry) -> None:
        if item not in self._entries:
            self._entries.append(item)

    def removed(self, item: FileEntry) -> None:
        self._entries.remove(item)


def _shown(raw: dict[str, Any]) -> dict[str, Any]:
    """The memory in `raw`, an object without our fields."""
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
    """Update `raw` to the record; unchanged values keep their form."""
    data = item.record.data
    raw["content"] = data["text"]
    for name, field in (("category", "category"), ("valid_from", "timestamp")):
        value = data.get(name)
        if _shown(raw).get(name) != value:
            raw[field] = value
            # not in a form that can be read back, so it is kept among our fields
            if _shown(raw).get(name) != value:
                del raw[field]


def _own_object(fields: Mapping[str, Any], lists: Mapping[str, Iterable[str]], *, indent: int) -> str:
    """Our own object in a file: a line for each field, and `lists` of JSON values."""
    inside = " " * indent
    parts = [f"{inside}{json_of(name, 'a name')}: {json_of(value, name)}" for name, value in fields.items()]
    parts += [f'{inside}"{name}": {listed(lines, indent + 2)}' for name, lines in lists.items()]
    return "{\n" + ",\n".join(parts) + f"\n{' ' * (indent - 2)}}}"


def _by_place(items: Iterable[FileEntry]) -> list[FileEntry]:
    return sorted(items, key=lambda item: item.record.seq)


def _other_line(item: FileEntry) -> str:
    if not item.line:
        item.raw = own_fields(item, {}, item.raw)
        item.line = json_of(item.raw, f"{item.record.kind} {brief(item.record.id)}")
    return item.line


_TITLES = {
    "preference": "Preferences",
    "entity": "Entities",
    "decision": "Decisions",
    "requirement": "Requirements",
    "fact": "Facts",
    "experience": "Experiences",
}
_OTHER = "Other"
_CATEGORY_OF = {title: category for category, title in _TITLES.items()}
_SECTIONS = {title.casefold(): title for title in (*_TITLES.values(), _OTHER)}

_HEADING = re.compile(r"(#{1,2}) +(.*?)[ #]*")
_BULLET = re.compile(r"[-*+] +(.*)")
_GOES_ON = re.compile(r"\s+(?![-*+] |\d+[.)] )\S.*")
_ID = re.compile(r"(.*?)[ \t]*<!-- id=(\S+) -->")
_ID_AT_END = re.compile(r"(?:[ \t]*<!-- id=\S+ -->)?\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_OPENING, _CLOSING = "```json echoic", "```"
_NOTE = "<!-- Kept by Echoic: what belongs to the lines above, and the rest of this memory. -->"
_MISSING = "its last part, which says what belongs to its lines, is missing"


@dataclass(slots=True, eq=False)
class _MarkdownLine:
    """A line of the file; a fact may span several."""

    text: str
    section: str | None = None
    """The category title of a heading and of the items below it."""
    item: FileEntry | None = None

    @property
    def listed(self) -> bool:
        """Whether it may be a fact."""
        return self.section is not None and not self.text.startswith("#")

    def parts(self) -> tuple[str, str | None]:
        """The text of a list item, and its id."""
        said = " ".join(line.strip() for line in self.text.split("\n"))
        bullet = _BULLET.fullmatch(said)
        said = bullet[1] if bullet else ""
        match = _ID.fullmatch(said)
        return (match[1].strip(), unquote(match[2])) if match else (said.strip(), None)


class MarkdownDocument(Document):
    suffix = ".md"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[_MarkdownLine] = []

    @classmethod
    def new(cls, scope: Scope) -> MarkdownDocument:
        document = cls()
        whose = "everyone" if scope.user is None else _on_one_line(scope.user)
        document._lines = [_MarkdownLine(f"# Memory of {whose}")]
        return document

    @classmethod
    def parse(cls, text: str, source: DocumentOrigin) -> MarkdownDocument:
        document = cls()
        lines, own = _apart(text.replace("\r\n", "\n").split("\n"), source)
        document._lines = list(_grouped(lines))
        intake = EntryReader(source)
        known = own or {}
        document.others = intake.others(known.get("records", []), "records")
        ours = {name: value for name, value in known.items() if name not in {"facts", "records"}}
        document.header = Header.parse(ours, source)
        document._take(None if own is None else _by_id(own.get("facts", []), source), intake, source)
        return document

    def _take(self, known: Mapping[str, Any] | None, intake: EntryReader, source: DocumentOrigin) -> None:
        lines = [line for line in self._lines if line.listed]
        left = dict(known or {})
        found = []
        for line in lines:
            said, name = line.parts()
            if name is not None and known is None:
                raise source.corrupt(_MISSING)
            own = left.pop(name or "", None)  # a copy of a line is a new fact
            shown = _shown_line(said, line.section, _data(own))
            if own is not None and "text" in shown and "text" in _data(own):
                own = {**own, "data": {k: v for k, v in _data(own).items() if k != "text"}}
            found.append(FactCandidate(shown, own, own or {}, f"the line of {brief(name)}"))
        for line, item in zip(lines, intake.facts(found), strict=True):
            line.item = item
            if item is not None:
                self.facts.append(item)

    @property
    def holds_more(self) -> bool:
        theirs = (line for line in self._lines if line.item is None and not line.text.startswith("#"))
        return bool(self.header.others) or any(line.text.strip() for line in theirs)

    def to_bytes(self) -> bytes:
        for line in self._lines:
            if line.item is not None and not line.item.line:
                _settle(line, line.item)
        lines = [line.text for line in self._lines]
        while lines and not lines[-1].strip():
            lines.pop()
        return "\n".join([*lines, "", _NOTE, _OPENING, self._own(), _CLOSING, ""]).encode()

    def _own(self) -> str:
        facts = (item.line for item in _by_place(self.facts))
        records = map(_other_line, _by_place(self.others))
        return _own_object(self.header.fields(), {"facts": facts, "records": records}, indent=2)

    def added(self, item: FileEntry) -> None:
        section = _TITLES.get(known_category(item.record.data.get("category")) or "", _OTHER)
        places = [place for place, line in enumerate(self._lines) if line.section == section]
        new = _MarkdownLine("", section, item)
        if not places:
            last = self._lines[-1:]
            gap = [_MarkdownLine("") for line in last if line.item is not None or line.text.strip()]
            self._lines += [*gap, _MarkdownLine(f"## {section}", section), _MarkdownLine(""), new]
        elif self._lines[places[-1]].listed:
            self._lines.insert(places[-1] + 1, new)
        else:
            self._lines[places[-1] + 1 : places[-1] + 1] = [_MarkdownLine(""), new]

    def removed(self, item: FileEntry) -> None:
        self._lines = [line for line in self._lines if line.item is not item]


def _settle(line: _MarkdownLine, item: FileEntry) -> None:
    """Write a fact's line, and our fields for it."""
    record = item.record
    name = f"<!-- id={quote(record.id, safe='')} -->"
    if item.touched or not line.text:
        line.text = f"- {_on_one_line(str(record.data['text']))} {name}"
    elif line.parts()[1] != record.id:
        line.text = f"{_ID_AT_END.sub('', line.text)} {name}"
    shown = _shown_line(line.parts()[0], line.section, record.data)
    item.raw, item.touched = own_fields(item, shown, item.raw), False
    item.line = json_of(item.raw, f"memory {brief(record.id)}")


def _shown_line(said: str, section: str | None, data: Mapping[str, Any]) -> dict[str, Any]:
    """The memory in a line with the words `said`, without our fields.

    `data` is its stored metadata, or everything if the line does not contain the text.
    """
    text = data.get("text")
    noted = isinstance(text, str) and text != said and _on_one_line(text) == said
    shown = {} if noted else {"text": said}
    return shown | ({"category": _CATEGORY_OF[section]} if section in _CATEGORY_OF else {})


def _on_one_line(text: str) -> str:
    """`text` as a line without Markdown markup."""
    sound = text.encode("utf-8", "replace").decode()
    return " ".join(sound.split()).replace("<!--", "&lt;!--")


def _apart(lines: list[str], source: DocumentOrigin) -> tuple[list[str], dict[str, Any] | None]:
    """The lines that are not ours, and our own object; None if the file has none."""
    starts = [place for place, line in enumerate(lines) if line.rstrip() == _OPENING]
    if not starts:
        return lines, None
    start = starts[-1]
    end = next((n for n in range(start, len(lines)) if lines[n].rstrip() == _CLOSING), None)
    if end is None:
        raise source.corrupt(_MISSING)
    own = json_from("\n".join(lines[start + 1 : end]), source)
    if not isinstance(own, dict):
        raise source.corrupt("its last part is not an object")
    before = lines[:start]
    if before and before[-1].rstrip() == _NOTE:
        before.pop()
    while before and not before[-1].strip():
        before.pop()
    return [*before, *lines[end + 1 :]], own


def _grouped(lines: list[str]) -> Iterator[_MarkdownLine]:
    """The lines of a file, those of one list item joined, each with its section."""
    section: str | None = None
    fence: str | None = None
    fact: _MarkdownLine | None = None
    for line in lines:
        if fact is not None and _GOES_ON.fullmatch(line):
            fact.text += f"\n{line}"
            continue
        if fact is not None:
            yield fact
            fact = None
        fence, fenced = _fenced(line, fence)
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading is not None:
            section = _SECTIONS.get(heading[2].casefold()) if len(heading[1]) == 2 else None
            yield _MarkdownLine(line, section)
        elif section is not None and not fenced and _BULLET.fullmatch(line):
            fact = _MarkdownLine(line, section)
        else:
            yield _MarkdownLine(line)
    if fact is not None:
        yield fact


def _fenced(line: str, fence: str | None) -> tuple[str | None, bool]:
    """The code fence that is open after `line`, and whether `line` belongs to one."""
    match = _FENCE.match(line)
    if fence is None:
        return (match[1], True) if match else (None, False)
    closes = match is not None and match[1].startswith(fence) and not line.strip().strip(fence[0])
    return (None if closes else fence), True


def _by_id(facts: Any, source: DocumentOrigin) -> dict[str, Any]:
    if not isinstance(facts, list) or not all(isinstance(own, dict) for own in facts):
        raise source.corrupt("what it says of its facts is not a list of objects")
    return {str(own.get("id")): own for own in facts}


def _data(own: Any) -> dict[str, Any]:
    data = own.get("data") if isinstance(own, dict) else None
    return data if isinstance(data, dict) else {}
