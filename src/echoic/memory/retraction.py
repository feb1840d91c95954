"""Retraction: hides the words of a retracted memory in every turn, so that recall does not find them.

Turns stay unchanged in the transcript, in history and in an export; hidden spans are neither indexed nor
recalled. Summaries, and memories with the same words, are retracted too.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from echoic.english import listen
from echoic.english.slots import is_of
from echoic.memory.concurrency import until_written
from echoic.memory.extraction.reconciliation import Change as Proposed
from echoic.memory.extraction.reconciliation import TakeBack
from echoic.memory.extraction.turns import (
    Stretch,
    conversation_record,
    hushes,
    meant_by_that,
    of_user,
    standing,
    takes_back,
)
from echoic.memory.mentions import Span, claims_of, joined, masked, mentioned_in, said_in, said_in_text
from echoic.memory.records import (
    CONVERSATION,
    MEMORY,
    PROPOSAL,
    TURN,
    Ledger,
    conversation_of,
    cursor_of,
    hidden_in,
    is_unlearned,
    memory_id,
    memory_of,
    recalled_turn,
    record_of_conversation,
    rewritten_turn,
    scan_all,
    turn_of,
)
from echoic.ranking.indexing import AGENT
from echoic.stores.apply import Name
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.text import TAKEN_BACK, content_stems, fold, visible
from echoic.types import Memory, Scope, Turn

_FORGETS: Final = re.compile(
    r"\b(?:forg[eo]t|disregard|unlearn|delet|eras|remov|scratch that|strike that|scrap that|ignore|"
    r"take (?:that|it) back|wip|drop|no longer|won't)"
)


_NOTHING: Final[Mapping[str, Sequence[Span]]] = {}


async def hide(
    store: Store,
    scope: Scope,
    memories: Sequence[Memory],
    *,
    whole: Collection[str] = (),
    parts: Mapping[str, Sequence[Span]] = _NOTHING,
    spared: Collection[str] = (),
    until: str | None = None,
    derived: bool = True,
    at: datetime | None = None,
    deleted: bool = False,
) -> None:
    """Hide what says one of the retracted `memories`, in every turn of users and agents, and in summaries.

    `whole` are turns to hide entirely; `parts`, by turn, spans to hide, after which nothing is learned from
    that turn. `spared` turns state the replacement and stay visible, as does what people said after the turn
    `until`, even if it is appended while this runs. `derived`: also end memories that repeat it, or were
    learned from what is hidden, and have no key of their own; if `deleted`, as deleted.
    """

    async def attempt() -> None:
        hidden = await _in_turns(store, scope, memories, whole=whole, parts=parts, spared=spared, until=until)
        changes: list[Change] = [*hidden, *await _in_summaries(store, scope, memories)]
        if derived and at is not None:
            changes += await _in_memories(store, scope, memories, hidden, at, deleted=deleted)
        if changes:
            await store.write(scope, changes)

    if memories or whole or parts:
        await until_written(attempt, "what was taken back")


async def _in_turns(
    store: Store,
    scope: Scope,
    memories: Sequence[Memory],
    *,
    whole: Collection[str],
    parts: Mapping[str, Sequence[Span]],
    spared: Collection[str],
    until: str | None,
) -> list[Put]:
    records = {record.id: record for record in await scan_all(store, scope, TURN)}
    turns = [turn_of(record) for record in records.values()]
    after = next((at + 1 for at, turn in enumerate(turns) if turn.id == until), len(turns))
    stays = {*spared, *(turn.id for turn in turns[after:] if turn.speaker != AGENT)}
    # in a thread, since it reads every word; a turn changed meanwhile conflicts, and all is read again
    found = await asyncio.to_thread(said_in, turns, memories)
    for turn in turns:
        if turn.id in whole:
            found[turn.id] = [(0, len(turn.heard_text))]
        elif turn.id in parts:
            found[turn.id] = [*found.get(turn.id, ()), *parts[turn.id]]
    return [
        _hidden(records[name], spans, unlearned=name in parts)
        for name, spans in found.items()
        if name not in stays and joined([*hidden_in(records[name]), *spans]) != hidden_in(records[name])
    ]


def _hidden(record: Record, spans: Sequence[Span], *, unlearned: bool) -> Put:
    hidden = [*hidden_in(record), *spans]
    return Put.over(record, rewritten_turn(record, turn_of(record), unlearned=unlearned, hidden=hidden))


async def _in_summaries(store: Store, scope: Scope, memories: Sequence[Memory]) -> list[Put]:
    records = await scan_all(store, scope, CONVERSATION)
    return await asyncio.to_thread(_retold, records, memories)


def _retold(records: Sequence[Record], memories: Sequence[Memory]) -> list[Put]:
    """The conversations whose summary says one of `memories`, without it."""
    changes = []
    for record in records:
        conversation = conversation_of(record)
        told = {"summary": conversation.summary, "recall_key": conversation.recall_key}
        left = {
            name: masked(text, spans, TAKEN_BACK)
            for name, text in told.items()
            if text and (spans := said_in_text(text, memories))
        }
        if left:
            changed = replace(conversation, **left)  # type: ignore[arg-type]
            changes.append(Put.over(record, record_of_conversation(changed, cursor=cursor_of(record))))
    return changes


async def _in_memories(
    store: Store,
    scope: Scope,
    memories: Sequence[Memory],
    hidden: Sequence[Put],
    at: datetime,
    *,
    deleted: bool,
) -> list[Change]:
    ledger = Ledger(store, scope)
    for memory in await derived_from(store, scope, memories, hidden):
        if memory.key is None and (memory.current or deleted):
            await ledger.end(memory.id, at, deleted=deleted)
    return ledger.changes


async def derived_from(
    store: Store, scope: Scope, memories: Sequence[Memory], rewritten: Sequence[Put]
) -> list[Memory]:
    """The user's other memories that say one of `memories`, whatever else they say.

    Alone, the text of a memory may not show it, where the turn and its neighbours do: also those without a
    key that say a value which all turns they were learned from lose, as these are `rewritten`.
    """
    if not memories:
        return []
    turns = [put for put in rewritten if put.record.kind == TURN and put.was is not None]
    before = {put.record.id: _recalled_stems(replace(put.record, data=put.was or {})) for put in turns}
    after = {put.record.id: _recalled_stems(put.record) for put in turns}
    values = frozenset[str]().union(*(content_stems(memory.text) for memory in memories if memory.key))
    names, keys = {memory.id for memory in memories}, {memory.key for memory in memories} - {None}
    others = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
    others = [other for other in others if other.id not in names and other.key not in keys]
    return await asyncio.to_thread(
        lambda: [
            other
            for other in others
            if _was_lost(other, before, after, values) or said_in_text(told_by(other), memories)
        ]
    )


def _recalled_stems(record: Record) -> frozenset[str]:
    return content_stems(visible(recalled_turn(record).heard_text))


def _was_lost(
    memory: Memory,
    before: Mapping[str, frozenset[str]],
    after: Mapping[str, frozenset[str]],
    values: frozenset[str],
) -> bool:
    """Whether `memory` says one of `values` that was only in the words that its turns lose."""
    if memory.key is not None or not memory.source or not before.keys() >= {*memory.source}:
        return False
    said, left = content_stems(memory.text), {stem for turn in memory.source for stem in after[turn]}
    lost = {stem for turn in memory.source for stem in before[turn] & said} - left
    return not lost.isdisjoint(values)


def told_by(memory: Memory) -> str:
    """All texts of a memory, joined."""
    return ". ".join(text for text in (memory.statement, memory.text, memory.context) if text)


async def versions_of(store: Store, scope: Scope, keys: Collection[str | None]) -> list[Memory]:
    """Every version the user stored under any of `keys`."""
    found = [await scan_all(store, scope, MEMORY, key=key) for key in sorted(set(keys) - {None}, key=str)]
    return [memory_of(record) for records in found for record in records]


async def named(store: Store, scope: Scope, name: str) -> tuple[list[Memory], list[str]]:
    """The memories, and the ids of turns to hide entirely, of the memory or turn with that id.

    For a turn these include what was learned from it alone, and for a global memory the user's own copy.
    """
    found = [memory_of(record) for record in await store.read(scope, MEMORY, [name])]
    shared = [memory_of(record) for record in await store.read(scope.everyone, MEMORY, [name])]
    shared = [memory for memory in shared if memory.author == scope.user]
    own = await versions_of(store, scope, {memory.key for memory in shared})
    found += [memory for memory in own if memory not in found and any(_made_of(s, memory) for s in shared)]
    if found or shared:
        return [*found, *shared], []
    turns = [turn_of(record) for record in await store.read(scope, TURN, [name])]
    if not turns:
        return [], []
    memories = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
    learned = [memory for memory in memories if memory.source == (name,)]
    return [*learned, *(_whole(turn, turn.said_at) for turn in turns if visible(turn.heard_text))], [name]


async def shared_of(store: Store, scope: Scope, memories: Sequence[Memory]) -> list[Record]:
    """The user's global memories and proposals that are, or were made of, one of `memories`."""
    records = await store.read(scope.everyone, MEMORY, [memory.id for memory in memories if memory.id])
    for key in sorted({memory.key for memory in memories if memory.key is not None}):
        records += await scan_all(store, scope.everyone, MEMORY, key=key)
        records += await store.read(scope.everyone, PROPOSAL, [memory_id(scope.user or "", key)])
    theirs = {(r.kind, r.id): r for r in records if r.data.get("author") == scope.user}
    return [r for r in theirs.values() if any(_made_of(memory_of(r), memory) for memory in memories)]


