"""Echoic for the OpenAI Agents SDK: stored sessions, memory for every turn, and tools.

    user = memory.user("ana")
    session = EchoicSession(user, "call-1")
    agent = Agent(name="pip", tools=memory_tools(lambda context: user))
    run_config = remembering(lambda context: user, session=session)
    await Runner.run(agent, "Hi!", session=session, run_config=run_config)

    async for event in follow(realtime_session, user, "call-2"): ...  # stores what was said and heard

Memory is added to a copy of the model's input, as a message in the user's role directly before the newest
one: the session and the run's own history stay unchanged.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

from agents import FunctionTool, RunConfig, RunContextWrapper, SessionSettings
from agents.realtime import RealtimePlaybackTracker, RealtimeSession
from agents.run import CallModelData, ModelInputData

from echoic.checks import MAX_TEXT_BYTES, searchable
from echoic.errors import EchoicError, InvalidInput, NotOpen
from echoic.integrations.call_memory import UNAVAILABLE, CallMemory, TurnMemory
from echoic.integrations.tools import call, exported, refusal
from echoic.memory.records import TURN
from echoic.memory.user import UserMemory
from echoic.prompt.block import ASKING
from echoic.stores.base import Drop
from echoic.types import Turn

UserOf = Callable[[Any], UserMemory]
"""Returns the user from the context of a run; never derive it from what was said."""
Item = dict[str, Any]

DEADLINE_MS: Final = 150.0
BUDGET_TOKENS: Final = 300
_KIND: Final = "openai-agents"
_ROUNDING_MS: Final = 1.0
"""By how much the reports of what was played may add up to less than an answer."""
_SPEAKERS: Final = {"user": "user", "assistant": "agent"}


class EchoicSession:
    """The SDK's `Session`, stored in Echoic: its items unchanged, and what was said as a conversation.

    Args:
        user: the user's memory.
        session_id: the id of the session and of the conversation.
        agent: the name under which the agent is stored.
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
        """The items of the session in order; with a limit, the newest ones."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return [item.value["item"] for item in await self._items.all(newest=limit)]

    async def add_items(self, items: Sequence[Item]) -> None:
        """Append `items`. Durable when it returns."""
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
        """Remove the newest item, with its turn and what was learned from that turn alone."""
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
        """Erase the session and its conversation. Memories learned from it stay; `forget` erases those."""
        await self._items.delete(*(item.name for item in await self._items.all()))
        await self._user.forget(conversation=self.session_id)


def _turn(item: Item) -> Turn | None:
    """The turn in an item; None if it has none."""
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
    """A run configuration that gives the model what memory knows for the newest user message.

    If nothing is known, nothing is added. If memory could not be searched, the model is told so.

    Args:
        user_of: returns the user from the run's context.
        session: the running session, whose turns the model already has.
        run_config: a configuration to extend; its own input filter runs first.
        deadline_ms: how long a turn may wait for memory.
        budget_tokens: token budget of the added text.
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
            # in the user's role: it quotes people and must not have the operator's authority
            items.insert(asked, {"role": "user", "content": text})
        return ModelInputData(input=items, instructions=given.instructions)

    return replace(base, call_model_input_filter=filtered)


