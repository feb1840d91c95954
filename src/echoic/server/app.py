"""The application: routes behind guards, and how uvicorn runs it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from echoic.adapters.connections import guarded
from echoic.checks import checked_secrets
from echoic.memory.service import MemoryService
from echoic.server import problems
from echoic.server.credentials import IdentityTokens, IssuedTokens, PageCookies, Principal
from echoic.server.guards import (
    BodyGuard,
    OriginGuard,
    RequestLimit,
    RequestLog,
    SecurityHeaders,
    WriteQueue,
)
from echoic.server.live import EventStreams, HealthWatch, Speculations
from echoic.server.request_callers import AppState, called, recognise
from echoic.server.routes import ROUTERS, v1, voice
from echoic.server.routes.health import STATIC
from echoic.server.settings import ServerSettings

if TYPE_CHECKING:
    from echoic.capability.talker import Talker
    from echoic.integrations.mcp import HttpEndpoint
    from echoic.memory.user import UserMemory

MAX_MESSAGE = 64 * 1024
"""Size limit of a socket message in bytes: more than a second of audio at 24 kHz."""


def uvicorn_config(app: FastAPI, *, host: str = "127.0.0.1", port: int = 8300) -> uvicorn.Config:
    """Configuration for `uvicorn.Server(...)`.

    uvicorn's access log is off, since it contains paths and query strings; `echoic.access` logs method,
    route, status and time. One process: the store has one writer, and the service one background task.

    Raises:
        InvalidInput: other machines can reach `host`, and the secret or a key is easy to guess.
    """
    settings: ServerSettings = app.state.served.settings
    agents = {f"agent key {place}": key for place, key in enumerate(settings.agent_keys, start=1)}
    checked_secrets({"secret": settings.secret, "operator_key": settings.operator_key or "", **agents}, host)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        ws_max_size=MAX_MESSAGE,
        # a page that disappeared is detected after two missing pongs
        ws_ping_interval=10,
        ws_ping_timeout=10,
        lifespan="on",
        timeout_keep_alive=10,
        **guarded(settings.limits),
    )


class MemoryServer(uvicorn.Server):
    """uvicorn's server, which ends event streams before it waits for connections to close."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve; if there are calls, with the heap frozen so that the garbage collector does not
        pause them.
        """
        await super().startup(sockets)
        app: Any = self.config.app
        served = getattr(app.state, "served", None)  # None if the start failed
        if served is not None and served.voice is not None:
            from echoic.session.voice_call import freeze_heap

            freeze_heap()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close event streams, suspend live calls for the next process to resume, then shut down."""
        app: Any = self.config.app
        served = app.state.served
        served.live.close()
        served.health.close()
        if served.voice is not None:
            await served.voice.aclose()
        await super().shutdown(sockets=sockets)


_ABOUT = """
Memory for voice agents, over HTTP.

Get an identity with `POST /api/identity` and send it as a bearer token, or as `userCookie` to `/api/memory`.
A backend gets a token for each of its own users with `POST /v1/tokens`; see docs/http.md.
Pages of this server keep tokens in cookies instead (`/api/cookies`), named by the header `X-Echoic-Caller`.
The token alone determines whose memory is used. Every error is a `Problem`; a 503 never means that nothing is
known: memory could not be read or written, or with `model_unavailable` the turn is stored and has no answer.
"""
_TAGS = [
    {"name": "identity", "description": "Identities of callers."},
    {"name": "memory", "description": "The memory of a caller."},
    {"name": "v1", "description": "Memory for a backend with users, calls and an agent of its own."},
    {
        "name": "conversation",
        "description": "Talking to the agent: a language model if one is configured, otherwise rules.",
    },
    {"name": "calls", "description": "Recorded calls. Takes a user's token, or the operator's key."},
    {"name": "voice", "description": "Live calls; see docs/voice_page.md for what goes over the socket."},
    {"name": "erasure", "description": "Export and erasure."},
    {"name": "operator", "description": "For the operator of the deployment."},
    {"name": "health", "description": "Liveness and readiness."},
]


