"""A phone as an application of its own, and how it is run. Beside other routes, include `phone_router`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from echoic.adapters.connections import guarded
from echoic.adapters.limits import Limits
from echoic.adapters.twilio.phone import Phone
from echoic.adapters.twilio.webhooks import phone_router


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


__all__ = ["phone_app", "uvicorn_options"]
