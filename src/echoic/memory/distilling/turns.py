"""The turns of a conversation as a reader meets them: those before its cursor, and those behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from echoic.memory.records import (
    CONVERSATION,
    TURN,
    conversation_of,
    cursor_of,
    is_unlearned,
    record_of_conversation,
    turn_of,
)
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope, Turn

CONTEXT = 6
"""Turns before the cursor that are read again, for what a correction refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Turns behind a cursor, in order, with those before."""

    turns: tuple[Turn, ...]
    seqs: tuple[int, ...]
    """Where a cursor stands that has read each."""
    context: tuple[Turn, ...]
    unlearned: frozenset[str] = frozenset()
    """Ids of those, here or before, from which nothing is to be learned: it was forgotten."""

    @property
    def end(self) -> int:
        """Where a cursor stands that has read all of them."""
        return self.seqs[-1]

    def within(self, characters: int) -> Stretch:
        """As many of the first turns as have `characters` together; the first in any case."""
        total = 0
        for at, turn in enumerate(self.turns):
            total += len(turn.heard_text)
            if at and total > characters:
                return replace(self, turns=self.turns[:at], seqs=self.seqs[:at])
        return self


async def stretch_of(store: Store, scope: Scope, conversation: str, cursor: int, limit: int) -> Stretch:
    """The next turns behind `cursor`, `limit` at most."""
    records = await store.scan(scope, TURN, key=conversation, after=cursor, limit=limit)
    if not records:
        return Stretch(turns=(), seqs=(), context=())
    before = await store.scan(
        scope, TURN, key=conversation, after=cursor + 1, limit=CONTEXT, newest_first=True
    )
    return Stretch(
        turns=tuple(map(turn_of, records)),
        seqs=tuple(record.seq for record in records),
        context=tuple(turn_of(record) for record in reversed(before)),
        unlearned=frozenset(record.id for record in (*records, *before) if is_unlearned(record)),
    )


async def conversation_record(store: Store, scope: Scope, conversation: str) -> Record | None:
    """The record of a conversation; None if there is none (any more)."""
    records = await store.read(scope, CONVERSATION, [conversation])
    return records[0] if records else None


def standing(record: Record) -> Put:
    """A change that changes nothing, and holds only while the conversation is as it was read."""
    return Put.over(record, record)


def is_unmarked(record: Record) -> bool:
    """Whether a conversation is completed and nobody noted yet that it was learned from."""
    conversation = conversation_of(record)
    return conversation.status == "completed" and not conversation.distilled


def marked(record: Record) -> Put | None:
    """The change that says a completed conversation is distilled; None for one that is not completed."""
    conversation = conversation_of(record)
    if not is_unmarked(record):
        return None
    done = replace(conversation, distilled=True)
    return Put.over(record, record_of_conversation(done, cursor=cursor_of(record)))
