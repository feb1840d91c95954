"""Speech alignment: which of an agent's words were heard when its audio was cut. No clock, no provider.

A transcript arrives ahead of the audio or behind it, in pieces that do not match the audio chunks. When each
word is spoken is estimated from its length and the pauses; if a provider sends word times, they are used
instead.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

PAUSE_CHARACTERS: Final = 3
"""Length of the gap between two words, in letters, when time is estimated from length."""
COMMA_CHARACTERS: Final = 4
"""Additional length of a comma or full stop, when the audio's pauses are not known."""
DEFAULT_MS_PER_UNIT: Final = 45.0
"""Speaking time of a letter before anything is measured: 150 words a minute, 9 units a word."""
LEADS: Final = range(-3, 9)
"""By how many words a text may be ahead of its audio (negative: behind) for this to be recognised."""
_SPREAD: Final = 0.25
"""Standard deviation of a word's duration, as a share of what its length predicts."""
_SPREAD_MS: Final = 70.0
"""The part of that deviation which does not depend on length."""
_EVEN_SPREAD: Final = 3.46
"""Root of 12: a span divided by it is the standard deviation of a moment anywhere in the span."""
_UNSURE_RATE: Final = 0.3
"""Standard deviation of a speaker's rate, as a share of `DEFAULT_MS_PER_UNIT`."""
_WIDE_MS: Final = 1000.0
"""Assumed width of a window that has no end yet."""
_ROUNDING_MS: Final = 0.5
_COMMA_WORDS: Final = 1.5
"""A word after a comma or full stop counts as this many words nearer to a pause."""
_SWEEPS: Final = 24
_FAR: Final = 9.0
"""Cap on the squared distance of one arrival, so that an outlier does not decide for all."""
_UNTOLD: Final = 0.7
_UNTOLD_COST: Final = 3.0
"""Cost of assuming that arrivals carry no timing, for each arrival and once: as high as a bad fit."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How one utterance arrived. Times are milliseconds of its audio."""

    text: str
    points: Sequence[tuple[int, float]]
    """For each piece of text, the characters and the milliseconds of audio before it."""
    marks: Sequence[float]
    """The milliseconds of audio after each chunk."""
    pauses: Sequence[tuple[float, float]]
    """Start and end of each silence, in order."""
    audio_ms: float
    complete: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """When one word sounds."""

    end: int
    """Position in the text where the word ends, in characters."""
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class _Window:
    """The time in which a piece of text arrived: from `low`, and before `high`."""

    word: int
    """The first word that arrived in this window or later."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """A hypothesis of how the text's arrival relates to its audio."""

    cost: float
    """Roughly twice the negative log likelihood."""
    starts: list[float]
    """Expected start of each word and end of the last one, arrivals not considered."""
    lead: int = 0
    """Words by which the text was ahead of the audio."""
    shift_ms: float = 0.0
    """Time by which the text was ahead of the audio."""
    told: bool = True
    """Whether the arrivals carry timing information."""


@dataclass(frozen=True, slots=True)
class _WordTimes:
    """The words of a text with their lengths."""

    ends: list[int]
    units: list[float]
    closes: list[bool]
    """Whether the word ends with a comma or other punctuation."""

    @property
    def before(self) -> list[float]:
        """Units before each word, and in all."""
        return [0.0, *itertools.accumulate(self.units)]


def timed(arrived: Arrivals, lead_ms: float | None = None) -> list[Timed]:
    """Estimate when each word sounds. `lead_ms` is how far this provider's text was ahead of its audio
    before, if known.
    """
    words = _words(arrived)
    if not words.ends:
        return []
    spoken = _spoken(arrived)
    windows = _windows(spoken, words)
    fits = _likely(_fits(spoken, words, windows), words, lead_ms)
    drawn = [_drawn(fit.starts, _boxes(spoken, words, windows, fit)) for fit, _ in fits]
    total = sum(share for _, share in fits)
    starts = [
        sum(share * starts[at] for (_, share), starts in zip(fits, drawn, strict=True)) / total
        for at in range(len(words.ends) + 1)
    ]
    return [
        Timed(end, _sounding(starts[at], arrived), _sounding(starts[at + 1], arrived, ends=True))
        for at, end in enumerate(words.ends)
    ]


def lead_of_arrivals(arrived: Arrivals) -> float | None:
    """Milliseconds by which text ran ahead of audio in a whole utterance; None if it cannot be told."""
    words = _words(arrived)
    if not arrived.complete or not words.ends:
        return None
    spoken = _spoken(arrived)
    fit = min(_fits(spoken, words, _windows(spoken, words)), key=lambda fit: fit.cost)
    return _ahead_ms(fit, words) if fit.told else None


