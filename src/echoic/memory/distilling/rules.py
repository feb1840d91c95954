"""The rules of `memory/listening` as an extractor. Pure; needs no model, no network and no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from echoic.memory.distilling.changes import Add, Change, Fact, Reading, TakeBack, Unlearn
from echoic.memory.distilling.withheld import RECENT, of_user, withheld
from echoic.memory.listening import Heard, listen
from echoic.types import Turn


class RuleExtractor:
    """Hears what is plainly said, in English. Cheap enough to run after each turn."""

    name = "rules"
    timeout_s = 30.0

    async def open(self) -> None:
        """Nothing is needed."""

    async def aclose(self) -> None:
        """Nothing was taken."""

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """See `Extractor`; never fails."""
        # "actually it's Paula" corrects what was just said, not what was said an hour ago
        recent: deque[list[Heard]] = deque(maxlen=RECENT)
        for turn in reading.context:
            _hear(turn, recent)
        changes: list[Change] = []
        for turn in reading.turns:
            changes += [_change(item, turn) for item in _hear(turn, recent)]
            gone = _unlearned(turn, reading)
            changes += [Unlearn(turns=gone, source=(turn.id,))] if gone else []
        return changes


def _hear(turn: Turn, recent: deque[list[Heard]]) -> list[Heard]:
    """What the user said in `turn`, which is recent from now on; nothing of anybody else's."""
    if not of_user(turn):
        return []
    heard = listen(turn.heard_text, [item for items in recent for item in items])
    recent.append(heard)
    return heard


def _change(item: Heard, turn: Turn) -> Change:
    if item.retracts:
        return TakeBack(key=item.key, text=item.text, source=(turn.id,))
    fact = Fact(text=item.text, key=item.key, statement=item.sentence, category=item.category)
    return Add(fact=fact, source=(turn.id,))


def _unlearned(turn: Turn, reading: Reading) -> frozenset[str]:
    """The turns that `turn`, one of the new ones, asks not to be kept."""
    if turn.id not in reading.withheld:
        return frozenset()
    so_far = [*reading.context, *reading.turns]
    return withheld(so_far[: so_far.index(turn) + 1])


__all__ = ["RuleExtractor"]
