"""Leaving: all that is kept of somebody, to take along, and its destruction with a receipt."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import Field

from echoic.errors import InvalidInput
from echoic.server.callers import AsCaller
from echoic.server.models import Asked, ShownReceipt
from echoic.server.problems import responses

router = APIRouter(tags=["erasure"])


class Forget(Asked):
    """What is to be destroyed: exactly one of the five."""

    everything: Literal[True] | None = Field(default=None, description="All that is kept of the caller.")
    key: str | None = Field(default=None, description="One key with its history.")
    conversation: str | None = Field(default=None, description="One conversation with its turns.")
    id: str | None = Field(default=None, description="One memory or one turn, by the id it is shown with.")
    asked: str | None = Field(
        default=None, description="What the caller asked to have forgotten in the turn of this id."
    )


@router.post("/api/forget", summary="Destroy what is kept", responses=responses(401, 413, 422, 429, 503))
async def forget(caller: AsCaller, asked: Forget) -> ShownReceipt:
    """Records, words, sounds and vectors go from every place the store keeps bytes in. It cannot be undone,
    so nothing is meant by leaving a field out: `{"everything": true}` has to be said.
    """
    named = (asked.everything, asked.key, asked.conversation, asked.id, asked.asked)
    if sum(name is not None for name in named) != 1:
        raise InvalidInput(
            "name exactly one of 'everything', 'key', 'conversation', 'id' and 'asked'; nothing was destroyed"
        )
    receipt = await caller.memory.forget(
        key=asked.key, conversation=asked.conversation, id=asked.id, asked=asked.asked
    )
    return ShownReceipt.of(receipt)


@router.get(
    "/api/export",
    summary="All that is kept of the caller",
    response_model=dict[str, Any],
    responses=responses(401, 429, 503),
)
async def export(caller: AsCaller) -> JSONResponse:
    """Every version of every memory and every conversation, as JSON that can be taken in elsewhere."""
    disposition = {"Content-Disposition": 'attachment; filename="echoic-export.json"'}
    return JSONResponse(await caller.memory.export(), headers=disposition)


__all__ = ["router"]
