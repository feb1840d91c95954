"""The routes, one module a noun."""

from fastapi import APIRouter

from echoic.server.routes import (
    chat,
    conversations,
    erasure,
    health,
    identity,
    memories,
    memory,
    page,
    proposals,
)

ROUTERS: tuple[APIRouter, ...] = (
    identity.router,
    memory.router,
    memories.router,
    conversations.router,
    chat.router,
    erasure.router,
    proposals.router,
    health.router,
    page.router,
)

__all__ = ["ROUTERS"]
