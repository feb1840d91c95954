"""The order of hits. Pure: no store, no clock, no await."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput
from echoic.partition import Partition
from echoic.ranking.channels import Channels, Scores
from echoic.ranking.fusion import FUSIONS, top
from echoic.ranking.place import Place
from echoic.ranking.query import Query
from echoic.types import Rank

FLOOR = 0.2


@dataclass(frozen=True, slots=True)
class Found:
    place: int
    row: int
    score: float
    ranks: Mapping[str, Rank]


def rank(query: Query, partitions: Sequence[Partition], *, limit: int = 10, fusion: str = "blend", floor: float = FLOOR) -> list[Found]:
    if limit < 1:
        raise InvalidInput(f"limit must be at least 1, not {limit}")
    chosen = FUSIONS.get(fusion)
    if chosen is None:
        raise InvalidInput(f"unknown fusion {fusion!r}: use one of {', '.join(FUSIONS)}")
    with ExitStack() as held:
        for partition in sorted({id(p): p for p in partitions}.values(), key=id):
            held.enter_context(partition.lock)
        places = [Place.of(partition, include_past=query.include_past) for partition in partitions]
        channels = Channels(query, places, floor)
        fused = chosen.fuse(channels)
        best = top(fused, limit)
        ranks = {name: _ranks(channels[name], best) for name in chosen.finding}
        starts = np.cumsum([0, *(p.size for p in partitions)])
    out = []
    for i, at in enumerate(best.tolist()):
        place = int(np.searchsorted(starts, at, "right")) - 1
        out.append(Found(place, at - int(starts[place]), float(fused[at]), {n: r[i] for n, r in ranks.items() if r[i] is not None}))
    return out


def _ranks(scores: Scores, best: NDArray[np.intp]) -> list[Rank | None]:
    there = np.flatnonzero(~np.isnan(scores))
    values = scores[there]
    ordered = np.sort(-values)
    mine = -scores[best]
    before = np.searchsorted(ordered, mine, "left")
    upto = np.searchsorted(ordered, mine, "right")
    out: list[Rank | None] = []
    for at, b, u in zip(best.tolist(), before.tolist(), upto.tolist(), strict=True):
        s = scores[at]
        if np.isnan(s):
            out.append(None); continue
        if u - b > 1:
            b += int(np.count_nonzero(values[: np.searchsorted(there, at)] == s))
        out.append(Rank(rank=b + 1, score=float(s)))
    return out
