"""The settings of an OpenAI Realtime session: what they are at first, and what an update may change.

Defaults are those of the provider's reference and of `session.created` as it is documented there.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from typing import Any

from echoic_loopback.openai_realtime.protocol import SESSION, Refused, check, refuse_longer

SESSION_S = 60 * 60
"""A session's life, by the provider's guide."""
PCM = {"type": "audio/pcm", "rate": 24_000}
DETECTION: Mapping[str, Mapping[str, Any]] = {
    "server_vad": {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "idle_timeout_ms": None,
        "create_response": True,
        "interrupt_response": True,
    },
    "semantic_vad": {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    },
}
MAX_OUTPUT_TOKENS = 4096
METADATA_PAIRS, METADATA_KEY, METADATA_VALUE = 16, 64, 512
"""Pairs, and characters of a key and of a value."""
CHOICES = ("audio", "text")


def first_settings(model: str, session_id: str) -> dict[str, Any]:
    """A session's settings before its first update."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": model,
        "output_modalities": ["audio"],
        "instructions": "You are a helpful voice.",
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "tracing": None,
        "truncation": "auto",
        "prompt": None,
        "include": None,
        "expires_at": int(time.time()) + SESSION_S,
        "audio": {
            "input": {
                "format": dict(PCM),
                "transcription": None,
                "noise_reduction": None,
                "turn_detection": dict(DETECTION["server_vad"]),
            },
            "output": {"format": dict(PCM), "voice": "alloy", "speed": 1.0},
        },
    }


def check_update(update: Mapping[str, Any], *, has_spoken: bool, settings: Mapping[str, Any]) -> None:
    """Checks what the published types do not say. `has_spoken`: the agent's audio is in the conversation.

    Raises:
        Refused: as the provider does, or because the stand-in has no such feature.
    """
    if update.get("type") == "transcription":
        raise Refused(
            "invalid_session_type",
            "Passing a transcription session update event to a realtime session is not allowed.",
            param="session.type",
        )
    check_output(update, "session")
    voice = update.get("audio", {}).get("output", {}).get("voice")
    if has_spoken and voice is not None and voice != settings["audio"]["output"]["voice"]:
        raise Refused(
            "cannot_update_voice", "Cannot update a conversation's voice if assistant audio is present."
        )
    for side in ("input", "output"):
        kind = update.get("audio", {}).get(side, {}).get("format", PCM)["type"]
        if kind != PCM["type"]:
            raise Refused("not_modelled", f"The stand-in speaks audio/pcm only, not {kind!r}.")


def check_output(options: Mapping[str, Any], where: str) -> None:
    """Checks modalities and limits, of a session or of one response.

    Raises:
        Refused: not exactly one modality, or a limit out of range.
    """
    modalities = options.get("output_modalities")
    if modalities is not None and (len(modalities) != 1 or modalities[0] not in CHOICES):
        raise Refused(
            "invalid_value",
            f"Invalid modalities: {modalities}. Supported combinations are: ['text'] and ['audio'].",
            param=f"{where}.output_modalities",
        )
    limit = options.get("max_output_tokens", "inf")
    if limit != "inf" and not 1 <= limit <= MAX_OUTPUT_TOKENS:
        raise Refused(
            "integer_above_max_value" if limit > MAX_OUTPUT_TOKENS else "integer_below_min_value",
            f"Invalid '{where}.max_output_tokens': expected 1 to {MAX_OUTPUT_TOKENS} or 'inf', got {limit}.",
            param=f"{where}.max_output_tokens",
        )


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Checks how much a response is labelled with.

    Raises:
        Refused: too many pairs, or one too long.
    """
    if len(metadata) > METADATA_PAIRS:
        raise Refused(
            "object_above_max_properties",
            f"Invalid 'response.metadata': too many properties. Expected at most {METADATA_PAIRS}.",
            param="response.metadata",
        )
    for key, value in metadata.items():
        refuse_longer("response.metadata", METADATA_KEY, key)
        refuse_longer(f"response.metadata.{key}", METADATA_VALUE, value)


def updated(settings: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """The settings after an update: what it does not name stays, what it sets to null is off."""
    after = copy.deepcopy(dict(settings))
    _merge(after, update)
    return after


def checked_session(session: Mapping[str, Any]) -> None:
    """Checks a whole session configuration, as a client secret or a call carries.

    Raises:
        Refused: it does not fit.
    """
    check(SESSION, session)
    check_update(session, has_spoken=False, settings={})


def _merge(into: dict[str, Any], update: Mapping[str, Any]) -> None:
    for key, value in update.items():
        if key == "turn_detection" and isinstance(value, Mapping):
            into[key] = {**DETECTION[value["type"]], **value}
        elif isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


__all__ = ["check_metadata", "check_output", "check_update", "checked_session", "first_settings", "updated"]
