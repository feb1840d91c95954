"""Answers that come bit by bit: server-sent events (WHATWG HTML, section 9.2), each a name and JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

MEDIA_TYPE: Final = "text/event-stream"
BEAT: Final = b": still here\n\n"
"""A comment, which no client takes for an event."""


def event(name: str, data: BaseModel) -> bytes:
    """One event. JSON has no line break outside its strings, and none inside them."""
    shown = data.model_dump_json(by_alias=True, exclude_none=False)
    return f"event: {name}\ndata: {shown}\n\n".encode()


def streamed(events: AsyncIterator[bytes]) -> StreamingResponse:
    """`events` as they come; a proxy is asked not to hold them back."""
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})


def described(what: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of such an answer."""
    content = {MEDIA_TYPE: {"schema": {"type": "string", "description": what}}}
    return {200: {"description": "Server-sent events.", "content": content}}


__all__ = ["BEAT", "MEDIA_TYPE", "described", "event", "streamed"]
