"""Erasure: which records are removed, and how the records that quote them are rewritten.

Every kind of record stored under a key or for a conversation must be named here, or it would survive. The
store removes the bytes. What was erased after a backup was made is erased again when the restored store is
opened (`forget_again`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from echoic.errors import InvalidInput
from echoic.memory.compliance import ERASURE, Compliance, PastErasure, Reworded, mark
from echoic.memory.concurrency import until_written
from echoic.memory.consent import CONSENT
from echoic.memory.deployment_keys import KEY, REVOCATION
from echoic.memory.experience import unlearn
from echoic.memory.extraction.model_reader import LEASE, PROGRESS, progress_id
from echoic.memory.forget_targets import Targets, reached, said_by
from echoic.memory.hooks import Forgetting, Forgotten
from echoic.memory.keyed_memories import KeyedMemories
from echoic.memory.mentions import Claim, Span, claims_of, joined, masked, mentioned_in, said_in, said_in_text
from echoic.memory.phone_registry import forget_on_lines, lines_of
from echoic.memory.profile import DIRECTIVES
from echoic.memory.proposals import DECISION, JUDGEMENT
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    EXPERIENCE,
    GIVEN,
    HOLD,
    INDEXED_ITEM,
    ITEM,
    LINK_CODE,
    LINK_GUESSES,
    MEMORY,
    PHONE_LINE,
    PHONE_OF,
    PHONE_PIN,
    PROPOSAL,
    RESULT,
    SAID,
    TURN,
    conversation_of,
    hidden_in,
    memory_of,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.memory.retraction import derived_from, named, shared_of, unlearn_turns
from echoic.memory.service_context import Parts
from echoic.stores.apply import Name, name_of
from echoic.stores.base import Drop, Erasable, Erased, Put, Record, Store
from echoic.text import FORGOTTEN, fold
from echoic.types import KeptBecause, Memory, Receipt, Scope, Turn, checked_name, checked_time

log = logging.getLogger(__name__)

KINDS = (
    CONVERSATION,
    ITEM,
    PROPOSAL,
    RESULT,
    DIRECTIVES,
    PROGRESS,
    LEASE,
    JUDGEMENT,
    EXPERIENCE,
    DECISION,
    REVOCATION,
    HOLD,
    CONSENT,
    *CALL_PARTS,
    CHECKPOINT,
    LINK_CODE,
    LINK_GUESSES,
    PHONE_LINE,
    PHONE_OF,
    PHONE_PIN,
    ERASURE,
    KEY,
)
"""Every kind of record that is not searchable."""


class Erasing:
    """Erasures of one user.

    `spared` records, as (kind, id), stay as they are where they repeat what is forgotten, and so does what
    is global; None: nothing stays.
    """

    def __init__(self, parts: Parts, scope: Scope, *, spared: Collection[Name] | None = None) -> None:
        self._parts = parts
        self._scope = scope
        self._spared = spared
        self._rewritten: set[Name] = set()
        """Records that lost words and are still there: several steps may reach the same one."""

    async def requested(self, **given: Any) -> Receipt:
        """Erase what the arguments of `UserMemory.forget` select, and sign the receipt if there is a key."""
        span = bool(given.keys() & {"since", "until"})
        if (span or "learned_from" in given) and not (
            given.keys() <= {"since", "until"} or given.keys() == {"learned_from"}
        ):
            raise InvalidInput("forget takes `learned_from` or a span alone: call it again for anything else")
        if span:
            receipt = await self.forget_span(given.get("since"), given.get("until"))
        elif "learned_from" in given:
            receipt = await self.forget_learned(given["learned_from"])
        else:
            receipt = await self.forget(
                given.get("key"), given.get("conversation"), given.get("id"), given.get("asked")
            )
        compliance = self._parts.compliance
        if compliance is None:
            return receipt
        order = ("learned_from", "asked", "id", "key", "conversation")
        what = "span" if span else next((name for name in order if name in given), "everything")
        return await compliance.receipt(self._scope, what, receipt)

    async def forget(
        self,
        key: str | None,
        conversation: str | None,
        name: str | None,
        asked: str | None = None,
        *,
        names: Sequence[str] = (),
        memories: Sequence[Memory] = (),
    ) -> Receipt:
        """See `UserMemory.forget`; `names`: several ids; `memories`: those alone, where ids may name two."""
        if name is not None and (key is not None or conversation is not None):
            raise InvalidInput("forget takes an id alone: call it again for the key or the conversation")
        if asked is not None and not (key is conversation is name is None):
            raise InvalidInput("forget takes `asked` alone: call it again for anything else")
        what: Forgetting = "everything" if conversation is None else "conversation"
        names = (name,) if name is not None else names
        what = "id" if names or memories or asked is not None else what if key is None else "key"
        with self._parts.telemetry.operation("erase", self._scope) as doing:
            receipt = await self._forget(key, conversation, names, asked, memories)
            doing.count = receipt.records
            doing.record = next((one for one in (name, asked, key) if one is not None), None)
            doing.attributes = {"what": what, "vectors": receipt.vectors, "verified": int(receipt.verified)}
        event = Forgotten(scope=self._scope, what=what, receipt=receipt, duration_ms=doing.duration_ms)
        self._parts.hooks.emit(event)
        return receipt

    async def forget_learned(self, turns: Collection[str]) -> Receipt:
        """Forget what was learned from `turns` alone; see `UserMemory.forget`."""
        keyed = KeyedMemories(self._parts, self._scope)
        known = [memory_of(record) for record in await scan_all(self._parts.store, self._scope, MEMORY)]
        learned = {memory.id: memory for memory in known if memory.source and set(memory.source) <= {*turns}}
        receipts = []
        for key in dict.fromkeys(memory.key for memory in learned.values() if memory.key is not None):
            versions = await keyed.history(key)
            others = {fold(version.text) for version in versions if version.id not in learned}
            if not others:
                receipts.append(await self.forget(key, None, None))
                continue
            if any(version.current and version.id in learned for version in versions):
                await keyed.delete(key)
            # what another call said as well stays
            alone = [v for v in versions if v.id in learned and fold(v.text) not in others]
            receipts += [await self.forget(None, None, None, memories=[version]) for version in alone]
        unkeyed = [memory for memory in learned.values() if memory.key is None]
        receipts += [await self.forget(None, None, None, memories=[memory]) for memory in unkeyed]
        return self._total(receipts)

    async def forget_call(self, conversation: str) -> Receipt:
        """Forget a conversation and what was learned from it alone."""
        turns = await scan_all(self._parts.store, self._scope, TURN, key=conversation)
        # the conversation first: workers that distil it then write nothing more
        gone = await self.forget(None, conversation, None)
        return self._total([gone, await self.forget_learned([record.id for record in turns])])

    async def said_in(self, conversation: str) -> list[Record]:
        """What was said in a conversation or learned from it alone, which `forget_call` destroys."""
        said = [record for record in await self._of(conversation) if record.kind in SAID]
        turns = {record.id for record in said if record.kind == TURN}
        memories = await scan_all(self._parts.store, self._scope, MEMORY)
        return said + [r for r in memories if (source := memory_of(r).source) and turns.issuperset(source)]

    async def forget_span(self, since: datetime | None, until: datetime | None) -> Receipt:
        """Forget what was said or stored from `since` on and before `until`; see `UserMemory.forget`."""
        first = None if since is None else checked_time(since, "since")
        last = None if until is None else checked_time(until, "until")
        if first is not None and last is not None and last <= first:
            raise InvalidInput("until must be later than since: nothing lies between them")

        def within(moment: datetime) -> bool:
            return (first is None or moment >= first) and (last is None or moment < last)

        store, scope = self._parts.store, self._scope
        said: dict[str, list[str]] = {}
        stays: set[str] = set()
        for record in await scan_all(store, scope, TURN):
            turn = turn_of(record)
            if within(turn.said_at):
                said.setdefault(turn.conversation, []).append(turn.id)
            else:
                stays.add(turn.conversation)
        receipts = [await self.forget_learned([turn for turns in said.values() for turn in turns])]
        begun = [conversation_of(record) for record in await scan_all(store, scope, CONVERSATION)]
        whole = {one.id for one in begun if within(one.started_at)} | said.keys()
        receipts += [await self.forget(None, conversation, None) for conversation in sorted(whole - stays)]
        rest = [turn for conversation in said.keys() & stays for turn in said[conversation]]
        known = [*await scan_all(store, scope, MEMORY), *await self._authored(None)]
        memories = [memory for r in known if r.kind == MEMORY and within((memory := memory_of(r)).valid_from)]
        if rest or memories:
            receipts.append(await self.forget(None, None, None, names=rest, memories=memories))
        proposals = [r for r in await self._authored(None) if within(memory_of(r).valid_from)]
        erased = await self._gone(_drops(proposals))
        # items and results stored then; those of a conversation are forgotten with it
        stored = [
            (r, r.data["updated_at"])
            for kind in (ITEM, INDEXED_ITEM)
            for r in await scan_all(store, scope, kind)
        ]
        stored += [(r, r.data["at"]) for r in await scan_all(store, scope, RESULT)]
        drops = _drops(record for record, at in stored if within(datetime.fromisoformat(at)))
        if drops:
            erased.append(await self._erased([*drops, *await self._quoting()]))
        return self._total([*receipts, _receipt(erased, {})] if erased else receipts)

    async def _forget(
        self,
        key: str | None,
        conversation: str | None,
        names: Sequence[str],
        asked: str | None,
        chosen: Sequence[Memory],
    ) -> Receipt:
        everything = key is conversation is asked is None and not names and not chosen
        memories = [*chosen, *(await self._versions(key) if key is not None else ())]
        whole: list[str] = []
        for name in names:
            more, turns = await named(self._parts.store, self._scope, checked_name(name, "id"))
            memories, whole = [*memories, *more], [*whole, *turns]
        meant = _something(await self._meant(asked))
        memories += [*meant.memories, *said_by(meant)]
        if memories or whole or meant.spans:
            # before the erasure: a worker that learns from these turns must read again
            await unlearn_turns(self._parts.store, self._scope, memories, self._spared or ())
        lines = await lines_of(self._parts.store, self._scope) if everything else []
        self._parts.recaller.forget()
        learned = await self._learned_in(conversation) if conversation is not None else 0
        kept = 0

        async def attempt() -> Erased | None:
            nonlocal kept
            changes = None if everything else await self._chosen(key, conversation)
            # looked up again: positions differ in a rewritten turn
            parts = (await self._meant(asked)).spans
            if changes is not None and (memories or whole or parts):
                gone = await destroyed(self._parts.store, self._scope, memories, whole, parts)
                kept = gone.kept
                rewritten = [each for each in gone.changes if name_of(each) not in (self._spared or ())]
                changes += [*await self._memories(memories), *await self._quoting(), *rewritten]
                changes = _each_once(changes)
            return None if changes == [] else await self._erased(changes)

        # first the records elsewhere that name the user: they contain the words of the next search, and once
        # a memory is gone, its id no longer leads to what was made of it
        erased = await self._named(lines) if everything else await self._gone(await self._shared(memories))
        erased += [part] if (part := await until_written(attempt, "what is forgotten")) else []
        # erase what was written meanwhile too, as by a live call
        while erased and not everything and (part := await until_written(attempt, "what is forgotten")):
            erased.append(part)
        erased = erased or [await self._parts.store.erase(self._scope, [])]
        # last: pending judgements are withdrawn once the user's own memories are gone
        authored = everything or key is not None
        drops = _drops(await self._authored(key)) if authored else await self._shared(memories)
        taught, lessons = await self._taught(None if everything else memories)
        erased += await self._named(lines) if everything else []
        erased += await self._gone([*drops, *taught])
        stays: dict[KeptBecause, int] = {
            "means something else": kept,
            "learned from it": learned,
            "others taught it too": lessons,
        }
        return _receipt(erased, stays)

    async def _erased(self, changes: Sequence[Erasable] | None) -> Erased:
        """Erase `changes`, or everything, from the user's own scope."""
        erased = await self._parts.store.erase(self._scope, changes)
        for change in changes or ():
            (self._rewritten.add if isinstance(change, Put) else self._rewritten.discard)(name_of(change))
        return erased

    def _total(self, receipts: Sequence[Receipt]) -> Receipt:
        """The sum of the receipts of one request."""
        why = sum((Counter(dict(receipt.kept_because)) for receipt in receipts), Counter[KeptBecause]())
        counted = ("memories", "turns", "conversations", "vectors", "other", "bytes_searched")
        return Receipt(
            **{name: sum(getattr(receipt, name) for receipt in receipts) for name in counted},
            rewritten=len(self._rewritten),
            kept_because=dict(why),
            verified=all(receipt.verified for receipt in receipts),
        )

    async def _memories(self, memories: Sequence[Memory]) -> list[Drop]:
        """The drops for those of `memories` that exist, and for their pending judgements."""
        # a global memory may have the id of another one of the user's own
        wanted = {(memory.id, memory.valid_from) for memory in memories if memory.id}
        there = await self._parts.store.read(self._scope, MEMORY, [name for name, _ in wanted])
        there = [r for r in there if (r.id, memory_of(r).valid_from) in wanted]
        return _drops([*there, *await self._parts.store.read(self._scope, JUDGEMENT, [r.id for r in there])])

    async def _taught(self, memories: Sequence[Memory] | None) -> tuple[list[Drop], int]:
        """The drops for lessons that say one of `memories` (None: for all), and how many others stay."""
        if memories is None:
            return await unlearn(self._parts.store, self._scope)
        if not memories:
            return [], 0
        return await unlearn(self._parts.store, self._scope, lambda text: bool(said_in_text(text, memories)))

    async def _shared(self, memories: Sequence[Memory]) -> list[Drop]:
        """The drops for what others see of `memories`."""
        shared = await shared_of(self._parts.store, self._scope, memories)
        # what is global belongs to the deployment; what only waits to be is the user's
        return _drops([one for one in shared if self._spared is None or one.kind == PROPOSAL])

    async def _gone(self, drops: Sequence[Drop]) -> list[Erased]:
        """Erase `drops` from the scope of everyone."""
        return [await self._parts.store.erase(self._scope.everyone, drops)] if drops else []

    async def _meant(self, asked: str | None) -> Targets:
        """What the request in a turn refers to."""
        if asked is None:
            return Targets()
        store, scope = self._parts.store, self._scope
        records = await store.read(scope, TURN, [checked_name(asked, "id")])
        if not records:
            return Targets(nothing=True)
        turn = turn_of(records[0])
        # once it is forgotten it has no words that ask: forgotten again, nothing is left
        return await reached(store, scope, turn) or Targets(nothing=FORGOTTEN not in turn.heard_text)

    async def _learned_in(self, conversation: str) -> int:
        """How many memories were learned in a conversation."""
        turns = await scan_all(
            self._parts.store, self._scope, TURN, key=checked_name(conversation, "conversation id")
        )
        said = {turn.id for turn in turns}
        memories = [memory_of(record) for record in await scan_all(self._parts.store, self._scope, MEMORY)]
        return sum(not said.isdisjoint(memory.source) for memory in memories)

    async def _quoting(self) -> list[Drop]:
        """Records of a call that may quote it: what a model was given, and the checkpoint."""
        records = await scan_all(self._parts.store, self._scope, GIVEN)
        records += await scan_all(self._parts.store, self._scope, CHECKPOINT)
        return _drops(records)

    async def _authored(self, key: str | None) -> list[Record]:
        """Global memories and proposals of this user."""
        everyone = self._scope.everyone
        records = await scan_all(self._parts.store, everyone, MEMORY, key=key)
        records += await scan_all(self._parts.store, everyone, PROPOSAL, key=key)
        return [record for record in records if record.data.get("author") == self._scope.user]

    async def _named(self, lines: list[str]) -> list[Erased]:
        """Erase what identifies the user on telephone lines, and codes that prove to be them."""
        store = self._parts.store
        erased = await forget_on_lines(store, self._scope, lines, self._parts.clock())
        return [*erased, *await self._gone(await self._link_codes())]

    async def _link_codes(self) -> list[Drop]:
        """Link codes given to this user, which would still identify a caller as them."""
        codes = await scan_all(self._parts.store, self._scope.everyone, LINK_CODE)
        given = [
            code
            for code in codes
            if self._scope.user in {code.data.get("whose"), *code.data.get("proved", ())}
        ]
        return _drops(given)

    async def _chosen(self, key: str | None, conversation: str | None) -> list[Erasable]:
        """The records in the user's own scope to destroy for a key and a conversation."""
        chosen: list[Record] = []
        if key is not None:
            chosen += await self._under(checked_name(key, "key"))
        if conversation is not None:
            chosen += await self._of(checked_name(conversation, "conversation id"))
        return [*_drops(chosen)]

    async def _versions(self, key: str) -> list[Memory]:
        """Every version stored under `key`."""
        own = await scan_all(self._parts.store, self._scope, MEMORY, key=checked_name(key, "key"))
        return [memory_of(record) for record in own] + [memory_of(r) for r in await self._authored(key)]

    async def _under(self, key: str) -> list[Record]:
        chosen = await scan_all(self._parts.store, self._scope, MEMORY, key=key)
        chosen += await scan_all(self._parts.store, self._scope, JUDGEMENT, key=key)
        return chosen

    async def _of(self, conversation: str) -> list[Record]:
        chosen = await self._parts.store.read(self._scope, CONVERSATION, [conversation])
        for kind in (TURN, RESULT, DIRECTIVES, *CALL_PARTS):
            chosen += await scan_all(self._parts.store, self._scope, kind, key=conversation)
        for kind in (CHECKPOINT, ITEM, INDEXED_ITEM):
            held = await scan_all(self._parts.store, self._scope, kind)
            chosen += [record for record in held if record.data.get("conversation") == conversation]
        read = await scan_all(self._parts.store, self._scope, PROGRESS)
        return chosen + [
            record for record in read if record.id == progress_id(record.key or "", conversation)
        ]


