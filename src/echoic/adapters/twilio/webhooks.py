"""The routes of a phone: each webhook is answered within two seconds, however long the model takes.

Twilio may repeat a webhook, so answers are kept by call, step and part. The model runs in the background;
`/phone/poll` returns what it has said meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request, Response, WebSocket
from starlette.datastructures import FormData
from twilio.twiml.voice_response import Connect, Gather, VoiceResponse

from echoic.adapters.connections import Limits, guarded
from echoic.adapters.twilio.media import serve_media
from echoic.adapters.twilio.phone import Phone, PhoneCall
from echoic.adapters.twilio.relay import serve_relay
from echoic.adapters.twilio.settings import PhoneSettings
from echoic.adapters.twilio.signatures import SignatureRefused, call_of
from echoic.memory.audit import act

log = logging.getLogger(__name__)

MAX_SAID_CHARACTERS: Final = 3000
"""Limit of one <Say>, for which Twilio allows 4,096; longer text is split."""
DETECTED: Final = "multi"
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""


class TwiML:
    """Writes TwiML for one server, whose scheme and host for Twilio are `base`."""

    def __init__(self, settings: PhoneSettings, base: str) -> None:
        self._settings = settings
        self._base = base

    def url(self, path: str, **query: Any) -> str:
        return f"{self._base}{path}{'?' + urlencode(query) if query else ''}"

    def listen(self, words: str, action: str, *, language: str) -> str:
        """Say `words` in `language`, then listen and send what was said to `action`.

        The caller cannot interrupt: webhooks do not report how much was heard, and unheard words must not be
        stored.
        """
        response = VoiceResponse()
        if words:
            self._say(response, words, language)
        gather = Gather(
            input="dtmf speech",
            action=action,
            method="POST",
            speech_timeout="auto",
            timeout=6,
            finish_on_key="#",
            action_on_empty_result=True,
            language=language,
            hints=", ".join(self._settings.hints) or None,
        )
        response.append(gather)
        return str(response)

    def go_on(self, words: str, action: str, *, language: str, pause_s: int = 0) -> str:
        """Say `words`, pause, and ask `action` what comes next."""
        response = VoiceResponse()
        if words:
            self._say(response, words, language)
        if pause_s:
            response.pause(length=pause_s)
        response.redirect(action, method="POST")
        return str(response)

    def end(self, words: str = "", *, language: str | None = None) -> str:
        """Say `words` and hang up."""
        response = VoiceResponse()
        if words:
            self._say(response, words, language or self._settings.language)
        response.hangup()
        return str(response)

    def relay(self, socket: str, action: str, greeting: str, *, language: str) -> str:
        """Connect the call to `socket`, which speaks and hears text; afterwards ask `action`.

        Interim transcripts are sent too, so that memory is searched meanwhile.
        """
        settings = self._settings
        response = VoiceResponse()
        connect = Connect(action=action, method="POST")
        relay = connect.conversation_relay(
            url=self._socket(socket),
            welcome_greeting=_plain(greeting) or None,
            voice=settings.voice_of(language),
            interruptible="any",
            dtmf_detection=True,
            partial_prompts=True,
            hints=", ".join(settings.hints) or None,
            events="tokens-played",
            **_hearing(language, detected=settings.detect_language),
        )
        for other in settings.spoken:
            relay.language(code=other, voice=settings.voice_of(other))
        response.append(connect)
        return str(response)

    def stream(self, socket: str, action: str, greeting: str, *, language: str) -> str:
        """Say `greeting`, then connect the call's audio to `socket`; afterwards ask `action`."""
        response = VoiceResponse()
        self._say(response, greeting, language)
        connect = Connect(action=action, method="POST")
        connect.stream(url=self._socket(socket))
        response.append(connect)
        return str(response)

    def _socket(self, path: str) -> str:
        return (
            f"{'wss' if self._base.startswith('https') else 'ws'}{self._base[self._base.index(':') :]}{path}"
        )

    def _say(self, parent: VoiceResponse, words: str, language: str) -> None:
        for piece in _pieces(_plain(words)):
            parent.say(piece, language=language, voice=self._settings.voice_of(language))


def _hearing(language: str, *, detected: bool) -> dict[str, str]:
    """The recognition language; "multi" is Twilio's value for detecting it, which Deepgram supports."""
    if not detected:
        return {"language": language}
    return {
        "tts_language": language,
        "transcription_language": DETECTED,
        "transcription_provider": "Deepgram",
    }


def _plain(words: str) -> str:
    return _UNSPEAKABLE.sub(" ", words.encode(errors="replace").decode())


