"""Proposals for global memory: those waiting for an operator, and those waiting for a model's verdict.

Operators decide about what they read. A caller may propose another text under the same key at any time, so
the id that an operator sees includes the wording: a decision about another wording is refused.

A decision concerns two scopes, and no write spans both. So it is first noted in the proposal, in one write
with what becomes global; then the author's own copy is updated, and then the proposal is removed. If a
process stops half way, deciding again or listing finishes it.

A language model is asked after the caller was answered (`Judge`). Text that is not personal is stored
privately first, and the same write records that it is pending. Only if the model says global, and the memory
is unchanged, does it become global, or a proposal; in doubt it stays private. If the process dies, it stays
private and pending, and the next process continues.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from echoic.errors import InvalidInput, StoreError, WriteConflict, brief
from echoic.memory.audit import working
from echoic.memory.concurrency import RunsPerUser, Sweeper, Wanted, until_written
from echoic.memory.consent import from_what_is_kept
from echoic.memory.extraction.model_reader import Leases
from echoic.memory.records import MEMORY, PROPOSAL, Ledger, memory_id, memory_of, record_of_memory, scan_all
from echoic.memory.sharing import Classifier, Shareable, Verdict, weigh
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import Memory, Scope, checked_name

log = logging.getLogger(__name__)

DECISION: Final = "decision"
_NAMELESS: Final = "operator"

Decided = Literal["approved", "rejected", "withdrawn", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision of an operator."""

    what: Decided
    of: Literal["fact", "lesson"]
    key: str
    """The key of a fact, the agent of a lesson."""
    text: str | None
    """The text decided about; None if it was rejected, since that is destroyed."""
    by: str
    at: datetime
    """When (aware, UTC)."""


def put_decision(decision: Decision) -> Put:
    """The change that stores `decision`, to be written together with its effect."""
    data: dict[str, Any] = {
        "what": decision.what,
        "of": decision.of,
        "agent": decision.key if decision.of == "lesson" else None,
        "text": decision.text,
        "by": decision.by,
        "at": decision.at.isoformat(),
    }
    name = memory_id(DECISION, decision.of, decision.key, decision.what, decision.text or "", data["at"])
    kept = {field: value for field, value in data.items() if value is not None}
    key = decision.key if decision.of == "fact" else None
    return Put(record=Record(kind=DECISION, id=name, key=key, data=kept))


async def decisions(store: Store, everyone: Scope) -> list[Decision]:
    """All decisions of a deployment, oldest first."""
    return [_decision_of(record) for record in await scan_all(store, everyone, DECISION)]


async def is_decided(store: Store, everyone: Scope, key: str) -> bool:
    """Whether only an operator decides under `key`: they last wrote, rejected or withdrew it."""
    last = await store.scan(everyone, DECISION, key=key, limit=1, newest_first=True)
    return bool(last) and last[0].data["what"] != "approved"


async def others_ended(ledger: Ledger, memory: Memory) -> bool:
    """End what callers made global under the key of `memory`; returns whether there was anything."""
    if memory.key is None:
        return False
    there = await scan_all(ledger.store, ledger.scope, MEMORY, key=memory.key)
    theirs = [known for record in there if (known := memory_of(record)).current and known.author]
    return any([await ledger.end(known.id, memory.valid_from) for known in theirs])


def decider(by: str | None) -> str:
    """The name of the operator who decides, or a placeholder; InvalidInput if it is not valid."""
    return _NAMELESS if by is None else checked_name(by, "by")


def _decision_of(record: Record) -> Decision:
    data = record.data
    return Decision(
        what=data["what"],
        of=data["of"],
        key=record.key if record.key is not None else data.get("agent", ""),
        text=data.get("text"),
        by=data["by"],
        at=datetime.fromisoformat(data["at"]),
    )


DECIDED: Final = "decided"
"""Field of a decided proposal, until its author's own copy is updated: the id of what became global, or
`REJECTED`."""
REJECTED: Final = ""


