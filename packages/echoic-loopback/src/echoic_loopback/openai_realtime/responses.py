"""One response of OpenAI Realtime as the events that make it up, from `response.created` to
`response.done`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from echoic_loopback.openai_realtime.conversation import Conversation, Item
from echoic_loopback.realtime.audio import Speech
from echoic_loopback.realtime.script import ToolCall

Status = Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
INPUT_MS_A_TOKEN = 100
OUTPUT_MS_A_TOKEN = 50
"""By the provider's cost guide: a token is 100 ms of the user's audio, 50 ms of the model's."""
CHARACTERS_A_TOKEN = 4
"""A rule of thumb; the stand-in has no tokeniser."""
Emit = Callable[..., None]


class Response:
    """A response under way. It emits as it grows; once over, it says no more."""

    def __init__(
        self, emit: Emit, conversation: Conversation, new_id: Callable[[str], str], options: Mapping[str, Any]
    ) -> None:
        self._emit = emit
        self._conversation = conversation
        self._new_id = new_id
        self.options = options
        """The settings of the session with those of `response.create` over them."""
        self.id = new_id("resp")
        self.status: Status = "in_progress"
        self.output: list[Item] = []
        self._open: Item | None = None
        """The message that is being spoken or written."""
        self._text = ""
        self._details: dict[str, Any] | None = None
        emit("response.created", response=self.wire())

    @property
    def over(self) -> bool:
        return self.status != "in_progress"

    @property
    def open_item(self) -> str:
        """The id of the message that is open; empty where none is."""
        return "" if self._open is None else str(self._open.wire["id"])

    @property
    def is_audio(self) -> bool:
        modalities: list[str] = self.options["output_modalities"]
        return modalities == ["audio"]

    @property
    def in_conversation(self) -> bool:
        """Whether what it says is added to the conversation."""
        return self.options.get("conversation") != "none"

    def wire(self) -> dict[str, Any]:
        """The `response` object."""
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": self.status,
            "status_details": self._details,
            "output": [item.wire for item in self.output],
            "conversation_id": "conv_loopback" if self.in_conversation else None,
            "output_modalities": self.options["output_modalities"],
            "max_output_tokens": self.options["max_output_tokens"],
            "audio": {"output": {key: self.options["audio"]["output"][key] for key in ("format", "voice")}},
            "metadata": self.options.get("metadata"),
            "usage": self._usage() if self.over else None,
        }

    # A message.

    def open_message(self, spoken: Speech | None) -> Item:
        """Begins a message: speech, or text where `spoken` is None."""
        wire = {"type": "message", "role": "assistant", "content": []}
        item = self._add(wire, spoken)
        self._open, self._text = item, ""
        part = {"type": "audio", "transcript": ""} if self.is_audio else {"type": "text", "text": ""}
        self._emit("response.content_part.added", **self._where(item), part=part)
        return item

    def write(self, text: str) -> None:
        """More of the transcript, or of the text."""
        if self._open is not None and text:
            self._text += text
            kind = "response.output_audio_transcript.delta" if self.is_audio else "response.output_text.delta"
            self._emit(kind, **self._where(self._open), delta=text)

    def sound(self, pcm: bytes) -> None:
        """More of the audio, PCM16 at 24 kHz."""
        if self._open is not None and pcm:
            self._open.add_audio(pcm)
            delta = base64.b64encode(pcm).decode()
            self._emit("response.output_audio.delta", **self._where(self._open), delta=delta)

    def close_message(self, status: Literal["completed", "incomplete"] = "completed") -> None:
        """Ends the message that is open, if one is."""
        if (item := self._open) is None:
            return
        self._open = None
        where = self._where(item)
        if self.is_audio:
            self._emit("response.output_audio.done", **where)
            self._emit("response.output_audio_transcript.done", **where, transcript=self._text)
            self._emit(
                "response.content_part.done", **where, part={"type": "audio", "transcript": self._text}
            )
            item.wire["content"] = [{"type": "output_audio", "transcript": self._text}]
        else:
            self._emit("response.output_text.done", **where, text=self._text)
            self._emit("response.content_part.done", **where, part={"type": "text", "text": self._text})
            item.wire["content"] = [{"type": "output_text", "text": self._text}]
        self._finish(item, status)

    # A tool call.

    def call(self, call: ToolCall) -> None:
        """A whole function call."""
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
        call_id = call.id or self._new_id("call")
        item = self._add(
            {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": ""}, None
        )
        where = {key: value for key, value in self._where(item).items() if key != "content_index"}
        self._emit("response.function_call_arguments.delta", **where, call_id=call_id, delta=arguments)
        self._emit(
            "response.function_call_arguments.done",
            **where,
            call_id=call_id,
            name=call.name,
            arguments=arguments,
        )
        item.wire["arguments"] = arguments
        self._finish(item, "completed")

    # Its end.

    def end(
        self, status: Status, *, reason: str | None = None, error: Mapping[str, Any] | None = None
    ) -> None:
        """Ends it, wherever it is; does nothing where it is over."""
        if self.over:
            return
        self.close_message("completed" if status == "completed" else "incomplete")
        self.status = status
        if status != "completed":
            details = {"type": status, "reason": reason, "error": None if error is None else dict(error)}
            self._details = {key: value for key, value in details.items() if value is not None}
        self._emit("response.done", response=self.wire())

    def _add(self, wire: dict[str, Any], spoken: Speech | None) -> Item:
        item = Item({"id": self._new_id("item"), "object": "realtime.item", "status": "in_progress", **wire})
        item.spoken = spoken
        self.output.append(item)
        self._emit("response.output_item.added", **self._place(item), item=dict(item.wire))
        if self.in_conversation:
            self._conversation.append(item)
            previous = self._conversation.before(item.id)
            self._emit("conversation.item.added", previous_item_id=previous, item=dict(item.wire))
        return item

    def _finish(self, item: Item, status: str) -> None:
        item.wire["status"] = status
        self._conversation.finish(item)
        if self.in_conversation and item.id in self._conversation:
            previous = self._conversation.before(item.id)
            self._emit("conversation.item.done", previous_item_id=previous, item=dict(item.wire))
        self._emit("response.output_item.done", **self._place(item), item=dict(item.wire))

    def _place(self, item: Item) -> dict[str, Any]:
        return {"response_id": self.id, "output_index": self.output.index(item)}

    def _where(self, item: Item) -> dict[str, Any]:
        return {**self._place(item), "item_id": item.id, "content_index": 0}

    def _usage(self) -> dict[str, Any]:
        mine = {id(item) for item in self.output}
        before = [item for item in self._conversation if id(item) not in mine]
        text_in = len(self.options["instructions"]) // CHARACTERS_A_TOKEN + sum(
            _text_tokens(item) for item in before
        )
        audio_in = sum(item.audio_ms // INPUT_MS_A_TOKEN for item in before)
        text_out = sum(_text_tokens(item) for item in self.output)
        audio_out = sum(item.audio_ms // OUTPUT_MS_A_TOKEN for item in self.output)
        return {
            "total_tokens": text_in + audio_in + text_out + audio_out,
            "input_tokens": text_in + audio_in,
            "output_tokens": text_out + audio_out,
            "input_token_details": {"text_tokens": text_in, "audio_tokens": audio_in, "cached_tokens": 0},
            "output_token_details": {"text_tokens": text_out, "audio_tokens": audio_out},
        }


def _text_tokens(item: Item) -> int:
    parts = item.wire.get("content") or []
    texts = [part.get("text") or part.get("transcript") or "" for part in parts]
    texts += [item.wire.get("arguments", ""), item.wire.get("output", "")]
    return sum(len(text) for text in texts) // CHARACTERS_A_TOKEN


__all__ = ["Response", "Status"]
