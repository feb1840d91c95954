"""Runs the model for a call in text: one run for each turn, with a history that holds only what was heard."""

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
    """Runs the agents of a call turn by turn; the first of them begins."""

    agents: Mapping[str, Agent[Any, str]]
    conversation: str
    deps: Any = None
    instructions: str = ""
    history: list[ModelMessage] = field(default_factory=list)
    usage: RunUsage = field(default_factory=RunUsage)
    current: str = ""
    """The agent that serves."""
    recorder: CallRecorder | None = None
    """Notes which tools are called, and to whom the call is handed."""
    _start: int = 0
    """The index in the history at which the last reply begins."""
    _next: str | None = None
    """The agent that is to continue the reply."""
    _open: dict[str, Any] = field(default_factory=dict)
    """The results of the last response's tool calls, by id; None if there are none yet."""

    def __post_init__(self) -> None:
        self.current = self.current or next(iter(self.agents))

    @property
    def agent(self) -> Agent[Any, str]:
        """The agent that serves."""
        return self.agents[self.current]

    @property
    def model(self) -> tuple[str, str]:
        """Provider and name of the model of whoever serves."""
        model = self.agent.model
        if isinstance(model, Model):
            return model.system, model.model_name
        provider, _, name = str(model or "").partition(":")
        return provider, name

    @property
    def start(self) -> int:
        """The index in the history at which the last reply begins."""
        return self._start

    def transfer(self, agent: str) -> None:
        """Have `agent` go on with the reply under way once the tools of it have answered.

        Raises:
            InvalidInput: the call has no such agent.
        """
        if agent not in self.agents:
            raise InvalidInput(f"this call has no agent {brief(agent)}: it has {', '.join(self.agents)}")
        self._next = agent

    async def reply(self, prompt: str, capabilities: Capabilities) -> AsyncGenerator[str, None]:
        """The agent's words as they come; all tools it asks for are run on the way. Where one of them hands
        the call over, the next agent goes on with the same reply.

        Closed early, the run is cancelled; the history then holds what there was of it. After an error it
        holds what it held before.
        """
        before, self._start, self._next = self.history, len(self.history), None
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
                if len(self.history) == self._start:  # it had not begun
                    self.ask(prompt)
                raise
            except BaseException:
                self.history = before
                raise
            self._take(events, base, first=first)
            if self._next is None:
                return
            if not self._hand_over(self._next):
                return
            said = None

    def trim(self, heard: str, *, start: int) -> None:
        """Truncate the reply that begins at `start` in the history to what was heard of it.

        Of several replies, truncate the last one first, so that the positions of the others stay valid.
        """
        self.history = trimmed(self.history, start, heard)

    def ask(self, prompt: str) -> None:
        """Note that the caller said `prompt`, and was not answered."""
        self.history = [*self.history, ModelRequest(parts=[UserPromptPart(prompt)])]

    def forget(self) -> None:
        """Start with an empty history: another caller is speaking."""
        self.history, self._start = [], 0

    def resume(self, agent: str, history: Sequence[ModelMessage]) -> None:
        """Continue after what was said before, as far as it is known."""
        self.current = agent if agent in self.agents else self.current
        self.history = list(history)
        self._start = len(self.history)

    # -- inside

    def _transfers(self) -> list[FunctionToolset[Any]]:
        others = tuple(name for name in self.agents if name != self.current)
        if not others:
            return []

        return [FunctionToolset([transfer_tool(others, self.transfer, _HANDED_OVER)], id="transfer")]

    async def _until_transfer(self, events: Any) -> AsyncGenerator[Any, None]:
        """The events of a run; where it hands the call over, up to the last result of that response."""
        self._open = {}
        async for event in events:
            if self.recorder is not None:
                self.recorder.seen(event)
            yield event
            if isinstance(event, FunctionToolCallEvent):
                self._open[event.part.tool_call_id] = None
            elif isinstance(event, FunctionToolResultEvent):
                self._open[event.part.tool_call_id] = event.part
                if self._next is not None and all(part is not None for part in self._open.values()):
                    return

    def _hand_over(self, agent: str) -> bool:
        """Have `agent` serve from now on; whether the model is to go on with the reply at once."""
        self._next, self.current = None, agent
        if self.recorder is not None:
            self.recorder.transferred(agent)
        last = self.history[-1] if self.history else None
        if isinstance(
            last, ModelResponse
        ):  # the next run begins with what the tools of the last response gave
            given = [part for part in self._open.values() if part is not None]
            self.history = [*self.history, ModelRequest(parts=given)] if given else self.history
        return bool(self.history) and isinstance(self.history[-1], ModelRequest)

    def _take(self, events: Any, base: list[ModelMessage], *, first: bool) -> None:
        self.history = base
        if events is None:
            return
        with contextlib.suppress(UserError):  # it had not begun
            self.history = events.all_messages()
            if first:  # the run may have put messages of before into one: it does not begin where they ended
                self._start = len(self.history) - len(events.new_messages())
            self.usage += events.usage
