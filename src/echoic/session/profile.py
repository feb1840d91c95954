"""What differs between voice providers, as data. Nothing else in a session asks who the provider is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic_ai.realtime import RealtimeModel, RealtimeModelProfile, RealtimeModelSettings, ReconnectPolicy

RECONNECT: Final[ReconnectPolicy] = {"max_attempts": 5, "base_delay": 0.2, "max_delay": 5.0}
"""A call outlives a network that is gone for a few seconds."""
_MANUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai": {"openai_turn_detection": {"type": "server_vad", "create_response": False}},
    "azure": {"openai_turn_detection": {"type": "server_vad", "create_response": False}},
}
"""By provider: how it is told to find the end of a turn by itself, yet to speak only when asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProfile:
    """What a session has to know of the model it talks to."""

    provider: str
    input_hz: int
    """Of the PCM16 it listens to."""
    output_hz: int
    """Of the PCM16 it speaks."""
    asked_to_reply: bool
    """Whether it can be made to wait until it is asked, so that what is recalled reaches it first."""
    can_cut: bool
    """Whether it is told to stop, and where playback stopped, when the caller interrupts."""
    reports_speech: bool
    """Whether it says that the caller began to speak; else it says that it was interrupted."""
    takes_notes: bool
    """Whether it takes a note while it speaks; else a note would cut it off, and waits for the turn's end."""
    carries_audio: bool = True
    """Whether the call's audio goes through the session; else between provider and caller, who plays it."""

    @classmethod
    def of(cls, model: RealtimeModel) -> ProviderProfile:
        """Of a model of PydanticAI's."""
        known: RealtimeModelProfile = model.profile
        manual = bool(known.get("supports_manual_turn_control"))
        return cls(
            provider=model.system,
            input_hz=model.audio_input_sample_rate,
            output_hz=model.audio_output_sample_rate,
            asked_to_reply=manual and model.system in _MANUAL,
            can_cut=bool(known.get("supports_interruption")),
            reports_speech=bool(known.get("emits_input_speech_events")),
            takes_notes=bool(known.get("supports_system_messages")),
        )

    def beside(self) -> ProviderProfile:
        """Of the same model, steered from beside a call: where playback stopped, it knows by itself."""
        return replace(self, carries_audio=False, can_cut=False)

    def settings(self, given: RealtimeModelSettings | None, *, recall_first: bool) -> RealtimeModelSettings:
        """What a session is opened with; what was `given` comes first.

        Args:
            given: by the caller of the session.
            recall_first: have it wait until it is asked to reply, where it can.
        """
        merged: dict[str, Any] = {"reconnect": RECONNECT}
        if recall_first and self.asked_to_reply:
            merged |= _MANUAL[self.provider]
        merged |= given or {}
        return cast("RealtimeModelSettings", merged)


def waits_to_be_asked(settings: RealtimeModelSettings) -> bool:
    """Whether a session opened with these replies only when asked."""
    detection = dict(settings).get("openai_turn_detection")
    return isinstance(detection, dict) and detection.get("create_response") is False
