"""Ranks by the time a question means: what was said then, and which version of a key held then. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from echoic.partition import MEMORY, Flag, Partition, number_of
from echoic.ranking.indexing import AGENT, USER
from echoic.ranking.query import Query
from echoic.ranking.rank import RankedRow
from echoic.ranking.relevance import TIMED
from echoic.temporal import Spans
from echoic.temporal.rules import milliseconds
from echoic.types import Hit, Memory, Rank, Scope

_SUBJECT = re.compile(r"\b(?:did|have|had|was|were) (?P<who>i|you|we)\b", re.IGNORECASE)


def filled(
    found: Sequence[RankedRow], query: Query, partitions: Sequence[Partition], spans: Spans, limit: int
) -> list[RankedRow]:
    """`found`, with everything first that was said in the ranges by the person meant.

    A question such as "what did I say last Tuesday" shares no words with its answers, so ranking finds
    little; the rows themselves know when they were said.

    Args:
        found: what ranking found, best first.
        query: who asks for whose words, and whether what no longer holds may be found.
        partitions: those that were ranked.
        spans: the time asked for.
        limit: how many at most.
    """
    said = _said(query, partitions, spans)
    inside = [replace(one, relevance=TIMED) for one in found if _any_of(one, said)]
    known = {(one.place, row) for one in found for row in (one.row, *one.beside)}
    score = inside[-1].score if inside else 0.0
    more = [
        RankedRow(place, row, score, {"date": Rank(rank=number, score=1.0)}, relevance=TIMED)
        for number, (place, row) in enumerate(said, 1)
        if (place, row) not in known
    ]
    outside = [one for one in found if not _any_of(one, said)]
    return [*inside, *more, *outside][:limit]


def _any_of(one: RankedRow, said: Mapping[tuple[int, int], None]) -> bool:
    return any((one.place, row) in said for row in (one.row, *one.beside))


def rooted(spans: Spans, partitions: Sequence[Partition]) -> Spans:
    """`spans`, without ranges that were guessed from a date without its year if nothing was said in them.

    The question's own words then mean that date in every year.
    """
    if not spans.loose or any(_in_ranges(partition, spans).any() for partition in partitions):
        return spans
    return replace(spans, ranges=(), bare=False)


def _said(query: Query, partitions: Sequence[Partition], spans: Spans) -> dict[tuple[int, int], None]:
    """(place, row) of all that was said in the ranges by whom the question means, first said first."""
    said: list[tuple[int, int, int]] = []
    for place, partition in enumerate(partitions):
        with partition.lock:
            rows = np.flatnonzero(_eligible(query, partition, spans))
            moments = partition.rows["said_at"][rows]
            said += [(int(at), place, int(row)) for row, at in zip(rows, moments, strict=True)]
    return dict.fromkeys((place, row) for _, place, row in sorted(said))


def _eligible(query: Query, partition: Partition, spans: Spans) -> NDArray[np.bool_]:
    rows = partition.rows
    hidden = Flag.UNHEARD if query.include_past else Flag.UNHEARD | Flag.PAST
    eligible: NDArray[np.bool_] = (rows["kind"] != 0) & (rows["flags"] & int(hidden) == 0)
    eligible &= _in_ranges(partition, spans)
    role = _whose(query)
    theirs = rows["speaker"] == number_of(role)
    if role == USER:
        theirs |= rows["kind"] == MEMORY
    # where people go by their names nobody is "user"
    return eligible & theirs if role and (eligible & theirs).any() else eligible


def _whose(query: Query) -> str | None:
    """Who did the saying: "you" in "what did you tell me"."""
    said = _SUBJECT.search(query.text)
    subject = said["who"].lower() if said else ""
    return {"i": USER, "you": AGENT, "we": None}.get(subject, query.role)


def _in_ranges(partition: Partition, spans: Spans) -> NDArray[np.bool_]:
    said_at, inside = partition.rows["said_at"], np.zeros(partition.size, np.bool_)
    for first, last in spans.ranges:
        inside |= (said_at >= first) & (said_at <= last)
    inside &= partition.rows["kind"] != 0
    return inside


def in_time(hits: Sequence[Hit], spans: Spans) -> tuple[Hit, ...]:
    """`hits`, with the versions of each key reordered among the places they occupy.

    Ranking knows what holds and what held, not from when until when; versions of one key contain nearly the
    same words, so time alone decides which of them answers. What held in the time asked for comes first;
    where only the past is asked for, what no longer holds; else what holds. Of equals the later comes first.
    """
    places = defaultdict[tuple[Scope, str], list[int]](list)
    for place, hit in enumerate(hits):
        if hit.memory is not None and hit.memory.key is not None:
            places[hit.scope, hit.memory.key].append(place)
    ordered = list(hits)
    for taken in places.values():
        versions = sorted((hits[place] for place in taken), key=lambda hit: _order(hit, spans))
        for place, version in zip(taken, versions, strict=True):
            ordered[place] = version
    return tuple(ordered)


def _order(hit: Hit, spans: Spans) -> tuple[int, int]:
    memory = hit.memory
    assert memory is not None
    first = -milliseconds(memory.valid_from)
    if spans.ranges:
        return (not _held(memory, spans), first)
    if spans.past:
        # what was corrected was true once; what was taken back perhaps never
        return (2 if memory.current else 1 if memory.superseded_by is None else 0, first)
    return (not memory.current, first)


def _held(memory: Memory, spans: Spans) -> bool:
    begins = milliseconds(memory.valid_from)
    ends = milliseconds(memory.valid_until) if memory.valid_until else None
    return any(begins <= last and (ends is None or ends > first) for first, last in spans.ranges)
