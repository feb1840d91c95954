"""Speech whose words are known to the millisecond: every word is a tone of its own.

From such audio it can be computed exactly which words were played up to any offset (`Speech.heard`), and from
audio that was recorded at a loudspeaker which words it contains (`words_heard`), also when it was resampled
or compressed on the way. It is not a voice: a recogniser hears nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

SAMPLE_BYTES = 2
"""Of PCM16, the only encoding here: little-endian, mono."""
LOWEST_HZ = 400.0
STEP_HZ = 30.0
TONES = 120
"""Tones before they repeat: 400 to 3,970 Hz, inside what a telephone line carries."""
LEVEL = 0.3
"""Of full scale; loud enough for any voice detector, quiet enough never to clip when mixed."""
FADE_MS = 5
"""At both ends of a word, so that a cut between words does not click."""
WINDOW_MS = 40
"""Of the decoder. 1/WINDOW is 25 Hz, just under the distance of two tones."""
HOP_MS = 10
NOISE_FLOOR = 0.02
"""Of full scale, as root mean square; a window whose middle is below it is silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word and when it sounds, in milliseconds from the start of its speech."""

    text: str
    """With the space before it, so that joining all gives the text back."""
    start_ms: int
    end_ms: int
    tone_hz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Audio and the words in it."""

    words: tuple[Word, ...]
    rate_hz: int
    pcm: bytes
    """PCM16, little-endian, mono, at `rate_hz`."""

    @property
    def text(self) -> str:
        return "".join(word.text for word in self.words)

    @property
    def duration_ms(self) -> int:
        return pcm_ms(len(self.pcm), self.rate_hz)

    def between(self, start_ms: int, end_ms: int) -> bytes:
        """The audio from `start_ms` to `end_ms`, shorter where the speech is."""
        return self.pcm[pcm_bytes(start_ms, self.rate_hz) : pcm_bytes(end_ms, self.rate_hz)]

    def starting(self, start_ms: int, end_ms: int) -> tuple[Word, ...]:
        """The words that start in that time."""
        return tuple(word for word in self.words if start_ms <= word.start_ms < end_ms)

    def heard(self, until_ms: float, *, share: float = 0.5) -> str:
        """The words of which at least `share` was played when playback stopped at `until_ms`."""
        return "".join(
            word.text
            for word in self.words
            if until_ms >= word.start_ms + share * (word.end_ms - word.start_ms)
        )


def speech(
    text: str, *, rate_hz: int = 24_000, word_ms: int | Sequence[int] = 200, gap_ms: int = 0
) -> Speech:
    """`text` as tones, one a word.

    Args:
        text: words with white space between them; it comes back exactly as the words' texts.
        rate_hz: of the PCM16.
        word_ms: how long each word sounds, or one duration for each.
        gap_ms: silence after each word.

    Raises:
        ValueError: not as many durations as words, or a duration under 20 ms, too short to be told apart.
    """
    pieces = re.findall(r"\s*\S+", text)
    durations = [word_ms] * len(pieces) if isinstance(word_ms, int) else list(word_ms)
    if len(durations) != len(pieces) or any(ms < 2 * HOP_MS for ms in durations):
        raise ValueError(
            f"{len(pieces)} words need {len(pieces)} durations of at least 20 ms, not {durations!r}"
        )
    words: list[Word] = []
    audio: list[bytes] = []
    at_ms = 0
    for index, (piece, lasts_ms) in enumerate(zip(pieces, durations, strict=True)):
        hz = tone_of(index)
        words.append(Word(text=piece, start_ms=at_ms, end_ms=at_ms + lasts_ms, tone_hz=hz))
        audio += [_tone(hz, lasts_ms, rate_hz), silence(gap_ms, rate_hz)]
        at_ms += lasts_ms + gap_ms
    return Speech(words=tuple(words), rate_hz=rate_hz, pcm=b"".join(audio))


def tone_of(index: int) -> float:
    """Frequency of the word at `index`, in Hz."""
    return LOWEST_HZ + STEP_HZ * (index % TONES)


def silence(ms: int, rate_hz: int) -> bytes:
    """Digital silence."""
    return bytes(pcm_bytes(ms, rate_hz))


