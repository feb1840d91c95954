"""Checkpoints of live calls as JSON, for stores of any kind, and how one tells that its call is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from echoic.errors import InvalidInput
from echoic.memory.records import record_of_turn, turn_of
from echoic.stores.base import Record
from echoic.types import Checkpoint, PendingTool

SIGN_EVERY_S: Final = 60.0
"""How often a call that goes on writes its checkpoint at the least, however quiet it is; the last sign of it
is `Checkpoint.saved_at`."""


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


__all__ = ["SIGN_EVERY_S", "as_json", "from_json"]
