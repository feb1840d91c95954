"""A language model's word on what may be global, asked after the caller was answered. Doubt means private.

What is not personal is kept private first, and in the same write a record says that it waits for its
judgement. Only if the model says global, and the memory is still what it was, does it become global, or a
proposal. A process that dies meanwhile leaves it private and waiting; the next one goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from echoic.errors import EchoicError, WriteConflict, brief
from echoic.memory.audit import working
from echoic.memory.concurrency import RunsPerUser, Sweeper, Wanted, until_written
from echoic.memory.consent import from_what_is_kept
from echoic.memory.distilling.progress import Leases
from echoic.memory.proposals import is_global_by_itself, put_proposal, still_proposed
from echoic.memory.records import MEMORY, PROPOSAL, Ledger, memory_id, memory_of, record_of_memory, scan_all
from echoic.memory.sharing import Classifier, Shareable, Verdict, weigh
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Memory, Scope

log = logging.getLogger(__name__)

JUDGEMENT = "judgement"
"""The kind of what waits to be judged: under the memory's id and key, how often it was tried. No text."""
RETRY_S = 30.0
ATTEMPTS = 3
"""How often a classifier that fails is asked about one memory; then it stays private until it is set
again."""
ANSWER_S = 60.0
"""How long one answer may take, whatever the classifier itself allows."""
_LEASE_S = 2 * ANSWER_S
_HELD_FOR = "judge"
AGREED = "agreed"
"""Noted before anything is shared: what is then half shared is shared whole, whatever it would say today."""
_AGAIN_S = 0.05
SWEEP_AFTER_S = 2.0
"""When to look for what an earlier process left waiting: not in a command that is over by then."""


def waits(memory: Memory) -> Put:
    """The change that has `memory` judged, to be written together with it."""
    return Put(record=Record(kind=JUDGEMENT, id=memory.id, key=memory.key, data={}))


@dataclass(frozen=True, slots=True)
class _Case:
    """A memory that is being judged."""

    scope: Scope
    record: Record
    """The memory's record, as it was read."""
    waiting: Record
    """The record that its judgement waits in."""

    @property
    def memory(self) -> Memory:
        return memory_of(self.record)

    @property
    def closed(self) -> Drop:
        """The change that ends the waiting."""
        return Drop(kind=JUDGEMENT, id=self.record.id)


