"""Tasks: conversations as units of work, with their status and the results of their steps.

Turns belong to the conversation itself; this module has the results, and ways to list many conversations.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from echoic.checks import checked_depth
from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import (
    CONVERSATION,
    DISTILLED,
    RESULT,
    TOLD,
    TURN,
    conversation_of,
    cursor_of,
    memory_id,
    reading,
    record_of_conversation,
    scan_all,
    turn_of,
)
from echoic.stores.base import Change, Put, Record, Store, Wanted
from echoic.types import MAX_TEXT_BYTES, STATUSES, Conversation, Scope, Turn, checked_name, checked_time

_COMPLETED: Final = ("completed", DISTILLED)
_ANY_ZONE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one step of a task, such as a tool call."""

    id: str
    name: str
    value: Any
    """JSON."""
    at: datetime
    """When it was produced (aware, UTC)."""
    arguments: Mapping[str, Any] | None = None
    """The tool's arguments; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMessage:
    """One message in a task's history: a turn, a tool call, or its result."""

    role: Literal["user", "agent", "tool_call", "tool_result"]
    """"user" stands for every speaker who is not an agent."""
    at: datetime
    text: str = ""
    """What was said and heard."""
    name: str = ""
    """The name of the tool or speaker."""
    value: Any = None
    """A call's arguments, or the result."""
    id: str = ""
    """The id of the turn or the result; a call has its result's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A conversation as a unit of work: its status, its turns, and intermediate results."""

    user: str
    conversation: Conversation
    turns: tuple[Turn, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def messages(self) -> tuple[TaskMessage, ...]:
        """Turns, tool calls and their results, in order."""
        said = [
            TaskMessage(
                role="agent" if turn.speaker == "agent" else "user",
                at=turn.said_at,
                text=turn.heard_text,
                name=turn.speaker,
                id=turn.id,
            )
            for turn in self.turns
        ]
        done: list[TaskMessage] = []
        for result in self.results:
            part = TaskMessage(
                role="tool_result", at=result.at, name=result.name, value=result.value, id=result.id
            )
            if result.arguments is not None:
                done.append(replace(part, role="tool_call", value=result.arguments))
            done.append(part)
        return tuple(sorted([*said, *done], key=lambda message: message.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Selects conversations by the fields that are given; InvalidInput if one is not valid."""

    agent: str | None = None
    status: str | None = None
    """One of `STATUSES`, or "distilled": completed and learned from."""
    since: datetime | None = None
    """The earliest `started_at` (aware)."""
    until: datetime | None = None
    """Only conversations that began before then (aware)."""

    def __post_init__(self) -> None:
        known = (*STATUSES, DISTILLED)
        if self.status is not None and self.status not in known:
            raise InvalidInput(f"unknown status {brief(self.status)}: use one of {', '.join(known)}")
        if self.agent is not None:
            checked_name(self.agent, "agent")
        if self.since is not None:
            checked_time(self.since, "since")
        if self.until is not None:
            checked_time(self.until, "until")

    def selects(self, conversation: Conversation) -> bool:
        """Whether `conversation` matches every field."""
        return (
            self.agent in {None, conversation.agent}
            and (
                self.status in {None, conversation.status}
                or (self.status == DISTILLED and conversation.distilled)
            )
            and (self.since is None or conversation.started_at >= self.since)
            and (self.until is None or conversation.started_at < self.until)
        )

    def wanted(self, deployment: str, user: str | None = None) -> Wanted:
        """A query of a store's index, which may return more: times are stored in any zone."""
        status = self.status
        return Wanted(
            kind=CONVERSATION,
            deployment=deployment,
            user=user,
            status={None: (), DISTILLED: _COMPLETED, "completed": _COMPLETED}.get(status, (status or "",)),
            agent=self.agent,
            since=None if self.since is None else _iso(self.since, -_ANY_ZONE),
            until=None if self.until is None else _iso(self.until, _ANY_ZONE),
        )


async def read_conversations(store: Store, scope: Scope, chosen: ConversationFilter) -> list[Conversation]:
    """The conversations of `scope` that `chosen` selects, oldest first."""
    records = await scan_all(store, scope, CONVERSATION)
    return [found for record in records if chosen.selects(found := conversation_of(record))]


async def read_all_conversations(
    store: Store, deployment: str, chosen: ConversationFilter
) -> list[tuple[str, Conversation]]:
    """The conversations of a deployment that `chosen` selects, with their users, oldest first."""
    listed = [
        (scope.user, conversation)
        for scope, record in await _listed(store, chosen.wanted(deployment))
        if scope.user is not None and (conversation := _selected(record, chosen)) is not None
    ]
    return sorted(listed, key=lambda item: (item[1].started_at, item[0], item[1].id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedConversation:
    """A conversation in a list over many users."""

    user: str
    conversation: Conversation
    place: str
    """Its position in the list, to ask for the page after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """Some conversations, newest first."""

    conversations: list[ListedConversation]
    more: bool
    """Whether there may be older ones."""


async def newest_conversations(
    store: Store,
    deployment: str,
    chosen: ConversationFilter,
    *,
    user: str | None = None,
    limit: int,
    before: str | None = None,
) -> ConversationPage:
    """The conversations that began last, of a deployment or one user; only this page is read.

    `before` is the place of the last one of the previous page; raises InvalidInput if it is not one.
    """
    wanted = chosen.wanted(deployment, user)
    end = None if before is None else _place_of(before)
    if end is not None:  # read those that began at the same moment again
        wanted = replace(wanted, until=min(filter(None, (wanted.until, f"{end[0]} "))))
    asked = limit + (1 if end is None else 2)
    while True:
        records = await _listed(store, replace(wanted, newest=asked))
        whole = len(records) < asked
        places = sorted(
            (
                ((str(record.data.get("started_at")), scope.user or "", record.id), record)
                for scope, record in records
            ),
            key=lambda item: item[0],
            reverse=True,
        )
        # some that began at the last moment may be missing
        found = [
            ListedConversation(user=place[1], conversation=conversation, place=_written(place))
            for place, record in places
            if (whole or place[0] > places[-1][0][0]) and (end is None or place < end)
            if (conversation := _selected(record, chosen)) is not None
        ]
        if whole or len(found) >= limit:
            return ConversationPage(conversations=found[:limit], more=not whole or len(found) > limit)
        asked *= 2


def _selected(record: Record, chosen: ConversationFilter) -> Conversation | None:
    """The conversation of an operator's list if `chosen` selects it; None for a damaged one too, which keeps
    nobody else's out of the list.
    """
    try:
        conversation = conversation_of(record)
        return conversation if chosen.selects(conversation) else None
    except (StoreCorrupt, TypeError):  # as of a time without a zone
        return None


def _written(place: tuple[str, str, str]) -> str:
    """A place as text, with the length of the user's id: it may contain any sign."""
    moment, user, name = place
    return f"{moment}|{len(user)}|{user}{name}"


def _place_of(written: str) -> tuple[str, str, str]:
    moment, _, counted = written.partition("|")
    length, _, rest = counted.partition("|")
    try:
        datetime.fromisoformat(moment)
        end = int(length)
    except ValueError:
        end = -1
    if not 0 <= end <= len(rest):
        raise InvalidInput("`cursor` is not one that an answer gave", field="cursor")
    return moment, rest[:end], rest[end:]


async def _listed(store: Store, wanted: Wanted) -> list[tuple[Scope, Record]]:
    """The conversations asked for, and possibly more, by the store's index if it has one."""
    if hasattr(store, "listed"):
        found: list[tuple[Scope, Record]] = await store.listed(wanted)
        return found
    found = []
    for scope in await store.scopes(wanted.deployment):
        if scope.user is not None and wanted.user in {None, scope.user}:
            with contextlib.suppress(StoreCorrupt, StoreTooNew):
                found += [(scope, record) for record in await scan_all(store, scope, CONVERSATION)]
    if wanted.newest is None:
        return found
    began = [(str(record.data.get("started_at")), (scope, record)) for scope, record in found]
    there = [item for item in began if wanted.until is None or item[0] < wanted.until]
    return [item for _, item in sorted(there, key=lambda item: item[0])[-wanted.newest :]]


def _iso(moment: datetime, by: timedelta) -> str | None:
    try:
        return (moment.astimezone(UTC) + by).isoformat()
    except OverflowError:
        return None


async def read_conversation(store: Store, scope: Scope, conversation: str) -> Conversation | None:
    name = checked_name(conversation, "conversation id")
    records = await store.read(scope, CONVERSATION, [name])
    return conversation_of(records[0]) if records else None


async def read_task(store: Store, scope: Scope, conversation: str) -> Task | None:
    found = await read_conversation(store, scope, conversation)
    if found is None or scope.user is None:
        return None
    turns = await scan_all(store, scope, TURN, key=conversation)
    results = await scan_all(store, scope, RESULT, key=conversation)
    return Task(
        user=scope.user,
        conversation=found,
        turns=tuple(turn_of(record) for record in turns),
        results=tuple(result_of(record) for record in results),
    )


async def keep_result(
    store: Store,
    scope: Scope,
    conversation: str,
    result: Result,
    *,
    masked: Callable[[Any, str], Any],
    told: str | None,
) -> Result:
    """Store `result` in `conversation`, or raise InvalidInput; an existing one with its id is returned
    unchanged.

    `masked` removes the secrets from a JSON value, given its name. `told`: see `TOLD`.
    """
    checked_name(result.name, "result name")
    value = masked(_checked_json(result.value, f"result {brief(result.name)}"), result.name)
    named = result.id or memory_id(conversation, result.name, _canonical(value))
    asked = result.arguments
    if asked is not None:
        asked = masked(_checked_json(asked, f"arguments of {brief(result.name)}"), result.name)
    new = replace(result, id=checked_name(named, "result id"), value=value, arguments=asked)
    put = Put(record=record_of_result(new, conversation, told=told), expect=0)

    async def attempt() -> Result:
        known = await store.read(scope, RESULT, [new.id])
        if known and known[0].key != conversation:  # otherwise the new result would be lost
            raise InvalidInput(
                f"result id {brief(new.id)} is taken in conversation {brief(known[0].key)}: "
                "give every result of a user an id of its own, or none"
            )
        if known:
            return result_of(known[0])
        # written with the conversation, so that no result of a forgotten one is stored
        await _write_with(store, scope, conversation, {"updated_at": result.at}, [put])
        return new

    return await until_written(attempt, "conversation", conversation)


async def mark(store: Store, scope: Scope, conversation: str, **fields: Any) -> Conversation:
    """Change fields of a conversation, such as its status; InvalidInput if there is none."""
    return await until_written(
        lambda: _write_with(store, scope, conversation, fields, []), "conversation", conversation
    )


async def _write_with(
    store: Store, scope: Scope, conversation: str, fields: Mapping[str, Any], changes: list[Change]
) -> Conversation:
    records = await store.read(scope, CONVERSATION, [checked_name(conversation, "conversation id")])
    if not records:
        raise InvalidInput(f"there is no conversation {brief(conversation)}; open it first")
    before = conversation_of(records[0])
    changed = replace(before, **fields)
    # a result may be older than what is kept already: it makes no conversation old enough for retention
    changed = replace(changed, updated_at=max(before.updated_at, changed.updated_at))
    moved = record_of_conversation(changed, cursor=cursor_of(records[0]))
    # keep the record's other fields
    others = {name: value for name, value in records[0].data.items() if name != DISTILLED}
    kept = replace(moved, data={**others, **moved.data})
    await store.write(scope, [Put.over(records[0], kept), *changes])
    return changed


def record_of_result(result: Result, conversation: str, *, told: str | None = None) -> Record:
    """`result` as a record of `conversation`; `told`: see `TOLD`."""
    data = {"name": result.name, "value": result.value, "at": result.at.isoformat()}
    if result.arguments is not None:
        data["arguments"] = dict(result.arguments)
    if told is not None:
        data[TOLD] = told
    return Record(kind=RESULT, id=result.id, key=conversation, data=data)


@reading
def result_of(record: Record) -> Result:
    """The inverse of `record_of_result`."""
    data = record.data
    return Result(
        id=record.id,
        name=data["name"],
        value=data["value"],
        at=datetime.fromisoformat(data["at"]),
        arguments=data.get("arguments"),
    )


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


def fits(value: Any) -> bool:
    """Whether `value` is JSON that can be stored."""
    try:
        _checked_json(value, "it")
    except InvalidInput:
        return False
    return True


def _checked_json(value: Any, what: str) -> Any:
    """`value` as the JSON that will be read back."""
    try:
        text = _canonical(value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{what} is not JSON that can be kept: {error}. Turn it into plain values."
        ) from error
    checked_depth(value, what)
    if size > MAX_TEXT_BYTES:
        raise InvalidInput(
            f"{what} has {size} bytes as JSON, {MAX_TEXT_BYTES} at most: keep what matters of it"
        )
    if "\\u0000" in text and _holds_nul(value):
        raise InvalidInput(f"{what} holds a NUL character. Remove it first.")
    return json.loads(text)


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_nul(item) for pair in value.items() for item in pair)
    return isinstance(value, list | tuple) and any(map(_holds_nul, value))
