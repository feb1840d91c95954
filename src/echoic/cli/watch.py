"""`echoic watch`: what happens in the calls of a running server, line by line."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from echoic.cli.calls import with_unheard
from echoic.cli.command import command, output_of
from echoic.cli.output import Output, columns_of, harmless
from echoic.cli.server_process import OPERATOR_KEY, operator_key
from echoic.cli.settings import Settings, settings_of
from echoic.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from urllib.error import HTTPError

_TIMEOUT_S: Final = 60.0
"""The server sends heartbeats more often."""
_LONGEST_WAIT_S: Final = 10.0
_RECALLS_KEPT: Final = 1000
"""Turns whose line is remembered, so that it is not printed twice."""
_COLOURS: Final = {"caller": "cyan", "agent": "blue", "recall": "yellow", "kept": "green", "failure": "red"}


@command("watch")
@click.option(
    "--url",
    metavar="URL",
    envvar="ECHOIC_URL",
    show_envvar=True,
    default="http://127.0.0.1:8300",
    show_default=True,
    help="Where `echoic serve` answers.",
)
@click.pass_context
def watch_command(ctx: click.Context, url: str) -> int:
    """Show what happens in calls, live, until interrupted.

    It listens to a running `echoic serve`: what is said, how memory was recalled for it (whether it was
    ready when the turn ended, and how long it took), and what is stored, corrected or destroyed. --user
    limits it to one user; --deployment is for a server of your own that serves several. Since it shows what
    callers say, set ECHOIC_OPERATOR_KEY to the server's operator key, or to a key with the role operator or
    read-only (`echoic keys create`).

    Columns: time, user, event, details. With --json, one JSON object per line.
    """
    settings, output = settings_of(ctx), output_of(ctx)
    key = operator_key()
    if key is None:
        raise InvalidInput(
            f"watch shows what callers say: set {OPERATOR_KEY} to the server's operator key, or to a key "
            "with the role read-only"
        )
    lines = _Lines(settings, output)
    for event in _events(url, key, settings, output):
        lines.show(event)
    return 0


def _events(url: str, key: str, settings: Settings, output: Output) -> Iterator[dict[str, Any]]:
    """The server's events, reconnecting if necessary; the first connection must succeed."""
    from urllib.error import HTTPError

    wait_s, was_there = 1.0, False
    while True:
        try:
            for event in _connected(url, key, settings):
                if not was_there:
                    output.say(f"watching {url}; ctrl-c ends it")
                was_there, wait_s = True, 1.0
                if event is not None:
                    yield event
            output.say("the server ended the stream; asking again")
        except HTTPError as error:
            told = f"the server at {url} cannot be watched now: {_detail(error)}"
            if not was_there:
                raise StoreUnavailable(told) from error
            output.say(f"{told}; asking again in {wait_s:.0f} s")
        except OSError as error:
            if not was_there:
                raise StoreUnavailable(
                    f"no server answers at {url} ({type(error).__name__}): start `echoic serve`, or name it "
                    "with --url"
                ) from error
            output.say(f"the server does not answer; asking again in {wait_s:.0f} s")
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


def _connected(url: str, key: str, settings: Settings) -> Iterator[dict[str, Any] | None]:
    """The events of one connection; None for a heartbeat."""
    from urllib.error import HTTPError
    from urllib.parse import urlencode
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Nowhere(HTTPRedirectHandler):
        """Follows no redirect: the key is only for the named server."""

        def redirect_request(self, *_: Any) -> None:
            return None

    asked = {"user": settings.user, "deploymentId": settings.deployment}
    named = {name: value for name, value in asked.items() if name.removesuffix("Id") in settings.named}
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("--url must begin with http:// or https://")
    request = Request(  # noqa: S310 - checked above
        f"{url.rstrip('/')}/api/watch?{urlencode(named)}", headers={"Authorization": f"Bearer {key}"}
    )
    try:
        with build_opener(Nowhere).open(request, timeout=_TIMEOUT_S) as answer:
            name = ""
            for raw in answer:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield {"event": name, **json.loads(line.removeprefix("data: "))}
                elif line.startswith(":"):
                    yield None
    except HTTPError as error:
        if error.code >= 500 or error.code == 429:
            raise
        raise InvalidInput(f"the server at {url} refused to be watched: {_detail(error)}") from error


def _detail(error: HTTPError) -> str:
    """The status of an answer, and the server's error."""
    try:
        told = json.loads(error.read(4096)).get("error")
    except (ValueError, OSError, AttributeError):
        told = None
    return f"{error.code}, {told}" if isinstance(told, str) else str(error.code)


class _Lines:
    """Prints events as lines: aligned and coloured on a terminal, with tabs into a pipe."""

    def __init__(self, settings: Settings, output: Output) -> None:
        self._json = settings.json
        self._output = output
        self._terminal = sys.stdout.isatty()
        self._coloured = self._terminal and not os.environ.get("NO_COLOR")
        self._headed = False
        self._recalls: dict[tuple[str, str, int], str] = {}

    def show(self, event: dict[str, Any]) -> None:
        """Print the lines of `event`."""
        if self._json:
            self._output.line(harmless(json.dumps(event, ensure_ascii=False)))
            return
        at = datetime.fromisoformat(event["at"]).astimezone()
        for what, words in self._said(event):
            self._line((f"{at:%H:%M:%S}", event["user"], what, words))

    def _line(self, cells: tuple[str, ...]) -> None:
        if not self._terminal:
            self._output.line("\t".join(harmless(cell) for cell in cells))
            return
        width = shutil.get_terminal_size().columns
        widths = [8, 16, 8, max(20, width - 38)]
        if not self._headed:
            self._output.line(columns_of(("TIME", "USER", "WHAT", "WORDS"), widths))
            self._headed = True
        line = columns_of([harmless(cell) for cell in cells], widths)
        self._output.line(click.style(line, fg=_COLOURS.get(cells[2])) if self._coloured else line)

    def _said(self, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        data = event["data"]
        match event["event"]:
            case "turn":
                who = "caller" if data["speaker"] == "user" else data["speaker"]
                yield who, with_unheard(data["text"], data["heard"])
            case "exchange":
                words = _exchange_words(data)
                known = (event["user"], event["conversation"], data["number"])
                if words and self._recalls.get(known) != words:  # it is sent again when more is known
                    if len(self._recalls) >= _RECALLS_KEPT:
                        self._recalls.clear()
                    self._recalls[known] = words
                    yield "recall", words
            case "learned":
                yield from _learned(data)
            case "tool":
                told = ", ".join(str(data[n]) for n in ("operation", "key", "value", "query") if data[n])
                yield "tool", f"{data['tool']}: {told} ({data['outcome']}, {data['durationMs']:.0f} ms)"
            case "forgotten":
                yield "forgot", data["what"]
            case "failure":
                yield "failure", f"{data['what']}: {data['reason']}"


def _learned(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("added", "confirmed", "superseded", "retracted"):
        for memory in data[name]:
            yield "kept" if name == "added" else name, memory["statement"] or memory["text"]


def _exchange_words(data: dict[str, Any]) -> str:
    recall, parts = data["recall"], []
    if recall is not None:
        parts.append("ready" if recall["ready"] else f"searched for {recall['delayMs']:.0f} ms")
        parts.append(f"{recall['outcome']}, {recall['shown']} of {recall['found']} found shown")
    if data["latencyMs"] is not None:
        parts.append(f"first audio after {data['latencyMs']:.0f} ms")
    return "; ".join(parts)
