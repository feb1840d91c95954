"""Ten million callers, drawn: how they spread over shards, and what the busiest minute of a day asks of each.

No server runs here; what a server takes for one operation is measured in `store_costs` and multiplied there.
Every assumption is an argument's default, with its reason; other callers are other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
HOURS = (1, 1, 1, 1, 1, 2, 4, 7, 10, 12, 12, 11, 9, 10, 11, 11, 10, 9, 7, 5, 4, 3, 2, 1)
"""How the calls of a day fall on its hours, in one time zone: office hours, with a dip at noon."""
SHARDS = (8, 16, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """Who calls, and how often."""

    count: int = 10_000_000
    median_memories: float = 40
    spread: float = 1.35
    """Sigma of the lognormal number of memories: a mean of about 100, and a few of tens of thousands."""
    calls_a_month: float = 1.0
    minutes_a_call: float = 5.0
    turns_a_call: int = 40
    deployments: int = 10_000
    deployments_alpha: float = 1.0
    """Zipf's exponent of how many callers a deployment has: the largest has a tenth of all."""
    seed: int = 1


def hashed(count: int, seed: int = 0) -> NDArray[np.uint64]:
    """[count] A 64-bit hash of each number (splitmix64, Steele 2014)."""
    state = np.arange(count, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (2 * seed + 1) & (1 << 64) - 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return state ^ (state >> np.uint64(31))


def simulated(callers: Callers, shards: tuple[int, ...] = SHARDS) -> dict[str, Any]:
    """How memories and the busiest minute spread, by the number of shards."""
    draw = np.random.default_rng(callers.seed)
    lognormal = draw.normal(np.log(callers.median_memories), callers.spread, callers.count)
    memories = np.exp(lognormal).astype(np.int64) + 1
    whose = _deployments(callers, draw)
    who, starts = _calls(callers, draw)
    found: dict[str, Any] = {
        "callers": callers.count,
        "deployments": callers.deployments,
        "callers_of_the_largest_deployment": int(np.bincount(whose).max()),
        "memories": int(memories.sum()),
        "mean": round(float(memories.mean()), 1),
        "most": int(memories.max()),
        "above_10000": int((memories > 10_000).sum()),
        "calls_a_day": len(who),
        "calls_at_once": int(_at_once(callers, starts).max()),
        "turns_a_call": callers.turns_a_call,
        "minutes_a_call": callers.minutes_a_call,
        "shards": [],
    }
    by_user, by_deployment = hashed(callers.count), hashed(callers.deployments, 1)[whose]
    for count in shards:
        spread = {"shards": count, **_spread(by_user, memories, count)}
        whole = _spread(by_deployment, memories, count)
        spread["memories_fullest_to_mean_by_deployment"] = whole["memories_fullest_to_mean"]
        spread["calls_at_once_on_the_busiest"] = _busiest(callers, by_user[who], starts, count)
        found["shards"].append(spread)
    return found


def _deployments(callers: Callers, draw: np.random.Generator) -> Numbers:
    """[callers] The deployment of each."""
    weights = 1 / np.arange(1, callers.deployments + 1) ** callers.deployments_alpha
    edges = np.cumsum(weights / weights.sum())
    return np.searchsorted(edges, draw.random(callers.count)).clip(max=callers.deployments - 1)


def _calls(callers: Callers, draw: np.random.Generator) -> tuple[Numbers, NDArray[np.float64]]:
    """Who calls on one day, and in which minute of it, in no order. A caller may call twice."""
    mean = callers.count * callers.calls_a_month * 12 / 365
    count = int(draw.poisson(mean))
    hours = draw.choice(24, count, p=np.array(HOURS) / sum(HOURS))
    return draw.integers(0, callers.count, count), 60 * (hours + draw.random(count))


def _at_once(callers: Callers, starts: NDArray[np.float64]) -> Numbers:
    """[minutes] How many calls are under way at the end of each minute of the day."""
    minutes = np.arange(1, 24 * 60 + 1)
    begun = np.searchsorted(np.sort(starts), minutes)
    return begun - np.searchsorted(np.sort(starts + callers.minutes_a_call), minutes)


def _spread(hashes: NDArray[np.uint64], memories: Numbers, count: int) -> dict[str, float]:
    place = (hashes % np.uint64(count)).astype(np.int64)
    loads = {"callers": np.bincount(place), "memories": np.bincount(place, memories)}
    return {f"{name}_fullest_to_mean": round(float(n.max() / n.mean()), 4) for name, n in loads.items()}


def _busiest(callers: Callers, hashes: NDArray[np.uint64], starts: NDArray[np.float64], count: int) -> int:
    """The most calls at once on any shard."""
    place = (hashes % np.uint64(count)).astype(np.int64)
    return max(int(_at_once(callers, starts[place == shard]).max()) for shard in range(count))


__all__ = ["Callers", "hashed", "simulated"]
