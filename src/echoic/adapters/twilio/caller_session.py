"""Who is served in a call, where their words are stored, and what must not change meanwhile.

Rules decide this before a model sees any memory. If the caller turns out to be somebody else, the call
switches to another memory, and nothing the model saw of the previous one reaches it again. `Verification`
checks proofs of identity.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from echoic.adapters.twilio.callers import Caller, Callers
from echoic.adapters.twilio.proofs import (
    Code,
    LinkCodes,
    Proof,
    claim_in,
    codes_in,
    names_pin,
    proof_in,
    sets_pin,
    speaks_of_proof,
    wants_pin,
)
from echoic.adapters.twilio.settings import PhoneSettings, Phrases
from echoic.errors import EchoicError, InvalidInput, NotAllowed
from echoic.memory.phone_registry import line_key
from echoic.memory.user import UserMemory
from echoic.session.recorder import CallRecorder
from echoic.session.text_call import TextCall

log = logging.getLogger(__name__)

MAX_WRONG: Final = 3
"""Wrong codes, and wrong PINs, in one call; after that none is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofAnswer:
    """The outcome of an utterance."""

    kept: str
    """The utterance as it may be stored and shown to a model."""
    answer: str = ""
    """The phone's own answer, if any."""
    caller: Caller | None = None


