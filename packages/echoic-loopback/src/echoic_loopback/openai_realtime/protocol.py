"""What OpenAI Realtime takes: client events against the types the provider publishes, refused in its words.

The types are those of the official `openai` package, which are generated from the provider's own
description of the API; here they are read strictly, so that an unknown or mistyped field is an error. What
the types do not say (lengths, ranges, what must exist) is in `conversation.py` and `settings.py`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from openai.types.realtime import (
    client_secret_create_params,
    conversation_item_create_event_param,
    conversation_item_delete_event_param,
    conversation_item_retrieve_event_param,
    conversation_item_truncate_event_param,
    input_audio_buffer_append_event_param,
    input_audio_buffer_clear_event_param,
    input_audio_buffer_commit_event_param,
    output_audio_buffer_clear_event_param,
    realtime_session_create_request_param,
    response_cancel_event_param,
    response_create_event_param,
    session_update_event_param,
)
from pydantic import ConfigDict, TypeAdapter, ValidationError

EVENTS: Mapping[str, Any] = {
    "session.update": session_update_event_param.SessionUpdateEventParam,
    "input_audio_buffer.append": input_audio_buffer_append_event_param.InputAudioBufferAppendEventParam,
    "input_audio_buffer.commit": input_audio_buffer_commit_event_param.InputAudioBufferCommitEventParam,
    "input_audio_buffer.clear": input_audio_buffer_clear_event_param.InputAudioBufferClearEventParam,
    "output_audio_buffer.clear": output_audio_buffer_clear_event_param.OutputAudioBufferClearEventParam,
    "conversation.item.create": conversation_item_create_event_param.ConversationItemCreateEventParam,
    "conversation.item.retrieve": conversation_item_retrieve_event_param.ConversationItemRetrieveEventParam,
    "conversation.item.truncate": conversation_item_truncate_event_param.ConversationItemTruncateEventParam,
    "conversation.item.delete": conversation_item_delete_event_param.ConversationItemDeleteEventParam,
    "response.create": response_create_event_param.ResponseCreateEventParam,
    "response.cancel": response_cancel_event_param.ResponseCancelEventParam,
}
"""Every event a client may send, with its type."""
SESSION = realtime_session_create_request_param.RealtimeSessionCreateRequestParam
CLIENT_SECRET = client_secret_create_params.ClientSecretCreateParams
MAX_AUDIO_BYTES = 15 * 1024 * 1024
"""Of one append, as its documentation says."""
MAX_EVENT_ID = 512
"""Characters, as the documentation of `event_id` says."""
TAKEN_ALL_THE_SAME = {("session.reasoning.effort", "none"), ("reasoning.effort", "none")}
"""Values that the provider takes though its published types do not list them."""


class Refused(Exception):
    """The provider would answer with an `error` event, or with an HTTP error of the same shape."""

    def __init__(
        self, code: str | None, message: str, *, param: str | None = None, echo: bool = True
    ) -> None:
        """`echo` is whether the error names the event it refuses; the provider's does not always."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.echo = echo

    def body(self, event_id: str | None) -> dict[str, Any]:
        """The `error` object."""
        return {
            "type": "invalid_request_error",
            "code": self.code,
            "message": self.message,
            "param": self.param,
            "event_id": event_id if self.echo else None,
        }


def read_event(message: str | bytes) -> dict[str, Any]:
    """The JSON object of a client's message, its fields unchecked.

    Raises:
        Refused: it is no JSON object with the type of an event.
    """
    try:
        event = json.loads(message)
    except ValueError:
        raise Refused("invalid_json", "The event could not be parsed as JSON.") from None
    if not isinstance(event, dict):
        raise Refused("invalid_json", f"Invalid event: expected an object, but got {_kind(event)} instead.")
    kind = event.get("type")
    if kind is None:
        raise Refused("missing_required_parameter", "Missing required parameter: 'type'.", param="type")
    if kind not in EVENTS:
        raise Refused("invalid_value", _unsupported(kind, list(EVENTS)), param="type")
    return event


def check_event(event: Mapping[str, Any]) -> None:
    """Checks the fields of an event that `read_event` returned.

    Raises:
        Refused: a field is missing, unknown, or of the wrong type or value.
    """
    event_id = event.get("event_id")
    if isinstance(event_id, str) and len(event_id) > MAX_EVENT_ID:
        raise Refused(
            "string_above_max_length", _too_long("event_id", MAX_EVENT_ID, event_id), param="event_id"
        )
    check(EVENTS[event["type"]], event)


def check(kind: Any, value: Mapping[str, Any]) -> None:
    """Checks a value against one of the provider's published types.

    Raises:
        Refused: it does not fit.
    """
    try:
        checked = _adapter(kind).validate_python(value)
    except ValidationError as error:
        if (refusal := _refusal(error, value, [])) is not None:
            raise refusal from None
    else:
        _check_rest(checked, value, [])


