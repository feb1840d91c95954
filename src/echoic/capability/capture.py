"""What was said and done in a text run, as turns and results with ids of their own.

An id follows from conversation, run and place; so the same run seen twice is kept once. Recalled memory and
what tools gave are no turns: nothing is ever learned from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from echoic.memory.ledger import memory_id
from echoic.memory.tasks import Result
from echoic.types import Turn

_CHARACTERS: Final = 8000
"""Of one turn: 8,000 characters are at most 32,000 bytes, which a turn may have. Longer texts are several."""


def prompt_turns(
    prompt: str | Sequence[UserContent] | None, *, conversation: str, run: str, said_at: datetime
) -> list[Turn]:
    """What the user said to begin a run; nothing where it goes on by itself, or shows pictures only."""
    return _turns(_text_of(prompt), "user", said_at, memory_id("turn", conversation, run, "user"))


def unanswered(messages: Sequence[ModelMessage]) -> list[UserContent] | None:
    """What the user said at the end of a history that no run has been asked about: None where nothing.

    So the adapters of web front ends hand over new words: as the last message, with no prompt beside it.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest) or last.run_id is not None:
        return None
    said = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
    return [item for content in said for item in ([content] if isinstance(content, str) else content)] or None


def reply_turns(messages: Sequence[ModelMessage], *, conversation: str, run: str) -> list[Turn]:
    """What the agent said in `messages`, those that are new in this run: one turn a response with words."""
    turns: list[Turn] = []
    responses = (message for message in messages if isinstance(message, ModelResponse))
    for number, response in enumerate(responses):
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        name = memory_id("turn", conversation, run, "agent", str(number))
        turns += _turns(text, "agent", response.timestamp, name)
    return turns


def tool_results(
    messages: Sequence[ModelMessage], *, conversation: str, run: str, without: Collection[str]
) -> Iterator[Result]:
    """What tools gave in `messages`, those that are new in this run, with what they were called with.

    Not those named in `without`, nor what stands in place of a result: a failure, a refusal.
    """
    asked = {
        part.tool_call_id: part.args_as_dict(raise_if_invalid=False)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    given = (
        part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_name not in without and part.outcome == "success"
    )
    for number, part in enumerate(given):
        value = part.model_response_object()
        bare = value["return_value"] if value.keys() == {"return_value"} else value
        # the id of the call is its provider's: some count anew in every response, others never give one twice
        name = memory_id("result", conversation, run, str(number))
        yield Result(
            id=name,
            name=part.tool_name,
            value=bare,
            at=part.timestamp,
            arguments=asked.get(part.tool_call_id),
        )


def _text_of(prompt: str | Sequence[UserContent] | None) -> str:
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (item if isinstance(item, str) else getattr(item, "content", None) for item in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def _turns(text: str, speaker: str, said_at: datetime, name: str) -> list[Turn]:
    # what cannot be stored exactly is stored as nearly as can be: it was said, and must not be lost for it
    storable = text.replace("\0", "").encode(errors="replace").decode()
    pieces = [storable[at : at + _CHARACTERS] for at in range(0, len(storable), _CHARACTERS)]
    return [
        Turn(speaker=speaker, text=piece, said_at=said_at, id=name if not number else f"{name}-{number}")
        for number, piece in enumerate(pieces)
        if piece.strip()
    ]
