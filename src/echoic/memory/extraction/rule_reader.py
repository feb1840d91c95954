"""Runs the rules of `english` over every new turn at once: what they extract is known within the call.

Its cursor is part of the conversation's record. The memories and the moved cursor are one write that expects
the conversation as it was read, so a crash, a second worker or an erasure leaves either both or neither.
`RuleExtractor` needs no model, no network and no clock.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.facts import name_answered
from echoic.english.sentences import completed
from echoic.english.slots import INFERRED, rivals
from echoic.memory.concurrency import until_written
from echoic.memory.extraction.known_facts import KnownMemories, known_of
from echoic.memory.extraction.reconciliation import (
    Add,
    Change,
    Distilled,
    Fact,
    Reading,
    Reconciler,
    TakeBack,
    ThirdParties,
    Unlearn,
)
from echoic.memory.extraction.turns import (
    RECENT,
    affirmed,
    answers_about_another,
    asked_in,
    conversation_record,
    marked,
    meant_by_that,
    of_user,
    questions_before,
    stretch_of,
    takes_back,
    withheld,
)
from echoic.memory.forget_targets import obey
from echoic.memory.records import Ledger, conversation_of, cursor_of, record_of_conversation
from echoic.memory.retraction import hide_taken_back, withdraw
from echoic.secrets import MARKER
from echoic.stores.base import Put, Store
from echoic.text import FORGOTTEN, TAKEN_BACK
from echoic.types import Scope, Turn

MASKED: Final = "maskedsecret"
"""Replaces a masked secret while a text is cut into words, which would strip the marker's brackets."""
PAUSE_S: Final = 0.001
"""Seconds for which the loop yields after each turn: otherwise threads that encode and search for a question
each wait 5 ms for the interpreter."""


class RuleExtractor:
    """Extracts plain statements in English. Cheap enough to run after each turn."""

    name = "rules"
    timeout_s = 30.0

    async def open(self) -> None:
        """Do nothing: rules need no resources."""

    async def aclose(self) -> None:
        """Do nothing: no resources are held."""

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """See `Extractor`; never fails."""
        # "actually it's Paula" corrects what was just said, not what was said an hour ago
        recent: _Recent = deque(maxlen=RECENT)
        by_turn: dict[str, list[SelfStatement]] = {}
        changes: list[Change] = []
        turns = [*reading.context, *reading.turns]
        of_another, _ = answers_about_another(turns, of_another=reading.of_another)
        questions = questions_before(turns)
        for place, turn in enumerate(turns):
            previous = [item for _, items in recent for item in items]
            if of_user(turn) and takes_back(turn.heard_text):
                meant = meant_by_that(turn, turns[:place])
                previous = [item for name in meant for item in by_turn.get(name, ())]
            asked = asked_in(turns[place - 1] if place else None)
            shown = reading.understood.get(turn.id)
            told = (
                shown.statement
                if shown
                else _told(questions[place], turn, of_another=turn.id in of_another, apart=True)
            )
            heard = _hear(told, recent, previous, asked)
            source = tuple(given.id for given in shown.turns) if shown else (turn.id,)
            by_turn |= dict.fromkeys(source, heard)
            if place < len(reading.context):
                continue
            for item in heard:
                changes += _changes(item, source)
            gone = _unlearned(turn, reading)
            changes += [Unlearn(turns=gone, source=(turn.id,))] if gone else []
            await asyncio.sleep(PAUSE_S)  # a turn takes about a millisecond, and audio runs on this loop
        return changes


_Recent = deque[tuple[str, list[SelfStatement]]]
"""The user's last utterances, and what was extracted from each."""


def told_by_user(
    turns: Sequence[Turn], of_another: Collection[str], *, apart: bool = False
) -> dict[str, str]:
    """The user's words in each of `turns`, by id: a bare answer as a statement, a secret or what was taken
    back as a word.

    `of_another`: ids of those that are about somebody else, see `answers_about_another`. `apart`: whether the
    name that an answer begins with is a sentence of its own, as the rules read it.
    """
    told = (
        (turn.id, _told(asked, turn, of_another=turn.id in of_another, apart=apart))
        for turn, asked in zip(turns, questions_before(turns), strict=True)
    )
    return {name: text for name, text in told if text is not None}


def _told(asked: str, turn: Turn, *, of_another: bool, apart: bool) -> str | None:
    """The user's words in `turn`, as in `told_by_user`; None if there are none."""
    if not of_user(turn):
        return None
    question, heard = (
        MARKER.sub(MASKED, text).replace(TAKEN_BACK, MASKED) for text in (asked, turn.heard_text)
    )
    question = question.replace(FORGOTTEN, MASKED)
    return completed(question, heard, of_another=of_another, name_answered=name_answered if apart else None)


