"""Telephone lines, and to whom they are linked: a log of what happened to each, kept apart from every memory.

A line is known by an identity made of its number, not by the number. What happened is appended, never
overwritten: who called from it, to whom it was linked, that the link was undone. So all of it can be undone
and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final

from echoic.errors import NotAllowed
from echoic.memory.phone_registry import PhoneLine, happened, holding, line_key, line_of
from echoic.memory.records import CONVERSATION, MEMORY, PHONE_LINE, PHONE_OF, scan_all
from echoic.memory.service import MemoryService
from echoic.stores.base import Change, Drop, Put, Record
from echoic.types import Scope, checked_name

AGENT: Final = "phone"
RECORD: Final = "phone_call"
"""The name of the result a kept call's figures are recorded under; see `UserMemory.task`."""
MAX_MAY_PROVE: Final = 5
"""Users at most who may prove themselves on a line that is not theirs; the oldest goes for a new one."""
_CLAIMED: Final = "another person's memories are on this telephone, and they did not prove who they are"


class PhoneLines:
    """The lines of one deployment.

    Args:
        service: where their logs are kept.
        deployment: whose callers.
        clock: the time, aware.
    """

    def __init__(
        self,
        service: MemoryService,
        deployment: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._service = service
        self._deployment = deployment
        memory = service.user(AGENT, deployment)  # of nobody: only the deployment's own scope is used
        self._store, self._scope, self._clock = memory.backing_store, memory.scope.everyone, clock

    async def read(self, line: str) -> PhoneLine:
        """What is known of `line`.

        Raises:
            StoreUnavailable: could not look.
        """
        return await self._read(line_key(line))

    def held(self, line: str) -> str:
        """The user under whom words are kept that were said on `line` by nobody who proved who they are."""
        return holding(line_key(line))

    async def add_person(self, line: str, name: str, user: str) -> None:
        """Somebody called `name` calls from `line` as well, with `user` for a memory."""
        key = line_key(line)
        await self._point(user, key)
        await self._note(key, "person", name=name, user=user)

    async def may_prove(self, line: str, user: str) -> None:
        """From now on `user` can prove on `line` by their PIN who they are; the line stays whose it is."""
        key = line_key(line)
        records = await scan_all(self._store, self._scope, PHONE_LINE, key=key)
        known = [record for record in records if record.data["what"] == "may_prove"]
        if any(record.data["user"] == user for record in known):
            return
        await self._point(user, key)
        drops: list[Change] = [
            Drop(kind=PHONE_LINE, id=record.id) for record in known[: max(0, len(known) - MAX_MAY_PROVE + 1)]
        ]
        noted = happened(key, "may_prove", self._clock(), user=user)
        await self._store.write(self._scope, [*drops, Put(record=noted)])

    async def link(self, line: str, user: str, *, proved: Collection[str] = ()) -> None:
        """From now on `line` is `user`'s. Whoever calls this has seen a proof of both.

        Args:
            line: whose number the carrier vouched for, or where its owner proved who they are.
            user: who proved to be that user.
            proved: who else proved, in the same call, that the memories on this line are theirs.

        Raises:
            InvalidInput: no name of a user.
            NotAllowed: there are memories of somebody on the line who did not prove who they are.
            StoreUnavailable: it is not linked, or not known to be; try again.
        """
        checked_name(user, "user")
        key = line_key(line)
        known = await self._read(key)
        for owner in {known.linked or line, line, *known.people.values()} - {user, *proved}:
            if await self._remembers(owner):
                raise NotAllowed(_CLAIMED)
        # first where it is undone from: a link that could not be undone must never be
        await self._point(user, key)
        if known.linked not in {None, user}:
            await self._took(known.linked, key)
        await self._note(key, "linked", user=user)

    async def unlink(self, line: str) -> None:
        """`line` is again whose it was before; both memories are as they were."""
        await self._unlink(line_key(line), tell=True)

    async def told(self, line: str) -> None:
        """Somebody who called from `line` was told that it was linked or unlinked."""
        await self._note(line_key(line), "told")

    async def linked_to(self, user: str) -> list[str]:
        """The keys of the lines that are linked to `user`."""
        pointers = await scan_all(self._store, self._own(user), PHONE_OF)
        return [record.id for record in pointers if (await self._read(record.id)).linked == user]

    async def taken_from(self, user: str) -> list[datetime]:
        """When lines that were linked to `user` were linked to somebody else, or unlinked by others."""
        pointers = await scan_all(self._store, self._own(user), PHONE_OF)
        return [datetime.fromisoformat(r.data["taken_at"]) for r in pointers if "taken_at" in r.data]

    async def unlink_user(self, user: str) -> int:
        """Undo every link to `user`, as from their browser; how many lines that were."""
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
        """Whether anything is kept for `user`."""
        own = self._own(user)
        return any([await self._store.scan(own, kind, limit=1) for kind in (MEMORY, CONVERSATION)])

    async def _took(self, user: str, key: str) -> None:
        """Have `user` find out that a line is theirs no longer, without saying whose it is."""
        await self._point(user, key, taken_at=self._clock().isoformat())

    async def _point(self, user: str, key: str, **data: str) -> None:
        await self._store.write(self._own(user), [Put(record=Record(kind=PHONE_OF, id=key, data=data))])

    async def _note(self, key: str, what: str, **data: str) -> None:
        await self._store.write(self._scope, [Put(record=happened(key, what, self._clock(), **data))])

    def _own(self, user: str) -> Scope:
        return self._service.user(user, self._deployment).scope


__all__ = ["AGENT", "MAX_MAY_PROVE", "RECORD", "PhoneLine", "PhoneLines"]
