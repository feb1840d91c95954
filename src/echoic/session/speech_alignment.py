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
"""What a word's end is worth in letters, where length stands for time."""
COMMA_CHARACTERS: Final = 4
"""What a comma or full stop is worth besides, where pauses cannot be heard."""
DEFAULT_MS_PER_UNIT: Final = 45.0
"""Of speech for a letter, before anything has told: 150 words a minute, 9 units a word."""
LEADS: Final = range(-3, 9)
"""Words by which a text may run ahead of its audio (negative: behind) and be recognised as that."""
_SPREAD: Final = 0.25
"""By which share of its length a word is usually shorter or longer than its letters say."""
_SPREAD_MS: Final = 70.0
"""And by how much any word may be, however short."""
_EVEN_SPREAD: Final = 3.46
"""A moment that lies anywhere in a span of time is off its middle by that span over the root of 12."""
_UNSURE_RATE: Final = 0.3
"""By which share of it speakers differ from `DEFAULT_MS_PER_UNIT`."""
_WIDE_MS: Final = 1000.0
"""Of a window that has no end yet."""
_ROUNDING_MS: Final = 0.5
_COMMA_WORDS: Final = 1.5
"""By so many words nearer to a pause counts a word that a comma or full stop stands before."""
_SWEEPS: Final = 24
_FAR: Final = 9.0
"""At which squared distance an arrival counts as a stray: one must not decide for all."""
_UNTOLD: Final = 0.7
_UNTOLD_COST: Final = 3.0
"""What it costs to hold that arrivals tell nothing, for each and in all: as much as if they fitted badly."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How one utterance arrived. Times are milliseconds of its audio."""

    text: str
    points: Sequence[tuple[int, float]]
    """Each time text came: how many characters were there before, and how much audio."""
    marks: Sequence[float]
    """How much audio there was after each chunk of it."""
    pauses: Sequence[tuple[float, float]]
    """From when to when it is silent, in order."""
    audio_ms: float
    complete: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """A word."""

    end: int
    """Characters up to its end."""
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class _Window:
    """When a piece of text came: not before `low`, and before `high`."""

    word: int
    """The first word that arrived in this window or later."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """How text is taken to have come."""

    cost: float
    """How strange that would be: twice a negative log likelihood, about."""
    starts: list[float]
    """When words would begin, and the last one end, before the arrivals are heeded."""
    lead: int = 0
    """Words that it ran ahead."""
    shift_ms: float = 0.0
    """Time that it ran ahead."""
    told: bool = True
    """Whether arrivals tell anything."""


@dataclass(frozen=True, slots=True)
class _WordTimes:
    """The words of a text and how long each is said to be."""

    ends: list[int]
    units: list[float]
    closes: list[bool]
    """Whether the word ends with a comma or other punctuation."""

    @property
    def before(self) -> list[float]:
        """Units before each word, and in all."""
        return [0.0, *itertools.accumulate(self.units)]


def timed(arrived: Arrivals, lead_ms: float | None = None) -> list[Timed]:
    """When each word sounds.

    Args:
        arrived: the utterance.
        lead_ms: by how much this provider's text ran ahead of its audio before, where that is known.
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
    """When so much has been spoken: before a pause that comes then where a word ends, else behind it."""
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
    """When each word's text came."""
    firsts = [bisect.bisect_right(words.ends, before) for before, _ in arrived.points]
    windows: list[_Window] = []
    for place, (_, at_ms) in enumerate(arrived.points):
        after = bisect.bisect_right(arrived.marks, at_ms)
        high = arrived.marks[after] if after < len(arrived.marks) else math.inf
        last = firsts[place + 1] if place + 1 < len(firsts) else len(words.ends)
        windows += [_Window(word, at_ms, high) for word in range(firsts[place], last)]
    # of a text that came all at once nothing can be told, but that what is not there yet was not written
    told = bool(windows) and (not arrived.complete or windows[-1].low > windows[0].low)
    return windows if told else []


def _fits(arrived: Arrivals, words: _WordTimes, windows: Sequence[_Window]) -> list[_Fit]:
    """The ways in which the text may have come."""
    plain = _expected(arrived, words, _rate(arrived, words, windows, 0))
    fits = [_Fit(_UNTOLD_COST + _UNTOLD * len(windows), plain, told=False)]
    for lead in LEADS:
        if windows and abs(lead) < len(words.ends):
            starts = _expected(arrived, words, _rate(arrived, words, windows, lead))
            fits.append(_led(windows, starts, lead))
    later = [window for window in windows if 0 < window.word < len(words.ends) and window.low > 0]
    return [*fits, _shifted(later, plain)] if later else fits


