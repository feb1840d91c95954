"""The OpenAI Realtime stand-in: WebSocket sessions, client secrets, calls, sidebands, hang-up."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from websockets.frames import CloseCode

from echoic_loopback.openai_realtime.calls import answer_without_media, read_offer
from echoic_loopback.openai_realtime.protocol import CLIENT_SECRET, Refused, check
from echoic_loopback.openai_realtime.session import OpenAISession
from echoic_loopback.openai_realtime.settings import check_update, checked_session, updated
from echoic_loopback.realtime.script import Script
from echoic_loopback.realtime.server import (
    Chooser,
    HttpRequest,
    HttpResponse,
    LoopbackServer,
    Opening,
    serve_line,
)
from echoic_loopback.realtime.session import SocketLine

SECRET_S = 600
"""Life of a client secret where the client names none, by the provider's reference."""
SHORTEST_SECRET_S, LONGEST_SECRET_S = 10, 7200
MODEL = "gpt-realtime"
CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "authorization, content-type",
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-expose-headers": "location",
}
"""A browser posts its offer from a page of another origin."""
Answer = Callable[[OpenAISession, str], Awaitable[str]]
"""From a call and its SDP offer to the SDP answer, attaching the media on the way."""


class OpenAIRealtimeServer(LoopbackServer[OpenAISession]):
    """`async with OpenAIRealtimeServer(Script(...)) as server:` and clients at `server.base_url`.

    Args:
        scripts: session n, a WebSocket or a call, plays script n; see `LoopbackServer`.
        api_key: the only key that is taken; any key where None. Client secrets are taken until they expire.
        media: how calls get their audio, such as `webrtc.Media()`; None for signalling alone.
        tolerate: see `LoopbackServer`, as are `keep_audio`, `keep_events`, `patience_s` and
            `speed`.
    """

    def __init__(
        self,
        *scripts: Script[OpenAISession] | Chooser[OpenAISession],
        api_key: str | None = None,
        media: Answer | None = None,
        tolerate: Collection[str] = (),
        keep_audio: bool = True,
        keep_events: int | None = None,
        patience_s: float = 30.0,
        speed: float = 1.0,
    ) -> None:
        super().__init__(
            *scripts,
            tolerate=tolerate,
            keep_audio=keep_audio,
            keep_events=keep_events,
            patience_s=patience_s,
            speed=speed,
        )
        self.calls: dict[str, OpenAISession] = {}
        """Calls that were not hung up, by id."""
        self._api_key = api_key
        self._media = media
        self._secrets: dict[str, tuple[float, Mapping[str, Any]]] = {}

    @property
    def base_url(self) -> str:
        """For `AsyncOpenAI(base_url=...)`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def url(self) -> str:
        """Of the WebSocket, without its query."""
        return f"ws://127.0.0.1:{self.port}/v1/realtime"

    # WebSockets.

    async def websocket(self, request: HttpRequest, opening: Opening[OpenAISession]) -> None:
        if (refusal := self._unauthorised(request)) is not None:
            await opening.refuse(refusal)
        elif request.path != "/v1/realtime":
            await opening.refuse(_error(404, f"Invalid URL (GET {request.path})"))
        elif "call_id" in request.query:
            await self._sideband(request.query["call_id"], opening)
        else:
            await self._session(request, opening)

    async def _session(self, request: HttpRequest, opening: Opening[OpenAISession]) -> None:
        secret = self._secret_of(request)
        model = request.query.get("model") or (secret or {}).get("model")
        if model is None:
            await opening.refuse(_error(400, "You must provide a model parameter.", "missing_model"))
            return
        script = self.next_script()
        session = self._new_session(script, model, secret)
        if not await opening.accept(script):
            return
        line = SocketLine(opening.socket, binary=False)
        playing = self.spawn(self._play(session))
        try:
            await serve_line(session, line, session.receive)
        finally:
            session.ended.set()
            await _stopped(playing)

    async def _play(self, session: OpenAISession) -> None:
        await asyncio.sleep(session.script.ready_after_s)
        await session.until(lambda: bool(session.lines) or session.call_id is not None, "its connection")
        if session.call_id is None:
            session.emit("session.created", session=session.settings)
        await session.run()

    async def _sideband(self, call_id: str, opening: Opening[OpenAISession]) -> None:
        session = self.calls.get(call_id)
        if session is None:
            await opening.refuse(
                _error(404, f"No session found for call_id '{call_id}'.", "call_id_not_found")
            )
            return
        if not await opening.socket.accept(opening.handshake):
            return
        number = session.next_line()
        line = SocketLine(opening.socket, binary=False)
        await serve_line(session, line, lambda message: session.receive(message, number))

    def _new_session(
        self,
        script: Script[OpenAISession],
        model: str,
        settings: Mapping[str, Any] | None,
        call_id: str | None = None,
    ) -> OpenAISession:
        session = OpenAISession(
            len(self.sessions),
            script,
            model=model,
            keep_audio=self.keep_audio,
            patience_s=self.patience_s,
            speed=self.speed,
            on_violation=self.violation,
            on_fault=self.faults.append,
            call_id=call_id,
        )
        if settings is not None:
            session.settings = updated(session.settings, settings)
        self.opened(session)
        return session

    # HTTP.

    async def http(self, request: HttpRequest) -> HttpResponse:
        if request.method == "OPTIONS":
            return HttpResponse(status=204, headers=CORS)
        if (refusal := self._unauthorised(request)) is not None:
            return refusal
        try:
            match [part for part in request.path.split("/") if part]:
                case ["v1", "realtime", "client_secrets"] if request.method == "POST":
                    return self._client_secret(request)
                case ["v1", "realtime", "calls"] if request.method == "POST":
                    return await self._call(request)
                case ["v1", "realtime", "calls", call_id, "hangup"] if request.method == "POST":
                    return await self._hang_up(call_id)
                case _:
                    return _error(404, f"Invalid URL ({request.method} {request.path})")
        except Refused as refused:
            return HttpResponse.of_json(400, {"error": refused.body(None)})

    def _client_secret(self, request: HttpRequest) -> HttpResponse:
        wish = _json(request.body)
        check(CLIENT_SECRET, wish)
        lives_s = wish.get("expires_after", {}).get("seconds", SECRET_S)
        if not SHORTEST_SECRET_S <= lives_s <= LONGEST_SECRET_S:
            raise Refused(
                "invalid_value",
                f"Invalid 'expires_after.seconds': expected {SHORTEST_SECRET_S} to {LONGEST_SECRET_S}, "
                f"got {lives_s}.",
                param="expires_after.seconds",
            )
        session = wish.get("session") or {"type": "realtime"}
        check_update(session, has_spoken=False, settings={})
        value = f"ek_{secrets.token_hex(16)}"
        expires_at = int(time.time()) + lives_s
        self._secrets[value] = (time.monotonic() + lives_s, session)
        settings = {"object": "realtime.session", "id": f"sess_{secrets.token_hex(8)}", **session}
        return HttpResponse.of_json(200, {"value": value, "expires_at": expires_at, "session": settings})

    async def _call(self, request: HttpRequest) -> HttpResponse:
        offer = read_offer(request.headers.get("content-type", ""), request.body)
        if offer.session is not None:
            checked_session(offer.session)
        settings = offer.session or self._secret_of(request)
        if settings is None and "model" not in request.query:
            raise Refused(
                "missing_required_parameter", "Missing required parameter: 'session'.", param="session"
            )
        model = request.query.get("model") or (settings or {}).get("model") or MODEL
        call_id = f"rtc_{secrets.token_hex(12)}"
        session = self._new_session(self.next_script(), model, settings, call_id)
        answer = (
            answer_without_media(offer.sdp) if self._media is None else await self._media(session, offer.sdp)
        )
        self.calls[call_id] = session
        self.spawn(self._play_call(session))
        return HttpResponse(
            status=201,
            body=answer.encode(),
            headers={"content-type": "application/sdp", "location": f"/v1/realtime/calls/{call_id}", **CORS},
        )

    async def _play_call(self, session: OpenAISession) -> None:
        playing = self.spawn(self._play(session))
        try:
            await session.ended.wait()
            await session.close(CloseCode.NORMAL_CLOSURE, "")
        finally:
            self.calls.pop(str(session.call_id), None)
            await _stopped(playing)
            for cleanup in session.cleanups:
                await cleanup()

    async def _hang_up(self, call_id: str) -> HttpResponse:
        session = self.calls.pop(call_id, None)
        if session is None:
            return _error(404, f"No session found for call_id '{call_id}'.", "call_id_not_found")
        session.ended.set()
        return HttpResponse(status=200, headers=CORS)

    # Who may.

    def _unauthorised(self, request: HttpRequest) -> HttpResponse | None:
        key = _key(request)
        if not key:
            return _error(401, "Missing bearer authentication in header", "missing_authentication")
        if key in self._secrets:
            expired = time.monotonic() >= self._secrets[key][0]
            return _error(401, "The client secret has expired.", "client_secret_expired") if expired else None
        if key.startswith("ek_") or self._api_key not in (None, key):
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        return None

    def _secret_of(self, request: HttpRequest) -> Mapping[str, Any] | None:
        _, session = self._secrets.get(_key(request), (0.0, None))
        return session


def _key(request: HttpRequest) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    # a browser's WebSocket can send no header, but a subprotocol
    offered = request.headers.get("sec-websocket-protocol", "").split(",")
    prefix = "openai-insecure-api-key."
    return next(
        (name.strip().removeprefix(prefix) for name in offered if name.strip().startswith(prefix)), ""
    )


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        raise Refused("invalid_json", "We could not parse the JSON body of your request.") from None
    if not isinstance(value, dict):
        raise Refused("invalid_type", "Invalid body: expected an object.")
    return value


def _error(status: int, message: str, code: str | None = None) -> HttpResponse:
    error = {"type": "invalid_request_error", "code": code, "message": message, "param": None}
    return HttpResponse.of_json(status, {"error": error})


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


__all__ = ["OpenAIRealtimeServer"]