def _something(meant: Targets) -> Targets:
    """`meant`; InvalidInput if it is nothing, since a receipt would say that all of it is gone."""
    if meant.nothing:
        raise InvalidInput(
            "the turn is not stored, or asks to forget nothing that is found: ask the user what they mean, "
            "or give a key or an id; without arguments all of the user is forgotten",
            field="asked",
        )
    return meant


def _drops(records: Iterable[Record]) -> list[Drop]:
    return [Drop(kind=record.kind, id=record.id) for record in records]


def _each_once(changes: Sequence[Erasable]) -> list[Erasable]:
    """`changes` with one change for each record; a drop takes precedence."""
    found: dict[tuple[str, str], Erasable] = {}
    for change in changes:
        name = (change.record.kind, change.record.id) if isinstance(change, Put) else (change.kind, change.id)
        if isinstance(change, Drop) or name not in found:
            found[name] = change
    return list(found.values())


def _receipt(erased: Sequence[Erased], stays: Mapping[KeptBecause, int]) -> Receipt:
    kinds: Counter[str] = sum((Counter(part.records) for part in erased), Counter())
    return Receipt(
        memories=kinds.pop(MEMORY, 0),
        turns=kinds.pop(TURN, 0),
        conversations=kinds.pop(CONVERSATION, 0),
        other=sum(kinds.values()),
        rewritten=sum(part.rewritten for part in erased),
        kept_because={why: count for why, count in stays.items() if count},
        vectors=sum(part.vectors for part in erased),
        verified=all(part.verified for part in erased),
        bytes_searched=sum(part.bytes_searched for part in erased),
    )


