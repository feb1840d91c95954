"""The rules of `english` as an extractor. Pure; needs no model, no network and no clock."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.answers import completed
from echoic.english.slots import rivals
from echoic.memory.distilling.changes import Add, Change, Fact, Reading, TakeBack, Unlearn
from echoic.memory.distilling.turns import RECENT, of_user, withheld
from echoic.secrets import MARKER
from echoic.types import Turn

MASKED: Final = "maskedsecret"
"""Stands for a masked secret while a text is cut into words, which takes the marker's brackets away."""


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
        told = told_by_user([*reading.context, *reading.turns])
        for turn in reading.context:
            _hear(told.get(turn.id), recent)
        changes: list[Change] = []
        for turn in reading.turns:
            for item in _hear(told.get(turn.id), recent):
                changes += _changes(item, turn)
            gone = _unlearned(turn, reading)
            changes += [Unlearn(turns=gone, source=(turn.id,))] if gone else []
        return changes


_Recent = deque[tuple[str, list[SelfStatement]]]
"""What the user said last, and what was heard of it."""


def told_by_user(turns: Sequence[Turn]) -> dict[str, str]:
    """What the user said in each of `turns`, by id: a bare answer as a statement, a secret as a word."""
    found = {}
    for before, turn in itertools.pairwise([None, *turns]):
        if turn and of_user(turn):
            asked = before.heard_text if before and before.speaker == "agent" else ""
            found[turn.id] = completed(asked, MARKER.sub(MASKED, turn.heard_text))
    return found


def _hear(said: str | None, recent: _Recent) -> list[SelfStatement]:
    """What the user said, which is recent from now on; nothing of anybody else's, nor about a secret."""
    if said is None:
        return []
    every = listen(said, [item for _, items in recent for item in items], _since(recent))
    heard = [item for item in every if MASKED not in item.text.casefold()]
    recent.append((said, heard))
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
