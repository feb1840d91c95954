"""What happens after the answer: vectors for what was written, and memories from what was said.

Nothing here is needed for durability or for being found by words. Everything here can stop at any instant and
is taken up again from what the store says is waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence

from echoic.embedding.base import Embedder, embedded_documents
from echoic.errors import EchoicError, EmbedderError, EmbedderMissing
from echoic.memory.audit import working
from echoic.memory.concurrency import RunsPerUser, Wanted
from echoic.memory.distil import Distiller
from echoic.memory.guarded_store import HomeLoop
from echoic.memory.hooks import Hooks, Trouble
from echoic.memory.records import index
from echoic.stores.base import Attach, Store, Waiting
from echoic.types import Scope

log = logging.getLogger(__name__)

BATCH = 32
"""Texts embedded at once: one segment of a scope, and short enough for a query to slip in between."""
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
SWEEP_AFTER_S = 2.0
"""When to look for conversations that nobody distilled: not in a command that is over by then."""


class Background:
    """One task that empties the queue of waiting embeddings and lets the rules hear what was poked.

    A model is asked beside it, one run at a time for each user, so that it delays neither.

    Args:
        store: where records wait.
        embedder: makes their vectors.
        distiller: turns new turns of a conversation into memories.
        home: the event loop it works in.
        hooks: told when texts could not be embedded.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        distiller: Distiller,
        home: HomeLoop | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._distiller = distiller
        self._home = home or HomeLoop()
        self._hooks = hooks or Hooks()
        self._poked: dict[tuple[Scope, str], bool] = {}
        self._runs = RunsPerUser(self._ask)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why embedding does not get on, such as "EmbedderUnavailable"; None while it does."""

    def start(self) -> None:
        """Begin, and look at what an earlier process left waiting."""
        if self._task is None:
            # anew: those of before may belong to a loop that has ended
            self._wake, self._idle, self._runs = asyncio.Event(), asyncio.Event(), RunsPerUser(self._ask)
            self._wake.set()
            self._task = asyncio.create_task(self._run(), name="echoic-background")
            self._sweeper = asyncio.create_task(self._sweep(), name="echoic-sweep")

    def poke(self, conversation: tuple[Scope, str] | None = None, *, urgent: bool = False) -> None:
        """Something was written. Pokes for the same conversation during a run make one more run.

        Args:
            conversation: where something was said.
            urgent: have a model read it now, however little is new: an agent hands over, a tool has answered.

        Raises:
            NotOpen: from another event loop, where it would wake nobody.
        """
        self._home.check()
        if conversation is not None:
            self._poked[conversation] = self._poked.get(conversation, False) or urgent
        self._idle.clear()
        self._wake.set()

    async def settle(self, timeout_s: float) -> bool:
        """Wait until nothing waits and no model is asked, `timeout_s` at most; whether it came to that."""
        self._home.check()
        if self._task is None or self._task.done():
            return False
        self.poke()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled(), timeout_s)
        return self._idle.is_set() and self._runs.idle and self.trouble is None

    async def _settled(self) -> None:
        await self._idle.wait()
        while not self._runs.idle:
            await self._runs.settle()
            self.poke()  # what a model had kept wants a vector
            await self._idle.wait()

    async def stop(self) -> None:
        """End at once; what is unfinished waits in the store."""
        tasks = [self._sweeper, self._task]
        self._sweeper = self._task = None
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)  # whatever one of them ended with is no reason not to close
        await self._runs.stop()

    def abandon(self) -> None:
        """Let go of tasks whose loop has ended: nobody can end them any more."""
        self._sweeper = self._task = None

    async def _run(self) -> None:
        working("learning and embedding")
        retry_s = FIRST_RETRY_S
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                failed = await self._hear_poked()
                await self.embed_waiting()  # one conversation keeps nobody's vectors back
            except Exception as error:  # noqa: BLE001 - the outermost frame: nothing ends this task unseen
                failed = error
            if failed is None:
                self.trouble, retry_s = None, FIRST_RETRY_S
            else:
                self.trouble = type(failed).__name__
                level = logging.DEBUG if isinstance(failed, EmbedderMissing) else logging.WARNING
                log.log(level, "%s: what waits is tried again in %.0f s", self.trouble, retry_s)
                asyncio.get_running_loop().call_later(retry_s, self._wake.set)
                retry_s = min(2 * retry_s, LAST_RETRY_S)
            if not self._wake.is_set():
                self._idle.set()

    async def _hear_poked(self) -> Exception | None:
        """Let the rules hear what was poked; why some of it is to be heard again after a pause."""
        failed: Exception | None = None
        again: dict[tuple[Scope, str], bool] = {}
        while self._poked:
            (scope, conversation), urgent = next(iter(self._poked.items()))
            del self._poked[scope, conversation]
            try:
                await self._distiller.apply_rules(scope, conversation)
            except Exception as error:  # noqa: BLE001 - one conversation keeps no other back
                failed, again[scope, conversation] = error, urgent
                continue
            if await self._distiller.asks_a_model():
                self._runs.want(scope, conversation, urgent=urgent)
        for name, urgent in again.items():  # without waking: after the pause
            self._poked[name] = self._poked.get(name, False) or urgent
        return failed

    async def _ask(self, scope: Scope, wanted: Wanted) -> Mapping[str, float]:
        """Let the model read what is wanted of one user; when to come back to what could not be read now."""
        working("learning")
        later: dict[str, float] = {}
        for conversation, urgent in wanted.items():
            try:
                _, run = await self._distiller.ask(scope, conversation, now=urgent)
            except Exception as error:  # noqa: BLE001 - the outermost frame: one conversation ends no other's run
                log.warning("%s: distilling is tried again later", type(error).__name__)
                later[conversation] = LAST_RETRY_S
            else:
                later |= {} if run.again_s is None else {conversation: run.again_s}
        self.poke()  # vectors for what was kept
        return later

    async def _sweep(self) -> None:
        """Take up conversations that nobody distilled, as after a process died."""
        working("learning")
        await asyncio.sleep(SWEEP_AFTER_S)
        try:
            async for scope, conversation in self._distiller.unfinished():
                self.poke((scope, conversation))
        except EchoicError as error:
            log.warning("%s: what was left undistilled is looked for at the next start", type(error).__name__)

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
        try:
            made = await embedded_documents(self._embedder, texts)
        except EmbedderError as error:
            self._hooks.emit(Trouble(what="embedding", reason=type(error).__name__))
            raise
        tokens = [one.packed() for one in made.pieces] if made.pieces else [None] * len(batch)
        by_scope: dict[Scope, list[Attach]] = {}
        for waiting, vector, pieces in zip(batch, made.vectors, tokens, strict=True):
            record = waiting.record
            attach = Attach(
                kind=record.kind,
                id=record.id,
                version=record.version,
                vector=vector,
                tokens=pieces,
                was=record.data,
            )
            by_scope.setdefault(waiting.scope, []).append(attach)
        for scope, attaches in by_scope.items():
            await self._store.write(scope, attaches)
        return len(batch)
