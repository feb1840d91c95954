"""Deployment keys, which backends use to call a server, and the list of revoked identity tokens.

The store holds a hash of each key. Of a revoked or renewed token it holds a hash of its id, dates and a
count: they do not reveal whose it was, and the token stays revoked when its user is forgotten. A renewed
token stays valid until `GRACE_S` after its successor is first used, so its holder has a valid token even if
the answer to a renewal is lost.
"""

from __future__ import annotations

import contextlib
import hmac
import random
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, get_args

from echoic.checks import checked_text
from echoic.errors import InvalidInput, StoreError, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import memory_id, scan_all
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Scope, checked_name, checked_time

REVOCATION: Final = "revocation"
GRACE_S: Final = 60.0
"""Seconds for which a token stays valid after its successor is first used, for requests in progress."""
_SWEPT: Final = 100
"""Records checked for expiry with each write."""


class Revocations:
    """The revoked tokens of one deployment, and renewed tokens whose successor is in use."""

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock

    async def revoke(self, token_id: str, until: datetime) -> None:
        """Refuse the token with this id, and its renewals, from now on. Durable when it returns; may be
        repeated.

        Args:
            token_id: the id of the token, not the token itself.
            until: when the last token with this id expires; the entry is removed then.

        Raises:
            InvalidInput: the id is not valid, or the date has no time zone.
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
        """Whether the token with this id was revoked, or ended because it was renewed.

        Args:
            token_id: the id of the token, not the token itself.
            renewals: how often it had been renewed when it was issued; None: renewals do not end it.
            until: when the tokens issued before it have expired.

        Raises:
            StoreUnavailable: it could not be checked; do not accept the token.
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
        ):  # if nothing can be written, the previous token stays valid for now
            return await self._used(token_id, renewals, until or self._clock())
        return False

    async def _used(self, token_id: str, renewals: int, until: datetime) -> bool:
        """Note that a renewal is used; returns whether the token was revoked meanwhile."""
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
        """Changes that remove expired entries: the oldest, or a random sample if there are many."""
        page = await self._store.scan(self._scope, REVOCATION, limit=_SWEPT)
        if len(page) == _SWEPT:
            (newest,) = await self._store.scan(self._scope, REVOCATION, limit=1, newest_first=True)
            after = random.randint(page[0].seq - 1, newest.seq)  # noqa: S311 - no secret
            page = await self._store.scan(self._scope, REVOCATION, after=after, limit=_SWEPT)
        now, changes = self._clock(), list[Change]()
        for record in page:
            if record.id != ours and datetime.fromisoformat(record.data["until"]) <= now:
                # only as it was read: it may just have been revoked for longer
                changes += [Put.over(record, record), Drop(kind=record.kind, id=record.id)]
        return changes


def _hashed(token_id: str) -> str:
    return memory_id(REVOCATION, checked_name(token_id, "token id"))


KEY: Final = "key"
Role = Literal["agent", "operator", "auditor", "read-only"]
"""What a key may do.

- "agent": get tokens for users.
- "operator": call every operator route.
- "auditor": read the audit log.
- "read-only": call operator routes that only read, except the audit log.
"""
ROLES: Final[tuple[Role, ...]] = get_args(Role)
_FORM: Final = re.compile(r"echoic_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentKey:
    """A key as it is listed, without its secret."""

    id: str
    role: Role
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def good(self, now: datetime) -> bool:
        """Whether it is neither expired nor revoked."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class DeploymentKeys:
    """The keys of one deployment."""

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime]) -> None:
        self._store, self._scope, self._clock = store, scope, clock

    async def create(
        self, role: Role, *, name: str = "", lifetime: timedelta | None = None
    ) -> tuple[str, DeploymentKey]:
        """Create a key; returns its secret, which is not stored, and its listed form.

        Args:
            role: what it may do.
            name: your name for it.
            lifetime: how long it is valid; None: until it is revoked.

        Raises:
            InvalidInput: unknown role, a name that is too long, or a lifetime that is not above 0.
        """
        if role not in ROLES:
            raise InvalidInput(f"a key's role is one of {', '.join(ROLES)}, not {brief(role)}")
        if lifetime is not None and lifetime <= timedelta(0):
            raise InvalidInput("a key's lifetime must be above 0")
        if name:
            checked_name(checked_text(name, "the name of a key"), "the name of a key")
        now = self._clock()
        key = f"echoic_{secrets.token_hex(8)}_{secrets.token_urlsafe(32)}"
        made = DeploymentKey(
            id=key.split("_", 2)[1],
            role=role,
            name=name,
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
            revoked_at=None,
        )
        await self._store.write(self._scope, [Put(record=_record(made, _key_hash(key)), expect=0)])
        return key, made

    async def list(self) -> list[DeploymentKey]:
        """Every key, oldest first, including expired and revoked ones."""
        return [_key_of(record) for record in await scan_all(self._store, self._scope, KEY)]

    async def revoke(self, key_id: str) -> DeploymentKey:
        """Make a key invalid in every process; revoking it again changes nothing.

        Raises:
            InvalidInput: there is no such key.
        """

        async def attempt() -> DeploymentKey:
            found = await self._store.read(self._scope, KEY, [checked_name(key_id, "key id")])
            if not found:
                raise InvalidInput(f"there is no key {brief(key_id)}: `echoic keys list` shows their ids")
            if found[0].data["revoked_at"] is None:
                data = {**found[0].data, "revoked_at": self._clock().isoformat()}
                revoked = Record(kind=KEY, id=found[0].id, data=data)
                await self._store.write(self._scope, [Put.over(found[0], revoked)])
                return _key_of(revoked)
            return _key_of(found[0])

        return await until_written(attempt, "the key")

    async def of(self, given: str) -> DeploymentKey | None:
        """The key with the secret `given`, if it is valid; after StoreUnavailable refuse access."""
        named = key_id(given)
        if named is None:
            return None
        found = await self._store.read(self._scope, KEY, [named])
        known = found[0].data["sha256"] if found else "0" * 64
        if not hmac.compare_digest(_key_hash(given), known):
            return None
        return self._good(found)

    async def named(self, key_id: str) -> DeploymentKey | None:
        """The key with this id, if it is valid, for a caller who proved to have it before. Raises as `of`."""
        return self._good(await self._store.read(self._scope, KEY, [key_id]))

    def _good(self, found: Sequence[Record]) -> DeploymentKey | None:
        key = _key_of(found[0]) if found else None
        return key if key is not None and key.good(self._clock()) else None


def key_id(given: str) -> str | None:
    """The id in `given`, if it has the form of a key."""
    read = _FORM.fullmatch(given)
    return read[1] if read else None


def _key_hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def _record(key: DeploymentKey, hashed: str) -> Record:
    moments = {"created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    told: dict[str, Any] = {name: at.isoformat() if at else None for name, at in moments.items()}
    return Record(kind=KEY, id=key.id, data={"role": key.role, "name": key.name, "sha256": hashed, **told})


def _key_of(record: Record) -> DeploymentKey:
    data = record.data
    moments = {
        name: datetime.fromisoformat(data[name]) if data[name] else None
        for name in ("expires_at", "revoked_at")
    }
    return DeploymentKey(
        id=record.id,
        role=data["role"],
        name=data["name"],
        created_at=datetime.fromisoformat(data["created_at"]),
        **moments,
    )
