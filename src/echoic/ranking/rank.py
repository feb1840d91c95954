"""The order of hits. Pure: no store, no clock, no await."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

import numpy as np

from echoic.errors import InvalidInput, brief
from echoic.partition import Partition
from echoic.ranking.bm25 import Postings
from echoic.ranking.channels import Channels, Coarse, Explained, Ranks
from echoic.ranking.fusion import FUSIONS, Fusion, blend
from echoic.ranking.fuzzy import Lexicon
from echoic.ranking.layout import Candidates, Layout, Rows
from echoic.ranking.query import Query
from echoic.ranking.relevance import SILENCE, default_floor, kind_of, relevance
from echoic.types import Rank

_LOOKED_AT = 64
FLOOR = 0.12
"""The least cosine at which meaning alone finds a row, for all-MiniLM-L6-v2. Measured: under 1 % of the rows
that answer are below it (LoCoMo's development half, benchmarks/keyvalue), and 69 % of a caller's memories
that do not. No recall at 5 or 10 is lost. A higher floor loses paraphrases: in benchmarks/keyvalue 97.5 % of
them find the right value among the first five, and 93 % with a floor of 0.2."""
LEXICAL_FLOOR = 0.25
"""The floor for the "lexical" embedder, whose cosine is an overlap of words, spelling and sound. 95 % of
unrelated turns are below it."""


class RankedRow(NamedTuple):
    """One row in its place in the order."""

    place: int
    """The number of its partition."""
    row: int
    score: float
    """The score of the fusion; comparable only within one query."""
    ranks: Mapping[str, Rank]
    """Rank and score by channel; a channel that did not find the row is absent. Computed when first read."""
    beside: tuple[int, ...] = ()
    """Other rows of the same partition that share its place, best first: a memory and the turn it was learned
    from are one hit."""
    relevance: float = 0.0
    """How likely it answers, from 0 to 1; see `relevance`."""
    floor: float = SILENCE
    """If the best hit has less, nothing is known."""
    among_people: bool = False
    """Whether everything searched was said between people who are called by their names."""
    outdated: tuple[int, ...] = ()
    """Rows of the same partition: what this turn says about the question and no longer holds. Empty if the
    past is asked for."""
    by_turn: bool = False
    """Whether it is the turn that answers, by other words than those of the memories that share its place."""


def rank(
    query: Query,
    partitions: Sequence[Partition],
    *,
    limit: int = 10,
    fusion: str | Fusion = "blend",
    floor: float | None = None,
    semantic: bool = True,
    without: Collection[int] = (),
    calls: bool = False,
) -> list[RankedRow]:
    """The best `limit` rows for `query`, over all partitions as one.

    A row is a hit only if a channel finds it: by words, by similar words, by the words of neighbouring turns,
    or by a cosine of at least `floor`. An empty list means that nothing is known. Rows without a vector are
    found by their words. Equal scores keep the order of partitions and rows.

    Args:
        query: the query, from `query_of`.
        partitions: the partitions, the caller's own first. Their locks are held while they are scanned.
        limit: maximum number of rows. A shorter list is the beginning of a longer one.
        fusion: how channels become one order: a name in `FUSIONS`, or a fusion.
        floor: None is `FLOOR`; embedders other than MiniLM need another, see `LEXICAL_FLOOR`.
        semantic: whether vectors represent meaning; if not, relevance is computed from words alone.
        without: numbers of sessions (`number_of`) whose turns are ignored.
        calls: whether people speak with an agent here, though every speaker has a name; see `relevance`.

    Raises:
        InvalidInput: `limit` is below 1, or there is no such fusion.
        EmbeddingMismatch: the query's vector has other dimensions than the rows'.
    """
    if limit < 1:
        raise InvalidInput(f"limit must be at least 1, not {brief(limit)}")
    chosen = FUSIONS.get(fusion) if isinstance(fusion, str) else fusion
    if chosen is None:
        raise InvalidInput(f"unknown fusion {brief(fusion)}: use one of {', '.join(FUSIONS)}")
    if not partitions:
        return []
    with ExitStack() as held:
        # take each lock once, always in the same order
        for partition in sorted(set(partitions), key=id):
            held.enter_context(partition.lock)
        places = [
            Candidates.of(partition, include_past=query.include_past, without=without)
            for partition in partitions
        ]
        # NaN is an unknown score; and OpenBLAS sometimes flags numbers as invalid that it discards
        with np.errstate(invalid="ignore"):
            channels = Channels(query, places, FLOOR if floor is None else floor, calls=calls)
            return _found(channels, chosen, limit, semantic=semantic)


def prepare(partition: Partition) -> None:
    """Derive what the next `rank` of `partition` needs, so that no caller waits for it. Takes its lock."""
    with partition.lock:
        Layout.of(partition)
        Postings.of(partition)
        Lexicon.speakers_of(partition)
        Coarse.of(partition)


_MEANT: Final = 0.5
"""The share of its turn's cosine from which a memory that no longer holds may be what a question means."""


def _asks_back(query: Query) -> bool:
    """Whether `query` asks what once was: "did I ever live in Leeds", "have I worked at Boots"."""
    opening = " ".join(query.folded[:2])
    return "ever" in query.folded or re.match(r"(?:did|was|were|had)\b|have (?:i|we)\b", opening) is not None


def _outdated(channels: Channels, rows: Rows, beside: Sequence[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """By hit, which `rows` begin: see `RankedRow.outdated`."""
    query = channels.query
    if not any(place.layout.said_before for place in channels.places):
        return {}
    if query.vector is None or query.include_past or query.spans or _asks_back(query):
        return {}
    found: dict[int, tuple[int, ...]] = {}
    every = [*rows.tolist(), *(row for others in beside for row in others)]
    for start, place in zip(channels.starts.tolist(), channels.places, strict=False):
        pairs, vectors = place.layout.outdated, place.partition.vectors
        if not vectors.shape[1] or place.layout.said_before.isdisjoint(row - start for row in every):
            continue
        hits = [
            (lead - start, *(row - start for row in others))
            for lead, others in zip(rows.tolist(), beside, strict=True)
        ]
        hit_of = {row: hit for hit, each in enumerate(hits) for row in each if 0 <= row < len(vectors)}
        last = max((hit for row, hit in hit_of.items() if place.layout.memories[row]), default=0)
        if not last:
            continue  # what replaces a turn is a memory behind it
        marked = np.zeros(len(vectors), np.bool_)
        marked[list(hit_of)] = True
        here = marked[pairs.turns]
        memories, turns = pairs.memories[here].tolist(), pairs.turns[here].tolist()
        if not any(hit_of[turn] < last for turn in turns):
            continue
        wanted = [*memories, *(row for turn in turns for row in hits[hit_of[turn]])]
        like = dict(zip(wanted, (vectors[wanted] @ query.vector).tolist(), strict=True))
        for memory, turn in zip(memories, turns, strict=True):
            lead, *_ = shared = hits[hit_of[turn]]
            rest = (like[row] for row in shared if row != turn)
            if like[memory] >= max(_MEANT * like[turn], 0.0, *rest):
                found[lead + start] = (*found.get(lead + start, ()), memory)
    return found


def _found(channels: Channels, fusion: Fusion, limit: int, *, semantic: bool) -> list[RankedRow]:
    order = fusion.fuse(channels, limit)
    scores = order.scores
    if fusion.fuse is not blend:  # relevance depends on neither fusion nor `limit`
        scores = blend(channels, 1).scores
        channels.look_closer(fusion.fuse(channels, _LOOKED_AT).rows)
    best = float(scores[0]) if len(scores) else 0.0
    likely, by_turn = relevance(channels, order.rows, order.beside, semantic=semantic, best_score=best)
    silence = default_floor(channels, kind_of(channels, semantic=semantic))
    starts = channels.starts
    places = [0] * len(order.rows)
    if len(starts) > 2:
        places = (starts.searchsorted(order.rows, "right") - 1).tolist()
    beside = order.beside or ((),) * len(places)
    outdated = _outdated(channels, order.rows, beside)
    explained = Explained(channels.scored(fusion.finding), order.rows)
    firsts = [int(starts[place]) for place in places] if len(starts) > 2 else places
    return [
        RankedRow(
            place,
            row - first,
            score,
            Ranks(explained, hit),
            tuple([other - first for other in others]) if others else (),
            likely,
            silence,
            channels.among_people,
            outdated.get(row, ()),
            alone,
        )
        for hit, (place, row, first, score, others, likely, alone) in enumerate(
            zip(
                places,
                order.rows.tolist(),
                firsts,
                order.scores.tolist(),
                beside,
                likely.tolist(),
                by_turn.tolist(),
                strict=True,
            )
        )
    ]
