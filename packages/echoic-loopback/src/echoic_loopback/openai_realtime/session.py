"""One OpenAI Realtime session: the server's side of the protocol, played from a script.

It knows no sockets: messages come in through `receive`, and what it emits is put on the lines that are
attached. A WebSocket session has one line, with the audio on it; a call has a line for each sideband, and
its audio goes another way or none.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from echoic_loopback.openai_realtime.conversation import Conversation, Item
from echoic_loopback.openai_realtime.playback import Playback, ResponseVoice
from echoic_loopback.openai_realtime.protocol import Refused, audio_of, check_event, read_event
from echoic_loopback.openai_realtime.responses import Response, Status
from echoic_loopback.openai_realtime.settings import (
    check_metadata,
    check_output,
    check_update,
    first_settings,
    updated,
)
from echoic_loopback.openai_realtime.transcripts import Transcriber
from echoic_loopback.realtime.audio import pcm_bytes
from echoic_loopback.realtime.record import Violation
from echoic_loopback.realtime.script import Calls, Reply, Says, Script, UserSays
from echoic_loopback.realtime.session import Session
from echoic_loopback.realtime.speaking import speak

SMALLEST_COMMIT_MS = 100
BUFFER_MS = 10_000
"""Audio kept while nobody speaks; the provider keeps what its voice detection may still need."""
NOT_ON_A_SIDEBAND = frozenset({"response.output_audio.delta", "response.output_audio.done"})
"""The media of a call goes to the caller alone."""


class OpenAISession(Session):
    """What a test reads of a session, and what steps do to it."""

    input_rate_hz: ClassVar[int] = 24_000
    output_rate_hz: ClassVar[int] = 24_000

    def __init__(
        self,
        number: int,
        script: Script[Any],
        *,
        model: str,
        keep_audio: bool,
        patience_s: float,
        speed: float,
        on_violation: Callable[[OpenAISession, Violation], None],
        on_fault: Callable[[BaseException], None],
        call_id: str | None = None,
    ) -> None:
        super().__init__(number, script, keep_audio=keep_audio, patience_s=patience_s, speed=speed)
        self._ids = 0
        self.call_id = call_id
        """Of a WebRTC call; None on a WebSocket session."""
        self.settings = first_settings(model, self.new_id("sess"))
        self.conversation = Conversation(self.new_id, keep_audio=keep_audio)
        self.response: Response | None = None
        """The one under way, or the last."""
        self.playback = None if call_id is None else Playback(self.emit)
        if self.playback is not None:
            self.cleanups.append(self.playback.close)
        """Of a call."""
        self._taken: Response | None = None
        self._asked: deque[dict[str, Any]] = deque()
        self._buffer = bytearray()
        self._committed: deque[Item] = deque()
        self._on_violation = on_violation
        self._on_fault = on_fault
        self._transcriber = Transcriber(self.emit)
        self._line_count = 1
        self._handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit_asked,
            "input_audio_buffer.clear": self._clear,
            "output_audio_buffer.clear": self._clear_output,
            "conversation.item.create": self._create_item,
            "conversation.item.retrieve": self._retrieve_item,
            "conversation.item.truncate": self._truncate_item,
            "conversation.item.delete": self._delete_item,
            "response.create": self._create_response,
            "response.cancel": self._cancel_response,
        }

    def new_id(self, prefix: str) -> str:
        """An id like the provider's: `item_s0_0007` is the seventh of session 0."""
        self._ids += 1
        return f"{prefix}_s{self.number}_{self._ids:05d}"

    def next_line(self) -> int:
        """The number of a line that is being attached: 0 is the caller's own, sidebands count from 1."""
        self._line_count += 1
        return self._line_count - 1

    # Messages.

    def receive(self, message: str | bytes, line: int = 0) -> None:
        """Takes a client's message: acts on it, or answers with an `error` and notes the violation."""
        kind, event_id = "", None
        try:
            event = read_event(message)
            kind, event_id = event["type"], event.get("event_id")
            self._note(event, line)
            check_event(event)
            self._handlers[kind](event)
        except Refused as refusal:
            self.emit("error", error=refusal.body(event_id if isinstance(event_id, str) else None))
            self._on_violation(
                self,
                Violation(
                    code=refusal.code or refusal.message,
                    message=refusal.message,
                    kind=kind,
                    body=None if kind == "input_audio_buffer.append" else message,
                    session=self.number,
                ),
            )
        self.news()

    def emit(self, kind: str, **body: Any) -> None:
        """Sends an event to whoever is attached, in order with all others."""
        event = {"type": kind, "event_id": self.new_id("event"), **body}
        audio = kind == "response.output_audio.delta"
        if not audio:
            self.record.add("server", kind, event)
        elif self._keep_audio:
            self.record.add("server", kind, {**event, "delta": len(body["delta"]) * 3 // 4})
        if self.call_id is not None and kind in NOT_ON_A_SIDEBAND:
            return
        message = json.dumps(event)
        for line in self.lines:
            line.put(message)

    async def send_raw(self, body: Mapping[str, Any] | str | bytes) -> None:
        message = (
            body if isinstance(body, str) else body.decode() if isinstance(body, bytes) else json.dumps(body)
        )
        self.record.add("server", "raw", {"message": message})
        for line in self.lines:
            line.put(message)
        await self.flush()

    def _note(self, event: Mapping[str, Any], line: int) -> None:
        body = event
        if event["type"] == "input_audio_buffer.append" and isinstance(event.get("audio"), str):
            if not self._keep_audio:
                return
            body = {**event, "audio": len(event["audio"]) * 3 // 4}
        self.record.add("client", event["type"], body, line=line)

    # What steps do.

    async def hear(self, said: UserSays) -> None:
        # who ends the turn is a setting, which a client makes with its first event or leaves as it is
        await self.until(
            lambda: bool(
                self.record.received()
                or self.record.forgotten
                or self.input_bytes
                or (self.call_id and self.lines)
            ),
            "the client to say anything",
        )
        if self._detection is None:
            await self.until(
                lambda: bool(self._committed), f"the client to commit the audio of {said.text!r}"
            )
            await self._transcribe(said, self._committed.popleft())
            return
        item_id = self.new_id("item")
        started_ms = await self.voice_starts(said)
        padding_ms = self._detection.get("prefix_padding_ms", 300)
        start_ms = max(0, started_ms - padding_ms)
        self._forget_audio_before(start_ms)
        self.emit("input_audio_buffer.speech_started", audio_start_ms=start_ms, item_id=item_id)
        if self._detection["interrupt_response"]:
            self._stop_speaking("turn_detected")
        if said.early:
            self._transcriber.partials(said, item_id, self.settings)
        await self.flush()
        stopped_ms = await self.voice_stops(said, started_ms)
        self.emit("input_audio_buffer.speech_stopped", audio_end_ms=stopped_ms, item_id=item_id)
        await self._transcribe(said, self._commit(item_id))
        if self._detection is not None and self._detection["create_response"]:
            self._ask({})
        await self.flush()

    async def release_transcripts(self) -> None:
        self._transcriber.release(self.settings)
        await self.flush()

    async def reply(self, reply: Reply) -> None:
        response = await self.take_response()
        for output in reply.outputs:
            if isinstance(output, Calls):
                for call in () if response.over else output.calls:
                    response.call(call)
            else:
                await self._say(response, output)
        if not response.over:
            self.end_response("completed")
        await self.flush()

    async def take_response(self) -> Response:
        """Waits until a response is under way that no step has taken, and takes it.

        Raises:
            ScriptStuck: none was asked for within the server's patience.
        """
        await self.until(
            lambda: self.response is not None and not self.response.over and self.response is not self._taken,
            "a response to be asked for",
        )
        assert self.response is not None
        self._taken = self.response
        return self.response

    def end_response(
        self, status: Status, *, reason: str | None = None, error: Mapping[str, Any] | None = None
    ) -> None:
        """Ends the response under way, and begins the next where one was asked for meanwhile."""
        if self.response is None or self.response.over:
            return
        self.response.end(status, reason=reason, error=error)
        if self._asked:
            self._begin(self._asked.popleft())
        self.news()

    async def voice_starts(self, said: UserSays) -> int:
        if self._hears:
            return await super().voice_starts(said)
        # without media nobody can be heard, so the user speaks as soon as somebody is there to be told
        await self.until(lambda: bool(self.lines), "a sideband to be attached")
        self.input_bytes += pcm_bytes(self.passing_ms(said.after_ms), self.input_rate_hz)
        return self.input_ms

    async def voice_stops(self, said: UserSays, started_ms: int) -> int:
        if self._hears:
            return await super().voice_stops(said, started_ms)
        self.input_bytes += pcm_bytes(self.passing_ms(said.lasts_ms), self.input_rate_hz)
        return self.input_ms

    @property
    def _hears(self) -> bool:
        """Whether the user's audio can reach it at all."""
        return self.playback is None or self.playback.speaker is not None

    async def _transcribe(self, said: UserSays, item: Item) -> None:
        if not said.early:
            self._transcriber.partials(said, item.id, self.settings)
        self._transcriber.final(said, item, self.settings)
        await self.flush()

    async def _say(self, response: Response, says: Says) -> None:
        if response.over:
            return
        spoken = says.speech(self.output_rate_hz, speed=self.speed)
        response.open_message(spoken if response.is_audio else None)
        await speak(self, says, spoken, ResponseVoice(response, self.playback))
        if not response.over:
            response.close_message()

    def _stop_speaking(self, reason: str) -> None:
        self.end_response("cancelled", reason=reason)
        if self.playback is None:
            return
        # it knows what of a call was played, so it does by itself what a WebSocket's client has to ask for
        cut = self.playback.unplayed()
        self.playback.clear()
        for item_id, end_ms in cut:
            if item_id in self.conversation:
                self._truncated(item_id, 0, end_ms)

    # What clients ask for.

    @property
    def _detection(self) -> dict[str, Any] | None:
        detection: dict[str, Any] | None = self.settings["audio"]["input"]["turn_detection"]
        return detection

    def _update(self, event: dict[str, Any]) -> None:
        update = event["session"]
        check_update(update, has_spoken=self.conversation.has_spoken, settings=self.settings)
        self.settings = updated(self.settings, update)
        if self._detection is not None:
            self.ends_turns_after(self._detection.get("silence_duration_ms", 500))
        self.emit("session.updated", session=self.settings)

    def _append(self, event: dict[str, Any]) -> None:
        self.hear_audio(audio_of(event))

    def hear_audio(self, pcm: bytes) -> None:
        """Takes the user's audio, PCM16 at 24 kHz."""
        self._buffer += pcm
        limit = pcm_bytes(BUFFER_MS, self.input_rate_hz)
        if self._detection is not None and len(self._buffer) > 2 * limit and not self._voice.speaking:
            del self._buffer[:-limit]
        self.take_audio(pcm)

    def _forget_audio_before(self, start_ms: int) -> None:
        keep = pcm_bytes(max(0, self.input_ms - start_ms), self.input_rate_hz)
        if keep < len(self._buffer):
            del self._buffer[: len(self._buffer) - keep]

    def _commit_asked(self, event: dict[str, Any]) -> None:
        del event
        has_ms = len(self._buffer) * 1000 / (2 * self.input_rate_hz)
        if has_ms < SMALLEST_COMMIT_MS:
            raise Refused(
                "input_audio_buffer_commit_empty",
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{SMALLEST_COMMIT_MS}ms of audio, but buffer only has {has_ms:.2f}ms of audio.",
            )
        self._committed.append(self._commit(self.new_id("item")))

    def _commit(self, item_id: str) -> Item:
        wire = {
            "id": item_id,
            "object": "realtime.item",
            "type": "message",
            "role": "user",
            "status": "completed",
        }
        item = self.conversation.append(
            Item({**wire, "content": [{"type": "input_audio", "transcript": None}]})
        )
        item.add_audio(bytes(self._buffer))
        self._buffer = bytearray()
        self.conversation.finish(item)
        previous = self.conversation.before(item_id)
        self.emit("input_audio_buffer.committed", previous_item_id=previous, item_id=item_id)
        self._announce(item)
        return item

    def _announce(self, item: Item) -> None:
        previous = self.conversation.before(item.id)
        for kind in ("conversation.item.added", "conversation.item.done"):
            self.emit(kind, previous_item_id=previous, item=dict(item.wire))

    def _clear(self, event: dict[str, Any]) -> None:
        del event
        self._buffer.clear()
        self.emit("input_audio_buffer.cleared")

    def _clear_output(self, event: dict[str, Any]) -> None:
        del event
        if self.playback is None:
            raise Refused(
                "invalid_value", "output_audio_buffer.clear is for WebRTC and SIP only.", param="type"
            )
        self.playback.clear()

    def _create_item(self, event: dict[str, Any]) -> None:
        self._announce(self.conversation.create(event["item"], event.get("previous_item_id")))

    def _retrieve_item(self, event: dict[str, Any]) -> None:
        self.emit("conversation.item.retrieved", item=self.conversation.retrieve(event["item_id"]))

    def _truncate_item(self, event: dict[str, Any]) -> None:
        self._truncated(event["item_id"], event["content_index"], event["audio_end_ms"])

    def _truncated(self, item_id: str, index: int, end_ms: int) -> None:
        self.conversation.truncate(item_id, index, end_ms)
        self.emit("conversation.item.truncated", item_id=item_id, content_index=index, audio_end_ms=end_ms)

    def _delete_item(self, event: dict[str, Any]) -> None:
        self.conversation.delete(event["item_id"])
        self.emit("conversation.item.deleted", item_id=event["item_id"])

    def _create_response(self, event: dict[str, Any]) -> None:
        options = event.get("response") or {}
        check_output(options, "response")
        check_metadata(options.get("metadata") or {})
        apart = options.get("conversation") == "none"
        if not apart and self.response is not None and not self.response.over:
            raise Refused(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self.response.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        self._ask(options)

    def _cancel_response(self, event: dict[str, Any]) -> None:
        meant = event.get("response_id")
        if self.response is None or self.response.over or meant not in (None, self.response.id):
            raise Refused("response_cancel_not_active", "Cancellation failed: no active response found")
        self.end_response("cancelled", reason="client_cancelled")

    def _ask(self, options: dict[str, Any]) -> None:
        if self.script_over and not self.script.open_ended:
            self._on_fault(
                RuntimeError(f"session {self.number} was asked for a response after its script's end")
            )
        if self.response is not None and not self.response.over:
            self._asked.append(options)
        else:
            self._begin(options)

    def _begin(self, options: dict[str, Any]) -> None:
        settings = updated(self.settings, {key: value for key, value in options.items() if key != "metadata"})
        settings["metadata"] = options.get("metadata")
        self.response = Response(self.emit, self.conversation, self.new_id, settings)


__all__ = ["OpenAISession"]
