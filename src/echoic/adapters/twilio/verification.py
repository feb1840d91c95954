"""What a caller says or keys in during a call to prove who they are: PINs, and codes from a page.

Rules settle it before a model or the log sees the words, and the digits go into neither.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final, Protocol

from echoic.adapters.twilio.callers import Caller, Callers
from echoic.adapters.twilio.identity_claims import (
    Proof,
    claim_in,
    codes_in,
    names_pin,
    proof_in,
    speaks_of_proof,
    wants_pin,
)
from echoic.adapters.twilio.phrases import Phrases
from echoic.adapters.twilio.proofs import LinkCodes
from echoic.errors import EchoicError, InvalidInput, NotAllowed

log = logging.getLogger(__name__)

MAX_WRONG: Final = 3
"""Wrong codes, and wrong PINs, in one call; then no more are looked at."""


class Proofs(Protocol):
    """Who looks at proofs, as far as a call needs it: `Phone` is one."""

    callers: Callers
    links: LinkCodes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofAnswer:
    """What became of an utterance."""

    kept: str
    """The utterance as it may be kept and shown to a model."""
    answer: str = ""
    """The phone's own answer; empty where there is none."""
    caller: Caller | None = None
    """Whom the caller proved to be; None: nobody."""


class Verification:
    """The proofs of one call.

    Args:
        phone: who looks at them.
    """

    def __init__(self, phone: Proofs) -> None:
        self._phone = phone
        self._wrong_codes = self._wrong_pins = 0
        self._name: str | None = None
        self._expected = False
        """A PIN or a code was spoken of: digits said next may be it."""
        self._asked = False
        """The phone itself asked for a PIN."""
        self._setting = False
        """Digits said next are to be a new PIN."""
        self._fresh: set[str] = set()
        """Who was proved in this call by a PIN or a code."""

    async def hear(
        self, said: str, before: str, caller: Caller, language: str, phrases: Phrases
    ) -> ProofAnswer:
        """Take in what the caller said.

        Args:
            said: the whole utterance.
            before: what the agent said last.
            caller: who it is, as far as that is known.
            language: what the line understands.
            phrases: what the phone says in it.
        """
        proof = proof_in(said, language)
        claim = claim_in(said, taken_for=None)
        self._name = claim.name if claim is not None and claim.name else self._name
        expected = self._expected or speaks_of_proof(before)
        self._expected = proof is None and speaks_of_proof(said)
        setting, self._setting = self._setting, False
        asked, self._asked = self._asked, False
        try:
            if proof is not None and (setting or wants_pin(said)):
                return ProofAnswer(kept=proof.masked, answer=await self._set(proof, caller, phrases))
            if proof is None and wants_pin(said) and caller.user in caller.proved:
                return ProofAnswer(kept=said, answer=await self.new_pin(caller, phrases))
            if proof is not None:
                # of somebody whose memory is open digits may be anything, unless they are called a PIN
                meant = expected or proof.announced
                open_ = not caller.guest and (bool(caller.proved) or not meant)
                sought = asked or names_pin(said) or not open_
                return await self._look(said, proof, caller, phrases, sought=sought, meant=asked or meant)
            return await self._codes(said, codes_in(said, language), caller, phrases)
        except EchoicError as error:  # not believed; what was said is still answered
            log.warning("a proof could not be looked at: %s", type(error).__name__)
            return ProofAnswer(kept=proof.masked if proof is not None else said)

    async def new_pin(self, caller: Caller, phrases: Phrases) -> str:
        """Take the digits that are said next for a new PIN of the caller's; the words that ask for them."""
        if caller.guest or caller.user not in caller.proved:
            return phrases.not_proven
        if caller.user not in self._fresh and await self._phone.callers.pins.has(caller.user):
            return self.ask(phrases)
        self._setting = True
        return phrases.new_pin

    def ask(self, phrases: Phrases) -> str:
        """Take the digits that are said next for a PIN; the words that ask for it."""
        self._asked = True
        return phrases.old_pin

    async def take(self, code: str, caller: Caller) -> tuple[Caller, bool] | None:
        """Whom `code` proves the caller to be, and whether their line is linked to them from now on.

        None: it is not good.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        if self._wrong_codes >= MAX_WRONG:
            return None
        user = await self._phone.links.take("".join(c for c in code if c.isdigit()))
        if user is None:
            self._wrong_codes += 1
            return None
        self._fresh.add(user)
        try:
            return await self._phone.callers.link(caller, user), True
        except NotAllowed:  # for this call
            return await self._phone.callers.known_here(caller, user), False

    async def _look(
        self, said: str, proof: Proof, caller: Caller, phrases: Phrases, *, sought: bool, meant: bool
    ) -> ProofAnswer:
        """Whether what was said is a PIN or a code.

        Args:
            said: the whole utterance.
            proof: what it holds.
            caller: who it is, as far as that is known.
            phrases: what the phone says.
            sought: whether it may be a PIN at all.
            meant: whether it was said to be a proof, so that it is answered if it is none.
        """
        if sought and proof.digits and self._wrong_pins < MAX_WRONG:
            found = await self._phone.callers.by_pin(caller, proof.digits, self._name)
            if found is not None:
                self._fresh.add(found.user)
                return ProofAnswer(kept=proof.masked, answer=phrases.proven, caller=found)
        heard = await self._codes(said, [proof.digits] if proof.digits else [], caller, phrases)
        if heard.caller is not None:
            return heard
        if sought and meant:
            self._wrong_pins += 1
            return ProofAnswer(kept=proof.masked, answer=heard.answer or phrases.not_proven)
        return replace(heard, kept=proof.masked) if heard.answer else heard

    async def _codes(self, said: str, codes: list[str], caller: Caller, phrases: Phrases) -> ProofAnswer:
        if not codes or self._wrong_codes >= MAX_WRONG or not await self._phone.links.waiting():
            return ProofAnswer(kept=said)
        for code in codes[:MAX_WRONG]:
            found = await self.take(code, caller)
            if found is not None:
                proof = proof_in(said)
                answer = phrases.linked if found[1] else phrases.known_here
                return ProofAnswer(kept=proof.masked if proof else said, answer=answer, caller=found[0])
        # digits alone were meant as a code; among other words they may be anything
        return ProofAnswer(kept=said, answer=phrases.no_code if said.replace(" ", "").isdigit() else "")

    async def _set(self, proof: Proof, caller: Caller, phrases: Phrases) -> str:
        asked = await self.new_pin(caller, phrases)
        if not self._setting:
            return asked
        try:
            await self._phone.callers.pins.set(caller.user, proof.digits)
        except InvalidInput:
            return asked
        self._setting = False
        self._fresh.add(caller.user)
        return phrases.pin_set
