"""An embedder that is opened on first use.

So `echoic get` loads no model, and `echoic set` works on a machine without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from echoic.embedding.base import Embedded, Embedder, EmbeddingSpec, Kind, Vectors, embedded
from echoic.errors import EmbedderError, EmbedderMissing, EmbedderUnavailable


class DeferredEmbedder:
    """Opens an embedder on first use; `trouble` says why it could not be used."""

    def __init__(self, embedder: Embedder) -> None:
        """Opens nothing."""
        self._embedder = embedder
        self._claims: EmbeddingSpec | None = None
        self._honest = asyncio.Event()
        self._honest.set()
        self._opening = asyncio.Lock()
        self._ready = False
        self.trouble: EmbedderError | None = None
        """The last error while opening or using it; None if there was none."""

    @property
    def spec(self) -> EmbeddingSpec:
        """The embedder's specification, or the one it claims."""
        return self._claims or self._embedder.spec

    @property
    def own_spec(self) -> EmbeddingSpec:
        """The embedder's own specification, whatever it claims."""
        return self._embedder.spec

    @property
    def semantic(self) -> bool:
        """Whether the embedder captures meaning; False once it is known to be missing."""
        return self._embedder.semantic and not isinstance(self.trouble, EmbedderMissing)

    def claim(self, spec: EmbeddingSpec) -> None:
        """Claim `spec`, so that a store with its vectors opens; embedding waits until `own_up`."""
        self._claims = spec
        self._honest.clear()

    def own_up(self) -> None:
        """Drop the claim, and embed again."""
        self._claims = None
        self._honest.set()

    async def open(self) -> None:
        """Do nothing; `ready` opens the embedder."""

    async def ready(self) -> None:
        """Open the embedder unless it is open. A missing one stays missing for this process.

        Raises:
            EmbedderMissing: its packages or weights are not on this machine.
            EmbedderUnavailable: it could not be reached.
        """
        if self._ready:
            return
        async with self._opening:
            if self._ready:  # the holder of the lock opened it
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
        """Embed `texts`, opening the embedder first.

        Raises:
            EmbedderMissing: it cannot be opened.
            EmbedderUnavailable: it could not be reached.
        """
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """Embed `texts` with their word pieces, if the embedder has any.

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
        """Count the tokens of `text`; None if the embedder cannot."""
        counting = getattr(self._embedder, "count_tokens", None)
        return counting(text) if counting and self._ready else None
