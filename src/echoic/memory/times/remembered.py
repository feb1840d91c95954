"""Where a user's clocks stand, as far as anybody said: the same for asking and for learning."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import tzinfo

from echoic.errors import InvalidInput
from echoic.memory.profile import read_directives
from echoic.memory.records import MEMORY, memory_of
from echoic.memory.times.zones import ZONE_KEYS, zone_of
from echoic.stores.base import Store
from echoic.types import Memory, Scope


async def remembered_zone(store: Store, scope: Scope, newer: Sequence[Memory] = ()) -> tzinfo | None:
    """As the user set it, else as they said it, else as it is for everyone; None: nobody said.

    Args:
        store: where it is remembered.
        scope: whose.
        newer: what they said of it that is not kept yet.
    """
    directives = await read_directives(store, scope)
    said = [directives.free[key] for key in ZONE_KEYS if key in directives.free]
    said += [memory.text for memory in newer]
    for whose in (scope, scope.everyone):
        for key in ZONE_KEYS:
            newest = await store.scan(whose, MEMORY, key=key, limit=1, newest_first=True)
            said += [memory.text for record in newest if (memory := memory_of(record)).current]
    return await first_zone(said)


async def first_zone(names: Iterable[str]) -> tzinfo | None:
    """The first time zone that one of `names` means, read in a thread: the zone database is files."""
    for name in names:
        try:
            return await asyncio.to_thread(zone_of, name)
        except InvalidInput:
            continue  # "wherever I am": what was said names no zone
    return None


__all__ = ["first_zone", "remembered_zone"]
