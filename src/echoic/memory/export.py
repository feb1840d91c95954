"""Export, import, copies into another store, and backups.

Imported data is checked, since a file may be forged.

A backup is a SQLite file with the content of a store of any kind, and a checksum file beside it. It is made
while others write, and is read back before it counts. It is restored into an empty store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import file_digest
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from echoic.checks import AGENT, checked_depth
from echoic.errors import (
    EmbeddingMismatch,
    InvalidInput,
    QuotaExceeded,
    StoreCorrupt,
    StoreUnavailable,
    WriteConflict,
    brief,
)
from echoic.memory.compliance import ERASURE, IDENTITY, MARKS, RESTORED, identify, identity
from echoic.memory.concurrency import until_written
from echoic.memory.consent import importable
from echoic.memory.erasure import KINDS
from echoic.memory.extraction.model_reader import PROGRESS, progress_of
from echoic.memory.items import record_of_item
from echoic.memory.profile import DIRECTIVES, directives_of, record_of_directives
from echoic.memory.records import (
    CONVERSATION,
    INDEXED_ITEM,
    ITEM,
    MEMORY,
    RESULT,
    TOLD,
    TURN,
    conversation_of,
    cursor_of,
    id_in,
    index,
    memory_id,
    memory_of,
    record_of_turn,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.memory.tasks import record_of_result, result_of
from echoic.stores.base import Change, Drop, Put, Record, Store, fsync_path
from echoic.stores.bulk_copy import Copied, Cursors, Progress, copy_store, copy_while_written
from echoic.types import (
    STATUSES,
    Conversation,
    EmbeddingSpec,
    Memory,
    Scope,
    Turn,
    Visibility,
    checked_category,
    checked_name,
    checked_text,
    checked_time,
)

if TYPE_CHECKING:
    from echoic.memory.guarded_store import Meter

FORMAT = "echoic-export"
VERSION = 1
_BATCH = 200
CURSOR = "cursor"
"""Field of a cursor: it refers to positions in one store and is not exported."""

T = TypeVar("T")


async def export_scope(store: Store, scope: Scope) -> dict[str, Any]:
    """What `UserMemory.export` returns; the same contents give the same JSON."""
    # first, as memories are last: what is learned meanwhile is exported, or its turns count as unread
    conversations = await scan_all(store, scope, CONVERSATION)
    cursors = {record.id: cursor_of(record) for record in conversations}
    turns = await _by_conversation(store, scope, TURN)
    results = await _by_conversation(store, scope, RESULT)
    items = [(kind, r) for kind in (ITEM, INDEXED_ITEM) for r in await scan_all(store, scope, kind)]
    read = {r.key: r.id for r in await scan_all(store, scope, TURN) if r.seq <= cursors.get(r.key or "", -1)}
    directives = {record.id: record for record in await scan_all(store, scope, DIRECTIVES)}
    everywhere = directives.pop(DIRECTIVES, None)
    memories = await scan_all(store, scope, MEMORY)
    shared = [r for r in await scan_all(store, scope.everyone, MEMORY) if r.data.get("author") == scope.user]
    return {
        "format": FORMAT,
        "version": VERSION,
        "deployment": scope.deployment,
        "user": scope.user,
        "memories": [{"id": r.id, "key": r.key, **r.data} for r in memories],
        # not imported: whether a fact is for everyone is decided where it is said
        "global": [{"id": r.id, "key": r.key, **r.data} for r in shared],
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
        "items": [{**r.data, "searchable": kind == INDEXED_ITEM} for kind, r in items],
    }


async def _by_conversation(store: Store, scope: Scope, kind: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in await scan_all(store, scope, kind):
        found.setdefault(record.key or "", []).append({"id": record.id, **record.data})
    return found


async def restore_scope(
    store: Store,
    scope: Scope,
    exported: Mapping[str, Any],
    check: Callable[[Record], None] = lambda _record: None,
    *,
    meter: Meter | None = None,
    reader: str | None = None,
) -> int:
    """Import what `export_scope` returned; returns the number of new records. All is checked before anything
    is written, also whether `meter` admits it.

    If a key would then have two current values, the later one stays current and the other becomes history.
    A conversation that exists lasts from the earlier beginning to the later end. What was learned from is not
    read again by `reader`, the model. Data that is no export or cannot be stored raises InvalidInput, as
    `check` does for a record that must not be stored.

    Raises:
        NotKept: the user wants nothing kept, or to be asked first; nothing was written.
        QuotaExceeded: it is too much; nothing was written, unless others wrote at the same time.
    """
    records = _records(exported, scope)
    for record in records:
        check(record)
    records = await _apart(store, scope, await _with_free_ids(store, scope, records))
    records = await importable(store, scope, records)
    fresh = await _unknown(store, scope, records)
    if meter is not None:
        await meter.admit(scope, [Put(record=record, expect=0) for record in fresh])
    written: list[Record] = []
    try:
        await _write_new(store, scope, fresh, written)
    finally:  # also where it was stopped: an older value that was written must not stay current
        begun = {record.id: record for record in records if record.kind == CONVERSATION}
        for item in exported["conversations"]:
            if restored := begun.get(item["id"]):
                join = partial(_continue, store, scope, restored, item.get("read"), reader)
                await until_written(join, "what was restored")
        keys = {record.key for record in written if record.kind == MEMORY and record.key is not None}
        if keys:
            await until_written(partial(_settle_keys, store, scope, keys), "what was restored")
    return len(written)


async def _write_new(store: Store, scope: Scope, records: Sequence[Record], written: list[Record]) -> None:
    """Write those of `records` that do not exist, and add them to `written`."""
    for at in range(0, len(records), _BATCH):
        batch = [*records[at : at + _BATCH]]
        while batch:
            try:
                await store.write(scope, [Put(record=record, expect=0) for record in batch])
            except WriteConflict:
                unknown = await _unknown(store, scope, batch)
                if unknown == batch:  # it would conflict for ever
                    raise
                batch = unknown
                continue
            except QuotaExceeded as error:
                if written:
                    raise QuotaExceeded(
                        f"others wrote meanwhile, so that {len(written)} of {len(records)} new records were "
                        "written: import again once there is room"
                    ) from error
                raise
            written += batch
            break


async def _settle_keys(store: Store, scope: Scope, keys: Collection[str]) -> None:
    """Leave one current version, the latest, under each of `keys` that had other versions before.

    It must come last and have the highest number, where readers and writers of the key look for it.
    """
    versions: dict[str | None, list[Record]] = {}
    for record in await scan_all(store, scope, MEMORY):
        versions.setdefault(record.key, []).append(record)
    unsettled = [changes for key in keys if (changes := _one_holds(versions.get(key, [])))]
    for at in range(0, len(unsettled), _BATCH):  # a key is settled in one write
        await store.write(scope, [change for changes in unsettled[at : at + _BATCH] for change in changes])


def _one_holds(versions: Sequence[Record]) -> list[Change]:
    """The changes after which one version of a key is current and comes last; `versions` are oldest first."""
    if not versions:  # the key was forgotten meanwhile
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
        # the first change only checks that the version is unchanged
        changes += [Put.over(record, record), Drop(kind=MEMORY, id=record.id), Put.over(None, numbered)]
    return changes


async def _with_free_ids(store: Store, scope: Scope, records: Sequence[Record]) -> list[Record]:
    """`records`, in which a version of a key has the id that it has here, or another if that is another's.

    Ids of versions follow from key, author and number, so those of two stores may be the same. A new id
    follows from the old one and the time, so that importing again adds nothing.
    """
    versions = [memory_of(r) for r in records if r.kind == MEMORY and r.key is not None]
    known = [memory_of(r) for r in await scan_all(store, scope, MEMORY)] if versions else []
    by_id = {memory.id: memory for memory in known}
    by_value = {(memory.key, memory.text, memory.valid_from): memory.id for memory in known}
    renamed: dict[str, str] = {}
    for memory in versions:
        ours = by_id.get(memory.id, memory)
        if same := by_value.get((memory.key, memory.text, memory.valid_from)):
            renamed[memory.id] = same
        # one that differs in its text alone was masked or partly forgotten here
        elif ours.text != memory.text and ours.valid_from != memory.valid_from:
            renamed[memory.id] = memory_id(memory.id, memory.valid_from.isoformat())
    if not renamed:
        return [*records]

    def changed(record: Record) -> Record:
        if record.kind != MEMORY:
            return record
        names = {name: record.data.get(name) for name in ("supersedes", "superseded_by")}
        moved = {name: renamed[old] for name, old in names.items() if old in renamed}
        return replace(record, id=renamed.get(record.id, record.id), data={**record.data, **moved})

    return [changed(record) for record in records]


async def _apart(store: Store, scope: Scope, records: Sequence[Record]) -> list[Record]:
    """`records`, in which a turn or result whose id another conversation has here gets another id.

    Ids are unique within a user; two users may have the same, such as "1" and "2". The new id follows from
    the conversation and the old one, as in `append`, so that importing again adds nothing.
    """
    renamed: dict[tuple[str, str], str] = {}
    for kind in (TURN, RESULT):
        parts = [record for record in records if record.kind == kind]
        taken = {record.id: record.key for record in parts}
        asked = sorted({name for part in parts for name in _ids(part.key or "", part.id)})
        there = {record.id: record.key for record in await _read(store, scope, kind, asked)}
        for part in parts:
            own, *others = _ids(part.key or "", part.id)
            # an earlier import may have given it another id, although its own has become free since
            held = next((n for n in others if n not in taken and there.get(n) == part.key), None)
            if there.get(own) == part.key or (held is None and own not in there):
                continue
            free = (n for n in others if n not in taken and n not in there)
            if (name := held or next(free, None)) is None:
                raise InvalidInput(f"{kind} id {brief(own)} is taken here, and so is every other for it")
            renamed[kind, own] = name
            taken[name] = part.key
    said = {record.id for record in records if record.kind == TURN}
    cited = {name for record in records if record.kind == MEMORY for name in memory_of(record).source if name}
    beside = {turn.id: turn_of(turn) for turn in await _read(store, scope, TURN, sorted(cited - said))}

    def changed(record: Record) -> Record:
        if record.kind != MEMORY:
            return replace(record, id=renamed.get((record.kind, record.id), record.id))
        memory = memory_of(record)
        source = [
            renamed.get((TURN, name), name)
            for name in memory.source
            if name not in beside or _was_said_in(beside[name], memory)
        ]
        if source == [*memory.source]:
            return record
        return replace(record, data={**record.data, "source": source})

    return [changed(record) for record in records]


def _ids(conversation: str, name: str) -> tuple[str, str, str]:
    """The ids that the turn or result `name` of a conversation may have here, best first."""
    return name, id_in(conversation, name), memory_id(conversation, name)


def _was_said_in(turn: Turn, memory: Memory) -> bool:
    """Whether `memory`, imported without its turns, may cite `turn`, which is here: it was said then."""
    return memory.valid_from <= turn.said_at <= (memory.last_said_at or memory.valid_from)


async def _continue(
    store: Store, scope: Scope, restored: Record, read: str | None, reader: str | None
) -> None:
    """Extend the stored conversation to the times of `restored`, and mark the imported turns as read, also by
    `reader` if it has read all of them.

    Cursors refer to positions in this store.
    """
    found = await store.read(scope, CONVERSATION, [restored.id])
    if not found:
        return
    names = _ids(restored.id, read) if read is not None else ()
    here = {turn.id: turn.seq for turn in await store.read(scope, TURN, names) if turn.key == restored.id}
    end = next((here[name] for name in names if name in here), -1)
    ours, theirs = conversation_of(found[0]), conversation_of(restored)
    moved = {
        "started_at": min(ours.started_at, theirs.started_at).isoformat(),
        "updated_at": max(ours.updated_at, theirs.updated_at).isoformat(),
        CURSOR: max(cursor_of(found[0]), end),
    }
    new = replace(found[0], data={**found[0].data, **moved})
    changes = [Put.over(found[0], new)] if new.data != found[0].data else []
    if reader is not None and ours.distilled:
        progress = await progress_of(store, scope, reader, restored.id)
        if end > progress.cursor:
            changes.append(progress.moved(end).put())
    if changes:
        await store.write(scope, changes)


def _records(exported: Mapping[str, Any], scope: Scope) -> list[Record]:
    if not isinstance(exported, Mapping):
        raise InvalidInput(f"this is not an export of Echoic but {type(exported).__name__}")
    if exported.get("format") != FORMAT:
        raise InvalidInput(f"this is not an export of Echoic: its format is {brief(exported.get('format'))}")
    if exported.get("version") != VERSION:
        raise InvalidInput(
            f"export version {brief(exported.get('version'))} is unknown; this Echoic reads {VERSION}"
        )
    author, conversations = exported.get("user"), exported.get("conversations")

    def memory(item: Mapping[str, Any]) -> Record:
        record = _own(_record(MEMORY, item), author, scope.user)
        check_memory(record)
        return record

    records = _each(conversations, "conversations", _checked_conversation)
    records += _each(exported.get("memories"), "memories", memory)
    for name, kind in (("turns", TURN), ("results", RESULT)):
        for place, item in enumerate(conversations or ()):
            parts = item.get(name, [] if kind == RESULT else None)  # earlier versions exported no results
            read = partial(_checked_part, kind, item["id"])
            records += _each(parts, f"conversations[{place}].{name}", read)
    told = [_placed("directives", _directives_of_all, exported.get("directives") or {})]
    # not in exports of earlier versions
    told += _each(exported.get("directives_for", []), "directives_for", _narrow_directives)
    records += [record for record in told if record is not None]
    return _each_once([*records, *_each(exported.get("items", []), "items", _item)])


def _each(items: object, name: str, read: Callable[[Mapping[str, Any]], T]) -> list[T]:
    """`read` applied to each of the list `name` of an export; InvalidInput names the place it refuses."""
    if not isinstance(items, list | tuple):
        raise InvalidInput(f"this export cannot be read: {name} must be a list, not {type(items).__name__}")
    return [_placed(f"{name}[{number}]", read, item) for number, item in enumerate(items)]


def _placed(place: str, read: Callable[[Mapping[str, Any]], T], item: object) -> T:
    """`read(item)`; InvalidInput names its place in the export, and repeats nothing of it."""
    try:
        if not isinstance(item, Mapping):
            raise InvalidInput(f"it must be an object, not {type(item).__name__}")  # noqa: TRY301 - as others
        return read(item)
    except InvalidInput as error:
        why = str(error)
    except KeyError as error:
        why = f"it has no {brief(error.args[0])}"
    except UnicodeEncodeError:
        why = "it holds a lone surrogate, which is no text"
    except RecursionError:
        why = "it is nested too deep"
    # their messages may quote what was said
    except (TypeError, ValueError, AttributeError, StoreCorrupt) as error:
        why = f"a value in it has another type or form than an export gives it ({type(error).__name__})"
    raise InvalidInput(f"this export cannot be read: {place}: {why}")


def _each_once(records: Sequence[Record]) -> list[Record]:
    """`records` without duplicates; InvalidInput if two with one id differ."""
    found: dict[tuple[str, str], Record] = {}
    for record in records:
        if found.setdefault((record.kind, record.id), record) != record:
            raise InvalidInput(
                f"this export holds two different records as {record.kind} {brief(record.id)}: "
                "an id is unique within a user"
            )
    return list(found.values())


def _checked_conversation(item: Mapping[str, Any]) -> Record:
    record = _record(CONVERSATION, item)
    check_conversation(record)
    if item.get("read") is not None:
        checked_name(item["read"], "the turn that was read last")
    return record


def _checked_part(kind: str, conversation: str, item: Mapping[str, Any]) -> Record:
    record = replace(_record(kind, item), key=conversation)
    check_record(record)
    return rewritten_turn(record, unwrap(turn_of)(record)) if kind == TURN else _checked_result(record)


def _item(item: Mapping[str, Any]) -> Record:
    return record_of_item(item, searchable=bool(item.get("searchable")))


def _directives_of_all(item: Mapping[str, Any]) -> Record | None:
    return _directives({**item, "id": DIRECTIVES}, None)


def _directives(item: Mapping[str, Any], key: str | None) -> Record | None:
    """Directives as a record under `key`; None if there are none."""
    record = _record(DIRECTIVES, item)
    if not record.data:
        return None
    return replace(record_of_directives(directives_of(record)), id=record.id, key=key)


def _narrow_directives(item: Mapping[str, Any]) -> Record | None:
    """Directives for an agent, or for a conversation, under whose id they are forgotten with it."""
    what, _, name = item["id"].partition(":")
    _check_one_of(what, ("agent", "conversation"), "what directives are for")
    checked_name(name, f"the {what} of directives")
    return _directives(item, name if what == "conversation" else None)


def _checked_result(record: Record) -> Record:
    result = unwrap(result_of)(record)
    checked_name(result.name, f"the name of {RESULT} {brief(result.id)}")
    checked_depth([result.value, result.arguments], f"{RESULT} {brief(result.id)}")
    _check_times((result.at,), result.id)
    return record_of_result(result, record.key or "", told=record.data.get(TOLD))


def _own(record: Record, before: object, now: str | None) -> Record:
    """A memory of the user `before` as one of the user `now`, who has proposed nothing of it."""
    data = {name: value for name, value in record.data.items() if (name, value) != ("visibility", "proposed")}
    return replace(record, data={**data, "author": now} if data.get("author") == before else data)


def _record(kind: str, item: Mapping[str, Any]) -> Record:
    left_out = {"id", "key", "turns", "results", "read", CURSOR}
    data = {name: value for name, value in item.items() if name not in left_out}
    return Record(kind=kind, id=item["id"], key=item.get("key"), data=data)


async def _unknown(store: Store, scope: Scope, records: list[Record]) -> list[Record]:
    known: set[tuple[str, str]] = set()
    for kind in {record.kind for record in records}:
        ids = [record.id for record in records if record.kind == kind]
        known.update((kind, record.id) for record in await _read(store, scope, kind, ids))
    return [record for record in records if (record.kind, record.id) not in known]


async def _read(store: Store, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
    pages = [ids[at : at + _BATCH] for at in range(0, len(ids), _BATCH)]
    return [record for page in pages for record in await store.read(scope, kind, page)]


def check_record(record: Record) -> None:
    """Raise InvalidInput, TypeError, ValueError or KeyError if `record` could not be read again."""
    checked_name(record.id, f"the id of a {record.kind}")
    if record.key is not None:
        checked_name(record.key, f"the key of {record.kind} {brief(record.id)}")
    # no store returns lone surrogates and NaN unchanged
    json.dumps(record.data, ensure_ascii=False, allow_nan=False).encode()


def check_memory(record: Record) -> None:
    check_record(record)
    for name in ("source", "redacted"):  # a string would count as a list of its letters
        if not isinstance(record.data.get(name) or [], list):
            raise InvalidInput(f"{name} of {MEMORY} {brief(record.id)} must be a list")
    memory: Memory = unwrap(memory_of)(record)
    checked_text(memory.text, f"the text of {MEMORY} {brief(memory.id)}")
    checked_category(memory.category)
    _check_one_of(memory.visibility, get_args(Visibility), "visibility")
    named = (memory.author, memory.supersedes, memory.superseded_by, *memory.source, *memory.redacted)
    _check_texts((memory.statement, memory.context, memory.reason, *named), memory.id)
    _check_times((memory.valid_from, memory.valid_until, memory.last_said_at), memory.id)
    if not isinstance(memory.times_said, int):
        raise InvalidInput(f"times_said of {MEMORY} {brief(memory.id)} must be a number")
    if not isinstance(memory.confirmed, bool) or not isinstance(memory.deleted, bool):
        raise InvalidInput(f"confirmed and deleted of {MEMORY} {brief(memory.id)} must be true or false")
    if type(record.data.get("number", 0)) is not int:  # the next version of its key gets this number plus one
        raise InvalidInput(f"number of {MEMORY} {brief(memory.id)} must be a whole number")


def check_conversation(record: Record) -> None:
    check_record(record)
    conversation: Conversation = unwrap(conversation_of)(record)
    _check_one_of(conversation.status, STATUSES, "status")
    _check_texts((conversation.agent, conversation.recall_key, conversation.summary), conversation.id)
    _check_times((conversation.started_at, conversation.updated_at), conversation.id)


def _check_one_of(value: object, allowed: Sequence[str], what: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"{what} must be one of {', '.join(allowed)}")


def _check_texts(values: Sequence[object], whose: str) -> None:
    for value in values:
        if value is not None and value != "":
            checked_text(value, f"a text of {brief(whose)}")


def _check_times(moments: Sequence[datetime | None], whose: str) -> None:
    for moment in moments:
        if moment is not None:
            checked_time(moment, f"a time of {brief(whose)}")


def _read_to(record: Record) -> int:
    return int(record.data.get(CURSOR, -1)) if record.kind in {CONVERSATION, PROGRESS} else -1


CURSORS = Cursors(
    _read_to,
    record_of_turn(
        Turn(speaker=AGENT, text="-", id="-", conversation="-", said_at=datetime(2000, 1, 1, tzinfo=UTC))
    ),
)
"""How far readers have read: turns that are added to a copy must not count as read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedMemory:
    copied: Copied
    source: EmbeddingSpec
    target: EmbeddingSpec


