"""Recall while the caller speaks: what is found for each turn of a call, and what of it the model is shown.

It has a time limit and never fails: `outcome` says if recall was not possible.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from echoic.errors import EchoicError, InvalidInput, brief
from echoic.memory.concurrency import noted
from echoic.memory.speculation import ListeningStatistics
from echoic.memory.user import UserMemory
from echoic.prompt.answer import Packed
from echoic.prompt.block import memory_line, quoted
from echoic.types import Hit, Outcome, Recall

log = logging.getLogger(__name__)

DEFAULT_DEADLINE_MS: Final = 50.0
"""Part of the pause between turns in conversation: 200 ms on average (Stivers et al., PNAS 2009)."""
HITS: Final = 5
BLOCK_HITS: Final = 8
"""Hits that a memory block uses for the moment; a shorter list is a prefix of a longer one."""
BUDGET_TOKENS: Final = 200

Fate = Literal["shown", "in_block", "repeated", "over_budget", "late"]
"""What became of a hit. in_block: the model already had it. repeated: another hit says the same.
over_budget: it did not fit. late: it was not ready in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledHit:
    """One hit of a recall, without its text, which is stored in memory."""

    id: str
    kind: Literal["memory", "turn"]
    score: float
    ranks: dict[str, tuple[int, float]]
    """Rank and score by channel."""
    fate: Fate
    relevance: float = 1.0
    """How likely it was to answer, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTrace:
    """The outcome of a recall."""

    query: str
    outcome: Outcome
    text: str = ""
    """For the model; empty if there is nothing new."""
    found: tuple[RecalledHit, ...] = ()
    cut: tuple[str, ...] = ()
    ready: bool = False
    """Whether it was ready when the turn ended."""
    delay_ms: float = 0.0
    """From the end of the turn to the result."""
    at: datetime
    turn_id: str = ""


@dataclass(frozen=True, slots=True)
class _PackedAhead:
    """The recall for the words so far, being packed before the turn ends."""

    recall: Recall
    fates: dict[int, Fate]
    """The fates of its hits, by index."""
    packing: asyncio.Task[Packed | None]


class CallRecall:
    """Searches memory for the interim transcripts of one caller during a call. Each caller gets their own.

    Args:
        memory: the caller's memory.
        conversation: the conversation of the call, which is not searched, since the model has it.
        given: the memory block that the model has. None if each turn's text goes into one request only and
            not into the history.
        deadline_ms: time limit of a turn's recall, from when its last word is known.
        packs: whether turns are answered by `final`, with text; otherwise by `in_turn`, with memory.

    Raises:
        InvalidInput: a deadline that is not above 0.
    """

    def __init__(
        self,
        memory: UserMemory,
        conversation: str,
        given: Callable[[], str] | None,
        *,
        deadline_ms: float = DEFAULT_DEADLINE_MS,
        packs: bool = True,
    ) -> None:
        if not deadline_ms > 0:
            raise InvalidInput(f"recall_deadline_ms must be above 0, not {brief(deadline_ms)}")
        self._memory = memory
        self._conversation = conversation
        self._given = given
        self._deadline_ms = deadline_ms
        self._listening = memory.listen(limit=HITS if packs else BLOCK_HITS, besides=conversation)
        if packs:
            self._listening.on_found = self._prepare
        self._heard = False
        self._shown: set[str] = set()
        self._prepared: _PackedAhead | None = None

    @property
    def statistics(self) -> ListeningStatistics:
        return self._listening.statistics

    def partial(self, partial: str) -> None:
        """Report an interim transcript. Never waits."""
        self._heard = self._heard or bool(partial.strip())
        self._listening.partial(partial)

    async def in_turn(self, said: str) -> MemoryInTurn:
        """The memory for answering `said`, including what recall found ahead for it, if anything.

        Call it before `said` is stored: a write makes earlier results stale.
        """
        memory = MemoryInTurn(self._memory, said, self._conversation)
        heard, self._heard = self._heard, False
        if not heard or not said.strip():
            return memory
        listening = self._listening
        began, ready_before = time.perf_counter(), listening.statistics.ready
        try:
            recall = await listening.final(said, deadline_ms=self._deadline_ms)
        except EchoicError as error:  # whoever answers searches again
            log.warning("recall ahead of an answer failed: %s", type(error).__name__)
            return memory
        finally:
            if not self._heard:  # results are stale by the next utterance
                listening.reset()
        if recall.outcome == "complete":
            memory.ahead = recall
            memory.ready = listening.statistics.ready > ready_before
            memory.delay_ms = 1000 * (time.perf_counter() - began)
        return memory

    async def final(self, text: str) -> RecallTrace:
        """What is known for the whole turn, within the deadline."""
        listening = self._listening
        begun, ready_before = time.perf_counter(), listening.statistics.ready
        until_s = begun + self._deadline_ms / 1000
        recall, fates, packed = Recall(hits=(), outcome="unavailable"), dict[int, Fate](), ""
        try:
            recall = await listening.final(text, deadline_ms=self._deadline_ms)
            fates = self._fates(_each(recall))
            packed = self._take(recall, fates, await self._packed(recall, fates, until_s))
        except TimeoutError:
            late: Fate = "late"
            fates = {place: fates.get(place, late) for place in range(len(_each(recall)))}
        except EchoicError as error:
            log.warning("a call's recall failed: %s", type(error).__name__)
            recall = Recall(hits=(), outcome="unavailable")
        finally:
            self._drop()
        return RecallTrace(
            query=text,
            outcome=recall.outcome,
            text=packed,
            found=tuple(
                found_of(hit, fates.get(place, "repeated")) for place, hit in enumerate(_each(recall))
            ),
            cut=recall.cut,
            ready=listening.statistics.ready > ready_before,
            delay_ms=1000 * (time.perf_counter() - begun),
            at=datetime.now(UTC),
        )

    async def aclose(self) -> None:
        self._drop()
        await self._listening.aclose()

    def _prepare(self, recall: Recall) -> None:
        """Pack what was found so far, in case it is the result at the end of the turn."""
        if self._prepared is not None and self._prepared.recall is recall:
            return
        self._drop()
        fates = self._fates(_each(recall))
        packing = asyncio.get_running_loop().create_task(self._pack(recall, fates))
        packing.add_done_callback(noted)
        self._prepared = _PackedAhead(recall, fates, packing)

    def _drop(self) -> None:
        if self._prepared is not None:
            self._prepared.packing.cancel()
            self._prepared = None

    async def _packed(self, recall: Recall, fates: dict[int, Fate], until_s: float) -> Packed | None:
        """`recall` packed, ahead of time or now.

        Raises:
            TimeoutError: packing did not finish by `until_s`.
            StoreUnavailable: the turns around a hit could not be read.
        """
        prepared = self._prepared
        if prepared is None or prepared.recall is not recall or prepared.fates != fates:
            packing = self._pack(recall, fates)
        elif prepared.packing.done() and not prepared.packing.cancelled():
            return prepared.packing.result()
        else:
            packing = _of(prepared.packing)
        async with asyncio.timeout(max(until_s - time.perf_counter(), 0.001)):
            return await packing

    async def _pack(self, recall: Recall, fates: dict[int, Fate]) -> Packed | None:
        """The part of `recall` that the model does not have yet, packed; None if it has everything."""
        new = tuple(hit for place, hit in enumerate(_each(recall)) if place not in fates)
        if not new and (recall.hits or not recall.withheld):
            return None
        asked = Recall(hits=new, outcome=recall.outcome, cut=recall.cut, withheld=recall.withheld)
        return await self._memory.pack(asked, budget_tokens=BUDGET_TOKENS)

    def _fates(self, hits: Collection[Hit]) -> dict[int, Fate]:
        """The hits that the model already has, by index."""
        given = set(self._given().splitlines()) if self._given is not None else set()
        fates: dict[int, Fate] = {}
        for place, hit in enumerate(hits):
            if _name(hit) in self._shown or (hit.memory and memory_line(hit.memory) in given):
                fates[place] = "in_block"
        return fates

    def _take(self, recall: Recall, fates: dict[int, Fate], packed: Packed | None) -> str:
        """The text to hand over; adds the fates of packed hits to `fates`."""
        if packed is None:
            return ""
        shown = {_name(hit) for hit in packed.shown}
        for place in reversed(range(len(_each(recall)))):
            if place in fates:
                continue
            if _name(_each(recall)[place]) in shown:
                fates[place] = "shown"
            else:
                fates[place] = "repeated" if packed.merged > 0 and packed.left_out == 0 else "over_budget"
        if self._given is not None:
            self._shown |= shown
        return packed.text if shown or (recall.withheld and not recall.hits) else ""


def _each(recall: Recall) -> tuple[Hit, ...]:
    """All hits one by one: the model may have a memory but not the sentence it comes from."""
    return recall.apart().hits


async def _of(packing: asyncio.Task[Packed | None]) -> Packed | None:
    return await asyncio.shield(packing)


def found_of(hit: Hit, fate: Fate) -> RecalledHit:
    """A hit as it is recorded."""
    ranks = {channel: (rank.rank, rank.score) for channel, rank in hit.ranks.items()}
    kind: Literal["memory", "turn"] = "memory" if hit.memory else "turn"
    return RecalledHit(
        id=_name(hit), kind=kind, score=hit.score, ranks=ranks, fate=fate, relevance=hit.relevance
    )


def _name(hit: Hit) -> str:
    return hit.memory.id if hit.memory else hit.turn.id if hit.turn else ""


class MemoryInTurn(UserMemory):
    """A user's memory while they are being answered: it uses and records the recall for what they said
    (`moment`).

    A result that was found ahead is used once. A repeated query searches again, since something may have been
    written meanwhile. The turns of the current `conversation` are not searched for the moment.
    """

    def __init__(self, memory: UserMemory, moment: str, conversation: str) -> None:
        self.__dict__.update(vars(memory))  # the same memory, with one prepared answer
        self._moment = " ".join(moment.split())
        self._here = conversation
        self.ahead: Recall | None = None
        """The complete recall for it with `BLOCK_HITS` hits, if it was found ahead."""
        self._noted: Recall | None = None
        self._at = datetime.now(UTC)
        self.ready = False
        """Whether the recall was ready when the utterance ended."""
        self.delay_ms = 0.0
        """From the end of the utterance to the result."""

    async def recall(
        self, text: str, *, limit: int = 10, besides: str | Collection[str] | None = None, **options: Any
    ) -> Recall:
        here = {self._here}
        left_out = here if besides is None else {besides} if isinstance(besides, str) else set(besides)
        unset = all(each is None or each is False for name, each in options.items() if name != "deadline_ms")
        plain = limit <= BLOCK_HITS and unset and left_out == here and " ".join(text.split()) == self._moment
        if self.ahead is not None and plain:
            found, self.ahead = self.ahead, None
            self._noted = Recall(hits=found.hits[:limit], outcome=found.outcome, withheld=found.withheld)
            return self._noted
        began = time.perf_counter()
        recall = await super().recall(text, limit=limit, besides=left_out if plain else besides, **options)
        if plain and self._noted is None:
            self._noted, self._at = recall, datetime.now(UTC)
            self.delay_ms = 1000 * (time.perf_counter() - began)
        return recall

    def recalled(self, given: Mapping[str, str]) -> RecallTrace | None:
        """What was recalled for the turn, for the record of the call; None if nothing was searched.

        `given` is the block the model was given, by section.
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
    """The fate of a hit; memories that the block already contains are not repeated."""
    if hit.memory is None:
        return "over_budget"
    line = memory_line(hit.memory)
    if line in given.get("now", "").splitlines():
        return "shown"
    everything = "\n".join(given.values())
    known = line in everything.splitlines() or quoted(hit.memory.text) in given.get("profile", "")
    return "in_block" if known else "over_budget"
