"""Recorded calls: a list of them, and one with its transcript, stages, and what the model was given; and the
live events of calls that go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self, TypeVar, assert_never

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials
from pydantic import Field

from echoic.errors import InvalidInput, StoreCorrupt
from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, ToolUsed
from echoic.memory.records import CALL, MEMORY, TURN, memories_learned_from, memory_of, scan_all, turn_of
from echoic.memory.service import MemoryService
from echoic.memory.tasks import ListedConversation, read_task
from echoic.memory.user import UserMemory
from echoic.server.live import BEAT, Told, described, event, streamed
from echoic.server.models import MemoryView, ResponseModel, Time, TurnView, fields_of
from echoic.server.problems import not_found, responses
from echoic.server.request_callers import (
    AppState,
    AsOperator,
    AsReader,
    OperatedDeployment,
    OperatorCredentials,
    Shared,
    address,
    is_let_in_still,
)
from echoic.server.routes.memories import MemoryDestroyed, MemoryLearned, Stuck, Used
from echoic.session.call_record import (
    MEANINGS,
    CallRecord,
    Channel,
    Exchange,
    call_of,
    exchange_of,
    read_exchanges,
    read_given,
)
from echoic.stores.base import Record, latest
from echoic.types import Conversation, ConversationStatus, Memory, Outcome, Scope, Turn

router = APIRouter(tags=["calls"])

K = TypeVar("K")
T = TypeVar("T")
_MOST_LOOKED_AT: Final = 1000
"""Conversations examined for one page of a list at most."""
_READS: Final = responses(401, 403, 404, 422, 429, 503)


class CallView(ResponseModel):
    """A call in a list."""

    id: str = Field(description="The id of its conversation.")
    user: str
    channel: Channel = Field(
        description="text: typed, or appended by a backend without a record of the call."
    )
    agents: list[str] = Field(description="Who served it, in order.")
    status: ConversationStatus
    reason: str | None = Field(description="Why it ended, where that was recorded.")
    provider: str | None
    model: str | None
    started_at: datetime
    ended_at: datetime | None = Field(
        description="Null while it goes on, and where its end was not recorded."
    )
    last_said_at: datetime | None = Field(
        description="When something was last said in it; null in a list where its end was recorded."
    )


class CallList(ResponseModel):
    """Calls, newest first."""

    calls: list[CallView]
    next: str | None = Field(description="Send it as `cursor` for the calls before these; null at the end.")


class GivenHit(ResponseModel):
    """Something that was found for a turn, and what became of it."""

    id: str
    kind: Literal["memory", "turn"]
    text: str | None = Field(description="Its words; null where it was forgotten since.")
    key: str | None
    value: str | None = Field(description="Of a memory: what is kept under its key.")
    rank: int = Field(description="From 1.")
    score: float
    relevance: float = Field(description="How likely it was to answer, 0 to 1.")
    ranks: dict[str, int] = Field(description="Its rank by channel.")
    fate: str = Field(description="shown, in_block, repeated, over_budget, late or forgotten.")
    means: str = Field(description="`fate` in words.")
    said_at: datetime | None
    conversation: str | None = Field(description="Where it was said.")
    turn: str | None = Field(description="The turn that stated it.")
    confidence: float | None = Field(description="How surely that was heard, 0 to 1, where it is known.")


class RecalledView(ResponseModel):
    """What was recalled for a turn."""

    outcome: Outcome
    ready: bool = Field(description="Whether it was there when the turn ended.")
    delay_ms: float = Field(description="From the end of the turn to the answer.")
    cut: list[str] = Field(description="The channels that were left out.")
    hits: list[GivenHit]


class ToolView(ResponseModel):
    """One call of a tool."""

    name: str
    began_ms: float
    ended_ms: float | None
    outcome: str | None


class SpokenView(ResponseModel):
    """One thing the agent said: how much of it was played."""

    turn: str
    played_ms: float
    generated_ms: float
    source: str = Field(description="How the cut was found; whole: nothing was cut.")


class ExchangeView(ResponseModel):
    """A turn of the caller, and what the agent did about it. Times are milliseconds since the call began."""

    number: int
    agent: str
    at: datetime
    user_turn: str
    stages: dict[str, float]
    partials: int = Field(description="Interim transcripts that were heard.")
    latency_ms: float | None = Field(
        description="From the end of the caller's words to the first audio of the answer."
    )
    spoken: list[SpokenView]
    tools: list[ToolView]
    recall: RecalledView | None = Field(description="Null where nothing was recalled.")
    given: list[dict[str, Any]] = Field(
        description="For holders of a key: what the model was given beside what was spoken, as it was sent."
    )


class CallPage(ResponseModel):
    """One call."""

    call: CallView
    turns: list[TurnView]
    exchanges: list[ExchangeView]
    learned: list[MemoryView] = Field(description="The memories that state what was said in it.")
    transfer_gaps_ms: list[float] = Field(
        description="Of each transfer: the longest that a frame of the caller's waited."
    )


@router.get("/api/calls", summary="List calls", responses=_READS)
async def list_calls(
    shared: Shared,
    viewer: AsReader,
    *,
    user: Annotated[str | None, Query(description="For keys: of this user only.")] = None,
    channel: Annotated[Channel | None, Query(description="How the caller spoke.")] = None,
    status: Annotated[ConversationStatus | None, Query(description="How it stands.")] = None,
    since: Annotated[Time | None, Query(description="It began then or later.")] = None,
    until: Annotated[Time | None, Query(description="It began before then.")] = None,
    cursor: Annotated[str | None, Query(description="`next` of the page before.", max_length=600)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> CallList:
    """Newest first. A user's token lists that user's calls; a key lists those of its deployment.
    Conversations without a recorded call, such as typed ones, are included.
    """
    shown: list[CallView] = []
    for _ in range(_MOST_LOOKED_AT // limit):
        page = await shared.memory.newest_conversations(
            viewer.deployment,
            user=viewer.user or user,
            status=status,
            since=since,
            until=until,
            limit=limit,
            before=cursor,
        )
        found = page.conversations
        calls = await _listed(shared.memory, viewer.deployment, found)
        for each, call in zip(found, calls, strict=True):
            if channel in {None, call.channel}:
                shown.append(call)
            cursor = each.place
            if len(shown) == limit:
                more = page.more or each is not found[-1]
                return CallList(calls=shown, next=cursor if more else None)
        if not page.more:
            return CallList(calls=shown, next=None)
    return CallList(calls=shown, next=cursor)


@router.get("/api/calls/{call:path}", summary="Get a call", responses=_READS)
async def get_call(
    shared: Shared,
    viewer: AsReader,
    call: str,
    user: Annotated[str | None, Query(description="For keys: whose call it is.")] = None,
) -> CallPage:
    """The transcript as it was heard, the stages of each turn, what was recalled for it, the tools that were
    called, and what was learned. Content that was forgotten since is left out.
    """
    of = viewer.user or user
    if of is None:
        raise InvalidInput("send `user`: whose call it is", field="user")
    memory = shared.memory.user(of, viewer.deployment, level=viewer.level)
    store, scope = memory.backing_store, memory.scope
    task = await read_task(memory.visible_store, scope, call)
    if task is None:
        raise not_found("call")
    records = await _records(memory, call)
    exchanges = await read_exchanges(store, scope, call)
    hits = await _HitsById.of(memory, exchanges)
    given: dict[int, list[dict[str, Any]]] = {}
    if viewer.role != "user":  # the agent's instructions are not for users
        for record in records:
            for each in await read_given(store, scope, call, record.id):
                given.setdefault(each.exchange, []).append(
                    {"role": each.role, "name": each.name, "text": each.text, "tokens": each.tokens}
                )
    return CallPage(
        call=_shown(of, task.conversation, records, task.turns[-1].said_at if task.turns else None),
        turns=[TurnView.of(turn) for turn in task.turns],
        exchanges=[_exchange(each, hits, given.get(each.number, [])) for each in exchanges],
        learned=[
            MemoryView.of(each)
            for each in await memories_learned_from(store, memory.visible_store, scope, task.turns)
        ],
        transfer_gaps_ms=[gap for record in records for gap in record.gaps_ms],
    )


async def _records(memory: UserMemory, conversation: str) -> list[CallRecord]:
    found = await scan_all(memory.backing_store, memory.scope, CALL, key=conversation)
    return [call_of(record) for record in found]


async def _listed(
    memory: MemoryService, deployment: str, found: Sequence[ListedConversation]
) -> list[CallView]:
    """The calls of a list's conversations, with two reads for all of them."""
    if not found:
        return []
    store = memory.user(found[0].user, deployment).backing_store
    keys = [(Scope(deployment, each.user), each.conversation.id) for each in found]
    records = _readable(await latest(store, CALL, keys), call_of)
    going_on = [key for key in keys if key not in records or records[key].ended_at is None]
    said = _readable(await latest(store, TURN, going_on), turn_of)
    calls = []
    for each, key in zip(found, keys, strict=True):
        of_it = [records[key]] if key in records else []
        said_at = said[key].said_at if key in said else None
        calls.append(_shown(each.user, each.conversation, of_it, said_at))
    return calls


