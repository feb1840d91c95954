"""Replies on their way to the caller's ear: what was said of them, and how much can have been heard."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from echoic.session.call_record import Exchange
from echoic.session.heard import estimated_part, heard_part, says

_ON_THEIR_WAY: Final = 8
"""Replies at most that wait to be spoken: no more prompts wait either."""
_SLOWEST: Final = 2.0
"""How many times longer than reckoned a reply may take to be spoken."""


@dataclass(slots=True, kw_only=True)
class SpokenReply:
    """One reply.

    Over webhooks it is played in pieces, each when the one before was played; over a socket it is one piece
    that grows faster than it is spoken.
    """

    id: str
    """Of the turn it becomes."""
    said_at: datetime
    pieces: list[tuple[str, float]] = field(default_factory=list)
    """Text, and when it was handed over, in seconds that never go back."""
    played: str = ""
    """What the line reported to have played, where it reports."""
    reported: bool = False
    unkept: str = ""
    """The beginning of it that is nobody's to keep."""
    start: int | None = None
    """Where it begins in the model's history; None: no model said it."""
    apart: bool = False
    """Whether each piece was handed over when the one before was played."""
    exchange: Exchange | None = None
    """Of the record, that it belongs to."""
    overtaken: bool = False
    """Whether the caller said the next thing before all of it was there: they had not heard it then. Whoever
    speaks while it sounds cuts in, and who does not had heard it.
    """

    @property
    def text(self) -> str:
        """All that was handed over."""
        return "".join(text for text, _ in self.pieces)

    def hand_over(self, text: str, now: float, *, apart: bool) -> None:
        """Note that `text` goes to the line: as a piece of its own, or as more of the last."""
        self.apart = apart
        if self.pieces and not apart:
            last, began = self.pieces[-1]
            self.pieces[-1] = (last + text, began)
        else:
            self.pieces.append((text, now))

    def report(self, text: str) -> None:
        """Note that the line has played `text`."""
        self.played += text
        self.reported = True

    def kept(self, heard: str) -> str:
        """Of its beginning `heard`, what is to be kept."""
        return "" if self.unkept.startswith(heard) else heard.removeprefix(self.unkept)

    def ends(self, characters_per_s: float) -> float:
        """When it will have been spoken, as fast as speech is."""
        last, began = self.pieces[-1] if self.pieces else ("", 0.0)
        return began + len(last) / characters_per_s

    def sounds(self, now: float, characters_per_s: float, *, likely: bool = True) -> bool:
        """Whether more of it is still to be heard, now that the next is on its way.

        Args:
            now: in seconds that never go back.
            characters_per_s: how fast speech is.
            likely: False: whether that can be, at all.
        """
        if self.apart or (self.reported and says(self.played, self.text)):
            return False
        if likely:
            return self.overtaken and self.ends(characters_per_s) > now
        return self.left_s(now, characters_per_s) > 0

    def left_s(self, now: float, characters_per_s: float) -> float:
        """How many seconds more it may sound at the slowest; 0 once the line reported all of it."""
        if self.reported and says(self.played, self.text):
            return 0.0
        slowest = self.ends(characters_per_s) + len(self.text) / characters_per_s * (_SLOWEST - 1)
        return max(0.0, slowest - now)

    def so_far(self, now: float, characters_per_s: float) -> str:
        """The beginning of it that was heard by now: as reported, else as fast as speech is."""
        if self.reported:
            return heard_part(self.text, self.played)
        if not self.pieces:
            return ""
        last, began = self.pieces[-1]
        before = "".join(text for text, _ in self.pieces[:-1])
        return (before + estimated_part(last, now - began, characters_per_s)).rstrip()


