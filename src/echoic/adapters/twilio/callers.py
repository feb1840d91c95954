"""Who is calling: a number names somebody with a confidence, never with certainty."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from echoic.adapters.twilio.claims import same_name
from echoic.adapters.twilio.lines import Line, Lines
from echoic.adapters.twilio.settings import PhoneSettings
from echoic.errors import NotAllowed
from echoic.memory.service import MemoryService

_NUMBER = re.compile(r"\+[1-9][0-9]{5,14}")
_WITHHELD: Final = frozenset({"+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253"})
"""Anonymous, restricted, blocked, unknown, unavailable: Twilio's stand-ins, as their letters are dialled."""

VERIFIED: Final = 0.9
"""Confidence that a number is who it was, where the carrier vouches for it (STIR/SHAKEN, attestation A)."""
KNOWN: Final = 0.7
LINKED: Final = 0.8
NAMED: Final = 0.7
"""Of a shared phone, by the name that was said."""
SHARED: Final = 0.3
"""Of a shared phone, before anybody said who it is: any of them may be calling."""
FORGED: Final = 0.1
"""Where the carrier says that the number is not the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose memory a call is served from, and how sure that is."""

    user: str
    confidence: float
    guest: bool = False
    """Nobody is known: nothing of the call outlasts it, unless they say who they are."""
    line: str | None = None
    """The identity of the number itself; None where it is withheld."""
    name: str | None = None
    people: Mapping[str, str] | None = None
    """Who else calls from there: name -> user."""

    @property
    def shared(self) -> bool:
        """Whether several people are known to call from there."""
        return bool(self.people)


class Callers:
    """Tells callers by their numbers, and keeps what it learns of them."""

    def __init__(self, service: MemoryService, settings: PhoneSettings) -> None:
        self._service = service
        self._settings = settings
        self.lines = Lines(service, settings.deployment)
        """What is known of the numbers themselves."""

    def line_of(self, number: str) -> str | None:
        """The identity of `number`; None where it is withheld, or is no number."""
        bare = re.sub(r"[\s().-]", "", number)
        if not _NUMBER.fullmatch(bare) or bare in _WITHHELD:
            return None
        if self._settings.plain_numbers:
            return f"phone:{bare}"
        key = self._settings.salt.encode()
        return f"phone:{hmac.new(key, bare.encode(), hashlib.sha256).hexdigest()[:32]}"

    async def identify(self, number: str, attestation: str = "") -> Caller:
        """Who is calling from `number`.

        Args:
            number: as Twilio gives it, in E.164.
            attestation: its StirVerstat, such as "TN-Validation-Passed-A"; may be empty.

        Raises:
            StoreUnavailable: could not look. The caller must then be served as a guest, and be told nothing.
        """
        name = self.line_of(number)
        if name is None or attestation.startswith("TN-Validation-Failed"):
            return self.guest(name, confidence=0.0 if name is None else FORGED)
        line = await self.lines.read(name)
        if line.linked is not None:
            found = Caller(user=line.linked, confidence=LINKED, line=name, people=line.people or None)
        elif line.people:
            return replace(self.guest(name, confidence=SHARED), people=await self._everybody(name, line))
        else:
            vouched = attestation.startswith("TN-Validation-Passed-A")
            found = Caller(user=name, confidence=VERIFIED if vouched else KNOWN, line=name)
        if found.confidence < self._settings.minimum_confidence:
            return self.guest(name, confidence=found.confidence)
        return replace(found, name=await self._name(found.user))

    def guest(self, line: str | None = None, *, confidence: float = 0.0) -> Caller:
        """Somebody unknown, with a memory of their own for as long as the call lasts."""
        return Caller(user=f"guest:{uuid4().hex}", confidence=confidence, guest=True, line=line)

    async def another(self, caller: Caller, name: str | None) -> Caller:
        """Somebody else on the same line: of that name, known or new; a guest without name or line."""
        if name is None or caller.line is None or caller.confidence <= FORGED:
            return self.guest(caller.line, confidence=caller.confidence)
        line = await self.lines.read(caller.line)
        everybody = await self._everybody(caller.line, line)
        for other, user in everybody.items():
            if same_name(name, other):
                return Caller(user=user, confidence=NAMED, line=caller.line, name=other, people=everybody)
        user = f"{caller.line}:{uuid4().hex[:12]}"
        await self.lines.add_person(caller.line, name, user)
        people = {**everybody, name: user}
        return Caller(user=user, confidence=NAMED, line=caller.line, name=name, people=people)

    async def link(self, caller: Caller, user: str) -> Caller:
        """From now on this line is `user`, whom the caller proved to be by a code.

        Raises:
            NotAllowed: the number is withheld; there is nothing to link.
        """
        if caller.line is None:
            raise NotAllowed("the number is withheld, so there is no telephone to link; call with it shown")
        await self.lines.link(caller.line, user)
        return Caller(user=user, confidence=LINKED, line=caller.line, name=await self._name(user))

    async def unlink(self, caller: Caller) -> Caller:
        """Undo the link of this line: it is again who it was before."""
        if caller.line is None:
            return caller
        await self.lines.unlink(caller.line)
        line = await self.lines.read(caller.line)
        if line.people:
            people = await self._everybody(caller.line, line)
            return replace(self.guest(caller.line, confidence=SHARED), people=people)
        return Caller(
            user=caller.line, confidence=KNOWN, line=caller.line, name=await self._name(caller.line)
        )

    async def unlink_user(self, user: str) -> int:
        """Undo every link to `user`, as from their browser; how many lines that were."""
        return await self.lines.unlink_user(user)

    async def _everybody(self, line: str, known: Line) -> dict[str, str]:
        """Names of all who call from `line`: whom it was first, and who came after."""
        first = await self._name(line)
        return {**({first: line} if first else {}), **known.people}

    async def _name(self, user: str) -> str | None:
        name = (await self._service.user(user, self._settings.deployment).profile()).name
        return spoken_name(name) if name else None


def spoken_name(name: str) -> str | None:
    """`name` as it may be said aloud: letters of one or two words; None where it is no such thing."""
    words = "".join(
        character if unicodedata.category(character)[0] in "LM" or character in "'’- " else " "
        for character in name
    ).split()[:2]
    said = " ".join(words)
    return said if 0 < len(said) <= 40 else None


__all__ = ["Caller", "Callers", "spoken_name"]
