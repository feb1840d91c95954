"""The agents of a call as the application defines them, their context, and a guard around their tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic_ai import Agent, RunContext, Tool, ToolDefinition
from pydantic_ai.agent import AgentRealtime
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.realtime import RealtimeModel, RealtimeModelSettings
from pydantic_ai.toolsets import FunctionToolset

from echoic.english.slots import sentence_of, with_context
from echoic.errors import InvalidInput, brief
from echoic.memory.concurrency import noted
from echoic.types import Directives, Memory, checked_name, checked_text

if TYPE_CHECKING:
    from echoic.memory.user import UserMemory

TRANSFER_TOOL = "transfer_call"
_BEING_HANDED_OVER = "The call is being handed over."
Hook = Callable[["CallContext"], Awaitable[None]]
TurnHook = Callable[["CallContext", str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceAgent:
    """One agent of a call.

    Raises:
        InvalidInput: an invalid name, a timeout that is not above 0, or `idempotent` names a tool that is not
            in `tools`.
    """

    name: str
    instructions: str | Callable[[CallContext], str] = ""
    tools: Sequence[Tool[CallContext] | Callable[..., Any]] = ()
    """Functions or PydanticAI tools. A tool with a `RunContext[CallContext]` gets the call as `deps`."""
    idempotent: frozenset[str] = frozenset()
    """Tools that may be repeated if the process died before they returned."""
    greeting: str | None = None
    """The first thing to say, as a request to the model: "Greet the caller by name, if you know it."."""
    on_enter: Hook | None = None
    on_exit: Hook | None = None
    on_turn_completed: TurnHook | None = None
    """Called with what the caller said. If recall comes before the reply, the reply waits for this hook
    equally long, so that the model has what it injects; a slower hook continues in the background."""
    tool_timeout_s: float = 10.0
    transfers: Sequence[str] | None = None
    """Agents it may transfer the call to; None for any of the session's."""
    model: RealtimeModel | None = None
    """The agent's own model; by default the session's."""
    settings: RealtimeModelSettings | None = None
    """Settings of the model, such as its voice."""
    base: Agent[Any, str] | None = None
    """A PydanticAI agent to use: it keeps its own instructions and tools, which get the session's `deps`, and
    also gets those above."""
    toolbox: Mapping[str, Tool[CallContext]] = field(init=False, repr=False, compare=False)
    """`tools` by name."""

    def __post_init__(self) -> None:
        checked_name(self.name, "agent")
        if not self.tool_timeout_s > 0:
            raise InvalidInput(f"tool_timeout_s must be above 0, not {brief(self.tool_timeout_s)}")
        # made once: a tool's schema takes some milliseconds, in which no audio is sent
        tools = [tool if isinstance(tool, Tool) else Tool(tool) for tool in self.tools]
        object.__setattr__(self, "toolbox", {tool.name: tool for tool in tools})
        unknown = self.idempotent - self.toolbox.keys()
        if unknown:
            raise InvalidInput(
                f"idempotent names tools that {brief(self.name)} does not have: {sorted(unknown)}"
            )

    def realtime(
        self,
        model: RealtimeModel,
        context: CallContext,
        *,
        instructions: str,
        others: Sequence[str],
        **options: Any,
    ) -> AgentRealtime[Any]:
        """PydanticAI's realtime agent, with which a session is opened.

        `others` are the names of the other agents of the call; `options` are passed to `Agent.realtime`.
        """
        allowed = tuple(name for name in others if self.transfers is None or name in self.transfers)
        tools = list(self.toolbox.values())
        if allowed:
            tools.append(transfer_tool(allowed, context.transfer, _BEING_HANDED_OVER))
        if self.base is not None:
            options["toolsets"] = [FunctionToolset[Any](tools, id="call")] if tools else []
            return self.base.realtime(model, deps=context.deps, instructions=instructions or None, **options)
        agent = Agent(name=self.name, deps_type=CallContext, instructions=instructions or None, tools=tools)
        return agent.realtime(model, deps=context, **options)


class Restart(Exception):
    """Raised by a tool when somebody else is speaking: a model without history answers the turn again."""


class InCall(Protocol):
    """The part of a session that an agent's context uses."""

    session_id: str
    conversation_id: str
    memory: UserMemory
    """The caller's memory."""

    async def inject(self, text: str) -> None:
        """Tell the model something without having it reply."""

    async def prompt(self, request: str) -> None:
        """Have the agent say something now."""

    def plan_transfer(self, agent: str) -> None:
        """Transfer the call at the next pause."""

    def plan_end(self, reason: str) -> None:
        """End the call once the current reply has been played."""


