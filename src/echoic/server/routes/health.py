"""Liveness, readiness, version and the page, for anybody; the health of memory, for operators. No
contents.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import Field

from echoic.adapters.twilio.settings import TRUST_MEANS, Trust
from echoic.server.live import HealthView, described, event, streamed
from echoic.server.models import ResponseModel
from echoic.server.problems import responses
from echoic.server.request_callers import AppState, AsOperator, OperatedDeployment, Shared

router = APIRouter(tags=["health"])
STATIC = Path(str(files("echoic.server") / "static"))

page_router = APIRouter(include_in_schema=False)


@page_router.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


class Alive(ResponseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class Readiness(ResponseModel):
    """Whether the server can serve requests."""

    ready: bool
    store: Literal["ok", "unavailable"]
    embedder: Literal["ok", "unavailable"] = Field(
        description="unavailable: records are stored and found by words, and embedded when it returns."
    )


class About(ResponseModel):
    """The server's version and configuration."""

    version: str
    deployment_id: str = Field(description="The default deployment of new identities.")
    embedder: str = Field(examples=["local:all-MiniLM-L6-v2:fp32"])
    semantic: bool = Field(description="Whether search is by meaning, or by words and sounds only.")
    agent: str = Field(description='Who answers: "keyless" means rules.')
    model: str | None = Field(
        description="The language model, if there is one.", examples=["openai:gpt-5-mini"]
    )
    phone_trust: Trust = Field(description="Which caller numbers are trusted; `--phone-trust`.")
    phone_trust_means: str = Field(description="`phoneTrust` in words.")


@router.get("/healthz", summary="Liveness")
async def healthz() -> Alive:
    """Always 200 while the process runs."""
    return Alive()


@router.get(
    "/readyz", summary="Readiness", responses={503: {"model": Readiness, "description": "Not ready."}}
)
async def readyz(shared: Shared, response: Response) -> Readiness:
    """Whether the store can be read and written, and the embedder works. Both are tried, once for all who ask
    at the same time.
    """
    store, embedder = await shared.health.ready()
    if not (store and embedder):
        response.status_code = 503
        response.headers["Retry-After"] = "5"
    return Readiness(
        ready=store and embedder,
        store="ok" if store else "unavailable",
        embedder="ok" if embedder else "unavailable",
    )


@router.get("/api/about", summary="Version and configuration")
async def about(shared: Shared) -> About:
    """What a page displays about the server."""
    from echoic import __version__

    embedder = shared.memory.embedder
    return About(
        version=__version__,
        deployment_id=shared.settings.default_deployment,
        embedder=embedder.spec.model,
        semantic=embedder.semantic,
        agent=shared.agent,
        model=shared.talker.model if shared.talker else None,
        phone_trust=shared.settings.phone_trust,
        phone_trust_means=TRUST_MEANS[shared.settings.phone_trust],
    )


watched = APIRouter(tags=["operator"], dependencies=[AsOperator])
_LISTENS_S = 600
"""After this time a page must ask again, and so send its key again."""
_BURST_S = 1.0
"""Minimum time between two events."""


@watched.get("/api/health", summary="Get the health of a deployment", responses=responses(401, 404, 422, 429))
async def get_health(shared: Shared, deployment: OperatedDeployment) -> HealthView:
    """Recalls per minute, jobs, store and embedder, and what to do about problems."""
    return await shared.health.health(deployment)


@watched.get(
    "/api/health/events",
    summary="Watch the health of a deployment",
    response_class=StreamingResponse,
    responses={**described("`health`: as GET /api/health."), **responses(401, 404, 422, 429)},
)
async def watch_health(shared: Shared, deployment: OperatedDeployment) -> StreamingResponse:
    """Sent at once, after each recall, and every few seconds. Ends after ten minutes: ask again."""
    return streamed(_told(shared, deployment))


async def _told(shared: AppState, deployment: str) -> AsyncIterator[bytes]:
    until = time.monotonic() + _LISTENS_S
    while not shared.health.closed and time.monotonic() < until:
        yield event("health", await shared.health.health(deployment))
        await shared.health.changed(shared.settings.beat_s)
        if not shared.health.closed:
            await asyncio.sleep(_BURST_S)
