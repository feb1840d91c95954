"""Caller identification: who is calling, and what proves it. Only this module decides which memory a call
gets.

A caller ID proves nothing, since it can be faked. Proof is the carrier's attestation of the number, a PIN, or
a code that was shown to the user it proves.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

from echoic.adapters.twilio.proofs import Pins, same_name
from echoic.adapters.twilio.settings import PhoneSettings, Trust
from echoic.errors import NotAllowed
from echoic.memory.assurance import LEVELS, Level
from echoic.memory.phone_registry import PhoneLine, happened, holding, identity_of, line_key, line_of
from echoic.memory.records import CONVERSATION, MEMORY, PHONE_LINE, PHONE_OF, scan_all
from echoic.memory.service import MemoryService
from echoic.stores.base import Change, Drop, Put, Record
from echoic.types import Scope, checked_name

AGENT: Final = "phone"
RECORD: Final = "phone_call"
"""Name of the result with a call's figures; see `UserMemory.task`."""
MAX_MAY_PROVE: Final = 5
"""How many users may prove themselves on a line that is not theirs; a new one replaces the oldest."""
_CLAIMED: Final = "another person's memories are on this telephone, and they did not prove who they are"


class PhoneLines:
    """The lines of one deployment."""

    def __init__(self, service: MemoryService, deployment: str) -> None:
        self._service = service
        self._deployment = deployment
        memory = service.user(AGENT, deployment)  # only the deployment's own scope is used
        self._store, self._scope = memory.backing_store, memory.scope.everyone

    async def read(self, line: str) -> PhoneLine:
        """What is known about `line`; raises `StoreUnavailable`."""
        return await self._read(line_key(line))

    def held(self, line: str) -> str:
        """The user under whom words of unproven callers on `line` are stored."""
        return holding(line_key(line))

    async def add_person(self, line: str, name: str, user: str) -> None:
        """Register a person `name` who also calls from `line`, with the memory of `user`."""
        key = line_key(line)
        await self._point(user, key)
        await self._note(key, "person", name=name, user=user)

    async def may_prove(self, line: str, user: str) -> None:
        """Let `user` prove their identity on `line` with their PIN; the line's owner does not change."""
        key = line_key(line)
        records = await scan_all(self._store, self._scope, PHONE_LINE, key=key)
        known = [record for record in records if record.data["what"] == "may_prove"]
        if any(record.data["user"] == user for record in known):
            return
        await self._point(user, key)
        drops: list[Change] = [
            Drop(kind=PHONE_LINE, id=record.id) for record in known[: max(0, len(known) - MAX_MAY_PROVE + 1)]
        ]
        noted = happened(key, "may_prove", datetime.now(UTC), user=user)
        await self._store.write(self._scope, [*drops, Put(record=noted)])

    async def link(self, line: str, user: str, *, proved: Collection[str] = ()) -> None:
        """Make `user` the owner of `line`. You must have proof of both.

        Args:
            line: a line whose number or owner is proven.
            user: the user, who is proven.
            proved: other users who proved in the same call that memories on this line are theirs.

        Raises:
            InvalidInput: an invalid name of a user.
            NotAllowed: the line has memories of somebody who did not prove who they are.
            StoreUnavailable: it is not linked, or that is unknown; try again.
        """
        checked_name(user, "user")
        key = line_key(line)
        known = await self._read(key)
        for owner in {known.linked or line, line, *known.people.values()} - {user, *proved}:
            if await self._remembers(owner):
                raise NotAllowed(_CLAIMED)
        # first the record by which it can be undone: there must be no link without it
        await self._point(user, key)
        if known.linked not in {None, user}:
            await self._took(known.linked, key)
        await self._note(key, "linked", user=user)

    async def unlink(self, line: str) -> None:
        """Return `line` to its earlier owner; both memories stay unchanged."""
        await self._unlink(line_key(line), tell=True)

    async def told(self, line: str) -> None:
        """Record that a caller from `line` was told that it was linked or unlinked."""
        await self._note(line_key(line), "told")

    async def linked_to(self, user: str) -> list[str]:
        pointers = await scan_all(self._store, self._own(user), PHONE_OF)
        return [record.id for record in pointers if (await self._read(record.id)).linked == user]

    async def taken_from(self, user: str) -> list[datetime]:
        """When lines that were linked to `user` were linked to somebody else, or unlinked by others."""
        pointers = await scan_all(self._store, self._own(user), PHONE_OF)
        return [datetime.fromisoformat(r.data["taken_at"]) for r in pointers if "taken_at" in r.data]

    async def unlink_user(self, user: str) -> int:
        """Undo every link to `user`, as from their browser; returns the number of lines."""
        keys = await self.linked_to(user)
        for key in keys:
            await self._unlink(key, tell=False)
        return len(keys)

    async def _read(self, key: str) -> PhoneLine:
        return line_of(await scan_all(self._store, self._scope, PHONE_LINE, key=key))

    async def _unlink(self, key: str, *, tell: bool) -> None:
        linked = (await self._read(key)).linked
        if linked is None:
            return
        if tell:
            await self._took(linked, key)
        await self._note(key, "unlinked")

    async def _remembers(self, user: str) -> bool:
        own = self._own(user)
        return any([await self._store.scan(own, kind, limit=1) for kind in (MEMORY, CONVERSATION)])

    async def _took(self, user: str, key: str) -> None:
        """Let `user` find out that a line is no longer theirs, without revealing whose it is."""
        await self._point(user, key, taken_at=datetime.now(UTC).isoformat())

    async def _point(self, user: str, key: str, **data: str) -> None:
        await self._store.write(self._own(user), [Put(record=Record(kind=PHONE_OF, id=key, data=data))])

    async def _note(self, key: str, what: str, **data: str) -> None:
        await self._store.write(self._scope, [Put(record=happened(key, what, datetime.now(UTC), **data))])

    def _own(self, user: str) -> Scope:
        return self._service.user(user, self._deployment).scope


