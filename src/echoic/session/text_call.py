"""A call in text: a channel hears and speaks for it, agents answer, memory keeps what was said and heard.

It has what a `VoiceSession` has: one reply at a time, barge-in, heard text, transfer, captions, checkpoint
and record. A channel passes on what the caller said (`hearing`, `speak`), what went to the caller and was
played (`hand_over`, `played`), and that the caller cut in or the line broke (`interrupt`, `cut_off`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import FunctionToolCallEvent, FunctionToolResultEvent, ModelMessage
from pydantic_ai.models import Model

from echoic.capability.memory import CallerMemory
from echoic.capability.runner import history_of
from echoic.errors import EchoicError
from echoic.memory.distilling import Summarizer
from echoic.memory.user import UserMemory
from echoic.session.calls import Exchange, Spoken, ToolRun
from echoic.session.captions import Caption, Captions
from echoic.session.history import trimmed
from echoic.session.text_playback import Reply, broken_off, cut_in
from echoic.session.text_recall import Ear, HeardMemory
from echoic.session.text_recorder import CallOver, TextRecorder, turn_of
from echoic.session.text_runner import TextRunner
from echoic.session.turns import given_in, storable
from echoic.types import Turn

log = logging.getLogger(__name__)

_SETTLE_S: Final = 5.0
"""How long the end of a call waits for what is being written."""
_ON_THEIR_WAY: Final = 8
"""Replies at most that wait to be spoken: no more prompts wait either."""
_RECALL_MS: Final = 1500.0

Out = Callable[[str], Awaitable[None]]
Excuse = Literal["failed", "too_long", "left"]
"""Why something is said in place of a reply: the model or a tool failed, it took too long, or the agent hung
up without a word."""


class Restart(Exception):
    """What was being answered must be answered anew, by a model that has seen nothing so far: somebody else
    speaks. Raised by a tool.
    """


class TextCall:
    """For one event loop. `serve` says for whom; use it as it is, or derive from it to screen what is said.

    Args:
        name: the id of the call, and of the conversation it is kept in.
        agents: who may serve, by name; the first one begins.
        characters_per_s: how fast speech is, where the line does not report what it played.
        give_up_s: how long a reply may take.
        recall_ms: how long the search for what was said may take.
        summarizer: a language model's, for the checkpoint of a long call.
        captions: told what is being said.
    """

    def __init__(
        self,
        name: str,
        agents: Mapping[str, Agent[Any, str]],
        *,
        characters_per_s: float = 15.0,
        give_up_s: float = 120.0,
        recall_ms: float = _RECALL_MS,
        summarizer: Summarizer | None = None,
        captions: Captions | None = None,
    ) -> None:
        self.name = name
        self.talk = TextRunner(
            agents=agents, conversation=name, seen=self._seen, transferred=self._transferred
        )
        """The model's side."""
        self._speed, self._give_up_s, self._recall_ms = characters_per_s, give_up_s, recall_ms
        self._summarizer, self._captions = summarizer, captions
        self._ear: Ear | None = None
        self._recalls = self._ready = 0
        self._speaking = asyncio.Lock()
        self._settling = asyncio.Lock()
        """Held while it is written down what was heard: a call is not over before."""
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._reply: Reply | None = None
        self._before: list[tuple[Reply, TextRecorder]] = []
        """Replies before that one, noted as heard and maybe still to be spoken; where they were noted."""
        self._exchange: Exchange | None = None
        self._given = 0
        """Messages of the history that were looked through for what the model was given."""
        self._saving: asyncio.Task[None] | None = None
        self._unanswered: dict[str, str] = {}
        """What was said and is not noted yet, by turn."""
        self._early: set[str] = set()
        """Turns in which the caller spoke while a reply was still being made."""
        self._turns = self._interruptions = 0
        self._replying: asyncio.Task[Any] | None = None
        self._replying_to = ""
        """The turn that is being answered, or was last."""
        self._ending: asyncio.Task[None] | None = None
        self.leaving = asyncio.Event()
        """Set once the agent asked to hang up: the line ends the call when its last words were spoken."""
        self.moment = ""
        """What the caller said last, as it may be kept."""
        self.opened: asyncio.Task[None] = asyncio.ensure_future(self._open())

    # -- for whom

    def serve(self, memory: UserMemory, *, kept_in: UserMemory | None = None, keeping: bool = True) -> None:
        """Serve this user from now on, with nothing said so far.

        Args:
            memory: the user's.
            kept_in: where the words of the call go; None: there.
            keeping: whether they are kept as they are said; else once `recorder.keep` is called, if ever.
        """
        self.memory = memory
        self.recorder = TextRecorder(
            kept_in or memory,
            self.name,
            self.talk.current,
            model=_model_of(self.talk.agent),
            keeping=keeping,
            summarizer=self._summarizer,
        )
        """What lasts of what is said to them."""
        self._exchange, self._given = None, 0
        before, self._ear = self._ear, Ear(memory)
        if before is not None:  # what was found for one caller is never given to another
            self._recalls, self._ready = self._recalls + before.recalls, self._ready + before.ready
            self.later(before.aclose())

    async def resume(self) -> bool:
        """Go on with what another process kept of this very call; whether it was over already."""
        if not self.recorder.keeping:
            return False
        try:
            found = await self.recorder.take_up()
        except CallOver:
            return True
        except EchoicError as error:
            log.warning("a call could not be taken up: %s", type(error).__name__)
            return False
        if found is not None:
            self.talk.resume(*found)
            self._given = len(self.talk.history)
        return False

    @property
    def ear(self) -> Ear:
        """Hears what the caller says before they have said it."""
        assert self._ear is not None
        return self._ear

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ending is not None

    # -- what a channel may derive from

    async def _open(self) -> None:
        """Find out for whom the call is, and take it up where another process began it."""
        if await self.resume():
            self._ending = asyncio.ensure_future(self._close())  # long over: this is a replay

    async def _close(self) -> None:
        """Let go of the line."""

    async def _screened(self, said: str) -> tuple[str, str]:
        """Words to answer at once, if any, and what was said as it may be kept and shown to a model. It may
        call `serve` for somebody else.
        """
        return "", said

    def _masked(self, said: str) -> str:
        """What was said, as memory may be searched for it before it was screened."""
        return said

    async def _restarted(self, why: Restart) -> None:
        """Serve whom a tool found to be speaking."""

    def _excuse(self, why: Excuse) -> str:
        """What is said in place of a reply."""
        del why
        return ""

    async def _ended(self) -> None:
        """Keep what else is to be kept, before the call is marked as over."""

    def _memory(self, memory: UserMemory) -> CallerMemory:
        """Memory as the agent is given it in one run."""
        raise NotImplementedError

    def _more(self) -> Sequence[AbstractCapability[Any]]:
        """What the agent is given besides."""
        return ()

    # -- a turn

    def hearing(self, partial: str) -> None:
        """Take in what the caller said so far: memory is searched while they speak. Never waits."""
        self.leaving.clear()
        if not self.opened.done() or self.over:
            return
        partial = self._masked(partial)
        self.ear.hear(partial)
        self._caption("user", "", partial, final=False)

    def unanswered(self, said: str, turn: str) -> None:
        """Note that `said` waits for an answer: it is kept, even where none comes."""
        if self.over:
            return
        self.leaving.clear()
        if turn not in self._unanswered and (self._unanswered or self._replying is not None):
            self._early.add(turn)
        self._unanswered[turn] = said

    async def speak(self, said: str, *, turn: str, confidence: float | None = None, out: Out) -> None:
        """Answer what the caller said; `out` gets the words as they come. One at a time, in order.

        Args:
            said: as the recogniser wrote it.
            turn: its id within the call; the same again is answered again, but kept once.
            confidence: the recogniser's, 0 to 1.
            out: where the words go.
        """
        self.unanswered(said, turn)
        words: list[str] = []

        async def noted(text: str) -> None:
            words.append(text)
            await out(text)

        async with self._speaking:
            self._replying, self._replying_to = asyncio.current_task(), turn
            try:
                await asyncio.shield(self.opened)
                if self.over:
                    return
                excuse = await self._try_to_answer(said, turn, confidence, noted)
                if self.leaving.is_set():  # nobody is asked to say again what was said at parting
                    excuse = "" if "".join(words).strip() else self._excuse("left")
                if excuse:
                    await out(excuse)
            finally:
                self._replying = None
                self._note_generated()

    async def _try_to_answer(self, said: str, turn: str, confidence: float | None, out: Out) -> str:
        """Answer; what is to be said instead where a model or an agent's own tool fails, however it does."""
        try:
            async with asyncio.timeout(self._give_up_s):
                await self._answer(said, turn, confidence, out)
        except TimeoutError:
            return self._excuse("too_long")
        except Exception as error:  # noqa: BLE001 - the caller hears a sentence, not silence
            log.error("a reply failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
            return self._excuse("failed")
        return ""

    async def _answer(self, said: str, turn: str, confidence: float | None, out: Out) -> None:
        ear = self.ear
        memory = await ear.final(self._masked(said), self._recall_ms)  # before anything is written
        async with self._settling:  # what broke off before is noted before what follows it is answered
            await self.hear(keep=False)  # whoever answers has heard what was said before
        own, said = await self._screened(said)
        self.moment = said
        if ear is not self.ear:  # somebody else is served by now
            memory = HeardMemory(self.memory, said)
        exchange = self._begin(turn_of(said, "user", f"{self._id(turn)}:user", confidence))
        await self._durably(self.recorder.add(self._last))
        self._unanswered.pop(turn, None)
        self._reply = Reply(id=f"{self._id(turn)}:agent", said_at=datetime.now(UTC), exchange=exchange)
        if own:
            await out(own)
            return
        before: list[str] = []

        async def noted(text: str) -> None:
            before.append(text)
            await out(text)

        try:
            await self._run(said, noted, memory)
        except Restart as why:
            self.leaving.clear()
            await self._restarted(why)
            self._reply.unkept = "".join(before)  # it was said to them, but from another's memory
            self._reply.exchange = self._begin(None)
            await self._run(said, out, HeardMemory(self.memory, said))

    async def _run(self, said: str, out: Out, memory: HeardMemory) -> None:
        made: list[CallerMemory] = []

        def capabilities() -> list[AbstractCapability[Any]]:
            made.append(self._memory(memory))
            return [made[-1], *self._more()]

        try:
            async with aclosing(self.talk.reply(said, capabilities)) as words:
                async for text in words:
                    await out(text)
        finally:
            if self._reply is not None:
                self._reply.start = self.talk.start
            self._note_run(memory, made)

    def capabilities(self) -> list[AbstractCapability[Any]]:
        """What an agent is given that answers by itself, as a voice model does."""
        return [self._memory(self.memory), *self._more()]

    # -- what a voice model says and hears

    async def overhear(self, said: str, turn: str) -> str:
        """Keep what the caller said and nobody here answers.

        Returns:
            words to answer all the same, if any.
        """
        own, kept = await self._screened(said)
        self.moment = kept
        self._begin(turn_of(kept, "user", f"{self._id(turn)}:user"))
        await self._durably(self.recorder.add(self._last))
        self._save_soon()
        return own

    async def spoke(self, heard: str, turn: str, *, interrupted: bool) -> None:
        """Keep what was heard of a voice model's words."""
        self._interruptions += interrupted
        if heard.strip():
            said = turn_of(heard, "agent", f"{self._id(turn)}:agent")
            self._note_spoken(self._exchange, said, heard)
            await self._durably(self.recorder.add(said))
            self._save_soon()

    # -- what was heard

    def hand_over(self, text: str, *, apart: bool = False) -> None:
        """Note that `text` of the reply goes to the line."""
        reply = self._reply
        if reply is None or not text:
            return
        now = time.monotonic()
        if not apart:  # it is spoken behind what was handed over before
            now = max([now, *(one.ends(self._speed) for one, _ in self._before if one.overtaken)])
        if not reply.pieces and reply.exchange is not None:
            self.recorder.log.stamp("first_audio", reply.exchange)
        reply.hand_over(text, now, apart=apart)
        self._caption("agent", reply.id, reply.text, final=False)

    def played(self, text: str) -> None:
        """Note that the line has played `text`."""
        now = time.monotonic()
        before = (one for one, _ in self._before if one.sounds(now, self._speed))
        sounding = next(before, self._reply)
        if sounding is not None:
            sounding.report(text)

    async def interrupt(self, until: str) -> None:
        """The caller cut in when the line had come to `until`: what was not heard was not said."""
        now = time.monotonic()
        self.leaving.clear()
        stopped = self._replying is not None
        await self._stop()
        async with self._settling:
            before = self._earlier()
            if before or self._reply:
                self._interruptions += 1
                self.recorder.log.stamp("barge_in")
            await self._heard(cut_in(before, self._reply, until, now, self._speed))
            if stopped:
                await self._heed(self._replying_to)  # nobody will answer it any more
        self._save_soon()

    async def hear(self, heard: str | None = None, *, keep: bool = True) -> None:
        """The reply is over and was heard so far, None: all of it. History and memory hold no more.

        Args:
            heard: its beginning that was heard.
            keep: False: it is kept with what is said next.
        """
        reply, self._reply = self._reply, None
        if reply is None:
            return
        part = reply.kept(reply.text if heard is None else heard)
        if heard is None and not reply.apart:
            reply.overtaken = self._replying_to in self._early
            self._before = [*self._before, (reply, self.recorder)][-_ON_THEIR_WAY:]
        if heard is not None and reply.start is not None:
            self.talk.hear(part, start=reply.start)
        if not part.strip():
            return
        turn = Turn(speaker="agent", text=storable(part), said_at=reply.said_at, id=reply.id)
        self._note_spoken(reply.exchange, turn, reply.text, cut=heard is not None)
        if keep:
            await self._durably(self.recorder.add(turn))
        else:
            self.recorder.note(turn)

    async def cut_off(self) -> None:
        """The line broke, or was hung up: the reply ends where it had come to."""
        now = time.monotonic()
        reply, so_far = self._reply, self._reply.so_far(now, self._speed) if self._reply is not None else ""
        await self._stop()
        async with self._settling:
            before = self._earlier()
            parts = broken_off(before, now, self._speed)
            if self._reply is not None:
                parts.append(so_far if self._reply is reply else "")
            await self._heard(parts)
            with suppress(Exception):
                await asyncio.shield(self.opened)
            for turn in list(self._unanswered):
                await self._heed(turn)
        self._save_soon()

    def sounds_s(self) -> float:
        """How long the reply may still be heard; 0 once the line reported that all of it was played."""
        return self._reply.left_s(time.monotonic(), self._speed) if self._reply is not None else 0.0

    def _earlier(self) -> list[Reply]:
        """Replies before the one under way of which not all may have been heard, in their order."""
        return [reply for reply, where in self._before if where is self.recorder]

    async def _heard(self, parts: list[str]) -> None:
        """Of what is on its way these beginnings were heard, and no more will be."""
        replies = self._earlier() + ([self._reply] if self._reply is not None else [])
        self._before = []
        for reply, part in reversed(list(zip(replies, parts, strict=True))):  # the last in the history first
            if reply is self._reply:
                await self.hear(part)
            elif part.rstrip() != reply.text.rstrip():
                kept = reply.kept(part)
                if reply.start is not None:
                    self.talk.hear(kept, start=reply.start)
                await self._durably(self.recorder.cut(reply.id, storable(kept)))

    async def _heed(self, turn: str) -> None:
        """Keep what the caller said in `turn`, if nobody did and nobody will answer it."""
        said = self._unanswered.pop(turn, None)
        if said is None:
            return
        with suppress(EchoicError):
            await self.overhear(said, turn)
            self.talk.ask(self.moment)

    # -- its end

    def leave(self) -> bool:
        """Hang up once the reply under way was spoken; False: the caller has said more, which comes first."""
        if not self._unanswered:
            self.leaving.set()
        return self.leaving.is_set()

    async def hang_up(self) -> None:
        """It is over: the reply under way ends, what is being written is written. May be called twice."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            await self.cut_off()
            await self._stop_saving()
            if self._in_flight:
                await asyncio.wait(self._in_flight, timeout=_SETTLE_S)
            await self._ended()
            await self.recorder.complete()
            await self.ear.aclose()
        # whatever a store or an agent's own code raises: the line is free for the next caller
        except Exception as error:  # noqa: BLE001
            log.error("the end of a call failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
        finally:
            await self._close()

    def forget_words(self) -> None:
        """Let go of all that was said: the call is over, and what was to be kept is."""
        self.talk.forget()
        self.recorder.let_go()
        self.moment, self._unanswered = "", {}
        self._reply, self._before, self._exchange = None, [], None

    # -- work beside it

    async def in_flight(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do `work`; the call is not over before it is done."""
        task = asyncio.current_task()
        assert task is not None
        self._in_flight.add(task)
        try:
            return await work
        finally:
            self._in_flight.discard(task)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` beside everything else."""
        task = asyncio.ensure_future(work)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def _durably(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` to its end, even if nobody waits for it any more."""
        task = asyncio.ensure_future(work)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        await asyncio.shield(task)

    async def _stop(self) -> None:
        replying = self._replying
        if replying is not None and replying is not asyncio.current_task():
            replying.cancel()
            await asyncio.wait({replying})

    # -- checkpoint, record and captions

    def _id(self, turn: str) -> str:
        return f"{self.name.removeprefix('call:')}:{turn}"

    def _begin(self, turn: Turn | None) -> Exchange:
        """The caller's turn is complete: a new exchange. None: the same turn, for somebody else."""
        if turn is not None:
            self._last = turn
            self._turns += 1
        exchange = self._exchange = self.recorder.log.begin(self.talk.current)
        exchange.user_turn = self._last.id
        self.recorder.log.stamp("transcript", exchange)
        if turn is not None:
            self._caption("user", turn.id, turn.text, final=True)
        return exchange

    def _seen(self, event: Any) -> None:
        if self._exchange is None:
            return
        record, tools = self.recorder.log, self._exchange.tools
        if isinstance(event, FunctionToolCallEvent):
            part = event.part
            tools.append(ToolRun(call=part.tool_call_id, name=part.tool_name, began_ms=record.now_ms))
        elif isinstance(event, FunctionToolResultEvent):
            for run in tools:
                if run.call == event.part.tool_call_id and run.ended_ms is None:
                    run.ended_ms, run.outcome = record.now_ms, str(getattr(event.part, "outcome", "retried"))
        else:
            return
        record.touched(self._exchange)

    def _transferred(self, agent: str) -> None:
        record = self.recorder.log
        record.call.agents.append(agent)
        record.call.gaps_ms.append(0.0)
        record.changed()

    def _note_run(self, memory: HeardMemory, made: Sequence[CallerMemory]) -> None:
        """Note what was recalled for the turn, and what the model was given."""
        exchange, record = self._exchange, self.recorder.log
        if exchange is None or not made:
            return
        given = made[-1].texts
        if not self._given:
            for name, text in given.items():
                if text:
                    record.give("instructions", name, text)
        for role, name, text in given_in(self.talk.history[self._given :]):
            record.give(role, name, text)
        self._given = len(self.talk.history)
        recalled = memory.recalled(given, self.name)
        if recalled is not None:
            exchange.recall = replace(recalled, turn_id=exchange.user_turn)
            record.stamp("recalled", exchange)

    def _note_generated(self) -> None:
        if self._reply is not None and self._reply.exchange is not None:
            self.recorder.log.stamp("generated", self._reply.exchange)
            self._caption("agent", self._reply.id, self._reply.text, final=True)
        self._save_soon()

    def _note_spoken(self, exchange: Exchange | None, turn: Turn, text: str, *, cut: bool = False) -> None:
        if exchange is None:
            return
        exchange.spoken.append(
            Spoken(
                turn=turn.id,
                played_ms=1000 * len(turn.text) / self._speed,
                generated_ms=1000 * len(text) / self._speed,
                source="estimated" if cut else "whole",
            )
        )
        self.recorder.log.touched(exchange)

    def _caption(self, speaker: Literal["user", "agent"], turn: str, text: str, *, final: bool) -> None:
        if self._captions is not None and text.strip():
            self._captions(Caption(id=turn, speaker=speaker, agent=self.talk.current, text=text, final=final))

    def _save_soon(self) -> None:
        """Save a checkpoint beside the call; once more when what is being said was spoken."""
        if self._saving is not None:
            self._saving.cancel()
        if not self.over and self.recorder.keeping:
            self._saving = asyncio.ensure_future(self._save())
            self._saving.add_done_callback(_asked)

    async def _save(self) -> None:
        recorder, reply = self.recorder, self._reply
        while recorder is self.recorder:
            now = time.monotonic()
            messages: list[ModelMessage] = list(self.talk.history) or history_of(recorder.turns)
            speaking: Turn | None = None
            heard = ""
            if reply is not None and reply is self._reply:
                heard = reply.kept(reply.so_far(now, self._speed))
                if reply.start is not None:
                    messages = trimmed(messages, reply.start, heard)
                if heard.strip():
                    speaking = Turn(speaker="agent", text=storable(heard), said_at=reply.said_at, id=reply.id)
            await self._durably(recorder.save(self.talk.current, messages, speaking))
            if reply is None or reply is not self._reply or heard.rstrip() == reply.kept(reply.text).rstrip():
                return
            await asyncio.sleep(max(0.05, reply.ends(self._speed) - now))

    async def _stop_saving(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
            await asyncio.gather(self._saving, return_exceptions=True)


def _asked(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("the checkpoint of a call is not kept yet: %s", type(error).__name__)


def _model_of(agent: Agent[Any, str]) -> tuple[str, str]:
    """Provider and name of the model, for the record."""
    model = agent.model
    if isinstance(model, Model):
        return model.system, model.model_name
    provider, _, name = str(model or "").partition(":")
    return provider, name


__all__ = ["Excuse", "Out", "Restart", "TextCall"]
