"""What `echoic doctor` asks a store about its server, where there is one that somebody runs and sets up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from echoic.stores.base import Finding
    from echoic.types import EmbeddingSpec


async def examined(url: str, embedding: EmbeddingSpec) -> list[Finding]:
    """What the store at `url` finds out about its server; nothing where it knows of no server.

    Args:
        url: as `--store` takes it.
        embedding: whose vectors it holds.

    Raises:
        StoreError: it cannot be opened, or the server cannot be asked.
    """
    from echoic.memory.records import index
    from echoic.stores import store_from
    from echoic.stores.base import Examines

    store = store_from(url)
    if not isinstance(store, Examines):
        return []
    await store.open(embedding, index)
    try:
        return await store.examine()
    finally:
        await store.aclose()


__all__ = ["examined"]
