"""Memory as a PydanticAI capability, for text runs and realtime sessions.

The instructions contain only Echoic's own words, the same for everybody. The memory block is sent in the
user's role: before the prompt of a run, and in a realtime session as an item of its own. A section that
changes is appended, so that each prompt stays a prefix of the next. In a realtime session nothing is captured
here, since only the session knows what was heard of the agent's words.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.realtime import RealtimeError, RealtimeSession
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from echoic.capability.tools import TOOLS, MemoryTools
from echoic.errors import EchoicError, InvalidInput, NotAllowed, brief
from echoic.memory.assurance import Level
from echoic.memory.block import DEFAULT_BUDGET_TOKENS
from echoic.memory.recall import checked_relevance
from echoic.memory.records import memory_id
from echoic.memory.service import MemoryService
from echoic.memory.tasks import Result, fits
from echoic.memory.user import UserMemory
from echoic.prompt.answer import UNREAD
from echoic.prompt.block import OPENING, STATUS, changed_parts, framed, is_memory, parts_in
from echoic.types import Turn, checked_name

_CHARACTERS: Final = 8000
"""Characters of a turn at most, which are at most the 32,000 bytes that a turn may have. A longer text
becomes several turns."""


def prompt_turns(
    prompt: str | Sequence[UserContent] | None, *, conversation: str, run: str, said_at: datetime
) -> list[Turn]:
    """The user's turns that begin a run; empty if the run continues by itself, or has only pictures."""
    return _turns(_text_of(prompt), "user", said_at, memory_id("turn", conversation, run, "user"))


def unanswered(messages: Sequence[ModelMessage]) -> list[UserContent] | None:
    """What the user said at the end of a history and no run has answered; None if nothing.

    Adapters of web front ends pass new words that way: as the last message, without a prompt.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest) or last.run_id is not None:
        return None
    said = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
    return [item for content in said for item in ([content] if isinstance(content, str) else content)] or None


def reply_turns(messages: Sequence[ModelMessage], *, conversation: str, run: str) -> list[Turn]:
    """The agent's turns among the new `messages` of this run, one per response with text."""
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
    """Successful results of tools among the new `messages` of this run, with arguments, except of tools in
    `without`.
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
        # not the call's id: some providers count from the start in every response
        name = memory_id("result", conversation, run, str(number))
        arguments = asked.get(part.tool_call_id)
        yield Result(id=name, name=part.tool_name, value=bare, at=part.timestamp, arguments=arguments)


def _text_of(prompt: str | Sequence[UserContent] | None) -> str:
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (item if isinstance(item, str) else getattr(item, "content", None) for item in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def _turns(text: str, speaker: str, said_at: datetime, name: str) -> list[Turn]:
    # what cannot be stored exactly is stored as closely as possible rather than lost
    storable = text.replace("\0", "").encode(errors="replace").decode()
    pieces = [storable[at : at + _CHARACTERS] for at in range(0, len(storable), _CHARACTERS)]
    return [
        Turn(speaker=speaker, text=piece, said_at=said_at, id=name if not number else f"{name}-{number}")
        for number, piece in enumerate(pieces)
        if piece.strip()
    ]


Named = str | Callable[[Any], str | None]
"""Path of an attribute of `deps` ("user_id", "caller.id"), or a function of `deps`."""


def caller_of(deps: Any, named: Named) -> str:
    """The user of a run.

    Raises:
        NotAllowed: the dependencies name no user; the run must not begin.
    """
    user = named(deps) if callable(named) else _attribute(deps, named)
    if not isinstance(user, str) or not user.strip():
        where = "the function given" if callable(named) else f"deps.{named}"
        raise NotAllowed(
            f"no user is named for this run: {where} gave {type(user).__name__}. "
            "Pass deps that say who is being served; nobody's memory is not everybody's."
        )
    return user


def _attribute(deps: Any, path: str) -> Any:
    for name in path.split("."):
        deps = deps.get(name) if isinstance(deps, dict) else getattr(deps, name, None)
    return deps


log = logging.getLogger(__name__)

_LOOK_S: Final = 0.002


def told_in(messages: Sequence[ModelMessage]) -> dict[str, str]:
    """The sections of the block in `messages`, each in its latest version."""
    told: dict[str, str] = {}
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart) and isinstance(part.content, str) and is_memory(part.content):
                told |= parts_in(part.content)
    return told


def _with(messages: Sequence[ModelMessage], told: ModelRequest) -> list[ModelMessage]:
    """`messages` with `told` before the prompt they end with, or after tool results."""
    *before, last = messages
    asked = {type(part) for part in last.parts} <= {UserPromptPart, SystemPromptPart}
    return [*before, told, last] if asked else [*messages, told]


@dataclass(kw_only=True)
class MemoryCapability(AbstractCapability[Any]):
    """Gives an agent the memory of the user of a run.

    Before each run the user's words are stored and the block is read; after it the agent's words and tool
    results are stored. A run whose dependencies name no user does not begin.
    """

    service: MemoryService = field(kw_only=False)
    """An open service; you close it after the last run."""
    user: Named
    """The user: a path to an attribute of `deps`, or a function of them."""
    deployment: str | Callable[[Any], str] = "default"
    """The deployment itself, or a function of `deps`."""
    level: Level | Callable[[Any], Level] = "account"
    """How certain the user's identity is, or a function of `deps`; it limits what they are told."""
    agent: str | None = None
    """Name under which experience and conversations are stored; by default the agent's own name."""
    budget_tokens: int = DEFAULT_BUDGET_TOKENS
    recall_on_prompt: bool = True
    """Whether the block ends with memories related to what the user just said."""
    capture: bool = True
    """Whether text runs are stored as turns. Channels that know what was heard store turns themselves."""
    timeout_s: float = 3.0
    """Time limit of each tool call, and of reading the block."""
    min_relevance: float | None = None
    """Minimum relevance of what is found for tools and prompts; see `UserMemory.recall`."""
    id: str | None = "memory"

    def __post_init__(self) -> None:
        if not self.timeout_s > 0:
            raise InvalidInput(f"timeout_s must be above 0, not {brief(self.timeout_s)}")
        checked_relevance(self.min_relevance)
        if not isinstance(self.budget_tokens, int) or self.budget_tokens < 1:
            raise InvalidInput(
                f"budget_tokens must be a whole number above 0, not {brief(self.budget_tokens)}"
            )
        if self.agent is not None:
            checked_name(self.agent, "agent")

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a service cannot be serialised."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> CallerMemory:
        """This capability, bound to the user of one run.

        Raises:
            NotAllowed: the dependencies name no user.
            NotOpen: the service is not open in this event loop, so that nothing would be recalled or stored.
        """
        deployment = self.deployment(ctx.deps) if callable(self.deployment) else self.deployment
        user = caller_of(ctx.deps, self.user)
        given = {each.name: getattr(self, each.name) for each in fields(MemoryCapability) if each.init}
        level = self.level(ctx.deps) if callable(self.level) else self.level
        memory = self.service.user(user, deployment, level=level)
        memory.check_loop()
        return await CallerMemory(**given, memory=memory).for_run(ctx)