@dataclass(slots=True)
class Destroyed:
    """What an erasure rewrites and drops so that no record mentions a memory any more."""

    changes: list[Erasable] = field(default_factory=list)
    kept: int = 0
    """Turns that contain the same value but mean something else: they stay unchanged."""


_NOTHING: Final[Mapping[str, Sequence[Span]]] = {}


async def destroyed(
    store: Store,
    scope: Scope,
    memories: Sequence[Memory],
    whole: Collection[str] = (),
    parts: Mapping[str, Sequence[Span]] = _NOTHING,
) -> Destroyed:
    """The changes that remove every mention of `memories` from other records.

    `whole` are ids of turns to forget entirely; `parts`, by turn, spans of its heard words to forget.
    """
    records = await scan_all(store, scope, TURN)
    # in a thread, since it reads every word; a record changed meanwhile conflicts, and all is read again
    found, redacting, again = await asyncio.to_thread(_in_turns, records, memories, whole, parts)
    turns = [change for change in found.changes if isinstance(change, Put)]
    reworded = any(isinstance(change, Reworded) for change in found.changes)  # others may repeat its words
    for kind in (CONVERSATION, RESULT, ITEM, INDEXED_ITEM):
        held = await scan_all(store, scope, kind)
        puts = await asyncio.to_thread(redacting.changes, held)
        if reworded and kind != CONVERSATION:
            same = {put.record.id: put.record.data for put in await asyncio.to_thread(again.changes, held)}
            puts = [
                put
                if same.get(put.record.id) == put.record.data
                else Reworded(record=put.record, expect=put.expect, was=put.was)
                for put in puts
            ]
        found.changes += puts
    found.changes += await _derived(store, scope, memories, turns, redacting)
    return found


