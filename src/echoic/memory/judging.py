"""A second opinion on what may be global, asked for after the caller has been answered. Doubt means private.

What the rules would share is kept private first. Only if another classifier says global too, and the memory
is still what it was, does it become global, or a proposal. A process that dies meanwhile leaves it private.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from echoic.errors import EchoicError, WriteConflict
from echoic.memory.ledger import Ledger, memory_id
from echoic.memory.proposals import put_proposal
from echoic.memory.records import MEMORY, PROPOSAL, memory_of, record_of_memory
from echoic.memory.retry import until_written
from echoic.memory.runs import RunsPerUser, Wanted
from echoic.memory.sharing import Classifier, Shareable, Verdict, share
from echoic.stores.base import Drop, Put, Record, Store
from echoic.types import Memory, Scope

log = logging.getLogger(__name__)

RETRY_S = 30.0
ATTEMPTS = 3
"""How often a classifier that fails is asked about one memory; then it stays private until it is set
again."""
_KEPT_WITHIN_S = 5.0
"""How long to wait for the memory itself to be written: it is, right after it was classified."""


@dataclass(frozen=True, slots=True)
class Later:
    """A classifier of one user's memories: says private now, and has what may be global looked at again."""

    judge: Judge
    scope: Scope

    async def classify(self, text: str, key: str | None) -> Verdict:
        """Private; or the first classifier's reason where that says so too."""
        return await self.judge.first(self.scope, text, key)


class Judge:
    """Asks a second classifier, off the caller's path.

    Args:
        store: where memories are.
        first: decides at once; what it keeps private is asked no further.
        second: asked afterwards. May raise anything: the memory stays private.
        propose: whether what both share waits for an operator.
    """

    def __init__(self, store: Store, first: Classifier, second: Classifier, *, propose: bool) -> None:
        self._store = store
        self._first = first
        self._second = second
        self._propose = propose
        self._runs = RunsPerUser(self._judge)
        self._asked: dict[tuple[Scope, str], tuple[str, int]] = {}

    def of(self, scope: Scope) -> Later:
        """What classifies for this user."""
        return Later(self, scope)

    async def settle(self) -> None:
        """Wait until nothing is being judged."""
        await self._runs.settle()

    async def aclose(self) -> None:
        """End at once; what was not judged stays private. May be called twice."""
        await self._runs.stop()
        close = getattr(self._second, "aclose", None)  # one that has nothing to close has no such verb
        if close is not None:
            await close()

    async def first(self, scope: Scope, text: str, key: str | None) -> Verdict:
        """The verdict for now; what may be global is judged once more in the background."""
        verdict = await self._first.classify(text, key)
        if verdict.visibility == "private" or key is None or share(text, key, verdict=verdict) is None:
            return verdict
        self._asked[scope, key] = (text, 0)
        self._runs.want(scope, key)
        return Verdict("private", "doubt")

    async def _judge(self, scope: Scope, wanted: Wanted) -> Mapping[str, float]:
        later: dict[str, float] = {}
        for key in wanted:
            text, attempts = self._asked.pop((scope, key), ("", ATTEMPTS))
            if not text:  # it was set again, and judged since
                continue
            try:
                judged = await self._ask(scope, key, text)
            except Exception as error:  # noqa: BLE001 - whatever a model or its driver raises, it stays private
                log.warning("a memory stays private, its second judge failed: %s", type(error).__name__)
                judged = False
            if not judged and attempts + 1 < ATTEMPTS and (scope, key) not in self._asked:
                self._asked[scope, key] = (text, attempts + 1)
                later[key] = RETRY_S
        return later

    async def _ask(self, scope: Scope, key: str, text: str) -> bool:
        """Have one memory judged, and shared if it may be."""
        verdict = await self._second.classify(text, key)
        shareable = share(text, key, verdict=verdict)
        if shareable is not None:
            async with asyncio.timeout(_KEPT_WITHIN_S):
                record = await self._written(scope, key, text)
            await until_written(lambda: self._share(scope, record, shareable), f"key {key!r}")
        return True

    async def _written(self, scope: Scope, key: str, text: str) -> Record:
        while True:
            records = await self._store.scan(scope, MEMORY, key=key, limit=1, newest_first=True)
            if records and records[0].data["text"] == text:
                return records[0]
            await asyncio.sleep(0.02)

    async def _share(self, scope: Scope, record: Record, shareable: Shareable) -> None:
        own = memory_of(record)
        if not own.current or own.visibility != "private" or own.author != scope.user:
            return
        shared = replace(own, text=shareable.text, redacted=shareable.kinds, statement=None, source=())
        if self._propose:
            await self._hand_in(scope, record, shared)
        else:
            await self._publish(scope, record, shared)

    async def _hand_in(self, scope: Scope, record: Record, shared: Memory) -> None:
        name = memory_id(scope.user or "", shared.key or "")
        proposal = replace(shared, id=name, visibility="proposed")
        await self._store.write(scope.everyone, [put_proposal(proposal)])
        data = {**record.data, "visibility": "proposed"}
        await self._unless_changed(
            scope, Put(record=replace(record, data=data), expect=record.version), PROPOSAL, name
        )

    async def _publish(self, scope: Scope, record: Record, shared: Memory) -> None:
        ledger = Ledger(self._store, scope.everyone)
        kept = await ledger.set(replace(shared, visibility="global", supersedes=None))
        await self._store.write(scope.everyone, ledger.changes)
        own = record_of_memory(replace(memory_of(record), valid_until=shared.valid_from))
        ended = replace(record, data={**own.data, "number": record.data.get("number", 0)})
        await self._unless_changed(scope, Put(record=ended, expect=record.version), MEMORY, kept.id)

    async def _unless_changed(self, scope: Scope, own: Put, kind: str, name: str) -> None:
        """Note in the user's own memory that it is shared; if they changed it meanwhile, it never was."""
        try:
            await self._store.write(scope, [own])
        except EchoicError as error:
            await self._store.erase(scope.everyone, [Drop(kind=kind, id=name)])
            if not isinstance(error, WriteConflict):
                raise


__all__ = ["Judge", "Later"]
