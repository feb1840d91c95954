"""One route for what a voice agent's memory tool does: set, get, delete, query, list."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, assert_never

from fastapi import APIRouter, Body
from fastapi.openapi.models import Example
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from echoic.memory.user import MAX_LIMIT, UserMemory
from echoic.server.callers import AsBodyCaller, AsQueryCaller
from echoic.server.models import Asked, Shown, ShownHit, ShownMemory, ShownRecall, ShownSearch
from echoic.server.problems import responses
from echoic.types import Category, Recall, Sharing

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
    id: Any = _OTHERS
    key: Any = _OTHERS
    value: Any = _OTHERS
    query: Any = _OTHERS
    limit: Any = _OTHERS
    min_relevance: Any = _OTHERS
    besides: Any = _OTHERS
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
    """Take back what the user keeps under `key`, or one memory or turn by its `id`; it stays as history."""

    operation: Literal["delete"]
    id: str | None = Field(default=None, description="As it is shown; for what has no key. Instead of `key`.")
    key: str | None = Field(default=None, validate_default=True)

    @field_validator("key")
    @classmethod
    def _names_something(cls, key: str | None, info: ValidationInfo) -> str | None:
        if key is None and info.data.get("id") is None:
            raise PydanticCustomError("missing", "needs a key, or an id")
        return key


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
    besides: list[str] | None = Field(
        default=None, description="Ids of conversations, turns and memories to leave out."
    )


class List(Operation):
    """Everything that holds."""

    operation: Literal["list"]


class Deleted(Shown):
    """What became of a delete."""

    deleted: bool = Field(description="Whether there was anything of the user's to take back.")
    deleted_count: int = Field(description="How much of it: 0 or 1.")


class Listed(Shown):
    """What the caller may know."""

    success: bool = True
    memories: list[ShownMemory] = Field(description="Their own and what is global, the newest first.")


class Answer(Shown):
    """What an operation gave."""

    success: bool = Field(description="False where a delete found nothing to take back.")
    result: ShownMemory | Deleted | list[ShownMemory] | list[ShownHit] | None = Field(
        description="set: the memory as kept. get: the memory, or null when nothing is known. delete: "
        "whether there was anything. query: hits, best first. list: memories, oldest first."
    )
    found: bool = Field(
        default=False, description="Of get and query alone: whether anything is known. Left out otherwise."
    )
    search: ShownSearch | None = Field(
        default=None, description="Of query alone: how the hits were found. Left out otherwise."
    )
    memories: list[ShownMemory] = Field(
        default_factory=list, description="Of query alone: the memories among the hits, best first."
    )

    @classmethod
    def of(cls, recall: Recall) -> Self:
        """What a query found."""
        shown = ShownRecall.of(recall)
        memories = [memory for hit in shown.hits for memory in (hit.memory, *hit.also) if memory]
        search = ShownSearch(**{name: getattr(shown, name) for name in ShownSearch.model_fields})
        return cls(success=True, result=shown.hits, found=bool(shown.hits), search=search, memories=memories)


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
    response_model_exclude_unset=True,
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


@router.get(
    "/api/memory",
    summary="List a memory",
    responses=responses(401, 422, 429, 503),
    openapi_extra={"security": [{}]},
)
async def list_memory(caller: AsQueryCaller) -> Listed:
    """All that the caller may know: their own and what is global. A token in a header stays out of histories
    and logs; as `userCookie` it is taken where a page cannot send headers.
    """
    known = [ShownMemory.of(memory) for memory in await caller.memory.facts(with_global=True)]
    newest = sorted(known, key=lambda memory: memory.updated_at or memory.valid_from, reverse=True)
    return Listed(memories=newest)


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
            known = await memory.get(asked.key)
            shown = ShownMemory.of(known) if known else None
            return Answer(success=True, result=shown, found=known is not None)
        case Delete():
            deleted = await memory.delete(asked.key, id=asked.id)
            return Answer(success=deleted, result=Deleted(deleted=deleted, deleted_count=int(deleted)))
        case Query():
            recall = await memory.recall(
                asked.query, limit=asked.limit, min_relevance=asked.min_relevance, besides=asked.besides
            )
            return Answer.of(recall)
        case List():
            return Answer(success=True, result=[ShownMemory.of(m) for m in await memory.facts()])
        case _:
            assert_never(asked)


__all__ = ["router"]
