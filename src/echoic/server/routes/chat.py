"""One turn with the agent: what was said is kept, answered from memory, and learned from.

The agent is a set of rules, or a language model behind the same memory where one is set up.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Self

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import Field

from echoic.errors import EchoicError
from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless import KeylessAgent, Reply
from echoic.server.callers import AsCaller, Caller, Served, Shared
from echoic.server.events import described, event, streamed
from echoic.server.models import Asked, Shown, ShownMemory, ShownRecall, ShownReceipt, ShownTurn
from echoic.server.problems import MODEL_FAILED, Problem, model_failed, problem_in, responses
from echoic.types import checked_text

log = logging.getLogger(__name__)

router = APIRouter(tags=["conversation"])


class Say(Asked):
    """What the user says."""

    text: str = Field(examples=["I'm Pavel and I live in Tel Aviv"])
    conversation: str | None = Field(default=None, description="A new one is begun if it is left out.")


class Said(Shown):
    """What the agent says, and what memory did for it."""

    conversation: str
    text: str = Field(examples=["Nice to meet you, Pavel. You live in Tel Aviv: I'll remember."])
    agent: str = Field(description='Who answers: "keyless" is a set of rules, not a language model.')
    heard: ShownTurn | None = Field(
        description="The user's turn as it was kept; null once everything is erased."
    )
    stored: list[ShownMemory] = Field(description="What was learned.")
    superseded: list[ShownMemory] = Field(description="What held before and was corrected by it.")
    known: list[ShownMemory] = Field(description="What was said and known already.")
    retracted: list[ShownMemory] = Field(description="What was taken back.")
    query: str | None = Field(description="What was searched for, if anything was.")
    recall: ShownRecall | None
    receipt: ShownReceipt | None = Field(description="Of an erasure, if there was one.")
    timings: dict[str, float] = Field(
        description="Milliseconds by step, in order.",
        examples=[{"append": 0.6, "distil": 1.4, "recall": 4.8}],
    )

    @classmethod
    def of(cls, conversation: str, agent: str, reply: Reply) -> Self:
        """`reply`, given by `agent` in `conversation`."""
        return cls(
            conversation=conversation,
            text=reply.text,
            agent=agent,
            heard=ShownTurn.of(reply.heard) if reply.heard else None,
            stored=[ShownMemory.of(memory) for memory in reply.stored],
            superseded=[ShownMemory.of(memory) for memory in reply.superseded],
            known=[ShownMemory.of(memory) for memory in reply.known],
            retracted=[ShownMemory.of(memory) for memory in reply.retracted],
            query=reply.query,
            recall=ShownRecall.of(reply.recall) if reply.recall else None,
            receipt=ShownReceipt.of(reply.receipt) if reply.receipt else None,
            timings=dict(reply.timings),
        )


class Piece(Shown):
    """A piece of an answer."""

    text: str


class Tool(Shown):
    """The model uses a tool."""

    name: str


@router.post(
    "/api/chat", summary="Say something to the agent", responses=responses(401, 409, 413, 422, 429, 503, 507)
)
async def chat(caller: AsCaller, shared: Shared, asked: Say) -> Said:
    """Keep what was said, learn from it, and answer it from memory. Where no language model is set up the
    agent is a set of rules, and says so when they do not suffice.
    """
    conversation = await _opened(caller, shared, asked)
    reply = await _whole(caller, shared, conversation, asked.text)
    return Said.of(conversation.id, shared.agent, reply)


@router.post(
    "/api/chat/stream",
    summary="Say something, and have the answer as it comes",
    response_class=StreamingResponse,
    responses={
        **described(
            "`text`: the next words (`{text}`). `tool`: the model uses one (`{name}`). `said`: the whole "
            "answer as POST /api/chat gives it, the last where all went well. `problem`: a `Problem`."
        ),
        **responses(401, 409, 413, 422, 429, 503, 507),
    },
)
async def chat_stream(caller: AsCaller, shared: Shared, asked: Say) -> StreamingResponse:
    """The same, bit by bit. What cannot be kept is refused before anything is streamed."""
    conversation = await _opened(caller, shared, asked)
    if shared.talker is None:
        reply = await _whole(caller, shared, conversation, asked.text)
        return streamed(_at_once(Said.of(conversation.id, shared.agent, reply)))
    return streamed(_spoken(caller, shared, conversation, asked.text))


async def _opened(caller: Caller, shared: Served, asked: Say) -> OpenConversation:
    checked_text(asked.text, "text")
    return await caller.memory.conversation(asked.conversation or "", agent=shared.agent)


async def _whole(caller: Caller, shared: Served, conversation: OpenConversation, text: str) -> Reply:
    if shared.talker is None:
        agent = KeylessAgent(caller.memory, deadline_ms=shared.settings.recall_deadline_ms)
        return await agent.reply(conversation, text)
    from echoic.capability.talking import ModelFailed

    try:
        async for piece in shared.talker.reply(caller.memory, conversation, text):
            if isinstance(piece, Reply):
                return piece
    except ModelFailed as error:
        log.warning("the model gave no answer: %s", error)
        raise model_failed() from error
    raise AssertionError  # a reply is always the last piece


async def _at_once(said: Said) -> AsyncIterator[bytes]:
    yield event("said", said)


async def _spoken(
    caller: Caller, shared: Served, conversation: OpenConversation, text: str
) -> AsyncIterator[bytes]:
    from echoic.capability.talking import ModelFailed, ToolCall, Words

    assert shared.talker is not None
    try:
        async for piece in shared.talker.reply(caller.memory, conversation, text):
            if isinstance(piece, Words):
                yield event("text", Piece(text=piece.text))
            elif isinstance(piece, ToolCall):
                yield event("tool", Tool(name=piece.name))
            else:
                yield event("said", Said.of(conversation.id, shared.agent, piece))
    # the status is sent: what goes wrong from here on is an event
    except ModelFailed as error:
        log.warning("the model gave no answer: %s", error)
        yield event("problem", Problem(error=MODEL_FAILED, code="model_unavailable"))
    except EchoicError as error:
        yield event("problem", problem_in(error))


__all__ = ["router"]
