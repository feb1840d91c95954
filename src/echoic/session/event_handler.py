"""The event handler of a call. It never waits: whatever takes time runs in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
    RealtimeOutputSpeechStartEvent,
    RealtimeResponseInterruptedEvent,
    RealtimeSessionErrorEvent,
    RealtimeSessionReconnectEvent,
    RealtimeTurnCompleteEvent,
)

from echoic.errors import EchoicError
from echoic.prompt.block import framed, quoted
from echoic.session.call_record import Exchange
from echoic.session.call_state import CallState, State
from echoic.session.history import request
from echoic.session.hooks import Caption, Captions, show
from echoic.session.playback import Utterance
from echoic.session.provider import CallerUtterance, Note, ProviderSession
from echoic.session.provider_connections import GO_ON

log = logging.getLogger(__name__)

_EXCHANGES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cut:
    """What was being said when it was cut off."""

    provider: ProviderSession
    utterances: Sequence[Utterance]
    exchange: Exchange
    """The exchange in which it was said."""
    at: datetime
    by_caller: bool
    """Whether the caller cut it off; otherwise their connection broke."""


class EventHandler:
    """Handles the events of the provider sessions of one call.

    It calls `on_state` when the connection to the provider breaks and is restored, and `on_pause` when the
    agent pauses, so that a planned transfer or hang-up can happen.
    """

    def __init__(
        self,
        live: CallState,
        on_state: Callable[[State], None],
        on_pause: Callable[[], None],
        captions: Captions | None,
    ) -> None:
        self._live = live
        self._on_state, self._on_pause = on_state, on_pause
        self._captions = captions
        self._of_turn: dict[str, Exchange] = {}
        self._untranscribed: dict[str, list[tuple[str | None, Exchange]]] = {}
        """By provider session, exchanges that wait for a transcript, with the provider's id of the item."""
        self._talking: set[str] = set()
        """Provider sessions that hear the caller speak now."""
        self._owed: dict[str, int] = {}
        """By provider session, how many turns ended since a reply was asked for."""
        self._open: dict[str, CallerUtterance | None] = {}
        """By provider session, the words without a complete reply; None for a request of the application."""
        self._unasked: set[str] = set()
        """Provider sessions whose connection broke before a reply could be asked for."""
        self._late: dict[str, asyncio.TimerHandle] = {}
        self._cuts: list[_Cut] = []
        """Cuts of which it is not known yet whether anything was left unheard."""
        self._replying = False
        """Whether the model is in a turn."""
        self._asked = False
        """Whether anything was said or requested since the model's last turn began."""
        self._explained = False
        """Whether it is known which turn the model's last one answers."""
        self._words_are_due = False
        """Whether the model's last turn is over and the turn it answers has no transcript yet."""

    def exchange_of(self, turn_id: str) -> Exchange | None:
        return self._of_turn.get(turn_id)

    def at_rest(self, provider: ProviderSession) -> bool:
        """Whether nobody is speaking and no further speech is pending."""
        waits = self._untranscribed.get(provider.name) or self._owed.get(provider.name)
        speaks = self._replying or self._asked or provider.speaking
        return not (waits or speaks or provider.owes_reply or provider.pending_tools())

    def typed(self, provider: ProviderSession, text: str) -> None:
        exchange = self._live.log.begin(provider.setup.agent.name)
        self._live.log.stamp("transcript", exchange)
        said = provider.typed(text)
        self._belongs(said.turn_id, exchange)
        self.prompted()
        self._open[provider.name] = said
        self._caller_begins()

    def take(self, provider: ProviderSession, event: RealtimeEvent) -> None:
        """Handle an event that the provider session has processed."""
        self._follow(provider, event)
        if self._captions is not None and (caption := _caption_of(provider, event)) is not None:
            if caption.speaker == "user":
                caption = replace(caption, text=self._live.masked(caption.text))
            show(self._captions, caption)

    def _follow(self, provider: ProviderSession, event: RealtimeEvent) -> None:
        if isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
            self._heard_more(provider, event.index, event.delta)
        elif isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
            self._part(provider, event, event.part)
        elif isinstance(event, RealtimeInputSpeechStartEvent):
            self._caller_speaks(provider, event.item_id)
        elif isinstance(event, RealtimeInputSpeechEndEvent):
            self._caller_is_silent(provider, event.item_id)
        elif isinstance(event, RealtimeResponseInterruptedEvent):
            self.barge_in(provider)
        elif isinstance(event, RealtimeOutputSpeechStartEvent):  # its audio may not pass through here
            if self._first_audio(provider):
                self._live.log.stamp("first_played")
        elif isinstance(event, RealtimeInputTranscriptionErrorEvent):
            waiting = self._untranscribed.pop(provider.name, [])
            self._untranscribed[provider.name] = [pair for pair in waiting if pair[0] != event.item_id]
            self._live.hooks.tell(provider.setup.context, "error", kind="transcription")
            self._live.spawn(self._ask(provider))
        elif isinstance(event, (FunctionToolCallEvent, FunctionToolResultEvent)):
            self._tool(provider, event)
        else:
            self._control(provider, event)

    def barge_in(self, provider: ProviderSession) -> None:
        """The caller interrupts."""
        self.cut_off(provider, by_caller=True)

    def cut_off(self, provider: ProviderSession, *, by_caller: bool) -> None:
        """Cut off what is being said, unless the provider did before it reported that the caller speaks."""
        live = self._live
        left = [said for each in live.providers for said in each.utterances.values() if not said.settled]
        left += live.playback.take_cut_elsewhere()
        if not live.playback.idle or provider.unheard:
            self._stop(provider)
        if left:
            at, exchange = datetime.now(UTC), live.log.current
            cut = _Cut(provider=provider, utterances=left, exchange=exchange, at=at, by_caller=by_caller)
            self._cuts.append(cut)
            live.undecided.update(left)
            self._decide(cut)

    def _stop(self, provider: ProviderSession) -> None:
        """Playback stops, and the provider is told where."""
        live = self._live
        unplayed = {each.name: each.unplayed() for each in live.providers}
        live.playback.cut()
        self._closed(provider)  # the reply is no longer wanted
        for each in live.providers:
            if (telling := each.cut(unplayed[each.name])) is not None:
                each.interrupting = live.spawn(telling)
        live.dirty.set()

    def close(self) -> None:
        for timer in self._late.values():
            timer.cancel()
        for cut in list(self._cuts):
            self._decided(cut)

    # -- interruptions

    def _decide(self, cut: _Cut) -> None:
        """Decide whether the caller interrupted, once it was reported how much they heard.

        At a cut, a device may have played more than it had reported: all of it, even.
        """
        if any(map(self._live.playback.awaits, cut.utterances)):
            self._live.spawn(self._await_report(cut))
        else:
            self._decided(cut)

    async def _await_report(self, cut: _Cut) -> None:
        playback = self._live.playback
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._live.settings.cut_grace_s):
                while any(map(playback.awaits, cut.utterances)):
                    playback.moved.clear()
                    await playback.moved.wait()
        self._decided(cut)

    def _decided(self, cut: _Cut) -> None:
        live = self._live
        if cut not in self._cuts:
            return
        self._cuts.remove(cut)
        live.undecided.difference_update(cut.utterances)
        if cut.by_caller and any(said.interrupted for said in cut.utterances):
            live.log.stamp("barge_in", cut.exchange, at=cut.at)
            live.hooks.tell(cut.provider.setup.context, "barge_in")
            if live.host is not None:
                live.host.interrupted()
        live.dirty.set()

    # -- transcripts

    def _part(
        self, provider: ProviderSession, event: PartStartEvent | PartEndEvent, part: SpeechPart
    ) -> None:
        ended = isinstance(event, PartEndEvent)
        if part.speaker == "assistant":
            self._reply_begins()
            utterance = provider.utterances[event.index]
            self._belongs(utterance.turn_id, self._live.log.current)
            if ended:
                self._live.log.stamp("generated", self._of_turn[utterance.turn_id])
                self._live.dirty.set()
            return
        said = provider.said[event.index]
        if said.turn_id not in self._of_turn:
            self._transcript_begins(provider, said)
        exchange = self._of_turn.get(said.turn_id) or self._transcribed_exchange(provider)
        self._belongs(said.turn_id, exchange)
        if ended and "transcript" not in exchange.stages:
            self._live.log.stamp("transcript", exchange)
            self._live.sounds()
            task = self._live.spawn(self._turn_ended(provider, self._live.masked(said.text), exchange))
            self._live.recalls.add(task)
            task.add_done_callback(self._live.recalls.discard)

    def prompted(self) -> None:
        """The model was asked to say something: its next turn answers that."""
        self._asked = self._live.provider.reply_is_due = True
        self._open[self._live.provider.name] = None

    def _closed(self, provider: ProviderSession) -> None:
        """The model's turn is over or cut off: what it answered is open no longer, what was said since is."""
        if not self._asked:
            self._open.pop(provider.name, None)

    def _reply_begins(self) -> None:
        if not self._replying:
            self._replying = True
            self._explained, self._asked = self._asked, False
            self._words_are_due = False

    def _transcript_begins(self, provider: ProviderSession, said: CallerUtterance) -> None:
        """Treat the first words of a transcript as the start of speech, for providers that do not report one.

        Words that arrive while it is not known which turn the model is answering belong to that turn.
        """
        if not provider.setup.profile.reports_speech and not self._replying and self._explained:
            self.barge_in(provider)
        self._asked = not self._replying or self._explained
        self._explained = True
        if not self._words_are_due:
            self._open[provider.name] = said
            provider.reply_is_due = True
        self._words_are_due = False
        self._caller_begins()

    def _caller_begins(self) -> None:
        self._live.sounds()
        if self._live.host is not None:
            self._live.host.caller_speaks()

    def _first_audio(self, provider: ProviderSession) -> bool:
        """The reply becomes audible; returns whether it was not before."""
        log_ = self._live.log
        if "first_audio" in log_.current.stages:
            return False
        log_.stamp("first_audio")
        if (latency := log_.current.latency_ms) is not None:
            self._live.hooks.tell(provider.setup.context, "turn_latency", ms=latency)
        return True

    def _heard_more(self, provider: ProviderSession, index: int, delta: SpeechPartDelta) -> None:
        log_ = self._live.log
        if delta.speaker == "assistant":
            if delta.audio_chunk:
                provider.utterances[index].trace.listened(delta.audio_chunk)
                self._first_audio(provider)
        elif delta.transcript:
            exchange = self._of_turn.get(provider.said[index].turn_id)
            if exchange is not None and "transcript" not in exchange.stages:
                log_.touched(exchange).partials += 1
                log_.stamp("first_partial", exchange)
                if self._live.settings.recalls:
                    self._live.recall.partial(self._live.masked(delta.transcript))
            self._live.sounds()

    def _caller_speaks(self, provider: ProviderSession, item: str | None) -> None:
        self._caller_begins()
        self.barge_in(provider)
        exchange = self._live.log.begin(provider.setup.agent.name)
        self._live.log.stamp("speech_began", exchange)
        self._talking.add(provider.name)
        # speech whose end was never reported gets no transcript either
        waiting = [
            pair for pair in self._untranscribed.get(provider.name, ()) if "speech_ended" in pair[1].stages
        ]
        self._untranscribed[provider.name] = [*waiting, (item, exchange)]

    def _caller_is_silent(self, provider: ProviderSession, item: str | None) -> None:
        self._live.sounds()
        self._talking.discard(provider.name)
        waiting = self._untranscribed.get(provider.name, ())
        self._live.log.stamp("speech_ended", next((begun for name, begun in waiting if name == item), None))
        if not provider.setup.waits_to_be_asked:
            return
        self._owed[provider.name] = self._owed.get(provider.name, 0) + 1
        self._forget_timer(provider)
        wait_s = self._live.settings.transcript_wait_s
        loop = asyncio.get_running_loop()
        # the caller is answered even if the transcript never comes
        self._late[provider.name] = loop.call_later(wait_s, lambda: self._live.spawn(self._ask(provider)))

    def _transcribed_exchange(self, provider: ProviderSession) -> Exchange:
        """The exchange being transcribed now: the first that waits for a transcript, or a new one."""
        if waiting := self._untranscribed.get(provider.name):
            return waiting.pop(0)[1]
        return self._live.log.begin(provider.setup.agent.name)

    def _belongs(self, turn_id: str, exchange: Exchange) -> None:
        self._of_turn.setdefault(turn_id, exchange)
        while len(self._of_turn) > _EXCHANGES:
            del self._of_turn[next(iter(self._of_turn))]

    # -- the end of the caller's turn

    async def _turn_ended(self, provider: ProviderSession, text: str, exchange: Exchange) -> None:
        """Give the model what recall found for the turn, if possible before it answers."""
        try:
            if text.strip():
                if self._live.settings.recalls:
                    await self._recall(provider, text, exchange)
                await self._completed(provider, text)
        finally:
            await self._ask(provider)
            self._live.dirty.set()

    async def _recall(self, provider: ProviderSession, text: str, exchange: Exchange) -> None:
        live = self._live
        live.log.stamp("recall_began", exchange)
        recalled = await live.recall.final(text)
        live.log.touched(exchange).recall = recalled
        live.log.stamp("recalled", exchange)
        live.hooks.tell(
            provider.setup.context,
            "recall",
            outcome=recalled.outcome,
            ready=recalled.ready,
            delay_ms=recalled.delay_ms,
            shown=sum(found.fate == "shown" for found in recalled.found),
        )
        if not recalled.text:
            return
        note = framed("recalled", recalled.text.splitlines())
        if provider.setup.waits_to_be_asked and live.settings.recalls_first:
            try:
                await _tell(provider, note)
            except RealtimeError:
                provider.notes.append(note)  # told after the reconnect
            else:
                live.log.stamp("handed_over", exchange)
        else:
            provider.notes.append(note)

    async def _completed(self, provider: ProviderSession, text: str) -> None:
        hook = provider.setup.agent.on_turn_completed
        if hook is None:
            return
        task = self._live.spawn(_hooked(hook(provider.setup.context, text)))
        if provider.setup.waits_to_be_asked:
            await asyncio.wait({task}, timeout=self._live.settings.recall_deadline_ms / 1000)

    async def _ask(self, provider: ProviderSession) -> None:
        """Ask the model to answer the turn, if it waits to be asked and was not asked yet.

        While the caller goes on speaking, the turn is answered with what they say next.
        """
        self._forget_timer(provider)
        if provider.name in self._talking:
            return
        if not self._owed.pop(provider.name, 0) or not provider.is_open:
            return
        try:
            await provider.session.create_response()
        except Exception as error:  # noqa: BLE001 - the connection may be gone; its session reports why
            self._unasked.add(provider.name)
            log.warning("a reply could not be asked for: %s", type(error).__name__)

    async def _ask_again(self, provider: ProviderSession, notes: list[Note], *, begun: bool) -> None:
        """After a reconnect, ask the model once to answer what the broken connection left unanswered."""
        await _tell_all(provider, notes)
        unasked = provider.name in self._unasked
        self._unasked.discard(provider.name)
        if provider.unsent:
            await _send_typed(provider)  # which asks for a reply
            return
        if provider is not self._live.provider or provider.name not in self._open or not provider.is_open:
            return
        if self._owed.get(provider.name) or provider.is_asked():
            return  # asked for already, or will be once recall results have reached the model
        if not (unasked or provider.setup.profile.carries_audio):
            return  # only this process lost the connection: the reply itself continues
        try:
            if provider.setup.profile.asked_to_reply and not begun:
                await provider.session.create_response()
            else:
                self._asked = True
                if (last := self._said_last(provider)) is not None:
                    await _tell(provider, last)
                await provider.ask(request(GO_ON))
        except Exception as error:  # noqa: BLE001 - broken again: asked after the next reconnect
            log.warning("a reply could not be asked for again: %s", type(error).__name__)

    def _said_last(self, provider: ProviderSession) -> str | None:
        """The caller's last words, which a resumed connection may lack because it is not given the
        history.
        """
        said = self._open.get(provider.name)
        if said is None or not said.text.strip() or provider.setup.profile.asked_to_reply:
            return None
        return framed("meanwhile", [f"The caller said last: {quoted(said.text)}"])

    def _forget_timer(self, provider: ProviderSession) -> None:
        if (timer := self._late.pop(provider.name, None)) is not None:
            timer.cancel()

    # -- tools and the connection

    def _tool(
        self, provider: ProviderSession, event: FunctionToolCallEvent | FunctionToolResultEvent
    ) -> None:
        live, part = self._live, event.part
        live.recorder.seen(event, live.log.current)
        told = {"name": part.tool_name, "call": part.tool_call_id}
        if isinstance(event, FunctionToolCallEvent):
            arguments = event.part.args_as_dict(raise_if_invalid=False)
            live.hooks.tell(provider.setup.context, "tool_call", **told, arguments=arguments)
        else:
            outcome = str(getattr(part, "outcome", "retried"))
            live.hooks.tell(provider.setup.context, "tool_result", **told, outcome=outcome)
            live.spawn(_checked(live))
            self._on_pause()
        live.dirty.set()

    def _control(self, provider: ProviderSession, event: RealtimeEvent) -> None:
        live = self._live
        if isinstance(event, RealtimeTurnCompleteEvent):
            if provider.owes_reply:  # it answered a tool without a word
                provider.owes_reply = self._asked = False
            if not provider.pending_tools():
                self._closed(provider)
            self._replying, self._words_are_due = False, not self._explained
            provider.reply_is_due = self._asked
            notes, provider.notes = provider.notes, []
            if notes:
                live.spawn(_tell_all(provider, notes))
            live.spawn(provider.refresh())
            live.dirty.set()
            self._on_pause()
        elif isinstance(event, RealtimeSessionReconnectEvent):
            self._on_state("reconnecting")
            self._on_state("active")
            live.playback.reconnected()
            begun, self._replying = self._replying, False
            self._untranscribed.pop(provider.name, None)
            if provider.name in self._talking:  # the end of what they were saying is never reported
                self._talking.discard(provider.name)
                self._owed.pop(provider.name, None)
            notes, provider.notes = provider.notes, []
            live.spawn(self._ask_again(provider, notes, begun=begun))
            if begun and not provider.setup.profile.carries_audio:
                self._on_pause()  # the reply goes on, and its end is not reported here
            live.dirty.set()
        elif isinstance(event, RealtimeSessionErrorEvent):
            live.hooks.tell(provider.setup.context, "error", kind=event.code or event.type or "provider")


