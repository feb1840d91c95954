"""The operator's routes: global facts, proposals, lessons, decisions, the audit log, and users."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Body, Query
from pydantic import Field

from echoic.errors import InvalidInput
from echoic.memory.global_facts import GlobalFact
from echoic.memory.profile import KEYS
from echoic.memory.proposals import Decided
from echoic.server.models import MemoryView, Name, RequestBody, ResponseModel, Text
from echoic.server.problems import not_found, responses
from echoic.server.request_callers import AsAuditor, AsOperator, OperatedDeployment, Shared
from echoic.types import Category, ExperienceKind, Lesson, LessonState

router = APIRouter(tags=["operator"], dependencies=[AsOperator])

By = Annotated[str | None, Query(description="Who decides; recorded in GET /api/decisions.")]
_MOST = 1000
"""The maximum number of facts in one request."""


class GlobalMemories(ResponseModel):
    """The deployment's global memories, oldest first."""

    memories: list[MemoryView]


class FactToWrite(RequestBody):
    """A global fact. It is stored word for word, except for secrets."""

    text: Text = Field(examples=["We ship worldwide in 3 to 5 days."])
    key: Name | None = Field(
        default=None,
        description="The key to edit it by: setting a key again replaces its fact. Without a key, the same "
        "text is the same fact.",
        examples=["shipping"],
    )
    category: Category = "fact"
    context: Text | None = Field(default=None, description="The conditions under which it applies.")


class Facts(RequestBody):
    """Facts to write together. Writing the same facts again changes nothing."""

    facts: list[FactToWrite] = Field(min_length=1, max_length=_MOST)


class FactsFilled(ResponseModel):
    """The result of writing facts."""

    memories: list[MemoryView] = Field(description="Each as stored, in the order sent.")
    new: int
    changed: int = Field(description="How many replaced the fact under their key.")
    unchanged: int = Field(description="How many were stored already.")


@router.get("/api/global", summary="List global memories", responses=responses(401, 404, 422, 429, 503))
async def list_global(shared: Shared, deployment: OperatedDeployment) -> GlobalMemories:
    """Global memories: written by an operator, approved by one, or made global automatically."""
    known = await shared.memory.global_facts(deployment).list()
    return GlobalMemories(memories=[MemoryView.of(memory) for memory in known])


@router.post(
    "/api/global",
    summary="Write or edit facts",
    responses=responses(401, 404, 409, 413, 422, 429, 503, 507),
)
async def set_global(
    shared: Shared, deployment: OperatedDeployment, asked: Annotated[Facts, Body()], by: By = None
) -> FactsFilled:
    """Writes nothing if one of them is invalid. Other global memories stay.

    Facts are written in batches of a hundred, so after a 503 some may be stored. Send all of them again:
    facts that are stored already are not written twice.
    """
    facts = [GlobalFact(text=f.text, key=f.key, category=f.category, context=f.context) for f in asked.facts]
    filled = await shared.memory.global_facts(deployment).fill(facts, by=by)
    return FactsFilled.of(filled)


@router.post(
    "/api/global/{memory}/withdraw",
    summary="Withdraw a global memory",
    responses=responses(401, 404, 409, 422, 429, 503),
)
async def withdraw_global(
    shared: Shared, deployment: OperatedDeployment, memory: str, by: By = None
) -> MemoryView:
    """The next recall no longer finds it. Nothing becomes global automatically under its key again."""
    with _or_not_found("global memory"):
        return MemoryView.of(await shared.memory.global_facts(deployment).withdraw(memory, by=by))


Agent = Annotated[str, Query(description="The agent of the lesson.")]


class ProposalList(ResponseModel):
    """Waiting proposals, oldest first. Personal data is redacted, and the author is not shown."""

    proposals: list[MemoryView]


class Rejected(ResponseModel):
    """The rejected proposal."""

    rejected: str


