"""A ready-made agent that talks with callers from memory: a language model with `MemoryCapability`.

For the page, the terminal and examples. It keeps no history of its own but reads what was said from memory at
every turn, so that a conversation continues in any process, and forgotten words are in no prompt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model

from echoic.capability.memory import CallerMemory
from echoic.checks import AGENT, USER
from echoic.errors import EchoicError, InvalidInput, brief
from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless import Reply
from echoic.memory.keyless.intents import Steps, learn
from echoic.memory.user import UserMemory
from echoic.prompt.block import quoted
from echoic.secrets import MARKER
from echoic.types import Turn, checked_text

if TYPE_CHECKING:
    from echoic.memory.service import MemoryService


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls a tool."""

    name: str
    call: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool returned."""

    call: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What the model was sent for the reply."""

    messages: Sequence[ModelMessage]
    block: Mapping[str, str]
    """The memory block, by section."""


async def pieces(
    events: AsyncIterable[Any], *, after: str = ""
) -> AsyncGenerator[TextPiece | ToolCall | ToolAnswer, None]:
    """The words of a run and its tool calls, as they come.

    Pass the events of `run_stream_events`: PydanticAI's own text stream ends before the first tool. `after`
    is the last character said before them, if any.
    """
    async for event in events:
        if isinstance(event, FunctionToolCallEvent):
            yield ToolCall(event.part.tool_name, event.part.tool_call_id)
        elif isinstance(event, FunctionToolResultEvent):
            yield ToolAnswer(event.part.tool_call_id, str(getattr(event.part, "outcome", "retried")))
        text = _text_of(event)
        if not text:
            continue
        apart = after.isspace() or text[0].isspace()
        if isinstance(event, PartStartEvent) and after and not apart:
            text = f" {text}"  # what is said after a tool begins a new sentence
        after = text[-1]
        yield TextPiece(text)


def history_of(turns: Sequence[Turn]) -> list[ModelMessage]:
    """Turns as the history of a run, with the heard part of the agent's words.

    Another person's words are in the user's role, with their name. It begins with the first turn that is not
    the agent's, since several providers reject a history that begins with the model.
    """
    messages: list[ModelMessage] = []
    for turn in turns:
        if turn.speaker == AGENT:
            if messages and turn.heard_text:
                messages.append(ModelResponse(parts=[TextPart(turn.heard_text)], timestamp=turn.said_at))
            continue
        said = turn.text
        if turn.speaker != USER:
            # folding makes some texts longer
            words = quoted(turn.heard_text, 2 * len(turn.text))
            said = f"{quoted(turn.speaker, _NAME_CHARACTERS)} said: {words}"
        messages.append(ModelRequest(parts=[UserPromptPart(said, timestamp=turn.said_at)]))
    return messages


def _text_of(event: object) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


NAME: Final = "assistant"
"""The name of the agent, under which conversations and experience are stored."""
INSTRUCTIONS: Final = (
    "You talk with one person, as if on the phone: short sentences, no lists, no markup. Use what you "
    "remember of them without being asked, and do not invent memories. What they tell you of themselves is "
    "kept by itself; use your tools to look something up, to keep what they ask you to keep, and to take "
    "back what they no longer want remembered."
)
TIMEOUT_S: Final = 60.0
"""Time limit of an answer."""
RECALL_DEADLINE_MS: Final = 400.0
_TURNS: Final = 60
"""How many recent turns the model is shown."""
_REQUESTS: Final = 8
"""Requests to the model for one answer, with tools called in between."""
_HITS: Final = 8
_NAME_CHARACTERS: Final = 80


class ModelFailed(Exception):
    """The language model gave no answer. What the user said is stored."""


Piece = TextPiece | ToolCall | ToolAnswer | Sent | Reply
"""A piece of an answer; the last one is the complete `Reply`."""


