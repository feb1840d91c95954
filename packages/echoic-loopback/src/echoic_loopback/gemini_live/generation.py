"""One turn of a Gemini Live model as the messages that make it up."""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Protocol

from echoic_loopback.realtime.audio import pcm_ms
from echoic_loopback.realtime.script import Calls

TOKENS_A_SECOND = 25
"""Of audio, in and out, by the provider's guide to tokens."""
CHARACTERS_A_TOKEN = 4


class Wire(Protocol):
    """What a generation needs of the session it speaks in."""

    output_rate_hz: ClassVar[int]
    context: list[dict[str, Any]]
    """What was said, as the provider keeps it."""
    pending: dict[str, str]
    """Calls without an answer: their names, by id."""

    @property
    def speaks(self) -> bool:
        """Whether it answers in audio."""

    @property
    def transcribes_output(self) -> bool:
        """Whether the client asked for the words of it."""

    @property
    def resumable(self) -> bool:
        """Whether the client asked for handles."""

    @property
    def input_ms(self) -> int:
        """Of audio received."""

    def emit(self, **message: Any) -> None:
        """Sends a message."""

    def new_id(self, prefix: str) -> str:
        """One that nothing has yet."""

    def give_handle(self) -> None:
        """Sends one, where it is resumable."""

    def news(self) -> None:
        """Wakes whoever waits for something to have changed."""


class Generation:
    """A generation under way; once over, it says no more."""

    def __init__(self, session: Wire) -> None:
        self._session = session
        self.over = False
        self.text = ""
        """Transcript, or text, sent so far: what the provider keeps of a turn that is interrupted."""
        self.audio_bytes = 0
        self._generated = False

    def write(self, text: str) -> None:
        """More of the transcript, or of the text."""
        self.text += text
        if not text or self.over:
            return
        if not self._session.speaks:
            self._turn({"text": text})
        elif self._session.transcribes_output:
            self._session.emit(serverContent={"outputTranscription": {"text": text}})

    def sound(self, pcm: bytes) -> None:
        """More of the audio."""
        if pcm and not self.over and self._session.speaks:
            self.audio_bytes += len(pcm)
            rate = self._session.output_rate_hz
            data = base64.b64encode(pcm).decode()
            self._turn({"inlineData": {"mimeType": f"audio/pcm;rate={rate}", "data": data}})

    def call(self, calls: Calls) -> None:
        """All calls of the turn, in one message.

        Raises:
            ValueError: arguments are a text; on this protocol they are a structure, and cannot be malformed
            JSON.
        """
        if any(isinstance(call.arguments, str) for call in calls.calls):
            raise ValueError("Gemini Live sends arguments as a structure, not as text; give a mapping")
        wires = []
        for call in calls.calls:
            assert not isinstance(call.arguments, str)
            call_id = call.id or self._session.new_id("call")
            self._session.pending[call_id] = call.name
            wires.append({"id": call_id, "name": call.name, "args": dict(call.arguments)})
        if self._session.resumable:
            # no handle is given out while calls are open
            self._session.emit(sessionResumptionUpdate={"resumable": False})
        self._session.emit(toolCall={"functionCalls": wires})

    def generated(self) -> None:
        """All of it was generated, though not yet played."""
        if not self.over and not self._generated:
            self._generated = True
            self._session.emit(serverContent={"generationComplete": True})

    def complete(self) -> None:
        """The turn is over."""
        if not self.over:
            self.generated()
            self._end()

    def interrupt(self) -> None:
        """The turn is cut: `interrupted`, and no `generationComplete` after it."""
        if not self.over:
            self._session.emit(serverContent={"interrupted": True})
            self._end()

    def _end(self) -> None:
        self.over = True
        if self.text:
            self._session.context.append({"role": "model", "parts": [{"text": self.text}]})
        self._session.emit(serverContent={"turnComplete": True}, usageMetadata=self._usage())
        self._session.give_handle()
        self._session.news()

    def _turn(self, part: dict[str, Any]) -> None:
        self._session.emit(serverContent={"modelTurn": {"role": "model", "parts": [part]}})

    def _usage(self) -> dict[str, Any]:
        texts = [part.get("text", "") for turn in self._session.context for part in turn.get("parts", [])]
        heard = self._session.input_ms * TOKENS_A_SECOND // 1000
        prompt = sum(len(text) for text in texts) // CHARACTERS_A_TOKEN + heard
        spoken_ms = pcm_ms(self.audio_bytes, self._session.output_rate_hz)
        said = spoken_ms * TOKENS_A_SECOND // 1000 or len(self.text) // CHARACTERS_A_TOKEN
        return {
            "promptTokenCount": prompt,
            "responseTokenCount": said,
            "totalTokenCount": prompt + said,
            "responseTokensDetails": [
                {"modality": "AUDIO" if self._session.speaks else "TEXT", "tokenCount": said},
            ],
        }


__all__ = ["Generation", "Wire"]
