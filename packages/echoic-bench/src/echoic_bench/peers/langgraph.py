"""LangGraph's store, which LangMem builds on: the one in memory, the only one that needs nothing else.

Its SQLite store needs a further package and a Python that can load extensions of SQLite, its PostgreSQL store
a server; neither comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from echoic_bench.peers.base import About, Kept, Vector


class LangGraph:
    """LangGraph's `InMemoryStore` with an index."""

    about = About(
        name="langgraph",
        packages=("langgraph",),
        form="InMemoryStore: nothing outlives the process",
        durable=False,
    )

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Make ready."""
        del folder

        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [vectors[text].tolist() for text in texts]

        index: Any = {"dims": dimensions, "embed": embed, "fields": ["text"]}
        self._store: Any = import_module("langgraph.store.memory").InMemoryStore(index=index)

    async def add(self, user: str, one: Kept) -> None:
        """Keep a text under its id."""
        self._store.put((user,), one.item.id, {"text": one.text})

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """The nearest of the user's."""
        found = self._store.search((user,), query=question, limit=limit)
        return [(hit.key, hit.score) for hit in found]

    async def forget(self, user: str, item: str) -> None:
        """Delete it."""
        self._store.delete((user,), item)

    async def aclose(self) -> None:
        """Nothing to close."""


__all__ = ["LangGraph"]
