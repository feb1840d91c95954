"""A call in text: a channel hears and speaks for it, agents answer, and what was said and heard is stored.

Like a `VoiceSession` it has one reply at a time, barge-in, heard text, transfer, captions, checkpoint and
record. A channel reports what the caller said (`partial`, `speak`), what was sent and played (`sent`,
`played`), and that the caller interrupted or the line broke (`barge_in`, `cut_off`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeVar

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage
from pydantic_ai.usage import RunUsage

from echoic.capability.memory import CallerMemory
from echoic.capability.talker import history_of
from echoic.checks import storable
from echoic.errors import EchoicError
from echoic.memory.concurrency import noted as retrieved
from echoic.memory.extraction import Summarizer
from echoic.memory.user import UserMemory
from echoic.session.agents import Restart
from echoic.session.call_record import Exchange
from echoic.session.history import trimmed
from echoic.session.hooks import Caption, Captions, show
from echoic.session.playback import SpokenReply, TextPlayback
from echoic.session.recorder import CallOver, CallRecorder
from echoic.session.text_runner import TextRunner
from echoic.session.turn_recall import CallRecall, MemoryInTurn
from echoic.types import Turn

log = logging.getLogger(__name__)

_SETTLE_S: Final = 5.0
"""How long the end of a call waits for what is being written."""
_RECALL_MS: Final = 1500.0
_MAX_PARTIAL: Final = 1000
"""Characters of an interim transcript that are searched for."""

T = TypeVar("T")
Out = Callable[[str], Awaitable[None]]
Excuse = Literal["failed", "too_long", "left"]
"""Why something else is said instead of a reply: a failure, a timeout, or the agent hung up silently."""


class TextCall:
    """A call whose words arrive and leave as text. For one event loop; `serve` sets the caller.

    Args:
        name: the id of the call, and of the conversation it is kept in.
        agents: the agents that may serve, by name; the first one begins.
        characters_per_s: the speed of speech, for a channel that does not report what it played.
        give_up_s: time limit of a reply.
        recall_ms: time limit of the memory search for a turn.
        summarizer: summarizes a long call with a language model, for its checkpoint.
        captions: receives what is being said.
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
        self._in_flight: set[asyncio.Task[Any]] = set()  # what must end before the call does
        self.talk = TextRunner(agents=agents, conversation=name)
        self._give_up_s, self._recall_ms = give_up_s, recall_ms
        self._summarizer, self._captions = summarizer, captions
        self._recalls: list[CallRecall] = []  # of everybody who was served, for statistics
        self._speaking = asyncio.Lock()
        self._settling = asyncio.Lock()  # held while what was heard is recorded: the call ends after that
        self.playback = TextPlayback(characters_per_s)
        self._screening = asyncio.Lock()  # who speaks is decided for one utterance after the other
        self._screenings: dict[str, asyncio.Task[tuple[str, str]]] = {}  # by turn
        self._exchange: Exchange | None = None
        self._saving: asyncio.Task[None] | None = None
        self._unanswered: dict[str, str] = {}  # what was said and is not recorded yet, by turn
        self._early: set[str] = set()  # turns in which the caller spoke while a reply was still being made
        self._turns = self._interruptions = 0
        self._replying: asyncio.Task[Any] | None = None
        self._replying_to = ""  # the turn being answered, or answered last
        self._came_at = datetime.now(UTC)  # when that turn came in
        self._ending: asyncio.Task[None] | None = None
        self.leaving = asyncio.Event()
        """Set when the agent asked to hang up: the line ends the call after its last words."""
        self.moment = ""
        """What the caller said last, as it may be stored."""
        self.to_say = ""
        """The call's own answer to what a voice model heard, if any."""
        self.opened: asyncio.Task[None] = asyncio.ensure_future(self._open())

    # -- the caller

    def serve(self, memory: UserMemory, *, kept_in: UserMemory | None = None, keeping: bool = True) -> None:
        """Serve this user from now on, with nothing said so far.

        Args:
            memory: the user's memory.
            kept_in: the memory that stores the call; by default the same.
            keeping: store turns as they are said; otherwise only once `recorder.keep` is called.
        """
        self.memory = memory
        self.recorder = CallRecorder(
            kept_in or memory,
            self.name,
            self.talk.current,
            channel="phone",
            model=self.talk.model,
            keeping=keeping,
            summarizer=self._summarizer,
        )
        self.talk.recorder = self.recorder
        self._exchange = None
        if self._recalls:  # results for one caller are never given to another
            self.later(self._recalls[-1].aclose())
        self.recall = CallRecall(memory, self.name, None, deadline_ms=self._recall_ms, packs=False)
        """Searches memory for what the caller has said so far, while they speak."""
        self._recalls.append(self.recall)

    async def resume(self) -> bool:
        """Resume what another process stored of this call; returns whether the call is already over."""
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
        return False

    @property
    def over(self) -> bool:
        return self._ending is not None

    # -- overridden by channels

    async def _open(self) -> None:
        """Find out who is calling, and resume the call if another process began it."""
        if await self.resume():
            self._ending = asyncio.ensure_future(self._close())  # already over: this is a replay

    async def _close(self) -> None:
        """Release the line."""

    async def _screened(self, said: str) -> tuple[str, str]:
        """Screen what was said: words to answer at once, if any, and the text that may be stored and shown to
        a model. It may call `serve` for another caller.
        """
        return "", said

    def masked(self, said: str) -> str:
        """The text with secrets masked, so that memory can be searched before the text is screened."""
        return said

    async def _restarted(self, why: Restart) -> None:
        """Serve the person whom a tool identified."""

    def _excuse(self, why: Excuse) -> str:
        """What is said instead of a reply when the agent fails."""
        raise NotImplementedError

    async def _hush(self) -> None:
        """Stop all speech: the call is over."""

    async def _ended(self) -> None:
        """Store what else is needed before the call is marked as over."""

    def _memory(self, memory: UserMemory, agent: str) -> CallerMemory:
        """The memory capability of `agent` for one run."""
        raise NotImplementedError

    def _more(self, agent: str) -> Sequence[AbstractCapability[Any]]:  # noqa: ARG002 - for those who derive
        """Additional instructions for `agent`."""
        return ()

    # -- work beside the replies

    async def in_flight(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`; the call is not over before it is done."""
        task = asyncio.current_task()
        assert task is not None
        self._in_flight.add(task)
        try:
            return await work
        finally:
            self._in_flight.discard(task)

    def later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in the background."""
        task = asyncio.ensure_future(work)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        return task

    async def durably(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`, which finishes even if the waiting task is cancelled."""
        return await asyncio.shield(self.later(work))

    async def settle(self, timeout_s: float) -> None:
        """Wait for work in progress, until the timeout."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=timeout_s)

    # -- a turn

    def partial(self, partial: str) -> None:
        """Report an interim transcript: memory is searched while the caller speaks. Never waits."""
        self.leaving.clear()
        if not self.opened.done() or self.over:
            return
        partial = self.masked(partial)
        self.recall.partial(partial[:_MAX_PARTIAL])
        self._caption("user", "", partial, final=False)

    def unanswered(self, said: str, turn: str) -> None:
        """Record that `said` waits for an answer: it is stored even if none comes."""
        if self.over:
            return
        self.leaving.clear()
        if turn not in self._unanswered and (self._unanswered or self._replying is not None):
            self._early.add(turn)
        self._unanswered[turn] = said

    async def speak(self, said: str, *, turn: str, confidence: float | None = None, out: Out) -> None:
        """Answer what the caller said. Replies are made one at a time, in order.

        Args:
            said: the transcript.
            turn: its id within the call; a repeated turn is answered again but stored once.
            confidence: the recogniser's, 0 to 1.
            out: receives the words as they come.
        """
        came_at = datetime.now(UTC)
        self.unanswered(said, turn)
        words: list[str] = []

        noted = _noting(words, out)
        async with self._speaking:
            self._replying, self._replying_to, self._came_at = asyncio.current_task(), turn, came_at
            try:
                await asyncio.shield(self.opened)
                if self.over:
                    return
                excuse = await self._try_to_answer(said, turn, confidence, noted)
                if self.leaving.is_set():  # nobody is asked to repeat a goodbye
                    excuse = "" if "".join(words).strip() else self._excuse("left")
                if excuse:
                    await out(excuse)
            finally:
                self._replying = None
                self._note_generated()

    async def _try_to_answer(self, said: str, turn: str, confidence: float | None, out: Out) -> str:
        """Answer; returns what to say instead if a model or tool fails."""
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
        recall = self.recall
        memory = await recall.in_turn(self.masked(said))  # before anything is written
        async with self._settling:  # the previous reply is recorded before the next is made
            await self.end_reply(keep=False)  # the answer may rely on what was said before
        own, said = await self._screen(said, turn)
        self.moment = said
        if recall is not self.recall:  # the caller has changed
            memory = MemoryInTurn(self.memory, said, self.name)
        heard = turn_of(said, "user", f"{self._id(turn)}:user", confidence)
        exchange = await self._take_in(heard, self._came_at)
        self._unanswered.pop(turn, None)
        reply = self.playback.begin(f"{self._id(turn)}:agent", exchange)
        if own:
            await out(own)
            return
        before: list[str] = []

        try:
            await self._run(said, _noting(before, out), memory)
        except Restart as why:
            self.leaving.clear()
            reply.unkept = "".join(before)  # spoken, but from another person's memory
            reply.exchange = None
            await self._restart(why)
            reply.exchange = self.recorder.begin(heard, self.talk.current, self._came_at)
            await self._run(said, out, MemoryInTurn(self.memory, said, self.name))

    async def _screen(self, said: str, turn: str) -> tuple[str, str]:
        """Screen what was said in `turn`: once, and to its end even if the reply is stopped. Otherwise the
        caller would have changed by half, or a code be used up that proves nobody.
        """
        if turn not in self._screenings:
            self._screenings[turn] = self.later(self._screen_next(said, turn))
            self._screenings[turn].add_done_callback(retrieved)
        return await asyncio.shield(self._screenings[turn])

    async def _screen_next(self, said: str, turn: str) -> tuple[str, str]:
        async with self._screening:
            try:
                return await self._screened(said)
            except BaseException:
                self._screenings.pop(turn, None)  # it may be tried again
                raise

    async def _restart(self, why: Restart) -> None:
        """Serve the person whom a tool identified, whatever stops the reply."""

        async def restart() -> None:
            async with self._screening:
                await self._restarted(why)

        await self.durably(restart())

    async def _run(self, said: str, out: Out, memory: MemoryInTurn) -> None:
        made: list[CallerMemory] = []

        def capabilities() -> list[AbstractCapability[Any]]:
            made.append(self._memory(memory, self.talk.current))
            return [made[-1], *self._more(self.talk.current)]

        try:
            async with aclosing(self.talk.reply(said, capabilities)) as words:
                async for text in words:
                    await out(text)
        finally:
            if self.playback.reply is not None:
                self.playback.reply.start = self.talk.start
            if made:
                self.recorder.ran(made[-1].texts, self.talk.history, memory)

    async def _take_in(self, turn: Turn, came_at: datetime) -> Exchange:
        """Store what the caller said, and start an exchange."""
        self._turns += 1
        exchange = self._exchange = self.recorder.begin(turn, self.talk.current, came_at)
        self._caption("user", turn.id, turn.text, final=True)
        await self.durably(self.recorder.add(turn))
        return exchange

    # -- as the host of a `VoiceSession`

    @property
    def history(self) -> Sequence[ModelMessage]:
        """The messages from before the session began."""
        return self.talk.history

    @property
    def usage(self) -> RunUsage:
        return self.talk.usage

    def capabilities(self, agent: str) -> tuple[CallerMemory, Sequence[AbstractCapability[Any]]]:
        """The memory capability of `agent`, and its other capabilities."""
        return self._memory(self.memory, agent), self._more(agent)

    def caller_speaks(self) -> None:
        """The caller began to speak: a hang-up under way is cancelled."""
        self.leaving.clear()

    async def caller_said(self, turn: Turn) -> Turn:
        """Store what the caller said to a voice model, which answers itself; returns the turn as stored."""
        return await self.durably(self._caller_said(turn))

    async def _caller_said(self, turn: Turn) -> Turn:
        self.to_say, kept = await self._screen(turn.text, turn.id)
        self.moment = kept
        kept_turn = replace(turn, text=storable(kept))
        self._turns += 1
        await self.recorder.add(kept_turn)
        return kept_turn

    async def agent_said(self, turn: Turn) -> None:
        """Store what was heard of a voice model's words."""
        if turn.heard_text.strip():
            heard = replace(turn, text=turn.heard_text, heard=None)
            await self.durably(self.recorder.add(heard))

    async def restarted(self, why: Restart) -> None:
        """Serve the person whom a voice model's tool identified."""
        await self._restart(why)

    def transferred(self, agent: str) -> None:
        self.talk.current = agent

    def interrupted(self) -> None:
        """The caller cut off what a voice model said."""
        self._interruptions += 1

    # -- what was heard

    def sent(self, text: str, *, apart: bool = False) -> None:
        """Record that `text` of the reply was sent to the line; `apart`: as a piece of its own."""
        reply = self.playback.sent(text, apart=apart)
        if reply is None:
            return
        if len(reply.pieces) == 1 and reply.exchange is not None:
            self.recorder.log.stamp("first_audio", reply.exchange)
        self._caption("agent", reply.id, reply.text, final=False)
        if apart:
            self._save_soon()

    def played(self, text: str) -> None:
        self.playback.played(text)

    async def barge_in(self, until: str) -> None:
        """The caller interrupted after the channel had played `until`; the rest counts as unsaid."""
        now = time.monotonic()
        self.leaving.clear()
        stopped = self._replying_to if self._replying is not None else ""
        await self._stop()
        unfinished = f"{self._id(stopped)}:agent" if stopped else ""
        async with self._settling:
            replies = self.playback.cut_in(self.playback.take_earlier(self.recorder), until, now)
            cut = [one for one, part in replies if one.id == unfinished or part.rstrip() != one.text.rstrip()]
            if cut:  # otherwise they heard all of it before they spoke
                self.interrupted()
                self.recorder.log.stamp("barge_in", cut[0].exchange)
            await self._end_replies(replies)
            if stopped:
                await self._keep_unanswered(stopped)  # it will not be answered any more
        self._save_soon()

    async def cut_off(self) -> None:
        """The line broke or was hung up: the reply ends at what was played."""
        now, reply = time.monotonic(), self.playback.reply
        so_far, _ = self.playback.so_far()
        await self._stop()
        async with self._settling:
            earlier = self.playback.take_earlier(self.recorder)
            last = so_far if self.playback.reply is reply else ""
            await self._end_replies(self.playback.broken_off(earlier, last, now))
            with suppress(Exception):
                await asyncio.shield(self.opened)
            for turn in list(self._unanswered):
                await self._keep_unanswered(turn)
        self._save_soon()

    async def end_reply(self, heard: str | None = None, *, keep: bool = True) -> None:
        """End the reply in history and memory at the beginning that was `heard`; None: all of it was.

        If `keep` is False, it is stored together with what is said next.
        """
        reply, self.playback.reply = self.playback.reply, None
        if reply is None:
            return
        part = reply.kept(reply.text if heard is None else heard)
        if heard is None:
            self.playback.pass_by(reply, self.recorder, overtaken=self._replying_to in self._early)
        elif reply.start is not None:
            self.talk.trim(part, start=reply.start)
        if not part.strip():
            return
        turn = Turn(speaker="agent", text=storable(part), said_at=reply.said_at, id=reply.id)
        self.recorder.spoken(reply.exchange, turn, reply.text, self.playback.ms_per_character)
        if keep:
            await self.durably(self.recorder.add(turn))
        else:
            self.recorder.note(turn)

    async def _end_replies(self, replies: list[tuple[SpokenReply, str]]) -> None:
        """Record which beginning of each reply under way was heard."""
        for reply, part in reversed(replies):  # from the end of the history
            if reply is self.playback.reply:
                await self.end_reply(part)
            elif part.rstrip() != reply.text.rstrip():
                kept = reply.kept(part)
                if reply.start is not None:
                    self.talk.trim(kept, start=reply.start)
                await self.durably(self.recorder.cut(reply.id, storable(kept)))

    async def _keep_unanswered(self, turn: str) -> None:
        """Store what the caller said in `turn`, if it is not stored and will not be answered."""
        said = self._unanswered.pop(turn, None)
        if said is None:
            return
        with suppress(EchoicError):
            _, self.moment = await self._screen(said, turn)
            kept = turn_of(self.moment, "user", f"{self._id(turn)}:user")
            await self._take_in(kept, kept.said_at)
            self._save_soon()
            self.talk.ask(self.moment)

    # -- its end

    def leave(self) -> bool:
        """Hang up after the reply under way; False if the caller has said something more, which is answered
        first.
        """
        if not self._unanswered:
            self.leaving.set()
        return self.leaving.is_set()

    async def hang_up(self) -> None:
        """End the call: stop the reply under way and finish writing. May be called twice."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            await self._hush()
            await self.cut_off()
            if self._saving is not None:
                self._saving.cancel()
            await self.settle(_SETTLE_S)
            await self._ended()
            await self.recorder.complete()
            await self.recall.aclose()
        # whatever a store or an agent's code raises, the line must be free for the next caller
        except Exception as error:  # noqa: BLE001
            log.error("the end of a call failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
        finally:
            await self._close()

    def forget_words(self) -> None:
        """Free all words held in memory, once the call is over and its words are stored."""
        self.talk.forget()
        self.recorder.let_go()
        self.moment, self._unanswered, self._screenings = "", {}, {}
        self.playback.clear()
        self._exchange = None

    async def _stop(self) -> None:
        replying = self._replying
        if replying is not None and replying is not asyncio.current_task():
            replying.cancel()
            await asyncio.wait({replying})

    # -- checkpoint, record and captions

    def _id(self, turn: str) -> str:
        """The id of a turn, without the prefix of the call's name."""
        return f"{self.name.removeprefix('call:')}:{turn}"

    def _note_generated(self) -> None:
        if self.playback.reply is not None and self.playback.reply.exchange is not None:
            self.recorder.log.stamp("generated", self.playback.reply.exchange)
            self._caption("agent", self.playback.reply.id, self.playback.reply.text, final=True)
        self._save_soon()

    def _caption(self, speaker: Literal["user", "agent"], turn: str, text: str, *, final: bool) -> None:
        if self._captions is not None and text.strip():
            agent = self.talk.current
            caption = Caption(id=turn, speaker=speaker, agent=agent, text=text, final=final)
            show(self._captions, caption)

    def _save_soon(self) -> None:
        """Save a checkpoint beside the call; once more when what is being said was spoken."""
        if self._saving is not None:
            self._saving.cancel()
        if self.recorder.keeping and not self.over:
            self._saving = asyncio.ensure_future(self._follow(self.recorder))
            self._saving.add_done_callback(retrieved)

    async def _follow(self, recorder: CallRecorder) -> None:
        """Save a checkpoint now, and again when what is being said will have been spoken."""
        reply = self.playback.reply
        while True:
            so_far, left_s = self.playback.so_far()
            messages = list(self.talk.history) or history_of(recorder.turns)
            saying: list[Turn] = []
            if reply is not None and reply is self.playback.reply:
                heard = reply.kept(so_far)
                if reply.start is not None:
                    messages = trimmed(messages, reply.start, heard)
                if heard.strip():
                    saying = [Turn(speaker="agent", text=storable(heard), said_at=reply.said_at, id=reply.id)]
            try:
                await asyncio.shield(recorder.save(self.talk.current, messages, saying))
            except EchoicError as error:
                log.warning("the checkpoint of a call is not kept yet: %s", type(error).__name__)
            if reply is None or reply is not self.playback.reply or so_far.rstrip() == reply.text.rstrip():
                return
            await asyncio.sleep(max(0.05, left_s))


def _noting(words: list[str], out: Out) -> Out:
    """`out`, with everything sent there added to `words`."""

    async def noted(text: str) -> None:
        words.append(text)
        await out(text)

    return noted


def turn_of(said: str, speaker: str, name: str, confidence: float | None = None) -> Turn:
    """A turn that was just said."""
    sure = confidence if confidence is not None and 0 <= confidence <= 1 else None
    return Turn(speaker=speaker, text=storable(said), confidence=sure, id=name, said_at=datetime.now(UTC))
