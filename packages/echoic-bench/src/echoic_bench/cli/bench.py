"""The commands that measure. What is measured, and how, is `echoic_bench`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.cli.asyncio_runner import run_apart
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import DONE, UNEXPECTED, CommandResult, Output, Table
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput
from echoic_bench.cli import embedder_of
from echoic_bench.cli.corpus import corpus_command
from echoic_bench.cli.sidecar import sidecar_command

if TYPE_CHECKING:
    from echoic_bench.labelled import Dataset
    from echoic_bench.metrics import Interval, Tally

_PATH = click.argument("path", type=click.Path(path_type=Path))
_FACTS = click.option(
    "--facts", is_flag=True, help="Search facts: LoCoMo's observations, memories of JSON lines."
)
_MIXED = click.option(
    "--mixed", is_flag=True, help="Search turns and facts in one store, as after learning (LoCoMo)."
)
_CACHE = click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep what was embedded here, for the next run.",
)
_PLOTS = click.option(
    "--plots", type=click.Path(path_type=Path), metavar="DIR", help="Draw PNG and SVG into this folder."
)
_VECTORS_ONLY = click.option(
    "--vectors-only", is_flag=True, help="Leave out word pieces, which no remote embedder hands out."
)
_COLUMNS = ("R@5", "R@10", "nDCG@10", "session R@5", "hit@1", "MRR")


def _fusions(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        "--fusions",
        default=default,
        show_default=True,
        metavar="NAMES",
        callback=lambda _ctx, _option, value: _named(value),
        help="Who is asked, the first compared with the others: blend, rrf, text, vector.",
    )


@click.group("bench", cls=CommandGroup)
def bench_group() -> int:
    """Measure recall, speed and hearing, and compare with others.

    Everything is made and measured in stores of its own; --store is not touched. Nothing is sent anywhere.
    """
    return DONE


@command("recall")
@_PATH
@_fusions("blend,rrf,text,vector")
@_FACTS
@_MIXED
@_VECTORS_ONLY
@_CACHE
@_PLOTS
@click.pass_context
def recall_command(
    ctx: click.Context,
    *,
    path: Path,
    fusions: Sequence[str],
    facts: bool,
    mixed: bool,
    vectors_only: bool,
    cache: Path | None,
    plots: Path | None,
) -> int:
    """Count what is found of labelled questions.

    PATH is LoCoMo's JSON, JSON lines, or a folder of such files. JSON lines hold turns, memories and
    questions, one a line:

    \b
    {"user": "ana", "speaker": "user", "text": "I moved to Leeds.", "id": "t1", "conversation": "c1"}
    {"user": "ana", "text": "Leeds", "key": "home_city", "id": "m1"}
    {"user": "ana", "text": "Where do I live?", "evidence": ["t1", "m1"], "category": "home"}

    Percent, with what the first fusion finds more than each other one, and the 95 % interval of that. LEAKS
    are hits of another user; with any the exit code is 70.
    """  # noqa: D301 - the mark of click is the character itself

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.corpus import corpus_of
        from echoic_bench.reading import read
        from echoic_bench.recall import measure_recall

        dataset = read(path, facts=facts, mixed=mixed)
        with output.progress("embedding") as progress:
            async with corpus_of(
                dataset, embedder_of(settings, vectors_only=vectors_only), cache, progress
            ) as corpus:
                found = await measure_recall(corpus, fusions, progress)
        if plots:
            from echoic_bench.plots import plot_recall

            _drawn(output, plot_recall(found, plots))
        rows = [row for name, tally in found.tallies.items() for row in _rows(name, dataset, tally)]
        rows += [_gain(f"{found.first} over {name}", by_metric) for name, by_metric in found.gains().items()]
        return _result(found.as_json(), ("FUSION", "KIND", "N"), rows, count=dataset.questions)

    return run_apart(ctx, work)


@command("keyvalue")
@click.option("--people", type=click.IntRange(1), default=500, show_default=True, metavar="N")
@click.option("--turns", type=click.IntRange(2), default=100, show_default=True, metavar="N", help="Of each.")
@_fusions("blend,rrf,text,vector")
@_CACHE
@click.pass_context
def keyvalue_command(
    ctx: click.Context, *, people: int, turns: int, fusions: Sequence[str], cache: Path | None
) -> int:
    """Ask made-up callers for what they told under keys.

    Each told fifteen things, many corrected, among calls about other matters. Questions come in the words of
    the key (plain) and in others (paraphrased). Needs no data: the callers are the same everywhere.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.keyvalue import measure_keyvalue

        with output.progress("asking") as progress:
            found = await measure_keyvalue(
                embedder_of(settings),
                people=people,
                turns=turns,
                fusions=fusions,
                folder=cache,
                progress=progress,
            )
        recall, updates = found.recall, found.updates
        dataset = recall.corpus.dataset
        rows = [row for name, tally in recall.tallies.items() for row in _rows(name, dataset, tally)]
        output.say(
            f"what holds before what held: {100 * updates.share:.2f} % of {updates.found} corrected values"
        )
        return _result(found.as_json(), ("FUSION", "KIND", "N"), rows, count=dataset.questions)

    return run_apart(ctx, work)