def _pieces(words: str) -> list[str]:
    """`words` in pieces that one <Say> can hold, cut between words if possible."""
    pieces: list[str] = []
    while len(words) > MAX_SAID_CHARACTERS:
        at = words.rfind(" ", 1, MAX_SAID_CHARACTERS) + 1 or MAX_SAID_CHARACTERS
        pieces.append(words[:at])
        words = words[at:]
    return [piece for piece in (*pieces, words) if piece.strip()]


FIGURES: Final = "X-Echoic-Call"
"""Header of the response that ends a call: its `Figures`, as JSON."""
_SILENCES: Final = 3
_MAX_SAID: Final = 4000
_MAX_PART: Final = 8000
"""Characters of a reply in one response: Twilio allows 64 KB of TwiML, and a character may take five
bytes."""
_RECONNECTS: Final = 3
_SENTENCES = re.compile(r".*[.!?…][\"'”’)]*\s", re.DOTALL)
_OVER: Final = frozenset({"completed", "busy", "failed", "no-answer", "canceled"})


class WebhookReply:
    """One reply, returned in parts as it forms."""

    def __init__(self, call: PhoneCall, said: str, turn: str, confidence: float | None) -> None:
        self._call = call
        self._text = ""
        self._task = asyncio.ensure_future(call.speak(said, turn=turn, confidence=confidence, out=self._add))

    async def _add(self, text: str) -> None:
        self._text += text

    async def take(self, within_s: float) -> tuple[str, bool]:
        """The text to say now, and whether the reply is complete. Waits for the end, or until the timeout."""
        await asyncio.wait({self._task}, timeout=within_s)
        done = self._task.done()
        text = self._part(done=done)
        self._text = self._text[len(text) :]
        self._call.sent(text, apart=True)
        return text, done and not self._text

    def _part(self, *, done: bool) -> str:
        """The beginning that can be said now: whole sentences, unless it is the end."""
        part = self._text[:_MAX_PART]
        if done and part == self._text:
            return part
        sentences = _SENTENCES.match(part)
        if sentences:
            return sentences.group()
        return part[: part.rfind(" ") + 1] or part if len(part) == _MAX_PART else ""


