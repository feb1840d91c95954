"""A voice call: a caller, agents that remember them, and a provider's realtime model. Every kind of hang-up
leaves it valid.

    async with VoiceSession(service, user="ana", agents=[robin], model=model) as session:
        ...  # await session.send_audio(frame); async for frame in session.audio(): play(frame)

It decides about time: when a reply may begin, what was heard, when a turn is stored. `memory` decides what is
remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from pydantic_ai.messages import SystemPromptPart
from pydantic_ai.realtime import RealtimeError, RealtimeModel

from echoic.errors import InvalidInput, NotAllowed, NotOpen, brief
from echoic.memory.assurance import Level
from echoic.memory.checkpoints import Checkpoint, SessionStore
from echoic.memory.service import MemoryService
from echoic.session.agents import VoiceAgent
from echoic.session.call_state import CallState, SessionSettings, State
from echoic.session.history import request as marked
from echoic.session.hooks import Captions, Listener
from echoic.session.lifecycle import CallLifecycle
from echoic.session.playback import SAMPLE_BYTES, Flush, Frame
from echoic.session.provider import ProviderProfile
from echoic.session.provider_connections import GO_ON
from echoic.session.recorder import CallRecorder
from echoic.session.text_call import TextCall
from echoic.session.webrtc_control import ProviderCall, call_of
from echoic.types import Scope, checked_name, checked_text


class CallLimits:
    """Shared by the sessions of a server.

    Args:
        per_user: calls of one user at once.
        total: calls at once.

    Raises:
        InvalidInput: a limit below 1.
    """

    def __init__(self, *, per_user: int = 2, total: int = 100) -> None:
        if per_user < 1 or total < 1:
            raise InvalidInput(
                f"limits must be at least 1, not per_user={brief(per_user)}, total={brief(total)}"
            )
        self.per_user = per_user
        self.total = total
        self._held: Counter[Scope] = Counter()

    @property
    def calls(self) -> int:
        """How many are going on."""
        return self._held.total()

    def enter(self, scope: Scope) -> None:
        """Count a call that begins.

        Raises:
            NotAllowed: there are as many as there may be.
        """
        self.check_user(scope)
        if self._held.total() >= self.total:
            raise NotAllowed(
                f"there are {self.total} calls already, which is the limit; try again in a moment"
            )
        self._held[scope] += 1

    def check_user(self, scope: Scope) -> None:
        """See whether one more call of a user may begin.

        Raises:
            NotAllowed: they have as many as they may.
        """
        if self._held[scope] >= self.per_user:
            raise NotAllowed(
                f"this user has {self.per_user} calls already, which is the limit; end one first"
            )

    def leave(self, scope: Scope) -> None:
        """Count it no longer."""
        self._held[scope] -= 1
        if self._held[scope] <= 0:
            del self._held[scope]


def freeze_heap() -> int:
    """Run the garbage collector once, then exclude every live object from later collections. Returns how many
    objects.

    Call it when everything is loaded and memory is open, before the first call: it takes as long as the pause
    it prevents. Objects are still freed by reference counting; only objects alive now that become garbage in
    a cycle stay until the process ends. `gc.unfreeze()` undoes it. It affects the whole process, so the
    library never calls it by itself.
    """
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()


_LOOK_S: Final = 0.02


class VoiceSession:
    """A voice call, used with `async with`. For one event loop.

    Args:
        service: the open memory service.
        user: the caller's id, from a login or a number, never from what is said.
        agents: the agents that may serve; the first one begins.
        model: PydanticAI's realtime model, such as `OpenAIRealtimeModel("gpt-realtime")`.
        deployment: the deployment the user belongs to.
        start: name of the agent that begins; the first one if empty.
        session_id: the id of the call; generated if empty.
        conversation_id: the id of its conversation; the session's id if empty.
        deps: your application's dependencies, for tools and hooks.
        settings: settings of the session.
        listener: receives events; it runs beside the call and cannot delay it.
        sessions: where checkpoints are stored; in the user's memory if None.
        limits: limits shared with other sessions.
        provider_call: the provider's id of a call whose audio goes between it and the caller, as by WebRTC:
            the session steers it from beside. Empty: audio goes through `send_audio` and `media`.
        captions: receives what is being said, while it is said.
        host: the call that the session is the voice of, if it is part of one: it keeps what is said.
        level: how sure the caller's identity is, which limits what they are told (docs/assurance.md).

    Raises:
        InvalidInput: no agents, two of one name, or a start that is none of them.
    """

    def __init__(
        self,
        service: MemoryService,
        *,
        user: str,
        agents: Sequence[VoiceAgent],
        model: RealtimeModel,
        deployment: str = "default",
        start: str = "",
        session_id: str = "",
        conversation_id: str = "",
        deps: Any = None,
        settings: SessionSettings | None = None,
        listener: Listener | None = None,
        sessions: SessionStore | None = None,
        limits: CallLimits | None = None,
        provider_call: str = "",
        captions: Captions | None = None,
        host: TextCall | None = None,
        level: Level = "account",
    ) -> None:
        self.agents: Mapping[str, VoiceAgent] = {agent.name: agent for agent in agents}
        if not agents or len(self.agents) < len(agents):
            raise InvalidInput("`agents` must hold at least one agent, and their names must differ")
        self._start = start or agents[0].name
        self.agent(self._start)
        self.session_id = checked_name(session_id or uuid4().hex, "session")
        self.conversation_id = checked_name(conversation_id or self.session_id, "conversation id")
        self.memory = host.memory if host is not None else service.user(user, deployment, level=level)
        self.settings = settings or SessionSettings()
        self.deps = deps
        self.host = host
        self._service = service
        self._model = model
        self._listener = listener
        if sessions is not None and not self.settings.checkpoints:
            raise InvalidInput(
                "`sessions` is where checkpoints are stored, and the settings turn checkpoints off"
            )
        self.recorder = self._new_recorder(sessions) if host is None else host.recorder
        if host is not None:
            self.recorder.voiced_by(*self._named_model())
        self._call = ProviderCall(id=provider_call) if provider_call else None
        self._captions = captions
        self._limits = limits
        self._resumed: Checkpoint | None = None
        self._running: CallLifecycle | None = None
        self._closed = asyncio.Event()
        self._broken = False
        """Whether the caller's end of the line broke while the agent spoke."""

    @classmethod
    async def resume(
        cls,
        service: MemoryService,
        session_id: str,
        *,
        user: str,
        deployment: str = "default",
        keep_media: bool = False,
        **options: Any,
    ) -> VoiceSession:
        """A call that another process was in the middle of, to be gone on with: enter it like a new one.

        The same agent goes on in the same conversation, with any model of any provider. What was said and not
        yet kept is kept first. A tool call without a result is made again where its agent says that this does
        no harm; of any other the model is told that it did not finish.

        Args:
            service: the memory, open.
            session_id: of the call.
            user: whose it is, as for a new call; another user's is not found.
            deployment: where.
            keep_media: the caller's audio still goes to the provider's call it went to: be beside that.
            options: as for a new call: `agents`, `model` and so on.

        Raises:
            InvalidInput: there is no such call to go on with: it ended, or is another user's; or it has no
                media of its own to keep.
            StoreUnavailable: could not look.
        """
        session = cls(service, user=user, deployment=deployment, session_id=session_id, **options)
        checkpoint = await session.recorder.find()
        if checkpoint is None:
            raise InvalidInput(f"this user has no call {brief(session_id)} to resume; start a new one")
        if keep_media:
            known = call_of(checkpoint)
            if known is None:
                raise InvalidInput(
                    f"the audio of {brief(session_id)} went through the session; resume without keep_media"
                )
            session._call = ProviderCall(id=known, knows=True)
        session.agent(checkpoint.agent)
        session._start, session.conversation_id = checkpoint.agent, checkpoint.conversation
        session._resumed = checkpoint
        return session

    # -- lifecycle

    async def __aenter__(self) -> Self:
        """Connect. The memory is loaded before the first word.

        Raises:
            NotAllowed: there are as many calls as there may be.
            RealtimeError: the provider could not be reached, or refused.
            StoreUnavailable: could not look, or could not keep that the call began.
        """
        if self._running is not None:
            raise NotOpen("this session was entered before; create a new one, or resume the call")
        if self._limits is not None:
            self._limits.enter(self.memory.scope)
        self._running = CallLifecycle(
            self,
            self._service,
            self.agent(self._start),
            self._model,
            listener=self._listener,
            resumed=self._resumed,
            call=self._call,
            captions=self._captions,
            on_closed=self._leave,
        )
        try:
            await self._running.open()
        except BaseException:
            await self._running.give_up()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, reason: str = "ended", *, keep_checkpoint: bool = False) -> None:
        """End the call. What was heard is stored. May be called twice, and may be cancelled.

        Args:
            reason: the reason given to hooks and in the record.
            keep_checkpoint: keep the checkpoint, so that the call can be resumed here or elsewhere.
        """
        if self._running is not None and self._running.began:
            await self._running.close(reason, keep_checkpoint=keep_checkpoint)

    async def suspend(self) -> None:
        """End it here, to be taken up again by `resume`: as when a server is about to restart."""
        await self.close("suspended", keep_checkpoint=True)

    async def wait_closed(self) -> str:
        """Wait until the call is over; why it ended."""
        await self._closed.wait()
        return self.reason or "ended"

    @property
    def state(self) -> State:
        """The state of the call."""
        return "created" if self._running is None else self._running.state

    @property
    def reason(self) -> str | None:
        """Why it ended: "ended", "idle", "too long", "left", "lost", "suspended", "taken over", "forgotten",
        "another caller".

        "left": the caller's end of the line was gone, and may come back. "another caller": the host serves
        somebody else from now on.
        """
        return None if self._running is None else self._running.reason

    # -- audio

    @property
    def profile(self) -> ProviderProfile:
        """The profile of the model that listens now: its rates above all."""
        return self._at().live.provider.setup.profile

    async def send_audio(self, pcm: bytes) -> None:
        """Send the caller's audio: PCM16, mono, at `profile.input_hz`, in order.

        Audio sent during a reconnect is lost, as on a telephone.

        Raises:
            NotOpen: the call is over.
            InvalidInput: the audio of this call goes directly to the provider.
        """
        call = self._at()
        if self._call is not None:
            raise InvalidInput("the audio of this call goes directly between provider and caller")
        async with call.live.sending:
            provider = call.live.provider
            with contextlib.suppress(RealtimeError, NotOpen):  # its own task tells why
                await provider.session.send_audio(pcm)

    async def media(self, *, ahead_ms: int | None = None) -> AsyncIterator[Frame | Flush]:
        """The audio to play, in order, at `profile.output_hz`, across transfers, until the call is over.

        `Flush` means that the caller interrupted: drop what was not played, then report how much was:
        `played(…, flushed=True)`.

        Args:
            ahead_ms: how many milliseconds may be handed out without being reported as played, for a device
                that reports; a device that reports nothing for a while is given more.
        """
        live = self._at().live
        most = None if ahead_ms is None else SAMPLE_BYTES * self.profile.output_hz * ahead_ms // 1000
        async for item in live.playback.media(most):
            if isinstance(item, Frame) and live.log.exchanges:
                live.log.stamp("first_played")
            yield item

    async def audio(self) -> AsyncIterator[bytes]:
        """Audio for a player that takes a frame when it has played the one before. One consumer only."""
        async for item in self.media():
            if isinstance(item, Frame):
                yield item.pcm

    def played(self, total_bytes: int, *, flushed: bool = False) -> None:
        """How much a device has played of all it was given, in bytes; see `Playback.played`."""
        self._at().live.playback.played(total_bytes, flushed=flushed)

    def hold(self) -> None:
        """The caller's end of the line is gone for a moment: what nobody hears is cut off."""
        if self._call is None and self._running is not None and not self._closed.is_set():
            live = self._running.live
            self._broken = self._broken or not live.playback.idle or live.provider.speaking
            self.barge_in()

    async def take_up(self, played_bytes: int) -> None:
        """Resume playback on a device that has played this many bytes of the call's audio.

        Raises:
            NotOpen: the call is over.
            RealtimeError: the model could not be asked.
        """
        if self._call is None:
            self.played(played_bytes)
            broken, self._broken = self._broken, False
            if broken:
                await self.prompt(GO_ON)

    async def wait_spoken(self, within_s: float) -> None:
        """Wait until the agent has said what it is to say, and all of it was played.

        Args:
            within_s: how long it may take to say it.
        """
        call = self._at()
        until_s = time.monotonic() + within_s
        while not call.handler.at_rest(call.live.provider) and time.monotonic() < until_s:  # noqa: ASYNC110 - see `ProviderConnections.transfer`
            await asyncio.sleep(_LOOK_S)
        await call.live.playback.wait_idle()

    async def caught_up(self, within_s: float) -> None:
        """Wait until everything said so far is stored, or until the timeout."""
        await self._at().caught_up(within_s)

    def barge_in(self) -> None:
        """The caller interrupts, as the channel noticed by itself. Nothing happens while nobody speaks."""
        call = self._at()
        call.handler.barge_in(call.live.provider)

    # -- words

    async def send_text(self, text: str) -> None:
        """Send what the caller typed instead of saying it."""
        call, said = self._at(), checked_text(text, "text")
        provider = call.live.provider
        call.handler.barge_in(provider)
        call.handler.typed(provider, said)
        await provider.session.send(said)

    async def inject(self, text: str) -> None:
        """Tell the model something without having it reply; see `CallContext.inject_system_message`."""
        provider = self._at().live.provider
        if provider.speaking and not provider.setup.profile.takes_notes:
            provider.notes.append(SystemPromptPart(text))
        else:
            await provider.session.send(SystemPromptPart(text), respond=False)

    async def prompt(self, request: str) -> None:
        """Have the agent say something now."""
        call = self._at()
        call.handler.prompted()
        await call.live.provider.session.send(marked(request), respond=True)

    async def transfer(self, agent: str) -> None:
        """Hand the call to another agent now; see `CallContext.transfer` for tools.

        Raises:
            InvalidInput: the session has no such agent.
            RealtimeError: the next agent's line could not be opened; the one before goes on.
        """
        await self._at().transfer_to(agent)

    def plan_transfer(self, agent: str) -> None:
        """Transfer the call as soon as the tool that asks for it has answered."""
        chosen = self.agent(agent)
        if self._running is not None:
            self._running.plan(agent=chosen.name)

    def plan_end(self, reason: str) -> None:
        """End the call once what is being said has been played."""
        if self._running is not None:
            self._running.plan(reason=reason)

    def agent(self, name: str) -> VoiceAgent:
        """One of the session's agents.

        Raises:
            InvalidInput: there is none of that name.
        """
        if name not in self.agents:
            raise InvalidInput(f"this session has no agent {brief(name)}: it has {', '.join(self.agents)}")
        return self.agents[name]

    @property
    def current_agent(self) -> str:
        """The agent that serves now."""
        return self._at().live.provider.setup.agent.name

    @property
    def live(self) -> CallState:
        """The shared state of the call, for measurements and extensions. It may change in any release."""
        return self._at().live

    # -- inside

    def _new_recorder(self, sessions: SessionStore | None) -> CallRecorder:
        settings = self.settings
        return CallRecorder(
            self.memory,
            self.session_id,
            self._start,
            conversation=self.conversation_id,
            model=self._named_model(),
            words=settings.history,
            learns=settings.memory,
            record=settings.record,
            checkpoints=settings.checkpoints,
            sessions=sessions,
            every_s=settings.checkpoint_every_s,
            summarizer=self._service.summarizer,
            history_tokens=settings.history_tokens,
        )

    def _named_model(self) -> tuple[str, str]:
        """Provider and name of the model that speaks first."""
        model = self.agents[self._start].model or self._model
        return model.system, model.model_name

    def _at(self) -> CallLifecycle:
        if self._running is None or not self._running.began or self._closed.is_set():
            raise NotOpen(
                "the call is over"
                if self._closed.is_set()
                else "the call has not started; use `async with session`"
            )
        return self._running

    def _leave(self) -> None:
        if self._limits is not None:
            limits, self._limits = self._limits, None
            limits.leave(self.memory.scope)
        self._closed.set()
