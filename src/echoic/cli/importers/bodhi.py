"""The files of Bodhi's JSON memory store: `<userId>.json` with {"directives", "facts"}, or a folder of them.

Directives are the user's here too. Timestamps are milliseconds since 1970; 0 means unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from echoic.cli.importers.base import FLAWS, Directed, Item, Known, Skipped, Source, category_of, reason_of
from echoic.errors import InvalidInput
from echoic.types import PRESETS, Directives, checked_text


def read_bodhi(source: Source) -> Iterator[Item]:
    """The directives and facts of one user, or of every user of a folder."""
    if not source.folder or source.path is None:
        yield from _file(source, "")
        return
    files = sorted(source.path.glob("*.json"))
    if not files:
        raise InvalidInput(f"there is no <userId>.json in {source.name}")
    for path in files:
        inside = Source(name=str(path), path=path, read_at=source.read_at)
        try:
            yield from _file(inside, f"{path.name} ")
        except InvalidInput as error:
            yield Skipped(where=path.name, reason=str(error))


def _file(source: Source, where: str) -> Iterator[Item]:
    document = source.document
    if not isinstance(document, Mapping) or not document.keys() & {"directives", "facts"}:
        raise InvalidInput(f"{source.name} is not in Bodhi's layout: it has neither directives nor facts")
    user = source.stem if source.path else None
    for name, value in _part(document, "directives", Mapping, {}).items():
        try:
            Directives(**{name: value}) if name in {*PRESETS, "language"} else Directives(free={name: value})
            yield Directed(name=name, text=value, user=user)
        except ValueError as error:
            yield Skipped(where=f"{where}directives[{name!r:.40}]", reason=reason_of(error))
    for place, fact in enumerate(_part(document, "facts", list, [])):
        try:
            yield _fact(fact, user)
        except FLAWS as error:
            yield Skipped(where=f"{where}facts[{place}]", reason=reason_of(error))


def _part(document: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    part = document.get(name) or default
    if not isinstance(part, kind):
        raise InvalidInput(f"its {name} are no {'object' if kind is Mapping else 'list'}")
    return part


def _fact(fact: Mapping[str, Any], user: str | None) -> Known:
    milliseconds = fact.get("timestamp")
    said_at = datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
    text = checked_text(fact["content"], "fact")
    return Known(text=text, category=category_of(fact.get("category")), said_at=said_at, user=user)


__all__ = ["read_bodhi"]
