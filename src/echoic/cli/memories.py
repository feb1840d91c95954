"""Commands over one user's memories: set, remember, delete, get, query, list, history, forget."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial

import click

from echoic.cli.asyncio_runner import Desk, reading, run, text_or_stdin, words_only
from echoic.cli.command import command
from echoic.cli.output import (
    COULD_NOT_LOOK,
    DONE,
    NOTHING_KNOWN,
    CommandResult,
    Table,
    applying,
    listing,
    moment,
    ranks_of,
    state_of,
)
from echoic.cli.settings import settings_of
from echoic.errors import EmbedderError, EmbedderUnavailable, InvalidInput, StoreUnavailable
from echoic.types import CATEGORIES, Category, Memory, Recall, Receipt, Sharing

category_option = click.option(
    "--category",
    type=click.Choice(CATEGORIES),
    default="fact",
    show_default=True,
    help="The memory's category.",
)
context_option = click.option(
    "--context", metavar="TEXT", help="The conditions under which the memory applies."
)


@command("set")
@click.argument("key")
@click.argument("value")
@category_option
@context_option
@click.option(
    "--visibility",
    type=click.Choice(["auto", "private"]),
    default="auto",
    show_default=True,
    help="private never shares the memory; auto lets the rules decide.",
)
@click.pass_context
def set_command(
    ctx: click.Context, key: str, value: str, *, category: Category, context: str | None, visibility: Sharing
) -> int:
    """Store VALUE under KEY; the earlier value becomes history.

    VALUE "-" reads stdin, without its final line break. A value that is about no person (opening hours,
    prices, policies) is proposed as a global memory; with --global-writes auto, one of the --global-kinds
    becomes global at once. --visibility private prevents both.
    """
    text = text_or_stdin(value)

    async def work(desk: Desk) -> CommandResult:
        memory = await desk.user.set(key, text, category=category, context=context, visibility=visibility)
        desk.output.say(_kept(memory, desk.settings.user))
        return CommandResult(data=memory, count=1)

    return run(ctx, work)


@command("get")
@click.argument("key")
@reading
async def get_command(desk: Desk, key: str) -> CommandResult:
    """Print the current value of KEY.

    The user's own value takes precedence over a global one.
    """
    memory = await desk.user.get(key)
    if memory is None:
        desk.output.say(_nothing(desk, f"under {key!r}"))
        return CommandResult(data=None, code=NOTHING_KNOWN)
    return CommandResult(data=memory, text=memory.text, count=1)


@command("delete")
@click.argument("key", required=False)
@click.option("--id", "name", metavar="ID", help="Delete one memory or one turn, by its id.")
@click.pass_context
def delete_command(ctx: click.Context, key: str | None, name: str | None) -> int:
    """Retract the memory under KEY. It is no longer recalled, but stays in its history.

    The sentences that stated it are no longer recalled either, in any turn. To destroy it with its history,
    use `echoic forget --key KEY`.
    """
    if (key is None) == (name is None):
        raise click.UsageError("give KEY or --id ID", ctx)
    what = f"under {key!r}" if key is not None else f"with the id {name!r}"

    async def work(desk: Desk) -> CommandResult:
        deleted = await desk.user.delete(key, id=name)
        desk.output.say(f"deleted {key or name!r}" if deleted else _nothing(desk, what))
        return CommandResult(
            data={"deleted": deleted}, count=int(deleted), code=DONE if deleted else NOTHING_KNOWN
        )

    return run(ctx, work)


@command("list")
@reading
async def list_command(desk: Desk) -> CommandResult:
    """Print every current memory, oldest first.

    Columns: key, text, category, since when, who can recall it.
    """
    facts = await desk.user.facts()
    if not facts:
        desk.output.say(_nothing(desk, ""))
    rows = [(m.key or "", applying(m.text, m), m.category, moment(m.valid_from), m.visibility) for m in facts]
    return listing(facts, "KEY TEXT CATEGORY SINCE VISIBILITY", rows)


@command("history")
@click.argument("key")
@reading
async def history_command(desk: Desk, key: str) -> CommandResult:
    """Print every version of KEY, oldest first.

    Columns: text, from when, until when, state (current, corrected or deleted).
    """
    versions = await desk.user.history(key)
    if not versions:
        desk.output.say(_nothing(desk, f"under {key!r}"))
    rows = [(applying(m.text, m), moment(m.valid_from), moment(m.valid_until), state_of(m)) for m in versions]
    return listing(versions, "TEXT FROM UNTIL STATE", rows)


@command("remember")
@click.argument("text")
@category_option
@context_option
@click.pass_context
def remember_command(ctx: click.Context, text: str, category: Category, context: str | None) -> int:
    """Store a sentence about the user.

    Storing the same sentence again changes nothing. TEXT "-" reads stdin.
    """
    said = text_or_stdin(text)

    async def work(desk: Desk) -> CommandResult:
        memory = await desk.user.remember(said, category=category, context=context)
        desk.output.say(f"remembered for {desk.settings.user!r} ({memory.visibility})")
        return CommandResult(data=memory, count=1)

    return run(ctx, work)


def _kept(memory: Memory, user: str) -> str:
    from echoic.memory.sharing import REASONS

    said = f"stored {memory.key!r} for {user!r}"
    why = f": {REASONS[memory.reason]}" if memory.reason is not None else ""
    left_out = f", without {', '.join(memory.redacted)}" if memory.redacted else ""
    if memory.visibility == "global":
        return f"{said} and every user of the deployment (global{left_out}{why})"
    if memory.visibility == "proposed":
        return f"{said} (proposed as global{why}; `echoic proposals` lists proposals)"
    return f"{said} (private{why})"


def _nothing(desk: Desk, where: str) -> str:
    settings = desk.settings
    of = f"for user {settings.user!r} in deployment {settings.deployment!r}"
    return " ".join(["nothing is known", *([where] if where else []), of])


WAITED_S = 10.0
"""How long a query waits for missing vectors before it reports that nothing is known."""
LEXICAL = "searching by words and sounds only: for search by meaning, use --embedder local"


@command("query")
@click.argument("text")
@click.option(
    "--limit", type=int, default=10, show_default=True, metavar="N", help="The maximum number of hits."
)
@click.option(
    "--deadline-ms",
    type=float,
    metavar="MS",
    help="How long the search may take: what is not loaded or embedded by then is left out. "
    "Loading the model does not count.",
)
@click.option("--past", is_flag=True, help="Also find memories that held before.")
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="The minimum relevance of a hit. By default, nothing is printed if no hit is likely to answer; "
    "0 prints everything that was found.",
)
@click.option(
    "--besides",
    multiple=True,
    metavar="ID",
    help="Leave out the conversation, turn or memory with this id. Can be given several times.",
)
@click.option("--explain", is_flag=True, help="Add the relevance, and the rank and score in each channel.")
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

    Columns: rank, score, text, since when, who can recall it; with --past also until when and the state; with
    --explain the channels and the relevance.

    The user's own memories and global ones are ranked together. TEXT "-" reads stdin. Exit code 1 means that
    nothing is known, 2 that the search was incomplete and found nothing.
    """
    asked = text_or_stdin(text)

    async def work(desk: Desk) -> CommandResult:
        with contextlib.suppress(EmbedderError):  # then the search uses words only, and a note says so
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
        table = _hits(recall, past=past, explain=explain)
        return CommandResult(data=recall.hits, text=table, count=len(recall.hits), code=code, extra=extra)

    return run(ctx, work)