async def _tell(provider: ProviderSession, note: Note) -> None:
    await provider.session.send(note, respond=False)


async def _tell_all(provider: ProviderSession, notes: list[Note]) -> None:
    try:
        for note in notes:
            await _tell(provider, note)
    except Exception as error:  # noqa: BLE001 - the connection may be gone; the provider session reports why
        log.warning("a note could not be handed over: %s", type(error).__name__)


async def _send_typed(provider: ProviderSession) -> None:
    while provider.unsent:
        text = provider.unsent.pop(0)
        try:
            await provider.ask(text)
        except Exception as error:  # noqa: BLE001 - broken again: sent after the next reconnect
            provider.unsent.insert(0, text)
            log.warning("what was typed could not be sent: %s", type(error).__name__)
            return


async def _hooked(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - somebody else's code
        log.warning("on_turn_completed failed: %s", type(error).__name__)


async def _checked(live: CallState) -> None:
    try:
        if live.recorder.opened is not None:
            await live.recorder.opened.learn_soon()
    except EchoicError as error:
        log.warning("a checkpoint of what is learned failed: %s", type(error).__name__)


def _caption_of(provider: ProviderSession, event: RealtimeEvent) -> Caption | None:
    """The caption of an event, once `provider` has processed it; None if the event adds no words."""
    if isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
        return _words_so_far(provider, event.index, event.part.speaker, final=isinstance(event, PartEndEvent))
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
        if event.delta.transcript is None:
            return None
        return _words_so_far(provider, event.index, event.delta.speaker, final=False)
    return None


def _words_so_far(
    provider: ProviderSession, index: int, speaker: str | None, *, final: bool
) -> Caption | None:
    agent = provider.setup.agent.name
    if speaker == "assistant":
        utterance = provider.utterances.get(index)
        if utterance is None or not utterance.trace.text:
            return None
        return Caption(
            id=utterance.turn_id, speaker="agent", agent=agent, text=utterance.trace.text, final=final
        )
    said = provider.said.get(index)
    if said is None or not said.text:
        return None
    return Caption(id=said.turn_id, speaker="user", agent=agent, text=said.text, final=final)
