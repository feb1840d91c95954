"""Output of a command: data to stdout, messages to stderr, or one JSON document. Nothing else prints."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import click
from click.exceptions import Exit

from echoic.cli.settings import Settings
from echoic.errors import EchoicError, InvalidInput, NotAllowed
from echoic.types import Hit, Memory

DONE = 0
NOTHING_KNOWN = 1
COULD_NOT_LOOK = 2
PARTLY = 3
BAD_INPUT = 64
"""EX_USAGE of sysexits.h, so that 2 keeps one meaning; click's own usage errors are mapped to it."""
UNEXPECTED = 70
"""EX_SOFTWARE of sysexits.h."""
INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
PIPE_CLOSED = 141
"""128 + SIGPIPE."""

MEANINGS: Mapping[int, str] = {
    DONE: "done, or something was found",
    NOTHING_KNOWN: "searched everything and found nothing",
    COULD_NOT_LOOK: "the store or the embedder could not be used, so there is no answer; or `doctor` found a "
    "fault, `forget` could not verify that the bytes are gone, or `reindex` left records without a vector",
    PARTLY: "done, but part of the input was skipped; stderr says what and why",
    BAD_INPUT: "the command or one of its values is invalid; nothing was changed",
    UNEXPECTED: "a bug in Echoic; --debug shows where",
    INTERRUPTED: "interrupted, or you answered no to a confirmation",
    PIPE_CLOSED: "the reader of the output closed the pipe",
}


def exit_code(error: BaseException) -> int:
    """The exit code of a command that ended with `error`."""
    if isinstance(error, (InvalidInput, NotAllowed, click.ClickException)):
        return BAD_INPUT
    if isinstance(error, EchoicError):
        return COULD_NOT_LOOK
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    return UNEXPECTED


Row = Sequence[str]
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, start an escape sequence or reverse the direction of writing."""
_NARROWEST = 8
"""Columns; a narrower cell would be unreadable."""
_LINE_AGAIN = "\r\x1b[2K"
"""Goes to the beginning of the line and clears it."""
_SHOWN_EVERY_S = 0.1
"""How often a line of progress is written anew."""
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def as_json(value: Any) -> Any:
    """`value` in JSON's types: dataclasses become objects, times become ISO 8601."""
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
    """`text` on one line, with every character a terminal would act on escaped."""
    return _CONTROLS.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def harmless_lines(text: str) -> str:
    """`text` with control characters escaped, except line breaks and tabs."""
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
    return [columns_of(row, widths) for row in (headings, *cells)]


def separated(rows: Iterable[Row]) -> list[str]:
    """The table for a program: one line a row, cells between tabs, nothing cut."""
    return ["\t".join(harmless(cell) for cell in row) for row in rows]


def ranks_of(hit: Hit) -> str:
    """The rank and score of `hit` in each channel: "vector 1 (0.83), text 3 (2.10)"."""
    return ", ".join(f"{name} {rank.rank} ({rank.score:.2f})" for name, rank in hit.ranks.items())


def applying(text: str, memory: Memory | None) -> str:
    """`text`, followed by its condition if it has one."""
    return f"{text} (applies: {memory.context})" if memory and memory.context else text


def state_of(memory: Memory) -> str:
    """Whether a version is current, and if not, why."""
    if memory.current:
        return "current"
    return "corrected" if memory.superseded_by and not memory.deleted else "deleted"


def columns_of(row: Row, widths: Sequence[int]) -> str:
    """`row` in columns of these widths, cut where it is longer."""
    cut = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
    padded = [cell + " " * (width - _columns(cell)) for cell, width in zip(cut, widths, strict=True)]
    return "  ".join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    if _columns(text) <= width:
        return text
    taken = 0
    for place, character in enumerate(text):
        taken += _width(character)
        if taken > width - 1:  # the last column is for the mark
            return f"{text[:place]}…"
    return text


