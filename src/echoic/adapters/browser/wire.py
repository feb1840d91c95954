"""The messages of the protocol `echoic.voice.v1`, as docs/voice_page.md describes it. No socket, no call."""

from __future__ import annotations

import json
from typing import Any, Final

from echoic.errors import InvalidInput, brief
from echoic.session import Event
from echoic.session.hooks import Caption

Message = tuple[str, dict[str, Any]]
"""A type, and its fields."""
SUBPROTOCOL: Final = "echoic.voice.v1"
MAX_TEXT_BYTES: Final = 32 * 1024
"""Of one message of words from the page."""
MAX_AUDIO_BYTES: Final = 48_000
"""Of one message of audio: a second at 24 kHz, where 20 ms are expected."""
REFUSED: Final = 1008
"""RFC 6455, section 7.4.1: a message that is against the rules."""
REPLACED: Final = 4001
"""The same call was opened on another socket."""


_INCOMING: Final[dict[str, dict[str, tuple[type, Any]]]] = {
    "played": {"bytes": (int, None), "flushed": (bool, False)},
    "text": {"text": (str, None)},
    "mute": {"muted": (bool, None)},
    "barge_in": {},
    "hang_up": {},
}
"""What a page says: by type, the type of each field and what it is where it is left out."""


def read(message: str) -> Message | None:
    """What a page says; None: something of a later version, to be ignored.

    Raises:
        InvalidInput: it is no JSON object with a type, or a field of it is not right.
    """
    try:
        body = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("a message must be one JSON object; this is not JSON") from error
    kind = body.get("type") if isinstance(body, dict) else None
    if not isinstance(kind, str):
        raise InvalidInput('a message must be one JSON object with a "type"')
    fields = _INCOMING.get(kind)
    if fields is None:
        return None
    return kind, {name: _field(body, name, *field) for name, field in fields.items()}


def _field(body: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = body.get(name, default)
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not right or (kind is int and not 0 <= value < 2**53):
        raise InvalidInput(
            f"the field {brief(name)} of {brief(body['type'])} is not right: {kind.__name__} expected"
        )
    return value


def written(kind: str, **fields: Any) -> str:
    """A message to the page. Fields that are None are left out."""
    return json.dumps({"type": kind, **{name: value for name, value in fields.items() if value is not None}})


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
