"""One socket of a page: what is sent on it, in order, what comes in, and how much audio went each way."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import Final, Literal

from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.realtime import RealtimeError
from starlette.websockets import WebSocket, WebSocketDisconnect

from echoic.adapters.browser.wire import (
    MAX_AUDIO_BYTES,
    MAX_TEXT_BYTES,
    written,
)
from echoic.errors import InvalidInput, brief

WAITING: Final = 1000
"""Messages that may wait for a page that does not read; more, and it is let go."""
_CLOSE_S: Final = 2.0
_GONE: Final = (WebSocketDisconnect, RuntimeError, OSError)
"""What Starlette raises where the page is gone."""


class Allowance:
    """How much audio a microphone may have brought by now: not much more than time has passed.

    Args:
        rate_hz: of PCM16.
        pace: how much faster than time.
        burst_s: what may come at once, as after a bad moment of the network.
    """

    def __init__(self, rate_hz: int, *, pace: float, burst_s: float) -> None:
        self._bytes_per_s = 2 * rate_hz * pace
        self._most = 2 * rate_hz * burst_s
        self._left = self._most
        self._at_s = time.monotonic()

    def take(self, size: int) -> bool:
        """Whether `size` bytes may come now."""
        now_s = time.monotonic()
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._bytes_per_s)
        self._at_s = now_s
        self._left -= size
        return self._left >= 0


class CallSocket:
    """One socket of a call, accepted. Use `run` beside whatever speaks on it."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._waiting: asyncio.Queue[str | bytes | int] = asyncio.Queue()
        self._gone = asyncio.Event()
        self.sent_bytes = 0
        """Of audio."""
        self.played_bytes = 0
        """Of it, as the page said."""
        self.offset = 0
        """What earlier sockets of the call had played."""
        self.ending = False
        """Whether it is closed once all that waits was sent."""

    @property
    def gone(self) -> bool:
        """Whether nothing more can be said on it."""
        return self._gone.is_set()

    def say(self, kind: str, **fields: object) -> None:
        """Put a message behind those that wait."""
        self._put(written(kind, **fields))

    def sound(self, pcm: bytes) -> None:
        """The same for audio."""
        self.sent_bytes += len(pcm)
        self._put(pcm)

    def flush(self) -> None:
        """Have the page drop what it has not played; what was not even sent is not sent."""
        kept: list[str | bytes | int] = []
        while not self._waiting.empty():
            message = self._waiting.get_nowait()
            if isinstance(message, bytes):
                self.sent_bytes -= len(message)
            else:
                kept.append(message)
        for message in kept:
            self._waiting.put_nowait(message)
        self.say("flush")

    def end(self, code: int = 1000) -> None:
        """Close it once all that waits was sent."""
        self.ending = True
        self._put(code)

    async def wait_gone(self) -> None:
        """Wait until nothing more can be said on it."""
        await self._gone.wait()

    async def receive(self) -> str | bytes | None:
        """The next message; None: the socket is gone.

        Raises:
            InvalidInput: it is larger than any that is expected.
        """
        try:
            received = await self._socket.receive()
        except RuntimeError:  # it was gone before
            return None
        if received["type"] == "websocket.disconnect":
            return None
        text = received.get("text")
        message: str | bytes = text if text is not None else received.get("bytes", b"")
        most = MAX_AUDIO_BYTES if isinstance(message, bytes) else MAX_TEXT_BYTES
        if len(message) > most:
            raise InvalidInput(f"a message may have at most {most} bytes; send audio in frames of 20 ms")
        return message

    async def run(self) -> None:
        """Send what is said, until the socket ends or is ended."""
        try:
            while True:
                message = await self._waiting.get()
                if isinstance(message, int):
                    await self._close(message)
                    return
                if isinstance(message, str):
                    await self._socket.send_text(message)
                else:
                    await self._socket.send_bytes(message)
        except _GONE:
            return
        finally:
            self._gone.set()

    def _put(self, message: str | bytes | int) -> None:
        if self._waiting.qsize() < WAITING:
            self._waiting.put_nowait(message)
        else:
            self._gone.set()

    async def _close(self, code: int) -> None:
        with contextlib.suppress(TimeoutError, *_GONE):
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(code)


Transport = Literal["websocket", "webrtc"]
"""websocket: audio goes through this process. webrtc: between page and provider, steered from beside."""
FAILED: Final = (RealtimeError, ModelAPIError, UserError)
"""How PydanticAI says that a model could not be reached, or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """Times and measures.

    Raises:
        InvalidInput: one that leaves no time, or lets no audio pass.
    """

    grace_s: float = 20.0
    """How long a call waits for its caller to come back."""
    ticket_s: float = 30.0
    """How long a ticket is good."""
    resume_within_s: float = 3600.0
    """How old the last sign of a call may be for it to be resumed."""
    check_s: float = 15.0
    """How often it is seen whether a caller's identity is still good."""
    ahead_ms: int = 1000
    """Of audio at most on its way to the page: enough for a bad moment, and little to throw away."""
    pace: float = 1.25
    """How much faster than time a microphone may be."""
    burst_s: float = 15.0
    """Of audio that may come at once, as after a bad moment of the network."""

    def __post_init__(self) -> None:
        for name in ("grace_s", "ticket_s", "resume_within_s", "check_s", "ahead_ms", "burst_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0, not {brief(getattr(self, name))}")
        if not self.pace >= 1:
            raise InvalidInput(
                f"pace must be at least 1, not {brief(self.pace)}: a microphone sends in real time"
            )
