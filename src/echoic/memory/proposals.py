"""What callers would have everyone know, waiting for an operator.

An operator decides about what they read. A caller may propose something else under the same key at any time,
so the id that an operator is shown names the wording too: a decision about another wording is refused.

A decision concerns two scopes, and no write spans both. So it is noted in the proposal first, in one write
with what becomes global; then the author's own copy is told, and only then does the proposal go. Where that
stops half way, deciding again or listing finishes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from echoic.errors import InvalidInput, StoreError, WriteConflict, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import MEMORY, PROPOSAL, Ledger, memory_id, memory_of, record_of_memory, scan_all
from echoic.memory.sharing import Shareable
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Memory, Scope, checked_name

log = logging.getLogger(__name__)

DECISION: Final = "decision"
_NAMELESS: Final = "operator"

Decided = Literal["approved", "rejected", "withdrawn", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One thing an operator decided."""

    what: Decided
    of: Literal["fact", "lesson"]
    key: str
    """The key of a fact, the agent of a lesson."""
    text: str | None
    """What it was about; None where it was rejected: that is destroyed."""
    by: str
    """Who decided, as they were named."""
    at: datetime
    """When (aware, UTC)."""


def put_decision(decision: Decision) -> Put:
    """The change that keeps `decision`, to be written together with what it does."""
    data: dict[str, Any] = {
        "what": decision.what,
        "of": decision.of,
        "agent": decision.key if decision.of == "lesson" else None,
        "text": decision.text,
        "by": decision.by,
        "at": decision.at.isoformat(),
    }
    name = memory_id(DECISION, decision.of, decision.key, decision.what, decision.text or "", data["at"])
    kept = {field: value for field, value in data.items() if value is not None}
    key = decision.key if decision.of == "fact" else None
    return Put(record=Record(kind=DECISION, id=name, key=key, data=kept))


async def decisions(store: Store, everyone: Scope) -> list[Decision]:
    """All of a deployment, oldest first."""
    return [_decision_of(record) for record in await scan_all(store, everyone, DECISION)]


async def is_decided(store: Store, everyone: Scope, key: str) -> bool:
    """Whether what is known under `key` is an operator's to say: they last wrote, rejected or withdrew it."""
    last = await store.scan(everyone, DECISION, key=key, limit=1, newest_first=True)
    return bool(last) and last[0].data["what"] != "approved"


def decider(by: str | None) -> str:
    """The name of who decides.

    Raises:
        InvalidInput: it cannot be kept.
    """
    return _NAMELESS if by is None else checked_name(by, "by")


def _decision_of(record: Record) -> Decision:
    data = record.data
    return Decision(
        what=data["what"],
        of=data["of"],
        key=record.key if record.key is not None else data.get("agent", ""),
        text=data.get("text"),
        by=data["by"],
        at=datetime.fromisoformat(data["at"]),
    )


DECIDED: Final = "decided"
"""Stands in a proposal that was decided about, until its author's own copy knows: the id of what became
global, or `REJECTED`."""
REJECTED: Final = ""


