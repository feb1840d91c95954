"""A user's memory as JSON that can be taken elsewhere, and back in without loss."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from echoic.errors import InvalidInput, WriteConflict, brief
from echoic.memory.directives import DIRECTIVES, directives_of, record_of_directives
from echoic.memory.portable_values import check_conversation, check_memory, check_record
from echoic.memory.records import (
    CONVERSATION,
    MEMORY,
    TURN,
    conversation_of,
    cursor_of,
    memory_of,
    record_of_conversation,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.memory.retry import until_written
from echoic.memory.tasks import RESULT, record_of_result, result_of
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Scope, checked_name

FORMAT = "echoic-export"
VERSION = 1
_BATCH = 200
CURSOR = "cursor"
"""A place in the order of one store: it says nothing in another."""


async def export_scope(store: Store, scope: Scope) -> dict[str, Any]:
    """Everything in `scope`; the same contents give the same JSON."""
    memories = await scan_all(store, scope, MEMORY)
    conversations = await scan_all(store, scope, CONVERSATION)
    cursors = {record.id: cursor_of(record) for record in conversations}
    turns = await _by_conversation(store, scope, TURN)
    results = await _by_conversation(store, scope, RESULT)
    read = {r.key: r.id for r in await scan_all(store, scope, TURN) if r.seq <= cursors.get(r.key or "", -1)}
    directives = {record.id: record for record in await scan_all(store, scope, DIRECTIVES)}
    everywhere = directives.pop(DIRECTIVES, None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "deployment": scope.deployment,
        "user": scope.user,
        "memories": [{"id": r.id, "key": r.key, **r.data} for r in memories],
        "conversations": [
            {
                "id": r.id,
                **{name: value for name, value in r.data.items() if name != CURSOR},
                "read": read.get(r.id),
                "turns": turns.get(r.id, []),
                "results": results.get(r.id, []),
            }
            for r in conversations
        ],
        "directives": dict(everywhere.data) if everywhere else {},
        "directives_for": [{"id": r.id, "key": r.key, **r.data} for r in directives.values()],
    }


async def _by_conversation(store: Store, scope: Scope, kind: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in await scan_all(store, scope, kind):
        found.setdefault(record.key or "", []).append({"id": record.id, **record.data})
    return found


async def restore_scope(store: Store, scope: Scope, exported: Mapping[str, Any]) -> int:
    """Put back what `export_scope` gave. All of it is read and checked before anything is written.

    Of two values that then hold under one key the one said last does, and the other is history.

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
    for item in exported["conversations"]:
        await _continue(store, scope, item["id"], item.get("read"))
    keys = {record.key for record in records if record.kind == MEMORY and record.key is not None}
    if keys:
        await until_written(partial(_settle_keys, store, scope, keys), "what was restored")
    return new


async def _settle_keys(store: Store, scope: Scope, keys: Collection[str]) -> None:
    """Let one version hold under each of `keys` where there were others before: the one said last.

    It has to stand behind the others, and be numbered so: there whoever reads or corrects the key looks.
    """
    versions: dict[str | None, list[Record]] = {}
    for record in await scan_all(store, scope, MEMORY):
        versions.setdefault(record.key, []).append(record)
    unsettled = [changes for key in keys if (changes := _one_holds(versions.get(key, [])))]
    for at in range(0, len(unsettled), _BATCH):  # a key is settled whole, whatever happens in between
        await store.write(scope, [change for changes in unsettled[at : at + _BATCH] for change in changes])


def _one_holds(versions: Sequence[Record]) -> list[Change]:
    """What makes one of the versions of a key, oldest first, hold alone and stand last."""
    if not versions:  # forgotten meanwhile
        return []
    memories = [memory_of(record) for record in versions]
    holding = [n for n, memory in enumerate(memories) if memory.current] or [len(versions) - 1]
    last = max(holding, key=lambda n: (memories[n].valid_from, n))
    ended = {"valid_until": memories[last].valid_from.isoformat(), "superseded_by": memories[last].id}
    changes: list[Change] = [
        Put.over(record, replace(record, data={**record.data, **ended}))
        for record in (versions[n] for n in holding if n != last)
    ]
    record = versions[last]
    number = max(version.data.get("number", 0) for version in versions)
    if record is not versions[-1] or record.data.get("number", 0) < number:
        numbered = replace(record, data={**record.data, "number": number})
        # the first only sees that it is still as it was read
        changes += [Put.over(record, record), Drop(kind=MEMORY, id=record.id), Put.over(None, numbered)]
    return changes


