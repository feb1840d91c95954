"""One recall: embed the query and load what is known side by side, rank, read the hits; in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from echoic.embedding.base import Embedder, Vectors
from echoic.errors import EmbedderError
from echoic.memory.records import MEMORY, memory_of, turn_of
from echoic.partition import Partition
from echoic.ranking.query import Query, query_of
from echoic.ranking.rank import FLOOR, LEXICAL_FLOOR, Found, rank
from echoic.stores.base import Record, Store
from echoic.types import Hit, Outcome, Recall, Scope

log = logging.getLogger(__name__)

_INLINE_ROWS = 20_000
"""Up to here ranking takes under about 3 ms and runs on the loop; above it goes to a thread."""


class Recaller:
    """Searches a user's own memory and what is global, as one ranking."""

    def __init__(self, store: Store, embedder: Embedder, *, fusion: str) -> None:
        self._store = store
        self._embedder = embedder
        self._fusion = fusion
        self._floor = FLOOR if embedder.semantic else LEXICAL_FLOOR

    async def recall(
        self, scope: Scope, text: str, *, limit: int, deadline_ms: float | None, include_past: bool
    ) -> Recall:
        """The best `limit` hits for `text`.

        The embedding is what takes time: with a deadline it is waited for that long, then words must do.
        """
        embedding = asyncio.ensure_future(self._embedder.embed([text], "query"))
        try:
            places = [(place, await self._store.load(place)) for place in (scope, scope.everyone)]
            vector, outcome = await self._wait(embedding, deadline_ms)
        except BaseException:
            embedding.cancel()
            raise
        query = query_of(text, vector, include_past=include_past)
        # nothing is known of most deployments' globals: what is empty need not be ranked
        scopes, partitions = zip(*[at for at in places if at[1].size] or places[:1], strict=True)
        found = await self._rank(query, partitions, limit)
        hits = await self._read(scopes, found)
        return Recall(hits=hits, outcome=outcome, cut=() if vector is not None else ("vector",))

    async def _wait(
        self, embedding: asyncio.Future[Vectors], deadline_ms: float | None
    ) -> tuple[Vectors | None, Outcome]:
        seconds = None if deadline_ms is None else deadline_ms / 1000
        try:
            # shielded: what arrives late is cached, and the same question asked again has it at once
            async with asyncio.timeout(seconds):
                return (await asyncio.shield(embedding))[0], "complete"
        except TimeoutError:
            embedding.add_done_callback(_noted)
            return None, "deadline"
        except EmbedderError as error:
            log.warning("recall without vectors: %s", type(error).__name__)
            return None, "unavailable"

    async def _rank(self, query: Query, partitions: Sequence[Partition], limit: int) -> list[Found]:
        search = partial(rank, query, partitions, limit=limit, fusion=self._fusion, floor=self._floor)
        if sum(partition.size for partition in partitions) > _INLINE_ROWS:
            return await asyncio.to_thread(search)
        return search()

    async def _read(self, scopes: Sequence[Scope], found: Sequence[Found]) -> tuple[Hit, ...]:
        """The records behind the rows; one that was erased meanwhile is left out."""
        records: dict[tuple[int, int], Record] = {}
        for place, scope in enumerate(scopes):
            rows = [f.row for f in found if f.place == place]
            if rows:
                records |= {(place, r.seq): r for r in await self._store.rows(scope, rows)}
        return tuple(
            _hit(scopes[f.place], records[f.place, f.row], f) for f in found if (f.place, f.row) in records
        )


def _hit(scope: Scope, record: Record, found: Found) -> Hit:
    if record.kind == MEMORY:
        memory = memory_of(record)
        return Hit(text=memory.text, score=found.score, ranks=found.ranks, scope=scope, memory=memory)
    turn = turn_of(record)
    return Hit(text=turn.heard_text, score=found.score, ranks=found.ranks, scope=scope, turn=turn)


def _noted(embedding: asyncio.Future[Vectors]) -> None:
    """A late failure is nobody's any more; asking for it keeps the loop from complaining."""
    if not embedding.cancelled():
        embedding.exception()
