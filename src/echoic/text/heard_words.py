"""Which part of an answer was heard, from the words that speech output reports. Pure.

Speech output rewrites an answer before it reads it: "$5.00" becomes "five dollars", "Dr." "doctor", and
symbols and emoji are dropped. So words must match except for case and punctuation; a word with digits or
symbols may have become any words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from echoic.errors import InvalidInput
from echoic.text.spoken_numbers import views_of

_SYLLABLES = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Characters of scripts without spaces between words: each counts as one word."""
_CHUNK = re.compile(rf"\[[^\[\]]*\]\S*|[{_SYLLABLES}][^\s\w]*|[^\s{_SYLLABLES}]+")
"""A word with its signs, or a marker of removed words."""
_WORD = re.compile(rf"[{_SYLLABLES}]|[^\W_{_SYLLABLES}]+(?:['’][^\W_{_SYLLABLES}]+)*")
_ABBREVIATION: Final = 4
"""The most characters of an abbreviation with its full stop."""
_ABSORBED: Final = 12
"""The most words that one number or sign may have become."""


_WAYS: Final = 48
"""The most alignments of an answer and a report that are followed at once: a report of only numbers has many.
"""


@dataclass(frozen=True)
class _Chunk:
    """A word as written in the answer."""

    words: tuple[str, ...]
    text: str
    place: int
    """The index of its text."""
    end: int

    @property
    def is_marker(self) -> bool:
        """Whether it stands for removed words."""
        return self.text.startswith("[")

    @cached_property
    def is_loose(self) -> bool:
        """Whether it may have been read as other words: it has digits, or signs within it."""
        inside = self.text.strip(",;:!?…\"'“”‘’()*_~`#")
        # a full stop after a longer word ends a sentence; "Dr." and "No." are read as other words
        plain = inside.removesuffix(".") if len(inside) > _ABBREVIATION else inside
        is_acronym = len(plain) > 1 and plain.isupper()
        return self.is_marker or is_acronym or not all(c.isalpha() or c in "'’-—–" for c in plain)

    def is_broken_off(self, heard: Sequence[str]) -> bool:
        """Whether `heard`, the last words reported, are only its beginning."""
        if self.is_marker:
            return True
        said = re.sub(r"\D", "", re.sub(r"[.,]00\b", "", self.text))
        told = re.sub(r"\D", "", views_of(" ".join(heard))[-1].text)
        return bool(told) and told != said and said.startswith(told)


def heard_ends(said: Sequence[str], heard: str) -> list[int]:
    """How many characters of each text of `said` were heard, without a word that was cut off.

    Raises InvalidInput if the answer does not begin with `heard`.
    """
    chunks = [
        _Chunk(_words(found.group()), found.group(), place, found.end())
        for place, text in enumerate(said)
        for found in _CHUNK.finditer(text)
    ]
    count = _heard_chunks(chunks, _words(heard))
    while count < len(chunks) and count and not any(chunk.words for chunk in chunks[count:]):
        count += 1  # punctuation at the end is not heard
    ends = [0] * len(said)
    for chunk in chunks[:count]:
        ends[chunk.place] = chunk.end
    return ends


def share_ends(said: Sequence[str], *, fraction: float | None = None, words: int | None = None) -> list[int]:
    """How many characters of each text were heard, by the share of letters or the words played."""
    chunks = [(place, found.end()) for place, text in enumerate(said) for found in _CHUNK.finditer(text)]
    if words is not None:
        count = min(words, len(chunks))
    else:
        before = [sum(map(len, said[:place])) for place in range(len(said))]
        room = (fraction or 0.0) * sum(map(len, said))
        count = len(chunks) if fraction == 1 else sum(before[place] + end <= room for place, end in chunks)
    ends = [0] * len(said)
    for place, end in chunks[:count]:
        ends[place] = end
    return ends


def _words(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(re.sub("['’]", "", word) for word in _WORD.findall(folded))


def _heard_chunks(chunks: Sequence[_Chunk], heard: Sequence[str]) -> int:
    """How many of `chunks` were heard whole, on the alignment with the fewest differing words."""
    reached, last = {0: 0}, 0
    """How far in what was heard one can be before this chunk, and how many words differ until there."""
    endings: list[tuple[int, int]] = []
    for place, chunk in enumerate(chunks):
        endings += _endings(chunk, place, heard, reached)
        reached = _passed(chunk, heard, reached)
        if not reached:
            break
        last = max(reached)
    if len(heard) in reached:
        endings.append((reached[len(heard)], len(chunks)))
    if endings:
        return min(endings)[1]
    if reached:
        more = len(heard) - last
        raise InvalidInput(
            f"the agent's answer is {more} words shorter than what was heard: give what it said"
        )
    raise InvalidInput(
        "the agent's answer does not begin with what was heard: give the words as it said them, or as they "
        "were read aloud"
    )


def _endings(
    chunk: _Chunk, place: int, heard: Sequence[str], reached: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """The alignments that end before or within `chunk`: differing words, and its index."""
    for at, cost in reached.items():
        if at == len(heard):
            yield cost, place
            continue
        if _begins(chunk.words, heard[at:]):
            yield cost, place
        for to, more in _steps(chunk, heard, at):
            if to == len(heard) and more and chunk.is_broken_off(heard[at:]):
                yield cost + more, place


def _passed(chunk: _Chunk, heard: Sequence[str], reached: Mapping[int, int]) -> dict[int, int]:
    """The positions reachable after `chunk`, on the best alignments."""
    ahead: dict[int, int] = {}
    for at, cost in reached.items():
        for to, more in _steps(chunk, heard, at):
            if not (to == len(heard) and more and chunk.is_broken_off(heard[at:])):
                ahead[to] = min(ahead.get(to, cost + more), cost + more)
    return dict(sorted(ahead.items(), key=lambda way: (way[1], way[0]))[:_WAYS])


def _begins(words: Sequence[str], heard: Sequence[str]) -> bool:
    """Whether `heard` ends within `words`, before or in the middle of the last one."""
    if len(heard) > len(words):
        return False
    *whole, last = heard
    same = tuple(whole) == tuple(words[: len(whole)]) and words[len(whole)].startswith(last)
    return same and (len(heard) < len(words) or last != words[-1])


def _steps(chunk: _Chunk, heard: Sequence[str], at: int) -> list[tuple[int, int]]:
    """The positions in `heard` after `chunk`, with the number of differing words."""
    end = at + len(chunk.words)
    steps = [(end, 0)] if tuple(heard[at:end]) == chunk.words else []
    if not steps and at < len(heard) and chunk.is_loose:
        steps += [(at + count, 1 + count) for count in range(min(_ABSORBED, len(heard) - at) + 1)]
    return steps
