"""What a call does when something happens on it. It never waits: what takes time is spawned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    SpeechPart,
    SpeechPartDelta,
)
from pydantic_ai.realtime import (
    RealtimeError,
    RealtimeEvent,
    RealtimeInputSpeechEndEvent,
    RealtimeInputSpeechStartEvent,
    RealtimeInputTranscriptionErrorEvent,
    RealtimeResponseInterruptedEvent,
    RealtimeSessionErrorEvent,
    RealtimeSessionReconnectEvent,
    RealtimeTurnCompleteEvent,
)

from echoic.errors import EchoicError
from echoic.prompt import quoted
from echoic.prompt.block import framed
from echoic.session.call_record import Exchange, ToolRun
from echoic.session.call_state import CallState, State
from echoic.session.history import request
from echoic.session.provider_connections import GO_ON
from echoic.session.provider_session import CallerUtterance, Leg, Note

log = logging.getLogger(__name__)

_EXCHANGES: Final = 256


class Pump:
    """Follows the legs of one call.

    Args:
        live: the call.
        on_state: told when the line breaks and is back.
        on_pause: called when a tool has answered or the model's turn is over: the time for what was planned.
    """

    def __init__(
        self, live: CallState, *, on_state: Callable[[State], None], on_pause: Callable[[], None]
    ) -> None:
        self._live = live
        self._on_state = on_state
        self._on_pause = on_pause
        self._of_turn: dict[str, Exchange] = {}
        self._untranscribed: list[tuple[str | None, Exchange]] = []
        """Exchanges whose caller was heard and not understood yet, with the provider's id of the words."""
        self._owed: dict[str, int] = {}
        """By leg: how many turns ended since a reply was asked for."""
        self._open: dict[str, CallerUtterance | None] = {}
        """By leg, what was asked that no whole reply has followed; None: by the application."""
        self._unasked: set[str] = set()
        """Legs whose line broke before a reply could be asked for."""
        self._late: dict[str, asyncio.TimerHandle] = {}
        self._replying = False
        """Whether the model has begun a turn that is not over."""
        self._asked = False
        """Whether something was said or asked for since the model's last turn began."""
        self._explained = False
        """Whether it is known what the model's last turn answers."""
        self._words_are_due = False
        """Whether the model's last turn is over, and what it answers was not transcribed yet."""

    def exchange_of(self, turn_id: str) -> Exchange | None:
        """To which exchange a turn belongs."""
        return self._of_turn.get(turn_id)

    def at_rest(self, leg: Leg) -> bool:
        """Whether nobody speaks, and nothing is under way of which more would be heard."""
        waits = self._replying or self._asked or self._untranscribed or self._owed.get(leg.name)
        return not (waits or leg.speaking or leg.owes_reply or leg.pending_tools())

    def typed(self, leg: Leg, text: str) -> None:
        """The caller typed something."""
        exchange = self._live.log.begin(leg.setup.agent.name)
        self._live.log.stamp("transcript", exchange)
        said = leg.typed(text)
        self._belongs(said.turn_id, exchange)
        self.prompted()
        self._open[leg.name] = said
        self._caller_begins()

    def take(self, leg: Leg, event: RealtimeEvent) -> None:
        """Take in an event of a leg, which has taken it in itself."""
        if isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
            self._heard_more(leg, event.index, event.delta)
        elif isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
            self._part(leg, event, event.part)
        elif isinstance(event, RealtimeInputSpeechStartEvent):
            self._caller_speaks(leg, event.item_id)
        elif isinstance(event, RealtimeInputSpeechEndEvent):
            self._caller_is_silent(leg)
        elif isinstance(event, RealtimeResponseInterruptedEvent):
            self.barge_in(leg)
        elif isinstance(event, RealtimeInputTranscriptionErrorEvent):
            self._untranscribed = [pair for pair in self._untranscribed if pair[0] != event.item_id]
            self._live.hooks.tell(leg.setup.context, "error", kind="transcription")
            self._live.spawn(self._ask(leg))
        elif isinstance(event, (FunctionToolCallEvent, FunctionToolResultEvent)):
            self._tool(leg, event)
        else:
            self._control(leg, event)

    def barge_in(self, leg: Leg) -> None:
        """The caller interrupts: nothing more is played, and the provider is told where playback stopped."""
        live = self._live
        if live.playback.idle and not leg.speaking:
            return
        unplayed = {each.name: each.unplayed() for each in live.legs}
        live.playback.cut()
        self._open.pop(leg.name, None)  # they heard what they wanted to; what they say now opens it anew
        live.cut_at_s = asyncio.get_running_loop().time()
        for each in live.legs:
            position = each.cut(unplayed[each.name])
            if each.setup.profile.can_cut and each.is_open:
                live.spawn(_interrupted(each, position))
        live.log.stamp("barge_in")
        live.hooks.tell(leg.setup.context, "barge_in")
        live.dirty.set()

    def close(self) -> None:
        """Nothing more is to be asked for."""
        for timer in self._late.values():
            timer.cancel()

    # -- words

    def _part(self, leg: Leg, event: PartStartEvent | PartEndEvent, part: SpeechPart) -> None:
        ended = isinstance(event, PartEndEvent)
        if part.speaker == "assistant":
            self._reply_begins()
            utterance = leg.utterances[event.index]
            self._belongs(utterance.turn_id, self._live.log.current)
            if ended:
                self._live.log.stamp("generated", self._of_turn[utterance.turn_id])
                self._live.dirty.set()
            return
        said = leg.said[event.index]
        if said.turn_id not in self._of_turn:
            self._transcript_begins(leg, said)
        exchange = self._of_turn.get(said.turn_id) or self._transcribed_exchange(leg)
        self._belongs(said.turn_id, exchange)
        if ended and "transcript" not in exchange.stages:
            self._live.log.stamp("transcript", exchange)
            self._live.sounds()
            task = self._live.spawn(self._turn_ended(leg, self._live.masked(said.text), exchange))
            self._live.recalls.add(task)
            task.add_done_callback(self._live.recalls.discard)

    def prompted(self) -> None:
        """The model was asked to say something: its next turn answers that."""
        self._asked = True
        self._open[self._live.leg.name] = None

    def _reply_begins(self) -> None:
        if not self._replying:
            self._replying = True
            self._explained, self._asked = self._asked, False
            self._words_are_due = False

    def _transcript_begins(self, leg: Leg, said: CallerUtterance) -> None:
        """Where the provider does not say that the caller began to speak, their words do.

        Words that come while it is not known what the model answers are those it answers, come late.
        """
        if not leg.setup.profile.reports_speech and not self._replying and self._explained:
            self.barge_in(leg)
        self._asked = not self._replying or self._explained
        self._explained = True
        if not self._words_are_due:
            self._open[leg.name] = said
        self._words_are_due = False
        self._caller_begins()

    def _caller_begins(self) -> None:
        self._live.sounds()
        if self._live.host is not None:
            self._live.host.caller_speaks()

    def _heard_more(self, leg: Leg, index: int, delta: SpeechPartDelta) -> None:
        log_ = self._live.log
        if delta.speaker == "assistant":
            if delta.audio_chunk:
                leg.utterances[index].trace.listened(delta.audio_chunk)
            if delta.audio_chunk and "first_audio" not in log_.current.stages:
                log_.stamp("first_audio")
                if (latency := log_.current.latency_ms) is not None:
                    self._live.hooks.tell(leg.setup.context, "turn_latency", ms=latency)
        elif delta.transcript:
            exchange = self._of_turn.get(leg.said[index].turn_id)
            if exchange is not None and "transcript" not in exchange.stages:
                exchange.partials += 1
                log_.stamp("first_partial", exchange)
                if self._live.settings.recalls:
                    self._live.recall.hear(self._live.masked(delta.transcript))
            self._live.sounds()

    def _caller_speaks(self, leg: Leg, item: str | None) -> None:
        self._caller_begins()
        self.barge_in(leg)
        exchange = self._live.log.begin(leg.setup.agent.name)
        self._live.log.stamp("speech_began", exchange)
        self._untranscribed.append((item, exchange))

    def _caller_is_silent(self, leg: Leg) -> None:
        self._live.sounds()
        self._live.log.stamp("speech_ended")
        if not leg.setup.waits_to_be_asked:
            return
        self._owed[leg.name] = self._owed.get(leg.name, 0) + 1
        self._forget_timer(leg)
        wait_s = self._live.settings.transcript_wait_s
        loop = asyncio.get_running_loop()
        # a transcript that never comes must not leave the caller without an answer
        self._late[leg.name] = loop.call_later(wait_s, lambda: self._live.spawn(self._ask(leg)))

    def _transcribed_exchange(self, leg: Leg) -> Exchange:
        """The exchange whose caller is being transcribed now: the first that waits for it, or a new one."""
        if self._untranscribed:
            return self._untranscribed.pop(0)[1]
        return self._live.log.begin(leg.setup.agent.name)

    def _belongs(self, turn_id: str, exchange: Exchange) -> None:
        self._of_turn.setdefault(turn_id, exchange)
        while len(self._of_turn) > _EXCHANGES:
            del self._of_turn[next(iter(self._of_turn))]

    # -- the end of the caller's turn

    async def _turn_ended(self, leg: Leg, text: str, exchange: Exchange) -> None:
        """What is known for the turn reaches the model, where it can before it answers. It always answers."""
        try:
            if text.strip():
                if self._live.settings.recalls:
                    await self._recall(leg, text, exchange)
                await self._completed(leg, text)
        finally:
            await self._ask(leg)
            self._live.dirty.set()

    async def _recall(self, leg: Leg, text: str, exchange: Exchange) -> None:
        live = self._live
        live.log.stamp("recall_began", exchange)
        recalled = await live.recall.final(text)
        exchange.recall = recalled
        live.log.stamp("recalled", exchange)
        live.hooks.tell(
            leg.setup.context,
            "recall",
            outcome=recalled.outcome,
            ready=recalled.ready,
            delay_ms=recalled.delay_ms,
            shown=sum(found.fate == "shown" for found in recalled.found),
        )
        if not recalled.text:
            return
        note = framed("recalled", recalled.text.splitlines())
        if leg.setup.waits_to_be_asked and live.settings.recalls_first:
            try:
                await _tell(leg, note)
            except RealtimeError:
                leg.notes.append(note)  # told once the line is back
            else:
                live.log.stamp("handed_over", exchange)
        else:
            leg.notes.append(note)

    async def _completed(self, leg: Leg, text: str) -> None:
        hook = leg.setup.agent.on_turn_completed
        if hook is None:
            return
        task = self._live.spawn(_hooked(hook(leg.setup.context, text)))
        if leg.setup.waits_to_be_asked:
            await asyncio.wait({task}, timeout=self._live.settings.recall_deadline_ms / 1000)

    async def _ask(self, leg: Leg) -> None:
        """Have the model answer what was said, if it waits to be asked and was not asked yet."""
        self._forget_timer(leg)
        if not self._owed.pop(leg.name, 0) or not leg.is_open:
            return
        try:
            await leg.session.create_response()
        except Exception as error:  # noqa: BLE001 - the line may be gone; the leg tells why
            self._unasked.add(leg.name)
            log.warning("a reply could not be asked for: %s", type(error).__name__)

    async def _ask_again(self, leg: Leg, notes: list[Note], *, begun: bool) -> None:
        """On a line dialled anew, have the model answer what the broken one left unanswered, once."""
        await _tell_all(leg, notes)
        unasked = leg.name in self._unasked
        self._unasked.discard(leg.name)
        if leg is not self._live.leg or leg.name not in self._open or not leg.is_open:
            return
        if self._owed.get(leg.name) or leg.is_asked():
            return  # it is asked for as soon as what is known has reached the model, or was asked for already
        if not (unasked or leg.setup.profile.carries_audio):
            return  # only what watches the call was cut off from it: the reply itself goes on
        try:
            if leg.setup.profile.asked_to_reply and not begun:
                await leg.session.create_response()
            else:
                self._asked = True
                if (last := self._said_last(leg)) is not None:
                    await _tell(leg, last)
                await leg.session.send(request(GO_ON), respond=True)
        except Exception as error:  # noqa: BLE001 - broken once more: the next line is asked
            log.warning("a reply could not be asked for again: %s", type(error).__name__)

    def _said_last(self, leg: Leg) -> str | None:
        """What a line that is resumed, not told its history, may lack: the caller's last words."""
        said = self._open.get(leg.name)
        if said is None or not said.text.strip() or leg.setup.profile.asked_to_reply:
            return None
        return framed("meanwhile", [f"The caller said last: {quoted(said.text)}"])

    def _forget_timer(self, leg: Leg) -> None:
        if (timer := self._late.pop(leg.name, None)) is not None:
            timer.cancel()

    # -- tools and the line

    def _tool(self, leg: Leg, event: FunctionToolCallEvent | FunctionToolResultEvent) -> None:
        live, exchange = self._live, self._live.log.current
        part = event.part
        if isinstance(event, FunctionToolCallEvent):
            arguments = event.part.args_as_dict(raise_if_invalid=False)
            exchange.tools.append(
                ToolRun(call=part.tool_call_id, name=event.part.tool_name, began_ms=live.log.now_ms)
            )
            live.hooks.tell(
                leg.setup.context,
                "tool_call",
                name=event.part.tool_name,
                call=part.tool_call_id,
                arguments=arguments,
            )
        else:
            outcome = str(getattr(part, "outcome", "retried"))
            for run in (run for each in live.log.exchanges for run in each.tools):
                if run.call == part.tool_call_id and run.ended_ms is None:
                    run.ended_ms, run.outcome = live.log.now_ms, outcome
            live.hooks.tell(
                leg.setup.context, "tool_result", name=part.tool_name, call=part.tool_call_id, outcome=outcome
            )
            live.spawn(_checked(live))
            self._on_pause()
        live.log.touched(exchange)
        live.dirty.set()

    def _control(self, leg: Leg, event: RealtimeEvent) -> None:
        live = self._live
        if isinstance(event, RealtimeTurnCompleteEvent):
            if not (leg.owes_reply or leg.pending_tools()):
                self._open.pop(leg.name, None)
            self._replying, self._words_are_due = False, not self._explained
            notes, leg.notes = leg.notes, []
            if notes:
                live.spawn(_tell_all(leg, notes))
            live.spawn(leg.setup.refresh())
            live.dirty.set()
            self._on_pause()
        elif isinstance(event, RealtimeSessionReconnectEvent):
            self._on_state("reconnecting")
            self._on_state("active")
            begun, self._replying = self._replying, False
            notes, leg.notes = leg.notes, []
            live.spawn(self._ask_again(leg, notes, begun=begun))
            live.dirty.set()
        elif isinstance(event, RealtimeSessionErrorEvent):
            live.hooks.tell(leg.setup.context, "error", kind=event.code or event.type or "provider")


async def _tell(leg: Leg, note: Note) -> None:
    await leg.session.send(note, respond=False)


async def _tell_all(leg: Leg, notes: list[Note]) -> None:
    try:
        for note in notes:
            await _tell(leg, note)
    except Exception as error:  # noqa: BLE001 - the line may be gone; the leg tells why
        log.warning("a note could not be handed over: %s", type(error).__name__)


async def _interrupted(leg: Leg, position: int) -> None:
    try:
        await leg.session.interrupt(played_bytes=max(0, position))
    except Exception as error:  # noqa: BLE001 - the line may be gone; the leg tells why
        log.warning("the provider could not be told of an interruption: %s", type(error).__name__)


async def _hooked(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - somebody else's code
        log.warning("on_turn_completed failed: %s", type(error).__name__)


async def _checked(live: CallState) -> None:
    try:
        if live.learning is not None:
            await live.learning.learn_soon()
    except EchoicError as error:
        log.warning("a checkpoint of what is learned failed: %s", type(error).__name__)
