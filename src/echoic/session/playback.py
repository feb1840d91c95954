"""Audio on its way to the caller: what was handed out, how much of it was played, and of which utterance.

It plays nothing. A device that reports how much it played (`played`) is believed; until one does, a frame
counts as played when the next is asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from echoic.errors import InvalidInput, brief
from echoic.session.heard import DEFAULT_MS_PER_UNIT, Heard, SpeechTrace, divide

SAMPLE_BYTES: Final = 2
_PATIENCE_S: Final = 1.0
"""How much longer than it sounds what was handed out may take to be reported as played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """PCM16, little-endian, mono, to be played after what came before."""

    pcm: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """The caller interrupted: drop what was not played, then say how much was: `played(…, flushed=True)`."""


@dataclass(slots=True, eq=False)
class Utterance:
    """One thing the agent says, from its first letter to the last sample the caller heard."""

    turn_id: str
    speaker: str
    trace: SpeechTrace
    item: str | None = None
    """The provider's id of it."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    fed_bytes: int = 0
    """Of its audio that went towards the caller."""
    played_bytes: int = 0
    cut: bool = False
    """Whether the rest of it will never be played."""
    ended: bool = False
    """Whether the provider is done with it."""
    lead_ms: float | None = None
    elsewhere: bool = False
    """Whether somebody else plays it, and has not said yet that it is over."""
    pace_ms: float | None = None
    """For a unit of text, where somebody else plays it and the length of its audio is not told."""
    sounds_ms: Callable[[], float] | None = None
    """How much of it has sounded by now, there."""

    @property
    def settled(self) -> bool:
        """Whether no more of it will be heard."""
        if self.elsewhere:
            return self.cut
        return self.cut or (self.ended and self.played_bytes >= self.trace.audio_bytes)

    def divided(self) -> Heard:
        """What of it was heard so far."""
        played_ms = self.played_bytes * 1000 / (SAMPLE_BYTES * self.trace.rate_hz)
        if self.elsewhere and self.sounds_ms is not None:
            played_ms = self.sounds_ms()
        if self.trace.audio_bytes or self.pace_ms is None:
            return divide(self.trace, played_ms, lead_ms=self.lead_ms)
        unheard_of = replace(self.trace, complete=False)  # how long all of it sounds is not known
        return divide(unheard_of, played_ms * DEFAULT_MS_PER_UNIT / self.pace_ms)


@dataclass(slots=True)
class _Span:
    """A piece handed out: where it lies in all that was handed out, and in its utterance."""

    start: int
    end: int
    of: Utterance
    offset: int


class Playback:
    """What is waiting to be played, and how far the caller is. For one event loop and one consumer.

    Args:
        frame_ms: how much audio is handed out at once, and so how exactly a cut is known where the device
            does not report.
    """

    def __init__(self, frame_ms: int = 20) -> None:
        if frame_ms < 1:
            raise InvalidInput(f"frame_ms must be at least 1, not {brief(frame_ms)}")
        self._frame_ms = frame_ms
        self._waiting: deque[tuple[Utterance, bytes]] = deque()
        self._spans: deque[_Span] = deque()
        """Handed out and not yet played."""
        self._handed = 0
        self._position = 0
        """How much of what was handed out is behind the caller, dropped audio included."""
        self._base = 0
        self._base_report = 0
        self._reports = False
        self._flush = False
        self._cut: list[tuple[Utterance, int]] = []
        """Utterances of the last cut, and how much of each had been handed out."""
        self._closed = False
        self._news = asyncio.Event()
        self.moved = asyncio.Event()
        """Set whenever playback got on; whoever waits for it clears it."""

    @property
    def reported(self) -> bool:
        """Whether a device says how much it played."""
        return self._reports

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be played."""
        return not self._waiting and not self._spans

    @property
    def sounding(self) -> Utterance | None:
        """What the caller hears now, or would hear next."""
        if self._spans:
            return self._spans[0].of
        return self._waiting[0][0] if self._waiting else None

    @property
    def flush_due(self) -> bool:
        """Whether the device is still to be told that the caller interrupted."""
        return self._flush

    def announced(self, utterance: Utterance) -> None:
        """The agent begins to say something. Whose audio comes here is known by its audio."""

    def finished(self, utterance: Utterance) -> None:
        """All of it was generated."""
        del utterance
        self.moved.set()

    def feed(self, utterance: Utterance, pcm: bytes) -> None:
        """Put audio behind what waits. Of an utterance that was cut off it is dropped."""
        if utterance.cut or self._closed:
            return
        self._waiting.append((utterance, pcm))
        utterance.fed_bytes += len(pcm)
        self._news.set()

    async def media(self, ahead_bytes: int | None = None) -> AsyncIterator[Frame | Flush]:
        """Frames in order, and where the caller interrupted, the order to drop what was not played.

        Args:
            ahead_bytes: that may be handed out and not reported as played; None: as many as there are.
        """
        while True:
            if not self._reports:
                self._advance(self._handed)  # the one before was played, or this would not be asked for
            self._news.clear()
            if self._flush:
                self._flush = False
                yield Flush()
            elif ahead_bytes is not None and self._waiting and self._handed - self._position > ahead_bytes:
                await self._wait_played(ahead_bytes)
            elif self._waiting:
                yield Frame(pcm=self._hand_out())
            elif self._closed:
                return
            else:
                await self._news.wait()

    async def wait_idle(self) -> None:
        """Wait until nothing is left to be played."""
        while not self.idle:
            self.moved.clear()
            await self.moved.wait()

    async def _wait_played(self, ahead_bytes: int) -> None:
        """Wait for a report, or an interruption; whoever does not report has played all of it by then."""
        of = self._spans[-1].of
        patience_s = ahead_bytes / (SAMPLE_BYTES * of.trace.rate_hz) + _PATIENCE_S
        try:
            async with asyncio.timeout(patience_s):
                await self._news.wait()
        except TimeoutError:
            self._advance(self._handed)

    def played(self, total_bytes: int, *, flushed: bool = False) -> None:
        """Take the device's word: of all it was given it has played so much, dropped audio not counted.

        Args:
            total_bytes: since the beginning.
            flushed: this is the count at which it dropped the rest, in answer to a `Flush`.

        Raises:
            InvalidInput: less than it said before.
        """
        if total_bytes < self._base_report:
            raise InvalidInput(
                f"played {total_bytes} bytes is less than the {self._base_report} reported before: "
                "count all bytes played since the call began"
            )
        self._reports = True
        if flushed or (self._cut and self._handed == self._base):
            self._correct(total_bytes)
        else:
            self._advance(min(self._base + total_bytes - self._base_report, self._handed))

    def cut(self) -> list[Utterance]:
        """Drop what was not played; the utterances that were cut off, the sounding one first."""
        left = [span.of for span in self._spans] + [of for of, _ in self._waiting]
        cut = list(dict.fromkeys(left))
        if not cut:
            return cut  # cut already: the device is still to be told, and still to say how much it played
        self._cut = [(of, self._handed_of(of)) for of in cut]
        for utterance in cut:
            utterance.cut = True
        self._base_report += self._position - self._base if self._reports else 0
        self._spans.clear()
        self._waiting.clear()
        self._base = self._position = self._handed
        self._flush = True
        self._news.set()
        self.moved.set()
        return cut

    def close(self) -> None:
        """Nothing more will be played; what was not stays unheard."""
        self._closed = True
        for utterance in {of for of, _ in self._waiting} | {span.of for span in self._spans}:
            utterance.cut = True
        self._waiting.clear()
        self._news.set()
        self.moved.set()

    def _hand_out(self) -> bytes:
        utterance, pcm = self._waiting.popleft()
        size = SAMPLE_BYTES * utterance.trace.rate_hz * self._frame_ms // 1000
        frame, rest = pcm[:size], pcm[size:]
        if rest:
            self._waiting.appendleft((utterance, rest))
        offset = self._handed_of(utterance) - len(frame)
        self._spans.append(_Span(self._handed, self._handed + len(frame), utterance, offset))
        self._handed += len(frame)
        return frame

    def _handed_of(self, utterance: Utterance) -> int:
        """How much of an utterance was handed out."""
        return utterance.fed_bytes - sum(len(pcm) for of, pcm in self._waiting if of is utterance)

    def _advance(self, position: int) -> None:
        if position <= self._position:
            return
        self._position = position
        while self._spans and (span := self._spans[0]).start < position:
            span.of.played_bytes = span.offset + min(position, span.end) - span.start
            if position < span.end:
                break
            self._spans.popleft()
        self._news.set()
        self.moved.set()

    def _correct(self, total_bytes: int) -> None:
        """The device went on for a moment after the cut: so much more of what was cut off was heard."""
        more = total_bytes - self._base_report
        for utterance, handed in self._cut:
            heard = min(more, handed - utterance.played_bytes)
            utterance.played_bytes += heard
            more -= heard
        self._cut.clear()
        self._base_report = total_bytes
        self.moved.set()
