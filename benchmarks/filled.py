"""A store in memory, filled and embedded as the service does it: what the measurements of ranking search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echoic.embedding.base import Embedder, Kind, embedded
from echoic.memory.records import index, record_of_memory, record_of_turn
from echoic.partition import Partition, Pieces
from echoic.ranking import query_of
from echoic.ranking.query import Query
from echoic.stores.base import Attach, Put
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Memory, Scope, Turn

BATCH = 256
Made = tuple[np.ndarray, Pieces | None]


@dataclass(frozen=True)
class Searchable:
    """One scope, loaded: what ranking gets, and whose row is whose."""

    scope: Scope
    partition: Partition
    items: dict[int, Memory | Turn]
    """By row."""


class Filled:
    """Scopes of one store and one embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._store = InMemoryStore()
        self._known: dict[str, Made] = {}

    async def open(self) -> None:
        await self._embedder.open()
        await self._store.open(self._embedder.spec, index)

    async def add(self, scope: Scope, items: Sequence[Memory | Turn], *, embed: bool = True) -> Searchable:
        """Write `items` in order and, unless they shall wait, give them their vectors."""
        records = [record_of_memory(i) if isinstance(i, Memory) else record_of_turn(i) for i in items]
        await self._store.write(scope, [Put(record=record) for record in records])
        if embed:
            await self._attach_all()
        partition = await self._store.load(scope)
        kept = await self._store.rows(scope, range(partition.size))
        by_id = {(type(item), item.id): item for item in items}
        kinds = {"memory": Memory, "turn": Turn}
        return Searchable(scope, partition, {r.seq: by_id[kinds[r.kind], r.id] for r in kept})

    async def queries(self, texts: Sequence[str]) -> list[Query]:
        """One query for each text."""
        made = await self._embed(texts, "query")
        return [
            query_of(text, vector, pieces=pieces) for text, (vector, pieces) in zip(texts, made, strict=True)
        ]

    async def _attach_all(self) -> None:
        while waiting := await self._store.waiting(BATCH):
            entries = [index(w.record) for w in waiting]
            made = await self._embed([entry.text if entry else "" for entry in entries], "document")
            for one, (vector, pieces) in zip(waiting, made, strict=True):
                record = one.record
                attach = Attach(
                    kind=record.kind,
                    id=record.id,
                    version=record.version,
                    vector=vector,
                    tokens=pieces.packed() if pieces else None,
                )
                await self._store.write(one.scope, [attach])

    async def _embed(self, texts: Sequence[str], kind: Kind) -> list[Made]:
        """Each text once: made-up calls repeat themselves."""
        new = list(dict.fromkeys(text for text in texts if f"{kind} {text}" not in self._known))
        for first in range(0, len(new), BATCH):
            some = new[first : first + BATCH]
            made = await embedded(self._embedder, some, kind)
            pieces = made.pieces or [None] * len(some)
            for text, *one in zip(some, made.vectors, pieces, strict=True):
                self._known[f"{kind} {text}"] = (one[0], one[1])
        return [self._known[f"{kind} {text}"] for text in texts]