def _spoken(arrived: Arrivals) -> Arrivals:
    """`arrived` as if its pauses took no time: each is a moment."""

    def at(ms: float) -> float:
        return ms - sum(min(end, ms) - start for start, end in arrived.pauses if start < ms)

    return replace(
        arrived,
        points=[(before, at(ms)) for before, ms in arrived.points],
        marks=[at(ms) for ms in arrived.marks],
        pauses=[(at(start), at(start)) for start, _ in arrived.pauses],
        audio_ms=at(arrived.audio_ms),
    )


def _sounding(spoken_ms: float, arrived: Arrivals, *, ends: bool = False) -> float:
    """The position in the audio at which `spoken_ms` of speech has been spoken; at a pause, its start if
    `ends`, else its end.
    """
    at = spoken_ms
    for start, end in arrived.pauses:
        if start > at + _ROUNDING_MS or (ends and start > at - _ROUNDING_MS):
            break
        at += end - start
    return at


def _words(arrived: Arrivals) -> _WordTimes:
    found = list(re.finditer(r"\s*\S+", arrived.text))
    closes = [bool(re.search(r"[.,;:?!…]\W*$", match[0])) for match in found]
    comma = COMMA_CHARACTERS if arrived.audio_ms and not arrived.pauses else 0
    units = [
        float(len(match[0].strip()) + PAUSE_CHARACTERS + (comma if closed else 0))
        for match, closed in zip(found, closes, strict=True)
    ]
    return _WordTimes([match.end() for match in found], units, closes)


def _windows(arrived: Arrivals, words: _WordTimes) -> list[_Window]:
    """When the text of each word arrived; empty if the arrivals carry no timing."""
    firsts = [bisect.bisect_right(words.ends, before) for before, _ in arrived.points]
    windows: list[_Window] = []
    for place, (_, at_ms) in enumerate(arrived.points):
        after = bisect.bisect_right(arrived.marks, at_ms)
        high = arrived.marks[after] if after < len(arrived.marks) else math.inf
        last = firsts[place + 1] if place + 1 < len(firsts) else len(words.ends)
        windows += [_Window(word, at_ms, high) for word in range(firsts[place], last)]
    # text that arrived all at once has no timing; text that is still missing at least was not written yet
    told = bool(windows) and (not arrived.complete or windows[-1].low > windows[0].low)
    return windows if told else []


def _fits(arrived: Arrivals, words: _WordTimes, windows: Sequence[_Window]) -> list[_Fit]:
    """Every hypothesis of how the text arrived."""
    plain = _expected(arrived, words, _rate(arrived, words, windows, 0))
    fits = [_Fit(_UNTOLD_COST + _UNTOLD * len(windows), plain, told=False)]
    for lead in LEADS:
        if windows and abs(lead) < len(words.ends):
            starts = _expected(arrived, words, _rate(arrived, words, windows, lead))
            fits.append(_led(windows, starts, lead))
    later = [window for window in windows if 0 < window.word < len(words.ends) and window.low > 0]
    return [*fits, _shifted(later, plain)] if later else fits


def _likely(fits: Sequence[_Fit], words: _WordTimes, lead_ms: float | None) -> list[tuple[_Fit, float]]:
    """The plausible hypotheses with their likelihood, relative to the best."""

    def cost(fit: _Fit) -> float:
        if lead_ms is None or not fit.told:
            return fit.cost
        usual_ms = fit.starts[-1] / len(words.ends)
        return fit.cost + min(((_ahead_ms(fit, words) - lead_ms) / usual_ms) ** 2, _FAR)

    costs = [cost(fit) for fit in fits]
    least = min(costs)
    return [
        (fit, math.exp((least - of_fit) / 2))
        for fit, of_fit in zip(fits, costs, strict=True)
        if of_fit - least < _FAR
    ]


def _ahead_ms(fit: _Fit, words: _WordTimes) -> float:
    return fit.shift_ms + fit.lead * fit.starts[-1] / len(words.ends)


