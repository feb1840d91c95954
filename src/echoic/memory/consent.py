"""Consent: whether what a user says may be stored, from now on or in one conversation.

A service's store calls `admitted` before each write, so no code above it can store what must not be. The
choice is kept in the deployment's own scope under a hash of the user: it outlives `forget` and does not
reveal who made it.

A tool's write belongs to the conversation that `within` names. If none is named, the user's latest answer
about a conversation applies until that conversation is completed, at most for `_LATEST_FOR_S`.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal, cast, get_args

from echoic.errors import InvalidInput, NotKept
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
from echoic.types import Consent, Scope, Turn

Verdict = Literal["keep", "ask", "never", "off the record"]
"""Whether something may be kept now. "ask": not until the user agrees. "off the record": not in this
conversation."""

CONSENT: Final = "consent"
"""The kind of the record that holds a choice."""
REASONS: Final[Mapping[Verdict, str]] = {
    "never": (
        "nothing may be kept of this user, as they chose: what is there can be read, deleted and forgotten. "
        "The consent 'keep' allows it again"
    ),
    "ask": (
        "this user wants to be asked first: ask whether this conversation may be remembered. "
        "`remember` of the conversation notes a yes"
    ),
    "off the record": (
        "the user asked that this conversation be not remembered, and nothing was kept. If they change their "
        "mind, `remember` of the conversation notes it"
    ),
}
"""Why a write is refused, for developers, in words that the methods, the routes and the tools share."""
SPOKEN: Final[Mapping[Verdict, str]] = {
    "never": "You asked me to keep nothing about you, so I have not written that down.",
    "ask": "May I remember this conversation? Until you say so, I write nothing down.",
    "off the record": (
        "You asked me not to remember this conversation, so I have not written that down. Tell me if I may "
        "remember it after all."
    ),
}
"""Why nothing is kept, in words an agent can say."""
_MOST_TURNS: Final = 2_000
_MOST_CONVERSATIONS: Final = 1_000
_LATEST_FOR_S: Final = 12 * 3600.0
_DERIVED: Final = "\0derived"
_OF_A_CALL: Final = frozenset({TURN, CONVERSATION, RESULT, CHECKPOINT, *CALL_PARTS})
"""Kinds that follow from a conversation. They are left out and the call goes on; writes of other kinds are
refused."""
_OTHERS: Final = frozenset({MEMORY, PROPOSAL, ITEM, INDEXED_ITEM, DIRECTIVES})
_STAYS: Final[Mapping[str, tuple[str, ...]]] = {
    MEMORY: ("text", "statement"),
    PROPOSAL: ("text",),
    TURN: (),
    CONVERSATION: ("summary", "recall_key"),
}
"""Fields that must not change when a record is rewritten, so that it keeps no more than before."""


def checked_consent(consent: object) -> Consent:
    """`consent`, if it is valid, or InvalidInput."""
    if consent not in get_args(Consent):
        raise InvalidInput(f"unknown consent: use one of {', '.join(get_args(Consent))}")
    return cast("Consent", consent)


_within: ContextVar[str] = ContextVar("echoic.consent.within", default="")


@contextlib.contextmanager
def within(conversation: str | None) -> Iterator[None]:
    """Name the conversation that writes inside belong to; None or empty if it is unknown."""
    token = _within.set(conversation or "")
    try:
        yield
    finally:
        _within.reset(token)


@contextlib.contextmanager
def from_what_is_kept() -> Iterator[None]:
    """Mark the writes inside as derived from stored data: they are allowed unless the user chose "never"."""
    token = _within.set(_DERIVED)
    try:
        yield
    finally:
        _within.reset(token)


class PendingTurns:
    """Turns of conversations whose consent question is open, held by this process and lost when it ends.

    A conversation without new turns for `_LATEST_FOR_S` counts as abandoned, and its turns are dropped.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[tuple[Scope, str], tuple[float, list[tuple[Turn, bool]]]] = OrderedDict()

    def add(self, scope: Scope, conversation: str, turns: Sequence[Turn], *, learn: bool) -> None:
        """Hold `turns`, each once; of a very long conversation only the last ones."""
        now = time.monotonic()
        _, said = self._said.pop((scope, conversation), (now, []))
        known = {turn.id for turn, _ in said}
        said += [(turn, learn) for turn in turns if turn.id not in known]
        self._said[scope, conversation] = now, said[-_MOST_TURNS:]
        oldest = next(iter(self._said))
        while len(self._said) > _MOST_CONVERSATIONS or now - self._said[oldest][0] > _LATEST_FOR_S:
            del self._said[oldest]
            oldest = next(iter(self._said))

    def turns(self, scope: Scope, conversation: str) -> list[Turn]:
        return [turn for turn, _ in self._said.get((scope, conversation), (0.0, []))[1]]

    def take(self, scope: Scope, conversation: str) -> list[tuple[Turn, bool]]:
        """Remove and return the pending turns, each with whether memories are learned from it."""
        return self._said.pop((scope, conversation), (0.0, []))[1]

    def drop(self, scope: Scope) -> None:
        for name in [name for name in self._said if name[0] == scope]:
            del self._said[name]


