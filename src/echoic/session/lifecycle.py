"""Opens, transfers and ends one session: the order in which its parts are put together and taken apart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage
from pydantic_ai.realtime import RealtimeEvent, RealtimeModel
from pydantic_ai.usage import RunUsage

from echoic.errors import NotOpen
from echoic.memory.checkpoints import Checkpoint, PendingTool, kept_of_earlier_calls
from echoic.session.agents import FAILED, LATE, CallContext, VoiceAgent
from echoic.session.call_state import CallState, Confidences, Session, State
from echoic.session.event_handler import EventHandler
from echoic.session.history import read, settled, with_summary, without_requests
from echoic.session.hooks import CallHooks, Captions, Listener
from echoic.session.playback import Playback
from echoic.session.provider import ProviderSession
from echoic.session.provider_connections import ProviderConnections, with_confidence
from echoic.session.turn_collector import TurnCollector
from echoic.session.turn_recall import CallRecall
from echoic.session.webrtc_control import ProviderCall, RemotePlayback

if TYPE_CHECKING:
    from echoic.memory.service import MemoryService

log = logging.getLogger(__name__)


async def taken_up(
    checkpoint: Checkpoint, live: CallState, agent: VoiceAgent, context: CallContext, model: RealtimeModel
) -> list[ModelMessage]:
    """Restore the history of an interrupted call, store the turns that were not stored yet, and repeat tools
    that are safe to repeat.

    Raises:
        InvalidInput: the checkpoint cannot be read.
        WriteConflict: another process has the call.
        StoreUnavailable: the turns could not be stored.
    """
    history = read(checkpoint.messages)
    handle = live.provider_call.handle if live.provider_call else checkpoint.resumption
    await live.recorder.claim(replace(checkpoint, resumption=handle))
    # learn what the other process stored but did not learn from, so that the model knows it from the start
    if live.settings.memory and live.recorder.opened is not None:
        await live.recorder.opened.learn()
    again = [tool for tool in checkpoint.pending if tool.idempotent and tool.name in agent.toolbox]
    results = await asyncio.gather(*(_again(tool, agent, context, model) for tool in again))
    by_call: dict[str, Any] = {tool.call: result for tool, result in zip(again, results, strict=True)}
    return with_summary(settled(history, by_call, checkpoint.pending), checkpoint.summary)


async def _again(tool: PendingTool, agent: VoiceAgent, context: CallContext, model: RealtimeModel) -> Any:
    """The result of a tool call that another process began; on failure, what the model is told of it."""
    schema, limit = agent.toolbox[tool.name].function_schema, asyncio.timeout(agent.tool_timeout_s)
    run: RunContext[CallContext] = RunContext(deps=context, model=model, usage=RunUsage())
    run = replace(run, tool_call_id=tool.call, tool_name=tool.name)
    try:
        async with limit:
            return await schema.call(schema.validator.validate_python(dict(tool.arguments)), run)
    except Exception as error:  # noqa: BLE001 - the outermost frame of somebody else's code
        if limit.expired():
            return LATE
        log.warning("the tool %s failed when run again: %s", tool.name, type(error).__name__)
        return FAILED


GOES_ON: Final = frozenset({"left", "lost", "suspended"})
"""Reasons after which the call continues elsewhere, so agents are not told that it ended."""
STAYS_UP: Final = frozenset({"lost", "suspended", "taken over"})
"""Reasons after which another session may control the provider's WebRTC call."""


