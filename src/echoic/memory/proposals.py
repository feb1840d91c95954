"""What callers would have everyone know, waiting for an operator.

An operator decides about what they read. A caller may propose something else under the same key at any time,
so the id that an operator is shown names the wording too: a decision about another wording is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.ledger import Ledger
from echoic.memory.records import MEMORY, PROPOSAL, memory_of, record_of_memory
from echoic.memory.retry import until_written
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Memory, Scope


class Proposals:
    """The proposals of one deployment. A proposal holds the redacted text only."""

    def __init__(self, store: Store, everyone: Scope, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._everyone = everyone
        self._clock = clock

    async def list(self, limit: int = 1000) -> list[Memory]:
        """What waits, oldest first. The id of each is of this very wording."""
        records = await self._store.scan(self._everyone, PROPOSAL, limit=limit)
        return [replace(memory_of(record), id=_shown(record)) for record in records]

    async def approve(self, proposal_id: str) -> Memory:
        """Make it global, superseding what was approved under its key before.

        It becomes the deployment's own: its author is no longer recorded and can no longer change it.

        Args:
            proposal_id: as listed.

        Raises:
            InvalidInput: there is no such proposal (any more), or its author changed it since it was listed.
        """

        async def attempt() -> Memory:
            waiting = await self._read(proposal_id)
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
            )
            approved = await ledger.set(adopted)
            # as it was read, or nothing: it may be withdrawn, replaced or forgotten in this moment
            still = Put.over(waiting, waiting)
            drop = Drop(kind=PROPOSAL, id=waiting.id)
            await self._store.write(self._everyone, [still, *ledger.changes, drop])
            await self._decided(proposal)
            return approved

        return await until_written(attempt, f"the key of proposal {proposal_id!r}")

    async def reject(self, proposal_id: str) -> None:
        """Remove it. Its author keeps it as their own.

        Args:
            proposal_id: as listed.

        Raises:
            InvalidInput: there is no such proposal (any more), or its author changed it since it was listed.
        """
        waiting = await self._read(proposal_id)
        await self._store.erase(self._everyone, [Drop(kind=PROPOSAL, id=waiting.id)])
        await self._decided(memory_of(waiting))

    async def _decided(self, proposal: Memory) -> None:
        """The author's own copy is a private memory from now on: nothing waits any more."""
        own = Scope(self._everyone.deployment, proposal.author)
        records = await self._store.scan(own, MEMORY, key=proposal.key, limit=1, newest_first=True)
        for record in records:
            if record.data.get("visibility") == "proposed":
                data = {name: value for name, value in record.data.items() if name != "visibility"}
                decided = Put.over(record, replace(record, data=data))
                with contextlib.suppress(WriteConflict):  # its author changed it meanwhile, and proposes anew
                    await self._store.write(own, [decided])

    async def _read(self, proposal_id: str) -> Record:
        stored, _, _ = proposal_id.rpartition("-")
        records = await self._store.read(self._everyone, PROPOSAL, [stored]) if stored else ()
        if not records:
            raise InvalidInput(f"there is no proposal {proposal_id!r}; `echoic proposals` lists them")
        if _shown(records[0]) != proposal_id:
            raise InvalidInput(
                f"proposal {proposal_id!r} was changed by its author: `echoic proposals` lists what it is now"
            )
        return records[0]


def _shown(record: Record) -> str:
    """The id of a proposal as it stands: another wording has another."""
    memory = memory_of(record)
    content = json.dumps([memory.key, memory.text, memory.category])
    return f"{record.id}-{hashlib.blake2b(content.encode(), digest_size=12).hexdigest()}"


def put_proposal(proposal: Memory) -> Put:
    """The change that hands in `proposal`, replacing what its author proposed under the same key."""
    return Put(record=record_of_memory(proposal, kind=PROPOSAL))


__all__ = ["Proposals", "put_proposal"]
