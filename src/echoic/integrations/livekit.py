"""Echoic in LiveKit Agents: memory is searched while callers speak, and what was heard is stored.

    session = AgentSession(stt=…, llm=…, tts=…)
    call = remember(session, service.user(caller))
    ctx.add_shutdown_callback(call.aclose)
    await session.start(EchoicAgent(memory=call, instructions="You are Pip."), room=ctx.room)

Memory is added in `llm_node` to a copy of the context, directly before the newest message of the user: the
session's own history stays unchanged, and preemptive generation stays on. A realtime model gets memory as
messages in its provider's session, in time for its next response.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

from livekit.agents import Agent, AgentSession, llm, utils

from echoic.integrations.call_memory import CallMemory
from echoic.memory.user import UserMemory
from echoic.session.turn_recall import DEFAULT_DEADLINE_MS

log = logging.getLogger(__name__)

_NOTE: Final = "memory_"
"""Prefix of the ids of messages added to a realtime session."""


def remember(
    session: AgentSession[Any],
    user: UserMemory,
    *,
    call: str = "",
    agent: str | None = None,
    deadline_ms: float = DEFAULT_DEADLINE_MS,
) -> CallMemory:
    """Store what is said in `session` from now on, and search memory while it is said. For one call of one
    user.

    Everything is stored once `CallMemory.aclose` returns, so pass that to `JobContext.add_shutdown_callback`.

    Args:
        session: the session, not started yet.
        user: the user's memory, such as `service.user(participant.identity)`.
        call: the id of the call; new if empty. A room that is used again needs a new one each time.
        agent: the name under which conversations and experience are stored.
        deadline_ms: how long a reply may wait for memory.

    Raises:
        InvalidInput: the deadline is not above 0, or a name is not valid.
        NotOpen: the memory is not open in this event loop.
    """
    memory = CallMemory(user, call, agent=agent, deadline_ms=deadline_ms, words_of=_words_of)
    ends: list[asyncio.Task[None]] = []

    # handlers must be plain functions: none of these waits
    def heard(event: Any) -> None:
        memory.hear(event.transcript, final=event.is_final)
        current = session.current_agent
        if event.is_final and isinstance(current, EchoicAgent):
            current.tell_realtime(event.transcript)

    def said(event: Any) -> None:
        item = event.item
        if getattr(item, "type", None) != "message" or not (text := item.text_content):
            return
        at = datetime.fromtimestamp(item.created_at, UTC)
        if item.role == "user":
            memory.user_said(text, id=item.id, said_at=at, confidence=item.transcript_confidence)
        elif item.role == "assistant":
            memory.agent_said(text, interrupted=item.interrupted, id=item.id, said_at=at)

    session.on("user_input_transcribed", heard)
    session.on("conversation_item_added", said)
    session.on("close", lambda _event: ends.append(asyncio.ensure_future(memory.aclose())))
    memory.warm()
    return memory


def _words_of(written: str) -> str:
    """What a model wrote without its `<expr/>` markup, as the session's own messages give it."""
    return llm.ChatMessage(role="assistant", content=[written]).text_content or ""


async def with_memory(chat_ctx: llm.ChatContext, memory: CallMemory) -> llm.ChatContext:
    """A copy of `chat_ctx` with what is known for the newest user message directly before it, or at the end
    about the caller if there is none; for your own `llm_node`.

    If there is nothing to add, it is `chat_ctx` itself.
    """
    users = [n for n, item in enumerate(chat_ctx.items) if item.type == "message" and item.role == "user"]
    asked = chat_ctx.items[users[-1]] if users else None
    known = await memory.message_for(None if asked is None else asked.text_content or "")
    if not known:
        return chat_ctx
    copy = chat_ctx.copy()
    # in the user's role: it quotes people and must not have the operator's authority
    note = llm.ChatMessage(role="user", content=[known])
    if asked is not None:
        note.created_at = asked.created_at
    copy.items.insert(users[-1] if users else len(copy.items), note)
    return copy


