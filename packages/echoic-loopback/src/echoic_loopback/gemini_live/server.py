"""The Gemini Live stand-in: TLS, as the provider's client insists on it, sessions, and resumption."""

from __future__ import annotations

import asyncio
import copy
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.frames import CloseCode

from echoic_loopback.gemini_live.protocol import Refused, Setup, check_setup
from echoic_loopback.gemini_live.session import GeminiSession
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
from echoic_loopback.realtime.tls import LoopbackAuthority, loopback_authority

PATH = re.compile(
    r"/ws/google\.ai\.generativelanguage\.(v1|v1alpha|v1beta)\.GenerativeService\.BidiGenerateContent"
)
HANDLE_S = 2 * 60 * 60
"""Life of a resumption handle after its session ended, by the provider's guide."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a handle stands for."""

    context: list[dict[str, Any]]
    until_s: float


class GeminiLiveServer(LoopbackServer[GeminiSession]):
    """`async with GeminiLiveServer(Script(...)) as server:` and clients at `server.base_url`, over TLS.

    A client has to trust `server.authority`: build it inside `with server.trusted():`, or give it
    `server.authority.client()` as its TLS context.

    Args:
        scripts: connection n plays script n, a resumed session being a new connection; see `LoopbackServer`.
        api_key: the only key that is taken; any key where None.
        models: the only models there are; any where None.
        marks_finished: the last piece of a transcript says that it is, which not every model's does.
        tolerate: see `LoopbackServer`, as are `keep_audio`, `keep_events`, `patience_s` and
            `speed`.
    """

    def __init__(
        self,
        *scripts: Script[GeminiSession] | Chooser[GeminiSession],
        api_key: str | None = None,
        models: Collection[str] | None = None,
        marks_finished: bool = False,
        tolerate: Collection[str] = (),
        keep_audio: bool = True,
        keep_events: int | None = None,
        patience_s: float = 30.0,
        speed: float = 1.0,
    ) -> None:
        self.authority: LoopbackAuthority = loopback_authority()
        super().__init__(
            *scripts,
            tolerate=tolerate,
            keep_audio=keep_audio,
            keep_events=keep_events,
            patience_s=patience_s,
            speed=speed,
            tls=self.authority.server,
        )
        self._api_key = api_key
        self._models = None if models is None else frozenset(models)
        self._marks_finished = marks_finished
        self._saved: dict[str, Saved] = {}

    @property
    def base_url(self) -> str:
        """For `HttpOptions(base_url=...)` or `GoogleProvider(base_url=...)`."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Of the WebSocket."""
        service = "google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
        return f"wss://127.0.0.1:{self.port}/ws/{service}"

    @contextmanager
    def trusted(self) -> Iterator[Path]:
        """Clients built inside trust this server: `SSL_CERT_FILE` names its authority."""
        with self.authority.trusted() as path:
            yield path

    def forget_handles(self) -> None:
        """As when they have expired."""
        self._saved.clear()

    async def http(self, request: HttpRequest) -> HttpResponse:
        message = f"The stand-in has no {request.method} {request.path}."
        return HttpResponse.of_json(404, {"error": {"code": 404, "message": message, "status": "NOT_FOUND"}})

    async def websocket(self, request: HttpRequest, opening: Opening[GeminiSession]) -> None:
        found = PATH.fullmatch(request.path)
        key = request.headers.get("x-goog-api-key") or request.query.get("key")
        if found is None:
            await opening.refuse(await self.http(request))
            return
        if not key:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            error = {"code": 403, "message": message, "status": "PERMISSION_DENIED"}
            await opening.refuse(HttpResponse.of_json(403, {"error": error}))
            return
        script = self.next_script()
        session = self._new_session(script, found[1])
        if not await opening.accept(script):
            return
        session.known = self._api_key in (None, key)
        await self._serve_session(session, opening)

    async def _serve_session(self, session: GeminiSession, opening: Opening[GeminiSession]) -> None:
        playing = self.spawn(self._play(session))
        try:
            await serve_line(session, SocketLine(opening.socket, binary=True), session.receive)
        finally:
            session.ended.set()
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing

    async def _play(self, session: GeminiSession) -> None:
        await session.until(lambda: session.setup is not None, "setup")
        await asyncio.sleep(session.script.ready_after_s)
        session.emit(setupComplete={"sessionId": f"session-{session.number}"})
        await session.run()

    def _new_session(self, script: Script[GeminiSession], version: str) -> GeminiSession:
        def set_up(session: GeminiSession, setup: Setup) -> None:
            if not session.known:
                raise Refused("invalid_api_key", "API key not valid. Please pass a valid API key.")
            check_setup(setup, self._models, version)
            self._resume(session, setup)

        session = GeminiSession(
            len(self.sessions),
            script,
            keep_audio=self.keep_audio,
            patience_s=self.patience_s,
            speed=self.speed,
            marks_finished=self._marks_finished,
            on_setup=set_up,
            on_handle=self._save,
            on_violation=self.violation,
            on_fault=self.faults.append,
        )
        self.opened(session)
        return session

    def _save(self, session: GeminiSession) -> str:
        handle = f"handle-{session.number}-{len(session.handles)}"
        self._saved[handle] = Saved(copy.deepcopy(session.context), time.monotonic() + HANDLE_S)
        return handle

    def _resume(self, session: GeminiSession, setup: Setup) -> None:
        handle = setup.session_resumption.handle if setup.session_resumption is not None else None
        if handle is None:
            return
        saved = self._saved.get(handle)
        if saved is None or time.monotonic() > saved.until_s:
            raise Refused(
                "session_not_found",
                "BidiGenerateContent session not found",
                close_code=CloseCode.POLICY_VIOLATION,
            )
        session.context = copy.deepcopy(saved.context)
        session.resumed_from = handle


__all__ = ["GeminiLiveServer"]
