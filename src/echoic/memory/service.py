"""Memory for a deployment: opens the store and the embedder, hands out users, runs what works behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self
from uuid import uuid4

from echoic.embedding.base import Embedder
from echoic.memory.background import Background
from echoic.memory.distil import Distilled, Distiller
from echoic.memory.proposals import Proposals
from echoic.memory.recall import Recaller
from echoic.memory.records import index
from echoic.memory.sharing import Classifier, RuleClassifier
from echoic.memory.user import UserMemory
from echoic.stores.base import Store
from echoic.types import EmbeddingSpec, Scope, checked_name

GlobalWrites = Literal["auto", "propose"]
"""What a caller's global memory does. auto: all see it at once. propose: its author does, until approved."""

SETTLE_S = 5.0
"""How long closing waits for vectors of what was just written; what is not done then waits in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the handles of one service share."""

    store: Store
    embedder: Embedder
    recaller: Recaller
    distiller: Distiller
    background: Background
    classifier: Classifier
    global_writes: GlobalWrites
    clock: Callable[[], datetime]
    new_id: Callable[[], str]


class MemoryService:
    """Everything Echoic remembers in one store. Use with `async with`, or `open()` and `aclose()`.

    Args:
        store: where it is kept.
        embedder: what makes vectors of it.
        global_writes: what a caller's global memory does.
        classifier: decides what may be global; rules by default.
        fusion: how channels become one ranking: "blend", or "rrf" as MongoDB computes it.
        clock: the time, aware.
        new_id: makes ids for turns and conversations that bring none.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        *,
        global_writes: GlobalWrites = "propose",
        classifier: Classifier | None = None,
        fusion: str = "blend",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        distiller = Distiller(store)
        self._parts = Parts(
            store=store,
            embedder=embedder,
            recaller=Recaller(store, embedder, fusion=fusion),
            distiller=distiller,
            background=Background(store, embedder, distiller.distil),
            classifier=classifier or RuleClassifier(),
            global_writes=global_writes,
            clock=clock,
            new_id=new_id,
        )

    async def open(self) -> Self:
        """Open store and embedder; what an earlier process left unfinished is taken up.

        Raises:
            EmbedderMissing: the embedder's packages or weights are not on this machine.
            EmbeddingMismatch: the store holds vectors of another model.
            StoreError: the store cannot be opened.
        """
        await self._parts.store.open(self._parts.embedder.spec, index)
        try:
            await self._parts.embedder.open()
        except BaseException:
            await self._parts.store.aclose()
            raise
        self._parts.background.start()
        return self

    async def aclose(self) -> None:
        """Give what was just written its vectors, within `SETTLE_S`, and close. May be called twice."""
        await self._parts.background.settle(SETTLE_S)
        await self._parts.background.stop()
        await self._parts.embedder.aclose()
        await self._parts.store.aclose()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def embedder(self) -> Embedder:
        """What makes the vectors."""
        return self._parts.embedder

    def user(self, user: str, deployment: str = "default") -> UserMemory:
        """The memory of one user.

        Raises:
            InvalidInput: `user` or `deployment` is empty or cannot be kept exactly.
        """
        # None would be everyone's scope; nobody gets there by leaving the user out
        return UserMemory(self._parts, Scope(deployment, checked_name(user, "user")))

    async def users(self, deployment: str = "default") -> list[str]:
        """Everyone something is known of. For operators."""
        scopes = await self._parts.store.scopes(deployment)
        return [scope.user for scope in scopes if scope.user is not None]

    def proposals(self, deployment: str = "default") -> Proposals:
        """What callers proposed to be global, and the means to approve or reject it. For operators."""
        return Proposals(self._parts.store, Scope(deployment, None), self._parts.clock)

    async def distil(self, deployment: str | None = None) -> Distilled:
        """Learn from every conversation that has turns nobody learned from yet: what the worker does."""
        distilled = await self._parts.distiller.distil_all(deployment)
        self._parts.background.poke()
        return distilled

    async def settle(self, timeout_s: float = SETTLE_S) -> bool:
        """Wait until everything written has its vector; whether it came to that in time."""
        return await self._parts.background.settle(timeout_s)

    async def reindex(self, embedding: EmbeddingSpec | None = None) -> int:
        """Embed everything anew with the embedder this service was opened with; how many records that is."""
        waiting = await self._parts.store.reindex(embedding or self._parts.embedder.spec)
        self._parts.background.poke()
        return waiting

    async def check(self) -> Mapping[str, Any]:
        """Facts about store and embedder for `echoic doctor`. No contents."""
        facts = dict(await self._parts.store.check())
        embedder = self._parts.embedder
        return {
            **facts,
            "embedder": embedder.spec.model,
            "semantic": embedder.semantic,
            "embedding_trouble": self._parts.background.trouble,
        }
