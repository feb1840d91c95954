"""The messages of the protocol `echoic.voice.v1`, as docs/voice_page.md describes it. No socket, no call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from echoic.errors import InvalidInput, brief

SUBPROTOCOL: Final = "echoic.voice.v1"
MAX_TEXT_BYTES: Final = 32 * 1024
"""Of one message of words from the page."""
MAX_AUDIO_BYTES: Final = 48_000
"""Of one message of audio: a second at 24 kHz, where 20 ms are expected."""
REFUSED: Final = 1008
"""RFC 6455, section 7.4.1: a message that is against the rules."""
REPLACED: Final = 4001
"""The same call was opened on another socket."""


@dataclass(frozen=True, slots=True)
class Played:
    """How much of the socket's audio has been played."""

    total_bytes: int
    flushed: bool


@dataclass(frozen=True, slots=True)
class Typed:
    """The caller typed something."""

    text: str


@dataclass(frozen=True, slots=True)
class Muted:
    """The microphone was turned off or on."""

    muted: bool


@dataclass(frozen=True, slots=True)
class BargeIn:
    """The page noticed that the caller interrupts."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The caller ends the call."""


Said = Played | Typed | Muted | BargeIn | HangUp


def read(message: str) -> Said | None:
    """What a page says; None: something of a later version, to be ignored.

    Raises:
        InvalidInput: it is no JSON object with a type, or a field of it is not right.
    """
    try:
        body = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("a message is one JSON object, and this is no JSON") from error
    kind = body.get("type") if isinstance(body, dict) else None
    if not isinstance(kind, str):
        raise InvalidInput('a message is one JSON object with a "type"')
    match kind:
        case "played":
            return Played(_field(body, "bytes", int), _field(body, "flushed", bool, default=False))
        case "text":
            return Typed(_field(body, "text", str))
        case "mute":
            return Muted(_field(body, "muted", bool))
        case "barge_in":
            return BargeIn()
        case "hang_up":
            return HangUp()
        case _:
            return None


def _field(body: dict[str, Any], name: str, kind: type[Any], *, default: Any = None) -> Any:
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


__all__ = [
    "MAX_AUDIO_BYTES",
    "MAX_TEXT_BYTES",
    "REFUSED",
    "REPLACED",
    "SUBPROTOCOL",
    "BargeIn",
    "HangUp",
    "Muted",
    "Played",
    "Said",
    "Typed",
    "read",
    "written",
]
