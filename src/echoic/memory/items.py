"""Your own records beside a user's memories: JSON values under names, to store and search.

Items are isolated, exported and forgotten like everything else of a user. Recall does not find them, and
nothing is learned from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from echoic.checks import checked_depth, checked_name, checked_query, checked_text, checked_time
from echoic.errors import InvalidInput, brief
from echoic.memory.concurrency import until_written
from echoic.memory.recall import MAX_LIMIT, SearchOptions
from echoic.memory.records import INDEXED_ITEM, ITEM, memory_id, reading, scan_all
from echoic.memory.service_context import Parts
from echoic.stores.base import Drop, Put, Record
from echoic.types import Outcome, Scope

MAX_VALUE_BYTES: Final = 4_000_000
"""The largest value, as JSON in UTF-8."""
_TEXT_CHARACTERS: Final = 8000
"""The longest text of an item; an embedder reads no more."""
_NOT_SEARCHABLE: Final = "items of kind {kind} are not searchable: open them with searchable=True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value and its name."""

    name: str
    value: Any
    """JSON."""
    text: str | None = None
    """The text it is found by; None if search does not find it."""
    created_at: datetime
    updated_at: datetime
    relevance: float | None = None
    """How likely it answers the search, as `Hit.relevance`; None outside a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """The result of a search for items, and whether it covered all of them."""

    items: tuple[Item, ...]
    """Best first."""
    outcome: Outcome


class Items:
    """The items of one kind of one user. Created by `UserMemory.items`."""

    def __init__(
        self, parts: Parts, scope: Scope, kind: str, *, searchable: bool, conversation: str | None
    ) -> None:
        self._parts = parts
        self._scope = scope
        self._record_kind = INDEXED_ITEM if searchable else ITEM
        self._searchable = searchable
        self._conversation = conversation
        self._key = _key_of(kind, conversation)
        self.kind = kind

    async def set(self, name: str, value: Any, *, text: str | None = None) -> Item:
        """Store `value` under `name`, replacing the previous one. Durable when it returns.

        Args:
            name: 1 to 256 characters.
            value: JSON, at most `MAX_VALUE_BYTES`, nested at most 100 levels deep.
            text: the text that search finds it by; None: search does not find it.

        Raises:
            InvalidInput: the value is not JSON or too large, or `text` is given for a kind without search.
        """
        record = self._record(name, value, text)

        async def attempt() -> Record:
            known = await self._parts.store.read(self._scope, record.kind, [record.id])
            old = known[0] if known else None
            new = record
            if old is not None:
                new = replace(record, data={**record.data, "created_at": old.data["created_at"]})
            prepared = await self._parts.write_filter.prepare(self._scope, [Put.over(old, new)])
            await self._parts.store.write(self._scope, prepared)
            return next(change.record for change in prepared if isinstance(change, Put))

        kept = await until_written(attempt, "item", name)
        self._parts.background.poke()
        return _item(kept)

    async def append(self, values: Sequence[Any]) -> None:
        """Store `values` in this order after all others, under generated names: all of them, or none.

        Raises:
            InvalidInput: a value is not JSON, or too large.
        """
        records = [self._record(self._parts.new_id(), value, None) for value in values]
        await self._parts.store.write(self._scope, [Put(record=record) for record in records])

    async def get(self, name: str) -> Item | None:
        """The item under `name`, or None."""
        known = await self._parts.store.read(self._scope, self._record_kind, [self._id(name)])
        return _item(known[0]) if known else None

    async def delete(self, *names: str) -> None:
        """Remove the items under `names`; missing ones are ignored. `forget` destroys their bytes.

        Raises:
            NotAllowed: the user's data is on legal hold.
        """
        from echoic.memory.retention import refuse_held

        await refuse_held(self._parts.store, self._scope)
        drops = [Drop(kind=self._record_kind, id=self._id(name)) for name in names]
        await self._parts.store.write(self._scope, drops)

    async def all(self, *, newest: int | None = None) -> list[Item]:
        """All items in the order in which they were first stored, or only the `newest`."""
        if newest is None:
            records = await scan_all(self._parts.store, self._scope, self._record_kind, key=self._key)
        elif newest < 1:
            return []
        else:
            records = await self._parts.store.scan(
                self._scope, self._record_kind, key=self._key, limit=newest, newest_first=True
            )
            records.reverse()
        return [_item(record) for record in records]

    async def search(
        self, text: str, *, limit: int | None = 10, deadline_ms: float | None = None
    ) -> FoundItems:
        """The best `limit` items for `text`, ranked like memories; None: all that are found.

        `deadline_ms` limits the wait for the embedding; without it, words and similar words rank alone.

        Raises:
            InvalidInput: this kind is not searchable, or an argument is not valid.
        """
        if not self._searchable:
            raise InvalidInput(_NOT_SEARCHABLE.format(kind=brief(self.kind)))
        asked = SearchOptions(MAX_LIMIT if limit is None else limit, deadline_ms).checked()
        recaller = self._parts.recaller
        if self._parts.audit is not None:  # a search reads past the observed store
            self._parts.audit.note("read", self._scope, self._record_kind)
        found, outcome = await recaller.search_items(
            self._scope, self._key, checked_query(text), asked, every=limit is None
        )
        items = tuple(replace(_item(record), relevance=relevance) for record, relevance in found)
        return FoundItems(items=items, outcome=outcome)

    def _id(self, name: str) -> str:
        return memory_id(self._key, checked_name(name, "name"))

    def _record(self, name: str, value: Any, text: str | None) -> Record:
        now = self._parts.clock().isoformat()
        data = {
            "kind": self.kind,
            "name": name,
            "value": value,
            "text": text,
            "conversation": self._conversation,
            "created_at": now,
            "updated_at": now,
        }
        return record_of_item(data, searchable=self._searchable)


def _key_of(kind: str, conversation: str | None) -> str:
    """The key shared by all items of a kind, by which the store lists them."""
    return memory_id(
        checked_name(kind, "kind"), checked_name(conversation, "conversation") if conversation else ""
    )


def texts_in(value: Any) -> str:
    """All texts and numbers of a JSON value in order, to search it by."""
    return "\n".join(_texts(value))[:_TEXT_CHARACTERS].replace("\0", " ").strip()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            told = " ".join(_texts(each))
            if told:
                yield f"{name}: {told}"
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def record_of_item(data: Mapping[str, Any], *, searchable: bool) -> Record:
    """An item as a record; its names are derived from `data`. Raises InvalidInput."""
    if data.get("text") is not None and not searchable:
        raise InvalidInput(_NOT_SEARCHABLE.format(kind=brief(data["kind"])))
    key = _key_of(data["kind"], data.get("conversation"))
    kept = {
        "kind": data["kind"],
        "name": checked_name(data["name"], "name"),
        "value": checked_json(data["value"]),
        "created_at": _moment(data["created_at"]),
        "updated_at": _moment(data["updated_at"]),
    }
    if data.get("text") is not None:
        kept["text"] = checked_text(data["text"], "text")
    if data.get("conversation"):
        kept["conversation"] = data["conversation"]
    kind = INDEXED_ITEM if searchable else ITEM
    return Record(kind=kind, id=memory_id(key, kept["name"]), key=key, data=kept)


def _moment(text: str) -> str:
    return checked_time(datetime.fromisoformat(text), "a time of an item").isoformat()


def checked_json(value: Any) -> Any:
    """`value`, if it is JSON of valid size that every store returns unchanged, or InvalidInput."""
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        same = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the value is not JSON ({type(error).__name__}): use texts, numbers, lists, objects"
        ) from error
    checked_depth(value, "the value")
    if not same:
        raise InvalidInput("the value is not JSON: the names in an object are texts, and a tuple is a list")
    if size > MAX_VALUE_BYTES:
        raise InvalidInput(f"the value has {size} bytes as JSON, {MAX_VALUE_BYTES} at most")
    return value


@reading
def _item(record: Record) -> Item:
    data: Mapping[str, Any] = record.data
    return Item(
        name=data["name"],
        value=data["value"],
        text=data.get("text"),
        created_at=datetime.fromisoformat(data["created_at"]),
        updated_at=datetime.fromisoformat(data["updated_at"]),
    )
