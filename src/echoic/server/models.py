"""Memory's types as the API returns them: JSON with camelCase names, without vectors or other users' ids."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.alias_generators import to_camel

from echoic.checks import checked_name, checked_speaker, checked_text
from echoic.errors import InvalidInput
from echoic.memory.sharing import REASONS
from echoic.types import (
    Category,
    ConversationStatus,
    Hit,
    Memory,
    Outcome,
    Recall,
    Visibility,
)


class ResponseModel(BaseModel):
    """The base of all response models."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, from_attributes=True
    )

    @classmethod
    def of(cls, noun: Any) -> Self:
        """`noun`, by its attributes of the same names."""
        return cls.model_validate(noun)


def fields_of(shown: type[ResponseModel], noun: object) -> dict[str, Any]:
    """The attributes of `noun` that `shown` has fields for."""
    return {name: getattr(noun, name) for name in shown.model_fields if hasattr(noun, name)}


def _by(check: Callable[..., str], **more: str) -> AfterValidator:
    """Checks a value by memory's own rule where its place in the request is known, which names it."""
    return AfterValidator(lambda value: check(value, "", **more))


Name = Annotated[str, _by(checked_name)]
Text = Annotated[str, _by(checked_text)]
Question = Annotated[str, _by(checked_text, if_empty="There is nothing to search for.")]
SpokenText = Annotated[str, _by(checked_text, if_empty="Where nothing was said there is no turn to keep.")]
Heard = Annotated[str, AfterValidator(lambda value: value and checked_text(value, ""))]
"""May be empty: nothing was heard."""
Speaker = Annotated[str, AfterValidator(lambda value: checked_speaker(checked_name(value, "")))]


def _no_figure(value: object) -> object:
    """`value` unless it is a number in a text, which would count as seconds since 1970: "2026"."""
    try:
        float(value if isinstance(value, str) else "-")
    except ValueError:
        return value
    raise InvalidInput(" is a number, not a time: write the date and the time zone, 2026-03-01T10:00:00Z")


Time = Annotated[AwareDatetime, BeforeValidator(_no_figure)]
# 3.0 is an integer in JSON Schema
_AS_WHOLE = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
Whole = Annotated[int, Field(strict=True), _AS_WHOLE]
Count = Annotated[int, Field(strict=True, ge=0), _AS_WHOLE]
MinRelevance = Annotated[
    float | None,
    Field(
        strict=True,
        ge=0,
        le=1,
        description="The minimum relevance of a hit. By default, nothing is returned if no hit is likely to "
        "answer; 0 returns everything that was found.",
    ),
]


class RequestBody(ResponseModel):
    """The base of request bodies. An unknown field is refused rather than ignored."""

    model_config = ConfigDict(extra="forbid", populate_by_name=False)


class MemoryView(ResponseModel):
    """One version of a memory."""

    id: str
    key: str | None = Field(description="Null for a sentence without a key.", examples=["home"])
    text: str = Field(description="The value.", examples=["Tel Aviv"])
    statement: str | None = Field(
        description="A self-contained sentence with the same meaning.",
        examples=["The user lives in Tel Aviv."],
    )
    category: Category
    context: str | None = Field(description="The conditions under which it applies.")
    visibility: Visibility = Field(
        description="private: only the user can recall it. proposed: likewise, until an operator approves "
        "it. global: every user of the deployment can."
    )
    current: bool = Field(description="Whether it is still true.")
    valid_from: datetime = Field(description="When it was said.")
    valid_until: datetime | None = Field(description="When it stopped being true; null while it is current.")
    supersedes: str | None = Field(description="The id of the memory it corrected.")
    superseded_by: str | None = Field(
        description="The id of the memory that corrected it. Null with `validUntil` set means it was deleted."
    )
    deleted: bool = Field(
        description="Whether the user deleted it, or asked to forget it: then no question about the past "
        "finds it."
    )
    redacted: list[str] = Field(
        description="The kinds of personal data that were redacted before it was shared."
    )
    source: list[str] = Field(description="The ids of the turns that stated it.")
    reason: str | None = Field(
        default=None, description="Why it has this `visibility`; null if it was not decided."
    )
    reasoning: str | None = Field(default=None, description="`reason` in words.")
    is_global: bool = Field(default=False, description="Whether `visibility` is global.")
    value: str = Field(default="", description="The same as `text`.")
    updated_at: datetime | None = Field(default=None, description="When it was last said.")
    confirmed: bool = Field(
        default=True, description="False: the user was not sure of it, or it was heard badly."
    )
    times_said: int = Field(default=1, description="In how many turns it was said.")

    @model_validator(mode="before")
    @classmethod
    def _of_memory(cls, noun: Any) -> Any:
        if not isinstance(noun, Memory):
            return noun
        is_global = noun.visibility == "global"
        return {
            **fields_of(cls, noun),
            # the turns a global memory came from stay private
            "source": [] if is_global else noun.source,
            "reasoning": REASONS.get(noun.reason or ""),
            "is_global": is_global,
            "value": noun.text,
            "updated_at": noun.last_said_at or noun.valid_from,
        }


