"""A call whose audio goes to a voice model and back: Twilio Media Streams and a PydanticAI realtime session.

Protocol: Twilio's "Media Streams WebSocket messages". In: connected, start, media, mark, stop. Out: media,
mark, clear. Audio is mu-law at 8 kHz. A mark comes back when what was sent before it has been played: that is
the playback clock, and what was not played when the caller cut in is neither history nor memory.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from contextlib import suppress
from typing import Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    PartStartEvent,
    RealtimeInputSpeechStartEvent,
    RealtimeInputTranscriptionErrorEvent,
    RealtimeTurnCompleteEvent,
    SpeechPart,
    SystemPromptPart,
)
from pydantic_ai.realtime.model import RealtimeError
from starlette.websockets import WebSocket

from echoic.adapters.audio import (
    TELEPHONE_HZ,
    Resampler,
    mulaw_decode,
    mulaw_encode,
    pcm_of,
    samples_of,
)
from echoic.adapters.twilio.identity_claims import CODE_DIGITS
from echoic.adapters.twilio.phone import Phone
from echoic.adapters.twilio.phone_call import PhoneCall
from echoic.adapters.twilio.phone_tools import AnotherCaller
from echoic.adapters.twilio.relay import closed, expect_another, messages, opened_socket, sent
from echoic.capability.runner import history_of
from echoic.session.heard import estimated_part

log = logging.getLogger(__name__)

PIECE_MS: Final = 100
"""Of audio between two marks: what was heard is known to a word."""
AHEAD_MS: Final = 400
"""Of audio at most on its way: enough for a bad moment of the network, and little to throw away."""
_START_S: Final = 10.0
_LAST_WORDS_S: Final = 1.0
"""How long a model may take to stop once the caller has hung up: until then its words are not all known."""
_FAREWELL_S: Final = 20.0
"""How long a model may take to say good-bye once it asked to hang up."""
_SAY: Final = "Say this to the caller now, in these words, and nothing else: {words}"
_SESSIONS: Final = 5
"""Voice sessions at most in one call: each new one is because somebody else speaks."""


async def serve_media(phone: Phone, socket: WebSocket, token: str) -> None:
    """Serve one socket until it ends."""
    call = await opened_socket(phone, socket, token)
    if call is None:
        return
    stream = await _started(socket, call)
    if stream is None or phone.realtime is None:
        why = "it does not begin" if stream is None else "no voice model is set"
        log.warning("a stream was refused: %s", why)
        await closed(socket, 1008)
        return
    call.lines += 1
    try:
        await Bridge(phone, call, socket, stream).run()
        if call.leaving.is_set():  # before the socket closes: it is asked then whether the call goes on
            await call.hang_up()
    finally:
        call.lines -= 1
        await closed(socket)
    expect_another(phone, call)


async def _started(socket: WebSocket, call: PhoneCall) -> str | None:
    """The id of the stream, once it has begun; None: it is not this call's."""
    for _ in range(2):
        message = await messages(socket, _START_S)
        start = (message or {}).get("start")
        if isinstance(start, dict):
            name = start.get("streamSid")
            return name if isinstance(name, str) and start.get("callSid") == call.sid else None
    return None