FULL_ATTESTATION: Final = "TN-Validation-Passed-A"
"""Twilio's StirVerstat if the carrier attests the caller's right to the number, and the call was not
diverted. Compared as a whole: longer values mean something else."""
_FAILED: Final = "TN-Validation-Failed"
_RECYCLED: Final = "recycled:"
"""Prefix of the new user of a number that was unused for long."""


def proves_number(attestation: str, trust: Trust) -> bool:
    """Whether the carrier's StirVerstat (may be empty) proves, under `trust`, that the number is the
    caller's.
    """
    if trust == "any":
        return not attestation.strip().casefold().startswith(_FAILED.casefold())
    return attestation == FULL_ATTESTATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The memory a call is served from, and what was proved in it."""

    user: str
    guest: bool = False
    """Whether nobody is identified, so that nothing personal is recalled."""
    line: str | None = None
    """The identity of the number itself; None if it is withheld."""
    number_proven: bool = False
    """Whether the number is proven theirs, by the carrier or by the line's owner."""
    proved: frozenset[str] = frozenset()
    """The users they proved to be in this call."""
    name: str | None = None
    people: Mapping[str, str] | None = None
    """Other people who call from this line: name -> user."""
    level: Level = "unattested"
    """How certain their identity is, which limits what they are told (docs/assurance.md)."""
    changed: bool = False
    """Whether the line was linked or unlinked and no caller was told yet."""

    @property
    def shared(self) -> bool:
        """Whether several people are known to call from there."""
        return bool(self.people)

    @property
    def unproven(self) -> bool:
        """Whether nothing was proved, neither the number nor a person."""
        return not self.number_proven and not self.proved

    @property
    def held(self) -> bool:
        """Whether their words are stored under the line, where nobody recalls them: see `PhoneLines.held`."""
        return self.line is not None and self.unproven


