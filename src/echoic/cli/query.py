"""The command that searches. How hits are ranked is not known here."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

import click

from echoic.cli.command import command
from echoic.cli.exits import DONE, NOTHING_KNOWN
from echoic.cli.output import Result, Table
from echoic.cli.plain import applying, ranks_of, since, state_of, until, visibility_of
from echoic.cli.running import Desk, run, text_or_stdin, words_only
from echoic.errors import EmbedderError, EmbedderUnavailable, StoreUnavailable
from echoic.types import Recall

WAITED_S = 10.0
"""For vectors that are missing, before it is said that nothing is known."""
LEXICAL = "words and sounds only: the lexical embedder knows no meaning; --embedder local does"


@command("query")
@click.argument("text")
@click.option("--limit", type=int, default=10, show_default=True, metavar="N", help="Hits at most.")
@click.option(
    "--deadline-ms",
    type=float,
    metavar="MS",
    help="How long to wait for the embedding of TEXT before words alone must do. Loading is not counted.",
)
@click.option("--past", is_flag=True, help="Find what was superseded or taken back as well.")
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="The least relevance of a hit. Without it nothing is shown where no hit is likely to answer; "
    "0 shows everything that was found.",
)
@click.option(
    "--besides",
    multiple=True,
    metavar="ID",
    help="Leave out the conversation, turn or memory with this id. May be given several times.",
)
@click.option("--explain", is_flag=True, help="Add the relevance, and the rank and score each channel gave.")
@click.pass_context
def query_command(
    ctx: click.Context,
    *,
    text: str,
    limit: int,
    deadline_ms: float | None,
    past: bool,
    min_relevance: float | None,
    besides: tuple[str, ...],
    explain: bool,
) -> int:
    """Search by meaning, words and sounds, best hit first.

    Columns: rank, score, text, since when, who sees it; with --past also until when, and whether it holds;
    with --explain the channels and the relevance.
    What is the user's own and what is global is ranked together. TEXT "-" reads stdin. Exit code 1: nothing
    is known; 2: it could not look everywhere, and found nothing.
    """
    asked = text_or_stdin(text)

    async def work(desk: Desk) -> Result:
        with contextlib.suppress(EmbedderError):  # then words must do, and it is said below
            await desk.embedder.ready()
        ask = partial(
            desk.user.recall,
            asked,
            limit=limit,
            deadline_ms=deadline_ms,
            include_past=past,
            min_relevance=min_relevance,
            besides=besides or None,
        )
        recall = await _recalled(desk, ask)
        _explain_outcome(desk, recall, deadline_ms)
        extra = {"outcome": recall.outcome, "cut": recall.cut}
        code = DONE if recall.hits else NOTHING_KNOWN
        table = _table(recall, past=past, explain=explain)
        return Result(data=recall.hits, text=table, count=len(recall.hits), code=code, extra=extra)

    return run(ctx, work)


async def _recalled(desk: Desk, ask: Callable[[], Awaitable[Recall]]) -> Recall:
    """What is found; where that is nothing, what is found once everything has its vector.

    What an earlier command kept while the embedder was away has none yet, and is embedded beside this one.
    """
    recall = await ask()
    if recall.hits or recall.outcome == "deadline" or "vector" in recall.cut:
        return recall
    await desk.memory.settle(WAITED_S)
    return await ask()


def _explain_outcome(desk: Desk, recall: Recall, deadline_ms: float | None) -> None:
    """Say what was not looked at.

    Raises:
        EmbedderError: nothing was found by words, and by meaning could not be looked.
        StoreUnavailable: nothing was found, and what is new could not be asked for.
    """
    if recall.outcome == "unavailable" and "vector" not in recall.cut:
        missed = f"could not look everywhere ({', '.join(recall.cut)})"
        if not recall.hits:
            fault = StoreUnavailable if "newest" in recall.cut else EmbedderUnavailable
            raise fault(f"{missed}, and found nothing: `echoic doctor` says what is amiss")
        desk.output.note(missed)
    elif recall.outcome == "unavailable":
        trouble = desk.embedder.trouble or EmbedderUnavailable("the query could not be embedded")
        if not recall.hits:
            raise trouble
        desk.output.note(words_only(trouble))
    elif recall.outcome == "deadline":
        missed = f"the query was not embedded within {deadline_ms:g} ms"
        if not recall.hits:
            raise EmbedderUnavailable(f"{missed}, and words alone found nothing: allow it more time")
        desk.output.note(f"words and sounds only: {missed}")
    elif not desk.embedder.semantic:
        desk.output.note(LEXICAL)
    if not recall.hits:
        desk.output.say(f"nothing is known of it to user {desk.settings.user!r}")


def _table(recall: Recall, *, past: bool, explain: bool) -> Table:
    headings = ["RANK", "SCORE", "TEXT", "SINCE", "VISIBILITY"]
    rows = [
        [str(rank), f"{hit.score:.3f}", applying(hit.text, hit.memory), since(hit), visibility_of(hit)]
        for rank, hit in enumerate(recall.hits, 1)
    ]
    if past:
        headings += ["UNTIL", "STATE"]
        states = [state_of(hit.memory) if hit.memory else "said" for hit in recall.hits]
        rows = [[*row, until(hit), state] for row, hit, state in zip(rows, recall.hits, states, strict=True)]
    if explain:
        headings += ["CHANNELS", "RELEVANCE"]
        rows = [
            [*row, ranks_of(hit), f"{hit.relevance:.2f}"] for row, hit in zip(rows, recall.hits, strict=True)
        ]
    return Table(headings=headings, rows=rows)


__all__ = ["query_command"]