def _likely(fits: Sequence[_Fit], words: _WordTimes, lead_ms: float | None) -> list[tuple[_Fit, float]]:
    """The ways that may be, each with how likely it is beside the likeliest."""

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
    """Milliseconds of speech for a unit of text, if that ran `lead` words ahead."""
    if arrived.complete:
        return max(arrived.audio_ms, 1.0) / words.before[-1]
    # of what is under way the text's own pace tells, the more the longer it goes on
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
    """How far, in words, a word begins from a pause; one behind a comma is nearer by `_COMMA_WORDS`."""
    length = max(expected[number] - expected[number - 1], 1.0)
    return abs(expected[number] - moment) / length - (_COMMA_WORDS if words.closes[number - 1] else 0.0)


def _led(windows: Sequence[_Window], starts: list[float], lead: int) -> _Fit:
    """The text runs so many words ahead: a word's text comes when an earlier one begins to sound."""
    cost = 0.1 * abs(lead)
    known: tuple[int, float] = (0, starts[0])
    for window in windows:
        sounding = window.word - lead
        if sounding <= 0:
            # what the text runs ahead by is there from the beginning on
            cost += min((max(window.low - starts[0], 0.0) / (starts[1] - starts[0])) ** 2, _FAR)
        elif sounding < len(starts) - 1:
            cost += _strange(window.low, window.high, sounding, known, starts)
            known = (sounding, min(window.high, (window.low + window.high) / 2))
    return _Fit(cost, starts, lead=lead)


def _shifted(later: Sequence[_Window], starts: list[float]) -> _Fit:
    """The text runs some time ahead of the audio, whatever the words."""
    middles = [min(w.high, w.low + _WIDE_MS) / 2 + w.low / 2 for w in later]
    shift = sum(starts[w.word] - at for w, at in zip(later, middles, strict=True)) / len(later)
    cost = 2 * math.log(len(later) + 1.0)  # of the shift, which was chosen to fit
    known: tuple[int, float] | None = None
    for window, middle in zip(later, middles, strict=True):
        cost += _strange(window.low + shift, window.high + shift, window.word, known, starts)
        known = (window.word, middle + shift)
    return _Fit(cost, starts, shift_ms=shift)


def _strange(
    low: float, high: float, word: int, known: tuple[int, float] | None, starts: Sequence[float]
) -> float:
    """How strange it is that `word` begins between `low` and `high`: of where it should, and of the last."""
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
    """Between which moments words begin, if the text came so."""
    boxes = _pause_boxes(arrived, words, fit.starts)
    slack = _SPREAD * fit.starts[-1] / len(words.ends) if fit.shift_ms else 0.0  # a shift is an estimate
    for window in windows if fit.told else ():
        word = window.word - fit.lead
        if 0 < word < len(words.ends):
            boxes.setdefault(word, (window.low + fit.shift_ms - slack, window.high + fit.shift_ms + slack))
    return boxes


def _drawn(expected: Sequence[float], boxes: dict[int, tuple[float, float]]) -> list[float]:
    """`expected` drawn into `boxes`, the lengths between kept as near to what they were as can be.

    Least squares of the lengths' relative changes, by coordinates: each moment in turn goes to the mean of
    what its neighbours say, weighed by how long their words are, and then into its box.
    """
    starts = _clamped(list(expected), boxes)
    if not boxes:
        return starts
    lengths = [max(after - before, 1.0) for before, after in itertools.pairwise(expected)]
    for _ in range(_SWEEPS):
        for at in range(1, len(starts) - 1):
            left, right = 1 / lengths[at - 1], 1 / lengths[at]
            mean = (starts[at - 1] + lengths[at - 1]) * left + (starts[at + 1] - lengths[at]) * right
            low, high = boxes.get(at, (-math.inf, math.inf))
            starts[at] = min(max(mean / (left + right), low), high)
    return list(itertools.accumulate(starts, max))


def _clamped(starts: list[float], boxes: dict[int, tuple[float, float]]) -> list[float]:
    """Each in its box, what lies between two of them moved along."""
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

    def words(self, lead_ms: float | None) -> list[Timed]:
        """When each word sounds; see `divide`.

        Computed when something arrived since: each checkpoint asks again for every utterance of the call
        that was cut off.
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
    """Divide an utterance into what was heard and what was not, when `played_ms` of its audio had been
    played.

    Args:
        trace: how its text and audio arrived.
        played_ms: from the start of its audio.
        lead_ms: how far this provider's text was ahead of its audio in earlier utterances of the call, used
            if this utterance never ended.
    """
    text = trace.text
    if trace.complete and played_ms >= trace.audio_ms:
        return Heard(heard=text, unheard="", source="whole")
    heard_to = 0
    for word in trace.words(lead_ms):
        if played_ms < word.start_ms + SHARE * (word.end_ms - word.start_ms):
            break
        heard_to = word.end
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
    """Whether `said` contains the words of `until`, one after the other."""
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
