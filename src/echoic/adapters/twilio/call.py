"""One call: what was said, and a reply at a time, whatever channel the words come by."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from pydantic_ai.capabilities import AbstractCapability

from echoic.adapters.twilio.caching import caching_of
from echoic.adapters.twilio.callers import Caller
from echoic.adapters.twilio.claims import masked
from echoic.adapters.twilio.figures import RECORD, Figures
from echoic.adapters.twilio.kept import CallLog, storable, turn_of
from echoic.adapters.twilio.phrases import Phrases
from echoic.adapters.twilio.serving import Number, Serving
from echoic.adapters.twilio.spoken import Spoken, broken_off, cut_in
from echoic.adapters.twilio.talk import Talk
from echoic.adapters.twilio.tools import AnotherCaller, PhoneMemory
from echoic.capability.tools import Answer
from echoic.errors import EchoicError
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.types import Turn

log = logging.getLogger(__name__)

_SETTLE_S: Final = 5.0
"""How long the end of a call waits for what is being written."""
_RECALL_SHARE: Final = 0.5
"""Of a tool's time, what the recall for a turn may take."""
_ON_THEIR_WAY: Final = 8
"""Replies at most that wait to be spoken: no more prompts wait either."""

Out = Callable[[str], Awaitable[None]]


class Answering(Number, Protocol):
    """Who answers, as far as a call needs it: `Phone` is one."""

    service: MemoryService
    capabilities: tuple[AbstractCapability[Any], ...]

    def deps_of(self, call: Call) -> Any:
        """What the agent depends on in `call`."""
        ...

    def ended(self, call: Call) -> None:
        """Note that `call` is over."""
        ...