class Proposals:
    """The proposals of one deployment. A proposal holds the redacted text only."""

    def __init__(self, store: Store, everyone: Scope, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._everyone = everyone
        self._clock = clock

    async def list(self, limit: int = 1000) -> list[Memory]:
        """The pending proposals, oldest first. Each id includes the wording."""
        records = await self._store.scan(self._everyone, PROPOSAL, limit=limit)
        waiting = [record for record in records if DECIDED not in record.data]
        for record in records:
            if DECIDED in record.data:  # the process that decided did not finish
                await finish_if_possible(self._store, self._everyone, record.id)
        return [replace(memory_of(record), id=_shown(record)) for record in waiting]

    async def approve(self, proposal_id: str, *, by: str | None = None) -> Memory:
        """Make a proposal global, replacing what was approved under its key before.

        It becomes the deployment's own: its author is no longer recorded and can no longer change it.

        Args:
            proposal_id: an id from `list`.
            by: who decides, for `decisions`.

        Raises:
            InvalidInput: there is no such proposal (any more), or its author changed it since it was listed.
            StoreUnavailable: approve it again; no step is done twice.
        """
        by = decider(by)

        async def attempt() -> Memory:
            waiting = await self._read(proposal_id, rejecting=False)
            return await self._adopted(waiting) or await self._adopt(waiting, by)

        approved = await until_written(attempt, "the key of a proposal")
        await _finish(self._store, self._everyone, _stored(proposal_id))
        return approved

    async def reject(self, proposal_id: str, *, by: str | None = None) -> None:
        """Reject a proposal; its author keeps it as a private memory. Otherwise as `approve`."""
        by = decider(by)

        async def attempt() -> None:
            waiting = await self._read(proposal_id, rejecting=True)
            if DECIDED not in waiting.data:
                noted = self._noted("rejected", memory_of(waiting).key or "", None, by)
                await self._store.write(self._everyone, [_decided(waiting, REJECTED), noted])

        await until_written(attempt, "the proposal")
        await _finish(self._store, self._everyone, _stored(proposal_id))

    async def decisions(self) -> Sequence[Decision]:
        """Everything operators decided in this deployment about facts and lessons, oldest first."""
        return await decisions(self._store, self._everyone)

    def _noted(self, what: Decided, key: str, text: str | None, by: str) -> Put:
        return put_decision(Decision(what=what, of="fact", key=key, text=text, by=by, at=self._clock()))

    async def _adopt(self, waiting: Record, by: str) -> Memory:
        """Make the proposal global as it was read, or raise WriteConflict."""
        proposal = memory_of(waiting)
        ledger = Ledger(self._store, self._everyone)
        adopted = Memory(
            id="",
            key=proposal.key,
            text=proposal.text,
            category=proposal.category,
            visibility="global",
            valid_from=self._clock(),
            redacted=proposal.redacted,
            reason=proposal.reason,
        )
        await others_ended(ledger, adopted)  # callers may have made another value global by themselves
        approved = await ledger.set(adopted)
        noted = self._noted("approved", approved.key or "", approved.text, by)
        await self._store.write(self._everyone, [_decided(waiting, approved.id), *ledger.changes, noted])
        return approved

    async def _adopted(self, decided: Record) -> Memory | None:
        """The global memory made from it; None if there is none yet."""
        name = decided.data.get(DECIDED)
        records = await self._store.read(self._everyone, MEMORY, [name]) if name else ()
        return memory_of(records[0]) if records else None

    async def _read(self, proposal_id: str, *, rejecting: bool) -> Record:
        """The proposal; the same decision about it may have been made already."""
        stored = _stored(proposal_id)
        records = await self._store.read(self._everyone, PROPOSAL, [stored]) if stored else ()
        decided = records[0].data.get(DECIDED) if records else None
        if not records or (decided is not None and rejecting != (decided == REJECTED)):
            raise InvalidInput(f"there is no proposal {brief(proposal_id)}; `echoic proposals` lists them")
        if _shown(records[0]) != proposal_id:
            raise InvalidInput(
                f"proposal {brief(proposal_id)} was changed by its author: "
                "`echoic proposals` lists what it is now"
            )
        return records[0]


async def _finish(store: Store, everyone: Scope, name: str) -> None:
    """Update the author's own copy, and remove the proposal.

    If the author withdrew it or proposed another text since the decision, their copy is right already.
    """
    decided = await store.read(everyone, PROPOSAL, [name])
    if not decided or DECIDED not in decided[0].data:
        return
    proposal = memory_of(decided[0])
    own = Scope(everyone.deployment, proposal.author)
    copies = await store.scan(own, MEMORY, key=proposal.key, limit=1, newest_first=True)
    # after the copy was read: a new proposal is stored before its author's copy changes
    if await store.read(everyone, PROPOSAL, [name]) != decided:
        return
    await _tell(store, own, copies)
    await _remove(store, everyone, decided[0])


async def _remove(store: Store, everyone: Scope, decided: Record) -> None:
    drop = Drop(kind=PROPOSAL, id=decided.id)
    try:
        await store.write(everyone, [Put.over(decided, decided), drop])
    except WriteConflict:  # its author just proposed again: an erasure would destroy that too
        return
    if decided.data[DECIDED] == REJECTED:
        await store.erase(everyone, [])  # the text is removed from the log as well


async def finish_if_possible(store: Store, everyone: Scope, name: str) -> None:
    try:
        await _finish(store, everyone, name)
    except StoreError as error:
        log.warning("%s: a decision about a proposal is finished later", type(error).__name__)


async def is_global_by_itself(
    store: Store, everyone: Scope, shareable: Shareable, global_kinds: Mapping[str, int], author: str | None
) -> bool:
    """Whether it states only permitted facts, enough users said the same, and no operator decided under its
    key.
    """
    if not shareable.states <= global_kinds.keys():
        return False
    if shareable.key is not None and await is_decided(store, everyone, shareable.key):
        return False
    needed = max((global_kinds[kind] for kind in shareable.states), default=1)
    if needed == 1:
        return True
    told = map(memory_of, await scan_all(store, everyone, MEMORY, key=shareable.key))
    if any(memory.author and memory.current and _says(memory, shareable) for memory in told):
        return True  # enough said so before
    return len({author, *await _proposed_by(store, everyone, shareable)}) >= needed


async def _proposed_by(store: Store, everyone: Scope, shareable: Shareable) -> set[str]:
    """The users who propose the same, and whose own newest memory under the key is that one."""
    found: set[str] = set()
    for record in await scan_all(store, everyone, PROPOSAL, key=shareable.key):
        memory = memory_of(record)
        if DECIDED in record.data or not memory.author or not _says(memory, shareable):
            continue
        own = Scope(everyone.deployment, memory.author)
        newest = await store.scan(own, MEMORY, key=memory.key, limit=1, newest_first=True)
        if newest and memory_of(newest[0]).current and memory_of(newest[0]).visibility == "proposed":
            found.add(memory.author)
    return found


async def publish(store: Store, everyone: Scope, shared: Memory) -> Memory:
    """Make it global, and end the proposals that it leaves nobody to decide about: its author's, and those
    of the same by others, who keep theirs as a private memory.
    """
    ledger = Ledger(store, everyone)
    kept = await ledger.set(shared)
    changes: list[Change] = ledger.changes
    others: list[str] = []
    for record in await scan_all(store, everyone, PROPOSAL, key=shared.key):
        if memory_of(record).author == shared.author:
            changes.append(Drop(kind=PROPOSAL, id=record.id))
        elif DECIDED not in record.data and _says(memory_of(record), shared):
            changes.append(_decided(record, kept.id))
            others.append(record.id)
    if changes:
        await store.write(everyone, changes)
    for name in others:
        await finish_if_possible(store, everyone, name)
    return kept


def _says(memory: Memory, shared: Memory | Shareable) -> bool:
    return memory.key == shared.key and _plain(memory.text) == _plain(shared.text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .!")


async def still_proposed(store: Store, own: Scope, kept: Memory, name: str) -> Memory:
    """`kept`, just written as proposed; private if its proposal was decided meanwhile.

    The decision found no copy to update, and nobody else will update it.
    """
    waiting = await store.read(own.everyone, PROPOSAL, [name])
    if waiting and DECIDED not in waiting[0].data:
        return kept
    await _tell(store, own, await store.read(own, MEMORY, [kept.id]))
    return replace(kept, visibility="private")


async def _tell(store: Store, own: Scope, copies: Sequence[Record]) -> None:
    """Note in the author's own `copies` that they are no longer proposed."""
    for copy in copies:
        here: Record | None = copy
        # a concurrent note about it changes the record but not its text
        while here and here.data.get("visibility") == "proposed" and here.data["text"] == copy.data["text"]:
            data = {field: value for field, value in here.data.items() if field != "visibility"}
            try:
                await store.write(own, [Put.over(here, replace(here, data=data))])
            except WriteConflict:
                here = next(iter(await store.read(own, MEMORY, [copy.id])), None)
            else:
                break


def _stored(proposal_id: str) -> str:
    """The id of the record of a proposal."""
    return proposal_id.rpartition("-")[0]


def _decided(waiting: Record, what: str) -> Put:
    """The change that notes a decision in the proposal, as it was read."""
    return Put.over(waiting, replace(waiting, data={**waiting.data, DECIDED: what}))


def _shown(record: Record) -> str:
    """The id of a proposal's current wording; another wording has another id."""
    memory = memory_of(record)
    content = json.dumps([memory.key, memory.text, memory.category])
    return f"{record.id}-{hashlib.blake2b(content.encode(), digest_size=12).hexdigest()}"


def put_proposal(proposal: Memory) -> Put:
    """The change that stores `proposal`, replacing its author's earlier one under the same key."""
    return Put(record=record_of_memory(proposal, kind=PROPOSAL))


JUDGEMENT = "judgement"
"""The kind of a pending judgement: under the memory's id and key, the number of attempts. No text."""
RETRY_S = 30.0
ATTEMPTS = 3
"""Failures of the classifier on one memory after which it stays private until it is set again."""
ANSWER_S = 60.0
"""Seconds one answer may take, whatever the classifier allows."""
_LEASE_S = 2 * ANSWER_S
_HELD_FOR = "judge"
AGREED = "agreed"
"""Noted before anything is shared, so that sharing that was interrupted is completed without asking again."""
_AGAIN_S = 0.05
SWEEP_AFTER_S = 2.0
"""Seconds before the first sweep for pending judgements; a short-lived command does none."""


def waits(memory: Memory) -> Put:
    """The change that requests a judgement of `memory`, to be written together with it."""
    return Put(record=Record(kind=JUDGEMENT, id=memory.id, key=memory.key, data={}))


@dataclass(frozen=True, slots=True)
class _Case:
    scope: Scope
    record: Record
    """The memory's record, as it was read."""
    waiting: Record
    """The record of the pending judgement."""

    @property
    def memory(self) -> Memory:
        return memory_of(self.record)

    @property
    def closed(self) -> Drop:
        """The change that removes the pending judgement."""
        return Drop(kind=JUDGEMENT, id=self.record.id)


class Judge(Sweeper):
    """Asks a second classifier, in the background, about what the rules would share.

    `second` may raise anything: the memory then stays private. What it agrees to is global without approval
    if it states only `global_kinds`. `worker` is a unique name of this process.
    """

    def __init__(
        self,
        store: Store,
        second: Classifier,
        *,
        global_kinds: Mapping[str, int],
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
        """Start, and resume what an earlier process left pending."""
        if self._sweeping is None:
            self._runs = RunsPerUser(self._judge)  # the old ones may belong to a loop that has ended
        super().start()

    def want(self, scope: Scope, memory: str) -> None:
        """Request a judgement of the memory with this id, in the background."""
        self._runs.want(scope, memory)

    async def take_up(self, deployment: str | None = None) -> int:
        """Request all judgements that are due; returns how many."""
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
        """Stop at once; what was not judged stays pending in the store. May be called twice."""
        await super().aclose()
        await self._runs.stop()
        close: Callable[[], Awaitable[None]] | None = getattr(self._second, "aclose", None)
        if close is not None:  # a classifier need not have this method
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
        """Judge one memory unless another process does; returns the retry delay, 0 for never."""
        waiting = await self._store.read(scope, JUDGEMENT, [name])
        if not waiting:  # judged by another process, or forgotten
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
            # forgotten, retracted, set again or shared since
            await self._store.write(scope, [Drop(kind=JUDGEMENT, id=name)])
            return 0.0
        case = _Case(scope, found[0], waiting[0])
        if case.memory.context is not None:  # requested by an older version; see `KeyedMemories._weighed`
            await self._kept_private(case, "condition")
            return 0.0
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
            await until_written(lambda: self._share(case, weighed), "key", case.record.key)
        return 0.0

    async def _asked(self, case: _Case) -> Verdict:
        """The second classifier's verdict; an earlier one, if a process died after noting it."""
        agreed = case.waiting.data.get(AGREED)
        if agreed is not None:
            return Verdict("global", agreed)
        async with asyncio.timeout(ANSWER_S):
            return await self._second.classify(case.memory.text, case.memory.key)

    async def _failed(self, case: _Case, reason: str) -> float:
        """Note a failure; returns the seconds after which to ask again, 0 for never."""
        attempts = case.waiting.data.get("attempts", 0) + 1
        log.warning("a memory stays private, its second judge failed (%d): %s", attempts, reason)
        if attempts >= ATTEMPTS:
            await self._kept_private(case, "failed")
            return 0.0
        retry_at = self._clock() + timedelta(seconds=RETRY_S)
        noted = await self._noted(case, {"attempts": attempts, "retry_at": retry_at.isoformat()})
        return RETRY_S if noted else _AGAIN_S

    async def _kept_private(self, case: _Case, reason: str) -> None:
        """Note in the memory why it stays private, unless it was set again or forgotten meanwhile."""
        own = replace(case.record, data={**case.record.data, "reason": reason})
        try:
            await self._store.write(case.scope, [Put.over(case.record, own), case.closed])
        except WriteConflict:
            await self._store.write(case.scope, [case.closed])

    async def _noted(self, case: _Case, data: Mapping[str, Any]) -> bool:
        """Update the pending judgement; False if the memory was set again or forgotten."""
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
            source=(),
            reason=shareable.reason,
        )
        if await self._is_global(case, shareable):
            await self._publish(case, shared)
        else:
            await self._hand_in(case, shared)
            await until_written(lambda: self._publish_since(case, shared, shareable), "a proposal")

    async def _publish_since(self, case: _Case, shared: Memory, shareable: Shareable) -> None:
        """Publish a proposal just handed in if others handed in the same at that moment."""
        found = await self._store.read(case.scope, MEMORY, [case.record.id])
        if not found or memory_of(found[0]).visibility != "proposed" or not memory_of(found[0]).current:
            return
        if await self._is_global(case, shareable):
            await self._publish(replace(case, record=found[0]), shared)

    async def _is_global(self, case: _Case, shareable: Shareable) -> bool:
        everyone, author = case.scope.everyone, case.scope.user
        return await is_global_by_itself(self._store, everyone, shareable, self._global_kinds, author)

    async def _hand_in(self, case: _Case, shared: Memory) -> None:
        name = memory_id(case.scope.user or "", shared.key or "")
        proposal = replace(shared, id=name, visibility="proposed")
        await self._store.write(case.scope.everyone, [put_proposal(proposal)])
        data = {**case.record.data, "visibility": "proposed", "reason": shared.reason}
        await self._unless_changed(case, replace(case.record, data=data), PROPOSAL, name)
        await still_proposed(self._store, case.scope, case.memory, name)

    async def _publish(self, case: _Case, shared: Memory) -> None:
        shared = replace(shared, visibility="global", supersedes=None)
        kept = await publish(self._store, case.scope.everyone, shared)
        own = record_of_memory(replace(case.memory, valid_until=shared.valid_from, visibility="global"))
        ended = replace(case.record, data={**own.data, "number": case.record.data.get("number", 0)})
        await self._unless_changed(case, ended, MEMORY, kept.id)

    async def _unless_changed(self, case: _Case, own: Record, kind: str, name: str) -> None:
        """Note in the user's own memory that it is shared; if they changed it meanwhile, undo the sharing.

        After another failure it stays pending, and is shared again with the same result.
        """
        try:
            await self._store.write(case.scope, [Put.over(case.record, own), case.closed])
        except WriteConflict:
            await self._taken_back(case, own, kind, name)

    async def _taken_back(self, case: _Case, own: Record, kind: str, name: str) -> None:
        now = await self._store.read(case.scope, MEMORY, [case.record.id])
        if now and now[0].data.get("visibility") == own.data["visibility"]:
            return  # another process shared it meanwhile
        await self._store.erase(case.scope.everyone, [Drop(kind=kind, id=name)])
        await self._store.write(case.scope, [case.closed])


def _is_open(record: Record, scope: Scope) -> bool:
    memory = memory_of(record)
    return memory.current and memory.visibility == "private" and memory.author == scope.user


def _due(record: Record, now: datetime) -> bool:
    retry_at = record.data.get("retry_at")
    return retry_at is None or datetime.fromisoformat(retry_at) <= now
