"""What one hit says, to be compared with what another says, word by word: would it tell anything new?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from echoic.ranking.entries import key_words
from echoic.types import Hit
from echoic.words import content_words, cut

SAME_SHARE = 0.8
"""Of the words of two texts together, how many both must have to say the same (Jaccard)."""
HEARD_SHARE, SPOKEN_SHARE = 0.5, 0.8
"""Of a turn's words, how many a memory must have to stand for it: learned from that turn, and not."""

_TURNING = frozenset("no not never nor none nothing nobody neither without cannot hardly stopped".split())
_CAPITAL = re.compile(r"(?<=[\w,;] )[A-Z][\w'’-]+|\b[A-Z][\w'’-]+(?=:)")
_NUMBERS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve dozen hundred thousand first second third"
    " once twice both".split()
)


@dataclass(frozen=True, slots=True)
class Saying:
    """A hit, taken apart."""

    hit: Hit
    stems: frozenset[str]
    facts: frozenset[str]
    """Numbers and names: two texts that differ in one say different things, however alike they are."""
    turns: int
    """Words that turn a sentence round ("not", "never")."""

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """What `hit` says: with its key, where it is a value that means nothing without."""
        key, statement = (hit.memory.key, hit.memory.statement) if hit.memory else (None, None)
        text = statement or (f"{key_words(key)}: {hit.text}" if key else hit.text)
        words = cut(text)
        facts = {word for word in words if word in _NUMBERS or any(c.isdigit() for c in word)}
        facts |= {name.lower() for name in _CAPITAL.findall(text)}
        stems = frozenset(word.stem for word in content_words(text))
        turning = sum(word in _TURNING or word.endswith(("n't", "n’t")) for word in words)
        return cls(hit, stems, frozenset(facts), turning)

    def adds_nothing_to(self, other: Saying) -> bool:
        """Whether who has read `other` learns nothing here."""
        if self.turns != other.turns or not self.stems or not other.stems:
            return False
        if self.hit.turn is not None and other.hit.memory is not None:
            return other.hit.memory.current and self._is_told_by(other)
        return self._same_kind(other) and self._same_words(other)

    def _is_told_by(self, memory: Saying) -> bool:
        turn, kept = self.hit.turn, memory.hit.memory
        assert turn is not None
        assert kept is not None
        least = HEARD_SHARE if turn.id in kept.source else SPOKEN_SHARE
        return self.facts <= memory.facts | set(cut(memory.hit.text)) and len(
            self.stems & memory.stems
        ) >= least * len(self.stems)

    def _same_words(self, other: Saying) -> bool:
        shared, all_words = len(self.stems & other.stems), len(self.stems | other.stems)
        return self.facts == other.facts and shared >= SAME_SHARE * all_words

    def _same_kind(self, other: Saying) -> bool:
        """Two memories that hold alike, or two turns of one speaker."""
        mine, theirs = self.hit.memory, other.hit.memory
        if mine is not None and theirs is not None:
            return mine.current == theirs.current
        said, heard = self.hit.turn, other.hit.turn
        return said is not None and heard is not None and said.speaker == heard.speaker


__all__ = ["HEARD_SHARE", "SAME_SHARE", "SPOKEN_SHARE", "Saying"]
