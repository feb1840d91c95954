"""One scripted session: what every provider's has in common. Knows no protocol.

It belongs to one event loop. A provider's session says how hearing, replying and closing look on its wire.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, Self

from echoic_loopback.realtime.audio import pcm_ms
from echoic_loopback.realtime.record import Record, ScriptStuck, Violation
from echoic_loopback.realtime.script import Reply, Script, UserSays
from echoic_loopback.realtime.voice import DEFAULT_SILENCE_MS, VoiceDetector
from echoic_loopback.realtime.websocket import WebSocket


class Line(Protocol):
    """One connection of a session: what is put goes out in order."""

    def put(self, message: str) -> None:
        """Sends a message, as soon as those before it are out."""

    async def flush(self) -> None:
        """Until everything put so far was sent."""

    async def close(self, code: int, reason: str) -> None:
        """Says goodbye."""

    async def abort(self) -> None:
        """Goes without a goodbye, when what was put is out."""


class SocketLine:
    """A WebSocket as a line."""

    def __init__(self, socket: WebSocket, *, binary: bool) -> None:
        self.socket = socket
        self._binary = binary
        self._outbox: asyncio.Queue[str] = asyncio.Queue()

    def put(self, message: str) -> None:
        self._outbox.put_nowait(message)

    async def run(self) -> None:
        """Sends what is put, until cancelled."""
        while True:
            message = await self._outbox.get()
            try:
                await self.socket.send(message.encode() if self._binary else message)
            finally:
                self._outbox.task_done()

    async def flush(self) -> None:
        await self._outbox.join()

    async def close(self, code: int, reason: str) -> None:
        await self.socket.close(code, reason)

    async def abort(self) -> None:
        await self.socket.abort()


class Session(ABC):
    """What tests read and steps act on."""

    input_rate_hz: ClassVar[int]
    output_rate_hz: ClassVar[int]

    def __init__(
        self, number: int, script: Script[Any], *, keep_audio: bool, patience_s: float, speed: float = 1.0
    ) -> None:
        self.number = number
        """Its place among the server's sessions, from 0."""
        self.script = script
        self.speed = speed
        """How many times as fast as in life speech passes."""
        self.record = Record()
        self.violations: list[Violation] = []
        self.input_audio = bytearray()
        """All audio received, where the server keeps it; `input_bytes` is how much it was, kept or not."""
        self.input_bytes = 0
        self.step_began = 0
        """How many events there were when the step that runs began."""
        self.steps_begun = 0
        """How many steps of its script have begun."""
        self.speech_began_ms: int | None = None
        """At which millisecond of all audio the user last began to speak; None while they have not."""
        self.script_over = False
        self.ended = asyncio.Event()
        """The client or the provider has gone; nothing more will happen."""
        self.lines: list[Line] = []
        self.cleanups: list[Callable[[], Awaitable[None]]] = []
        """What is to be let go of when it has ended."""
        self._keep_audio = keep_audio
        self._patience_s = patience_s
        self._news = asyncio.Event()
        self._voice = VoiceDetector(rate_hz=self.input_rate_hz)
        self.ends_turns_after(DEFAULT_SILENCE_MS)
        self._edges: list[int] = []
        self._edges_taken = 0
        self._quiet_since_ms = 0

    # What a step does; the provider's session says how.

    @abstractmethod
    async def hear(self, said: UserSays) -> None:
        """Hears a turn of the user."""

    @abstractmethod
    async def release_transcripts(self) -> None:
        """Sends the transcripts that were held back."""

    @abstractmethod
    async def reply(self, reply: Reply) -> None:
        """Answers, as soon as an answer is due."""

    @abstractmethod
    async def send_raw(self, body: Mapping[str, Any] | str | bytes) -> None:
        """Sends a message that nobody checked."""

    async def drop(self) -> None:
        """Cuts every connection, after what was sent before is delivered."""
        await self.flush()
        for line in list(self.lines):
            await line.abort()

    async def close(self, code: int, reason: str) -> None:
        """Closes every connection with a close frame."""
        await self.flush()
        for line in list(self.lines):
            await line.close(code, reason)

    # Waiting.

    async def until(self, ready: Callable[[], bool], what: str) -> None:
        """Waits for the client.

        Raises:
            ScriptStuck: `ready()` was not true within the server's patience. The message has `what` was
            waited
                for and what came instead.
        """
        try:
            async with asyncio.timeout(self._patience_s):
                while not ready():
                    await self._news.wait()
        except TimeoutError:
            last = self.record.kinds("client")[-5:]
            raise ScriptStuck(
                f"session {self.number} waited {self._patience_s:g} s for {what}; "
                f"the client's last events: {last}"
            ) from None

    def news(self) -> None:
        """Wakes whoever waits, to look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def flush(self) -> None:
        """Until all that was emitted was sent. Steps call it; what comes in from here on answers them."""
        self._quiet_since_ms = self.input_ms
        await asyncio.gather(*(line.flush() for line in self.lines))

    # Time, as speech passes here.

    def passing_ms(self, life_ms: float) -> int:
        """How many milliseconds of audio stand for `life_ms` of life."""
        return round(life_ms / self.speed)

    def ends_turns_after(self, silence_ms: int) -> None:
        """So much silence, in milliseconds of life, ends a turn."""
        self._voice.silence_ms = self.passing_ms(silence_ms)

    # Audio coming in.

    @property
    def input_ms(self) -> int:
        """Of audio received since the session began."""
        return pcm_ms(self.input_bytes, self.input_rate_hz)

    def take_audio(self, pcm: bytes) -> None:
        """Audio came in."""
        self.input_bytes += len(pcm)
        if self._keep_audio:
            self.input_audio += pcm
        self._edges += [edge.at_ms for edge in self._voice.feed(pcm)]
        self.news()

    async def voice_starts(self, said: UserSays) -> int:
        """Waits until the user speaks; at which millisecond of all audio that was."""
        if said.by_voice:
            self.speech_began_ms = await self._edge("start")
            return self.speech_began_ms
        due_ms = self._quiet_since_ms + self.passing_ms(said.after_ms)
        await self.until(lambda: self.input_ms >= due_ms, f"{said.after_ms} ms of audio before {said.text!r}")
        self.speech_began_ms = due_ms
        return due_ms

    async def voice_stops(self, said: UserSays, started_ms: int) -> int:
        """Waits until the user is silent; at which millisecond of all audio that was."""
        if said.by_voice:
            return await self._edge("stop")
        due_ms = started_ms + self.passing_ms(said.lasts_ms)
        await self.until(lambda: self.input_ms >= due_ms, f"{said.lasts_ms} ms of audio of {said.text!r}")
        return due_ms

    async def _edge(self, kind: str) -> int:
        # Edges alternate; a start that was slept through is no longer news once its stop is there too.
        wanted = 0 if kind == "start" else 1
        if self._edges_taken % 2 != wanted:
            self._edges_taken += 1
        await self.until(lambda: len(self._edges) > self._edges_taken, f"the voice to {kind}")
        self._edges_taken += 1
        return self._edges[self._edges_taken - 1]

    # The script.

    async def run(self: Self) -> None:
        """Plays the script to its end."""
        for step in self.script.steps:
            self.step_began = self.record.position
            self.steps_begun += 1
            await step(self)
        self.script_over = True
        self.news()

    async def finished(self) -> None:
        """Waits until the script has played to its end.

        Raises:
            ScriptStuck: it did not within the server's patience.
        """
        await self.until(lambda: self.script_over, "its script to end")


__all__ = ["Line", "Session", "SocketLine"]
