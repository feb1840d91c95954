"""Live events of a deployment's calls: what is said, recalled and learned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Self, assert_never

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials
from pydantic import Field

from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, ToolUsed
from echoic.memory.records import TURN, turn_of
from echoic.server.event_stream import BEAT, Told, described, event, streamed
from echoic.server.models import ResponseModel, TurnView
from echoic.server.problems import responses
from echoic.server.request_callers import (
    AppState,
    AsOperator,
    OperatedDeployment,
    OperatorCredentials,
    Shared,
    address,
    is_let_in_still,
)
from echoic.server.routes.calls import ToolView
from echoic.server.routes.memories import MemoryDestroyed, MemoryLearned, Stuck, Used
from echoic.session.call_record import Exchange, exchange_of
from echoic.types import Outcome, Scope

router = APIRouter(tags=["operator"], dependencies=[AsOperator])


class WatchedRecall(ResponseModel):
    """How the recall for a turn went."""

    outcome: Outcome
    ready: bool = Field(description="Whether it was ready when the turn ended.")
    delay_ms: float = Field(description="From the end of the turn to the answer.")
    found: int
    shown: int = Field(description="How many of those the model was given for this turn.")


class WatchedExchange(ResponseModel):
    """The record of one exchange; sent again when more of it is known."""

    number: int
    agent: str
    user_turn: str
    latency_ms: float | None
    recall: WatchedRecall | None
    tools: list[ToolView]

    @classmethod
    def of(cls, noun: Exchange) -> Self:
        """`noun`, without the hits."""
        recall = noun.recall
        seen = recall and WatchedRecall(
            outcome=recall.outcome,
            ready=recall.ready,
            delay_ms=recall.delay_ms,
            found=len(recall.found),
            shown=sum(hit.fate == "shown" for hit in recall.found),
        )
        tools = [ToolView.of(each) for each in noun.tools]
        return cls(
            number=noun.number,
            agent=noun.agent,
            user_turn=noun.user_turn,
            latency_ms=noun.latency_ms,
            recall=seen or None,
            tools=tools,
        )


class WatchedEvent(ResponseModel):
    """Something that happened in a deployment."""

    at: datetime
    user: str
    conversation: str | None
    data: TurnView | WatchedExchange | MemoryLearned | MemoryDestroyed | Stuck | Used


@router.get(
    "/api/watch",
    summary="Watch calls as they go",
    response_class=StreamingResponse,
    responses={
        **described(
            "Each with `at`, `user`, `conversation` and `data`. `turn`: something was said and stored. "
            "`exchange`: whether the recall for it was ready, and when the answer began; told again when "
            "more is known. `learned`, `tool`, `forgotten`, `failure`: as of GET /api/events. The stream "
            "starts with new events."
        ),
        **responses(401, 404, 422, 429, 503),
    },
)
async def watch(
    shared: Shared,
    deployment: OperatedDeployment,
    credentials: OperatorCredentials,
    request: Request,
    user: Annotated[str | None, Query(description="Of this user only.", max_length=400)] = None,
) -> StreamingResponse:
    """Events of every user of a deployment, or of one: what is said, recalled and learned in this process.
    They contain what callers said. Reconnect when the stream ends.
    """
    return streamed(_watched(shared, Scope(deployment, None), user, credentials, request))


async def _watched(
    shared: AppState,
    scope: Scope,
    user: str | None,
    credentials: HTTPAuthorizationCredentials | None,
    request: Request,
) -> AsyncIterator[bytes]:
    yield BEAT  # starts the response
    async for told in shared.live.listen(scope, beat_s=shared.settings.beat_s, address=address(request)):
        if not await is_let_in_still(shared, credentials, request):
            return
        whose = told.scope.user if told is not None and told.scope is not None else None
        if told is None or whose is None or user not in {None, whose}:
            yield BEAT
            continue
        if shared.memory.audit is not None and told.scope is not None:
            shared.memory.audit.note("read", told.scope, "memory and turn")
        yield _watched_event(told, whose)


def _watched_event(told: Told, user: str) -> bytes:
    conversation = None if isinstance(told, Forgotten) else getattr(told, "conversation", None)
    name, data = _told(told)
    if isinstance(told, CallWritten):
        conversation = told.record.key
    return event(name, WatchedEvent(at=datetime.now(UTC), user=user, conversation=conversation, data=data))


def _told(told: Told) -> tuple[str, Any]:
    match told:
        case CallWritten(record=record) if record.kind == TURN:
            return "turn", TurnView.of(turn_of(record))
        case CallWritten(record=record):
            return "exchange", WatchedExchange.of(exchange_of(record))
        case Extraction():
            return "learned", MemoryLearned.of(told)
        case ToolUsed():
            return "tool", Used.of(told)
        case Forgotten():
            return "forgotten", MemoryDestroyed.of(told)
        case Failure():
            return "failure", Stuck.of(told)
    assert_never(told)