async def _continue(store: Store, scope: Scope, conversation: str, read: str | None) -> None:
    """Let what was learned from be read no more: where a turn stands in this store is known only now."""
    found = await store.read(scope, CONVERSATION, [conversation])
    last = await store.read(scope, TURN, [read]) if read is not None else []
    if not (found and last) or cursor_of(found[0]) >= last[0].seq:
        return
    moved = record_of_conversation(conversation_of(found[0]), cursor=last[0].seq)
    with contextlib.suppress(WriteConflict):  # somebody goes on with it already
        await store.write(scope, [Put.over(found[0], moved)])


def _records(exported: Mapping[str, Any], scope: Scope) -> list[Record]:
    if not isinstance(exported, Mapping):
        raise InvalidInput(f"this is no export of Echoic but {type(exported).__name__}")
    if exported.get("format") != FORMAT:
        raise InvalidInput(f"this is no export of Echoic: its format is {brief(exported.get('format'))}")
    if exported.get("version") != VERSION:
        raise InvalidInput(
            f"export version {brief(exported.get('version'))} is unknown; this Echoic reads {VERSION}"
        )
    author = exported.get("user")
    try:
        memories = [_authored(_record(MEMORY, item), author, scope.user) for item in exported["memories"]]
        conversations = [_record(CONVERSATION, item) for item in exported["conversations"]]
        turns = _parts_of(exported, TURN, "turns")
        results = _parts_of(exported, RESULT, "results")
        directives = _directives(exported)
        for record in memories:
            check_memory(record)
        for record, item in zip(conversations, exported["conversations"], strict=True):
            check_conversation(record)
            if item.get("read") is not None:
                checked_name(item["read"], "the turn that was read last")
        for record in (*turns, *results):
            check_record(record)
        turns = [rewritten_turn(record, turn_of(record)) for record in turns]
        results = [record_of_result(result_of(record), record.key or "") for record in results]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"this export cannot be read: {type(error).__name__}") from error
    return _each_once([*conversations, *memories, *turns, *results, *directives])


def _each_once(records: Sequence[Record]) -> list[Record]:
    """`records` without those that stand there again, which no write would ever take.

    Raises:
        InvalidInput: two of one kind have the same id and are not the same.
    """
    found: dict[tuple[str, str], Record] = {}
    for record in records:
        if found.setdefault((record.kind, record.id), record) != record:
            raise InvalidInput(
                f"this export holds two different records as {record.kind} {brief(record.id)}: "
                "an id is unique within a user"
            )
    return list(found.values())


def _parts_of(exported: Mapping[str, Any], kind: str, name: str) -> list[Record]:
    """What belongs to conversations; results are missing from what earlier versions exported."""
    return [
        replace(_record(kind, part), key=item["id"])
        for item in exported["conversations"]
        for part in (item.get(name, []) if kind == RESULT else item[name])
    ]


def _directives(exported: Mapping[str, Any]) -> list[Record]:
    given = [{**(exported.get("directives") or {}), "id": DIRECTIVES}]
    given += exported.get("directives_for", [])  # missing from what earlier versions exported
    records = [_record(DIRECTIVES, item) for item in given]
    return [replace(record_of_directives(directives_of(r)), id=r.id, key=r.key) for r in records if r.data]


def _authored(record: Record, before: object, now: str | None) -> Record:
    """What they said themselves is theirs under the new name too."""
    if record.data.get("author") != before:
        return record
    return replace(record, data={**record.data, "author": now})


def _record(kind: str, item: Mapping[str, Any]) -> Record:
    left_out = {"id", "key", "turns", "results", "read", CURSOR}
    data = {name: value for name, value in item.items() if name not in left_out}
    return Record(kind=kind, id=item["id"], key=item.get("key"), data=data)


async def _unknown(store: Store, scope: Scope, records: list[Record]) -> list[Record]:
    known: set[tuple[str, str]] = set()
    for kind in {record.kind for record in records}:
        ids = [record.id for record in records if record.kind == kind]
        known.update((kind, record.id) for record in await store.read(scope, kind, ids))
    return [record for record in records if (record.kind, record.id) not in known]