def create_app(
    memory: MemoryService, settings: ServerSettings, *, mcp: bool = False, webhooks: APIRouter | None = None
) -> FastAPI:
    """The server of `memory`, which is opened when the app starts and closed when it ends.

    Args:
        memory: the service, not open yet.
        settings: settings of the server.
        mcp: whether to serve the Model Context Protocol at /mcp.
        webhooks: routes of hosted voice platforms, served at /hooks; see `echoic.integrations.hosted_agents`.

    Raises:
        InvalidInput: a model of `settings` is unknown, or needs packages that are not installed.
        ImportError: the MCP SDK is not installed.

    Raises (when the app starts):
        InvalidInput: a model's key is missing.
        EmbedderMissing: the embedder's packages or weights are not on this machine.
        EmbeddingMismatch: the store has vectors of another model.
        StoreError: the store cannot be opened.
    """
    served = _state(memory, settings)
    endpoint, protocol = _mcp(served) if mcp else (None, [])

    from echoic import __version__

    app = FastAPI(
        redirect_slashes=False,  # an id that ends in a slash would lead to the list
        title="Echoic",
        version=__version__,
        summary="Memory for voice agents.",
        description=_ABOUT,
        openapi_tags=_TAGS,
        lifespan=lambda _app: _opened(served, endpoint),
        # FastAPI's own pages load scripts from a CDN; use /openapi.json with any viewer
        docs_url=None,
        redoc_url=None,
        middleware=_guards(settings, hooks=webhooks is not None),
        # a trace of a request would contain what was said
        telemetry={"tracing": False},
    )
    app.state.served = served
    problems.install(app)
    # include_router would rebuild every route, a tenth of a second, during the first request
    app.router.routes += [route for router in (*ROUTERS, voice.sockets) for route in router.routes]
    if webhooks is not None:
        app.include_router(webhooks, prefix="/hooks", include_in_schema=False)
    app.router.routes += protocol
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _state(memory: MemoryService, settings: ServerSettings) -> AppState:
    tokens = IdentityTokens(settings)
    return AppState(
        memory=memory,
        settings=settings,
        tokens=tokens,
        cookies=PageCookies(settings, tokens),
        verify=_verifier(settings, tokens),
        live=EventStreams(memory, settings.limits),
        speculations=Speculations(memory),
        health=HealthWatch(memory),
        talker=_talker(memory, settings),
        voice=voice.switchboard(memory, settings),
    )


@asynccontextmanager
async def _opened(served: AppState, endpoint: HttpEndpoint | None) -> AsyncIterator[None]:
    """Open everything that the app uses, and close it in the reverse order."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(served.memory)
        if served.talker is not None:
            await stack.enter_async_context(served.talker)
        if served.voice is not None:
            stack.push_async_callback(served.voice.aclose)
        stack.push_async_callback(served.speculations.aclose)
        stack.callback(served.live.close)
        stack.callback(served.health.close)
        if endpoint is not None:
            await stack.enter_async_context(endpoint.running())
        served.live.open()
        served.health.open()
        served.speculations.open()
        yield


def _mcp(served: AppState) -> tuple[HttpEndpoint, list[BaseRoute]]:
    """The Model Context Protocol, for holders of an identity token or a token of the authorization server."""
    from echoic.integrations.mcp import HttpEndpoint, resource_metadata

    ours, issued, about = served.settings, None, ""
    routes: list[BaseRoute] = []
    if ours.mcp_authorization is not None:
        issued = IssuedTokens(ours.mcp_authorization, ours.default_deployment)
        about, routes = resource_metadata(ours.mcp_authorization.resource, ours.mcp_authorization.issuer)

    async def recognised(request: Request) -> UserMemory:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        verify = None
        if issued is not None and issued.is_one(token) and (ours.accounts is None or issued.is_own(token)):
            verify = issued.verify
        try:
            principal = await recognise(served, request, token, verify=verify)
        except problems.Refused as refused:
            if about and refused.status == HTTPStatus.UNAUTHORIZED:  # where to get a token
                refused.headers = {"WWW-Authenticate": f'Bearer resource_metadata="{about}"'}
            raise
        return (await called(served, request, principal)).memory

    endpoint = HttpEndpoint(recognised)
    return endpoint, [Route("/mcp", endpoint, methods=["POST"]), *routes]


def _verifier(settings: ServerSettings, tokens: IdentityTokens) -> Callable[[str, str | None], Principal]:
    """Verifies identity tokens and, if there are accounts, the tokens of their issuer."""
    if settings.accounts is None:
        return tokens.verify
    accounts = IssuedTokens(settings.accounts, settings.default_deployment)

    def verify(token: str, deployment: str | None) -> Principal:
        return (accounts if accounts.is_one(token) else tokens).verify(token, deployment)

    return verify


def _talker(memory: MemoryService, settings: ServerSettings) -> Talker | None:
    if settings.model is None:
        return None
    from echoic.models import checked

    checked(settings.model)
    from echoic.capability.talker import Talker

    return Talker(memory, settings.model, recall_deadline_ms=settings.recall_deadline_ms)


def _guards(settings: ServerSettings, *, hooks: bool) -> list[Middleware]:
    """The guards, outermost first; `hooks`: there are webhooks of hosted voice platforms."""
    larger = {}
    if hooks:
        from echoic.integrations.hosted_agents import MAX_BODY_BYTES

        larger = {"/hooks/": MAX_BODY_BYTES}
    guards = [
        Middleware(SecurityHeaders),
        Middleware(RequestLog),
        Middleware(RequestLimit, per_address=settings.limits.requests_per_address, writes=v1.WRITES),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(settings.allowed_hosts), www_redirect=False),
        Middleware(OriginGuard, allowed_origins=settings.allowed_origins),
        Middleware(
            BodyGuard,
            max_bytes=settings.max_body_bytes,
            max_depth=settings.max_json_depth,
            deadline_s=settings.body_deadline_s,
            larger=larger,
        ),
        Middleware(WriteQueue, paths=v1.WRITES),
    ]
    if settings.limits.trusted_proxies:
        proxies = list(settings.limits.trusted_proxies)
        guards.insert(0, Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies))
    if settings.allowed_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
        guards.append(cors)
    return guards
