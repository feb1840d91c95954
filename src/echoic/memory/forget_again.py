"""Carry out again what was erased after a store's bytes were copied: a restored backup, a late replica.

The list of erasures holds hashes only. Whoever was erased is found by hashing whoever is there; what was
erased is erased as it was the first time, by `Erasing`. A record that lost words then and does not now goes
whole: which words they were, nobody knows any more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from echoic.memory.compliance import Compliance, PastErasure, mark
from echoic.memory.erasure import Erasing
from echoic.memory.export import KINDS
from echoic.memory.records import (
    CHECKPOINT,
    CONVERSATION,
    GIVEN,
    INDEXED_ITEM,
    LINK_CODE,
    MEMORY,
    PHONE_LINE,
    PROPOSAL,
    TURN,
    scan_all,
)
from echoic.memory.service_context import Parts
from echoic.stores.base import Drop, Erasable, Put, Record, Store
from echoic.types import Scope

log = logging.getLogger(__name__)

_NAMING = {MEMORY: "author", PROPOSAL: "author", PHONE_LINE: "user", LINK_CODE: "whose"}
"""What names a user in the scope of everyone, by kind: somebody may be named there alone."""
_SUMS_UP = ("summary", "recall_key")


async def forget_again(parts: Parts, compliance: Compliance) -> int:
    """Erase what the store's bytes do not know to be erased, and mark it; how many erasures that were.

    Raises:
        StoreError: it could not be done; nothing may be read of this store before it is.
    """
    async with compliance.applying():
        missing = await compliance.missing(parts.store)  # another process may have been faster
        by_scope: dict[str, list[PastErasure]] = {}
        for past in missing:
            by_scope.setdefault(past.scope, []).append(past)
        for scope in await _everybody(parts.store):
            listed = by_scope.get(compliance.pseudonym(scope), [])
            if any(past.gone is None for past in listed):
                await _erase_whole(parts, scope)
            elif listed:
                await _erase_part(parts, scope, compliance, listed)
        await mark(parts.store, [past.id for past in missing])
    if missing:
        log.warning("this store was restored from before %d erasures, which were made again", len(missing))
    return len(missing)


async def _everybody(store: Store) -> list[Scope]:
    """Every scope that holds or is named in anything; users before everyone's."""
    scopes = await store.scopes()
    named = {scope: None for scope in scopes if scope.user is not None}
    for everyone in [scope for scope in scopes if scope.user is None]:
        for kind, field in _NAMING.items():
            for record in await scan_all(store, everyone, kind):
                if isinstance(user := record.data.get(field), str) and user:
                    named[Scope(everyone.deployment, user)] = None
    return [*named, *(scope for scope in scopes if scope.user is None)]


async def _erase_whole(parts: Parts, scope: Scope) -> None:
    if scope.user is None:
        await parts.store.erase(scope)
    else:
        await Erasing(parts, scope).forget(None, None, None)


async def _erase_part(
    parts: Parts, scope: Scope, compliance: Compliance, listed: Sequence[PastErasure]
) -> None:
    gone = frozenset[str]().union(*(past.gone or () for past in listed))
    rewritten = frozenset[str]().union(*(past.rewritten for past in listed))
    before = await _records(parts.store, scope)
    hashes = {name: compliance.record(scope, *name) for name in before}
    meant = {name for name, told in hashes.items() if told in gone}
    losing = {name for name, told in hashes.items() if told in rewritten} - meant
    if scope.user is not None:
        # first what was remembered: its words are taken out of turns and summaries as they were then
        for kind, name in sorted(meant):
            if kind == MEMORY and await parts.store.read(scope, MEMORY, [name]):
                await Erasing(parts, scope).forget(None, None, name)
    there = await _records(parts.store, scope)
    changes: list[Erasable] = [Drop(kind=kind, id=name) for kind, name in meant & there.keys()]
    changes += [_stripped(there[name]) for name in losing & there.keys() if there[name] == before[name]]
    if scope.user is not None:  # they may quote anything
        quoting = [name for name in there if name[0] in {GIVEN, CHECKPOINT} and name not in meant]
        changes += [Drop(kind=kind, id=name) for kind, name in quoting]
    if changes:
        await parts.store.erase(scope, changes)


def _stripped(record: Record) -> Erasable:
    """What becomes of a record some of whose words were destroyed, nobody knows which."""
    if record.kind != CONVERSATION:
        return Drop(kind=record.kind, id=record.id)
    left = {name: value for name, value in record.data.items() if name not in _SUMS_UP}
    return Put.over(record, replace(record, data=left))


async def _records(store: Store, scope: Scope) -> Mapping[tuple[str, str], Record]:
    found: dict[tuple[str, str], Record] = {}
    for kind in (MEMORY, TURN, INDEXED_ITEM, *KINDS):
        found |= {(record.kind, record.id): record for record in await scan_all(store, scope, kind)}
    return found