def _made_of(shared: Memory, memory: Memory) -> bool:
    """Whether `shared` was made of `memory`: under its key, and when that was set or while it held."""
    made, set_at, ends = shared.valid_from, memory.valid_from, memory.valid_until
    return shared.key == memory.key and (made == set_at or (made > set_at and (ends is None or made < ends)))


def asks_to_forget(text: str) -> bool:
    """Whether `text` contains a word of forgetting, so that what it names is named to be forgotten."""
    return bool(_FORGETS.search(fold(text)))


async def hide_taken_back(
    store: Store,
    scope: Scope,
    stretch: Stretch,
    changes: Sequence[Proposed],
    retracted: Sequence[Memory],
    *,
    kept: Sequence[Memory],
) -> None:
    """Hide what the user retracted in the turns of a stretch, and what an agent says of it afterwards.

    `changes` were proposed from these turns. They ended the memories `retracted`; `kept` hold from now on.
    """
    turns, context = stretch.turns, stretch.context
    said = {turn.id: turn for turn in (*context, *turns)}
    asked = {turn.id for turn in turns if of_user(turn) and asks_to_forget(turn.heard_text)}
    named = [one for one in changes if isinstance(one, TakeBack) and not asked.isdisjoint(one.source)]
    together = [tuple(turn.id for turn in each.turns) for each in stretch.understood.values()]
    whole = _withheld_whole(turns, context, [*together, *(memory.source for memory in retracted)])
    echoed = any(turn.speaker == "agent" and turn.heard != "" for turn in turns)
    near = (turn.heard_text for turn in (*context, *turns))
    if not (named or whole or retracted or (echoed and asks_to_forget("\n".join(near)))):
        return
    at = max(turn.said_at for turn in turns)
    # of a slot with one value, only the value that was named
    keys = {one.key for one in named if not one.text or ":" in one.key}
    memories = [*retracted, *await versions_of(store, scope, keys)]
    memories += [memory for one in named for memory in await _named(store, scope, one, at)]
    if echoed:
        memories += await _retracted_in(store, scope)
    memories = [memory for memory in memories if not memory.current or memory.id == ""] or list(retracted)
    held = {(memory.key, memory.text) for memory in kept}
    memories = [memory for memory in memories if (memory.key, memory.text) not in held]
    shown = [said[name] for name in whole if name in said and visible(said[name].heard_text)]
    memories += [_whole(turn, at) for turn in shown]
    spared = {turn.id for turn in turns if of_user(turn) and turn.id not in asked}
    # a number given over several turns: none of them states what replaces it
    given = [memory.source for memory in retracted if memory.superseded_by is None and memory.source[1:]]
    spared -= {*itertools.chain(*given)} - {*itertools.chain(*(memory.source for memory in kept))}
    ends = bool(named or retracted)
    await hide(
        store,
        scope,
        memories,
        whole=whole,
        spared=spared - whole,
        until=turns[-1].id,
        derived=ends,
        at=at,
        # an agent's turn may repeat anything that was ever retracted
        deleted=bool(named) and not echoed and all(memory.deleted for memory in retracted),
    )


