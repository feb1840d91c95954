"""What callers would have everyone know, for the operator to decide."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import APIRouter, Query
from pydantic import Field

from echoic.errors import InvalidInput
from echoic.memory.decisions import Decided
from echoic.server.callers import AsOperator, OperatedDeployment, Shared
from echoic.server.models import Shown, ShownMemory
from echoic.server.problems import not_found, responses
from echoic.types import ExperienceKind, Lesson, LessonState

router = APIRouter(tags=["operator"], dependencies=[AsOperator])

By = Annotated[str | None, Query(description="Who decides, for GET /api/decisions.")]
Agent = Annotated[str, Query(description="Whose lesson it is.")]


class Proposed(Shown):
    """What waits, oldest first. Personal data was taken out of it; who proposed it is not shown."""

    proposals: list[ShownMemory]


class Rejected(Shown):
    """What is no more."""

    rejected: str


class ShownLesson(Shown):
    """One thing an agent learned by serving people."""

    id: str = Field(description="Of this wording.")
    agent: str
    kind: ExperienceKind
    text: str
    times: int = Field(description="How often it was taught.")
    state: LessonState = Field(description="waiting and withdrawn: in no prompt.")

    @classmethod
    def of(cls, agent: str, lesson: Lesson) -> Self:
        """`lesson` of `agent`."""
        return cls(
            id=lesson.id,
            agent=agent,
            kind=lesson.kind,
            text=lesson.text,
            times=lesson.times,
            state=lesson.state,
        )


class Lessons(Shown):
    """Lessons of all agents, agent by agent."""

    lessons: list[ShownLesson]


class ShownDecision(Shown):
    """One thing an operator decided."""

    what: Decided
    of: Literal["fact", "lesson"]
    key: str = Field(description="Of a fact its key, of a lesson its agent.")
    text: str | None = Field(description="Null where it was rejected: that is destroyed.")
    by: str
    at: datetime


class Decisions(Shown):
    """Everything operators decided, oldest first."""

    decisions: list[ShownDecision]


_DECIDES = responses(401, 404, 409, 422, 429, 503)


@router.get(
    "/api/proposals", summary="What waits for a decision", responses=responses(401, 404, 422, 429, 503)
)
async def list_proposals(shared: Shared, deployment: OperatedDeployment) -> Proposed:
    """Global memories that callers proposed."""
    waiting = await shared.memory.proposals(deployment).list()
    return Proposed(proposals=[ShownMemory.of(proposal) for proposal in waiting])


@router.post("/api/proposals/{proposal}/approve", summary="Let everyone know", responses=_DECIDES)
async def approve(
    shared: Shared, deployment: OperatedDeployment, proposal: str, by: By = None
) -> ShownMemory:
    """Make it global. It is the deployment's own from then on, not its author's."""
    try:
        return ShownMemory.of(await shared.memory.proposals(deployment).approve(proposal, by=by))
    except InvalidInput as error:
        raise not_found("proposal") from error


@router.post("/api/proposals/{proposal}/reject", summary="Decline it", responses=_DECIDES)
async def reject(shared: Shared, deployment: OperatedDeployment, proposal: str, by: By = None) -> Rejected:
    """Remove it. Its author keeps it as their own."""
    try:
        await shared.memory.proposals(deployment).reject(proposal, by=by)
    except InvalidInput as error:
        raise not_found("proposal") from error
    return Rejected(rejected=proposal)


@router.get("/api/lessons", summary="What agents learned", responses=responses(401, 404, 422, 429, 503))
async def list_lessons(shared: Shared, deployment: OperatedDeployment) -> Lessons:
    """Of all agents: what waits, what was approved, what was withdrawn."""
    agents = await shared.memory.agents_with_lessons(deployment)
    learned = [(agent, await shared.memory.experience(agent, deployment).get()) for agent in agents]
    return Lessons(lessons=[ShownLesson.of(agent, one) for agent, known in learned for one in known.lessons])


@router.post("/api/lessons/{lesson}/approve", summary="Let the agent use it", responses=_DECIDES)
async def approve_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> ShownLesson:
    """It is in the agent's prompt from now on, whoever is served."""
    try:
        return ShownLesson.of(agent, await shared.memory.experience(agent, deployment).adopt(lesson, by=by))
    except InvalidInput as error:
        raise not_found("lesson") from error


@router.post("/api/lessons/{lesson}/reject", summary="Destroy it", responses=_DECIDES)
async def reject_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> Rejected:
    """It may be taught again, and then waits again."""
    try:
        await shared.memory.experience(agent, deployment).remove(lesson, by=by)
    except InvalidInput as error:
        raise not_found("lesson") from error
    return Rejected(rejected=lesson)


@router.post("/api/lessons/{lesson}/withdraw", summary="Let the agent use it no longer", responses=_DECIDES)
async def withdraw_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> ShownLesson:
    """Gone from the next prompt on, however often it is taught again."""
    try:
        return ShownLesson.of(
            agent, await shared.memory.experience(agent, deployment).withdraw(lesson, by=by)
        )
    except InvalidInput as error:
        raise not_found("lesson") from error


@router.get("/api/decisions", summary="Who decided what", responses=responses(401, 404, 422, 429, 503))
async def list_decisions(shared: Shared, deployment: OperatedDeployment) -> Decisions:
    """About facts and lessons, oldest first."""
    decided = await shared.memory.proposals(deployment).decisions()
    return Decisions(
        decisions=[
            ShownDecision(what=d.what, of=d.of, key=d.key, text=d.text, by=d.by, at=d.at) for d in decided
        ]
    )


__all__ = ["router"]
