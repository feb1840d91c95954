"""Routes by which an operator lists, writes, edits and withdraws global facts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query
from pydantic import Field

from echoic.errors import InvalidInput
from echoic.memory.global_facts import GlobalFact
from echoic.server.callers import AsOperator, OperatedDeployment, Shared
from echoic.server.models import Asked, Shown, ShownMemory
from echoic.server.problems import not_found, responses
from echoic.types import Category

router = APIRouter(tags=["operator"], dependencies=[AsOperator])

By = Annotated[str | None, Query(description="Who does it, for GET /api/decisions.")]
_MOST = 1000
"""Facts in one request; more go in several, in any order."""


class GlobalMemories(Shown):
    """What everyone of the deployment knows, oldest first."""

    memories: list[ShownMemory]


class FactToWrite(Asked):
    """A fact for all users, kept as it is written: only secrets are taken out."""

    text: str = Field(examples=["We ship worldwide in 3 to 5 days."])
    key: str | None = Field(
        default=None,
        description="What it is edited by: the same key again takes the place of what is there. Without one "
        "the same text is the same fact.",
        examples=["shipping"],
    )
    category: Category = "fact"
    context: str | None = Field(default=None, description="When and under which conditions it applies.")


class Facts(Asked):
    """Facts to be written together. The same again changes nothing."""

    facts: list[FactToWrite] = Field(min_length=1, max_length=_MOST)


class FactsFilled(Shown):
    """What became of them."""

    memories: list[ShownMemory] = Field(description="Each as it is kept, in the order sent.")
    new: int
    changed: int = Field(description="How many took the place of what was global under their key.")
    unchanged: int = Field(description="How many were global already, word for word.")


@router.get("/api/global", summary="What everyone knows", responses=responses(401, 404, 422, 429, 503))
async def list_global(shared: Shared, deployment: OperatedDeployment) -> GlobalMemories:
    """Global memories: written by an operator, approved, or global by themselves."""
    known = await shared.memory.global_facts(deployment).list()
    return GlobalMemories(memories=[ShownMemory.of(memory) for memory in known])


@router.post(
    "/api/global",
    summary="Write or edit facts",
    responses=responses(401, 404, 409, 413, 422, 429, 503, 507),
)
async def set_global(
    shared: Shared, deployment: OperatedDeployment, asked: Annotated[Facts, Body()], by: By = None
) -> FactsFilled:
    """Writes nothing where one of them cannot be kept.

    They are written a hundred at a time: after a 503 some may be there. Send all of them again; what is there
    already is not written twice. What is global and not among them stays.
    """
    facts = [GlobalFact(text=f.text, key=f.key, category=f.category, context=f.context) for f in asked.facts]
    filled = await shared.memory.global_facts(deployment).fill(facts, by=by)
    return FactsFilled(
        memories=[ShownMemory.of(memory) for memory in filled.memories],
        new=filled.new,
        changed=filled.changed,
        unchanged=filled.unchanged,
    )


@router.post(
    "/api/global/{memory}/withdraw",
    summary="Let nobody know it",
    responses=responses(401, 404, 409, 422, 429, 503),
)
async def withdraw_global(
    shared: Shared, deployment: OperatedDeployment, memory: str, by: By = None
) -> ShownMemory:
    """Gone from the next question on. Nothing is global by itself under its key again."""
    try:
        return ShownMemory.of(await shared.memory.global_facts(deployment).withdraw(memory, by=by))
    except InvalidInput as error:
        raise not_found("global memory") from error


__all__ = ["router"]
