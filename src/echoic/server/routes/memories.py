"""What is known of the one who asks: all that holds, and how each came to be."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from echoic.server.callers import AsCaller
from echoic.server.models import Shown, ShownMemory
from echoic.server.problems import responses
from echoic.types import Memory

router = APIRouter(tags=["memory"])


class Versions(Shown):
    """Every version of one key, oldest first."""

    key: str
    versions: list[ShownMemory]


class Memories(Shown):
    """Everything that holds, oldest first."""

    memories: list[ShownMemory]
    history: list[Versions] | None = Field(
        default=None, description="Of every key that ever changed; only where it was asked for."
    )
    past: list[ShownMemory] | None = Field(
        default=None,
        description="All that holds no longer, oldest first, with or without a key; likewise. What corrected "
        "it is named by `supersededBy`.",
    )


@router.get(
    "/api/memories", summary="Everything known of the caller", responses=responses(401, 422, 429, 503)
)
async def list_memories(
    caller: AsCaller,
    *,
    history: Annotated[bool, Query(description="With the earlier versions of what was corrected.")] = False,
) -> Memories:
    """All that holds; what was corrected or taken back is left out, unless `history` asks for it."""
    facts = await caller.memory.facts()
    shown = [ShownMemory.of(memory) for memory in facts]
    if not history:
        return Memories(memories=shown)
    keys = dict.fromkeys(memory.key for memory in facts if memory.key is not None and memory.supersedes)
    versions = [_versions(key, await caller.memory.history(key)) for key in keys]
    past = [ShownMemory.of(memory) for memory in await caller.memory.past()]
    return Memories(memories=shown, history=versions, past=past)


@router.get(
    "/api/memories/{key:path}/history",
    summary="Every version of one key",
    responses=responses(401, 404, 422, 429, 503),
)
async def get_history(caller: AsCaller, key: str) -> Versions:
    """Oldest first, with what was taken back. Empty for a key the caller never kept anything under."""
    return _versions(key, await caller.memory.history(key))


def _versions(key: str, memories: list[Memory]) -> Versions:
    return Versions(key=key, versions=[ShownMemory.of(memory) for memory in memories])


__all__ = ["router"]
