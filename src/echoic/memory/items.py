"""Records of an integrator's own kind beside a user's memories: JSON values under names, to keep and search.

Items are isolated, exported and forgotten like everything of a user. No recall finds them, and nothing is
learned from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from echoic.checks import checked_name, checked_query, checked_text, checked_time
from echoic.errors import InvalidInput, brief
from echoic.memory.concurrency import until_written
from echoic.memory.recall import SearchOptions
from echoic.memory.records import INDEXED_ITEM, ITEM, memory_id, scan_all
from echoic.memory.service_context import Parts
from echoic.stores.base import Drop, Put, Record
from echoic.types import Outcome, Scope

MAX_VALUE_BYTES: Final = 4_000_000
"""The largest value, as JSON in UTF-8."""
_TEXT_CHARACTERS: Final = 8000
"""The longest text that an item is found by: an embedder reads no more."""
_NOT_SEARCHABLE: Final = "items of kind {kind} are not searchable: open them with searchable=True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One value and its name."""

    name: str
    value: Any
    """JSON."""
    text: str | None = None
    """The text it is found by; None if search does not find it."""
    created_at: datetime
    updated_at: datetime
    relevance: float | None = None
    """How likely it is to answer, as `Hit.relevance`; None where nothing was searched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """The result of a search for items, and whether it covered all of them."""

    items: tuple[Item, ...]
    """Best first."""
    outcome: Outcome


class Items:
    """The items of one kind of one user. Made by `UserMemory.items`; holds no state of its own."""

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
        """Keep `value` under `name`, in place of the one before. Durable when it returns.

        Args:
            name: 1 to 256 characters.
            value: JSON, at most `MAX_VALUE_BYTES`.
            text: what it is found by; None: nothing finds it.

        Raises:
            InvalidInput: the value is not JSON or too large, or has a text though this kind is not searched.
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

        kept = await until_written(attempt, f"item {brief(name)}")
        self._parts.background.poke()
        return _item(kept)

    async def append(self, values: Sequence[Any]) -> None:
        """Keep `values` in this order behind all others, under names made for them: all of them, or none.

        Raises:
            InvalidInput: a value is not JSON, or too large.
        """
        records = [self._record(self._parts.new_id(), value, None) for value in values]
        await self._parts.store.write(self._scope, [Put(record=record) for record in records])

    async def get(self, name: str) -> Item | None:
        """The item under `name`; None: there is none."""
        known = await self._parts.store.read(self._scope, self._record_kind, [self._id(name)])
        return _item(known[0]) if known else None

    async def delete(self, *names: str) -> None:
        """Remove the items under `names`; missing ones are ignored. `forget` destroys their bytes."""
        drops = [Drop(kind=self._record_kind, id=self._id(name)) for name in names]
        await self._parts.store.write(self._scope, drops)

    async def all(self, *, newest: int | None = None) -> list[Item]:
        """All items in the order in which they were first kept, or the `newest` so many of them."""
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

    async def search(self, text: str, *, limit: int = 10, deadline_ms: float | None = None) -> FoundItems:
        """The best `limit` items for `text`, ranked as memories are, by meaning, words and near words.

        `deadline_ms` is the time to wait for the embedding, without which words and near words find alone.

        Raises:
            InvalidInput: this kind is not searchable, or an argument is not valid.
        """
        if not self._searchable:
            raise InvalidInput(_NOT_SEARCHABLE.format(kind=brief(self.kind)))
        asked = SearchOptions(limit, deadline_ms).checked()
        recaller = self._parts.recaller
        found, outcome = await recaller.search_items(self._scope, self._key, checked_query(text), asked)
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
    """The key that all items of a kind share, so that an index lists them."""
    return memory_id(
        checked_name(kind, "kind"), checked_name(conversation, "conversation") if conversation else ""
    )


def name_of(parts: Sequence[str], key: str) -> str:
    """A name for the item under `key` at a place of several parts, of bounded length."""
    return memory_id(json.dumps([list(parts), key]))


def texts_in(value: Any) -> str:
    """All texts of a JSON value, and its numbers, in their order: what it can be found by."""
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
    """An item as a record. Whoever wrote `data`, the record's names follow from what it says.

    Raises:
        InvalidInput: something in it cannot be kept.
    """
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
    """`value`, if every store gives it back as it is.

    Raises:
        InvalidInput: it is not JSON, or too large.
    """
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        same = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the value is not JSON ({type(error).__name__}): use texts, numbers, lists, objects"
        ) from error
    if not same:
        raise InvalidInput("the value is not JSON: the names in an object are texts, and a tuple is a list")
    if size > MAX_VALUE_BYTES:
        raise InvalidInput(f"the value has {size} bytes as JSON, {MAX_VALUE_BYTES} at most")
    return value


def _item(record: Record) -> Item:
    data: Mapping[str, Any] = record.data
    return Item(
        name=data["name"],
        value=data["value"],
        text=data.get("text"),
        created_at=datetime.fromisoformat(data["created_at"]),
        updated_at=datetime.fromisoformat(data["updated_at"]),
    )


__all__ = ["MAX_VALUE_BYTES", "FoundItems", "Item", "Items", "checked_json", "record_of_item"]
