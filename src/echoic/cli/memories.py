"""Commands for one memory at a time: set, get, delete, list, history, remember."""

from __future__ import annotations

import click

from echoic.cli.command import command
from echoic.cli.exits import DONE, NOTHING_KNOWN
from echoic.cli.output import Result, Table
from echoic.cli.plain import applying, moment, state_of
from echoic.cli.running import Desk, run, text_or_stdin
from echoic.types import CATEGORIES, Category, Memory, Sharing

category_option = click.option(
    "--category", type=click.Choice(CATEGORIES), default="fact", show_default=True, help="What kind it is."
)
context_option = click.option("--context", metavar="TEXT", help="When and under which conditions it applies.")


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
    help="private keeps it to the user, whatever it says; auto lets the rules decide.",
)
@click.pass_context
def set_command(
    ctx: click.Context, key: str, value: str, *, category: Category, context: str | None, visibility: Sharing
) -> int:
    """Keep VALUE under KEY; what was there stays as history.

    VALUE "-" reads stdin, without the line break that ends it. What is about no person (opening hours,
    prices, policies) is proposed to be global; with --global-writes auto what is of --global-kinds is at
    once. --visibility private keeps it from both.
    """
    text = text_or_stdin(value)

    async def work(desk: Desk) -> Result:
        memory = await desk.user.set(key, text, category=category, context=context, visibility=visibility)
        desk.output.say(_kept(memory, desk.settings.user))
        return Result(data=memory, count=1)

    return run(ctx, work)


@command("get")
@click.argument("key")
@click.pass_context
def get_command(ctx: click.Context, key: str) -> int:
    """Print what holds under KEY.

    The user's own comes before what is global.
    """

    async def work(desk: Desk) -> Result:
        memory = await desk.user.get(key)
        if memory is None:
            desk.output.say(_nothing(desk, f"under {key!r}"))
            return Result(data=None, code=NOTHING_KNOWN)
        return Result(data=memory, text=memory.text, count=1)

    return run(ctx, work)


@command("delete")
@click.argument("key", required=False)
@click.option("--id", "name", metavar="ID", help="Take back one memory or one turn, by its id.")
@click.pass_context
def delete_command(ctx: click.Context, key: str | None, name: str | None) -> int:
    """Take back what is kept under KEY. It is no longer found, but stays in its history.

    What was said of it is no longer found either, in any turn. To destroy it with its history, use `echoic
    forget --key KEY`.
    """
    if (key is None) == (name is None):
        raise click.UsageError("say what to take back: KEY or --id ID", ctx)
    what = f"under {key!r}" if key is not None else f"with the id {name!r}"

    async def work(desk: Desk) -> Result:
        deleted = await desk.user.delete(key, id=name)
        desk.output.say(f"took back {key or name!r}" if deleted else _nothing(desk, what))
        return Result(data={"deleted": deleted}, count=int(deleted), code=DONE if deleted else NOTHING_KNOWN)

    return run(ctx, work)


@command("list")
@click.pass_context
def list_command(ctx: click.Context) -> int:
    """Print everything that holds, oldest first.

    Columns: key, text, category, since when, who sees it.
    """

    async def work(desk: Desk) -> Result:
        facts = await desk.user.facts()
        if not facts:
            desk.output.say(_nothing(desk, ""))
        rows = [
            (m.key or "", applying(m.text, m), m.category, moment(m.valid_from), m.visibility) for m in facts
        ]
        table = Table(headings=("KEY", "TEXT", "CATEGORY", "SINCE", "VISIBILITY"), rows=rows)
        return Result(data=facts, text=table, count=len(facts), code=DONE if facts else NOTHING_KNOWN)

    return run(ctx, work)


@command("history")
@click.argument("key")
@click.pass_context
def history_command(ctx: click.Context, key: str) -> int:
    """Print every version of KEY, oldest first.

    Columns: text, from when, until when, whether it holds.
    """

    async def work(desk: Desk) -> Result:
        versions = await desk.user.history(key)
        if not versions:
            desk.output.say(_nothing(desk, f"under {key!r}"))
        rows = [
            (applying(m.text, m), moment(m.valid_from), moment(m.valid_until), state_of(m)) for m in versions
        ]
        table = Table(headings=("TEXT", "FROM", "UNTIL", "STATE"), rows=rows)
        code = DONE if versions else NOTHING_KNOWN
        return Result(data=versions, text=table, count=len(versions), code=code)

    return run(ctx, work)


@command("remember")
@click.argument("text")
@category_option
@context_option
@click.pass_context
def remember_command(ctx: click.Context, text: str, category: Category, context: str | None) -> int:
    """Keep one thing known about the user, in a sentence.

    Saying it again changes nothing. TEXT "-" reads stdin.
    """
    said = text_or_stdin(text)

    async def work(desk: Desk) -> Result:
        memory = await desk.user.remember(said, category=category, context=context)
        desk.output.say(f"remembered for {desk.settings.user!r} ({memory.visibility})")
        return Result(data=memory, count=1)

    return run(ctx, work)


def _kept(memory: Memory, user: str) -> str:
    from echoic.memory.sharing import REASONS

    said = f"kept {memory.key!r} for {user!r}"
    why = f": {REASONS[memory.reason]}" if memory.reason is not None else ""
    left_out = f", without {', '.join(memory.redacted)}" if memory.redacted else ""
    if memory.visibility == "global":
        return f"{said} and everyone of the deployment (global{left_out}{why})"
    if memory.visibility == "proposed":
        return f"{said} (proposed to everyone{why}; `echoic proposals` lists what waits)"
    return f"{said} (private{why})"


def _nothing(desk: Desk, where: str) -> str:
    settings = desk.settings
    of = f"of user {settings.user!r} in deployment {settings.deployment!r}"
    return " ".join(["nothing is known", *([where] if where else []), of])


__all__ = [
    "delete_command",
    "get_command",
    "history_command",
    "list_command",
    "remember_command",
    "set_command",
]