async def read_consent(store: Store, scope: Scope) -> Consent:
    """The user's choice."""
    found = await store.read(scope.everyone, CONSENT, [_name(scope.user)])
    return _choice(found[0]) if found else "keep"


async def write_consent(store: Store, scope: Scope, consent: Consent, at: datetime) -> None:
    """Store the user's choice; it applies from the next write on, in every process."""
    if consent == "keep":
        await store.write(scope.everyone, [Drop(kind=CONSENT, id=_name(scope.user))])
    else:
        await store.write(scope.everyone, [_note(_name(scope.user), consent, at)])


async def write_answer(
    store: Store,
    scope: Scope,
    conversation: str,
    at: datetime,
    *,
    remember: bool,
    said_at: datetime | None = None,
) -> None:
    """Store the user's answer whether `conversation` may be kept; `said_at` is earlier where they said it."""
    said: Consent = "keep" if remember else "never"
    names = _name(scope.user, conversation), _name(scope.user, "")
    latest = _note(names[1], said, at, of=names[0])
    await store.write(scope.everyone, [_note(names[0], said, min(at, said_at or at)), latest])


async def read_answers(store: Store, scope: Scope, conversation: str) -> list[tuple[bool, datetime]]:
    """The user's last answer whether `conversation` may be kept, and when they gave it; empty without one."""
    found = await store.read(scope.everyone, CONSENT, [_name(scope.user, conversation)])
    return [(_choice(note) == "keep", datetime.fromisoformat(note.data["since"])) for note in found]


async def close_answer(store: Store, scope: Scope, conversation: str) -> None:
    """Mark `conversation` as over: its answer no longer applies to writes without a conversation."""
    latest = await store.read(scope.everyone, CONSENT, [_name(scope.user, "")])
    if latest and latest[0].data.get("of") == _name(scope.user, conversation):
        await store.write(scope.everyone, [Drop(kind=CONSENT, id=latest[0].id)])


async def verdict(store: Store, scope: Scope, conversation: str = "") -> Verdict:
    """Whether something may be kept of the user, or of this conversation (empty if it is unknown)."""
    names = _name(scope.user), _name(scope.user, conversation)
    return _decided({record.id: record for record in await store.read(scope.everyone, CONSENT, names)}, names)


async def keeps_nothing(store: Store, scope: Scope, conversation: str | None = None) -> bool:
    """Whether nothing may be kept of the user, or of this conversation, at least not yet."""
    if conversation is None:
        return await read_consent(store, scope) == "never"
    return await verdict(store, scope, conversation) != "keep"


async def admitted(store: Store, scope: Scope, changes: Sequence[Change]) -> list[Change]:
    """Those `changes` that may be written; records of a call that must not be kept are left out.

    Raises:
        NotKept: a change would store something outside a call that the user does not want kept, or not yet.
        StoreUnavailable: the choice could not be read; nothing may be written.
    """
    verdicts = await _verdicts(store, scope, changes)
    for change, decided in zip(changes, verdicts, strict=True):
        if decided != "keep" and isinstance(change, Put) and not _is_of_a_call(change.record):
            raise NotKept(REASONS[decided], say=SPOKEN[decided])
    left_out = [decided != "keep" for decided in verdicts]
    # the conversation that a call's records require is not kept either
    return [
        change
        for change, left in zip(changes, left_out, strict=True)
        if not left and not (any(left_out) and isinstance(change, Require) and change.kind == CONVERSATION)
    ]


