"""Shared parts of the import readers: sources, and the items they yield. They write nothing."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from echoic.cli.output import Output
from echoic.errors import InvalidInput, brief
from echoic.types import CATEGORIES, Category, Turn

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """A turn to import, with its id and conversation."""

    turn: Turn
    user: str | None = None
    """The user it belongs to; None if the source does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMemory:
    """A memory to import, as a sentence or under a key."""

    text: str
    key: str | None = None
    category: Category = "fact"
    said_at: datetime | None = None
    """When it was said; None if the source does not say."""
    user: str | None = None
    where: str = field(default="", compare=False)
    """Its place in the source, as in `Skipped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directed:
    """A directive to import: how the user wants to be served."""

    name: str
    text: str
    user: str | None = None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export of Echoic's own, to import whole."""

    document: Mapping[str, Any]
    user: str | None = None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """An item that could not be read. Its contents are not repeated, except what the reason quotes."""

    where: str
    """Such as "line 12" or "facts[3]"."""
    reason: str


LISTED = 20
"""Skipped items printed; --json lists more."""


def tell_skipped(output: Output, skipped: Sequence[Skipped], count: int) -> None:
    """Print the first of `skipped`, of `count` in all."""
    for one in skipped[:LISTED]:
        output.say(f"skipped {one.where}: {one.reason}")
    if count > LISTED:
        output.say(f"skipped {count - LISTED} more; --json lists them")


Item = ImportedTurn | ImportedMemory | Directed | Exported | Skipped
Reader = Callable[["ImportSource"], Iterator[Item]]
"""Lazy and pure: the same source yields the same items, with the same ids."""


@dataclass(frozen=True, kw_only=True)
class ImportSource:
    """A file, a folder or stdin, readable more than once."""

    name: str
    path: Path | None = None
    """None for stdin, whose contents are in `held`."""
    held: bytes = b""
    read_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time of items whose source gives none."""

    @property
    def folder(self) -> bool:
        return self.path is not None and self.path.is_dir()

    @property
    def stem(self) -> str:
        """Its file name without the extension."""
        return self.path.stem if self.path else "stdin"

    def open(self) -> IO[bytes]:
        """The bytes of the file from the beginning, or `InvalidInput`."""
        if self.path is None:
            return io.BytesIO(self.held)
        try:
            return self.path.open("rb")
        except IsADirectoryError as error:
            raise InvalidInput(
                f"{self.name} is a folder; only Bodhi's can be imported whole: import its files one by one"
            ) from error
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror}") from error

    @cached_property
    def document(self) -> Any:
        """The source as one JSON document, parsed once; raises `InvalidInput`."""
        with self.open() as stream:
            try:
                return json.loads(stream.read().decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                raise InvalidInput(f"{self.name} is not UTF-8 at byte {error.start}") from error
            except json.JSONDecodeError as error:
                where = f"line {error.lineno}, column {error.colno}"
                raise InvalidInput(f"{self.name} is not JSON at {where}: {error.msg}") from error
            except ValueError as error:
                raise InvalidInput(f"{self.name} holds a number of too many digits to be read") from error
            except RecursionError as error:
                raise InvalidInput(f"{self.name} is nested too deeply to be read") from error


def source_at(name: str) -> ImportSource:
    """The source at a path, or "-" for stdin, which is read now; raises `InvalidInput`."""
    if name == STDIN:
        return ImportSource(name="stdin", held=sys.stdin.buffer.read())
    path = Path(name)
    if not path.exists():
        raise InvalidInput(f"there is no file {name!r}")
    return ImportSource(name=name, path=path)


FLAWS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, OSError, RecursionError)
"""What reading an unexpected layout may raise."""


def reason_of(error: Exception) -> str:
    """Why an item was skipped. Only Echoic's own errors may quote it; others are named by type."""
    if isinstance(error, InvalidInput):
        return str(error)
    if isinstance(error, KeyError):
        return f"it has no {brief(error.args[0])}"
    return f"it is not laid out as expected ({type(error).__name__})"


def derived_id(*parts: str) -> str:
    """An id derived from `parts`, so that importing the same again changes nothing."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def export_of(**holding: Any) -> dict[str, Any]:
    """An export of Echoic that holds only this."""
    from echoic.memory.export import FORMAT, VERSION

    empty = {"format": FORMAT, "version": VERSION, "user": None, "memories": [], "conversations": []}
    return {**empty, **holding}


def category_of(value: object) -> Category:
    """`value` if it is a category, else "fact"."""
    return next((category for category in CATEGORIES if category == value), "fact")


def time_of(value: object, *, naive_is_utc: bool = False) -> datetime | None:
    """An ISO 8601 text as a time; None for None. Raises `InvalidInput`, also without a time zone."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise InvalidInput("its time is not ISO 8601, such as 2026-05-01T10:00:00Z") from error
    if at.tzinfo is None and naive_is_utc:
        return at.replace(tzinfo=UTC)
    if at.tzinfo is None:
        raise InvalidInput("its time has no time zone; 2026-05-01T10:00:00Z has one")
    return at