def _rate(arrived: Arrivals, words: _WordTimes, windows: Sequence[_Window], lead: int) -> float:
    """Milliseconds of speech per unit of text, if the text is `lead` words ahead."""
    if arrived.complete:
        return max(arrived.audio_ms, 1.0) / words.before[-1]
    # an unfinished utterance: the pace of its text is weighed in, more as it gets longer
    moved = [w for w in windows if w.low > 0 and 0 <= w.word - lead < len(words.ends)]
    if len(moved) < 2 or moved[-1].low <= moved[0].low:
        return DEFAULT_MS_PER_UNIT
    units = words.before[moved[-1].word - lead] - words.before[moved[0].word - lead]
    seen = (moved[-1].low - moved[0].low) / units if units else DEFAULT_MS_PER_UNIT
    weight = (moved[-1].word - moved[0].word) * (_UNSURE_RATE / _SPREAD) ** 2
    return (DEFAULT_MS_PER_UNIT + weight * seen) / (1 + weight)


def _expected(arrived: Arrivals, words: _WordTimes, rate: float) -> list[float]:
    """When each word begins, and the last one ends, by lengths and pauses alone."""
    starts = [units * rate for units in words.before]
    return _drawn(starts, _pause_boxes(arrived, words, starts))


def _pause_boxes(
    arrived: Arrivals, words: _WordTimes, expected: Sequence[float]
) -> dict[int, tuple[float, float]]:
    """Which word begins after each pause, and when."""
    boxes: dict[int, tuple[float, float]] = {}
    at = 1
    for moment, _ in arrived.pauses:
        if moment <= 0:
            continue
        if moment >= arrived.audio_ms or at >= len(words.ends):
            break
        away = {number: _away(words, expected, number, moment) for number in range(at, len(words.ends))}
        best = min(away, key=away.__getitem__)
        if away[best] < 1.0:
            boxes[best] = (moment, moment)
            at = best + 1
    return boxes


def _away(words: _WordTimes, expected: Sequence[float], number: int, moment: float) -> float:
    """Distance in words between a word's start and a pause."""
    length = max(expected[number] - expected[number - 1], 1.0)
    return abs(expected[number] - moment) / length - (_COMMA_WORDS if words.closes[number - 1] else 0.0)


def _led(windows: Sequence[_Window], starts: list[float], lead: int) -> _Fit:
    """The hypothesis that a word's text arrives when the word `lead` places earlier begins to sound."""
    cost = 0.1 * abs(lead)
    known: tuple[int, float] = (0, starts[0])
    for window in windows:
        sounding = window.word - lead
        if sounding <= 0:
            # the words by which the text is ahead are there from the start
            cost += min((max(window.low - starts[0], 0.0) / (starts[1] - starts[0])) ** 2, _FAR)
        elif sounding < len(starts) - 1:
            cost += _strange(window.low, window.high, sounding, known, starts)
            known = (sounding, min(window.high, (window.low + window.high) / 2))
    return _Fit(cost, starts, lead=lead)


def _shifted(later: Sequence[_Window], starts: list[float]) -> _Fit:
    """The hypothesis that the text is ahead of the audio by a constant time."""
    middles = [min(w.high, w.low + _WIDE_MS) / 2 + w.low / 2 for w in later]
    shift = sum(starts[w.word] - at for w, at in zip(later, middles, strict=True)) / len(later)
    cost = 2 * math.log(len(later) + 1.0)  # a penalty, since the shift was chosen to fit
    known: tuple[int, float] | None = None
    for window, middle in zip(later, middles, strict=True):
        cost += _strange(window.low + shift, window.high + shift, window.word, known, starts)
        known = (window.word, middle + shift)
    return _Fit(cost, starts, shift_ms=shift)


def _strange(
    low: float, high: float, word: int, known: tuple[int, float] | None, starts: Sequence[float]
) -> float:
    """Cost of `word` beginning between `low` and `high`, given its expected start and the last known word."""
    drift = 2.0 * _SPREAD * (starts[-1] - starts[0]) / math.sqrt(len(starts) - 1)
    cost = 0.25 * min((_outside(starts[word], low, high) / drift) ** 2, _FAR)
    if known is not None and known[0] < word:
        before, at = known
        length = max(starts[word] - starts[before], 1.0)
        words = math.sqrt(word - before)
        spread = math.hypot(
            _SPREAD * length / words, _SPREAD_MS * words, min(high - low, _WIDE_MS) / _EVEN_SPREAD
        )
        cost += min((_outside(at + length, low, high) / spread) ** 2, _FAR)
    return cost


def _outside(value: float, low: float, high: float) -> float:
    return max(low - value, value - high, 0.0)


