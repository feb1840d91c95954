"""One call from its first line to its last: what opens it, hands it over and ends it.

Its parts do the work; here is only the order in which they are put together and taken apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.messages import ModelMessage
from pydantic_ai.realtime import RealtimeEvent, RealtimeOutputSpeechStartEvent

from echoic.errors import EchoicError, NotOpen
from echoic.session.agents import VoiceAgent
from echoic.session.asr_confidence import Confidences, with_confidence
from echoic.session.call_state import CallState, Session, State
from echoic.session.checkpoints import kept_of_earlier_calls
from echoic.session.event_handler import Pump
from echoic.session.history import without_requests
from echoic.session.hooks import Captions, caption_of
from echoic.session.playback import Playback
from echoic.session.provider_connections import ProviderConnections
from echoic.session.provider_session import Leg
from echoic.session.recorder import Keeper
from echoic.session.resume import Beginning, taken_up
from echoic.session.sideband import ProviderCall, RemotePlayback
from echoic.session.transfer import hand_over, reattach

if TYPE_CHECKING:
    from echoic.memory.service import MemoryService


log = logging.getLogger(__name__)

GOES_ON: Final = frozenset({"left", "lost", "suspended"})
"""Ends of this session that are not the call's: agents do not take their leave."""
STAYS_UP: Final = frozenset({"lost", "suspended", "taken over"})
"""Ends after which the provider's call may have somebody else beside it."""


class Plans:
    """What a tool or hook asked for, done when the call has a pause.

    Args:
        live: the call.
        transfer: hands it over.
        end: ends it.
    """

    def __init__(
        self, live: CallState, *, transfer: Callable[[str], Awaitable[None]], end: Callable[[str], None]
    ) -> None:
        self._live = live
        self._transfer = transfer
        self._end = end
        self.agent: str | None = None
        """Who is to go on."""
        self.reason: str | None = None
        """Why it is to end."""

    def carry_out(self) -> None:
        """Do what was planned, if anything was."""
        live = self._live
        if self.agent is not None:
            agent, self.agent = self.agent, None
            live.spawn(self._hand_over(agent))
        if self.reason is not None and not live.leg.speaking:
            reason, self.reason = self.reason, None
            live.spawn(self._end_when_played(reason))

    async def _hand_over(self, agent: str) -> None:
        live = self._live
        try:
            await self._transfer(agent)
        except Exception as error:  # noqa: BLE001 - whatever a provider's client raises: who served goes on
            log.warning("on a call: %s", type(error).__name__)
            live.hooks.tell(live.leg.setup.context, "error", kind=type(error).__name__)

    async def _end_when_played(self, reason: str) -> None:
        await self._live.playback.wait_idle()
        self._end(reason)


async def line_lost(live: CallState) -> str:
    """Wait until the line of whoever serves is gone for good; the kind of what happened."""
    while True:
        leg = live.leg
        await leg.ended.wait()
        if leg is live.leg:
            return type(leg.error).__name__ if leg.error is not None else "closed by the provider"
        await asyncio.sleep(0)


async def wind_up(
    live: CallState,
    lines: ProviderConnections,
    keeper: Keeper | None,
    tasks: Sequence[asyncio.Task[Any] | None],
    *,
    reason: str,
    keep_checkpoint: bool,
) -> None:
    """End everything that goes on, and keep what was heard.

    Args:
        live: the call.
        lines: to the provider.
        keeper: what keeps it; None: it did not come so far.
        tasks: of the session, to be ended with those of the call.
        reason: for hooks and the record.
        keep_checkpoint: the call is to be taken up again.
    """
    if live.legs and reason not in GOES_ON:
        await lines.leave(live.leg)
    for task in [*tasks, *live.tasks]:
        if task is not None and task is not asyncio.current_task():
            task.cancel()
    for leg in live.legs:
        await leg.stop()
    if reason not in STAYS_UP:
        await lines.hang_up()
    live.playback.close()
    if live.host is None:  # else the call may go on
        live.log.call.ended_at, live.log.call.reason = datetime.now(UTC), reason
        live.log.changed()
    kept = await keeper.finish(keep_checkpoint=keep_checkpoint) if keeper is not None else False
    if kept and not keep_checkpoint and not live.lost and live.host is None:
        with contextlib.suppress(EchoicError):  # it is distilled by the next process then
            await live.conversation.complete()
    if live.legs:
        live.hooks.tell(live.leg.setup.context, "session_end", reason=reason, kept=kept)


