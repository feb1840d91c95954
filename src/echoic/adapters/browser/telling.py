"""What a page is told of its call while it goes on: from the session's events and captions to messages."""

from __future__ import annotations

from typing import Any, Final

from echoic.session import Event
from echoic.session.captions import Caption

Message = tuple[str, dict[str, Any]]
"""A type, and its fields."""

RESUMABLE: Final = frozenset({"left", "lost", "suspended"})
"""Ends of a session after which its checkpoint is there."""
_TROUBLE: Final = {
    "transcription": "what you said could not be understood; please say it again",
    "StoreUnavailable": "the memory cannot be reached at the moment; the call goes on",
    "StoreFull": "the memory is full: what you say is not kept",
}
_ANY_TROUBLE: Final = "something went wrong for a moment; if no answer comes, please say it again"


def captioned(caption: Caption) -> Message:
    """What is being said."""
    fields = {
        "id": caption.id,
        "speaker": caption.speaker,
        "agent": caption.agent if caption.speaker == "agent" else None,
        "text": caption.text,
        "final": caption.final,
    }
    return "transcript", fields


def told(agent: str, event: Event) -> Message | None:
    """What the page is told of `event`, in which `agent` serves; None: nothing."""
    details = event.details
    match event.what:
        case "turn":
            spoken = details["speaker"] == "agent"
            fields = {
                "id": details["id"],
                "speaker": details["speaker"],
                "agent": agent if spoken else None,
                "text": details["text"],
                "final": True,
                "heard": details["heard"] if spoken else None,
            }
            return "transcript", fields
        case "state":
            return "state", {"state": details["state"]}
        case "transfer":
            return "transfer", {"agent": details["to"]}
        case "recall":
            return "recall", {
                "outcome": details["outcome"],
                "hits": details["shown"],
                "ms": details["delay_ms"],
            }
        case "error":
            return "problem", {"error": _TROUBLE.get(str(details["kind"]), _ANY_TROUBLE)}
        case _:
            return None


__all__ = ["RESUMABLE", "Message", "captioned", "told"]
