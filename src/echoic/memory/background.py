"""What happens after the answer: vectors for what was written, and memories from what was said.

Nothing here is needed for durability or for being found by words. Everything here can stop at any instant and
is taken up again from what the store says is waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from echoic.embedding.base import Embedder
from echoic.errors import EchoicError
from echoic.memory.records import index
from echoic.stores.base import Attach, Store, Waiting
from echoic.types import Scope

log = logging.getLogger(__name__)

BATCH = 32
"""Texts embedded at once: one segment of a scope, and short enough for a query to slip in between."""
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0


class Background:
    """One task that empties the queue of waiting embeddings and runs what was poked.

    Args:
        store: where records wait.
        embedder: makes their vectors.
        enrich: turns new turns of a conversation into memories; called for each that was poked.
    """

    def __init__(
        self, store: Store, embedder: Embedder, enrich: Callable[[Scope, str], Awaitable[object]]
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._enrich = enrich
        self._poked: dict[tuple[Scope, str], None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why embedding does not get on, such as "EmbedderUnavailable"; None while it does."""

    def start(self) -> None:
        """Begin, and look at what an earlier process left waiting."""
        if self._task is None:
            self._wake.set()
            self._task = asyncio.create_task(self._run(), name="echoic-background")

    def poke(self, conversation: tuple[Scope, str] | None = None) -> None:
        """Something was written. Pokes for the same conversation during a run make one more run."""
        if conversation is not None:
            self._poked[conversation] = None
        self._idle.clear()
        self._wake.set()

    async def settle(self, timeout_s: float) -> bool:
        """Wait until nothing waits, `timeout_s` at most; whether it came to that."""
        if self._task is None or self._task.done():
            return False
        self.poke()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        return self._idle.is_set() and self.trouble is None

    async def stop(self) -> None:
        """End at once; what is unfinished waits in the store."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        retry_s = FIRST_RETRY_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._enrich_poked()
                await self.embed_waiting()
                self.trouble, retry_s = None, FIRST_RETRY_S
            except EchoicError as error:
                self.trouble = type(error).__name__
                log.warning("%s: what waits is tried again in %.0f s", self.trouble, retry_s)
                asyncio.get_running_loop().call_later(retry_s, self._wake.set)
                retry_s = min(2 * retry_s, LAST_RETRY_S)
            if not self._wake.is_set():
                self._idle.set()

    async def _enrich_poked(self) -> None:
        while self._poked:
            scope, conversation = next(iter(self._poked))
            del self._poked[scope, conversation]
            try:
                await self._enrich(scope, conversation)
            except EchoicError:
                self._poked[scope, conversation] = None
                raise

    async def embed_waiting(self) -> int:
        """Give a vector to everything that waits for one; how many got it.

        Raises:
            EmbedderUnavailable: they go on waiting.
        """
        done = 0
        while batch := await self._store.waiting(BATCH):
            done += await self._embed(batch)
        return done

    async def _embed(self, batch: Sequence[Waiting]) -> int:
        texts = [entry.text if (entry := index(waiting.record)) else "" for waiting in batch]
        vectors = await self._embedder.embed(texts, "document")
        by_scope: dict[Scope, list[Attach]] = {}
        for waiting, vector in zip(batch, vectors, strict=True):
            record = waiting.record
            attach = Attach(kind=record.kind, id=record.id, version=record.version, vector=vector)
            by_scope.setdefault(waiting.scope, []).append(attach)
        for scope, attaches in by_scope.items():
            await self._store.write(scope, attaches)
        return len(batch)
