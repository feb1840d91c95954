"""Values as JSON and as rows of text. Pure: nothing is printed here."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echoic.types import Hit, Memory

Row = Sequence[str]
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, starts an escape sequence, or turns the direction of writing around."""
_NARROWEST = 8
"""Columns; a cell cut further would say nothing."""
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def as_json(value: Any) -> Any:
    """`value` as JSON knows it: nouns become objects, times ISO 8601."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: as_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def harmless(text: str) -> str:
    """`text` on one line, with everything a terminal would obey made visible."""
    return _CONTROLS.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def harmless_lines(text: str) -> str:
    """The same, but line breaks and tabs stay."""
    return re.sub(r"[^\n\t]+", lambda found: harmless(found[0]), text)


def moment(at: datetime | None) -> str:
    """A time to the second, in UTC; "" for none."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def aligned(headings: Row, rows: Sequence[Row], width: int) -> list[str]:
    """A table for a person: columns under their headings, the widest ones cut so that lines fit `width`."""
    cells = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(map(_columns, column)) for column in zip(headings, *cells, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return [_line(row, widths) for row in (headings, *cells)]


def separated(rows: Iterable[Row]) -> list[str]:
    """The same table for a program: one line a row, cells between tabs, nothing cut."""
    return ["\t".join(harmless(cell) for cell in row) for row in rows]


def ranks_of(hit: Hit) -> str:
    """What each channel said of `hit`: "vector 1 (0.83), text 3 (2.10)"."""
    return ", ".join(f"{name} {rank.rank} ({rank.score:.2f})" for name, rank in hit.ranks.items())


def applying(text: str, memory: Memory | None) -> str:
    """`text` with when it applies, where that was said."""
    return f"{text} (applies: {memory.context})" if memory and memory.context else text


def visibility_of(hit: Hit) -> str:
    """Who can see what was found."""
    return hit.memory.visibility if hit.memory else "private"


def since(hit: Hit) -> str:
    """When what was found was said."""
    if hit.memory:
        return moment(hit.memory.valid_from)
    return moment(hit.turn.said_at) if hit.turn else ""


def until(hit: Hit) -> str:
    """When what was found stopped being so; "" while it holds, and for what was said: that stays said."""
    return moment(hit.memory.valid_until) if hit.memory else ""


def state_of(memory: Memory) -> str:
    """Whether a version holds, and if not, why."""
    if memory.current:
        return "holds"
    return "corrected" if memory.superseded_by else "taken back"


def _line(row: Row, widths: Sequence[int]) -> str:
    cut = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [cell + " " * (width - _columns(cell)) for cell, width in zip(cut, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    if _columns(text) <= width:
        return text
    taken = 0
    for place, character in enumerate(text):
        taken += _width(character)
        if taken > width - 1:  # its last column is the mark's
            return f"{text[:place]}…"
    return text


def _columns(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


__all__ = [
    "Row",
    "aligned",
    "applying",
    "as_json",
    "harmless",
    "harmless_lines",
    "moment",
    "ranks_of",
    "separated",
    "since",
    "state_of",
    "until",
    "visibility_of",
]
