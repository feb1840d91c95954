"""Fusion of many channels into one order: functions of scored channels, without rows and query.

A channel is [rows] of scores, NaN where it does not find a row; see `channels` for their names. A signal that
the question does not concern is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.ranking import kernel
from echoic.ranking.channels import FINDING, Channels, LookedAt
from echoic.ranking.late_interaction import ASKING, ECHO, SAME, WINDOW, Closer, shares
from echoic.ranking.layout import Floats, Mask, Pairs, Rows

Fused = NDArray[np.floating]
"""[rows]; NaN where no channel found the row."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Found memories, each with its best source turn, whose place it shares."""

    memories: Rows
    homes: Rows

    @classmethod
    def of(cls, pairs: Pairs, fused: Fused) -> Shared:
        """Assign each memory to its best source turn, of equals the later; NaN counts as least."""
        found = ~np.isnan(fused[pairs.memories])
        memories, turns = pairs.memories[found], pairs.turns[found]
        scores = np.fmax(fused[turns], np.float32(-np.inf))
        order = np.lexsort((turns, scores, memories))
        memories, turns = memories[order], turns[order]
        last = np.ones(len(memories), np.bool_)
        last[:-1] = memories[1:] != memories[:-1]
        return cls(memories[last], turns[last])

    def __len__(self) -> int:
        return len(self.memories)

    def folded(self, fused: Fused) -> Fused:
        """`fused` by place: a turn gets the best score of its own and its memories', and these get none."""
        by_place = fused.copy()
        np.fmax.at(by_place, self.homes, fused[self.memories])
        by_place[self.memories] = np.nan
        return by_place

    def within(self, rows: Rows) -> Shared:
        """The memories that share a place with one of `rows`."""
        marked = np.zeros(1 + max(self.homes.max(initial=0), rows.max(initial=0)), np.bool_)
        marked[rows] = True
        here = marked[self.homes]
        return Shared(self.memories[here], self.homes[here])


class Order(NamedTuple):
    """The first rows, best first; of equals the earlier first."""

    rows: NDArray[np.intp]
    scores: NDArray[np.floating]
    """The scores of these rows."""
    beside: tuple[tuple[int, ...], ...] = ()
    """For each row the other rows that share its place, best first; empty if none do."""


RRF_WEIGHTS: Mapping[str, float] = {"vector": 0.7, "text": 0.3}
RRF_K = 60
"""As in Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion" (2009), and fixed in MongoDB."""
_SIGNALS = ("speaker", "date", "key", "length", "asking", "answer", "when", "many", "past")
_WEIGHED = ("late", "meaning", "own_meaning", "text", "keyed_meaning", *_SIGNALS)
_USUAL_RANGE = 0.35
"""The least difference between the best and the worst cosine when scaling. If all rows are about as far from
a question, the nearest is no better an answer."""
_FEW, _USUAL_SLOPE = 8, 0.65
"""With fewer rows the slope of late interaction over the first score cannot be estimated; LoCoMo's is used.
"""
_SAMPLED = 16
RRF_DEPTH = 30
"""Rows taken from each channel: the `limit` of a pipeline in MongoDB's stage."""

CANDIDATES = 64
"""How many of the first rows are compared by late interaction; docs/ranking.md compares other numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionWeights:
    """Weights of the channels and signals. Meaning and text are scaled from 0 to 1.

    Unless stated otherwise, found on the development half of LoCoMo (turns) and on the key/value set, and
    rounded. They are not delicate: fitting all of them gains nothing on unseen questions. docs/ranking.md
    says what each is worth.
    """

    late: float = 0.0
    """Late interaction, unscaled: about 0.4 lie between the best and the worst row."""
    text: float
    """BM25 over the window."""
    meaning: float
    """The window's summed vector."""
    own_meaning: float = 0.0
    """The row's own vector."""
    keyed_meaning: float = 0.10
    """Added to `meaning` for a value under a key, which has too few words to match by."""
    speaker: float = 0.25
    date: float = 0.75
    key: float = 0.20
    length: float = 0.12
    asking: float = -0.08
    answer: float = 0.12
    when: float = 0.20
    many: float = 0.10
    past: float = -0.35
    """Current memories come before past versions (99 %), and past versions before other topics."""


