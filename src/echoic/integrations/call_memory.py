"""The memory of one call inside a voice framework, shared by `livekit` and `pipecat`.

    call = CallMemory(service.user("ana"))
    call.hear("what am I aller")                                # interim transcripts, as they come
    memory = await call.memory_for("What am I allergic to?")    # text for the model, within the deadline
    call.user_said("What am I allergic to?")                    # never waits: one writer keeps turns in order
    call.agent_said("Peanuts,", interrupted=True)               # the part of the reply that was heard
    await call.aclose()                                         # stores everything that was said

Memory is searched while the user speaks, so that the result is ready when they stop. This module imports no
framework and raises no store or embedder error: if memory cannot be searched, the model is told so; a turn
that cannot be written is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from echoic.checks import AGENT, MAX_KEY_CHARACTERS, USER, checked_name, searchable, storable
from echoic.errors import EchoicError, InvalidInput, QuotaExceeded
from echoic.memory.concurrency import noted
from echoic.memory.conversation import OpenConversation
from echoic.memory.speculation import ListeningStatistics
from echoic.memory.user import UserMemory
from echoic.prompt.answer import NOT_ALL_SEEN, UNREAD
from echoic.prompt.block import directives_draft
from echoic.session.speech_alignment import heard_part, says
from echoic.session.turn_recall import DEFAULT_DEADLINE_MS, CallRecall
from echoic.text.heard_words import heard_ends
from echoic.types import Outcome, Turn

log = logging.getLogger(__name__)

BLOCK_TIMEOUT_S: Final = 3.0
FINISH_S: Final = 10.0
"""How long the end of a call waits for the store to accept the last turns."""
RETRY_S: Final = 0.5
_DRAFTS: Final = 8
"""How many replies of the model wait until it is known how much of them was heard."""


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """What memory adds to one turn."""

    text: str = ""
    """The text for the model; empty if there is nothing to add."""
    outcome: Outcome = "complete"
    """Whether all of memory was searched. "complete" with an empty `text` means that nothing is known."""

    @property
    def message(self) -> str:
        """`text` as the content of a separate message; empty if there is nothing to add.

        Send it with the role "user", never "system" or "developer": what it quotes must not have the
        operator's authority. Quoted text cannot close the tag.
        """
        return f"<memory>\nNobody said this: it was looked up.\n{self.text}\n</memory>" if self.text else ""


NOTHING: Final = TurnMemory()
UNAVAILABLE: Final = TurnMemory(UNREAD, "unavailable")


class CallMemory:
    """The memory of one user in one call. Use it in one event loop.

    Args:
        user: the user's memory.
        call: the id of the call and of its conversation; new if empty. An id that was used before continues
            that conversation; its turns are not recalled during the call.
        agent: the name under which conversations and experience are stored.
        deadline_ms: how long a reply may wait for memory.
        words_of: makes of what a model wrote the words that are spoken, where the framework has it write
            markup for its voice; all of it by default.

    Raises:
        InvalidInput: the deadline is not above 0, or a name is not valid.
        NotOpen: the memory is not open in this event loop.
    """

    def __init__(
        self,
        user: UserMemory,
        call: str = "",
        *,
        agent: str | None = None,
        deadline_ms: float = DEFAULT_DEADLINE_MS,
        words_of: Callable[[str], str] = str,
    ) -> None:
        self.call = checked_name(call, "call") if call else uuid4().hex
        self._user, self._agent, self._words_of = user, agent, words_of
        self._recall = CallRecall(user, self.call, None, deadline_ms=deadline_ms)
        user.check_loop()
        self._looking = asyncio.Lock()
        self._answers: dict[str, asyncio.Task[TurnMemory]] = {}
        """Lookups for this turn by its words, so that repeated requests get the same text."""
        self._wishes = ""
        """The user's directives, which are part of the text for every turn."""
        self._segments: list[str] = []
        """The final transcripts of this turn; there may be several."""
        self._turn_is_over = True
        self._drafts = deque[list[str]](maxlen=_DRAFTS)
        """What the model wrote and nobody has spoken yet, in order."""
        self._cut_off = ""
        """The heard part of the last interrupted reply, until the user's next turn."""
        self._unkept = deque[tuple[Turn, asyncio.Task[TurnMemory] | None]]()
        """Turns that are not written yet, in order; a user's turn with its lookup."""
        self._opened: OpenConversation | None = None
        self._writer: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def statistics(self) -> ListeningStatistics:
        """Counts of searches made while the user spoke, and of results that were ready in time."""
        return self._recall.statistics

    def warm(self) -> None:
        """Load what the first turn needs in the background; call it while the phone rings.

        Raises:
            NotOpen: the memory is not open in this event loop.
        """
        self._user.check_loop()
        if self._warming is None:
            self._warming = asyncio.get_running_loop().create_task(self._warm())
            self._warming.add_done_callback(noted)  # the first turn tries again

    async def _warm(self) -> None:
        await self._read_wishes()
        await self._user.warm()

    async def _read_wishes(self) -> None:
        try:
            directives = await self._user.directives(for_agent=self._agent, for_conversation=self.call)
            asks_first = await self._user.asks_first(self.call)
        except EchoicError as error:
            log.warning("how a user wants to be served could not be read: %s", type(error).__name__)
        else:
            self._wishes = "\n".join(directives_draft(directives, asks_first=asks_first).lines)

    # -- for the model

    def hear(self, text: str, *, final: bool = False) -> None:
        """Report a transcript while the user speaks: interim, or `final` for a complete segment."""
        if self._turn_is_over:
            self._turn_is_over = False
            self._answers.clear()
        so_far = " ".join([*self._segments, text]).strip()
        if final:
            self._segments = [so_far]
        if so_far and self._closing is None:
            self._recall.partial(searchable(so_far))

    def discard(self) -> None:
        """Drop the transcripts of this turn: they were noise, or a backchannel such as "mhm"."""
        self._segments = []

    async def memory_for(self, said: str) -> TurnMemory:
        """Search memory for the user's turn `said`, within the deadline. The result says if that failed.

        A repeated call for the same turn, as by speculative generation or after a tool, returns the same.
        """
        if not searchable(said):
            return NOTHING
        # shielded: a cancelled reply must not end the search for another
        return await asyncio.shield(self._answer(said))

    def _answer(self, said: str) -> asyncio.Task[TurnMemory]:
        name = " ".join(said.casefold().split()).strip(" .,;:?!…\"'")
        if name not in self._answers:
            self._answers[name] = asyncio.get_running_loop().create_task(self._look_up(said))
        return self._answers[name]

    async def message_for(self, said: str | None) -> str:
        """The message that a request gets: what is known for its newest user message `said`, or about the
        caller if it has none, as for a greeting. Empty if there is nothing to add.
        """
        return await self.block() if said is None else (await self.memory_for(said)).message

    async def block(self) -> str:
        """The memory block to start a session with, as the content of a message: profile and directives."""
        try:
            async with asyncio.timeout(BLOCK_TIMEOUT_S):
                block = await self._user.block(
                    agent=self._agent, conversation=self.call, deadline_ms=BLOCK_TIMEOUT_S * 500
                )
        except (EchoicError, TimeoutError) as error:
            log.warning("the memory block could not be read: %s", type(error).__name__)
            return UNAVAILABLE.message
        return block.text if len(block.sections) > 1 else ""  # the first one only introduces the others

    async def _look_up(self, said: str) -> TurnMemory:
        async with self._looking:
            try:
                found = await self._recall.final(searchable(said))
            except Exception as error:  # noqa: BLE001 - of a custom embedder or store: the call goes on
                log.error("a call's recall failed: %s", type(error).__name__)  # noqa: TRY400 - no content
                return UNAVAILABLE
        # what could not be packed in time does not reach the model either
        is_late = found.outcome == "deadline" or any(hit.fate == "late" for hit in found.found)
        outcome: Outcome = "deadline" if is_late else found.outcome
        told = found.text or {"complete": "", "deadline": NOT_ALL_SEEN, "unavailable": UNREAD}[outcome]
        return TurnMemory("\n".join(part for part in (self._wishes, told) if part), outcome)

    # -- storing turns

    def user_said(
        self,
        text: str,
        *,
        id: str = "",  # noqa: A002 - as everywhere
        said_at: datetime | None = None,
        confidence: float | None = None,
    ) -> None:
        """Store a completed turn of the user. A turn delivered again with the same id is stored once. Never
        waits.
        """
        self._segments, self._turn_is_over = [], True
        self._cut_off = ""
        self._keep(USER, text, id=id, said_at=said_at, confidence=confidence)

    def reply(self) -> list[str]:
        """Begin a reply of the model: append its text to the returned list as it is generated."""
        self._drafts.append([])
        return self._drafts[-1]

    def agent_said(
        self,
        text: str,
        *,
        interrupted: bool = False,
        id: str = "",  # noqa: A002 - as everywhere
        said_at: datetime | None = None,
    ) -> None:
        """Store what the agent said. Never waits.

        An interrupted reply is stored in full, with the part that was heard. It is stored once, even if it is
        delivered again with another id.

        Args:
            text: the reply; if `interrupted`, the part of it that was heard.
            interrupted: whether the user interrupted it.
            id: the id of the turn; new if empty.
            said_at: when it was spoken; now by default.
        """
        if not text.strip():
            return  # before a tool, or interrupted before a word was heard
        self._answers.clear()  # the turn is answered: the same words are looked up again next time
        drafts = [self._words_of("".join(draft)).strip() for draft in self._drafts]
        if not interrupted:
            self._spoken(next((n for n, heard in _beginning(drafts, text) if heard == drafts[n]), -1))
            self._keep(AGENT, text, id=id, said_at=said_at)
            return
        if text.strip() == self._cut_off:
            return  # frameworks report an interrupted answer twice, with different ids
        self._cut_off = text.strip()
        number, heard = next(_beginning(drafts, text), (-1, text))
        written = drafts[number] if number >= 0 else text  # such as a filler, which no model wrote
        self._spoken(number)
        self._keep(AGENT, written, heard=None if heard == written else heard, id=id, said_at=said_at)

    def _spoken(self, number: int) -> None:
        """Drop draft `number`, which was spoken, and those before it, which never will be."""
        for _ in range(number + 1):
            self._drafts.popleft()

    def _keep(
        self,
        speaker: str,
        text: str,
        *,
        id: str,  # noqa: A002 - as everywhere
        said_at: datetime | None,
        heard: str | None = None,
        confidence: float | None = None,
    ) -> None:
        if not (kept := storable(text).strip()):
            return
        turn = Turn(
            speaker=speaker,
            text=kept,
            heard=None if heard is None else storable(heard),
            said_at=said_at or datetime.now(UTC),
            confidence=confidence if confidence is not None and 0 < confidence <= 1 else None,
            id=f"{self.call}:{id or uuid4().hex}"[-MAX_KEY_CHARACTERS:],
        )
        self._unkept.append((turn, self._answer(kept) if speaker == USER and self._closing is None else None))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Write the waiting turns in order. One that cannot be written waits for the next, or for the end."""
        while self._unkept:
            turn, looking = self._unkept[0]
            if looking is not None:  # first, since a write makes earlier search results stale
                await asyncio.wait([looking])
            try:
                if self._opened is None:
                    self._opened = await self._user.conversation(self.call, agent=self._agent)
                await self._opened.append(turn)
            except (InvalidInput, QuotaExceeded) as error:  # such as a forgotten call: never to be stored
                log.error("a turn of a call is not kept: %s", type(error).__name__)  # noqa: TRY400 - no content
            except Exception as error:  # noqa: BLE001 - nobody else would keep the rest of the call
                left = len(self._unkept)
                log.warning("%d turns of a call are not kept yet: %s", left, type(error).__name__)
                return
            self._unkept.popleft()
            if turn.speaker == USER:
                await self._read_wishes()  # this turn may have changed them

    async def aclose(self) -> None:
        """Store the remaining turns and complete the conversation. May be called twice."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)  # even if cancelled, the last words are stored

    async def _close(self) -> None:
        if self._warming is not None:
            self._warming.cancel()
        try:
            async with asyncio.timeout(FINISH_S):
                await self._settled()
                if self._opened is not None:
                    await self._opened.complete()
        except (EchoicError, TimeoutError) as error:
            what = (
                f"{len(self._unkept)} turns of a call are not kept" if self._unkept else "a call is not ended"
            )
            log.error("%s: %s", what, type(error).__name__)  # noqa: TRY400 - no content
        await self._recall.aclose()

    async def _settled(self) -> None:
        """Wait until every turn is stored, retrying every `RETRY_S` seconds."""
        while True:
            if self._writer is not None:
                await asyncio.shield(self._writer)
            if not self._unkept:
                return
            await asyncio.sleep(RETRY_S)
            self._writer = asyncio.get_running_loop().create_task(self._write())


def _beginning(drafts: Sequence[str], text: str) -> Iterator[tuple[int, str]]:
    """The drafts that begin with `text`, which was heard: their numbers, and the part of them that is meant.

    The best match first, and of equal ones the newest.
    """
    newest_first = [(number, drafts[number]) for number in reversed(range(len(drafts)))]
    for number, draft in newest_first:
        if says(draft, text, at_start=True):
            yield number, heard_part(draft, text)
    for number, draft in newest_first:  # speech output may report "five dollars" for "$5"
        with suppress(InvalidInput):
            if end := heard_ends([draft], text)[0]:
                yield number, draft[:end]
    for number, draft in newest_first:  # spoken in other words
        if says(draft, text.split(maxsplit=1)[0], at_start=True):
            yield number, text
