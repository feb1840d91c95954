"""The command that takes in what others kept."""

from __future__ import annotations

from typing import Any

import click

from echoic.cli.command import command
from echoic.cli.exits import DONE, PARTLY
from echoic.cli.importers import READERS, Source, format_of, reader_of, source_at
from echoic.cli.importers.base import Reader
from echoic.cli.intake import Intake, Survey, Whose, survey_of
from echoic.cli.output import Output, Result
from echoic.cli.running import Desk, run, run_apart
from echoic.cli.settings import Settings, settings_of
from echoic.cli.upkeep import embed_waiting

_SAID = 20
"""Reasons printed of what was skipped."""


@command("import")
@click.argument("file")
@click.option(
    "--from",
    "kind",
    type=click.Choice(["auto", *READERS]),
    default="auto",
    show_default=True,
    help="The format of FILE.",
)
@click.option("--facts", is_flag=True, help="LoCoMo: take in its observations, written by a model, as facts.")
@click.option("--dry-run", is_flag=True, help="Only count what is there; no store is opened.")
@click.pass_context
def import_command(ctx: click.Context, file: str, kind: str, facts: bool, dry_run: bool) -> int:
    """Take in turns, memories, or an export of ours.

    FILE "-" is stdin.

    \b
    turns   JSON lines: speaker, text, and if known said_at, conversation, id, heard, confidence
    locomo  the LoCoMo data set: a user for each sample
    bodhi   <userId>.json of Bodhi's memory store, or a folder of them
    mem0    memories as mem0's get_all or export gives them
    echoic  what `echoic export` gave

    What is taken in belongs to the user that --user or ECHOIC_USER names; without one, to the user the file
    names. Importing twice adds nothing. What cannot be read is left out and reported, and the exit code is 3.
    """  # noqa: D301 - the \\b is click's
    source = source_at(file)
    name = format_of(source) if kind == "auto" else kind
    reader = reader_of(name, facts=facts)
    settings = settings_of(ctx)
    whose = Whose(user=settings.user, chosen="user" in settings.named)

    async def look(_settings: Settings, output: Output) -> Result:
        survey = _survey(source, reader, output)
        whose.check(survey)
        return _result(name, survey, {})

    async def work(desk: Desk) -> Result:
        survey = _survey(source, reader, desk.output)
        whose.check(survey)
        intake = Intake(desk.memory, desk.settings.deployment, whose)
        with desk.output.progress("keeping") as progress:
            await intake.take_in(reader(source), progress, survey.items)
        await intake.listen()
        waiting = await embed_waiting(desk.memory, desk.output, "embedding")
        return _result(name, survey, {"new": intake.new, "learned": intake.learned, "waiting": waiting})

    return run_apart(ctx, look) if dry_run else run(ctx, work)


def _survey(source: Source, reader: Reader, output: Output) -> Survey:
    with output.progress(f"reading {source.name}") as progress:
        survey = survey_of(reader(source), progress)
    for skipped in survey.reasons[:_SAID]:
        output.say(f"left out {skipped.where}: {skipped.reason}")
    if survey.skipped > _SAID:
        output.say(f"left out {survey.skipped - _SAID} more; --json lists them")
    return survey


def _result(name: str, survey: Survey, written: dict[str, int]) -> Result:
    counts: dict[str, Any] = {
        "format": name,
        "users": len(survey.users),
        "conversations": len(survey.conversations),
        "turns": survey.turns,
        "memories": survey.memories,
        "skipped": survey.skipped,
        **written,
    }
    text = "\n".join(f"{what}\t{value}" for what, value in counts.items())
    data = {**counts, "reasons": survey.reasons}
    code = PARTLY if survey.skipped else DONE
    return Result(data=data, text=text, count=survey.turns + survey.memories, code=code)


__all__ = ["import_command"]
