"""The routes, one module a noun."""

from fastapi import APIRouter

from echoic.server.routes import (
    chat,
    conversations,
    erasure,
    forming,
    health,
    identity,
    known,
    memories,
    memory,
    page,
    proposals,
)

ROUTERS: tuple[APIRouter, ...] = (
    identity.router,
    memory.router,
    memories.router,
    known.router,
    forming.router,
    conversations.router,
    chat.router,
    erasure.router,
    proposals.router,
    health.router,
    page.router,
)

__all__ = ["ROUTERS"]
