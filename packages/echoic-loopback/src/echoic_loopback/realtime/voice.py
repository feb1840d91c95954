"""When somebody speaks, by loudness: the stand-ins' server-side voice detection.

A threshold on frames, as simple as can be: the audio of a test is tones, speech or silence. It does not know
speech from noise, which the providers' detectors do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from echoic_loopback.realtime.audio import pcm_bytes

FRAME_MS = 10
DEFAULT_SILENCE_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceEdge:
    """Speech starting or stopping, in milliseconds from the first audio fed."""

    kind: Literal["start", "stop"]
    at_ms: int


@dataclass(slots=True, kw_only=True)
class VoiceDetector:
    """Fed with PCM16 of any chunk size; tells where speech starts and where it stopped."""

    rate_hz: int
    silence_ms: int = DEFAULT_SILENCE_MS
    """Of quiet that ends an utterance."""
    level: float = 0.01
    """Of full scale, as root mean square, from where a frame counts as voice."""
    _rest: bytes = field(default=b"", init=False)
    _at_ms: int = field(default=0, init=False)
    _last_voice_ms: int | None = field(default=None, init=False)

    @property
    def speaking(self) -> bool:
        return self._last_voice_ms is not None

    def feed(self, pcm: bytes) -> list[VoiceEdge]:
        """The edges that `pcm` brings, in order. A stop is dated to the end of the last loud frame."""
        size = pcm_bytes(FRAME_MS, self.rate_hz)
        self._rest += pcm
        whole = len(self._rest) // size
        frames, self._rest = self._rest[: whole * size], self._rest[whole * size :]
        return [edge for level in _levels(frames, whole) for edge in self._frame(level)]

    def _frame(self, level: float) -> list[VoiceEdge]:
        start_ms, self._at_ms = self._at_ms, self._at_ms + FRAME_MS
        if level >= self.level:
            started = self._last_voice_ms is None
            self._last_voice_ms = self._at_ms
            return [VoiceEdge(kind="start", at_ms=start_ms)] if started else []
        if self._last_voice_ms is not None and self._at_ms - self._last_voice_ms >= self.silence_ms:
            stopped_ms, self._last_voice_ms = self._last_voice_ms, None
            return [VoiceEdge(kind="stop", at_ms=stopped_ms)]
        return []


def _levels(frames: bytes, count: int) -> list[float]:
    """The root mean square of each of `count` frames, of full scale."""
    if not count:
        return []
    samples = np.frombuffer(frames, dtype="<i2").astype(np.float64).reshape(count, -1) / 32768
    levels: list[float] = np.sqrt((samples**2).mean(axis=1)).tolist()
    return levels


__all__ = ["DEFAULT_SILENCE_MS", "VoiceDetector", "VoiceEdge"]
