"""The command that plays the voice-memory corpus; what is measured is `echoic_bench.voice_corpus`'s."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from echoic.cli.asyncio_runner import run_apart
from echoic.cli.command import command
from echoic.cli.output import DONE, UNEXPECTED, CommandResult, Output
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput
from echoic_bench.cli import embedder_of


@command("corpus")
@click.option("--split", type=click.Choice(["train", "dev", "test"]), default="dev", show_default=True)
@click.option("--callers", default="", metavar="IDS", help="Only these of the split, as c49,c50.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N of them.")
@click.option(
    "--systems", default="", metavar="NAMES", help="Only these, with semicolons between; by default all."
)
@click.option("--versions", default="clean,wer10,wer20", show_default=True, help="Of what was said.")
@click.option("--learning", is_flag=True, help="Ask no questions: only what is learned, in minutes.")
@click.option("--sidecar", metavar="URL", help="One more system, which speaks the sidecar protocol there.")
@click.option(
    "--data", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Another corpus's folder."
)
@click.option(
    "--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="On the disk to measure."
)
@click.option("--plots", type=click.Path(path_type=Path), metavar="DIR", help="Draw SVGs into this folder.")
@click.pass_context
def corpus_command(
    ctx: click.Context,
    *,
    split: str,
    callers: str,
    limit: int | None,
    systems: str,
    versions: str,
    learning: bool,
    sidecar: str | None,
    data: Path | None,
    folder: Path | None,
    plots: Path | None,
) -> int:
    """Play the voice-memory corpus to Echoic and to others.

    The calls of packages/echoic-corpus, as spoken and as two recognisers heard them: what is found, when
    nothing is returned, what is learned, kept secret, forgotten, and recalled though nobody heard it. mem0,
    Chroma, LangGraph's store, BM25 and the founding article's fusion get the same, at their defaults and at
    their best setting. Choose by `train` and `dev`; `test` is to report on.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        try:
            from echoic_bench.voice_corpus import SYSTEMS, Chosen, measure_corpus
            from echoic_corpus.report import charts, table
        except ImportError as error:
            raise InvalidInput(
                f"the corpus is a package of its own, and {error.name} is missing: in a checkout "
                "pip install ./packages/echoic-corpus"
            ) from error
        chosen = Chosen.of(split, _named(callers, ","), limit, data, ask=not learning)
        names = _named(systems, ";")
        with output.progress("callers") as progress:
            found = await measure_corpus(
                chosen,
                embedder_of(settings),
                systems=names or SYSTEMS,
                versions=_named(versions, ","),
                sidecar=sidecar,
                folder=folder,
                progress=progress,
            )
        for name, why in found["left out"].items():
            output.note(f"without {name}: {why}")
        if plots:
            draw(plots, charts(found))
        return CommandResult(
            data=found,
            text=table(found),
            count=found["questions"],
            code=UNEXPECTED if found["leaks"] else DONE,
        )

    return run_apart(ctx, work)


def draw(folder: Path, charts: Mapping[str, str]) -> None:
    """Write SVGs by name into `folder`.

    Raises:
        InvalidInput: it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, svg in charts.items():
            (folder / f"{name}.svg").write_text(svg, "utf-8")
    except OSError as error:
        raise InvalidInput(f"plots cannot be written to {str(folder)!r}: {error.strerror}") from error


def _named(value: str, between: str) -> list[str]:
    return [name.strip() for name in value.split(between) if name.strip()]


__all__ = ["corpus_command"]
