"""How sure OpenAI's recogniser was: asked for in the session's settings, read from the events.

PydanticAI passes transcripts on without their log probabilities. The model here is theirs in all else; it
overrides the two methods that their own derived models override. `tests/session/test_doubt.py` fails when an
upgrade moves them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.realtime.codec import RealtimeCodecEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeConnection, OpenAIRealtimeModel

from echoic.session.doubt import confidence_of

LOGPROBS: Final = "item.input_audio_transcription.logprobs"
_COMPLETED: Final = "conversation.item.input_audio_transcription.completed"
_KEPT: Final = 32


class Confidences:
    """What the recogniser said of the last transcripts."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, float] = OrderedDict()

    def heard(self, transcript: str, confidence: float) -> None:
        """Note one."""
        self._of[transcript.strip()] = confidence
        while len(self._of) > _KEPT:
            self._of.popitem(last=False)

    def of(self, transcript: str) -> float | None:
        """Of a transcript; None where nothing was said of it."""
        return self._of.get(transcript.strip())


def with_confidence(model: RealtimeModel, confidences: Confidences) -> RealtimeModel:
    """`model`, telling `confidences` what it hears; itself where its provider gives none."""
    if type(model) is not OpenAIRealtimeModel:
        return model
    sure = _SureModel.__new__(_SureModel)
    sure.__dict__.update(model.__dict__)
    sure.confidences = confidences
    return sure


class _SureModel(OpenAIRealtimeModel):
    confidences: Confidences

    def _session_config(self, *args: Any, **named: Any) -> dict[str, Any]:
        config = super()._session_config(*args, **named)
        if "transcription" in config["audio"]["input"]:
            config["include"] = [*config.get("include", []), LOGPROBS]
        return config

    def _connection_class(self, model_settings: Any) -> type[OpenAIRealtimeConnection]:
        base: Any = super()._connection_class(model_settings)
        told = self.confidences

        def _map_event(connection: Any, data: dict[str, Any]) -> RealtimeCodecEvent | None:
            if data.get("type") == _COMPLETED and data.get("logprobs"):
                sure = confidence_of([token["logprob"] for token in data["logprobs"]])
                if sure is not None:
                    told.heard(str(data.get("transcript", "")), sure)
            mapped: RealtimeCodecEvent | None = base._map_event(connection, data)  # noqa: SLF001 - overridden here
            return mapped

        return type("SureConnection", (base,), {"_map_event": _map_event})


__all__ = ["LOGPROBS", "Confidences", "with_confidence"]