class EchoicAgent(Agent):
    """An agent that answers from memory. Pass it what `remember` returned; derive from it as from `Agent`.

    An `on_enter` of your own must call `await super().on_enter()` first, for the memory of a realtime model.
    """

    def __init__(self, *, memory: CallMemory, **options: Any) -> None:
        super().__init__(**options)
        self._call_memory = memory
        self._notes: dict[str, llm.ChatMessage] = {}
        """The messages last added to a realtime session: about the caller, and for the turn."""
        self._looking: asyncio.Task[None] | None = None
        self._tellings = set[asyncio.Task[None]]()
        self._one_telling = asyncio.Lock()

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[Any], model_settings: Any
    ) -> AsyncIterator[Any]:
        """The default node, with memory in its request. What it writes is recorded, in case it is
        interrupted.
        """
        reply = self._call_memory.reply()
        request = await with_memory(chat_ctx, self._call_memory)
        async for chunk in Agent.default.llm_node(self, request, tools, model_settings):
            if isinstance(chunk, str):
                reply.append(chunk)
            elif isinstance(chunk, llm.ChatChunk) and chunk.delta is not None:
                reply.append(chunk.delta.content or "")
            yield chunk

    # -- a realtime model, which hears and answers by itself

    async def on_enter(self) -> None:
        """Tell a realtime model about the caller."""
        if self._realtime is not None:
            await self._tell("caller", await self._call_memory.block())

    async def transcription_node(self, text: AsyncIterable[Any], model_settings: Any) -> AsyncIterator[Any]:
        """The default node. What a realtime model says is recorded, in case it is interrupted."""
        reply = self._call_memory.reply() if self._realtime is not None else None
        async for delta in Agent.default.transcription_node(self, text, model_settings):
            if reply is not None:
                reply.append(str(delta))
            yield delta

    def tell_realtime(self, said: str) -> None:
        """Search memory for `said` if this agent has a realtime model. Never waits."""
        if self._realtime is None:
            return
        if self._looking is not None:
            self._looking.cancel()  # a newer turn counts
        self._looking = asyncio.ensure_future(self._tell_known(said))

    async def _tell_known(self, said: str) -> None:
        await self._tell("turn", (await self._call_memory.memory_for(said)).message)

    @property
    def _realtime(self) -> llm.RealtimeSession | None:
        try:
            return self.realtime_llm_session
        except RuntimeError:  # another kind of model, or not running
            return None

    async def _tell(self, name: str, message: str) -> None:
        """Replace the message `name` in the provider's session. It does not enter the agent's own history.

        Once begun it goes on when it is cancelled, or the session would hold a message that is not noted.
        """
        telling = asyncio.ensure_future(self._replace(name, message))
        self._tellings.add(telling)  # the event loop keeps no task alive
        telling.add_done_callback(self._tellings.discard)
        await asyncio.shield(telling)

    async def _replace(self, name: str, message: str) -> None:
        async with self._one_telling:  # each sends the other message as well
            session, before = self._realtime, self._notes.get(name)
            if session is None or message == (before.text_content if before else ""):
                return
            if not session.capabilities.mutable_chat_context:
                log.warning(
                    "this realtime model takes no messages while it runs: it is not told what is remembered"
                )
                return
            notes = {each: note for each, note in self._notes.items() if each != name}
            if message:
                notes[name] = llm.ChatMessage(role="user", content=[message], id=utils.shortuuid(_NOTE))
            context = session.chat_ctx.copy()
            context.items[:] = [item for item in context.items if not item.id.startswith(_NOTE)]
            # before the newest item, since the framework copies the last one into the agent's history
            context.items[-1:-1] = notes.values()
            try:
                await session.update_chat_ctx(context)
            except llm.RealtimeError as error:
                log.warning("a realtime model could not be told what is remembered: %s", type(error).__name__)
            else:
                self._notes = notes
