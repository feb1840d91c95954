"""The application: routes behind guards, and the memory service opened and closed with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from echoic.memory.service import MemoryService
from echoic.server import problems
from echoic.server.callers import Served
from echoic.server.guards import BodyGuard, OriginGuard, SecurityHeaders, Watch
from echoic.server.routes import ROUTERS
from echoic.server.routes.page import STATIC
from echoic.server.settings import ServerSettings
from echoic.server.tokens import Tokens

_ABOUT = """
Memory for voice agents, over HTTP.

Get an identity with `POST /api/identity` and send it as a bearer token, or as `userCookie` to `/api/memory`.
Whose memory is meant comes from the token alone. Every error is a `Problem`; a 503 means that it could not
look or could not keep, never that nothing is known.
"""
_TAGS = [
    {"name": "identity", "description": "Who is asking."},
    {"name": "memory", "description": "What is known of whoever asks."},
    {"name": "conversation", "description": "Talking to the keyless agent, which answers by rules."},
    {"name": "erasure", "description": "Taking everything along, and having it destroyed."},
    {"name": "operator", "description": "For whoever runs the deployment."},
    {"name": "health", "description": "Is it alive, can it work."},
]


def create_app(memory: MemoryService, settings: ServerSettings) -> FastAPI:
    """The server of `memory`, which is opened when the app starts and closed when it ends.

    Raises (when the app starts):
        EmbedderMissing: the embedder's packages or weights are not on this machine.
        EmbeddingMismatch: the store holds vectors of another model.
        StoreError: the store cannot be opened.
    """

    @asynccontextmanager
    async def opened(_app: FastAPI) -> AsyncIterator[None]:
        async with memory:
            yield

    from echoic import __version__

    app = FastAPI(
        title="Echoic",
        version=__version__,
        summary="Memory for voice agents.",
        description=_ABOUT,
        openapi_tags=_TAGS,
        lifespan=opened,
        # the stock pages load their scripts from elsewhere; /openapi.json is there for any viewer
        docs_url=None,
        redoc_url=None,
        middleware=_guards(settings),
        # a trace of a request would hold what was said
        telemetry={"tracing": False},
    )
    app.state.served = Served(memory=memory, settings=settings, tokens=Tokens(settings))
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _guards(settings: ServerSettings) -> list[Middleware]:
    """Outermost first."""
    guards = [
        Middleware(Watch),
        Middleware(SecurityHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(settings.allowed_hosts), www_redirect=False),
        Middleware(OriginGuard, allowed_origins=settings.allowed_origins),
        Middleware(
            BodyGuard,
            max_bytes=settings.max_body_bytes,
            max_depth=settings.max_json_depth,
            deadline_s=settings.body_deadline_s,
        ),
    ]
    if settings.allowed_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(settings.allowed_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
        guards.append(cors)
    return guards


__all__ = ["create_app"]
