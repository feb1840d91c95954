"""Speculative recall over HTTP: the state between requests.

Each conversation of a caller has a `Speculation`, as `UserMemory.listen` returns it. If one is lost, the
final transcript is searched for from scratch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from echoic.memory.assurance import Level
from echoic.memory.block import HITS
from echoic.memory.hooks import Forgotten
from echoic.memory.service import MemoryService
from echoic.memory.speculation import Speculation
from echoic.memory.user import UserMemory
from echoic.types import Recall, Scope

PER_USER: Final = 8
IN_ALL: Final = 1024
"""Conversations followed at once; one more ends the one that was silent for longest."""

_Name = tuple[Scope, str, Level]
"""Whose memory, in which conversation, and what the caller may be told: what was found for one level is never
told to another."""


@dataclass(slots=True)
class _InterimListener:
    speculation: Speculation
    number: int = -1
    """The number of the newest transcript."""


class Speculations:
    """Follows the interim transcripts of every conversation of one service."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._ears: OrderedDict[_Name, _InterimListener] = OrderedDict()
        """In order of last use."""

    def open(self) -> None:
        """Subscribe to erasures."""
        self._memory.on_forgotten(self._forgotten)

    async def aclose(self) -> None:
        """End all listening. May be called twice."""
        self._memory.remove_hook(self._forgotten)
        while self._ears:
            await self._drop(next(iter(self._ears)))

    async def partial(
        self,
        memory: UserMemory,
        conversation: str,
        *,
        text: str,
        alternatives: Sequence[str] = (),
        number: int | None = None,
    ) -> bool:
        """Search for an interim transcript; returns False if a newer one arrived before, so that it is
        ignored.

        Raises:
            InvalidInput: `conversation` is not a valid name.
        """
        ear = await self._ear(memory, conversation)
        if not _is_newest(ear, number):
            return False
        ear.speculation.partial(text, alternatives)
        return True

    async def final(
        self,
        memory: UserMemory,
        conversation: str,
        *,
        text: str,
        alternatives: Sequence[str] = (),
        number: int | None = None,
        deadline_ms: float | None = None,
    ) -> Recall:
        """The results for the whole utterance; see `Speculation.final`."""
        ear = await self._ear(memory, conversation)
        _is_newest(ear, number)  # from now on, partials that were overtaken are ignored
        return await ear.speculation.final(text, alternatives=alternatives, deadline_ms=deadline_ms)

    async def end(self, memory: UserMemory, conversation: str) -> None:
        """End following a conversation."""
        for name in [name for name in self._ears if name[:2] == (memory.scope, conversation)]:
            await self._drop(name)

    async def _ear(self, memory: UserMemory, conversation: str) -> _InterimListener:
        name = (memory.scope, conversation, memory.level)
        if name not in self._ears:
            speculation = memory.listen(limit=HITS, besides=conversation)
            own = [key for key in self._ears if key[0] == memory.scope]
            if len(own) >= PER_USER:
                await self._drop(own[0])
            elif len(self._ears) >= IN_ALL:
                await self._drop(next(iter(self._ears)))
            self._ears.setdefault(name, _InterimListener(speculation))
        self._ears.move_to_end(name)
        return self._ears[name]

    async def _forgotten(self, event: Forgotten) -> None:
        """Drop results that were found before an erasure."""
        for name in [name for name in self._ears if name[0] == event.scope]:
            await self._drop(name)

    async def _drop(self, name: _Name) -> None:
        ear = self._ears.pop(name, None)
        if ear is not None:
            await ear.speculation.aclose()


def _is_newest(ear: _InterimListener, number: int | None) -> bool:
    """Whether no higher number arrived before. Transcripts without a number count in order of arrival."""
    if number is None:
        return True
    if number <= ear.number:
        return False
    ear.number = number
    return True
