"""From many channels to one order. A fusion is a function of scored channels; it knows no rows and no query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.ranking.channels import FINDING, Scores

RRF_WEIGHTS = {"vector": 0.7, "text": 0.3}
RRF_K = 60
RRF_DEPTH = 30

BLEND_SCALED = {"text_window": 0.45, "vector_window": 0.40, "vector_own": 0.05}
BLEND_SIGNALS = {
    "speaker": 0.25,
    "date": 0.75,
    "length": 0.12,
    "asking": -0.08,
    "answer": 0.12,
    "when": 0.20,
    "many": 0.10,
    "past": -1.0,
}


@dataclass(frozen=True, slots=True)
class Fusion:
    name: str
    finding: tuple[str, ...]
    fuse: Callable[[Mapping[str, Scores]], Scores]


def rrf(
    channels: Mapping[str, Scores],
    weights: Mapping[str, float] = RRF_WEIGHTS,
    k: int = RRF_K,
    depth: int = RRF_DEPTH,
) -> Scores:
    fused: Scores | None = None
    for name, weight in weights.items():
        scores = channels[name]
        if fused is None:
            fused = np.full(len(scores), np.nan)
        best = top(scores, depth)
        fused[best] = np.nan_to_num(fused[best]) + weight / (k + np.arange(1, len(best) + 1))
    return np.zeros(0) if fused is None else fused


def blend(channels: Mapping[str, Scores]) -> Scores:
    found = np.zeros(len(channels["text"]), np.bool_)
    for name in FINDING:
        found |= ~np.isnan(channels[name])
    words = scaled(channels["text_window"])
    fused = np.zeros(len(words))
    for name, weight in BLEND_SCALED.items():
        leg = scaled(channels[name])
        fused += weight * _stood_in(leg, words)
    for name, weight in BLEND_SIGNALS.items():
        fused += weight * channels[name]
    return np.where(found, fused, np.nan)


def _stood_in(leg: Scores, words: Scores) -> Scores:
    missing = np.isnan(leg)
    if not missing.any():
        return leg
    known = ~np.isnan(words)
    level = (leg[~missing].mean() if not missing.all() else 0.0) - (words[known].mean() if known.any() else 0.0)
    return np.where(missing, np.minimum(words + level, 1.0), leg)


def scaled(scores: Scores) -> Scores:
    """Min-max"""
    there = scores[~np.isnan(scores)]
    if not len(there):
        return scores
    low, high = there.min(), there.max()
    return (scores - low) / (high - low + 1e-9)


def top(scores: Scores, count: int) -> NDArray[np.intp]:
    """Where the `count` highest of `scores` stand, best first; of equals the earlier first. NaN is none."""
    there = np.flatnonzero(~np.isnan(scores))
    if len(there) > count:
        values = scores[there]
        least = -np.partition(-values, count - 1)[count - 1]
        there = there[values >= least]
    return there[np.argsort(-scores[there], kind="stable")][:count]


FUSIONS: Mapping[str, Fusion] = {
    "blend": Fusion("blend", FINDING, blend),
    "rrf": Fusion("rrf", ("vector", "text"), rrf),
}