BROAD = FusionWeights(text=0.45, meaning=0.40, own_meaning=0.05)
"""The weights for every row."""
CLOSE = FusionWeights(
    late=2.75,
    text=0.25,
    meaning=0.35,
    keyed_meaning=0.30,
    speaker=0.30,
    date=0.90,
    length=0.08,
    asking=-0.12,
    answer=0.15,
    when=0.25,
)
"""The weights for candidates with word pieces, in conversations between people."""
CLOSE_IN_CALLS = FusionWeights(
    late=1.40,
    text=0.10,
    meaning=0.35,
    own_meaning=0.10,
    keyed_meaning=0.30,
    speaker=0.15,
    date=0.45,
    length=0.25,
    asking=-0.18,
    answer=0.08,
    when=0.12,
    many=0.12,
)
"""The weights for candidates in calls of a user with an agent. Found by `scripts/fit_fusion.py` on the
telephone corpus's training callers, rounded: questions there repeat the words that were said less often, so
meaning counts more, and an agent's brief phrases rarely answer."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """A named fusion."""

    fuse: Callable[[Mapping[str, Floats], int], Order]
    """Returns the given number of first rows among those that any channel found."""
    finding: tuple[str, ...]
    """The channels it uses to find rows."""
    plan: tuple[dict[str, Any], ...] = ()
    """Its steps as JSON, for inspecting a search."""


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


def _rank_fusion(channels: Mapping[str, Floats], limit: int) -> Order:
    """`rrf` of meaning and of one text channel that adds near words to exact ones.

    So the two clauses of MongoDB's `$search` add up to one score: by stems, and by words one letter off.
    """
    text = channels["text"]
    with suppress(KeyError):  # no word has near ones
        fuzzy = channels["fuzzy"]
        text = np.where(np.isnan(text), fuzzy, text + np.nan_to_num(fuzzy))
    return best_of(rrf({"vector": channels["vector"], "text": text}), limit)


def blend(
    channels: Mapping[str, Floats],
    limit: int,
    broad: FusionWeights = BROAD,
    close: FusionWeights | None = None,
) -> Order:
    """Weighted sum of scores, each scaled from 0 to 1 over all rows (min-max), and of signals.

    Its first `CANDIDATES` are then weighed again with late interaction, and stay ahead of the others: with
    `close`, or with the weights for calls or for conversations between people. Without word pieces the first
    order stands, and is scaled over memories as well.

    A memory shares the place of the best of its source turns and acts as a key of it: a turn scores no less
    than its best memory. So 64 candidates are 64 places instead of 40. Scores are scaled over the turns,
    without such memories, so that learning does not change the score of a turn.

    A row without a vector yet takes its meaning from its words. A value under a key has few words to match
    by: its text counts for no less than its meaning.
    """
    pairs = channels.sources if isinstance(channels, Channels) else None
    if close is None:
        close = CLOSE_IN_CALLS if isinstance(channels, Channels) and channels.in_calls else CLOSE
    if isinstance(channels, Channels) and (order := _compiled(channels, limit, broad, close)) is not None:
        return order
    parts = parts_of(channels, pairs)
    fused, shared, by_place = _placed(parts, channels, pairs, broad)
    first = top(by_place, max(limit, CANDIDATES))
    candidates, others = first[:CANDIDATES], first[CANDIDATES:limit]
    looked_at = _with_memories(candidates, shared)
    late = channels.look_closer(looked_at) if isinstance(channels, Channels) else None
    missing = 0 if late is None else int(np.count_nonzero(np.isnan(late)))
    if late is None or missing == len(late):
        # the final order: two memories that score above every turn must not share one score
        if pairs is not None:
            fused, shared, by_place = _placed(parts_of(channels), channels, pairs, broad)
            first = top(by_place, limit)
        return _led(first[:limit], by_place[first[:limit]], fused, shared)
    keyed = channels.get("keyed")
    if pairs is None and keyed is None and not missing:
        candidates, close_by_row = np.sort(candidates), fused
        found = _weighed({**parts, "late": channels["late"]}, close, candidates)
        best = top(found, limit)
    else:
        # a turn that no channel found is only included for its memory
        before = np.where(np.isnan(fused), by_place, fused)
        again = _weighed_again(channels, parts, close, late=late, looked_at=looked_at, before=before)
        close_by_row = np.full(len(fused), np.nan, again.dtype)
        close_by_row[looked_at] = again
        found = close_by_row[candidates]
        best = np.lexsort((candidates, -found))[:limit]
    ahead = _led(candidates[best], found[best], close_by_row, shared)
    if not len(others):
        return ahead
    behind = by_place[candidates].min() - found.min() + np.float32(1)
    rest = _led(others, by_place[others] - behind, fused, shared)
    return Order(
        np.concatenate([ahead.rows, rest.rows]),
        np.concatenate([ahead.scores, rest.scores]),
        (*ahead.beside, *rest.beside),
    )


def _compiled(channels: Channels, limit: int, broad: FusionWeights, close: FusionWeights) -> Order | None:
    """`blend` by the kernel; None if words stand in for vectors, or there are no word pieces to compare."""
    asked = channels.asked
    if asked is None or not kernel.multiplies():
        return None
    assert kernel.compiled is not None
    counted, axes, share = shares(*asked)
    pairs, size = channels.sources, len(channels.missed)
    sources = (None,) * 3 if pairs is None else (pairs.memories, pairs.turns, _ranged(pairs, size))
    late, weights = np.empty(size, np.float32), (_in_order(broad), _in_order(close))
    scored = channels["text_window"], channels["vector_window"], channels["vector_own"], channels.get("keyed")
    what = [(place.layout.held, place.partition.tokens) for place in channels.places]
    given = tuple(what), scored, tuple(map(channels.get, _SIGNALS)), channels.missed, sources, weights
    pieces, how = (axes, share, WINDOW), (_USUAL_RANGE, SAME, ECHO, ASKING)
    found = kernel.compiled.fused(*given, pieces, how, int(limit), CANDIDATES, late)
    if found is None:
        return None
    rows, scores, beside, looked, *compared, missing = found
    looked = np.frombuffer(looked, np.intp)
    like = [np.frombuffer(each, np.float32).reshape(len(looked), len(counted)) for each in compared]
    closer = Closer(counted, [like[0]], [like[1]], late[looked], missing)
    channels["late"], channels.looked_at = late, LookedAt(looked, closer)
    order = np.frombuffer(rows, np.intp)
    return Order(order, np.frombuffer(scores, np.float32), beside or ((),) * len(order))


@lru_cache(maxsize=16)
def _in_order(weights: FusionWeights) -> Floats:
    """[weights] As the kernel takes them."""
    return np.array([getattr(weights, name) for name in _WEIGHED], np.float32)


def _ranged(pairs: Pairs, size: int) -> Mask:
    """[rows] Those by which scores are scaled: not the memories that share a place."""
    ranged = np.ones(size, np.bool_)
    ranged[pairs.memories] = False
    return ranged


def _weighed_again(
    channels: Mapping[str, Floats],
    parts: Mapping[str, Floats],
    close: FusionWeights,
    *,
    late: Floats,
    looked_at: Rows,
    before: Fused,
) -> Floats:
    """[looked at] The second scores, where some have no word pieces, or memories share places.

    `before` are the first scores.
    """
    pairs = channels.sources if isinstance(channels, Channels) else None
    keyed = channels.get("keyed")
    if pairs is not None:
        late = _with_facts(late, looked_at, pairs, len(before))[looked_at]
        if "key" in parts:
            key = _with_facts(parts["key"][looked_at], looked_at, pairs, len(before))
            parts = {**parts, "key": key}
    again = _weighed(parts, close, looked_at)
    fair = _fair(late, before[looked_at], None if keyed is None else keyed[looked_at] > 0)
    again += np.float32(close.late) * fair
    return again


def _placed(
    parts: Mapping[str, Floats], channels: Mapping[str, Floats], pairs: Pairs | None, weights: FusionWeights
) -> tuple[Floats, Shared | None, Floats]:
    """[rows] scores of rows, which of them share a place, and [rows] scores of places."""
    fused = _weighed(parts, weights)
    np.copyto(fused, np.float32(np.nan), where=_missed(channels))
    if pairs is None:
        return fused, None, fused
    shared = Shared.of(pairs, fused)
    return fused, shared, shared.folded(fused)


def _with_facts(scores: Floats, looked_at: Rows, pairs: Pairs, size: int) -> Floats:
    """[rows] `scores` of the rows `looked_at`, with each turn raised to the best memory learned from it.

    If a memory competed for the place with all its scores, brief values under keys would precede turns that
    answer better: on the corpus's dev callers with their labelled facts that loses 3.5 points of R@5 and 5.3
    of nDCG@10.
    """
    by_row = np.full(size, np.nan, scores.dtype)
    by_row[looked_at] = scores
    np.fmax.at(by_row, pairs.turns, by_row[pairs.memories])
    return by_row


def _with_memories(turns: Rows, shared: Shared | None) -> Rows:
    """`turns`, followed by the memories that share their places."""
    return turns if shared is None else np.concatenate([turns, shared.within(turns).memories])


def _led(places: Rows, scores: Fused, by_row: Fused, shared: Shared | None) -> Order:
    """Each place with the best of its rows first and the other found rows beside it."""
    if shared is None or not len(here := shared.within(places)):
        return Order(places, scores, ((),) * len(places))
    members: dict[int, list[int]] = {turn: [turn] for turn in places.tolist()}
    for memory, turn in zip(here.memories.tolist(), here.homes.tolist(), strict=True):
        members[turn].append(memory)
    worth = np.fmax(by_row, np.float32(-np.inf))
    ordered = [sorted(rows, key=lambda row: (-worth[row], row)) for rows in members.values()]
    return Order(np.array([rows[0] for rows in ordered]), scores, tuple(tuple(rows[1:]) for rows in ordered))


def _missed(channels: Mapping[str, Floats]) -> Mask:
    if isinstance(channels, Channels):
        return channels.missed
    missed: Mask = np.isnan(channels["vector"]) & np.isnan(channels["window"])
    return missed


def parts_of(channels: Mapping[str, Floats], pairs: Pairs | None = None) -> dict[str, Floats]:
    """[rows] of each weighed part, by the names of `FusionWeights`."""
    ranged = None if pairs is None else _ranged(pairs, len(channels["text_window"]))
    compiled = kernel.compiled is not None and isinstance(channels, Channels)
    parts = (_compiled_parts(channels, ranged) if compiled else None) or _scaled_parts(channels, ranged)
    for name in _SIGNALS:
        signal = channels.get(name)
        if signal is not None:
            parts[name] = signal
    return parts


def _scaled_parts(channels: Mapping[str, Floats], ranged: Mask | None) -> dict[str, Floats]:
    text = scaled(channels["text_window"], ranged=ranged)
    window, vector = channels["vector_window"], channels["vector_own"]
    meaning = _stood_in(scaled(window, _USUAL_RANGE, ranged), text, ranged)
    own = meaning if window is vector else _stood_in(scaled(vector, _USUAL_RANGE, ranged), text, ranged)
    parts = {"meaning": meaning, "own_meaning": own, "text": text}
    marked = channels.get("keyed")
    if marked is not None:
        keyed = np.flatnonzero(marked)
        text[keyed] = np.fmax(text[keyed], meaning[keyed])
        parts["keyed_meaning"] = np.zeros_like(meaning)
        parts["keyed_meaning"][keyed] = meaning[keyed]
    return parts


def _compiled_parts(channels: Mapping[str, Floats], ranged: Mask | None) -> dict[str, Floats] | None:
    """As `_scaled_parts`; None if the words of some row are to stand in for its vector."""
    assert kernel.compiled is not None
    window, marked = channels["text_window"], channels.get("keyed")
    names = ("text", "meaning", "own_meaning") + (() if marked is None else ("keyed_meaning",))
    into = np.empty((4, len(window)), np.float32)
    given = window, channels["vector_window"], channels["vector_own"], marked, ranged, _USUAL_RANGE
    if not kernel.compiled.parts(*given, *into):
        return None
    made = dict(zip(names, into, strict=False))
    return {"meaning": made.pop("meaning"), "own_meaning": made.pop("own_meaning"), **made}


def _weighed(parts: Mapping[str, Floats], weights: FusionWeights, rows: Rows | None = None) -> Floats:
    """The weighted sum of the parts, at these rows (None: at all)."""
    worth = [(part, weight) for name, part in parts.items() if (weight := getattr(weights, name))]
    dtype = parts["text"].dtype
    total = np.zeros(len(parts["text"]) if rows is None else len(rows), dtype)
    if kernel.compiled is not None and all(part.dtype == np.float32 for part, _ in worth):
        kernel.compiled.weighed(*zip(*worth, strict=True), rows, total)
        return total
    for part, weight in worth:
        total += np.float32(weight) * (part if rows is None else part[rows])
    return total


def _fair(late: Floats, broad: Floats, keyed: Mask | None) -> Floats:
    """`late`, with missing scores estimated from the row's first score.

    Also for values under a key, if that is more: they have two or three pieces to match, where a turn has its
    own and those of eight neighbours. (First hits of the key/value set: 94.7 %, without this 87.)
    """
    there = ~np.isnan(late)
    if there.all() and (keyed is None or not keyed.any()):
        return late
    few = np.count_nonzero(there) < _FEW
    # in single precision, equal scores lie apart, and the slope makes that large
    apart, known = broad.astype(np.float64) - _mean(broad, there), late[there].astype(np.float64)
    slope = _USUAL_SLOPE if few else float(known.std()) / (float(apart[there].std()) + 1e-9)
    expected = np.clip(_mean(late, there) + slope * apart, -1, 1).astype(np.float32)
    fair: Floats = np.where(there, late, expected)
    if keyed is not None:
        fair = np.where(keyed, np.fmax(late, expected), fair)
    return fair.astype(np.float32, copy=False)


def scaled(scores: Floats, least: float = 0.0, ranged: Mask | None = None) -> Floats:
    """[rows] (x - min) / max(max - min, least), ignoring NaN.

    `ranged` are the rows from which minimum and maximum are taken (None: all); others are limited to 1.
    """
    if not len(scores):
        return scores.copy()
    if kernel.compiled is not None and scores.dtype == np.float32:
        moved = np.empty_like(scores)
        kernel.compiled.scaled(scores, least, ranged, moved)
        return moved
    known = scores if ranged is None else scores[ranged]
    low, high = np.fmin.reduce(known), np.fmax.reduce(known)
    if ranged is not None and np.isnan(high):
        return scaled(scores, least)
    between: Floats = scores - low
    between *= np.float32(1) / max(high - low + np.float32(1e-9), np.float32(least))
    return between if ranged is None else np.minimum(between, np.float32(1), out=between)


def _stood_in(meaning: Floats, text: Floats, ranged: Mask | None) -> Floats:
    """`meaning`, with missing scores taken from `text`, shifted to its level among the rows `ranged`.

    With half the rows of LoCoMo without a vector, an answering turn is found as often without as with one.
    """
    there, missing = ~np.isnan(text), np.isnan(meaning)
    if not (missing & there).any():
        return meaning
    among: Mask | bool = True if ranged is None else ranged
    level = np.float32(_mean(meaning, ~missing & among) - _mean(text, there & among))
    return np.where(missing, np.minimum(text + level, np.float32(1)), meaning)


def _mean(scores: Floats, there: Mask) -> float:
    return float(scores[there].mean(dtype=np.float64)) if there.any() else 0.0


def top(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """The indices of the `count` highest scores, best first, ties in order, without NaN."""
    if kernel.compiled is not None and scores.dtype == np.float32:
        return np.frombuffer(kernel.compiled.top(scores, count), np.intp)
    there = np.flatnonzero(scores >= _least(scores, count))
    if len(there) < count:
        there = np.flatnonzero(~np.isnan(scores))
    if len(there) > count:
        values = scores[there]
        least = values[np.argpartition(values, len(values) - count)[len(values) - count]]
        there = there[values >= least]
    return there[np.argsort(-scores[there], kind="stable")][:count]


def _least(scores: NDArray[np.floating], count: int) -> float:
    """A score that about `count` of `scores` reach: estimated from every 16th.

    Searching only those takes a fifth of the time of a full partition.
    """
    if len(scores) < _SAMPLED * 64:
        return -np.inf
    sample = scores[::_SAMPLED]
    sample = sample[~np.isnan(sample)]
    place = len(sample) - 4 * (count // _SAMPLED + 2)
    return float(np.partition(sample, place)[place]) if place > 0 else -np.inf


def best_of(fused: Fused, limit: int) -> Order:
    """The `limit` highest of `fused`."""
    rows = top(fused, limit)
    return Order(rows, fused[rows])


def _alone(name: str) -> Fusion:
    plan = ({"sort": {"by": name}},)
    return Fusion(lambda channels, limit: best_of(channels[name], limit), (name,), plan)


def _told(weights: FusionWeights) -> dict[str, float]:
    """The weights of the channels, without zeros."""
    return {name: weight for name, weight in asdict(weights).items() if weight}


BLENDED = (
    {"weigh": {"weights": _told(BROAD)}},
    {"weighClosely": {"first": CANDIDATES, "weights": _told(CLOSE), "inCalls": _told(CLOSE_IN_CALLS)}},
)
RANK_FUSED = ({"rankFusion": {"weights": dict(RRF_WEIGHTS), "k": RRF_K, "limit": RRF_DEPTH}},)

FUSIONS: Mapping[str, Fusion] = {
    "blend": Fusion(blend, (*FINDING, "late"), BLENDED),
    "rrf": Fusion(_rank_fusion, (*RRF_WEIGHTS, "fuzzy"), RANK_FUSED),
    "text": _alone("text"),
    "vector": _alone("vector"),
}
"""The fusions by name. blend is the default, rrf is MongoDB's; text and vector use one channel."""
