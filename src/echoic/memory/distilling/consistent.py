"""What is left of proposed changes once those that contradict one another are taken out. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from echoic.memory.distilling.changes import Add, Change, Confirm, Retract, Supersede
from echoic.types import Turn

MOST_CHANGES = 100
"""Changes of one run looked at. Sixty turns hold fewer facts; what gives more is not reading but rambling."""


def consistent(changes: Sequence[Change], turns: Sequence[Turn]) -> list[Change]:
    """`changes` in the order in which they were said, without those that contradict one another.

    A memory that is to end may be named by no other change, and a slot filled once by the same turn: where
    two say different things of the same, neither is believed. A slot filled by two turns holds what was said
    last.
    """
    # the same change twice contradicts nothing
    changes = [change for at, change in enumerate(changes) if change not in changes[:at]]
    place = {turn.id: at for at, turn in enumerate(turns)}

    def said_at(change: Change) -> int:
        return max((place[name] for name in change.source if name in place), default=-1)

    named = Counter(name for change in changes for name in _named(change))
    ended = ended_by(changes)
    filled: dict[tuple[str, int], set[str]] = {}
    for change in changes:
        if isinstance(change, (Add, Supersede)) and change.fact.key:
            filled.setdefault((change.fact.key, said_at(change)), set()).add(change.fact.text.casefold())
    kept = [
        change
        for change in changes
        if all(named[name] == 1 or name not in ended for name in _named(change))
        and not (
            isinstance(change, (Add, Supersede))
            and change.fact.key
            and len(filled[change.fact.key, said_at(change)]) > 1
        )
    ]
    return sorted(kept, key=said_at)


def ended_by(changes: Sequence[Change]) -> frozenset[str]:
    """Ids of the memories that `changes` would end by name."""
    ends = [change.known for change in changes if isinstance(change, (Supersede, Retract))]
    return frozenset(name for known in ends for name in known)


def _named(change: Change) -> frozenset[str]:
    """Ids of the memories a change says something of."""
    if isinstance(change, (Supersede, Retract)):
        return frozenset(change.known)
    return frozenset([change.known]) if isinstance(change, Confirm) else frozenset()
