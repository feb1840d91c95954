"""The routes, grouped by resource, with the models of requests and answers."""

from fastapi import APIRouter

from echoic.server.routes import (
    calls,
    conversations,
    health,
    identity,
    memories,
    operator,
    v1,
    voice,
)

ROUTERS: tuple[APIRouter, ...] = (
    identity.router,
    v1.for_keys,
    v1.router,
    memories.router,
    conversations.router,
    calls.router,
    voice.router,
    memories.erasure,
    operator.router,
    operator.audit_router,
    health.router,
    health.watched,
    calls.watched,
    health.page_router,
)

__all__ = ["ROUTERS"]
