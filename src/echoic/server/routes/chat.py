"""One turn with the keyless agent: what was said is kept, learned from, and answered from memory by rules."""

from __future__ import annotations

from typing import Self

from fastapi import APIRouter
from pydantic import Field

from echoic.memory.keyless import AGENT, KeylessAgent, Reply
from echoic.server.callers import AsCaller, Shared
from echoic.server.models import Shown, ShownMemory, ShownRecall, ShownReceipt, ShownTurn
from echoic.server.problems import responses

router = APIRouter(tags=["conversation"])


class Say(Shown):
    """What the user says."""

    text: str = Field(examples=["I'm Pavel and I live in Tel Aviv"])
    conversation: str | None = Field(default=None, description="A new one is begun if it is left out.")


class Said(Shown):
    """What the agent says, and what memory did for it."""

    conversation: str
    text: str = Field(examples=["Nice to meet you, Pavel. You live in Tel Aviv: I'll remember."])
    agent: str = Field(description="Who answers: a set of rules, not a language model.")
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
    def of(cls, conversation: str, reply: Reply) -> Self:
        """`reply`, given in `conversation`."""
        return cls(
            conversation=conversation,
            text=reply.text,
            agent=AGENT,
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


@router.post(
    "/api/chat", summary="Say something to the agent", responses=responses(401, 409, 413, 422, 429, 503)
)
async def chat(caller: AsCaller, shared: Shared, asked: Say) -> Said:
    """Keep what was said, learn from it, and answer it from memory. No language model is involved: the agent
    is a set of rules, and says so when they do not suffice.
    """
    conversation = await caller.memory.conversation(asked.conversation or "", agent=AGENT)
    agent = KeylessAgent(caller.memory, deadline_ms=shared.settings.recall_deadline_ms)
    return Said.of(conversation.id, await agent.reply(conversation, asked.text))


__all__ = ["router"]
