"""One Gemini Live session: the server's side of the protocol, played from a script.

It knows no sockets: messages come in through `receive`, and what it emits is put on the line.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from google.genai import types

from echoic_loopback.gemini_live.generation import Generation
from echoic_loopback.gemini_live.protocol import (
    ClientMessage,
    Refused,
    Setup,
    audio_of,
    kinds,
    read_message,
    slim,
)
from echoic_loopback.realtime.record import Violation
from echoic_loopback.realtime.script import Calls, Reply, Script, UserSays
from echoic_loopback.realtime.session import Session
from echoic_loopback.realtime.speaking import speak
from echoic_loopback.realtime.voice import DEFAULT_SILENCE_MS


class GeminiSession(Session):
    """What a test reads of a session, and what steps do to it."""

    input_rate_hz: ClassVar[int] = 16_000
    output_rate_hz: ClassVar[int] = 24_000

    def __init__(
        self,
        number: int,
        script: Script[Any],
        *,
        keep_audio: bool,
        patience_s: float,
        speed: float,
        marks_finished: bool,
        on_setup: Callable[[GeminiSession, Setup], None],
        on_handle: Callable[[GeminiSession], str],
        on_violation: Callable[[GeminiSession, Violation], None],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        super().__init__(number, script, keep_audio=keep_audio, patience_s=patience_s, speed=speed)
        self.setup: Setup | None = None
        """What the client asked for; None until it did."""
        self.context: list[dict[str, Any]] = []
        """The conversation as the server holds it: contents as `{"role", "parts"}`."""
        self.known = True
        """Its key is one that is taken."""
        self.resumed_from: str | None = None
        """The handle this session was resumed with."""
        self.handles: list[str] = []
        """Resumption handles given out, in order."""
        self.generation: Generation | None = None
        """The one under way, or the last."""
        self.pending: dict[str, str] = {}
        """Tool calls without a result: names by id."""
        self.results: dict[str, dict[str, Any]] = {}
        """Results of tool calls, by id."""
        self._marks_finished = marks_finished
        self._on_setup = on_setup
        self._on_handle = on_handle
        self._on_violation = on_violation
        self._on_fault = on_fault
        self._asked = 0
        self._held: list[UserSays] = []
        self._activity: list[str] = []
        self._history_awaited = False
        self._closing: asyncio.Task[None] | None = None
        self._ids = 0

    # Messages.

    def receive(self, message: str | bytes) -> None:
        """Takes a client's message: acts on it, or closes and notes the violation."""
        kind = ""
        try:
            field, read = read_message(message)
            kind = field
            for name in kinds(field, read):
                if self._keep_audio or name != "realtime_input.audio":
                    self.record.add("client", name, slim(json.loads(message)))
            self._take(field, read)
        except Refused as refusal:
            violation = Violation(
                code=refusal.code, message=refusal.message, kind=kind, body=message, session=self.number
            )
            self._on_violation(self, violation)
            if refusal.closes and self._closing is None:
                self._closing = asyncio.ensure_future(self.close(refusal.close_code, refusal.message))
        self.news()

    def emit(self, **message: Any) -> None:
        """Sends a message."""
        parts = message.get("serverContent", {}).get("modelTurn", {}).get("parts", [{}])
        if self._keep_audio or "inlineData" not in parts[0]:
            kind = ".".join([next(iter(message)), *list(message.get("serverContent", {}))[:1]])
            self.record.add("server", kind, slim(message))
        text = json.dumps(message)
        for line in self.lines:
            line.put(text)

    async def send_raw(self, body: Mapping[str, Any] | str | bytes) -> None:
        message = (
            body if isinstance(body, str) else body.decode() if isinstance(body, bytes) else json.dumps(body)
        )
        self.record.add("server", "raw", {"message": message})
        for line in self.lines:
            line.put(message)
        await self.flush()

    # What the client asked for at the beginning.

    @property
    def transcribes_input(self) -> bool:
        return self.setup is not None and self.setup.input_audio_transcription is not None

    @property
    def transcribes_output(self) -> bool:
        return self.setup is not None and self.setup.output_audio_transcription is not None

    @property
    def speaks(self) -> bool:
        """Whether it answers with audio, not with text."""
        config = self.setup.generation_config if self.setup is not None else None
        return (config.response_modalities if config else None) != [types.Modality.TEXT]

    @property
    def resumable(self) -> bool:
        """Whether the client asked for resumption handles."""
        return self.setup is not None and self.setup.session_resumption is not None

    @property
    def detects_activity(self) -> bool:
        """Whether the provider finds the user's turns, not the client."""
        config = self._input_config.automatic_activity_detection
        return not (config is not None and config.disabled)

    @property
    def _input_config(self) -> types.RealtimeInputConfig:
        return (self.setup and self.setup.realtime_input_config) or types.RealtimeInputConfig()

    # What steps do.

    async def hear(self, said: UserSays) -> None:
        if self.detects_activity:
            started_ms = await self.voice_starts(said)
        else:
            await self.until(lambda: "start" in self._activity, "activityStart")
            started_ms = self.input_ms
        self._interrupt_by_speech(started_ms)
        if said.early:
            self._partials(said)
        await self.flush()
        if self.detects_activity:
            await self.voice_stops(said, started_ms)
        else:
            await self.until(lambda: "end" in self._activity, "activityEnd")
            self._activity.clear()
        if not said.early:
            self._partials(said)
        if said.final == "on_time":
            self._final(said)
        elif said.final == "held":
            self._held.append(said)
        self.context.append({"role": "user", "parts": [{"text": said.text}]})
        self._ask()
        await self.flush()

    async def release_transcripts(self) -> None:
        held, self._held = self._held, []
        for said in held:
            self._final(said)
        await self.flush()

    async def reply(self, reply: Reply) -> None:
        await self.until(lambda: self._asked > 0, "a turn of the user's, a text or results of tools")
        self._asked -= 1
        self.generation = generation = Generation(self)
        for output in reply.outputs:
            if generation.over:
                return
            if isinstance(output, Calls):
                generation.call(output)
                await self.flush()
            else:
                await speak(self, output, output.speech(self.output_rate_hz, speed=self.speed), generation)
        if not self.pending:
            generation.complete()
        await self.flush()

    def give_handle(self) -> None:
        """Tells the client how to resume from here, where it asked to be told."""
        if self.resumable:
            handle = self._on_handle(self)
            self.handles.append(handle)
            self.emit(sessionResumptionUpdate={"newHandle": handle, "resumable": True})

    def new_id(self, prefix: str) -> str:
        """An id of its own."""
        self._ids += 1
        return f"{prefix}-s{self.number}-{self._ids}"

    def interrupt(self) -> None:
        """Cuts the generation under way and takes its tool calls back."""
        if self.pending:
            self.emit(toolCallCancellation={"ids": list(self.pending)})
            self.pending.clear()
        if self.generation is not None and not self.generation.over:
            self.generation.interrupt()

    def _interrupt_by_speech(self, started_ms: int) -> None:
        if self._input_config.activity_handling == types.ActivityHandling.NO_INTERRUPTION:
            return
        if self.generation is not None and not self.generation.over:
            activity = {"voiceActivityType": "ACTIVITY_START", "audioOffset": f"{started_ms / 1000:g}s"}
            self.emit(voiceActivity=activity)
            self.interrupt()

    def _partials(self, said: UserSays) -> None:
        for piece in said.partials if self.transcribes_input else ():
            self.emit(serverContent={"inputTranscription": {"text": piece}})

    def _final(self, said: UserSays) -> None:
        before = "".join(said.partials)
        rest = said.text.removeprefix(before)
        finished = {"finished": True} if self._marks_finished else {}
        for _ in range(said.copies if self.transcribes_input and (rest or finished) else 0):
            self.emit(serverContent={"inputTranscription": {"text": rest, **finished}})

    def _ask(self) -> None:
        if self.script_over and not self.script.open_ended:
            self._on_fault(RuntimeError(f"session {self.number} was asked to reply after its script's end"))
        self._asked += 1

    # What clients send.

    def _take(self, field: str, read: ClientMessage) -> None:
        if read.setup is not None:
            self._set_up(read.setup)
        elif self.setup is None:
            raise Refused(
                "setup_missing", "Request contains an invalid argument. The first message must be setup."
            )
        elif read.realtime_input is not None:
            self._take_realtime(read.realtime_input)
        elif read.client_content is not None:
            self._take_content(read.client_content)
        elif read.tool_response is not None:
            self._take_results(read.tool_response)
        else:
            raise Refused("not_modelled", f"The stand-in has no {field}.", closes=False)

    def _set_up(self, setup: Setup) -> None:
        if self.setup is not None:
            raise Refused("setup_repeated", "Request contains an invalid argument. setup is sent only once.")
        self._on_setup(self, setup)
        self.setup = setup
        history = setup.history_config
        self._history_awaited = bool(history and history.initial_history_in_client_content)
        if setup.realtime_input_config and (
            found := setup.realtime_input_config.automatic_activity_detection
        ):
            self.ends_turns_after(found.silence_duration_ms or DEFAULT_SILENCE_MS)

    def _take_realtime(self, given: types.LiveClientRealtimeInput) -> None:
        for blob in [given.audio, *(given.media_chunks or [])]:
            if blob is not None and not (blob.mime_type or "").startswith("image/"):
                self.take_audio(_at_rate(*audio_of(blob), self.input_rate_hz))
        for name, value in (("start", given.activity_start), ("end", given.activity_end)):
            if value is None:
                continue
            if self.detects_activity:
                raise Refused(
                    "invalid_argument",
                    "Explicit activity control is not supported when automatic activity detection "
                    "is enabled.",
                )
            self._activity.append(name)
        if given.text is not None:
            self.context.append({"role": "user", "parts": [{"text": given.text}]})
            self._ask()

    def _take_content(self, given: types.LiveClientContent) -> None:
        for turn in given.turns or []:
            self.context.append(turn.model_dump(mode="json", exclude_none=True))
        if self._history_awaited:
            self._history_awaited = not given.turn_complete
            return
        self.interrupt()  # whether it ends a turn or not: "a message here will interrupt any generation"
        if given.turn_complete:
            self._ask()

    def _take_results(self, given: types.LiveClientToolResponse) -> None:
        for result in given.function_responses or []:
            if result.id not in self.pending:
                raise Refused(
                    "unknown_function_id", f"No call {result.id!r} waits for a result.", closes=False
                )
            if result.name not in (None, self.pending[result.id]):
                raise Refused(
                    "wrong_function_name", f"Call {result.id!r} is not of {result.name!r}.", closes=False
                )
            del self.pending[result.id]
            self.results[result.id] = result.response or {}
            if not self.pending:
                self._ask()


def _at_rate(pcm: bytes, rate_hz: int, wanted_hz: int) -> bytes:
    """The provider resamples; by lines between samples, good enough for a loudness and a length."""
    if rate_hz == wanted_hz:
        return pcm
    samples = np.frombuffer(pcm[: len(pcm) // 2 * 2], dtype="<i2")
    at = np.arange(len(samples) * wanted_hz // rate_hz) * (rate_hz / wanted_hz)
    return np.interp(at, np.arange(len(samples)), samples).astype("<i2").tobytes() if len(samples) else b""


__all__ = ["GeminiSession"]
