"""The command that fits the weights of the ranking to somebody's own labelled questions."""

from __future__ import annotations

from pathlib import Path

import click

from echoic.cli.asyncio_runner import run_apart
from echoic.cli.command import command
from echoic.cli.output import DONE, NOTHING_KNOWN, CommandResult, Output
from echoic.cli.settings import Settings
from echoic_bench.cli import embedder_of


@command("tune")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("echoic-weights.json"),
    show_default=True,
    metavar="FILE",
    help="Where the weights are written, if they help.",
)
@click.option("--facts", is_flag=True, help="Search facts: LoCoMo's observations, memories of JSON lines.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep what was embedded here, for the next run.",
)
@click.pass_context
def tune_command(ctx: click.Context, *, path: Path, out: Path, facts: bool, cache: Path | None) -> int:
    """Fit the ranking to your own labelled questions.

    PATH is as for `echoic bench recall`. A user, or with few users a session, is left out at a time, and what
    is gained is measured on what was left out. If the gain is significant, the weights are written to a file
    that `--fusion FILE` uses. If not, keep the defaults: no file is written, and the exit code is 1.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.asked import asked_of
        from echoic_bench.corpus import corpus_of
        from echoic_bench.reading import read
        from echoic_bench.tuning import check_place, tune, write_weights

        check_place(out)  # fitting takes minutes, and what it found would be lost
        dataset = read(path, facts=facts)
        with output.progress("asking") as progress:
            async with corpus_of(dataset, embedder_of(settings), cache, progress) as corpus:
                asked = await asked_of(corpus, progress)
        with output.progress("fitting, a part left out at a time") as progress:
            tuned = tune(asked, progress)
        found = tuned.as_json()
        if tuned.helps:
            write_weights(out, tuned)
            found["file"] = str(out)
            output.say(f"written to {out}")
        changed = [f"{name}\t{value:g}" for name, value in found["changed"].items()] if tuned.helps else []
        text = "\n".join([tuned.verdict, *changed])
        return CommandResult(
            data=found, text=text, count=len(changed), code=DONE if tuned.helps else NOTHING_KNOWN
        )

    return run_apart(ctx, work)


__all__ = ["tune_command"]