@dataclass(kw_only=True)
class CallerMemory(MemoryCapability):
    """`MemoryCapability` in one run, for one user. Made by `MemoryCapability.for_run`."""

    memory: UserMemory
    tells_between_tools: bool = True
    """Whether a realtime session is told of changes also before it goes on after tools, where a note would
    end the reply of some providers. Otherwise only `tell` does."""
    _asks: bool = field(default=False, init=False, repr=False)
    """Whether the user wants to be asked before a conversation is stored."""
    _run: RunContext[Any] | None = field(default=None, init=False, repr=False)
    """The context of the run, which later holds the realtime session."""
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _moment: str | None = field(default=None, init=False, repr=False)
    _name: str | None = field(default=None, init=False, repr=False)
    _conversation: str | None = field(default=None, init=False, repr=False)
    _unkept: list[Turn] = field(default_factory=list, init=False, repr=False)
    _held: bool = field(default=False, init=False, repr=False)
    """Whether the conversation was stored in this run: if it is gone at the end, it was forgotten."""
    _told: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    """Sections sent to a realtime session, which are in its history only once a turn follows."""
    _telling: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _outputs: set[str] = field(default_factory=set, init=False, repr=False)
    """Names of output tools, which have no result."""

    async def for_run(self, ctx: RunContext[Any]) -> CallerMemory:
        """Itself: a bound capability stays with its user."""
        self._run = ctx
        return self

    def get_instructions(self) -> Sequence[InstructionPart | Callable[[RunContext[Any]], Awaitable[None]]]:
        """The meaning of memory marks, and for a realtime session a hook before each turn; see `tell`."""
        return [InstructionPart(OPENING.text, name=OPENING.name), self._tell_session]

    @property
    def texts(self) -> Mapping[str, str]:
        """The block as last read, by section."""
        return self._texts

    def get_toolset(self) -> FunctionToolset[Any]:
        """`agentMemory`, `store_conversation`, `recall_conversation`, and for some users
        `remember_conversation`.
        """
        tools = MemoryTools(
            self.memory,
            lambda: self._conversation,
            lambda: self._name,
            timeout_s=self.timeout_s,
            changed=self.refresh,
            min_relevance=self.min_relevance,
            asks=lambda: self._asks,
        )
        return tools.toolset()

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Run; a realtime session gets the block as soon as it is connected."""
        opening = asyncio.create_task(self._open()) if ctx.realtime else None
        try:
            return await handler()
        finally:
            if opening is not None:
                opening.cancel()

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Store what the user said, then read the block."""
        self._conversation = ctx.conversation_id
        self._name = self.agent or (ctx.agent.name if ctx.agent else None)
        said = prompt_turns(
            unanswered(ctx.messages) if ctx.prompt is None else ctx.prompt,
            conversation=ctx.conversation_id or "",
            run=ctx.run_id or "",
            said_at=datetime.now(UTC),
        )
        self._moment = " ".join(turn.text for turn in said) if self.recall_on_prompt else None
        if self.capture and not ctx.realtime:
            await self._keep(said)
        await self.refresh()

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add new or changed sections before the prompt, or after tool results."""
        text = changed_parts(told_in(request_context.messages), self._texts)
        if text:
            told = ModelRequest(
                parts=[UserPromptPart(text)], run_id=ctx.run_id, conversation_id=ctx.conversation_id
            )
            request_context.messages = _with(request_context.messages, told)
            ctx.messages[:] = _with(ctx.messages, told)  # so that each prompt stays a prefix of the next
        return request_context

    def _realtime_uncalled_hooks(self) -> tuple[str, ...]:
        # `_tell_session` does for a session what `before_model_request` does for a run: no warning is needed
        return self._realtime_uncalled_hooks_overriding(CallerMemory)

    async def tell(self, session: RealtimeSession) -> None:
        """Send a realtime session, in the user's role, the sections of the block that it does not have
        yet.
        """
        async with self._telling:
            told = told_in(session.all_messages()) | self._told
            text = changed_parts(told, self._texts)
            try:
                if text:
                    await session.send(text, respond=False)
                    self._told |= parts_in(text)
            except (RealtimeError, UserError) as error:  # the next turn tries again
                log.warning("a session could not be told the memory block: %s", type(error).__name__)

    async def prepare_output_tools(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - as every hook
        tool_defs: list[ToolDefinition],
    ) -> list[ToolDefinition]:
        """Record the names of output tools."""
        self._outputs.update(tool.name for tool in tool_defs)
        return tool_defs

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store what the agent said, and tool results."""
        captured = self.capture and not ctx.realtime and self._conversation is not None
        if captured and not (self._held and await self._is_forgotten()):
            await self._keep_outcome(ctx, result.new_messages())
        return result

    async def refresh(self) -> None:
        """Read the block again, for example after something was learned. On failure the last version stays.

        In a realtime session, call this when a turn is complete: the next response has it.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                # not read off the block, which may have no room for the question
                asks = await self.memory.asks_first(self._conversation)
                self._asks = self._asks or asks
                block = await self.memory.block(
                    agent=self._name,
                    conversation=self._conversation,
                    moment=self._moment,
                    budget_tokens=self.budget_tokens,
                    deadline_ms=self.timeout_s * 500,
                    min_relevance=self.min_relevance,
                )
        except (EchoicError, TimeoutError) as error:
            log.warning("the memory block could not be read: %s", type(error).__name__)
            # what was read earlier in this run still counts; otherwise the model is told of the failure
            self._texts = self._texts or {STATUS: framed(STATUS, [UNREAD])}
        else:
            self._texts = {section.name: section.text for section in block.sections}

    async def _is_forgotten(self) -> bool:
        """Whether the conversation existed when the run began and is gone now."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self.memory.find_conversation(self._conversation or "") is None
        except (EchoicError, TimeoutError):
            return False  # unknown: then storing fails as well, and is logged

    async def _keep_outcome(self, ctx: RunContext[Any], new: Sequence[ModelMessage]) -> None:
        named = {"conversation": self._conversation or "", "run": ctx.run_id or ""}
        await self._keep(reply_turns(new, **named))
        for result in tool_results(new, **named, without=TOOLS | self._outputs):
            await self._keep_result(result)

    async def _tell_session(self, ctx: RunContext[Any]) -> None:
        if ctx.realtime_session is not None and self.tells_between_tools:
            await self.tell(ctx.realtime_session)

    async def _open(self) -> None:
        """Send the block to a realtime session once it exists: no hook is called then."""
        while self._run is None or self._run.realtime_session is None:  # noqa: ASYNC110 - see above
            await asyncio.sleep(_LOOK_S)
        await self.tell(self._run.realtime_session)

    async def _keep(self, turns: Sequence[Turn]) -> None:
        """Store `turns` and those that failed before; what fails again waits for the next time."""
        self._unkept += turns
        if self._conversation is None:
            return
        try:
            async with asyncio.timeout(self.timeout_s):
                opened = await self.memory.conversation(
                    checked_name(self._conversation, "conversation id"), agent=self._name
                )
                if self._unkept:
                    await opened.append(*self._unkept)
        except (EchoicError, TimeoutError) as error:
            log.error("%d turns are not kept: %s", len(self._unkept), type(error).__name__)  # noqa: TRY400 - no content
        else:
            self._unkept, self._held = [], True

    async def _keep_result(self, result: Result) -> None:
        if result.arguments is not None and not fits(result.arguments):
            result = replace(result, arguments=None)  # the result is worth more than the arguments
        try:
            async with asyncio.timeout(self.timeout_s):
                await self.memory.add_result(
                    self._conversation or "",
                    result.name,
                    result.value,
                    id=result.id,
                    arguments=result.arguments,
                    at=result.at,
                )
        except (EchoicError, TimeoutError) as error:
            log.warning("a result is not kept: %s", type(error).__name__)
