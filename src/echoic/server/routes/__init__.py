"""The routes, grouped by resource; the models of requests and answers are beside them."""

from fastapi import APIRouter

from echoic.server.routes import (
    calls,
    conversations,
    global_memory,
    health,
    identity,
    memories,
    people,
    v1,
    voice,
    watch,
)

ROUTERS: tuple[APIRouter, ...] = (
    identity.router,
    v1.router,
    memories.router,
    conversations.router,
    calls.router,
    voice.router,
    memories.erasure,
    people.router,
    global_memory.router,
    global_memory.audit_router,
    health.router,
    health.watched,
    watch.router,
    health.page_router,
)

__all__ = ["ROUTERS"]
