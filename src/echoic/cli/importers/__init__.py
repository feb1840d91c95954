"""Readers of what others kept, one file a format, and how a format is recognised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from echoic.cli.importers.base import (
    Directed,
    Exported,
    Item,
    Known,
    Reader,
    Said,
    Skipped,
    Source,
    source_at,
)
from echoic.cli.importers.bodhi import read_bodhi
from echoic.cli.importers.locomo import read_locomo, read_locomo_facts
from echoic.cli.importers.mem0 import read_mem0
from echoic.cli.importers.own import read_own
from echoic.cli.importers.turns import read_turns
from echoic.errors import InvalidInput

READERS: Mapping[str, Reader] = {
    "turns": read_turns,
    "locomo": read_locomo,
    "bodhi": read_bodhi,
    "mem0": read_mem0,
    "echoic": read_own,
}
_FIRST_LINES = 20
"""Looked at to recognise JSON lines: a few of them may be broken."""
_NEEDLESS_LINE = 1 << 20
"""Characters; a longer first line is not looked at for JSON lines but read as a document."""


def reader_of(name: str, *, facts: bool) -> Reader:
    """The reader of a format; with `facts` the one that reads what others concluded as well.

    Raises:
        InvalidInput: the format holds nothing of that kind apart from what is read anyway.
    """
    if facts and name != "locomo":
        raise InvalidInput(f"--facts reads LoCoMo's observations; format {name!r} has none")
    return read_locomo_facts if facts else READERS[name]


def format_of(source: Source) -> str:
    """Which format `source` is in, by its contents.

    Raises:
        InvalidInput: none that is known; the message lists them.
    """
    if source.folder:
        return "bodhi"
    if any(_is_turn(line) for line in _first_lines(source)):
        return "turns"
    try:
        document = source.document
    except InvalidInput as error:
        raise InvalidInput(f"{error}. {_hint()}") from error
    recognised = _document_format(document)
    if recognised is None:
        raise InvalidInput(f"{source.name} is in no format that is known. {_hint()}")
    return recognised


def _first_lines(source: Source) -> list[Any]:
    """The first lines that are JSON by themselves."""
    found = []
    with source.open() as stream:
        for line in islice(iter(lambda: stream.readline(_NEEDLESS_LINE), b""), _FIRST_LINES):
            try:
                found.append(json.loads(line.decode("utf-8-sig")))
            except (ValueError, RecursionError):
                continue
    return found


def _is_turn(line: object) -> bool:
    return isinstance(line, Mapping) and {"speaker", "text"} <= line.keys()


def _document_format(document: object) -> str | None:
    if isinstance(document, Mapping):
        if "format" in document or document.get("command") == "export":
            return "echoic"
        if "results" in document:
            return "mem0"
        return "bodhi" if document.keys() & {"directives", "facts"} else None
    if not isinstance(document, list) or not document or not isinstance(document[0], Mapping):
        return None
    if {"sample_id", "conversation"} <= document[0].keys():
        return "locomo"
    return "mem0" if "memory" in document[0] else None


def _hint() -> str:
    return f"Say which it is with --from, one of {', '.join(READERS)}."


__all__ = [
    "READERS",
    "Directed",
    "Exported",
    "Item",
    "Known",
    "Reader",
    "Said",
    "Skipped",
    "Source",
    "format_of",
    "reader_of",
    "source_at",
]
