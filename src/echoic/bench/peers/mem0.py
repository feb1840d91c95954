"""mem0 (mem0ai): verbatim memories in its embedded Qdrant, on disk. No language model is called.

`infer=False` keeps texts as they are. Its BM25 and entity legs need downloads of their own; without them it
searches by vectors only and says so in its log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from echoic.bench.labelled import Labelled
from echoic.bench.peers.base import About, Kept, Vector


class Mem0:
    """mem0's `Memory`."""

    about = About(name="mem0", packages=("mem0ai",), form="embedded Qdrant, on_disk=True", durable=True)

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Make ready; no key and no network are needed."""
        # read when the package is imported
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        os.environ.setdefault("MEM0_DIR", str(folder / "home"))

        store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": dimensions}
        # clients are made and never used: every vector is given, and nothing is inferred
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        mem0: Any = import_module("mem0")
        self._memory: Any = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**store, "collection_name": "bench"}},
                "llm": unused,
                "embedder": unused,
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Given(vectors)

    async def add(self, whose: Labelled, one: Kept) -> None:
        """Keep a text verbatim."""
        metadata = {"item": one.item.id}
        self._memory.add(one.text, user_id=whose.user, infer=False, metadata=metadata)

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, whose: Labelled, question: str, limit: int) -> list[str]:
        """The hits, however unlike: its own threshold would leave lists short."""
        found = self._memory.search(question, top_k=limit, filters={"user_id": whose.user}, threshold=0.0)
        return [hit["metadata"]["item"] for hit in found["results"]]

    async def aclose(self) -> None:
        """Close what it opened."""
        self._memory.vector_store.client.close()


class _Given:
    """mem0's embedder, with every vector known."""

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors = {text.strip(): vector for text, vector in vectors.items()}  # as mem0 does
        self.config = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        found: list[float] = self._vectors[text.strip()].tolist()
        return found

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


__all__ = ["Mem0"]
