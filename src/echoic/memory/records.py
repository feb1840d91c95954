"""Memories, turns and conversations as records of a store, and back; and changes to them (`Ledger`).

Versions of a key are numbered, and a version's id follows from key and number. So two processes that correct
the same key at once ask for the same id, and the store gives it to only one of them. For the same reason the
id of a memory without a key follows from its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache, wraps
from hashlib import blake2b
from itertools import count
from typing import Any, TypeVar, cast

import numpy as np

from echoic.checks import MAX_KEY_CHARACTERS, USER, role_of
from echoic.errors import InvalidInput
from echoic.partition import MEMORY as MEMORY_ROW
from echoic.partition import Entry, Flag, number_of
from echoic.ranking.indexing import entry_of_item, entry_of_memory, entry_of_turn, source_term
from echoic.stores.base import Change, Put, Record, Store, damaged
from echoic.text import TAKEN_BACK, fold
from echoic.types import Conversation, ConversationStatus, Memory, Scope, Turn, checked_name

T = TypeVar("T")
Span = tuple[int, int]
"""Start and end in characters."""

MEMORY = "memory"
TURN = "turn"
CONVERSATION = "conversation"
PROPOSAL = "proposal"
RESULT = "result"
"""Results of a task; their key is the conversation's id."""
HOLD = "hold"
"""The record that puts a user's data on hold: none of it may be destroyed."""
EXPERIENCE = "experience"
"""Lessons of an agent; their key is its name."""
ITEM, INDEXED_ITEM = "item", "indexed-item"
"""Your own records, see `items`: not searchable, and searchable among themselves."""
DISTILLED = "distilled"
"""A status to filter by: completed, and learned from."""
SAID: Mapping[str, Sequence[str]] = {
    MEMORY: ("text", "statement", "context"),
    TURN: ("text", "heard"),
    CONVERSATION: ("recall_key", "summary"),
    RESULT: ("name", "value", "arguments"),
    ITEM: ("name", "value"),
    INDEXED_ITEM: ("name", "value", "text"),
}
"""Per kind, the fields that hold speech, where other texts are names, ids and times."""
TOLD = "told"
"""The field of a turn or result with what the caller who added it was told at most (a `Sensitivity`), if not
everything."""

_PAGE = 1000
_MEMORY = frozenset(field.name for field in fields(Memory)) - {"id", "key"}
_MOMENTS = frozenset({"valid_from", "valid_until", "last_said_at"})
_LISTS = frozenset({"source", "redacted"})


def masked(text: str, spans: Iterable[Span], marker: str) -> str:
    """`text` with `marker` in place of each of `spans`."""
    parts, end = [], 0
    for first, last in joined(spans):
        parts += [text[end:first], marker]
        end = max(end, min(last, len(text)))
    return "".join([*parts, text[end:]])


