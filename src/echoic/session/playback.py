"""Playback: the audio on its way to the caller, how much of it was handed out and played, and to which
utterance it belongs.

It plays nothing itself. If the device reports how much it played (`played`), that counts; until then a frame
counts as played when the next is asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from echoic.errors import InvalidInput, brief
from echoic.session.call_record import Exchange
from echoic.session.speech_alignment import (
    DEFAULT_MS_PER_UNIT,
    Heard,
    SpeechTrace,
    divide,
    estimated_part,
    heard_part,
    says,
)

SAMPLE_BYTES: Final = 2
_PATIENCE_S: Final = 1.5
"""How long a device that has enough to play may report nothing before it is given more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """PCM16, little-endian, mono, to be played after what came before."""

    pcm: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """The caller interrupted: drop what was not played, and report how much was with `played(…,
    flushed=True)`.
    """


@dataclass(slots=True, eq=False)
class Utterance:
    """One utterance of the agent, from its first letter to the last sample the caller heard."""

    turn_id: str
    speaker: str
    trace: SpeechTrace
    item: str | None = None
    """The provider's id."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    fed_bytes: int = 0
    """Bytes of its audio sent to the caller."""
    handed_bytes: int = 0
    """How many of them were handed out."""
    played_bytes: int = 0
    cut: bool = False
    """Whether the rest of it will never be played."""
    ended: bool = False
    """Whether the provider has generated all of it."""
    lead_ms: float | None = None
    elsewhere: bool = False
    """Whether it is played outside the session, as with WebRTC, and its end was not reported yet."""
    pace_ms: float | None = None
    """Milliseconds per unit of text, if it is played outside the session and its length is not known."""
    sounds_ms: Callable[[], float] | None = None
    """How much of it was played by now, outside the session."""

    @property
    def settled(self) -> bool:
        """Whether no more of it will be heard."""
        if self.elsewhere:
            return self.cut
        return self.cut or (self.ended and self.played_bytes >= self.trace.audio_bytes)

    @property
    def interrupted(self) -> bool:
        """Whether it was cut off before all of it was generated, or before its last word was heard."""
        return self.cut and self.divided().source != "whole"

    def divided(self) -> Heard:
        """Its text, divided into what was heard so far and the rest."""
        played_ms = self.played_bytes * 1000 / (SAMPLE_BYTES * self.trace.rate_hz)
        if self.elsewhere and self.sounds_ms is not None:
            played_ms = self.sounds_ms()
        if self.trace.audio_bytes or self.pace_ms is None:
            return divide(self.trace, played_ms, lead_ms=self.lead_ms)
        unheard_of = replace(self.trace, complete=False)  # its total length is not known
        return divide(unheard_of, played_ms * DEFAULT_MS_PER_UNIT / self.pace_ms)


@dataclass(slots=True)
class _Span:
    """A piece handed out: its position in all audio handed out, and in its utterance."""

    start: int
    end: int
    of: Utterance
    offset: int


class Playback:
    """The audio waiting to be played, and the caller's position in it. For one event loop and one consumer.

    `frame_ms` is how much audio is handed out at once, and so the precision of a cut if the device does not
    report.
    """

    def __init__(self, frame_ms: int = 20) -> None:
        if frame_ms < 1:
            raise InvalidInput(f"frame_ms must be at least 1, not {brief(frame_ms)}")
        self._frame_ms = frame_ms
        self._waiting: deque[tuple[Utterance, bytes]] = deque()
        self._spans: deque[_Span] = deque()
        """Audio handed out and not played yet."""
        self._handed = 0
        self._position = 0
        """How much of the audio handed out was played or dropped."""
        self._base = 0
        self._base_report = 0
        self._reports = False
        self._flush = False
        self._cut: list[tuple[Utterance, int]] = []
        """Utterances of the last cut, and how much of each had been handed out."""
        self._closed = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self.moved = asyncio.Event()
        """Set when playback advances; whoever waits for it clears it."""

    @property
    def idle(self) -> bool:
        """Whether nothing is left to be played."""
        return not self._waiting and not self._spans

    @property
    def sounding(self) -> Utterance | None:
        """The utterance the caller hears now, or would hear next."""
        if self._spans:
            return self._spans[0].of
        return self._waiting[0][0] if self._waiting else None

    def announced(self, utterance: Utterance) -> None:
        """The agent begins an utterance. Only needed where no audio is fed."""

    def finished(self, utterance: Utterance) -> None:
        """All of it was generated."""
        del utterance
        self.moved.set()

    def feed(self, utterance: Utterance, pcm: bytes) -> None:
        """Append audio to what waits to be played; audio of an utterance that was cut off is dropped."""
        if utterance.cut or self._closed:
            return
        self._waiting.append((utterance, pcm))
        utterance.fed_bytes += len(pcm)
        self._news.set()

    async def media(self, ahead_bytes: int | None = None) -> AsyncIterator[Frame | Flush]:
        """Frames in order and, when the caller interrupts, a `Flush`.

        `ahead_bytes` limits how much may be handed out without being reported as played.
        """
        patient = True
        while True:
            if not self._reports:
                self._advance(self._handed)  # the previous frame was played, since the next is asked for
            self._news.clear()
            full = ahead_bytes is not None and self._handed - self._position > ahead_bytes
            if self._flush:
                self._flush = False
                yield Flush()
            elif self._waiting and full and patient:
                patient = await self._moves()
            elif self._waiting:
                patient = True
                yield Frame(pcm=self._hand_out())
            elif self._closed:
                return
            else:
                await self._news.wait()

    def reconnected(self) -> None:
        """Report that the provider is connected again; nothing changes where audio passes here."""

    async def wait_idle(self) -> None:
        """Wait until nothing is left to be played."""
        while not self.idle:
            self.moved.clear()
            await self.moved.wait()

    def awaits(self, cut: Utterance) -> bool:
        """Whether the device has yet to report how much of an utterance that was cut off it had played."""
        return self._reports and any(of is cut for of, _ in self._cut)

    async def _moves(self) -> bool:
        """Wait for a report or an interruption; False if none came in time, so that another frame is due."""
        self._room.clear()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._room.wait()
        except TimeoutError:
            return False
        return True

    def played(self, total_bytes: int, *, flushed: bool = False) -> None:
        """Report how many bytes the device has played in total, dropped audio not counted.

        `flushed`: this is the count at which it dropped the rest, in answer to a `Flush`.

        Raises:
            InvalidInput: less than reported before.
        """
        if total_bytes < self._base_report:
            raise InvalidInput(
                f"played {total_bytes} bytes is less than the {self._base_report} reported before: "
                "count all bytes played since the call began"
            )
        self._reports = True
        if flushed or (self._cut and self._handed == self._base):
            self._correct(total_bytes)
            if flushed:  # until then the device may be playing still
                self._cut.clear()
        else:
            self._advance(min(self._base + total_bytes - self._base_report, self._handed))

    def cut(self) -> list[Utterance]:
        """Drop what was not played. Returns the utterances that were cut, the one being played first."""
        left = [span.of for span in self._spans] + [of for of, _ in self._waiting]
        cut = list(dict.fromkeys(left))
        if not cut:
            return cut  # cut already; the device has yet to be told and to report how much it played
        self._cut = [(of, of.handed_bytes) for of in cut]
        for utterance in cut:
            utterance.cut = True
        self._base_report += self._position - self._base if self._reports else 0
        self._spans.clear()
        self._waiting.clear()
        self._base = self._position = self._handed
        self._flush = True
        self._news.set()
        self._room.set()
        self.moved.set()
        return cut

    def take_cut_elsewhere(self) -> list[Utterance]:
        """Return, once, the utterances that were cut off without `cut`; none where audio passes here."""
        return []

    def close(self) -> None:
        """Close playback. Audio not yet played counts as unheard."""
        self._closed = True
        for utterance in {of for of, _ in self._waiting} | {span.of for span in self._spans}:
            utterance.cut = True
        self._waiting.clear()
        self._news.set()
        self._room.set()
        self.moved.set()

    def _hand_out(self) -> bytes:
        utterance, pcm = self._waiting.popleft()
        size = utterance.trace.rate_hz * self._frame_ms // 1000 * SAMPLE_BYTES  # whole samples
        frame, rest = pcm[:size], pcm[size:]
        if rest:
            self._waiting.appendleft((utterance, rest))
        end = self._handed + len(frame)
        self._spans.append(_Span(self._handed, end, utterance, utterance.handed_bytes))
        self._handed, utterance.handed_bytes = end, utterance.handed_bytes + len(frame)
        return frame

    def _advance(self, position: int) -> None:
        if position <= self._position:
            return
        self._position = position
        while self._spans and (span := self._spans[0]).start < position:
            span.of.played_bytes = span.offset + min(position, span.end) - span.start
            if position < span.end:
                break
            self._spans.popleft()
        self._room.set()
        self.moved.set()

    def _correct(self, total_bytes: int) -> None:
        """Add what the device went on to play for a moment after the cut to what was heard."""
        more = total_bytes - self._base_report
        for utterance, handed in self._cut:
            heard = min(more, handed - utterance.played_bytes)
            utterance.played_bytes += heard
            more -= heard
        self._base_report = total_bytes
        self.moved.set()


_ON_THEIR_WAY: Final = 8
"""Limit of replies that wait to be spoken, as of prompts."""
_SLOWEST: Final = 2.0
"""How many times longer than estimated a reply may take to be spoken."""


@dataclass(slots=True, kw_only=True)
class SpokenReply:
    """One reply of a text call.

    Over webhooks it is played in pieces, each sent when the previous was played; over a socket it is one
    piece that grows faster than it is spoken.
    """

    id: str
    """The id of its turn."""
    characters_per_s: float
    """The speed of speech, where the channel does not report what it played."""
    said_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    pieces: list[tuple[str, float]] = field(default_factory=list)
    """Each text and when it was sent, in monotonic seconds."""
    played: str = ""
    """What the channel reported as played, if it reports."""
    reported: bool = False
    unkept: str = ""
    """The beginning of the reply that is not stored."""
    start: int | None = None
    """Index in the message history where it begins; None if no model said it."""
    apart: bool = False
    """Whether each piece is sent when the one before was played."""
    exchange: Exchange | None = None
    """The exchange of the call record that it belongs to."""
    overtaken: bool = False
    """Whether the caller spoke again before all of it was generated, and so before they had heard it."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)

    def kept(self, heard: str) -> str:
        """The part of `heard` that may be stored."""
        return "" if self.unkept.startswith(heard) else heard.removeprefix(self.unkept)

    @property
    def ends(self) -> float:
        """When it will have been spoken, by the speed of speech."""
        last, began = self.pieces[-1] if self.pieces else ("", 0.0)
        return began + len(last) / self.characters_per_s

    def sounds(self, now: float, *, likely: bool = True) -> bool:
        """Whether, at the monotonic time `now`, more of it is still to be heard although the next reply was
        sent.

        If `likely` is False: whether that is possible at all.
        """
        if self.apart or (self.reported and says(self.played, self.text)):
            return False
        if likely:
            return self.overtaken and self.ends > now
        return self.left_s(now) > 0

    def left_s(self, now: float) -> float:
        """Seconds that it may still be heard, at the slowest; 0 once the line reported all of it."""
        if self.reported and says(self.played, self.text):
            return 0.0
        slowest = self.ends + len(self.text) / self.characters_per_s * (_SLOWEST - 1)
        return max(0.0, slowest - now)

    def so_far(self, now: float) -> str:
        """The beginning of the reply that was heard by now: as reported, else by the speed of speech."""
        if self.reported:
            return heard_part(self.text, self.played)
        if not self.pieces:
            return ""
        last, began = self.pieces[-1]
        before = "".join(text for text, _ in self.pieces[:-1])
        return (before + estimated_part(last, now - began, self.characters_per_s)).rstrip()


