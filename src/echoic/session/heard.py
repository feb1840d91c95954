"""Which of an agent's words were heard when its voice was cut off. Pure: no clock, no audio, no provider.

A transcript comes beside the audio, ahead of it or behind it, in pieces that have nothing to do with its
chunks. So the moments at which words sound are worked out from two witnesses: how text and audio arrived
together, and how long the words are. Providers that give the times of words are believed instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

CutSource = Literal["whole", "timestamps", "estimated"]
"""Where the cut comes from: nothing was cut, the provider told when words sound, or it was estimated."""

SHARE: Final = 0.5
"""Of a word that must have sounded for it to count as heard."""
PAUSE_CHARACTERS: Final = 3
"""What a word's end is worth in letters, where length stands for time."""
DEFAULT_MS_PER_UNIT: Final = 45.0
"""Of speech for a letter, before any utterance of the call has told: 150 words a minute, 9 units a word."""
_MIN_POINTS: Final = 3
_MIN_SPAN: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """When a provider says that a piece of text sounds."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class SpeechTrace:
    """How text and audio of one utterance arrived."""

    rate_hz: int
    text: str = ""
    audio_bytes: int = 0
    """PCM16 generated so far, played or not."""
    complete: bool = False
    """Whether all of it was generated."""
    points: list[tuple[int, float]] = field(default_factory=list)
    """Each time text came: how many characters were there before, and the milliseconds of audio by then."""
    stamps: list[Stamp] = field(default_factory=list)

    @property
    def audio_ms(self) -> float:
        """Of what was generated so far."""
        return self.audio_bytes * 1000 / (2 * self.rate_hz)

    def wrote(self, text: str) -> None:
        """The transcript now is `text`."""
        if text == self.text:
            return
        before = len(self.text) if text.startswith(self.text) else 0
        if before == 0 and self.text:
            self.points.clear()  # it was revised: what was known about its timing is about other words
        self.points.append((before, self.audio_ms))
        self.text = text

    def sounded(self, size: int) -> None:
        """`size` more bytes of audio were generated."""
        self.audio_bytes += size


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An utterance divided where it was cut off."""

    heard: str
    unheard: str
    source: CutSource


@dataclass(frozen=True, slots=True)
class _Timed:
    end: int
    """Characters up to the end of this word."""
    start_ms: float
    end_ms: float


def divide(trace: SpeechTrace, played_ms: float, *, lead_ms: float | None = None) -> Heard:
    """What of an utterance was heard when `played_ms` of its audio had been played.

    Args:
        trace: how it arrived.
        played_ms: from the start of its audio.
        lead_ms: by how much this provider's text ran ahead of its audio in earlier utterances of the call,
            for one whose end never came.
    """
    text = trace.text
    if trace.complete and played_ms >= trace.audio_ms:
        return Heard(heard=text, unheard="", source="whole")
    timed = _by_stamps(text, trace.stamps) if trace.stamps else _estimated(trace, lead_ms)
    heard_to = 0
    for word in timed:
        if played_ms < word.start_ms + SHARE * (word.end_ms - word.start_ms):
            break
        heard_to = word.end
    source: CutSource = "timestamps" if trace.stamps else "estimated"
    return Heard(heard=text[:heard_to], unheard=text[heard_to:], source=source)


def lead_of(trace: SpeechTrace) -> float | None:
    """By how many milliseconds text ran ahead of audio in a whole utterance; None where it cannot be told."""
    return _shift(trace, _per_unit(trace)) if trace.complete else None


def _estimated(trace: SpeechTrace, lead_ms: float | None) -> list[_Timed]:
    per_unit = _per_unit(trace)
    shift = _shift(trace, per_unit) if trace.complete else lead_ms
    anchors = [(0, 0.0)]
    if shift is not None and _tells(trace):
        for characters, at_ms in trace.points[1:]:
            moved = min(max(at_ms + shift, anchors[-1][1]), _length_ms(trace, per_unit))
            anchors.append((characters, moved))
    anchors.append((len(trace.text), max(_length_ms(trace, per_unit), anchors[-1][1])))
    return _between(trace.text, anchors)


def _per_unit(trace: SpeechTrace) -> float:
    """Milliseconds for a unit of text."""
    units = _units(trace.text)
    return trace.audio_ms / units if trace.complete and units else DEFAULT_MS_PER_UNIT


def _length_ms(trace: SpeechTrace, per_unit: float) -> float:
    """How long the text known so far sounds: as long as its audio, where all of that is there."""
    return trace.audio_ms if trace.complete else max(trace.audio_ms, _units(trace.text) * per_unit)


def _tells(trace: SpeechTrace) -> bool:
    """Whether text came along with the audio, and not all of it at one end."""
    times = [at_ms for _, at_ms in trace.points]
    return len(times) >= _MIN_POINTS and times[-1] - times[0] >= _MIN_SPAN * trace.audio_ms > 0


def _shift(trace: SpeechTrace, per_unit: float) -> float | None:
    """How far, on the average, words sound behind the arrival of their text. Negative: text lags."""
    if not _tells(trace):
        return None
    late = [_units(trace.text[:characters]) * per_unit - at_ms for characters, at_ms in trace.points[1:]]
    return sum(late) / len(late)


def _between(text: str, anchors: Sequence[tuple[int, float]]) -> list[_Timed]:
    """Words between known places in time, by their length."""
    timed: list[_Timed] = []
    places = [match.end() for match in re.finditer(r"\s*\S+", text)]
    start_ms = 0.0
    for end in places:
        end_ms = _at(text, end, anchors)
        timed.append(_Timed(end, start_ms, end_ms))
        start_ms = end_ms
    return timed


def _at(text: str, place: int, anchors: Sequence[tuple[int, float]]) -> float:
    """When the text up to `place` has sounded."""
    after = next((number for number, (at, _) in enumerate(anchors) if at >= place), len(anchors) - 1)
    if after == 0:
        return anchors[0][1]
    (low, from_ms), (high, to_ms) = anchors[after - 1], anchors[after]
    whole = _units(text[low:high])
    return from_ms + (to_ms - from_ms) * (_units(text[low:place]) / whole if whole else 1.0)


def _units(text: str) -> int:
    """The length of a text as it is spoken: letters, and something for each word's end."""
    words = text.split()
    return sum(map(len, words)) + PAUSE_CHARACTERS * len(words)


def _by_stamps(text: str, stamps: Sequence[Stamp]) -> list[_Timed]:
    """The words of `text` as the provider timed them; what it did not time sounds with what comes before."""
    timed: list[_Timed] = []
    place = 0
    for stamp in stamps:
        found = text.find(stamp.text.strip(), place)
        if found < 0:
            continue
        place = found + len(stamp.text.strip())
        timed.append(_Timed(place, stamp.start_ms, stamp.end_ms))
    if timed and place < len(text) and not text[place:].strip(" .,;:?!…\"'"):
        timed[-1] = _Timed(len(text), timed[-1].start_ms, timed[-1].end_ms)
    return timed


__all__ = ["DEFAULT_MS_PER_UNIT", "SHARE", "CutSource", "Heard", "SpeechTrace", "Stamp", "divide", "lead_of"]
