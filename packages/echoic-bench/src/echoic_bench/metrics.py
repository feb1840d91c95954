"""What a list of hits is worth against labelled evidence, and what a difference is worth. Pure.

Everything is counted question by question, so that two systems asked the same can be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from echoic_bench.labelled import Labelled, Question

DEPTH = 50
"""How many hits are asked for: MRR and R@50 look no further."""
CUTS = (5, 10, 20, 50)
METRICS = (*(f"R@{cut}" for cut in CUTS), "hit@1", "hit@10", "MRR", "nDCG@10", "session R@5")
"""R@k: share of the evidence among the first k hits. hit@k: whether any of it is. MRR: 1 / place of the
first, among the first 50. nDCG@10 (Järvelin and Kekäläinen 2002) with gains of 0 and 1. session R@5: share of
the evidence's sessions among the first five sessions the list reaches."""
DRAWS = 2000
CONFIDENCE = 0.95
_AT_ONCE = 4_000_000  # indices drawn at once: 32 MB
_SEED = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval: percentile bootstrap (Efron 1979) over questions."""

    mean: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """Whether zero and all below it lie outside."""
        return self.low > 0

    def points(self) -> list[float]:
        """[mean, low, high] in percentage points, rounded to a tenth."""
        return [round(100 * value, 1) for value in (self.mean, self.low, self.high)]


@dataclass
class Tally:
    """One system's figures, question by question."""

    rows: list[list[float]] = field(default_factory=list)
    """[questions][METRICS], from 0 to 1."""
    categories: list[str] = field(default_factory=list)
    leaks: int = 0
    """Hits that are of another user."""

    def add(self, found: Sequence[str | tuple[str, ...]], whose: Labelled, question: Question) -> None:
        """Count the hits for one question.

        Args:
            found: ids of the items hit, best first, `DEPTH` of them at most. A hit that shows several items,
                as a memory with the turn it was learned from, has the ids of all.
            whose: who was asked about; an id that is not among their items is a leak.
            question: what was asked.
        """
        shown = [(hit,) if isinstance(hit, str) else hit for hit in found]
        self.leaks += sum(name not in whose.answers_for for names in shown for name in names)
        hits = [frozenset[str]().union(*map(whose.stood_for, names)) for names in shown]
        self.rows.append(_figures(hits, question.evidence, whose.relevant(question), whose))
        self.categories.append(question.category)

    def of(self, metric: str, category: str | None = None) -> NDArray[np.float64]:
        """[questions] of one metric, and of one category unless it is None."""
        values = np.array(self.rows, np.float64).reshape(-1, len(METRICS))[:, METRICS.index(metric)]
        return values if category is None else values[np.array(self.categories) == category]

    def percent(self, category: str | None = None) -> dict[str, float]:
        """The mean of every metric, in percent."""
        return {metric: _percent(self.of(metric, category)) for metric in METRICS}


def interval(values: NDArray[np.float64]) -> Interval:
    """The mean of `values` with its 95 % interval. For a paired comparison, of differences by question."""
    if not len(values):
        return Interval(0.0, 0.0, 0.0)
    draw = np.random.default_rng(_SEED)
    means: list[NDArray[np.float64]] = []
    step = max(1, min(DRAWS, _AT_ONCE // len(values)))
    for first in range(0, DRAWS, step):
        drawn = draw.integers(0, len(values), (min(step, DRAWS - first), len(values)))
        means.append(values[drawn].mean(axis=1))
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return Interval(float(values.mean()), float(low), float(high))


def gain(ours: Tally, theirs: Tally, metric: str) -> Interval:
    """What `ours` finds more than `theirs`, of the same questions in the same order."""
    return interval(ours.of(metric) - theirs.of(metric))


def percentiles(samples_s: Sequence[float]) -> dict[str, float]:
    """Count, p50, p95 and p99 of durations in seconds, in milliseconds (nearest rank)."""
    ordered = sorted(samples_s)

    def at(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return {"n": len(ordered), "p50_ms": at(0.50), "p95_ms": at(0.95), "p99_ms": at(0.99)}


def _figures(
    hits: Sequence[frozenset[str]], evidence: frozenset[str], relevant: int, whose: Labelled
) -> list[float]:
    right = [bool(ids & evidence) for ids in hits]
    figures: dict[str, float] = {
        f"R@{cut}": len(evidence & frozenset[str]().union(*hits[:cut])) / len(evidence) for cut in CUTS
    }
    figures["hit@1"] = float(any(right[:1]))
    figures["hit@10"] = float(any(right[:10]))
    figures["MRR"] = next((1 / place for place, is_right in enumerate(right, 1) if is_right), 0.0)
    gained = sum(1 / np.log2(place + 1) for place, is_right in enumerate(right[:10], 1) if is_right)
    ideal = sum(1 / np.log2(place + 1) for place in range(1, min(10, relevant) + 1))
    figures["nDCG@10"] = min(1.0, float(gained / ideal))
    reached = list(dict.fromkeys(whose.session(each) for ids in hits for each in sorted(ids)))[:5]
    wanted = {whose.session(each) for each in evidence}
    figures["session R@5"] = len(wanted & set(reached)) / len(wanted)
    return [figures[metric] for metric in METRICS]


def _percent(values: NDArray[np.float64]) -> float:
    return round(100 * float(values.mean()), 1) if len(values) else 0.0


def table(tally: Tally, categories: Sequence[str]) -> Mapping[str, object]:
    """All figures of a system as JSON: percent over all and by category, intervals, leaks."""
    return {
        **tally.percent(),
        "intervals": {metric: interval(tally.of(metric)).points() for metric in METRICS},
        "by category": {
            name: {"questions": len(tally.of("R@10", name)), **tally.percent(name)} for name in categories
        },
        "leaks": tally.leaks,
    }


__all__ = ["CUTS", "DEPTH", "METRICS", "Interval", "Tally", "gain", "interval", "percentiles", "table"]
