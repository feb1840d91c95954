"""One call: who is calling, what was said, and a reply at a time, whatever channel the words come by."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.capabilities import AbstractCapability

from echoic.adapters.twilio.callers import Caller
from echoic.adapters.twilio.claims import claim_in, codes_in
from echoic.adapters.twilio.kept import CallLog
from echoic.adapters.twilio.settings import GREETING_KNOWN, GREETING_SHARED
from echoic.adapters.twilio.spoken import Spoken
from echoic.adapters.twilio.talk import Talk
from echoic.adapters.twilio.tools import AnotherCaller, PhoneMemory
from echoic.capability.tools import Answer
from echoic.errors import EchoicError, NotAllowed
from echoic.memory.user import UserMemory
from echoic.types import Conversation, Turn

if TYPE_CHECKING:
    from echoic.adapters.twilio.phone import Phone
    from echoic.adapters.twilio.webhooks import Dialogue

log = logging.getLogger(__name__)

SORRY: Final = "I'm sorry, something went wrong on my side. Could you say that again?"
TOO_LONG: Final = "I'm sorry, I could not find that out in time. Can I help with something else?"
LINKED: Final = "Thank you, this phone is linked now. I know you here as well."
NO_CODE: Final = "That code is not a good one, or not any more. Please get a new one."
_MAX_CODES: Final = 3
"""Wrong codes in one call; then no more are looked at."""
_MANNER: Final = (
    "You are on the telephone: say short, plain sentences, without markup, lists or addresses that nobody "
    "would read aloud. Who is calling is known by their number, which is likely but not certain: if somebody "
    "else is speaking, call wrong_caller before anything else."
)
_ASKING: Final = (
    "Before the call ends, ask whether it may be remembered, and call remember_call with the answer. Until "
    "then nothing of it is kept."
)
_GUEST: Final = "Nobody knows who is calling: there is no memory to rely on, and none is kept of this call."
_SETTLE_S: Final = 5.0
"""How long the end of a call waits for what is being written."""

Out = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a call took. No content."""

    turns: int
    interruptions: int
    input_tokens: int
    cached_tokens: int
    kept: bool

    @property
    def cached_share(self) -> float:
        """Of the tokens sent, those the provider had in its cache; 0 where none were sent."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0


class Call:
    """A call from its first ring to its end. Made by `Phone`.

    Args:
        phone: who answers.
        sid: the call's id.
        number: where it comes from, as given.
        attestation: whether the carrier vouches for it, as given.
    """

    def __init__(self, phone: Phone, sid: str, number: str, attestation: str) -> None:
        self.sid = sid
        self.language = phone.settings.language
        self._phone = phone
        self._number, self._attestation = number, attestation
        self._speaking = asyncio.Lock()
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._spoken: Spoken | None = None
        self._next: Caller | None = None
        self._unkept = ""
        """The beginning of the reply that is nobody's to keep."""
        self._wrong_codes = 0
        self._turns = self._interruptions = 0
        self._replying: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[None] | None = None
        self.moment = ""
        """What the caller said last."""
        self.stored: list[Conversation] = []
        self.touched = time.monotonic()
        self.lines = 0
        """Sockets that carry it."""
        self.dialogue: Dialogue | None = None
        """Where it stands, over webhooks."""
        self._serve(phone.callers.guest())
        self.talk = Talk(agent=phone.agent, deps=None, conversation=self.conversation)
        self.opened: asyncio.Task[None] = asyncio.ensure_future(self._open())

    # -- who it is

    @property
    def conversation(self) -> str:
        """The id its words are kept under."""
        return f"call:{self.sid}"

    @property
    def is_guest(self) -> bool:
        """Whether nobody is known."""
        return self.caller.guest

    @property
    def recall_tokens(self) -> int:
        """Of a recalled conversation."""
        return self._phone.settings.recall_tokens

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._ending is not None

    @property
    def greeting(self) -> str:
        """The first words."""
        settings = self._phone.settings
        if self.caller.shared and self.is_guest:
            return GREETING_SHARED
        if settings.greet_by_name and self.caller.name and not self.is_guest:
            return GREETING_KNOWN.format(name=self.caller.name)
        return settings.greeting

    @property
    def memory(self) -> UserMemory:
        """Of whoever is calling."""
        return self._phone.memory_of(self.caller.user)

    async def _open(self) -> None:
        """Find out who is calling. Where that cannot be looked up they are a guest: nothing is guessed."""
        try:
            caller = await self._phone.callers.identify(self._number, self._attestation)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            caller = self._phone.callers.guest()
        self._serve(caller)
        await self._prepare()
        await self._resume()

    async def _close(self) -> None:
        self._phone.ended(self)

    def _serve(self, caller: Caller) -> None:
        """Serve `caller` from now on, with nothing said so far."""
        self.caller = caller
        keeping = self._phone.settings.retention == "keep" and not caller.guest
        self.log = CallLog(self.memory, self.conversation, self._phone.name, keeping=keeping)

    async def _prepare(self) -> None:
        """What of the caller's memory must stand still for the rest of the call."""
        self.talk.deps = self._phone.deps_of(self)
        asking = self._phone.settings.retention == "ask" and not self.is_guest
        said = [_MANNER, _ASKING if asking else "", _GUEST if self.is_guest else ""]
        self.talk.instructions = " ".join(part for part in said if part)
        self.stored = []
        if not self.is_guest:
            try:
                self.stored = [c for c in await self.memory.conversations() if c.recall_key]
            except EchoicError as error:
                log.warning("stored conversations could not be listed: %s", type(error).__name__)

    async def _resume(self) -> None:
        """Take up what another process kept of this very call."""
        if not self.log.keeping:
            return
        with suppress(EchoicError):
            task = await self.memory.task(self.conversation)
            if task is None:
                return
            if task.conversation.status in {"completed", "distilled"}:
                self._ending = asyncio.ensure_future(self._close())  # long over: this is a replay
                return
            self.log.resume(list(task.turns))
            self.talk.resume(task.turns)

    async def _change(self, caller: Caller, *, denied: bool) -> None:
        """Serve somebody else. Nothing the model saw for the one before reaches it again.

        Args:
            caller: who it is.
            denied: the words so far were never the other's: they leave that memory and go with the caller.
        """
        before, was_guest = self.log, self.is_guest
        self._serve(caller)  # first of all: whatever fails from here on, nobody is served as the one before
        if denied:
            try:
                await before.drop()
            except EchoicError as error:
                log.error("another's words could not be taken out yet: %s", type(error).__name__)  # noqa: TRY400 - no content
        else:
            await before.complete()
        self.talk.forget()
        if denied or was_guest:
            # the agent's words stay behind: they may tell of the one before
            for turn in before.turns:
                if turn.speaker == "user":
                    await self.log.add(turn)
        await self._prepare()

    # -- a turn

    async def speak(self, said: str, *, turn: str, confidence: float | None = None, out: Out) -> None:
        """Answer what the caller said; `out` gets the words as they come. One at a time, in order.

        Args:
            said: as the recogniser wrote it.
            turn: its id within the call; the same again is answered again, but kept once.
            confidence: the recogniser's, 0 to 1.
            out: where the words go.
        """
        async with self._speaking:
            self._replying = asyncio.current_task()
            try:
                await asyncio.shield(self.opened)
                if self.over:
                    return
                async with asyncio.timeout(self._phone.settings.pace.give_up_s):
                    await self._answer(said, turn, confidence, out)
            except TimeoutError:
                await out(TOO_LONG)
            # whatever a model or an agent's own tool raises: the caller hears a sentence, not silence
            except Exception as error:  # noqa: BLE001
                log.error("a reply failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
                await out(SORRY)
            finally:
                self._replying = None

    async def _answer(self, said: str, turn: str, confidence: float | None, out: Out) -> None:
        await self.hear()  # whoever answers has heard what was said before
        await self._meet_next()
        self.moment = said
        own = await self._before(said)
        self._turns += 1
        await self._durably(self.log.add(_turn(said, "user", f"{self.sid}:{turn}:user", confidence)))
        self._spoken = Spoken(id=f"{self.sid}:{turn}:agent", said_at=datetime.now(UTC))
        if own:
            await out(own)
            return
        before: list[str] = []

        async def noted(text: str) -> None:
            before.append(text)
            await out(text)

        try:
            await self._run(said, noted)
        except AnotherCaller as found:
            await self.is_another(found.name)
            self._unkept = "".join(before)  # it was said to them, but from another's memory
            await self._run(said, out)

    async def _run(self, said: str, out: Out) -> None:
        async with aclosing(self.talk.reply(said, self.capabilities)) as words:
            async for text in words:
                await out(text)

    @property
    def capabilities(self) -> list[AbstractCapability[Any]]:
        """What the agent is given for one run: the caller's memory, and what the phone adds."""
        settings = self._phone.settings
        memory = PhoneMemory(
            self._phone.service,
            user=lambda _deps: self.caller.user,
            deployment=settings.deployment,
            agent=self._phone.name,
            budget_tokens=settings.budget_tokens,
            timeout_s=settings.timeout_s,
            capture=False,
            memory=self.memory,
            call=self,
            stored=self.stored,
        )
        return [memory, *self._phone.capabilities]

    async def overheard(self, said: str, turn: str) -> bool:
        """Keep what the caller said to a voice model, which answers by itself; whether they are the same.

        Where they are not, what the model was told is another's: its session must end.
        """
        before = self.caller
        await self._meet_next()
        self.moment = said
        await self._before(said)
        self._turns += 1
        await self._durably(self.log.add(_turn(said, "user", f"{self.sid}:{turn}:user", None)))
        return self.caller is before

    async def spoke(self, heard: str, turn: str, *, interrupted: bool) -> None:
        """Keep what was heard of a voice model's words."""
        self._interruptions += interrupted
        if heard.strip():
            await self._durably(self.log.add(_turn(heard, "agent", f"{self.sid}:{turn}:agent", None)))

    async def is_another(self, name: str | None) -> None:
        """The model found that somebody else is speaking."""
        await self._change(await self._another(name), denied=True)

    async def _another(self, name: str | None) -> Caller:
        """Somebody else on the line; a guest where that cannot be looked up: nothing is guessed."""
        try:
            return await self._phone.callers.another(self.caller, name)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            return self._phone.callers.guest(self.caller.line)

    async def _before(self, said: str) -> str:
        """What rules settle before a model is asked: codes, and who is speaking. Words to answer, if any."""
        answer = await self._take_codes(said)
        if answer:
            return answer
        people = self.caller.people or {}
        claim = claim_in(said, taken_for=self.caller.name, known=people)
        if claim is None:
            return ""
        unknown = self.is_guest and self.caller.line is not None and claim.name is not None
        if claim.denied or unknown:
            await self._change(await self._another(claim.name), denied=claim.denied)
        return ""

    async def _take_codes(self, said: str) -> str:
        codes = codes_in(said)
        if not codes or not self._phone.links.waiting or self._wrong_codes >= _MAX_CODES:
            return ""
        for code in codes[:_MAX_CODES]:
            if await self.link(code):
                await self._meet_next()
                return LINKED
        # digits alone were meant as a code; among other words they may be anything
        return NO_CODE if said.replace(" ", "").isdigit() else ""

    async def link(self, code: str) -> bool:
        """Link the line to whom `code` was given, from the next turn on; whether it was good."""
        if self._wrong_codes >= _MAX_CODES:
            return False
        user = self._phone.links.take("".join(c for c in code if c.isdigit()))
        if user is None:
            self._wrong_codes += 1
            return False
        with suppress(NotAllowed):
            self._next = await self._phone.callers.link(self.caller, user)
            return True
        self._next = Caller(
            user=user, confidence=self.caller.confidence
        )  # for this call: the number is withheld
        return True

    async def unlink(self) -> None:
        """Undo the link of the line; from the next turn on it is who it was before."""
        self._next = await self._phone.callers.unlink(self.caller)

    async def _meet_next(self) -> None:
        caller, self._next = self._next, None
        if caller is not None:
            await self._change(caller, denied=False)

    # -- what was heard

    def hand_over(self, text: str, *, apart: bool = False) -> None:
        """Note that `text` of the reply goes to the line."""
        if self._spoken is not None and text:
            self._spoken.hand_over(text, time.monotonic(), apart=apart)

    def played(self, text: str) -> None:
        """Note that the line has played `text`."""
        if self._spoken is not None:
            self._spoken.report(text)

    async def interrupt(self, until: str) -> None:
        """The caller cut in when the line had come to `until`: what was not heard was not said."""
        await self._stop()
        if self._spoken is not None:
            self._interruptions += 1
            await self.hear(self._spoken.until(until))

    async def hear(self, heard: str | None = None) -> None:
        """The reply is over and was heard so far, None: all of it. History and memory hold no more."""
        spoken, self._spoken = self._spoken, None
        if spoken is None:
            return
        part = spoken.text if heard is None else heard
        part = "" if self._unkept.startswith(part) else part.removeprefix(self._unkept)
        self._unkept = ""
        if heard is not None:
            self.talk.hear(part)
        if part.strip():
            turn = Turn(speaker="agent", text=_storable(part), said_at=spoken.said_at, id=spoken.id)
            await self._durably(self.log.add(turn))

    async def cut_off(self) -> None:
        """The line broke, or was hung up: the reply ends where it had come to."""
        spoken, now = self._spoken, time.monotonic()
        await self._stop()
        if spoken is not None and spoken is self._spoken:
            await self.hear(spoken.so_far(now, self._phone.settings.pace.characters_per_s))

    # -- its end

    async def hang_up(self) -> None:
        """It is over: the reply under way ends, what is being written is written. May be called twice."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        await self.cut_off()
        with suppress(Exception):
            await self.opened
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=_SETTLE_S)
        await self.log.complete()
        await self._forget_guest()
        self._phone.ended(self)

    async def _forget_guest(self) -> None:
        """What was noted for somebody nobody can be again goes."""
        if not self.is_guest:
            return
        try:
            if await self.memory.facts():
                await self.memory.forget()
        except EchoicError as error:
            log.error("a guest could not be forgotten: %s", type(error).__name__)  # noqa: TRY400 - no content

    @property
    def figures(self) -> Figures:
        """What it took so far."""
        return Figures(
            turns=self._turns,
            interruptions=self._interruptions,
            input_tokens=self.talk.usage.input_tokens,
            cached_tokens=self.talk.usage.cache_read_tokens,
            kept=self.log.keeping,
        )

    def forget_words(self) -> None:
        """Let go of all that was said: the call is over, and what was to be kept is."""
        self.talk.forget()
        self.log.turns, self.stored, self.moment = [], [], ""
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


def _turn(said: str, speaker: str, name: str, confidence: float | None) -> Turn:
    sure = confidence if confidence is not None and 0 <= confidence <= 1 else None
    return Turn(speaker=speaker, text=_storable(said), confidence=sure, id=name, said_at=datetime.now(UTC))


def _storable(text: str) -> str:
    """`text` as it can be kept: it was said, and must not be lost for what cannot."""
    return text.replace("\0", "").encode(errors="replace").decode()[:8000]


__all__ = ["SORRY", "TOO_LONG", "Call", "Figures"]
