"""Figures as pictures: bars with intervals, curves over noise and size. PNG and SVG, by matplotlib.

Needs an extra: pip install 'echoic-bench[plots]'. Colours are Okabe and Ito's, which everybody can tell
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from echoic.errors import InvalidInput
from echoic_bench.hearing import NoiseFound
from echoic_bench.latency import LatencyFound
from echoic_bench.metrics import Tally, interval
from echoic_bench.peers.comparing import Comparison
from echoic_bench.recall import RecallFound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
FORMATS = ("png", "svg")
_METRICS = ("R@5", "R@10", "nDCG@10", "session R@5", "hit@1")
_DPI = 144


def plot_recall(found: RecallFound, folder: Path) -> list[Path]:
    """Bars of every fusion, with 95 % intervals: over all questions, and R@10 by their kind."""
    figure = _figure(2)
    overall, by_kind = figure.subplots(1, 2)
    _bars(overall, {name: [_with_error(t, m) for m in _METRICS] for name, t in found.tallies.items()})
    _label(overall, _METRICS, f"{found.corpus.dataset.name}, {found.corpus.dataset.questions} questions")
    kinds = found.corpus.dataset.categories
    _bars(by_kind, {n: [_with_error(t, "R@10", kind) for kind in kinds] for n, t in found.tallies.items()})
    _label(by_kind, kinds, "R@10 by kind of question")
    figure.legend(*overall.get_legend_handles_labels(), loc="outside lower center", ncols=len(COLOURS))
    return _save(figure, folder, f"recall-{found.corpus.dataset.name}")


def plot_noise(found: NoiseFound, folder: Path) -> list[Path]:
    """R@10 of every fusion over the strengths of mishearing."""
    figure = _figure(1)
    axes = figure.subplots()
    names = [f"{name}\n{100 * errors.rate:.0f} % WER" for name, errors in found.errors.items()]
    for colour, (fusion, by_strength) in zip(COLOURS, found.tallies.items(), strict=False):
        points = [_with_error(tally, "R@10") for tally in by_strength.values()]
        means = [mean for mean, _, _ in points]
        axes.errorbar(names, means, yerr=_errors(points), label=fusion, color=colour, marker="o", capsize=3)
    axes.set_ylim(0, 100)
    axes.set_ylabel("R@10, percent")
    axes.set_title(f"{found.dataset.name}: {found.heard} misheard")
    axes.legend(loc="lower left")
    return _save(figure, folder, f"noise-{found.heard}-{found.dataset.name}")


def plot_latency(found: Sequence[LatencyFound], folder: Path) -> list[Path]:
    """p50 and p95 of a recall over the size of a memory, by callers at once, on logarithmic axes."""
    figure = _figure(2)
    for axes, what in zip(figure.subplots(1, 2, sharey=True), ("encoded", "repeated"), strict=True):
        for colour, callers in zip(COLOURS, found[0].encoded, strict=False):
            for percentile, style in (("p50_ms", "-"), ("p95_ms", "--")):
                values = [getattr(one, what)[callers][percentile] for one in found]
                label = f"{callers} at once, {percentile[:3]}"
                sizes = [one.memories for one in found]
                axes.plot(sizes, values, style, color=colour, marker="o", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("turns of one user")
        axes.set_ylabel("ms")
        axes.set_title("question encoded" if what == "encoded" else "encoding excluded")
        axes.grid(alpha=0.3)
        axes.legend()
    return _save(figure, folder, "latency")


def plot_peers(found: Comparison, folder: Path) -> list[Path]:
    """What each finds, with 95 % intervals, and how long a search takes."""
    figure = _figure(2)
    finds, takes = figure.subplots(1, 2)
    compared = found.every
    tallies = {one.about.name: one.tally for one in compared}
    _bars(finds, {name: [_with_error(tally, m) for m in _METRICS] for name, tally in tallies.items()})
    _label(finds, _METRICS, f"{found.dataset.name}, {found.dataset.questions} questions")
    figure.legend(*finds.get_legend_handles_labels(), loc="outside lower center", ncols=len(COLOURS))
    times = {one.about.name: [(one.search[p], 0.0, 0.0) for p in _TIMES] for one in compared}
    _bars(takes, times)
    _label(takes, [name.removesuffix("_ms") for name in _TIMES], "search, encoding excluded", "ms")
    takes.set_ylim(auto=True)
    takes.set_yscale("log")
    return _save(figure, folder, f"peers-{found.dataset.name}")


_TIMES = ("p50_ms", "p95_ms", "p99_ms")
_Point = tuple[float, float, float]
"""A mean, and how far its interval reaches below and above."""


def _with_error(tally: Tally, metric: str, category: str | None = None) -> _Point:
    mean, low, high = interval(tally.of(metric, category)).points()
    return mean, mean - low, high - mean


def _errors(points: Sequence[_Point]) -> list[list[float]]:
    return [[max(0.0, low) for _, low, _ in points], [max(0.0, high) for _, _, high in points]]


def _bars(axes: Axes, series: Mapping[str, Sequence[_Point]]) -> None:
    width = 0.8 / max(1, len(series))
    for number, (colour, (name, points)) in enumerate(zip(COLOURS, series.items(), strict=False)):
        at = [place + width * (number - (len(series) - 1) / 2) for place in range(len(points))]
        means = [mean for mean, _, _ in points]
        error = _errors(points) if any(low or high for _, low, high in points) else None
        axes.bar(at, means, width, yerr=error, label=name, color=colour, capsize=2)


def _label(axes: Axes, names: Sequence[str], title: str, unit: str = "percent") -> None:
    axes.set_xticks(range(len(names)), names, rotation=0 if len(names) < 6 else 30)
    axes.set_title(title)
    axes.set_ylabel(unit)
    if unit == "percent":
        axes.set_ylim(0, 100)


def _figure(panels: int) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InvalidInput(
            "plots need a package that is not installed: pip install 'echoic-bench[plots]'"
        ) from error
    figure = Figure(figsize=(6 * panels, 4), layout="constrained")
    FigureCanvasAgg(figure)  # without a display, and without the state that pyplot keeps
    return figure


def _save(figure: Figure, folder: Path, name: str) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}.{ending}" for ending in FORMATS]
        for path in paths:
            stamp: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=_DPI, metadata=stamp)
    except OSError as error:
        raise InvalidInput(f"plots cannot be written to {str(folder)!r}: {error.strerror}") from error
    return paths


__all__ = ["FORMATS", "plot_latency", "plot_noise", "plot_peers", "plot_recall"]