def _hear(
    said: str | None, recent: _Recent, previous: Sequence[SelfStatement], asked: str
) -> list[SelfStatement]:
    """The new statements of the user, without other speakers' and without secrets."""
    if said is None:
        return []
    every = listen(said, previous, _since(recent), asked)
    heard = [item for item in every if MASKED not in item.text.casefold()]
    recent.append((said, heard))
    return heard


def _since(recent: _Recent) -> str:
    """The user's turns after the last one that was read."""
    behind: list[str] = []
    for text, heard in reversed(recent):
        if heard:
            _, value, rest = text.casefold().rpartition(heard[-1].text.casefold() or text.casefold())
            return "\n".join([rest if value else "", *behind])
        behind.insert(0, text)
    return "\n".join(behind)


def _changes(item: SelfStatement, source: tuple[str, ...]) -> list[Change]:
    if item.retracts:
        key, text, context = item.key, item.text, item.context
        return [TakeBack(key=key, text=text, context=context, deleted=item.deleted, source=source)]
    fact = Fact(
        text=item.text,
        key=item.key,
        statement=item.sentence,
        category=item.category,
        context=item.context,
        instead=item.instead,
        ends=item.ends,
        introduced=item.introduced,
        tentative=item.key == "home" and item.confidence <= INFERRED,
    )
    others = [] if item.context else rivals(item.key, item.text)
    gone = [TakeBack(key=key, text=text, source=source) for key, text in others]
    return [*gone, Add(fact=fact, source=source)]


def _unlearned(turn: Turn, reading: Reading) -> frozenset[str]:
    """The turns that the new turn `turn` asks not to keep."""
    if turn.id not in reading.withheld:
        return frozenset()
    so_far = [*reading.context, *reading.turns]
    return withheld(so_far[: so_far.index(turn) + 1])


_TURNS = 200
"""Turns read in one run: a long conversation is distilled in several writes."""


class RuleReader:
    """Learns from conversations by rules.

    If `alone`, no other reader follows, so a completed conversation it has read is marked as distilled.
    """

    def __init__(self, store: Store, *, alone: bool, third_parties: ThirdParties = "keep") -> None:
        self._store, self._third_parties = store, third_parties
        self._alone = alone
        self._extractor = RuleExtractor()

    async def read(self, scope: Scope, conversation: str) -> Distilled:
        """Learn from the unread turns of `conversation`, if there are any."""
        total = Distilled()
        # a conflict: someone else distilled, wrote the same key, or forgot the conversation; look again
        while step := await until_written(lambda: self._step(scope, conversation), "the conversation"):
            total += step
        return total

    async def _step(self, scope: Scope, conversation: str) -> Distilled | None:
        """One write; None if no turn is unread."""
        record = await conversation_record(self._store, scope, conversation)
        if record is None:
            return None
        stretch = await stretch_of(self._store, scope, conversation, cursor_of(record), _TURNS)
        if not stretch.turns:
            mark = marked(record) if self._alone else None
            if mark:
                await self._store.write(scope, [mark])
            return None
        hushed = withheld([*stretch.context, *stretch.turns]) | stretch.unlearned
        reading = Reading(
            turns=stretch.turns,
            context=stretch.context,
            withheld=hushed,
            of_another=stretch.of_another,
            understood=stretch.understood,
        )
        changes = await self._extractor.extract(reading)
        needed = any(
            isinstance(change, (Unlearn, TakeBack)) or (isinstance(change, Add) and change.fact.is_move)
            for change in changes
        )
        needed = needed or bool(affirmed([*stretch.context[-1:], *stretch.turns]))
        known = await known_of(self._store, scope) if needed else KnownMemories()
        ledger = Ledger(self._store, scope)
        rule, context = self._third_parties, stretch.context
        reconciler = Reconciler(
            ledger,
            stretch.turns,
            hushed,
            known=known.memories,
            past=known.past,
            context=context,
            also=itertools.chain.from_iterable(given.turns for given in stretch.understood.values()),
            third_parties=rule,
        )
        distilled = await reconciler.take(changes)
        # before the write that ends them: after a crash in between they are hidden again
        await hide_taken_back(self._store, scope, stretch, changes, distilled.retracted, kept=distilled.kept)
        asked = await obey(self._store, scope, stretch, distilled.kept)
        at = max(turn.said_at for turn in stretch.turns)
        gone = [one for memory in asked if (one := await ledger.end(memory.id, at, deleted=True))]
        distilled = replace(distilled, retracted=(*distilled.retracted, *gone))
        await withdraw(self._store, scope, distilled.retracted)
        moved = record_of_conversation(conversation_of(record), cursor=stretch.end)
        await self._store.write(scope, [*ledger.changes, Put.over(record, moved)])
        return distilled
