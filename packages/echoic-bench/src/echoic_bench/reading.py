"""From a path to labelled questions: LoCoMo's layout, or JSON lines of anyone's own.

JSON lines hold one object a line, in any order:

    {"user": "ana", "speaker": "user", "text": "I moved to Leeds.", "id": "t1", "conversation": "c1",
     "said_at": "2026-05-01T10:00:00Z"}
    {"user": "ana", "text": "Leeds", "key": "home_city", "id": "m1", "said_at": "2026-05-01T10:00:00Z"}
    {"user": "ana", "text": "Where do I live?", "evidence": ["t1", "m1"], "category": "home"}

A line with `evidence` is a question, one with `speaker` a turn, any other a memory. `user` may be left out
where there is one only, `id` where nothing names it, `category` always. `source` of a memory lists the turns
it comes from: finding it then counts for those. Nothing is written anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echoic.errors import InvalidInput
from echoic.types import Memory, Turn, checked_category, checked_name, checked_text
from echoic_bench.labelled import Dataset, Item, Labelled, Question, checked
from echoic_bench.locomo import is_locomo, users_of

_ENDINGS = {".json", ".jsonl", ".ndjson"}
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)
"""Stands in for a time that is not said: the same at every run, so that runs compare."""
_NOBODY = "user"
"""Whose what names no user is."""


def read(path: Path, *, facts: bool = False, mixed: bool = False) -> Dataset:
    """The labelled questions in the file or folder `path`.

    Args:
        path: LoCoMo's JSON, JSON lines, or a folder of such files.
        facts: keep only facts: LoCoMo's observations, memories of JSON lines. Else LoCoMo's turns, and
            everything of JSON lines.
        mixed: keep LoCoMo's observations behind its turns, as after learning.

    Raises:
        InvalidInput: it cannot be read, or holds no question that can be answered. The message says where.
    """
    users: dict[str, _Gathered] = {}
    labelled: list[Labelled] = []
    for file in _files(path):
        text = _text(file)
        document = _document(text)
        if document is None:
            _gather(file, text, users)
        elif is_locomo(document):
            labelled += users_of(document, "facts" if facts else "both" if mixed else "turns")
        else:
            raise InvalidInput(
                f"{file} is one JSON document and not in LoCoMo's layout; give one JSON object a line"
            )
    labelled += [gathered.labelled(user, facts=facts) for user, gathered in users.items()]
    return checked(path.stem, labelled)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise InvalidInput(f"there is no file {str(path)!r} with questions")
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS)
    if not found:
        raise InvalidInput(
            f"the folder {str(path)!r} holds no file that ends in {', '.join(sorted(_ENDINGS))}"
        )
    return found


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 at byte {error.start}") from error


def _document(text: str) -> Any:
    """`text` as one JSON document; None where it is lines of several."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(document, Mapping) and "text" in document else document


@dataclass
class _Gathered:
    """What lines told of one user so far."""

    items: dict[str, Item] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def labelled(self, user: str, *, facts: bool) -> Labelled:
        kept = [item for item in self.items.values() if not facts or isinstance(item, Memory)]
        sessions = {item.id: item.conversation for item in self.items.values() if isinstance(item, Turn)}
        return Labelled(user=user, items=tuple(kept), questions=tuple(self.questions), sessions=sessions)


def _gather(file: Path, text: str, users: dict[str, _Gathered]) -> None:
    for number, fields in _lines(file, text):
        try:
            user = checked_name(fields.get("user", _NOBODY), "user")
            _take(users.setdefault(user, _Gathered()), user, fields, f"{file.stem}:{number}")
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            told = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise InvalidInput(f"{file} line {number}: {told}") from error


def _lines(file: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{file} line {number} is not JSON: {error}") from error
        if not isinstance(fields, Mapping):
            raise InvalidInput(f"{file} line {number} is not a JSON object")
        yield number, fields


def _take(gathered: _Gathered, user: str, fields: Mapping[str, Any], default_id: str) -> None:
    if "evidence" in fields:
        gathered.questions.append(_question(user, fields))
        return
    name = _own(user, fields.get("id", default_id))
    if name in gathered.items:
        raise InvalidInput(f"the id {fields.get('id')!r} occurs twice with user {user!r}")
    gathered.items[name] = _turn(name, fields) if "speaker" in fields else _memory(user, name, fields)


def _question(user: str, fields: Mapping[str, Any]) -> Question:
    named = fields["evidence"]
    if not isinstance(named, list) or not named:
        raise InvalidInput(f"evidence must be a list of ids, not {named!r:.40}")
    return Question(
        text=checked_text(fields["text"], "text"),
        evidence=frozenset(_own(user, each) for each in named),
        category=str(fields.get("category", "")),
    )


def _turn(name: str, fields: Mapping[str, Any]) -> Turn:
    return Turn(
        id=name,
        speaker=fields["speaker"],
        text=checked_text(fields["text"], "text"),
        conversation=str(fields.get("conversation", "conversation")),
        said_at=_time(fields.get("said_at")),
        heard=fields.get("heard"),
    )


def _memory(user: str, name: str, fields: Mapping[str, Any]) -> Memory:
    key = fields.get("key")
    return Memory(
        id=name,
        text=checked_text(fields["text"], "text"),
        key=None if key is None else checked_name(key, "key"),
        category=checked_category(fields.get("category", "fact")),
        author=user,
        source=tuple(_own(user, each) for each in fields.get("source", ())),
        valid_from=_time(fields.get("said_at")),
    )


def _own(user: str, name: object) -> str:
    """An id that no other user has, whatever the file calls it."""
    return checked_name(f"{user}/{checked_name(name, 'id')}", "user and id")


def _time(value: object) -> datetime:
    if value is None:
        return _NEVER
    at = datetime.fromisoformat(str(value))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


__all__ = ["read"]
