"""Memories, turns and conversations as records of a store, and back. The only place that knows both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, cast

from echoic.partition import Entry
from echoic.ranking.indexing import entry_of_item, entry_of_memory, entry_of_turn
from echoic.speakers import USER, role_of
from echoic.stores.base import Record, Store
from echoic.types import Conversation, ConversationStatus, Memory, Scope, Turn, checked_name
from echoic.words import TAKEN_BACK

Span = tuple[int, int]
"""Where a stretch begins and ends, in characters."""

MEMORY = "memory"
TURN = "turn"
CONVERSATION = "conversation"
PROPOSAL = "proposal"
ITEM, INDEXED_ITEM = "item", "indexed-item"
"""Records of an integrator's own kind, see `items`: not searchable, and searchable among themselves."""
DISTILLED = "distilled"
"""What one may ask for as a status: completed, and learned from."""

_PAGE = 1000
_MEMORY = frozenset(field.name for field in fields(Memory)) - {"id", "key"}
_MOMENTS = frozenset({"valid_from", "valid_until", "last_said_at"})
_LISTS = frozenset({"source", "redacted"})


def masked(text: str, spans: Iterable[Span], marker: str) -> str:
    """`text` with `marker` in the place of `spans`."""
    parts, end = [], 0
    for first, last in joined(spans):
        parts += [text[end:first], marker]
        end = max(end, min(last, len(text)))
    return "".join([*parts, text[end:]])


def joined(spans: Iterable[Span]) -> list[Span]:
    """`spans` in order, those that touch as one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        elif first < last:
            found.append((first, last))
    return found


async def scan_all(store: Store, scope: Scope, kind: str, *, key: str | None = None) -> list[Record]:
    """Every record of `kind` (and `key`) in order, page by page.

    What fits on one page is read at once: a correction that is made meanwhile is seen whole or not at all.
    """
    found: list[Record] = []
    while True:
        after = found[-1].seq if found else -1
        page = await store.scan(scope, kind, key=key, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


async def memory_with_id(store: Store, scope: Scope, name: str) -> Memory | None:
    """The memory of that id: any version of the user's own, or a global one that is current."""
    for place in (scope, scope.everyone):
        for record in await store.read(place, MEMORY, [checked_name(name, "id")]):
            memory = memory_of(record)
            if memory.current or place == scope or memory.author == scope.user:
                return memory
    return None


def index(record: Record) -> Entry | None:
    """How a record is found: memories, turns and items by what they say, everything else by its id."""
    if record.kind == MEMORY:
        return entry_of_memory(memory_of(record))
    if record.kind == TURN:
        return entry_of_turn(recalled_turn(record))
    if record.kind == INDEXED_ITEM:
        updated_at = datetime.fromisoformat(record.data["updated_at"])
        return entry_of_item(record.data.get("text", ""), record.key or "", updated_at)
    return None


def record_of_memory(memory: Memory, *, kind: str = MEMORY) -> Record:
    """`memory` as a record; fields at their default are left out."""
    data: dict[str, Any] = {
        "text": memory.text,
        "category": memory.category,
        "valid_from": memory.valid_from.isoformat(),
        "statement": memory.statement,
        "context": memory.context,
        "visibility": None if memory.visibility == "private" else memory.visibility,
        "author": memory.author,
        "source": list(memory.source),
        "valid_until": memory.valid_until.isoformat() if memory.valid_until else None,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "confirmed": None if memory.confirmed else False,
        "redacted": list(memory.redacted),
        "reason": memory.reason,
        "times_said": None if memory.times_said == 1 else memory.times_said,
        "last_said_at": memory.last_said_at.isoformat() if memory.last_said_at else None,
    }
    return Record(kind=kind, id=memory.id, key=memory.key, data=_said(data))


def memory_of(record: Record) -> Memory:
    """The inverse of `record_of_memory`; of what else is in the record a memory knows nothing."""
    data = {name: value for name, value in record.data.items() if name in _MEMORY and value is not None}
    for name in _MOMENTS & data.keys():
        data[name] = datetime.fromisoformat(data[name])
    for name in _LISTS & data.keys():
        data[name] = tuple(data[name])
    return Memory(id=record.id, key=record.key, **data)


