"""A browser's voice call, which outlives its WebSocket: audio and events in both directions.

If a socket closes without a hang-up message, the call stays open for a while; the reply being spoken is cut
at the last reported playback position. `Switchboard` decides who may open a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from starlette.websockets import WebSocket

from echoic.adapters.browser.socket import (
    FAILED,
    REFUSED,
    REPLACED,
    RESUMABLE,
    Allowance,
    CallSocket,
    PageSettings,
    Transport,
    captioned,
    read,
    told,
)
from echoic.errors import EchoicError, InvalidInput, NotOpen, StoreError
from echoic.memory.assurance import Level
from echoic.session import CallContext, Event, Frame, VoiceSession
from echoic.session.hooks import Caption

log = logging.getLogger(__name__)

_UNREACHED: Final = "the voice model could not be reached; try again in a moment"
_DOUBTS: Final = 3
"""Failed checks of an identity in a row before the call is suspended."""
_UNTOLD: Final = 100
"""Captions that wait while no page is connected; older ones are dropped."""
_CLOSE_S: Final = 2.0


_WAITING: Final = 500
"""Audio messages (ten seconds) that may wait for the provider; later ones are dropped."""
_TYPED: Final = 50
"""Typed texts that may wait while the call, or the provider's next call, is being opened."""
_TAKEN: Final = 10 * _TYPED
"""Ids of typed texts that are remembered; a page that was not told repeats fewer."""
_TEXT_ID: Final = 64
"""Characters of a typed text's id."""
_MUTED_S: Final = 1.0
"""Silence sent after the microphone is muted, so that the provider detects the end of speech."""


