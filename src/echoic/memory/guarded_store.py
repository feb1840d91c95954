"""Store and embedder as everything above them sees them: writes and embeddings are traced and counted.

Writes pass the door, where secrets are masked; nothing else of them is changed. A store refuses what a quota
forbids, and verbs in another event loop than the service's. Whatever else a store or an embedder can do is
its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, cast

from echoic.embedding.base import Embedded, Embedder, Kind, Vectors, embedded
from echoic.errors import NotOpen, StoreError
from echoic.memory.door import Door
from echoic.memory.quota import Meter, Quota
from echoic.memory.records import MEMORY
from echoic.memory.telemetry import Telemetry
from echoic.stores.base import Change, Erasable, Erased, Record, Store
from echoic.types import Scope

log = logging.getLogger(__name__)


_WAY_OUT = (
    "Open it inside the loop that uses it, as in `async with echoic.open(…) as memory:`, "
    "or use echoic.sync, which works from any thread."
)


class HomeLoop:
    """Remembers the loop, and tells whoever comes from another one.

    Without it a verb used elsewhere would seem to work: what it writes is durable, but the tasks that embed
    it and learn from it are in the other loop, and nothing would ever wake them.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def ended(self) -> bool:
        """Whether the loop is closed and nothing in it can be awaited any more."""
        return self._loop is not None and self._loop.is_closed()

    def enter(self) -> bool:
        """Be at home in the running loop; whether that is new.

        Raises:
            NotOpen: the home is another loop.
        """
        self.check()
        entered, self._loop = self._loop is None, asyncio.get_running_loop()
        return entered

    def leave(self) -> None:
        """Have no home: the next loop may be it."""
        self._loop = None

    def check(self) -> None:
        """Nothing, where the running loop is the home, or there is none.

        Raises:
            NotOpen: it is another one.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._loop is None or self._loop is running:
            return
        if self.ended:
            raise NotOpen(
                "the event loop this memory was opened in has ended, and with it all that embeds and learns. "
                + _WAY_OUT
            )
        raise NotOpen("this memory was opened in another event loop and works in that one only. " + _WAY_OUT)


def observed_store(
    store: Store,
    telemetry: Telemetry,
    door: Door,
    *,
    meter: Meter | None = None,
    home: HomeLoop | None = None,
) -> Store:
    """`store`, its writes masked at `door`, traced and counted, and refused where `meter` says so.

    Its verbs are for the loop `home` alone.
    """
    meter, home = meter or Meter(store, Quota()), home or HomeLoop()
    return cast("Store", _ObservedStore(store, telemetry, door, meter, home))


class _ObservedStore:
    def __init__(self, store: Store, telemetry: Telemetry, door: Door, meter: Meter, home: HomeLoop) -> None:
        self._observed: Any = store
        self._telemetry = telemetry
        self._door = door
        self._meter = meter
        self._home = home

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._observed, name)
        if not callable(found):
            return found

        def verb(*args: Any, **kwargs: Any) -> Any:
            self._home.check()  # only now: whoever hands a verb on, as echoic.sync does, may be elsewhere
            return found(*args, **kwargs)

        return verb

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        self._home.check()
        prepared = await self._door.prepare(scope, changes)
        with self._telemetry.operation("write", scope) as doing:
            doing.count = len(prepared)
            doing.attributes = {"changes": doing.count}
            async with self._meter.writing(scope, prepared):
                await self._observed.write(scope, prepared)
        if prepared.rewritten:
            try:
                await self._observed.erase(scope, [])  # removes nothing but what was replaced, from the bytes
            except StoreError as error:  # what was said is kept; the next erasure finishes it
                log.warning("what was masked later has not left the bytes yet: %s", type(error).__name__)

    async def scan(self, scope: Scope, kind: str, *, key: str | None = None, **options: Any) -> list[Record]:
        self._home.check()
        if key is not None and kind == MEMORY:
            key = self._door.key(scope, key)
        return cast("list[Record]", await self._observed.scan(scope, kind, key=key, **options))

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        self._home.check()
        self._door.forget(scope)
        try:
            return cast("Erased", await self._observed.erase(scope, changes))
        finally:
            self._meter.removed(scope)


class ObservedEmbedder:
    """An embedder whose work is traced and counted."""

    def __init__(self, embedder: Embedder, telemetry: Telemetry) -> None:
        self._observed = embedder
        self._telemetry = telemetry
        self.spec = embedder.spec
        self.semantic = embedder.semantic
        self._pieces = getattr(embedder, "embed_pieces", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observed, name)

    async def open(self) -> None:
        """Open the embedder."""
        await self._observed.open()

    async def aclose(self) -> None:
        """Close the embedder."""
        await self._observed.aclose()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As the embedder does."""
        return (await embedded(self, texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As the embedder does; without pieces where it has none."""
        with self._telemetry.operation("embed") as doing:
            doing.count = len(texts)
            doing.attributes = {"kind": kind, "texts": doing.count}
            if self._pieces is None:
                return Embedded(await self._observed.embed(texts, kind))
            return cast("Embedded", await self._pieces(texts, kind))
