"""Runs of an agent in text: events as words and tool calls, kept turns as the history of the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)

from echoic.types import Turn


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer, as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a tool."""

    name: str


async def pieces(
    events: AsyncIterable[Any], *, after: str = ""
) -> AsyncGenerator[TextPiece | ToolCall, None]:
    """The words and tool calls of a run as they come.

    Pass what `run_stream_events` gives: PydanticAI's own text stream ends at the first words, before a tool.

    Args:
        events: of the run.
        after: the last character that was said before them; empty: nothing was.
    """
    async for event in events:
        if isinstance(event, FunctionToolCallEvent):
            yield ToolCall(event.part.tool_name)
        text = _text_of(event)
        if not text:
            continue
        apart = after.isspace() or text[0].isspace()
        if isinstance(event, PartStartEvent) and after and not apart:
            text = f" {text}"  # what was said before a tool and what is said after it are two sentences
        after = text[-1]
        yield TextPiece(text)


def history_of(turns: Sequence[Turn]) -> list[ModelMessage]:
    """What was said, as the history of a run: of the agent's words those that were heard. It begins with the
    user's first turn, since several providers take no conversation that a model begins.
    """
    messages: list[ModelMessage] = []
    for turn in turns:
        if turn.speaker == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(turn.text, timestamp=turn.said_at)]))
        elif messages and turn.heard_text:
            messages.append(ModelResponse(parts=[TextPart(turn.heard_text)], timestamp=turn.said_at))
    return messages


def _text_of(event: object) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