class Bridge:
    """Audio both ways between one socket and a voice model."""

    def __init__(self, phone: Phone, call: PhoneCall, socket: WebSocket, stream: str) -> None:
        self._phone = phone
        self._call = call
        self._socket = socket
        self._stream = stream
        self._sent = self._played = 0  # bytes of the model's audio
        self._era = 0  # how often what was on its way was thrown away
        self._marked = asyncio.Event()
        self._silent = asyncio.Event()  # the model is not saying anything
        self._noted = 0
        self._unheard = 0
        """How often the recogniser gave up on what the caller said, and it was not passed over yet."""
        self._session: Any = None
        self._line: asyncio.Task[None] | None = None
        self._keys = ""
        self._keyed = 0
        self._other = asyncio.Event()  # by the keys they pressed the caller proved to be somebody else
        self._up: Resampler | None = None

    async def run(self) -> None:
        """Until the socket ends; another session of the model for every other caller."""
        await asyncio.shield(self._call.opened)
        self._line = asyncio.ensure_future(self._listen())
        # on another socket, or in another process, the call goes on; whoever else speaks begins anew
        before = history_of(self._call.recorder.turns)
        try:
            for _ in range(_SESSIONS):
                if await self._serve(before):
                    return
                before = []
        finally:
            self._line.cancel()
            await asyncio.wait({self._line})

    async def _serve(self, before: list[ModelMessage]) -> bool:
        """One session, of a model that knows what was said `before`; whether the call is over with it."""
        assert self._line is not None
        call, model = self._call, self._phone.realtime
        assert model is not None
        live = self._phone.agent.realtime(
            model,
            deps=call.talk.deps,
            capabilities=call.capabilities(),
            conversation_id=call.name,
            instructions=call.talk.instructions,
            message_history=before or None,
            usage=call.talk.usage,
        )
        self._noted = self._sent = self._played = self._unheard = 0
        self._silent.set()
        self._other.clear()
        try:
            async with live.session() as session:
                self._session = session
                self._up = Resampler(TELEPHONE_HZ, session.audio_input_sample_rate)
                await self._tell(session, respond=True)
                watch = asyncio.ensure_future(self._watch(session))
                speak = asyncio.ensure_future(self._speak(session))
                other = asyncio.ensure_future(self._other.wait())
                leave = asyncio.ensure_future(self._last_words(session))
                working = {watch, speak, self._line, other, leave}
                await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                self._session = None
                left = leave.done()
                if self._line.done() and not speak.done() and not left:
                    with suppress(RealtimeError, UserError, TimeoutError):
                        async with asyncio.timeout(_LAST_WORDS_S):
                            await self._hung_up(session)
                for task in (watch, speak, other, leave):
                    task.cancel()
                ended = await asyncio.gather(watch, speak, leave, return_exceptions=True)
                if self._line.done() or left:
                    await self._note(session.all_messages(), final=True)
                for error in ended:
                    if isinstance(error, Exception):
                        raise error
        except AnotherCaller as found:
            await call.is_another(found)
            await self._clear()
            return False
        except (RealtimeError, UserError) as error:
            log.error("a voice session failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
            return True
        else:
            return (
                self._line.done() or left or (watch.done() and not watch.cancelled() and not watch.result())
            )

    async def _last_words(self, session: Any) -> None:
        """Until the agent has asked to hang up and its last words were played; a caller who cuts in stays."""
        leaving = self._call.leaving
        while True:
            await leaving.wait()
            with suppress(TimeoutError):  # a model that says nothing more keeps no line
                async with asyncio.timeout(_FAREWELL_S):
                    await session.wait_for_reply()
            await session.wait_for_playback()
            await self._room(0)
            if leaving.is_set():
                return

    async def _listen(self) -> None:
        """From the caller to the model."""
        while (message := await messages(self._socket)) is not None:
            kind = message.get("event")
            if kind == "media":
                await self._heard(message)
            elif kind == "mark":
                mark = message.get("mark")
                self._mark(str(mark.get("name", "")) if isinstance(mark, dict) else "")
            elif kind == "dtmf":
                pressed = message.get("dtmf")
                await self._key(str(pressed.get("digit", "")) if isinstance(pressed, dict) else "")
            elif kind == "stop":
                return

    async def _key(self, digit: str) -> None:
        """Gather keys: so many as a PIN or a code has are one, which the model never hears."""
        self._call.touched = time.monotonic()
        self._call.leaving.clear()
        self._keys = self._keys + digit if digit in set("0123456789") else ""
        if len(self._keys) < CODE_DIGITS:
            return
        keys, self._keys = self._keys, ""
        self._keyed += 1
        if not await self._call.overheard(keys, f"{id(self):x}-keys{self._keyed}"):
            await self._clear()
            self._other.set()
        elif self._session is not None:
            await self._tell(self._session, respond=True)

    async def _tell(self, session: Any, *, respond: bool) -> None:
        """Have the model say what the phone itself answers to a proof."""
        words, self._call.to_say = self._call.to_say, ""
        if words:
            with suppress(RealtimeError, UserError):
                await session.send(SystemPromptPart(_SAY.format(words=words)), respond=respond)

    async def _heard(self, message: dict[str, Any]) -> None:
        self._call.touched = time.monotonic()
        media = message.get("media")
        if self._session is None or self._up is None or not isinstance(media, dict):
            return
        try:
            audio = base64.b64decode(str(media.get("payload", "")), validate=True)
        except (binascii.Error, ValueError):
            return
        with suppress(UserError):  # the session is just ending
            await self._session.send_audio(pcm_of(self._up(mulaw_decode(audio))))

    def _mark(self, name: str) -> None:
        era, _, position = name.partition(":")
        # a clear makes all marks that were waiting come back, though nothing was played
        if era == str(self._era) and position.isdecimal():
            self._played = max(self._played, min(int(position), self._sent))
            self._marked.set()

    async def _speak(self, session: Any) -> None:
        """From the model to the caller, no more ahead than can be taken back."""
        rate = session.audio_output_sample_rate
        down = Resampler(rate, TELEPHONE_HZ)
        size = rate * PIECE_MS // 1000 * 2
        async for pcm in session.stream_audio():
            era = self._era
            for at in range(0, len(pcm), size):
                piece = pcm[at : at + size]
                await self._room(rate)
                if era != self._era:
                    # the caller cut in: the rest of it is not said, but was taken out of the stream
                    self._sent += len(pcm) - at
                    self._played = self._sent
                    break
                self._sent += len(piece)
                await self._send("media", media={"payload": _text(mulaw_encode(down(samples_of(piece))))})
                await self._send("mark", mark={"name": f"{self._era}:{self._sent}"})

    async def _room(self, rate: int) -> None:
        """Wait until so little is on its way that more may be sent."""
        while self._sent - self._played > rate * AHEAD_MS // 1000 * 2:
            self._marked.clear()
            try:
                async with asyncio.timeout(AHEAD_MS / 1000 + 1):
                    await self._marked.wait()
            except TimeoutError:  # a mark got lost: by now all of it was played
                self._played = self._sent

    async def _watch(self, session: Any) -> bool:
        """Follow the session; whether the caller stayed the same to its end."""
        async for event in session:
            if isinstance(event, RealtimeInputSpeechStartEvent):
                await self._cut_in(session)
            elif isinstance(event, RealtimeInputTranscriptionErrorEvent):
                self._unheard += 1
            elif isinstance(event, RealtimeTurnCompleteEvent):
                self._silent.set()
            elif isinstance(event, PartStartEvent) and _is_models(event.part):
                self._silent.clear()
            if not await self._note(session.all_messages(), final=False):
                await self._clear()
                return True
            await self._tell(session, respond=False)  # it is answering what it heard already
        return False

    async def _cut_in(self, session: Any) -> None:
        """The caller speaks: what is on its way is taken back, and the model is told what was played."""
        self._call.leaving.clear()
        played, self._played = self._played, self._sent
        await self._clear()
        await session.interrupt(played_bytes=played)

    async def _hung_up(self, session: Any) -> None:
        """What was not played was not heard; what was being said is known once the model has stopped."""
        little = 2 * PIECE_MS * session.audio_output_sample_rate * 2 // 1000
        if self._silent.is_set() and self._sent - self._played <= little:
            return  # the last mark was on its way
        played = self._played
        while not await session.interrupt(played_bytes=played) and not self._silent.is_set():
            with suppress(TimeoutError):  # all there is was played: what comes next was not
                await asyncio.wait_for(self._silent.wait(), PIECE_MS / 1000)
        await self._silent.wait()

    async def _clear(self) -> None:
        self._era += 1
        self._marked.set()
        await self._send("clear")

    async def _note(self, history: list[ModelMessage], *, final: bool) -> bool:
        """Keep what was said and heard, as far as it is settled; whether it is still the same caller.

        The model's words are settled once the caller spoke again, or the call is over.
        """
        spoken = [part for message in history for part in message.parts if isinstance(part, SpeechPart)]
        last_user = max((n for n, part in enumerate(spoken) if part.speaker == "user"), default=-1)
        settled = len(spoken) if final else last_user + 1
        while self._noted < settled:
            part, turn = spoken[self._noted], f"{id(self):x}-{self._noted}"
            if _is_wordless(part):
                # it is not told whose words will not come: known once nobody else's are waited for
                if not final and sum(map(_is_wordless, spoken[self._noted :])) > self._unheard:
                    return True
                self._unheard -= 1
            if part.speaker != "user":
                cut = part.interrupted_at_ms is not None
                await self._call.spoke(self._heard_of(part), turn, interrupted=cut)
            elif part.transcript and not await self._call.overheard(part.transcript, turn):
                self._noted += 1
                return False
            self._noted += 1  # not before: at a hang-up this is cancelled, and what was not kept comes again
        return True

    def _heard_of(self, part: SpeechPart) -> str:
        """The words of `part` that were played: by their times where the provider gives them."""
        words = part.transcript or ""
        if part.interrupted_at_ms is None:
            return words
        speed = self._phone.settings.pace.characters_per_s
        return estimated_part(words, part.interrupted_at_ms / 1000, speed)

    async def _send(self, event: str, **fields: Any) -> None:
        await sent(self._socket, {"event": event, "streamSid": self._stream, **fields})


def _is_models(part: object) -> bool:
    return isinstance(part, SpeechPart) and part.speaker == "assistant"


def _is_wordless(part: SpeechPart) -> bool:
    return part.speaker == "user" and part.transcript is None


def _text(audio: bytes) -> str:
    return base64.b64encode(audio).decode()
