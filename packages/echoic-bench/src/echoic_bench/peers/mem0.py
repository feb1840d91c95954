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

from echoic_bench.peers.base import About, Kept, Vector


class Mem0:
    """mem0's `Memory`."""

    about = About(name="mem0", packages=("mem0ai",), form="embedded Qdrant, on_disk=True", durable=True)

    def __init__(self, threshold: float = 0.0) -> None:
        """Nothing is open yet. Hits less like than `threshold` are left out; mem0's default is 0.1."""
        self._threshold = threshold

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
        self._ids: dict[str, str] = {}

    async def add(self, user: str, one: Kept) -> None:
        """Keep a text verbatim."""
        metadata = {"item": one.item.id}
        added = self._memory.add(one.text, user_id=user, infer=False, metadata=metadata)
        self._ids[one.item.id] = added["results"][0]["id"]

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The hits, however unlike: its own threshold would leave lists short."""
        found = self._memory.search(
            question, top_k=limit, filters={"user_id": user}, threshold=self._threshold
        )
        return [(hit["metadata"]["item"], hit["score"]) for hit in found["results"]]

    async def forget(self, user: str, item: str) -> None:
        """Delete it by the id that mem0 gave it."""
        del user
        self._memory.delete(self._ids[item])

    async def aclose(self) -> None:
        """Close what it opened."""
        self._memory.vector_store.client.close()


class _Given:
    """mem0's embedder, with every vector known."""

    def __init__(self, vectors: Mapping[str, Vector]) -> None:
        self._vectors = vectors
        self.config = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        del memory_action
        vector = self._vectors.get(text)
        if vector is None:  # mem0 strips what it is given
            vector = next(each for known, each in self._vectors.items() if known.strip() == text.strip())
        found: list[float] = vector.tolist()
        return found

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


__all__ = ["Mem0"]
