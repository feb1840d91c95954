"""Whether anything said may be kept: of a user from now on, or of one conversation.

The store of a service asks here before it writes (`admitted`), so no caller of it can keep what must not be.
The choice stands in the deployment's own scope under a hash of whose it is: it outlives `forget`, and tells
nobody who made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, cast, get_args

from echoic.errors import InvalidInput, NotAllowed
from echoic.memory.profile import DIRECTIVES
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    INDEXED_ITEM,
    ITEM,
    MEMORY,
    PROPOSAL,
    RESULT,
    TURN,
    memory_id,
)
from echoic.stores.base import Change, Drop, Put, Record, Require, Store
from echoic.types import Consent, Scope

CONSENT: Final = "consent"
"""The kind of the record that says that nothing may be kept."""
REFUSED: Final = (
    "nothing may be kept of this user, as they chose: what is there can be read, deleted and forgotten. "
    "set_consent('keep') allows it again"
)
_OF_A_CALL: Final = frozenset({TURN, CONVERSATION, RESULT, CHECKPOINT, *CALL_PARTS})
"""Kinds that follow from a conversation. They are left out, and the call goes on; other kinds are refused."""
_OTHERS: Final = frozenset({MEMORY, PROPOSAL, ITEM, INDEXED_ITEM, DIRECTIVES})
_STAYS: Final[Mapping[str, tuple[str, ...]]] = {
    MEMORY: ("text", "statement"),
    PROPOSAL: ("text",),
    TURN: (),
    CONVERSATION: ("summary", "recall_key"),
}
"""What a record that is written again must hold as before, so that it keeps no more than it did."""


def checked_consent(consent: object) -> Consent:
    """`consent`, if it is one.

    Raises:
        InvalidInput: it is none.
    """
    if consent not in get_args(Consent):
        raise InvalidInput(f"unknown consent: use one of {', '.join(get_args(Consent))}")
    return cast("Consent", consent)


async def read_consent(store: Store, scope: Scope) -> Consent:
    """What the user chose.

    Raises:
        StoreUnavailable: could not look.
    """
    return "never" if await keeps_nothing(store, scope) else "keep"


async def write_consent(store: Store, scope: Scope, consent: Consent, at: datetime) -> None:
    """Note what the user chose; it holds from the next write on, in every process."""
    if consent == "keep":
        await store.write(scope.everyone, [Drop(kind=CONSENT, id=_name(scope))])
    else:
        await _note(store, scope, _name(scope), at)


async def write_off_the_record(store: Store, scope: Scope, conversation: str, at: datetime) -> None:
    """Note that nothing of `conversation` may be kept."""
    await _note(store, scope, _name(scope, conversation), at)


async def keeps_nothing(store: Store, scope: Scope, conversation: str | None = None) -> bool:
    """Whether nothing may be kept of the user, or of this conversation of theirs.

    Raises:
        StoreUnavailable: could not look.
    """
    names = [_name(scope), *([] if conversation is None else [_name(scope, conversation)])]
    return bool(await store.read(scope.everyone, CONSENT, names))


async def admitted(store: Store, scope: Scope, changes: Sequence[Change]) -> list[Change]:
    """Those of `changes` that may be written: of a call that must not be kept, none.

    Args:
        store: where the choices are read.
        scope: where the changes go.
        changes: as they are to be written.

    Raises:
        NotAllowed: one of them would keep something of its own of a user who chose "never".
        StoreUnavailable: could not look; nothing may be written.
    """
    asked = [_asked(scope, change) if _adds(change) else () for change in changes]
    wanted = sorted({name for names in asked for name in names})
    if not wanted:
        return list(changes)
    found = {record.id for record in await store.read(scope.everyone, CONSENT, wanted)}
    if not found:
        return list(changes)
    left_out = [not found.isdisjoint(names) for names in asked]
    for change, left in zip(changes, left_out, strict=True):
        if left and isinstance(change, Put) and change.record.kind not in _OF_A_CALL:
            raise NotAllowed(REFUSED)
    # what a call's records require is a conversation that is not kept either
    return [
        change
        for change, left in zip(changes, left_out, strict=True)
        if not left and not (any(left_out) and isinstance(change, Require) and change.kind == CONVERSATION)
    ]


def _adds(change: Change) -> bool:
    """Whether `change` keeps something that was not kept before: no end, no retraction, no cut."""
    if not isinstance(change, Put) or change.record.kind not in _OF_A_CALL | _OTHERS:
        return False
    record, was = change.record, change.was
    if not change.expect or was is None:
        return True
    if record.kind == DIRECTIVES:
        return any(was.get(name) != value for name, value in record.data.items())
    stays = _STAYS.get(record.kind)
    return stays is None or any(was.get(name) != record.data.get(name) for name in stays)


def _asked(scope: Scope, change: Change) -> tuple[str, ...]:
    """Whose choices `change` depends on, as the ids they are noted under."""
    assert isinstance(change, Put)
    record = change.record
    if scope.user is None:  # what a user made everyone's
        author = record.data.get("author")
        return (_name(Scope(scope.deployment, author)),) if isinstance(author, str) and author else ()
    conversation = record.key
    if record.kind == CONVERSATION:
        conversation = record.id
    elif record.kind == CHECKPOINT:
        conversation = record.data.get("conversation")
    of_call = record.kind in _OF_A_CALL and isinstance(conversation, str)
    return (_name(scope), *([_name(scope, conversation or "")] if of_call else []))


async def _note(store: Store, scope: Scope, name: str, at: datetime) -> None:
    record = Record(kind=CONSENT, id=name, data={"since": at.isoformat()})
    await store.write(scope.everyone, [Put(record=record)])


def _name(scope: Scope, conversation: str | None = None) -> str:
    """The id of a choice: a hash, from which nobody reads whose it is."""
    return memory_id(CONSENT, scope.user or "", *([] if conversation is None else [conversation]))
