"""What needs no identity: liveness, readiness, version, and the page. Reveals nothing that is stored."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from pydantic import Field

from echoic.adapters.twilio.settings import TRUST_MEANS, Trust
from echoic.errors import EchoicError
from echoic.memory.service import MemoryService
from echoic.server.models import Shown
from echoic.server.request_callers import Shared

router = APIRouter(tags=["health"])
STATIC = Path(str(files("echoic.server") / "static"))

page_router = APIRouter(include_in_schema=False)


@page_router.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


_PROBE_S = 5.0


class Alive(Shown):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class Readiness(Shown):
    """Whether the server can serve requests."""

    ready: bool
    store: Literal["ok", "unavailable"]
    embedder: Literal["ok", "unavailable"] = Field(
        description="unavailable: records are stored and found by words, and embedded when it returns."
    )


class About(Shown):
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
    """Whether the store can be read and written, and the embedder works. Both are tried."""
    store, embedder = await asyncio.gather(_store_works(shared.memory), _embedder_works(shared.memory))
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


async def _store_works(memory: MemoryService) -> bool:
    try:
        async with asyncio.timeout(_PROBE_S):
            facts = await memory.check()
            # a store may report its state while it cannot be read
            await memory.user("readyz", "readyz").get("readyz")
    except (EchoicError, TimeoutError):
        return False
    return bool(facts.get("writable"))


async def _embedder_works(memory: MemoryService) -> bool:
    try:
        async with asyncio.timeout(_PROBE_S):
            await memory.embedder.embed(["ready?"], "query")
    except (EchoicError, TimeoutError):
        return False
    return True
