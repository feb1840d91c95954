"""Store and embedder as everything above them sees them: writes and embeddings are traced and counted.

Writes pass the door, where secrets are masked; nothing else of them is changed. A store refuses what a quota
forbids, and verbs in another event loop than the service's. Whatever else a store or an embedder can do is
its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from echoic.embedding.base import Embedded, Embedder, EmbeddingSpec, Kind, Vectors, embedded
from echoic.errors import EmbedderError, NotOpen, StoreError
from echoic.memory.compliance import Compliance
from echoic.memory.door import Door
from echoic.memory.hooks import Hooks, Trouble
from echoic.memory.quota import Meter, Quota
from echoic.memory.records import MEMORY
from echoic.memory.telemetry import Telemetry
from echoic.stores.base import Change, Erasable, Erased, Record, Store
from echoic.types import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from echoic.partition import Partition


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
    compliance: Compliance | None = None,
) -> Store:
    """`store`, its writes masked at `door`, traced and counted, and refused where `meter` says so.

    Its verbs are for the loop `home` alone. What it erases is listed in `compliance`.
    """
    kind = _ObservedNarrowing if hasattr(store, "narrow") else _ObservedStore
    meter, home = meter or Meter(store, Quota()), home or HomeLoop()
    return cast("Store", kind(store, telemetry, door, meter, home, compliance=compliance))


class _ObservedStore:
    def __init__(
        self,
        store: Store,
        telemetry: Telemetry,
        door: Door,
        meter: Meter,
        home: HomeLoop,
        *,
        compliance: Compliance | None,
    ) -> None:
        self._observed: Any = store
        self._compliance = compliance
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
            doing.note(changes=len(prepared))
            async with self._meter.writing(scope, prepared):
                await self._observed.write(scope, prepared)
        self._telemetry.written(len(prepared))
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
            if self._compliance is not None:
                return await self._compliance.erase(self._observed, scope, changes)
            return cast("Erased", await self._observed.erase(scope, changes))
        finally:
            self._meter.removed(scope)


class _ObservedNarrowing(_ObservedStore):
    """For a store that narrows: what is looked up in the class is there, not only what is asked of it."""

    @property
    def narrow_above(self) -> int:
        return cast("int", self._observed.narrow_above)

    async def size(self, scope: Scope) -> int:
        self._home.check()
        return cast("int", await self._observed.size(scope))

    async def narrow(
        self, scope: Scope, text: str, vector: NDArray[np.float32] | None, **options: Any
    ) -> Partition:
        self._home.check()
        return cast("Partition", await self._observed.narrow(scope, text, vector, **options))


class ObservedEmbedder:
    """An embedder whose work is traced and counted; hooks are told where documents could not be embedded."""

    def __init__(self, embedder: Embedder, telemetry: Telemetry, hooks: Hooks) -> None:
        self._observed = embedder
        self._telemetry = telemetry
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observed, name)

    @property
    def spec(self) -> EmbeddingSpec:
        """Of the embedder."""
        return self._observed.spec

    @property
    def semantic(self) -> bool:
        """Of the embedder."""
        return self._observed.semantic

    async def open(self) -> None:
        """Open the embedder."""
        await self._observed.open()

    async def aclose(self) -> None:
        """Close the embedder."""
        await self._observed.aclose()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As the embedder does."""
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As the embedder does; without pieces where it has none."""
        try:
            with self._telemetry.operation("embed") as doing:
                doing.note(kind=kind, texts=len(texts))
                made = await embedded(self._observed, texts, kind)
        except EmbedderError as error:
            if kind == "document":
                self._hooks.emit(Trouble(what="embedding", reason=type(error).__name__))
            raise
        self._telemetry.embedded(len(texts), kind)
        return made
