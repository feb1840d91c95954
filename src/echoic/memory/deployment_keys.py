"""Keys of a deployment, each with a role: shown once, kept as a hash, listed, expiring, revoked.

A key is 256 random bits, so a plain hash of it cannot be guessed back. Its id stands in it, so that it is
found without comparing it with every other.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, get_args

from echoic.checks import checked_text
from echoic.errors import InvalidInput, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import scan_all
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope, checked_name

KEY: Final = "key"
Role = Literal["agent", "operator", "auditor", "read-only"]
"""agent: gets tokens for users. operator: every operator's route. auditor: the audit log. read-only: whatever
of the operator's only reads, but for the audit log."""
ROLES: Final[tuple[Role, ...]] = get_args(Role)
_FORM: Final = re.compile(r"echoic_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentKey:
    """A key, without what makes it one."""

    id: str
    role: Role
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def good(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class DeploymentKeys:
    """The keys of one deployment.

    Args:
        store: where they are kept.
        scope: what is the deployment's own.
        clock: the time, aware.
    """

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime]) -> None:
        self._store, self._scope, self._clock = store, scope, clock

    async def create(
        self, role: Role, *, name: str = "", lifetime: timedelta | None = None
    ) -> tuple[str, DeploymentKey]:
        """A new key, and what is listed of it. The key is returned here and nowhere else.

        Args:
            role: what it is for.
            name: what you call it.
            lifetime: after which it opens nothing; None: until it is revoked.

        Raises:
            InvalidInput: no such role, a name that is too long, or a lifetime that is over already.
        """
        if role not in ROLES:
            raise InvalidInput(f"a key's role is one of {', '.join(ROLES)}, not {brief(role)}")
        if lifetime is not None and lifetime <= timedelta(0):
            raise InvalidInput("a key's lifetime must be longer than nothing")
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
        await self._store.write(self._scope, [Put(record=_record(made, _hashed(key)), expect=0)])
        return key, made

    async def list(self) -> list[DeploymentKey]:
        """Every key, oldest first, those that expired or were revoked included."""
        return [_key_of(record) for record in await scan_all(self._store, self._scope, KEY)]

    async def revoke(self, key_id: str) -> DeploymentKey:
        """Have a key open nothing from now on, in every process; revoking it again changes nothing.

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
        """The key that `given` is, if it is good.

        Raises:
            StoreUnavailable: could not look; nobody may be let in.
        """
        read = _FORM.fullmatch(given)
        if read is None:
            return None
        found = await self._store.read(self._scope, KEY, [read[1]])
        known = found[0].data["sha256"] if found else "0" * 64
        if not hmac.compare_digest(_hashed(given), known) or not found:
            return None
        key = _key_of(found[0])
        return key if key.good(self._clock()) else None


def looks_like_a_key(given: str) -> bool:
    """Whether `given` has the form of such a key."""
    return _FORM.fullmatch(given) is not None


def _hashed(key: str) -> str:
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
