"""From many channels to one order. A fusion is a function of scored channels; it knows no rows and no query.

A channel is [rows] of scores, NaN where it does not find a row; see `channels` for their names. A signal that
the question says nothing of is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.ranking.channels import FINDING
from echoic.ranking.layout import Floats, Mask

Fused = NDArray[np.floating]
"""[rows]; NaN where nothing found a row."""

RRF_WEIGHTS: Mapping[str, float] = {"vector": 0.7, "text": 0.3}
RRF_K = 60
"""As in Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion" (2009), and fixed in MongoDB."""
RRF_DEPTH = 30
"""How many each channel hands over: the `limit` of a pipeline in MongoDB's stage."""

# Found on the development half of LoCoMo (turns) and on benchmarks/keyvalue; rounded. Not delicate: a random
# search over all of them gained nothing on questions it had not seen.
_TEXT, _MEANING, _OWN_MEANING = np.float32(0.45), np.float32(0.40), np.float32(0.05)
_KEYED_MEANING = np.float32(0.10)
_SIGNALS: Mapping[str, float] = {
    "speaker": 0.25,
    "date": 0.75,
    "key": 0.20,
    "length": 0.12,
    "asking": -0.08,
    "answer": 0.12,
    "when": 0.20,
    "many": 0.10,
    # What holds comes before what held (99 %), and what held before what is about something else.
    "past": -0.35,
}


@dataclass(frozen=True, slots=True)
class Fusion:
    """A way to fuse, by name."""

    fuse: Callable[[Mapping[str, Floats]], Fused]
    finding: tuple[str, ...]
    """The channels by which it finds."""


def rrf(
    channels: Mapping[str, Floats],
    weights: Mapping[str, float] = RRF_WEIGHTS,
    k: int = RRF_K,
    depth: int = RRF_DEPTH,
) -> Fused:
    """Weighted reciprocal rank fusion, as MongoDB's $rankFusion computes it.

    The score of a row is the sum of weight / (k + rank) over the channels that have it among their first
    `depth`, ranks from 1. Of equal scores in a channel the earlier row ranks first.
    """
    fused = np.full(max((len(channels[name]) for name in weights), default=0), np.nan)
    for name, weight in weights.items():
        best = top(channels[name], depth)
        fused[best] = np.nan_to_num(fused[best]) + weight / (k + np.arange(1, len(best) + 1))
    return fused


def blend(channels: Mapping[str, Floats]) -> Fused:
    """Weighted sum of scores, each scaled from 0 to 1 over all rows (min-max), and of signals.

    0.45 text_window + 0.40 vector_window + 0.05 vector_own + 0.25 speaker + 0.75 date + 0.20 key
    + 0.12 length - 0.08 asking + 0.12 answer + 0.20 when + 0.10 many - 0.35 past, of the rows that some
    channel finds.

    A row whose vector is not there yet is taken to mean what its words say. A value under a key has too few
    words to be blamed for those it lacks: its text counts for no less than its meaning, and its meaning for
    0.10 more.
    """
    text = scaled(channels["text_window"])
    meaning = _stood_in(scaled(channels["vector_window"]), text)
    own_meaning = _stood_in(scaled(channels["vector_own"]), text)
    keyed = np.flatnonzero(channels["keyed"] > 0)
    text[keyed] = np.fmax(text[keyed], meaning[keyed])
    fused: Floats = _TEXT * text + _MEANING * meaning + _OWN_MEANING * own_meaning
    fused[keyed] += _KEYED_MEANING * meaning[keyed]
    for name, weight in _SIGNALS.items():
        signal = channels.get(name)
        if signal is not None:
            fused += np.float32(weight) * signal
    missed = np.ones(len(fused), np.bool_)
    for name in FINDING:
        missed &= np.isnan(channels[name])
    fused[missed] = np.nan
    return fused


def scaled(scores: Floats) -> Floats:
    """(x - min) / (max - min), over the rows that are not NaN."""
    if not len(scores):
        return scores.copy()
    low, high = scores.min(), scores.max()
    if np.isnan(low):
        low, high = np.fmin.reduce(scores), np.fmax.reduce(scores)
    between: Floats = scores - low
    between *= np.float32(1) / (high - low + np.float32(1e-9))
    return between


def _stood_in(meaning: Floats, text: Floats) -> Floats:
    """`meaning`, and where it is missing `text` moved to its level.

    With half the rows of LoCoMo without a vector, a turn that answers is found as often without as with one.
    """
    missing = np.isnan(meaning)
    if not missing.any():
        return meaning
    level = np.float32(_mean(meaning, ~missing) - _mean(text, ~np.isnan(text)))
    return np.where(missing, np.minimum(text + level, np.float32(1)), meaning)


def _mean(scores: Floats, there: Mask) -> float:
    return float(scores[there].mean()) if there.any() else 0.0


def top(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Where the `count` highest of `scores` stand, best first; of equals the earlier first. NaN is none."""
    there = np.flatnonzero(~np.isnan(scores))
    if len(there) > count:
        values = scores[there]
        least = np.partition(values, len(values) - count)[len(values) - count]
        there = there[values >= least]
    return there[np.argsort(-scores[there], kind="stable")][:count]


def _alone(name: str) -> Fusion:
    return Fusion(lambda channels: channels[name], (name,))


FUSIONS: Mapping[str, Fusion] = {
    "blend": Fusion(blend, FINDING),
    "rrf": Fusion(rrf, tuple(RRF_WEIGHTS)),
    "text": _alone("text"),
    "vector": _alone("vector"),
}
"""By name. blend is the default, rrf what MongoDB computes; text and vector are one channel alone."""

__all__ = ["FUSIONS", "RRF_DEPTH", "RRF_K", "RRF_WEIGHTS", "Fused", "Fusion", "blend", "rrf", "scaled", "top"]
