"""A model's side of a call: one run a turn, its words as they come, a history that holds what was heard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.usage import RunUsage

from echoic.adapters.twilio.heard import trimmed
from echoic.types import Turn


@dataclass(kw_only=True)
class Talk:
    """Runs an agent turn by turn.

    `stream` events, and not the agent's own text stream: that one ends at the first words, before any tool.
    """

    agent: Agent[Any, str]
    deps: Any
    conversation: str
    instructions: str = ""
    history: list[ModelMessage] = field(default_factory=list)
    usage: RunUsage = field(default_factory=RunUsage)
    _start: int = 0
    """Where in the history the last reply begins."""

    async def reply(
        self, prompt: str, capabilities: Sequence[AbstractCapability[Any]]
    ) -> AsyncGenerator[str, None]:
        """The agent's words as they come; all tools it asked for are run on the way.

        Closed early, the run is cancelled; the history then holds what there was of it. After an error it
        holds what it held before.
        """
        before, self._start = self.history, len(self.history)
        ended = ""
        events: Any = None
        try:
            async with self.agent.run_stream_events(
                prompt,
                message_history=before or None,
                deps=self.deps,
                capabilities=capabilities,
                conversation_id=self.conversation,
                instructions=self.instructions or None,
            ) as events:
                async for event in events:
                    text = _text_of(event)
                    if not text:
                        continue
                    apart = ended.isspace() or text[0].isspace()
                    if isinstance(event, PartStartEvent) and ended and not apart:
                        text = f" {text}"  # what was said before a tool and after it are two sentences
                    ended = text[-1]
                    yield text
        except (asyncio.CancelledError, GeneratorExit):
            self._take(events, before)
            if len(self.history) == self._start:  # it had not begun
                self.ask(prompt)
            raise
        except BaseException:
            self.history = before
            raise
        else:
            self._take(events, before)

    @property
    def start(self) -> int:
        """Where in the history the last reply begins."""
        return self._start

    def hear(self, heard: str, *, start: int) -> None:
        """Cut the reply that begins at `start` in the history to what was heard of it.

        Of several the last is cut first: the places of those before it stay what they are.
        """
        self.history = trimmed(self.history, start, heard)

    def ask(self, prompt: str) -> None:
        """Note that the caller said `prompt`, and was not answered."""
        self.history = [*self.history, ModelRequest(parts=[UserPromptPart(prompt)])]

    def forget(self) -> None:
        """Begin anew: somebody else is speaking."""
        self.history, self._start = [], 0

    def resume(self, turns: Sequence[Turn]) -> None:
        """Go on after what was said before, as far as it is known."""
        self.history = said_before(turns)
        self._start = len(self.history)

    def _take(self, events: Any, before: list[ModelMessage]) -> None:
        self.history = before
        if events is None:
            return
        with contextlib.suppress(UserError):  # it had not begun
            self.history = events.all_messages()
            # the run may have put messages of before into one: it does not begin where they ended
            self._start = len(self.history) - len(events.new_messages())
            self.usage += events.usage


def said_before(turns: Sequence[Turn]) -> list[ModelMessage]:
    """What was said and heard, as a history to go on with."""
    return [_message(turn) for turn in turns if turn.heard_text]


def _message(turn: Turn) -> ModelMessage:
    if turn.speaker == "user":
        return ModelRequest(parts=[UserPromptPart(turn.heard_text, timestamp=turn.said_at)])
    return ModelResponse(parts=[TextPart(turn.heard_text)], timestamp=turn.said_at)


def _text_of(event: Any) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


__all__ = ["Talk", "said_before"]
