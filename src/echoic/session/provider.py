"""One provider session of a call: traces what it says, sends audio to the caller, and passes events on.

A call has one at a time, and two for a moment during a transfer. It always reads PydanticAI's session and
never waits for those it passes events to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    SpeechPart,
    SpeechPartDelta,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.realtime import (
    RealtimeError,
    RealtimeEvent,
    RealtimeModel,
    RealtimeModelProfile,
    RealtimeModelSettings,
    RealtimeSession,
    RealtimeSessionErrorEvent,
    RealtimeSessionReconnectEvent,
    RealtimeTurnCompleteEvent,
    ReconnectPolicy,
)

from echoic.capability import CallerMemory
from echoic.errors import NotOpen
from echoic.memory.checkpoints import PendingTool
from echoic.memory.records import memory_id
from echoic.session.agents import CallContext, ToolGuard, VoiceAgent
from echoic.session.history import as_heard
from echoic.session.playback import Playback, Utterance
from echoic.session.speech_alignment import SpeechTrace, Stamp, lead_of

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

log = logging.getLogger(__name__)

RECONNECT: Final[ReconnectPolicy] = {"max_attempts": 5, "base_delay": 0.2, "max_delay": 5.0}
"""A call survives a network outage of a few seconds."""
_MANUAL: Final = frozenset({"openai", "azure"})
"""Providers that can detect the end of a turn but reply only when asked."""
_THRESHOLDS: Final = {"low": 0.7, "medium": 0.5, "high": 0.3}
"""By sensitivity, the threshold that PydanticAI documents for these providers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProfile:
    """The properties of a realtime model that a session depends on."""

    provider: str
    input_hz: int
    """Sample rate of the PCM16 audio the model accepts."""
    output_hz: int
    """Sample rate of the PCM16 audio the model produces."""
    asked_to_reply: bool
    """Whether it can wait to be asked for a reply, so that recall results reach it first."""
    can_cut: bool
    """Whether it must be told to stop, and where playback stopped, when the caller interrupts."""
    reports_speech: bool
    """Whether it reports that the caller began to speak; otherwise it reports interruptions."""
    takes_notes: bool
    """Whether it accepts a note while it generates a reply, which a note would end otherwise."""
    carries_audio: bool = True
    """Whether audio goes through the session; otherwise directly between provider and caller."""

    @classmethod
    def of(cls, model: RealtimeModel) -> ProviderProfile:
        known: RealtimeModelProfile = model.profile
        manual = bool(known.get("supports_manual_turn_control"))
        return cls(
            provider=model.system,
            input_hz=model.audio_input_sample_rate,
            output_hz=model.audio_output_sample_rate,
            asked_to_reply=manual and model.system in _MANUAL,
            can_cut=bool(known.get("supports_interruption")),
            reports_speech=bool(known.get("emits_input_speech_events")),
            takes_notes=bool(known.get("supports_system_messages")),
        )

    def beside(self) -> ProviderProfile:
        """The profile of the same model on a WebRTC call, where the provider knows where playback stopped."""
        return replace(self, carries_audio=False, can_cut=False)

    def settings(
        self,
        given: RealtimeModelSettings | None,
        *,
        recall_first: bool,
        own: RealtimeModelSettings | None = None,
    ) -> RealtimeModelSettings:
        """Model settings for opening a session; `given` takes precedence, then the model's `own`.

        If `recall_first`, the model waits to be asked for a reply, if it can and detects turns.
        """
        merged: dict[str, Any] = {"reconnect": RECONNECT}
        if recall_first and self.asked_to_reply:
            detection = _detection({**(own or {}), **(given or {})})
            if detection is not None:
                merged["openai_turn_detection"] = {**detection, "create_response": False}
        merged |= given or {}
        return cast("RealtimeModelSettings", merged)


