"""The telephone's end of a Media Stream: audio both ways, at the speed of sound.

Protocol: Twilio's "Media Streams WebSocket messages". What comes is played as fast as it sounds; a mark comes
back when all before it was played, or at once when what waits is cleared. That is what a server takes for the
playback clock.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import aiohttp
import numpy as np

from echoic.adapters.twilio.media import (
    SILENCE,
    TELEPHONE_HZ,
    Resampler,
    Samples,
    mulaw_decode,
    mulaw_encode,
)

FRAME_MS: Final = 20
"""Of audio in a message, as Twilio sends it."""
_FRAME: Final = TELEPHONE_HZ * FRAME_MS // 1000


class SimulatedStream:
    """One stream, until it is closed.

    Args:
        socket: connected, with nothing sent yet.
        call: the call's id.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, call: str) -> None:
        self.played = bytearray()
        """What was heard so far, in mu-law."""
        self.cleared = 0
        """How often the server took back what waited."""
        self.cleared_bytes = 0
        """How much of it that was."""
        self.marks = 0
        """How many came back."""
        self.delays_s: list[float] = []
        """From the end of what was said to the first sound of the answer."""
        self.closed = asyncio.Event()
        """Set once the stream is over, whoever ended it."""
        self._socket = socket
        self._call = call
        self._stream = "MZ" + call[2:]
        self._waiting: deque[bytes | dict[str, Any]] = deque()
        self._news = asyncio.Event()
        self._saying: deque[bytes] = deque()
        self._said = asyncio.Event()
        self._spoke_at: float | None = None
        self._sounded_at = time.monotonic()
        self._working: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Begin: silence is sent from now on, and what comes is played."""
        await self._send("connected", protocol="Call", version="1.0.0")
        form = {"encoding": "audio/x-mulaw", "sampleRate": TELEPHONE_HZ, "channels": 1}
        start = {"streamSid": self._stream, "callSid": self._call, "tracks": ["inbound"], "mediaFormat": form}
        await self._send("start", start=start)
        works = (self._speak, self._receive, self._play)
        self._working = [asyncio.ensure_future(self._connected(work)) for work in works]

    async def aclose(self) -> None:
        """Stop, as when the caller hangs up. May be called twice."""
        self.closed.set()
        with suppress(ConnectionError, RuntimeError, aiohttp.ClientError):
            await self._send("stop", stop={"callSid": self._call})
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self._socket.close()

    async def say(self, samples: Samples, rate_hz: int = TELEPHONE_HZ) -> None:
        """Say `samples` of `rate_hz`; returns when they were said, or the stream is over.

        Raises:
            InvalidInput: a rate that is no whole number above 0.
        """
        down = Resampler(rate_hz, TELEPHONE_HZ)
        audio = mulaw_encode(np.concatenate([down(samples), down.flush()]))
        if not audio:
            return
        audio += SILENCE * (-len(audio) % _FRAME)
        if self.ended:
            return
        self._said.clear()
        self._saying.extend(audio[at : at + _FRAME] for at in range(0, len(audio), _FRAME))
        await self._said.wait()
        self._spoke_at = time.monotonic()

    async def press(self, digits: str) -> None:
        """Press keys."""
        for digit in digits:
            await self._send("dtmf", dtmf={"track": "inbound_track", "digit": digit})

    async def listen(self, *, pause_s: float = 0.7, within_s: float = 30.0) -> bytes:
        """Hear an answer: all that is played until nothing was for `pause_s`. Empty: nothing came in time.

        Returns:
            mu-law at 8 kHz.
        """
        before, until = len(self.played), time.monotonic() + within_s
        while time.monotonic() < until and not self.ended:
            heard = len(self.played) > before
            if heard and not self._waiting and time.monotonic() - self._sounded_at >= pause_s:
                break
            await asyncio.sleep(FRAME_MS / 1000)
        return bytes(self.played[before:])

    @property
    def heard(self) -> Samples:
        """All that was played, at 8 kHz."""
        return mulaw_decode(bytes(self.played))

    @property
    def ended(self) -> bool:
        """Whether the stream is over."""
        return self.closed.is_set()

    async def _connected(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` until the connection is lost; then the stream is over, and nobody waits to be heard."""
        try:
            await work()
        except (ConnectionError, aiohttp.ClientError):
            self.closed.set()
            self._said.set()

    async def _speak(self) -> None:
        """A frame every 20 ms, of what is being said or of silence. By the clock: sleeping alone drifts."""
        begun, frames = time.monotonic(), 0
        while True:
            frame = self._saying.popleft() if self._saying else SILENCE * _FRAME
            await self._send("media", media={"track": "inbound", "payload": _text(frame)})
            frames += 1
            if not self._saying:
                self._said.set()
            await asyncio.sleep(max(0.0, begun + frames * FRAME_MS / 1000 - time.monotonic()))

    async def _receive(self) -> None:
        async for received in self._socket:
            if received.type is not aiohttp.WSMsgType.TEXT:
                break
            message = json.loads(received.data)
            if message.get("event") == "clear":
                await self._clear()
            elif message.get("event") == "media":
                self._waiting.append(base64.b64decode(message["media"]["payload"]))
            elif message.get("event") == "mark":
                self._waiting.append(message["mark"])
            self._news.set()
        self.closed.set()

    async def _clear(self) -> None:
        waiting, self._waiting = list(self._waiting), deque()
        self.cleared += 1
        self.cleared_bytes += sum(len(one) for one in waiting if isinstance(one, bytes))
        for one in waiting:
            if isinstance(one, dict):
                await self._mark(one)

    async def _play(self) -> None:
        """Frame by frame, so that a clear stops what is playing within one."""
        begun, frames = time.monotonic(), 0
        while True:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
                begun, frames = time.monotonic(), 0
                continue
            one = self._waiting.popleft()
            if isinstance(one, dict):
                await self._mark(one)
                continue
            frame, rest = one[:_FRAME], one[_FRAME:]
            if rest:
                self._waiting.appendleft(rest)
            self._sound(frame)
            frames += len(frame)
            await asyncio.sleep(max(0.0, begun + frames / TELEPHONE_HZ - time.monotonic()))

    def _sound(self, frame: bytes) -> None:
        self.played += frame
        self._sounded_at = time.monotonic()
        if self._spoke_at is not None:
            self.delays_s.append(self._sounded_at - self._spoke_at)
            self._spoke_at = None

    async def _mark(self, mark: dict[str, Any]) -> None:
        self.marks += 1
        await self._send("mark", mark=mark)

    async def _send(self, event: str, **fields: Any) -> None:
        await self._socket.send_str(json.dumps({"event": event, "streamSid": self._stream, **fields}))


def _text(audio: bytes) -> str:
    return base64.b64encode(audio).decode()


__all__ = ["FRAME_MS", "SimulatedStream"]
