"""Tasks: conversations as units of work, with their status and the results of their steps.

Turns belong to the conversation itself; this module has the results, and ways to list many conversations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from echoic.errors import InvalidInput, brief
from echoic.memory.concurrency import until_written
from echoic.memory.records import (
    CONVERSATION,
    DISTILLED,
    RESULT,
    TURN,
    conversation_of,
    cursor_of,
    memory_id,
    record_of_conversation,
    scan_all,
    turn_of,
)
from echoic.stores.base import Change, Put, Record, Store, Wanted
from echoic.types import (
    MAX_TEXT_BYTES,
    STATUSES,
    Conversation,
    Scope,
    Turn,
    checked_name,
    checked_time,
)

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


def chooser(
    *,
    agent: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Callable[[Conversation], bool]:
    """A filter for conversations; each argument that is given narrows it.

    `status` is one of `STATUSES`, or "distilled": completed and learned from. `since` (inclusive) and `until`
    (exclusive), both aware, compare with when a conversation began.

    Raises:
        InvalidInput: an unknown status, a time without a zone, or an empty agent name.
    """
    known = (*STATUSES, DISTILLED)
    if status is not None and status not in known:
        raise InvalidInput(f"unknown status {brief(status)}: use one of {', '.join(known)}")
    agent = agent if agent is None else checked_name(agent, "agent")
    first = since if since is None else checked_time(since, "since")
    end = until if until is None else checked_time(until, "until")

    def chosen(conversation: Conversation) -> bool:
        return (
            (agent is None or conversation.agent == agent)
            and (
                status is None
                or conversation.status == status
                or (status == DISTILLED and conversation.distilled)
            )
            and (first is None or conversation.started_at >= first)
            and (end is None or conversation.started_at < end)
        )

    return chosen


async def read_conversations(
    store: Store, scope: Scope, chosen: Callable[[Conversation], bool]
) -> list[Conversation]:
    """The conversations of `scope` that `chosen` selects, oldest first."""
    records = await scan_all(store, scope, CONVERSATION)
    return [conversation for record in records if chosen(conversation := conversation_of(record))]


async def read_all_conversations(
    store: Store,
    deployment: str,
    chosen: Callable[[Conversation], bool],
    *,
    agent: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[tuple[str, Conversation]]:
    """The conversations of a deployment that `chosen` selects, with their users, oldest first.

    The other arguments, those of `chooser`, let the store's index find them.
    """
    wanted = _wanted(deployment, agent=agent, status=status, since=since, until=until)
    listed = [
        (scope.user, conversation)
        for scope, record in await _listed(store, wanted)
        if scope.user is not None and chosen(conversation := conversation_of(record))
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
    *,
    user: str | None = None,
    agent: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int,
    before: str | None = None,
) -> ConversationPage:
    """The conversations that began last, of a deployment or one user; only this page is read.

    `before` is the place of the last one of the previous page; the other filters are those of `chooser`.

    Raises:
        InvalidInput: `before` is not such a place, or as `chooser`.
    """
    chosen = chooser(agent=agent, status=status, since=since, until=until)
    wanted = _wanted(deployment, agent=agent, status=status, since=since, until=until)
    wanted = replace(wanted, user=user)
    end = None if before is None else _place_of(before)
    if end is not None:  # those that began in the same moment are looked at again
        wanted = replace(wanted, until=min(filter(None, (wanted.until, f"{end[0]} "))))
    asked = limit + (1 if end is None else 2)
    while True:
        records = await _listed(store, replace(wanted, newest=asked))
        whole = len(records) < asked
        places = sorted(
            (
                ((str(record.data["started_at"]), scope.user or "", record.id), record)
                for scope, record in records
            ),
            key=lambda item: item[0],
            reverse=True,
        )
        # of those that began in the last moment some may be missing
        found = [
            ListedConversation(user=place[1], conversation=conversation, place="|".join(place))
            for place, record in places
            if (whole or place[0] > places[-1][0][0]) and (end is None or place < end)
            if chosen(conversation := conversation_of(record))
        ]
        if whole or len(found) >= limit:
            return ConversationPage(conversations=found[:limit], more=not whole or len(found) > limit)
        asked *= 2


def _place_of(written: str) -> tuple[str, str, str]:
    parts = written.split("|", 2)
    try:
        datetime.fromisoformat(parts[0])
        moment, user, name = parts
    except ValueError as error:
        raise InvalidInput("`cursor` is not one that an answer gave") from error
    return moment, user, name


def _wanted(
    deployment: str,
    *,
    agent: str | None,
    status: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Wanted:
    return Wanted(
        kind=CONVERSATION,
        deployment=deployment,
        status={None: (), DISTILLED: _COMPLETED, "completed": _COMPLETED}.get(status, (status or "",)),
        agent=agent,
        # a time may be noted in any zone: which of them are meant is decided by a `chooser`
        since=None if since is None else _iso(since, -_ANY_ZONE),
        until=None if until is None else _iso(until, _ANY_ZONE),
    )


async def _listed(store: Store, wanted: Wanted) -> list[tuple[Scope, Record]]:
    """The conversations asked for, and possibly more, by the store's index if it has one."""
    if hasattr(store, "listed"):
        found: list[tuple[Scope, Record]] = await store.listed(wanted)
        return found
    found = []
    for scope in await store.scopes(wanted.deployment):
        if scope.user is not None and wanted.user in {None, scope.user}:
            found += [(scope, record) for record in await scan_all(store, scope, CONVERSATION)]
    if wanted.newest is None:
        return found
    there = [item for item in found if wanted.until is None or item[1].data["started_at"] < wanted.until]
    return sorted(there, key=lambda item: str(item[1].data["started_at"]))[-wanted.newest :]


