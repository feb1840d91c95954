"""Which of an agent's words were heard when its voice was cut off. Knows no clock and no provider.

A transcript comes beside the audio, ahead of it or behind it, in pieces that have nothing to do with its
chunks. When its words sound is worked out in `timing`; providers that give the times of words are believed
instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from echoic.session.speech_timing import DEFAULT_MS_PER_UNIT, PAUSE_CHARACTERS, Arrivals, Timed, timed
from echoic.session.speech_timing import lead_of as _lead_of

CutSource = Literal["whole", "timestamps", "estimated"]
"""Where the cut comes from: nothing was cut, the provider told when words sound, or it was estimated."""

SHARE: Final = 0.5
"""Of a word that must have sounded for it to count as heard."""
PAUSE_MS: Final = 120
"""Of silence that parts words. Shorter ones are inside words too: before a "t" or a "k"."""
_FRAME_MS: Final = 10
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUIET: Final = 328
"""Of 32,767: below one hundredth of full scale nobody speaks."""


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
    marks: list[float] = field(default_factory=list)
    """The milliseconds of audio there were after each chunk."""
    stamps: list[Stamp] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    """Silences of `PAUSE_MS` and more, in milliseconds from the start, where the audio was listened to."""
    lead_ms: float | None = None
    """What `lead_of` found, once it did: it is asked again for each later utterance of the call."""
    lead_is_known: bool = False
    _listened_ms: int = 0
    _quiet_since_ms: int | None = None
    _rest: bytes = b""

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
        self.marks.append(self.audio_ms)

    def listened(self, pcm: bytes) -> None:
        """That is what it sounds like: for its pauses, which lie between words. Some 20 µs a chunk."""
        size = 2 * self.rate_hz * _FRAME_MS // 1000
        pcm = self._rest + pcm
        whole = len(pcm) // size * size
        self._rest = pcm[whole:]
        frames = np.frombuffer(pcm[:whole], "<i2").reshape(-1, size // 2)
        quiet = (frames.max(axis=1, initial=0) < _QUIET) & (frames.min(axis=1, initial=0) > -_QUIET)
        for is_quiet in quiet.tolist():
            if is_quiet and self._quiet_since_ms is None:
                self._quiet_since_ms = self._listened_ms
            elif not is_quiet:
                self._note_pause()
                self._quiet_since_ms = None
            self._listened_ms += _FRAME_MS

    def _note_pause(self) -> None:
        since = self._quiet_since_ms
        if since is not None and self._listened_ms - since >= PAUSE_MS:
            self.pauses.append((float(since), float(self._listened_ms)))

    def arrived(self) -> Arrivals:
        """How it arrived, as far as it did."""
        pauses = list(self.pauses)
        since = self._quiet_since_ms
        if since is not None and self._listened_ms - since >= PAUSE_MS:
            pauses.append((float(since), max(self.audio_ms, float(self._listened_ms))))
        return Arrivals(self.text, self.points, self.marks, pauses, self.audio_ms, self.complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An utterance divided where it was cut off."""

    heard: str
    unheard: str
    source: CutSource


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
    words = _by_stamps(text, trace.stamps) if trace.stamps else timed(trace.arrived(), lead_ms)
    heard_to = 0
    for word in words:
        if played_ms < word.start_ms + SHARE * (word.end_ms - word.start_ms):
            break
        heard_to = word.end
    source: CutSource = "timestamps" if trace.stamps else "estimated"
    return Heard(heard=text[:heard_to], unheard=text[heard_to:], source=source)


def lead_of(trace: SpeechTrace) -> float | None:
    """By how many milliseconds text ran ahead of audio in a whole utterance; None where it cannot be told."""
    if not trace.complete:
        return None
    if not trace.lead_is_known:
        trace.lead_ms, trace.lead_is_known = _lead_of(trace.arrived()), True
    return trace.lead_ms


def _by_stamps(text: str, stamps: Sequence[Stamp]) -> list[Timed]:
    """The words of `text` as the provider timed them; what it did not time sounds with what comes before."""
    timed: list[Timed] = []
    place = 0
    for stamp in stamps:
        found = text.find(stamp.text.strip(), place)
        if found < 0:
            continue
        place = found + len(stamp.text.strip())
        timed.append(Timed(place, stamp.start_ms, stamp.end_ms))
    if timed and place < len(text) and not text[place:].strip(" .,;:?!…\"'"):
        timed[-1] = Timed(len(text), timed[-1].start_ms, timed[-1].end_ms)
    return timed


# -- speech that somebody else makes of text: by the words they report, or by the pace of speech


def heard_part(said: str, until: str) -> str:
    """The beginning of `said` that was heard, where `until` is what speech output reports it had come to.

    The report may begin later than `said` (with the last utterance), and differ in blanks, case and signs.
    Its words are looked for in order; what cannot be found was not heard.
    """
    words = [(match.group().casefold(), match.end()) for match in _WORD.finditer(said)]
    wanted = [match.group().casefold() for match in _WORD.finditer(until)]
    if not wanted or not words:
        return ""
    names = [word for word, _ in words]
    start = next((at for at in range(len(names)) if names[at : at + len(wanted)] == wanted), None)
    if start is not None:
        last = start + len(wanted) - 1
    else:
        # the last word may be cut in the middle, or written otherwise: as far as both agree from a start
        last = (
            max(_agreeing(names, wanted, at) for at in range(len(names)) if names[at] == wanted[0])
            if (wanted[0] in names)
            else -1
        )
    return _with_signs(said, words[last][1]) if last >= 0 else ""


def says(said: str, until: str) -> bool:
    """Whether the words of `until` stand in `said`, one behind the other."""
    names = [match.group().casefold() for match in _WORD.finditer(said)]
    wanted = [match.group().casefold() for match in _WORD.finditer(until)]
    return bool(wanted) and any(names[at : at + len(wanted)] == wanted for at in range(len(names)))


def _agreeing(names: Sequence[str], wanted: Sequence[str], start: int) -> int:
    """The place in `names` of the last word that both have, going on from `start`."""
    count = 0
    for name, want in zip(names[start:], wanted, strict=False):
        if name != want:
            break
        count += 1
    return start + count - 1


def _with_signs(said: str, end: int) -> str:
    """`said` up to `end`, with the signs that belong to its last word."""
    while end < len(said) and not said[end].isspace() and not said[end].isalnum():
        end += 1
    return said[:end]


def estimated_part(said: str, seconds: float, characters_per_s: float) -> str:
    """The beginning of `said` that can have been spoken in `seconds`, in whole words."""
    room = int(max(0.0, seconds) * characters_per_s)
    if room >= len(said):
        return said
    return said[: said.rfind(" ", 0, room + 1) + 1].rstrip() if " " in said[: room + 1] else ""


__all__ = [
    "DEFAULT_MS_PER_UNIT",
    "PAUSE_CHARACTERS",
    "PAUSE_MS",
    "SHARE",
    "CutSource",
    "Heard",
    "SpeechTrace",
    "Stamp",
    "divide",
    "estimated_part",
    "heard_part",
    "lead_of",
    "says",
]