class Dialogue:
    """The state of a call over webhooks, and its last replies."""

    def __init__(self, phone: Phone, call: PhoneCall) -> None:
        self.call = call
        self._phone = phone
        self._answers: dict[tuple[str, int, int], asyncio.Task[str]] = {}
        self._replies: dict[int, WebhookReply] = {}
        self._step = 0
        self._silences = 0
        self._reconnects = 0
        self._sounded = time.monotonic()
        self._fillers = 0

    def reached(self, step: int) -> None:
        """Number what comes next after `step`, which another process may have given out."""
        self._step = max(self._step, step)

    async def once(self, kind: str, step: int, part: int, answer: Coroutine[Any, Any, str]) -> str:
        """The answer to one webhook, made once however often it is requested."""
        key = (kind, step, part)
        if key in self._answers:
            answer.close()
        else:
            self._answers[key] = asyncio.create_task(answer)
        return await asyncio.shield(self._answers[key])

    async def answer_call(self, twiml: TwiML) -> str:
        """The greeting, and the channel to continue on."""
        pace = self._phone.settings.pace
        await asyncio.wait({self.call.opened}, timeout=pace.answer_within_s)
        if self.call.over:  # a replay of a call that ended before
            return twiml.end()
        return self._connect(twiml, self.call.caller_session.greet())

    def _connect(self, twiml: TwiML, greeting: str) -> str:
        channel = self._phone.settings.channel
        if channel == "gather":
            return self.listen(twiml, greeting)
        token = self._phone.socket_token(self.call.sid)
        self._step += 1
        after = self._url(twiml, "/phone/connected", self._step)
        if channel == "media":
            return twiml.stream(f"/phone/media/{token}", after, greeting, language=self.call.language)
        return twiml.relay(f"/phone/relay/{token}", after, greeting, language=self.call.language)

    async def turn(self, twiml: TwiML, step: int, said: str, confidence: float | None) -> str:
        """The reply to what the caller said in `step`, or a notice that it takes a moment."""
        if step < self._step or step in self._replies:
            return self._go_on(twiml, "", self._url(twiml, "/phone/poll", step, 0))
        if not said.strip():
            return self._silence(twiml)
        self._silences = 0
        self._replies[step] = WebhookReply(self.call, said[:_MAX_SAID], str(step), confidence)
        self._sounded, self._fillers = time.monotonic(), 0
        return await self.poll(twiml, step, 0)

    async def poll(self, twiml: TwiML, step: int, part: int) -> str:
        """More of the reply in `step`."""
        reply = self._replies.get(step)
        if reply is None:  # another process began it: what was said is stored, the reply is lost
            return self.listen(twiml, self.call.phrases.again)
        pace = self._phone.settings.pace
        text, done = await reply.take(pace.answer_within_s)
        if done and self.call.leaving.is_set():  # TwiML is played in order: first the words, then the hang-up
            return twiml.end(text, language=self.call.language)
        if done:
            return self.listen(twiml, text)
        again = self._url(twiml, "/phone/poll", step, part + 1)
        if text:
            self._sounded = time.monotonic() + len(text) / pace.characters_per_s
            return self._go_on(twiml, text, again)
        # the next chance to say something is a wait, a pause and two network trips later
        late = time.monotonic() - self._sounded + pace.answer_within_s + pace.pause_s + 1
        words = ""
        if self._fillers == 0 or late > pace.sound_every_s:
            words = self.call.phrases.filler(self._fillers)
            self._fillers += 1
            self._sounded = time.monotonic() + len(words) / pace.characters_per_s
        return self._go_on(twiml, words, again, pause_s=pace.pause_s)

    def listen(self, twiml: TwiML, words: str) -> str:
        """Say `words` and listen to the caller."""
        self._step += 1
        action = self._url(twiml, "/phone/turn", self._step)
        return twiml.listen(words, action, language=self.call.language)

    async def reconnect(self, twiml: TwiML, *, failed: bool) -> str:
        """A socket ended: reconnect if the call goes on, or use webhooks if sockets keep breaking."""
        if self.call.over or self.call.leaving.is_set() or not failed:
            await _ended(self.call, self._phone.settings.pace.answer_within_s)
            return twiml.end()
        await self.call.end_line(self._phone.settings.pace.answer_within_s)  # its end may not be noticed yet
        self._reconnects += 1
        words = self.call.phrases.cut_off
        if self._reconnects > _RECONNECTS:
            return self.listen(twiml, words)
        return self._connect(twiml, words)

    def _silence(self, twiml: TwiML) -> str:
        self._silences += 1
        if self._silences >= _SILENCES:
            return twiml.end(self.call.phrases.goodbye, language=self.call.language)
        return self.listen(twiml, self.call.phrases.still_there)

    def _go_on(self, twiml: TwiML, words: str, action: str, *, pause_s: int = 0) -> str:
        return twiml.go_on(words, action, language=self.call.language, pause_s=pause_s)

    def _url(self, twiml: TwiML, path: str, step: int, part: int | None = None) -> str:
        query: dict[str, object] = {"step": step, "token": self._phone.signatures.token(self.call.sid, step)}
        if part is not None:
            query["part"] = part
        return twiml.url(path, **query)


async def _ended(call: PhoneCall, within_s: float) -> None:
    """End `call`; writing may take longer than a webhook can wait."""
    ending = asyncio.ensure_future(call.hang_up())
    await asyncio.wait({ending}, timeout=within_s)