def record_of_turn(turn: Turn, *, unlearned: bool = False, hidden: Iterable[Span] = ()) -> Record:
    """`turn` as a record that shares its conversation's id as key.

    Args:
        turn: what to keep.
        unlearned: whether what was learned from it was forgotten, and is not to be learned again.
        hidden: which stretches of its heard words are kept and not to be recalled.
    """
    data = {
        "speaker": turn.speaker,
        "text": turn.text,
        "said_at": turn.said_at.isoformat(),
        "heard": turn.heard,
        "confidence": turn.confidence,
        "unlearned": unlearned or None,
        "hidden": [list(span) for span in joined(hidden)] or None,
    }
    kept = {name: value for name, value in data.items() if value is not None}
    return Record(kind=TURN, id=turn.id, key=turn.conversation, data=kept)


def is_unlearned(record: Record) -> bool:
    """Whether nothing is to be learned from this turn any more; see `record_of_turn`."""
    return bool(record.data.get("unlearned"))


def hidden_in(record: Record) -> list[Span]:
    """Which stretches of a turn's heard words are not to be recalled; see `record_of_turn`."""
    return [(int(first), int(last)) for first, last in record.data.get("hidden", ())]


def rewritten_turn(record: Record, turn: Turn) -> Record:
    """`turn` in the place of `record`, which says more of it than a turn does."""
    kept = record_of_turn(turn, unlearned=is_unlearned(record), hidden=hidden_in(record))
    return replace(record, data=kept.data)


def recalled_turn(record: Record) -> Turn:
    """The turn as it may be recalled: without what the user took back."""
    turn, hidden = turn_of(record), hidden_in(record)
    return replace(turn, text=masked(turn.heard_text, hidden, TAKEN_BACK), heard=None) if hidden else turn


def turn_of(record: Record) -> Turn:
    """The inverse of `record_of_turn`."""
    data = record.data
    turn = Turn(
        id=record.id,
        conversation=record.key or "",
        speaker=USER,
        text=data["text"],
        heard=data.get("heard"),
        said_at=datetime.fromisoformat(data["said_at"]),
        confidence=data.get("confidence"),
    )
    # what an earlier version took is still read, whatever it called its speakers
    speaker = checked_name(data["speaker"], "speaker")
    object.__setattr__(turn, "speaker", role_of(speaker) or speaker)
    return turn


def record_of_conversation(conversation: Conversation, *, cursor: int = -1) -> Record:
    """`conversation` as a record.

    Args:
        conversation: what to keep.
        cursor: the `seq` of the last turn that was distilled; -1 before the first.
    """
    data = {
        "agent": conversation.agent,
        "status": conversation.status,
        "distilled": conversation.distilled or None,
        "started_at": conversation.started_at.isoformat(),
        "updated_at": conversation.updated_at.isoformat(),
        "recall_key": conversation.recall_key,
        "summary": conversation.summary,
        "cursor": cursor,
    }
    return Record(kind=CONVERSATION, id=conversation.id, data=_said(data))


def conversation_of(record: Record) -> Conversation:
    """The inverse of `record_of_conversation`.

    Earlier versions gave a completed conversation that was learned from a status of its own, "distilled".
    """
    data = record.data
    distilled = data["status"] == DISTILLED
    return Conversation(
        id=record.id,
        agent=data.get("agent"),
        status=cast("ConversationStatus", "completed" if distilled else data["status"]),
        distilled=distilled or bool(data.get("distilled")),
        started_at=datetime.fromisoformat(data["started_at"]),
        updated_at=datetime.fromisoformat(data["updated_at"]),
        recall_key=data.get("recall_key"),
        summary=data.get("summary"),
    )


def cursor_of(record: Record) -> int:
    """The `seq` of the last distilled turn of a conversation's record; -1 before the first."""
    cursor: int = record.data.get("cursor", -1)
    return cursor


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` without what was not said."""
    return {name: value for name, value in data.items() if value is not None and value != []}


CALL, EXCHANGE, GIVEN, CHECKPOINT = "call", "call_exchange", "call_given", "checkpoint"
"""What a live session keeps of a call, under its conversation's id: the call, its turns, the bytes the model
was given; and the state to go on from. Named here so that nothing forgotten or copied leaves them out."""
CALL_PARTS = (CALL, EXCHANGE, GIVEN)
LINK_CODE, LINK_GUESSES = "link-code", "link-guesses"
"""What a telephone adapter keeps of codes that prove who is calling. Named here likewise."""
PHONE_LINE, PHONE_OF, PHONE_PIN = "phone-line", "phone-of", "phone-pin"
"""Of a telephone line what happened to it (nobody's own); of a user which lines name them, and their PIN."""