def _in_turns(
    scanned: Sequence[Record],
    memories: Sequence[Memory],
    whole: Collection[str],
    parts: Mapping[str, Sequence[Span]],
) -> tuple[Destroyed, _Redacting, _Redacting]:
    """The changes to turns, and what removes the same words from other records: now, and in a backup."""
    records = {record.id: record for record in scanned}
    turns = [turn_of(record) for record in scanned]
    said = _said(turns, memories)
    # a backup in which this is made again holds only these
    stored = [memory for memory in memories if memory.id]
    said_again = said if len(stored) == len(memories) else _said(turns, stored)
    found, claims = Destroyed(), claims_of(memories)
    left: dict[str, str] = {}
    left_again: dict[str, str] = {}
    for turn in turns:
        spans, all_spans = said[turn.id]
        told = said_again[turn.id]
        if any(told):
            left_again |= _rest(turn, _without(turn, *told))
        if turn.id in whole and turn.text != FORGOTTEN:
            spans, all_spans = [(0, len(turn.heard_text))], [(0, len(turn.text))]
        if turn.id in parts:
            spans = joined([*spans, *parts[turn.id]])
            # the heard words are the beginning of the generated text
            all_spans = spans if turn.heard is None else joined([*all_spans, *parts[turn.id]])
        if spans or all_spans:
            new = _without(turn, spans, all_spans)
            put = Put if _letters(turn, *told) == _letters(turn, spans, all_spans) else Reworded
            found.changes.append(put.over(records[turn.id], _record(records[turn.id], new, spans)))
            left |= _rest(turn, new)
        else:
            found.kept += mentioned_in(turn, claims)
    return found, _Redacting(memories, left), _Redacting(stored, left_again)