class Verification:
    """The proofs of one call."""

    def __init__(self, callers: Callers, links: LinkCodes) -> None:
        self._callers, self._links = callers, links
        self._wrong_codes = self._wrong_pins = 0
        self._name: str | None = None
        self._expected = False
        """Whether a PIN or code was mentioned, so that the next digits may be it."""
        self._asked = False
        """Whether the phone asked for a PIN."""
        self._setting = False
        """Whether the next digits are a new PIN."""
        self._fresh: set[str] = set()
        """Users proved in this call by a PIN or code."""

    async def hear(
        self, said: str, before: str, caller: Caller, language: str, phrases: Phrases
    ) -> ProofAnswer:
        proof = proof_in(said, language)
        claim = claim_in(said, taken_for=None)
        self._name = claim.name if claim is not None and claim.name else self._name
        expected = self._expected or speaks_of_proof(before)
        self._expected = proof is None and speaks_of_proof(said)
        setting, self._setting = self._setting, False
        asked, self._asked = self._asked, False
        try:
            if proof is not None and (setting or sets_pin(said)):
                return ProofAnswer(kept=proof.masked, answer=await self._set(proof, caller, phrases))
            if proof is None and caller.user in caller.proved and wants_pin(said):
                return ProofAnswer(kept=said, answer=await self.new_pin(caller, phrases))
            if proof is not None:
                # digits of a known caller may be anything, unless they are called a PIN
                meant = expected or proof.announced
                open_ = not caller.guest and (bool(caller.proved) or not meant)
                asked = asked or (open_ and names_pin(before) and await self._may_prove(caller))
                sought = asked or names_pin(said) or not open_
                return await self._look(said, proof, caller, phrases, sought=sought, meant=asked or meant)
            # digits among other words may be anything, such as a telephone number
            codes = codes_in(said, language) if expected else []
            return await self._codes(said, said, codes, caller, phrases)
        except EchoicError as error:  # not accepted; the utterance is still answered
            log.warning("a proof could not be looked at: %s", type(error).__name__)
            return ProofAnswer(kept=proof.masked if proof is not None else said)

    async def _may_prove(self, caller: Caller) -> bool:
        """Whether a PIN would prove more of this known caller."""
        return caller.level == "attested" and await self._callers.pins.has(caller.user)

    async def new_pin(self, caller: Caller, phrases: Phrases) -> str:
        """Treat the next digits as a new PIN of the caller's; returns the request for them."""
        if caller.guest or caller.user not in caller.proved:
            return phrases.not_proven
        if caller.user not in self._fresh and await self._callers.pins.has(caller.user):
            return self.ask(phrases)
        self._setting = True
        return phrases.new_pin

    def ask(self, phrases: Phrases) -> str:
        """Treat the next digits as a PIN; returns the request for it."""
        self._asked = True
        return phrases.old_pin

    async def take(self, code: str, caller: Caller) -> tuple[Caller, bool] | None:
        """The caller that `code` proves, and whether their line is now linked to them; None for a wrong code.

        Raises:
            StoreUnavailable: it could not be checked.
        """
        if self._wrong_codes >= MAX_WRONG:
            return None
        user = await self._links.take("".join(c for c in code if c.isdigit()))
        if user is None:
            self._wrong_codes += 1
            return None
        self._fresh.add(user)
        try:
            return await self._callers.link(caller, user), True
        except NotAllowed:  # for this call
            return await self._callers.known_here(caller, user), False

    async def _look(
        self, said: str, proof: Proof, caller: Caller, phrases: Phrases, *, sought: bool, meant: bool
    ) -> ProofAnswer:
        """Check the digits in `said` as a PIN, if one is `sought`, or a code.

        If a proof was `meant`, since the caller announced it, a wrong one gets a reply.
        """
        if sought and proof.digits and self._wrong_pins < MAX_WRONG:
            found = await self._callers.by_pin(caller, proof.digits, self._name)
            if found is not None:
                self._fresh.add(found.user)
                return ProofAnswer(kept=proof.masked, answer=phrases.proven, caller=found)
        codes = [proof.digits] if proof.digits else []
        heard = await self._codes(said, proof.masked, codes, caller, phrases)
        if heard.caller is not None:
            return heard
        if sought and (meant or proof.digits):
            self._wrong_pins += 1
        if sought and meant:
            return ProofAnswer(kept=proof.masked, answer=heard.answer or phrases.not_proven)
        return replace(heard, kept=proof.masked) if heard.answer else heard

    async def _codes(
        self, said: str, without_digits: str, codes: list[str], caller: Caller, phrases: Phrases
    ) -> ProofAnswer:
        if not codes or self._wrong_codes >= MAX_WRONG or not await self._links.waiting():
            return ProofAnswer(kept=said)
        for code in codes[:MAX_WRONG]:
            found = await self.take(code, caller)
            if found is not None:
                answer = phrases.linked if found[1] else phrases.known_here
                return ProofAnswer(kept=without_digits, answer=answer, caller=found[0])
        # bare digits were meant as a code; among other words they may be anything
        return ProofAnswer(kept=said, answer=phrases.no_code if said.replace(" ", "").isdigit() else "")

    async def _set(self, proof: Proof, caller: Caller, phrases: Phrases) -> str:
        asked = await self.new_pin(caller, phrases)
        if not self._setting:
            return asked
        try:
            await self._callers.pins.set(caller.user, proof.digits, level=caller.level)
        except InvalidInput:
            return asked
        self._setting = False
        self._fresh.add(caller.user)
        return phrases.pin_set


_WARM_AFTER_S: Final = 0.3
"""By then the greeting has been sent, so that loading memory delays no other call's greeting."""
_MANNER: Final = (
    "You are on the telephone: say short, plain sentences, without markup, lists or addresses that nobody "
    "would read aloud. Who is calling is known by their number, which is likely but not certain: if somebody "
    "else is speaking, call wrong_caller before anything else. When the call is over, say good-bye and call "
    "hang_up."
)
_ASKING: Final = (
    "Before the call ends, ask whether it may be remembered, and call remember_call with the answer. Until "
    "then nothing of it is kept."
)
_GUEST: Final = "Nobody knows who is calling: there is no memory to rely on, and none is kept of this call."
_UNPROVEN: Final = (
    "Nothing proves who is calling, so nothing of earlier calls is known, whatever the caller says. Help "
    "with what needs no memory. Where it takes one, tell them that they can say or key in their PIN of six "
    "digits, or a code from their page. Never ask for a name instead, nor say whether anybody is known."
)
_LANGUAGE: Final = "The line speaks and understands {language}: begin in it."


