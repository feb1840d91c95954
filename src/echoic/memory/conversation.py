"""One conversation being held: capture first, everything else later."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.distil import Distilled
from echoic.memory.parts import Parts
from echoic.memory.records import (
    CONVERSATION,
    TURN,
    conversation_of,
    cursor_of,
    is_unlearned,
    record_of_conversation,
    record_of_turn,
    scan_all,
    turn_of,
)
from echoic.memory.retry import until_written
from echoic.stores.base import Put, Record, Require
from echoic.types import Conversation, Scope, Turn, checked_name, checked_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation that was recalled, with all that was said in it."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    likeness: float = 1.0
    """How alike the spoken key and the stored one are; 1: the same words."""


class OpenConversation:
    """A conversation to append to. Made by `UserMemory.conversation`; holds no state but its id."""

    def __init__(self, parts: Parts, scope: Scope, conversation_id: str, agent: str | None) -> None:
        self._parts = parts
        self._scope = scope
        self._agent = agent
        self.id = conversation_id

    async def append(self, *turns: Turn) -> tuple[Turn, ...]:
        """Keep what was said. Durable when it returns; a turn whose id is known already changes nothing.

        Returns:
            the turns as kept, in the order given: with ids, and the earlier ones where an id was known.

        Raises:
            InvalidInput: a turn belongs to another conversation, or this one was forgotten; none was kept.
            StoreUnavailable: none was kept; append them again.
        """
        new = [self._own(turn) for turn in turns]
        # a turn of what was forgotten would be found, but never learned from, listed or exported
        open_still = Require(kind=CONVERSATION, id=self.id)
        first: dict[str, Turn] = {}
        for turn in new:
            first.setdefault(turn.id, turn)  # said twice in one breath, as in two
        known: dict[str, Turn] = {}
        while missing := {name: turn for name, turn in first.items() if name not in known}:
            try:
                puts = [Put.over(None, record_of_turn(turn)) for turn in missing.values()]
                await self._parts.store.write(self._scope, [open_still, *puts])
            except WriteConflict:  # some were appended before, by us or by another process
                await self.info()  # or what they belong to is gone
                there = await self._parts.store.read(self._scope, TURN, list(missing))
                known |= {record.id: self._known(turn_of(record)) for record in there}
            else:
                known |= missing
                self._parts.background.poke((self._scope, self.id))
        return tuple(known[turn.id] for turn in new)

    async def truncate(self, heard: str, *, after: str | None = None) -> list[Turn]:
        """The caller cut in: of what the agent said last, only `heard` reached them. Durable when it returns.

        For channels that keep an answer before it was spoken. From now on history, recall and what is learned
        go by what was heard; the rest stays in `Turn.text`. May be said again, and with less.

        Args:
            heard: the words up to where it was silenced; a word that was broken off does not count. Empty:
                nothing was.
            after: the id of the user's turn that was being answered; None: these are the words it began with.

        Returns:
            the agent's turns of that answer, as they are kept now.

        Raises:
            InvalidInput: there is no such answer here, or `heard` is not how it begins.
        """
        if not isinstance(heard, str):
            raise InvalidInput(f"heard must be a string, not {type(heard).__name__}: {heard!r:.80}")

        async def attempt() -> list[Turn]:
            records = await scan_all(self._parts.store, self._scope, TURN, key=self.id)
            answer = _answer([(turn_of(record), record) for record in records], after)
            cut = _as_heard([turn for turn, _ in answer], heard)
            changed = [
                Put.over(record, record_of_turn(now, unlearned=is_unlearned(record)))
                for now, (turn, record) in zip(cut, answer, strict=True)
                if now != turn
            ]
            if changed:
                await self._parts.store.write(self._scope, changed)
                self._parts.background.poke()
            return cut

        return await until_written(attempt, f"conversation {self.id!r}")

    async def turns(self) -> list[Turn]:
        """Everything said so far, in order."""
        records = await scan_all(self._parts.store, self._scope, TURN, key=self.id)
        return [turn_of(record) for record in records]

    async def info(self) -> Conversation:
        """The conversation as it stands."""
        records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
        if not records:
            raise InvalidInput(f"conversation {self.id!r} was forgotten; open a new one")
        return conversation_of(records[0])

    async def store(self, key: str, summary: str | None = None) -> Conversation:
        """Make it recallable by a spoken key, with a summary of what it was about; None: the one it has."""
        checked_name(key, "recall key")
        if summary is None:
            return await self._change(recall_key=key)
        return await self._change(recall_key=key, summary=checked_text(summary, "summary"))

    async def complete(self) -> Conversation:
        """The call is over. It is distilled after this, here or by any worker."""
        done = await self._change(status="completed", distilled=False)
        self._parts.background.poke((self._scope, self.id))
        return done

    async def distil(self) -> Distilled:
        """Learn from what was said since the last time, now."""
        distilled = await self._parts.distiller.distil(self._scope, self.id)
        self._parts.background.poke()
        return distilled

    async def listen(self) -> Distilled:
        """Let the rules learn from what was said since the last time, now; a model reads later."""
        learned = await self._parts.distiller.listen(self._scope, self.id)
        self._parts.background.poke()
        return learned

    async def checkpoint(self) -> None:
        """Have a model read what is new, behind the caller's back: an agent hands over, a tool answered."""
        self._parts.background.poke((self._scope, self.id), urgent=True)

    async def begin(self) -> None:
        """Make the conversation exist; one that does is continued."""
        now = self._parts.clock()
        new = Conversation(id=self.id, agent=self._agent, status="active", started_at=now, updated_at=now)
        try:
            await self._parts.store.write(self._scope, [Put.over(None, record_of_conversation(new))])
        except WriteConflict:
            return

    async def _change(self, **fields: Any) -> Conversation:
        async def attempt() -> Conversation:
            records = await self._parts.store.read(self._scope, CONVERSATION, [self.id])
            if not records:
                raise InvalidInput(f"conversation {self.id!r} was forgotten; open a new one")
            changed = replace(conversation_of(records[0]), updated_at=self._parts.clock(), **fields)
            record = record_of_conversation(changed, cursor=cursor_of(records[0]))
            await self._parts.store.write(self._scope, [Put.over(records[0], record)])
            return changed

        return await until_written(attempt, f"conversation {self.id!r}")

    def _own(self, turn: Turn) -> Turn:
        if not isinstance(turn, Turn):
            raise InvalidInput(
                f"not a turn but {type(turn).__name__}: append takes one Turn or several, each by itself"
            )
        if turn.conversation and turn.conversation != self.id:
            raise InvalidInput(
                f"turn {turn.id!r} belongs to conversation {turn.conversation!r}, not to {self.id!r}"
            )
        return replace(turn, id=turn.id or self._parts.new_id(), conversation=self.id)

    def _known(self, turn: Turn) -> Turn:
        """A turn that was there, if it was said here: another's id would swallow what was said now."""
        if turn.conversation != self.id:
            raise InvalidInput(
                f"turn id {turn.id!r} is taken in conversation {turn.conversation!r}: "
                "give every turn of a user an id of its own, or none"
            )
        return turn