class Uplink:
    """The audio and messages that one socket sends."""

    def __init__(self, call: BrowserCall, line: CallSocket) -> None:
        self._call = call
        self._line = line
        self._sound: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        self._typed: asyncio.Queue[tuple[str, str]] = asyncio.Queue(_TYPED)
        """Texts, with the page's ids of them."""
        self._allowance: Allowance | None = None

    async def run(self) -> bool:
        """Forward messages until the socket closes. True if the caller hung up."""
        sending = [asyncio.create_task(work) for work in (self._send(), self._type())]
        try:
            while (message := await self._line.receive()) is not None:
                if isinstance(message, bytes):
                    self._take(message)
                elif (said := read(message)) is not None:
                    kind, fields = said
                    if kind == "hang_up":
                        return True
                    self._obey(kind, fields)
        except InvalidInput as error:
            self._line.say("problem", error=str(error))
            self._line.end(REFUSED)
            await self._line.wait_gone()
        finally:
            try:
                await self._all_typed_sent()
            finally:
                for task in sending:
                    task.cancel()
                await asyncio.gather(*sending, return_exceptions=True)
        return False

    async def _all_typed_sent(self) -> None:
        """Wait for what was typed before the socket closed, as right before hanging up."""
        if self._call.session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._typed.join()

    def _take(self, pcm: bytes) -> None:
        session = self._call.session
        if session is None or session.state == "closed" or self._call.transport == "webrtc":
            return  # not ready yet, or closed
        if self._allowance is None:
            page_settings, hz = self._call.page_settings, session.profile.input_hz
            self._allowance = Allowance(hz, pace=page_settings.pace, burst_s=page_settings.burst_s)
        if len(pcm) % 2 or not self._allowance.take(len(pcm)):
            raise InvalidInput("audio must be 16-bit PCM, sent no faster than real time")
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
            text, text_id = await self._typed.get()
            session = await self._call.ready()
            if session is not None:
                with self._told():  # what failed is not taken: the page hands it back
                    if text_id not in self._call.taken:
                        await session.send_text(text)
                        self._call.taken += [text_id] if text_id else []
                    if text_id:
                        self._line.say("taken", id=text_id)
            self._typed.task_done()

    def _obey(self, kind: str, fields: dict[str, Any]) -> None:
        session = self._call.session
        if kind == "text":
            if self._typed.full():
                self._line.say(
                    "problem", error=f"{_TYPED} texts are waiting for the call to start; send it again then"
                )
            else:
                self._typed.put_nowait((fields["text"], fields["id"][:_TEXT_ID]))
        elif session is not None:
            with self._told():
                if kind == "played":
                    self._line.played_bytes = max(
                        self._line.played_bytes, min(fields["bytes"], self._line.sent_bytes)
                    )
                    self._call.played(self._line, flushed=fields["flushed"])
                elif kind == "barge_in":
                    session.barge_in()
                elif fields["muted"] and self._call.transport == "websocket" and not self._sound.full():
                    self._sound.put_nowait(bytes(2 * int(session.profile.input_hz * _MUTED_S)))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell the page of an invalid request; log a failure of the provider. Neither ends the call."""
        try:
            yield
        except InvalidInput as error:
            self._line.say("problem", error=str(error))
        except NotOpen:
            return  # the call is ending; the page is told
        except FAILED as error:
            log.warning("on a call of a page: %s", type(error).__name__)


IsKnown = Callable[[], Awaitable[bool]]
Opens = Callable[["BrowserCall"], Awaitable[VoiceSession]]
"""Makes the voice session of a call; the call enters it."""


class BrowserCall:
    """A voice call with a web page. Use it in one event loop.

    `name` and `conversation` are the ids of the session and of the conversation that stores it. `on_over` is
    called once, when no socket can continue the call in this process.
    """

    def __init__(
        self,
        name: str,
        conversation: str,
        *,
        transport: Transport,
        opens: Opens,
        page_settings: PageSettings,
        on_over: Callable[[BrowserCall], None],
    ) -> None:
        self.name = name
        self.conversation = conversation
        self.transport = transport
        self.level: Level = "device"
        """The assurance level of the caller's identity."""
        self.provider_call = ""
        """The id of the provider's call that carries the media; empty: none yet, or the checkpoint's."""
        self.resumed = False
        """Whether the session resumes from a checkpoint."""
        self.keeps_media = False
        """Whether the media still flow to the provider's call that the checkpoint names."""
        self.is_known: IsKnown | None = None
        """Asks whether the caller's identity is still valid; None if it never expires."""
        self.over = False
        self.awaited = True
        """Whether no socket has connected yet: only a ticket was issued."""
        self.address = ""
        """The client address that requested the call."""
        self.taken: deque[str] = deque(maxlen=_TAKEN)
        """Ids of the last typed texts of the call: a page that was not told sends them again."""
        self._opens = opens
        self.page_settings = page_settings
        self._on_over = on_over
        self.session: VoiceSession | None = None
        self._ready = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._entering: VoiceSession | None = None
        """The session that `_opening` is entering, so that it can be ended."""
        self._exchanging = asyncio.Lock()
        self._line: CallSocket | None = None
        self._served = asyncio.Event()
        self._served.set()
        self._grace: asyncio.TimerHandle | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._untold: dict[str, dict[str, Any]] = {}
        """Captions, by turn id, that wait until a page is connected again."""
        self._heard = 0
        """Bytes of audio played so far, over all sockets of the call."""

    # -- what the session tells

    async def listen(self, context: CallContext, event: Event) -> None:
        message = told(context.agent, event)
        if message is not None:
            self._tell(*message)

    def caption(self, caption: Caption) -> None:
        self._tell(*captioned(caption))

    def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        if self._line is not None:
            self._line.say(kind, **fields)
        elif kind == "transcript":  # over WebRTC the agent may have spoken before the page's socket comes
            self._untold[fields["id"]] = fields
            if len(self._untold) > _UNTOLD:
                del self._untold[next(iter(self._untold))]

    # -- for its sockets

    async def ready(self) -> VoiceSession | None:
        """Wait for the voice session; None if the call ended without one."""
        await self._ready.wait()
        return self.session

    def played(self, line: CallSocket, *, flushed: bool) -> None:
        """Report to the session how much audio the page has played, as counted by `line`.

        Raises:
            NotOpen: the call is over.
        """
        if self.session is None or self.transport == "webrtc":
            return
        self._heard = max(self._heard, line.offset + line.played_bytes)
        self.session.played(self._heard, flushed=flushed)

    # -- lifecycle

    def withdraw(self) -> None:
        """Drop a call that no socket has connected to; its ticket is no longer valid."""
        if self.awaited:
            self._finish()

    def expect_caller(self) -> None:
        """Wait for the caller to reconnect for as long as their new ticket is valid."""
        if self._line is None:
            self.wait_for_caller(max(self.page_settings.ticket_s, self.page_settings.grace_s))

    def wait_for_caller(self, seconds: float | None = None) -> None:
        """Start the timeout in which the caller must connect or reconnect; then the call is suspended."""
        self._cancel_grace()
        wait_s = self.page_settings.grace_s if seconds is None else seconds
        self._grace = asyncio.get_running_loop().call_later(wait_s, self._gone)

    async def end(self, reason: str, *, keep: bool) -> None:
        """End the call in this process and close its socket; see `VoiceSession.close`."""
        self._cancel_grace()
        await self._abandon_opening(reason, keep=keep)
        if self.session is not None:
            await self.session.close(reason, keep_checkpoint=keep)
        if self._line is not None:
            self._say_closed(self._line, reason)
        self._finish()
        await self._served.wait()

    async def exchange(self, change: Callable[[], Awaitable[str]]) -> None:
        """Continue the session with another call at the provider; `change` makes it and returns its id.

        Raises:
            NotOpen: the call is over.
            RealtimeError, ModelAPIError, UserError: the provider could not be reached, or refused.
        """
        async with self._exchanging:
            if self.over:
                raise NotOpen("the call is over")
            self.awaited = False
            call = await change()
            before, self.session = self.session, None
            self._ready.clear()
            if before is not None:
                self.resumed = True
                await before.close("left", keep_checkpoint=True)
            self.provider_call, self.keeps_media = call, False
            await self._open()

    async def serve(self, socket: WebSocket) -> None:
        """Serve one accepted socket until it closes; the previous socket of the call is closed."""
        while not self._served.is_set():  # another socket that waited here may be served by now
            if self._line is not None:
                self._line.end(REPLACED)
            await self._served.wait()
        line = self._line = CallSocket(socket)
        for fields in self._untold.values():
            line.say("transcript", **fields)
        self._untold.clear()
        self._served.clear()
        self._cancel_grace()
        writing = asyncio.create_task(line.run())
        try:
            if self.over:
                self._say_closed(line, "ended")
            else:
                await self._serve(line)
        finally:
            self._line = None
            if line.ending:
                await asyncio.wait({writing}, timeout=_CLOSE_S)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            self._served.set()
            if not self.over:
                if self.session is not None:
                    self.session.hold()
                self.wait_for_caller()

    # -- one socket

    async def _serve(self, line: CallSocket) -> None:
        hearing = asyncio.create_task(Uplink(self, line).run())
        living = asyncio.create_task(self._live(line))
        gone = asyncio.create_task(line.wait_gone())
        tasks: set[asyncio.Task[Any]] = {hearing, living, gone}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        if hearing.done() and not hearing.cancelled() and hearing.exception() is None and hearing.result():
            await self._hang_up(line)
        for error in ended:
            if isinstance(error, Exception):
                log.error(
                    "a call of a page failed: %s", type(error).__name__
                )  # its message may contain words
                line.end(1011)

    async def _live(self, line: CallSocket) -> None:
        while await self._is_open(line):
            session = self.session
            assert session is not None
            line.say(
                "ready",
                session=self.name,
                conversation=self.conversation,
                agent=session.current_agent,
                resumed=self.resumed,
            )
            await self._take_up(session)
            beside = [
                asyncio.create_task(self._speak(line, session)),
                asyncio.create_task(self._check(session)),
            ]
            try:
                reason = await session.wait_closed()
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
            if self.session is session:  # otherwise the call continues with another call of the provider
                self._say_closed(line, reason)
                self._finish()
                return

    async def _check(self, session: VoiceSession) -> None:
        """End the call when the caller's identity expires, or cannot be checked `_DOUBTS` times in a row."""
        doubts = 0
        while self.is_known is not None:
            await asyncio.sleep(self.page_settings.check_s)
            try:
                doubts = 0 if await self.is_known() else _DOUBTS
            except StoreError:
                doubts += 1
            if doubts >= _DOUBTS:
                await session.close("left", keep_checkpoint=True)
                return

    async def _is_open(self, line: CallSocket) -> bool:
        """Wait until the session is open. False if the call is over or could not be opened."""
        if self.over:
            return False
        if self.session is not None and self.session.state == "closed":
            # it ended while no page was there, as where a reloaded page took the media along
            self.session, self._opening, self.resumed = None, None, True
            self._ready.clear()
        if self.session is None and (self.transport == "websocket" or self.keeps_media):
            if self._opening is None:
                self._opening = asyncio.create_task(self._open())
            try:
                await asyncio.shield(self._opening)
            except (EchoicError, *FAILED) as error:
                return await self._could_not_open(line, error)
        await self._ready.wait()
        return not self.over

    async def _could_not_open(self, line: CallSocket, error: Exception) -> bool:
        log.warning("a call of a page could not be opened: %s", type(error).__name__)
        self._opening = None
        if self.keeps_media:
            self.keeps_media = False
            line.say("offer")
            await self._ready.wait()
            return True
        line.say("problem", error=str(error) if isinstance(error, InvalidInput) else _UNREACHED)
        self._say_closed(line, "lost" if self.resumed else "failed")
        self._finish()
        return False

    async def _open(self) -> None:
        session = self._entering = await self._opens(self)
        await session.__aenter__()  # closed by `end`, `_hang_up` or itself
        if self.over:
            await session.close("left", keep_checkpoint=True)
            raise NotOpen("the call is over")
        self.session = session
        self._ready.set()

    async def _take_up(self, session: VoiceSession) -> None:
        with contextlib.suppress(NotOpen, *FAILED):
            await session.take_up(self._heard)

    async def _speak(self, line: CallSocket, session: VoiceSession) -> None:
        if self.transport == "webrtc":
            return
        line.offset = self._heard
        media = session.media(ahead_ms=self.page_settings.ahead_ms)
        try:
            async for item in media:
                if isinstance(item, Frame):
                    line.sound(item.pcm)
                else:
                    line.flush()
        finally:
            await media.aclose()  # type: ignore[attr-defined]  # a generator, typed as an iterator

    # -- ending

    async def _hang_up(self, line: CallSocket) -> None:
        await self._abandon_opening("ended", keep=False)
        if self.session is not None:
            await self.session.close("ended")
        self._say_closed(line, "ended")
        self._finish()

    async def _abandon_opening(self, reason: str, *, keep: bool) -> None:
        if self._opening is None or self._opening.done():
            return
        closing = asyncio.create_task(self._close_entering(reason, keep=keep))
        await asyncio.sleep(0)  # begin to close before the opening is cancelled
        self._opening.cancel()
        await asyncio.wait({self._opening})
        await closing

    async def _close_entering(self, reason: str, *, keep: bool) -> None:
        if self._entering is not None:  # something may have been said already
            await self._entering.close(reason, keep_checkpoint=keep)

    def _gone(self) -> None:
        self._leaving = asyncio.create_task(self.end("left", keep=True))

    def _cancel_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    def _say_closed(self, line: CallSocket, reason: str) -> None:
        line.say("closed", reason=reason, resumable=reason in RESUMABLE)
        line.end()

    def _finish(self) -> None:
        if not self.over:
            self.over = True
            self._cancel_grace()
            self._ready.set()
            self._on_over(self)