async def copy_memory(
    source: Callable[[], Store],
    target: Callable[[], Store],
    embedding: EmbeddingSpec,
    *,
    named: bool = False,
    progress: Progress = lambda _done, _total: None,
) -> CopiedMemory:
    """Copy the data of every user and deployment, as `stores.bulk_copy` does.

    Nothing is embedded. If the target has vectors of another model, the copied records stay pending until the
    store is opened with an embedder of that model. `source` and `target` return stores that are not opened
    yet; a new target gets the model `embedding` if that was `named`, else the source's.

    Raises:
        EmbeddingMismatch: `named`, and the target has vectors of another model; nothing was written.
        InvalidInput: the target holds other data of a user of the source, or other users and marks of
            erasures that the source lacks; nothing was written.
        WriteConflict: one of them was written to meanwhile; copy again.
        StoreError: a store cannot be opened, read or written; when copied again, it resumes.
    """
    async with opened(source, embedding) as (taken, theirs):
        wanted = embedding if named else theirs
        async with opened(target, wanted, as_it_is=not named) as (given, its):
            ids = await _check_marks(taken, given)
            try:
                copied = await copy_store(
                    taken,
                    given,
                    KINDS,
                    vectors=theirs == its,
                    cursors=CURSORS,
                    anew=(MARKS,) if ids else (),
                    progress=progress,
                )
            finally:
                if ids:
                    await identify(given, ids)
    return CopiedMemory(copied=copied, source=theirs, target=its)