async def _recalled(desk: Desk, ask: Callable[[], Awaitable[Recall]]) -> Recall:
    """The hits of `ask`; if there are none, ask again once every record has its vector.

    Records that were stored while the embedder was unavailable are embedded in the background.
    """
    recall = await ask()
    if recall.hits or recall.outcome == "deadline" or "vector" in recall.cut:
        return recall
    await desk.memory.settle(WAITED_S)
    return await ask()


def _explain_outcome(desk: Desk, recall: Recall, deadline_ms: float | None) -> None:
    """Say which part of the search is missing; raises an error if nothing was found because of it."""
    if recall.outcome == "unavailable" and "vector" not in recall.cut:
        missed = f"the search was incomplete ({', '.join(recall.cut)})"
        if not recall.hits:
            fault = StoreUnavailable if "newest" in recall.cut else EmbedderUnavailable
            raise fault(f"{missed} and found nothing: `echoic doctor` finds the cause")
        desk.output.note(missed)
    elif recall.outcome == "unavailable":
        trouble = desk.embedder.failure or EmbedderUnavailable("the query could not be embedded")
        if not recall.hits:
            raise trouble
        desk.output.note(words_only(trouble))
    elif recall.outcome == "deadline":
        unloaded = [name for name in recall.cut if name in {"own", "global", "shared"}]
        late = [f"memories ({', '.join(unloaded)}) were not loaded"] if unloaded else []
        late += ["the query was not embedded"] if "vector" in recall.cut else []
        missed = f"{' and '.join(late) or 'the search was not finished'} within {deadline_ms:g} ms"
        if not recall.hits:
            fault = StoreUnavailable if unloaded else EmbedderUnavailable
            raise fault(f"{missed}, and nothing was found: raise --deadline-ms")
        by_words = "searched by words and sounds only: " if "vector" in recall.cut else ""
        desk.output.note(f"{by_words}{missed}")
    elif not desk.embedder.semantic:
        desk.output.note(LEXICAL)
    if not recall.hits:
        desk.output.say(f"nothing is known about that for user {desk.settings.user!r}")


