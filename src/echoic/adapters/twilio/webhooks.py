"""The routes of a phone: its webhooks are answered within two seconds each, whatever the model does.

A webhook that comes again, and Twilio's do, gets the answer it got: answers are kept by call, step and part.
The model runs beside them; `/phone/poll` hands over what it has come to meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response, WebSocket
from starlette.datastructures import FormData

from echoic.adapters.connections import Limits, guarded
from echoic.adapters.twilio.media import serve_media
from echoic.adapters.twilio.phone import Phone
from echoic.adapters.twilio.phone_call import PhoneCall
from echoic.adapters.twilio.relay import serve_relay
from echoic.adapters.twilio.signing import SignatureRefused, call_of
from echoic.adapters.twilio.twiml import Scribe

log = logging.getLogger(__name__)

FIGURES: Final = "X-Echoic-Call"
"""A header of the answer that ends a call: its `Figures`, as JSON."""
_SILENCES: Final = 3
_MAX_SAID: Final = 4000
_MAX_PART: Final = 8000
"""Characters of a reply in one answer: Twilio takes 64 KB of TwiML, where one may take five bytes."""
_RECONNECTS: Final = 3
_SENTENCES = re.compile(r".*[.!?…][\"'”’)]*\s", re.DOTALL)
_OVER: Final = frozenset({"completed", "busy", "failed", "no-answer", "canceled"})


class WebhookReply:
    """One reply as it forms, handed over in parts."""

    def __init__(self, call: PhoneCall, said: str, turn: str, confidence: float | None) -> None:
        self._call = call
        self._text = ""
        self._task = asyncio.ensure_future(call.speak(said, turn=turn, confidence=confidence, out=self._add))

    async def _add(self, text: str) -> None:
        self._text += text

    async def take(self, within_s: float) -> tuple[str, bool]:
        """What can be said now, and whether that is the end of it. Waits for the end, or that long."""
        await asyncio.wait({self._task}, timeout=within_s)
        done = self._task.done()
        text = self._part(done=done)
        self._text = self._text[len(text) :]
        self._call.hand_over(text, apart=True)
        return text, done and not self._text

    def _part(self, *, done: bool) -> str:
        """The beginning of what is there that can be said now: in whole sentences, unless it is the end."""
        part = self._text[:_MAX_PART]
        if done and part == self._text:
            return part
        sentences = _SENTENCES.match(part)
        if sentences:
            return sentences.group()
        return part[: part.rfind(" ") + 1] or part if len(part) == _MAX_PART else ""


class Dialogue:
    """A call over webhooks: where it stands, and what was answered."""

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

    async def once(self, kind: str, step: int, part: int, make: Callable[[], Awaitable[str]]) -> str:
        """The answer to one webhook, made once however often it is asked for."""
        key = (kind, step, part)
        if key not in self._answers:
            self._answers[key] = asyncio.ensure_future(_awaited(make))
        return await asyncio.shield(self._answers[key])

    async def answer_call(self, scribe: Scribe) -> str:
        """The first words, and the channel they lead to."""
        pace = self._phone.settings.pace
        await asyncio.wait({self.call.opened}, timeout=pace.answer_within_s)
        if self.call.over:  # this call was completed long ago: a replay
            return scribe.end()
        return self._connect(scribe, self.call.serving.greeting)

    def _connect(self, scribe: Scribe, greeting: str) -> str:
        channel = self._phone.settings.channel
        if channel == "gather":
            return self.listen(scribe, greeting)
        token = self._phone.socket_token(self.call.sid)
        self._step += 1
        after = self._url(scribe, "/phone/connected", self._step)
        if channel == "media":
            return scribe.stream(f"/phone/media/{token}", after, greeting, language=self.call.language)
        return scribe.relay(f"/phone/relay/{token}", after, greeting, language=self.call.language)

    async def turn(self, scribe: Scribe, step: int, said: str, confidence: float | None) -> str:
        """What the caller said in `step`: the reply, or that it takes a moment."""
        if step < self._step or step in self._replies:
            return self._go_on(scribe, "", self._url(scribe, "/phone/poll", step, 0))
        self._step = step
        if not said.strip():
            return self._silence(scribe)
        self._silences = 0
        self._replies[step] = WebhookReply(self.call, said[:_MAX_SAID], str(step), confidence)
        self._sounded, self._fillers = time.monotonic(), 0
        return await self.poll(scribe, step, 0)

    async def poll(self, scribe: Scribe, step: int, part: int) -> str:
        """More of the reply of `step`."""
        reply = self._replies.get(step)
        if reply is None:  # another process began it: what was said is kept, the reply is lost
            return self.listen(scribe, self.call.phrases.again)
        pace = self._phone.settings.pace
        text, done = await reply.take(pace.answer_within_s)
        if done and self.call.leaving.is_set():  # TwiML is played in order: the words, then the hang-up
            return scribe.end(text, language=self.call.language)
        if done:
            return self.listen(scribe, text)
        again = self._url(scribe, "/phone/poll", step, part + 1)
        if text:
            self._sounded = time.monotonic() + len(text) / pace.characters_per_s
            return self._go_on(scribe, text, again)
        # the next chance to say something comes a wait, a pause and two ways later
        late = time.monotonic() - self._sounded + pace.answer_within_s + pace.pause_s + 1
        words = ""
        if self._fillers == 0 or late > pace.sound_every_s:
            words = self.call.phrases.filler(self._fillers)
            self._fillers += 1
            self._sounded = time.monotonic() + len(words) / pace.characters_per_s
        return self._go_on(scribe, words, again, pause_s=pace.pause_s)

    def listen(self, scribe: Scribe, words: str) -> str:
        """Say `words` and hear what the caller says to them."""
        self._step += 1
        action = self._url(scribe, "/phone/turn", self._step)
        return scribe.listen(words, action, language=self.call.language)

    async def reconnect(self, scribe: Scribe, *, failed: bool) -> str:
        """A socket ended: a call that goes on gets another, or webhooks where sockets keep breaking."""
        if self.call.over or self.call.leaving.is_set() or not failed:
            await _ended(self.call, self._phone.settings.pace.answer_within_s)
            return scribe.end()
        self._reconnects += 1
        words = self.call.phrases.cut_off
        if self._reconnects > _RECONNECTS:
            return self.listen(scribe, words)
        return self._connect(scribe, words)

    def _silence(self, scribe: Scribe) -> str:
        self._silences += 1
        if self._silences >= _SILENCES:
            return scribe.end(self.call.phrases.goodbye, language=self.call.language)
        return self.listen(scribe, self.call.phrases.still_there)

    def _go_on(self, scribe: Scribe, words: str, action: str, *, pause_s: int = 0) -> str:
        return scribe.go_on(words, action, language=self.call.language, pause_s=pause_s)

    def _url(self, scribe: Scribe, path: str, step: int, part: int | None = None) -> str:
        query: dict[str, object] = {"step": step, "token": self._phone.signatures.token(self.call.sid, step)}
        if part is not None:
            query["part"] = part
        return scribe.url(path, **query)


async def _ended(call: PhoneCall, within_s: float) -> None:
    """End `call`; what is being written may take longer than a webhook may wait for it."""
    ending = asyncio.ensure_future(call.hang_up())
    await asyncio.wait({ending}, timeout=within_s)


async def _awaited(make: Callable[[], Awaitable[str]]) -> str:
    return await make()


class Webhooks:
    """What Twilio calls, for one phone."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone

    async def voice(self, request: Request) -> Response:
        """A call comes in."""
        form = await self._phone.signatures.form_of(request)
        sid, scribe = call_of(form), self._scribe(request)
        if self._phone.known(sid) is None and self._phone.busy:
            settings = self._phone.settings
            return _xml(scribe.end(settings.phrases_in(settings.language).busy))
        dialogue = self._dialogue(sid, form)
        return _xml(await dialogue.once("voice", 0, 0, lambda: dialogue.answer_call(scribe)))

    async def turn(self, request: Request) -> Response:
        """The caller said something, pressed keys, or was silent."""
        form = await self._phone.signatures.form_of(request)
        sid, scribe = call_of(form), self._scribe(request)
        step, _ = self._checked(request, sid)
        said = str(form.get("SpeechResult", "")) or str(form.get("Digits", ""))
        dialogue = self._dialogue(sid, form)
        if dialogue.call.over:
            return _xml(scribe.end())
        sure = _number(form.get("Confidence"))
        return _xml(await dialogue.once("turn", step, 0, lambda: dialogue.turn(scribe, step, said, sure)))

    async def poll(self, request: Request) -> Response:
        """The caller was asked for a moment, which is over."""
        form = await self._phone.signatures.form_of(request)
        sid, scribe = call_of(form), self._scribe(request)
        step, part = self._checked(request, sid)
        dialogue = self._dialogue(sid, form)
        if dialogue.call.over:
            return _xml(scribe.end())
        return _xml(await dialogue.once("poll", step, part, lambda: dialogue.poll(scribe, step, part)))

    async def connected(self, request: Request) -> Response:
        """A socket that had the call has ended."""
        form = await self._phone.signatures.form_of(request)
        sid, scribe = call_of(form), self._scribe(request)
        step, _ = self._checked(request, sid)
        goes_on = form.get("CallStatus", "in-progress") == "in-progress"
        failed = goes_on and form.get("SessionStatus", "failed") == "failed"
        dialogue = self._dialogue(sid, form)
        answer = await dialogue.once("connected", step, 0, lambda: dialogue.reconnect(scribe, failed=failed))
        return _xml(answer)

    async def status(self, request: Request) -> Response:
        """How the call stands; when it is over, it is over here too."""
        form = await self._phone.signatures.form_of(request)
        call = self._phone.known(call_of(form))
        if call is not None and form.get("CallStatus") in _OVER:
            await _ended(call, self._phone.settings.pace.answer_within_s)
        return Response(status_code=204, headers=_told(call))

    def _dialogue(self, sid: str, form: FormData) -> Dialogue:
        """Of the call; one that another process began is begun anew, with what the carrier says of it."""
        call = self._phone.call(sid, number=_only(form, "From"), attestation=_only(form, "StirVerstat"))
        if call.dialogue is None:
            call.dialogue = Dialogue(self._phone, call)
        dialogue: Dialogue = call.dialogue
        return dialogue

    def _scribe(self, request: Request) -> Scribe:
        return Scribe(self._phone.settings, self._phone.signatures.base_of(request))

    def _checked(self, request: Request, sid: str) -> tuple[int, int]:
        """Step and part a URL of ours names.

        Raises:
            Refused: 400 it names none; 403 it is not ours.
        """
        step, part = request.query_params.get("step", ""), request.query_params.get("part", "0")
        if not (re.fullmatch("[0-9]{1,6}", step) and re.fullmatch("[0-9]{1,6}", part)):
            raise SignatureRefused(400, "step or part is missing or no number")
        self._phone.signatures.check_token(request.query_params.get("token", ""), sid, int(step))
        return int(step), int(part)


