"""One socket of a page: what is sent on it, in order, and how much audio went each way.

It knows no web framework: `Socket` is all it needs of one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final, Protocol

from echoic.adapters.browser.wire import MAX_AUDIO_BYTES, MAX_TEXT_BYTES, written
from echoic.errors import InvalidInput

WAITING: Final = 1000
"""Messages that may wait for a page that does not read; more, and it is let go."""
_CLOSE_S: Final = 2.0


class Socket(Protocol):
    """A WebSocket that was accepted."""

    async def receive(self) -> str | bytes | None:
        """The next message; None: it is gone, as often as it is asked."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send one. May be called while another is being sent.

        Raises:
            ConnectionError: it is gone.
        """
        ...

    async def close(self, code: int = 1000) -> None:
        """End it; nothing happens where it is gone."""
        ...


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


class Line:
    """One socket of a call. Use `run` beside whatever speaks on it."""

    def __init__(self, socket: Socket) -> None:
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
        self.moved = asyncio.Event()
        """Set when the page played more; whoever waits for it clears it."""

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

    async def hear(self) -> str | bytes | None:
        """The next message; None: the socket is gone.

        Raises:
            InvalidInput: it is larger than any that is expected.
        """
        message = await self._socket.receive()
        if message is None:
            return None
        most = MAX_AUDIO_BYTES if isinstance(message, bytes) else MAX_TEXT_BYTES
        if len(message) > most:
            raise InvalidInput(f"a message has {most} bytes at most; send audio in pieces of 20 ms")
        return message

    async def run(self) -> None:
        """Send what is said, until the socket ends or is ended."""
        try:
            while True:
                message = await self._waiting.get()
                if isinstance(message, int):
                    await self._close(message)
                    return
                await self._socket.send(message)
        except ConnectionError:
            return
        finally:
            self._gone.set()

    def _put(self, message: str | bytes | int) -> None:
        if self._waiting.qsize() < WAITING:
            self._waiting.put_nowait(message)
        else:
            self._gone.set()

    async def _close(self, code: int) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(code)


__all__ = ["Allowance", "Line", "Socket"]