def _columns(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: headings and rows."""

    headings: Row
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of a command."""

    data: Any
    """The `data` of the JSON document, of types that `as_json` takes."""
    text: str | Table | None = None
    """The text form, for stdout; None prints nothing."""
    count: int = 0
    """How many items `data` holds."""
    code: int = DONE
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the JSON document, such as a search's outcome."""


def listing(data: Any, headings: str, rows: Sequence[Row], **more: Any) -> CommandResult:
    """The result of a command that lists `data`: a table with space-separated headings; exit code 1 if it is
    empty.
    """
    table = Table(headings=headings.split(), rows=rows)
    return CommandResult(data=data, text=table, count=len(rows), code=DONE if rows else NOTHING_KNOWN, **more)


INTERRUPTED_KIND = "Interrupted"
"""The kind of error an interruption is reported as."""


class ProgressReport(Protocol):
    """Reports how far a long task is."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that `done` of `total` are done; without a total, that `done` are."""


class Output:
    """Prints for one command."""

    def __init__(self, settings: Settings, command: str, started: float) -> None:
        """Print for `command` (such as "proposals approve"), which began at `started`, by
        `time.perf_counter`.
        """
        self._settings = settings
        self._command = command
        self._started = started
        self._notes: list[str] = []
        self._answered = False

    def say(self, text: str) -> None:
        """Print a message for people on stderr; programs read the data instead."""
        if not (self._settings.quiet or self._settings.json):
            _print(harmless(text), sys.stderr)

    def aside(self, text: str) -> None:
        """Print a detail behind an answer on stderr, dimmed on a terminal."""
        if self._settings.quiet or self._settings.json:
            return
        line = f"  {harmless(text)}"
        dim = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        _print(click.style(line, dim=True) if dim else line, sys.stderr)

    def answer(self, text: str) -> None:
        """Print one answer of several; the JSON document has all of them at the end."""
        if not self._settings.json:
            _print(harmless_lines(text) if sys.stdout.isatty() else text, sys.stdout)

    def line(self, text: str) -> None:
        """Print one line of a stream unchanged."""
        _print(text, sys.stdout)

    def ask(self, prompt: str) -> None:
        """Print a prompt, on a terminal only."""
        if sys.stdin.isatty() and sys.stderr.isatty() and not self._settings.json:
            print(prompt, end="", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Print a limitation of the answer, once; it is also in the JSON document's `notes`."""
        if text in self._notes:
            return
        self._notes.append(text)
        if not (self._settings.quiet or self._settings.json):
            _print(harmless(text), sys.stderr)

    def finish(self, result: CommandResult) -> int:
        """Print `result`, unless an answer was printed before; returns the exit code."""
        if self._answered:
            return result.code
        self._answered = True
        if self._settings.json:
            status = "partial" if result.code == PARTLY else "ok" if result.code <= 1 else "failed"
            self._document(status, count=result.count, data=as_json(result.data), **as_json(result.extra))
        elif isinstance(result.text, Table):
            self._table(result.text)
        elif result.text is not None:
            text = result.text
            _print(harmless_lines(text) if sys.stdout.isatty() else text, sys.stdout)
        return result.code

    def fail(self, kind: str, message: str) -> None:
        if self._settings.json and not self._answered:
            self._document("error", error={"type": kind, "message": message})
        else:
            # a terminal has just shown ^C
            start = "\n" if kind == INTERRUPTED_KIND and sys.stderr.isatty() else ""
            _print(f"{start}echoic: {harmless(message)}", sys.stderr)

    @contextlib.contextmanager
    def progress(self, what: str) -> Iterator[ProgressReport]:
        """Show how far `what` is on a line of stderr, on a terminal only; the line is gone afterwards."""
        if self._settings.quiet or self._settings.json or not sys.stderr.isatty():
            yield lambda _done, _total=None: None
            return
        width, shown = shutil.get_terminal_size().columns - 1, 0.0

        def show(done: int | None = None, total: int | None = None) -> None:
            nonlocal shown
            if time.monotonic() - shown >= _SHOWN_EVERY_S or done == total:
                shown = time.monotonic()
                far = "" if done is None else f" {done}" if total is None else f" {done}/{total}"
                _print(f"{_LINE_AGAIN}{what}{far}"[: width + len(_LINE_AGAIN)], sys.stderr, end="")

        show()
        try:
            yield show
        finally:
            _print(_LINE_AGAIN, sys.stderr, end="")

    def _table(self, table: Table) -> None:
        if not table.rows:
            return
        if sys.stdout.isatty():
            lines = aligned(table.headings, table.rows, shutil.get_terminal_size().columns)
        else:
            lines = separated(table.rows)
        _print("\n".join(lines), sys.stdout)

    def _document(self, status: str, **more: Any) -> None:
        scope = {"deployment": self._settings.deployment, "user": self._settings.user}
        head = {
            "status": status,
            "command": self._command,
            "duration_ms": round((time.perf_counter() - self._started) * 1000, 1),
            "scope": scope,
        }
        notes = {"notes": self._notes} if self._notes else {}
        # `harmless` escapes control characters as JSON does
        _print(harmless(json.dumps({**head, **more, **notes}, ensure_ascii=False)), sys.stdout)


def use_utf8() -> None:
    """Read and write UTF-8, whatever the locale is."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # an argument that is not UTF-8 contains lone surrogates, and so does a message about it
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically and durably, or raise `InvalidInput`."""
    try:
        # NamedTemporaryFile creates files that only their owner can read
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".echoic-", delete=False) as scratch:
            made = Path(scratch.name)
            try:
                scratch.write(content)
                scratch.flush()
                os.fsync(scratch.fileno())
                made.replace(path)
            except BaseException:
                made.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InvalidInput(f"{path} could not be written: {error.strerror}") from error


def _print(text: str, stream: Any, end: str = "\n") -> None:
    try:
        print(text, file=stream, flush=True, end=end)
    except BrokenPipeError:
        # the rest of the buffer must not fail again when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise Exit(PIPE_CLOSED) from None