def phone_router(phone: Phone) -> APIRouter:
    """The routes under /phone, for any FastAPI app."""
    hooks = Webhooks(phone)
    router = APIRouter(prefix="/phone", include_in_schema=False)
    for name in ("voice", "turn", "poll", "connected", "status"):
        # a plain route: there is nothing in a signed form for FastAPI to look at
        hook = _guarded(getattr(hooks, name))
        router.add_route(
            f"{router.prefix}/{name}", hook, ["POST"], name=f"phone_{name}", include_in_schema=False
        )

    async def relay(socket: WebSocket, token: str) -> None:
        await serve_relay(phone, socket, token)

    async def media(socket: WebSocket, token: str) -> None:
        await serve_media(phone, socket, token)

    router.add_api_websocket_route("/relay/{token}", relay)
    router.add_api_websocket_route("/media/{token}", media)
    return router


def _guarded(hook: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def guarded(request: Request) -> Response:
        try:
            return await hook(request)
        except SignatureRefused as error:
            log.warning("a webhook was answered %d: %s", error.status, error)
            return Response(status_code=error.status)

    return guarded


def _xml(text: str) -> Response:
    return Response(text, media_type="text/xml")


def _told(call: PhoneCall | None) -> dict[str, str]:
    """What a call that is over took, for whoever simulates it; Twilio reads no header."""
    return {FIGURES: json.dumps(call.figures.as_json())} if call is not None and call.over else {}


def _only(form: FormData, name: str) -> str:
    """The one value of a field; of several none is believed."""
    values = form.getlist(name)
    return str(values[0]) if len(values) == 1 else ""


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def phone_app(phone: Phone) -> FastAPI:
    """The routes of `phone` and nothing else. Ends its calls when the app ends; memory stays open."""

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
        # a trace of a request would hold a token, and a number
        telemetry={"tracing": False},
    )
    app.include_router(phone_router(phone))
    return app


def uvicorn_options(limits: Limits | None = None) -> dict[str, Any]:
    """What `uvicorn.Config` needs for calls: sockets on, nobody waited for, nothing of a call in a log.

    Args:
        limits: how many connections there may be at once. Only what it says of connections, and of the
            proxies that may have any number of them, counts here: who may call, a signature says.
    """
    return {"ws_max_size": 64 * 1024, **guarded(limits)}