def _rest(turn: Turn, new: Turn) -> dict[str, str]:
    """What the texts of `turn` become."""
    texts = {turn.text: new.text, turn.heard_text: new.heard_text}
    return {old: left for old, left in texts.items() if old}


def _said(
    turns: Sequence[Turn], memories: Sequence[Memory]
) -> dict[str, tuple[Sequence[Span], Sequence[Span]]]:
    """By turn, where the heard and where the generated words say one of `memories`."""
    heard = said_in(turns, memories)
    # the part that an agent did not get to say is stored too
    unheard = said_in([replace(turn, heard=None) for turn in turns if turn.heard is not None], memories)
    return {
        turn.id: (heard.get(turn.id, []), (heard if turn.heard is None else unheard).get(turn.id, []))
        for turn in turns
    }


def _letters(turn: Turn, heard: Sequence[Span], text: Sequence[Span]) -> list[str]:
    """The letters and digits of the heard and the generated words, without these spans of them."""
    left = masked(turn.heard_text, heard, ""), masked(turn.text, text, "")
    return ["".join(filter(str.isalnum, each)) for each in left]


def _without(turn: Turn, heard: Sequence[Span], text: Sequence[Span]) -> Turn:
    new = replace(turn, text=masked(turn.text, text, FORGOTTEN))
    return new if turn.heard is None else replace(new, heard=masked(turn.heard, heard, FORGOTTEN))


