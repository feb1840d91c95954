"""Commands for what agents learned by serving people. For operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from echoic.cli.command import Group
from echoic.cli.exits import DONE, NOTHING_KNOWN
from echoic.cli.output import Result, Table
from echoic.cli.proposals import by_option
from echoic.cli.running import Desk, run
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.memory.experience import AgentExperience


@click.group("lessons", cls=Group, invoke_without_command=True)
@click.pass_context
def lessons_group(ctx: click.Context) -> int:
    """List, approve, reject or withdraw what agents learned.

    A lesson is in no prompt before it was approved. For operators. Without a command it lists.
    """
    return _list(ctx) if ctx.invoked_subcommand is None else DONE


@lessons_group.command("list")
@click.pass_context
def list_lessons(ctx: click.Context) -> int:
    """Print the lessons of all agents of the deployment.

    Columns: id, agent, state, how often it was taught, kind, text.
    """
    return _list(ctx)


@lessons_group.command("approve")
@click.argument("lesson_id", metavar="ID")
@by_option
@click.pass_context
def approve_lesson(ctx: click.Context, lesson_id: str, by: str | None) -> int:
    """Let the agent use a lesson, whoever it serves."""

    async def work(desk: Desk) -> Result:
        lesson = await (await _learned(desk, lesson_id)).adopt(lesson_id, by=by)
        desk.output.say("approved; it is in the agent's next prompt")
        return Result(data=lesson, count=1)

    return run(ctx, work)


@lessons_group.command("reject")
@click.argument("lesson_id", metavar="ID")
@by_option
@click.pass_context
def reject_lesson(ctx: click.Context, lesson_id: str, by: str | None) -> int:
    """Destroy a lesson. If it is taught again it waits again."""

    async def work(desk: Desk) -> Result:
        await (await _learned(desk, lesson_id)).remove(lesson_id, by=by)
        desk.output.say("rejected")
        return Result(data={"rejected": lesson_id}, count=1)

    return run(ctx, work)


@lessons_group.command("withdraw")
@click.argument("lesson_id", metavar="ID")
@by_option
@click.pass_context
def withdraw_lesson(ctx: click.Context, lesson_id: str, by: str | None) -> int:
    """Let the agent use a lesson no longer, however often it is taught again."""

    async def work(desk: Desk) -> Result:
        lesson = await (await _learned(desk, lesson_id)).withdraw(lesson_id, by=by)
        desk.output.say("withdrawn; it is in no prompt any more")
        return Result(data=lesson, count=1)

    return run(ctx, work)


async def _learned(desk: Desk, lesson_id: str) -> AgentExperience:
    """What was learned by the agent that has this lesson.

    Raises:
        InvalidInput: no agent has it.
    """
    for agent in await desk.memory.agents_with_lessons(desk.settings.deployment):
        learned = desk.memory.experience(agent, desk.settings.deployment)
        if any(lesson.id == lesson_id for lesson in (await learned.get()).lessons):
            return learned
    raise InvalidInput("there is no lesson of this id; `echoic lessons` lists them")


def _list(ctx: click.Context) -> int:
    async def work(desk: Desk) -> Result:
        deployment = desk.settings.deployment
        agents = await desk.memory.agents_with_lessons(deployment)
        learned = [await desk.memory.experience(agent, deployment).get() for agent in agents]
        if not learned:
            desk.output.say(f"no agent learned anything in deployment {deployment!r}")
        rows = [
            (lesson.id, known.agent, lesson.state, str(lesson.times), lesson.kind, lesson.text)
            for known in learned
            for lesson in known.lessons
        ]
        table = Table(headings=("ID", "AGENT", "STATE", "TIMES", "KIND", "TEXT"), rows=rows)
        code = DONE if rows else NOTHING_KNOWN
        return Result(data=learned, text=table, count=len(rows), code=code)

    return run(ctx, work)


__all__ = ["lessons_group"]