async def importable(store: Store, scope: Scope, records: Sequence[Record]) -> list[Record]:
    """Those new `records` that may be written; those of a conversation off the record are left out.

    Raises:
        NotKept: the user wants nothing kept, or to be asked first, or nothing kept outside calls.
    """
    verdicts = await _verdicts(store, scope, [Put(record=record, expect=0) for record in records])
    for record, decided in zip(records, verdicts, strict=True):
        if decided in {"never", "ask"} or (decided != "keep" and not _is_of_a_call(record)):
            raise NotKept(REASONS[decided], say=SPOKEN[decided])
    return [record for record, decided in zip(records, verdicts, strict=True) if decided == "keep"]


async def _verdicts(store: Store, scope: Scope, changes: Sequence[Change]) -> list[Verdict]:
    """The decision about each of `changes`: whether it may be written."""
    asked = [_asked(scope, change) if _adds(change) else () for change in changes]
    wanted = sorted({name for names in asked for name in names})
    read = await store.read(scope.everyone, CONSENT, wanted) if wanted else []
    found = {record.id: record for record in read}
    return [_decided(found, names) if found else "keep" for names in asked]


def _decided(found: Mapping[str, Record], names: Sequence[str]) -> Verdict:
    """The decision that follows from the user's choice and that of the conversation, if there is one."""
    if not names:
        return "keep"
    chosen, *said = (found.get(name) for name in names)
    user = "keep" if chosen is None else _choice(chosen)
    if user == "never":
        return "never"
    of_call = said[0] if said else None
    if of_call is None or _is_old(of_call):
        return user if said else "keep"
    answer = _choice(of_call)
    return "off the record" if answer == "never" else "keep"


def _is_old(answer: Record) -> bool:
    """Whether an answer no longer applies to writes without a conversation."""
    age = datetime.now(UTC) - datetime.fromisoformat(answer.data["since"])
    return "of" in answer.data and age.total_seconds() > _LATEST_FOR_S


def _choice(record: Record) -> Consent:
    return cast("Consent", record.data.get("choice", "never"))


def _adds(change: Change) -> bool:
    """Whether `change` keeps something new, rather than ending, retracting or cutting something."""
    if not isinstance(change, Put) or change.record.kind not in _OF_A_CALL | _OTHERS:
        return False
    record, was = change.record, change.was
    if not change.expect or was is None:
        return True
    if record.kind == DIRECTIVES:
        return any(was.get(name) != value for name, value in record.data.items())
    stays = _STAYS.get(record.kind)
    return stays is None or any(was.get(name) != record.data.get(name) for name in stays)


def _is_of_a_call(record: Record) -> bool:
    return record.kind in _OF_A_CALL or (record.kind in {ITEM, INDEXED_ITEM} and _held_in(record) is not None)


def _held_in(record: Record) -> str | None:
    """The conversation that a record of a call belongs to."""
    if record.kind == CONVERSATION:
        return record.id
    found = record.data.get("conversation") if record.kind in {CHECKPOINT, ITEM, INDEXED_ITEM} else record.key
    return found if isinstance(found, str) and found else None


def _asked(scope: Scope, change: Change) -> tuple[str, ...]:
    """The ids of the choices that `change` depends on: first the user's, then the conversation's."""
    assert isinstance(change, Put)
    record, user = change.record, scope.user
    if user is None:  # memories that a user made global
        user = record.data.get("author")
        if not isinstance(user, str) or not user:
            return ()
        conversation = _within.get()
    else:
        conversation = (_held_in(record) if _is_of_a_call(record) else None) or _within.get()
    return (_name(user), *([] if conversation == _DERIVED else [_name(user, conversation)]))


def _note(name: str, choice: Consent, at: datetime, *, of: str | None = None) -> Put:
    data = {"since": at.isoformat(), "choice": choice} | ({} if of is None else {"of": of})
    return Put(record=Record(kind=CONSENT, id=name, data=data))


@lru_cache(maxsize=1024)  # read at every write
def _name(user: str | None, conversation: str | None = None) -> str:
    """The id of a choice: a hash that does not reveal whose it is."""
    return memory_id(CONSENT, user or "", *([] if conversation is None else [conversation]))
