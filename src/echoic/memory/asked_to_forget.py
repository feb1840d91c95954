"""Obeys what users ask in a call to have forgotten: it is recalled from nowhere from then on.

What is meant is looked up in all that is kept of the user (`forget_targets`). It is hidden, not destroyed:
words were understood by rules, and those may be wrong. `UserMemory.forget(asked=…)` destroys it once the user
agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from echoic.english import listen
from echoic.english.forget_requests import forget_request
from echoic.memory.distilling.turns import Stretch
from echoic.memory.distilling.withheld import of_user, takes_back
from echoic.memory.forget_targets import Targets, targets
from echoic.memory.hiding import hide
from echoic.memory.records import MEMORY, TURN, memory_of, scan_all, turn_of
from echoic.ranking.entries import AGENT
from echoic.stores.base import Store
from echoic.types import Memory, Scope, Turn

_BEHIND: Final = 3
"""Turns behind a request in which an agent may still repeat what is to be forgotten."""


async def obey(store: Store, scope: Scope, stretch: Stretch, kept: Sequence[Memory]) -> list[Memory]:
    """Hide what the user asked to have forgotten in the turns of a stretch, or right before it.

    Args:
        store: where the turns are.
        scope: whose.
        stretch: the turns that were read, and those right before.
        kept: what was learned from them and is not written yet.

    Returns:
        the memories that are to hold no longer.
    """
    ended: list[Memory] = []
    for asked in (*stretch.context[-_BEHIND:], *stretch.turns):
        if not _asks(asked):
            continue
        turns = [turn_of(record) for record in await scan_all(store, scope, TURN)]
        memories = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
        found = _reached(turns, asked, [*memories, *kept])
        # what the user says afterwards is known again
        place = next((at for at, turn in enumerate(turns) if turn.id == asked.id), len(turns))
        later = {turn.id for turn in turns[place + 1 :] if turn.speaker != AGENT}
        if found is not None:
            said = [*found.memories, *said_by(found)]
            await hide(store, scope, said, parts=found.spans, spared=later, at=asked.said_at)
            ended += [memory for memory in found.memories if memory.current]
    return ended


async def reached(store: Store, scope: Scope, asked: Turn) -> Targets | None:
    """What the request in `asked` reaches; None where it asks nothing, or the rules obey it by themselves."""
    if not _asks(asked):
        return None
    turns = [turn_of(record) for record in await scan_all(store, scope, TURN)]
    memories = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
    return _reached(turns, asked, memories)


def _reached(turns: Sequence[Turn], asked: Turn, memories: Sequence[Memory]) -> Targets | None:
    if _is_obeyed(asked, memories):
        return None
    return targets(turns, asked, [memory for memory in memories if memory.valid_from <= asked.said_at])


def said_by(found: Targets) -> list[Memory]:
    """The sentences that are meant, as something that is known: they may have been repeated elsewhere."""
    return [
        Memory(id="", text=turn.heard_text[first:last].strip(), valid_from=turn.said_at, source=(turn.id,))
        for turn in found.said
        for first, last in found.spans.get(turn.id, ())
    ]


def _is_obeyed(asked: Turn, memories: Sequence[Memory]) -> bool:
    """Whether the rules that hear slots ("my address") and "forget that" obey the request in `asked`."""
    request = forget_request(asked.heard_text)
    if takes_back(asked.heard_text) and request is not None and not request.far:
        return True
    keys = {one.key for one in listen(asked.heard_text) if one.retracts}
    return any(memory.key in keys for memory in memories)


def _asks(turn: Turn) -> bool:
    return of_user(turn) and forget_request(turn.heard_text) is not None


__all__ = ["obey", "reached", "said_by"]
