"""A reply on its way to the caller's ear: what was said of it, and how much can have been heard. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from echoic.adapters.twilio.heard import estimated_part, heard_part


@dataclass(slots=True, kw_only=True)
class Spoken:
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

    @property
    def text(self) -> str:
        """All that was handed over."""
        return "".join(text for text, _ in self.pieces)

    def hand_over(self, text: str, now: float, *, apart: bool) -> None:
        """Note that `text` goes to the line: as a piece of its own, or as more of the last."""
        if self.pieces and not apart:
            last, began = self.pieces[-1]
            self.pieces[-1] = (last + text, began)
        else:
            self.pieces.append((text, now))

    def report(self, text: str) -> None:
        """Note that the line has played `text`."""
        self.played += text
        self.reported = True

    def until(self, heard: str) -> str:
        """The beginning of it that was heard where the caller cut in at `heard`."""
        return heard_part(self.text, heard)

    def so_far(self, now: float, characters_per_s: float) -> str:
        """The beginning of it that was heard by now: as reported, else as fast as speech is."""
        if self.reported:
            return heard_part(self.text, self.played)
        if not self.pieces:
            return ""
        last, began = self.pieces[-1]
        before = "".join(text for text, _ in self.pieces[:-1])
        return (before + estimated_part(last, now - began, characters_per_s)).rstrip()


__all__ = ["Spoken"]
