"""The agents of a call as the application defines them, the context they get, and a guard for their tools."""

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
        InvalidInput: a name that cannot be kept, a time-out that leaves no time, or `idempotent` names a tool
            that is not among `tools`.
    """

    name: str
    instructions: str | Callable[[CallContext], str] = ""
    tools: Sequence[Tool[CallContext] | Callable[..., Any]] = ()
    """Functions or PydanticAI tools. A tool with a `RunContext[CallContext]` gets the call as `deps`."""
    idempotent: frozenset[str] = frozenset()
    """Tools that may be run again when a process died before they answered."""
    greeting: str | None = None
    """The first thing to say, as a request to the model: "Greet the caller by name, if you know it."."""
    on_enter: Hook | None = None
    on_exit: Hook | None = None
    on_turn_completed: TurnHook | None = None
    """Called with what the caller said, once it is known. Where recall comes before the reply it has the same
    time, and what it injects is before the model when that answers; a slower one goes on beside it.
    """
    tool_timeout_s: float = 10.0
    transfers: Sequence[str] | None = None
    """Agents it may hand the call to; None: any of the session's."""
    model: RealtimeModel | None = None
    """Another model than the session's."""
    settings: RealtimeModelSettings | None = None
    """Settings of the model, such as its voice."""
    base: Agent[Any, str] | None = None
    """An agent of PydanticAI's that speaks: it keeps its own instructions and tools, which get the session's
    `deps` as theirs, and is given those above besides.
    """
    toolbox: Mapping[str, Tool[CallContext]] = field(init=False, repr=False, compare=False)
    """`tools` by name."""

    def __post_init__(self) -> None:
        checked_name(self.name, "agent")
        if not self.tool_timeout_s > 0:
            raise InvalidInput(f"tool_timeout_s must be above 0, not {brief(self.tool_timeout_s)}")
        # made once: the schema of a tool takes some milliseconds, in which no frame of audio moves
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
        """The realtime model, as PydanticAI opens a session for it.

        Args:
            model: that speaks.
            context: of the call.
            instructions: its own.
            others: agents of the same call.
            options: of `Agent.realtime`.
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
    """Raised by a tool when somebody else speaks: a model without history answers the turn again."""


class InCall(Protocol):
    """The part of a session that an agent's context may use."""

    session_id: str
    conversation_id: str
    memory: UserMemory
    """The caller's memory."""

    async def inject(self, text: str) -> None:
        """Tell the model something without having it reply."""
        ...

    async def prompt(self, request: str) -> None:
        """Have the agent say something now."""
        ...

    def plan_transfer(self, agent: str) -> None:
        """Hand the call over at the next pause."""
        ...

    def plan_end(self, reason: str) -> None:
        """End the call once what is being said has been played."""
        ...


class CallContext:
    """The call as hooks and tools of an agent see it. In tools: `ctx.deps`."""

    def __init__(self, session: InCall, agent: str, directives: Directives, deps: Any) -> None:
        self._session = session
        self.agent = agent
        """Who serves, or whose hook this is."""
        self.directives = directives
        """How the caller wants to be served, as it stood when the agent entered."""
        self.deps = deps
        """The application's own."""

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
        """Everything that holds of the caller now, each with a sentence as `text`: "The user prefers tea,
        only at work."

        The values alone ("Porto") are what `user.facts()` and `user.get(key)` answer.

        Raises:
            StoreUnavailable: could not look; that is not the same as knowing nothing.
        """
        facts = await self._session.memory.facts()
        return [replace(fact, text=with_context(sentence_of(fact), fact.context)) for fact in facts]

    async def inject_system_message(self, text: str) -> None:
        """Tell the model something, without having it reply. In force from its next response on.

        What people said does not belong here but into memory: this is in the operator's own voice.

        Raises:
            InvalidInput: an empty text.
            NotOpen: the call is over.
        """
        await self._session.inject(checked_text(text, "system message"))

    async def say(self, request: str) -> None:
        """Have the agent speak now, as in "Tell the caller that the line is busy."."""
        await self._session.prompt(checked_text(request, "request"))

    def transfer(self, agent: str) -> None:
        """Hand the call to another agent, once the tool or hook that asks has answered.

        Raises:
            InvalidInput: the session has no such agent.
        """
        self._session.plan_transfer(agent)

    def hang_up(self, reason: str = "ended") -> None:
        """End the call, once what the agent is saying has been played."""
        self._session.plan_end(reason)


def transfer_tool(names: tuple[str, ...], transfer: Callable[[str], None], told: str) -> Tool[Any]:
    """A tool by which an agent hands the call over to one of `names`.

    Args:
        names: the others.
        transfer: hands it over; raises InvalidInput where there is none of that name.
        told: to the model once it was.
    """

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
"""Results that are at hand for a call that is made again."""


@dataclass
class ToolGuard(AbstractCapability[Any]):
    """Around every tool of one agent on one call."""

    timeout_s: float = 10.0
    on_restart: Callable[[Restart], Awaitable[None]] | None = None
    """Awaited where a tool raised `Restart`."""
    id: str | None = "tool-guard"
    _runs: dict[str, asyncio.Task[Any]] = field(default_factory=dict, init=False, repr=False)
    _stopped: bool = field(default=False, init=False, repr=False)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: it belongs to one call and cannot be serialised."""
        return None

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Run a tool once for its call id; what takes too long goes on, and the model is told so."""
        del ctx
        run = self._runs.get(call.tool_call_id)
        if run is None:
            run = asyncio.ensure_future(handler(args))
            self._keep(call.tool_call_id, run)
        done, _ = await asyncio.wait({run}, timeout=self.timeout_s)
        if done:
            if run.cancelled() and not self._stopped:  # by its own doing: nobody here asked for it
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
        """Say that it failed instead of ending the call."""
        del ctx, args
        if isinstance(error, Restart) and self.on_restart is not None:
            await self.on_restart(error)
            return FAILED
        # its message may quote what was said
        log.warning("the tool %s failed: %s", tool_def.name, type(error).__name__)
        self._runs.pop(call.tool_call_id, None)  # the same call made again is tried again
        return FAILED

    def stop(self) -> None:
        """End what still runs, as when the call is over."""
        self._stopped = True
        for run in self._runs.values():
            run.cancel()

    def _keep(self, call: str, run: asyncio.Task[Any]) -> None:
        self._runs[call] = run
        run.add_done_callback(_asked)
        done = [name for name, kept in self._runs.items() if kept.done()]
        for name in done[: max(0, len(self._runs) - _KEPT)]:
            del self._runs[name]


def _asked(run: asyncio.Task[Any]) -> None:
    if not run.cancelled():
        run.exception()  # a late failure is nobody's any more; asking keeps the loop from complaining
