"""Opening lines to the provider for agents, and what is done when an agent enters and leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.realtime import RealtimeEvent, RealtimeModel, WebRTCSession
from pydantic_ai.usage import UsageLimits

from echoic.capability import CallerMemory
from echoic.memory.service import MemoryService
from echoic.prompt.block import OPENING
from echoic.session.agents import CallContext, Hook, ToolShield, VoiceAgent
from echoic.session.asr_confidence import Confidences, with_confidence
from echoic.session.call_state import Session
from echoic.session.history import without_requests
from echoic.session.hooks import cancelled_here
from echoic.session.playback import Playback
from echoic.session.profile import ProviderProfile, waits_to_be_asked
from echoic.session.provider_session import Leg, Setup
from echoic.session.sideband import ProviderCall, RemotePlayback, observed
from echoic.types import Directives

log = logging.getLogger(__name__)

GO_ON: Final = (
    "The line was interrupted for a moment and is back. Go on where you were; answer what was asked last."
)
_HOOK_S: Final = 5.0
_NO_LIMIT: Final = UsageLimits(request_limit=None)
"""A call has as many replies as it has; PydanticAI's own limit is meant for one run."""


class ProviderConnections:
    """Of one session.

    Args:
        session: whose.
        service: the memory, open.
        model: that speaks, unless an agent has its own.
        confidences: told how sure the recogniser is.
        call: the provider's, where the audio goes between it and the caller.
    """

    def __init__(
        self,
        session: Session,
        service: MemoryService,
        model: RealtimeModel,
        confidences: Confidences,
        call: ProviderCall | None = None,
    ) -> None:
        self._session = session
        self._service = service
        self._model = model
        self._confidences = confidences
        self.call = call

    async def context(self, agent: VoiceAgent) -> CallContext:
        """What the hooks and tools of an agent get.

        Raises:
            StoreUnavailable: the caller's directives could not be read.
        """
        session = self._session
        if not session.settings.memory:
            return CallContext(session, agent.name, Directives(), session.deps)
        directives = await session.memory.directives(
            for_agent=agent.name, for_conversation=session.conversation_id
        )
        return CallContext(self._session, agent.name, directives, self._session.deps)

    async def open(
        self,
        agent: VoiceAgent,
        context: CallContext,
        history: Sequence[ModelMessage],
        playback: Playback,
        on_event: Callable[[Leg, RealtimeEvent], None],
    ) -> Leg:
        """A line for `agent`, told the block before anything else.

        Raises:
            RealtimeError: the provider could not be reached, or refused.
        """
        leg = Leg(uuid4().hex, self._setup(agent, context, history, playback), playback, on_event)
        await leg.open()
        if self.call is not None:
            self.call.knows = True
        return leg

    async def hang_up(self) -> None:
        """End the provider's call for the caller as well, where their audio goes by it."""
        if self.call is not None:
            with contextlib.suppress(Exception):  # a call nobody steers ends when its caller leaves
                await self._model.hang_up(WebRTCSession(self._model.system, session_id=self.call.id))

    def _setup(
        self, agent: VoiceAgent, context: CallContext, history: Sequence[ModelMessage], playback: Playback
    ) -> Setup:
        session, call = self._session, self.call
        model = with_confidence(agent.model, self._confidences) if agent.model else self._model
        profile = ProviderProfile.of(model)
        if call is not None:
            assert isinstance(playback, RemotePlayback)
            model, profile = observed(model, playback.heed), profile.beside()
        told, behind = ([], history) if call is not None and call.knows else (list(history), ())
        settings = profile.settings(agent.settings, recall_first=session.settings.recalls_first)
        memory, more = self._capabilities(agent)
        shield = ToolShield(
            timeout_s=agent.tool_timeout_s, on_restart=session.host.restarted if session.host else None
        )
        others = [name for name in session.agents if name != agent.name]
        said = agent.instructions(context) if callable(agent.instructions) else agent.instructions
        bound = agent.realtime(
            model,
            context,
            instructions=said,
            others=others,
            model_settings=settings,
            capabilities=[*([] if memory is None else [memory]), *more, shield],
            conversation_id=session.conversation_id,
            message_history=told or None,
            usage=session.host.usage if session.host else None,
            usage_limits=_NO_LIMIT,
        )
        return Setup(
            agent=agent,
            context=context,
            memory=memory,
            shield=shield,
            profile=profile,
            waits_to_be_asked=waits_to_be_asked(settings),
            opening=bound.session(
                provider_session=WebRTCSession(model.system, session_id=call.id) if call else None
            ),
            behind=behind,
            opening_texts=[
                *([(agent.name, said)] if said else []),
                *([(OPENING.name, OPENING.text)] if memory is not None else []),
            ],
        )

    def _capabilities(
        self, agent: VoiceAgent
    ) -> tuple[CallerMemory | None, Sequence[AbstractCapability[Any]]]:
        """Memory as `agent` is given it, and what it is given besides."""
        if self._session.host is not None:
            return self._session.host.capabilities(agent.name)
        if not self._session.settings.memory:
            return None, ()
        scope = self._session.memory.scope
        user = scope.user or ""
        memory = CallerMemory(
            service=self._service,
            user=lambda _: user,
            deployment=scope.deployment,
            agent=agent.name,
            budget_tokens=self._session.settings.block_tokens,
            recall_on_prompt=False,
            capture=False,
            memory=self._session.memory,
        )
        return memory, ()

    async def enter(self, leg: Leg, *, history: Sequence[ModelMessage], resumed: bool = False) -> None:
        """An agent takes over: its hook, then its first words."""
        agent = leg.setup.agent
        if not resumed:
            await run_hook(agent.on_enter, leg.setup.context, "on_enter")
        first = _said_on_return(agent, history) if resumed else agent.greeting
        if first:
            await self._session.prompt(first)

    async def leave(self, leg: Leg) -> None:
        """An agent's part is over."""
        await run_hook(leg.setup.agent.on_exit, leg.setup.context, "on_exit")


async def run_hook(hook: Hook | None, context: CallContext, name: str) -> None:
    """Run a hook of an agent; it takes 5 seconds at most, and cannot break the call."""
    if hook is None:
        return
    try:
        async with asyncio.timeout(_HOOK_S):
            await hook(context)
    except (Exception, asyncio.CancelledError) as error:  # somebody else's code
        if cancelled_here(error):
            raise
        log.warning("%s of %s failed: %s", name, context.agent, type(error).__name__)


def _said_on_return(agent: VoiceAgent, history: Sequence[ModelMessage]) -> str | None:
    """What the agent of a call that is taken up again is asked to say first."""
    if not without_requests(history):  # the line broke before anybody said anything
        return agent.greeting
    return GO_ON if _is_unanswered(history) else None


def _is_unanswered(history: Sequence[ModelMessage]) -> bool:
    """Whether the last word was not the agent's."""
    last = history[-1] if history else None
    return isinstance(last, ModelRequest) or getattr(last, "state", "complete") == "interrupted"