class TextPlayback:
    """The replies of a text call that are being spoken; the last may still be generated.

    `characters_per_s` is the speed of speech, for a line that does not report what it played.
    """

    def __init__(self, characters_per_s: float) -> None:
        self._speed = characters_per_s
        self.ms_per_character = 1000 / characters_per_s
        self.reply: SpokenReply | None = None
        """The reply in progress, if any."""
        self._before: list[tuple[SpokenReply, object]] = []
        """Earlier replies, recorded as heard and perhaps still to be spoken, with their recorder."""

    def begin(self, name: str, exchange: Exchange) -> SpokenReply:
        """A reply is being made; `name` is the id of its turn."""
        self.reply = SpokenReply(id=name, characters_per_s=self._speed, exchange=exchange)
        return self.reply

    def sent(self, text: str, *, apart: bool) -> SpokenReply | None:
        """Record that `text` was sent to the line, as a piece of its own (`apart`) or appended to the last;
        returns the reply in progress, if there is one.
        """
        if self.reply is None or not text:
            return None
        now = time.monotonic()
        if not apart:  # it is spoken after what was sent before
            now = max([now, *(one.ends for one, _ in self._before if one.overtaken)])
        reply = self.reply
        reply.apart = apart
        if reply.pieces and not apart:
            last, began = reply.pieces[-1]
            reply.pieces[-1] = (last + text, began)
        else:
            reply.pieces.append((text, now))
        return reply

    def played(self, text: str) -> None:
        now = time.monotonic()
        before = (one for one, _ in self._before if one.sounds(now))
        sounding = next(before, self.reply)
        if sounding is not None:
            sounding.played += text
            sounding.reported = True

    def left_s(self) -> float:
        """Seconds that the reply may still be heard; 0 once the line reported that all of it was played."""
        return self.reply.left_s(time.monotonic()) if self.reply is not None else 0.0

    def so_far(self) -> tuple[str, float]:
        """The part of the reply in progress heard by now, and seconds until all of it will be."""
        if self.reply is None:
            return "", 0.0
        now = time.monotonic()
        return self.reply.so_far(now), max(0.0, self.reply.ends - now)

    def pass_by(self, reply: SpokenReply, owner: object, *, overtaken: bool) -> None:
        """The next reply follows `reply`, which `owner` recorded as heard."""
        if not reply.apart:
            reply.overtaken = overtaken
            self._before = [*self._before, (reply, owner)][-_ON_THEIR_WAY:]

    def take_earlier(self, owner: object) -> list[SpokenReply]:
        """Remove and return, in order, the earlier replies that may not have been heard in full."""
        earlier = [reply for reply, where in self._before if where is owner]
        self._before = []
        return earlier

    def cut_in(self, earlier: Sequence[SpokenReply], until: str, at: float) -> list[tuple[SpokenReply, str]]:
        """What was heard of `earlier` and the reply in progress when the caller interrupted.

        The channel says that it had played `until`, but not in which reply. That is found by its words and,
        if several replies contain them, by time: the first that can still be playing. Nothing was heard of
        the replies after it. `at` is monotonic time in seconds.
        """
        newest = [self.reply] if self.reply is not None else []
        for likely in (True, False):
            lately = [one for one in earlier if one.sounds(at, likely=likely)] + newest
            said = "\n".join(one.text for one in lately)
            if says(said, until):
                break
        left = len(heard_part(said, until))
        if not left:  # nothing of the last one; how much of those before it is not reported
            return self.broken_off(earlier, "", at)
        heard: dict[str, str] = {}
        for one in lately:
            heard[one.id] = one.text[: max(0, left)]
            left -= len(one.text) + 1
        return [(one, heard.get(one.id, one.text)) for one in (*earlier, *newest)]

    def broken_off(
        self, earlier: Sequence[SpokenReply], last: str, at: float
    ) -> list[tuple[SpokenReply, str]]:
        """What was heard of `earlier`, and of `last` of the reply in progress, when the connection broke."""
        heard = [(one, one.so_far(at) if one.overtaken else one.text) for one in earlier]
        return heard if self.reply is None else [*heard, (self.reply, last)]

    def clear(self) -> None:
        self.reply, self._before = None, []