def _answer(turns: Sequence[tuple[Turn, Record]], after: str | None) -> list[tuple[Turn, Record]]:
    """What the agent said next after the user's turn `after`, or before any of the user's.

    Raises:
        InvalidInput: there is no such turn, or nothing was said then.
    """
    begin = 0
    if after is not None:
        begin = next((n + 1 for n, (turn, _) in enumerate(turns) if turn.id == after), len(turns))
    answer = list(itertools.takewhile(lambda item: item[0].speaker == "agent", turns[begin:]))
    if not answer:
        what = "before the user spoke" if after is None else f"after turn {after!r}"
        raise InvalidInput(f"the agent said nothing {what}: there is no answer that could be cut off")
    return answer


def _as_heard(turns: Sequence[Turn], heard: str) -> list[Turn]:
    """`turns` of one answer of which `heard` reached the caller.

    Raises:
        InvalidInput: the answer does not begin like that.
    """
    left = heard.split()
    found = []
    for turn in turns:
        words = list(re.finditer(r"\S+", turn.text))
        same = [word.group() == one for word, one in zip(words, left, strict=False)]
        count = same.index(False) if False in same else len(same)
        broken_off = (
            len(left) == count + 1 and count < len(words) and words[count].group().startswith(left[-1])
        )
        if count < len(same) and not broken_off:
            raise InvalidInput(
                f"the agent's answer does not begin with {heard!r}: give the words as it said them"
            )
        whole = count == len(words)
        found.append(
            replace(turn, heard=None if whole else turn.text[: words[count - 1].end()] if count else "")
        )
        left = left[count + broken_off :]
    if left:
        raise InvalidInput(f"the agent's answer does not go on with {' '.join(left)!r}: it is shorter")
    return found
