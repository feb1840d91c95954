"""Codes that prove on one side who somebody is on the other: given once, good once, for minutes.

Both ways: a page gives a code that is said or typed on the telephone, and a call gives one that is typed
into the page. They are kept in the store, so that whichever process gave one, another may take it. A record
holds a hash of a code and whose it is, and goes when it is used or old.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from echoic.adapters.twilio.identity_claims import CODE_DIGITS
from echoic.adapters.twilio.pins import Guesses
from echoic.errors import WriteConflict
from echoic.memory.concurrency import until_written
from echoic.memory.phone_registry import nonce
from echoic.memory.records import LINK_CODE, memory_id, scan_all
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenLine:
    """What a code that was given in a call proves to a page."""

    line: str
    """Where its user calls from."""
    proved: tuple[str, ...]
    """Who proved in that call that the memories on the line are theirs."""


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
        self._store, self._scope = memory.backing_store, memory.scope.everyone
        self._clock = clock
        self._guesses = Guesses(self._store, self._scope, clock, LIFETIME_S)

    async def give(self, user: str) -> Code:
        """A new code that proves to a telephone that its caller is `user`.

        The one given to them before is good no longer.

        Raises:
            InvalidInput: no name of a user.
            StoreUnavailable: there is no code; try again.
        """
        return await self._give("user", user, CODE_DIGITS)

    async def give_line(self, line: str, *, proved: Collection[str] = ()) -> Code:
        """A new code that proves to a page that its user calls from `line`; see `give`.

        Only to be given in a call whose number is proven.

        Args:
            line: where from.
            proved: who proved in the call that the memories on the line are theirs.
        """
        return await self._give("line", line, TYPED_DIGITS, proved)

    async def take(self, code: str) -> str | None:
        """The user a telephone's caller proves to be by `code`; None: it is no good. Good once.

        Raises:
            StoreUnavailable: could not look; it must not be believed.
        """
        record = await self._take("user", code)
        return None if record is None else str(record.data["whose"])

    async def take_line(self, code: str) -> str | None:
        """The line a page's user proves to call from; see `take`."""
        proven = await self.take_proof(code)
        return None if proven is None else proven.line

    async def take_proof(self, code: str) -> ProvenLine | None:
        """That line, with who proved in the call that its memories are theirs; see `take`."""
        record = await self._take("line", code)
        if record is None:
            return None
        return ProvenLine(line=record.data["whose"], proved=tuple(record.data["proved"]))

    async def waiting(self) -> bool:
        """Whether any code is out that a telephone would take."""
        records = await scan_all(self._store, self._scope, LINK_CODE, key="user")
        return bool(self._fresh(records))

    async def _give(self, kind: Kind, whose: str, digits: int, proved: Collection[str] = ()) -> Code:
        checked_name(whose, "user")

        async def attempt() -> Code:
            code = f"{secrets.randbelow(10**digits):0{digits}}"
            records = await self._records()
            good = [r for r in self._fresh(records) if (r.key, r.data["whose"]) != (kind, whose)]
            kept = {record.id for record in good[-MAX_CODES + 1 :]}
            stale = [record for record in records if record.id not in kept]
            until = self._clock() + timedelta(seconds=LIFETIME_S)
            data = {
                "whose": whose,
                "proved": sorted(proved),
                "until": until.isoformat(),
                "used": False,
                "nonce": nonce([whose, *proved]),
            }
            record = Record(kind=LINK_CODE, id=_mark(kind, code), key=kind, data=data)
            drops = [Drop(kind=LINK_CODE, id=old.id) for old in stale if old.id != record.id]
            # a code that is out already, for somebody else, is a conflict: another is tried
            standing = {old.id: old for old in stale}
            await self._store.write(self._scope, [*drops, Put.over(standing.get(record.id), record)])
            return Code(code=code, good_until=until)

        return await until_written(attempt, "the codes")

    async def _take(self, kind: Kind, code: str) -> Record | None:
        if not await self._guesses.count(kind, MAX_GUESSES):
            return None
        found = await self._store.read(self._scope, LINK_CODE, [_mark(kind, code)])
        if not self._fresh(found):
            return None
        record = found[0]
        used = Record(
            kind=LINK_CODE,
            id=record.id,
            key=kind,
            data={**record.data, "whose": "", "proved": [], "used": True},
        )
        try:
            await self._store.write(self._scope, [Put.over(record, used)])
        except WriteConflict:
            return None  # somebody else was faster
        await self._guesses.uncount(kind)
        await self._tidy()
        return record

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