def _boxes(
    arrived: Arrivals, words: _WordTimes, windows: Sequence[_Window], fit: _Fit
) -> dict[int, tuple[float, float]]:
    """The time range in which words begin, under this hypothesis."""
    boxes = _pause_boxes(arrived, words, fit.starts)
    slack = _SPREAD * fit.starts[-1] / len(words.ends) if fit.shift_ms else 0.0  # a shift is an estimate
    for window in windows if fit.told else ():
        word = window.word - fit.lead
        if 0 < word < len(words.ends):
            boxes.setdefault(word, (window.low + fit.shift_ms - slack, window.high + fit.shift_ms + slack))
    return boxes


def _drawn(expected: Sequence[float], boxes: dict[int, tuple[float, float]]) -> list[float]:
    """Fit `expected` into `boxes`, changing the lengths between as little as possible.

    Coordinate descent on the squared relative changes of the lengths: each start in turn moves to the
    weighted mean of what its neighbours imply, then into its box.
    """
    starts = _clamped(list(expected), boxes)
    if not boxes:
        return starts
    lengths = [max(after - before, 1.0) for before, after in itertools.pairwise(expected)]
    anywhere = (-math.inf, math.inf)
    steps = [
        (at, before, 1 / before, after, 1 / after, 1 / before + 1 / after, *boxes.get(at, anywhere))
        for at, (before, after) in enumerate(itertools.pairwise(lengths), 1)
    ]
    for _ in range(_SWEEPS):
        last = list(starts)
        for at, before, left, after, right, both, low, high in steps:
            mean = ((starts[at - 1] + before) * left + (starts[at + 1] - after) * right) / both
            starts[at] = low if mean < low else min(mean, high)
        if starts == last:
            break
    return list(itertools.accumulate(starts, max))


def _clamped(starts: list[float], boxes: dict[int, tuple[float, float]]) -> list[float]:
    """Move each start into its box, and interpolate the starts between."""
    known = [0, *sorted(number for number in boxes if 0 < number < len(starts) - 1), len(starts) - 1]
    moved = list(starts)
    for number in known:
        if number in boxes:
            low, high = boxes[number]
            moved[number] = min(max(starts[number], low), high)
    for one, other in itertools.pairwise(known):
        span = starts[other] - starts[one]
        for at in range(one + 1, other):
            share = (starts[at] - starts[one]) / span if span else 0.0
            moved[at] = moved[one] + share * (moved[other] - moved[one])
    return moved


CutSource = Literal["whole", "timestamps", "estimated"]
"""How the cut was found: nothing was cut, by the provider's word times, or by an estimate."""

