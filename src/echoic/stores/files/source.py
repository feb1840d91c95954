"""What a memory file says, value by value: JSON on one line, moments, categories. Pure; knows no records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echoic.errors import InvalidInput, StoreCorrupt
from echoic.types import CATEGORIES


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


def moment(value: Any) -> str | None:
    """A timestamp as ISO 8601 with its zone, from that or from milliseconds since 1970; None if neither.

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


def listed(lines: Iterable[str], indent: int) -> str:
    """JSON values as a list, each on a line of its own, `indent` spaces in."""
    inside = ",\n".join(f"{' ' * indent}{line}" for line in lines)
    return f"[\n{inside}\n{' ' * (indent - 2)}]" if inside else "[]"


def _finite(digits: str) -> float:
    value = float(digits)
    return value if value not in {float("inf"), float("-inf")} else _no_number(digits)


def _no_number(digits: str) -> float:
    raise ValueError(digits)


__all__ = ["Source", "json_from", "json_of", "known_category", "listed", "moment"]