class CallLifecycle:
    """Opens one session, transfers it and ends it.

    `agent` begins; `call` is the provider's WebRTC call, if audio goes directly between provider and caller.
    """

    def __init__(
        self,
        session: Session,
        service: MemoryService,
        agent: VoiceAgent,
        model: RealtimeModel,
        *,
        listener: Listener | None,
        resumed: Checkpoint | None,
        call: ProviderCall | None,
        captions: Captions | None,
        on_closed: Callable[[], None],
    ) -> None:
        self._session = session
        self._agent, self._model = agent, model
        self._listener = listener
        self._resumed = resumed
        self._confidences = Confidences()
        self._lines = ProviderConnections(
            session,
            service,
            with_confidence(model, self._confidences),
            self._confidences,
            call,
            on_event=self._take,
        )
        self._captions = captions
        self._on_closed = on_closed
        self._live: CallState | None = None
        self._handler: EventHandler | None = None
        self._next_agent: str | None = None
        """The agent to transfer to at the next pause."""
        self._end_reason: str | None = None
        """Why the call is to end at the next pause."""
        self._collector: TurnCollector | None = None
        self._closing: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None
        self._entered = False
        self.state: State = "connecting"
        self.reason: str | None = None

    @property
    def began(self) -> bool:
        """Whether there is anything to end."""
        return self._live is not None

    @property
    def live(self) -> CallState:
        if self._live is None:
            raise NotOpen("the call has not started; use `async with session`")
        return self._live

    @property
    def handler(self) -> EventHandler:
        assert self._handler is not None
        return self._handler

    async def open(self) -> None:
        """Connect, and let the agent enter."""
        lines, agent, resumed = self._lines, self._agent, self._resumed
        session, host = self._session, self._session.host
        if host is None:
            every_s = session.settings.checkpoint_every_s
            await kept_of_earlier_calls(session.memory, session.session_id, every_s)
        context = await lines.context(agent)
        beside = lines.call is not None
        playback = RemotePlayback() if beside else Playback(self._session.settings.frame_ms)
        live = self._live = await self._prepared(playback)
        handler = self._handler = EventHandler(live, self.become, self.carry_out_plan, self._captions)
        history: list[ModelMessage] = [] if host is None else list(host.history)
        if resumed is not None:
            history = await taken_up(resumed, live, agent, context, self._model)
        provider = await lines.open(agent, context, without_requests(history), playback)
        live.providers.append(provider)
        if self._closing is not None:
            raise NotOpen("the call is over")
        self._collector = TurnCollector(live, handler.exchange_of, self.end_soon)
        self._collector.start()
        self._watch = asyncio.create_task(self._watch_line())
        self.become("active")
        live.hooks.tell(context, "session_start", agent=agent.name, resumed=resumed is not None)
        if host is None or history:  # otherwise the caller was greeted already
            await lines.enter(provider, history=history, resumed=resumed is not None or host is not None)
        live.dirty.set()
        self._entered = True
        self.plan()

    async def _prepared(self, playback: Playback) -> CallState:
        """Load memory, then make the parts of the call; raises `StoreUnavailable`."""
        session = self._session
        # a host opens its conversation with the first words that are stored
        await asyncio.gather(
            session.memory.warm() if session.settings.memory else asyncio.sleep(0),
            session.recorder.open() if session.host is None else asyncio.sleep(0),
        )
        deadline_ms = session.settings.recall_deadline_ms
        return CallState(
            settings=session.settings,
            recorder=session.recorder,
            playback=playback,
            hooks=CallHooks(self._listener),
            recall=CallRecall(session.memory, session.conversation_id, self._given, deadline_ms=deadline_ms),
            confidences=self._confidences,
            host=session.host,
            provider_call=self._lines.call,
        )

    async def caught_up(self, within_s: float) -> None:
        """Wait until everything said so far is stored, or until the timeout."""
        if self._collector is not None:
            await self._collector.caught_up(within_s)

    def become(self, state: State) -> None:
        self.state = state
        if self._live is not None and self._live.providers:
            self._live.hooks.tell(self._live.provider.setup.context, "state", state=state)

    def plan(self, *, agent: str | None = None, reason: str | None = None) -> None:
        """Transfer or end the call at the next pause, or now if nobody is speaking."""
        self._next_agent, self._end_reason = agent or self._next_agent, reason or self._end_reason
        if self._entered and self.state == "active" and self.handler.at_rest(self.live.provider):
            self.carry_out_plan()

    def carry_out_plan(self) -> None:
        """Carry out a planned transfer or hang-up, once a tool has returned or the model's turn is over."""
        live = self.live
        if (agent := self._next_agent) is not None:
            self._next_agent = None
            live.spawn(self._hand_over(agent))
        provider = live.provider
        if provider.speaking or provider.owes_reply or provider.pending_tools():
            return  # the caller is to hear the reply that ends the call
        if (reason := self._end_reason) is not None:
            self._end_reason = None
            live.spawn(self._end_when_played(reason))

    async def _hand_over(self, agent: str) -> None:
        try:
            await self.transfer_to(agent)
        except Exception as error:  # noqa: BLE001 - whatever is raised, the current agent continues
            log.warning("on a call: %s", type(error).__name__)
            self.live.hooks.tell(self.live.provider.setup.context, "error", kind=type(error).__name__)

    async def _end_when_played(self, reason: str) -> None:
        await self.live.playback.wait_idle()
        self.end_soon(reason)

    async def transfer_to(self, agent: str) -> None:
        """Transfer the call to another agent; see `VoiceSession.transfer`. One transfer at a time."""
        chosen = self._session.agent(agent)
        while self._moving is not None and not self._moving.done():
            await asyncio.wait({self._moving})  # its result goes to its own caller
        if self._closing is not None:
            raise NotOpen("the call is over")
        self._moving = asyncio.create_task(self._transfer(chosen))
        await asyncio.shield(self._moving)

    def end_soon(self, reason: str, *, keep_checkpoint: bool = False) -> None:
        """Start to end the session, unless it is ending."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, keep_checkpoint))

    async def close(self, reason: str, *, keep_checkpoint: bool) -> None:
        """End the call. What was heard is stored, even if this is cancelled."""
        self.end_soon(reason, keep_checkpoint=keep_checkpoint)
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def give_up(self) -> None:
        """Undo an incomplete start; a resumed call stays resumable."""
        if self._collector is None:
            await self._let_go()
        elif self._resumed is None:
            await self.close("ended", keep_checkpoint=False)
        else:
            await self.close("lost", keep_checkpoint=True)

    async def _let_go(self) -> None:
        if self._live is not None:
            await self._live.recall.aclose()
            await self._live.recorder.call_summary.aclose()
            for provider in self._live.providers:
                await provider.stop()
            await self._live.hooks.aclose()
        self.state = "closed"
        self._on_closed()

    def _given(self) -> str:
        """The memory block as the model has it."""
        if self._live is None or not self._live.providers:
            return ""
        return self._live.provider.setup.block

    def _take(self, provider: ProviderSession, event: RealtimeEvent) -> None:
        self.handler.take(provider, event)

    async def _transfer(self, agent: VoiceAgent) -> None:
        live = self.live
        if agent.name == live.provider.setup.agent.name:
            return
        self.become("transferring")
        try:
            if live.provider.setup.profile.carries_audio:
                await self._lines.transfer(live, agent)
            else:
                await self._lines.reattach(live, agent)
        finally:
            if self.state == "transferring":
                self.become("active")
                self.plan()

    async def _watch_line(self) -> None:
        """End the session when the connection cannot be restored; its checkpoint stays for resuming it."""
        live, provider = self.live, None
        while provider is not live.provider:
            provider = live.provider
            await provider.ended.wait()
            await asyncio.sleep(0)
        kind = type(provider.error).__name__ if provider.error is not None else "closed by the provider"
        if self._closing is None:
            self.live.hooks.tell(self.live.provider.setup.context, "error", kind=kind)
            self.end_soon("lost", keep_checkpoint=True)

    async def _close(self, reason: str, keep_checkpoint: bool) -> None:
        self.reason = reason
        if self._handler is not None:
            self._handler.close()
        try:
            await self._wind_up(reason, keep_checkpoint=keep_checkpoint)
        finally:
            await self._let_go()

    async def _wind_up(self, reason: str, *, keep_checkpoint: bool) -> None:
        """Stop every task of the call and store what was heard."""
        live, lines = self.live, self._lines
        if live.providers and reason not in GOES_ON:
            await lines.leave(live.provider)
        for task in [self._watch, self._moving, *live.tasks]:
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        for provider in live.providers:
            await provider.stop()
        if reason not in STAYS_UP:
            await lines.hang_up()
        live.playback.close()
        if live.host is None:  # otherwise the call may go on
            live.recorder.note_end(reason)
        kept = self._collector is not None and await self._collector.finish(keep_checkpoint=keep_checkpoint)
        if live.providers:
            live.hooks.tell(live.provider.setup.context, "session_end", reason=reason, kept=kept)
