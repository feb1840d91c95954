"""Whom a call serves: who they are, where their words go, and what must stand still for as long as they call.

Decided by rules, before a model sees anything of anybody. Whoever turns out to be somebody else gets another
memory, and nothing the model saw for the one before reaches it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from pydantic_ai import Agent

from echoic.adapters.twilio.callers import Caller, Callers
from echoic.adapters.twilio.claims import claim_in, codes_in
from echoic.adapters.twilio.interim import Ear
from echoic.adapters.twilio.kept import CallLog
from echoic.adapters.twilio.linking import Code, LinkCodes
from echoic.adapters.twilio.settings import PhoneSettings
from echoic.adapters.twilio.talk import Talk
from echoic.errors import EchoicError, NotAllowed
from echoic.memory.user import UserMemory
from echoic.types import Conversation, Task

log = logging.getLogger(__name__)

_MAX_CODES: Final = 3
"""Wrong codes in one call; then no more are looked at."""
_WARM_AFTER_S: Final = 0.3
"""By then the greeting is on its way: whoever rings meanwhile is answered first."""
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
_LANGUAGE: Final = "The line speaks and understands {language}: begin in it."


class Number(Protocol):
    """The number that was called, as far as serving a caller needs it: `Phone` is one."""

    agent: Agent[Any, str]
    settings: PhoneSettings
    callers: Callers
    links: LinkCodes

    @property
    def name(self) -> str:
        """Of the agent."""
        ...

    def memory_of(self, user: str) -> UserMemory:
        """The memory of one of the callers."""
        ...

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` beside everything else."""
        ...