def _record(record: Record, turn: Turn, gone: Sequence[Span]) -> Record:
    hidden = [_moved(span, gone) for span in hidden_in(record) if not _within(span, gone)]
    return rewritten_turn(record, turn, unlearned=True, hidden=hidden)


def _within(span: Span, others: Iterable[Span]) -> bool:
    return any(first <= span[0] and span[1] <= last for first, last in others)


def _moved(span: Span, gone: Sequence[Span]) -> Span:
    """The position of a span after each span in `gone` was replaced by a marker."""

    def moved(at: int) -> int:
        before = [(first, min(last, at)) for first, last in joined(gone) if first < at]
        return at - sum(last - first for first, last in before) + len(FORGOTTEN) * len(before)

    return moved(span[0]), moved(span[1])


async def _derived(
    store: Store, scope: Scope, memories: Sequence[Memory], turns: Sequence[Put], redacting: _Redacting
) -> list[Erasable]:
    """Memories that repeat one of `memories`: dropped, or replaced by the rest of their text."""
    names = [memory.id for memory in await derived_from(store, scope, memories, turns)]
    changes: list[Erasable] = []
    for record in await store.read(scope, MEMORY, names):
        rest = redacting.changes([record]) if record.key is not None else []
        said = memory_of(rest[0].record).text if rest else ""
        # an id derived from the words would reveal them
        changes += rest if said.replace(FORGOTTEN, "").strip(" .,;") else [Drop(kind=MEMORY, id=record.id)]
    return changes