SHARE: Final = 0.5
"""The share of a word that must have been played for it to count as heard."""
PAUSE_MS: Final = 120
"""Silence that separates words. Shorter ones occur inside words too, before a "t" or a "k"."""
_FRAME_MS: Final = 10
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUIET: Final = 328
"""Amplitude below which nobody speaks: one hundredth of full scale (32,767)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A provider's report of when a piece of text sounds."""

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
    """For each piece of text, the characters and the milliseconds of audio before it."""
    marks: list[float] = field(default_factory=list)
    """The milliseconds of audio after each chunk."""
    stamps: list[Stamp] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    """Silences of `PAUSE_MS` and more, in milliseconds from the start; empty if the audio is not analysed."""
    lead_ms: float | None = None
    """Cached result of `lead_of`, which later utterances of the call ask for again."""
    lead_is_known: bool = False
    _listened_ms: int = 0
    _quiet_since_ms: int | None = None
    _rest: bytes = b""
    _words: tuple[tuple[object, ...], list[Timed]] | None = field(default=None, compare=False, repr=False)
    """Cached result of `words`, with the input it was computed from."""

    @property
    def audio_ms(self) -> float:
        """The audio generated so far, in milliseconds."""
        return self.audio_bytes * 1000 / (2 * self.rate_hz)

    def wrote(self, text: str) -> None:
        """Record that the transcript now is `text`."""
        if text == self.text:
            return
        before = len(self.text) if text.startswith(self.text) else 0
        if before == 0 and self.text:
            self.points.clear()  # revised: the timing known so far is that of other words
        self.points.append((before, self.audio_ms))
        self.text = text

    def sounded(self, size: int) -> None:
        """Record that `size` more bytes of audio were generated."""
        self.audio_bytes += size
        self.marks.append(self.audio_ms)

    def listened(self, pcm: bytes) -> None:
        """Find the pauses in a chunk of audio. Takes about 20 µs."""
        size = self.rate_hz * _FRAME_MS // 1000 * 2  # whole samples
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
        pauses = list(self.pauses)
        since = self._quiet_since_ms
        if since is not None and self._listened_ms - since >= PAUSE_MS:
            pauses.append((float(since), max(self.audio_ms, float(self._listened_ms))))
        return Arrivals(self.text, self.points, self.marks, pauses, self.audio_ms, self.complete)

    def words(self, lead_ms: float | None) -> list[Timed]:
        """When each word sounds; see `divide`. Cached, because each checkpoint asks for every interrupted
        utterance.
        """
        arrived = (self.text, self.audio_bytes, self.complete, self._listened_ms, self._quiet_since_ms)
        lengths = (len(self.points), len(self.marks), len(self.pauses), len(self.stamps))
        key = (*arrived, *lengths, lead_ms)
        if self._words is None or self._words[0] != key:
            found = _by_stamps(self.text, self.stamps) if self.stamps else timed(self.arrived(), lead_ms)
            self._words = key, found
        return self._words[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An utterance divided where it was cut off."""

    heard: str
    unheard: str
    source: CutSource


def divide(trace: SpeechTrace, played_ms: float, *, lead_ms: float | None = None) -> Heard:
    """Divide an utterance into what was heard and what was not, `played_ms` into its audio.

    `lead_ms` is how far this provider's text was ahead of its audio in earlier utterances of the call; it is
    used if this utterance never ended.
    """
    text = trace.text
    if trace.complete and played_ms >= trace.audio_ms:
        return Heard(heard=text, unheard="", source="whole")
    heard_to = 0
    for word in trace.words(lead_ms):
        if played_ms < word.start_ms + SHARE * (word.end_ms - word.start_ms):
            break
        heard_to = word.end
    if trace.complete and text.strip() and not text[heard_to:].strip():
        return Heard(heard=text, unheard="", source="whole")  # only the silence after it was not played
    source: CutSource = "timestamps" if trace.stamps else "estimated"
    return Heard(heard=text[:heard_to], unheard=text[heard_to:], source=source)


def lead_of(trace: SpeechTrace) -> float | None:
    """Milliseconds by which text ran ahead of audio in a whole utterance; None if it cannot be told."""
    if not trace.complete:
        return None
    if not trace.lead_is_known:
        trace.lead_ms, trace.lead_is_known = lead_of_arrivals(trace.arrived()), True
    return trace.lead_ms


def _by_stamps(text: str, stamps: Sequence[Stamp]) -> list[Timed]:
    """Word times as the provider reported them; words it did not report are joined to the one before."""
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


# -- speech output outside this process: by the words it reports, or by an assumed pace


def heard_part(said: str, until: str) -> str:
    """The beginning of `said` that was heard, given the text `until` which speech output reports as played.

    The report may start in the middle of `said`, and differ in spaces, case and punctuation. Its words are
    matched in order; what is not found counts as unheard.
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
        # the last word may be cut or spelled differently: take the longest common beginning
        begun = (at for at, name in enumerate(names) if name == wanted[0])
        last = max((_agreeing(names, wanted, at) for at in begun), default=-1)
    return _with_signs(said, words[last][1]) if last >= 0 else ""


def says(said: str, until: str, *, at_start: bool = False) -> bool:
    """Whether the words of `until` occur in `said`, consecutively; `at_start`: as its first words."""
    names = [match.group().casefold() for match in _WORD.finditer(said)]
    wanted = [match.group().casefold() for match in _WORD.finditer(until)]
    places = range(min(1, len(names)) if at_start else len(names))
    return bool(wanted) and any(names[at : at + len(wanted)] == wanted for at in places)


def _agreeing(names: Sequence[str], wanted: Sequence[str], start: int) -> int:
    """Index in `names` of the last word that matches `wanted`, counted from `start`."""
    count = 0
    for name, want in zip(names[start:], wanted, strict=False):
        if name != want:
            break
        count += 1
    return start + count - 1


def _with_signs(said: str, end: int) -> str:
    """`said` up to `end`, including punctuation right after it."""
    while end < len(said) and not said[end].isspace() and not said[end].isalnum():
        end += 1
    return said[:end]


def estimated_part(said: str, seconds: float, characters_per_s: float) -> str:
    """The beginning of `said` that fits into `seconds` of speech, in whole words."""
    room = int(max(0.0, seconds) * characters_per_s)
    if room >= len(said):
        return said
    return said[: said.rfind(" ", 0, room + 1) + 1].rstrip() if " " in said[: room + 1] else ""