class Serving:
    """The caller of one call, and what serves them. Made by `Call`.

    Args:
        phone: who answers.
        conversation: the id the call's words are kept under.
        number: where it comes from, as given.
        attestation: whether the carrier vouches for it, as given.
        deps: makes what the agent depends on, for every caller anew.
    """

    def __init__(
        self, phone: Number, conversation: str, number: str, attestation: str, deps: Callable[[], Any]
    ) -> None:
        self._phone = phone
        self._deps = deps
        self._conversation = conversation
        self._number, self._attestation = number, attestation
        self._wrong_codes = 0
        self._recalls = self._ready = 0
        self._ear: Ear | None = None
        self.language = phone.settings.language
        """What the line speaks and understands, as a tag of its own."""
        self.next: Caller | None = None
        """Whom the call serves from the next turn on."""
        self.stored: list[Conversation] = []
        """What can be recalled, as it stood when the caller was known."""
        self.serve(phone.callers.guest())
        self.talk = Talk(agent=phone.agent, deps=None, conversation=conversation)

    @property
    def memory(self) -> UserMemory:
        """Of whoever is calling."""
        return self._phone.memory_of(self.caller.user)

    @property
    def ear(self) -> Ear:
        """Hears what they say before they have said it."""
        assert self._ear is not None
        return self._ear

    @property
    def is_guest(self) -> bool:
        """Whether nobody is known."""
        return self.caller.guest

    @property
    def greeting(self) -> str:
        """The first words to them."""
        settings = self._phone.settings
        phrases = settings.phrases_in(self.language)
        if self.caller.shared and self.is_guest:
            return phrases.greeting_shared
        if settings.greet_by_name and self.caller.name and not self.is_guest:
            return phrases.greeting_known.replace("{name}", self.caller.name)
        return phrases.greeting

    @property
    def recalls(self) -> int:
        """How many utterances were heard before their end."""
        return self._recalls + self.ear.recalls

    @property
    def recalls_ready(self) -> int:
        """Of these, those whose recall was there at their end."""
        return self._ready + self.ear.ready

    async def identify(self) -> None:
        """Find out who is calling. Where that cannot be looked up they are a guest: nothing is guessed."""
        try:
            caller = await self._phone.callers.identify(self._number, self._attestation)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            caller = self._phone.callers.guest()
        self.serve(caller)
        await self.prepare()

    def serve(self, caller: Caller) -> None:
        """Serve `caller` from now on, with nothing said so far."""
        self.caller = caller
        keeping = self._phone.settings.retention == "keep" and not caller.guest
        self.log = CallLog(self.memory, self._conversation, self._phone.name, keeping=keeping)
        before, self._ear = self._ear, Ear(self.memory)
        if before is not None:  # what was found for one caller is never given to another
            self._recalls, self._ready = self._recalls + before.recalls, self._ready + before.ready
            self._phone.later(before.aclose())

    async def prepare(self) -> None:
        """What of the caller's memory must stand still for the rest of the call."""
        self.talk.deps = self._deps()
        self.stored = []
        if not self.is_guest:
            try:
                self.stored = [c for c in await self.memory.conversations() if c.recall_key]
                preferred = (await self.memory.directives()).language
                self.language = (preferred and self._phone.settings.spoken_as(preferred)) or self.language
            except EchoicError as error:
                log.warning("what a caller stored could not be listed: %s", type(error).__name__)
            self._phone.later(_warmed(self.memory))
        asking = self._phone.settings.retention == "ask" and not self.is_guest
        other = self.language != self._phone.settings.language
        said = [
            _MANNER,
            _ASKING if asking else "",
            _GUEST if self.is_guest else "",
            _LANGUAGE.format(language=self.language) if other else "",
        ]
        self.talk.instructions = " ".join(part for part in said if part)

    async def resume(self) -> Task | None:
        """What another process kept of this very call; it is taken up, unless it is over."""
        if not self.log.keeping:
            return None
        with suppress(EchoicError):
            task = await self.memory.task(self._conversation)
            if task is not None and task.conversation.status != "completed":
                self.log.resume(list(task.turns))
                self.talk.resume(task.turns)
            return task
        return None

    async def change(self, caller: Caller, *, denied: bool) -> None:
        """Serve somebody else. Nothing the model saw for the one before reaches it again.

        Args:
            caller: who it is.
            denied: the words so far were never the other's: they leave that memory and go with the caller.
        """
        before, was_guest = self.log, self.is_guest
        self.serve(caller)  # first of all: whatever fails from here on, nobody is served as the one before
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
        await self.prepare()

    async def change_to(self, name: str | None) -> None:
        """Somebody else is speaking: of that name, or nobody knows who."""
        await self.change(await self._another(name), denied=True)

    async def meet_next(self) -> None:
        """Serve whom the call was linked to in the turn before."""
        caller, self.next = self.next, None
        if caller is not None:
            await self.change(caller, denied=False)

    async def before(self, said: str) -> str:
        """What rules settle before a model is asked: codes, and who is speaking. Words to answer, if any."""
        answer = await self._take_codes(said)
        if answer:
            return answer
        claim = claim_in(said, taken_for=self.caller.name, known=self.caller.people or {})
        if claim is None:
            return ""
        unknown = self.is_guest and self.caller.line is not None and claim.name is not None
        if claim.denied or unknown:
            await self.change(await self._another(claim.name), denied=claim.denied)
        return ""

    async def link(self, code: str) -> bool:
        """Link the line to whom `code` was given, from the next turn on; whether it was good.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        if self._wrong_codes >= _MAX_CODES:
            return False
        user = await self._phone.links.take("".join(c for c in code if c.isdigit()))
        if user is None:
            self._wrong_codes += 1
            return False
        with suppress(NotAllowed):
            self.next = await self._phone.callers.link(self.caller, user)
            return True
        # for this call: the number is withheld
        self.next = Caller(user=user, confidence=self.caller.confidence)
        return True

    async def unlink(self) -> None:
        """Undo the link of the line; from the next turn on it is who it was before."""
        self.next = await self._phone.callers.unlink(self.caller)

    async def code(self) -> Code | None:
        """A code by which a page proves to belong to this line; None: the number is withheld."""
        line = self.caller.line
        return None if line is None else await self._phone.links.give_line(line)

    async def speak_in(self, language: str) -> bool:
        """Change the line to `language` and keep that as what the caller prefers; whether it can."""
        tag = self._phone.settings.spoken_as(language)
        if tag is None:
            return False
        self.language = tag
        if not self.is_guest:
            await self.memory.set_directives(language=tag)
        return True

    async def _another(self, name: str | None) -> Caller:
        """Somebody else on the line; a guest where that cannot be looked up: nothing is guessed."""
        try:
            return await self._phone.callers.another(self.caller, name)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            return self._phone.callers.guest(self.caller.line)

    async def _take_codes(self, said: str) -> str:
        codes = codes_in(said)
        if not codes or self._wrong_codes >= _MAX_CODES:
            return ""
        phrases = self._phone.settings.phrases_in(self.language)
        try:
            if not await self._phone.links.waiting():
                return ""
            for code in codes[:_MAX_CODES]:
                if await self.link(code):
                    await self.meet_next()
                    return phrases.linked
        except EchoicError as error:  # not believed; what was said is still answered
            log.warning("a code could not be looked at: %s", type(error).__name__)
            return ""
        # digits alone were meant as a code; among other words they may be anything
        return phrases.no_code if said.replace(" ", "").isdigit() else ""


async def _warmed(memory: UserMemory) -> None:
    """Make ready what the first answer needs, while the caller is greeted."""
    await asyncio.sleep(_WARM_AFTER_S)
    with suppress(EchoicError, asyncio.CancelledError):
        await memory.warm()


__all__ = ["Serving"]
