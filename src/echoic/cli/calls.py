"""Commands that inspect calls: calls list, calls show and why, and watch for those of a running server."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import click

from echoic.cli.asyncio_runner import Desk, reading
from echoic.cli.command import CommandGroup, command, output_of
from echoic.cli.output import NOTHING_KNOWN, CommandResult, Output, columns_of, harmless, listing, moment
from echoic.cli.server_process import OPERATOR_KEY, operator_key
from echoic.cli.settings import Settings, settings_of, variable_option
from echoic.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from urllib.error import HTTPError

    from echoic.session.call_record import CallRecord, Exchange, Given, Why
    from echoic.types import Turn

_BAR = 40
"""The width of a waterfall, in characters."""


@click.group("calls", cls=CommandGroup)
def calls_group() -> None:
    """Inspect voice calls: who said what, what was heard, how long each stage took."""


@calls_group.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=60, show_default=True)
@reading
async def list_command(desk: Desk, limit: int) -> CommandResult:
    """Print the user's latest calls, oldest first; --limit says how many.

    Columns: id, start, end, why it ended, agents, model.
    """
    from echoic.session.call_record import read_calls

    calls = await read_calls(desk.user.backing_store, desk.user.scope, newest=limit + 1)
    if len(calls) > limit:
        desk.output.say(f"the latest {limit} calls; there are more, see --limit")
        calls = calls[1:]
    rows = [_call_row(call) for call in calls]
    if not calls:
        desk.output.say(f"no calls of user {desk.settings.user!r} are recorded")
    return listing(calls, "CALL BEGAN ENDED REASON AGENTS MODEL", rows)


@calls_group.command("show")
@click.argument("call_id", metavar="ID")
@click.option("--given", is_flag=True, help="Also print what the model was given, as it was sent.")
@reading
async def show_command(desk: Desk, call_id: str, given: bool) -> CommandResult:
    """Print a call turn by turn, with a waterfall of each turn's stages.

    Words that were never heard are in [brackets]. Times are milliseconds since the call began.
    """
    from echoic.session.call_record import read_call, read_exchanges, read_given

    store, scope = desk.user.backing_store, desk.user.scope
    call = await read_call(store, scope, call_id)
    if call is None:
        desk.output.say(f"there is no call {call_id!r} of user {desk.settings.user!r}")
        return CommandResult(data=None, code=NOTHING_KNOWN)
    exchanges = await read_exchanges(store, scope, call.conversation, call.id)
    task = await desk.user.task(call.conversation)
    turns = {turn.id: turn for turn in task.turns} if task else {}
    texts = await read_given(store, scope, call.conversation, call.id) if given else []
    data = {"call": call, "exchanges": exchanges, "turns": list(turns.values()), "given": texts}
    return CommandResult(data=data, text=_shown(call, exchanges, turns, texts), count=len(exchanges))


@command("why")
@click.argument("turn")
@click.argument("memory", required=False)
@reading
async def why_command(desk: Desk, turn: str, memory: str | None) -> CommandResult:
    """Explain why MEMORY was, or was not, given to the model in TURN.

    MEMORY is an id or a key; without it, everything that was found for the turn is printed. TURN is the id of
    a turn, as `calls show` prints it. Columns: rank, score, relevance, fate, text, id.
    """
    from echoic.session.call_record import exchange_with, found_in, why

    store, scope = desk.user.backing_store, desk.user.scope
    exchange = await exchange_with(store, scope, turn)
    if exchange is None:
        desk.output.say(f"no call of user {desk.settings.user!r} has a record of turn {turn!r}")
        return CommandResult(data=None, code=NOTHING_KNOWN)
    if memory is not None:
        answer = await why(store, scope, exchange, memory)
        return CommandResult(data=answer, text=f"{answer.reason}: {answer.meaning}", count=1)
    answers = await found_in(store, scope, exchange)
    desk.output.say(_outcome(exchange))
    rows = [_why_row(answer) for answer in answers]
    return listing(answers, "RANK SCORE RELEVANCE FATE TEXT ID", rows)


def _call_row(call: CallRecord) -> tuple[str, ...]:
    ended = moment(call.ended_at) if call.ended_at else ""
    return (call.id, moment(call.started_at), ended, call.reason or "", " > ".join(call.agents), call.model)


def _why_row(answer: Why) -> tuple[str, ...]:
    score = f"{answer.score:.3f}" if answer.score is not None else ""
    relevance = f"{answer.relevance:.2f}" if answer.relevance is not None else ""
    return (str(answer.rank or ""), score, relevance, answer.reason, answer.text, answer.id)


def _outcome(exchange: Exchange) -> str:
    recall = exchange.recall
    if recall is None:
        return "nothing was recalled for this turn"
    ready = "ready when the turn ended" if recall.ready else "searched when the turn ended"
    left = f", without {', '.join(recall.cut)}" if recall.cut else ""
    return f"recall: {recall.outcome}{left}, {ready}, {recall.delay_ms:.1f} ms"


def _shown(
    call: CallRecord, exchanges: Sequence[Exchange], turns: dict[str, Turn], given: Sequence[Given]
) -> str:
    ended = f"{moment(call.ended_at)} ({call.reason})" if call.ended_at else "(in progress, or interrupted)"
    lines = [f"call {call.id}: {moment(call.started_at)} to {ended}"]
    lines += [f"{call.provider} {call.model}; agents: {' > '.join(call.agents)}"]
    lines += [f"transfer gap: {gap:.1f} ms" for gap in call.gaps_ms]
    for exchange in exchanges:
        lines += ["", *_exchange_lines(exchange, turns)]
        lines += [
            f"  given ({each.role} {each.name}, {each.tokens} tokens):\n{each.text}"
            for each in given
            if each.exchange == exchange.number
        ]
    return "\n".join(lines)


def _exchange_lines(exchange: Exchange, turns: dict[str, Turn]) -> list[str]:
    lines = [f"#{exchange.number}"]
    if exchange.user_turn:
        lines.append(f"  caller  {_words(turns.get(exchange.user_turn))}   ({exchange.user_turn})")
    for spoken in exchange.spoken:
        cut = "" if spoken.source == "whole" else f", cut at {spoken.played_ms:.0f} ms, {spoken.source}"
        words = _words(turns.get(spoken.turn))
        lines.append(f"  {exchange.agent:<7} {words}   ({spoken.turn}{cut})")
    lines += [
        f"  tool    {tool.name} {_span(tool.began_ms, tool.ended_ms)} {tool.outcome or 'no answer'}"
        for tool in exchange.tools
    ]
    if exchange.recall is not None:
        lines.append(f"  {_outcome(exchange)}")
    return lines + _waterfall(exchange.stages)


def _words(turn: Any) -> str:
    return _with_unheard(turn.text, turn.heard) if turn is not None else "(forgotten)"


def _with_unheard(text: str, heard: str | None) -> str:
    """A turn's words, with unheard ones in brackets."""
    unheard = "" if heard is None else text[len(heard) :].strip()
    return f"{heard}[{unheard}]" if unheard else text


