"""Which tokens are good no longer: a record each, in the deployment's own scope, until it would have expired.

A token that was renewed is good until its renewal is used, and `GRACE_S` longer: if the answer to a renewal
is lost, its holder still has a good token. What a token is, and whom it stands for, is not known here. A
record holds a hash of the token's id, dates and a count: nobody can tell from it whose it was, and forgetting
a user leaves their tokens revoked.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from echoic.errors import StoreError
from echoic.memory.concurrency import until_written
from echoic.memory.records import memory_id
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Scope, checked_name, checked_time

REVOCATION: Final = "revocation"
GRACE_S: Final = 60.0
"""How long a token is good once its renewal is used, for requests that are under way."""
_SWEPT: Final = 100
"""Records looked at with each write for those whose time is over."""


class Revocations:
    """The revoked tokens of one deployment, and those that ended because a renewal of theirs is in use.

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
            token_id: of the token, not the token itself. Its renewals have the same.
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

    async def revoked(
        self, token_id: str, renewals: int | None = None, until: datetime | None = None
    ) -> bool:
        """Whether the token of this id was revoked, or ended because it was renewed.

        Args:
            token_id: of the token, not the token itself.
            renewals: how often it had been renewed when it was given out; None: renewals do not end it.
            until: when tokens that were given out before it have expired.

        Raises:
            StoreUnavailable: could not look; it must not be let in.
        """
        name = _hashed(token_id)
        found = await self._store.read(self._scope, REVOCATION, [name])
        if not found:
            last, since = 0, self._clock()
        elif "renewals" not in found[0].data:
            return True
        else:
            last, since = found[0].data["renewals"], datetime.fromisoformat(found[0].data["since"])
        if renewals is None or renewals == last:
            return False
        if renewals < last:
            in_flight = renewals == last - 1 and self._clock() < since + timedelta(seconds=GRACE_S)
            return not in_flight
        with contextlib.suppress(
            StoreError
        ):  # where nothing can be written, the one before stays good so long
            return await self._used(token_id, renewals, until or self._clock())
        return False

    async def _used(self, token_id: str, renewals: int, until: datetime) -> bool:
        """Note that a renewal is used; whether the token was revoked meanwhile."""
        name = _hashed(token_id)

        async def attempt() -> bool:
            found = await self._store.read(self._scope, REVOCATION, [name])
            before = found[0] if found else None
            if before is not None and "renewals" not in before.data:
                return True
            if before is None or before.data["renewals"] < renewals:
                data = {
                    "until": checked_time(until, "until").isoformat(),
                    "renewals": renewals,
                    "since": self._clock().isoformat(),
                }
                put = Put.over(before, Record(kind=REVOCATION, id=name, data=data))
                await self._store.write(self._scope, [*await self._expired(name), put])
            return False

        return await until_written(attempt, "what was renewed")

    async def _expired(self, ours: str) -> list[Change]:
        """What need not be remembered any longer, of the oldest records, or of some at random among many."""
        page = await self._store.scan(self._scope, REVOCATION, limit=_SWEPT)
        if len(page) == _SWEPT:
            (newest,) = await self._store.scan(self._scope, REVOCATION, limit=1, newest_first=True)
            after = random.randint(page[0].seq - 1, newest.seq)  # noqa: S311 - no secret
            page = await self._store.scan(self._scope, REVOCATION, after=after, limit=_SWEPT)
        now, changes = self._clock(), list[Change]()
        for record in page:
            if record.id != ours and datetime.fromisoformat(record.data["until"]) <= now:
                # as it was read, or nothing: it may be revoked for longer in this moment
                changes += [Put.over(record, record), Drop(kind=record.kind, id=record.id)]
        return changes


def _hashed(token_id: str) -> str:
    return memory_id(REVOCATION, checked_name(token_id, "token id"))
