"""What a call plays to its caller, and the events about it. A WebSocket session's client plays for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from echoic_loopback.openai_realtime.responses import Response
from echoic_loopback.realtime.audio import pcm_ms

RATE_HZ = 24_000


class Speaker(Protocol):
    """Where a call's audio goes."""

    def play(self, pcm: bytes) -> None:
        """Plays PCM16 at 24 kHz, after what it plays already."""

    def stop(self) -> None:
        """Plays nothing of what it was given."""


class Playback:
    """The output audio buffer of a call: it starts, and stops when its audio would have been played."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self._emit = emit
        self.speaker: Speaker | None = None
        self._response_id = ""
        self._until_s = 0.0
        self._items: dict[str, float] = {}
        """Milliseconds of each item that went out since it began to play."""
        self._timer: asyncio.TimerHandle | None = None

    def play(self, pcm: bytes, response_id: str, item_id: str) -> None:
        """Plays more of an item of a response."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._response_id, self._until_s = response_id, loop.time()
            self._items = {}
            self._emit("output_audio_buffer.started", response_id=response_id)
        else:
            self._timer.cancel()
        lasts_ms = pcm_ms(len(pcm), RATE_HZ)
        self._items[item_id] = self._items.get(item_id, 0) + lasts_ms
        self._until_s += lasts_ms / 1000
        self._timer = loop.call_at(self._until_s, self._end, "stopped")
        if self.speaker is not None:
            self.speaker.play(pcm)

    def unplayed(self) -> list[tuple[str, int]]:
        """The items that were not played to their end, and the millisecond each has come to."""
        if self._timer is None:
            return []
        left_ms = 1000 * (self._until_s - asyncio.get_running_loop().time())
        cut: list[tuple[str, int]] = []
        for item_id, lasts_ms in reversed(self._items.items()):
            if left_ms <= 0:
                break
            cut.append((item_id, max(0, int(lasts_ms - left_ms))))
            left_ms -= lasts_ms
        return cut[::-1]

    def clear(self) -> None:
        """Stops at once; says so where something was playing."""
        if self.speaker is not None:
            self.speaker.stop()
        self._end("cleared")

    async def close(self) -> None:
        """Lets go of its timer."""
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, how: str) -> None:
        if self._timer is not None:
            self._stop_timer()
            self._emit(f"output_audio_buffer.{how}", response_id=self._response_id)


class ResponseVoice:
    """A message of a response as somewhere speech goes."""

    def __init__(self, response: Response, playback: Playback | None) -> None:
        self._response = response
        self._playback = playback

    @property
    def over(self) -> bool:
        return self._response.over

    def write(self, text: str) -> None:
        self._response.write(text)

    def sound(self, pcm: bytes) -> None:
        if self._response.is_audio:
            if self._playback is not None:
                self._playback.play(pcm, self._response.id, self._response.open_item)
            self._response.sound(pcm)

    def generated(self) -> None:
        """Nothing is told; the message ends when the steps that were due are done."""


__all__ = ["Playback", "ResponseVoice", "Speaker"]
