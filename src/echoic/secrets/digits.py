"""Digits in groups, as numbers are written: "555-123 4567" is three. Says nothing about their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Possessive, so that a long run is read once whatever follows it.
_CLUSTER = re.compile(r"[0-9]++(?:[ .,/()_\n*|-]{1,3}+[0-9]++)*+")
_GROUP = re.compile(r"[0-9]++")


@dataclass(frozen=True, slots=True)
class Group:
    """Digits with nothing between them."""

    digits: str
    start: int
    end: int
    gap: str
    """What stands between this group and the one before; empty for the first."""


def clusters(text: str) -> Iterator[list[Group]]:
    """The groups of `text` that stand together, separated by at most three signs or spaces."""
    for cluster in _CLUSTER.finditer(text):
        groups: list[Group] = []
        done = cluster.start()
        for group in _GROUP.finditer(text, cluster.start(), cluster.end()):
            groups.append(Group(group[0], group.start(), group.end(), text[done : group.start()]))
            done = group.end()
        yield groups


def split(groups: Sequence[Group], gap: re.Pattern[str]) -> Iterator[list[Group]]:
    """`groups` cut wherever the gap before one holds `gap`."""
    part: list[Group] = []
    for group in groups:
        if part and gap.search(group.gap):
            yield part
            part = []
        part.append(group)
    if part:
        yield part


def windows(groups: Sequence[Group], shortest: int, longest: int, most: int) -> Iterator[tuple[int, int]]:
    """Each (first, one past last) of at most `most` groups whose digits number `shortest` to `longest`."""
    for first in range(len(groups)):
        count = 0
        for last in range(first, min(first + most, len(groups))):
            count += len(groups[last].digits)
            if count > longest:
                break
            if count >= shortest:
                yield first, last + 1


def joined(groups: Sequence[Group]) -> str:
    """All digits of `groups` in order."""
    return "".join(group.digits for group in groups)


def shape(groups: Sequence[Group]) -> tuple[int, ...]:
    """How many digits each of `groups` has."""
    return tuple(len(group.digits) for group in groups)


__all__ = ["Group", "clusters", "joined", "shape", "split", "windows"]
