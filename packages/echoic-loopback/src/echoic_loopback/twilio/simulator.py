"""A caller that needs no telephone: speaks Twilio's protocols to a server, signed.

For demonstrations, tests and load. Over webhooks and ConversationRelay it says and hears text; over Media
Streams audio that it is given. Nothing is recognised or synthesised.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree as ET

import aiohttp
from twilio.request_validator import RequestValidator

from echoic.adapters.twilio.media import TELEPHONE_HZ, Samples
from echoic.errors import InvalidInput, brief
from echoic_loopback.twilio.simulated_stream import SimulatedStream

_HEADER = "X-Twilio-Signature"
_FIGURES = "X-Echoic-Call"
_MAX_WEBHOOKS = 200
"""In a row without the caller saying anything: a server that redirects for ever is broken."""


class CallFailed(Exception):
    """The server did what would end a real call with an error."""


class _HungUp(Exception):
    """The server ended a relay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One request and how it was answered."""

    path: str
    params: Mapping[str, str]
    signature: str
    status: int
    text: str
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Something the caller heard, or a silence."""

    text: str
    at: float
    """When it began, by `time.monotonic`."""
    lasted_s: float = 0.0
    """As long as it was played; silences too."""


class SimulatedCall:
    """One call, from the caller's end. Use with `async with`.

    Args:
        url: of the server, such as "http://127.0.0.1:8300".
        auth_token: of the account, to sign with.
        number: the caller's.
        public_url: what the server takes itself to be reached by; None: `url`.
        characters_per_s: how fast speech is played; None: it takes no time, nor do pauses.
        attestation: what the carrier says of the number; empty: nothing, as outside North America.
        speaks: the language the caller speaks, which a line that finds out reports.
        interim: over a relay, whether what is said is also sent before it is complete, word by word.
        reports: over a relay, whether the line reports that a reply was played to its end.
        sid: the call's id; None: a new one.
        heard: told each sentence as it is heard.
    """

    def __init__(
        self,
        url: str,
        auth_token: str,
        *,
        number: str = "+15550100001",
        public_url: str | None = None,
        characters_per_s: float | None = None,
        attestation: str = "TN-Validation-Passed-A",
        speaks: str = "en-US",
        interim: bool = False,
        reports: bool = False,
        sid: str | None = None,
        heard: Callable[[str], None] | None = None,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidInput(f"the server's URL begins with http:// or https://, not {brief(url)}")
        self.sid = sid or f"CA{secrets.token_hex(16)}"
        self.webhooks: list[Webhook] = []
        self.sounds: list[Sound] = []
        self.tokens: list[tuple[float, str]] = []
        """Over a relay: each token, and when it came, by `time.monotonic`."""
        self.delays_s: list[float] = []
        """Over a relay: from what was said to the first token."""
        self.figures: dict[str, Any] | None = None
        """What the server says the call took, once it is over; see `Figures`."""
        self.language = ""
        """What the server told the line to speak."""
        self.stream: SimulatedStream | None = None
        """The audio of the call, where the server streams it; also after its end."""
        self.over = False
        self._speaks, self._interim = speaks, interim
        self._url = url.rstrip("/")
        self._public = (public_url or url).rstrip("/")
        self._validator = RequestValidator(auth_token)
        self._number, self._attestation = number, attestation
        self._speed = characters_per_s
        self._heard = heard
        self._action: str | None = None
        self._http: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._after = ""
        self._reports = reports

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15))  # Twilio's own limit
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._disconnect()
        if self._http is not None:
            await self._http.close()

    # -- what a caller does

    async def dial(self) -> str:
        """Call, and hear the first words."""
        return await self._follow("/phone/voice", {"CallStatus": "ringing"})

    async def say(self, text: str, *, confidence: float = 0.9, cut_in_after: str | None = None) -> str:
        """Say something and hear the reply.

        Args:
            text: what is said.
            confidence: of the recogniser.
            cut_in_after: over a relay: stop the reply once these words were heard.
        """
        if self._socket is not None:
            words = text.split()
            for count in range(1, len(words) + 1 if self._interim else 0):
                await self._prompt(" ".join(words[:count]), last=False)
                await asyncio.sleep(len(words[count - 1]) / self._speed if self._speed else 0)
            started = time.monotonic()
            await self._prompt(text, last=True)
            return await self._reply(started, cut_in_after)
        return await self._act({"SpeechResult": text, "Confidence": str(confidence)})

    async def say_aloud(self, samples: Samples, rate_hz: int = TELEPHONE_HZ) -> bytes:
        """Over a media stream: say audio and hear the answer.

        Args:
            samples: what is said.
            rate_hz: of `samples`.

        Returns:
            what was heard, in mu-law at 8 kHz; empty: nothing came.
        """
        if self.stream is None:
            raise CallFailed("the line carries no audio: the server's channel is not media")
        await self.stream.say(samples, rate_hz)
        return await self.stream.listen()

    async def press(self, digits: str) -> str:
        """Press keys and hear the reply; over a media stream that is audio, see `stream`."""
        if self._socket is not None:
            started = time.monotonic()
            for digit in digits:
                await self._send({"type": "dtmf", "digit": digit})
            return await self._reply(started, None)
        if self.stream is not None:
            await self.stream.press(digits)
            return ""
        return await self._act({"Digits": digits})

    async def silence(self) -> str:
        """Say nothing for as long as the line waits."""
        return await self._act({"SpeechResult": ""})

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send any message over the relay."""
        await self._send(message)

    async def drop(self) -> str:
        """The socket breaks; hear how the server takes the call up again."""
        assert self._socket is not None
        await self._socket.close()
        self._socket = None
        return await self._follow(self._after, {"SessionStatus": "failed", "CallStatus": "in-progress"})

    async def hung_up(self) -> str:
        """Wait until the server ends the call, which it does when its agent hangs up; what is said at last.

        Raises:
            CallFailed: it took the call up again instead, or it listens over webhooks, which end at once.
        """
        if self._socket is not None:
            with suppress(_HungUp):
                while True:
                    await self._receive()
            return await self._after_end(SessionStatus="ended")
        if self.stream is not None and not self.over:
            await self.stream.closed.wait()
            return await self._after_end()
        if not self.over:
            raise CallFailed("the line is listening")
        return ""

    async def _after_end(self, **params: str) -> str:
        """Do what the server says once it has ended what carried the call."""
        await self._disconnect()
        said = await self._follow(self._after, {"CallStatus": "in-progress", **params})
        if not self.over:
            raise CallFailed("the server did not hang up")
        return said

    async def hang_up(self) -> None:
        """End the call, as Twilio reports it."""
        connected = self._socket is not None or self.stream is not None
        await self._disconnect()
        if connected and not self.over:
            await self._post(self._after, {"SessionStatus": "ended", "CallStatus": "completed"})
        self.over = True
        await self._post("/phone/status", {"CallStatus": "completed"})

    async def post(
        self, path: str, params: Mapping[str, str], *, signature: str | None = None
    ) -> tuple[int, str]:
        """Send any webhook; status and body of the answer.

        Args:
            path: with its query.
            params: the form, whole.
            signature: None: the right one.
        """
        assert self._http is not None
        signed = signature
        if signed is None:
            signed = self._validator.compute_signature(self._public + path, dict(params))
        started = time.monotonic()
        async with self._http.post(
            self._url + path,
            data=urlencode(params),
            headers={_HEADER: signed, "Content-Type": "application/x-www-form-urlencoded"},
        ) as answer:
            text = await answer.text()
            told = answer.headers.get(_FIGURES)
            self.figures = json.loads(told) if told else self.figures
            took_s = time.monotonic() - started
            self.webhooks.append(
                Webhook(
                    path=path, params=params, signature=signed, status=answer.status, text=text, took_s=took_s
                )
            )
            return answer.status, text

    @property
    def said(self) -> list[str]:
        """All that was heard, in order, without silences."""
        return [sound.text for sound in self.sounds if sound.text]

    # -- webhooks

    async def _act(self, params: Mapping[str, str]) -> str:
        if self._action is None:
            raise CallFailed("the line is not listening")
        action, self._action = self._action, None
        return await self._follow(action, {"CallStatus": "in-progress", **params})

    async def _post(self, path: str, params: Mapping[str, str]) -> str:
        caller = {"CallSid": self.sid, "From": self._number, "To": "+15550100000", "Direction": "inbound"}
        stir = {"StirVerstat": self._attestation} if self._attestation else {}
        status, text = await self.post(path, {**caller, **stir, **params})
        if status not in {200, 204}:
            raise CallFailed(f"{urlsplit(path).path} was answered {status}")
        return text

    async def _follow(self, path: str, params: Mapping[str, str]) -> str:
        """Do what the server says until it listens, connects or hangs up; what was said meanwhile."""
        before = len(self.sounds)
        for _ in range(_MAX_WEBHOOKS):
            following = await self._play(ET.fromstring(await self._post(path, params)))  # noqa: S314 - our own server
            if following is None:
                return " ".join(sound.text for sound in self.sounds[before:] if sound.text)
            path, params = following, {"CallStatus": "in-progress"}
        raise CallFailed("the server redirects without an end")

    async def _play(self, response: ET.Element) -> str | None:
        """Play one TwiML document; where to go on, if it says so."""
        for verb in response:
            if verb.tag == "Say":
                await self._hear(verb.text or "")
            elif verb.tag == "Pause":
                await self._quiet(float(verb.get("length", "1")))
            elif verb.tag == "Redirect":
                return self._path(verb.text or "")
            elif verb.tag == "Gather":
                self.language = verb.get("language", "")
                self._action = self._path(verb.get("action", ""))
                return None
            elif verb.tag == "Connect":
                self._after = self._path(verb.get("action", ""))
                await self._connect(verb[0])
                return None
            elif verb.tag == "Hangup":
                self.over = True
        return None

    def _path(self, url: str) -> str:
        if not url.startswith(self._public):
            raise CallFailed(f"the server refers to {brief(url)}, which is not its public URL")
        return url[len(self._public) :]

    async def _hear(self, text: str) -> None:
        lasts_s = len(text) / self._speed if self._speed else 0.0
        self.sounds.append(Sound(text=text, at=time.monotonic(), lasted_s=lasts_s))
        if self._heard is not None and text.strip():
            self._heard(text)
        await asyncio.sleep(lasts_s)

    async def _quiet(self, seconds: float) -> None:
        lasts_s = seconds if self._speed else 0.0
        self.sounds.append(Sound(text="", at=time.monotonic(), lasted_s=lasts_s))
        await asyncio.sleep(lasts_s)

    # -- sockets

    async def _connect(self, element: ET.Element) -> None:
        url = element.get("url", "")
        public = "ws" + self._public.removeprefix("http")
        if not url.startswith(public):
            raise CallFailed(f"the server refers to {brief(url)}, which is not its public URL")
        assert self._http is not None
        signature = self._validator.compute_signature(url, {})
        socket = await self._http.ws_connect(
            "ws" + self._url.removeprefix("http") + url[len(public) :], headers={_HEADER: signature}
        )
        if element.tag == "Stream":
            self.stream = SimulatedStream(socket, self.sid)
            await self.stream.open()
            return
        self._socket = socket
        self._reports = self._reports and "tokens-played" in element.get("events", "")
        self.language = element.get("language", element.get("ttsLanguage", ""))
        await self._send({"type": "setup", "callSid": self.sid, "sessionId": "VX1", "from": self._number})
        await self._hear(element.get("welcomeGreeting", ""))

    async def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
        if self.stream is not None:
            await self.stream.aclose()

    async def _prompt(self, text: str, *, last: bool) -> None:
        await self._send({"type": "prompt", "voicePrompt": text, "lang": self._speaks, "last": last})

    async def _send(self, message: Mapping[str, Any]) -> None:
        assert self._socket is not None
        await self._socket.send_str(json.dumps(message))

    async def _reply(self, started: float, cut_in_after: str | None) -> str:
        """What is said until the last token; the server may end the call instead."""
        try:
            return await self._tokens(started, cut_in_after)
        except _HungUp:
            return await self._after_end(SessionStatus="ended")

    async def _tokens(self, started: float, cut_in_after: str | None) -> str:
        """Tokens until the last; they are played as they come."""
        text, began, cut = "", time.monotonic(), False
        while True:
            message = await self._receive()
            if message.get("type") != "text":
                continue
            self.tokens.append((time.monotonic(), str(message["token"])))
            if cut:  # it is not played any more
                if message.get("last"):
                    break
                continue
            if message["token"] and not text:
                began = time.monotonic()
                self.delays_s.append(began - started)
            text += message["token"]
            if cut_in_after is not None and cut_in_after in text:
                heard = text[: text.index(cut_in_after) + len(cut_in_after)]
                await self._send({"type": "interrupt", "utteranceUntilInterrupt": heard})
                text, cut = heard, not message.get("last")
                if not cut:
                    break
                continue
            if message.get("last"):
                break
            if self._speed:
                await asyncio.sleep(len(message["token"]) / self._speed)
        await self._finish(text, began, played=cut_in_after is None)
        return text.strip()

    async def _finish(self, text: str, began: float, *, played: bool) -> None:
        if self._reports and text and played:
            await self._send({"type": "info", "name": "tokensPlayed", "value": text})
        self.sounds.append(Sound(text=text, at=began, lasted_s=time.monotonic() - began))
        if self._heard is not None and text.strip():
            self._heard(text.strip())

    async def _receive(self) -> dict[str, Any]:
        assert self._socket is not None
        received = await self._socket.receive(timeout=180)
        if received.type is not aiohttp.WSMsgType.TEXT:
            self.over = True
            raise CallFailed("the server closed the socket")
        message = json.loads(received.data)
        if not isinstance(message, dict):
            raise CallFailed("the server sent what is no message")
        if message.get("type") == "end":
            raise _HungUp
        if message.get("type") == "language":
            self.language = str(message.get("ttsLanguage", ""))
        return message


__all__ = ["CallFailed", "SimulatedCall", "Sound", "Webhook"]