async def _check_marks(source: Store, target: Store) -> list[str]:
    """Leave no mark in `target` of an erasure that the records of `source` did not undergo.

    With the mark it would not be repeated, and what was erased would be back. Returns the ids that the target
    had besides those of the source: what is forgotten in it later is to be forgotten in its backups too.
    """
    if await target.scopes() == [MARKS]:
        await target.erase(MARKS)
        return []
    made = {mark.id for mark in await scan_all(source, MARKS, ERASURE)}
    marked = {mark.id for mark in await scan_all(target, MARKS, ERASURE)}
    if marked - {IDENTITY} - made:
        raise InvalidInput(
            "something was forgotten in the target that the source may still hold: copy into an empty store, "
            "or export and import single users"
        )
    ids = await identity(target)
    return [] if set(ids) == set(await identity(source)) else ids


@asynccontextmanager
async def opened(
    make: Callable[[], Store], embedding: EmbeddingSpec, *, as_it_is: bool = True
) -> AsyncIterator[tuple[Store, EmbeddingSpec]]:
    """An open store and the model of its vectors; with `as_it_is` the model it names itself."""
    store = make()
    try:
        await store.open(embedding, index)
    except EmbeddingMismatch as error:
        with contextlib.suppress(Exception):
            await store.aclose()
        if error.model is None or not as_it_is:
            raise
        store, embedding = make(), EmbeddingSpec(error.model, error.dimensions)
        await store.open(embedding, index)
    try:
        yield store, embedding
    finally:
        await store.aclose()


