"""All of one memory into another store: which records there are, and whose vectors go along."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from echoic.errors import EmbeddingMismatch
from echoic.memory.decisions import DECISION
from echoic.memory.directives import DIRECTIVES
from echoic.memory.distilling.progress import LEASE, PROGRESS
from echoic.memory.experience.lessons import EXPERIENCE
from echoic.memory.judging import JUDGEMENT
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    LINK_CODE,
    LINK_GUESSES,
    PHONE_LINE,
    PHONE_OF,
    PHONE_PIN,
    PROPOSAL,
    index,
)
from echoic.memory.revocations import REVOCATION
from echoic.memory.tasks import RESULT
from echoic.stores.base import Store
from echoic.stores.copying import Copied, CopiedScope, Progress, copy_store
from echoic.types import EmbeddingSpec

KINDS = (
    CONVERSATION,
    PROPOSAL,
    RESULT,
    DIRECTIVES,
    PROGRESS,
    LEASE,
    JUDGEMENT,
    EXPERIENCE,
    DECISION,
    REVOCATION,
    *CALL_PARTS,
    CHECKPOINT,
    LINK_CODE,
    LINK_GUESSES,
    PHONE_LINE,
    PHONE_OF,
    PHONE_PIN,
)
"""Every kind of record that is not searchable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedMemory:
    """What was copied, and between which models."""

    copied: Copied
    source: EmbeddingSpec
    target: EmbeddingSpec


async def copy_memory(
    source: Callable[[], Store],
    target: Callable[[], Store],
    embedding: EmbeddingSpec,
    *,
    named: bool = False,
    progress: Progress = lambda _done, _total: None,
) -> CopiedMemory:
    """Copy everything of every user and deployment, as `stores.copying` does.

    Nothing is embedded. Where the target keeps vectors of another model, its records wait until somebody
    opens it with an embedder of that model.

    Args:
        source: makes the store to copy from, not yet open; asked again where it has vectors of another model.
        target: likewise, the store to copy to.
        embedding: the model of a new target, where it is `named`; otherwise that is the source's.
        named: whether somebody asked for `embedding`.
        progress: told how many records are done, of how many.

    Raises:
        EmbeddingMismatch: `embedding` is `named`, and the target has vectors of another model; nothing was
            written.
        InvalidInput: the target holds something else of somebody the source knows; nothing was written.
        WriteConflict: somebody wrote to either meanwhile; copy again.
        StoreError: either cannot be opened, read or written; once it can, copy again: it goes on from there.
    """
    async with _opened(source, embedding) as (taken, theirs):
        wanted = embedding if named else theirs
        async with _opened(target, wanted, as_it_is=not named) as (given, its):
            copied = await copy_store(taken, given, KINDS, vectors=theirs == its, progress=progress)
    return CopiedMemory(copied=copied, source=theirs, target=its)


@asynccontextmanager
async def _opened(
    make: Callable[[], Store], embedding: EmbeddingSpec, *, as_it_is: bool = True
) -> AsyncIterator[tuple[Store, EmbeddingSpec]]:
    """A store, open, and whose vectors it has: with `as_it_is` those it says it has."""
    store = make()
    try:
        await store.open(embedding, index)
    except EmbeddingMismatch as error:
        with contextlib.suppress(Exception):
            await store.aclose()
        if error.model is None or not as_it_is:
            raise
        store, embedding = make(), EmbeddingSpec(error.model, error.dimensions)
        await store.open(embedding, index)
    try:
        yield store, embedding
    finally:
        await store.aclose()


__all__ = ["KINDS", "Copied", "CopiedMemory", "CopiedScope", "copy_memory"]
