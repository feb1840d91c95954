"""Conversations with the agent: begin one, take a turn, end it.

The agent is a set of rules, or a language model behind the same memory. Rules always give the greeting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Self

from fastapi import APIRouter, Body
from fastapi.responses import StreamingResponse
from pydantic import Field

from echoic.errors import EchoicError
from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless import KeylessAgent, Reply
from echoic.server.live import described, event, streamed
from echoic.server.models import (
    ConversationView,
    Count,
    MemoryView,
    Name,
    RecallView,
    ReceiptView,
    RequestBody,
    ResponseModel,
    SpokenText,
    TurnView,
)
from echoic.server.problems import MODEL_FAILED, Problem, classified, model_failed, not_found, responses
from echoic.server.request_callers import AppState, AsCaller, RequestCaller, Shared
from echoic.session.call_record import CallRecord, ToolRun, TypedTurn, note_typed
from echoic.session.turn_recall import MemoryInTurn, RecallTrace, found_of

if TYPE_CHECKING:
    from echoic.capability.talker import Piece, Talker

router = APIRouter(tags=["conversation"])


class Begin(RequestBody):
    """The conversation to begin."""

    conversation: str | None = Field(default=None, description="Its id; a new one by default.")


class ConversationStarted(ResponseModel):
    """A conversation, and the agent's greeting."""

    conversation: str
    text: str = Field(
        description="The agent's greeting, by name if it knows one.", examples=["Welcome back, Pavel."]
    )
    agent: str = Field(description='Who answers: "keyless" means rules, not a language model.')
    timings: dict[str, float] = Field(description="Milliseconds by step, in order.")


@router.post(
    "/api/conversations", summary="Begin a conversation", responses=responses(401, 413, 422, 429, 503, 507)
)
async def begin_conversation(
    caller: AsCaller, shared: Shared, asked: Annotated[Begin | None, Body()] = None
) -> ConversationStarted:
    """Begin a conversation, or continue one. The agent's greeting uses what it remembers."""
    started = time.perf_counter()
    conversation = await caller.memory.conversation((asked and asked.conversation) or "", agent=shared.agent)
    await caller.memory.warm()
    warmed = time.perf_counter()
    greeting = await KeylessAgent(caller.memory).greet(conversation)
    ended = time.perf_counter()
    return ConversationStarted(
        conversation=conversation.id,
        text=greeting,
        agent=shared.agent,
        timings={"warm": (warmed - started) * 1000, "greet": (ended - warmed) * 1000},
    )


class HeardPart(RequestBody):
    """The part of an answer that the caller heard: one of `heard`, `fraction` and `words`."""

    heard: str | None = Field(
        default=None,
        description="The words up to the interruption, as they are written or as speech output reads them; "
        "empty for none.",
    )
    fraction: float | None = Field(
        default=None, strict=True, ge=0, le=1, description="How much of the answer was played."
    )
    words: Count | None = Field(default=None, description="How many words of the answer were played.")
    after: str | None = Field(
        default=None, description="The id of the user's turn that was answered; null for the greeting."
    )


class Truncated(ResponseModel):
    """An answer as the caller heard it."""

    turns: list[TurnView]


@router.post(
    "/api/conversations/{conversation:path}/truncate",
    summary="Truncate an interrupted answer",
    responses=responses(401, 404, 413, 422, 429, 503),
)
async def truncate_answer(caller: AsCaller, conversation: Name, asked: HeardPart) -> Truncated:
    """Call this when the caller interrupts the agent. Words that were not heard enter no history, no recall
    and no memory.
    """
    opened = await known_conversation(caller, conversation)
    turns = await opened.truncate(asked.heard, after=asked.after, fraction=asked.fraction, words=asked.words)
    return Truncated(turns=[TurnView.of(turn) for turn in turns])


@router.post(
    "/api/conversations/{conversation:path}/complete",
    summary="End a conversation",
    responses=responses(401, 404, 422, 429, 503),
)
async def complete_conversation(caller: AsCaller, conversation: Name) -> ConversationView:
    """End the conversation, and extract memories from the turns that were not read yet."""
    opened = await known_conversation(caller, conversation)
    return ConversationView.of(await opened.complete())


@router.post(
    "/api/conversations/{conversation:path}/off-the-record",
    summary="Keep nothing of a conversation",
    responses=responses(401, 403, 404, 422, 429, 503),
)
async def off_the_record(caller: AsCaller, conversation: Name) -> ReceiptView:
    """Erases what was stored of it and learned from it alone, and stores nothing more of it. It continues,
    but answers no longer know what was said in it before.
    """
    opened = await known_conversation(caller, conversation)
    return ReceiptView.of(await opened.off_the_record())


