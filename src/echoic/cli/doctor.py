"""The command that tries everything once, and says what to do about what does not work."""

from __future__ import annotations

from collections.abc import Sequence

import click

from echoic.cli.checkup import Checkup, Step
from echoic.cli.command import command
from echoic.cli.exits import COULD_NOT_LOOK, DONE
from echoic.cli.output import Output, Result
from echoic.cli.plain import harmless
from echoic.cli.running import run_apart
from echoic.cli.settings import Settings

_MARKS = {True: "✔", False: "✘", None: "–"}


@command("doctor")
@click.pass_context
def doctor_command(ctx: click.Context) -> int:
    """Try everything once, for real, and say what to do.

    It embeds, sets, reopens, gets, queries, forgets, and looks whether it is gone. It uses the store and
    embedder that --store and --embedder name, under a user of its own that is erased again. Each step says
    how long it took, and each that fails the one thing to do about it. Exit code 0 only if every step
    worked.
    """

    async def work(settings: Settings, output: Output) -> Result:
        checkup = Checkup(settings)
        with output.progress("trying"):
            await checkup.run()
        count = sum(bool(step.well) for step in checkup.steps)
        code = DONE if checkup.well else COULD_NOT_LOOK
        return Result(data=checkup.steps, text="\n".join(_lines(checkup.steps)), count=count, code=code)

    return run_apart(ctx, work)


def _lines(steps: Sequence[Step]) -> list[str]:
    width = max(len(step.name) for step in steps)
    lines = []
    for step in steps:
        timing = "" if step.well is None else f"{step.ms:8.1f} ms"
        line = f"{_MARKS[step.well]} {step.name:<{width}} {timing:>11}  {harmless(step.detail)}"
        lines += [line.rstrip()]
        lines += [f"  → {harmless(step.advice)}"] if step.advice else []
    return lines


__all__ = ["doctor_command"]
