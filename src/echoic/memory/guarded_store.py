"""The store that the service's other parts use: masked, with consent, within quotas, traced and counted.

It refuses what a quota forbids, and calls from another event loop than the service's. Usage is counted, not
looked up at each write: a user's records are read when this process first adds to them, and again after it
added a tenth of the limit. So a single process never exceeds a quota. With several processes each may miss
what the others wrote since its last count: together they exceed it by at most a tenth for each process beyond
the first. A deployment is counted in the background. Before a write is refused, the user is counted again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakValueDictionary

from echoic.errors import InvalidInput, NotOpen, QuotaExceeded, StoreError, brief
from echoic.memory.compliance import MARKS, forgetting
from echoic.memory.consent import CONSENT, admitted
from echoic.memory.hooks import CallWritten, Hooks
from echoic.memory.profile import DIRECTIVES
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    EXCHANGE,
    EXPERIENCE,
    INDEXED_ITEM,
    ITEM,
    MEMORY,
    PROPOSAL,
    RESULT,
    TURN,
)
from echoic.memory.telemetry import Telemetry
from echoic.memory.write_filter import WriteFilter
from echoic.stores.base import Change, Drop, Erasable, Erased, Put, Record, Store
from echoic.types import Scope

if TYPE_CHECKING:
    from echoic.memory.audit import AuditLog
    from echoic.memory.compliance import Compliance

log = logging.getLogger(__name__)

_ADDS: Final = (MEMORY, TURN, CONVERSATION, RESULT, PROPOSAL, EXPERIENCE, ITEM, INDEXED_ITEM, *CALL_PARTS)
"""Kinds whose records accumulate; a new one counts. Changes that correct, end or mark records do not."""
_GROW: Final = (CONVERSATION, ITEM, INDEXED_ITEM, DIRECTIVES)
"""Kinds whose records gain text in place; a change counts if it adds more than `_MARK_BYTES`."""
_COUNTED: Final = (*_ADDS, CHECKPOINT, DIRECTIVES)
_RECORD_BYTES: Final = 100
"""Bytes counted for a record besides its text: its names, version and position."""
_MARK_BYTES: Final = 500
"""Bytes by which a record may grow when it is marked as read, ended or completed, or by
which whoever is full may still correct an item or a directive."""
_USERS: Final = 10_000
"""Users whose counts are kept; the one that has not written for longest is dropped."""
_AGAIN_S: Final = 30.0
"""Seconds after a refusal before usage is counted again, since others may have removed something."""
_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of what may be stored; None: no limit.

    Bytes are those of the stored text, plus 100 for each record. Vectors and indexes are not counted.

    Raises:
        InvalidInput: a limit is no whole number from 1.
    """

    user_memories: int | None = None
    """Memories of one user, including earlier versions."""
    user_bytes: int | None = None
    """Bytes stored for one user: memories, turns, results, records of calls."""
    deployment_bytes: int | None = None
    """Bytes stored for all users of a deployment together, including global memories."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidInput(
                    f"{field.name} must be a whole number from 1, or None for no limit, not {brief(value)}"
                )


@dataclass(slots=True)
class _Tally:
    """The usage of one user or deployment."""

    memories: int = 0
    bytes: int = 0
    pending_memories: int = 0
    pending_bytes: int = 0
    """Bytes being written, which a count may not include yet."""
    since_bytes: int = 0
    """Bytes written here since the last count."""
    since_memories: int = 0
    counted_at: float = 0.0

    def add(self, more: _Tally, times: int = 1) -> None:
        self.memories += times * more.memories
        self.bytes += times * more.bytes
        self.pending_memories += times * more.memories
        self.pending_bytes += times * more.bytes
        self.since_bytes += times * more.bytes
        self.since_memories += times * more.memories

    def settle(self, more: _Tally) -> None:
        self.pending_memories -= more.memories
        self.pending_bytes -= more.bytes


class Meter:
    """Counts what is stored, and refuses writes beyond the quota."""

    def __init__(self, store: Store, quota: Quota) -> None:
        self._store = store
        self._quota = quota
        self._users: OrderedDict[Scope, _Tally] = OrderedDict()
        self._counting: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._deployments: dict[str, _Tally] = {}
        self._behind: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        """Deployments from which something was removed since their count began."""

    @asynccontextmanager
    async def writing(self, scope: Scope, changes: Sequence[Change]) -> AsyncIterator[None]:
        """Count `changes`, which are written inside, unless that fails; QuotaExceeded beyond a limit."""
        more = _growth(changes)
        charged: list[_Tally] = []
        await self.admit(scope, changes)
        for tally in (self._users.get(scope), self._deployments.get(scope.deployment)):
            if tally is not None:
                tally.add(more)
                charged.append(tally)
        try:
            yield
        except BaseException:
            for tally in charged:
                tally.add(more, -1)
            raise
        for tally in charged:
            tally.settle(more)

    async def admit(self, scope: Scope, changes: Sequence[Change]) -> None:
        """Raise QuotaExceeded if `changes` would exceed a limit; counts nothing."""
        if any(_adds(change) for change in _added(changes)):
            more = _growth(changes)
            await self._admit_user(scope, more)
            self._admit_in_deployment(scope, more)

    def removed(self, scope: Scope) -> None:
        """Note that something in `scope` was destroyed, so that its usage is counted again."""
        self._users.pop(scope, None)
        if scope.deployment in self._deployments:
            self._again.add(scope.deployment)
            self._count_behind(scope.deployment)

    async def aclose(self) -> None:
        """Stop counting. May be called twice."""
        tasks = list(self._behind.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- a user

    async def _admit_user(self, scope: Scope, more: _Tally) -> None:
        quota = self._quota
        if scope.user is None or (quota.user_memories is None and quota.user_bytes is None):
            return
        # concurrent writers wait for the same count; its lock exists while anybody waits for it
        lock = self._counting.setdefault(scope, asyncio.Lock())
        async with lock:
            tally = self._users.get(scope)
            if tally is None or self._is_old(tally) or self._may_have_shrunk(tally, more):
                tally = await self._counted(scope, tally)
        self._users.move_to_end(scope)
        wrong = self._too_much(tally, more)
        if wrong:
            raise QuotaExceeded(wrong)

    def _is_old(self, tally: _Tally) -> bool:
        """Whether so much was added here that others may have added as much."""
        most, memories = self._quota.user_bytes, self._quota.user_memories
        return (most is not None and tally.since_bytes * 10 >= most) or (
            memories is not None and tally.since_memories * 10 >= memories
        )

    def _may_have_shrunk(self, tally: _Tally, more: _Tally) -> bool:
        """Whether a refusal may be wrong, because something was removed or replaced."""
        if not self._too_much(tally, more):
            return False
        counted = _Tally(
            memories=tally.memories - tally.since_memories, bytes=tally.bytes - tally.since_bytes
        )
        return time.monotonic() - tally.counted_at >= _AGAIN_S or not self._too_much(counted, more)

    def _too_much(self, tally: _Tally, more: _Tally) -> str:
        """The limit that `more` would exceed; empty if none."""
        quota = self._quota
        out = "nothing was written. Forget something, or have the operator raise the quota"
        most = quota.user_memories
        if most is not None and more.memories > 0 and tally.memories + more.memories > most:
            return f"this user may have {most} memories, with earlier versions, and has them; {out}"
        if quota.user_bytes is not None and tally.bytes + more.bytes > quota.user_bytes:
            return (
                f"this user may have {quota.user_bytes} bytes, has {tally.bytes}, and {more.bytes} more are "
                f"too many; {out}"
            )
        return ""

    async def _counted(self, scope: Scope, tally: _Tally | None) -> _Tally:
        """A new count; writes in progress go on to settle `tally`."""
        tally = tally or _Tally()
        memories = tally.pending_memories - tally.since_memories
        size = tally.pending_bytes - tally.since_bytes
        found = await self._count(scope)
        # what was written during the count may be included or not: add it; at worst it is too high
        tally.since_memories += memories
        tally.since_bytes += size
        tally.memories = found.memories + tally.since_memories
        tally.bytes = found.bytes + tally.since_bytes
        tally.counted_at = time.monotonic()
        self._users[scope] = tally
        while len(self._users) > _USERS:
            self._users.popitem(last=False)
        return tally

    async def _count(self, scope: Scope) -> _Tally:
        tally = _Tally()
        for kind in _COUNTED:
            after = -1
            while page := await self._store.scan(scope, kind, after=after, limit=_PAGE):
                tally.bytes += sum(_bytes_of(record) for record in page)
                tally.memories += len(page) if kind == MEMORY else 0
                after = page[-1].seq
                if len(page) < _PAGE:
                    break
        return tally

    # -- a deployment

    def _admit_in_deployment(self, scope: Scope, more: _Tally) -> None:
        most = self._quota.deployment_bytes
        if most is None:
            return
        tally = self._deployments.get(scope.deployment)
        if tally is None:
            self._count_behind(scope.deployment)
            return
        is_full = tally.bytes + more.bytes > most
        if tally.since_bytes * 10 >= most or (is_full and time.monotonic() - tally.counted_at >= _AGAIN_S):
            self._count_behind(scope.deployment)
        if is_full:
            raise QuotaExceeded(
                f"this deployment may have {most} bytes and has them; nothing was written. Its operator may "
                "raise the quota, or have old conversations forgotten"
            )

    def _count_behind(self, deployment: str) -> None:
        if deployment not in self._behind or self._behind[deployment].done():
            self._behind[deployment] = asyncio.create_task(self._count_until_settled(deployment))

    async def _count_until_settled(self, deployment: str) -> None:
        await self._count_deployment(deployment)
        while deployment in self._again:
            await self._count_deployment(deployment)

    async def _count_deployment(self, deployment: str) -> None:
        self._again.discard(deployment)
        tally = self._deployments.get(deployment, _Tally())
        written, found = tally.since_bytes, 0
        try:
            for scope in await self._store.scopes(deployment):
                found += (await self._count(scope)).bytes
                await asyncio.sleep(0)  # let queries run in between
        except StoreError:
            return  # the next write starts another count
        # what was added meanwhile may be included or not: add it
        tally.since_bytes -= written
        tally.bytes = found + tally.since_bytes
        tally.counted_at = time.monotonic()
        self._deployments[deployment] = tally


def _adds(change: Change) -> bool:
    """Whether `change` counts: a new record of a counted kind, or one that gains text, such as a summary."""
    if not isinstance(change, Put):
        return False
    if change.record.kind in _ADDS and not change.expect:
        return True
    return change.record.kind in _GROW and _growth([change]).bytes > _MARK_BYTES


def _added(changes: Sequence[Change]) -> list[Change]:
    """`changes` without records that are dropped and put again in the same write, which moves them."""
    dropped = {(change.kind, change.id) for change in changes if isinstance(change, Drop)}
    return [c for c in changes if not isinstance(c, Put) or (c.record.kind, c.record.id) not in dropped]


def _growth(changes: Sequence[Change]) -> _Tally:
    """By how much `changes` increase usage; what they free is noticed at the next count."""
    more = _Tally()
    for change in _added(changes):
        if not isinstance(change, Put) or change.record.kind not in _COUNTED:
            continue
        more.bytes += _bytes_of(change.record)
        if change.expect:
            # its size as read, if the writer knows it; else assume the same size
            old = change.was if change.was is not None else change.record.data
            more.bytes -= _RECORD_BYTES + _bytes_in(old)
        elif change.record.kind == MEMORY:
            more.memories += 1
    return more


def _bytes_of(record: Record) -> int:
    return _RECORD_BYTES + _bytes_in(record.data)


def _bytes_in(data: object) -> int:
    return len(json.dumps(data, ensure_ascii=False, default=str).encode(errors="replace"))


_WAY_OUT = (
    "Open it inside the loop that uses it, as in `async with echoic.open(…) as memory:`, "
    "or use echoic.sync, which works from any thread."
)


class HomeLoop:
    """The event loop a service is open in; a call from another loop raises NotOpen.

    Without this check such a call would seem to work: its write is durable, but the tasks that embed it and
    learn from it run in the other loop and would never be woken.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def ended(self) -> bool:
        """Whether the loop is closed, so that nothing in it can be awaited."""
        return self._loop is not None and self._loop.is_closed()

    def enter(self) -> bool:
        """Make the running loop the home; returns whether it was not. NotOpen if another is."""
        self.check()
        entered, self._loop = self._loop is None, asyncio.get_running_loop()
        return entered

    def leave(self) -> None:
        """Forget the home loop; the next loop that opens the store becomes it."""
        self._loop = None

    def check_open(self) -> None:
        """Raise NotOpen if the running loop is not the home, or there is no home."""
        if self._loop is None:
            raise NotOpen("this memory is not open. " + _WAY_OUT)
        self.check()

    def check(self) -> None:
        """Raise NotOpen if the running loop, if any, is not the home."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._loop is None or self._loop is running:
            return
        if self.ended:
            raise NotOpen(
                "the event loop of this memory has ended, and with it the tasks that embed and learn. "
                + _WAY_OUT
            )
        raise NotOpen("this memory was opened in another event loop and only works in that one. " + _WAY_OUT)


class ObservedStore:
    """Wraps `store`: writes are masked by `write_filter`, checked against a `meter`, traced and counted.

    Its methods must be called on the event loop `home`. Erasures are listed in `compliance` and every access
    in `audit`. `written` is called with the scope after each write; `hooks` receive the writes of calls.
    """

    def __init__(
        self,
        store: Store,
        telemetry: Telemetry,
        write_filter: WriteFilter,
        meter: Meter | None,
        home: HomeLoop,
        *,
        compliance: Compliance | None,
        audit: AuditLog | None,
        written: Callable[[Scope], None],
        hooks: Hooks,
    ) -> None:
        self._observed: Any = store
        self._hooks = hooks
        self._written = written
        self._audit = audit
        self._compliance = compliance
        self._telemetry = telemetry
        self._write_filter = write_filter
        self._meter = meter
        self._home = home

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._observed, name)
        if not callable(found):
            return found

        def verb(*args: Any, **kwargs: Any) -> Any:
            # checked on the call: code that passes the method on, as echoic.sync does, may be in another loop
            self._home.check()
            if self._audit is not None and name in _READS and args[1:2] != (CONSENT,):
                scope = args[0] if args else kwargs["scope"]
                self._audit.note("read", scope, args[1] if name == "read" else "memory and turn")
            if self._audit is not None and name == "latest":
                for scope in dict.fromkeys(scope for scope, _ in args[1]):
                    self._audit.note("read", scope, args[0])
            return found(*args, **kwargs)

        return verb

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        self._home.check()
        prepared = await self._write_filter.prepare(scope, changes)
        allowed = await admitted(self._observed, scope, prepared)
        if len(allowed) < len(prepared):
            prepared[:] = allowed  # the caller of a prepared write sees what was left out
            if not allowed:
                return
        if self._audit is not None:
            for kind in {c.record.kind if isinstance(c, Put) else c.kind for c in prepared if _alters(c)}:
                self._audit.note("write", scope, kind)
        with self._telemetry.operation("write", scope) as doing:
            doing.count = len(prepared)
            doing.attributes = {"changes": doing.count}
            async with self._meter.writing(scope, prepared) if self._meter else nullcontext():
                if self._compliance is not None:
                    await self._compliance.catch_up(self._observed, scope)
                await self._observed.write(scope, prepared)
        self._written(scope)
        for change in prepared:
            if isinstance(change, Put) and change.record.kind in {TURN, EXCHANGE}:
                self._hooks.emit(CallWritten(scope=scope, record=change.record))
        if prepared.rewritten:
            try:
                await self._observed.erase(scope, [])  # removes only the bytes of what was replaced
            except StoreError as error:  # the write is kept; the next erasure removes the old bytes
                log.warning("what was masked later has not left the bytes yet: %s", type(error).__name__)

    async def scan(self, scope: Scope, kind: str, *, key: str | None = None, **options: Any) -> list[Record]:
        self._home.check()
        # all of these are stored under a memory's key
        if key is not None and kind in {MEMORY, PROPOSAL, "judgement"}:
            key = self._write_filter.key(key)
        if self._audit is not None:
            self._audit.note("read", scope, kind)
        return cast("list[Record]", await self._observed.scan(scope, kind, key=key, **options))

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        self._home.check()
        self._write_filter.forget(scope)
        if self._audit is not None:
            await self._note_erasure(scope, changes)
        # before it: words that are delivered again meanwhile must not come back either
        if marks := forgetting(scope, changes, datetime.now(UTC)):
            await self._observed.write(MARKS, marks)
        try:
            if self._compliance is not None:
                return await self._compliance.erase(self._observed, scope, changes)
            return cast("Erased", await self._observed.erase(scope, changes))
        finally:
            if self._meter is not None:
                self._meter.removed(scope)

    async def _note_erasure(self, scope: Scope, changes: Sequence[Erasable] | None) -> None:
        """Log an erasure before it happens: if it cannot be logged, nothing is destroyed."""
        assert self._audit is not None
        kinds = {c.record.kind if isinstance(c, Put) else c.kind for c in changes or ()}
        for kind in kinds if changes is not None else {"everything"}:
            self._audit.note("erase", scope, kind)
        await self._audit.flush()


_READS: Final = frozenset({"read", "rows", "load", "narrow"})


def _alters(change: Change) -> bool:
    """Whether it changes stored content: vectors and conditions do not."""
    return isinstance(change, Put | Drop)