def _hits(recall: Recall, *, past: bool, explain: bool) -> Table:
    headings = ["RANK", "SCORE", "TEXT", "SINCE", "VISIBILITY"]
    headings += ["UNTIL", "STATE"] if past else []
    headings += ["CHANNELS", "RELEVANCE"] if explain else []
    rows = []
    for rank, hit in enumerate(recall.hits, 1):
        memory = hit.memory
        said_at = memory.valid_from if memory else hit.turn.said_at if hit.turn else None
        row = [str(rank), f"{hit.score:.3f}", applying(hit.text, memory), moment(said_at)]
        row.append(memory.visibility if memory else "private")
        if past:
            row += [moment(memory.valid_until), state_of(memory)] if memory else ["", "said"]
        if explain:
            row += [ranks_of(hit), f"{hit.relevance:.2f}"]
        rows.append(row)
    return Table(headings=headings, rows=rows)


@command("forget")
@click.option("--key", metavar="KEY", help="Destroy KEY and its history.")
@click.option(
    "--conversation",
    metavar="ID",
    help="Destroy one conversation with its turns; memories learned from it stay.",
)
@click.option("--id", "name", metavar="ID", help="Destroy one memory or one turn, by its id.")
@click.option(
    "--asked", metavar="ID", help="Destroy what the user asked to forget in one turn, by the id of that turn."
)
@click.option(
    "--since",
    "first",
    metavar="TIME",
    help="Destroy everything said or stored then or later; with --until, only what lies between.",
)
@click.option("--until", "last", metavar="TIME", help="Destroy everything said or stored before then.")
@click.option("--all", "everything", is_flag=True, help="Destroy everything stored about the user.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; required without a terminal.")
@click.pass_context
def forget_command(
    ctx: click.Context,
    *,
    key: str | None,
    conversation: str | None,
    name: str | None,
    asked: str | None,
    first: str | None,
    last: str | None,
    everything: bool,
    yes: bool,
) -> int:
    """Destroy memories for good, and print a receipt.

    The receipt says what was removed, and whether the bytes are verified to be gone. Give exactly one of
    --key, --conversation, --id, --asked, --all and a span of time. For a key or an id, the words that stated
    it are removed from every turn; the rest of the turn stays and counts as rewritten. TIME is ISO 8601, as
    2026-03-14T09:00Z, or a date alone; without a zone it is UTC.

    You are asked to confirm; without a terminal, pass --yes. Forgetting cannot be undone. To retract
    something that merely stopped being true, use `echoic delete`. Exit code 1 means that nothing was there to
    forget (with --all that is 0), and 2 that the store could not be used, or that not every byte could be
    verified to be gone: run it again.
    """
    began, ended = _moment("--since", first), _moment("--until", last)
    named = {
        f"key {key!r}": key,
        f"conversation {conversation!r}": conversation,
        f"memory or turn {name!r}": name,
        f"what turn {asked!r} asks to forget": asked,
        f"everything from {first or 'the beginning'} to {last or 'now'}": first or last,
        "everything": everything or None,
    }
    given = [what for what, value in named.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError("give one of --key, --conversation, --id, --asked, --all and a span", ctx)
    what = given[0]
    if not yes:
        _ask_first(f"{what} of user {settings_of(ctx).user!r}")

    async def work(desk: Desk) -> CommandResult:
        receipt = await desk.user.forget(
            key=key, conversation=conversation, id=name, asked=asked, since=began, until=ended
        )
        gone = receipt.records or receipt.rewritten
        desk.output.say(
            f"{'forgot' if gone else 'found nothing to forget:'} {what} of user {desk.settings.user!r}"
        )
        code = DONE if gone or everything else NOTHING_KNOWN
        if not receipt.verified:
            desk.output.note("not every byte could be verified to be gone: run the command again")
            code = COULD_NOT_LOOK
        return CommandResult(data=receipt, text=_receipt_lines(receipt), count=receipt.records, code=code)

    return run(ctx, work)


def _moment(option: str, text: str | None) -> datetime | None:
    """The time that `text` names, or `InvalidInput`."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{option} must be a time as 2026-03-14T09:00Z, or a date") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _ask_first(what: str) -> None:
    """Ask for confirmation; without a terminal, raises `InvalidInput`."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"this would destroy {what} for good, and there is no terminal to confirm on: add --yes"
        )
    click.confirm(f"Destroy {what}?", abort=True, err=True)


def _receipt_lines(receipt: Receipt) -> str:
    verified = f"yes, {receipt.bytes_searched} bytes searched" if receipt.verified else "no"
    return "\n".join(
        (
            f"memories\t{receipt.memories}",
            f"turns\t{receipt.turns}",
            f"conversations\t{receipt.conversations}",
            f"vectors\t{receipt.vectors}",
            f"other\t{receipt.other}",
            f"rewritten\t{receipt.rewritten}",
            *(f"kept, {why}\t{count}" for why, count in receipt.kept_because.items()),
            f"verified\t{verified}",
        )
    )
