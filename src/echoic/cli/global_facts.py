"""Commands for what everyone of a deployment knows. For operators."""

from __future__ import annotations

import click

from echoic.cli.command import Group
from echoic.cli.exits import DONE, NOTHING_KNOWN, PARTLY
from echoic.cli.memories import category_option, context_option
from echoic.cli.output import Result, Table
from echoic.cli.plain import applying, moment
from echoic.cli.proposals import by_option
from echoic.cli.running import Desk, run, text_or_stdin
from echoic.types import Category, Memory

_SAID = 20
"""Lines printed of what was left out."""


@click.group("global", cls=Group, invoke_without_command=True)
@click.pass_context
def global_group(ctx: click.Context) -> int:
    """List, write, edit or withdraw what everyone knows.

    Every user of the deployment is told it. For operators. Without a command it lists.
    """
    return _list(ctx) if ctx.invoked_subcommand is None else DONE


@global_group.command("list")
@click.pass_context
def list_global(ctx: click.Context) -> int:
    """Print what everyone of the deployment knows, oldest first.

    Columns: id, key, text, since when, whether an operator wrote it, approved it, or it is global by itself.
    """
    return _list(ctx)


@global_group.command("set")
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option(
    "--from",
    "file",
    metavar="FILE",
    help='Take every fact of FILE instead ("-" is stdin): a line each, as text, Markdown bullets or JSON.',
)
@category_option
@context_option
@by_option
@click.pass_context
def set_global(
    ctx: click.Context,
    key: str | None,
    value: str | None,
    *,
    file: str | None,
    category: Category,
    context: str | None,
    by: str | None,
) -> int:
    """Let everyone know VALUE, under KEY, as it stands.

    What was global under KEY becomes history; setting it again edits it. VALUE "-" reads stdin.

    With --from, each line of FILE is a fact. A line of JSON may have key, text, category and context.
    The same file again changes nothing; what is global and not in it stays. What cannot be read is left out
    and reported, and the exit code is 3.
    """
    if file is not None:
        if key is not None or context is not None or category != "fact":
            raise click.UsageError("--from takes key, text, category and context from the file", ctx)
        return _fill(ctx, file, by)
    if key is None or value is None:
        raise click.UsageError("say what everyone shall know: KEY and VALUE, or --from FILE", ctx)
    text = text_or_stdin(value)

    async def work(desk: Desk) -> Result:
        facts = desk.memory.global_facts(desk.settings.deployment)
        kept = await facts.set(key, text, category=category, context=context, by=by)
        desk.output.say(f"{kept.key!r} is global in deployment {desk.settings.deployment!r}: {_why(kept)}")
        return Result(data=kept, count=1)

    return run(ctx, work)


@global_group.command("withdraw")
@click.argument("memory_id", metavar="ID")
@by_option
@click.pass_context
def withdraw_global(ctx: click.Context, memory_id: str, by: str | None) -> int:
    """Let nobody know what everyone knows.

    From the next question on nobody is told it. Nothing is global by itself under its key again.
    """

    async def work(desk: Desk) -> Result:
        gone = await desk.memory.global_facts(desk.settings.deployment).withdraw(memory_id, by=by)
        named = repr(gone.key) if gone.key is not None else f"the fact {gone.id}"
        desk.output.say(f"{named} is global no longer in deployment {desk.settings.deployment!r}")
        return Result(data=gone, count=1)

    return run(ctx, work)


def _fill(ctx: click.Context, file: str, by: str | None) -> int:
    from echoic.cli.importers.base import Skipped, source_at
    from echoic.cli.importers.facts import read_facts

    read = list(read_facts(source_at(file)))
    facts = [fact for fact in read if not isinstance(fact, Skipped)]
    skipped = [fact for fact in read if isinstance(fact, Skipped)]

    async def work(desk: Desk) -> Result:
        filled = await desk.memory.global_facts(desk.settings.deployment).fill(facts, by=by)
        for one in skipped[:_SAID]:
            desk.output.say(f"left out {one.where}: {one.reason}")
        if len(skipped) > _SAID:
            desk.output.say(f"left out {len(skipped) - _SAID} more; --json lists them")
        counts = {
            "new": filled.new,
            "changed": filled.changed,
            "unchanged": filled.unchanged,
            "skipped": len(skipped),
        }
        text = "\n".join(f"{what}\t{count}" for what, count in counts.items())
        data = {**counts, "reasons": skipped}
        return Result(data=data, text=text, count=len(facts), code=PARTLY if skipped else DONE)

    return run(ctx, work)


def _list(ctx: click.Context) -> int:
    async def work(desk: Desk) -> Result:
        known = await desk.memory.global_facts(desk.settings.deployment).list()
        if not known:
            desk.output.say(f"nothing is global in deployment {desk.settings.deployment!r}")
        rows = [(m.id, m.key or "", applying(m.text, m), moment(m.valid_from), _how(m)) for m in known]
        table = Table(headings=("ID", "KEY", "TEXT", "SINCE", "HOW"), rows=rows)
        return Result(data=known, text=table, count=len(known), code=DONE if known else NOTHING_KNOWN)

    return run(ctx, work)


def _how(memory: Memory) -> str:
    if memory.author is not None:
        return "by itself"
    return "written" if memory.reason == "operator" else "approved"


def _why(memory: Memory) -> str:
    from echoic.memory.sharing import REASONS

    return REASONS.get(memory.reason or "", "")


__all__ = ["global_group"]
