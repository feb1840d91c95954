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
from echoic.memory.retry import until_written
from echoic.memory.times.zones import ZONE_KEYS, zone_of
from echoic.stores.base import Put, Record, Store
from echoic.types import PRESETS, Directives, Scope

DIRECTIVES: Final = "directives"
"""The kind of the record, and its id: there is one in a scope."""

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


async def read_directives(store: Store, scope: Scope) -> Directives:
    """What the user of `scope` asked for; nothing set is an empty `Directives`."""
    records = await store.read(scope, DIRECTIVES, [DIRECTIVES])
    return directives_of(records[0]) if records else Directives()


async def change_directives(store: Store, scope: Scope, changes: Mapping[str, str | None]) -> Directives:
    """Set each named directive, or take it back with None; all of them or none.

    Returns:
        how they stand now.

    Raises:
        InvalidInput: a value is none of its preset's, no time zone where it has to be one, or out of bounds;
            nothing was written.
        StoreUnavailable: nothing was kept.
    """
    await _check_zones(changes)

    async def attempt() -> Directives:
        records = await store.read(scope, DIRECTIVES, [DIRECTIVES])
        old = directives_of(records[0]) if records else Directives()
        new = _changed(old, changes)
        if new != old:
            held = records[0] if records else None
            await store.write(scope, [Put.over(held, record_of_directives(new))])
        return new

    return await until_written(attempt, "the user's directives")


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
    return replace(old, free=kept, **presets)  # type: ignore[arg-type]  # it checks its values itself


__all__ = [
    "DIRECTIVES",
    "SAID",
    "change_directives",
    "directives_of",
    "read_directives",
    "record_of_directives",
]
