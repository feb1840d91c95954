"""Where a command's words go: data to stdout, talk to stderr, or all of it into one JSON document.

The only place of the command line that prints.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import click
from click.exceptions import Exit

from echoic.cli.exits import DONE, PARTLY, PIPE_CLOSED
from echoic.cli.plain import Row, aligned, as_json, harmless, harmless_lines, separated
from echoic.cli.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings."""

    headings: Row
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command found or did."""

    data: Any
    """Of types `as_json` knows; the `data` of the JSON document."""
    text: str | Table | None = None
    """The same for stdout; None where there is nothing to print."""
    count: int = 0
    """How many things `data` holds."""
    code: int = DONE
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the JSON document, such as a search's outcome."""


INTERRUPTED_KIND = "Interrupted"
"""The kind of error an interruption is reported as."""


class Progress(Protocol):
    """How far a long task is."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that `done` of `total` are done; without a total, that `done` are."""
        ...


class Output:
    """What one command prints."""

    def __init__(self, settings: Settings, command: str, started: float) -> None:
        """Nothing is printed yet.

        Args:
            settings: whether to print JSON, and whether to be quiet.
            command: its name, as in "proposals approve".
            started: when it began, by `time.perf_counter`.
        """
        self._settings = settings
        self._command = command
        self._started = started
        self._notes: list[str] = []
        self._answered = False

    def say(self, text: str) -> None:
        """Tell a person what was done. A program learns it from the data."""
        if not (self._settings.quiet or self._settings.json):
            _print(harmless(text), sys.stderr)

    def aside(self, text: str) -> None:
        """Tell what happened behind an answer: dim, where a terminal can show it."""
        if self._settings.quiet or self._settings.json:
            return
        line = f"  {harmless(text)}"
        dim = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        _print(click.style(line, dim=True) if dim else line, sys.stderr)

    def answer(self, text: str) -> None:
        """Print one answer of several; the JSON document holds them all at the end."""
        if not self._settings.json:
            _print(harmless_lines(text) if sys.stdout.isatty() else text, sys.stdout)

    def ask(self, prompt: str) -> None:
        """Show that a line is waited for, where a person would type it."""
        if sys.stdin.isatty() and sys.stderr.isatty() and not self._settings.json:
            print(prompt, end="", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Tell what limits the answer, once."""
        if text in self._notes:
            return
        self._notes.append(text)
        if not (self._settings.quiet or self._settings.json):
            _print(harmless(text), sys.stderr)

    def finish(self, result: Result) -> int:
        """Print `result`, unless an answer was printed before; the exit code."""
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
        """Print why there is no result, and of which kind the error is."""
        if self._settings.json and not self._answered:
            self._document("error", error={"type": kind, "message": message})
        else:
            # a terminal has just shown ^C, and the cursor stands behind it
            start = "\n" if kind == INTERRUPTED_KIND and sys.stderr.isatty() else ""
            _print(f"{start}echoic: {harmless(message)}", sys.stderr)

    @contextlib.contextmanager
    def progress(self, what: str) -> Iterator[Progress]:
        """A bar on stderr while something long is under way, where a person would see it."""
        if self._settings.quiet or self._settings.json or not sys.stderr.isatty():
            yield lambda _done, _total=None: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total=None: bar.update(task, completed=done, total=total)

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
        # what `harmless` writes in place of a control character is JSON's own way to write it
        _print(harmless(json.dumps({**head, **more, **notes}, ensure_ascii=False)), sys.stdout)


def use_utf8() -> None:
    """Whatever the locale says: what was said comes out, and goes in, as it was said."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a lone surrogate can stand in an argument that is not UTF-8, and so in a message about it
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _print(text: str, stream: Any) -> None:
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        # what is left in the buffer must not fail again when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise Exit(PIPE_CLOSED) from None


__all__ = ["INTERRUPTED_KIND", "Output", "Progress", "Result", "Table", "use_utf8"]