class _Redacting:
    """Removes what is forgotten from the fields of records that hold speech."""

    def __init__(self, memories: Sequence[Memory], texts: Mapping[str, str]) -> None:
        self._memories = memories
        self._texts = texts
        self._values: dict[str, set[str]] = {}
        for memory in memories:
            if memory.key:
                self._values.setdefault(memory.key, set()).add(Claim.of(memory).text)

    def changes(self, records: Iterable[Record]) -> list[Put]:
        """Those `records` that contain some of it, rewritten without it."""
        pairs = [(record, replace(record, data=self._data(record))) for record in records]
        return [Put.over(old, new) for old, new in pairs if old.data != new.data]

    def _data(self, record: Record) -> dict[str, Any]:
        # a number may also occur in a time or an id, and a word be a status
        said = {name: record.data[name] for name in SAID[record.kind] if name in record.data}
        return {**record.data, **self._of(said, self._beside(record.data))}

    def _of(self, data: Any, values: set[str]) -> Any:
        if isinstance(data, str):
            return self._text(data, values)
        if isinstance(data, Mapping):
            here = values | self._beside(data)
            return {name: self._of(each, here) for name, each in data.items()}
        if isinstance(data, list | tuple):
            return [self._of(each, values) for each in data]
        return data

    def _beside(self, data: Mapping[str, Any]) -> set[str]:
        """The values whose key is in `data`: beside it they are that memory's, as in a tool's arguments."""
        keys = [each for each in data.values() if isinstance(each, str)]
        return {text for key in keys for text in self._values.get(key, ())}

    def _text(self, text: str, values: set[str]) -> str:
        if text in self._texts:
            return self._texts[text]
        if fold(text).strip(" .!?") in values:
            return FORGOTTEN
        return masked(text, said_in_text(text, self._memories), FORGOTTEN)


# -- again, in a store that was restored from before

_NAMING = {MEMORY: "author", PROPOSAL: "author", PHONE_LINE: "user", LINK_CODE: "whose"}
"""Kinds in the global scope whose records name a user, with the field: a user may be named only there."""
_SUMS_UP = ("summary", "recall_key")