def joined(spans: Iterable[Span]) -> list[Span]:
    """`spans` in order, adjacent and overlapping ones merged."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        elif first < last:
            found.append((first, last))
    return found


async def scan_all(store: Store, scope: Scope, kind: str, *, key: str | None = None) -> list[Record]:
    """Every record of `kind` (and `key`) in order, page by page.

    What fits on one page is read at once, so a concurrent correction is seen whole or not at all.
    """
    found: list[Record] = []
    while True:
        after = found[-1].seq if found else -1
        page = await store.scan(scope, kind, key=key, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    memories: list[Memory]
    """Newest first."""
    before: str | None
    """The cursor of the next page; None on the last."""
    total: int
    """The total number, including withheld ones."""


async def newest_memories(
    store: Store, visible: Store, scope: Scope, *, past: bool, limit: int, before: str | None = None
) -> MemoryPage:
    """The newest memories of a user, including shared ones; the order is known without reading records.

    `visible` is `store` limited to what may be told. `past` lists corrected and retracted memories instead of
    current ones; `before` is the cursor of the previous page, or InvalidInput is raised.
    """
    places: list[tuple[int, int, int]] = []
    for number, where in enumerate((scope, scope.everyone)):
        partition = await store.load(where)
        with partition.lock:
            rows = partition.rows
            wanted = (rows["kind"] == MEMORY_ROW) & (((rows["flags"] & Flag.PAST) != 0) == past)
            if past or where is not scope:
                wanted &= rows["speaker"] == number_of(fold(scope.user or ""))
            there = np.flatnonzero(wanted)
            moments = rows["said_at"][there].tolist()
            places += [(at, number, row) for at, row in zip(moments, there.tolist(), strict=True)]
    places.sort(reverse=True)
    total = len(places)
    if before is not None:
        end = _place(before)
        places = [place for place in places if place < end]
    found: list[tuple[tuple[int, int, int], Memory]] = []
    for at in range(0, len(places), limit + 1):
        part = places[at : at + limit + 1]
        read: dict[tuple[int, int], Memory] = {}
        for number, where in enumerate((scope, scope.everyone)):
            rows_there = [row for _, each, row in part if each == number]
            records = await visible.rows(where, rows_there) if rows_there else []
            read |= {(number, record.seq): memory_of(record) for record in records}
        for place in part:
            memory = read.get(place[1:])
            # it may have changed since the rows were read
            if memory is None or memory.current is past:
                continue
            if memory.author == scope.user or not (past or place[1]):
                found.append((place, memory))
        if len(found) > limit:
            break
    page = found[:limit]
    behind = ".".join(map(str, page[-1][0])) if len(found) > limit else None
    return MemoryPage(memories=[memory for _, memory in page], before=behind, total=total)


def _place(written: str) -> tuple[int, int, int]:
    try:
        moment, number, row = map(int, written.split("."))
    except ValueError as error:
        raise InvalidInput("`cursor` is not one that an answer gave", field="cursor") from error
    return moment, number, row


async def memories_learned_from(
    store: Store, visible: Store, scope: Scope, turns: Sequence[Turn]
) -> list[Memory]:
    """The user's memories learned from `turns`, in the order they were written."""
    if not turns:
        return []
    partition = await store.load(scope)
    said = {turn.id for turn in turns}
    moments = [Entry.milliseconds(turn.said_at) for turn in turns]
    with partition.lock:
        rows = partition.rows
        docs, terms, _ = partition.postings
        here = (rows["said_at"] >= min(moments)) & (rows["said_at"] <= max(moments))
        here[docs[np.isin(terms, [source_term(name) for name in said])]] = True  # repeated here
        wanted = np.flatnonzero(here & (rows["kind"] == MEMORY_ROW)).tolist()
    known = [memory_of(record) for record in await visible.rows(scope, wanted)] if wanted else []
    return [memory for memory in known if said.intersection(memory.source)]


async def memory_with_id(store: Store, scope: Scope, name: str) -> Memory | None:
    """The memory with that id: any version of the user's own, or a current global one."""
    for place in (scope, scope.everyone):
        for record in await store.read(place, MEMORY, [checked_name(name, "id")]):
            memory = memory_of(record)
            if memory.current or place == scope or memory.author == scope.user:
                return memory
    return None


def reading(read: Callable[[Record], T]) -> Callable[[Record], T]:
    """`read`, which raises StoreCorrupt for a record that is not what was written.

    Without the error that showed it: that may repeat what the record says.
    """

    @wraps(read)
    def read_or_told(record: Record) -> T:
        try:
            return read(record)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise damaged(record.kind, record.id) from None

    return read_or_told


@reading
def index(record: Record) -> Entry | None:
    """How a record is found: memories, turns and items by their text, everything else by its id."""
    if record.kind == MEMORY:
        return entry_of_memory(memory_of(record))
    if record.kind == TURN:
        return entry_of_turn(recalled_turn(record))
    if record.kind == INDEXED_ITEM:
        updated_at = datetime.fromisoformat(record.data["updated_at"])
        return entry_of_item(record.data.get("text", ""), record.key or "", updated_at)
    return None


def record_of_memory(memory: Memory, *, kind: str = MEMORY) -> Record:
    """`memory` as a record, without fields at their default."""
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
        "deleted": memory.deleted or None,
        "confirmed": None if memory.confirmed else False,
        "redacted": list(memory.redacted),
        "reason": memory.reason,
        "times_said": None if memory.times_said == 1 else memory.times_said,
        "last_said_at": memory.last_said_at.isoformat() if memory.last_said_at else None,
    }
    return Record(kind=kind, id=memory.id, key=memory.key, data=_said(data))


@reading
def memory_of(record: Record) -> Memory:
    """The inverse of `record_of_memory`; other fields of the record are ignored."""
    data = {name: value for name, value in record.data.items() if name in _MEMORY and value is not None}
    for name in _MOMENTS & data.keys():
        data[name] = datetime.fromisoformat(data[name])
    for name in _LISTS & data.keys():
        data[name] = tuple(data[name])
    return Memory(id=record.id, key=record.key, **data)


