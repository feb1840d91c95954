"""Commands that inspect calls: calls list, calls show, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import Desk, with_memory
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import NOTHING_KNOWN, CommandResult, listing, moment

if TYPE_CHECKING:
    from echoic.session.call_record import CallRecord, Exchange, Given, Why
    from echoic.types import Turn

_BAR = 40
"""The width of a waterfall, in characters."""


@click.group("calls", cls=CommandGroup)
def calls_group() -> None:
    """Inspect voice calls: who said what, what was heard, how long each stage took."""


@calls_group.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=60, show_default=True)
@with_memory
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
@with_memory
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
@with_memory
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
            for each in _of(given, exchange)
        ]
    return "\n".join(lines)


def _of(given: Sequence[Given], exchange: Exchange) -> list[Given]:
    return [each for each in given if each.exchange == exchange.number]


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
    return with_unheard(turn.text, turn.heard) if turn is not None else "(forgotten)"


def with_unheard(text: str, heard: str | None) -> str:
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