def _span(began: float, ended: float | None) -> str:
    return f"{began:.0f}-{ended:.0f} ms" if ended is not None else f"{began:.0f} ms"


def _waterfall(stages: dict[str, float]) -> list[str]:
    """One line for each stage, with a bar that begins at the previous stage."""
    if len(stages) < 2:
        return []
    ordered = sorted(stages.items(), key=lambda stage: stage[1])
    first, last = ordered[0][1], ordered[-1][1]
    scale = _BAR / max(last - first, 1.0)
    lines, before = [], first
    for name, at in ordered:
        start, end = round((before - first) * scale), round((at - first) * scale)
        lines.append(f"  {name:<13} {at:>9.1f}  {' ' * start}{'=' * max(1, end - start)}")
        before = at
    return lines


# -- watch

_TIMEOUT_S: Final = 60.0
"""The server sends heartbeats more often."""
_LONGEST_WAIT_S: Final = 10.0
_RECALLS_KEPT: Final = 1000
"""Turns whose line is remembered, so that it is not printed twice."""
_COLOURS: Final = {"caller": "cyan", "agent": "blue", "recall": "yellow", "kept": "green", "failure": "red"}


@command("watch")
@variable_option(
    "url",
    metavar="URL",
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
                yield who, _with_unheard(data["text"], data["heard"])
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
