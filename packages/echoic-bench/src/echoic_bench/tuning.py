"""Fitting the few weights of the blend to somebody's own labelled questions, and saying whether it helps.

The search is over one weight after another, a few steps up and down from the default: the weights are few and
not delicate, and what a finer search finds on one person's questions is lost on the next person's. Whether
the result is better is measured on questions it has not seen, a user (or, with few users, a session) left out
at a time. Where the interval of that difference includes zero, the defaults stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput
from echoic.factory import FORMAT, VERSION
from echoic.ranking.fusion import BROAD, CLOSE, CLOSE_IN_CALLS, FusionWeights
from echoic_bench.asked import Asked, ndcg_of, tally_of
from echoic_bench.corpus import Progress, silent
from echoic_bench.metrics import Interval, interval

OBJECTIVE = "nDCG@10"
SHOWN = ("R@5", "R@10", "nDCG@10")
LEAST_QUESTIONS = 50
"""With fewer, chance fits: on LoCoMo's development half 50 questions are where a fit begins to pay."""
FOLDS = 5
_STEPS = (0.0, 0.5, 0.75, 1.33, 2.0)
_PASSES = 2
_LEAST_GAIN = 0.0005
"""Of the objective, 0.05 points: less is not worth another weight."""
_LEAST_USERS = 3
"""From here a user is left out at a time, below a session."""

Score = Callable[[FusionWeights], NDArray[np.float64]]
"""[questions] The objective under these weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What came of a fit."""

    stage: str
    """"close" where word pieces are known and the first candidates are weighed again, else "broad"."""
    weights: FusionWeights
    """Fitted on all questions."""
    default: FusionWeights
    questions: int
    folds: int
    before: Mapping[str, float]
    """By metric, in percent: the defaults."""
    after: Mapping[str, float]
    """By metric, in percent, of questions the weights were not fitted on."""
    gains: Mapping[str, Interval]
    """By metric: fitted less default, of questions the weights were not fitted on."""

    @property
    def helps(self) -> bool:
        """Whether the fit is better by more than chance."""
        return self.gains[OBJECTIVE].above_zero

    @property
    def verdict(self) -> str:
        """The same in a sentence."""
        mean, low, high = self.gains[OBJECTIVE].points()
        found = f"{OBJECTIVE} {mean:+.1f} points [{low:+.1f}, {high:+.1f}] on questions left out"
        if self.helps:
            return f"fitting helps: {found}"
        return f"fitting does not help, keep the defaults: {found}, and the interval includes zero"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        changed = {n: v for n, v in asdict(self.weights).items() if v != getattr(self.default, n)}
        return {
            "helps": self.helps,
            "verdict": self.verdict,
            "stage": self.stage,
            "questions": self.questions,
            "folds": self.folds,
            "before": dict(self.before),
            "after": dict(self.after),
            "gains": {metric: gain.points() for metric, gain in self.gains.items()},
            "changed": changed,
            "weights": asdict(self.weights),
        }