class CalledNumber(Protocol):
    """The part of `Phone` that serving a caller needs."""

    callers: Callers
    links: LinkCodes
    settings: PhoneSettings

    def memory_of(self, user: str) -> UserMemory: ...

    def deps_of(self, call: Any) -> Any: ...

    def later(self, work: Coroutine[Any, Any, None]) -> None: ...


class CallerSession:
    """The caller of one call. Made by `PhoneCall`."""

    def __init__(self, phone: CalledNumber, call: TextCall, number: str, attestation: str) -> None:
        self._phone = phone
        self._call = call
        self._number, self._attestation = number, attestation
        self._verification = Verification(phone.callers, phone.links)
        self.language = phone.settings.language
        """The language tag of the line."""
        self.next: Caller | None = None
        """The caller to serve from the next turn on."""
        self._not_mine = False
        """Whether what was said so far was not said by the user served now."""
        self.unkept = False
        """Whether the caller asked that nothing of this call be kept, whoever they turn out to be."""
        self._said_changed = False
        """Whether they were told of a change of the link, which they heard if they speak again."""
        self.serve(phone.callers.guest())

    def greet(self) -> str:
        """The first words to the caller, as far as they are known by now."""
        settings = self._phone.settings
        phrases = settings.phrases_in(self.language)
        told = f" {phrases.link_changed}" if self.caller.changed else ""
        self._said_changed = self.caller.changed
        if self.caller.shared and self.caller.guest:
            return phrases.greeting_shared + told
        if settings.greet_by_name and self.caller.name and not self.caller.guest:
            return phrases.greeting_known.replace("{name}", self.caller.name) + told
        return phrases.greeting + told

    @property
    def origin(self) -> dict[str, str]:
        """The origin of a call that is stored in a memory other than the line's own, for `give_back`."""
        line = self.caller.line
        return {} if line is None or self.caller.user == line else {"line": line_key(line)}

    async def identify(self) -> None:
        """Identify the caller. If the lookup fails they are a guest."""
        try:
            caller = await self._phone.callers.identify(self._number, self._attestation)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            caller = self._phone.callers.guest(self._phone.callers.line_of(self._number))
        self.serve(caller)
        await self.prepare()

    def serve(self, caller: Caller) -> None:
        """Serve `caller` from now on, with nothing said so far.

        What an unproven caller says is held separately: it is not recalled, and becomes theirs with the rest
        of the call once they prove who they are.
        """
        self.caller = caller
        memory = self._phone.memory_of(caller.user).at(caller.level)
        owner = self._phone.callers.lines.held(caller.line) if caller.line and caller.held else caller.user
        keeping = self._phone.settings.retention == "keep" and (caller.held or not caller.guest)
        self._call.serve(memory, kept_in=self._phone.memory_of(owner), keeping=keeping)

    async def prepare(self) -> None:
        """Load the parts of the caller's memory that must not change during the call."""
        self._call.talk.deps = self._phone.deps_of(self._call)
        if not self.caller.guest:
            try:
                preferred = (await self._call.memory.directives()).language
                self.language = (preferred and self._phone.settings.spoken_as(preferred)) or self.language
            except EchoicError as error:
                log.warning("what a caller prefers could not be read: %s", type(error).__name__)
            self._phone.later(_warmed(self._call.memory))
        asking = self._phone.settings.retention == "ask" and not self.caller.guest
        other = self.language != self._phone.settings.language
        said = [
            _MANNER,
            _ASKING if asking else "",
            (_UNPROVEN if self.caller.unproven else _GUEST) if self.caller.guest else "",
            _LANGUAGE.format(language=self.language) if other else "",
        ]
        self._call.talk.instructions = " ".join(part for part in said if part)

    async def forget_guest(self) -> None:
        """Erase what was stored for a guest, who cannot be identified later."""
        if not self.caller.guest:
            return
        try:
            noted = self._phone.memory_of(self.caller.user)
            if await noted.facts():
                await noted.forget()
        except EchoicError as error:
            log.error("a guest could not be forgotten: %s", type(error).__name__)  # noqa: TRY400 - no content

    async def keep_nothing(self) -> None:
        """Destroy what was stored of the call, and store nothing more of it, whoever the caller turns out to
        be.

        Raises:
            StoreUnavailable: some of it may still be stored.
        """
        self.unkept = True
        try:
            await self._call.recorder.drop()
        finally:  # the choice counts on legal hold too, where what was kept stays
            await self._off_the_record()

    async def _off_the_record(self) -> None:
        """Store the choice where another process looks for it; a guest who is not held is new to it."""
        if self.caller.guest and not self.caller.held:
            return
        recorder = self._call.recorder
        opened = await recorder.memory.conversation(recorder.name, begin=False)
        await opened.off_the_record()

    async def _keep_nothing_either(self, before: CallRecorder) -> None:
        """Keep nothing of the call for the caller served now, if it was not to be kept before."""
        recorder = self._call.recorder
        keeping, recorder.keeping = recorder.keeping, False  # not before the choice is known and stored
        try:
            if before.keeping:  # then words have decided, perhaps in another process
                opened = await before.memory.conversation(before.name, begin=False)
                self.unkept = opened.verdict == "off the record"
            if self.unkept:
                await self._off_the_record()
        except EchoicError as error:
            log.error("whether a call may be kept is not known or not stored: %s", type(error).__name__)  # noqa: TRY400 - no content
            return
        recorder.keeping = keeping

    async def change(self, caller: Caller, *, denied: bool) -> None:
        """Serve somebody else. Nothing the model saw for the previous caller reaches it again.

        If `denied`, the words so far were never the previous caller's: they move to the new one.
        """
        before, was = self._call.recorder, self.caller
        # first and at once, so that whatever fails, nobody is served as the previous caller
        self.serve(caller)
        self._call.talk.forget()
        await self._keep_nothing_either(before)
        if denied:
            try:
                await before.drop()
            except EchoicError as error:
                log.error("another's words could not be taken out yet: %s", type(error).__name__)  # noqa: TRY400 - no content
        elif not was.guest:
            await before.complete()
        if (denied or was.guest) and not self.unkept:
            # the agent's words are not moved: they may be about the previous caller
            for turn in before.turns:
                if turn.speaker == "user":
                    await self._call.recorder.add(turn)
        if was.guest:
            await self._adopt(before, was.user, denied=denied)
        await self.prepare()

    async def _adopt(self, before: CallRecorder, guest: str, *, denied: bool) -> None:
        """Move a guest's memories to the caller, unless they were never theirs or must not be kept; no copy
        stays.
        """
        try:
            noted = self._phone.memory_of(guest)
            facts = await noted.facts()
            for memory in [] if denied or self.caller.guest or self.unkept else facts:
                if memory.key is None:
                    await self._call.memory.remember(memory.text, category=memory.category)
                else:
                    await self._call.memory.set(memory.key, memory.text, category=memory.category)
            if facts:
                await noted.forget()
            if before.durable and self._call.recorder.keeping and await self._call.recorder.keep():
                await before.drop()
        except EchoicError as error:
            log.error("what a guest said could not be taken over yet: %s", type(error).__name__)  # noqa: TRY400 - no content

    async def change_to(self, name: str | None) -> None:
        """Serve the person with this name on the line, or a guest."""
        await self.change(await self._another(name), denied=True)

    async def meet_next(self) -> None:
        """Serve the caller whom the previous turn linked."""
        caller, self.next = self.next, None
        denied, self._not_mine = self._not_mine, False
        if caller is not None and (denied or caller.user != self.caller.user):
            await self.change(caller, denied=denied)
        elif caller is not None:
            self._raise_to(caller)

    async def before(self, said: str) -> tuple[str, str]:
        """Apply the rules that come before a model: proofs, and who is speaking.

        Returns:
            a reply, if any, and the utterance as it may be stored and shown to a model.
        """
        await self._told()
        turns = self._call.recorder.turns
        last = turns[-1] if turns else None
        spoken = last.heard_text if last is not None and last.speaker == "agent" else ""
        phrases = self._phone.settings.phrases_in(self.language)
        heard = await self._verification.hear(said, spoken, self.caller, self.language, phrases)
        if heard.caller is not None:
            answer = heard.answer + (f" {phrases.link_changed}" if heard.caller.changed else "")
            self._said_changed = heard.caller.changed
            await self._become(heard.caller)
            return answer, heard.kept
        if heard.answer or self.caller.unproven:
            return heard.answer, heard.kept
        claim = claim_in(said, taken_for=self.caller.name, known=self.caller.people or {})
        if claim is None:
            return "", heard.kept
        unknown = self.caller.guest and self.caller.line is not None and claim.name is not None
        if claim.denied or unknown:
            another = await self._another(claim.name)
            await self.change(another, denied=claim.denied)
            if unknown and another.guest and another.shared:  # the name has a PIN
                return self._verification.ask(phrases), heard.kept
        return "", heard.kept

    async def _become(self, caller: Caller) -> None:
        """Serve the proved user; if it is the same one, only their level changes."""
        if caller.user == self.caller.user:
            self._raise_to(caller)
        else:
            await self.change(caller, denied=False)

    def _raise_to(self, caller: Caller) -> None:
        """Continue with the same caller at a higher level: they may be told more."""
        self.caller = caller
        self._call.memory.step_up(caller.level)

    async def _told(self) -> None:
        """Record that the caller was told of a change of the link, now that they speak again."""
        line = self.caller.line
        if not self._said_changed or not self.caller.changed or line is None:
            return
        self.caller = replace(self.caller, changed=False)
        try:
            await self._phone.callers.lines.told(line)
        except EchoicError as error:  # they will be told again
            log.warning("that a caller was told is not kept: %s", type(error).__name__)

    async def link(self, code: str) -> bool | None:
        """Serve the user that `code` was given to, from the next turn on.

        Returns:
            whether the line is now linked to them, and not for this call only; None for a wrong code.

        Raises:
            StoreUnavailable: it could not be checked.
        """
        found = await self._verification.take(code, self.caller)
        if found is None:
            return None
        self.next = found[0]
        return found[1]

    async def unlink(self, *, not_mine: bool) -> None:
        """Unlink the line; from the next turn on it belongs to its earlier caller.

        Args:
            not_mine: whether the caller never wanted the link: then what was said on the line since is moved
                back.

        Raises:
            NotAllowed: nothing proves that the line is theirs.
        """
        self.next = await self._phone.callers.unlink(self.caller)
        self._not_mine = not_mine
        if not_mine and self.caller.line is not None:
            await self._phone.callers.give_back(self.caller.line)

    async def code(self) -> Code | None:
        """A code that proves to a page that its user calls from this line; None if the number is withheld.

        Raises:
            NotAllowed: nothing proves that the line is the caller's.
        """
        caller = self.caller
        if caller.line is None:
            return None
        if not caller.number_proven or caller.user not in caller.proved:
            raise NotAllowed("nothing proves that this line is the caller's")
        return await self._phone.links.give_line(caller.line, proved=caller.proved)

    async def new_pin(self) -> str:
        return await self._verification.new_pin(self.caller, self._phone.settings.phrases_in(self.language))

    async def speak_in(self, language: str) -> bool:
        """Switch the line to `language` and store that preference; returns whether it can."""
        tag = self._phone.settings.spoken_as(language)
        if tag is None:
            return False
        self.language = tag
        if not self.caller.guest:
            await self._call.memory.set_directives(language=tag)
        return True

    async def _another(self, name: str | None) -> Caller:
        """Another person on the line; a guest if the lookup fails."""
        try:
            return await self._phone.callers.another(self.caller, name)
        except EchoicError as error:
            log.warning("a caller could not be looked up: %s", type(error).__name__)
            return self._phone.callers.guest(self.caller.line)


async def _warmed(memory: UserMemory) -> None:
    """Load what the first answer needs while the caller is greeted."""
    await asyncio.sleep(_WARM_AFTER_S)
    with suppress(EchoicError, asyncio.CancelledError):
        await memory.warm()