class TurnView(ResponseModel):
    """One utterance."""

    id: str
    conversation: str
    speaker: str = Field(examples=["user", "agent"])
    text: str
    heard: str | None = Field(
        description="The words of an agent that the caller heard; null means all of them."
    )
    confidence: float | None = Field(default=None, description="The speech recogniser's, 0 to 1.")
    said_at: datetime


class RankView(ResponseModel):
    """A hit's rank in one channel."""

    rank: int = Field(description="From 1.")
    score: float = Field(description="The channel's score, comparable only within this channel and query.")


class FoundHit(ResponseModel):
    """A hit. How each channel ranked it is not shown here; `POST /api/memory` shows it."""

    text: str
    relevance: float = Field(
        description="How likely it is to answer the query, 0 to 1, comparable between queries.",
        examples=[0.62],
    )
    scope: Literal["user", "global"]
    memory: MemoryView | None = None
    turn: TurnView | None = Field(
        default=None,
        description="At least one of `memory` and `turn` is set; if both, the memory was learned from the "
        "turn.",
    )
    also: list[MemoryView] = Field(
        default_factory=list, description="Other hits that were learned from the same turn."
    )

    @model_validator(mode="before")
    @classmethod
    def _of_hit(cls, noun: Any) -> Any:
        if not isinstance(noun, Hit):
            return noun
        return {**fields_of(cls, noun), "scope": "user" if noun.scope.user is not None else "global"}


class HitView(FoundHit):
    """A hit, and why it was found."""

    score: float = Field(description="The fused score, comparable only within one query.")
    ranks: dict[str, RankView] = Field(
        description="Its rank in each channel that found it.",
        examples=[{"vector": {"rank": 1, "score": 0.71}, "text": {"rank": 2, "score": 4.2}}],
    )


class SearchView(ResponseModel):
    """How a search was made, and whether it was complete."""

    outcome: Outcome = Field(
        description="complete: everything was searched. deadline: the best hits found in time. "
        "unavailable: part of the search failed."
    )
    cut: list[str] = Field(description="The channels that were left out.")
    pipeline: list[dict[str, Any]] = Field(
        default_factory=list,
        description="The steps of the search: what was searched, and the weight of each channel. For a scope "
        "that is searched in the database, the database's query.",
    )
    search_type: Literal["hybrid", "text"] = Field(
        default="text", description="text: only words and sounds were searched, no vectors."
    )


class RecallView(SearchView):
    """The hits of a search."""

    hits: list[HitView]

    @model_validator(mode="before")
    @classmethod
    def _of_recall(cls, noun: Any) -> Any:
        if not isinstance(noun, Recall):
            return noun
        return {**fields_of(cls, noun), "search_type": "hybrid" if embedded(noun) else "text"}


def embedded(recall: Recall) -> bool:
    """Whether the search used a vector of the query."""
    return any(step.get("embed", {}).get("embedded") for step in recall.pipeline)


class ConversationView(ResponseModel):
    """A conversation and its status."""

    id: str
    agent: str | None
    status: ConversationStatus
    started_at: datetime
    updated_at: datetime


class ReceiptView(ResponseModel):
    """What an erasure removed, and whether that was verified."""

    memories: int
    turns: int
    conversations: int
    vectors: int
    other: int = Field(description="Other records, such as proposals.")
    records: int = Field(description="All records, without the vectors.")
    rewritten: int = Field(description="Records that stay, without the words that stated the memory.")
    kept: int = Field(description="Related records that stay.")
    kept_because: dict[str, int] = Field(description="Related records that stay, by reason.")
    verified: bool = Field(
        description="Whether the stored bytes were searched afterwards, and none of it was found."
    )
    bytes_searched: int
    signed: dict[str, str] = Field(
        description="For an auditor: `statement`, `signature` and public `key`; empty where it is not signed."
    )