def _detection(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How OpenAI and Azure detect turns with these settings, as PydanticAI reads them; None: not at all."""
    if "openai_turn_detection" in settings:
        return cast("Mapping[str, Any] | None", settings["openai_turn_detection"])
    general = settings.get("turn_detection", True)
    if general is False:
        return None
    knobs = {} if general is True else dict(general)
    if "sensitivity" in knobs:
        knobs["threshold"] = _THRESHOLDS[knobs.pop("sensitivity")]
    return {"type": "server_vad", **knobs}


def waits_to_be_asked(settings: RealtimeModelSettings) -> bool:
    """Whether a session opened with these settings replies only when asked."""
    detection = dict(settings).get("openai_turn_detection")
    return isinstance(detection, dict) and detection.get("create_response") is False


_PATIENCE_S: Final = 1.0
"""How long audio may wait for the event that names its utterance."""
_STOP_S: Final = 3.0
_LOOK_S: Final = 0.02
_WHILE_SENDING: Final = "connection failed while sending"
"""PydanticAI's message when a background task finds the connection broken before its reader does."""
_REFUSED: Final = "already being iterated"
"""PydanticAI's message when something else iterates over the session: it does not end by trying again."""


Note = str | SystemPromptPart
"""What a model is told without being asked to reply: data as the user, or an instruction of the operator."""


@dataclass(slots=True, eq=False)
class CallerUtterance:
    """One utterance of the caller, spoken or typed, as far as it is transcribed."""

    turn_id: str
    text: str = ""
    final: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSetup:
    """The arguments with which a provider session is opened."""

    agent: VoiceAgent
    context: CallContext
    memory: CallerMemory | None
    """None if the agent has no memory."""
    tool_guard: ToolGuard
    profile: ProviderProfile
    waits_to_be_asked: bool
    """Whether the model replies only when asked."""
    opening: AbstractAsyncContextManager[RealtimeSession]
    behind: Sequence[ModelMessage] = ()
    """Messages of the history that the provider already has, so they are not sent again."""
    opening_texts: list[tuple[str, str]] = field(default_factory=list)
    """The initial instructions by name."""

    @property
    def block(self) -> str:
        """The memory block as the model has it now."""
        return "" if self.memory is None else "\n".join(self.memory.texts.values())


class ProviderSession:
    """One provider session: `open`, talk through `session`, then `stop`.

    `name` is unique among the provider sessions of all calls. `on_event` is called with each event after the
    session has processed it, and must not wait.
    """

    def __init__(
        self,
        name: str,
        setup: ProviderSetup,
        playback: Playback,
        on_event: Callable[[ProviderSession, RealtimeEvent], None],
    ) -> None:
        self.name = name
        self.setup = setup
        self.utterances: dict[int, Utterance] = {}
        """The agent's utterances, by index of the part."""
        self.said: dict[int, CallerUtterance] = {}
        """The caller's utterances, likewise; typed ones have negative numbers."""
        self.kept = 0
        """How many parts of its history were processed into turns."""
        self.notes: list[Note] = []
        """Notes that wait for the end of the model's turn."""
        self.unsent: list[str] = []
        """What the caller typed while the connection was down."""
        self.speaking = False
        """Whether the model is in a turn."""
        self.reply_is_due = False
        """Whether something was said or requested that no complete turn of the model has answered yet."""
        self.ended: asyncio.Event = asyncio.Event()
        self.error: BaseException | None = None
        """Why it ended unasked, if it did."""
        self.before: ProviderSession | None = None
        """The session whose history this one continues, on the same call of the provider."""
        self.owes_reply = False
        """Whether a tool has answered, and the model has neither spoken nor ended its turn since."""
        self._playback = playback
        self._on_event = on_event
        self._session: RealtimeSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._sounding: dict[int, tuple[Utterance, bytes]] = {}
        self._came = asyncio.Event()
        self._carried = 0
        self._calls: dict[str, ToolCallPart] = {}
        """Tool calls in progress."""
        self._stopping = False
        self.silent = False
        """Whether events are ignored, because another provider session follows the same call."""
        self.interrupting: asyncio.Task[None] | None = None
        """The last telling of an interruption, under way or over; see `ask`."""

    @property
    def session(self) -> RealtimeSession:
        """PydanticAI's session; raises `NotOpen` if there is none."""
        if self._session is None or self._session.closed:
            raise NotOpen("the connection to the provider is closed")
        return self._session

    @property
    def is_open(self) -> bool:
        return self._session is not None and not self._session.closed

    async def open(self) -> None:
        """Connect; raises `RealtimeError` if the provider refuses or cannot be reached."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready), name=f"echoic-provider-{self.setup.agent.name}")
        try:
            await ready
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Disconnect and finish what was in progress. May be called twice."""
        self._stopping = True
        self.setup.tool_guard.stop()
        if self._session is not None:
            with contextlib.suppress(Exception, TimeoutError):  # nobody waits for what it still reports
                async with asyncio.timeout(_STOP_S):
                    await self._session.close()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_STOP_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def refresh(self) -> None:
        """Look up what the agent is to know, and tell the model now what changed, unless it is speaking or a
        note would end its reply.

        That also happens after each response, but a change learned just after one would miss the next
        response.
        """
        memory = self.setup.memory
        if memory is None:
            return
        await memory.refresh()
        if self.is_open and not (self.speaking or self.holds_notes):
            await memory.tell(self.session)

    @property
    def holds_notes(self) -> bool:
        """Whether notes wait for the end of the model's turn, since one would end its reply."""
        return not self.setup.profile.takes_notes and (self.speaking or self.reply_is_due)

    def is_asked(self) -> bool:
        """Whether PydanticAI itself asked, after a reconnect, for a reply that the old connection had not
        begun.

        PydanticAI keeps this private; `tests/session/test_reconnect.py` fails if an upgrade moves it.
        """
        connection = getattr(self._session, "_connection", None)
        typed = getattr(connection, "_uncovered_typed_turns", ())
        return bool(getattr(connection, "_response_active", False) or typed)

    def new_messages(self) -> Sequence[ModelMessage]:
        """The messages of this provider session, in spoken order."""
        return self._session.new_messages() if self._session is not None else ()

    def all_messages(self) -> Sequence[ModelMessage]:
        """The messages the session was opened with, and those since."""
        return self._session.all_messages() if self._session is not None else ()

    def heard_messages(self, *, so_far: bool = False) -> list[ModelMessage]:
        """All messages, with agents' words only as far as they were heard; see `as_heard`."""
        everything, new = self.all_messages(), self.new_messages()
        seeded = everything[: len(everything) - len(new)]
        before = self.setup.behind if self.before is None else self.before.heard_messages(so_far=so_far)
        return [*before, *seeded, *as_heard(new, self.utterances.values(), so_far=so_far)]

    def pending_tools(self) -> tuple[PendingTool, ...]:
        answered: set[str] = set()
        calls = dict(self._calls)  # an unfinished response is not in the history yet
        for message in self.all_messages():
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    calls[part.tool_call_id] = part
                elif isinstance(part, ToolReturnPart):
                    answered.add(part.tool_call_id)
        return tuple(self._pending(call) for name, call in calls.items() if name not in answered)

    def cut(self, unplayed: int) -> Coroutine[Any, Any, None] | None:
        """Mark what is still being said as cut off; returns how the provider is told, where it must be.

        `unplayed` is how many bytes of this session's audio were sent to the caller and not played.
        """
        for utterance in self.utterances.values():
            utterance.cut = utterance.cut or not utterance.settled
        if not self.is_open:
            return None
        if not self.setup.profile.carries_audio:  # the provider knows where playback stopped
            return self._interrupt()
        if self.setup.profile.can_cut:
            return self._interrupt(played_bytes=max(0, self._carried - unplayed))
        return None

    async def ask(self, content: str | Note) -> None:
        """Send what the model replies to, once an interruption before it was told: that would end the reply.

        Raises:
            RealtimeError: the connection is lost.
        """
        if self.interrupting is not None:
            await asyncio.wait({self.interrupting})
        await self.session.send(content, respond=True)

    @property
    def unheard(self) -> bool:
        """Whether more of what it says may be heard, also where its audio is still on the way to playback."""
        return self.speaking or not all(said.settled for said in self.utterances.values())

    def unplayed(self) -> int:
        """Bytes that were sent to the caller, were not played, and may still be."""
        return sum(said.fed_bytes - said.played_bytes for said in self.utterances.values() if not said.cut)

    # -- inside

    def _pending(self, call: ToolCallPart) -> PendingTool:
        idempotent = call.tool_name in self.setup.agent.idempotent
        return PendingTool(
            call=call.tool_call_id,
            name=call.tool_name,
            arguments=call.args_as_dict(raise_if_invalid=False),
            idempotent=idempotent,
        )

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with _read_to_the_end(self.setup.opening) as session:
                self._session = session
                if self.setup.memory is not None:
                    await self.setup.memory.tell(session)  # before anything else is said
                if ready.cancelled():  # whoever opened it hung up meanwhile
                    return
                carrier = asyncio.create_task(self._carry(session))
                ready.set_result(None)
                try:
                    await self._iterate(session)
                finally:
                    carrier.cancel()
                    await asyncio.gather(carrier, return_exceptions=True)
        except Exception as error:  # noqa: BLE001 - the outermost frame of the session; the call decides
            self.error = error
            if not ready.done():
                ready.set_exception(error)
        finally:
            self.ended.set()

    async def _iterate(self, session: RealtimeSession) -> None:
        """Iterate over events until the session ends. Failures other than the connection's are logged and
        skipped.
        """
        while not session.closed:
            try:
                async for event in session:
                    if not self.silent:
                        self._handle(event)
            except RealtimeError as error:
                # the reader notices a failed send too, and reconnects
                if _WHILE_SENDING not in str(error) or self._is_over(session):
                    raise
                log.warning("on a call: a line broke while something was sent")
            except Exception as error:
                if self._stopping or session.closed:
                    return
                log.warning("on a call: %s", type(error).__name__)
                self.error = error
                if _is_exhausted(session) or _REFUSED in str(error):
                    raise
                await asyncio.sleep(0)  # an iterator that fails at once would let nothing else run
            else:
                return

    def _handle(self, event: RealtimeEvent) -> None:
        """Process one event. One that cannot be processed is skipped, since an exception would leave
        PydanticAI's iterator open, which no second one may follow.
        """
        try:
            self._take(event)
            self._on_event(self, event)
        except Exception as error:  # noqa: BLE001 - the events that follow do not depend on it
            kind = type(error).__name__
            log.warning("an event of a call could not be handled: %s", kind)
            with contextlib.suppress(Exception):
                self._on_event(self, RealtimeSessionErrorEvent(message="", type=kind, recoverable=True))

    @property
    def may_return(self) -> bool:
        """Whether a connection that is down now may be restored."""
        return self._session is not None and not self._is_over(self._session)

    def _is_over(self, session: RealtimeSession) -> bool:
        return self._stopping or session.closed or _is_exhausted(session)

    def _take(self, event: RealtimeEvent) -> None:
        if isinstance(event, (PartStartEvent, PartEndEvent)) and isinstance(event.part, SpeechPart):
            self._take_part(event.index, event.part, ended=isinstance(event, PartEndEvent))
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, SpeechPartDelta):
            if event.delta.speaker == "assistant":
                self._trace(self._utterance(event.index), event.delta)
            elif event.delta.transcript is not None:
                self._saying(event.index).text = event.delta.transcript
        elif isinstance(event, FunctionToolCallEvent):
            self._calls[event.part.tool_call_id] = event.part
        elif isinstance(event, FunctionToolResultEvent):
            self._calls.pop(event.part.tool_call_id, None)
            self.owes_reply = True
        elif isinstance(event, (RealtimeTurnCompleteEvent, RealtimeSessionReconnectEvent)):
            self.speaking = False  # a reply cut off by a broken connection reports no end

    def _take_part(self, index: int, part: SpeechPart, *, ended: bool) -> None:
        if part.speaker == "assistant":
            utterance = self._utterance(index)
            utterance.item = part.id or utterance.item
            self._playback.announced(utterance)
            if ended:
                self._end(utterance, part)
            else:
                self.speaking, self.owes_reply = True, False
        else:
            said = self._saying(index)
            said.text, said.final = part.transcript or said.text, said.final or ended

    def typed(self, text: str) -> CallerUtterance:
        number = -1 - sum(index < 0 for index in self.said)
        said = self.said[number] = CallerUtterance(
            memory_id("turn", self.name, "user", str(number)), text, final=True
        )
        return said

    def _saying(self, index: int) -> CallerUtterance:
        if index not in self.said:
            self.said[index] = CallerUtterance(memory_id("turn", self.name, "user", str(index)))
        return self.said[index]

    def _utterance(self, index: int) -> Utterance:
        known = self.utterances.get(index)
        if known is None:
            trace = SpeechTrace(self.setup.profile.output_hz)
            name = memory_id("turn", self.name, "agent", str(index))
            known = self.utterances[index] = Utterance(name, self.setup.agent.name, trace)
            whole = [lead_of(said.trace) for said in self.utterances.values() if said.ended]
            leads = [lead for lead in whole if lead is not None]
            known.lead_ms = sum(leads) / len(leads) if leads else None
        return known

    def _trace(self, utterance: Utterance, delta: SpeechPartDelta) -> None:
        if delta.transcript is not None:
            utterance.trace.wrote(delta.transcript)
        for stamp in delta.timestamps or ():
            end_ms = stamp.start_ms + stamp.duration_ms
            utterance.trace.stamps.append(Stamp(text=stamp.text, start_ms=stamp.start_ms, end_ms=end_ms))
        if delta.audio_chunk:
            utterance.trace.sounded(len(delta.audio_chunk))
            self._sounding[id(delta.audio_chunk)] = (utterance, delta.audio_chunk)
            self._came.set()

    def _end(self, utterance: Utterance, part: SpeechPart) -> None:
        if part.transcript:
            utterance.trace.wrote(part.transcript)
        utterance.trace.complete = utterance.trace.complete or not utterance.cut
        utterance.ended = True
        self._playback.finished(utterance)

    async def _interrupt(self, **played: int) -> None:
        """Tell the provider of an interruption, in case it did not notice it itself."""
        try:
            await self.session.interrupt(**played)
        except Exception as error:  # noqa: BLE001 - the connection may be gone; its task reports why
            log.warning("the provider could not be told of an interruption: %s", type(error).__name__)

    async def _carry(self, session: RealtimeSession) -> None:
        if not self.setup.profile.carries_audio:
            return
        async for chunk in session.stream_audio():
            utterance = await self._whose(chunk)
            self._carried += len(chunk)
            if utterance is not None:
                self._playback.feed(utterance, chunk)

    async def _whose(self, chunk: bytes) -> Utterance | None:
        """The utterance a chunk belongs to: events and audio carry the same objects."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                while id(chunk) not in self._sounding:
                    self._came.clear()
                    await self._came.wait()
        if id(chunk) not in self._sounding:
            return next(reversed(self.utterances.values()), None)
        for name in list(self._sounding):
            utterance, _ = self._sounding.pop(name)
            if name == id(chunk):
                return utterance
        return None


def _is_exhausted(session: RealtimeSession) -> bool:
    return bool(getattr(session, "_stream_exhausted", False))


@contextlib.asynccontextmanager
async def _read_to_the_end(
    opening: AbstractAsyncContextManager[RealtimeSession],
) -> AsyncIterator[RealtimeSession]:
    """`opening`, whose WebSocket is still read while it is being closed.

    The client stops reading at 16 unread messages. A reply in full flow reaches that as soon as PydanticAI's
    reader has ended, and the provider's answer to the close frame would be waited for in vain.
    """
    discarding: asyncio.Task[None] | None = None
    try:
        async with opening as session:
            try:
                yield session
            finally:
                discarding = asyncio.create_task(_discard(session))
    finally:
        if discarding is not None:
            discarding.cancel()
            await asyncio.gather(discarding, return_exceptions=True)


async def _discard(session: RealtimeSession) -> None:
    """Read the session's WebSocket until it is closed, and close it if this is cancelled.

    PydanticAI keeps the socket private; `tests/session/test_provider_session.py` fails if that moves.
    """
    from websockets.exceptions import ConcurrencyError, ConnectionClosed

    socket = socket_of(session)
    if socket is None:
        return
    try:
        while True:
            try:
                await socket.recv(decode=False)
            except ConcurrencyError:  # PydanticAI's reader has not ended yet
                await asyncio.sleep(_LOOK_S)
    except ConnectionClosed:
        return
    except BaseException:
        socket.transport.abort()
        raise


def socket_of(session: RealtimeSession) -> ClientConnection | None:
    """The WebSocket of PydanticAI's session, on Gemini that of Google's client."""
    connection = getattr(session, "_connection", None)
    socket = getattr(connection, "_ws", None)
    return socket or getattr(getattr(connection, "_session", None), "_ws", None)
