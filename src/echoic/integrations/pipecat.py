"""Echoic in a Pipecat pipeline: memory is searched while callers speak, and what was heard is stored.

    memory = EchoicMemory(service.user(caller), aggregators)
    Pipeline([transport.input(), stt, memory.ear, aggregators.user(), memory, llm, memory.mouth, tts,
              transport.output(), aggregators.assistant()])

It has three taps. `ear` receives interim transcripts, which the user aggregator drops. The processor itself
adds memory to a copy of the context, directly before the newest message of the user. `mouth` records what the
model writes, and adds memory to requests that come from behind it, as after a tool. The context of the
aggregators stays unchanged. Speculative requests are not stored.
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
    """The tap before the user aggregator."""

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
    """The tap behind the model."""

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
        user: the user's memory.
        aggregators: the pipeline's `LLMContextAggregatorPair`, which reports what was said and heard.
        call: the id of the call; new if empty.
        agent: the name under which conversations and experience are stored.
        deadline_ms: how long a reply may wait for memory.

    Raises:
        InvalidInput: the deadline is not above 0, or a name is not valid.
        NotOpen: the memory is not open in this event loop.
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
        self.ear, self.mouth = _EarTap(self.call), _Mouth(self.call)
        self._follow(aggregators)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Load memory at the start, and add it to requests to the model."""
        await super().process_frame(frame, direction)
        if isinstance(frame, StartFrame):
            self.call.warm()
        elif isinstance(frame, LLMContextFrame) and direction is FrameDirection.DOWNSTREAM:
            frame = replace(frame, context=await with_memory(frame.context, self.call))
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        """The pipeline has ended: everything said is stored when this returns."""
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
    """A message's time, and an id that is the same when it is delivered again, since messages have none."""
    if not message.timestamp:
        return {}
    said_at = datetime.fromisoformat(message.timestamp)
    text = hashlib.sha256((message.content or "").encode(errors="replace")).hexdigest()[:16]
    return {
        "id": f"{speaker}:{message.timestamp}:{text}",
        "said_at": said_at if said_at.tzinfo else said_at.replace(tzinfo=UTC),
    }


async def with_memory(context: LLMContext, call: CallMemory) -> LLMContext:
    """A copy of `context` with what is known for the newest user message directly before it, or at the end
    about the caller if there is none. `context` itself if there is nothing to add.
    """
    messages = list(context.messages)
    users = [n for n, each in enumerate(messages) if isinstance(each, dict) and each.get("role") == "user"]
    place = users[-1] if users else len(messages)
    known = await call.message_for(_text_of(messages[place].get("content")) if users else None)
    if not known:
        return context
    # in the user's role: it quotes people and must not have the operator's authority
    messages.insert(place, {"role": "user", "content": known})
    return LLMContext(messages=messages, tools=context.tools, tool_choice=context.tool_choice)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return " ".join(text for text in texts if isinstance(text, str))
