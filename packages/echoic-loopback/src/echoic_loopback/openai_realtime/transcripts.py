"""Transcripts of the user's audio, sent when the script says, which need not be when they were due."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from echoic_loopback.openai_realtime.conversation import Item
from echoic_loopback.realtime.script import UserSays

LOGPROBS = "item.input_audio_transcription.logprobs"
KIND = "conversation.item.input_audio_transcription"


class Transcriber:
    """Sends transcripts, where the session's settings ask for any."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self._emit = emit
        self._held: list[tuple[UserSays, Item]] = []

    def partials(self, said: UserSays, item_id: str, settings: Mapping[str, Any]) -> None:
        """Sends the pieces that come before the whole."""
        for piece in said.partials if _wanted(settings) else ():
            extra = _logprobs(piece, said, settings)
            self._emit(f"{KIND}.delta", item_id=item_id, content_index=0, delta=piece, **extra)

    def final(self, said: UserSays, item: Item, settings: Mapping[str, Any]) -> None:
        """Sends the whole transcript, or keeps it, or does not, as the script says."""
        if said.final == "held":
            self._held.append((said, item))
        elif said.final == "failed" and _wanted(settings):
            error = {
                "type": "transcription_error",
                "code": "audio_unintelligible",
                "message": "The audio could not be transcribed.",
                "param": None,
            }
            self._emit(f"{KIND}.failed", item_id=item.id, content_index=0, error=error)
        elif said.final == "on_time":
            self._send(said, item, settings)

    def release(self, settings: Mapping[str, Any]) -> None:
        """Sends what was held, in order."""
        held, self._held = self._held, []
        for said, item in held:
            self._send(said, item, settings)

    def _send(self, said: UserSays, item: Item, settings: Mapping[str, Any]) -> None:
        if not _wanted(settings):
            return
        if item.wire["content"]:
            item.wire["content"] = [{**item.wire["content"][0], "transcript": said.text}]
        usage = {"type": "duration", "seconds": item.audio_ms / 1000}
        extra = _logprobs(said.text, said, settings)
        for _ in range(said.copies):
            self._emit(
                f"{KIND}.completed",
                item_id=item.id,
                content_index=0,
                transcript=said.text,
                usage=usage,
                **extra,
            )


def _wanted(settings: Mapping[str, Any]) -> bool:
    return bool(settings["audio"]["input"]["transcription"])


def _logprobs(text: str, said: UserSays, settings: Mapping[str, Any]) -> dict[str, Any]:
    if said.confidence is None or LOGPROBS not in (settings["include"] or ()):
        return {}
    logprob = math.log(max(said.confidence, 1e-9))
    tokens = [word if index == 0 else f" {word}" for index, word in enumerate(text.split())]
    return {"logprobs": [{"token": t, "logprob": logprob, "bytes": list(t.encode())} for t in tokens]}


__all__ = ["LOGPROBS", "Transcriber"]