class Proposals:
    """The proposals of one deployment. A proposal holds the redacted text only."""

    def __init__(self, store: Store, everyone: Scope, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._everyone = everyone
        self._clock = clock

    async def list(self, limit: int = 1000) -> list[Memory]:
        """What waits, oldest first. The id of each is of this very wording."""
        records = await self._store.scan(self._everyone, PROPOSAL, limit=limit)
        waiting = [record for record in records if DECIDED not in record.data]
        for record in records:
            if DECIDED in record.data:  # whoever decided could not finish
                await self._finish_if_possible(record.id)
        return [replace(memory_of(record), id=_shown(record)) for record in waiting]

    async def approve(self, proposal_id: str, *, by: str | None = None) -> Memory:
        """Make it global, superseding what was approved under its key before.

        It becomes the deployment's own: its author is no longer recorded and can no longer change it.

        Args:
            proposal_id: as listed.
            by: who decides, for `decisions`.

        Raises:
            InvalidInput: there is no such proposal (any more), or its author changed it since it was listed.
            StoreUnavailable: approve it again; what was done of it is not done twice.
        """
        by = decider(by)

        async def attempt() -> Memory:
            waiting = await self._read(proposal_id, rejecting=False)
            return await self._adopted(waiting) or await self._adopt(waiting, by)

        approved = await until_written(attempt, "the key of a proposal")
        await self._finish(_stored(proposal_id))
        return approved

    async def reject(self, proposal_id: str, *, by: str | None = None) -> None:
        """Remove it. Its author keeps it as their own.

        Args:
            proposal_id: as listed.
            by: who decides, for `decisions`.

        Raises:
            InvalidInput: there is no such proposal (any more), or its author changed it since it was listed.
            StoreUnavailable: reject it again.
        """
        by = decider(by)

        async def attempt() -> None:
            waiting = await self._read(proposal_id, rejecting=True)
            if DECIDED not in waiting.data:
                noted = self._noted("rejected", memory_of(waiting).key or "", None, by)
                await self._store.write(self._everyone, [_decided(waiting, REJECTED), noted])

        await until_written(attempt, "the proposal")
        await self._finish(_stored(proposal_id))

    async def decisions(self) -> Sequence[Decision]:
        """Everything operators decided in this deployment about facts and lessons, oldest first."""
        return await decisions(self._store, self._everyone)

    def _noted(self, what: Decided, key: str, text: str | None, by: str) -> Put:
        return put_decision(Decision(what=what, of="fact", key=key, text=text, by=by, at=self._clock()))

    async def _adopt(self, waiting: Record, by: str) -> Memory:
        """Make global what is proposed, as it was read, or nothing.

        Raises:
            WriteConflict: it was withdrawn, replaced or forgotten in this moment, or its key was written to.
        """
        proposal = memory_of(waiting)
        ledger = Ledger(self._store, self._everyone)
        adopted = Memory(
            id="",
            key=proposal.key,
            text=proposal.text,
            category=proposal.category,
            visibility="global",
            valid_from=self._clock(),
            redacted=proposal.redacted,
            reason=proposal.reason,
        )
        approved = await ledger.set(adopted)
        noted = self._noted("approved", approved.key or "", approved.text, by)
        await self._store.write(self._everyone, [_decided(waiting, approved.id), *ledger.changes, noted])
        return approved

    async def _adopted(self, decided: Record) -> Memory | None:
        """What became global of it; None: nothing yet."""
        name = decided.data.get(DECIDED)
        records = await self._store.read(self._everyone, MEMORY, [name]) if name else ()
        return memory_of(records[0]) if records else None

    async def _finish(self, name: str) -> None:
        """Tell the author's own copy that nothing waits any more, and have the proposal go.

        Nothing is done where the author withdrew it or proposed anew since it was decided about: then the
        copy says what is so.
        """
        decided = await self._store.read(self._everyone, PROPOSAL, [name])
        if not decided or DECIDED not in decided[0].data:
            return
        proposal = memory_of(decided[0])
        own = Scope(self._everyone.deployment, proposal.author)
        copies = await self._store.scan(own, MEMORY, key=proposal.key, limit=1, newest_first=True)
        # only after the copy was read: who proposes anew hands that in before they change their copy
        if await self._store.read(self._everyone, PROPOSAL, [name]) != decided:
            return
        await _tell(self._store, own, copies)
        await self._remove(decided[0])

    async def _remove(self, decided: Record) -> None:
        drop = Drop(kind=PROPOSAL, id=decided.id)
        try:
            await self._store.write(self._everyone, [Put.over(decided, decided), drop])
        except WriteConflict:  # its author proposed anew in this moment: an erasure would take that with it
            return
        if decided.data[DECIDED] == REJECTED:
            await self._store.erase(self._everyone, [])  # what it said goes from the log as well

    async def _finish_if_possible(self, name: str) -> None:
        try:
            await self._finish(name)
        except StoreError as error:
            log.warning("%s: a decision about a proposal is finished later", type(error).__name__)

    async def _read(self, proposal_id: str, *, rejecting: bool) -> Record:
        """The proposal, of which the same may have been decided already."""
        stored = _stored(proposal_id)
        records = await self._store.read(self._everyone, PROPOSAL, [stored]) if stored else ()
        decided = records[0].data.get(DECIDED) if records else None
        if not records or (decided is not None and rejecting != (decided == REJECTED)):
            raise InvalidInput(f"there is no proposal {brief(proposal_id)}; `echoic proposals` lists them")
        if _shown(records[0]) != proposal_id:
            raise InvalidInput(
                f"proposal {brief(proposal_id)} was changed by its author: "
                "`echoic proposals` lists what it is now"
            )
        return records[0]


async def is_global_by_itself(
    store: Store, everyone: Scope, shareable: Shareable, global_kinds: frozenset[str]
) -> bool:
    """Whether what may be shared needs no operator: it states nothing but what is let pass, no operator
    refused what was to be known under its key, and none wrote what stands there.
    """
    if not shareable.states <= global_kinds:
        return False
    return shareable.key is None or not await is_decided(store, everyone, shareable.key)


async def still_proposed(store: Store, own: Scope, kept: Memory, name: str) -> Memory:
    """`kept`, just written as proposed; private, where its proposal was decided about meanwhile.

    Who decided before it was written found no copy to tell, and nobody else will look for it.
    """
    waiting = await store.read(own.everyone, PROPOSAL, [name])
    if waiting and DECIDED not in waiting[0].data:
        return kept
    await _tell(store, own, await store.read(own, MEMORY, [kept.id]))
    return replace(kept, visibility="private")


async def _tell(store: Store, own: Scope, copies: Sequence[Record]) -> None:
    """Let its author's own `copies` say that nothing waits any more."""
    for copy in copies:
        if copy.data.get("visibility") == "proposed":
            data = {field: value for field, value in copy.data.items() if field != "visibility"}
            with contextlib.suppress(WriteConflict):  # its author changed it in this moment
                await store.write(own, [Put.over(copy, replace(copy, data=data))])


def _stored(proposal_id: str) -> str:
    """The id of its record."""
    return proposal_id.rpartition("-")[0]


def _decided(waiting: Record, what: str) -> Put:
    """The change that notes a decision about a proposal as it was read."""
    return Put.over(waiting, replace(waiting, data={**waiting.data, DECIDED: what}))


def _shown(record: Record) -> str:
    """The id of a proposal as it stands: another wording has another."""
    memory = memory_of(record)
    content = json.dumps([memory.key, memory.text, memory.category])
    return f"{record.id}-{hashlib.blake2b(content.encode(), digest_size=12).hexdigest()}"


def put_proposal(proposal: Memory) -> Put:
    """The change that hands in `proposal`, replacing what its author proposed under the same key."""
    return Put(record=record_of_memory(proposal, kind=PROPOSAL))
