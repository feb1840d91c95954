"""The Markdown layout: a heading for each category, a line for each fact, and at the end what is ours.

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from echoic.errors import brief
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
    own_fields,
)
from echoic.types import Scope

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
    """A line of the file; a fact may go on over several."""

    text: str
    section: str | None = None
    """The title of the category, of a heading and of what is listed below it."""
    item: FileEntry | None = None

    @property
    def listed(self) -> bool:
        """Whether it may be a fact."""
        return self.section is not None and not self.text.startswith("#")

    def parts(self) -> tuple[str, str | None]:
        """What a listed line says, and its id."""
        said = " ".join(line.strip() for line in self.text.split("\n"))
        bullet = _BULLET.fullmatch(said)
        said = bullet[1] if bullet else ""
        match = _ID.fullmatch(said)
        return (match[1].strip(), unquote(match[2])) if match else (said.strip(), None)


class MarkdownDocument(Document):
    """A memory file in Markdown."""

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
            shown = _shown(said, line.section, _data(own))
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
        fields = self.header.fields()
        parts = [f"  {json_of(name, 'a name')}: {json_of(fields[name], name)}" for name in fields]
        for item in self.others:
            if not item.line:
                item.raw = own_fields(item, {}, item.raw)
                item.line = json_of(item.raw, f"{item.record.kind} {brief(item.record.id)}")
        for name, items in (("facts", self.facts), ("records", self.others)):
            ordered = sorted(items, key=lambda item: item.record.seq)
            parts.append(f'  "{name}": {listed((item.line for item in ordered), 4)}')
        return "{\n" + ",\n".join(parts) + "\n}"

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
    """Write a fact's line, and our fields of it."""
    record = item.record
    name = f"<!-- id={quote(record.id, safe='')} -->"
    if item.touched or not line.text:
        line.text = f"- {_on_one_line(str(record.data['text']))} {name}"
    elif line.parts()[1] != record.id:
        line.text = f"{_ID_AT_END.sub('', line.text)} {name}"
    shown = _shown(line.parts()[0], line.section, record.data)
    item.raw, item.touched = own_fields(item, shown, item.raw), False
    item.line = json_of(item.raw, f"memory {brief(record.id)}")


def _shown(said: str, section: str | None, data: Mapping[str, Any]) -> dict[str, Any]:
    """What a line says of a memory without our fields.

    Args:
        said: its words.
        section: the title it stands under.
        data: what we noted of it, or all there is: a text that is not its line stands there.
    """
    text = data.get("text")
    noted = isinstance(text, str) and text != said and _on_one_line(text) == said
    shown = {} if noted else {"text": said}
    return shown | ({"category": _CATEGORY_OF[section]} if section in _CATEGORY_OF else {})


def _on_one_line(text: str) -> str:
    """`text` as a line that no reader of Markdown takes for anything else."""
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
        raise source.corrupt("its last part is no object")
    before = lines[:start]
    if before and before[-1].rstrip() == _NOTE:
        before.pop()
    while before and not before[-1].strip():
        before.pop()
    return [*before, *lines[end + 1 :]], own


def _grouped(lines: list[str]) -> Iterator[_MarkdownLine]:
    """The lines of a file, those of one list item together, each with the section it stands in."""
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
    """The fence that is open behind `line`, and whether `line` is inside it or part of it."""
    match = _FENCE.match(line)
    if fence is None:
        return (match[1], True) if match else (None, False)
    closes = match is not None and match[1].startswith(fence) and not line.strip().strip(fence[0])
    return (None if closes else fence), True


def _by_id(facts: Any, source: DocumentOrigin) -> dict[str, Any]:
    if not isinstance(facts, list) or not all(isinstance(own, dict) for own in facts):
        raise source.corrupt("what it says of its facts is no list of objects")
    return {str(own.get("id")): own for own in facts}


def _data(own: Any) -> dict[str, Any]:
    data = own.get("data") if isinstance(own, dict) else None
    return data if isinstance(data, dict) else {}
