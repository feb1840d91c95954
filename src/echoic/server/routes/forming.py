"""Memory as it forms: the jobs that wait, and a stream of events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator, Field

from echoic.errors import StoreError
from echoic.memory.hooks import Extraction, Forgotten, ToolUsed, Trouble
from echoic.server.event_stream import BEAT, Told, described, event, streamed
from echoic.server.models import Shown, ShownMemory, ShownRecall
from echoic.server.problems import responses
from echoic.server.request_callers import AppState, AsCaller, RequestCaller, Shared, address, is_known_still

router = APIRouter(tags=["memory"])
_SHOWN = 2000
"""The characters shown of a model's input."""


def _short(text: str | None) -> str | None:
    """The start of a model's input, as valid text: it may be of any length and hold anything."""
    if text is None:
        return None
    sound = text[: _SHOWN + 1].encode(errors="replace").decode()
    return sound if len(sound) <= _SHOWN else f"{sound[:_SHOWN]}…"


Short = Annotated[str | None, BeforeValidator(_short)]


class ShownParked(Shown):
    """A conversation that was given up after repeated model failures."""

    conversation: str
    attempts: int
    reason: str = Field(description="The type of the last error.", examples=["TimeoutError"])


class ShownJobs(Shown):
    """The jobs that wait for the caller."""

    waiting: int = Field(description="Conversations that were not read yet.")
    failing: int = Field(description="Conversations that wait for a retry of the model.")
    parked: list[ShownParked] = Field(
        description="Conversations that were given up; an operator can retry them."
    )
    embedding_trouble: str | None = Field(
        description="Why embedding fails; null if it works.", examples=["EmbedderUnavailable"]
    )


class MemoryLearned(Shown):
    """Memories were added, corrected, confirmed or retracted."""

    reader: str = Field(description='"rules", or the name of a model\'s extractor.')
    conversation: str
    added: list[ShownMemory]
    superseded: list[ShownMemory]
    confirmed: list[ShownMemory]
    retracted: list[ShownMemory]
    duration_ms: float


class MemoryDestroyed(Shown):
    """Something was destroyed."""

    what: str = Field(examples=["everything"])


class Stuck(Shown):
    """A background job fails."""

    what: str = Field(examples=["distilling"])
    reason: str
    conversation: str | None
    again_s: float | None


class Used(Shown):
    """A model used a tool of memory."""

    tool: str = Field(examples=["agentMemory"])
    operation: str = Field(examples=["query"])
    conversation: str | None
    key: Short
    value: Short
    query: Short
    outcome: str = Field(description="done, or failed; the model was told.")
    memory: ShownMemory | None = Field(
        description="The memory that was set or read, with its visibility and the reason."
    )
    recall: ShownRecall | None = Field(description="The result of a query.")
    deleted: bool | None = Field(description="Whether a memory was retracted.")
    duration_ms: float


@router.get("/api/jobs", summary="List waiting jobs", responses=responses(401, 429, 503))
async def get_jobs(caller: AsCaller, shared: Shared) -> ShownJobs:
    """The caller's conversations that wait, that a model failed on, and that were given up."""
    jobs = await caller.memory.jobs()
    return ShownJobs(
        waiting=jobs.waiting,
        failing=jobs.failing,
        parked=[ShownParked.of(job) for job in jobs.parked],
        embedding_trouble=shared.memory.embedding_trouble,
    )


@router.get(
    "/api/events",
    summary="Stream events of the caller's memory",
    response_class=StreamingResponse,
    responses={
        **described(
            "`learned`: memories were added, corrected, confirmed or retracted, by which reader and how "
            "fast. `tool`: a model used a memory tool, with its input and result. "
            "`forgotten`: memories were destroyed (`{what}`). `trouble`: a background job fails. "
            "The stream starts with new events; the current state is at /api/memories."
        ),
        **responses(401, 429, 503),
    },
)
async def get_events(caller: AsCaller, shared: Shared, request: Request) -> StreamingResponse:
    """Events of the caller's own memory. Reconnect when the stream ends."""
    return streamed(_events(caller, shared, address(request)))


async def _events(caller: RequestCaller, shared: AppState, place: str) -> AsyncIterator[bytes]:
    yield BEAT  # starts the response, so that a page knows it is connected
    scope, beat_s = caller.memory.scope, shared.settings.beat_s
    async for told in shared.live.listen(scope, beat_s=beat_s, address=place):
        if not await _is_told(caller, shared):
            return
        # what was learned or looked up is told as it is: to those alone who may be told everything
        withheld = isinstance(told, Extraction | ToolUsed) and not caller.memory.sees_everything
        yield BEAT if told is None or withheld else _event(told)


async def _is_told(caller: RequestCaller, shared: AppState) -> bool:
    try:
        return await is_known_still(shared, caller.principal)
    except StoreError:  # fail closed: the identity could not be checked
        return False


def _event(told: Told) -> bytes:
    if isinstance(told, Extraction):
        return event("learned", MemoryLearned.of(told))
    if isinstance(told, Forgotten):
        return event("forgotten", MemoryDestroyed.of(told))
    if isinstance(told, ToolUsed):
        return event("tool", Used.of(told))
    assert isinstance(told, Trouble)
    return event("trouble", Stuck.of(told))