class LessonView(ResponseModel):
    """A lesson an agent learned from its calls."""

    id: str = Field(description="The id of this wording.")
    agent: str
    kind: ExperienceKind
    text: str
    times: int = Field(description="How often it was taught.")
    state: LessonState = Field(description="Only approved lessons are in a prompt.")

    @classmethod
    def of_agent(cls, agent: str, lesson: Lesson) -> Self:
        return cls.model_validate({**dataclasses.asdict(lesson), "agent": agent})


class Lessons(ResponseModel):
    """The lessons of every agent, grouped by agent."""

    lessons: list[LessonView]


class DecisionView(ResponseModel):
    """One decision of an operator."""

    what: Decided
    subject: Literal["fact", "lesson"] = Field(alias="of")
    key: str = Field(description="The key of a fact, or the agent of a lesson.")
    text: str | None = Field(description="Null if it was rejected: a rejected text is destroyed.")
    by: str
    at: datetime


class Decisions(ResponseModel):
    """Every decision of an operator, oldest first."""

    decisions: list[DecisionView]


@contextmanager
def _or_not_found(what: str) -> Iterator[None]:
    """Answer 404 if there is no such `what`."""
    try:
        yield
    except InvalidInput as error:
        raise not_found(what) from error


_DECIDES = responses(401, 404, 409, 422, 429, 503)


@router.get("/api/proposals", summary="List proposals", responses=responses(401, 404, 422, 429, 503))
async def list_proposals(shared: Shared, deployment: OperatedDeployment) -> ProposalList:
    """Proposed global memories that wait for a decision."""
    waiting = await shared.memory.proposals(deployment).list()
    return ProposalList(proposals=[MemoryView.of(proposal) for proposal in waiting])


@router.post("/api/proposals/{proposal}/approve", summary="Approve a proposal", responses=_DECIDES)
async def approve(shared: Shared, deployment: OperatedDeployment, proposal: str, by: By = None) -> MemoryView:
    """Make it global. From then on it belongs to the deployment, not to its author."""
    with _or_not_found("proposal"):
        return MemoryView.of(await shared.memory.proposals(deployment).approve(proposal, by=by))


@router.post("/api/proposals/{proposal}/reject", summary="Reject a proposal", responses=_DECIDES)
async def reject(shared: Shared, deployment: OperatedDeployment, proposal: str, by: By = None) -> Rejected:
    """Remove it. Its author keeps it as a private memory."""
    with _or_not_found("proposal"):
        await shared.memory.proposals(deployment).reject(proposal, by=by)
    return Rejected(rejected=proposal)


@router.get("/api/lessons", summary="List lessons", responses=responses(401, 404, 422, 429, 503))
async def list_lessons(shared: Shared, deployment: OperatedDeployment) -> Lessons:
    """The lessons of every agent: waiting, approved and withdrawn."""
    agents = await shared.memory.agents_with_lessons(deployment)
    learned = [(agent, await shared.memory.experience(agent, deployment).get()) for agent in agents]
    return Lessons(
        lessons=[LessonView.of_agent(agent, one) for agent, known in learned for one in known.lessons]
    )


@router.post("/api/lessons/{lesson}/approve", summary="Let the agent use it", responses=_DECIDES)
async def approve_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> LessonView:
    """Put it into the agent's prompt, for every caller."""
    with _or_not_found("lesson"):
        return LessonView.of_agent(
            agent, await shared.memory.experience(agent, deployment).adopt(lesson, by=by)
        )


@router.post("/api/lessons/{lesson}/reject", summary="Reject a lesson", responses=_DECIDES)
async def reject_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> Rejected:
    """Destroy it. If it is taught again, it waits for a decision again."""
    with _or_not_found("lesson"):
        await shared.memory.experience(agent, deployment).remove(lesson, by=by)
    return Rejected(rejected=lesson)


@router.post("/api/lessons/{lesson}/withdraw", summary="Withdraw a lesson", responses=_DECIDES)
async def withdraw_lesson(
    shared: Shared, deployment: OperatedDeployment, lesson: str, agent: Agent, by: By = None
) -> LessonView:
    """Remove it from the agent's prompt, however often it is taught again."""
    with _or_not_found("lesson"):
        return LessonView.of_agent(
            agent, await shared.memory.experience(agent, deployment).withdraw(lesson, by=by)
        )