class CallContext:
    """The call as an agent's hooks and tools see it. In tools: `ctx.deps`."""

    def __init__(self, session: InCall, agent: str, directives: Directives, deps: Any) -> None:
        self._session = session
        self.agent = agent
        """The agent that serves, or whose hook this is."""
        self.directives = directives
        """How the caller wants to be served, as of when the agent entered."""
        self.deps = deps
        """The application's dependencies."""

    @property
    def session_id(self) -> str:
        """The id of the call."""
        return self._session.session_id

    @property
    def conversation_id(self) -> str:
        """The id of the conversation the call is kept in."""
        return self._session.conversation_id

    @property
    def user(self) -> UserMemory:
        """The memory of the caller."""
        return self._session.memory

    async def memory_facts(self) -> list[Memory]:
        """All current memories of the caller, each with a sentence as `text`: "The user prefers tea, only at
        work."

        The values alone ("Porto") are in `user.facts()` and `user.get(key)`. Raises `StoreUnavailable`.
        """
        facts = await self._session.memory.facts()
        return [replace(fact, text=with_context(sentence_of(fact), fact.context)) for fact in facts]

    async def inject_system_message(self, text: str) -> None:
        """Give the model an instruction, in effect from its next response, without asking for a reply.

        The text has the operator's authority: what people said belongs in memory instead.

        Raises:
            InvalidInput: an empty text.
            NotOpen: the call is over.
        """
        await self._session.inject(checked_text(text, "system message"))

    async def say(self, request: str) -> None:
        """Have the agent speak now, as in "Tell the caller that the line is busy."."""
        await self._session.prompt(checked_text(request, "request"))

    def transfer(self, agent: str) -> None:
        """Transfer the call to another agent once the current tool or hook has returned.

        Raises:
            InvalidInput: the session has no such agent.
        """
        self._session.plan_transfer(agent)

    def hang_up(self, reason: str = "ended") -> None:
        """End the call once the current reply has been played."""
        self._session.plan_end(reason)


def transfer_tool(names: tuple[str, ...], transfer: Callable[[str], None], told: str) -> Tool[Any]:
    """A tool that transfers the call to one of `names`; `told` is its answer to the model."""

    async def transfer_call(agent: str) -> dict[str, Any]:
        """Hand the call over to a colleague.

        Args:
            agent: the colleague's name.
        """
        try:
            transfer(agent)
        except InvalidInput:
            return {"success": False, "note": f"There are these colleagues: {', '.join(names)}."}
        return {"success": True, "note": told}

    about = f"Hand the call over to a colleague: {', '.join(names)}. Say so to the caller in a few words."
    return Tool(transfer_call, takes_ctx=False, name=TRANSFER_TOOL, description=about)


log = logging.getLogger(__name__)

FAILED: Final = (
    "That did not work just now. Tell the caller so in a few words, and offer to try something else."
)
LATE: Final = (
    "That is taking longer than it should. Tell the caller so, and that you cannot say yet how it ends."
)
_KEPT: Final = 256
"""Number of results kept for repeated tool calls."""


@dataclass
class ToolGuard(AbstractCapability[Any]):
    """Runs the tools of one agent on one call: once per call id, with a timeout, and without ending the
    call.
    """

    timeout_s: float = 10.0
    on_restart: Callable[[Restart], Awaitable[None]] | None = None
    """Awaited if a tool raised `Restart`."""
    id: str | None = "tool-guard"
    _runs: dict[str, asyncio.Task[Any]] = field(default_factory=dict, init=False, repr=False)
    _stopped: bool = field(default=False, init=False, repr=False)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it belongs to one call."""
        return None

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Run a tool once for its call id; if it exceeds the timeout it continues, and the model is told
        so.
        """
        del ctx
        run = self._runs.get(call.tool_call_id)
        if run is None:
            run = asyncio.ensure_future(handler(args))
            self._keep(call.tool_call_id, run)
        done, _ = await asyncio.wait({run}, timeout=self.timeout_s)
        if done:
            if run.cancelled() and not self._stopped:  # the tool cancelled itself
                raise RuntimeError("the tool was cancelled")
            return run.result()
        log.warning("the tool %s has not answered within %.1f s", tool_def.name, self.timeout_s)
        return LATE

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        error: Exception,
    ) -> Any:
        """Tell the model that the tool failed, instead of ending the call."""
        del ctx, args
        if isinstance(error, Restart) and self.on_restart is not None:
            await self.on_restart(error)
            return FAILED
        # its message may quote what was said
        log.warning("the tool %s failed: %s", tool_def.name, type(error).__name__)
        self._runs.pop(call.tool_call_id, None)  # a repeated call is tried again
        return FAILED

    def stop(self) -> None:
        """Cancel the tools that still run."""
        self._stopped = True
        for run in self._runs.values():
            run.cancel()

    def _keep(self, call: str, run: asyncio.Task[Any]) -> None:
        self._runs[call] = run
        run.add_done_callback(noted)
        done = [name for name, kept in self._runs.items() if kept.done()]
        for name in done[: max(0, len(self._runs) - _KEPT)]:
            del self._runs[name]