class Webhooks:
    """The webhooks that Twilio calls, for one phone."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone

    async def voice(self, request: Request) -> Response:
        form = await self._phone.signatures.form_of(request)
        sid = call_of(form)
        twiml = TwiML(self._phone.settings, self._phone.signatures.base_of(request))
        if self._phone.known(sid) is None and self._phone.busy:
            settings = self._phone.settings
            return _xml(twiml.end(settings.phrases_in(settings.language).busy))
        dialogue = self._dialogue(sid, form)
        return _xml(await dialogue.once("voice", 0, 0, dialogue.answer_call(twiml)))

    async def turn(self, request: Request) -> Response:
        """The caller said something, pressed keys, or was silent."""
        form, dialogue, twiml, step, _ = await self._next(request)
        said = str(form.get("SpeechResult", "")) or str(form.get("Digits", ""))
        sure = _number(form.get("Confidence"))
        if dialogue.call.over:
            return _xml(twiml.end())
        return _xml(await dialogue.once("turn", step, 0, dialogue.turn(twiml, step, said, sure)))

    async def poll(self, request: Request) -> Response:
        """The pause after a notice is over."""
        _, dialogue, twiml, step, part = await self._next(request)
        if dialogue.call.over:
            return _xml(twiml.end())
        return _xml(await dialogue.once("poll", step, part, dialogue.poll(twiml, step, part)))

    async def connected(self, request: Request) -> Response:
        """A socket that had the call has ended."""
        form, dialogue, twiml, step, _ = await self._next(request)
        goes_on = form.get("CallStatus", "in-progress") == "in-progress"
        failed = goes_on and form.get("SessionStatus", "failed") == "failed"
        return _xml(await dialogue.once("connected", step, 0, dialogue.reconnect(twiml, failed=failed)))

    async def status(self, request: Request) -> Response:
        """A status callback; a call that ended at Twilio ends here too."""
        form = await self._phone.signatures.form_of(request)
        call = self._phone.known(call_of(form))
        if call is not None and form.get("CallStatus") in _OVER:
            await _ended(call, self._phone.settings.pace.answer_within_s)
        # the counts of a finished call, for simulators; Twilio ignores them
        told = {FIGURES: json.dumps(call.figures.as_json())} if call is not None and call.over else {}
        return Response(status_code=204, headers=told)

    def _dialogue(self, sid: str, form: FormData) -> Dialogue:
        """The call's dialogue; one that another process began is restarted from what the carrier reports."""
        call = self._phone.call(sid, number=_only(form, "From"), attestation=_only(form, "StirVerstat"))
        if call.dialogue is None:
            call.dialogue = Dialogue(self._phone, call)
        dialogue: Dialogue = call.dialogue
        return dialogue

    async def _next(self, request: Request) -> tuple[FormData, Dialogue, TwiML, int, int]:
        """The form of a webhook, its call, and the step and part in its URL.

        Raises:
            SignatureRefused: 400 if it names no call; 403 if the call is not ours.
        """
        form = await self._phone.signatures.form_of(request)
        sid = call_of(form)
        step, part = request.query_params.get("step", ""), request.query_params.get("part", "0")
        if not (re.fullmatch("[0-9]{1,6}", step) and re.fullmatch("[0-9]{1,6}", part)):
            raise SignatureRefused(400, "step or part is missing or no number")
        self._phone.signatures.check_token(request.query_params.get("token", ""), sid, int(step))
        twiml = TwiML(self._phone.settings, self._phone.signatures.base_of(request))
        dialogue = self._dialogue(sid, form)
        dialogue.reached(int(step))
        return form, dialogue, twiml, int(step), int(part)


def phone_router(phone: Phone) -> APIRouter:
    """The routes under /phone, for any FastAPI app."""
    hooks = Webhooks(phone)
    router = APIRouter(prefix="/phone", include_in_schema=False)
    for name in ("voice", "turn", "poll", "connected", "status"):
        # a plain route: FastAPI has nothing to validate in a signed form
        hook = _guarded(getattr(hooks, name))
        router.add_route(
            f"{router.prefix}/{name}", hook, ["POST"], name=f"phone_{name}", include_in_schema=False
        )

    async def relay(socket: WebSocket, token: str) -> None:
        act("telephone", "", "phone relay")
        await serve_relay(phone, socket, token)

    async def media(socket: WebSocket, token: str) -> None:
        act("telephone", "", "phone media")
        await serve_media(phone, socket, token)

    router.add_api_websocket_route("/relay/{token}", relay)
    router.add_api_websocket_route("/media/{token}", media)
    return router


def _guarded(hook: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def guarded(request: Request) -> Response:
        act("telephone", "", f"phone {hook.__name__}")  # for the audit log
        try:
            return await hook(request)
        except SignatureRefused as error:
            log.warning("a webhook was answered %d: %s", error.status, error)
            return Response(status_code=error.status)

    return guarded


def _xml(text: str) -> Response:
    return Response(text, media_type="text/xml")


def _only(form: FormData, name: str) -> str:
    """The value of a field; empty if there are several."""
    values = form.getlist(name)
    return str(values[0]) if len(values) == 1 else ""


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def phone_app(phone: Phone) -> FastAPI:
    """An app with only the routes of `phone`. It ends calls when it ends; memory stays open."""

    @asynccontextmanager
    async def opened(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await phone.aclose()

    app = FastAPI(
        title="Echoic phone",
        lifespan=opened,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # a trace of a request would contain a token and a number
        telemetry={"tracing": False},
    )
    app.include_router(phone_router(phone))
    return app


def uvicorn_options(limits: Limits | None = None) -> dict[str, Any]:
    """Options of `uvicorn.Config` for calls: sockets enabled, time limits, and no content in logs.

    Of `limits`, only those of connections and proxies apply, since requests are signed.
    """
    return {"ws_max_size": 64 * 1024, **guarded(limits)}
