"""A sidecar that voice-memory-bench can drive: its HTTP contract over a `MemoryService`.

The contract is mahimairaja/voice-memory-bench's, version 0.1: health, capabilities, add_message, add_fact,
search, enumerate and reset, errors as an object with `error_type`, and 422 for what is not supported. It has
no identities: whoever reaches the port may read and reset every user, so it listens on this machine only and
is for measuring, never for serving. For that there is `echoic serve`.
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from echoic.errors import EchoicError, InvalidInput, StoreUnavailable
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.types import Hit, Memory, Turn

PROVIDER = "echoic"
DEPLOYMENT = "voice-memory-bench"
MODES = ("hybrid", "semantic")
"""What may be asked for; both are the default recall, which goes by meaning, words and sounds together."""
_LOCAL = ["127.0.0.1", "localhost", "[::1]"]


class AddMessage(BaseModel):
    """One utterance of a session."""

    user_id: str
    session_id: str
    role: str
    content: str
    metadata: dict[str, Any] | None = None


class AddFact(BaseModel):
    """One thing known of a user."""

    user_id: str
    session_id: str
    fact: str
    metadata: dict[str, Any] | None = None


class Search(BaseModel):
    """A question."""

    user_id: str
    session_id: str
    query: str
    mode: str = "semantic"
    top_k: int = Field(default=10, ge=1, le=100)
    filters: dict[str, Any] | None = None


class OfSession(BaseModel):
    """Everything of a user, or of one of their sessions."""

    user_id: str
    session_id: str | None = None


class NotSupported(Exception):
    """Asked for what a contract allows and this does not have."""

    def __init__(self, capability: str, reason: str) -> None:
        """Which, and why."""
        super().__init__(reason)
        self.capability = capability


def sidecar_app(memory: MemoryService) -> FastAPI:
    """The application over `memory`, which whoever calls this opens and closes."""
    app = FastAPI(
        title="Echoic, as a sidecar of voice-memory-bench",
        docs_url=None,
        redoc_url=None,
        # else a page in a browser could reach it under a name of its own
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL)],
    )
    _answer_errors(app)
    _add_writes(app, memory)
    _add_reads(app, memory)
    return app


def _add_writes(app: FastAPI, memory: MemoryService) -> None:
    @app.post("/add_message")
    async def add_message(body: AddMessage) -> dict[str, Any]:
        began = time.perf_counter()
        conversation = await _user(memory, body.user_id).conversation(body.session_id)
        (kept,) = await conversation.append(Turn(speaker=body.role, text=body.content))
        return _written(kept.id, body.content, began)

    @app.post("/add_fact")
    async def add_fact(body: AddFact) -> dict[str, Any]:
        began = time.perf_counter()
        kept = await _user(memory, body.user_id).remember(body.fact)
        return _written(kept.id, body.fact, began)

    @app.post("/reset")
    async def reset(body: OfSession) -> dict[str, str]:
        user = _user(memory, body.user_id)
        if body.session_id:
            await user.forget(conversation=body.session_id)
        else:
            await user.forget()
        return {"status": "ok"}


def _add_reads(app: FastAPI, memory: MemoryService) -> None:
    @app.get("/health")
    async def health() -> dict[str, str]:
        facts = await memory.check()
        if facts.get("writable") is False:
            raise StoreUnavailable(f"the store cannot be written: {facts.get('failure')}")
        return {"status": "ok"}

    @app.get("/capabilities")
    async def capabilities() -> dict[str, Any]:
        from echoic import __version__

        facts = await memory.check()
        return {
            "provider_name": PROVIDER,
            "provider_version": __version__,
            "supported_retrieval_modes": list(MODES),
            "backing_store": str(facts.get("engine", "unknown")),
            "supports_user_scoping": True,
            # sessions are kept and reset apart, and searched together: memory is for the next call
            "supports_session_scoping": False,
            "extra": {"embedder": facts["embedder"], "session_scoping_on_reset": True},
        }

    @app.post("/search")
    async def search(body: Search) -> dict[str, Any]:
        began = time.perf_counter()
        if body.mode not in MODES:
            raise NotSupported(body.mode, f"modes are {' and '.join(MODES)}, not {body.mode!r:.40}")
        if body.filters:
            raise NotSupported("filters", "a search is of one user and has no other filters")
        recall = await _user(memory, body.user_id).recall(body.query, limit=body.top_k, min_relevance=0)
        items = [_hit(hit) for hit in recall.hits]
        return {
            "items": items,
            "latency_ms": _ms(began),
            "retrieval_mode": body.mode,
            "token_footprint": sum(len(item["content"].split()) for item in items),
            "extra": {"outcome": recall.outcome},
        }

    @app.post("/enumerate")
    async def enumerate_(body: OfSession) -> dict[str, Any]:
        user = _user(memory, body.user_id)
        known = [] if body.session_id else [_item(fact) for fact in await user.facts()]
        sessions = [c.id for c in await user.conversations() if body.session_id in {None, "", c.id}]
        for session in sessions:
            known += [_item(turn) for turn in await (await user.conversation(session)).turns()]
        return {"items": known}


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(NotSupported)
    async def not_supported(_request: Request, error: NotSupported) -> JSONResponse:
        return _problem(422, "capability_not_supported", str(error), capability=error.capability)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        where = "; ".join(f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in error.errors()[:3])
        return _problem(400, "invalid_request", where)

    @app.exception_handler(EchoicError)
    async def ours(_request: Request, error: EchoicError) -> JSONResponse:
        status = 400 if isinstance(error, InvalidInput) else 503
        return _problem(status, type(error).__name__, str(error))


def _problem(status: int, kind: str, message: str, **more: str) -> JSONResponse:
    return JSONResponse({"error_type": kind, "message": message, "provider": PROVIDER, **more}, status)


def _user(memory: MemoryService, user: str) -> UserMemory:
    return memory.user(user, DEPLOYMENT)


def _written(name: str, text: str, began: float) -> dict[str, Any]:
    # words, as the contract's own sidecar counts tokens
    return {"provider_id": name, "latency_ms": _ms(began), "tokens_written": len(text.split())}


def _hit(hit: Hit) -> dict[str, Any]:
    item = hit.memory or hit.turn
    assert item is not None
    return {**_item(item), "content": hit.text, "score": float(hit.score)}


def _item(item: Memory | Turn) -> dict[str, Any]:
    if isinstance(item, Memory):
        metadata = {"kind": "memory", "key": item.key}
        return {
            "item_id": item.id,
            "content": item.text,
            "created_at": item.valid_from.isoformat(),
            "metadata": metadata,
        }
    return {
        "item_id": item.id,
        "content": item.heard_text,
        "created_at": item.said_at.isoformat(),
        "metadata": {"kind": "turn", "role": item.speaker, "session_id": item.conversation},
    }


def _ms(began: float) -> float:
    return round(1000 * (time.perf_counter() - began), 3)


__all__ = ["DEPLOYMENT", "MODES", "sidecar_app"]