def _is_said_by_user(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user" and bool(_said(item).strip())


async def _known(user: UserMemory, question: str, options: dict[str, Any], budget_tokens: int) -> str:
    """What memory knows for `question`, as quoted lines; empty if nothing."""
    try:
        recall = await user.recall(searchable(question), **options)
        asking = [ASKING] if await user.asks_first(options["besides"]) else []
        if recall.hits or recall.outcome != "complete":
            asking.append((await user.pack(recall, budget_tokens=budget_tokens)).text)
        return TurnMemory("\n".join(asking)).message
    except NotOpen:
        raise  # a mistake in the set-up
    except InvalidInput:  # such as a message without words
        return ""
    except EchoicError:
        return UNAVAILABLE.message


def memory_tools(user_of: UserOf, *, session: EchoicSession | None = None) -> list[FunctionTool]:
    """The four memory tools for an agent's `tools`.

    Args:
        user_of: returns the user from the run's context.
        session: the running session, which the user may not want stored.
    """
    conversation = session.session_id if session else ""

    async def invoked(name: str, context: RunContextWrapper[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments) if arguments.strip() else {}
            answer = await call(user_of(context.context), name, given, conversation=conversation)
        except EchoicError as error:
            return refusal(error)
        except (ValueError, RecursionError):  # also numbers of thousands of digits, and deep nesting
            return f"the arguments of {name} are not JSON: call it again"
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


class PlaybackTracker(RealtimePlaybackTracker):
    """The SDK's tracker that also remembers how much of each answer was played, for `follow`.

    Give it to the model as `playback_tracker`, and call `on_play_ms` or `on_play_bytes` as audio is played.
    """

    def __init__(self) -> None:
        super().__init__()
        self.played_ms: dict[str, float] = {}
        self.audio_format: Any = None

    def on_play_ms(self, item_id: str, item_content_index: int, ms: float) -> None:
        """Add milliseconds of audio that were played."""
        super().on_play_ms(item_id, item_content_index, ms)
        self.played_ms[item_id] = self.played_ms.get(item_id, 0.0) + ms

    def set_audio_format(self, format: Any) -> None:  # noqa: A002 - the SDK's name
        """Called by the model."""
        super().set_audio_format(format)
        self.audio_format = format


async def follow(
    session: RealtimeSession,
    user: UserMemory,
    conversation: str = "",
    *,
    agent: str | None = None,
    played: PlaybackTracker | None = None,
) -> AsyncIterator[Any]:
    """The events of a realtime session; iterate over this instead of the session to store what is said.

    An interrupted answer is stored with the part of it that was heard, by how much was played; if nothing was
    heard it is not stored. A turn is stored when a later one of the user is complete and every answer between
    was played or interrupted; the last ones when the session or the iteration ends. Writing never delays an
    event.

    Args:
        session: the open session.
        user: the speaker's memory.
        conversation: the id of the conversation; a new one if empty.
        agent: the name under which the agent is stored.
        played: tracks what was played. Without it, an answer counts as played without pauses from its first
            audio.
    """
    call_memory = CallMemory(user, conversation, agent=agent)
    spoken = _PlayedAnswer(call_memory, played)
    try:
        async for event in session:
            spoken.take(event)
            yield event
    finally:
        spoken.flush()
        await call_memory.aclose()


@dataclass(slots=True)
class _Answer:
    """The state of one message."""

    role: str
    text: str = ""
    audio_bytes: int = 0
    began_at: float = 0.0
    is_written: bool = False
    played_ms: float | None = None
    """Milliseconds played, for an interrupted answer."""


class _PlayedAnswer:
    """The messages of a realtime session in order, until it is known how much of them was heard."""

    def __init__(self, call_memory: CallMemory, played: PlaybackTracker | None) -> None:
        self._call = call_memory
        self._played = played
        self._messages: dict[str, _Answer] = {}
        self._kept: set[str] = set()

    def take(self, event: Any) -> None:
        if event.type == "history_added":
            self._note([event.item])
        elif event.type == "history_updated":
            self._note(event.history)
        elif event.type == "audio" and event.item_id not in self._kept:
            answer = self._messages.setdefault(event.item_id, _Answer("assistant"))
            answer.began_at = answer.began_at or asyncio.get_running_loop().time()
            answer.audio_bytes += len(event.audio.data)
        elif event.type == "audio_interrupted" and event.item_id in self._messages:
            self._messages[event.item_id].played_ms = self._played_ms(event.item_id)
        said = [name for name, each in self._messages.items() if each.role == "user" and each.text.strip()]
        if said:
            self.flush(said[-1])

    def _note(self, items: Sequence[Any]) -> None:
        for item in items:
            if item.type != "message" or item.role == "system" or item.item_id in self._kept:
                continue
            message = self._messages.setdefault(item.item_id, _Answer(item.role))
            message.text = _said(item.model_dump()) or message.text
            message.is_written |= getattr(item, "status", None) in ("completed", "incomplete")

    def flush(self, last: str | None = None) -> None:
        """Store every message up to `last`, as far as it is known what was heard of them, or all."""
        names = list(self._messages)
        for place, name in enumerate(names):
            message = self._messages[name]
            if last is not None and not self._is_over(name, names[place + 1 :]):
                return
            # without words it is kept for later, since its transcript may still come
            if message.text.strip():
                self._keep(name, message)
                del self._messages[name]
            if name == last:
                return

    def _is_over(self, name: str, later: Sequence[str]) -> bool:
        """Whether nothing more of a message can be heard: answers are played one after the other."""
        message = self._messages[name]
        if message.role == "user" or message.played_ms is not None or any(map(self._played_ms, later)):
            return True
        played_bytes = (self._played_ms(name) + _ROUNDING_MS) * self._bytes_per_ms
        return message.is_written and played_bytes >= message.audio_bytes

    def _played_ms(self, name: str) -> float:
        """How much of a message has been played so far."""
        if self._played is not None:
            return self._played.played_ms.get(name, 0.0)
        began_at = self._messages[name].began_at
        return 1000 * (asyncio.get_running_loop().time() - began_at) if began_at else 0.0

    @property
    def _bytes_per_ms(self) -> int:
        """8 for G.711, by any of its names; otherwise 48, for 16 bits at 24 kHz."""
        audio_format = self._played.audio_format if self._played else None
        return 8 if re.search(r"711|pcm[ua]\b", str(audio_format).lower()) else 48

    def _keep(self, name: str, message: _Answer) -> None:
        self._kept.add(name)
        if message.role == "user":
            self._call.user_said(message.text, id=name)
            return
        heard = self._heard(message)
        if heard == message.text:
            self._call.agent_said(message.text, id=name)
        else:
            self._call.reply().append(message.text)
            self._call.agent_said(heard, interrupted=True, id=name)

    def _heard(self, message: _Answer) -> str:
        """The words that were played in full, assuming an even pace."""
        if message.played_ms is None or not message.audio_bytes:
            return message.text if message.played_ms is None else ""
        share = message.played_ms * self._bytes_per_ms / message.audio_bytes
        words = list(re.finditer(r"\S+", message.text))
        count = int(share * len(words))
        if count >= len(words):
            return message.text
        return message.text[: words[count - 1].end()] if count > 0 else ""
