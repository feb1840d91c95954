"""Which tokens are good no longer: a record each, in the deployment's own scope, until it would have expired.

What a token is, and whom it stands for, is not known here. A record holds a hash of the token's id and a
date: nobody can tell from it whose it was, and forgetting a user leaves their tokens revoked.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from echoic.memory.concurrency import until_written
from echoic.memory.records import memory_id, scan_all
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Scope, checked_name, checked_time

REVOCATION: Final = "revocation"


class Revocations:
    """The revoked tokens of one deployment.

    Args:
        store: where they are kept.
        scope: what is the deployment's own.
        clock: the time, aware.
    """

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock

    async def revoke(self, token_id: str, until: datetime) -> None:
        """Refuse the token of this id from now on. Durable when it returns; revoking it again is no error.

        Args:
            token_id: of the token, not the token itself.
            until: when the last token of this id expires by itself; nothing is remembered for longer.

        Raises:
            InvalidInput: an id that cannot be, or a date without a time zone.
            StoreUnavailable: it is not revoked; try again.
        """
        ends = checked_time(until, "until")
        record = Record(kind=REVOCATION, id=_hashed(token_id), data={"until": ends.isoformat()})

        async def attempt() -> None:
            await self._store.write(self._scope, [*await self._expired(record.id), Put(record=record)])

        await until_written(attempt, "what is revoked")

    async def revoked(self, token_id: str) -> bool:
        """Whether the token of this id was revoked.

        Raises:
            StoreUnavailable: could not look; it must not be let in.
        """
        name = _hashed(token_id)
        return bool(await self._store.read(self._scope, REVOCATION, [name]))

    async def _expired(self, ours: str) -> list[Change]:
        now, changes = self._clock(), list[Change]()
        for record in await scan_all(self._store, self._scope, REVOCATION):
            if record.id != ours and datetime.fromisoformat(record.data["until"]) <= now:
                # as it was read, or nothing: it may be revoked for longer in this moment
                changes += [Put.over(record, record), Drop(kind=record.kind, id=record.id)]
        return changes


def _hashed(token_id: str) -> str:
    return memory_id(REVOCATION, checked_name(token_id, "token id"))