class Call:
    """A call from its first ring to its end. Made by `Phone`.

    Args:
        phone: who answers.
        sid: the call's id.
        number: where it comes from, as given.
        attestation: whether the carrier vouches for it, as given.
    """

    def __init__(self, phone: Answering, sid: str, number: str, attestation: str) -> None:
        self.sid = sid
        self._phone = phone
        self.serving = Serving(
            phone, self.conversation, number, attestation, deps=lambda: phone.deps_of(self)
        )
        """Who is calling, and what serves them."""
        self.dialogue: Any = None
        """What webhooks keep of it; nobody else looks into it."""
        self._speaking = asyncio.Lock()
        self._settling = asyncio.Lock()
        """Held while it is written down what was heard: a call is not over before."""
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._spoken: Spoken | None = None
        self._before: list[tuple[Spoken, CallLog]] = []
        """Replies before that one, noted as heard and maybe still to be spoken; where they were noted."""
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
        """What the caller said last, without what proves who they are."""
        self.to_say = ""
        """The phone's own answer to what a voice model heard, if any."""
        self.touched = time.monotonic()
        self.lines = 0
        """Sockets that carry it."""
        self.opened: asyncio.Task[None] = asyncio.ensure_future(self._open())

    # -- what it is

    @property
    def conversation(self) -> str:
        """The id its words are kept under."""
        return f"call:{self.sid}"

    @property
    def caller(self) -> Caller:
        """Who is calling."""
        return self.serving.caller

    @property
    def log(self) -> CallLog:
        """What was said to whoever is calling."""
        return self.serving.log

    @property
    def talk(self) -> Talk:
        """The model's side."""
        return self.serving.talk

    @property
    def recall_tokens(self) -> int:
        """Of a recalled conversation."""
        return self._phone.settings.recall_tokens

    @property
    def languages(self) -> tuple[str, ...]:
        """What the line may speak."""
        return self._phone.settings.spoken

    @property
    def language(self) -> str:
        """What the line speaks and understands now."""
        return self.serving.language

    @property
    def phrases(self) -> Phrases:
        """What the phone itself says in it."""
        return self._phone.settings.phrases_in(self.language)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ending is not None

    async def _open(self) -> None:
        await self.serving.identify()
        task = await self.serving.resume()
        if task is not None and task.conversation.status == "completed":
            self._ending = asyncio.ensure_future(self._close())  # long over: this is a replay

    async def _close(self) -> None:
        self._phone.ended(self)

    # -- a turn

    def hearing(self, partial: str, language: str = "") -> None:
        """Take in what the caller said so far: memory is searched while they speak. Never waits."""
        self.heard_in(language)
        self.leaving.clear()
        if self.opened.done() and not self.over:
            self.serving.ear.hear(masked(partial, self.language))

    def heard_in(self, language: str) -> None:
        """The line found out that the caller speaks `language`: it answers in it, if it can.

        One utterance is no preference: the next call begins as before. A line that was not asked to find out
        only repeats what it was told.
        """
        settings = self._phone.settings
        tag = settings.spoken_as(language) if language and settings.detect_language else None
        if tag is not None:
            self.serving.language = tag

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
                    excuse = "" if "".join(words).strip() else self.phrases.farewell
                if excuse:
                    await out(excuse)
            finally:
                self._replying = None

    async def _try_to_answer(self, said: str, turn: str, confidence: float | None, out: Out) -> str:
        """Answer; what is to be said instead where a model or an agent's own tool fails, however it does."""
        try:
            async with asyncio.timeout(self._phone.settings.pace.give_up_s):
                await self._answer(said, turn, confidence, out)
        except TimeoutError:
            return self.phrases.too_long
        except Exception as error:  # noqa: BLE001 - the caller hears a sentence, not silence
            log.error("a reply failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
            return self.phrases.sorry
        return ""

    async def _answer(self, said: str, turn: str, confidence: float | None, out: Out) -> None:
        ear, deadline_ms = self.serving.ear, self._phone.settings.timeout_s * 1000 * _RECALL_SHARE
        memory = await ear.final(masked(said, self.language), deadline_ms)  # before anything is written
        await self.hear()  # whoever answers has heard what was said before
        await self.serving.meet_next()
        own, said = await self.serving.before(said)
        self.moment = said
        if ear is not self.serving.ear:  # somebody else is served by now
            memory = self.serving.memory
        self._turns += 1
        await self._durably(self.log.add(turn_of(said, "user", f"{self.sid}:{turn}:user", confidence)))
        self._unanswered.pop(turn, None)
        self._spoken = Spoken(id=f"{self.sid}:{turn}:agent", said_at=datetime.now(UTC))
        if own:
            await out(own)
            return
        before: list[str] = []

        async def noted(text: str) -> None:
            before.append(text)
            await out(text)

        try:
            await self._run(said, noted, memory)
        except AnotherCaller as found:
            await self.is_another(found.name)
            self._spoken.unkept = "".join(before)  # it was said to them, but from another's memory
            await self._run(said, out, self.serving.memory)

    async def _run(self, said: str, out: Out, memory: UserMemory) -> None:
        try:
            async with aclosing(self.talk.reply(said, self.capabilities(memory))) as words:
                async for text in words:
                    await out(text)
        finally:
            if self._spoken is not None:
                self._spoken.start = self.talk.start

    def capabilities(self, memory: UserMemory | None = None) -> list[AbstractCapability[Any]]:
        """What the agent is given for one run: the caller's memory, and what the phone adds.

        Args:
            memory: the caller's, with what was found for the moment; None: as it is.
        """
        settings = self._phone.settings
        theirs = memory or self.serving.memory
        phone_memory = PhoneMemory(
            self._phone.service,
            user=lambda _deps: self.caller.user,
            deployment=settings.deployment,
            agent=self._phone.name,
            budget_tokens=settings.budget_tokens,
            timeout_s=settings.timeout_s,
            capture=False,
            memory=theirs,
            call=self,
            stored=self.serving.stored,
        )
        more = self._phone.capabilities
        caching = caching_of(self._phone.agent, more, settings.prompt_cache, self.conversation)
        return [phone_memory, *caching, *more]

    def unanswered(self, said: str, turn: str) -> None:
        """Note that `said` waits for an answer: it is kept, even where none comes."""
        if self.over:
            return
        self.leaving.clear()
        if turn not in self._unanswered and (self._unanswered or self._replying is not None):
            self._early.add(turn)
        self._unanswered[turn] = said

    async def overheard(self, said: str, turn: str) -> bool:
        """Keep what the caller said to a voice model, which answers by itself; whether they are the same.

        Where they are not, what the model was told is another's: its session must end.
        """
        before = self.caller
        await self._overhear(said, turn)
        return self.caller.user == before.user

    async def _overhear(self, said: str, turn: str) -> str:
        """Keep what nobody answers; the words as they may be kept."""
        await self.serving.meet_next()
        self.to_say, kept = await self.serving.before(said)
        self.moment = kept
        self._turns += 1
        await self._durably(self.log.add(turn_of(kept, "user", f"{self.sid}:{turn}:user", None)))
        return kept

    async def spoke(self, heard: str, turn: str, *, interrupted: bool) -> None:
        """Keep what was heard of a voice model's words."""
        self._interruptions += interrupted
        if heard.strip():
            await self._durably(self.log.add(turn_of(heard, "agent", f"{self.sid}:{turn}:agent", None)))

    async def is_another(self, name: str | None) -> None:
        """The model found that somebody else is speaking."""
        self.leaving.clear()
        await self.serving.change_to(name)

    # -- what was heard

    def hand_over(self, text: str, *, apart: bool = False) -> None:
        """Note that `text` of the reply goes to the line."""
        if self._spoken is None or not text:
            return
        now, pace = time.monotonic(), self._phone.settings.pace
        if not apart:  # it is spoken behind what was handed over before
            now = max([now, *(one.ends(pace.characters_per_s) for one, _ in self._before if one.overtaken)])
        self._spoken.hand_over(text, now, apart=apart)

    def played(self, text: str) -> None:
        """Note that the line has played `text`."""
        now, pace = time.monotonic(), self._phone.settings.pace
        before = (one for one, _ in self._before if one.sounds(now, pace.characters_per_s))
        sounding = next(before, self._spoken)
        if sounding is not None:
            sounding.report(text)

    async def interrupt(self, until: str) -> None:
        """The caller cut in when the line had come to `until`: what was not heard was not said."""
        now, speed = time.monotonic(), self._phone.settings.pace.characters_per_s
        self.leaving.clear()
        stopped = self._replying is not None
        await self._stop()
        async with self._settling:
            before = self._earlier()
            self._interruptions += bool(before or self._spoken)
            await self._heard(cut_in(before, self._spoken, until, now, speed))
            if stopped:
                await self._heed(self._replying_to)  # nobody will answer it any more

    def _earlier(self) -> list[Spoken]:
        """Replies before the one under way of which not all may have been heard, in their order."""
        return [spoken for spoken, log_ in self._before if log_ is self.log]

    async def _heard(self, parts: list[str]) -> None:
        """Of what is on its way these beginnings were heard, and no more will be."""
        replies = self._earlier() + ([self._spoken] if self._spoken is not None else [])
        self._before = []
        for spoken, part in reversed(list(zip(replies, parts, strict=True))):  # the last in the history first
            if spoken is self._spoken:
                await self.hear(part)
            elif part.rstrip() != spoken.text.rstrip():
                kept = spoken.kept(part)
                if spoken.start is not None:
                    self.talk.hear(kept, start=spoken.start)
                await self._durably(self.log.cut(spoken.id, storable(kept)))

    async def hear(self, heard: str | None = None) -> None:
        """The reply is over and was heard so far, None: all of it. History and memory hold no more."""
        spoken, self._spoken = self._spoken, None
        if spoken is None:
            return
        part = spoken.kept(spoken.text if heard is None else heard)
        if heard is None and not spoken.apart:
            spoken.overtaken = self._replying_to in self._early
            self._before = [*self._before, (spoken, self.log)][-_ON_THEIR_WAY:]
        if heard is not None and spoken.start is not None:
            self.talk.hear(part, start=spoken.start)
        if part.strip():
            turn = Turn(speaker="agent", text=storable(part), said_at=spoken.said_at, id=spoken.id)
            await self._durably(self.log.add(turn))

    async def cut_off(self) -> None:
        """The line broke, or was hung up: the reply ends where it had come to."""
        now, speed = time.monotonic(), self._phone.settings.pace.characters_per_s
        spoken, so_far = self._spoken, self._spoken.so_far(now, speed) if self._spoken is not None else ""
        await self._stop()
        async with self._settling:
            before = self._earlier()
            parts = broken_off(before, now, speed)
            if self._spoken is not None:
                parts.append(so_far if self._spoken is spoken else "")
            await self._heard(parts)
            with suppress(Exception):
                await asyncio.shield(self.opened)
            for turn in list(self._unanswered):
                await self._heed(turn)

    async def _heed(self, turn: str) -> None:
        """Keep what the caller said in `turn`, if nobody did and nobody will answer it."""
        said = self._unanswered.pop(turn, None)
        if said is None:
            return
        with suppress(EchoicError):
            self.talk.ask(await self._overhear(said, turn))

    def sounds_s(self) -> float:
        """How long the reply may still be heard; 0 once the line reported that all of it was played."""
        speed = self._phone.settings.pace.characters_per_s
        return self._spoken.left_s(time.monotonic(), speed) if self._spoken is not None else 0.0

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
            await self._put_away()
        # whatever a store or an agent's own code raises: the line is free for the next caller
        except Exception as error:  # noqa: BLE001
            log.error("the end of a call failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
        finally:
            self._phone.ended(self)

    async def _put_away(self) -> None:
        await self.cut_off()
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=_SETTLE_S)
        await self.log.add_result(RECORD, {**self.figures.as_json(), **self.serving.origin})
        await self.log.complete()
        await self.serving.forget_guest()
        await self.serving.ear.aclose()

    @property
    def figures(self) -> Figures:
        """What it took so far."""
        usage = self.talk.usage
        return Figures(
            turns=self._turns,
            interruptions=self._interruptions,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            recalls=self.serving.recalls,
            recalls_ready=self.serving.recalls_ready,
            language=self.language,
            kept=self.log.keeping,
        )

    def forget_words(self) -> None:
        """Let go of all that was said: the call is over, and what was to be kept is."""
        self.talk.forget()
        self.log.turns, self.serving.stored, self.moment = [], [], ""
        self._unanswered = {}
        self.dialogue = None

    async def in_flight(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do `work`; the call is not over before it is done."""
        task = asyncio.current_task()
        assert task is not None
        self._in_flight.add(task)
        try:
            return await work
        finally:
            self._in_flight.discard(task)

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


__all__ = ["Call"]