async def withdraw(store: Store, scope: Scope, retracted: Sequence[Memory]) -> None:
    """Withdraw the user's proposals that were made of what they `retracted`."""
    shared = await shared_of(store, scope, retracted) if retracted else []
    if proposed := [one for one in shared if one.kind == PROPOSAL]:
        await store.write(scope.everyone, [Drop(kind=PROPOSAL, id=one.id) for one in proposed])


def _withheld_whole(
    turns: Sequence[Turn], context: Sequence[Turn], together: Sequence[Sequence[str]]
) -> set[str]:
    """Turns that must not be kept at all: "off the record", and what "forget that" refers to.

    Turns that say one thing `together` go together.
    """
    whole: set[str] = set()
    new, before = {turn.id for turn in turns}, list[Turn]()
    for turn in (*context, *turns):
        own = turn.id in new and of_user(turn)
        if own and takes_back(turn.heard_text):
            meant = {turn.id, *meant_by_that(turn, before)}
            whole |= meant.union(*(said for said in together if not meant.isdisjoint(said)))
        elif own and hushes(turn.heard_text):
            whole.add(turn.id)
        before.append(turn)
    return whole


async def _named(store: Store, scope: Scope, asked: TakeBack, at: datetime) -> list[Memory]:
    """Memories that a request to forget refers to in words: tools choose their own keys."""
    if asked.text:
        return [_said(scope, asked, asked.text, at)]
    records = [turn_of(record) for record in await scan_all(store, scope, TURN)]
    heard = {
        one.text
        for turn in records
        if of_user(turn)
        for one in listen(turn.heard_text)
        if is_of(one.key, asked.key) and one.text
    }
    return [_said(scope, asked, text, at) for text in sorted(heard)]