class Callers:
    """Identifies callers, and stores what it learns about their lines."""

    def __init__(self, service: MemoryService, settings: PhoneSettings) -> None:
        self._service = service
        self._settings = settings
        self.lines = PhoneLines(service, settings.deployment)
        """What is known about the lines."""
        self.pins = Pins(service, settings.deployment, settings.salt)

    def line_of(self, number: str) -> str | None:
        """The identity of `number`; None if it is withheld or invalid."""
        return identity_of(number, None if self._settings.plain_numbers else self._settings.salt)

    async def identify(self, number: str, attestation: str = "") -> Caller:
        """The caller from `number` (E.164), given Twilio's StirVerstat, which may be empty.

        Raises:
            StoreUnavailable: the store could not be read. Serve the caller as a guest.
        """
        name = self.line_of(number)
        if name is None or not proves_number(attestation, self._settings.trust):
            return self.guest(name)
        return await self._on_proven(name)

    async def _on_proven(self, line: str) -> Caller:
        known = await self.lines.read(line)
        if await self._is_recycled(line, known):
            await self.lines.link(line, f"{_RECYCLED}{uuid4().hex}", proved={line, *known.people.values()})
            await self.lines.told(line)
            known = await self.lines.read(line)
        if known.people and known.linked is None:
            people = await self._everybody(line, known)
            guest = self.guest(line, number_proven=True)
            return replace(guest, people=people, changed=known.changed)
        user = known.linked or line
        return Caller(
            user=user,
            line=line,
            number_proven=True,
            level="attested" if known.linked is None or known.linked.startswith(_RECYCLED) else "linked",
            # on a line of one person, they are both its linked and its first user
            proved=frozenset({user} if known.people else {user, line}),
            name=await self._name(user),
            people=known.people or None,
            changed=known.changed,
        )

    async def _is_recycled(self, line: str, known: PhoneLine) -> bool:
        """Whether the line was unused for so long that the number may belong to somebody else.

        Whoever called from it before can still prove it, by their PIN or a code.
        """
        days = self._settings.recycled_after_days
        if days is None or (known.linked is not None and not known.linked.startswith(_RECYCLED)):
            return False
        users = [known.linked] if known.linked is not None else [line, *known.people.values()]
        last = [
            conversation.updated_at
            for user in users
            for conversation in await self._service.user(user, self._settings.deployment).conversations()
        ]
        return bool(last) and max(last) < datetime.now(UTC) - timedelta(days=days)

    def guest(self, line: str | None = None, *, number_proven: bool = False) -> Caller:
        """An unknown caller, whose memory lasts as long as the call."""
        return Caller(user=f"guest:{uuid4().hex}", guest=True, line=line, number_proven=number_proven)

    async def another(self, caller: Caller, name: str | None) -> Caller:
        """Another caller on the same line by name, known or new; a guest without name or line.

        Somebody with a PIN stays a guest until they say it, since a name alone does not open their memory.
        """
        if name is None or caller.line is None or not caller.number_proven:
            return self.guest(caller.line, number_proven=caller.number_proven)
        line = await self.lines.read(caller.line)
        everybody = await self._everybody(caller.line, line)
        for other, user in everybody.items():
            if same_name(name, other):
                if user in caller.proved:
                    return replace(self._person(caller, user, other, everybody), proved=caller.proved)
                if await self.pins.has(user):
                    return replace(self.guest(caller.line, number_proven=True), people=everybody)
                return self._person(caller, user, other, everybody)
        user = f"caller:{uuid4().hex}"  # does not reveal the line
        await self.lines.add_person(caller.line, name, user)
        new = self._person(caller, user, name, {**everybody, name: user})
        return replace(
            new, proved=frozenset({user})
        )  # nothing is stored yet that another person may have said

    async def by_pin(self, caller: Caller, pin: str, name: str | None = None) -> Caller | None:
        """The caller whose PIN is `pin`, among the users of the line; None if it is nobody's.

        `name` is who they said they are, in case two have the same PIN.

        Raises:
            StoreUnavailable: the store could not be read; the PIN must not be accepted.
        """
        if caller.line is None:
            return None
        line = await self.lines.read(caller.line)
        owners = list(dict.fromkeys([line.linked or caller.line, caller.line, *line.people.values()]))
        others = [user for user in line.may_prove if user not in owners]
        found = await self.pins.whose([*owners, *others], pin)
        theirs = [user for user in found if user in owners] or found
        if len(theirs) > 1 and name is not None:
            named = [user for other, user in line.people.items() if same_name(name, other)]
            theirs = [user for user in theirs if user in named]
        if len(theirs) != 1:
            return None
        user = theirs[0]
        levels = [await self.pins.level(user), *([caller.level] if user == caller.user else [])]
        return replace(
            caller,
            user=user,
            guest=False,
            number_proven=caller.number_proven or user in owners,
            level=max(levels, key=LEVELS.index),
            proved=caller.proved | {user},
            name=await self._name(user),
            people=line.people or None,
            changed=line.changed and user in owners,
        )

    async def link(self, caller: Caller, user: str) -> Caller:
        """Make `user`, whom the caller proved to be with a code, the owner of this line.

        Raises:
            NotAllowed: the number is withheld or not proven, or has memories of somebody else who did not
                prove who they are. The caller is still `user` in this call: see `known_here`.
        """
        if caller.line is None:
            raise NotAllowed("the number is withheld, so there is no telephone to link; call with it shown")
        if not caller.number_proven:
            raise NotAllowed("nothing proves that this number is the caller's, so it cannot be linked")
        await self.lines.link(caller.line, user, proved=caller.proved)
        return await self._proved(caller, user)

    async def known_here(self, caller: Caller, user: str) -> Caller:
        """The caller as `user`, for this call: the code proves who they are, but the line's owner stays.

        From now on they can also prove it here with their PIN.
        """
        if caller.line is not None:
            await self.lines.may_prove(caller.line, user)
        return await self._proved(caller, user)

    async def unlink(self, caller: Caller) -> Caller:
        """Undo the link of this line, returning it to its earlier owner.

        Raises:
            NotAllowed: the caller proved to be neither its linked nor its first user.
        """
        if caller.line is None:
            return caller
        line = await self.lines.read(caller.line)
        if not caller.number_proven or not caller.proved & {line.linked or caller.line, caller.line}:
            raise NotAllowed("only who proves that the line is theirs can unlink it")
        await self.lines.unlink(caller.line)
        await self.lines.told(caller.line)
        return await self._on_proven(caller.line)

    async def give_back(self, line: str) -> int:
        """Move what was said on `line` while it was linked back to its earlier memory; returns the number of
        calls.

        For links that the line's owner did not want. Each call is copied before it is removed, so that
        nothing is lost if this stops half way; call it again to continue.
        """
        # imported here because a page's server may lack PydanticAI
        from echoic.session.recorder import CallRecorder

        known = await self.lines.read(line)
        if known.linked_before is None or known.linked_at is None:
            return 0
        theirs = self._service.user(known.linked_before, self._settings.deployment)
        own = self._service.user(line, self._settings.deployment)
        moved = 0
        for conversation in await theirs.conversations():
            task = await theirs.task(conversation.id)
            here = {"line": line_key(line)}.items()
            told = [result.value for result in task.results if result.name == RECORD] if task else []
            if task is None or not any(here <= value.items() for value in told):
                continue
            if conversation.updated_at < known.linked_at:
                continue
            said = [turn for turn in task.turns if turn.speaker == "user"]
            kept = CallRecorder(own, conversation.id, conversation.agent or AGENT, keeping=True)
            for turn in said:
                await kept.add(turn)
            if not await kept.keep():
                continue
            await kept.complete()
            taken = CallRecorder(theirs, conversation.id, conversation.agent or AGENT, keeping=True)
            taken.resume(list(task.turns))
            await taken.drop()
            moved += 1
        return moved

    async def _proved(self, caller: Caller, user: str) -> Caller:
        return Caller(
            user=user,
            line=caller.line,
            number_proven=caller.number_proven,
            proved=caller.proved | {user},
            level="proved",
            name=await self._name(user),
        )

    def _person(self, caller: Caller, user: str, name: str, people: Mapping[str, str]) -> Caller:
        """A person on a shared line by the name they said, which opens their memory but proves nothing."""
        return Caller(
            user=user, line=caller.line, number_proven=True, level="attested", name=name, people=people
        )

    async def _everybody(self, line: str, known: PhoneLine) -> dict[str, str]:
        """Names of everybody who calls from `line`: the first user, and later ones."""
        first = await self._name(line)
        return {**({first: line} if first else {}), **known.people}

    async def _name(self, user: str) -> str | None:
        name = (await self._service.user(user, self._settings.deployment).profile()).name
        return spoken_name(name) if name else None


def spoken_name(name: str) -> str | None:
    """`name` as one or two words that can be said aloud; None if that is not possible."""
    words = "".join(
        character if unicodedata.category(character)[0] in "LM" or character in "'’- " else " "
        for character in name
    ).split()[:2]
    said = " ".join(words)
    return said if 0 < len(said) <= 40 else None