@command("noise")
@_PATH
@_fusions("blend")
@click.option(
    "--misheard",
    type=click.Choice(["questions", "transcripts"]),
    default="questions",
    show_default=True,
    help="What is misheard; the other stays as it was said.",
)
@_FACTS
@_VECTORS_ONLY
@_CACHE
@_PLOTS
@click.pass_context
def noise_command(
    ctx: click.Context,
    *,
    path: Path,
    fusions: Sequence[str],
    misheard: str,
    facts: bool,
    vectors_only: bool,
    cache: Path | None,
    plots: Path | None,
) -> int:
    """Count what is found when a recogniser mishears.

    In four strengths: clean, every name misheard, and a word error rate of about 13 and of about 24 %. The
    errors are made up, sound alike, and are the same at every run; WER is the rate that was reached. PATH is
    as for `echoic bench recall`.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.hearing import HEARD, measure_noise
        from echoic_bench.reading import read

        dataset = read(path, facts=facts)
        with output.progress("asking") as progress:
            found = await measure_noise(
                dataset,
                embedder_of(settings, vectors_only=vectors_only),
                fusions=fusions,
                heard=HEARD[0] if misheard == HEARD[0] else HEARD[1],
                folder=cache,
                progress=progress,
            )
        if plots:
            from echoic_bench.plots import plot_noise

            _drawn(output, plot_noise(found, plots))
        rows = [
            [name, strength, f"{100 * found.errors[strength].rate:.1f}", *_figures(tally)]
            for name, by_strength in found.tallies.items()
            for strength, tally in by_strength.items()
        ]
        return _result(found.as_json(), ("FUSION", "STRENGTH", "WER"), rows, count=dataset.questions)

    return run_apart(ctx, work)


@command("silence")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--split",
    type=click.Choice(["train", "dev", "test"]),
    default="dev",
    show_default=True,
    help="Of the telephone corpus, where no PATH is given.",
)
@click.option(
    "--lines",
    type=click.Choice(["choosing", "measuring"]),
    default="choosing",
    show_default=True,
    help="Which half of the remarks and general questions is asked.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    metavar="N",
    help="Questions of each kind and user.",
)
@_VECTORS_ONLY
@_CACHE
@click.pass_context
def silence_command(
    ctx: click.Context,
    *,
    path: Path | None,
    split: str,
    lines: str,
    most: int,
    vectors_only: bool,
    cache: Path | None,
) -> int:
    """Count how often nothing is said where nothing is known, and what that costs.

    Every user is asked their own questions, questions about the others' lives with names replaced, questions
    without an answer, remarks such as "okay", and general knowledge. PATH is as for `echoic bench recall`;
    without it the callers of echoic-corpus are asked, which must be installed. A row a floor: how much R@10
    it loses, and how much of each kind it meets with silence, in percent. The floor that holds by default
    is marked.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.labelled import checked
        from echoic_bench.offtopic import CHOOSING, MEASURING
        from echoic_bench.reading import read
        from echoic_bench.silence import measure_silence
        from echoic_bench.telephone import callers_of

        dataset = read(path) if path else checked(f"telephone-{split}", callers_of(split))
        with output.progress("asking") as progress:
            found = await measure_silence(
                dataset,
                embedder_of(settings, vectors_only=vectors_only),
                lines=CHOOSING if lines == "choosing" else MEASURING,
                most=most,
                folder=cache,
                progress=progress,
            )
        data = found.as_json()
        rows = [
            [
                f"{float(floor):.3f}{' default' if float(floor) in data['default'] else ''}",
                str(each["R@10 lost"]),
                *(str(each["silent"][kind]) for kind in found.kinds),
            ]
            for floor, each in data["floors"].items()
        ]
        rows.append(["AUROC", "", *(str(data["AUROC"][kind]) for kind in found.kinds)])
        output.say(f"R@10 {data['R@10']}, expected calibration error {data['expected calibration error']}")
        headings = ("FLOOR", "R@10 LOST", *(kind.upper() for kind in found.kinds))
        return CommandResult(data=data, text=Table(headings=headings, rows=rows), count=len(rows))

    return run_apart(ctx, work)


