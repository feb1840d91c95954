"""Connections of a call to the voice provider: opened for an agent, transferred to the next, and closed.

If audio goes through the session (`transfer`), the new connection is opened before the old one is closed: the
caller's frames go to the first agent until the next is ready, then to that one, in order, and what the first
was saying is played to its end. On a WebRTC call (`reattach`), the next agent opens another sideband of the
provider's call. Both sidebands see the same events, so the first ignores them once the second listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, SpeechPart
from pydantic_ai.realtime import (
    RealtimeError,
    RealtimeEvent,
    RealtimeModel,
    RealtimeSessionErrorEvent,
    WebRTCSession,
)
from pydantic_ai.realtime.codec import RealtimeCodecEvent
from pydantic_ai.realtime.openai import OpenAIRealtimeConnection, OpenAIRealtimeModel
from pydantic_ai.usage import UsageLimits

from echoic.capability import CallerMemory
from echoic.errors import NotOpen
from echoic.memory.service import MemoryService
from echoic.prompt.block import OPENING, framed, quoted
from echoic.session.agents import CallContext, Hook, ToolGuard, VoiceAgent
from echoic.session.call_state import CallState, Confidences, Session
from echoic.session.history import as_heard, settled, with_summary, without_requests
from echoic.session.hooks import cancelled_here
from echoic.session.playback import Playback
from echoic.session.provider import ProviderProfile, ProviderSession, ProviderSetup, waits_to_be_asked
from echoic.session.webrtc_control import ProviderCall, RemotePlayback, observed
from echoic.types import Directives

log = logging.getLogger(__name__)

GO_ON: Final = (
    "The line was interrupted for a moment and is back. Go on where you were; answer what was asked last."
)
_HOOK_S: Final = 5.0
_TOOLS_S: Final = 2.0
"""How long the other tools of the same reply may take to answer before the call moves on without them."""
_LOOK_S: Final = 0.02
_REPLY_S: Final = 1.0
"""How long the reply after a tool may take to begin."""
_NO_LIMIT: Final = UsageLimits(request_limit=None)
"""PydanticAI's default limit is meant for one run, not for a call."""


