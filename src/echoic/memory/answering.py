"""An answer as prompt text: a recall, with the neighbours of its turns, packed into a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import tzinfo

from echoic.errors import InvalidInput
from echoic.memory.records import TURN, recalled_turn
from echoic.memory.service_context import Parts
from echoic.prompt.answer import Around, Packed, pack
from echoic.prompt.budget import checked_budget, counter_of
from echoic.ranking.query import asks_list
from echoic.stores.base import Record, Store
from echoic.types import Hit, Recall, Scope, Turn, checked_query

HITS, LIST_HITS = 10, 25
"""Hits looked at for one question, and for one that asks for a list."""
_REACH = 3
"""Rows to either side in which a neighbour is looked for: between turns lies what was learned from them."""


def hits_for(question: str, budget_tokens: int) -> int:
    """How many hits to look at: more where a list is asked for, whose members lie far apart.

    Raises:
        InvalidInput: the budget is not a whole number above 0, or the question is blank.
    """
    checked_budget(budget_tokens)
    return LIST_HITS if asks_list(checked_query(question)) else HITS


async def packed(
    parts: Parts, scope: Scope, recall: Recall, budget_tokens: int, zone: Callable[[], Awaitable[tzinfo]]
) -> Packed:
    """`recall`, packed with the neighbours of its turns.

    Args:
        parts: of the service.
        scope: who gets the text.
        recall: made for `scope`.
        budget_tokens: maximum length of the text.
        zone: gives the time zone in which days are told.

    Raises:
        InvalidInput: the budget is not a whole number above 0, or a hit belongs to another user.
        StoreUnavailable: the store could not be read.
    """
    checked_budget(budget_tokens)
    places = parts.shares.places(scope)
    if not all(hit.scope in places for hit in recall.hits):
        raise InvalidInput("a hit of this recall belongs to another user: pack it with theirs")
    around = await _around(parts.store, recall.hits)
    count = counter_of(parts.embedder)
    return pack(recall, budget_tokens, count=count, now=parts.clock(), zone=await zone(), around=around)


async def _around(store: Store, hits: Sequence[Hit]) -> dict[str, Around]:
    """The turns right before and after each turn among `hits`."""
    found: dict[str, Around] = {}
    for scope in dict.fromkeys(hit.scope for hit in hits if hit.turn is not None):
        ids = [hit.turn.id for hit in hits if hit.turn is not None and hit.scope == scope]
        records = await store.read(scope, TURN, ids)
        near = {seq for record in records for seq in (*_before(record), *_after(record)) if seq >= 0}
        rows = {row.seq: row for row in await store.rows(scope, sorted(near))}
        for record in records:
            before, after = (_nearest(record, rows, side) for side in (_before(record), _after(record)))
            found[record.id] = Around(place=record.seq, before=before, after=after)
    return found


def _before(record: Record) -> range:
    return range(record.seq - 1, record.seq - _REACH - 1, -1)


def _after(record: Record) -> range:
    return range(record.seq + 1, record.seq + _REACH + 1)


def _nearest(record: Record, rows: Mapping[int, Record], side: range) -> Turn | None:
    """The first turn of the same conversation on one side of `record`."""
    near = (rows[seq] for seq in side if seq in rows)
    return next((recalled_turn(row) for row in near if row.kind == TURN and row.key == record.key), None)