def record_of_turn(
    turn: Turn, *, unlearned: bool = False, hidden: Iterable[Span] = (), told: str | None = None
) -> Record:
    """`turn` as a record, with its conversation's id as key.

    `unlearned`: nothing may be learned from it any more. `hidden`: spans of its heard words that are not
    recalled. `told`: see `TOLD`.
    """
    data = {
        "speaker": turn.speaker,
        "text": turn.text,
        "said_at": turn.said_at.isoformat(),
        "heard": turn.heard,
        "confidence": turn.confidence,
        "unlearned": unlearned or None,
        "hidden": [list(span) for span in joined(hidden)] or None,
        TOLD: told,
    }
    kept = {name: value for name, value in data.items() if value is not None}
    return Record(kind=TURN, id=turn.id, key=turn.conversation, data=kept)


def is_unlearned(record: Record) -> bool:
    """Whether nothing may be learned from this turn any more; see `record_of_turn`."""
    return bool(record.data.get("unlearned"))


@reading
def hidden_in(record: Record) -> list[Span]:
    """The spans of a turn's heard words that are not recalled; see `record_of_turn`."""
    return [(int(first), int(last)) for first, last in record.data.get("hidden", ())]


def rewritten_turn(
    record: Record, turn: Turn, *, unlearned: bool = False, hidden: Iterable[Span] | None = None
) -> Record:
    """`turn` in place of `record`, keeping the record's other fields; `hidden` replaces its spans."""
    kept = record_of_turn(
        turn,
        unlearned=unlearned or is_unlearned(record),
        hidden=hidden_in(record) if hidden is None else hidden,
        told=record.data.get(TOLD),
    )
    return replace(record, data=kept.data)


def recalled_turn(record: Record) -> Turn:
    """The turn as it may be recalled: without what the user retracted."""
    turn = turn_of(record)
    hidden = hidden_in(record) if "hidden" in record.data else ()
    return replace(turn, text=masked(turn.heard_text, hidden, TAKEN_BACK), heard=None) if hidden else turn


@reading
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
    object.__setattr__(turn, "speaker", _speaker_of(data["speaker"]))
    return turn


@lru_cache(maxsize=1024)  # few speakers say many turns
def _speaker_of(name: str) -> str:
    # earlier versions accepted other names of speakers
    return role_of(checked_name(name, "speaker")) or name


def record_of_conversation(conversation: Conversation, *, cursor: int = -1) -> Record:
    """`conversation` as a record; `cursor` is the `seq` of the last distilled turn, -1 before the first."""
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


@reading
def conversation_of(record: Record) -> Conversation:
    """The inverse of `record_of_conversation`.

    In earlier versions a completed conversation that was learned from had the status "distilled".
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
    """`data` without unset fields."""
    return {name: value for name, value in data.items() if value is not None and value != []}


CALL, EXCHANGE, GIVEN, CHECKPOINT = "call", "call_exchange", "call_given", "checkpoint"
"""Records of a live session, by its conversation's id: the call, its turns, the bytes the model was given,
and the state to resume from. Named here so that forgetting and copying include them."""
CALL_PARTS = (CALL, EXCHANGE, GIVEN)
LINK_CODE, LINK_GUESSES = "link-code", "link-guesses"
"""Codes that prove who is calling, and counts of guesses. Named here for the same reason."""
PHONE_LINE, PHONE_OF, PHONE_PIN = "phone-line", "phone-of", "phone-pin"
"""Events of a telephone line; the lines that name a user; the user's PIN."""


_LOOK_BACK = 64
"""Versions of a key read at once to find the newest of one author; in a user's own scope it is the first."""
_SOURCES = 8
"""Turns named as the source of one memory: the first one, and the last ones that repeated it."""


def memory_id(*parts: str) -> str:
    """An id that follows from `parts`: 128 bits, so that two never collide by chance."""
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def id_in(conversation: str, name: str) -> str:
    """The id of a turn or result whose own id `name` is taken by another conversation."""
    is_short = len(conversation) + len(name) < MAX_KEY_CHARACTERS
    return f"{conversation}:{name}" if is_short else memory_id(conversation, name)


def name_of(parts: Sequence[str], key: str) -> str:
    """A name of bounded length for the item under `key` in a namespace of several parts."""
    return memory_id(json.dumps([list(parts), key]))


