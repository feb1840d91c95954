"""Remembers vectors of recent queries, for any embedder. Documents pass through; errors are not kept.

In a call the same words come back: the last partial transcript equals the final one, tools ask again. For use
from one event loop. The texts it remembers are what people said: `clear()` forgets them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedded, Embedder, EmbeddingSpec, Kind, Vectors, embedded
from echoic.embedding.texts import checked_texts
from echoic.errors import InvalidInput, NotOpen
from echoic.partition import Pieces


class _Known(NamedTuple):
    """What is remembered of a query: some 20 KB with word pieces."""

    vector: NDArray[np.float32]
    pieces: Pieces | None


class CachedEmbedder:
    """An embedder that asks `inner` once for each query among the last `entries` different ones."""

    def __init__(self, inner: Embedder, entries: int = 1024) -> None:
        """Takes `inner` over: opening and closing this opens and closes it.

        Args:
            inner: who makes the vectors.
            entries: how many are remembered; the one unused for longest goes first. Each takes 4 bytes a
                dimension, once for the text and, where `inner` hands them out, once for each word piece.

        Raises:
            InvalidInput: fewer than one entry.
        """
        if entries < 1:
            raise InvalidInput(f"entries must be at least 1, not {entries!r}")
        self._inner = inner
        self._entries = entries
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._coming: dict[str, asyncio.Task[dict[str, _Known]]] = {}

    @property
    def spec(self) -> EmbeddingSpec:
        """Of `inner`: the vectors are its own."""
        return self._inner.spec

    @property
    def semantic(self) -> bool:
        """Of `inner`."""
        return self._inner.semantic

    def count_tokens(self, text: str) -> int | None:
        """Of `inner`: how many tokens its model makes of `text`; None where it cannot say."""
        counting = getattr(self._inner, "count_tokens", None)
        return counting(text) if counting else None

    async def open(self) -> None:
        """Open `inner`.

        Raises:
            EmbedderMissing: as `inner` does.
            EmbedderUnavailable: likewise.
        """
        await self._inner.open()

    async def aclose(self) -> None:
        """Forget everything and close `inner`."""
        coming = set(self._coming.values())
        for task in coming:
            task.cancel()
        await asyncio.gather(*coming, return_exceptions=True)
        self.clear()
        await self._inner.aclose()

    def clear(self) -> None:
        """Forget every query and its vector."""
        self._known.clear()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order.

        Equal queries that come while the first is being embedded wait for it. A caller who gives up does not
        stop it: the answer will be there when it is asked for again.

        Raises:
            InvalidInput: `texts` are not strings that can be encoded.
            EmbedderUnavailable: as `inner` does; every caller who waits for the same query gets it.
        """
        checked = checked_texts(texts, kind)
        if kind != "query" or not checked:
            return await self._inner.embed(checked, kind)
        found = await self._found(checked)
        return np.stack([found[text].vector for text in checked])

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """`embed`, with the word pieces of each text where `inner` hands them out."""
        checked = checked_texts(texts, kind)
        if kind != "query" or not checked:
            return await embedded(self._inner, checked, kind)
        found = await self._found(checked)
        known = [found[text] for text in checked]
        pieces = [one.pieces for one in known if one.pieces is not None]
        return Embedded(
            np.stack([one.vector for one in known]), pieces if len(pieces) == len(known) else None
        )

    async def _found(self, texts: Sequence[str]) -> dict[str, _Known]:
        found = {text: self._known[text] for text in texts if text in self._known}
        for text in found:
            self._known.move_to_end(text)
        missing = [text for text in dict.fromkeys(texts) if text not in found and text not in self._coming]
        if missing:
            self._start(missing)
        for task in {self._coming[text] for text in texts if text in self._coming}:
            found |= await _outcome(task)
        return found

    def _start(self, texts: list[str]) -> None:
        task = asyncio.create_task(self._fetch(texts))
        self._coming |= dict.fromkeys(texts, task)
        task.add_done_callback(self._settle)

    async def _fetch(self, texts: list[str]) -> dict[str, _Known]:
        made = await embedded(self._inner, texts, "query")
        # copies: a row would keep the whole batch in memory
        vectors = [vector.copy() for vector in made.vectors]
        pieces: Sequence[Pieces | None] = made.pieces or [None] * len(texts)
        return {text: _Known(vectors[i], pieces[i]) for i, text in enumerate(texts)}

    def _settle(self, task: asyncio.Task[dict[str, _Known]]) -> None:
        self._coming = {text: other for text, other in self._coming.items() if other is not task}
        if task.cancelled() or task.exception() is not None:
            return  # asking for the exception also tells asyncio that it was seen, when nobody waits any more
        self._known |= task.result()
        while len(self._known) > self._entries:
            self._known.popitem(last=False)


async def _outcome(task: asyncio.Task[dict[str, _Known]]) -> dict[str, _Known]:
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.cancelled():
            raise  # the caller was cancelled; the task goes on
        raise NotOpen("the embedder was closed while a query was waiting; open it again") from None


__all__ = ["CachedEmbedder"]
