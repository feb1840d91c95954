"""The nouns of memory as the API shows them: JSON with camelCase names. No vectors, and nobody else's id."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from echoic.memory.sharing import REASONS
from echoic.types import (
    Category,
    Conversation,
    ConversationStatus,
    Hit,
    Memory,
    Outcome,
    Recall,
    Receipt,
    Turn,
    Visibility,
)


class Shown(BaseModel):
    """Base of everything in a body."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Asked(Shown):
    """Base of every request's body. A field nobody knows is refused: what it was meant to do is not done."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False)


class ShownMemory(Shown):
    """One thing known, at one version."""

    id: str
    key: str | None = Field(description="Null where it was remembered as a sentence.", examples=["home"])
    text: str = Field(description="The value.", examples=["Tel Aviv"])
    statement: str | None = Field(
        description="One sentence that says it on its own.", examples=["The user lives in Tel Aviv."]
    )
    category: Category
    context: str | None = Field(description="When and under which conditions it applies.")
    visibility: Visibility = Field(
        description="private: the user alone. proposed: likewise, until an operator approves. "
        "global: the whole deployment."
    )
    current: bool = Field(description="Whether it still holds.")
    valid_from: datetime = Field(description="When it was said.")
    valid_until: datetime | None = Field(description="When it stopped being so; null while it holds.")
    supersedes: str | None = Field(description="The id of the memory it corrected.")
    superseded_by: str | None = Field(
        description="The id of the memory that corrected it; null with `validUntil` set: it was taken back."
    )
    redacted: list[str] = Field(description="Kinds of personal data taken out before it was shared.")
    source: list[str] = Field(description="Ids of the user's turns it was heard in.")
    reason: str | None = Field(
        default=None, description="Why `visibility` is what it is; null where nobody set it."
    )
    reasoning: str | None = Field(default=None, description="The same in words.")
    is_global: bool = Field(default=False, description="Whether the whole deployment knows it.")
    value: str = Field(default="", description="The same as `text`.")
    updated_at: datetime | None = Field(default=None, description="When it was said last.")

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """`memory`, without its author."""
        return cls(
            id=memory.id,
            key=memory.key,
            text=memory.text,
            statement=memory.statement,
            category=memory.category,
            context=memory.context,
            visibility=memory.visibility,
            current=memory.current,
            valid_from=memory.valid_from,
            valid_until=memory.valid_until,
            supersedes=memory.supersedes,
            superseded_by=memory.superseded_by,
            redacted=list(memory.redacted),
            # whose turns a shared memory came from is nobody's business
            source=[] if memory.visibility == "global" else list(memory.source),
            reason=memory.reason,
            reasoning=REASONS.get(memory.reason or ""),
            is_global=memory.visibility == "global",
            value=memory.text,
            updated_at=memory.last_said_at or memory.valid_from,
        )


class ShownTurn(Shown):
    """One utterance."""

    id: str
    conversation: str
    speaker: str = Field(examples=["user", "agent"])
    text: str
    heard: str | None = Field(description="What of an agent's words reached the caller; null: all of it.")
    said_at: datetime

    @classmethod
    def of(cls, turn: Turn) -> Self:
        """`turn`."""
        return cls(
            id=turn.id,
            conversation=turn.conversation,
            speaker=turn.speaker,
            text=turn.text,
            heard=turn.heard,
            said_at=turn.said_at,
        )


class ShownRank(Shown):
    """Where one channel put a hit."""

    rank: int = Field(description="From 1.")
    score: float = Field(description="The channel's own; comparable only within the channel and the query.")


class ShownHit(Shown):
    """Something found, and why."""

    text: str
    score: float = Field(description="Of the fusion; comparable only within one query.")
    relevance: float = Field(
        description="How likely it is to answer, 0 to 1; means the same for every query.", examples=[0.62]
    )
    ranks: dict[str, ShownRank] = Field(
        description="By channel; a channel that did not find it is absent.",
        examples=[{"vector": {"rank": 1, "score": 0.71}, "text": {"rank": 2, "score": 4.2}}],
    )
    scope: Literal["user", "global"]
    memory: ShownMemory | None = None
    turn: ShownTurn | None = Field(
        default=None,
        description="At least one of `memory` and `turn` is set; both: the memory was learned from the turn.",
    )
    also: list[ShownMemory] = Field(
        default_factory=list, description="Other memories learned from the same turn that were found too."
    )

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """`hit`."""
        return cls(
            text=hit.text,
            score=hit.score,
            relevance=hit.relevance,
            ranks={name: ShownRank(rank=r.rank, score=r.score) for name, r in hit.ranks.items()},
            scope="user" if hit.scope.user is not None else "global",
            memory=ShownMemory.of(hit.memory) if hit.memory else None,
            turn=ShownTurn.of(hit.turn) if hit.turn else None,
            also=[ShownMemory.of(memory) for memory in hit.also],
        )


class ShownSearch(Shown):
    """How a search was made, and whether it could look everywhere."""

    outcome: Outcome = Field(
        description="complete: everything was looked at. deadline: the best there was in time. "
        "unavailable: could not look everywhere."
    )
    cut: list[str] = Field(description="Channels that were left out.")
    pipeline: list[dict[str, Any]] = Field(
        default_factory=list,
        description="What was done, step by step: where was searched, and what each channel was worth. Of a "
        "scope that is searched in the database, what the database was asked.",
    )
    search_type: Literal["hybrid", "text"] = Field(
        default="text", description="text: no vector took part, only words and sounds."
    )


class ShownRecall(ShownSearch):
    """What a search found."""

    hits: list[ShownHit]

    @classmethod
    def of(cls, recall: Recall) -> Self:
        """`recall`."""
        return cls(
            outcome=recall.outcome,
            cut=list(recall.cut),
            hits=[ShownHit.of(hit) for hit in recall.hits],
            pipeline=list(recall.pipeline),
            search_type="hybrid" if embedded(recall) else "text",
        )


def embedded(recall: Recall) -> bool:
    """Whether a vector of what was asked took part."""
    return any(step.get("embed", {}).get("embedded") for step in recall.pipeline)


class ShownConversation(Shown):
    """A conversation as it stands."""

    id: str
    agent: str | None
    status: ConversationStatus
    started_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        """`conversation`."""
        return cls(
            id=conversation.id,
            agent=conversation.agent,
            status=conversation.status,
            started_at=conversation.started_at,
            updated_at=conversation.updated_at,
        )


class ShownReceipt(Shown):
    """What an erasure removed, and that it is gone."""

    memories: int
    turns: int
    conversations: int
    vectors: int
    other: int = Field(description="Records of any other kind, such as proposals.")
    records: int = Field(description="All of them but the vectors.")
    rewritten: int = Field(description="Records that stay, without the words that said it.")
    kept: int = Field(description="Records that stay though they are close to what is gone.")
    kept_because: dict[str, int] = Field(description="The same, by why they stay.")
    verified: bool = Field(
        description="Whether the stored bytes were searched afterwards and held none of it."
    )
    bytes_searched: int

    @classmethod
    def of(cls, receipt: Receipt) -> Self:
        """`receipt`."""
        return cls(
            memories=receipt.memories,
            turns=receipt.turns,
            conversations=receipt.conversations,
            vectors=receipt.vectors,
            other=receipt.other,
            records=receipt.records,
            rewritten=receipt.rewritten,
            kept=receipt.kept,
            kept_because={str(why): count for why, count in receipt.kept_because.items()},
            verified=receipt.verified,
            bytes_searched=receipt.bytes_searched,
        )


__all__ = [
    "Asked",
    "Shown",
    "ShownConversation",
    "ShownHit",
    "ShownMemory",
    "ShownRank",
    "ShownRecall",
    "ShownReceipt",
    "ShownTurn",
]
