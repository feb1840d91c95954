"""Conversations with the agent: beginning one, and ending it. Whoever answers later, rules greet."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless import KeylessAgent
from echoic.server.callers import AsCaller, Caller, Shared
from echoic.server.models import Asked, Shown, ShownConversation, ShownTurn
from echoic.server.problems import not_found, responses

router = APIRouter(tags=["conversation"])


class Begin(Asked):
    """Which conversation to begin."""

    conversation: str | None = Field(default=None, description="Its id; one is made if it is left out.")


class Begun(Shown):
    """A conversation, and how the agent opens it."""

    conversation: str
    text: str = Field(
        description="The agent's greeting: by name, where it knows one.", examples=["Welcome back, Pavel."]
    )
    agent: str = Field(description='Who answers: "keyless" is a set of rules, not a language model.')
    timings: dict[str, float] = Field(description="Milliseconds by step, in order.")


@router.post(
    "/api/conversations", summary="Begin a conversation", responses=responses(401, 413, 422, 429, 503, 507)
)
async def begin_conversation(
    caller: AsCaller, shared: Shared, asked: Annotated[Begin | None, Body()] = None
) -> Begun:
    """Begin a conversation, or go on with one; the agent greets from what it remembers."""
    started = time.perf_counter()
    conversation = await caller.memory.conversation((asked and asked.conversation) or "", agent=shared.agent)
    await caller.memory.warm()
    warmed = time.perf_counter()
    greeting = await KeylessAgent(caller.memory).greet(conversation)
    ended = time.perf_counter()
    return Begun(
        conversation=conversation.id,
        text=greeting,
        agent=shared.agent,
        timings={"warm": (warmed - started) * 1000, "greet": (ended - warmed) * 1000},
    )


class Heard(Asked):
    """How much of an answer reached the caller."""

    heard: str = Field(description="Its words up to where it was silenced; empty: none.")
    after: str | None = Field(
        default=None, description="The id of the user's turn that was being answered; null: the greeting."
    )


class Truncated(Shown):
    """An answer, as it was heard."""

    turns: list[ShownTurn]


@router.post(
    "/api/conversations/{conversation}/truncate",
    summary="Say how much of the agent's answer was heard",
    responses=responses(401, 404, 413, 422, 429, 503),
)
async def truncate_answer(caller: AsCaller, conversation: str, asked: Heard) -> Truncated:
    """The caller cut in while the agent's answer was being spoken: what they did not hear is in no history,
    no recall and nothing that is learned.
    """
    opened = await _known(caller, conversation)
    turns = await opened.truncate(asked.heard, after=asked.after)
    return Truncated(turns=[ShownTurn.of(turn) for turn in turns])


@router.post(
    "/api/conversations/{conversation}/complete",
    summary="End a conversation",
    responses=responses(401, 404, 422, 429, 503),
)
async def complete_conversation(caller: AsCaller, conversation: str) -> ShownConversation:
    """The call is over; what was said in it is learned from, if it was not yet."""
    opened = await _known(caller, conversation)
    return ShownConversation.of(await opened.complete())


async def _known(caller: Caller, conversation: str) -> OpenConversation:
    if conversation not in {begun.id for begun in await caller.memory.conversations()}:
        raise not_found("conversation")
    return await caller.memory.conversation(conversation)


__all__ = ["router"]
