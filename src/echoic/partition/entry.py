"""How one record is found: its words, its sound, and its place in time and talk."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag

import numpy as np

from echoic.words import Word

MEMORY = 1
TURN = 2
ITEM = 3


class Flag(IntFlag):
    """What ranking wants to know of a row at a glance."""

    NONE = 0
    EMBEDDED = 1
    """Its vector is there; set by the store."""
    PAST = 2
    """Superseded or retracted: found only when the past is asked for."""
    QUESTION = 4
    """The text asks something."""
    TIME = 8
    """The text says when, or how long."""
    NUMBER = 16
    """The text counts something."""
    ASKING = 32
    """The text ends in a question: it asks more than it tells."""
    UNHEARD = 64
    """Nothing of it was heard: it is kept, and never found."""
    KEYED = 128
    """A short value under a key: it says in a word what others say in a sentence."""


ROW = np.dtype(
    [
        ("kind", "u1"),  # 0: empty
        ("flags", "u1"),
        ("characters", "<u2"),  # of the text, capped
        ("words", "<u2"),  # content words, capped: BM25's document length
        ("session", "<u4"),  # the conversation's number; 0: none
        ("speaker", "<u4"),  # the speaker's number; 0: nobody's utterance
        ("said_at", "<i8"),  # Unix time in ms
    ]
)


def number_of(name: str | None) -> int:
    """A name as 32 bits, 0 for none. Used where only sameness within one scope matters."""
    return (zlib.crc32(name.encode()) or 1) if name else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a store keeps beside a record so that it can be found."""

    text: str
    """What is embedded. Not kept here: a store asks again when the embedding is due."""
    kind: int
    """MEMORY, TURN or ITEM."""
    words: tuple[tuple[Word, int], ...]
    """Distinct content words, each with how often it occurs."""
    characters: int = 0
    session: int = 0
    speaker: int = 0
    said_at_ms: int = 0
    flags: Flag = Flag.NONE

    @staticmethod
    def counted(words: Iterable[Word]) -> tuple[tuple[Word, int], ...]:
        """Words with their counts, in order of first appearance.

        Of words with one stem ("fox", "foxes") the first carries the counts of all, and the others none: so
        no row says a stem in two places.
        """
        said = tuple(words)
        counts = Counter(word.term for word in said)
        return tuple((word, counts.pop(word.term, 0)) for word in dict.fromkeys(said))

    @staticmethod
    def milliseconds(moment: datetime) -> int:
        """An aware moment as Unix milliseconds."""
        return round(moment.timestamp() * 1000)

    def row(self, kept: Flag = Flag.NONE) -> tuple[int, ...]:
        """The fields of `ROW`, with the flags `kept` from before."""
        length = sum(count for _, count in self.words)
        return (
            self.kind,
            int(self.flags | kept),
            min(self.characters, 0xFFFF),
            min(length, 0xFFFF),
            self.session,
            self.speaker,
            self.said_at_ms,
        )
