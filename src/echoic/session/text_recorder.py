"""What lasts of a call in text, in one person's memory: its turns, its checkpoint and its record.

It is kept as it is said, once somebody agrees, or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, ModelMessage

from echoic.capability.runner import history_of
from echoic.checks import storable
from echoic.errors import EchoicError, InvalidInput, WriteConflict
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.concurrency import until_written
from echoic.memory.conversation import OpenConversation
from echoic.memory.distilling import Summarizer
from echoic.memory.user import UserMemory
from echoic.prompt import estimate_tokens
from echoic.session.call_record import (
    CallLog,
    CallRecord,
    Exchange,
    Spoken,
    ToolRun,
    read_call,
    read_exchanges,
)
from echoic.session.checkpoints import RecordSessionStore, kept_of_earlier_calls, store_of
from echoic.session.history import CallSummary, given_in, read, settled, trimmed, with_summary, written
from echoic.session.playback import TextPlayback
from echoic.session.text_runner import TextRunner
from echoic.session.turn_recall import MemoryInTurn
from echoic.types import Turn

log = logging.getLogger(__name__)

_HISTORY_TOKENS: Final = 6000
"""Of the messages in a checkpoint; a summary stands for those before them."""
_SIGN_EVERY_S: Final = 12.0
"""A call in text saves its checkpoint at its turns: after five times this another one is taken for dead."""


class TextRecorder:
    """The words of one call in one person's memory.

    Args:
        memory: whose.
        name: the id of the call and of the conversation it is kept in.
        agent: who serves.
        model: the provider and the name of the model, for the record.
        keeping: whether what is said is kept as it is said. Otherwise this process holds it until `keep`, and
            loses it with its end.
        summarizer: a language model's, for the checkpoint of a long call.
    """

    def __init__(
        self,
        memory: UserMemory,
        name: str,
        agent: str,
        *,
        model: tuple[str, str] = ("", ""),
        keeping: bool,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.memory = memory
        self.name = name
        self.keeping = keeping
        self.turns: list[Turn] = []
        """All of the call, in order."""
        self.log = self._new_log(agent, model)
        """When what happened, what was recalled, what the model was given."""
        self._agent, self._model = agent, model
        self._summarizer = summarizer
        self._opened: OpenConversation | None = None
        self.call_summary = self._new_summary()
        """What the call was about before the messages that a checkpoint holds."""
        self._saved, self._sign_due_s = "", 0.0
        self._sessions = RecordSessionStore(store_of(memory))
        self._durable = 0
        self._cuts: dict[str, tuple[str, str | None]] = {}
        """What is kept as wholly heard and was not, by the turn: how much was, and which turn it answers."""
        self._over = False
        self._exchange: Exchange | None = None
        self._given = 0
        """Messages of the history that were looked through for what the model was given."""
        self._writing = asyncio.Lock()

    @property
    def opened(self) -> OpenConversation | None:
        """The conversation that the call is kept in; None: none of it is kept yet."""
        return self._opened

    @property
    def durable(self) -> bool:
        """Whether any of it is in the store."""
        return self._durable > 0

    # -- words

    def note(self, turn: Turn) -> None:
        """Note what was said; it is kept with the next turn that is added."""
        if not any(known.id == turn.id for known in self.turns):
            self.turns.append(turn)

    async def add(self, turn: Turn) -> None:
        """Note what was said. Durable when it returns, where the call is kept and the store can be reached;
        what cannot be kept now is kept with the next.
        """
        self.note(turn)
        if self.keeping:
            await self._flush()

    async def add_result(self, name: str, result: dict[str, Any]) -> None:
        """Keep `result` with the call, if any of it is kept."""
        if not self.durable:
            return
        try:
            await self.memory.add_result(self.name, name, result, id=f"{self.name}:{name}")
        except EchoicError as error:
            log.warning("a result of a call is not kept: %s", type(error).__name__)

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

    # -- whether it is kept

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
            self.log.clear()
            if not self._durable:
                return
            said = {turn.id for turn in self.turns}
            # the conversation first: whoever is distilling it then writes nothing more
            await self.memory.forget(conversation=self.name)
            await self.memory.forget(learned_from=said)
            self._durable, self._cuts, self._opened, self.call_summary = 0, {}, None, self._new_summary()
            self._saved = ""
            self._sessions = RecordSessionStore(store_of(self.memory))

    def let_go(self) -> None:
        """Let go of every word: the call is over, and what was to be kept is."""
        self.turns, self._exchange = [], None
        self.call_summary = self._new_summary()
        self.log = self._new_log(self._agent, self._model)

    async def complete(self) -> None:
        """The call is over: what is kept of it is distilled from now on, and nobody takes it up again."""
        if not (self.keeping and await self._flush() and self._opened is not None):
            return
        try:
            async with self._writing:
                self._over = True
                if self.log.exchanges:
                    self.log.call.ended_at, self.log.call.reason = datetime.now(UTC), "ended"
                    self.log.changed()
                    await self.log.write(store_of(self.memory), self.memory.scope)
                await self._sessions.delete(self.memory.scope, self.name)
                await self._opened.complete()
        except EchoicError as error:
            log.error("a call could not be marked as completed: %s", type(error).__name__)  # noqa: TRY400 - no content
        finally:
            await self.call_summary.aclose()

    # -- the record

    def begin(self, turn: Turn, agent: str) -> Exchange:
        """The caller's turn is complete: a new exchange, in which `agent` serves."""
        self._exchange = self.log.begin(agent)
        self._exchange.user_turn = turn.id
        self.log.stamp("transcript", self._exchange)
        return self._exchange

    def seen(self, event: Any) -> None:
        """Note which tools an agent's run calls."""
        if self._exchange is None:
            return
        tools = self._exchange.tools
        if isinstance(event, FunctionToolCallEvent):
            part = event.part
            tools.append(ToolRun(call=part.tool_call_id, name=part.tool_name, began_ms=self.log.now_ms))
        elif isinstance(event, FunctionToolResultEvent):
            for run in tools:
                if run.call == event.part.tool_call_id and run.ended_ms is None:
                    run.ended_ms, run.outcome = (
                        self.log.now_ms,
                        str(getattr(event.part, "outcome", "retried")),
                    )
        else:
            return
        self.log.touched(self._exchange)

    def transferred(self, agent: str) -> None:
        """The call was handed to `agent`."""
        self.log.call.agents.append(agent)
        self.log.call.gaps_ms.append(0.0)
        self.log.changed()

    def ran(self, block: Mapping[str, str], history: Sequence[ModelMessage], memory: MemoryInTurn) -> None:
        """Note what an agent's run was given, and what was recalled for it.

        Args:
            block: the memory block, by the name of the section.
            history: of the call, after the run.
            memory: as the run had it.
        """
        if self._exchange is None:
            return
        for role, name, text in given_in(history[self._given :]):
            self.log.give(role, name, text)
        self._given = len(history)
        recalled = memory.recalled(block)
        if recalled is not None:
            self._exchange.recall = replace(recalled, turn_id=self._exchange.user_turn)
            self.log.stamp("recalled", self._exchange)

    def spoken(self, exchange: Exchange | None, turn: Turn, text: str, ms_per_character: float) -> None:
        """Note how much of `text` was heard: the words of `turn`."""
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

    # -- for whoever goes on with the call

    async def save(
        self,
        agent: str,
        messages: Sequence[ModelMessage],
        saying: Sequence[Turn] = (),
        *,
        pending: Sequence[PendingTool] = (),
    ) -> None:
        """Write the checkpoint and what is new of the record, where the call is kept.

        Args:
            agent: who serves.
            messages: the history of the call, the agent's words as far as they were heard.
            saying: what is being said, as far as it was heard, where that is no turn yet.
            pending: calls of tools that have no result yet.
        """
        async with self._writing:
            opened = self._opened
            if self._over or not (self.keeping and self._durable and opened is not None) or opened.silent:
                return
            unkept = [*self.turns[self._durable :], *saying]
            checkpoint = replace(await self._checkpoint(agent, messages, unkept), pending=tuple(pending))
            fingerprint = str(replace(checkpoint, saved_at=datetime.min.replace(tzinfo=UTC)))
            due = fingerprint != self._saved or time.monotonic() > self._sign_due_s
            try:
                if due:
                    await self._sessions.save(self.memory.scope, checkpoint)
                    self._saved, self._sign_due_s = fingerprint, time.monotonic() + _SIGN_EVERY_S
                await self.log.write(store_of(self.memory), self.memory.scope)
            except WriteConflict:
                self._lose("another process has it, or it was forgotten")
            except EchoicError as error:
                log.warning("the checkpoint of a call is not kept yet: %s", type(error).__name__)

    async def follow(self, talk: TextRunner, playback: TextPlayback) -> None:
        """Save a checkpoint now, and again when what is being said will have been spoken."""
        reply = playback.reply
        while True:
            so_far, left_s = playback.so_far()
            messages = list(talk.history) or history_of(self.turns)
            saying: list[Turn] = []
            if reply is not None and reply is playback.reply:
                heard = reply.kept(so_far)
                if reply.start is not None:
                    messages = trimmed(messages, reply.start, heard)
                if heard.strip():
                    saying = [Turn(speaker="agent", text=storable(heard), said_at=reply.said_at, id=reply.id)]
            await asyncio.shield(self.save(talk.current, messages, saying))
            if reply is None or reply is not playback.reply or so_far.rstrip() == reply.text.rstrip():
                return
            await asyncio.sleep(max(0.05, left_s))

    async def take_up(self) -> tuple[str, list[ModelMessage]] | None:
        """Go on with what another process kept of this very call, where any of it was.

        Returns:
            who serves, and the history to go on with; None: there is nothing to go on with.

        Raises:
            CallOver: the call is over.
            StoreUnavailable: could not look, or could not keep what was said and not kept.
        """
        await kept_of_earlier_calls(self.memory, self.name, _SIGN_EVERY_S)
        task = await self.memory.task(self.name)
        if task is None:
            return None
        if task.conversation.status == "completed":
            raise CallOver
        kept = list(task.turns)
        checkpoint = await until_written(lambda: self._taken_over(kept), "the checkpoint of a call")
        opened = self._opened = await self.memory.conversation(self.name, agent=self._agent)
        if checkpoint.unkept:
            await opened.append(*checkpoint.unkept, learn=checkpoint.learns)
        handed = {turn.id for turn in checkpoint.unkept}
        later = [turn for turn in kept[checkpoint.cursor :] if turn.id not in handed]
        there = settled(read(checkpoint.messages), {}, checkpoint.pending)
        messages = with_summary([*there, *history_of(later)], checkpoint.summary)
        kept += [turn for turn in checkpoint.unkept if turn.id not in {each.id for each in kept}]
        self.call_summary.take_up(checkpoint)
        await self._go_on_recording()
        self.turns = [*kept, *self.turns]
        self._durable, self._given = len(kept), len(messages)
        return checkpoint.agent, messages

    def resume(self, turns: Sequence[Turn]) -> None:
        """These turns of the call are kept already."""
        self.turns = [*turns, *self.turns]
        self._durable = len(turns)

    # -- inside

    def _new_log(self, agent: str, model: tuple[str, str]) -> CallLog:
        provider, name = model
        call = CallRecord(
            id=self.name,
            conversation=self.name,
            provider=provider,
            model=name,
            started_at=datetime.now(UTC),
            agents=[agent],
        )
        return CallLog(call)

    def _new_summary(self) -> CallSummary:
        return CallSummary(self.memory, self._said, self._summarizer, budget_tokens=_HISTORY_TOKENS)

    async def _said(self) -> Sequence[Turn]:
        return self.turns

    async def _taken_over(self, kept: Sequence[Turn]) -> Checkpoint:
        """The checkpoint, written anew: a process that still has the call finds that it has it no longer.

        One that has not come to write its first must find this one in its place.
        """
        now = datetime.now(UTC)
        checkpoint = await self._sessions.load(self.memory.scope, self.name)
        claimed = (
            replace(checkpoint, saved_at=now)
            if checkpoint is not None
            else Checkpoint(
                session=self.name,
                conversation=self.name,
                agent=self._agent,
                messages=written(history_of(kept)),
                cursor=len(kept),
                saved_at=now,
            )
        )
        await self._sessions.save(self.memory.scope, claimed)
        return claimed

    async def _go_on_recording(self) -> None:
        """What was written down of the call so far stays."""
        store, scope = store_of(self.memory), self.memory.scope
        known = await read_call(store, scope, self.name)
        before: list[Exchange] = await read_exchanges(store, scope, self.name, self.name)
        if known is not None:
            first = max((exchange.number for exchange in before), default=-1) + 1
            self.log = CallLog(known, first=first)

    async def _checkpoint(
        self, agent: str, messages: Sequence[ModelMessage], unkept: Sequence[Turn]
    ) -> Checkpoint:
        call_summary = self.call_summary
        condensed = call_summary.condensed(messages)
        await call_summary.summarize(condensed.evicted, len(self.turns))
        summary = call_summary.text if condensed.evicted else None
        return Checkpoint(
            session=self.name,
            conversation=self.name,
            agent=agent,
            messages=written(condensed.messages),
            unkept=tuple(replace(turn, conversation=self.name) for turn in unkept),
            summary=summary,
            evicted=condensed.evicted,
            tokens=condensed.tokens + estimate_tokens(summary or ""),
            cursor=self._durable,
            saved_at=datetime.now(UTC),
        )

    async def _flush(self) -> bool:
        async with self._writing:
            new = self.turns[self._durable :]
            if not new and not self._cuts:
                return True
            try:
                if self._opened is None:
                    self._opened = await self.memory.conversation(self.name, agent=self._agent)
                if new:
                    await self._opened.append(*new)
                    self._durable += len(new)
                await self._cut_kept(self._opened)
            except EchoicError as error:
                log.error("%d turns of a call are not kept yet: %s", len(new), type(error).__name__)  # noqa: TRY400 - no content
                await self._look_whether_forgotten(error)
                return False
            return True

    async def _look_whether_forgotten(self, error: EchoicError) -> None:
        try:
            if isinstance(error, InvalidInput) and await self.memory.find_conversation(self.name) is None:
                self._lose("it was forgotten")
        except EchoicError:
            return

    def _lose(self, why: str) -> None:
        """Nothing more of this call is to be kept."""
        log.warning("nothing more of a call is kept: %s", why)
        self.keeping = False

    async def _cut_kept(self, opened: OpenConversation) -> None:
        """Cut what was appended before it was known how much of it was heard."""
        for turn, (heard, asked) in list(self._cuts.items()):
            try:
                await opened.truncate(heard, after=asked)
            except InvalidInput as error:  # it is not there any more; asking again would change nothing
                log.warning("a turn could not be cut to what was heard: %s", type(error).__name__)
            self._cuts.pop(turn, None)


class CallOver(Exception):
    """The call was completed before: what comes now is a replay."""


def turn_of(said: str, speaker: str, name: str, confidence: float | None = None) -> Turn:
    """What was said just now, as a turn."""
    sure = confidence if confidence is not None and 0 <= confidence <= 1 else None
    return Turn(speaker=speaker, text=storable(said), confidence=sure, id=name, said_at=datetime.now(UTC))
