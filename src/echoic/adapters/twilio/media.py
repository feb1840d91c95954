"""Twilio Media Streams as a transport of a voice session: audio from a telephone to a voice model, and back.

The protocol is Twilio's "Media Streams WebSocket messages". Received: connected, start, media, mark, dtmf,
stop. Sent: media, mark, clear. Twilio returns a mark once the audio sent before it has been played, so marks
tell the session what the caller has heard.

Audio is mu-law (ITU-T G.711) at 8 kHz, converted to and from 16 and 24 kHz with numpy. A `Resampler` converts
a stream of 16-bit mono samples: its output does not depend on how the input is split into chunks, and
frequencies above half the lower rate are filtered out, so nothing aliases.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections import deque
from contextlib import suppress
from math import gcd
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.realtime import RealtimeError
from starlette.websockets import WebSocket

from echoic.adapters.twilio.phone import Phone, PhoneCall
from echoic.adapters.twilio.proofs import CODE_DIGITS
from echoic.adapters.twilio.relay import closed, expect_another, messages, opened_socket, sent
from echoic.errors import EchoicError, InvalidInput, NotOpen, brief
from echoic.session import Frame, VoiceSession
from echoic.session.playback import SAMPLE_BYTES

Samples = NDArray[np.int16]
"""Shape (n,): mono, -32768 to 32767."""

TELEPHONE_HZ: Final = 8000
KEYS_S: Final = 10.0
"""Seconds after which a key begins anew: long enough to look up the rest of a code."""
SILENCE: Final = b"\xff"
"""One sample of silence in mu-law: G.711 sends all ones for 0."""

_BIAS: Final = 0x84
_ZERO_CROSSINGS: Final = 32
"""Zero crossings of the sinc filter on each side: a transition band of 630 Hz at 8 kHz, a delay of 4 ms."""
_CUTOFF: Final = 0.92
"""The middle of the transition band, as a share of half the lower rate: 3.4 kHz pass at 8 kHz."""
_KAISER_BETA: Final = 8.0
"""Side lobes 80 dB down (Kaiser 1974): below the noise of the 8-bit code."""


def _decoding() -> Samples:
    code = ~np.arange(256, dtype=np.uint8)
    magnitude = (((code & 0x0F).astype(np.int32) << 3) + _BIAS << ((code & 0x70) >> 4)) - _BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _encoding() -> NDArray[np.uint8]:
    """The mu-law code of each 16-bit sample, at index sample + 32768; the two lowest bits are dropped."""
    value = np.arange(-32768, 32768, dtype=np.int32) >> 2
    magnitude = np.minimum(np.abs(value) + 33, 8191)
    segment = np.floor(np.log2(magnitude)).astype(np.int32) - 5
    sign = (value < 0).astype(np.int32) << 7
    code = sign | (segment << 4) | ((magnitude >> (segment + 1)) & 0x0F)
    return np.asarray(~code & 0xFF, np.uint8)


_DECODED: Final = _decoding()
_ENCODED: Final = _encoding()


def mulaw_decode(data: bytes) -> Samples:
    """Decode mu-law: shape (len(data),), one sample for each byte."""
    return _DECODED[np.frombuffer(data, np.uint8)]


def mulaw_encode(samples: Samples) -> bytes:
    """Encode 16-bit `samples` as mu-law, one byte for each sample."""
    return _ENCODED[samples.astype(np.int32) + 32768].tobytes()


def samples_of(pcm: bytes) -> Samples:
    """Decode little-endian 16-bit PCM: shape (len(data) // 2,); raises `InvalidInput` for half a sample."""
    if len(pcm) % 2:
        raise InvalidInput(f"16-bit audio has an even number of bytes, not {len(pcm)}")
    return np.frombuffer(pcm, "<i2").astype(np.int16)


def pcm_of(samples: Samples) -> bytes:
    """Encode `samples` as little-endian 16-bit PCM, two bytes for each sample."""
    return samples.astype("<i2").tobytes()


class Resampler:
    """Converts a stream of samples from one rate to another with a windowed sinc filter of linear phase.

    Raises:
        InvalidInput: a rate that is not a whole number above 0.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        if not (isinstance(from_hz, int) and isinstance(to_hz, int) and from_hz > 0 and to_hz > 0):
            raise InvalidInput(
                f"rates must be whole numbers of Hz above 0, not {brief(from_hz)} and {brief(to_hz)}"
            )
        common = gcd(from_hz, to_hz)
        self._up, self._down = to_hz // common, from_hz // common
        self.delay_s = 0.0 if self._same else _ZERO_CROSSINGS / min(from_hz, to_hz)
        """The delay of the output behind the input, in seconds."""
        self._taps = np.ones(1) if self._same else _lowpass(self._up, self._down)
        self._before = np.zeros(len(self._taps) - 1)
        self._skip = 0

    @property
    def _same(self) -> bool:
        return self._up == self._down

    def __call__(self, samples: Samples) -> Samples:
        """Convert the next `samples` of the stream, shape (n,). The result may be empty."""
        if self._same:
            return samples
        spread = np.zeros(len(samples) * self._up)
        spread[:: self._up] = samples
        window = np.concatenate([self._before, spread])
        self._before = window[len(window) - len(self._before) :]
        if not len(spread):
            return np.zeros(0, np.int16)
        filtered = np.convolve(window, self._taps, "valid")[self._skip :: self._down]
        self._skip = (self._skip - len(spread)) % self._down
        return np.clip(np.rint(filtered), -32768, 32767).astype(np.int16)

    def flush(self) -> Samples:
        """Convert the samples still held back by the filter's delay, at the end of the stream."""
        return self(np.zeros(-(-len(self._before) // (2 * self._up)), np.int16))


def _lowpass(up: int, down: int) -> NDArray[np.float64]:
    factor = max(up, down)
    place = np.arange(-_ZERO_CROSSINGS * factor, _ZERO_CROSSINGS * factor + 1)
    taps = np.sinc(place / factor * _CUTOFF) * np.kaiser(len(place), _KAISER_BETA)
    return np.asarray(taps / taps.sum() * up, np.float64)


log = logging.getLogger(__name__)

AHEAD_MS: Final = 400
"""Limit of audio in flight: covers network jitter, and little is lost when it is cleared."""
_LITTLE_MS: Final = 200
"""Audio whose marks may still be in flight when a socket closes; it counts as played."""
_EARLY: Final = 500
"""Audio messages (ten seconds) that are buffered while a session opens; older ones are dropped."""
_POSITION_DIGITS: Final = 15
"""Limit of digits of a mark's position, since `int` refuses thousands of digits."""
_START_S: Final = 10.0
_FAREWELL_S: Final = 20.0
"""How long a model may take to say goodbye after it asked to hang up."""
_SESSIONS: Final = 5
"""Limit of voice sessions on one socket; a new one is opened when the caller changes."""


async def serve_media(phone: Phone, socket: WebSocket, token: str) -> None:
    """Serve one socket until it closes; the call may continue on another socket."""
    call = await opened_socket(phone, socket, token)
    if call is None:
        return
    stream = await _started(socket, call)
    if stream is None or phone.realtime is None:
        why = "it does not begin" if stream is None else "no voice model is set"
        log.warning("a stream was refused: %s", why)
        await closed(socket, 1008)
        return
    try:
        await call.carry(MediaStream(phone, call, socket, stream).run)
        if call.leaving.is_set():  # before the socket closes, since Twilio then asks whether the call goes on
            await call.hang_up()
    finally:
        await closed(socket)
    expect_another(phone, call)


async def _started(socket: WebSocket, call: PhoneCall) -> str | None:
    """Wait for the `start` message. Returns the id of the stream; None if it belongs to another call."""
    for _ in range(2):
        message = await messages(socket, _START_S)
        start = (message or {}).get("start")
        if isinstance(start, dict):
            name = start.get("streamSid")
            return name if isinstance(name, str) and start.get("callSid") == call.sid else None
    return None


class MediaStream:
    """One socket of a call: carries the caller's audio to the voice session and the agent's audio back."""

    def __init__(self, phone: Phone, call: PhoneCall, socket: WebSocket, stream: str) -> None:
        self._phone = phone
        self._call = call
        self._socket = socket
        self._stream = stream
        self._session: VoiceSession | None = None
        self._up: Resampler | None = None
        self._offset = 0
        """Bytes of the model's audio that the caller heard on earlier sockets."""
        self._sent = self._played = 0
        """Bytes of the model's audio sent and played on this socket, without what was cleared."""
        self._era = 0
        """How often the audio in flight was cleared: marks of an earlier era are ignored."""
        self._keys = ""
        self._keyed_s = 0.0
        """When the last of them was pressed."""
        self._early: deque[bytes] = deque(maxlen=_EARLY)
        """Audio of the caller that waits for a session."""

    async def run(self) -> None:
        """Serve until the socket closes or the call ends, with a new session whenever the caller changes."""
        model = self._phone.realtime
        assert model is not None
        line = asyncio.ensure_future(self._listen())
        try:
            for _ in range(_SESSIONS):
                try:
                    session = await self._call.open_voice(model)
                    reason = await self._serve(session, line)
                except NotOpen:
                    return  # the call is ending
                if reason != "another caller" or line.done():
                    return
                await self._clear()
        except (EchoicError, RealtimeError, ModelAPIError, UserError) as error:
            log.error("a voice session failed: %s", type(error).__name__)  # noqa: TRY400 - its message may hold words
        finally:
            line.cancel()
            await asyncio.wait({line})

    async def _serve(self, session: VoiceSession, line: asyncio.Task[None]) -> str | None:
        """Serve one session until it or the socket ends. Returns why it ended; None if it goes on."""
        self._offset, self._sent, self._played = self._call.voice_played, 0, 0
        self._up = Resampler(TELEPHONE_HZ, session.profile.input_hz)
        await session.take_up(self._offset)
        while self._early:  # what was said while the session was being opened
            await session.send_audio(self._pcm(self._early.popleft()))
        self._session = session
        works: list[asyncio.Task[Any]] = [
            asyncio.ensure_future(work)
            for work in (session.wait_closed(), self._speak(session), self._leave(session))
        ]
        try:
            await asyncio.wait({works[0], line}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._settle(session)
            self._session = None
            session.hold()
            for work in works:
                work.cancel()
            ended = await asyncio.gather(*works, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, NotOpen):
                raise error
        return session.reason

    def _settle(self, session: VoiceSession) -> None:
        """Count the audio as played if only its last marks, at most `_LITTLE_MS`, had not come back."""
        with suppress(NotOpen):
            little = _LITTLE_MS * SAMPLE_BYTES * session.profile.output_hz // 1000
            if not session.live.provider.speaking and self._sent - self._played <= little:
                self._played = self._sent
                self._report()

    async def _leave(self, session: VoiceSession) -> None:
        """After the agent asked to hang up, end the call once its last words were played uninterrupted."""
        leaving = self._call.leaving
        while True:
            await leaving.wait()
            await session.wait_spoken(_FAREWELL_S)
            if leaving.is_set():
                await session.close("ended")
                return

    async def _listen(self) -> None:
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

    async def _heard(self, message: dict[str, Any]) -> None:
        self._call.touched = time.monotonic()
        media = message.get("media")
        if not isinstance(media, dict):
            return
        try:
            audio = base64.b64decode(str(media.get("payload", "")), validate=True)
        except (binascii.Error, ValueError):
            return
        if self._session is None or self._session.reason is not None:  # it ends: the next one hears it
            self._early.append(audio)
            return
        with suppress(NotOpen):  # the session is just ending
            await self._session.send_audio(self._pcm(audio))

    def _pcm(self, audio: bytes) -> bytes:
        """Convert mu-law `audio` of the telephone to PCM at the model's input rate."""
        assert self._up is not None
        return pcm_of(self._up(mulaw_decode(audio)))

    async def _key(self, digit: str) -> None:
        """Collect pressed keys, each within `KEYS_S` of the one before; a PIN or code is checked once it is
        complete. The model never hears it.
        """
        self._call.touched = time.monotonic()
        self._call.leaving.clear()
        before = self._keys if self._call.touched - self._keyed_s < KEYS_S else ""
        self._keys = before + digit if digit in set("0123456789") else ""
        self._keyed_s = self._call.touched
        if len(self._keys) == CODE_DIGITS:
            keys, self._keys = self._keys, ""
            await self._call.durably(self._call.keyed(keys))  # stored even if the caller hangs up meanwhile

    def _mark(self, name: str) -> None:
        era, _, position = name.partition(":")
        # a clear returns all waiting marks, although nothing was played
        if era == str(self._era) and position.isdecimal() and len(position) <= _POSITION_DIGITS:
            self._played = max(self._played, min(int(position), self._sent))
            self._report()

    def _report(self, *, flushed: bool = False) -> None:
        self._call.voice_played = self._offset + self._played
        if self._session is not None:
            with suppress(NotOpen):
                self._session.played(self._call.voice_played, flushed=flushed)

    async def _speak(self, session: VoiceSession) -> None:
        """Forward audio from the model to the caller, at most `AHEAD_MS` ahead of playback."""
        down = Resampler(session.profile.output_hz, TELEPHONE_HZ)
        async for item in session.media(ahead_ms=AHEAD_MS):
            if isinstance(item, Frame):
                self._sent += len(item.pcm)
                audio = mulaw_encode(down(samples_of(item.pcm)))
                await self._send("media", media={"payload": base64.b64encode(audio).decode()})
                await self._send("mark", mark={"name": f"{self._era}:{self._sent}"})
            else:
                await self._clear()
                self._report(flushed=True)

    async def _clear(self) -> None:
        """Have Twilio drop the audio that it has not played yet."""
        self._era += 1
        self._sent = self._played
        await self._send("clear")

    async def _send(self, event: str, **fields: Any) -> None:
        await sent(self._socket, {"event": event, "streamSid": self._stream, **fields})
