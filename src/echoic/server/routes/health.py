"""Is it alive, can it work, and what is it made of. Open to everybody; says nothing of what is kept."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import Field

from echoic.adapters.twilio.settings import TRUST_MEANS, Trust
from echoic.errors import EchoicError
from echoic.memory.service import MemoryService
from echoic.server.callers import Shared
from echoic.server.models import Shown

router = APIRouter(tags=["health"])

_PROBE_S = 5.0


class Alive(Shown):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(Shown):
    """Whether requests would be served."""

    ready: bool
    store: Literal["ok", "unavailable"]
    embedder: Literal["ok", "unavailable"] = Field(
        description="unavailable: everything is kept and found by words; vectors follow when it returns."
    )


class About(Shown):
    """What this server is made of."""

    version: str
    deployment_id: str = Field(description="The deployment an identity is given in when none is named.")
    embedder: str = Field(examples=["local:all-MiniLM-L6-v2:fp32"])
    semantic: bool = Field(description="Whether the embedder knows meaning, or words and sounds only.")
    agent: str = Field(description='Who talks with callers: "keyless" is a set of rules.')
    model: str | None = Field(
        description="The language model that does, where one is set up.", examples=["openai:gpt-5-mini"]
    )
    phone_trust: Trust = Field(description="Which calls count as a user's own; `--phone-trust`.")
    phone_trust_means: str = Field(description="The same in words.")


@router.get("/healthz", summary="Is it alive?")
async def healthz() -> Alive:
    """Always, as long as the process answers."""
    return Alive()


@router.get(
    "/readyz", summary="Can it work?", responses={503: {"model": Readiness, "description": "It cannot."}}
)
async def readyz(shared: Shared, response: Response) -> Readiness:
    """Whether the store can be read and written and the embedder embeds: tried, not looked up."""
    store, embedder = await asyncio.gather(_store_works(shared.memory), _embedder_works(shared.memory))
    if not (store and embedder):
        response.status_code = 503
        response.headers["Retry-After"] = "5"
    return Readiness(
        ready=store and embedder,
        store="ok" if store else "unavailable",
        embedder="ok" if embedder else "unavailable",
    )


@router.get("/api/about", summary="What is it made of?")
async def about(shared: Shared) -> About:
    """For a page that wants to say what it shows."""
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
            # a store may answer about itself while it cannot be read
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


__all__ = ["router"]
