"""Echoic as the memory service of Google's Agent Development Kit.

    service = EchoicMemoryService(memory)
    agent = LlmAgent(…, tools=[preload_memory, load_memory], after_agent_callback=service.keep)
    runner = Runner(agent=agent, app_name="films", session_service=sessions, memory_service=service)

The app name is the deployment and the user id the user; neither is ever taken from what was said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai import types

from echoic.checks import MAX_KEY_CHARACTERS, MAX_TEXT_BYTES, searchable, storable
from echoic.errors import EchoicError, InvalidInput, NotOpen, StoreUnavailable
from echoic.memory.assurance import Level
from echoic.memory.compliance import said_since
from echoic.memory.retraction import take_back_turns
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.prompt.answer import NOT_ALL_SEEN, UNREAD
from echoic.types import Hit, Outcome, Turn

log = logging.getLogger(__name__)

T = TypeVar("T")

DEADLINE_MS = 300.0
"""Time limit of a search, whose outcome says if it was not complete."""
_NO_SESSION: Final = "events of no session"


class EchoicMemoryService(BaseMemoryService):
    """Stores sessions as conversations, and searches the memory of their user.

    Args:
        memory: an open memory. Create the service in the event loop that memory is open in; the blocking
            `Runner.run`, which has a loop of its own, uses that loop.
        agent: the name under which the agent is stored.
        deadline_ms: time limit of a search.
        limit: maximum number of memories that a search returns.
        level: how certain the users' identities are, which limits what they are told (docs/assurance.md).
    """

    def __init__(
        self,
        memory: MemoryService,
        *,
        agent: str | None = None,
        deadline_ms: float = DEADLINE_MS,
        limit: int = 10,
        level: Level = "account",
    ) -> None:
        self._memory = memory
        self._level = level
        self._agent = agent
        self._deadline_ms = deadline_ms
        self._limit = limit
        self._loop = asyncio.get_running_loop()

    async def keep(self, callback_context: CallbackContext) -> None:
        """Store the session's new turns: an `after_agent_callback`. What cannot be stored now is stored after
        a later answer.
        """
        try:
            await self.add_session_to_memory(callback_context.session)
        except NotOpen:
            raise  # a mistake in the set-up
        except EchoicError as error:  # the run would fail after its answer
            log.warning("the turns of a session are not kept yet: %s", type(error).__name__)

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the turns of a session. Turns that were stored before change nothing."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002 - the framework's
    ) -> None:
        """Store the turns in `events`; an event that was stored before changes nothing. What a rewind among
        them took back is not stored, and if it was, it is found no longer. Events of no session share a
        conversation.
        """
        session_id = session_id or _NO_SESSION
        cut, rewinds = _cut_off(events), list(_rewinds(events))
        said = {event.id: _turns(event, session_id, is_cut=event.id in cut) for event in events}
        for at, rewound in rewinds:
            gone = [turn.id for name in rewound for turn in said.pop(name, ())]
            await self._at_home(self._take_back(app_name, user_id, gone, at))
        if turns := [turn for each in said.values() for turn in each]:
            await self._at_home(self._append(app_name, user_id, session_id, turns))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002 - likewise
    ) -> None:
        """Store sentences about the user; one that is known changes nothing.

        Raises:
            InvalidInput: a timestamp is not an ISO 8601 time; nothing was stored.
        """
        for text, said_at in [(_text(entry.content), _time(entry.timestamp)) for entry in memories]:
            if text:
                await self._at_home(self._user(app_name, user_id).remember(text, said_at=said_at))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories for `query`, the most relevant first; each entry's metadata has the outcome.

        If memory could not be searched, the only entry says so and has no id: the kit's `preload_memory`
        drops errors, and in its `load_memory` they end the run.
        """
        user = self._user(app_name, user_id)
        if not (asked := searchable(query)):
            return SearchMemoryResponse()
        try:
            recall = await self._at_home(user.recall(asked, limit=self._limit, deadline_ms=self._deadline_ms))
        except StoreUnavailable as error:
            log.warning("memory could not be searched: %s", type(error).__name__)
            return SearchMemoryResponse(memories=[_note("unavailable")])
        entries = [_entry(hit, recall.outcome) for hit in recall.hits]
        if not entries and recall.outcome != "complete":
            entries = [_note(recall.outcome)]
        return SearchMemoryResponse(memories=entries)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase the memory with an id from a search, or the turn and what was learned from it alone. Without
        an id nothing is erased, as in the kit's own service.
        """
        if memory_id:
            await self._at_home(self._user(app_name, user_id).forget(id=memory_id))

    async def delete_memories(self, *, app_name: str, user_id: str) -> None:
        """Erase everything stored about a user in this app."""
        await self._at_home(self._user(app_name, user_id).forget())

    def _user(self, app_name: str, user_id: str) -> UserMemory:
        return self._memory.user(user_id, app_name, level=self._level)

    async def _append(self, app_name: str, user_id: str, session_id: str, turns: Sequence[Turn]) -> None:
        user = self._user(app_name, user_id)
        # the framework gives every event of a session each time, those of before a forget as well
        turns = await said_since(user.backing_store, user.scope, session_id, turns)
        if turns:
            await (await user.conversation(session_id, agent=self._agent)).append(*turns)

    async def _take_back(self, app_name: str, user_id: str, turns: Sequence[str], at: datetime) -> None:
        user = self._user(app_name, user_id)
        await take_back_turns(user.backing_store, user.scope, turns, at)

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop that memory is open in."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _cut_off(events: Sequence[Event]) -> set[str]:
    """The ids of spoken answers that were interrupted: a later event without words says so."""
    cut, spoken = set(), ""
    for event in events:
        if event.output_transcription and not event.partial:
            spoken = event.id
        elif event.interrupted:
            cut.add(spoken)
        elif event.turn_complete:
            spoken = ""
    return cut


def _rewinds(events: Sequence[Event]) -> Iterator[tuple[datetime, list[str]]]:
    """When each rewind was made, and the ids of the events that it took back, as the framework counts them:
    all from the first of the invocation that it names.
    """
    first: dict[str | None, int] = {}
    for number, event in enumerate(events):
        first.setdefault(event.invocation_id, number)
    end = len(events)
    while end:
        end -= 1
        start = first.get(events[end].actions.rewind_before_invocation_id, end)
        if start < end:
            at = datetime.fromtimestamp(events[end].timestamp, UTC)
            yield at, [event.id for event in events[start:end]]
            end = start


def _turns(event: Event, session: str, *, is_cut: bool) -> list[Turn]:
    """The turns in an event: one for each piece of its text that can be stored; none if it is incomplete."""
    if event.partial:
        return []
    speaker = "user" if event.author == "user" or event.input_transcription else "agent"
    # the framework does not report how much of an interrupted answer was played: none counts as heard
    heard = "" if (event.interrupted or is_cut) and speaker == "agent" else None
    said_at = datetime.fromtimestamp(event.timestamp, UTC)
    spoken = event.input_transcription or event.output_transcription
    text, size = _text(event.content) or (spoken and spoken.text) or "", MAX_TEXT_BYTES // 4
    turns = []
    for number, at in enumerate(range(0, len(text), size)):
        name = f"{session}:{event.id}" + (f"-{number}" if number else "")
        if piece := storable(text[at : at + size]).strip():
            turn = Turn(
                id=name[-MAX_KEY_CHARACTERS:], speaker=speaker, text=piece, heard=heard, said_at=said_at
            )
            turns.append(turn)
    return turns


def _text(content: types.Content | None) -> str:
    parts = content.parts or [] if content else []
    return " ".join(part.text for part in parts if part.text and not part.thought).strip()


def _time(timestamp: str | None) -> datetime | None:
    """The time in an entry; the kit writes its own in the local time, without a zone."""
    if not timestamp:
        return None
    try:
        return datetime.fromisoformat(timestamp).astimezone()
    except (ValueError, OverflowError) as error:
        raise InvalidInput("the timestamp of a memory is not an ISO 8601 time") from error


def _note(outcome: Outcome) -> MemoryEntry:
    """The entry that says that not all of memory was searched."""
    told = UNREAD if outcome == "unavailable" else NOT_ALL_SEEN
    return MemoryEntry(
        author="memory", content=_content(told), custom_metadata={"outcome": outcome, "relevance": None}
    )


def _content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def _entry(hit: Hit, outcome: Outcome) -> MemoryEntry:
    memory, turn = hit.memory, hit.turn
    text = hit.text if memory is None else memory.statement or memory.text
    at = memory.valid_from if memory else turn.said_at if turn else None
    return MemoryEntry(
        id=memory.id if memory else turn.id if turn else None,
        author=turn.speaker if turn and not memory else "memory",
        content=_content(text),
        timestamp=at.isoformat() if at else None,
        custom_metadata={"outcome": outcome, "relevance": hit.relevance},
    )
