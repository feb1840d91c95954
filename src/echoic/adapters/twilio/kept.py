"""What was said in one call, and whether it is kept: as it is said, once somebody agrees, or not at all."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from echoic.errors import EchoicError, InvalidInput
from echoic.memory.conversation import OpenConversation
from echoic.memory.user import UserMemory
from echoic.types import Turn

log = logging.getLogger(__name__)


class CallLog:
    """The words of one call in one person's memory.

    Args:
        user: whose.
        conversation: under which id it is kept.
        agent: who serves.
        keeping: whether what is said is kept as it is said. Otherwise it is held by this process until
            `keep`, and lost with it.
    """

    def __init__(self, user: UserMemory, conversation: str, agent: str, *, keeping: bool) -> None:
        self.user = user
        self.conversation = conversation
        self.turns: list[Turn] = []
        """All of the call, in order."""
        self.keeping = keeping
        self._agent = agent
        self._durable = 0
        self._cuts: dict[str, tuple[str, str | None]] = {}
        """What is kept as wholly heard and was not, by the turn: how much was, and which turn it answers."""
        self._writing = asyncio.Lock()

    @property
    def durable(self) -> bool:
        """Whether any of it is in the store."""
        return self._durable > 0

    async def add(self, turn: Turn) -> None:
        """Note what was said. Durable when it returns, where the call is kept and the store can be reached;
        what cannot be kept now is with the next.
        """
        if any(known.id == turn.id for known in self.turns):
            return
        self.turns.append(turn)
        if self.keeping:
            await self._flush()

    async def add_result(self, name: str, result: dict[str, Any]) -> None:
        """Keep `result` with the call, if any of it is kept."""
        if not self.durable:
            return
        try:
            await self.user.add_result(self.conversation, name, result, id=f"{self.conversation}:{name}")
        except EchoicError as error:
            log.warning("what a call took is not kept: %s", type(error).__name__)

    async def cut(self, turn: str, heard: str) -> None:
        """Of the agent's `turn`, noted as it was handed over, only its beginning `heard` was heard."""
        at = next((n for n, known in enumerate(self.turns) if known.id == turn), None)
        if at is None:
            return  # it went with another's words
        self.turns[at] = replace(self.turns[at], heard=heard)
        asked = next((known.id for known in reversed(self.turns[:at]) if known.speaker == "user"), None)
        self._cuts[turn] = (heard, asked)
        if self.keeping:
            await self._flush()

    async def keep(self) -> bool:
        """Keep all that was said so far and what is said from now on; whether all of it is durable."""
        self.keeping = True
        return await self._flush()

    async def drop(self) -> None:
        """Keep nothing of the call, and destroy what was kept of it, with what was learned from it alone.

        Raises:
            StoreUnavailable: it may still be there.
        """
        self.keeping = False
        async with self._writing:
            if not self._durable:
                return
            said = {turn.id for turn in self.turns}
            # the conversation first: whoever is distilling it then writes nothing more
            await self.user.forget(conversation=self.conversation)
            await self.user.forget(learned_from=said)
            self._durable, self._cuts = 0, {}

    async def complete(self) -> None:
        """The call is over: what is kept of it is distilled from now on."""
        if self.keeping and await self._flush() and self._durable:
            try:
                opened = await self.user.conversation(self.conversation, agent=self._agent)
                await opened.complete()
            except EchoicError as error:
                log.error("a call could not be marked as completed: %s", type(error).__name__)  # noqa: TRY400 - no content

    def resume(self, turns: list[Turn]) -> None:
        """Go on with a call another process began: these turns of it are kept."""
        self.turns = [*turns, *self.turns]
        self._durable = len(turns)

    async def _flush(self) -> bool:
        async with self._writing:
            new = self.turns[self._durable :]
            if not new and not self._cuts:
                return True
            try:
                opened = await self.user.conversation(self.conversation, agent=self._agent)
                if new:
                    await opened.append(*new)
                    self._durable += len(new)
                await self._cut_kept(opened)
            except EchoicError as error:
                log.error("%d turns of a call are not kept yet: %s", len(new), type(error).__name__)  # noqa: TRY400 - no content
                return False
            return True

    async def _cut_kept(self, opened: OpenConversation) -> None:
        """Cut what was appended before it was known how much of it was heard."""
        for turn, (heard, asked) in list(self._cuts.items()):
            try:
                await opened.truncate(heard, after=asked)
            except InvalidInput as error:  # it is not there any more; asking again would change nothing
                log.warning("a turn could not be cut to what was heard: %s", type(error).__name__)
            self._cuts.pop(turn, None)


def turn_of(said: str, speaker: str, name: str, confidence: float | None) -> Turn:
    """What was said just now, as a turn."""
    sure = confidence if confidence is not None and 0 <= confidence <= 1 else None
    return Turn(speaker=speaker, text=storable(said), confidence=sure, id=name, said_at=datetime.now(UTC))


def storable(text: str) -> str:
    """`text` as it can be kept: it was said, and must not be lost for what cannot."""
    return text.replace("\0", "").encode(errors="replace").decode()[:8000]


__all__ = ["CallLog", "storable", "turn_of"]
