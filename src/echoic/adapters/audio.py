"""Telephone audio: the mu-law code of ITU-T G.711, and conversion between 8, 16 and 24 kHz. numpy only.

Both work on 16-bit mono samples. A `Resampler` is a stream: how what goes in is cut changes nothing of
what comes out, and nothing above half the lower rate folds back into what is heard.
"""

from __future__ import annotations

from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput, brief

Samples = NDArray[np.int16]
"""Shape (n,): mono, -32768 to 32767."""

TELEPHONE_HZ: Final = 8000
SILENCE: Final = b"\xff"
"""One sample of silence in mu-law: G.711 sends all ones for 0."""

_BIAS: Final = 0x84
_ZERO_CROSSINGS: Final = 32
"""Of the filter's sinc on either side: a transition of 630 Hz at 8 kHz, a delay of 4 ms."""
_CUTOFF: Final = 0.92
"""Of half the lower rate: the middle of the transition, which ends at half the rate. 3.4 kHz pass."""
_KAISER_BETA: Final = 8.0
"""Side lobes 80 dB down (Kaiser 1974): below the noise of the 8-bit code."""


def _decoding() -> Samples:
    code = ~np.arange(256, dtype=np.uint8)
    magnitude = (((code & 0x0F).astype(np.int32) << 3) + _BIAS << ((code & 0x70) >> 4)) - _BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _encoding() -> NDArray[np.uint8]:
    """By sample + 32768. G.711 codes 14 bits; the two lowest of 16 are dropped towards minus infinity."""
    value = np.arange(-32768, 32768, dtype=np.int32) >> 2
    magnitude = np.minimum(np.abs(value) + 33, 8191)
    segment = np.floor(np.log2(magnitude)).astype(np.int32) - 5
    sign = (value < 0).astype(np.int32) << 7
    code = sign | (segment << 4) | ((magnitude >> (segment + 1)) & 0x0F)
    return np.asarray(~code & 0xFF, np.uint8)


_DECODED: Final = _decoding()
_ENCODED: Final = _encoding()


def mulaw_decode(data: bytes) -> Samples:
    """Samples of `data`, one a byte."""
    return _DECODED[np.frombuffer(data, np.uint8)]


def mulaw_encode(samples: Samples) -> bytes:
    """`samples` in mu-law, one byte each."""
    return _ENCODED[samples.astype(np.int32) + 32768].tobytes()


def samples_of(pcm: bytes) -> Samples:
    """Samples of little-endian 16-bit PCM.

    Raises:
        InvalidInput: half a sample is missing.
    """
    if len(pcm) % 2:
        raise InvalidInput(f"16-bit audio has an even number of bytes, not {len(pcm)}")
    return np.frombuffer(pcm, "<i2").astype(np.int16)


def pcm_of(samples: Samples) -> bytes:
    """`samples` as little-endian 16-bit PCM."""
    return samples.astype("<i2").tobytes()


class Resampler:
    """A stream of samples at one rate, turned into one at another. Windowed sinc, linear phase.

    Args:
        from_hz: of what goes in.
        to_hz: of what comes out.

    Raises:
        InvalidInput: a rate that is no whole number above 0.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        if not (isinstance(from_hz, int) and isinstance(to_hz, int) and from_hz > 0 and to_hz > 0):
            raise InvalidInput(
                f"rates must be whole numbers of Hz above 0, not {brief(from_hz)} and {brief(to_hz)}"
            )
        common = gcd(from_hz, to_hz)
        self._up, self._down = to_hz // common, from_hz // common
        self.delay_s = 0.0 if self._same else _ZERO_CROSSINGS / min(from_hz, to_hz)
        """By how much what comes out is later than what went in."""
        self._taps = np.ones(1) if self._same else _lowpass(self._up, self._down)
        self._before = np.zeros(len(self._taps) - 1)
        self._skip = 0

    @property
    def _same(self) -> bool:
        return self._up == self._down

    def __call__(self, samples: Samples) -> Samples:
        """What `samples` add to the stream; may be empty."""
        if self._same:
            return samples
        spread = np.zeros(len(samples) * self._up)
        spread[:: self._up] = samples
        window = np.concatenate([self._before, spread])
        self._before = window[len(window) - len(self._before) :]
        if not len(spread):
            return np.zeros(0, np.int16)
        filtered = np.convolve(window, self._taps, "valid")[self._skip :: self._down]
        self._skip = (self._skip - len(spread)) % self._down
        return np.clip(np.rint(filtered), -32768, 32767).astype(np.int16)

    def flush(self) -> Samples:
        """What the delay still holds back, once no more comes."""
        return self(np.zeros(-(-len(self._before) // (2 * self._up)), np.int16))


def _lowpass(up: int, down: int) -> NDArray[np.float64]:
    factor = max(up, down)
    place = np.arange(-_ZERO_CROSSINGS * factor, _ZERO_CROSSINGS * factor + 1)
    taps = np.sinc(place / factor * _CUTOFF) * np.kaiser(len(place), _KAISER_BETA)
    return np.asarray(taps / taps.sum() * up, np.float64)
