"""Store and embedder as everything above them sees them: writes and embeddings are traced and counted.

They change nothing of what passes through. A store refuses what a quota forbids, and verbs in another event loop
than the service's. Whatever else a store or an embedder can do is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from echoic.embedding.base import Embedded, Embedder, EmbeddingSpec, Kind, Vectors, embedded
from echoic.errors import EmbedderError
from echoic.memory.home import HomeLoop
from echoic.memory.hooks import Hooks, Trouble
from echoic.memory.quota import Meter, Quota
from echoic.memory.telemetry import Telemetry
from echoic.stores.base import Change, Erasable, Erased, Store
from echoic.types import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from echoic.partition import Partition


def observed_store(
    store: Store, telemetry: Telemetry, *, meter: Meter | None = None, home: HomeLoop | None = None
) -> Store:
    """`store`, its writes traced and counted, and refused where `meter` says that they are too much.

    Its verbs are for the loop `home` alone.
    """
    kind = _ObservedNarrowing if hasattr(store, "narrow") else _ObservedStore
    return cast("Store", kind(store, telemetry, meter or Meter(store, Quota()), home or HomeLoop()))


class _ObservedStore:
    def __init__(self, store: Store, telemetry: Telemetry, meter: Meter, home: HomeLoop) -> None:
        self._observed: Any = store
        self._telemetry = telemetry
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
        with self._telemetry.operation("write", scope) as doing:
            doing.note(changes=len(changes))
            async with self._meter.writing(scope, changes):
                await self._observed.write(scope, changes)
        self._telemetry.written(len(changes))

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        self._home.check()
        try:
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


__all__ = ["ObservedEmbedder", "observed_store"]
