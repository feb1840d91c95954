"""What holds of a user when a run begins, with its vectors: what an extractor is shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedder
from echoic.errors import EmbedderError
from echoic.memory.distilling.duplicates import known_as, same_words, statement_of
from echoic.memory.records import MEMORY, memory_of, scan_all
from echoic.stores.base import Record, Store
from echoic.types import Memory, Scope, Turn
from echoic.words import content_words

log = logging.getLogger(__name__)

SHOWN = 100
"""Memories an extractor is shown: about 2,500 tokens of a model's prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownMemories:
    """The memories of one user."""

    memories: tuple[Memory, ...] = ()
    """Those that hold."""
    past: tuple[Memory, ...] = ()
    """Those that hold no longer."""
    rows: tuple[int, ...] = ()
    """Their rows in the partition of the scope."""
    vectors: NDArray[np.float32] | None = None
    """[memories, dimensions], zeros where there is none yet; None: go by words."""
    said: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """The vectors of new statements, by statement."""

    def duplicate(self, said: str, kept: Sequence[Memory]) -> Memory | None:
        """The memory that says what `said` says, else one of `kept` that says it in the same words."""
        found = known_as(said, self.memories, self.said.get(said), self.vectors)
        return found or known_as(said, [memory for memory in kept if memory.current])

    def undone(self, said: str, at: datetime) -> bool:
        """Whether what `said` says, at `at`, was corrected or taken back later."""
        ended = (memory for memory in self.past if memory.valid_until and memory.valid_until > at)
        return any(same_words(said, statement_of(memory)) for memory in ended)

    def nearest(self, turns: Sequence[Turn], limit: int = SHOWN) -> tuple[Memory, ...]:
        """`limit` memories at most, in the order of first writing: those that share most words with `turns`.

        What a voice agent asks of its caller again and again (name, home) is never left out: memories with a
        key of their own come before those that only share no word.
        """
        if len(self.memories) <= limit:
            return self.memories
        spoken = {word.stem for turn in turns for word in content_words(turn.heard_text)}

        def worth(at: int) -> tuple[int, bool, int]:
            memory = self.memories[at]
            shared = {word.stem for word in content_words(statement_of(memory))} & spoken
            return (len(shared), memory.key is not None and ":" not in memory.key, at)

        best = sorted(range(len(self.memories)), key=worth, reverse=True)[:limit]
        return tuple(self.memories[at] for at in sorted(best))


async def known_of(store: Store, scope: Scope) -> KnownMemories:
    """What holds of `scope`, and what did, said by its own user; without vectors."""
    own = [r for r in await scan_all(store, scope, MEMORY) if r.data.get("author") == scope.user]
    held = [record for record in own if _holds(record)]
    return KnownMemories(
        memories=tuple(map(memory_of, held)),
        past=tuple(memory_of(record) for record in own if not _holds(record)),
        rows=tuple(record.seq for record in held),
    )


async def compared(
    known: KnownMemories, store: Store, scope: Scope, embedder: Embedder | None, statements: Sequence[str]
) -> KnownMemories:
    """`known` ready to be compared with `statements`, by meaning where an embedder can."""
    if embedder is None or not embedder.semantic or not statements or not known.memories:
        return known
    try:
        said = np.asarray(await embedder.embed(statements, "document"))
    except EmbedderError as error:
        log.warning("duplicates are told by words only: %s", type(error).__name__)
        return known
    partition = await store.load(scope)
    with partition.lock:
        vectors = partition.vectors[np.array(known.rows)].copy()
    if vectors.shape[1] != said.shape[1]:  # nothing has been embedded yet
        return known
    return replace(known, vectors=vectors, said=dict(zip(statements, said, strict=True)))


def _holds(record: Record) -> bool:
    return record.data.get("valid_until") is None