class Running:
    """Of one session.

    Args:
        session: whose call it is.
        service: the memory, open.
        beginning: what it begins with.
        call: the provider's, where the audio goes between it and the caller.
        captions: told what is being said.
        on_closed: called once all is over.
    """

    def __init__(
        self,
        session: Session,
        service: MemoryService,
        beginning: Beginning,
        *,
        call: ProviderCall | None,
        captions: Captions | None,
        on_closed: Callable[[], None],
    ) -> None:
        self._session = session
        self._beginning = beginning
        self._confidences = Confidences()
        self._lines = ProviderConnections(
            session, service, with_confidence(beginning.model, self._confidences), self._confidences, call
        )
        self._captions = captions
        self._on_closed = on_closed
        self._live: CallState | None = None
        self._pump: Pump | None = None
        self._plans: Plans | None = None
        self._keeper: Keeper | None = None
        self._closing: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._moving: asyncio.Task[None] | None = None
        self._entered = False
        self.sending = asyncio.Lock()
        """Held while a frame is handed to a line."""
        self.state: State = "connecting"
        self.reason: str | None = None

    @property
    def began(self) -> bool:
        """Whether there is something to end."""
        return self._live is not None

    @property
    def live(self) -> CallState:
        """What the parts share."""
        if self._live is None:
            raise NotOpen("enter the session first")
        return self._live

    @property
    def pump(self) -> Pump:
        """What follows the provider's events."""
        assert self._pump is not None
        return self._pump

    @property
    def plans(self) -> Plans:
        """What is to be done at the next pause."""
        assert self._plans is not None
        return self._plans

    async def open(self) -> None:
        """Connect, and have the agent enter."""
        beginning, lines = self._beginning, self._lines
        agent, resumed = beginning.agent, beginning.resumed
        session, host = self._session, self._session.host
        if host is None:
            every_s = session.settings.checkpoint_every_s
            await kept_of_earlier_calls(session.memory, session.session_id, every_s)
        context = await lines.context(agent)
        beside = lines.call is not None
        playback = RemotePlayback() if beside else Playback(self._session.settings.frame_ms)
        live = self._live = await beginning.live(self._confidences, playback, self._given)
        plans = self._plans = Plans(live, transfer=self.transfer_to, end=self.end_soon)
        pump = self._pump = Pump(live, on_state=self.become, on_pause=plans.carry_out)
        history: list[ModelMessage] = [] if host is None else list(host.history)
        if resumed is not None:
            history = await taken_up(resumed, live, agent, context, beginning.model)
        leg = await lines.open(agent, context, without_requests(history), playback, self._take)
        live.legs.append(leg)
        if self._closing is not None:
            raise NotOpen("the call is over")
        self._keeper = Keeper(
            live, exchange_of=pump.exchange_of, on_idle=self.end_soon, on_lost=self.end_soon
        )
        self._keeper.start()
        self._watch = asyncio.create_task(self._watch_line())
        self.become("active")
        live.hooks.tell(context, "session_start", agent=agent.name, resumed=resumed is not None)
        if host is None or history:  # else it is in the middle of a call, which was greeted
            await lines.enter(leg, history=history, resumed=resumed is not None or host is not None)
        live.dirty.set()
        self._entered = True
        self.planned()

    async def caught_up(self, within_s: float) -> None:
        """Wait until what was said so far is kept, or that long."""
        if self._keeper is not None:
            await self._keeper.caught_up(within_s)

    def become(self, state: State) -> None:
        """Enter a state, and have listeners told."""
        self.state = state
        if self._live is not None and self._live.legs:
            self._live.hooks.tell(self._live.leg.setup.context, "state", state=state)

    def planned(self) -> None:
        """Something was planned. Where all is quiet no pause would come: it is now."""
        if self._entered and self.state == "active" and self.pump.at_rest(self.live.leg):
            self.plans.carry_out()

    async def transfer_to(self, agent: str) -> None:
        """Hand the call over; one transfer at a time.

        Raises:
            InvalidInput: the session has no such agent.
            RealtimeError: the next agent's line could not be opened; the one before goes on.
        """
        chosen = self._session.agent(agent)
        while self._moving is not None and not self._moving.done():
            await asyncio.wait({self._moving})  # what became of it is its own caller's
        if self._closing is not None:
            raise NotOpen("the call is over")
        self._moving = asyncio.create_task(self._transfer(chosen))
        await asyncio.shield(self._moving)

    def end_soon(self, reason: str, *, keep_checkpoint: bool = False) -> None:
        """Begin to end it, unless it is ending."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason, keep_checkpoint))

    async def close(self, reason: str, *, keep_checkpoint: bool) -> None:
        """End it; what was heard is kept, even where this is cancelled."""
        self.end_soon(reason, keep_checkpoint=keep_checkpoint)
        assert self._closing is not None
        await asyncio.shield(self._closing)

    async def give_up(self) -> None:
        """End what did not begin wholly; a call that was taken up again can be taken up again."""
        if self._keeper is None:
            await self._let_go()
        elif self._beginning.resumed is None:
            await self.close("ended", keep_checkpoint=False)
        else:
            await self.close("lost", keep_checkpoint=True)

    async def _let_go(self) -> None:
        """Close what is open."""
        if self._live is not None:
            await self._live.recall.aclose()
            await self._live.digest.aclose()
            for leg in self._live.legs:
                await leg.stop()
            await self._live.hooks.aclose()
        self.state = "closed"
        self._on_closed()

    def _given(self) -> str:
        """The block, as the model has it."""
        if self._live is None or not self._live.legs:
            return ""
        return self._live.leg.setup.block

    def _take(self, leg: Leg, event: RealtimeEvent) -> None:
        self.pump.take(leg, event)
        if isinstance(event, RealtimeOutputSpeechStartEvent):
            self._sounds(leg)
        if self._captions is not None and (caption := caption_of(leg, event)) is not None:
            said_by_caller = caption.speaker == "user"
            self._captions(
                replace(caption, text=self.live.masked(caption.text)) if said_by_caller else caption
            )

    def _sounds(self, leg: Leg) -> None:
        """The provider plays to the caller: the first audio of a reply, where none of it comes here."""
        log = self.live.log
        if "first_audio" in log.current.stages:
            return
        log.stamp("first_audio")
        log.stamp("first_played")
        if (latency := log.current.latency_ms) is not None:
            self.live.hooks.tell(leg.setup.context, "turn_latency", ms=latency)

    async def _transfer(self, agent: VoiceAgent) -> None:
        live = self.live
        if agent.name == live.leg.setup.agent.name:
            return
        self.become("transferring")
        try:
            if live.leg.setup.profile.carries_audio:
                await hand_over(live, self._lines, agent, self.sending, self._take)
            else:
                await reattach(live, self._lines, agent, self._take)
        finally:
            if self.state == "transferring":
                self.become("active")
                self.planned()

    async def _watch_line(self) -> None:
        """When the line is lost for good the call ends here; its checkpoint stays, so that it can go on."""
        kind = await line_lost(self.live)
        if self._closing is None:
            self.live.hooks.tell(self.live.leg.setup.context, "error", kind=kind)
            self.end_soon("lost", keep_checkpoint=True)

    async def _close(self, reason: str, keep_checkpoint: bool) -> None:
        self.reason = reason
        if self._pump is not None:
            self._pump.close()
        try:
            await wind_up(
                self.live,
                self._lines,
                self._keeper,
                [self._watch, self._moving],
                reason=reason,
                keep_checkpoint=keep_checkpoint,
            )
        finally:
            await self._let_go()
