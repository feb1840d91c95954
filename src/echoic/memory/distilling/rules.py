"""The rules of `english` as an extractor. Pure; needs no model, no network and no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from echoic.english import SelfStatement, listen
from echoic.english.slots import rivals
from echoic.memory.distilling.changes import Add, Change, Fact, Reading, TakeBack, Unlearn
from echoic.memory.distilling.withheld import RECENT, of_user, withheld
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
        recent: _Recent = deque(maxlen=RECENT)
        for turn in reading.context:
            _hear(turn, recent)
        changes: list[Change] = []
        for turn in reading.turns:
            for item in _hear(turn, recent):
                changes += _changes(item, turn)
            gone = _unlearned(turn, reading)
            changes += [Unlearn(turns=gone, source=(turn.id,))] if gone else []
        return changes


_Recent = deque[tuple[str, list[SelfStatement]]]
"""What the user said last, and what was heard of it."""


def _hear(turn: Turn, recent: _Recent) -> list[SelfStatement]:
    """What the user said in `turn`, which is recent from now on; nothing of anybody else's."""
    if not of_user(turn):
        return []
    heard = listen(turn.heard_text, [item for _, items in recent for item in items], _since(recent))
    recent.append((turn.heard_text, heard))
    return heard


def _since(recent: _Recent) -> str:
    """What the user said behind the last thing that was heard."""
    behind: list[str] = []
    for text, heard in reversed(recent):
        if heard:
            _, value, rest = text.casefold().rpartition(heard[-1].text.casefold() or text.casefold())
            return "\n".join([rest if value else "", *behind])
        behind.insert(0, text)
    return "\n".join(behind)


def _changes(item: SelfStatement, turn: Turn) -> list[Change]:
    source = (turn.id,)
    if item.retracts:
        return [TakeBack(key=item.key, text=item.text, source=source)]
    fact = Fact(
        text=item.text,
        key=item.key,
        statement=item.sentence,
        category=item.category,
        context=item.context,
    )
    gone = [TakeBack(key=key, text=text, source=source) for key, text in rivals(item)]
    return [*gone, Add(fact=fact, source=source)]


def _unlearned(turn: Turn, reading: Reading) -> frozenset[str]:
    """The turns that `turn`, one of the new ones, asks not to be kept."""
    if turn.id not in reading.withheld:
        return frozenset()
    so_far = [*reading.context, *reading.turns]
    return withheld(so_far[: so_far.index(turn) + 1])
