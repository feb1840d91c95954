"""Echoic as a peer: durable on SQLite, asked through its public interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from echoic.memory.service import MemoryService
from echoic.ranking import kernel
from echoic.stores.base import Put
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope
from echoic_bench.corpus import DEPLOYMENT, HeldEmbedder, ids_of, record_of, settled
from echoic_bench.peers.base import About, Kept, Vector


class Echoic:
    """The default: `MemoryService` over SQLite, synced at every write."""

    about = About(
        name="echoic", packages=("echoic",), form="SQLite file, synced at every write", durable=True
    )

    def __init__(self, embedder: HeldEmbedder, fusion: str = "blend") -> None:
        """Nothing is open yet.

        Args:
            embedder: remembers every text: it encodes nothing while it is timed.
            fusion: how hits are found.
        """
        self._embedder = embedder
        self._fusion = fusion

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Make ready."""
        del vectors, dimensions  # the embedder has them, with the word pieces
        self._store = SQLiteStore(folder / "echoic.db")
        self._memory = await MemoryService(self._store, self._embedder, fusion=self._fusion).open()

    async def add(self, user: str, one: Kept) -> None:
        """Keep a thing, durable; it is found by its words at once, and by meaning when `ready`."""
        await self._store.write(Scope(DEPLOYMENT, user), [Put(record=record_of(one.item))])

    async def ready(self) -> None:
        """Wait until everything has its vector."""
        await settled(self._memory, 0)

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The hits of a recall."""
        recall = await self._memory.user(user, DEPLOYMENT).recall(question, limit=limit, min_relevance=0)
        scores = (hit.score for hit in recall.hits)
        return [(names[0], score) for names, score in zip(ids_of(recall), scores, strict=True)]

    async def forget(self, user: str, item: str) -> None:
        """Destroy it."""
        await self._memory.user(user, DEPLOYMENT).forget(id=item)

    async def aclose(self) -> None:
        """Close it."""
        await self._memory.aclose()


class EchoicAlike(Echoic):
    """Echoic doing no more than the others do: it searches by vectors alone."""

    about = replace(Echoic.about, name="echoic, vectors alone")

    def __init__(self, embedder: HeldEmbedder) -> None:
        """As `Echoic`."""
        super().__init__(embedder, "vector")


class EchoicNumpy(Echoic):
    """Echoic without its compiled kernel."""

    about = replace(Echoic.about, name="echoic, numpy")

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The hits of a recall that numpy ranks."""
        compiled, kernel.compiled = kernel.compiled, None
        try:
            return await super().search(user, question, limit)
        finally:
            kernel.compiled = compiled


__all__ = ["Echoic", "EchoicAlike", "EchoicNumpy"]
