"""The routes, one module a noun."""

from fastapi import APIRouter

from echoic.server.routes import (
    chat,
    conversations,
    erasure,
    forming,
    global_facts,
    health,
    identity,
    known,
    linking,
    memories,
    memory,
    page,
    proposals,
    voice,
)

ROUTERS: tuple[APIRouter, ...] = (
    identity.router,
    linking.router,
    memory.router,
    memories.router,
    known.router,
    forming.router,
    conversations.router,
    chat.router,
    voice.router,
    erasure.router,
    proposals.router,
    global_facts.router,
    health.router,
    page.router,
)

__all__ = ["ROUTERS"]
