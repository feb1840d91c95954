"""From a page to its call: audio, and what the page asks for. Audio never makes a word wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Final, Protocol

from echoic.adapters.browser.line import Allowance, Line
from echoic.adapters.browser.manners import FAILED, Manners, Transport
from echoic.adapters.browser.wire import REFUSED, BargeIn, HangUp, Muted, Played, Said, Typed, read
from echoic.errors import InvalidInput, NotOpen
from echoic.session import VoiceSession

log = logging.getLogger(__name__)

_WAITING: Final = 500
"""Messages of audio that may wait for the provider: ten seconds. What comes then is lost."""
_TYPED: Final = 50
"""Texts that may wait for a call that is being opened, or goes on beside another call of the provider's."""
_MUTED_S: Final = 1.0
"""Of silence, so that the provider hears a sentence end that a muted microphone broke off."""


class Called(Protocol):
    """The call that a page speaks to, as far as it is needed here."""

    transport: Transport

    @property
    def session(self) -> VoiceSession | None:
        """The call itself, while there is one."""
        ...

    @property
    def manners(self) -> Manners:
        """How it treats its sockets."""
        ...

    async def ready(self) -> VoiceSession | None:
        """Wait until there is a call, or will be none any more."""
        ...

    def played(self, line: Line, *, flushed: bool) -> None:
        """The page has played what `line` says."""
        ...


class Uplink:
    """Of one socket.

    Args:
        call: whose.
        line: the socket.
    """

    def __init__(self, call: Called, line: Line) -> None:
        self._call = call
        self._line = line
        self._sound: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._typed: asyncio.Queue[str] = asyncio.Queue(_TYPED)
        self._allowance: Allowance | None = None

    async def run(self) -> bool:
        """Until the socket is gone; whether the caller hung up."""
        sending = [asyncio.create_task(work) for work in (self._send(), self._type())]
        try:
            while (message := await self._line.hear()) is not None:
                said = read(message) if isinstance(message, str) else None
                if isinstance(said, HangUp):
                    return True
                if said is not None:
                    self._obey(said)
                elif isinstance(message, bytes):
                    self._take(message)
        except InvalidInput as error:
            self._line.say("problem", error=str(error))
            self._line.end(REFUSED)
            await self._line.wait_gone()
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
        return False

    def _take(self, pcm: bytes) -> None:
        session = self._call.session
        if session is None or session.state == "closed" or self._call.transport == "webrtc":
            return  # not ready to listen yet, or no more
        if self._allowance is None:
            manners, hz = self._call.manners, session.profile.input_hz
            self._allowance = Allowance(hz, pace=manners.pace, burst_s=manners.burst_s)
        if len(pcm) % 2 or not self._allowance.take(len(pcm)):
            raise InvalidInput("audio is of 16-bit samples, and comes no faster than time passes")
        if not self._sound.full():
            self._sound.put_nowait(pcm)

    async def _send(self) -> None:
        while True:
            pcm = await self._sound.get()
            if (session := self._call.session) is not None:
                with contextlib.suppress(NotOpen):
                    await session.send_audio(pcm)

    async def _type(self) -> None:
        while True:
            text = await self._typed.get()
            session = await self._call.ready()
            if session is not None:
                with self._told():
                    await session.send_text(text)

    def _obey(self, said: Said) -> None:
        if isinstance(said, Typed):
            if self._typed.full():
                self._line.say(
                    "problem", error=f"{_TYPED} texts wait for the call to begin: say it again then"
                )
            else:
                self._typed.put_nowait(said.text)
        elif (session := self._call.session) is not None:
            with self._told():
                self._do(said, session)

    def _do(self, said: Said, session: VoiceSession) -> None:
        match said:
            case Played():
                self._note_played(said)
            case BargeIn():
                session.barge_in()
            case Muted(muted=True) if self._call.transport == "websocket" and not self._sound.full():
                self._sound.put_nowait(bytes(2 * int(session.profile.input_hz * _MUTED_S)))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """The page is told what it did wrong; what went wrong elsewhere ends nothing here."""
        try:
            yield
        except InvalidInput as error:
            self._line.say("problem", error=str(error))
        except NotOpen:
            return  # it is just ending; the page is told
        except FAILED as error:
            log.warning("on a call of a page: %s", type(error).__name__)

    def _note_played(self, said: Played) -> None:
        line = self._line
        line.played_bytes = max(line.played_bytes, min(said.total_bytes, line.sent_bytes))
        self._call.played(line, flushed=said.flushed)


__all__ = ["Uplink"]
