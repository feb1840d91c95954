"""A user's memory as JSON that can be taken elsewhere, and back in without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.records import (
    CONVERSATION,
    MEMORY,
    TURN,
    conversation_of,
    memory_of,
    record_of_turn,
    scan_all,
    turn_of,
)
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope

FORMAT = "echoic-export"
VERSION = 1
_BATCH = 200


async def export_scope(store: Store, scope: Scope) -> dict[str, Any]:
    """Everything in `scope`; the same contents give the same JSON."""
    memories = await scan_all(store, scope, MEMORY)
    turns = await scan_all(store, scope, TURN)
    by_conversation: dict[str, list[dict[str, Any]]] = {}
    for record in turns:
        by_conversation.setdefault(record.key or "", []).append({"id": record.id, **record.data})
    conversations = await scan_all(store, scope, CONVERSATION)
    return {
        "format": FORMAT,
        "version": VERSION,
        "deployment": scope.deployment,
        "user": scope.user,
        "memories": [{"id": r.id, "key": r.key, **r.data} for r in memories],
        "conversations": [
            {"id": r.id, **r.data, "turns": by_conversation.get(r.id, [])} for r in conversations
        ],
    }


async def restore_scope(store: Store, scope: Scope, exported: Mapping[str, Any]) -> int:
    """Put back what `export_scope` gave. All of it is read and checked before anything is written.

    Raises:
        InvalidInput: it is not an export, or holds what cannot be kept.
    """
    records = _records(exported, scope)
    new = 0
    for at in range(0, len(records), _BATCH):
        batch = records[at : at + _BATCH]
        while batch:
            try:
                await store.write(scope, [Put(record=record, expect=0) for record in batch])
            except WriteConflict:
                batch = await _unknown(store, scope, batch)
                continue
            new += len(batch)
            break
    return new


def _records(exported: Mapping[str, Any], scope: Scope) -> list[Record]:
    if exported.get("format") != FORMAT:
        raise InvalidInput(f"this is no export of Echoic: its format is {exported.get('format')!r}")
    if exported.get("version") != VERSION:
        raise InvalidInput(
            f"export version {exported.get('version')!r} is unknown; this Echoic reads {VERSION}"
        )
    author = exported.get("user")
    try:
        memories = [_authored(_record(MEMORY, item), author, scope.user) for item in exported["memories"]]
        conversations = [_record(CONVERSATION, item) for item in exported["conversations"]]
        turns = [
            replace(_record(TURN, turn), key=item["id"])
            for item in exported["conversations"]
            for turn in item["turns"]
        ]
        for record in memories:
            memory_of(record)
        for record in conversations:
            conversation_of(record)
        turns = [record_of_turn(turn_of(record)) for record in turns]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"this export cannot be read: {type(error).__name__} {error}") from error
    return [*conversations, *memories, *turns]


def _authored(record: Record, before: object, now: str | None) -> Record:
    """What they said themselves is theirs under the new name too."""
    if record.data.get("author") != before:
        return record
    return replace(record, data={**record.data, "author": now})


def _record(kind: str, item: Mapping[str, Any]) -> Record:
    left_out = {"id", "key", "turns"}
    data = {name: value for name, value in item.items() if name not in left_out}
    return Record(kind=kind, id=item["id"], key=item.get("key"), data=data)


async def _unknown(store: Store, scope: Scope, records: list[Record]) -> list[Record]:
    known: set[tuple[str, str]] = set()
    for kind in {record.kind for record in records}:
        ids = [record.id for record in records if record.kind == kind]
        known.update((kind, record.id) for record in await store.read(scope, kind, ids))
    return [record for record in records if (record.kind, record.id) not in known]
