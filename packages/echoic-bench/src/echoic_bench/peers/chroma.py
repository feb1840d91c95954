"""Chroma (chromadb): a persistent client, one collection, the user as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from echoic_bench.peers.base import About, Kept, Vector


class Chroma:
    """Chroma's `PersistentClient`."""

    about = About(name="chroma", packages=("chromadb",), form="PersistentClient, cosine", durable=True)

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Make ready."""
        del dimensions
        chromadb: Any = import_module("chromadb")
        quiet = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._vectors = vectors
        client = chromadb.PersistentClient(str(folder / "chroma"), quiet)
        self._collection: Any = client.create_collection(
            "bench", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    async def add(self, user: str, one: Kept) -> None:
        """Keep a text with its vector."""
        self._collection.add(
            ids=[one.item.id],
            embeddings=[one.vector],
            documents=[one.text],
            metadatas=[{"user": user}],
        )

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The nearest of the user's."""
        found = self._collection.query(
            query_embeddings=[self._vectors[question]],
            n_results=limit,
            where={"user": user},
            include=["distances"],
        )
        nearness = (1 - distance for distance in found["distances"][0])
        return list(zip(found["ids"][0], nearness, strict=True))

    async def forget(self, user: str, item: str) -> None:
        """Delete it."""
        del user  # ids are unique here
        self._collection.delete(ids=[item])

    async def aclose(self) -> None:
        """Nothing to close: the client has no way to be closed."""


__all__ = ["Chroma"]