class Judge(Sweeper):
    """Asks a second classifier, off the caller's path.

    Args:
        store: where memories are.
        second: asked about what the rules share. May raise anything: the memory stays private.
        global_kinds: what both share is global by itself if it states nothing else.
        clock: the time, aware.
        worker: the name of this process, unlike any other's.
    """

    def __init__(
        self,
        store: Store,
        second: Classifier,
        *,
        global_kinds: frozenset[str],
        clock: Callable[[], datetime],
        worker: str,
    ) -> None:
        self._store = store
        self._second = second
        self._global_kinds = global_kinds
        self._clock = clock
        self._leases = Leases(store, worker, clock)
        self._runs = RunsPerUser(self._judge)
        super().__init__(
            self.take_up, after_s=SWEEP_AFTER_S, later="what waits to be judged is looked for", job="judging"
        )

    def start(self) -> None:
        """Begin, and look at what an earlier process left waiting."""
        if self._sweeping is None:
            self._runs = RunsPerUser(self._judge)  # those of before may belong to a loop that has ended
        super().start()

    def want(self, scope: Scope, memory: str) -> None:
        """Have the memory of this id judged, behind the caller's back."""
        self._runs.want(scope, memory)

    async def take_up(self, deployment: str | None = None) -> int:
        """Have everything judged that waits and may be asked about now; how many memories that is.

        Raises:
            StoreUnavailable: could not look.
        """
        now, found = self._clock(), 0
        for scope in await self._store.scopes(deployment):
            for record in await scan_all(self._store, scope, JUDGEMENT):
                if _due(record, now):
                    self.want(scope, record.id)
                    found += 1
        return found

    async def settle(self) -> None:
        """Wait until nothing is being judged."""
        await self._runs.settle()

    async def aclose(self) -> None:
        """End at once; what was not judged waits in the store. May be called twice."""
        await super().aclose()
        await self._runs.stop()
        close: Callable[[], Awaitable[None]] | None = getattr(self._second, "aclose", None)
        if close is not None:  # one that has nothing to close has no such verb
            await close()

    async def _judge(self, scope: Scope, wanted: Wanted) -> Mapping[str, float]:
        working("judging")
        later: dict[str, float] = {}
        for name in wanted:
            try:
                again_s = await self._leased(scope, name)
            except Exception as error:  # noqa: BLE001 - the outermost frame: one memory ends no other's judging
                log.warning("%s: a memory waits to be judged", type(error).__name__)
                again_s = RETRY_S
            if again_s:
                later[name] = again_s
        return later

    async def _leased(self, scope: Scope, name: str) -> float:
        """Judge one memory unless another process is at it; in how many seconds to look again, 0: never."""
        waiting = await self._store.read(scope, JUDGEMENT, [name])
        if not waiting:  # judged by another, or forgotten
            return 0.0
        standing = Put.over(waiting[0], waiting[0])
        busy_s = await self._leases.take(scope, _HELD_FOR, _LEASE_S, standing=standing)
        if busy_s:
            return busy_s
        try:
            return await self._decide(scope, name)
        finally:
            await self._leases.give_back(scope, _HELD_FOR)

    async def _decide(self, scope: Scope, name: str) -> float:
        waiting = await self._store.read(scope, JUDGEMENT, [name])
        found = await self._store.read(scope, MEMORY, [name])
        if not (waiting and found and _is_open(found[0], scope)):
            # forgotten, taken back, set again or shared since
            await self._store.write(scope, [Drop(kind=JUDGEMENT, id=name)])
            return 0.0
        case = _Case(scope, found[0], waiting[0])
        try:
            verdict = await self._asked(case)
        except Exception as error:  # noqa: BLE001 - whatever a model or its driver raises, it stays private
            return await self._failed(case, type(error).__name__)
        weighed = weigh(case.memory.text, case.memory.key, verdict=verdict)
        if isinstance(weighed, Verdict):
            await self._kept_private(case, weighed.reason)
            return 0.0
        if not await self._noted(case, {AGREED: verdict.reason}):
            return _AGAIN_S
        with from_what_is_kept():
            await until_written(lambda: self._share(case, weighed), f"key {brief(case.record.key)}")
        return 0.0

    async def _asked(self, case: _Case) -> Verdict:
        """The second classifier's verdict; the one it gave before, where a process died after that."""
        agreed = case.waiting.data.get(AGREED)
        if agreed is not None:
            return Verdict("global", agreed)
        async with asyncio.timeout(ANSWER_S):
            return await self._second.classify(case.memory.text, case.memory.key)

    async def _failed(self, case: _Case, reason: str) -> float:
        """Note that nobody could judge it; in how many seconds to ask again, 0: never."""
        attempts = case.waiting.data.get("attempts", 0) + 1
        log.warning("a memory stays private, its second judge failed (%d): %s", attempts, reason)
        if attempts >= ATTEMPTS:
            await self._kept_private(case, "failed")
            return 0.0
        retry_at = self._clock() + timedelta(seconds=RETRY_S)
        noted = await self._noted(case, {"attempts": attempts, "retry_at": retry_at.isoformat()})
        return RETRY_S if noted else _AGAIN_S

    async def _kept_private(self, case: _Case, reason: str) -> None:
        """Say in the memory why it stays private; nothing, where it was set again or forgotten meanwhile."""
        own = replace(case.record, data={**case.record.data, "reason": reason})
        try:
            await self._store.write(case.scope, [Put.over(case.record, own), case.closed])
        except WriteConflict:
            await self._store.write(case.scope, [case.closed])

    async def _noted(self, case: _Case, data: Mapping[str, Any]) -> bool:
        """Write `data` into what waits; False if it was set again or forgotten in this moment."""
        try:
            await self._store.write(case.scope, [Put.over(case.waiting, replace(case.waiting, data=data))])
        except WriteConflict:
            return False
        return True

    async def _share(self, case: _Case, shareable: Shareable) -> None:
        shared = replace(
            case.memory,
            text=shareable.text,
            redacted=shareable.kinds,
            statement=None,
            context=None,  # free text that nobody judged
            source=(),
            reason=shareable.reason,
        )
        if await is_global_by_itself(self._store, case.scope.everyone, shareable, self._global_kinds):
            await self._publish(case, shared)
        else:
            await self._hand_in(case, shared)

    async def _hand_in(self, case: _Case, shared: Memory) -> None:
        name = memory_id(case.scope.user or "", shared.key or "")
        proposal = replace(shared, id=name, visibility="proposed")
        await self._store.write(case.scope.everyone, [put_proposal(proposal)])
        data = {**case.record.data, "visibility": "proposed", "reason": shared.reason}
        await self._unless_changed(case, replace(case.record, data=data), PROPOSAL, name)
        await still_proposed(self._store, case.scope, case.memory, name)

    async def _publish(self, case: _Case, shared: Memory) -> None:
        ledger = Ledger(self._store, case.scope.everyone)
        kept = await ledger.set(replace(shared, visibility="global", supersedes=None))
        changes: list[Change] = ledger.changes
        if changes:  # else it is there: a process died before it could note that here
            await self._store.write(case.scope.everyone, changes)
        own = record_of_memory(replace(case.memory, valid_until=shared.valid_from, visibility="global"))
        ended = replace(case.record, data={**own.data, "number": case.record.data.get("number", 0)})
        await self._unless_changed(case, ended, MEMORY, kept.id)

    async def _unless_changed(self, case: _Case, own: Record, kind: str, name: str) -> None:
        """Note in the user's own memory that it is shared; if they changed it meanwhile, it never was."""
        try:
            await self._store.write(case.scope, [Put.over(case.record, own), case.closed])
        except EchoicError as error:
            if not isinstance(error, WriteConflict):
                raise  # it goes on waiting, and is shared again to the same end
            await self._taken_back(case, own, kind, name)

    async def _taken_back(self, case: _Case, own: Record, kind: str, name: str) -> None:
        now = await self._store.read(case.scope, MEMORY, [case.record.id])
        if now and now[0].data.get("visibility") == own.data["visibility"]:
            return  # another process shared it in this moment
        await self._store.erase(case.scope.everyone, [Drop(kind=kind, id=name)])
        await self._store.write(case.scope, [case.closed])


def _is_open(record: Record, scope: Scope) -> bool:
    memory = memory_of(record)
    return memory.current and memory.visibility == "private" and memory.author == scope.user


def _due(record: Record, now: datetime) -> bool:
    retry_at = record.data.get("retry_at")
    return retry_at is None or datetime.fromisoformat(retry_at) <= now