def _readable(records: Mapping[K, Record], read: Callable[[Record], T]) -> dict[K, T]:
    """What `read` makes of `records`, without damaged ones: these keep nobody else's out of a list."""
    found: dict[K, T] = {}
    for key, record in records.items():
        with contextlib.suppress(StoreCorrupt):
            found[key] = read(record)
    return found


def _shown(
    user: str, conversation: Conversation, records: Sequence[CallRecord], said_at: datetime | None
) -> CallView:
    last = records[-1] if records else None
    return CallView(
        id=conversation.id,
        user=user,
        channel=last.channel if last else "text",
        agents=last.agents if last else [conversation.agent] if conversation.agent else [],
        status=conversation.status,
        reason=last.reason if last else None,
        provider=last.provider or None if last else None,
        model=last.model or None if last else None,
        started_at=min([conversation.started_at, *(record.started_at for record in records)]),
        ended_at=last.ended_at if last else None,
        last_said_at=said_at,
    )


class _HitsById:
    """The text of the hits in a call, read together, and the turns that stated them."""

    def __init__(self, memories: dict[str, Memory], turns: dict[str, Turn], whole: bool) -> None:
        self._memories, self._turns, self._whole = memories, turns, whole

    @classmethod
    async def of(cls, memory: UserMemory, exchanges: Iterable[Exchange]) -> _HitsById:
        store, own = memory.visible_store, memory.scope
        found = {hit.id for each in exchanges if each.recall for hit in each.recall.found}
        memories: dict[str, Memory] = {}
        turns: dict[str, Turn] = {}
        if found:
            for scope in (own.everyone, own):
                memories |= {r.id: memory_of(r) for r in await store.read(scope, MEMORY, sorted(found))}
            # ids of turns are unique within a user; those of a global memory belong to another user
            sources = {turn for each in memories.values() for turn in _sources(each)}
            wanted = sorted(sources | (found - memories.keys()))
            turns = {r.id: turn_of(r) for r in await store.read(own, TURN, wanted)} if wanted else {}
        return cls(memories, turns, memory.sees_everything)

    def shown(self, exchange: Exchange) -> list[GivenHit]:
        found = exchange.recall.found if exchange.recall else ()
        hits = []
        for number, hit in enumerate(found, start=1):
            memory, turn = self._memories.get(hit.id), self._turns.get(hit.id)
            said = turn or next((self._turns[one] for one in _sources(memory) if one in self._turns), None)
            text = (memory.statement or memory.text) if memory else turn.heard_text if turn else None
            if text is None and not self._whole:
                continue  # it may be withheld: do not reveal that it exists
            fate = hit.fate if text is not None else "forgotten"
            hits.append(
                GivenHit(
                    id=hit.id,
                    kind=hit.kind,
                    text=text,
                    key=memory.key if memory else None,
                    value=memory.text if memory else None,
                    rank=number,
                    score=hit.score,
                    relevance=hit.relevance,
                    ranks={channel: rank for channel, (rank, _) in hit.ranks.items()},
                    fate=fate,
                    means=MEANINGS[fate],
                    said_at=said.said_at if said else memory.valid_from if memory else None,
                    conversation=said.conversation if said else None,
                    turn=said.id if said else None,
                    confidence=said.confidence if said else None,
                )
            )
        return hits


def _sources(memory: Memory | None) -> Sequence[str]:
    return memory.source if memory is not None and memory.visibility != "global" else ()


def _exchange(exchange: Exchange, hits: _HitsById, given: list[dict[str, Any]]) -> ExchangeView:
    recall = exchange.recall
    seen = recall and {**fields_of(RecalledView, recall), "hits": hits.shown(exchange)}
    shown = {**fields_of(ExchangeView, exchange), "recall": seen, "given": given}
    return ExchangeView.model_validate(shown)


# -- live events

watched = APIRouter(tags=["operator"], dependencies=[AsOperator])


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
        seen = recall and {
            **fields_of(WatchedRecall, recall),
            "found": len(recall.found),
            "shown": sum(hit.fate == "shown" for hit in recall.found),
        }
        return cls.model_validate({**fields_of(cls, noun), "recall": seen})


class WatchedEvent(ResponseModel):
    """Something that happened in a deployment."""

    at: datetime
    user: str
    conversation: str | None
    data: TurnView | WatchedExchange | MemoryLearned | MemoryDestroyed | Stuck | Used


@watched.get(
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
