"""An embedder that is opened when it is first needed.

So `echoic get` loads no model, and `echoic set` keeps what it is told on a machine that has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from echoic.embedding.base import Embedded, Embedder, EmbeddingSpec, Kind, Vectors, embedded
from echoic.errors import EmbedderError, EmbedderUnavailable


class DeferredEmbedder:
    """Stands before an embedder until it is needed; `trouble` says why it could not be used."""

    def __init__(self, embedder: Embedder) -> None:
        """Opens nothing."""
        self._embedder = embedder
        self._claims: EmbeddingSpec | None = None
        self._honest = asyncio.Event()
        self._honest.set()
        self._opening = asyncio.Lock()
        self._ready = False
        self.trouble: EmbedderError | None = None
        """Why it could not be opened or used the last time; None while all is well."""

    @property
    def spec(self) -> EmbeddingSpec:
        """The embedder's, or what it passes for."""
        return self._claims or self._embedder.spec

    @property
    def own_spec(self) -> EmbeddingSpec:
        """The embedder's, whatever it passes for."""
        return self._embedder.spec

    @property
    def semantic(self) -> bool:
        """Whether it knows meaning."""
        return self._embedder.semantic

    def claim(self, spec: EmbeddingSpec) -> None:
        """Pass for `spec`, so that a store with its vectors opens; whoever embeds waits until `own_up`."""
        self._claims = spec
        self._honest.clear()

    def own_up(self) -> None:
        """Pass for nothing else any more, and embed again."""
        self._claims = None
        self._honest.set()

    async def open(self) -> None:
        """Nothing; see `ready`."""

    async def ready(self) -> None:
        """Open the embedder, unless it is open. What is missing stays missing for this process.

        Raises:
            EmbedderMissing: its packages or weights are not on this machine.
            EmbedderUnavailable: it could not be reached.
        """
        if self._ready:
            return
        async with self._opening:
            if self._ready:  # by whoever held the lock
                return
            if self.trouble is not None and not isinstance(self.trouble, EmbedderUnavailable):
                raise self.trouble
            try:
                await self._embedder.open()
            except EmbedderError as error:
                self.trouble = error
                raise
            self._ready = True

    async def aclose(self) -> None:
        """Close the embedder, if it was opened."""
        self._ready = False
        await self._embedder.aclose()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As the embedder does, opened before.

        Raises:
            EmbedderMissing: it cannot be opened.
            EmbedderUnavailable: it could not be reached.
        """
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As the embedder does; without word pieces where it has none.

        Raises:
            EmbedderMissing: it cannot be opened.
            EmbedderUnavailable: it could not be reached.
        """
        await self._honest.wait()
        await self.ready()
        try:
            made = await embedded(self._embedder, texts, kind)
        except EmbedderError as error:
            self.trouble = error
            raise
        self.trouble = None
        return made

    def count_tokens(self, text: str) -> int | None:
        """As the embedder does; None where it cannot say."""
        counting = getattr(self._embedder, "count_tokens", None)
        return counting(text) if counting and self._ready else None


__all__ = ["DeferredEmbedder"]
