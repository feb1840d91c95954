"""Codes that prove on one side who somebody is on the other: given once, good once, for minutes.

Both ways: a page gives a code that is said or typed on the telephone, and a call gives one that is typed
into the page. They are kept in the store, so that whichever process gave one, another may take it. A record
holds a hash of a code and whose it is, and goes when it is used or old.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from echoic.adapters.twilio.claims import CODE_DIGITS
from echoic.errors import WriteConflict
from echoic.memory.ledger import memory_id
from echoic.memory.records import LINK_CODE, LINK_GUESSES, scan_all
from echoic.memory.retry import until_written
from echoic.memory.service import MemoryService
from echoic.stores.base import Drop, Put, Record
from echoic.types import checked_name

LIFETIME_S: Final = 600.0
MAX_GUESSES: Final = 20
"""Wrong codes of one kind, from everybody, within `LIFETIME_S`; then none is good until it is quieter. With a
hundred codes out, guessing succeeds once in five hundred such times on the telephone, and once in fifty
thousand in a page.
"""
MAX_CODES: Final = 1000
"""Out at once; the oldest goes for a new one."""
TYPED_DIGITS: Final = 8
"""Of a code that is typed into a page: there a machine may guess, and nobody has to say it."""

Kind = Literal["user", "line"]
"""user: given in a page, proves that user to a phone. line: given in a call, proves that line to a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code, as it is shown or said."""

    code: str
    good_until: datetime


class LinkCodes:
    """Gives out codes of one deployment and takes them.

    Args:
        service: where they are kept.
        deployment: for whom.
        clock: the time, aware.
    """

    def __init__(
        self,
        service: MemoryService,
        deployment: str = "default",
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        memory = service.user(LINK_CODE, deployment)  # of nobody: only the deployment's own is used
        self._store, self._scope = memory.store, memory.scope.everyone
        self._clock = clock

    async def give(self, user: str) -> Code:
        """A new code that proves to a telephone that its caller is `user`.

        The one given to them before is good no longer.

        Raises:
            InvalidInput: no name of a user.
            StoreUnavailable: there is no code; try again.
        """
        return await self._give("user", user, CODE_DIGITS)

    async def give_line(self, line: str) -> Code:
        """A new code that proves to a page that its user calls from `line`; see `give`."""
        return await self._give("line", line, TYPED_DIGITS)

    async def take(self, code: str) -> str | None:
        """The user a telephone's caller proves to be by `code`; None: it is no good. Good once.

        Raises:
            StoreUnavailable: could not look; it must not be believed.
        """
        return await self._take("user", code)

    async def take_line(self, code: str) -> str | None:
        """The line a page's user proves to call from; see `take`."""
        return await self._take("line", code)

    async def waiting(self) -> bool:
        """Whether any code is out that a telephone would take."""
        records = await scan_all(self._store, self._scope, LINK_CODE, key="user")
        return bool(self._fresh(records))

    async def _give(self, kind: Kind, whose: str, digits: int) -> Code:
        checked_name(whose, "user")

        async def attempt() -> Code:
            code = f"{secrets.randbelow(10**digits):0{digits}}"
            records = await self._records()
            good = [r for r in self._fresh(records) if (r.key, r.data["whose"]) != (kind, whose)]
            kept = {record.id for record in good[-MAX_CODES + 1 :]}
            stale = [record for record in records if record.id not in kept]
            until = self._clock() + timedelta(seconds=LIFETIME_S)
            data = {"whose": whose, "until": until.isoformat(), "used": False}
            record = Record(kind=LINK_CODE, id=_mark(kind, code), key=kind, data=data)
            drops = [Drop(kind=LINK_CODE, id=old.id) for old in stale if old.id != record.id]
            # a code that is out already, for somebody else, is a conflict: another is tried
            standing = {old.id: old for old in stale}
            await self._store.write(self._scope, [*drops, Put.over(standing.get(record.id), record)])
            return Code(code=code, good_until=until)

        return await until_written(attempt, "the codes")

    async def _take(self, kind: Kind, code: str) -> str | None:
        if not await self._counted(kind):
            return None
        found = await self._store.read(self._scope, LINK_CODE, [_mark(kind, code)])
        if not self._fresh(found):
            return None
        record = found[0]
        used = Record(kind=LINK_CODE, id=record.id, key=kind, data={**record.data, "whose": "", "used": True})
        try:
            await self._store.write(self._scope, [Put.over(record, used)])
        except WriteConflict:
            return None  # somebody else was faster
        await self._uncounted(kind)
        await self._tidy()
        whose: str = record.data["whose"]
        return whose

    async def _counted(self, kind: Kind) -> bool:
        """Count a guess before it is looked at, so that no crowd gets by; whether there may be one more."""

        async def attempt() -> bool:
            before, times = await self._guesses(kind)
            if len(times) >= MAX_GUESSES:
                return False
            await self._put_guesses(kind, [*times, self._clock()], before)
            return True

        return await until_written(attempt, "the count of guesses")

    async def _uncounted(self, kind: Kind) -> None:
        """It was no guess."""

        async def attempt() -> None:
            before, times = await self._guesses(kind)
            await self._put_guesses(kind, times[:-1], before)

        await until_written(attempt, "the count of guesses")

    async def _guesses(self, kind: Kind) -> tuple[int, list[datetime]]:
        """Which version of the count there is, and when there were guesses."""
        found = await self._store.read(self._scope, LINK_GUESSES, [kind])
        if not found:
            return 0, []
        since = self._clock() - timedelta(seconds=LIFETIME_S)
        times = [datetime.fromisoformat(at) for at in found[0].data["times"]]
        return found[0].version, [at for at in times if at > since]

    async def _put_guesses(self, kind: Kind, times: list[datetime], version: int) -> None:
        data: dict[str, Any] = {"times": [at.isoformat() for at in times]}
        record = Record(kind=LINK_GUESSES, id=kind, data=data)
        await self._store.write(self._scope, [Put(record=record, expect=version)])

    async def _tidy(self) -> None:
        """Drop what is used or old."""
        records = await self._records()
        good = {record.id for record in self._fresh(records)}
        gone = [Drop(kind=LINK_CODE, id=record.id) for record in records if record.id not in good]
        await self._store.write(self._scope, gone)

    async def _records(self) -> list[Record]:
        return await scan_all(self._store, self._scope, LINK_CODE)

    def _fresh(self, records: list[Record]) -> list[Record]:
        now = self._clock()
        return [
            record
            for record in records
            if not record.data["used"] and datetime.fromisoformat(record.data["until"]) > now
        ]


def _mark(kind: Kind, code: str) -> str:
    return memory_id(LINK_CODE, kind, code)


__all__ = ["LIFETIME_S", "MAX_CODES", "MAX_GUESSES", "TYPED_DIGITS", "Code", "Kind", "LinkCodes"]
