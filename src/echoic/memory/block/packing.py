"""Sections of a block within a token budget. Pure, and the same answer each time.

What a section does not need goes to the sections behind it, never to those before: so a change reaches
nothing that stands before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from echoic.memory.block.tokens import Counter
from echoic.types import Outcome

BREAK: Final = "\n\n"
_MISSES: Final = 32
"""Lines in a row that do not fit: behind them no more are tried. What many know of one costs no more time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a block, whole in itself."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a session starts with. Empty where the budget does not hold even the opening words."""

    sections: tuple[Section, ...] = ()
    """From what hardly ever changes to what changes most."""
    tokens: int = 0
    """Of `text`, as they were counted; never above the budget."""
    left_out: int = 0
    """Things that are known and did not fit."""
    outcome: Outcome = "complete"
    """Of the recall for the moment: whether all could be looked through. Complete where none was made: what
    stands in the other sections is read whole, or not at all and with an error."""

    @property
    def text(self) -> str:
        """All of it."""
        return BREAK.join(section.text for section in self.sections)

    def section(self, name: str) -> str:
        """The text of one section; empty where the block has none of that name."""
        return next((section.text for section in self.sections if section.name == name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a section would say, had it room for all."""

    name: str
    lines: Sequence[str]
    """In the order they stand; blank where there is nothing to say. What is not let in is not read."""
    share: float
    """Of the budget, beside what sections before it left over."""
    first: Sequence[int] = field(default_factory=tuple)
    """Places of `lines` in the order they are let in where not all fit; empty: as they stand."""


def pack(opening: Section, drafts: Sequence[Draft], budget: int, count: Counter) -> Block:
    """The block of `drafts`, as much of each as fits.

    Args:
        opening: what stands before them all; without room for it the block is empty.
        drafts: in the order they stand.
        budget: tokens of the whole.
        count: of tokens.
    """
    room = budget - count(opening.text)
    if room < 0:
        return Block(left_out=sum(len(draft.lines) for draft in drafts))
    sections = [opening]
    left_out = 0
    carried = 0.0
    for draft in drafts:
        allowed = min(carried + draft.share * room, room)
        lines, cost, blank = _chosen(draft, int(allowed), count)
        carried = allowed - cost
        left_out += len(draft.lines) - len(lines) - blank
        if lines:
            sections.append(Section(name=draft.name, text=framed(draft.name, lines)))
    return _within(sections, budget, count, left_out)


def framed(name: str, lines: Sequence[str]) -> str:
    """`lines` between the marks of their section. No line of ours or anybody's holds such a mark."""
    return "\n".join([f'<memory part="{name}">', *lines, "</memory>"])


def _chosen(draft: Draft, allowed: int, count: Counter) -> tuple[list[str], int, int]:
    """As many lines of `draft` as `allowed` tokens hold, what they cost, and how many were blank."""
    cost = count(BREAK + framed(draft.name, [])) + 1
    chosen: dict[int, str] = {}
    blank = misses = 0
    for place in draft.first or range(len(draft.lines)):
        line = draft.lines[place]
        more = count(line + "\n")
        if not line:
            blank += 1
        elif cost + more <= allowed:
            chosen[place] = line
            cost += more
            misses = 0
        elif (misses := misses + 1) == _MISSES:
            break
    lines = [chosen[place] for place in sorted(chosen)]
    return lines, cost if lines else 0, blank


def _within(sections: list[Section], budget: int, count: Counter, left_out: int) -> Block:
    """The block, with its last sections taken off while a counter that is not additive finds too much."""
    while sections:
        tokens = count(BREAK.join(section.text for section in sections))
        if tokens <= budget:
            return Block(sections=tuple(sections), tokens=tokens, left_out=left_out)
        left_out += max(0, sections.pop().text.count("\n") - 1)
    return Block(left_out=left_out)


__all__ = ["BREAK", "Block", "Draft", "Section", "framed", "pack"]
