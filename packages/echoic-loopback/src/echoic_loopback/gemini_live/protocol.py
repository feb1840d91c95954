"""What Gemini Live takes: client messages against the types of the official `google-genai` package, read
strictly.

Names may be written as in protocol buffers or in camel case, as the provider takes both. What does not fit
closes the connection with 1007 and a reason, for the protocol has no error message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.genai import types
from pydantic import ValidationError
from websockets.frames import CloseCode

FIELDS = ("setup", "client_content", "realtime_input", "tool_response", "context_update")
"""Of a client message, one of which it has."""
PCM = "audio/pcm"
INPUT_HZ = 16_000
"""Of audio whose MIME type names no rate."""


class Refused(Exception):
    """The provider would close the connection.

    `closes` is False where what it would do is not known: then the violation is noted and the session goes
    on.
    """

    def __init__(
        self, code: str, message: str, *, close_code: int = CloseCode.INVALID_DATA, closes: bool = True
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.close_code = close_code
        self.closes = closes


class Setup(types.LiveClientSetup):
    """The first message. The package's own type lacks a field that the package sends, and takes texts and
    files for the system instruction that it turns into content before sending."""

    realtime_input_config: types.RealtimeInputConfig | None = None
    system_instruction: types.Content | None = None


class ClientMessage(types.LiveClientMessage):
    """Anything a client may send."""

    setup: Setup | None = None


def read_message(message: str | bytes) -> tuple[str, ClientMessage]:
    """The one field a client's message has, and the message.

    Raises:
        Refused: it is not JSON, has no known field or several, or a value that does not fit.
    """
    try:
        body = json.loads(message)
    except ValueError:
        raise Refused("invalid_json", "Invalid JSON payload received.") from None
    if not isinstance(body, dict):
        raise Refused("invalid_json", "Invalid JSON payload received. Expected an object.")
    try:
        read = ClientMessage.model_validate_json(message)
    except ValidationError as error:
        raise _refusal(error) from None
    present = [name for name in FIELDS if getattr(read, name) is not None]
    if len(present) != 1:
        raise Refused(
            "invalid_argument", f"A message has exactly one of {', '.join(FIELDS)}; this one has {present}."
        )
    return present[0], read


def kinds(field: str, read: ClientMessage) -> list[str]:
    """How a message is named in the record: `setup`, `realtime_input.audio`, `client_content`."""
    if field != "realtime_input" or read.realtime_input is None:
        return [field]
    return [f"{field}.{name}" for name in read.realtime_input.model_fields_set] or [field]


def check_setup(setup: Setup, models: Mapping[str, Any] | frozenset[str] | None, version: str) -> None:
    """Checks what the types do not say.

    Raises:
        Refused: no model or an unknown one, or not exactly one modality.
    """
    if not setup.model or not setup.model.startswith("models/"):
        raise Refused(
            "invalid_argument", "Request contains an invalid argument. setup.model must be `models/...`."
        )
    if models is not None and setup.model.removeprefix("models/") not in models:
        raise Refused(
            "model_not_found",
            f"{setup.model} is not found for API version {version}, "
            "or is not supported for bidiGenerateContent.",
            close_code=CloseCode.POLICY_VIOLATION,
        )
    modalities = (setup.generation_config and setup.generation_config.response_modalities) or [
        types.Modality.AUDIO
    ]
    if len(modalities) != 1 or modalities[0] not in (types.Modality.AUDIO, types.Modality.TEXT):
        raise Refused(
            "invalid_argument", "Request contains an invalid argument. One response modality is needed."
        )


def audio_of(blob: types.Blob) -> tuple[bytes, int]:
    """PCM16 and its rate in Hz.

    Raises:
        Refused: it is something else.
    """
    kind, _, rest = (blob.mime_type or "").partition(";")
    if kind.strip() != PCM:
        raise Refused(
            "invalid_argument", f"Request contains an invalid argument. {blob.mime_type!r} is no {PCM}."
        )
    name, _, rate = rest.strip().partition("=")
    if name and (name != "rate" or not rate.isdecimal() or int(rate) <= 0):
        raise Refused(
            "invalid_argument", f"Request contains an invalid argument. What rate is {blob.mime_type!r}?"
        )
    return blob.data or b"", int(rate) if name else INPUT_HZ


def slim(message: Any) -> Any:
    """A message for the record, with media as its number of characters."""
    if isinstance(message, dict):
        return {
            key: len(inner) if key == "data" and isinstance(inner, str) else slim(inner)
            for key, inner in message.items()
        }
    return [slim(inner) for inner in message] if isinstance(message, list) else message


def _refusal(error: ValidationError) -> Refused:
    item = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    path = [str(step) for step in item["loc"] if isinstance(step, int) or step[:1].islower()]
    if item["type"] == "extra_forbidden":
        *above, name = path
        where = f" at '{'.'.join(above)}'" if above else ""
        return Refused(
            "unknown_name", f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
        )
    return Refused("invalid_value", f"Invalid value at '{'.'.join(path)}': {item['msg']}")


__all__ = [
    "ClientMessage",
    "Refused",
    "Setup",
    "audio_of",
    "check_setup",
    "kinds",
    "read_message",
    "slim",
]
