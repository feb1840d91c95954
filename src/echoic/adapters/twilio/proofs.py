"""Proofs of who is calling: PINs, and codes that link a telephone to a user of a page.

A PIN is kept as a salted scrypt hash of itself and the deployment's secret, in the user's own scope: the
store alone is not enough to try them all, and forgetting the user takes the PIN along. A code is given on one
side, page or call, and entered on the other; it is valid once, for minutes. It is kept in the store as a
hash, so that any process may take it, until it is used or old.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, Literal

from echoic.adapters.twilio.identity_claims import CODE_DIGITS
from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.concurrency import until_written
from echoic.memory.phone_registry import PIN_GUESSES, line_key, nonce
from echoic.memory.records import LINK_CODE, LINK_GUESSES, PHONE_PIN, memory_id, scan_all
from echoic.memory.service import MemoryService
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Scope, checked_name

MAX_GUESSES: Final = 5
"""At the PIN of one user, from all lines and calls, in `WITHIN_S`: one in five hundred years succeeds."""
WITHIN_S: Final = 24 * 3600.0
_COST: Final = 2**14
"""scrypt's n, with r=8 and p=1: 16 MB and some 50 ms, where a caller waits for it."""
_PIN: Final = "pin"


class Pins:
    """The PINs of one deployment.

    Args:
        service: where they are kept.
        deployment: for whom.
        secret: of the deployment, the same for telephone and page.
        clock: the time, aware.
    """

    def __init__(
        self,
        service: MemoryService,
        deployment: str,
        secret: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._service, self._deployment = service, deployment
        # apart from what else is made with the secret
        self._secret = hmac.digest(secret.encode(), b"echoic phone pin", hashlib.sha256)
        memory = service.user(PHONE_PIN, deployment)  # of nobody: only the deployment's own is used
        self._store = memory.backing_store
        self._guesses = Guesses(self._store, memory.scope.everyone, clock, WITHIN_S)

    async def set(self, user: str, pin: str) -> None:
        """Let `user` prove by `pin` who they are. Whoever calls this has seen them prove it otherwise.

        Raises:
            InvalidInput: not six digits, or digits that anybody would try first. It does not repeat them.
        """
        check_pin(pin)
        salt = secrets.token_bytes(16)
        data = {"salt": salt.hex(), "n": _COST, "hash": (await self._hash(pin, salt, _COST)).hex()}
        record = Record(kind=PHONE_PIN, id=_PIN, data=data)
        await self._store.write(self._service.user(user, self._deployment).scope, [Put(record=record)])

    async def clear(self, user: str) -> None:
        """Remove the PIN of `user`."""
        scope = self._service.user(user, self._deployment).scope
        await self._store.write(scope, [Drop(kind=PHONE_PIN, id=_PIN)])

    async def has(self, user: str) -> bool:
        """Whether `user` has one."""
        return await self._record(user) is not None

    async def whose(self, users: Sequence[str], pin: str) -> list[str]:
        """Which of `users` have this PIN. Users with too many wrong guesses are left out.

        A guess counts against every user it is compared with, and is taken back only for those whose PIN it
        was: somebody who knows their own PIN gets no extra guesses at another's.

        Raises:
            StoreUnavailable: the store could not be read; the PIN must not be accepted.
        """
        records = [(user, await self._record(user)) for user in users]
        kept = [
            (user, record.data)
            for user, record in records
            if record is not None and await self._guesses.count(_guesses_at(user), MAX_GUESSES)
        ]
        if not kept:
            await self._hash(pin, secrets.token_bytes(16), _COST)  # takes as long as where there is one
        found: list[str] = []
        for user, data in kept:
            made = await self._hash(pin, bytes.fromhex(data["salt"]), data["n"])
            if hmac.compare_digest(made, bytes.fromhex(data["hash"])):
                found.append(user)
                await self._guesses.uncount(_guesses_at(user))
        return found

    async def _record(self, user: str) -> Record | None:
        scope = self._service.user(user, self._deployment).scope
        found = await self._store.read(scope, PHONE_PIN, [_PIN])
        return found[0] if found else None

    async def _hash(self, pin: str, salt: bytes, cost: int) -> bytes:
        keyed = hmac.digest(self._secret, pin.encode(), hashlib.sha256)
        return await asyncio.to_thread(hashlib.scrypt, keyed, salt=salt, n=cost, r=8, p=1, dklen=32)


def _guesses_at(user: str) -> str:
    return PIN_GUESSES + line_key(user)


def check_pin(pin: str) -> None:
    """Check that a PIN has six digits and is not one of those that are guessed first.

    Raises:
        InvalidInput: it is not valid. The message does not repeat it.
    """
    if len(pin) != CODE_DIGITS or not (pin.isascii() and pin.isdigit()):
        raise InvalidInput(f"a PIN is {CODE_DIGITS} digits")
    steps = {(int(b) - int(a)) % 10 for a, b in pairwise(pin)}
    if len(set(pin)) < 3 or len(steps) == 1 or pin[:3] == pin[3:]:
        raise InvalidInput("this PIN is among the first that anybody would try: take one without a pattern")


class Guesses:
    """Counts guesses over a time, for all processes on a store.

    Args:
        store: where the counts are kept.
        scope: the deployment's own.
        clock: the time, aware.
        within_s: how long a guess counts.
    """

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime], within_s: float) -> None:
        self._store, self._scope, self._clock = store, scope, clock
        self._within = timedelta(seconds=within_s)

    async def count(self, name: str, limit: int) -> bool:
        """Count a guess at `name`, unless there were `limit` of them; whether there may be one more."""

        async def attempt() -> bool:
            version, times = await self._read(name)
            if len(times) >= limit:
                return False
            await self._write(name, [*times, self._clock()], version)
            return True

        return await until_written(attempt, "the count of guesses")

    async def uncount(self, name: str) -> None:
        """The last one was no guess."""

        async def attempt() -> None:
            version, times = await self._read(name)
            await self._write(name, times[:-1], version)

        await until_written(attempt, "the count of guesses")

    async def _read(self, name: str) -> tuple[int, list[datetime]]:
        """The version of the guess counter, and the times of the guesses."""
        found = await self._store.read(self._scope, LINK_GUESSES, [name])
        if not found:
            return 0, []
        since = self._clock() - self._within
        times = [datetime.fromisoformat(at) for at in found[0].data["times"]]
        return found[0].version, [at for at in times if at > since]

    async def _write(self, name: str, times: list[datetime], version: int) -> None:
        data = {"times": [at.isoformat() for at in times]}
        record = Record(kind=LINK_GUESSES, id=name, data=data)
        await self._store.write(self._scope, [Put(record=record, expect=version)])


LIFETIME_S: Final = 600.0
MAX_CODE_GUESSES: Final = 20
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
    """What a code given in a call proves to a page."""

    line: str
    """The line its user calls from."""
    proved: tuple[str, ...]
    """The user who proved in that call that the memories on the line are theirs."""


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
        """Take a proven line with the user who proved in the call to own its memories; see `take`."""
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
        if not await self._guesses.count(kind, MAX_CODE_GUESSES):
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