class Talker:
    """Talks with any caller of one service. Use with `async with`.

    Args:
        service: the open memory service.
        model: "provider:model" as PydanticAI names it, or a PydanticAI model, which you close.
        recall_deadline_ms: how long the recall shown with an answer waits for its embedding.
    """

    name = NAME

    def __init__(
        self,
        service: MemoryService,
        model: str | Model,
        *,
        recall_deadline_ms: float | None = RECALL_DEADLINE_MS,
    ) -> None:
        self.model = model if isinstance(model, str) else model.model_id
        """"provider:model"."""
        self._service = service
        self._model = model
        self._recall_deadline_ms = recall_deadline_ms
        self._agent: Agent[None, str] | None = None

    async def __aenter__(self) -> Self:
        """Create the model's client. Nothing is contacted.

        Raises:
            InvalidInput: the model cannot be used: a key or a package is missing.
        """
        # importing a provider's client and reading certificates takes up to a second
        agent = await asyncio.to_thread(self._made)
        if isinstance(self._model, str):  # we made its client, so we close it
            await agent.__aenter__()
        self._agent = agent
        return self

    async def __aexit__(self, *_: object) -> None:
        agent, self._agent = self._agent, None
        if agent is not None and isinstance(self._model, str):
            await agent.__aexit__(None, None, None)

    async def reply(
        self, memory: UserMemory, conversation: OpenConversation, text: str
    ) -> AsyncIterator[Piece]:
        """Store `text` as the user's turn, stream the model's answer, then learn from it.

        Args:
            memory: the speaker's memory.
            conversation: the conversation.
            text: what they say.

        Raises:
            InvalidInput: `text` cannot be stored.
            ModelFailed: the model could not be reached, or gave no answer; the turn is stored.
            StoreUnavailable: the store could not be read or written.
        """
        checked_text(text, "text")
        steps = Steps()
        before = await memory.facts()
        turns = await conversation.recalled_turns()
        history = history_of(turns[-_TURNS:])
        with steps.step("recall"):
            recall = await memory.recall(
                text, limit=_HITS, deadline_ms=self._recall_deadline_ms, besides=conversation.id
            )
        said: list[str] = []
        async for piece in self._answer(memory, conversation.id, text, history, steps):
            if isinstance(piece, TextPiece):
                said.append(piece.text)
            yield piece
        heard = await _heard(conversation, text, {turn.id for turn in turns})
        if heard is None:  # forgotten meanwhile: nothing is learned
            yield Reply(text="".join(said), query=text, recall=recall, timings=steps.timings_ms)
            return
        learned = await learn(memory, conversation, heard, ours=(), before=before, steps=steps)
        yield Reply(
            text="".join(said),
            heard=heard,
            **learned.parts(),
            query=text,
            recall=recall,
            timings=steps.timings_ms,
        )

    async def _answer(
        self, memory: UserMemory, conversation: str, text: str, history: Sequence[ModelMessage], steps: Steps
    ) -> AsyncIterator[TextPiece | ToolCall | ToolAnswer | Sent]:
        if self._agent is None:
            raise InvalidInput("the talker is not open: use it with `async with`")
        started = time.perf_counter()
        spoken = False
        # the memory passed in: the caller may not be allowed to see all of it
        told = CallerMemory(service=self._service, user="", memory=memory, agent=self.name)
        run = self._agent.run_stream_events(
            text,
            capabilities=[told],
            message_history=list(history),
            conversation_id=conversation,
            model_settings={"timeout": TIMEOUT_S},
            usage_limits=UsageLimits(request_limit=_REQUESTS),
        )
        try:
            async with asyncio.timeout(TIMEOUT_S), run as events:
                async for piece in pieces(events):
                    if isinstance(piece, TextPiece) and not spoken:
                        spoken = True
                        steps.timings_ms["first words"] = (time.perf_counter() - started) * 1000
                    yield piece
                yield Sent(events.new_messages(), dict(told.texts))
        except EchoicError:  # the store failed, not the model
            raise
        except Exception as error:  # whatever a model or its client raises
            raise ModelFailed(type(error).__name__) from error
        steps.timings_ms["answer"] = (time.perf_counter() - started) * 1000
        if not spoken:
            raise ModelFailed("it said nothing")

    def _made(self) -> Agent[None, str]:
        try:
            model = infer_model(self._model)
        except (UserError, ImportError, ValueError) as error:
            raise InvalidInput(f"model={brief(self.model)} cannot be used: {error}") from error
        return Agent(model, name=self.name, instructions=INSTRUCTIONS)


async def _heard(conversation: OpenConversation, text: str, known: set[str]) -> Turn | None:
    turns = await conversation.turns()
    new = [turn for turn in turns if turn.speaker == "user" and turn.id not in known]
    # something else may have been said meanwhile; a long text is stored in parts, a secret as a marker
    said = [turn for turn in reversed(new) if turn.text.strip()]
    mine = [turn for turn in said if text.endswith(turn.text)]
    return next(iter([*mine, *(turn for turn in said if MARKER.search(turn.text))]), None)
