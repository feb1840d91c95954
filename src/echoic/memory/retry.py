"""Read, decide, write; and again if somebody else wrote in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from echoic.errors import StoreUnavailable, WriteConflict

T = TypeVar("T")

_ATTEMPTS = 40
"""Each attempt is lost only if another writer won, so this many is overload, not bad luck."""


async def until_written(attempt: Callable[[], Awaitable[T]], what: str) -> T:
    """Run `attempt` until it meets no `WriteConflict`.

    Raises:
        StoreUnavailable: others kept changing the same; nothing was written.
    """
    for number in range(_ATTEMPTS):
        try:
            return await attempt()
        except WriteConflict:
            # apart from the others, or they meet again; short, for a caller waits
            await asyncio.sleep(random.uniform(0, 0.002 * number))  # noqa: S311 - no secret
    raise StoreUnavailable(f"{what} kept changing while it was written ({_ATTEMPTS} attempts); try again")
