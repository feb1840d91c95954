"""Runs the model for a text call: one run for each turn, with a history that holds only what was heard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from echoic.capability.talker import TextPiece, pieces
from echoic.errors import InvalidInput, brief
from echoic.session.agents import transfer_tool
from echoic.session.history import trimmed

if TYPE_CHECKING:
    from echoic.session.recorder import CallRecorder

_HANDED_OVER = "The call was handed over. It is yours now: go on with it, and say who you are."
Capabilities = Callable[[], Sequence[AbstractCapability[Any]]]


@dataclass(kw_only=True)
class TextRunner:
    """Runs the agents of a call turn by turn; the first one begins."""

    agents: Mapping[str, Agent[Any, str]]
    conversation: str
    deps: Any = None
    instructions: str = ""
    history: list[ModelMessage] = field(default_factory=list)
    usage: RunUsage = field(default_factory=RunUsage)
    current: str = ""
    """The agent that serves."""
    recorder: CallRecorder | None = None
    """Records tool calls and transfers."""
    start: int = 0
    """The index in the history at which the last reply begins."""
    _next: str | None = None
    """The agent that continues the reply."""
    _open: dict[str, Any] = field(default_factory=dict)
    """The results of the last response's tool calls, by id; None if there are none yet."""

    def __post_init__(self) -> None:
        self.current = self.current or next(iter(self.agents))

    @property
    def agent(self) -> Agent[Any, str]:
        return self.agents[self.current]

    @property
    def model(self) -> tuple[str, str]:
        """Provider and name of the current agent's model."""
        model = self.agent.model
        if isinstance(model, Model):
            return model.system, model.model_name
        provider, _, name = str(model or "").partition(":")
        return provider, name

    def transfer(self, agent: str) -> None:
        """Have `agent` continue the current reply once its tools have returned.

        Raises:
            InvalidInput: the call has no such agent.
        """
        if agent not in self.agents:
            raise InvalidInput(f"this call has no agent {brief(agent)}: it has {', '.join(self.agents)}")
        self._next = agent

    async def reply(self, prompt: str, capabilities: Capabilities) -> AsyncGenerator[str, None]:
        """The agent's words as they come, running the tools it calls. After a transfer the next agent
        continues the reply.

        If it is closed early, the run is cancelled and the history holds what there was of it. After an error
        the history is unchanged.
        """
        before, self.start, self._next = self.history, len(self.history), None
        said: str | None = prompt
        last = ""
        while True:
            base, first = self.history, said is not None
            events: Any = None
            try:
                async with (
                    self.agent.run_stream_events(
                        said,
                        message_history=base or None,
                        deps=self.deps,
                        capabilities=capabilities(),
                        toolsets=self._transfers(),
                        conversation_id=self.conversation,
                        instructions=self.instructions or None,
                    ) as events,
                    contextlib.aclosing(pieces(self._until_transfer(events), after=last)) as words,
                ):
                    async for piece in words:
                        if isinstance(piece, TextPiece):
                            last = piece.text[-1]
                            yield piece.text
            except (asyncio.CancelledError, GeneratorExit):
                self._take(events, base, first=first)
                if len(self.history) == self.start:  # the run had not begun
                    self.ask(prompt)
                raise
            except BaseException:
                self.history = before
                raise
            self._take(events, base, first=first)
            if self._next is None or not self._hand_over(self._next):
                return
            said = None

    def trim(self, heard: str, *, start: int) -> None:
        """Truncate the reply that begins at index `start` of the history to what was heard of it.

        Of several replies, truncate the last one first, so that the indexes of the others stay valid.
        """
        self.history = trimmed(self.history, start, heard)

    def ask(self, prompt: str) -> None:
        self.history = [*self.history, ModelRequest(parts=[UserPromptPart(prompt)])]

    def forget(self) -> None:
        """Clear the history: another caller is speaking."""
        self.history, self.start = [], 0

    def resume(self, agent: str, history: Sequence[ModelMessage]) -> None:
        """Continue after an earlier process."""
        self.current = agent if agent in self.agents else self.current
        self.history = list(history)
        self.start = len(self.history)

    # -- inside

    def _transfers(self) -> list[FunctionToolset[Any]]:
        others = tuple(name for name in self.agents if name != self.current)
        if not others:
            return []
        return [FunctionToolset([transfer_tool(others, self.transfer, _HANDED_OVER)], id="transfer")]

    async def _until_transfer(self, events: Any) -> AsyncGenerator[Any, None]:
        """The events of a run; after a transfer, up to the last tool result of that response."""
        self._open = {}
        async for event in events:
            is_tool = isinstance(event, (FunctionToolCallEvent, FunctionToolResultEvent))
            if is_tool and self.recorder is not None:
                self.recorder.seen(event)
            yield event
            if isinstance(event, FunctionToolCallEvent):
                self._open[event.part.tool_call_id] = None
            elif isinstance(event, FunctionToolResultEvent):
                self._open[event.part.tool_call_id] = event.part
                if self._next is not None and all(part is not None for part in self._open.values()):
                    return

    def _hand_over(self, agent: str) -> bool:
        """Make `agent` the current one; returns whether it continues the reply at once."""
        self._next, self.current = None, agent
        if self.recorder is not None:
            self.recorder.transferred(agent)
        last = self.history[-1] if self.history else None
        if isinstance(last, ModelResponse):  # the next run begins with the results of its tools
            given = [part for part in self._open.values() if part is not None]
            self.history = [*self.history, ModelRequest(parts=given)] if given else self.history
        return bool(self.history) and isinstance(self.history[-1], ModelRequest)

    def _take(self, events: Any, base: list[ModelMessage], *, first: bool) -> None:
        self.history = base
        if events is None:
            return
        with contextlib.suppress(UserError):  # the run had not begun
            self.history = events.all_messages()
            if first:  # the run may have merged earlier messages, so the index is counted from the end
                self.start = len(self.history) - len(events.new_messages())
            self.usage += events.usage
