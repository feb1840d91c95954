"""Remembers vectors of recent queries, for any embedder. Documents pass through; errors are not kept.

In a call the same words come back: the last partial transcript equals the final one, tools ask again. For use
from one event loop. The texts it remembers are what people said: `clear()` forgets them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from echoic.embedding.base import (
    Embedded,
    Embedder,
    Kind,
    Vectors,
    checked_texts,
    embedded,
)
from echoic.errors import InvalidInput, NotOpen


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
        self.spec = inner.spec
        self.semantic = inner.semantic
        self._hold: Callable[[], Callable[[], None]] | None = getattr(inner, "hold_documents", None)
        self._entries = entries
        self._known: OrderedDict[str, Embedded] = OrderedDict()  # some 20 KB each, with word pieces
        self._coming: dict[str, asyncio.Future[Embedded]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleared = 0

    def count_tokens(self, text: str) -> int | None:
        """How many tokens the model of `inner` makes of `text`; None where it cannot say."""
        counting = getattr(self._inner, "count_tokens", None)
        return counting(text) if counting else None

    def hold_documents(self) -> Callable[[], None]:
        """Have `inner` begin no documents until what is returned is called, where it works on this machine.

        For a recall: whoever ranks needs the processor, and somebody waits.
        """
        return self._hold() if self._hold is not None else _nothing

    async def open(self) -> None:
        """Open `inner`.

        Raises:
            EmbedderMissing: as `inner` does.
            EmbedderUnavailable: likewise.
        """
        await self._inner.open()

    async def aclose(self) -> None:
        """Forget everything and close `inner`."""
        await self.stop()
        await self._inner.aclose()

    async def stop(self) -> None:
        """Embed no more of what is under way, and forget everything; `inner` stays open."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clear()

    def clear(self) -> None:
        """Forget every query and its vector."""
        self._known.clear()
        self._cleared += 1

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
        return (await self._joined(checked)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """`embed`, with the word pieces of each text where `inner` hands them out."""
        checked = checked_texts(texts, kind)
        if kind != "query" or not checked:
            return await embedded(self._inner, checked, kind)
        return await self._joined(checked)

    def begin(self, text: str) -> asyncio.Future[Embedded]:
        """What a query becomes: there at once where it is known, else when it is embedded.

        Others may wait for the same: shield it, and do not cancel it.
        """
        self._ask([text])
        return self._of(text)

    async def _joined(self, texts: list[str]) -> Embedded:
        self._ask(texts)
        coming = [self._of(text) for text in texts]
        found = [await _outcome(one) for one in coming]
        pieces = [piece for one in found for piece in one.pieces or ()]
        vectors = np.concatenate([one.vectors for one in found])
        return Embedded(vectors, pieces if len(pieces) == len(found) else None)

    def _ask(self, texts: list[str]) -> None:
        """See to it that each of `texts` is known or under way."""
        missing = [t for t in dict.fromkeys(texts) if t not in self._known and t not in self._coming]
        if not missing:
            return
        loop = asyncio.get_running_loop()
        coming = {text: loop.create_future() for text in missing}
        self._coming |= coming
        task = loop.create_task(self._fetch(missing))
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, coming))

    def _ended(self, task: asyncio.Task[None], coming: Mapping[str, asyncio.Future[Embedded]]) -> None:
        self._tasks.discard(task)
        for text, one in coming.items():
            if not one.done():  # it was cancelled before it began
                one.cancel()
                if self._coming.get(text) is one:
                    del self._coming[text]

    def _of(self, text: str) -> asyncio.Future[Embedded]:
        known = self._known.get(text)
        if known is None:
            return self._coming[text]
        self._known.move_to_end(text)
        there: asyncio.Future[Embedded] = asyncio.get_running_loop().create_future()
        there.set_result(known)
        return there

    async def _fetch(self, texts: list[str]) -> None:
        cleared = self._cleared
        try:
            made = await embedded(self._inner, texts, "query")
        except asyncio.CancelledError:
            for text in texts:
                self._coming.pop(text).cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is told to everybody who waits
            for text in texts:
                coming = self._coming.pop(text)
                coming.set_exception(error)
                coming.exception()  # seen, when nobody waits any more
            return
        for i, text in enumerate(texts):
            # a copy: a row would keep the whole batch in memory
            one = Embedded(made.vectors[i : i + 1].copy(), [made.pieces[i]] if made.pieces else None)
            if self._cleared == cleared:  # else it was to be forgotten while it was under way
                self._known[text] = one
            self._coming.pop(text).set_result(one)
        while len(self._known) > self._entries:
            self._known.popitem(last=False)


def _nothing() -> None:
    """Release what was not held."""


async def _outcome(coming: asyncio.Future[Embedded]) -> Embedded:
    try:
        return await asyncio.shield(coming)
    except asyncio.CancelledError:
        if not coming.cancelled():
            raise  # the caller was cancelled; the embedding goes on
        raise NotOpen("the embedder was closed while a query was waiting; open it again") from None