def _said(scope: Scope, asked: TakeBack, text: str, at: datetime) -> Memory:
    return Memory(id="", key=asked.key, text=text, author=scope.user, valid_from=at)


async def _retracted_in(store: Store, scope: Scope) -> list[Memory]:
    """The memories that were retracted without a replacement, now or later."""
    memories = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
    held = {memory.key for memory in memories if memory.current and memory.key is not None}
    return [m for m in memories if not m.current and m.superseded_by is None and m.key not in held]


def _whole(turn: Turn, at: datetime) -> Memory:
    """A hidden turn as a memory, to find where an agent repeated it."""
    # a marker was not said: otherwise every other marker would count as a repetition
    return Memory(id="", text=visible(turn.heard_text), valid_from=at, source=(turn.id,))


async def unlearn_turns(
    store: Store, scope: Scope, forgotten: Sequence[Memory], spared: Collection[Name] = ()
) -> None:
    """Mark the turns that `forgotten` was learned from, and those that repeat it, as not to be learned from.

    Otherwise a language model that reads later, or reads again, would extract it again. Nothing else is
    learned from such a turn either. `spared` turns stay as they are.
    """
    heard_in = {turn for memory in forgotten for turn in memory.source}
    values = [said for memory in forgotten if (said := content_stems(memory.text))]
    claims = claims_of(forgotten)
    if not heard_in and not values:
        return
    records = [
        record
        for record in await scan_all(store, scope, TURN)
        if not is_unlearned(record) and (TURN, record.id) not in spared
    ]

    def choose() -> dict[str, list[str]]:
        chosen: dict[str, list[str]] = {}
        for record, turn in zip(records, map(turn_of, records), strict=True):
            if turn.id in heard_in or _says(turn, values) or mentioned_in(turn, claims):
                chosen.setdefault(record.key or "", []).append(record.id)
        return chosen

    # in a thread, since it reads every word
    for conversation, turns in (await asyncio.to_thread(choose)).items():
        await until_written(partial(_mark, store, scope, conversation, turns), "the conversation")


async def unlearn_turn(store: Store, scope: Scope, name: str) -> None:
    """The same for the turn with this id, if there is one, also while it is being read."""
    for record in await store.read(scope, TURN, [name]):
        if not is_unlearned(record):
            await until_written(partial(_mark, store, scope, record.key or "", [name]), "the conversation")


async def take_back_turns(store: Store, scope: Scope, names: Collection[str], at: datetime) -> None:
    """Hide these turns, and end what was learned from them alone.

    For histories that are rewound: what was said in the same words anywhere else stays. What the turns
    replaced or denied stays ended, since other turns may have taken it back as well. It ends `at` the rewind,
    since what is said after that is learned again.
    """
    there = await store.read(scope, TURN, [*names])
    if not any(visible(recalled_turn(record).heard_text) for record in there):
        return  # unknown, or taken back before
    for record in there:
        await unlearn_turn(store, scope, record.id)  # first: what was learned by now is named
    gone = list[Memory]()

    async def attempt() -> None:
        ledger = Ledger(store, scope)
        gone.clear()
        for record in await scan_all(store, scope, MEMORY):
            memory = memory_of(record)
            if not _only_of(names, memory):
                continue
            gone.append(memory)
            held = await ledger.holding(memory.id)
            if held and _only_of(names, held):  # it may have been confirmed elsewhere meanwhile
                await ledger.end(held.id, at)
        if ledger.changes:
            await store.write(scope, ledger.changes)

    await until_written(attempt, "what was taken back")
    await withdraw(store, scope, gone)
    await hide(store, scope, [], whole=names)  # last: if this is interrupted, the next time begins again


def _only_of(turns: Collection[str], memory: Memory) -> bool:
    """Whether `memory` was learned from `turns` and from no others."""
    return bool(memory.source) and set(turns).issuperset(memory.source)


async def _mark(store: Store, scope: Scope, conversation: str, turns: Sequence[str]) -> None:
    whose = await conversation_record(store, scope, conversation)
    if whose is None:
        return
    there = await store.read(scope, TURN, turns)
    marked = [replace(record, data={**record.data, "unlearned": True}) for record in there]
    # written with the conversation: a reader that read these turns before conflicts and reads again
    await store.write(scope, [standing(whose), *map(Put.over, there, marked)])


def _says(turn: Turn, values: Sequence[frozenset[str]]) -> bool:
    said = content_stems(turn.heard_text)
    return any(value <= said for value in values)
