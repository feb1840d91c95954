"""Global facts, as an operator writes, edits, lists and withdraws them.

What an operator writes is shared unchanged: the gate does not judge it, and telephone numbers stay in it.
Secrets are masked, as in every write. Callers of this module must check that the caller is an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from echoic.errors import InvalidInput, NotKept, QuotaExceeded, WriteConflict, brief
from echoic.memory.concurrency import until_written
from echoic.memory.consent import from_what_is_kept
from echoic.memory.proposals import Decided, Decision, decider, is_decided, others_ended, put_decision
from echoic.memory.records import MEMORY, Ledger, memory_of, scan_all
from echoic.memory.service_context import Parts
from echoic.stores.base import Change, Drop, Put, Record
from echoic.types import Category, Memory, Scope, checked_category, checked_name, checked_text

_AT_ONCE: Final = 100
"""Facts in one write of `fill`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalFact:
    """A fact for all users of a deployment."""

    text: str
    key: str | None = None
    """The key it is stored under. Without a key, facts with the same text are the same fact."""
    category: Category = "fact"
    context: str | None = None
    """When and under which conditions it applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The outcome of writing several facts at once."""

    memories: Sequence[Memory]
    """The memories as stored, in the order given."""
    new: int
    changed: int
    """How many replaced a fact under their key."""
    unchanged: int
    """How many were global already with the same text."""


@dataclass(slots=True)
class _Written:
    """The outcome of one write, in the order of its facts."""

    kept: list[Memory] = field(default_factory=list)
    new: int = 0
    changed: int = 0