def _iso(moment: datetime, by: timedelta) -> str | None:
    try:
        return (moment.astimezone(UTC) + by).isoformat()
    except OverflowError:
        return None


async def read_conversation(store: Store, scope: Scope, conversation: str) -> Conversation | None:
    """The conversation with that id, or None."""
    name = checked_name(conversation, "conversation id")
    records = await store.read(scope, CONVERSATION, [name])
    return conversation_of(records[0]) if records else None


async def read_task(store: Store, scope: Scope, conversation: str) -> Task | None:
    """The task with that id, or None."""
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
    store: Store, scope: Scope, conversation: str, result: Result, *, masked: Callable[[Any, str], Any]
) -> Result:
    """Store `result` in `conversation`; an existing one with the same id is returned unchanged.

    `masked` removes the secrets from a JSON value, given its name.

    Raises:
        InvalidInput: there is no such conversation, the result cannot be stored, or its id is another task's.
    """
    checked_name(result.name, "result name")
    value = masked(_checked_json(result.value, f"result {brief(result.name)}"), result.name)
    result = replace(result, name=masked(result.name, ""))
    named = result.id or memory_id(conversation, result.name, _canonical(value))
    asked = result.arguments
    if asked is not None:
        asked = masked(_checked_json(asked, f"arguments of {brief(result.name)}"), result.name)
    new = replace(result, id=checked_name(named, "result id"), value=value, arguments=asked)
    put = Put(record=record_of_result(new, conversation), expect=0)

    async def attempt() -> Result:
        known = await store.read(scope, RESULT, [new.id])
        if known and known[0].key != conversation:  # else what came out now would be swallowed
            raise InvalidInput(
                f"result id {brief(new.id)} is taken in conversation {brief(known[0].key)}: "
                "give every result of a user an id of its own, or none"
            )
        if known:
            return result_of(known[0])
        # the conversation is written with it: a result of one that was forgotten meanwhile would come back
        await _write_with(store, scope, conversation, {"updated_at": result.at}, [put])
        return new

    return await until_written(attempt, f"conversation {brief(conversation)}")


async def mark(store: Store, scope: Scope, conversation: str, **fields: Any) -> Conversation:
    """Change fields of a conversation, such as its status.

    Raises:
        InvalidInput: there is no such conversation.
    """
    return await until_written(
        lambda: _write_with(store, scope, conversation, fields, []), f"conversation {brief(conversation)}"
    )


async def _write_with(
    store: Store, scope: Scope, conversation: str, fields: Mapping[str, Any], changes: list[Change]
) -> Conversation:
    records = await store.read(scope, CONVERSATION, [checked_name(conversation, "conversation id")])
    if not records:
        raise InvalidInput(f"there is no conversation {brief(conversation)}; open it first")
    changed = replace(conversation_of(records[0]), **fields)
    moved = record_of_conversation(changed, cursor=cursor_of(records[0]))
    # whatever else stands in its record is somebody else's, and stays
    others = {name: value for name, value in records[0].data.items() if name != DISTILLED}
    kept = replace(moved, data={**others, **moved.data})
    await store.write(scope, [Put.over(records[0], kept), *changes])
    return changed


def record_of_result(result: Result, conversation: str) -> Record:
    """`result` as a record of `conversation`."""
    data = {"name": result.name, "value": result.value, "at": result.at.isoformat()}
    if result.arguments is not None:
        data["arguments"] = dict(result.arguments)
    return Record(kind=RESULT, id=result.id, key=conversation, data=data)


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