@router.post(
    "/api/conversations/{conversation:path}/remember",
    summary="Keep a conversation that waits for the user's consent",
    responses=responses(401, 403, 404, 422, 429, 503),
)
async def remember_conversation(caller: AsCaller, conversation: Name) -> ConversationView:
    """Call this when the user agreed, under the consent `ask` or after `off-the-record`: stores what this
    process holds of it, and what is said from now on.
    """
    opened = await known_conversation(caller, conversation)
    await opened.remember()
    return ConversationView.of(await opened.info())


async def known_conversation(caller: RequestCaller, conversation: str) -> OpenConversation:
    """The caller's conversation with that id; raises `Refused` (404) if there is none, or it was
    forgotten.
    """
    opened = await caller.memory.conversation(conversation, begin=False)
    if not opened.silent and await caller.memory.find_conversation(conversation) is None:
        raise not_found("conversation")
    return opened


log = logging.getLogger(__name__)


class Say(RequestBody):
    """What the user says."""

    text: SpokenText = Field(examples=["I'm Pavel and I live in Tel Aviv"])
    conversation: str | None = Field(default=None, description="The conversation; a new one by default.")


class AgentAnswer(ResponseModel):
    """The agent's answer, and what memory did for it."""

    conversation: str
    text: str = Field(examples=["Nice to meet you, Pavel. You live in Tel Aviv: I'll remember."])
    agent: str = Field(description='Who answers: "keyless" means rules, not a language model.')
    heard: TurnView | None = Field(description="The user's turn as it was stored; null after an erasure.")
    stored: list[MemoryView] = Field(description="New memories.")
    superseded: list[MemoryView] = Field(description="Memories that the turn corrected.")
    known: list[MemoryView] = Field(description="Memories that were known already.")
    retracted: list[MemoryView] = Field(description="Memories that the turn retracted.")
    query: str | None = Field(description="The query that was searched, if any.")
    recall: RecallView | None
    receipt: ReceiptView | None = Field(description="The receipt of an erasure, if there was one.")
    timings: dict[str, float] = Field(
        description="Milliseconds by step, in order.",
        examples=[{"append": 0.6, "distil": 1.4, "recall": 4.8}],
    )

    @classmethod
    def from_reply(cls, conversation: str, agent: str, reply: Reply) -> Self:
        given = {field.name: getattr(reply, field.name) for field in fields(reply)}
        return cls.model_validate({**given, "conversation": conversation, "agent": agent})


class AnswerPiece(ResponseModel):
    """A piece of an answer."""

    text: str


class Tool(ResponseModel):
    """The model is using a tool."""

    name: str


@router.post(
    "/api/chat", summary="Say something to the agent", responses=responses(401, 409, 413, 422, 429, 503, 507)
)
async def chat(caller: AsCaller, shared: Shared, asked: Say) -> AgentAnswer:
    """Store the turn, learn from it, and answer it from memory. Without a language model, rules answer, and
    the agent says so when they do not suffice.
    """
    conversation = await _conversation_of(caller, shared, asked)
    reply = await _whole(caller, shared, conversation, asked.text)
    return AgentAnswer.from_reply(conversation.id, shared.agent, reply)


@router.post(
    "/api/chat/stream",
    summary="Say something and stream the answer",
    response_class=StreamingResponse,
    responses={
        **described(
            "`text`: the next words (`{text}`). `tool`: the model is using a tool (`{name}`). `said`: the "
            "whole answer as from POST /api/chat, the last event on success. `problem`: a `Problem`."
        ),
        **responses(401, 409, 413, 422, 429, 503, 507),
    },
)
async def chat_stream(caller: AsCaller, shared: Shared, asked: Say) -> StreamingResponse:
    """Like POST /api/chat, streamed. A turn that cannot be stored is refused before the stream starts."""
    conversation = await _conversation_of(caller, shared, asked)
    if shared.talker is None:
        reply = await _whole(caller, shared, conversation, asked.text)
        return streamed(_at_once(AgentAnswer.from_reply(conversation.id, shared.agent, reply)))
    return streamed(_spoken(caller, shared, conversation, asked.text))


async def _conversation_of(caller: RequestCaller, shared: AppState, asked: Say) -> OpenConversation:
    return await caller.memory.conversation(asked.conversation or "", agent=shared.agent)


