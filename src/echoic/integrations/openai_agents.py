"""Echoic for the OpenAI Agents SDK: sessions that are remembered, memory for every turn, and tools.

    user = memory.user("ana")
    session = EchoicSession(user, "call-1")
    agent = Agent(name="pip", tools=memory_tools(lambda context: user))
    run_config = remembering(lambda context: user, session=session)
    await Runner.run(agent, "Hi!", session=session, run_config=run_config)

What memory knows goes into a copy of the model's input, directly before the newest user message: the session
and the run's own history stay as they are without it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

from agents import FunctionTool, RunConfig, RunContextWrapper, SessionSettings
from agents.run import CallModelData, ModelInputData

from echoic.checks import MAX_TEXT_BYTES
from echoic.errors import EchoicError, InvalidInput
from echoic.integrations.tools import call, exported, refusal
from echoic.memory.records import TURN
from echoic.memory.user import UserMemory
from echoic.stores.base import Drop
from echoic.types import Turn

UserOf = Callable[[Any], UserMemory]
"""Gives the user from the context of a run: it never comes from what was said."""
Item = dict[str, Any]

COULD_NOT_LOOK: Final = (
    "Memory could not be looked at just now. That nothing of it stands here does not mean that nothing is "
    "known."
)
DEADLINE_MS: Final = 150.0
BUDGET_TOKENS: Final = 300
_KIND: Final = "openai-agents"
_SPEAKERS: Final = {"user": "user", "assistant": "agent"}


class EchoicSession:
    """The SDK's `Session`, kept in Echoic: its items exactly, and what was said in a conversation.

    Args:
        user: whose memory.
        session_id: the id of the session and of the conversation.
        agent: the name under which the agent is kept that serves.
        session_settings: the SDK's; its limit is the default of `get_items`.
    """

    def __init__(
        self,
        user: UserMemory,
        session_id: str,
        *,
        agent: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._user = user
        self._agent = agent
        self._items = user.items(_KIND, conversation=session_id)

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The items of the session in their order; with a limit the newest so many."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return [item.value["item"] for item in await self._items.all(newest=limit)]

    async def add_items(self, items: Sequence[Item]) -> None:
        """Keep `items` behind the others. Durable when it returns."""
        if not items:
            return
        kept, turns = [], []
        for item in items:
            turn = _turn(item)
            if turn is not None:
                turns.append(turn)
            kept.append({"item": item, "turn": turn.id if turn else None})
        if turns:
            await (await self._user.conversation(self.session_id, agent=self._agent)).append(*turns)
        await self._items.append(kept)

    async def pop_item(self) -> Item | None:
        """Remove the newest item, with the turn that it was and what was learned from that alone."""
        newest = await self._items.all(newest=1)
        if not newest:
            return None
        popped: dict[str, Any] = newest[0].value
        await self._items.delete(newest[0].name)
        if popped["turn"] is not None:
            await self._user.forget(learned_from=[popped["turn"]])
            gone = Drop(kind=TURN, id=popped["turn"])
            await self._user.backing_store.erase(self._user.scope, [gone])
        item: Item = popped["item"]
        return item

    async def clear_session(self) -> None:
        """Destroy the session and its conversation. What was learned stays; `forget` destroys that."""
        await self._items.delete(*(item.name for item in await self._items.all()))
        await self._user.forget(conversation=self.session_id)


def _turn(item: Item) -> Turn | None:
    """What was said in an item; None where nothing was."""
    speaker = _SPEAKERS.get(item.get("role", "")) if item.get("type", "message") == "message" else None
    text = _said(item).replace("\0", "").encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")
    return Turn(id=uuid4().hex, speaker=speaker, text=text) if speaker and text.strip() else None


def _said(item: Item) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in content or [] if isinstance(part, dict)]
    return " ".join(part.get("text") or part.get("transcript") or "" for part in parts)


def remembering(
    user_of: UserOf,
    *,
    session: EchoicSession | None = None,
    run_config: RunConfig | None = None,
    deadline_ms: float = DEADLINE_MS,
    budget_tokens: int = BUDGET_TOKENS,
) -> RunConfig:
    """A run configuration that tells the model what memory knows for the newest user message.

    Nothing is added where nothing is known. Where memory could not be looked at, the model is told so.

    Args:
        user_of: gives the user from the run's context.
        session: the running session, whose turns the model has before it already.
        run_config: a configuration to extend; its own input filter runs first.
        deadline_ms: how long a turn may wait for memory.
        budget_tokens: the longest text that is added.
    """
    base = run_config or RunConfig()
    first = base.call_model_input_filter
    options = {"deadline_ms": deadline_ms, "besides": session.session_id if session else None}

    async def filtered(data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        if first is not None:
            made = first(data)
            given = await made if inspect.isawaitable(made) else made
        items = list(given.input)
        asked = next((n for n in reversed(range(len(items))) if _is_said_by_user(items[n])), None)
        if asked is None:
            return given
        text = await _known(user_of(data.context), _said(items[asked]), options, budget_tokens)
        if text:
            items.insert(asked, {"role": "developer", "content": text})
        return ModelInputData(input=items, instructions=given.instructions)

    return replace(base, call_model_input_filter=filtered)


def _is_said_by_user(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user" and bool(_said(item).strip())


async def _known(user: UserMemory, question: str, options: dict[str, Any], budget_tokens: int) -> str:
    """What memory knows for `question`, as quoted lines; empty where nothing is known."""
    try:
        recall = await user.recall(question, **options)
        if not recall.hits and recall.outcome == "complete":
            return ""
        return (await user.pack(recall, budget_tokens=budget_tokens)).text
    except InvalidInput:  # a message of megabytes is no question
        return ""
    except EchoicError:
        return COULD_NOT_LOOK


def memory_tools(user_of: UserOf) -> list[FunctionTool]:
    """The four memory tools for an agent's `tools`."""

    async def invoked(name: str, context: RunContextWrapper[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments) if arguments.strip() else {}
            answer = await call(user_of(context.context), name, given)
        except EchoicError as error:
            return refusal(error)
        except json.JSONDecodeError:
            return f"the arguments of {name} are no JSON: call it again"
        return json.dumps(answer, ensure_ascii=False)

    return [
        FunctionTool(
            name=each["function"]["name"],
            description=each["function"]["description"],
            params_json_schema=each["function"]["parameters"],
            on_invoke_tool=partial(invoked, each["function"]["name"]),
        )
        for each in exported("openai-strict")
    ]


__all__ = ["COULD_NOT_LOOK", "EchoicSession", "UserOf", "memory_tools", "remembering"]