class ProviderConnections:
    """The provider connections of one session; `call` is as for `CallLifecycle`."""

    def __init__(
        self,
        session: Session,
        service: MemoryService,
        model: RealtimeModel,
        confidences: Confidences,
        call: ProviderCall | None = None,
        *,
        on_event: Callable[[ProviderSession, RealtimeEvent], None],
    ) -> None:
        self._session = session
        self._service = service
        self._model = model
        self._confidences = confidences
        self.call = call
        self._on_event = on_event

    async def context(self, agent: VoiceAgent) -> CallContext:
        """The context for the hooks and tools of an agent; raises `StoreUnavailable`."""
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
    ) -> ProviderSession:
        """Open a connection for `agent`, which is told the memory block first; raises `RealtimeError`."""
        provider = ProviderSession(
            uuid4().hex, self._setup(agent, context, history, playback), playback, self._on_event
        )
        await provider.open()
        if self.call is not None:
            self.call.knows = True
        return provider

    async def hang_up(self) -> None:
        """End the provider's WebRTC call, if there is one."""
        if self.call is not None:
            with contextlib.suppress(Exception):  # the call also ends when the caller leaves
                await self._model.hang_up(WebRTCSession(self._model.system, session_id=self.call.id))

    def _setup(
        self, agent: VoiceAgent, context: CallContext, history: Sequence[ModelMessage], playback: Playback
    ) -> ProviderSetup:
        session, call = self._session, self.call
        model = steadied(with_confidence(agent.model, self._confidences) if agent.model else self._model)
        profile = ProviderProfile.of(model)
        if call is not None:
            assert isinstance(playback, RemotePlayback)
            model, profile = observed(model, playback.take_event), profile.beside()
        told, behind = ([], history) if call is not None and call.knows else (list(history), ())
        settings = profile.settings(
            agent.settings, recall_first=session.settings.recalls_first, own=model.settings
        )
        memory, more = self._capabilities(agent)
        if memory is not None:
            memory.tells_between_tools = profile.takes_notes
        tool_guard = ToolGuard(
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
            capabilities=[*([] if memory is None else [memory]), *more, tool_guard],
            conversation_id=session.conversation_id,
            message_history=told or None,
            usage=session.host.usage if session.host else None,
            usage_limits=_NO_LIMIT,
        )
        return ProviderSetup(
            agent=agent,
            context=context,
            memory=memory,
            tool_guard=tool_guard,
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
        """The memory capability of `agent`, and its other capabilities."""
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

    async def enter(
        self, provider: ProviderSession, *, history: Sequence[ModelMessage], resumed: bool = False
    ) -> None:
        """Start an agent: its hook, then its first words."""
        agent = provider.setup.agent
        if not resumed:
            await run_hook(agent.on_enter, provider.setup.context, "on_enter")
        first = _said_on_return(agent, history) if resumed else agent.greeting
        if first:
            await self._session.prompt(first)

    async def leave(self, provider: ProviderSession) -> None:
        await run_hook(provider.setup.agent.on_exit, provider.setup.context, "on_exit")

    async def transfer(self, live: CallState, agent: VoiceAgent) -> None:
        """Transfer the call to `agent`.

        Raises:
            RealtimeError: the new connection could not be opened; the old one continues.
        """
        old = live.provider
        await _until(lambda: not old.pending_tools(), _TOOLS_S)
        known = len(old.new_messages())
        history = settled(without_requests(old.heard_messages()), {}, old.pending_tools())
        call_summary = live.recorder.call_summary
        condensed = call_summary.condensed(live.history_so_far(history))
        await call_summary.summarize(condensed.evicted)
        history = with_summary(condensed.messages, call_summary.text)
        context = await self.context(agent)
        new = await self.open(agent, context, history, live.playback)
        began = time.perf_counter()
        try:
            async with live.sending:
                live.providers.append(new)
                call_summary.handed_on(condensed)
        except BaseException:
            await new.stop()  # hung up meanwhile: nobody else knows of the new session yet
            raise
        _note_transfer(live, old, context, 1000 * (time.perf_counter() - began))
        # the previous agent finishes its sentence
        await _until(lambda: not old.speaking or not old.is_open, live.settings.farewell_s)
        await self.leave(old)
        await old.stop()
        await _tell_farewell(live, old, new, known)
        await self.enter(new, history=history)
        live.dirty.set()

    async def reattach(self, live: CallState, agent: VoiceAgent) -> None:
        """Transfer a WebRTC call to `agent`.

        Raises:
            RealtimeError: the new connection could not be opened; the old one continues.
        """
        old = live.provider
        await _until(lambda: not old.pending_tools(), _TOOLS_S)
        await _until(lambda: not old.owes_reply or not old.is_open, _REPLY_S)
        await _until(lambda: not old.speaking or not old.is_open, live.settings.farewell_s)
        context = await self.context(agent)
        new = await self.open(agent, context, [], live.playback)
        new.before = old
        old.silent = True
        live.providers.append(new)
        _note_transfer(live, old, context, 0.0)  # no audio passes here, so none waits
        await self.leave(old)
        await old.stop()
        await self.enter(new, history=())
        live.dirty.set()


async def run_hook(hook: Hook | None, context: CallContext, name: str) -> None:
    """Run a hook of an agent, within 5 seconds; it cannot break the call."""
    if hook is None:
        return
    try:
        async with asyncio.timeout(_HOOK_S):
            await hook(context)
    except (Exception, asyncio.CancelledError) as error:  # the application's code
        if cancelled_here(error):
            raise
        log.warning("%s of %s failed: %s", name, context.agent, type(error).__name__)


def _said_on_return(agent: VoiceAgent, history: Sequence[ModelMessage]) -> str | None:
    """What the agent of a resumed call is asked to say first."""
    if not without_requests(history):  # nobody had said anything yet
        return agent.greeting
    last = history[-1]
    unanswered = isinstance(last, ModelRequest) or last.state == "interrupted"
    return GO_ON if unanswered else None


def _note_transfer(live: CallState, old: ProviderSession, context: CallContext, gap_ms: float) -> None:
    live.recorder.transferred(context.agent, gap_ms)
    if live.host is not None:
        live.host.transferred(context.agent)
    live.hooks.tell(
        context, "transfer", **{"from": old.setup.agent.name, "to": context.agent, "gap_ms": gap_ms}
    )
    live.dirty.set()


async def _tell_farewell(live: CallState, old: ProviderSession, new: ProviderSession, known: int) -> None:
    """Tell the next agent what was said and heard while its connection was being opened."""
    heard = live.history_so_far(as_heard(old.new_messages(), old.utterances.values())[known:])
    said = [
        ("You" if old.setup.agent.name == new.setup.agent.name else "Your colleague", part)
        if part.speaker == "assistant"
        else ("The caller", part)
        for message in heard
        for part in message.parts
        if isinstance(part, SpeechPart) and part.transcript
    ]
    if not said:
        return
    lines = [f"{who} said: {quoted(part.transcript or '')}" for who, part in said]
    try:
        await new.session.send(framed("meanwhile", lines), respond=False)
    except (RealtimeError, NotOpen) as error:  # the provider session's own task handles a broken connection
        log.warning("what was said meanwhile could not be told: %s", type(error).__name__)


async def _until(done: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(_LOOK_S)


# -- the speech recogniser's confidence
#
# OpenAI's is requested in the session's settings and read from its events, because PydanticAI drops the log
# probabilities of transcripts. The model here overrides the two methods that PydanticAI's own derived models
# override; `tests/session/test_asr_confidence.py` fails when an upgrade moves them.

LOGPROBS: Final = "item.input_audio_transcription.logprobs"
_COMPLETED: Final = "conversation.item.input_audio_transcription.completed"


def confidence_of(logprobs: Sequence[float]) -> float | None:
    """A turn's confidence: that of its least certain token, since one wrong letter spoils a name."""
    return min(1.0, math.exp(min(logprobs))) if logprobs else None


def with_confidence(model: RealtimeModel, confidences: Confidences) -> RealtimeModel:
    """`model`, reporting transcripts' confidence to `confidences`; unchanged if its provider reports none."""
    if type(model) is not OpenAIRealtimeModel:
        return model
    sure = _SureModel.__new__(_SureModel)
    sure.__dict__.update(model.__dict__)
    sure.confidences = confidences
    return sure


class _SureModel(OpenAIRealtimeModel):
    confidences: Confidences

    def _session_config(self, *args: Any, **named: Any) -> dict[str, Any]:
        config = super()._session_config(*args, **named)
        if "transcription" in config["audio"]["input"]:
            config["include"] = [*config.get("include", []), LOGPROBS]
        return config

    def _connection_class(self, model_settings: Any) -> type[OpenAIRealtimeConnection]:
        base: Any = super()._connection_class(model_settings)
        told = self.confidences

        def _map_event(connection: Any, data: dict[str, Any]) -> RealtimeCodecEvent | None:
            if data.get("type") == _COMPLETED and data.get("logprobs"):
                sure = confidence_of([token["logprob"] for token in data["logprobs"]])
                if sure is not None:
                    told.heard(str(data.get("transcript", "")), sure)
            mapped: RealtimeCodecEvent | None = base._map_event(connection, data)  # noqa: SLF001 - overridden here
            return mapped

        return type("SureConnection", (base,), {"_map_event": _map_event})


# -- Gemini
#
# PydanticAI reconnects to Gemini after a network failure, but not after a handshake that is refused, as
# providers under load do for seconds. The connection here reports such a refusal as a network failure. A
# message that Google's client cannot read, which would end the session, becomes an error event, as on OpenAI.
# `tests/session/test_reconnect.py` fails when an upgrade moves what it overrides.

_FOR_NOW: Final = frozenset({408, 425, 429})
"""HTTP errors below 500 that a later attempt may not get."""
_UNREADABLE: Final = 5
"""How many messages in a row may be unreadable before the session reconnects."""


def steadied(model: RealtimeModel) -> RealtimeModel:
    """`model`, whose calls on Gemini survive a handshake refused for now and unreadable messages; other
    providers' do by themselves.
    """
    if not model.system.startswith("google"):
        return model
    connect = model.connect

    @contextlib.asynccontextmanager
    async def connected(**named: Any) -> AsyncIterator[Any]:
        connection: Any
        async with connect(**named) as connection:
            _legible(connection._session)  # noqa: SLF001 - see above
            connection._map_message = _mapped(connection._map_message)  # noqa: SLF001
            if connection._dial is not None:  # noqa: SLF001
                connection._dial = _retried(connection._dial)  # noqa: SLF001
            yield connection

    steady: Any = copy.copy(model)
    steady.connect = connected
    return steady  # type: ignore[no-any-return]


def _retried(dial: Callable[..., Any]) -> Callable[..., Any]:
    from websockets.exceptions import WebSocketException

    async def dialled(*given: Any, **named: Any) -> Any:
        try:
            return _legible(await dial(*given, **named))
        except WebSocketException as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status is not None and status < 500 and status not in _FOR_NOW:
                raise
            raise ConnectionError("the provider refused a connection for now") from error

    return dialled


def _legible(session: Any) -> Any:
    """Have a session of Google's client yield the error of a message it cannot read, and go on reading."""
    receive = session.receive

    async def legible() -> AsyncIterator[Any]:
        unread = 0
        while True:
            try:
                async for message in receive():
                    unread = 0
                    yield message
            except (TypeError, ValueError) as error:
                if (unread := unread + 1) > _UNREADABLE:
                    raise ConnectionError("the provider's messages cannot be read") from error
                log.warning("a message of the provider could not be read: %s", type(error).__name__)
                yield error
            else:
                return

    session.receive = legible
    return session


def _mapped(map_message: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def mapped(message: Any) -> Any:
        if isinstance(message, Exception):
            kind = type(message).__name__
            return [RealtimeSessionErrorEvent(message="unreadable message", type=kind, recoverable=True)]
        return map_message(message)

    return mapped