def audio_of(event: Mapping[str, Any]) -> bytes:
    """The audio of an `input_audio_buffer.append`.

    Raises:
        Refused: it is not base64, or too much for one event.
    """
    try:
        audio = base64.b64decode(event["audio"], validate=True)
    except (binascii.Error, ValueError):
        raise Refused(
            "invalid_value",
            "Invalid 'audio'. Expected base64-encoded audio bytes (mono PCM16 at 24kHz) "
            "but got an invalid value.",
            param="audio",
        ) from None
    if len(audio) > MAX_AUDIO_BYTES:
        raise Refused(
            "audio_above_max_size",
            f"Invalid 'audio': expected at most 15 MiB, got {len(audio)} bytes.",
            param="audio",
        )
    return audio


@lru_cache(maxsize=32)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # A TypedDict takes no configuration of its own, but inherits that of the union around it.
    return TypeAdapter(kind | None, config=ConfigDict(extra="forbid", strict=True))


def _check_rest(checked: Any, value: Any, path: list[str | int]) -> None:
    """Checks what is checked only as it is read: pydantic leaves the elements of an `Iterable` for later."""
    if isinstance(checked, Mapping):
        for key, inner in checked.items():
            _check_rest(inner, value[key], [*path, key])
    elif isinstance(checked, Iterable) and not isinstance(checked, str | bytes):
        try:
            elements = list(checked)
        except ValidationError as error:
            if (refusal := _refusal(error, value, path)) is not None:
                raise refusal from None
            return
        for index, inner in enumerate(elements):
            _check_rest(inner, value[index], [*path, index])


def _refusal(error: ValidationError, value: Any, at: list[str | int]) -> Refused | None:
    """The one error the provider would name: that of the branch of each union that fits best."""
    found = [(_path(item, value), item) for item in error.errors()]
    # A union reports for every branch; one whose literal `type` is another's was not meant.
    others = {
        item["loc"][:-1] for path, item in found if item["type"] == "literal_error" and path[-1:] == ["type"]
    }
    meant = [pair for pair in found if not any(pair[1]["loc"][: len(other)] == other for other in others)]
    path, item = min(meant or _of_type(found), key=lambda pair: _rank(pair[1]))
    param = _dotted([*at, *path])
    if isinstance(item["input"], str) and (param, item["input"]) in TAKEN_ALL_THE_SAME:
        return None
    return _worded(param, item)


def _of_type(found: list[tuple[list[str | int], Any]]) -> list[tuple[list[str | int], Any]]:
    """The errors about a `type` no branch has, told as one."""
    wrong = [(path, item) for path, item in found if path[-1:] == ["type"]]
    expected = " or ".join(dict.fromkeys(item["ctx"]["expected"] for _, item in wrong if "ctx" in item))
    return [(path, {**item, "ctx": {"expected": expected}}) for path, item in wrong]


def _rank(item: Mapping[str, Any]) -> tuple[int, int]:
    order = {"missing": 0, "extra_forbidden": 1}
    # Of branches, the published types name the realtime session before others; errors come in their order.
    other = any("Transcription" in str(step) for step in item["loc"])
    return int(other), order.get(item["type"], 2)


def _path(item: Mapping[str, Any], value: Any) -> list[str | int]:
    """Where in `value` an error is, without the names of the branches it went through."""
    path: list[str | int] = []
    here = value
    for step in item["loc"]:
        if (isinstance(here, Mapping) and step in here) or (
            isinstance(step, int) and isinstance(here, Sequence) and step < len(here)
        ):
            here = here[step]
        elif item["type"] == "missing" and step == item["loc"][-1]:
            pass
        else:
            continue
        path.append(step)
    return path


def _dotted(path: Sequence[str | int]) -> str:
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return dotted.removeprefix(".")


def _worded(param: str, item: Mapping[str, Any]) -> Refused:
    context = item.get("ctx", {})
    match item["type"]:
        case "missing":
            return Refused(
                "missing_required_parameter", f"Missing required parameter: '{param}'.", param=param
            )
        case "extra_forbidden":
            return Refused("unknown_parameter", f"Unknown parameter: '{param}'.", param=param)
        case "literal_error":
            return Refused(
                "invalid_value",
                f"Invalid value: {item['input']!r}. Supported values are: {context['expected']}.",
                param=param,
            )
        case kind:
            wanted = kind.removesuffix("_type").removesuffix("_parsing")
            return Refused(
                "invalid_type",
                f"Invalid type for '{param}': expected {wanted}, but got {_kind(item['input'])} instead.",
                param=param,
            )


def _unsupported(value: Any, supported: Sequence[str]) -> str:
    names = ", ".join(f"'{name}'" for name in supported[:-1])
    return f"Invalid value: '{value}'. Supported values are: {names}, and '{supported[-1]}'."


def _too_long(param: str, limit: int, value: str) -> str:
    return (
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, "
        f"but got a string with length {len(value)} instead."
    )


def refuse_longer(param: str, limit: int, value: str) -> None:
    """Refuses a string longer than `limit` characters.

    Raises:
        Refused: it is.
    """
    if len(value) > limit:
        raise Refused("string_above_max_length", _too_long(param, limit, value), param=param)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer"}
    return "null" if value is None else names.get(type(value), "a number")


__all__ = ["EVENTS", "Refused", "audio_of", "check", "check_event", "read_event", "refuse_longer"]
