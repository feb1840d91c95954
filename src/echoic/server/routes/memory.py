"""One route for what a voice agent's memory tool does: set, get, delete, query, list."""

from __future__ import annotations

from typing import Annotated, Any, Literal, assert_never

from fastapi import APIRouter, Body
from fastapi.openapi.models import Example
from pydantic import Field

from echoic.memory.user import MAX_LIMIT, UserMemory
from echoic.server.callers import AsBodyCaller
from echoic.server.models import Asked, Shown, ShownHit, ShownMemory
from echoic.server.problems import responses
from echoic.types import Category, Sharing

router = APIRouter(tags=["memory"])


_OTHERS: Any = Field(default=None, description="Of other operations; ignored here.")


class Operation(Asked):
    """What every operation names."""

    deployment_id: str | None = Field(
        default=None,
        description="Must be the one the identity was given in; may be left out.",
        examples=["default"],
    )
    user_cookie: str | None = Field(
        default=None,
        description="From POST /api/identity, unless it is sent as a bearer token. Whose memory is "
        "meant comes from it alone.",
    )
    # a client may send the fields of all operations with each of them
    key: Any = _OTHERS
    value: Any = _OTHERS
    query: Any = _OTHERS
    limit: Any = _OTHERS
    min_relevance: Any = _OTHERS
    category: Any = _OTHERS
    context: Any = _OTHERS


class Set(Operation):
    """Keep `value` under `key`; what was there before becomes history."""

    operation: Literal["set"]
    key: str = Field(examples=["favourite_coffee"])
    value: str = Field(examples=["flat white"])
    category: Category = "fact"
    context: str | None = None
    visibility: Sharing = Field(
        default="auto", description="private: to the user alone, whatever it says. auto: the rules decide."
    )


class Get(Operation):
    """What holds under `key`: the user's own before what is global."""

    operation: Literal["get"]
    key: str


class Delete(Operation):
    """Take back what the user keeps under `key`; it stays in its history."""

    operation: Literal["delete"]
    key: str


class Query(Operation):
    """The memories and turns that best fit `query`."""

    operation: Literal["query"]
    query: str
    limit: int = Field(default=10, strict=True, ge=1, le=MAX_LIMIT)
    min_relevance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The least relevance of a hit. Absent: nothing where no hit is likely to answer; 0: "
        "everything that was found.",
    )


class List(Operation):
    """Everything that holds."""

    operation: Literal["list"]


class Deleted(Shown):
    """What became of a delete."""

    deleted: bool = Field(description="Whether there was anything of the user's to take back.")


class Answer(Shown):
    """What an operation gave."""

    success: bool = Field(description="False where a delete found nothing to take back.")
    result: ShownMemory | Deleted | list[ShownMemory] | list[ShownHit] | None = Field(
        description="set: the memory as kept. get: the memory, or null when nothing "
        "is known. delete: whether there was anything. query: hits, best first. list: memories, oldest first."
    )


AnyOperation = Set | Get | Delete | Query | List

_IDENTIFIED = {"deploymentId": "default", "userCookie": "eyJhbGciOiJIUzI1NiIs…"}


def _example(summary: str, **fields: str | int) -> Example:
    return {"summary": summary, "value": {**fields, **_IDENTIFIED}}


_EXAMPLES: dict[str, Example] = {
    "set": _example("Keep something", operation="set", key="favourite_coffee", value="flat white"),
    "get": _example("Look a key up", operation="get", key="favourite_coffee"),
    "delete": _example("Take a key back", operation="delete", key="favourite_coffee"),
    "query": _example("Search", operation="query", query="what do I drink?", limit=5),
    "list": _example("All that holds", operation="list"),
}


@router.post(
    "/api/memory",
    summary="Use a memory",
    responses=responses(401, 409, 413, 422, 429, 503, 507),
    openapi_extra={"security": [{}]},  # or without the header: the identity may be in the body
)
async def use_memory(
    caller: AsBodyCaller,
    asked: Annotated[AnyOperation, Body(discriminator="operation", openapi_examples=_EXAMPLES)],
) -> Answer:
    """Do one operation on the memory of whoever the token names. "Nothing known" is a success with nothing in
    it; "could not look" is a 503.
    """
    return await _done(caller.memory, asked)


async def _done(memory: UserMemory, asked: AnyOperation) -> Answer:
    match asked:
        case Set():
            kept = await memory.set(
                asked.key,
                asked.value,
                category=asked.category,
                context=asked.context,
                visibility=asked.visibility,
            )
            return Answer(success=True, result=ShownMemory.of(kept))
        case Get():
            found = await memory.get(asked.key)
            return Answer(success=True, result=ShownMemory.of(found) if found else None)
        case Delete():
            deleted = await memory.delete(asked.key)
            return Answer(success=deleted, result=Deleted(deleted=deleted))
        case Query():
            hits = await memory.query(asked.query, limit=asked.limit, min_relevance=asked.min_relevance)
            return Answer(success=True, result=[ShownHit.of(hit) for hit in hits])
        case List():
            return Answer(success=True, result=[ShownMemory.of(m) for m in await memory.facts()])
        case _:
            assert_never(asked)


__all__ = ["router"]
