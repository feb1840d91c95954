"""One call: a caller, agents that remember them, and a provider's voice. Valid on every kind of hang-up.

    async with VoiceSession(service, user="ana", agents=[robin], model=model) as session:
        ...  # await session.send_audio(frame); async for frame in session.audio(): play(frame)

It decides about time: when a reply may begin, what was heard, when something is written down. What is
remembered is decided below.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, SystemPromptPart
from pydantic_ai.realtime import RealtimeError, RealtimeEvent, RealtimeModel

from echoic.errors import EchoicError, InvalidInput, NotOpen
from echoic.memory.conversation import OpenConversation
from echoic.memory.service import MemoryService
from echoic.session.agents import VoiceAgent
from echoic.session.calls import Call, CallLog, read_call, read_exchanges
from echoic.session.checkpoints import RecordSessionStore, SessionStore, store_of
from echoic.session.confidence import Confidences, with_confidence
from echoic.session.going_on import taken_up
from echoic.session.hooks import Hooks, Listener
from echoic.session.keeper import Keeper
from echoic.session.leg import Leg
from echoic.session.limits import CallLimits
from echoic.session.lines import Lines
from echoic.session.live import Live, SessionSettings, State
from echoic.session.playback import Flush, Frame, Playback
from echoic.session.profile import ProviderProfile
from echoic.session.pump import Pump
from echoic.session.recalling import CallRecall
from echoic.session.transfer import hand_over
from echoic.types import Checkpoint, checked_name, checked_text

log = logging.getLogger(__name__)


class VoiceSession:
    """Use with `async with`. For one event loop.

    Args:
        service: the memory, open.
        user: who calls; comes from a login or a number, never from what is said.
        agents: who may serve; the first one begins.
        model: PydanticAI's realtime model, such as `OpenAIRealtimeModel("gpt-realtime")`.
        deployment: where.
        start: the agent that begins, by name; the first where empty.
        session_id: of the call; made where empty.
        conversation_id: of the conversation it is kept in; the session's where empty.
        deps: the application's own, for tools and hooks.
        settings: how it behaves.
        listener: told what happens, beside the call.
        sessions: where checkpoints are kept; with the memory where None.
        limits: shared with other sessions.

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
    ) -> None:
        self.agents = {agent.name: agent for agent in agents}
        if not agents or len(self.agents) < len(agents):
            raise InvalidInput("a session needs agents, each with a name of its own")
        self._start = start or agents[0].name
        self.agent(self._start)
        self.session_id = checked_name(session_id or uuid4().hex, "session")
        self.conversation_id = checked_name(conversation_id or self.session_id, "conversation id")
        self.memory = service.user(user, deployment)
        self.settings = settings or SessionSettings()
        self.deps = deps
        self.state: State = "created"
        self.reason: str | None = None
        """Why it ended: "ended", "idle", "too long", "lost", "suspended", "taken over", "forgotten"."""
        self._service = service
        self._model = model
        self._listener = listener
        self._sessions = sessions or RecordSessionStore(store_of(self.memory))
        self._limits = limits
        self._resumed: Checkpoint | None = None
        self._live: Live | None = None
        self._pump: Pump | None = None
        self._keeper: Keeper | None = None
        self._lines: Lines | None = None
        self._closing: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._planned_agent: str | None = None
        self._planned_end: str | None = None
        self._moving: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self._turn_to_send = asyncio.Lock()

    @classmethod
    async def resume(
        cls,
        service: MemoryService,
        session_id: str,
        *,
        user: str,
        deployment: str = "default",
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
            options: as for a new call: `agents`, `model` and so on.

        Raises:
            InvalidInput: there is no such call to go on with: it ended, or is another user's.
            StoreUnavailable: could not look.
        """
        session = cls(service, user=user, deployment=deployment, session_id=session_id, **options)
        checkpoint = await session._sessions.load(session.memory.scope, session_id)
        if checkpoint is None:
            raise InvalidInput(f"there is no call {session_id!r} of this user to go on with; begin a new one")
        session.agent(checkpoint.agent)
        session._start, session.conversation_id = checkpoint.agent, checkpoint.conversation
        session._resumed = checkpoint
        return session

    # -- lifecycle

    async def __aenter__(self) -> Self:
        """Connect, with the memory ready before the first word.

        Raises:
            NotAllowed: there are as many calls as there may be.
            RealtimeError: the provider could not be reached, or refused.
            StoreUnavailable: could not look, or could not keep that the call began.
        """
        if self.state != "created":
            raise NotOpen("a session is entered once; make a new one, or resume it")
        if self._limits is not None:
            self._limits.enter(self.memory.scope)
        self._become("connecting")
        try:
            await self._open()
        except BaseException:
            await self._let_go()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, reason: str = "ended", *, keep_checkpoint: bool = False) -> None:
        """End the call; what was heard is kept. May be called twice, and may be cancelled.

        Args:
            reason: for hooks and the record.
            keep_checkpoint: the call is to be taken up again, here or elsewhere.
        """
        if self._live is None:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, keep_checkpoint))
        await asyncio.shield(self._closing)

    async def suspend(self) -> None:
        """End it here, to be taken up again by `resume`: as when a server is about to restart."""
        await self.close("suspended", keep_checkpoint=True)

    async def wait_closed(self) -> str:
        """Wait until the call is over; why it ended."""
        await self._closed.wait()
        return self.reason or "ended"

    # -- audio

    @property
    def profile(self) -> ProviderProfile:
        """Of the model that listens now: its rates above all."""
        return self._at().leg.setup.profile

    async def send_audio(self, pcm: bytes) -> None:
        """Hand on what the caller says: PCM16, mono, at `profile.input_hz`. Frames arrive in the order given.

        What comes while the line is being dialled anew is lost, as it is on a telephone.

        Raises:
            NotOpen: the call is over.
        """
        live = self._at()
        async with self._turn_to_send:
            leg = live.leg
            with contextlib.suppress(RealtimeError, NotOpen):  # the leg's task tells what became of the line
                await leg.session.send_audio(pcm)

    async def media(self) -> AsyncIterator[Frame | Flush]:
        """What to play, in order, at `profile.output_hz`, across transfers, until the call is over.

        `Flush` means that the caller interrupted: drop what was not played, then say how much was.
        """
        live = self._at()
        async for item in live.playback.media():
            if isinstance(item, Frame) and live.log.exchanges:
                live.log.stamp("first_played")
            yield item

    async def audio(self) -> AsyncIterator[bytes]:
        """The same for a player that takes a frame when it has played the one before. One consumer only."""
        async for item in self.media():
            if isinstance(item, Frame):
                yield item.pcm

    def played(self, total_bytes: int, *, flushed: bool = False) -> None:
        """How much a device has played of all it was given, in bytes; see `Playback.played`."""
        self._at().playback.played(total_bytes, flushed=flushed)

    def barge_in(self) -> None:
        """The caller interrupts, as the channel noticed by itself. Nothing happens while nobody speaks."""
        live = self._at()
        assert self._pump is not None
        self._pump.barge_in(live.leg)

    # -- words

    async def send_text(self, text: str) -> None:
        """What the caller typed instead of saying it."""
        live = self._at()
        assert self._pump is not None
        said = checked_text(text, "text")
        self._pump.barge_in(live.leg)
        self._pump.typed(live.leg, said)
        await live.leg.session.send(said)

    async def inject(self, text: str) -> None:
        """Tell the model something without having it reply; see `CallContext.inject_system_message`."""
        leg = self._at().leg
        if leg.speaking and not leg.setup.profile.takes_notes:
            leg.notes.append(text)
        else:
            await leg.session.send(SystemPromptPart(text), respond=False)

    async def prompt(self, request: str) -> None:
        """Have the agent say something now."""
        live = self._at()
        assert self._pump is not None
        self._pump.prompted()
        await live.leg.session.send(SystemPromptPart(request), respond=True)

    async def transfer(self, agent: str) -> None:
        """Hand the call to another agent now; see `CallContext.transfer` for tools.

        Raises:
            InvalidInput: the session has no such agent.
            RealtimeError: the next agent's line could not be opened; the one before goes on.
        """
        self.agent(agent)
        self._at()
        if self._moving is not None:
            await asyncio.shield(self._moving)
        self._moving = asyncio.create_task(self._transfer(agent))
        await asyncio.shield(self._moving)

    def plan_transfer(self, agent: str) -> None:
        """The same, as soon as the tool that asks has answered."""
        self.agent(agent)
        self._planned_agent = agent

    def plan_end(self, reason: str) -> None:
        """End the call once what is being said has been played."""
        self._planned_end = reason

    def agent(self, name: str) -> VoiceAgent:
        """One of the session's agents.

        Raises:
            InvalidInput: there is none of that name.
        """
        if name not in self.agents:
            raise InvalidInput(f"this session has no agent {name!r:.80}: it has {', '.join(self.agents)}")
        return self.agents[name]

    @property
    def current_agent(self) -> str:
        """Who serves now."""
        return self._at().leg.setup.agent.name

    @property
    def live(self) -> Live:
        """The parts of the call, for those who measure or extend it. No promise is made about its form."""
        return self._at()

    # -- inside

    def _at(self) -> Live:
        if self._live is None or self._closed.is_set():
            raise NotOpen("the call is over" if self._closed.is_set() else "enter the session first")
        return self._live

    def _become(self, state: State) -> None:
        self.state = state
        if self._live is not None and self._live.legs:
            self._live.hooks.tell(self._live.leg.setup.context, "state", state=state)

    async def _open(self) -> None:
        agent = self.agent(self._start)
        confidences = Confidences()
        lines = self._lines = Lines(
            self, self._service, with_confidence(self._model, confidences), confidences
        )
        # both partitions, the encoder and the dates' parser are warm before anybody speaks
        _, conversation = await asyncio.gather(
            self.memory.warm(), self.memory.conversation(self.conversation_id, agent=agent.name)
        )
        context = await lines.context(agent)
        live = self._live = await self._made(conversation, confidences, agent)
        self._pump = Pump(live, on_state=self._become, on_pause=self._do_what_was_planned)
        history: list[ModelMessage] = []
        if self._resumed is not None:
            history = await taken_up(self._resumed, live, agent, context, self._model)
        leg = await lines.open(agent, context, history, live.playback, self._take)
        live.legs.append(leg)
        self._keeper = Keeper(
            live,
            exchange_of=self._pump.exchange_of,
            on_idle=self._end_soon,
            on_lost=self._end_soon,
        )
        self._keeper.start()
        self._watch = asyncio.create_task(self._watch_lines())
        self._become("active")
        live.hooks.tell(context, "session_start", agent=agent.name, resumed=self._resumed is not None)
        await lines.enter(leg, history=history, resumed=self._resumed is not None)
        live.dirty.set()

    async def _made(
        self, conversation: OpenConversation, confidences: Confidences, agent: VoiceAgent
    ) -> Live:
        store, scope = store_of(self.memory), self.memory.scope
        call, first = await self._call(agent), 0
        if self._resumed is not None:  # what was written down of it so far stays
            before = await read_exchanges(store, scope, self.conversation_id, self.session_id)
            first = max((exchange.number for exchange in before), default=-1) + 1
        return Live(
            session_id=self.session_id,
            settings=self.settings,
            memory=self.memory,
            conversation=conversation,
            store=store,
            sessions=self._sessions,
            playback=Playback(self.settings.frame_ms),
            log=CallLog(call, enabled=self.settings.record, first=first),
            hooks=Hooks(self._listener),
            recall=CallRecall(
                self.memory,
                self.conversation_id,
                self._given,
                deadline_ms=self.settings.recall_deadline_ms,
            ),
            confidences=confidences,
        )

    async def _call(self, agent: VoiceAgent) -> Call:
        known = await read_call(store_of(self.memory), self.memory.scope, self.session_id)
        if self._resumed is not None and known is not None:
            return known
        model = agent.model or self._model
        return Call(
            id=self.session_id,
            conversation=self.conversation_id,
            provider=model.system,
            model=model.model_name,
            started_at=datetime.now(UTC),
            agents=[agent.name],
        )

    def _given(self) -> str:
        """The block, as the model has it."""
        if self._live is None or not self._live.legs:
            return ""
        parts = self._live.leg.setup.memory.get_instructions()
        return "\n".join(part().content for part in parts)

    def _take(self, leg: Leg, event: RealtimeEvent) -> None:
        if self._pump is not None:
            self._pump.take(leg, event)

    def _do_what_was_planned(self) -> None:
        if self._planned_agent is not None and self._live is not None:
            agent, self._planned_agent = self._planned_agent, None
            self._live.spawn(self._quietly(lambda: self.transfer(agent)))
        if self._planned_end is not None and self._live is not None and not self._live.leg.speaking:
            reason, self._planned_end = self._planned_end, None
            self._live.spawn(self._end_when_played(reason))

    async def _end_when_played(self, reason: str) -> None:
        live = self._at()
        while not live.playback.idle:
            live.playback.moved.clear()
            await live.playback.moved.wait()
        self._end_soon(reason)

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (EchoicError, RealtimeError) as error:
            log.warning("on a call: %s", type(error).__name__)
            if self._live is not None:
                self._live.hooks.tell(self._live.leg.setup.context, "error", kind=type(error).__name__)

    async def _transfer(self, agent: str) -> None:
        live = self._at()
        assert self._lines is not None
        if agent == live.leg.setup.agent.name:
            return
        self._become("transferring")
        try:
            await hand_over(live, self._lines, self.agent(agent), self._turn_to_send, self._take)
        finally:
            if self.state == "transferring":
                self._become("active")

    def _end_soon(self, reason: str, *, keep_checkpoint: bool = False) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, keep_checkpoint))

    async def _watch_lines(self) -> None:
        """When the line is lost for good the call ends here; its checkpoint stays, so that it can go on."""
        live = self._at()
        while True:
            leg = live.leg
            await leg.ended.wait()
            if leg is live.leg and self._closing is None:
                kind = type(leg.error).__name__ if leg.error is not None else "closed by the provider"
                live.hooks.tell(leg.setup.context, "error", kind=kind)
                self._end_soon("lost", keep_checkpoint=True)
                return
            await asyncio.sleep(0)

    async def _close(self, reason: str, keep_checkpoint: bool) -> None:
        live, keeper = self._live, self._keeper
        assert live is not None
        self.reason = reason
        if self._pump is not None:
            self._pump.close()
        if live.legs and self._lines is not None and reason not in {"lost", "suspended"}:
            await self._lines.leave(live.leg)
        for task in [self._watch, self._moving, *live.tasks]:
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        for leg in live.legs:
            await leg.stop()
        live.playback.close()
        live.log.call.ended_at, live.log.call.reason = datetime.now(UTC), reason
        live.log.changed()
        kept = await keeper.finish(keep_checkpoint=keep_checkpoint) if keeper is not None else False
        if kept and not keep_checkpoint and not live.lost:
            with contextlib.suppress(EchoicError):  # it is distilled by the next process then
                await live.conversation.complete()
        if live.legs:
            live.hooks.tell(live.leg.setup.context, "session_end", reason=reason, kept=kept)
        self.state = "closed"
        await self._let_go()
        self._closed.set()

    async def _let_go(self) -> None:
        if self._live is not None:
            await self._live.recall.aclose()
            for leg in self._live.legs:
                await leg.stop()
            await self._live.hooks.aclose()
        if self._limits is not None and self.state != "created":
            limits, self._limits = self._limits, None
            limits.leave(self.memory.scope)
        self.state = "closed"


__all__ = ["VoiceSession"]
