"""Runs the rules over every new turn, at once: they are cheap, and what they hear is known within the call.

Its cursor is part of the conversation's record. The memories and the moved cursor are one write that expects
the conversation as it was read; so a crash, a second worker or an erasure in between leaves either both or
neither.
"""

from __future__ import annotations

from dataclasses import replace

from echoic.memory.concurrency import until_written
from echoic.memory.distilling.changes import Reading, Unlearn
from echoic.memory.distilling.known_facts import known_of
from echoic.memory.distilling.reconcile import Distilled, Reconciler
from echoic.memory.distilling.rules import RuleExtractor
from echoic.memory.distilling.turns import affirmed, conversation_record, marked, stretch_of, withheld
from echoic.memory.forget_targets import obey
from echoic.memory.records import Ledger, conversation_of, cursor_of, record_of_conversation
from echoic.memory.retraction import hide_taken_back
from echoic.stores.base import Put, Store
from echoic.types import Scope

_TURNS = 200
"""Turns a run: a long conversation is distilled in several writes rather than in one huge one."""


class RuleReader:
    """Learns from what is plainly said.

    Args:
        store: where turns and memories are.
        alone: whether nobody reads after it, so that a completed conversation it has read is distilled.
    """

    def __init__(self, store: Store, *, alone: bool) -> None:
        self._store = store
        self._alone = alone
        self._extractor = RuleExtractor()

    async def read(self, scope: Scope, conversation: str) -> Distilled:
        """Learn from the turns behind the cursor of `conversation`; nothing if there are none."""
        total = Distilled()
        # a conflict: someone else distilled, wrote the same key, or forgot the conversation; look again
        while step := await until_written(lambda: self._step(scope, conversation), "the conversation"):
            total += step
        return total

    async def _step(self, scope: Scope, conversation: str) -> Distilled | None:
        """One write; None when there is nothing behind the cursor."""
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
        reading = Reading(turns=stretch.turns, context=stretch.context, withheld=hushed)
        changes = await self._extractor.extract(reading)
        needed = any(isinstance(change, Unlearn) for change in changes)
        needed = needed or bool(affirmed([*stretch.context[-1:], *stretch.turns]))
        known = (await known_of(self._store, scope)).memories if needed else ()
        ledger = Ledger(self._store, scope)
        reconciler = Reconciler(ledger, stretch.turns, hushed, known=known, context=stretch.context)
        distilled = await reconciler.take(changes)
        # before what makes them go: whoever dies in between hides them again
        await hide_taken_back(self._store, scope, stretch, changes, distilled.retracted)
        asked = await obey(self._store, scope, stretch, distilled.kept)
        at = max(turn.said_at for turn in stretch.turns)
        gone = [one for memory in asked if (one := await ledger.end(memory.id, at))]
        distilled = replace(distilled, retracted=(*distilled.retracted, *gone))
        moved = record_of_conversation(conversation_of(record), cursor=stretch.end)
        await self._store.write(scope, [*ledger.changes, Put.over(record, moved)])
        return distilled
