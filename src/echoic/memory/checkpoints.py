"""Checkpoints of live calls: what they hold, their JSON, and how one tells that its call is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final

from echoic.checks import AsDict, checked_name, checked_time
from echoic.errors import InvalidInput
from echoic.memory.records import record_of_turn, turn_of
from echoic.stores.base import Record
from echoic.types import Turn

SIGN_EVERY_S: Final = 60.0
"""How often a call that goes on writes its checkpoint at the least, however quiet it is; the last sign of it
is `Checkpoint.saved_at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTool:
    """A tool call that was begun and had no result yet."""

    call: str
    """The provider's id of the call."""
    name: str
    arguments: Annotated[Mapping[str, Any], AsDict()] = field(default_factory=dict)
    """JSON."""
    idempotent: bool = False
    """Whether it may be run again; else the model is told that it did not finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Enough to go on with a live call in another process, on any provider."""

    session: str
    conversation: str
    agent: str
    """Who served when it was written."""
    messages: str
    """What was said and done, as JSON of PydanticAI's messages; agents' words as far as they were heard."""
    unkept: tuple[Turn, ...] = ()
    """Turns that were not yet in the conversation: whoever goes on appends them first, by their ids."""
    pending: tuple[PendingTool, ...] = ()
    summary: str | None = None
    """What was said before `messages`, where those of a long call would be too many."""
    learns: bool = True
    """Whether anything may be learned from what is said."""
    evicted: int = 0
    """How many turns of the call `summary` stands for: they are not in `messages`."""
    tokens: int = 0
    """About how many whoever goes on is given: messages and summary, by `estimate_tokens`."""
    cursor: int = 0
    """How many turns of the call the conversation had."""
    resumption: str | None = None
    """A provider's handle, where it gave one. A hint: going on never needs it."""
    saved_at: datetime

    def __post_init__(self) -> None:
        checked_name(self.session, "session")
        checked_name(self.conversation, "conversation")
        checked_name(self.agent, "agent")
        object.__setattr__(self, "saved_at", checked_time(self.saved_at, "saved_at"))


def as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as JSON, for stores of any kind."""
    return {
        "session": checkpoint.session,
        "conversation": checkpoint.conversation,
        "agent": checkpoint.agent,
        "messages": checkpoint.messages,
        "unkept": [{"id": turn.id, **record_of_turn(turn).data} for turn in checkpoint.unkept],
        "pending": [
            {
                "call": tool.call,
                "name": tool.name,
                "arguments": dict(tool.arguments),
                "idempotent": tool.idempotent,
            }
            for tool in checkpoint.pending
        ],
        "summary": checkpoint.summary,
        "learns": checkpoint.learns,
        "evicted": checkpoint.evicted,
        "tokens": checkpoint.tokens,
        "cursor": checkpoint.cursor,
        "resumption": checkpoint.resumption,
        "saved_at": checkpoint.saved_at.isoformat(),
    }


def from_json(data: Mapping[str, Any]) -> Checkpoint:
    """The inverse of `as_json`.

    Raises:
        InvalidInput: this is not a checkpoint.
    """
    try:
        turns = [
            turn_of(Record(kind="turn", id=turn["id"], key=data["conversation"], data=turn))
            for turn in data["unkept"]
        ]
        return Checkpoint(
            session=data["session"],
            conversation=data["conversation"],
            agent=data["agent"],
            messages=data["messages"],
            unkept=tuple(replace(turn, conversation=data["conversation"]) for turn in turns),
            pending=tuple(PendingTool(**tool) for tool in data["pending"]),
            summary=data.get("summary"),
            learns=data.get("learns", True),
            evicted=data.get("evicted", 0),
            tokens=data.get("tokens", 0),
            cursor=data["cursor"],
            resumption=data.get("resumption"),
            saved_at=datetime.fromisoformat(data["saved_at"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is not a checkpoint of a call: {type(error).__name__}") from error
