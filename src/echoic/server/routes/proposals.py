"""What callers would have everyone know, for the operator to decide."""

from __future__ import annotations

from fastapi import APIRouter

from echoic.errors import InvalidInput
from echoic.server.callers import AsOperator, OperatedDeployment, Shared
from echoic.server.models import Shown, ShownMemory
from echoic.server.problems import not_found, responses

router = APIRouter(tags=["operator"], dependencies=[AsOperator])


class Proposed(Shown):
    """What waits, oldest first. Personal data was taken out of it; who proposed it is not shown."""

    proposals: list[ShownMemory]


class Rejected(Shown):
    """A proposal that is no more."""

    rejected: str


@router.get(
    "/api/proposals", summary="What waits for a decision", responses=responses(401, 404, 422, 429, 503)
)
async def list_proposals(shared: Shared, deployment: OperatedDeployment) -> Proposed:
    """Global memories that callers proposed."""
    waiting = await shared.memory.proposals(deployment).list()
    return Proposed(proposals=[ShownMemory.of(proposal) for proposal in waiting])


@router.post(
    "/api/proposals/{proposal}/approve",
    summary="Let everyone know",
    responses=responses(401, 404, 409, 422, 429, 503),
)
async def approve(shared: Shared, deployment: OperatedDeployment, proposal: str) -> ShownMemory:
    """Make it global. It is the deployment's own from then on, not its author's."""
    try:
        return ShownMemory.of(await shared.memory.proposals(deployment).approve(proposal))
    except InvalidInput as error:
        raise not_found("proposal") from error


@router.post(
    "/api/proposals/{proposal}/reject", summary="Decline it", responses=responses(401, 404, 422, 429, 503)
)
async def reject(shared: Shared, deployment: OperatedDeployment, proposal: str) -> Rejected:
    """Remove it. Its author keeps it as their own."""
    try:
        await shared.memory.proposals(deployment).reject(proposal)
    except InvalidInput as error:
        raise not_found("proposal") from error
    return Rejected(rejected=proposal)


__all__ = ["router"]
