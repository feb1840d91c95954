"""Figures of a system, caller by caller, with intervals over callers. Pure."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

DRAWS = 1000
_SEED = 18
AUROCS = ("no answer", "never", "remark")
"""What the best score is to tell from a question with an answer: any without one, one about what nobody ever
said, and what is no question at all."""


@dataclass
class Marks:
    """What was measured of one system in one version of what was said."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(dict))
    """Measure -> caller -> values from 0 to 1 (words: a count)."""
    scores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The best scores of queries that have an `answer`, `no answer` (and by its kind), or were a `remark`;
    -inf: silence."""
    add_s: list[float] = field(default_factory=list)
    query_s: list[float] = field(default_factory=list)
    leaks: int = 0
    """Turns of nobody, or of another caller, that were named."""

    def note(self, caller: str, measure: str, value: float, kind: str = "") -> None:
        """Count a value, and once more under its kind."""
        for name in (measure, f"{measure}: {kind}") if kind else (measure,):
            self.values[name].setdefault(caller, []).append(value)

    def score(self, what: str, value: float) -> None:
        """Count the best score of a query."""
        self.scores[what].append(value)

    def count(self, measure: str) -> int:
        """How many values there are."""
        return sum(map(len, self.values.get(measure, {}).values()))

    def mean(self, measure: str) -> float | None:
        """Over all values; None where nothing was measured."""
        values = [value for of_caller in self.values.get(measure, {}).values() for value in of_caller]
        return sum(values) / len(values) if values else None

    def auroc(self, what: str) -> float | None:
        """How well the best score tells questions with an answer from `what`; 0.5 is not at all."""
        return auroc(self.scores.get("answer", []), self.scores.get(what, []))

    def as_json(self) -> dict[str, Any]:
        """Percent with the 95 % interval over callers and the count; AUROC; milliseconds."""
        measured = {
            name: {"percent": points(interval(list(by.values()))), "n": self.count(name)}
            for name, by in sorted(self.values.items())
            if name != "words"
        }
        return {
            "measures": measured,
            "auroc": {what: _rounded(self.auroc(what), 3) for what in AUROCS},
            "words of ten hits": _rounded(self.mean("words"), 1),
            "add": percentiles(self.add_s),
            "query": percentiles(self.query_s),
            "leaks": self.leaks,
        }


def interval(groups: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The mean with its 95 % interval: bootstrap over groups, since a caller's questions go together."""
    sums = [(sum(group), len(group)) for group in groups if group]
    if not sums:
        return (0.0, 0.0, 0.0)
    draw = random.Random(_SEED)  # noqa: S311 - meant to repeat
    means = sorted(_mean(draw.choices(sums, k=len(sums))) for _ in range(DRAWS))
    return _mean(sums), means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS)]


def difference(ours: Marks, theirs: Marks, measure: str) -> list[float]:
    """What `ours` has more, in points, value by value, with its 95 % interval over callers."""
    mine, other = ours.values.get(measure, {}), theirs.values.get(measure, {})
    both = [caller for caller in mine if len(mine[caller]) == len(other.get(caller, ()))]
    return points(interval([[a - b for a, b in zip(mine[c], other[c], strict=True)] for c in both]))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The chance that a positive is above a negative, ties counting half (Mann and Whitney 1947)."""
    if not positive or not negative:
        return None
    ordered = sorted([(value, 1) for value in positive] + [(value, 0) for value in negative])
    won, below, at = 0.0, 0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        tied = [label for _, label in ordered[at:end]]
        ups, downs = sum(tied), len(tied) - sum(tied)
        won += ups * (below + downs / 2)
        below, at = below + downs, end
    return won / (len(positive) * len(negative))


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p95 in milliseconds, nearest rank."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    found = {
        f"p{p}_ms": round(1000 * ordered[min(len(ordered) - 1, len(ordered) * p // 100)], 3) for p in (50, 95)
    }
    return {"n": len(ordered), **found}


def points(found: tuple[float, float, float]) -> list[float]:
    """In percent, to a tenth."""
    return [round(100 * value, 1) for value in found]


def _mean(sums: Sequence[tuple[float, int]]) -> float:
    return sum(total for total, _ in sums) / sum(count for _, count in sums)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


__all__ = ["Marks", "auroc", "difference", "interval", "percentiles", "points"]
