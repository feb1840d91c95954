"""A call over ConversationRelay: text both ways on a WebSocket; Twilio hears and speaks.

Protocol: Twilio's "ConversationRelay WebSocket messages". In: setup, prompt, interrupt, dtmf, info, error.
Out: text, language, end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from echoic.adapters.twilio.phone import Phone, PhoneCall
from echoic.adapters.twilio.proofs import CODE_DIGITS
from echoic.adapters.twilio.signatures import SignatureRefused

log = logging.getLogger(__name__)

MAX_MESSAGE_CHARACTERS: Final = 64 * 1024
_SETUP_S: Final = 10.0
KEYS_S: Final = 2.0
"""How long after the last key the input is complete."""
_VIOLATION: Final = 1008
_MAX_SAID: Final = 4000
_MAX_TAG: Final = 35
"""Characters of a language tag (RFC 5646)."""
_MAX_WAITING: Final = 8
"""Utterances that wait for an answer before words are joined to the last of them."""


async def opened_socket(phone: Phone, socket: WebSocket, token: str) -> PhoneCall | None:
    """Accept a socket and return its call; None if it was refused."""
    try:
        phone.signatures.check_socket(socket)
    except SignatureRefused as error:
        log.warning("a socket was refused: %s", error)
        await socket.close(_VIOLATION)
        return None
    call = phone.take_socket(token)
    if call is None or call.over:
        log.warning("a socket was refused: its token is not good, or not any more")
        await socket.close(_VIOLATION)
        return None
    await socket.accept()
    return call


async def messages(socket: WebSocket, within_s: float | None = None) -> dict[str, Any] | None:
    """The next message; None if the socket is closed, too slow, or sends something else."""
    try:
        async with asyncio.timeout(within_s):
            text = await socket.receive_text()
        message = json.loads(text) if len(text) <= MAX_MESSAGE_CHARACTERS else None
    except (WebSocketDisconnect, TimeoutError, ValueError, KeyError, RuntimeError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


async def sent(socket: WebSocket, message: dict[str, Any]) -> None:
    """Send `message`; if the socket is gone, its reader notices."""
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_text(json.dumps(message))


async def closed(socket: WebSocket, code: int = 1000) -> None:
    """Close `socket`, unless the other side did."""
    if socket.application_state is WebSocketState.CONNECTED is socket.client_state:
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(code)


async def serve_relay(phone: Phone, socket: WebSocket, token: str) -> None:
    """Serve one socket until it ends; the call may continue on another."""
    call = await opened_socket(phone, socket, token)
    if call is None:
        return
    setup = await messages(socket, _SETUP_S)
    if setup is None or setup.get("type") != "setup" or setup.get("callSid") != call.sid:
        await closed(socket, _VIOLATION)
        return
    relay = Relay(phone, call, socket)
    try:
        await call.carry(relay.run, relay.aclose)
    finally:
        await closed(socket)
    expect_another(phone, call)


def expect_another(phone: Phone, call: PhoneCall) -> None:
    """End `call` unless another socket continues it."""

    async def wait() -> None:
        await asyncio.sleep(phone.settings.pace.reconnect_s)
        if call.lines == 0 and time.monotonic() - call.touched >= phone.settings.pace.reconnect_s:
            await call.hang_up()

    if not call.over:
        phone.later(wait())


class Relay:
    """One socket of one call."""

    def __init__(self, phone: Phone, call: PhoneCall, socket: WebSocket) -> None:
        self._phone = phone
        self._call = call
        self._socket = socket
        self._prompts: asyncio.Queue[str] = asyncio.Queue()
        """The turns that wait for an answer."""
        self._waiting: dict[str, str] = {}
        self._worker = asyncio.ensure_future(self._work())
        self._keys = ""
        self._keyed: asyncio.TimerHandle | None = None
        self._quiet_from = time.monotonic()
        self._language = call.language
        """The language that the line was told to use."""
        self._news = asyncio.Event()
        """Set by every message of the line."""
        self._fillers: set[str] = set()
        """Fillers that were said."""

    async def run(self) -> None:
        while (message := await messages(self._socket)) is not None:
            self._call.touched = time.monotonic()
            kind = message.get("type")
            if kind == "prompt":
                await self._prompt(message)
            elif kind == "interrupt":
                await self._call.barge_in(self._without_fillers(_text(message, "utteranceUntilInterrupt")))
            elif kind == "dtmf":
                self._key(_text(message, "digit"))
            elif kind == "info" and message.get("name") == "tokensPlayed":
                self._call.played(self._without_fillers(_text(message, "value")))
            elif kind == "error":
                log.warning("the relay reports an error")  # its description may contain what was said
            self._news.set()

    async def aclose(self) -> None:
        if self._keyed is not None:
            self._keyed.cancel()
        self._worker.cancel()
        await asyncio.wait({self._worker})
        await self._call.cut_off()

    async def _prompt(self, message: dict[str, Any]) -> None:
        said, language = _text(message, "voicePrompt")[:_MAX_SAID], _text(message, "lang")[:_MAX_TAG]
        if message.get("last") is False:
            self._call.heard_in(language)
            self._call.partial(said)
            return
        self._call.heard_in(language)
        await self._tune()
        if said.strip():
            self._say(said)

    async def _tune(self) -> None:
        """Tell the line the language of the call, if it changed."""
        if self._language == self._call.language:
            return
        self._language = language = self._call.language
        # a line that detects the language must keep doing so
        hears = {} if self._phone.settings.detect_language else {"transcriptionLanguage": language}
        await self._send({"type": "language", "ttsLanguage": language, **hears})

    def _key(self, digit: str) -> None:
        """Collect pressed keys into one utterance."""
        if self._keyed is not None:
            self._keyed.cancel()
        self._call.leaving.clear()
        self._keys += digit if digit in set("0123456789*") else ""
        if digit == "#" or len(self._keys) >= CODE_DIGITS:
            self._pressed()
        else:
            self._keyed = asyncio.get_running_loop().call_later(KEYS_S, self._pressed)

    def _pressed(self) -> None:
        keys, self._keys = self._keys, ""
        if keys:
            self._say(keys)

    def _say(self, said: str) -> None:
        """Have `said` answered: as one with what was said before it, if much is waiting already."""
        turn, last = next(reversed(self._waiting.items()), ("", ""))
        joined = f"{last} {said}"
        apart = len(joined) > _MAX_SAID or self._is_code(last) or self._is_code(said)
        if len(self._waiting) < _MAX_WAITING or apart:
            turn, joined = uuid4().hex[:12], said
            self._prompts.put_nowait(turn)
        self._waiting[turn] = joined
        self._call.unanswered(joined, turn)

    def _is_code(self, said: str) -> bool:
        """Whether it is digits, which are no proof, and are not masked, among other words."""
        return not said.strip("0123456789* ") or self._call.masked(said) != said

    async def _work(self) -> None:
        """Answer utterances one by one, until the agent hangs up."""
        while True:
            turn = await self._prompts.get()
            said = self._waiting.pop(turn)
            speaking = asyncio.ensure_future(self._answer(said, turn))
            try:
                await self._accompany(speaking)
            except asyncio.CancelledError:
                speaking.cancel()
                await asyncio.wait({speaking})
                raise
            if await self._leaves():
                await self._send({"type": "end"})
                await self._call.hang_up()
                return

    async def _leaves(self) -> bool:
        """Whether the agent hangs up; then its last words were spoken, and the caller said nothing more."""
        leaving = self._call.leaving
        while leaving.is_set() and (left_s := self._call.playback.left_s()) > 0:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()
        return leaving.is_set()

    async def _answer(self, said: str, turn: str) -> None:
        try:
            await self._call.speak(said, turn=turn, out=self._out)
        finally:  # whatever ended it, the utterance is complete
            await self._send({"type": "text", "token": "", "last": True})

    async def _accompany(self, speaking: asyncio.Task[None]) -> None:
        """Wait for a reply; say a filler after too long a silence."""
        pace = self._phone.settings.pace
        self._quiet_from = time.monotonic() - pace.sound_every_s / 2  # the first filler comes sooner
        fillers = 0
        while not speaking.done():
            wait_s = self._quiet_from + pace.sound_every_s - 1 - time.monotonic()
            await asyncio.wait({speaking}, timeout=max(0.05, wait_s))
            if not speaking.done() and time.monotonic() >= self._quiet_from + pace.sound_every_s - 1:
                words = self._call.phrases.filler(fillers)
                fillers += 1
                self._fillers.add(words)
                await self._tune()
                self._sounded(words)
                await self._send({"type": "text", "token": f"{words} ", "last": False})
        if not speaking.cancelled():
            speaking.exception()  # the socket is gone, which its reader reports

    async def _out(self, text: str) -> None:
        self._call.sent(text)
        self._sounded(text)
        await self._tune()
        await self._send({"type": "text", "token": text, "last": False})

    def _without_fillers(self, text: str) -> str:
        """`text` without fillers, which do not belong to the reply."""
        for words in self._fillers:
            text = text.replace(words, " ")
        return text

    def _sounded(self, text: str) -> None:
        now = time.monotonic()
        length_s = len(text) / self._phone.settings.pace.characters_per_s
        self._quiet_from = max(now, self._quiet_from) + length_s

    async def _send(self, message: dict[str, Any]) -> None:
        await sent(self._socket, message)


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name, "")
    return value if isinstance(value, str) else ""
