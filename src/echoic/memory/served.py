"""How a user is served: who they are, how they want it, what a session starts with, and what was worked on.

The half of `UserMemory` that is about sessions; the other half is about what is known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, overload

from echoic.memory.block import DEFAULT_BUDGET_TOKENS, BlockMaker
from echoic.memory.directives import change_directives, read_directives
from echoic.memory.parts import Parts
from echoic.memory.profile import model_profile, profile_of
from echoic.memory.tasks import chooser, keep_result, mark, read_conversation, read_conversations, read_task
from echoic.prompt.block import Block
from echoic.types import (
    Conversation,
    Directives,
    Memory,
    Profile,
    Recall,
    Result,
    Scope,
    Task,
    checked_name,
    checked_time,
)

P = TypeVar("P")


class Served(ABC):
    """What `UserMemory` can do for a session. Not to be made by itself."""

    _parts: Parts
    scope: Scope

    @abstractmethod
    async def facts(self) -> list[Memory]:
        """Everything that holds; see `UserMemory`."""

    @abstractmethod
    async def recall(
        self,
        text: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = None,
        min_relevance: float | None = None,
    ) -> Recall:
        """What `text` calls to mind; see `UserMemory`."""

    # -- who they are and how they want to be served

    @overload
    async def profile(self) -> Profile: ...

    @overload
    async def profile(self, model: type[P], *, keys: Mapping[str, str] | None = None) -> P: ...

    async def profile(self, model: Any = None, *, keys: Mapping[str, str] | None = None) -> Any:
        """Who the user is, as far as they said: a view of what is kept under keys.

        Args:
            model: a Pydantic model to fill instead of `Profile`; see `echoic.memory.profile.model_profile`.
            keys: under which key the value of a field of `model` is kept, where it is not the field's name.

        Raises:
            InvalidInput: `model` is no Pydantic model, or needs what is not known.
        """
        memories = await self.facts()
        return profile_of(memories) if model is None else model_profile(model, memories, keys)

    async def directives(
        self, *, for_agent: str | None = None, for_conversation: str | None = None
    ) -> Directives:
        """How the user wants to be served.

        Args:
            for_agent: by this agent: with those that were set for it, which go before all others.
            for_conversation: in this conversation: with those that were set for it.
        """
        return await read_directives(
            self._parts.store, self.scope, agent=for_agent, conversation=for_conversation
        )

    async def set_directives(
        self, *, for_agent: str | None = None, for_conversation: str | None = None, **directives: str | None
    ) -> Directives:
        """Set directives by name, or take them back with None; they hold in every session from now on.

        `pacing`, `verbosity` and `formality` have presets (`echoic.types.PRESETS`) and take any other short
        text too; `language` is a tag; any other name takes a short text; `time_zone` is that of the questions
        the user asks ("Europe/Lisbon", "Eastern").

        Args:
            for_agent: for this agent alone.
            for_conversation: for this conversation alone; forgotten with it.
            directives: by name.

        Returns:
            those that hold where these were set, without the others.

        Raises:
            InvalidInput: a value is no time zone where it has to be one, or out of bounds, there is no such
                conversation, or both an agent and a conversation are named; nothing was changed.
        """
        return await change_directives(
            self._parts.store, self.scope, directives, agent=for_agent, conversation=for_conversation
        )

    async def block(
        self,
        *,
        agent: str | None = None,
        conversation: str | None = None,
        moment: str | None = None,
        budget_tokens: int = DEFAULT_BUDGET_TOKENS,
        deadline_ms: float | None = None,
        min_relevance: float | None = None,
    ) -> Block:
        """What a session starts with, as text for a model; the same bytes while nothing changed.

        Args:
            agent: who serves; its experience is in it, and the directives that are for it alone.
            conversation: which one goes on; the directives that are for it alone are in it.
            moment: what the user just said: what it calls to mind is added at the end.
            budget_tokens: as many as it may have, by the counting of `Block`.
            deadline_ms: of the recall for `moment`.
            min_relevance: likewise; as for `recall`.

        Raises:
            InvalidInput: a budget below 1, or a name or text that cannot be.
            StoreUnavailable: could not look; an empty block would say that nothing is known.
        """
        return await BlockMaker(self._parts, self).make(
            agent, conversation, moment, budget_tokens, deadline_ms, min_relevance=min_relevance
        )

    async def conversations(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Conversation]:
        """Every conversation, oldest first, or those chosen.

        Args:
            agent: who served it.
            status: how it stands.
            since: it began then or later (aware).
            until: it began before then (aware).
        """
        chosen = chooser(agent=agent, status=status, since=since, until=until)
        return await read_conversations(self._parts.store, self.scope, chosen)

    async def find_conversation(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id as it stands; None: there is none, or it was forgotten."""
        name = checked_name(conversation_id, "conversation id")
        return await read_conversation(self._parts.store, self.scope, name)

    async def task(self, conversation_id: str) -> Task | None:
        """A conversation with all that was said in it and came out of it; None: there is none of that id."""
        name = checked_name(conversation_id, "conversation id")
        return await read_task(self._parts.store, self.scope, name)

    async def add_result(
        self,
        conversation_id: str,
        name: str,
        value: Any,
        *,
        id: str = "",  # noqa: A002 - as everywhere
        arguments: Mapping[str, Any] | None = None,
        at: datetime | None = None,
    ) -> Result:
        """Keep what came out of one step of a task. Durable when it returns; the same again changes nothing.

        Args:
            conversation_id: the task.
            name: of the step, such as a tool's.
            value: JSON, 32 KiB at most.
            id: unique within the user; empty: it follows from task, name and value.
            arguments: what the tool was called with, JSON.
            at: when it came out (aware); None: now.

        Raises:
            InvalidInput: there is no such conversation, or the value cannot be kept.
        """
        moment = self._parts.clock() if at is None else checked_time(at, "at")
        result = Result(id=id, name=name, value=value, at=moment, arguments=arguments)
        masked = partial(self._parts.door.value, self.scope)
        return await keep_result(self._parts.store, self.scope, conversation_id, result, masked=masked)

    async def fail(self, conversation_id: str) -> Conversation:
        """The task could not be done. What was said in it stays, and is learned from like any other."""
        at = self._parts.clock()
        failed = await mark(self._parts.store, self.scope, conversation_id, status="failed", updated_at=at)
        self._parts.background.poke((self.scope, conversation_id))
        return failed


__all__ = ["Served"]
