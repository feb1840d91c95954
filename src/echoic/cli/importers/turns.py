"""Turns as JSON lines: {"speaker", "text", "said_at"?, "conversation"?, "id"?, "heard"?, "confidence"?}.

Read line by line, so a file may be larger than memory; a line that cannot be read costs that line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from echoic.cli.importers.base import FLAWS, Item, Said, Skipped, Source, derived_id, reason_of, time_of
from echoic.errors import InvalidInput
from echoic.types import Turn, checked_name

_BOM = b"\xef\xbb\xbf"


def read_turns(source: Source) -> Iterator[Item]:
    """A turn a line, in the order of the file; without a conversation, of one named like the file.

    A turn without an id gets one that follows from what it says, and from how often the same was said before
    in the same conversation: lines added at the end change nothing before them. One with the id of another
    turn cannot be kept beside it.
    """
    said_before: Counter[str] = Counter()
    given: dict[str, str] = {}
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            raw = line.removeprefix(_BOM) if number == 1 else line
            if not raw.strip():
                continue
            try:
                fields = _fields(raw)
                yield Said(turn=_of_its_own(_turn(source, fields, said_before), given))
            except FLAWS as error:
                yield Skipped(where=f"line {number}", reason=reason_of(error))


def _fields(raw: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON at column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput("it is nested too deeply to be read") from error
    if not isinstance(value, Mapping):
        raise InvalidInput(f"it is no JSON object but a {type(value).__name__}")
    missing = [name for name in ("speaker", "text") if name not in value]
    if missing:
        raise InvalidInput(f"it has no {' and no '.join(missing)}")
    return value


def _turn(source: Source, fields: Mapping[str, Any], said_before: Counter[str]) -> Turn:
    conversation = checked_name(_given(fields, "conversation", source.stem), "conversation")
    said_at = time_of(fields.get("said_at"))
    turn = Turn(
        speaker=fields["speaker"],
        text=fields["text"],
        heard=_heard(fields.get("heard")),
        said_at=said_at or source.read_at,
        confidence=_confidence(fields.get("confidence")),
        id=_given(fields, "id", ""),
        conversation=conversation,
    )
    if turn.id:
        return turn
    content = derived_id(conversation, turn.speaker, str(fields.get("said_at")), turn.text, str(turn.heard))
    said_before[content] += 1
    return replace(turn, id=derived_id(content, str(said_before[content])))


def _of_its_own(turn: Turn, given: dict[str, str]) -> Turn:
    said = derived_id(turn.conversation, turn.speaker, turn.text, str(turn.heard), str(turn.confidence))
    if given.setdefault(turn.id, said) != said:
        raise InvalidInput(f"another turn before it has the id {turn.id!r}, which is unique within a user")
    return turn


def _given(fields: Mapping[str, Any], name: str, default: str) -> Any:
    value = fields.get(name)
    return default if value is None else value


def _heard(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidInput(f"heard must be a string, not {type(value).__name__}")


def _confidence(value: object) -> float | None:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise InvalidInput(f"confidence must be a number from 0 to 1, not {type(value).__name__}")


__all__ = ["read_turns"]