class GlobalFacts:
    """The global facts of one deployment."""

    def __init__(self, parts: Parts, everyone: Scope) -> None:
        self._parts, self._store, self._everyone = parts, parts.store, everyone

    async def list(self) -> Sequence[Memory]:
        """All global facts of the deployment, oldest first, whoever wrote them."""
        memories = [memory_of(r) for r in await scan_all(self._store, self._everyone, MEMORY)]
        return [memory for memory in memories if memory.current]

    async def set(
        self,
        key: str,
        value: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        by: str | None = None,
    ) -> Memory:
        """Write a global fact: `value` under `key`, for everyone in the deployment.

        An earlier global value under the key becomes history, whoever said it. From then on, what callers say
        under this key is never global without approval.

        Args:
            key: the key to edit and look it up by.
            value: the text that everyone may be told, unchanged.
            category: the category of the memory.
            context: when and under which conditions it applies.
            by: who writes it, for `decisions`.

        Returns:
            the memory as stored; an existing one, if it says the same.

        Raises:
            InvalidInput: a part of it cannot be stored.
            StoreUnavailable: nothing was written; try again.
        """
        fact = GlobalFact(text=value, key=checked_name(key, "key"), category=category, context=context)
        written = await self._write([self._checked(fact)], decider(by))
        return written.kept[0]

    async def fill(self, facts: Iterable[GlobalFact], *, by: str | None = None) -> Filled:
        """Write all of `facts`; repeating it changes nothing. Global facts that are not among them stay.

        All are checked before the first is written. They are written a hundred at a time, each hundred whole
        or not at all; if the store fails, the hundreds written before stay.

        Args:
            facts: each with a key of its own, or without one.
            by: who writes them, for `decisions`.

        Raises:
            InvalidInput: one cannot be stored, or two under one key differ; nothing was written.
            StoreUnavailable: call it again; what is written already is not written twice.
        """
        who = decider(by)
        wanted = [self._checked(fact) for fact in facts]
        _check_keys(wanted)
        done = _Written()
        for start in range(0, len(wanted), _AT_ONCE):
            written = await self._write(wanted[start : start + _AT_ONCE], who)
            done.kept += written.kept
            done.new += written.new
            done.changed += written.changed
        unchanged = len(wanted) - done.new - done.changed
        return Filled(memories=done.kept, new=done.new, changed=done.changed, unchanged=unchanged)

    async def withdraw(self, memory_id: str, *, by: str | None = None) -> Memory:
        """Withdraw a global fact and its history, effective from the next search.

        If it became global without approval, its author keeps it as a private memory, unless they want
        nothing kept or are at their quota. After that, nothing under the same key becomes global without
        approval until an operator approves or writes a fact there.

        Args:
            memory_id: an id from `list`.
            by: who decides, for `decisions`.

        Returns:
            the withdrawn memory.

        Raises:
            InvalidInput: no global fact has that id (any more).
            StoreUnavailable: withdraw it again.
        """
        who = decider(by)
        name = checked_name(memory_id, "memory id")
        return await until_written(lambda: self._withdraw(name, who), "the key of a global memory")

    def _checked(self, fact: GlobalFact) -> Memory:
        context = fact.context
        memory = Memory(
            id="",
            key=fact.key if fact.key is None else checked_name(fact.key, "key"),
            text=checked_text(fact.text, "value"),
            category=checked_category(fact.category),
            context=context if context is None else checked_text(context, "context"),
            visibility="global",
            valid_from=self._parts.clock(),
            reason="operator",
        )
        return self._parts.write_filter.memory(self._everyone, memory)

    async def _write(self, wanted: Sequence[Memory], by: str) -> _Written:
        async def attempt() -> _Written:
            ledger = Ledger(self._store, self._everyone)
            written = _Written()
            noted: dict[str, Change] = {}
            for memory in wanted:
                before = set(map(_name, ledger.changes))
                replaced = await others_ended(ledger, memory)
                stays = await (ledger.add(memory) if memory.key is None else ledger.set(memory))
                written.kept.append(stays)
                if stays.id in noted:
                    continue  # given twice
                if stays.id in set(map(_name, ledger.changes)) - before:
                    edits = replaced or stays.supersedes is not None
                    written.new += not edits
                    written.changed += edits
                elif stays.key is None or await is_decided(self._store, self._everyone, stays.key):
                    continue  # it is global already
                # also if it was approved before in these words: from now on only operators decide
                noted[stays.id] = self._noted("written", stays, by)
            await self._store.write(self._everyone, [*ledger.changes, *noted.values()])
            return written

        written = await until_written(attempt, "global facts")
        self._parts.background.poke()
        return written

    async def _withdraw(self, name: str, by: str) -> Memory:
        found = await self._store.read(self._everyone, MEMORY, [name])
        if not found or not (memory := memory_of(found[0])).current:
            raise InvalidInput(f"no global fact has the id {brief(name)}; `echoic global list` lists them")
        given = await self._give_back(memory)
        noted = self._noted("withdrawn", memory, by)
        gone = [Drop(kind=MEMORY, id=name) for name in (memory.id, *await self._earlier(memory))]
        try:
            await self._store.write(self._everyone, [Put.over(found[0], found[0]), *gone, noted])
        except WriteConflict:
            if given is not None:  # its author may be forgotten at the same time
                await self._store.erase(*given)
            raise
        return memory

    async def _earlier(self, memory: Memory) -> Sequence[str]:
        """The ids of earlier versions of a global memory, which searches about the past still find."""
        if memory.key is None:
            return []
        there = await scan_all(self._store, self._everyone, MEMORY, key=memory.key)
        known = [memory_of(record) for record in there]
        return [one.id for one in known if one.author == memory.author and not one.current]

    async def _give_back(self, memory: Memory) -> tuple[Scope, Sequence[Drop]] | None:
        """Return a memory that became global without approval to its author, unless they have another under
        its key, want nothing kept or are at their quota: what is false must not stay for everyone.

        Returns the changes that undo this, or None if nothing was returned.
        """
        if memory.author is None or memory.key is None:
            return None
        ledger = Ledger(self._store, Scope(self._everyone.deployment, memory.author))
        if await ledger.current(memory.key, memory.author) is not None:
            return None
        kept = await ledger.set(replace(memory, id="", visibility="private", supersedes=None))
        try:
            with from_what_is_kept():
                await self._store.write(ledger.scope, ledger.changes)
        except (NotKept, QuotaExceeded):
            return None
        return ledger.scope, [Drop(kind=MEMORY, id=kept.id)]

    def _noted(self, what: Decided, memory: Memory, by: str) -> Put:
        return put_decision(
            Decision(
                what=what, of="fact", key=memory.key or "", text=memory.text, by=by, at=self._parts.clock()
            )
        )


def _name(change: Change) -> str:
    record: Record | None = getattr(change, "record", None)
    return record.id if record is not None else ""


def _check_keys(wanted: Sequence[Memory]) -> None:
    """Raise InvalidInput if two of `wanted` say different things under one key."""
    seen: dict[str, Memory] = {}
    for memory in wanted:
        if memory.key is None:
            continue
        first = seen.setdefault(memory.key, memory)
        if (first.text, first.category, first.context) != (memory.text, memory.category, memory.context):
            raise InvalidInput(
                f"two different facts have the key {brief(memory.key)}: give each a key of its own"
            )