def cut_in(
    before: Sequence[SpokenReply], last: SpokenReply | None, until: str, now: float, characters_per_s: float
) -> list[str]:
    """What was heard of each of several replies where the caller cut in when the line had come to `until`.

    The line does not say which of them that was. It is known by its words, and where several have these, by
    the time: the first that can still sound. Of a later one nothing was heard.

    Args:
        before: handed over as a whole, in the order they are spoken.
        last: spoken behind them, maybe not complete; None: there is none.
        until: may be empty.
        now: in seconds that never go back.
        characters_per_s: how fast speech is.
    """
    newest = [last] if last is not None else []
    for likely in (True, False):
        lately = [one for one in before if one.sounds(now, characters_per_s, likely=likely)] + newest
        said = "\n".join(one.text for one in lately)
        if says(said, until):
            break
    left = len(heard_part(said, until))
    if not left:  # nothing of the last; how far those before it came nobody tells
        return [*broken_off(before, now, characters_per_s), *("" for _ in newest)]
    heard: dict[str, str] = {}
    for one in lately:
        heard[one.id] = one.text[: max(0, left)]
        left -= len(one.text) + 1
    return [heard.get(one.id, one.text) for one in (*before, *newest)]


def broken_off(before: Sequence[SpokenReply], now: float, characters_per_s: float) -> list[str]:
    """What was heard by now of each of these replies, behind which another is on its way."""
    return [one.so_far(now, characters_per_s) if one.overtaken else one.text for one in before]


class TextPlayback:
    """The replies of one call that are on their way, the last of them still being made.

    Args:
        characters_per_s: how fast speech is, where the line does not report what it played.
    """

    def __init__(self, characters_per_s: float) -> None:
        self._speed = characters_per_s
        self.ms_per_character = 1000 / characters_per_s
        self.reply: SpokenReply | None = None
        """The one under way; None: there is none, or it was taken."""
        self._before: list[tuple[SpokenReply, object]] = []
        """Replies before that one, noted as heard and maybe still to be spoken; where they were noted."""

    def hand_over(self, text: str, *, apart: bool) -> SpokenReply | None:
        """Note that `text` of the reply goes to the line; the reply, if there is one."""
        if self.reply is None or not text:
            return None
        now = time.monotonic()
        if not apart:  # it is spoken behind what was handed over before
            now = max([now, *(one.ends(self._speed) for one, _ in self._before if one.overtaken)])
        self.reply.hand_over(text, now, apart=apart)
        return self.reply

    def played(self, text: str) -> None:
        """Note that the line has played `text`."""
        now = time.monotonic()
        before = (one for one, _ in self._before if one.sounds(now, self._speed))
        sounding = next(before, self.reply)
        if sounding is not None:
            sounding.report(text)

    def left_s(self) -> float:
        """How long the reply may still be heard; 0 once the line reported that all of it was played."""
        return self.reply.left_s(time.monotonic(), self._speed) if self.reply is not None else 0.0

    def so_far(self) -> tuple[str, float]:
        """What was heard by now of the reply under way, and in how many seconds all of it will have been."""
        if self.reply is None:
            return "", 0.0
        now = time.monotonic()
        return self.reply.so_far(now, self._speed), max(0.0, self.reply.ends(self._speed) - now)

    def pass_by(self, reply: SpokenReply, owner: object, *, overtaken: bool) -> None:
        """The next reply follows `reply`, which is noted in `owner` as heard."""
        if not reply.apart:
            reply.overtaken = overtaken
            self._before = [*self._before, (reply, owner)][-_ON_THEIR_WAY:]

    def take_earlier(self, owner: object) -> list[SpokenReply]:
        """Replies before the one under way that may not have been heard whole, in order; no more will be."""
        earlier = [reply for reply, where in self._before if where is owner]
        self._before = []
        return earlier

    def cut_in(self, earlier: Sequence[SpokenReply], until: str, at: float) -> list[tuple[SpokenReply, str]]:
        """What was heard of `earlier` and the reply under way where the caller cut in; see `cut_in`."""
        return self._paired(earlier, cut_in(earlier, self.reply, until, at, self._speed))

    def broken_off(
        self, earlier: Sequence[SpokenReply], last: str, at: float
    ) -> list[tuple[SpokenReply, str]]:
        """The same where the line broke, and `last` was heard of the reply under way."""
        return self._paired(earlier, [*broken_off(earlier, at, self._speed), last])

    def _paired(self, earlier: Sequence[SpokenReply], parts: Sequence[str]) -> list[tuple[SpokenReply, str]]:
        replies = [*earlier, *([self.reply] if self.reply is not None else [])]
        return list(zip(replies, parts, strict=False))

    def clear(self) -> None:
        """Let go of every word."""
        self.reply, self._before = None, []