async def forget_again(parts: Parts, compliance: Compliance) -> int:
    """Repeat erasures without a mark; returns how many. After StoreError nothing may be read.

    The list of erasures holds hashes only, so the records to erase are found by hashing those that are there.
    A record of which only some words were erased is dropped whole, since the list does not say which words.
    """
    async with compliance.applying():
        missing = await compliance.missing(parts.store)  # another process may have done it first
        by_scope: dict[str, list[PastErasure]] = {}
        for past in missing:
            by_scope.setdefault(past.scope, []).append(past)
        done: dict[Scope, list[Drop]] = {}
        for scope in await _everybody(parts.store):
            if not (listed := by_scope.get(compliance.pseudonym(scope), [])):
                continue
            if made := _drops(await parts.store.read(scope, ERASURE, [past.id for past in listed])):
                await parts.store.erase(scope, [])  # a killed process may have left the bytes
                done[scope] = made
                listed = [past for past in listed if past.id not in {drop.id for drop in made}]
            if any(past.gone is None for past in listed):
                await _erase_scope_again(parts, scope)
            elif listed:
                await _erase_part_again(parts, scope, compliance, listed)
            # at once: made again after an interruption, it would drop what has only lost its words by now
            await mark(parts.store, [past.id for past in listed])
        await mark(parts.store, [past.id for past in missing])
        for scope, drops in done.items():
            await parts.store.write(scope, drops)
    if again := len(missing) - sum(map(len, done.values())):
        log.warning("this store was restored from before %d erasures, which were made again", again)
    return again


async def _everybody(store: Store) -> list[Scope]:
    """Every scope that holds records or is named in any; users before the global scope."""
    scopes = await store.scopes()
    named = {scope: None for scope in scopes if scope.user is not None}
    for everyone in [scope for scope in scopes if scope.user is None]:
        for kind, naming in _NAMING.items():
            for record in await scan_all(store, everyone, kind):
                if isinstance(user := record.data.get(naming), str) and user:
                    named[Scope(everyone.deployment, user)] = None
    return [*named, *(scope for scope in scopes if scope.user is None)]


async def _erase_scope_again(parts: Parts, scope: Scope) -> None:
    if scope.user is None:
        await parts.store.erase(scope)
    else:
        await Erasing(parts, scope).forget(None, None, None)


async def _erase_part_again(
    parts: Parts, scope: Scope, compliance: Compliance, listed: Sequence[PastErasure]
) -> None:
    gone = frozenset[str]().union(*(past.gone or () for past in listed))
    rewritten = frozenset[str]().union(*(past.rewritten for past in listed))
    before = await _all_records(parts.store, scope)
    hashes = {name: compliance.record(scope, *name) for name in before}
    meant = {name for name, told in hashes.items() if told in gone}
    losing = {name for name, told in hashes.items() if told in rewritten} - meant
    if scope.user is not None:
        # memories first: their words are removed from turns and summaries as these were then
        for kind, name in sorted(meant):
            if kind == MEMORY and await parts.store.read(scope, MEMORY, [name]):
                await Erasing(parts, scope).forget(None, None, name)
    there = await _all_records(parts.store, scope)
    changes: list[Erasable] = [Drop(kind=kind, id=name) for kind, name in meant & there.keys()]
    changes += [_without_words(there[name]) for name in losing & there.keys() if there[name] == before[name]]
    if scope.user is not None:  # these records may quote anything
        quoting = [name for name in there if name[0] in {GIVEN, CHECKPOINT} and name not in meant]
        changes += [Drop(kind=kind, id=name) for kind, name in quoting]
    if changes:
        await parts.store.erase(scope, changes)


def _without_words(record: Record) -> Erasable:
    """The record without its words, an unknown part of which was erased."""
    if record.kind != CONVERSATION:
        return Drop(kind=record.kind, id=record.id)
    left = {name: value for name, value in record.data.items() if name not in _SUMS_UP}
    return Put.over(record, replace(record, data=left))


async def _all_records(store: Store, scope: Scope) -> Mapping[tuple[str, str], Record]:
    found: dict[tuple[str, str], Record] = {}
    for kind in (MEMORY, TURN, INDEXED_ITEM, *KINDS):
        found |= {(record.kind, record.id): record for record in await scan_all(store, scope, kind)}
    return found
