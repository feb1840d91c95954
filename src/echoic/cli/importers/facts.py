"""Facts for a knowledge base: a line each, as plain text, Markdown bullets or JSON.

Headings, rules and comments of Markdown are passed over; an indented line goes on with the bullet above it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from echoic.cli.importers.base import FLAWS, Skipped, Source, reason_of
from echoic.errors import InvalidInput, brief
from echoic.memory.global_facts import GlobalFact
from echoic.types import MAX_TEXT_BYTES, checked_category, checked_name, checked_text

_BULLET: Final = re.compile(r"(?:[-*+\u2022]|[0-9]{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
# A heading, a rule, the border of a table, a fence, a comment.
_NO_FACT: Final = re.compile(r"#{1,6}(?:\s|$)|[-*_=|: ]{3,}$|```|~~~|<!--.*-->$|-$")
_EMPHASIS: Final = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")
_MOST_BYTES: Final = 4 * MAX_TEXT_BYTES
"""Of one line; what is longer is no fact."""
_FIELDS: Final = frozenset({"key", "text", "value", "category", "context"})


def read_facts(source: Source) -> Iterator[GlobalFact | Skipped]:
    """The facts of `source`, in its order. A second fact under a key that says something else is left out."""
    under: dict[str, tuple[int, GlobalFact]] = {}
    for number, line in _lines(source):
        try:
            fact = _fact(line)
            first, known = under.setdefault(fact.key, (number, fact)) if fact.key is not None else (0, fact)
            if known != fact:
                raise InvalidInput(
                    f"its key {brief(fact.key)} stands on line {first} already, with another text"
                )
        except FLAWS as error:
            yield Skipped(where=f"line {number}", reason=reason_of(error))
        else:
            yield fact


def _lines(source: Source) -> Iterator[tuple[int, str | bytes]]:
    """What stands in `source`, with the number of the line it begins on; bytes where they are no text."""
    begun: tuple[int, str] | None = None
    with source.open() as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(_MOST_BYTES), b""), 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip()
            except UnicodeDecodeError:
                yield number, raw
                continue
            text = line.strip()
            bullet = _BULLET.match(text)
            if begun and text and line[0].isspace() and not bullet and not _NO_FACT.match(text):
                begun = begun[0], f"{begun[1]} {text}"
                continue
            if begun:
                yield begun
                begun = None
            if not text or _NO_FACT.match(text):
                continue
            if bullet:
                begun = number, text[bullet.end() :]
            else:
                yield number, text
    if begun:
        yield begun


def _fact(line: str | bytes) -> GlobalFact:
    """Raises:
    InvalidInput: it is none.
    """
    if isinstance(line, bytes):
        raise InvalidInput("it is not UTF-8")
    if line.startswith("{"):
        return _of_json(line)
    return GlobalFact(text=checked_text(_EMPHASIS.sub(r"\2", line), "the fact"))


def _of_json(line: str) -> GlobalFact:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON at column {error.colno}: {error.msg}") from error
    if not isinstance(fields, dict) or not _FIELDS.issuperset(fields):
        raise InvalidInput(f"it may have {', '.join(sorted(_FIELDS))}, and nothing else")
    key, context = fields.get("key"), fields.get("context")
    return GlobalFact(
        text=checked_text(fields.get("text", fields.get("value")), "its text"),
        key=None if key is None else checked_name(key, "its key"),
        category=checked_category(fields.get("category", "fact")),
        context=None if context is None else checked_text(context, "its context"),
    )


__all__ = ["read_facts"]
