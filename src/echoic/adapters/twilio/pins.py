"""PINs by which a caller proves who they are where the carrier does not vouch for the number, and the count
of wrong guesses.

Kept as a salted scrypt hash of the PIN and the deployment's secret, in the user's own scope: whoever has the
store alone cannot try all of them, and what is forgotten takes its PIN along.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from echoic.adapters.twilio.identity_claims import CODE_DIGITS
from echoic.errors import InvalidInput
from echoic.memory.concurrency import until_written
from echoic.memory.phone_registry import PIN_GUESSES, line_key
from echoic.memory.records import LINK_GUESSES, PHONE_PIN
from echoic.memory.service import MemoryService
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Scope

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
        """No PIN is good for `user` any more."""
        scope = self._service.user(user, self._deployment).scope
        await self._store.write(scope, [Drop(kind=PHONE_PIN, id=_PIN)])

    async def has(self, user: str) -> bool:
        """Whether `user` has one."""
        return await self._record(user) is not None

    async def whose(self, users: Sequence[str], pin: str) -> list[str]:
        """Which of `users` prove by `pin` who they are. Those at whom too much was guessed do not.

        A guess counts for everybody whose PIN it is compared with, and is taken back only for those whose PIN
        it was: who knows a PIN of their own guesses no more often at another's.

        Raises:
            StoreUnavailable: could not look; nobody is to be believed.
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
    """Let a PIN pass that is six digits and not one of those everybody tries first.

    Raises:
        InvalidInput: it is not. The message does not repeat it.
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
        """Which version of the count there is, and when there were guesses."""
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
