"""From what was said to what is known: the turns of a conversation since its cursor, by rules, exactly once.

The memories and the moved cursor are one write that expects the conversation as it was read; so a crash, a
second worker or an erasure in between leaves either both or neither.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from echoic.memory.ledger import Ledger
from echoic.memory.listening import Heard, listen
from echoic.memory.records import (
    CONVERSATION,
    TURN,
    conversation_of,
    cursor_of,
    record_of_conversation,
    scan_all,
    turn_of,
)
from echoic.memory.retry import until_written
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope, Turn

_TURNS = 200
"""Turns a run: a long conversation is distilled in several writes rather than in one huge one."""
_CONTEXT = 6
"""Turns before the cursor that are read again, for what a correction refers to."""
_RECENT = 2
"""Utterances of the user that a correction may refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What a run changed."""

    turns: int = 0
    kept: tuple[Memory, ...] = ()
    """New or corrected memories."""
    retracted: tuple[Memory, ...] = ()

    def __add__(self, other: Distilled) -> Distilled:
        return Distilled(
            turns=self.turns + other.turns,
            kept=self.kept + other.kept,
            retracted=self.retracted + other.retracted,
        )


class Distiller:
    """Listens to what users said in their conversations. Only their own words are ever learned."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def distil(self, scope: Scope, conversation: str) -> Distilled:
        """Learn from the turns behind the cursor of `conversation`; nothing if there are none."""
        total = Distilled()
        # a conflict: someone else distilled, wrote the same key, or forgot the conversation; look again
        while step := await until_written(lambda: self._step(scope, conversation), "the conversation"):
            total += step
        return total

    async def distil_all(self, deployment: str | None) -> Distilled:
        """The same for every conversation of a deployment, or of all."""
        total = Distilled()
        for scope in await self._store.scopes(deployment):
            for record in await scan_all(self._store, scope, CONVERSATION):
                total += await self.distil(scope, record.id)
        return total

    async def _step(self, scope: Scope, conversation: str) -> Distilled | None:
        """One write; None when there is nothing behind the cursor."""
        records = await self._store.read(scope, CONVERSATION, [conversation])
        if not records:
            return None
        cursor = cursor_of(records[0])
        turns = await self._store.scan(scope, TURN, key=conversation, after=cursor, limit=_TURNS)
        if not turns:
            await self._mark(scope, records[0])
            return None
        ledger = Ledger(self._store, scope)
        before = await self._store.scan(
            scope, TURN, key=conversation, after=cursor + 1, limit=_CONTEXT, newest_first=True
        )
        context = [turn_of(record) for record in reversed(before)]
        distilled = await self._listen(ledger, context, [turn_of(record) for record in turns])
        moved = record_of_conversation(conversation_of(records[0]), cursor=turns[-1].seq)
        await self._store.write(scope, [*ledger.changes, Put(record=moved, expect=records[0].version)])
        return distilled

    async def _mark(self, scope: Scope, record: Record) -> None:
        """A completed conversation whose last turn was read is distilled."""
        conversation = conversation_of(record)
        if conversation.status == "completed":
            done = replace(conversation, status="distilled")
            moved = record_of_conversation(done, cursor=cursor_of(record))
            await self._store.write(scope, [Put(record=moved, expect=record.version)])

    async def _listen(self, ledger: Ledger, context: list[Turn], turns: list[Turn]) -> Distilled:
        kept: list[Memory] = []
        retracted: list[Memory] = []
        # "actually it's Paula" corrects what was just said, not what was said an hour ago
        recent: deque[list[Heard]] = deque(maxlen=_RECENT)
        for turn in context:
            _hear(turn, recent)
        for turn in turns:
            for item in _hear(turn, recent):
                if item.retracts:
                    gone = await self._retract(ledger, item, turn)
                    retracted += [gone] if gone else []
                else:
                    new = await self._keep(ledger, item, turn)
                    kept += [new] if new else []
        return Distilled(turns=len(turns), kept=tuple(kept), retracted=tuple(retracted))

    async def _keep(self, ledger: Ledger, item: Heard, turn: Turn) -> Memory | None:
        """What is new in `item`; None where the same or newer is known, as when an old call is imported."""
        known = await ledger.current(item.key, ledger.scope.user)
        if known is not None and known.valid_from > turn.said_at:
            return None
        kept = await ledger.set(_memory(ledger.scope, item, turn))
        return None if known is not None and kept.id == known.id else kept

    async def _retract(self, ledger: Ledger, item: Heard, turn: Turn) -> Memory | None:
        known = await ledger.current(item.key, ledger.scope.user)
        if known is None:
            return None
        # "I'm not Pavel" takes back Pavel, not whatever name is known; "allergy:peanuts" names its one thing
        names_it = ":" in item.key or not item.text or item.text.casefold() == known.text.casefold()
        return await ledger.retract(item.key, ledger.scope.user, turn.said_at) if names_it else None


def _hear(turn: Turn, recent: deque[list[Heard]]) -> list[Heard]:
    """What the user said in `turn`, which is recent from now on; nothing of anybody else's."""
    if turn.speaker != "user" or not turn.heard_text:
        return []
    heard = listen(turn.heard_text, [item for items in recent for item in items])
    recent.append(heard)
    return heard


def _memory(scope: Scope, item: Heard, turn: Turn) -> Memory:
    return Memory(
        id="",
        key=item.key,
        text=item.text,
        statement=item.sentence,
        category=item.category,
        author=scope.user,
        source=(turn.id,),
        valid_from=turn.said_at,
    )
