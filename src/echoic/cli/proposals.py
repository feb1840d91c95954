"""Commands for what callers would have all know. For operators."""

from __future__ import annotations

import click

from echoic.cli.command import Group
from echoic.cli.exits import DONE, NOTHING_KNOWN
from echoic.cli.output import Result, Table
from echoic.cli.plain import moment
from echoic.cli.running import Desk, run

by_option = click.option("--by", metavar="NAME", help="Who decides, for `echoic proposals decisions`.")


@click.group("proposals", cls=Group, invoke_without_command=True)
@click.pass_context
def proposals_group(ctx: click.Context) -> int:
    """List, approve or reject what callers would have all know.

    That is what callers said that is about no person. For operators. Without a command it lists. What all
    know already: `echoic global`.
    """
    return _list(ctx) if ctx.invoked_subcommand is None else DONE


@proposals_group.command("list")
@click.pass_context
def list_proposals(ctx: click.Context) -> int:
    """Print what waits, oldest first.

    Columns: id, key, text as all would see it, what was left out, since when.
    """
    return _list(ctx)


@proposals_group.command("approve")
@click.argument("proposal_id", metavar="ID")
@by_option
@click.pass_context
def approve_proposal(ctx: click.Context, proposal_id: str, by: str | None) -> int:
    """Make a proposal global.

    It supersedes what was approved under its key before.
    """

    async def work(desk: Desk) -> Result:
        approved = await desk.memory.proposals(desk.settings.deployment).approve(proposal_id, by=by)
        desk.output.say(f"{approved.key!r} is global in deployment {desk.settings.deployment!r}")
        return Result(data=approved, count=1)

    return run(ctx, work)


@proposals_group.command("reject")
@click.argument("proposal_id", metavar="ID")
@by_option
@click.pass_context
def reject_proposal(ctx: click.Context, proposal_id: str, by: str | None) -> int:
    """Remove a proposal.

    Its author keeps what they said as their own.
    """

    async def work(desk: Desk) -> Result:
        await desk.memory.proposals(desk.settings.deployment).reject(proposal_id, by=by)
        desk.output.say("rejected; its author keeps it")
        return Result(data={"rejected": proposal_id}, count=1)

    return run(ctx, work)


@proposals_group.command("decisions")
@click.pass_context
def list_decisions(ctx: click.Context) -> int:
    """Print who decided what about facts and lessons, oldest first.

    Columns: when, who, what, of what, its key or agent, its text.
    """

    async def work(desk: Desk) -> Result:
        decided = await desk.memory.proposals(desk.settings.deployment).decisions()
        if not decided:
            desk.output.say(f"nothing was decided in deployment {desk.settings.deployment!r}")
        rows = [(moment(d.at), d.by, d.what, d.of, d.key, d.text or "") for d in decided]
        table = Table(headings=("WHEN", "BY", "WHAT", "OF", "KEY", "TEXT"), rows=rows)
        code = DONE if decided else NOTHING_KNOWN
        return Result(data=decided, text=table, count=len(decided), code=code)

    return run(ctx, work)


def _list(ctx: click.Context) -> int:
    async def work(desk: Desk) -> Result:
        waiting = await desk.memory.proposals(desk.settings.deployment).list()
        if not waiting:
            desk.output.say(f"no proposals wait in deployment {desk.settings.deployment!r}")
        rows = [(m.id, m.key or "", m.text, ",".join(m.redacted), moment(m.valid_from)) for m in waiting]
        table = Table(headings=("ID", "KEY", "TEXT", "REDACTED", "SINCE"), rows=rows)
        code = DONE if waiting else NOTHING_KNOWN
        return Result(data=waiting, text=table, count=len(waiting), code=code)

    return run(ctx, work)


__all__ = ["by_option", "proposals_group"]
