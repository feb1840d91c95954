"""How a user wants to be served: one record of a scope, checked on its way in and on its way out.

Not memories: no search finds them, nothing that is distilled can set one, and they hold in every session
until they are changed. What presets mean to an agent is said here, in our words; free ones stay the user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from echoic.errors import InvalidInput, brief
from echoic.memory.records import CONVERSATION
from echoic.memory.retry import until_written
from echoic.stores.base import Put, Record, Require, Store
from echoic.temporal import ZONE_KEYS, zone_of
from echoic.types import MAX_FREE_DIRECTIVES, PRESETS, Directives, Scope, checked_name

DIRECTIVES: Final = "directives"
"""The kind of the records, and the id of the one that holds in every session."""

SAID: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "pacing": {
            "slow": "Speak slowly, with pauses.",
            "normal": "Speak at a normal pace.",
            "fast": "Speak briskly.",
        },
        "verbosity": {
            "brief": "Keep answers to a sentence or two.",
            "normal": "Answer at ordinary length.",
            "detailed": "Give full, detailed answers.",
        },
        "formality": {
            "casual": "Be casual.",
            "neutral": "Be neither formal nor casual.",
            "formal": "Be formal.",
        },
    }
)
"""What each preset asks of an agent."""


async def read_directives(
    store: Store, scope: Scope, *, agent: str | None = None, conversation: str | None = None
) -> Directives:
    """What the user of `scope` asked for; nothing set is an empty `Directives`.

    Args:
        store: where.
        scope: whose.
        agent: with what holds for this agent alone, which goes before all else.
        conversation: with what holds in this conversation alone, which goes before what holds everywhere.
    """
    names = [DIRECTIVES]
    names += [_id_of(None, conversation)] if conversation is not None else []
    names += [_id_of(agent, None)] if agent is not None else []
    merged = Directives()
    for record in await store.read(scope, DIRECTIVES, names):
        merged = _merged(merged, directives_of(record))
    return merged


async def change_directives(
    store: Store,
    scope: Scope,
    changes: Mapping[str, str | None],
    *,
    agent: str | None = None,
    conversation: str | None = None,
) -> Directives:
    """Set each named directive, or take it back with None; all of them or none.

    Args:
        store: where.
        scope: whose.
        changes: by name.
        agent: for this agent alone.
        conversation: for this conversation alone, with which they are forgotten.

    Returns:
        how they stand now.

    Raises:
        InvalidInput: a value is no time zone where it has to be one, or out of bounds, or both an agent and a
            conversation are named; nothing was written.
        StoreUnavailable: nothing was kept.
    """
    await _check_zones(changes)
    name = _id_of(agent, conversation)
    belongs = [] if conversation is None else [Require(kind=CONVERSATION, id=conversation)]

    async def attempt() -> Directives:
        records = await store.read(scope, DIRECTIVES, [name])
        old = directives_of(records[0]) if records else Directives()
        new = _changed(old, changes)
        if conversation is not None and not await store.read(scope, CONVERSATION, [conversation]):
            raise InvalidInput(f"there is no conversation {conversation!r:.80} to set directives for")
        if new != old:
            held = records[0] if records else None
            record = replace(record_of_directives(new), id=name, key=conversation)
            await store.write(scope, [*belongs, Put.over(held, record)])
        return new

    return await until_written(attempt, "the user's directives")


def _id_of(agent: str | None, conversation: str | None) -> str:
    """The id of the record that holds directives for an agent, for a conversation, or for all of them."""
    if agent is not None and conversation is not None:
        raise InvalidInput(
            "directives are for an agent or for a conversation, not for both: set them one by one"
        )
    if agent is not None:
        return f"agent:{checked_name(agent, 'agent')}"
    return (
        DIRECTIVES if conversation is None else f"conversation:{checked_name(conversation, 'conversation')}"
    )


def _merged(wide: Directives, narrow: Directives) -> Directives:
    """Both; where they differ what is said for less holds. One too many of the wider ones is left out."""
    named = {name: getattr(narrow, name) or getattr(wide, name) for name in (*PRESETS, "language")}
    free = {**narrow.free, **{name: text for name, text in wide.free.items() if name not in narrow.free}}
    return Directives(**named, free=dict(list(free.items())[:MAX_FREE_DIRECTIVES]))


async def _check_zones(changes: Mapping[str, str | None]) -> None:
    """Refuse what names no time zone. What was set before is not asked: other changes go on."""
    for name in ZONE_KEYS:
        value = changes.get(name)
        if isinstance(value, str):  # else it is refused like any other directive
            await asyncio.to_thread(zone_of, value)  # the zone database is files


def record_of_directives(directives: Directives) -> Record:
    """`directives` as a record; what is not set is left out."""
    data: dict[str, Any] = {
        name: value for name in (*PRESETS, "language") if (value := getattr(directives, name)) is not None
    }
    return Record(kind=DIRECTIVES, id=DIRECTIVES, data={**data, "free": dict(directives.free)})


def directives_of(record: Record) -> Directives:
    """The inverse of `record_of_directives`.

    Raises:
        InvalidInput: the record holds what could not have been set.
    """
    known = {name: record.data.get(name) for name in (*PRESETS, "language")}
    free = record.data.get("free", {})
    if not isinstance(free, Mapping):
        raise InvalidInput(f"free directives must be an object, not {type(free).__name__}")
    return Directives(**known, free=free)


def _changed(old: Directives, changes: Mapping[str, str | None]) -> Directives:
    presets = {name: value for name, value in changes.items() if name in {*PRESETS, "language"}}
    free = {**old.free, **{name: value for name, value in changes.items() if name not in presets}}
    kept = {name: value for name, value in free.items() if value is not None}
    # a name that is only taken back was never checked as one that is set
    for name in free.keys() - kept.keys() - old.free.keys():
        raise InvalidInput(f"there is no directive {brief(name)} to take back")
    return replace(old, free=kept, **presets)


__all__ = [
    "DIRECTIVES",
    "SAID",
    "change_directives",
    "directives_of",
    "read_directives",
    "record_of_directives",
]
