"""Chroma (chromadb): a persistent client, one collection, the user as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from echoic.bench.labelled import Labelled
from echoic.bench.peers.base import About, Kept, Vector


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

    async def add(self, whose: Labelled, one: Kept) -> None:
        """Keep a text with its vector."""
        self._collection.add(
            ids=[one.item.id],
            embeddings=[one.vector],
            documents=[one.text],
            metadatas=[{"user": whose.user}],
        )

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, whose: Labelled, question: str, limit: int) -> list[str]:
        """The nearest of the user's."""
        vector = self._vectors[question]
        limit = min(limit, len(whose.items))
        found = self._collection.query(
            query_embeddings=[vector], n_results=limit, where={"user": whose.user}, include=["distances"]
        )
        return list(found["ids"][0])

    async def aclose(self) -> None:
        """Nothing to close: the client has no way to be closed."""


__all__ = ["Chroma"]
