"""Echoic in a Pipecat pipeline: what callers said before is known while they speak; what was heard is kept.

    memory = EchoicMemory(service.user(caller), aggregators)
    Pipeline([transport.input(), stt, memory.ear, aggregators.user(), memory, llm, memory.mouth, tts,
              transport.output(), aggregators.assistant()])

Three taps. `ear` hears interim transcripts, which the user aggregator swallows. The processor itself puts
what is known into a copy of the context, directly before the newest message of the user. `mouth` notes what
the model writes, and gives memory to requests that come from behind it, as after a tool. The context that the
aggregators hold stays as it is without memory. Nothing is kept of speculative requests.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pipecat.frames.frames import (
    EagerTranscriptionFrame,
    Frame,
    InterimTranscriptionFrame,
    LLMContextFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    StartFrame,
    TranscriptionFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from echoic.integrations.call_memory import CallMemory
from echoic.memory.user import UserMemory
from echoic.session.turn_recall import DEFAULT_DEADLINE_MS


class _EarTap(FrameProcessor):
    """Before the user aggregator."""

    def __init__(self, call: CallMemory) -> None:
        super().__init__()
        self._call = call

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InterimTranscriptionFrame | EagerTranscriptionFrame):
            self._call.hear(frame.text)
        elif isinstance(frame, TranscriptionFrame):
            self._call.hear(frame.text, final=True)
        await self.push_frame(frame, direction)


class _Mouth(FrameProcessor):
    """Behind the model."""

    def __init__(self, call: CallMemory) -> None:
        super().__init__()
        self._call = call
        self._reply: list[str] = []

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMFullResponseStartFrame):
            self._reply = self._call.reply()
        elif isinstance(frame, LLMTextFrame):
            self._reply.append(frame.text)
        elif isinstance(frame, LLMContextFrame) and direction is FrameDirection.UPSTREAM:
            frame = replace(frame, context=await with_memory(frame.context, self._call))
        await self.push_frame(frame, direction)


class EchoicMemory(FrameProcessor):
    """The memory of one call, between the user aggregator and the model.

    Args:
        user: whose memory.
        aggregators: the `LLMContextAggregatorPair` of the pipeline, which tells what was said and heard.
        call: the id of the call; empty: a new one.
        agent: the name the agent keeps conversations and experience under.
        deadline_ms: the longest that a reply waits for memory.

    Raises:
        InvalidInput: the deadline is not above 0, or a name is not valid.
        NotOpen: the memory is open in another event loop.
    """

    def __init__(
        self,
        user: UserMemory,
        aggregators: Any,
        *,
        call: str = "",
        agent: str | None = None,
        deadline_ms: float = DEFAULT_DEADLINE_MS,
    ) -> None:
        super().__init__()
        self.call = CallMemory(user, call, agent=agent, deadline_ms=deadline_ms)
        """What is kept and looked up."""
        self.ear, self.mouth = _EarTap(self.call), _Mouth(self.call)
        self._follow(aggregators)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Warm up at the start, and put memory into what is sent to the model."""
        await super().process_frame(frame, direction)
        if isinstance(frame, StartFrame):
            self.call.warm()
        elif isinstance(frame, LLMContextFrame) and direction is FrameDirection.DOWNSTREAM:
            frame = replace(frame, context=await self._told(frame.context))
        await self.push_frame(frame, direction)

    async def _told(self, context: LLMContext) -> LLMContext:
        """A copy of `context` with what is known: for the newest message, or at the start, of who calls."""
        if any(isinstance(message, dict) and message.get("role") == "user" for message in context.messages):
            return await with_memory(context, self.call)
        block = await self.call.block()
        return _copied(context, [*context.messages, {"role": "user", "content": block}]) if block else context

    async def cleanup(self) -> None:
        """The pipeline has ended: everything that was said is kept when this returns."""
        await super().cleanup()
        await self.call.aclose()

    def _follow(self, aggregators: Any) -> None:
        async def user_said(_aggregator: Any, message: Any) -> None:
            said = _named("user", message)
            self.call.user_said(message.content, **said)

        async def agent_said(_aggregator: Any, message: Any) -> None:
            said = _named("agent", message)
            self.call.agent_said(message.content or "", interrupted=message.interrupted, **said)

        async def no_turn(_aggregator: Any, _message: Any) -> None:
            self.call.discard()

        aggregators.user().add_event_handler("on_user_turn_message_added", user_said)
        aggregators.user().add_event_handler("on_user_backchannel", no_turn)
        aggregators.assistant().add_event_handler("on_assistant_turn_stopped", agent_said)


def _named(speaker: str, message: Any) -> dict[str, Any]:
    """When a message was said, and an id that is the same when it is delivered again: they have none."""
    if not message.timestamp:
        return {}
    said_at = datetime.fromisoformat(message.timestamp)
    text = hashlib.sha256((message.content or "").encode(errors="replace")).hexdigest()[:16]
    return {
        "id": f"{speaker}:{message.timestamp}:{text}",
        "said_at": said_at if said_at.tzinfo else said_at.replace(tzinfo=UTC),
    }


async def with_memory(context: LLMContext, call: CallMemory) -> LLMContext:
    """A copy of `context` with what is known for the newest message of the user, directly before it.

    Where there is nothing to add it is `context` itself.
    """
    messages = list(context.messages)
    for place in reversed(range(len(messages))):
        message = messages[place]
        if isinstance(message, dict) and message.get("role") == "user":
            break
    else:
        return context
    known = await call.memory_for(_text_of(message.get("content")))
    if not known.message:
        return context
    # the role of the user: nothing that people said may speak for the operator
    messages.insert(place, {"role": "user", "content": known.message})
    return _copied(context, messages)


def _copied(context: LLMContext, messages: list[Any]) -> LLMContext:
    return LLMContext(messages=messages, tools=context.tools, tool_choice=context.tool_choice)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return " ".join(text for text in texts if isinstance(text, str))