def named_by(name: str, value: Any) -> dict[str, Any]:
    """The namespace and the key in an item's value that `name_of` made its name of; {} if it did not."""
    match value:
        case {"namespace": list(parts), "key": str(key)} if name_of(parts, key) == name:
            return {"namespace": parts, "key": key}
    return {}


@dataclass(slots=True)
class _PendingMemory:
    """A memory as it will be, and its record as it was read."""

    memory: Memory
    version: int
    number: int
    """The number of its version of the key; 0 without a key."""
    was: Mapping[str, Any] | None = None
    """The data of its record when it was read."""


class Ledger:
    """Collects changes to one scope. Nothing is written until `changes` go to the store in one write."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self.scope = scope
        self.store = store
        self._held: dict[str, _PendingMemory] = {}
        self._newest: dict[tuple[str, str | None], str | None] = {}
        self._changed: dict[str, None] = {}
        self._ended: dict[str, None] = {}

    @property
    def changes(self) -> list[Change]:
        """One change for each memory that changes, expecting its record as it was read."""
        return [_put(self._held[name]) for name in self._changed]

    @property
    def ended(self) -> frozenset[str]:
        """Ids of the stored current memories that will end."""
        return frozenset(name for name in self._ended if self._held[name].version > 0)

    async def newest(self, key: str, author: str | None) -> Memory | None:
        """The last version of `key` by `author`, current or not."""
        found = await self._find(key, author)
        return found.memory if found else None

    async def current(self, key: str, author: str | None) -> Memory | None:
        """The last version of `key` by `author`, if it is current."""
        memory = await self.newest(key, author)
        return memory if memory and memory.current else None

    async def holding(self, name: str) -> Memory | None:
        """The memory with the id `name`, if it is current."""
        held = await self._take_current(name)
        return held.memory if held else None

    async def set(self, memory: Memory) -> Memory:
        """Make `memory` the current version of its key; the previous one is superseded and becomes history.

        Returns the memory as it will be stored, or the known one, unchanged, if it says the same.
        """
        key = memory.key or ""
        found = await self._find(key, memory.author)
        if found and found.memory.current and _same(found.memory, memory):
            return found.memory
        number = found.number + 1 if found else 1
        # what a user makes global is another memory than their own under the key
        whose = ["global"] if self.scope.user is None and memory.author else []
        new = replace(memory, id=memory_id(key, memory.author or "", str(number), *whose))
        if found and found.memory.current:
            new = replace(new, supersedes=found.memory.id)
            self._end(found, memory.valid_from, superseded_by=new.id)
        self._newest[key, memory.author] = new.id
        return self._add(new, number)

    async def add(self, memory: Memory) -> Memory:
        """Add a memory without a key; if a current one says exactly the same, return that."""
        for number in count():  # pragma: no branch - it ends where an id is free
            name = memory_id("", memory.text, memory.category, memory.context or "", str(number))
            held = await self._take(name)
            if held is None:
                return self._add(replace(memory, id=name), 0)
            if held.memory.current:
                return held.memory
        raise AssertionError

    async def supersede(self, known: Memory, new: Memory) -> Memory:
        """End the current memory `known`, replaced by `new`. Returns `new` as it will be stored."""
        if new.key is not None and new.key == known.key:
            return await self.set(new)
        kept = await (self.set(new) if new.key is not None else self.add(new))
        return await self.give_way(known, kept, new.valid_from)

    async def give_way(self, known: Memory, to: Memory, at: datetime) -> Memory:
        """End the current memory `known`, replaced by the stored `to`; returns the new `to`."""
        ends, stays = await self._take(known.id), await self._take(to.id)
        if ends is None or stays is None or ends is stays:
            return to
        self._end(ends, at, superseded_by=to.id)
        return self._change(stays, supersedes=known.id) if stays.memory.supersedes is None else stays.memory

    async def confirm(self, known: Memory, turn_id: str, at: datetime, *, sure: bool = True) -> Memory | None:
        """Note that the current memory `known` was said again in this turn; None if that was counted before.

        `sure`: it was recognised clearly, which confirms an unconfirmed memory.
        """
        held = await self._take(known.id)
        if held is None or turn_id in held.memory.source:
            return None
        memory = held.memory
        sources = (*memory.source, turn_id)
        return self._change(
            held,
            source=sources if len(sources) <= _SOURCES else (sources[0], *sources[1 - _SOURCES :]),
            times_said=memory.times_said + 1 if memory.source else memory.times_said,
            last_said_at=max(at, memory.last_said_at or at),
            confirmed=memory.confirmed or sure,
        )

    async def affirm(self, name: str) -> Memory | None:
        """Confirm the memory with the id `name`; None if it is not current and unconfirmed."""
        held = await self._take_current(name)
        return self._change(held, confirmed=True) if held and not held.memory.confirmed else None

    async def doubt(self, name: str) -> None:
        """Mark the memory with the id `name` as unconfirmed, if it is current."""
        held = await self._take_current(name)
        if held and held.memory.confirmed:
            self._change(held, confirmed=False)

    async def retract(self, key: str, author: str | None, at: datetime) -> Memory | None:
        """End the current version of `key`, which becomes history; None if there is none."""
        found = await self._find(key, author)
        return self._end(found, at) if found and found.memory.current else None

    def hold(self, records: Iterable[Record]) -> None:
        """Take memories as they were read, so that changing them reads none of them again."""
        for record in records:
            self._hold(record)

    async def end(self, name: str, at: datetime, *, deleted: bool = False) -> Memory | None:
        """End the memory with the id `name`, which becomes history; None if it is not current.

        `deleted`: its user deletes it, which is noted of one that had ended, too.
        """
        held = await self._take(name)
        if held is None:
            return None
        ends = held.memory.current
        if deleted and not held.memory.deleted:
            self._change(held, deleted=True)
        return self._end(held, at) if ends else None

    async def restore(self, name: str, at: datetime) -> Memory | None:
        """Make the ended memory `name` current again, as a new version from `at` on.

        None if it is gone or current, or if its key holds something.
        """
        held = await self._take(name)
        if held is None or held.memory.current:
            return None
        ended = held.memory
        if ended.key and await self.current(ended.key, ended.author):
            return None
        self._changed[name] = None  # if it is forgotten meanwhile, the write fails
        again = replace(
            ended, valid_from=at, valid_until=None, supersedes=None, superseded_by=None, deleted=False
        )
        return await (self.set(again) if ended.key else self.add(again))

    def _end(self, held: _PendingMemory, at: datetime, superseded_by: str | None = None) -> Memory:
        self._ended[held.memory.id] = None
        return self._change(held, valid_until=at, superseded_by=superseded_by)

    def _change(self, held: _PendingMemory, **fields: Any) -> Memory:
        held.memory = replace(held.memory, **fields)
        self._changed[held.memory.id] = None
        return held.memory

    def _add(self, memory: Memory, number: int) -> Memory:
        self._held[memory.id] = _PendingMemory(memory, 0, number)
        self._changed[memory.id] = None
        return memory

    async def _find(self, key: str, author: str | None) -> _PendingMemory | None:
        """The newest memory under `key` by `author`."""
        if (key, author) not in self._newest:
            newest = await self._look_back(key, author)
            self._newest[key, author] = newest.memory.id if newest else None
        name = self._newest[key, author]
        return self._held[name] if name else None

    async def _look_back(self, key: str, author: str | None) -> _PendingMemory | None:
        """The last version of `key` by `author`, read page by page: many others may have written since."""
        after = -1
        while True:
            page = await self.store.scan(
                self.scope, MEMORY, key=key, after=after, limit=_LOOK_BACK, newest_first=True
            )
            own = next((record for record in page if record.data.get("author") == author), None)
            if own is not None:
                return self._hold(own)
            if len(page) < _LOOK_BACK:
                return None
            after = page[-1].seq

    async def _take(self, name: str) -> _PendingMemory | None:
        if name not in self._held:
            records = await self.store.read(self.scope, MEMORY, [name])
            return self._hold(records[0]) if records else None
        return self._held[name]

    async def _take_current(self, name: str) -> _PendingMemory | None:
        held = await self._take(name)
        return held if held and held.memory.current else None

    def _hold(self, record: Record) -> _PendingMemory:
        fresh = _PendingMemory(memory_of(record), record.version, record.data.get("number", 0), record.data)
        return self._held.setdefault(record.id, fresh)


def _put(held: _PendingMemory) -> Put:
    record = record_of_memory(held.memory)
    if held.number:
        record = replace(record, data={**record.data, "number": held.number})
    return Put(record=record, expect=held.version, was=held.was)


def _same(known: Memory, said: Memory) -> bool:
    names = ("text", "category", "context", "visibility")
    return all(getattr(known, name) == getattr(said, name) for name in names)