# -- backups

CHECKSUM_SUFFIX = ".sha256"
"""Ending of the checksum file's name; `sha256sum --check` reads the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    path: Path
    bytes: int
    sha256: str
    scopes: int
    records: int


async def back_up(
    source: Callable[[], Store], path: Path, embedding: EmbeddingSpec, *, progress: Progress
) -> BackedUp:
    """Write the content of a store to `path` while others go on writing.

    `source` returns the store, not opened yet; `embedding` is the model of its vectors if it does not say.
    Neither `path` nor its checksum file may exist (InvalidInput). After a StoreError no file is left behind.
    """
    checksum = path.with_name(path.name + CHECKSUM_SUFFIX)
    await asyncio.to_thread(_check_free, path, checksum)
    new = path.with_name(path.name + ".part")
    await asyncio.to_thread(_remove, new)
    try:
        async with opened(source, embedding) as (store, spec):
            if hasattr(store, "snapshot"):
                await store.snapshot(new)
            else:
                async with opened(_file_store(new, store), spec) as (file, _):
                    # a mark newer than the records would tell of an erasure that these did not undergo
                    await copy_while_written(
                        store, file, KINDS, cursors=CURSORS, first=MARKS, progress=progress
                    )
            scopes, records = await _counted(new, spec, store)
        digest = await asyncio.to_thread(_digest, new)
        await asyncio.to_thread(_publish, new, path, checksum, digest)
    except BaseException:
        await asyncio.to_thread(_remove, new)
        raise
    size = await asyncio.to_thread(lambda: path.stat().st_size)
    return BackedUp(path=path, bytes=size, sha256=digest, scopes=scopes, records=records)


async def restore_backup(
    path: Path, target: Callable[[], Store], *, checked: bool = True, progress: Progress
) -> Copied:
    """Copy a backup into an empty store and compare the two at the end. The file at `path` is not changed.

    Open the restored store with its compliance folder: until then it contains what was erased since the
    backup. If a restore is interrupted, empty the target and start again.

    Args:
        path: the backup.
        target: returns the target store, not opened yet.
        checked: whether the checksum file is required.
        progress: called with the number of records copied and the total.

    Raises:
        InvalidInput: there is no such backup, its checksum is missing, or the target is not empty.
        StoreCorrupt: the backup was changed since it was written.
        StoreError: the target could not be written.
    """
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="echoic-restore-")
    try:
        copy = Path(folder) / "backup.db"  # opening it would upgrade it and write a log
        await asyncio.to_thread(_verified_copy, path, copy, checked=checked)
        source = _file_store(copy, target())
        any_model = EmbeddingSpec("", 0)
        async with opened(source, any_model) as (_, spec):
            pass
        async with opened(target, spec, as_it_is=False) as (store, _):
            held = [scope for scope in await store.scopes() if scope != MARKS]
            if held:
                raise InvalidInput(
                    f"the store holds {len(held)} users or deployments already: restore into an empty one, "
                    "such as --store sqlite:///restored.db"
                )
        done = await copy_memory(source, target, spec, named=True, progress=progress)
        async with opened(target, spec, as_it_is=False) as (store, _):
            # another store may have been used since, such as a new one after this was lost
            await identify(store, [RESTORED])
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return done.copied


def _file_store(path: Path, like: Store) -> Callable[[], Store]:
    """The backup in `path`; encrypted with the same keys if the other store is."""
    from echoic.stores import store_from

    around: Callable[[Store], Store] = getattr(like, "around", lambda store: store)
    place = str(path.absolute()).lstrip("/").replace("%", "%25").replace("?", "%3F")
    return lambda: around(store_from(f"sqlite:////{place}"))


async def _counted(path: Path, spec: EmbeddingSpec, like: Store) -> tuple[int, int]:
    """Open the backup as a restore will, and count its scopes and records."""
    async with opened(_file_store(path, like), spec) as (file, _):
        facts = await file.check()
        scopes = [scope for scope in await file.scopes() if scope != MARKS]
        return len(scopes), int(facts.get("records", 0))


def _check_free(path: Path, checksum: Path) -> None:
    for each in (path, checksum):
        if each.exists():
            raise InvalidInput(f"{str(each)!r} exists already: name another file")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {str(path.parent)!r}: create it first")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _publish(new: Path, path: Path, checksum: Path, digest: str) -> None:
    """Give the backup its final name, the checksum file first: a backup without one does not count."""
    try:
        fd = os.open(checksum, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{digest}  {path.name}\n")
            file.flush()
            os.fsync(file.fileno())
        fsync_path(new)
        new.rename(path)
    except OSError as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be written: {error.strerror}") from error
    for beside in ("-wal", "-shm", "-lock"):
        new.with_name(new.name + beside).unlink(missing_ok=True)


def _verified_copy(path: Path, copy: Path, *, checked: bool) -> None:
    if not path.is_file():
        raise InvalidInput(f"there is no backup {str(path)!r}")
    checksum = path.with_name(path.name + CHECKSUM_SUFFIX)
    expected: str | None = None
    if checksum.is_file():
        expected = "".join(checksum.read_text(encoding="utf-8", errors="replace").split(maxsplit=1)[:1])
    elif checked:
        raise InvalidInput(
            f"{str(checksum)!r} is missing, so the backup cannot be verified: "
            "put it back, or use --without-checksum"
        )
    shutil.copyfile(path, copy)
    if expected is not None and _digest(copy) != expected:
        raise StoreCorrupt(f"{str(path)!r} is not the backup that was made: its checksum differs")


def _remove(new: Path) -> None:
    for beside in ("", "-wal", "-shm", "-lock"):
        new.with_name(new.name + beside).unlink(missing_ok=True)