def tune(asked: Sequence[Asked], progress: Progress = silent) -> Tuned:
    """Fit the weights to `asked` and measure them on what they were not fitted to.

    Raises:
        InvalidInput: too few questions to tell a better weight from luck.
    """
    if len(asked) < LEAST_QUESTIONS:
        raise InvalidInput(
            f"{len(asked)} labelled questions can be answered, and {LEAST_QUESTIONS} at least are needed: "
            "with fewer a fit follows chance. The defaults are right until there are more"
        )
    close = asked[0].channels.look_closer(np.arange(1)) is not None
    usual = CLOSE_IN_CALLS if asked[0].channels.in_calls else CLOSE
    default = usual if close else BROAD

    def stages(weights: FusionWeights) -> tuple[FusionWeights, FusionWeights]:
        return (BROAD, weights) if close else (weights, usual)

    @cache  # folds walk the same first steps
    def score(weights: FusionWeights) -> NDArray[np.float64]:
        return ndcg_of(asked, *stages(weights))

    folds = folds_of(asked)
    after = {metric: np.zeros(len(asked)) for metric in SHOWN}
    for number, fold in enumerate(folds):
        progress(number, len(folds) + 1)
        kept = np.setdiff1d(np.arange(len(asked)), fold)
        weights = fit(default, partial(_some, score, kept))
        unseen = tally_of([asked[i] for i in fold], *stages(weights))
        for metric in SHOWN:
            after[metric][fold] = unseen.of(metric)
    progress(len(folds), len(folds) + 1)
    fitted = fit(default, score)
    defaults = tally_of(asked, *stages(default))
    before = {metric: defaults.of(metric) for metric in SHOWN}
    return Tuned(
        stage="close" if close else "broad",
        weights=fitted,
        default=default,
        questions=len(asked),
        folds=len(folds),
        before={metric: round(100 * float(values.mean()), 1) for metric, values in before.items()},
        after={metric: round(100 * float(values.mean()), 1) for metric, values in after.items()},
        gains={metric: interval(after[metric] - before[metric]) for metric in SHOWN},
    )


def _some(score: Score, questions: NDArray[np.intp], weights: FusionWeights) -> NDArray[np.float64]:
    return score(weights)[questions]


def fit(start: FusionWeights, score: Score) -> FusionWeights:
    """The best weights a search of one weight after another finds, from `start`.

    Args:
        start: where to begin; a weight of 0 stays 0, so that what was left out of it stays out.
        score: the objective by question; the mean counts.
    """
    best, reached = start, float(score(start).mean())
    for _ in range(_PASSES):
        before = best
        for name in (field.name for field in fields(FusionWeights)):
            value = getattr(best, name)
            for tried in (replace(best, **{name: round(step * value, 4)}) for step in _STEPS if value):
                found = float(score(tried).mean())
                if found > reached + _LEAST_GAIN:
                    best, reached = tried, found
        if best == before:
            break
    return best


def folds_of(asked: Sequence[Asked]) -> list[NDArray[np.intp]]:
    """Questions left out together, at most `FOLDS` sets: whole users, or whole sessions of few users.

    Raises:
        InvalidInput: all questions are of one session of one user.
    """
    by_user = len({one.whose.user for one in asked}) >= _LEAST_USERS
    groups: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(asked):
        session = "" if by_user else min(one.whose.session(each) for each in one.question.evidence)
        groups.setdefault((one.whose.user, session), []).append(number)
    if len(groups) < 2:
        raise InvalidInput(
            "all labelled questions are about one session of one user: nothing can be left out to measure "
            "on. Label questions about another session or user"
        )
    folds: list[list[int]] = [[] for _ in range(min(FOLDS, len(groups)))]
    for _, members in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        min(folds, key=len).extend(members)
    return [np.array(sorted(fold), np.intp) for fold in folds]


def check_place(path: Path) -> None:
    """Look whether weights can be written to `path`, before the work of fitting them.

    Raises:
        InvalidInput: its folder is not there, or neither it nor `path` may be written to.
    """
    if not path.parent.is_dir():
        raise InvalidInput(f"{str(path)!r} cannot be written: make the folder {str(path.parent)!r} first")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{str(path)!r} cannot be written: name another file with --out")


def write_weights(path: Path, tuned: Tuned) -> None:
    """Keep the fitted weights as a file that names where they come from.

    Raises:
        InvalidInput: the file cannot be written.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "broad": asdict(BROAD if tuned.stage == "close" else tuned.weights),
        "close": asdict(tuned.weights if tuned.stage == "close" else CLOSE),
        "fitted": {"questions": tuned.questions, "folds": tuned.folds, "verdict": tuned.verdict},
    }
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be written: {error.strerror}") from error


__all__ = ["LEAST_QUESTIONS", "OBJECTIVE", "Tuned", "check_place", "fit", "folds_of", "tune", "write_weights"]
