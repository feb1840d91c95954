"""An answer to a question as a model gets it: recall, with what was said around it, packed into a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from echoic.memory.records import TURN, recalled_turn
from echoic.prompt.answer import Around, Packed, pack
from echoic.prompt.budget import Counter
from echoic.ranking.query import asks_list
from echoic.stores.base import Record, Store
from echoic.types import Hit, Recall, Turn

DEFAULT_BUDGET_TOKENS = 300
HITS, LIST_HITS = 10, 25
"""Looked at for one question, and for one that asks for several things."""
_REACH = 3
"""Rows to either side in which a neighbour is looked for: between turns lies what was learned from them."""


def hits_for(question: str) -> int:
    """How many hits to look at: more where a list is asked for, whose members lie far apart."""
    return LIST_HITS if asks_list(question) else HITS


async def packed(
    store: Store,
    recall: Recall,
    budget_tokens: int,
    *,
    count: Counter,
    now: datetime,
    zone: tzinfo,
) -> Packed:
    """`recall` packed, with the neighbours of its turns.

    Args:
        store: where the turns are kept.
        recall: of one user.
        budget_tokens: of the whole text.
        count: of tokens.
        now: the moment of speaking, aware.
        zone: in which days are told.

    Raises:
        InvalidInput: the budget is below 1.
        StoreUnavailable: could not look.
    """
    around = await _around(store, recall.hits)
    return pack(recall, budget_tokens, count=count, now=now, zone=zone, around=around)


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


__all__ = ["DEFAULT_BUDGET_TOKENS", "HITS", "LIST_HITS", "hits_for", "packed"]