def frames(pcm: bytes, *, rate_hz: int, frame_ms: int = 20) -> Iterator[bytes]:
    """`pcm` in frames as a microphone delivers them; the last may be shorter."""
    size = pcm_bytes(frame_ms, rate_hz)
    for start in range(0, len(pcm), size):
        yield pcm[start : start + size]


def pcm_bytes(ms: int, rate_hz: int) -> int:
    """Bytes of `ms` milliseconds of PCM16."""
    return rate_hz * ms // 1000 * SAMPLE_BYTES


def pcm_ms(size: int, rate_hz: int) -> int:
    """Milliseconds, rounded down, that `size` bytes of PCM16 last."""
    return size * 1000 // (rate_hz * SAMPLE_BYTES)


def words_heard(pcm: bytes, spoken: Speech, *, rate_hz: int | None = None, share: float = 0.5) -> list[int]:
    """Indices of the words of `spoken` that are to be heard in `pcm`, in the order they sound.

    Where speeches repeat a tone (after 120 words) the word after the last one heard is meant.

    Args:
        pcm: PCM16 as it was played or recorded; it may start and end anywhere.
        spoken: what may be in it.
        rate_hz: of `pcm`, where it is not that of `spoken`.
        share: how much of a word must sound for it to count.
    """
    rate = rate_hz or spoken.rate_hz
    found: list[int] = []
    for tone, sounds_ms in _tones(pcm, rate, min(TONES, len(spoken.words))):
        after = found[-1] + 1 if found else 0
        index = tone + (after - tone + TONES - 1) // TONES * TONES if tone < after else tone
        if index >= len(spoken.words):
            continue
        word = spoken.words[index]
        if sounds_ms >= share * (word.end_ms - word.start_ms):
            found.append(index)
    return found


def _tones(pcm: bytes, rate_hz: int, count: int) -> list[tuple[int, int]]:
    """Tones in order of sounding, each with the milliseconds it was the loudest."""
    samples = np.frombuffer(pcm[: len(pcm) // 2 * 2], dtype="<i2").astype(np.float64) / 32768
    size, hop = rate_hz * WINDOW_MS // 1000, rate_hz * HOP_MS // 1000
    # Half a window of silence on both sides: each hop is then judged by the window around its middle.
    samples = np.pad(samples, size // 2)
    if count == 0 or len(samples) <= size:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop]
    # Loud in its middle: of a word that was cut, a window at the cut holds too little to tell its tone by.
    middle = slice((size - hop) // 2, (size + hop) // 2)
    loud = np.sqrt(np.mean(windows[:, middle] ** 2, axis=1)) > NOISE_FLOOR
    scores = np.abs((windows * np.hanning(size)) @ _probes(size, rate_hz, count))
    runs: list[tuple[int, int]] = []
    for tone, heard in zip(np.argmax(scores, axis=1).tolist(), loud.tolist(), strict=True):
        if not heard:
            continue
        if runs and runs[-1][0] == tone:
            runs[-1] = (tone, runs[-1][1] + HOP_MS)
        else:
            runs.append((tone, HOP_MS))
    return runs


@lru_cache(maxsize=16)
def _probes(size: int, rate_hz: int, count: int) -> npt.NDArray[np.complex128]:
    """`[size, count]` complex exponentials, one a tone: their product with a window is its Fourier sum
    there."""
    hz = np.array([tone_of(index) for index in range(count)])
    return np.exp(-2j * np.pi * np.outer(np.arange(size) / rate_hz, hz))


@lru_cache(maxsize=1024)
def _tone(hz: float, ms: int, rate_hz: int) -> bytes:
    time_s = np.arange(rate_hz * ms // 1000) / rate_hz
    wave = LEVEL * np.sin(2 * np.pi * hz * time_s)
    fade = np.linspace(0, 1, rate_hz * FADE_MS // 1000)
    wave[: len(fade)] *= fade
    wave[-len(fade) :] *= fade[::-1]
    return (wave * 32767).astype("<i2").tobytes()


__all__ = ["Speech", "Word", "frames", "pcm_bytes", "pcm_ms", "silence", "speech", "tone_of", "words_heard"]