@command("latency")
@click.option("--sizes", default="1000,10000,100000", show_default=True, help="Turns that a memory holds.")
@click.option("--callers", default="1,4", show_default=True, help="How many ask at once.")
@click.option("--questions", type=click.IntRange(1), default=300, show_default=True, metavar="N")
@click.option(
    "--imported",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    metavar="N",
    help="Texts being embedded while questions are asked; 0: leave that out.",
)
@click.option(
    "--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="On the disk to measure."
)
@_PLOTS
@click.pass_context
def latency_command(
    ctx: click.Context,
    *,
    sizes: str,
    callers: str,
    questions: int,
    imported: int,
    folder: Path | None,
    plots: Path | None,
) -> int:
    """Time recalls and durable writes over a real store.

    End to end in one process: with the question encoded, and once more with its encoding remembered; then
    while the texts of an import are being embedded, and when they are. The store is made for the measurement
    and gone afterwards. Milliseconds.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.latency import measure_latency

        with output.progress("filling") as progress:
            found = await measure_latency(
                embedder_of(settings),
                sizes=_numbers("--sizes", sizes),
                callers=_numbers("--callers", callers),
                questions=questions,
                imported=imported,
                folder=folder,
                progress=progress,
            )
        if plots:
            from echoic_bench.plots import plot_latency

            _drawn(output, plot_latency(found, plots))
        rows = [row for one in found for row in _times(str(one.memories), one.as_json())]
        headings = ("TURNS", "WHAT", "CALLERS", "P50", "P95", "P99")
        table = Table(headings=headings, rows=rows)
        return CommandResult(data=[one.as_json() for one in found], text=table, count=len(rows))

    return run_apart(ctx, work)


@command("peers")
@_PATH
@click.option(
    "--peers",
    "names",
    default="mem0,chroma,langgraph",
    show_default=True,
    metavar="NAMES",
    callback=lambda _ctx, _option, value: _named(value),
    help="Whom to compare with.",
)
@click.option(
    "--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="On the disk to measure."
)
@_FACTS
@_PLOTS
@click.pass_context
def peers_command(
    ctx: click.Context,
    *,
    path: Path,
    names: Sequence[str],
    folder: Path | None,
    facts: bool,
    plots: Path | None,
) -> int:
    """Compare with mem0, Chroma and LangGraph's store.

    The same texts, vectors and questions in one run, each in its durable form where it has one, the encoding
    not counted. Times are milliseconds of a search for ten. What is not installed is left out, and said. PATH
    is as for `echoic bench recall`.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic_bench.peers.comparing import measure_peers
        from echoic_bench.reading import read

        dataset = read(path, facts=facts)
        with output.progress("searching") as progress:
            found = await measure_peers(
                dataset, embedder_of(settings), names=names, folder=folder, progress=progress
            )
        for name, why in found.left_out.items():
            output.note(f"without {name}: {why}")
        if plots:
            from echoic_bench.plots import plot_peers

            _drawn(output, plot_peers(found, plots))
        rows = [
            [p.about.name, f"{p.search['p50_ms']:.2f}", f"{p.search['p95_ms']:.2f}", *_figures(p.tally)]
            for p in found.every
        ]
        return _result(found.as_json(), ("NAME", "P50", "P95"), rows, count=dataset.questions)

    return run_apart(ctx, work)


def _named(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _numbers(flag: str, value: str) -> list[int]:
    try:
        return [int(number) for number in _named(value)]
    except ValueError:
        raise InvalidInput(f"{flag} takes whole numbers with commas between, not {value!r:.40}") from None


def _drawn(output: Output, paths: Sequence[Path]) -> None:
    output.say(f"drawn: {', '.join(map(str, paths))}")


def _figures(tally: Tally, category: str | None = None) -> list[str]:
    percent = tally.percent(category)
    return [*(f"{percent[metric]:.1f}" for metric in _COLUMNS), str(tally.leaks)]


def _rows(name: str, dataset: Dataset, tally: Tally) -> list[list[str]]:
    """A system's figures over all questions and by kind."""
    rows = [[name, "all", str(dataset.questions), *_figures(tally)]]
    kinds = [kind for kind in dataset.categories if kind]
    return rows + [
        [name, kind, str(len(tally.of("R@10", kind))), *_figures(tally, kind)[:-1], ""] for kind in kinds
    ]


def _gain(name: str, by_metric: Mapping[str, Interval]) -> list[str]:
    points = [by_metric[metric].points() for metric in _COLUMNS]
    return [name, "all", "", *(f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" for mean, low, high in points), ""]


def _times(size: str, found: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for what in ("recall, question encoded", "recall, encoding excluded"):
        for callers, times in found[what].items():
            rows.append([size, what, callers, *_percentiles(times)])
    others = ("first recall of a user", "durable write", "recall during an import", "recall after it")
    return rows + [[size, what, "1", *_percentiles(found[what])] for what in others if what in found]


def _percentiles(times: Mapping[str, float]) -> list[str]:
    return [f"{times[name]:.2f}" for name in ("p50_ms", "p95_ms", "p99_ms")]


def _result(
    data: Mapping[str, Any], first: Sequence[str], rows: Sequence[Sequence[str]], *, count: int
) -> CommandResult:
    headings = (*first, *(metric.upper() for metric in _COLUMNS), "LEAKS")
    # a leak is a fault in Echoic, whatever else was found
    code = UNEXPECTED if cast("int", data["leaks"]) else DONE
    return CommandResult(data=data, text=Table(headings=headings, rows=rows), count=count, code=code)


bench_group.add_section(
    "Measure",
    [
        recall_command,
        keyvalue_command,
        silence_command,
        noise_command,
        latency_command,
        peers_command,
        corpus_command,
        sidecar_command,
    ],
)

__all__ = ["bench_group"]