@router.get("/api/decisions", summary="List decisions", responses=responses(401, 404, 422, 429, 503))
async def list_decisions(shared: Shared, deployment: OperatedDeployment) -> Decisions:
    """Decisions about facts and lessons, oldest first."""
    decided = await shared.memory.proposals(deployment).decisions()
    return Decisions(decisions=[DecisionView.of(decision) for decision in decided])


audit_router = APIRouter(tags=["operator"], dependencies=[AsAuditor])


class AuditEntries(ResponseModel):
    """Entries of the audit log, oldest first, as in the file."""

    entries: list[dict[str, Any]] = Field(
        description="`n`, `at`, `role`, `who`, `why`, `did`, `kind`, `deployment` and the pseudonym `scope`."
    )
    head: str = Field(description="The SHA-256 of the log's last line, over all deployments.")


@audit_router.get("/api/audit", summary="Read the audit log", responses=responses(401, 404, 422, 429, 503))
async def audit(
    shared: Shared,
    deployment: OperatedDeployment,
    after: Annotated[int, Query(ge=0, description="Only entries with a higher `n`.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> AuditEntries:
    """The chain of hashes is checked from `after` on; a log that was changed there answers 503. `echoic audit
    verify` checks all of it.
    """
    log = shared.memory.audit
    if log is None:
        raise InvalidInput("this server keeps no audit log: start it with --audit")
    await log.flush()
    entries = await asyncio.to_thread(log.log.page, after, limit, deployment)
    return AuditEntries(entries=entries, head=await asyncio.to_thread(log.log.head))


class UserView(ResponseModel):
    """A user that something is kept about."""

    user: str
    name: str | None = Field(description="What they said they are called.", examples=["Pavel"])


class UserList(ResponseModel):
    """Users, most recent first."""

    users: list[UserView]
    cursor: str | None = Field(description="Send it to get those before; null: there are none.")
    total: int = Field(description="How many there are in all, or whose id contains what was looked for.")


@router.get("/api/users", summary="List users", responses=responses(401, 403, 404, 422, 429, 503))
async def list_users(
    shared: Shared,
    deployment: OperatedDeployment,
    containing: Annotated[str, Query(max_length=200, description="Only ids that contain this.")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[
        str | None, Query(max_length=400, pattern="^[0-9]{1,9} ", description="From the last answer.")
    ] = None,
) -> UserList:
    """Every user that something is kept about. To read or change what is kept, get a token of the user with
    `POST /v1/tokens`.
    """
    wanted = containing.strip().casefold()
    known = [name for name in await shared.memory.users(deployment) if wanted in name.casefold()][::-1]
    start = 0
    if cursor is not None:
        older, _, last = cursor.partition(" ")
        # if the last one shown was forgotten meanwhile, by how many there were before them
        start = known.index(last) + 1 if last in known else max(0, len(known) - int(older))
    page = known[start : start + limit]
    left = len(known) - start - limit
    names = await asyncio.gather(*(shared.memory.user(one, deployment).get(KEYS["name"]) for one in page))
    users = [
        UserView(user=user, name=None if name is None else name.text)
        for user, name in zip(page, names, strict=True)
    ]
    return UserList(users=users, cursor=f"{left} {page[-1]}" if left > 0 else None, total=len(known))


class Imported(ResponseModel):
    """The result of an import."""

    records: int = Field(description="How many were new; those that are there already stay as they are.")


@router.post(
    "/api/users/{user:path}/import",
    summary="Import what was exported of a user",
    responses=responses(401, 403, 404, 413, 422, 429, 503, 507),
)
async def import_user(
    shared: Shared, deployment: OperatedDeployment, user: str, exported: Annotated[dict[str, Any], Body()]
) -> Imported:
    """Takes what `GET /api/export` returned, of any user, whole or in pieces: each an export with some of the
    memories, or some turns of a conversation. It is the operator's, since a file can say anything in
    anybody's name. All of it is checked before any of it is written, and sending it again changes nothing.
    """
    return Imported(records=await shared.memory.user(user, deployment).restore(exported))
