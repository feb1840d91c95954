"""Stores one call, in voice or text, in one person's memory: its turns, checkpoint and record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, ModelMessage

from echoic.capability.talker import history_of
from echoic.errors import EchoicError, InvalidInput, WriteConflict
from echoic.memory.assurance import SENSITIVITIES, Sensitivity, visibility_of
from echoic.memory.checkpoints import (
    SIGN_EVERY_S,
    Checkpoint,
    PendingTool,
    RecordSessionStore,
    SessionStore,
    kept_of_earlier_calls,
)
from echoic.memory.concurrency import until_written
from echoic.memory.conversation import OpenConversation
from echoic.memory.extraction import Summarizer
from echoic.memory.records import CONVERSATION
from echoic.memory.user import UserMemory
from echoic.prompt.block import estimate_tokens
from echoic.session.call_record import (
    CallLog,
    CallRecord,
    Channel,
    Exchange,
    Spoken,
    ToolRun,
    read_call,
    read_exchanges,
)
from echoic.session.history import (
    CallSummary,
    Condensed,
    given_in,
    read,
    settled,
    turns_in,
    with_summary,
    written,
)
from echoic.session.turn_recall import MemoryInTurn
from echoic.stores.base import Require
from echoic.types import Turn

log = logging.getLogger(__name__)

HISTORY_TOKENS: Final = 6000
"""Token budget of the messages in a checkpoint; a summary replaces the ones before them."""
TEXT_EVERY_S: Final = 12.0
"""Interval of checkpoints assumed for a text call, which saves at its turns; after five it counts as dead."""
Lost = Literal["forgotten", "taken over"]
"""Why a call is no longer stored: it was forgotten, or another process has resumed it."""


class CallRecorder:
    """Stores the turns, checkpoints and record of one call in one person's memory.

    Args:
        memory: that person's memory.
        name: the id of the call.
        agent: the agent that serves.
        conversation: the id of its conversation; by default the id of the call.
        channel: how the caller speaks, for the record.
        model: the provider and the name of the model, for the record.
        keeping: store turns as they are said. If False, they stay in this process until `keep` is called.
        words: whether turns are stored at all.
        learns: whether memories are learned from them.
        record: whether to record events, recall results, and what the model was given.
        checkpoints: whether another process can resume the call.
        sessions: where checkpoints are stored; by default in the person's memory.
        every_s: interval of checkpoints while there are unstored words.
        summarizer: summarizes a long call with a language model, for its checkpoint.
        history_tokens: token budget of the messages in a checkpoint.
    """

    def __init__(
        self,
        memory: UserMemory,
        name: str,
        agent: str,
        *,
        conversation: str = "",
        channel: Channel = "voice",
        model: tuple[str, str] = ("", ""),
        keeping: bool = True,
        words: bool = True,
        learns: bool = True,
        record: bool = True,
        checkpoints: bool = True,
        sessions: SessionStore | None = None,
        every_s: float = TEXT_EVERY_S,
        summarizer: Summarizer | None = None,
        history_tokens: int = HISTORY_TOKENS,
    ) -> None:
        self.memory = memory
        self.name = name
        self.keeping = keeping
        self.words, self.learns = words, learns
        self.turns: list[Turn] = []
        """Every turn that this process knows, in order."""
        self.opened: OpenConversation | None = None
        """The conversation that stores the call; None until it is opened."""
        self.lost: Lost | None = None
        """Why the call is no longer stored; None while it is."""
        self._conversation = conversation or name
        self._agent, self._channel, self._model, self._record = agent, channel, model, record
        self.log = self._new_log()
        """Events, recall results, and text given to the model."""
        self._summarizer, self._history_tokens = summarizer, history_tokens
        self.call_summary = self._new_summary()
        """Summary of the messages before those in a checkpoint."""
        self._checkpoints, self._sessions = checkpoints, sessions
        self.sessions = self._new_sessions()
        self._every_s, self._sign_due_s = every_s, 0.0
        self._saved: Checkpoint | None = None
        """The last checkpoint that was written."""
        self._durable = self._before = 0
        """How many of `turns` are stored, and how many turns an earlier process stored before them."""
        self._from: int | None = None
        """If the checkpoint was erased, the first of `turns` that the next one may hold."""
        self._told: Sensitivity = "open"
        """See `_told_at_most`."""
        self._cuts: dict[str, tuple[str, str | None]] = {}
        """By id, turns stored as fully heard that were not: the heard part, and the turn it answers."""
        self._over = False
        self._exchange: Exchange | None = None
        self._given = 0
        """How many messages of the history were already searched for text given to the model."""
        self._writing = asyncio.Lock()

    @property
    def durable(self) -> bool:
        return self.kept > 0

    @property
    def kept(self) -> int:
        """How many turns of the call are stored."""
        return self._before + self._durable

    async def open(self) -> None:
        """Open the conversation before anything is said; raises `StoreUnavailable` if the call cannot be
        stored.
        """
        if self.opened is None:
            self.opened = await self.memory.conversation(self._conversation, agent=self._agent)

    # -- words

    def note(self, turn: Turn) -> None:
        """Add a turn without writing; the next `add` or `flush` stores it."""
        if not any(known.id == turn.id for known in self.turns):
            self.turns.append(turn)

    async def add(self, turn: Turn) -> None:
        """Store a turn. Durable on return if the call is stored and the store is reachable; otherwise it is
        stored with the next turn.
        """
        self.note(turn)
        await self._try_to_flush()

    async def add_result(self, name: str, result: dict[str, Any]) -> None:
        """Store `result` with the call, if any of the call is stored."""
        silent = self.opened is not None and self.opened.silent
        if not self.durable or silent or self.lost == "forgotten":
            return
        try:
            await self.memory.add_result(self._conversation, name, result, id=f"{self.name}:{name}")
        except EchoicError as error:
            log.warning("a result of a call is not kept: %s", type(error).__name__)

    async def cut(self, turn: str, heard: str) -> None:
        """Record that only the beginning `heard` of the agent's turn was heard."""
        at = next((n for n, known in enumerate(self.turns) if known.id == turn), None)
        if at is None:
            return  # dropped with the words of another caller
        self.turns[at] = replace(self.turns[at], heard=heard)
        asked = next((known.id for known in reversed(self.turns[:at]) if known.speaker == "user"), None)
        self._cuts[turn] = (heard, asked)
        await self._try_to_flush()

    async def flush(self) -> None:
        """Store every turn that is not stored yet, if the call is stored.

        Raises:
            EchoicError: they are not stored; the next `add` or `flush` tries again.
        """
        async with self._writing:
            if not self.keeping or self.lost or not (self.turns[self._durable :] or self._cuts):
                return
            try:
                await self.open()
                new = self.turns[self._durable :]
                if new and self.words and self.opened is not None:
                    await self.opened.append(*new, learn=self.learns)
                self._durable += len(new)
                if self.opened is not None and self.opened.verdict == "off the record":
                    await self._begin_again()
                await self._cut_kept()
            except InvalidInput:
                if await self.memory.find_conversation(self._conversation) is not None:
                    raise
                self._lose("forgotten")

    # -- whether it is kept

    async def keep(self) -> bool:
        """Store everything said so far and from now on; returns whether all of it is durable."""
        self.keeping = True
        return await self._try_to_flush()

    async def drop(self) -> None:
        """Store nothing of the call from now on, and destroy what was stored of it, including memories
        learned from it alone.

        Raises:
            StoreUnavailable: some of it may still be stored.
        """
        self.keeping = False
        async with self._writing:
            self.log.clear()
            if not self.durable:
                return
            said = {turn.id for turn in self.turns}
            # the conversation first, so that a worker distilling it writes nothing more
            await self.memory.forget(conversation=self._conversation)
            await self.memory.forget(learned_from=said)
            self._durable, self._before, self._cuts, self.opened, self._saved = 0, 0, {}, None, None
            self.call_summary, self.sessions = self._new_summary(), self._new_sessions()
            self._from = None

    def let_go(self) -> None:
        """Free all words held in memory, once the call is over and its words are stored."""
        self.turns, self._exchange = [], None
        self.call_summary = self._new_summary()
        self.log = self._new_log()

    async def complete(self) -> None:
        """End the call; a failure is logged."""
        try:
            await self.end()
        except EchoicError as error:
            log.error("a call could not be marked as completed: %s", type(error).__name__)  # noqa: TRY400 - no content
        finally:
            await self.call_summary.aclose()

    async def end(self) -> None:
        """Store what is left and complete the conversation. Does nothing if the call is not stored.

        Raises:
            EchoicError: the call is not ended yet; you can try again.
        """
        await self.flush()
        if self.opened is None or not self.keeping or self.lost:
            return
        async with self._writing:
            self._over = True
            if self.log.exchanges and self.log.call.ended_at is None:
                self.note_end("ended")
            if self.log.call.ended_at is not None and not self.opened.silent:
                await self._write()
            try:
                if self._checkpoints and not self.lost:
                    await self.sessions.delete(self.memory.scope, self.name)
            except WriteConflict:  # another process has it
                self._lose("taken over")
            if not self.lost:
                with suppress(InvalidInput):  # forgotten meanwhile
                    await self.opened.complete()

    # -- the record

    def note_end(self, reason: str) -> None:
        self.log.call.ended_at, self.log.call.reason = datetime.now(UTC), reason
        self.log.changed()

    def voiced_by(self, provider: str, model: str) -> None:
        self._model = self.log.call.provider, self.log.call.model = provider, model
        self.log.changed()

    def begin(self, turn: Turn, agent: str, came_at: datetime) -> Exchange:
        """Start an exchange with the caller's turn, which arrived at `came_at` and which `agent` answers."""
        self._exchange = self.log.begin(agent)
        self._exchange.user_turn = turn.id
        self.log.stamp("transcript", self._exchange, at=came_at)
        return self._exchange

    def seen(
        self, event: FunctionToolCallEvent | FunctionToolResultEvent, exchange: Exchange | None = None
    ) -> None:
        """Record a tool call or its result, in `exchange` or the latest one."""
        exchange = exchange or self._exchange
        if exchange is None:
            return
        call, outcome = event.part.tool_call_id, str(getattr(event.part, "outcome", "retried"))
        if isinstance(event, FunctionToolCallEvent):
            run = ToolRun(call=call, name=event.part.tool_name, began_ms=self.log.now_ms)
            self.log.touched(exchange).tools.append(run)
            return
        for each in self.log.exchanges:
            for run in each.tools:
                if run.call == call and run.ended_ms is None:
                    run.ended_ms, run.outcome = self.log.now_ms, outcome
                    self.log.touched(each)

    def transferred(self, agent: str, gap_ms: float = 0.0) -> None:
        """Record a transfer to `agent`; `gap_ms` is the longest time a frame of the caller's audio waited for
        it.
        """
        self.log.call.agents.append(agent)
        self.log.call.gaps_ms.append(round(gap_ms, 3))
        self.log.changed()

    def ran(self, block: Mapping[str, str], history: Sequence[ModelMessage], memory: MemoryInTurn) -> None:
        """Record what an agent's run was given (`block`, by section, and new messages) and what was recalled
        for it.
        """
        if self._exchange is None:
            return
        for role, name, text in given_in(history[self._given :]):
            self.log.give(role, name, text)
        self._given = len(history)
        recalled = memory.recalled(block)
        if recalled is not None:
            self.log.recalled(self._exchange, recalled)

    def spoken(self, exchange: Exchange | None, turn: Turn, text: str, ms_per_character: float) -> None:
        """Record how much of `text` was heard: the words of `turn`."""
        if exchange is None:
            return
        whole = turn.text.rstrip() == text.rstrip()
        exchange.spoken.append(
            Spoken(
                turn=turn.id,
                played_ms=len(turn.text) * ms_per_character,
                generated_ms=len(text) * ms_per_character,
                source="whole" if whole else "estimated",
            )
        )
        self.log.touched(exchange)

    # -- checkpoints

    async def save(
        self,
        agent: str,
        messages: Sequence[ModelMessage],
        saying: Sequence[Turn] = (),
        *,
        pending: Sequence[PendingTool] = (),
        resumption: str | None = None,
    ) -> None:
        """Write the checkpoint and what is new in the record, if the call is stored.

        Args:
            agent: the agent that serves.
            messages: the history of the call, replies cut to what was heard.
            saying: the reply being spoken, cut to what was heard, if it is no turn yet.
            pending: tool calls without a result.
            resumption: the provider's handle of the call.

        Raises:
            EchoicError: it is not written yet.
        """
        async with self._writing:
            opened = self.opened
            if self._over or self.lost or not self.keeping or opened is None or opened.silent:
                return
            checkpoint = None
            if self._checkpoints:
                made = await self._checkpoint(agent, messages, saying)
                checkpoint = replace(made, pending=tuple(pending), resumption=resumption)
            await self._write(checkpoint)

    async def _write(self, checkpoint: Checkpoint | None = None) -> None:
        """Write a checkpoint, if it differs from the last one, and what is new in the record, at once."""
        store, scope, saved = self.memory.backing_store, self.memory.scope, self._saved
        if checkpoint is not None and saved is not None:
            same = checkpoint == replace(saved, saved_at=checkpoint.saved_at)
            # whoever finds it must be able to tell a quiet call from one whose process died
            if same and time.monotonic() < self._sign_due_s:
                checkpoint = None
        try:
            with self.log.news() as news:
                if checkpoint is not None and isinstance(self.sessions, RecordSessionStore):
                    await self.sessions.save(scope, checkpoint, *news)
                elif checkpoint is not None:
                    await self.sessions.save(scope, checkpoint)
                if news and (checkpoint is None or not isinstance(self.sessions, RecordSessionStore)):
                    await store.write(scope, [Require(kind=CONVERSATION, id=self._conversation), *news])
        except WriteConflict:
            await self._refused(checkpoint)
            return
        if checkpoint is not None:
            # with unstored words it counts as dead a few checkpoints later, however quiet it is
            every_s = min(self._every_s, SIGN_EVERY_S) if checkpoint.unkept else SIGN_EVERY_S
            self._saved, self._sign_due_s = checkpoint, time.monotonic() + every_s

    async def _refused(self, checkpoint: Checkpoint | None) -> None:
        """Find out why the store refused a write, and store nothing more unless the checkpoint was erased."""
        there = await self.memory.find_conversation(self._conversation)
        if there is None:
            self._lose("forgotten")
            return
        live = checkpoint is not None and there.status == "active"
        # a call that another process took over has a checkpoint until it is completed; `forget` erases one
        # that may quote what is forgotten
        if live and await self.sessions.load(self.memory.scope, self.name) is None:
            await self._begin_again()
        else:
            self._lose("taken over")

    async def _begin_again(self) -> None:
        """Let the next checkpoint hold only what is not stored yet: what was said before was erased or may
        quote what was.
        """
        self._from, self._saved = self._durable, None
        self.log.drop_given()
        heard = sum(bool(turn.heard_text.strip()) for turn in self.turns[: self._from])
        await self.call_summary.begin_again(self._before + heard)
        if isinstance(self.sessions, RecordSessionStore):
            self.sessions.erased()

    async def take_up(self) -> tuple[str, list[ModelMessage]] | None:
        """Resume this call from what another process stored of it.

        Returns:
            the serving agent and the message history; None if nothing of the call is stored.

        Raises:
            CallOver: the call is over.
            StoreUnavailable: the checkpoint could not be read, or turns in it could not be stored.
        """
        await kept_of_earlier_calls(self.memory, self.name, self._every_s)
        task = await self.memory.task(self._conversation)
        if task is None:
            return None
        if task.conversation.status == "completed":
            raise CallOver
        kept = list(task.turns)
        checkpoint = await until_written(lambda: self._taken_over(kept), "the checkpoint of a call")
        self.turns, self._durable = [*kept, *self.turns], len(kept)
        await self._go_on_after(checkpoint)
        handed = {turn.id for turn in checkpoint.unkept}
        later = [turn for turn in kept[checkpoint.cursor :] if turn.id not in handed]
        there = settled(read(checkpoint.messages), {}, checkpoint.pending)
        messages = with_summary([*there, *history_of(later)], checkpoint.summary)
        self._given = len(messages)
        return checkpoint.agent, messages

    async def find(self) -> Checkpoint | None:
        """The checkpoint that another process wrote of this call, if there is one."""
        found = await self.sessions.load(self.memory.scope, self.name) if self._checkpoints else None
        if found is not None:
            self._conversation, self._agent = found.conversation, found.agent
            self.log = self._new_log()
        return found

    async def claim(self, checkpoint: Checkpoint) -> None:
        """Take the call over from the process that wrote the checkpoint, whose next write then fails.

        Raises:
            WriteConflict: another process has taken the call.
            StoreUnavailable: the turns in the checkpoint could not be stored.
        """
        if self._checkpoints:
            told = self._told_at_most(checkpoint.told)
            claimed = replace(checkpoint, told=told, saved_at=datetime.now(UTC))
            await self.sessions.save(self.memory.scope, claimed)
        self._before = checkpoint.cursor
        await self._go_on_after(checkpoint)

    async def _go_on_after(self, checkpoint: Checkpoint) -> None:
        await self.open()
        self.call_summary.take_up(checkpoint)
        known = {turn.id for turn in self.turns}
        if checkpoint.unkept and self.opened is not None:
            kept = await self.opened.append(*checkpoint.unkept, learn=checkpoint.learns)
            new = [turn for turn in kept if turn.id not in known]
            self.turns[self._durable : self._durable] = new
            self._durable += len(new)
        await self._go_on_recording()

    def resume(self, turns: Sequence[Turn]) -> None:
        """Add turns of the call that are already stored."""
        self.turns = [*turns, *self.turns]
        self._durable = len(turns)

    # -- inside

    def _new_log(self) -> CallLog:
        provider, name = self._model
        call = CallRecord(
            id=self.name,
            conversation=self._conversation,
            provider=provider,
            model=name,
            channel=self._channel,
            started_at=datetime.now(UTC),
            agents=[self._agent],
        )
        return CallLog(call, enabled=self._record and self.words)

    def _new_summary(self) -> CallSummary:
        budget = self._history_tokens
        return CallSummary(self.memory, self._said, self._summarizer, budget_tokens=budget)

    def _new_sessions(self) -> SessionStore:
        return self._sessions or RecordSessionStore(self.memory.backing_store)

    async def _said(self) -> Sequence[Turn]:
        """The turns of the call of which anything was heard, including those of an earlier process."""
        if not self.words:
            return ()
        if self._from is None and self._before and self.opened is not None:
            turns: Sequence[Turn] = (await self.opened.turns())[-self.kept :]
        else:
            turns = self.turns[self._from :]
        # an answer that nobody heard is no message, and is not counted where messages are evicted
        return [turn for turn in turns if turn.heard_text.strip()]

    async def _taken_over(self, kept: Sequence[Turn]) -> Checkpoint:
        """The checkpoint, written again by this process, so that the process that still has the call learns
        it lost it.

        If there was no checkpoint yet, one is written, so that the other process finds it in its place.
        """
        now = datetime.now(UTC)
        checkpoint = await self.sessions.load(self.memory.scope, self.name) or Checkpoint(
            session=self.name,
            conversation=self._conversation,
            agent=self._agent,
            messages=written(history_of(kept)),
            cursor=len(kept),
            saved_at=now,
        )
        claimed = replace(checkpoint, told=self._told_at_most(checkpoint.told), saved_at=now)
        await self.sessions.save(self.memory.scope, claimed)
        return claimed

    async def _go_on_recording(self) -> None:
        store, scope = self.memory.backing_store, self.memory.scope
        known = await read_call(store, scope, self.name)
        before: list[Exchange] = await read_exchanges(store, scope, self._conversation, self.name)
        if known is not None:
            first = max((exchange.number for exchange in before), default=-1) + 1
            self.log = CallLog(known, enabled=self.log.enabled, first=first)

    def _condensed(self, messages: Sequence[ModelMessage], saying: Sequence[Turn]) -> Condensed:
        """The part of `messages` that a checkpoint holds; of turns instead, where it began again."""
        if self._from is None:
            return self.call_summary.condensed(messages)
        said = [turn for turn in [*self.turns[self._from :], *saying] if turn.heard_text.strip()]
        condensed = self.call_summary.condensed(history_of(said))
        evicted = self.call_summary.left_out + len(said) - turns_in(condensed.messages)
        return replace(condensed, evicted=evicted)

    async def _checkpoint(
        self, agent: str, messages: Sequence[ModelMessage], saying: Sequence[Turn]
    ) -> Checkpoint:
        unkept = [*self.turns[self._durable :], *saying] if self.words else []
        condensed = self._condensed(messages, saying)
        await self.call_summary.summarize(condensed.evicted)
        summary = self.call_summary.text if condensed.evicted else None
        return Checkpoint(
            session=self.name,
            conversation=self._conversation,
            agent=agent,
            messages=written(condensed.messages),
            unkept=tuple(replace(turn, conversation=self._conversation) for turn in unkept),
            summary=summary,
            learns=self.learns,
            evicted=condensed.evicted,
            tokens=condensed.tokens + estimate_tokens(summary or ""),
            cursor=self.kept,
            told=self._told_at_most(),
            saved_at=datetime.now(UTC),
        )

    def _told_at_most(self, before: Sensitivity = "open") -> Sensitivity:
        """What a caller of this call was told at most, here or, `before`, in an earlier process."""
        now = visibility_of(self.memory.visible_store).most
        self._told = max(self._told, before, now, key=SENSITIVITIES.index)
        return self._told

    async def _try_to_flush(self) -> bool:
        """Store what can be stored now; returns whether all of it is."""
        try:
            await self.flush()
        except EchoicError as error:
            left = len(self.turns) - self._durable
            log.error("%d turns of a call are not kept yet: %s", left, type(error).__name__)  # noqa: TRY400 - no content
            return False
        return self.keeping

    def _lose(self, why: Lost) -> None:
        log.warning("nothing more of a call is kept: it was %s", why)
        self.keeping, self.lost = False, why

    async def _cut_kept(self) -> None:
        """Truncate turns that were appended before it was known how much of them was heard."""
        for turn, (heard, asked) in list(self._cuts.items()):
            try:
                if self.opened is not None:
                    await self.opened.truncate(heard, after=asked)
            except InvalidInput as error:  # it no longer exists; retrying would change nothing
                log.warning("a turn could not be cut to what was heard: %s", type(error).__name__)
            self._cuts.pop(turn, None)


class CallOver(Exception):
    """The call was completed before; what arrives now is a replay."""
