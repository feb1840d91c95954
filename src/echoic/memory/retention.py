"""Retention: conversations and memories older than a deployment's limit are destroyed, unless on hold.

Every process that has the memory open looks for them in the background; destroying twice is harmless.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from echoic.errors import InvalidInput, NotAllowed, brief
from echoic.memory.concurrency import Sweeper
from echoic.memory.records import (
    CONVERSATION,
    HOLD,
    INDEXED_ITEM,
    ITEM,
    MEMORY,
    RESULT,
    TURN,
    conversation_of,
    memory_of,
    scan_all,
    turn_of,
)
from echoic.memory.service_context import Parts
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Memory, Scope

log = logging.getLogger(__name__)

KINDS: Final = ("conversations", "memories")
_SWEEP_AFTER_S: Final = 30.0
_SWEEP_EVERY_S: Final = 3600.0
_PAGE: Final = 50
_NO_LIMIT_DAYS: Final = 365_000
"""A thousand years: no date lies so far back."""


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """How many days each kind ("conversations", "memories") is kept; "deployment:kind" takes precedence."""

    days: Mapping[str, float]

    def kept_for(self, deployment: str, kind: str) -> timedelta | None:
        """How long a deployment keeps a kind; None: until it is forgotten."""
        days = self.days.get(f"{deployment}:{kind}", self.days.get(kind))
        return None if days is None or days >= _NO_LIMIT_DAYS else timedelta(days=days)


def rules_from(given: str | Mapping[str, float] | None) -> RetentionRules:
    """Checked rules, also from "conversations=90,acme:memories=30"; raises InvalidInput."""
    pairs: Mapping[str, object] = (
        dict(pair.strip().partition("=")[::2] for pair in given.split(",") if pair.strip())
        if isinstance(given, str)
        else given or {}
    )
    days: dict[str, float] = {}
    for name, value in pairs.items():
        with contextlib.suppress(TypeError, ValueError):
            days[name] = float(str(value))
        if name.rpartition(":")[2] not in KINDS or not days.get(name, 0) > 0:
            raise InvalidInput(
                f"keep_for has no {brief(f'{name}={value}')}: write a kind ({', '.join(KINDS)}), or "
                "deployment:kind, with a number of days above 0"
            )
    return RetentionRules(days)


async def is_held(store: Store, scope: Scope) -> bool:
    """Whether a user's data is on hold."""
    return bool(await store.read(scope, HOLD, [HOLD]))


async def refuse_held(store: Store, scope: Scope) -> None:
    """Raise NotAllowed if a user's data is on hold."""
    if await is_held(store, scope):
        raise NotAllowed("what is kept of this user is on hold: release it first, as an operator")


async def hold(store: Store, scope: Scope, *, on: bool, at: datetime) -> None:
    """Put a user's data on hold, or release it."""
    if on and not await is_held(store, scope):
        await store.write(scope, [Put(record=Record(kind=HOLD, id=HOLD, data={"since": at.isoformat()}))])
    elif not on:
        await store.write(scope, [Drop(kind=HOLD, id=HOLD)])


class Retention(Sweeper):
    """Destroys what is older than the retention rules allow."""

    def __init__(self, parts: Parts, rules: RetentionRules) -> None:
        self._parts, self._rules = parts, rules
        super().__init__(
            self.enforce if rules.days else None,
            after_s=_SWEEP_AFTER_S,
            every_s=_SWEEP_EVERY_S,
            later="what is too old is looked for",
            job="retention",
        )

    async def enforce(self, deployment: str | None = None) -> int:
        """Destroy what is too old now, in one deployment or in all; returns how many items."""
        if not self._rules.days:
            return 0
        gone = 0
        for scope in await self._parts.store.scopes(deployment):
            if scope.user is None:
                continue
            try:
                gone += await self._enforce(scope)
            except Exception as error:  # noqa: BLE001 - whatever a damaged record raises delays no other user
                log.warning("what is too old is not destroyed yet: %s", type(error).__name__)
        return gone

    async def _enforce(self, scope: Scope) -> int:
        from echoic.memory.erasure import Erasing

        if await is_held(self._parts.store, scope):
            return 0
        gone = 0
        candidates, _ = await self._by_age(scope, "conversations", CONVERSATION)
        for name in [record.id for record in candidates]:
            # looked at now, just before it is destroyed: the ones before it took their time
            if await self._over(scope, name):
                await Erasing(self._parts, scope).forget(None, name, None)
                gone += 1
        old, recent = await self._by_age(scope, "memories", MEMORY)
        if old:
            memories = [memory_of(record) for record in old]
            erasing = Erasing(self._parts, scope, spared=await self._spared(scope, memories, recent))
            await erasing.forget(None, None, None, memories=memories)
        return gone + len(old)

    async def _over(self, scope: Scope, conversation: str) -> bool:
        """Whether a conversation is too old: neither changed nor gone on with, by a turn or a result.

        A turn does not touch the conversation's record. The newest are read first, so that a conversation
        that goes on for years costs one page a sweep.
        """
        before = self._before(scope, "conversations")
        found = await self._parts.store.read(scope, CONVERSATION, [conversation])
        if before is None or not found or _touched(found[0]) >= before:
            return False
        for kind in (TURN, RESULT):
            after = -1
            while page := await self._parts.store.scan(
                scope, kind, key=conversation, after=after, limit=_PAGE, newest_first=True
            ):
                if any(_touched(record) >= before for record in page):
                    return False
                after = page[-1].seq
        return True

    async def _by_age(self, scope: Scope, name: str, kind: str) -> tuple[list[Record], list[Record]]:
        """The records of a kind that are older than the limit on `name`, and the others."""
        before = self._before(scope, name)
        if before is None:
            return [], []
        records = await scan_all(self._parts.store, scope, kind)
        return [r for r in records if _touched(r) < before], [r for r in records if _touched(r) >= before]

    def _before(self, scope: Scope, name: str) -> datetime | None:
        """What was touched last before this is too old; None: nothing is."""
        kept_for = self._rules.kept_for(scope.deployment, name)
        return None if kept_for is None else self._parts.clock() - kept_for

    async def _spared(
        self, scope: Scope, old: Sequence[Memory], recent: Sequence[Record]
    ) -> set[tuple[str, str]]:
        """What is not too old, and the turns that recent versions of the same keys were learned from."""
        keys = {memory.key for memory in old} - {None}
        versions = [memory for memory in map(memory_of, recent) if memory.key in keys]
        spared = {(TURN, turn) for memory in versions for turn in memory.source}
        spared |= {(MEMORY, record.id) for record in recent}
        for kind in (TURN, CONVERSATION, RESULT, ITEM, INDEXED_ITEM):
            _, younger = await self._by_age(scope, "memories", kind)
            spared |= {(kind, record.id) for record in younger}
        return spared


def _touched(record: Record) -> datetime:
    """When a record itself was said or changed last."""
    if record.kind == CONVERSATION:
        return conversation_of(record).updated_at
    if record.kind == TURN:
        return turn_of(record).said_at
    if record.kind == MEMORY:
        memory = memory_of(record)
        return memory.last_said_at or memory.valid_from
    return datetime.fromisoformat(record.data["at" if record.kind == RESULT else "updated_at"])
