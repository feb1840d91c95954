"""The embedder seam: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from echoic.types import EmbeddingSpec

Kind = Literal["query", "document"]
Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    A constructor does no I/O; `open()` loads or connects and may be awaited again; `aclose()` may be
    called twice.
    """

    @property
    def spec(self) -> EmbeddingSpec:
        """Known before `open()`, so that a store can be checked first."""
        ...

    @property
    def semantic(self) -> bool:
        """Whether it knows meaning. False for "lexical", which knows only words, spelling and sound."""
        ...

    async def open(self) -> None:
        """Make ready.

        Raises:
            EmbedderMissing: packages or weights are not on this machine.
            EmbedderUnavailable: the model could not be reached.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `open()` took."""
        ...

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order. Never blocks the loop.

        Raises:
            EmbedderUnavailable: after retries; nothing was embedded.
        """
        ...


__all__ = ["Embedder", "EmbeddingSpec", "Kind", "Vectors"]