async def _whole(caller: RequestCaller, shared: AppState, conversation: OpenConversation, text: str) -> Reply:
    if shared.talker is None:
        came_at = datetime.now(UTC)
        agent = KeylessAgent(caller.memory, deadline_ms=shared.settings.recall_deadline_ms)
        reply = await agent.reply(conversation, text)
        await _noted(caller, conversation, _by_rules(came_at, reply), reply, agent=shared.agent)
        return reply
    from echoic.capability.talker import ModelFailed

    try:
        async for piece in _by_model(caller, shared.talker, conversation, text):
            if isinstance(piece, Reply):
                return piece
    except ModelFailed as error:
        log.warning("the model gave no answer: %s", error)
        raise model_failed() from error
    raise AssertionError  # a reply is always the last piece


async def _by_model(
    caller: RequestCaller, talker: Talker, conversation: OpenConversation, text: str
) -> AsyncIterator[Piece]:
    """The pieces of the model's answer; the turn is recorded before the last one."""
    from echoic.capability.talker import Sent, TextPiece, ToolAnswer, ToolCall
    from echoic.session.history import given_in

    memory, typed = MemoryInTurn(caller.memory, text, conversation.id), TypedTurn()
    async for piece in talker.reply(memory, conversation, text):
        if isinstance(piece, TextPiece):
            typed.stages.setdefault("first_audio", typed.now_ms)
            typed.stages["generated"] = typed.now_ms
        elif isinstance(piece, ToolCall):
            typed.tools.append(ToolRun(call=piece.call, name=piece.name, began_ms=typed.now_ms))
        elif isinstance(piece, ToolAnswer):
            for run in typed.tools:
                if run.call == piece.call:
                    run.ended_ms, run.outcome = typed.now_ms, piece.outcome
        elif isinstance(piece, Sent):
            typed.given, typed.recall = given_in(piece.messages), memory.recalled(piece.block)
        else:
            await _noted(caller, conversation, typed, piece, agent=talker.name, model=talker.model)
        yield piece


def _by_rules(came_at: datetime, reply: Reply) -> TypedTurn:
    """The record of a turn that the rules answered."""
    typed, recall, at_ms = TypedTurn(came_at=came_at), reply.recall, 0.0
    for step, ms in reply.timings.items():
        at_ms += ms
        if step == "recall" and recall is not None:
            typed.recall = RecallTrace(
                query="",
                outcome=recall.outcome,
                found=tuple(found_of(hit, "shown") for hit in recall.apart().hits),
                cut=recall.cut,
                delay_ms=ms,
                at=came_at + timedelta(milliseconds=at_ms),
            )
    typed.stages["generated"] = at_ms
    return typed


async def _noted(
    caller: RequestCaller,
    conversation: OpenConversation,
    typed: TypedTurn,
    reply: Reply,
    *,
    agent: str,
    model: str = "",
) -> None:
    """Record a turn for GET /api/calls."""
    if reply.heard is None or reply.receipt is not None or conversation.silent:
        return
    provider, _, name = model.partition(":")
    try:
        call = CallRecord(
            id=conversation.id,
            conversation=conversation.id,
            provider=provider,
            model=name,
            channel="text",
            started_at=(await conversation.info()).started_at,
            agents=[agent],
        )
        await note_typed(caller.memory, call, reply.heard, typed)
    except EchoicError as error:  # the turn and its answer are stored
        log.warning("a turn could not be recorded: %s", type(error).__name__)


async def _at_once(said: AgentAnswer) -> AsyncIterator[bytes]:
    yield event("said", said)


async def _spoken(
    caller: RequestCaller, shared: AppState, conversation: OpenConversation, text: str
) -> AsyncIterator[bytes]:
    from echoic.capability.talker import ModelFailed, TextPiece, ToolCall

    assert shared.talker is not None
    try:
        async for piece in _by_model(caller, shared.talker, conversation, text):
            if isinstance(piece, TextPiece):
                yield event("text", AnswerPiece(text=piece.text))
            elif isinstance(piece, ToolCall):
                yield event("tool", Tool(name=piece.name))
            elif isinstance(piece, Reply):
                yield event("said", AgentAnswer.from_reply(conversation.id, shared.agent, piece))
    # the status has been sent: errors from here on are events
    except ModelFailed as error:
        log.warning("the model gave no answer: %s", error)
        yield event("problem", Problem(error=MODEL_FAILED, code="model_unavailable"))
    except EchoicError as error:
        yield event("problem", classified(error)[1])
