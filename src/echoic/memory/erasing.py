"""Destroying what is kept of one user: which records an erasure means. How bytes go is the store's.

Whatever kind of record is kept under a key or of a conversation has to be named here, or it would outlive it.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from echoic.memory.directives import DIRECTIVES
from echoic.memory.distilling.progress import PROGRESS, progress_id
from echoic.memory.distilling.unlearning import unlearn_turns
from echoic.memory.experience import unlearn
from echoic.memory.hooks import Forgotten
from echoic.memory.judging import JUDGEMENT
from echoic.memory.parts import Parts
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    GIVEN,
    LINK_CODE,
    MEMORY,
    PROPOSAL,
    TURN,
    memory_of,
    scan_all,
)
from echoic.memory.tasks import RESULT
from echoic.stores.base import Drop, Erased, Record
from echoic.types import Memory, Receipt, Scope, checked_name


class Erasing:
    """Erasures of one user. Holds no state of its own."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self._parts = parts
        self._scope = scope

    async def forget(self, key: str | None, conversation: str | None) -> Receipt:
        """See `UserMemory.forget`."""
        with self._parts.telemetry.operation("erase", self._scope) as doing:
            receipt = await self._forget(key, conversation)
            doing.note(records=receipt.records, vectors=receipt.vectors, verified=int(receipt.verified))
        self._parts.telemetry.erased(receipt.records)
        what: Literal["everything", "key", "conversation"] = (
            "key" if key is not None else "conversation" if conversation is not None else "everything"
        )
        event = Forgotten(scope=self._scope, what=what, receipt=receipt, duration_ms=doing.duration_ms)
        self._parts.hooks.emit(event)
        return receipt

    async def _forget(self, key: str | None, conversation: str | None) -> Receipt:
        if key is not None:
            # before it goes: whoever is learning from these turns now has to look again
            await unlearn_turns(self._parts.store, self._scope, await self._versions(key))
        own = await self._chosen(key, conversation)
        self._parts.recaller.forget()
        erased = [await self._parts.store.erase(self._scope, own)]
        # what was written meanwhile, as by a call that goes on, goes as well
        while own and (own := await self._chosen(key, conversation)):
            erased.append(await self._parts.store.erase(self._scope, own))
        # only now: what is judged or handed in meanwhile is taken back once the user's own is gone
        shared = [] if key is None and conversation is not None else await self._authored(key)
        drops = [Drop(kind=record.kind, id=record.id) for record in shared]
        if key is None and conversation is None:
            drops += await unlearn(self._parts.store, self._scope)
            drops += await self._link_codes()
        if drops:
            erased.append(await self._parts.store.erase(self._scope.everyone, drops))
        return _receipt(erased)

    async def _authored(self, key: str | None) -> list[Record]:
        """Global memories and proposals of this user."""
        everyone = self._scope.everyone
        records = await scan_all(self._parts.store, everyone, MEMORY, key=key)
        records += await scan_all(self._parts.store, everyone, PROPOSAL, key=key)
        return [record for record in records if record.data.get("author") == self._scope.user]

    async def _link_codes(self) -> list[Drop]:
        """Codes that prove who is calling and were given to this user: nobody is to be taken for them now."""
        codes = await scan_all(self._parts.store, self._scope.everyone, LINK_CODE)
        given = [code for code in codes if code.data.get("whose") == self._scope.user]
        return [Drop(kind=code.kind, id=code.id) for code in given]

    async def _chosen(self, key: str | None, conversation: str | None) -> list[Drop] | None:
        """What to destroy in the user's own scope; None: all of it."""
        if key is None and conversation is None:
            return None
        chosen: list[Record] = []
        if key is not None:
            chosen += await self._under(checked_name(key, "key"))
        if conversation is not None:
            chosen += await self._of(checked_name(conversation, "conversation id"))
        return [Drop(kind=record.kind, id=record.id) for record in chosen]

    async def _versions(self, key: str) -> list[Memory]:
        """What the user ever kept under `key`."""
        own = await scan_all(self._parts.store, self._scope, MEMORY, key=checked_name(key, "key"))
        return [memory_of(record) for record in own] + [memory_of(r) for r in await self._authored(key)]

    async def _under(self, key: str) -> list[Record]:
        """What goes with a key."""
        chosen = await scan_all(self._parts.store, self._scope, MEMORY, key=key)
        chosen += await scan_all(self._parts.store, self._scope, JUDGEMENT, key=key)
        # what a model was given in a call may quote it, and so may the state a call would go on from
        chosen += await scan_all(self._parts.store, self._scope, GIVEN)
        return chosen + await scan_all(self._parts.store, self._scope, CHECKPOINT)

    async def _of(self, conversation: str) -> list[Record]:
        """What goes with a conversation."""
        chosen = await self._parts.store.read(self._scope, CONVERSATION, [conversation])
        for kind in (TURN, RESULT, DIRECTIVES, *CALL_PARTS):
            chosen += await scan_all(self._parts.store, self._scope, kind, key=conversation)
        held = await scan_all(self._parts.store, self._scope, CHECKPOINT)
        chosen += [record for record in held if record.data.get("conversation") == conversation]
        read = await scan_all(self._parts.store, self._scope, PROGRESS)
        return chosen + [
            record for record in read if record.id == progress_id(record.key or "", conversation)
        ]


def _receipt(erased: list[Erased]) -> Receipt:
    kinds: Counter[str] = sum((Counter(part.records) for part in erased), Counter())
    return Receipt(
        memories=kinds.pop(MEMORY, 0),
        turns=kinds.pop(TURN, 0),
        conversations=kinds.pop(CONVERSATION, 0),
        other=sum(kinds.values()),
        vectors=sum(part.vectors for part in erased),
        verified=all(part.verified for part in erased),
        bytes_searched=sum(part.bytes_searched for part in erased),
    )


__all__ = ["Erasing"]
