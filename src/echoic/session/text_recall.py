"""Recall for a call in text: memory is searched on interim transcripts, and what is found noted for `why`.

When the utterance is complete, what it calls to mind is there already, or is looked up as it would have been.
Nothing is kept of an interim transcript: an utterance is what its final transcript says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final

from echoic.errors import EchoicError
from echoic.memory.speculation import Speculation
from echoic.memory.user import UserMemory
from echoic.prompt import quoted
from echoic.prompt.block import memory_line
from echoic.session.turn_recall import Fate, RecallTrace, found_of
from echoic.types import Hit, Recall

log = logging.getLogger(__name__)

HITS: Final = 8
"""As many as a memory block looks at for the moment; a shorter list is the beginning of a longer one."""
_MAX_PARTIAL: Final = 1000
"""Characters of an interim transcript that are looked at."""


class Ear:
    """Follows the interim transcripts of one caller.

    Args:
        memory: theirs. Another caller gets another ear.
        conversation: the call's; what is said in it is not searched.
    """

    def __init__(self, memory: UserMemory, conversation: str) -> None:
        self.memory = memory
        self.conversation = conversation
        self._listening = self._listen()
        self._heard = False
        self.recalls = 0
        """Utterances of which something was heard before their end."""
        self.ready = 0
        """Of these, those whose recall was there at their end."""

    def _listen(self) -> Speculation:
        return self.memory.listen(limit=HITS, besides=self.conversation)

    def hear(self, partial: str) -> None:
        """Take in what the recogniser made of the utterance so far. Never waits."""
        if partial.strip():
            self._heard = True
            self._listening.partial(partial[:_MAX_PARTIAL])

    async def final(self, said: str, deadline_ms: float) -> HeardMemory:
        """The memory to answer `said` from, with what `said` calls to mind at hand if that was found ahead.

        Ask for it before `said` is kept: what is written makes what was found before it old.

        Args:
            said: the whole utterance.
            deadline_ms: of the recall.
        """
        heard, self._heard = self._heard, False
        if not heard or not said.strip():
            return HeardMemory(self.memory, said, self.conversation)
        self.recalls += 1
        # what was found for one utterance is old by the next: that one is written in between
        listening, self._listening = self._listening, self._listen()
        began, ready_before = time.perf_counter(), listening.statistics.ready
        try:
            recall = await listening.final(said, deadline_ms=deadline_ms)
        except EchoicError as error:  # whoever answers looks again, and says so where that fails, too
            log.warning("recall ahead of an answer failed: %s", type(error).__name__)
            return HeardMemory(self.memory, said, self.conversation)
        finally:
            self.ready += listening.statistics.ready
            await listening.aclose()
        if recall.outcome != "complete":
            return HeardMemory(self.memory, said, self.conversation)
        memory = HeardMemory(self.memory, said, self.conversation, recall)
        memory.ready = listening.statistics.ready > ready_before
        memory.delay_ms = 1000 * (time.perf_counter() - began)
        return memory

    async def aclose(self) -> None:
        """Forget what was heard and found."""
        await self._listening.aclose()


class HeardMemory(UserMemory):
    """A user's memory in the moment in which they said something: it notes what that calls to mind.

    An answer that was found ahead is given once. Whoever asks the same again may have written meanwhile, and
    is answered by looking.

    Args:
        memory: the user's.
        moment: what they said.
        conversation: the one they said it in; its turns are left out of the moment's recall.
        recall: what that calls to mind, complete, and `HITS` of it; None: nothing was found ahead.
    """

    def __init__(
        self, memory: UserMemory, moment: str, conversation: str, recall: Recall | None = None
    ) -> None:
        self.__dict__.update(vars(memory))  # the same memory, with one answer at hand
        self._moment = _bare(moment)
        self._conversation = conversation
        self._ahead = recall
        self._noted: Recall | None = None
        self._at = datetime.now(UTC)
        self.ready = False
        """Whether the answer was there when the utterance ended."""
        self.delay_ms = 0.0
        """From the end of the utterance to the answer."""

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
        here = {self._conversation}
        left_out = here if besides is None else {besides} if isinstance(besides, str) else set(besides)
        unset = timezone is None and min_relevance is None and left_out == here
        plain = limit <= HITS and not include_past and unset and _bare(text) == self._moment
        if self._ahead is not None and plain:
            found, self._ahead = self._ahead, None
            self._noted = Recall(hits=found.hits[:limit], outcome=found.outcome)
            return self._noted
        began = time.perf_counter()
        recall = await super().recall(
            text,
            limit=limit,
            deadline_ms=deadline_ms,
            include_past=include_past,
            timezone=timezone,
            min_relevance=min_relevance,
            besides=left_out if plain else besides,
        )
        if plain and self._noted is None:
            self._noted, self._at = recall, datetime.now(UTC)
            self.delay_ms = 1000 * (time.perf_counter() - began)
        return recall

    def recalled(self, given: Mapping[str, str]) -> RecallTrace | None:
        """What the moment called to mind, for the record of the call; None: nobody asked for it.

        Args:
            given: the block the model was given, by the name of the section.
        """
        if self._noted is None:
            return None
        hits = self._noted.apart().hits
        return RecallTrace(
            query=self._moment,
            outcome=self._noted.outcome,
            found=tuple(found_of(hit, _fate(hit, given)) for hit in hits),
            cut=self._noted.cut,
            ready=self.ready,
            delay_ms=self.delay_ms,
            at=self._at,
        )


def _fate(hit: Hit, given: Mapping[str, str]) -> Fate:
    """What became of a hit: the block says for the moment what it does not say already."""
    if hit.memory is None:
        return "over_budget"
    line = memory_line(hit.memory)
    if line in given.get("now", "").splitlines():
        return "shown"
    everything = "\n".join(given.values())
    known = line in everything.splitlines() or quoted(hit.memory.text) in given.get("profile", "")
    return "in_block" if known else "over_budget"


def _bare(text: str) -> str:
    return " ".join(text.split())
