"""What a caller says before they have said it: interim transcripts, and memory searched on them.

When the utterance is complete, what it calls to mind is there already, or is looked up as it would have been.
Nothing is guessed, nothing is kept: an utterance is what its final transcript says.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import tzinfo
from typing import Final

from echoic.errors import EchoicError
from echoic.memory.user import UserMemory
from echoic.types import Recall

log = logging.getLogger(__name__)

HITS: Final = 8
"""As many as a memory block looks at for the moment; a shorter list is the beginning of a longer one."""
_MAX_PARTIAL: Final = 1000
"""Characters of an interim transcript that are looked at."""


class Ear:
    """Follows the interim transcripts of one caller.

    Args:
        memory: theirs. Another caller gets another ear.
    """

    def __init__(self, memory: UserMemory) -> None:
        self.memory = memory
        self._listening = memory.listen(limit=HITS)
        self._heard = False
        self.recalls = 0
        """Utterances of which something was heard before their end."""
        self.ready = 0
        """Of these, those whose recall was there at their end."""

    def hear(self, partial: str) -> None:
        """Take in what the recogniser made of the utterance so far. Never waits."""
        if partial.strip():
            self._heard = True
            self._listening.partial(partial[:_MAX_PARTIAL])

    async def final(self, said: str, deadline_ms: float) -> UserMemory:
        """The memory to answer `said` from, which knows already what `said` calls to mind, if it was heard.

        To be asked before `said` is kept: what is written makes what was found before it old.

        Args:
            said: the whole utterance.
            deadline_ms: of the recall.
        """
        heard, self._heard = self._heard, False
        if not heard or not said.strip():
            return self.memory
        self.recalls += 1
        # what was found for one utterance is old by the next: that one is written in between
        listening, self._listening = self._listening, self.memory.listen(limit=HITS)
        try:
            recall = await listening.final(said, deadline_ms=deadline_ms)
        except EchoicError as error:  # whoever answers looks again, and says so where that fails, too
            log.warning("recall ahead of an answer failed: %s", type(error).__name__)
            return self.memory
        finally:
            self.ready += listening.statistics.ready
            await listening.aclose()
        return HeardMemory(self.memory, said, recall) if recall.outcome == "complete" else self.memory

    async def aclose(self) -> None:
        """Forget what was heard and found."""
        await self._listening.aclose()


class HeardMemory(UserMemory):
    """A user's memory in a moment for which it was asked already. It has that answer once.

    Whoever asks the same again may have written meanwhile, and is answered by looking.

    Args:
        memory: the user's.
        moment: what they said.
        recall: what that calls to mind; complete, and `HITS` of it.
    """

    def __init__(self, memory: UserMemory, moment: str, recall: Recall) -> None:
        self.__dict__.update(vars(memory))  # the same memory, with one answer at hand
        self._moment = _bare(moment)
        self._recalled: Recall | None = recall

    async def recall(
        self,
        text: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Recall:
        """See `UserMemory.recall`."""
        unset = all(each is None for each in (timezone, min_relevance, besides))
        plain = limit <= HITS and not include_past and unset
        if self._recalled is not None and plain and _bare(text) == self._moment:
            found, self._recalled = self._recalled, None
            return Recall(hits=found.hits[:limit], outcome=found.outcome)
        return await super().recall(
            text,
            limit=limit,
            deadline_ms=deadline_ms,
            include_past=include_past,
            timezone=timezone,
            min_relevance=min_relevance,
            besides=besides,
        )


def _bare(text: str) -> str:
    return " ".join(text.split())


__all__ = ["HITS", "Ear", "HeardMemory"]
