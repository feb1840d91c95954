"""The operator's routes over users: who there is, and importing what was exported of one."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import Field

from echoic.memory.profile import KEYS
from echoic.server.models import ResponseModel
from echoic.server.problems import responses
from echoic.server.request_callers import AsOperator, OperatedDeployment, Shared

router = APIRouter(tags=["operator"], dependencies=[AsOperator])


class UserView(ResponseModel):
    """A user that something is kept about."""

    user: str
    name: str | None = Field(description="What they said they are called.", examples=["Pavel"])


class UserList(ResponseModel):
    """Users, those that came last first."""

    users: list[UserView]
    cursor: str | None = Field(description="Send it to get those before; null: there are none.")
    total: int = Field(description="How many there are in all, or whose id contains what was looked for.")


@router.get("/api/users", summary="List users", responses=responses(401, 403, 404, 422, 429, 503))
async def list_users(
    shared: Shared,
    deployment: OperatedDeployment,
    containing: Annotated[str, Query(max_length=200, description="Only ids that contain this.")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=400, description="From the last answer.")] = None,
) -> UserList:
    """Every user that something is kept about. To read or change what is kept, get a token of the user with
    `POST /v1/tokens`.
    """
    wanted = containing.strip().casefold()
    known = [name for name in await shared.memory.users(deployment) if wanted in name.casefold()][::-1]
    start = known.index(cursor) + 1 if cursor in known else 0 if cursor is None else len(known)
    page = known[start : start + limit]
    names = await asyncio.gather(*(shared.memory.user(one, deployment).get(KEYS["name"]) for one in page))
    users = [
        UserView(user=user, name=None if name is None else name.text)
        for user, name in zip(page, names, strict=True)
    ]
    return UserList(users=users, cursor=page[-1] if start + limit < len(known) else None, total=len(known))


class Imported(ResponseModel):
    """The result of an import."""

    records: int = Field(description="How many were new; those that are there already stay as they are.")


@router.post(
    "/api/users/{user:path}/import",
    summary="Import what was exported of a user",
    responses=responses(401, 403, 404, 413, 422, 429, 503, 507),
)
async def import_user(
    shared: Shared, deployment: OperatedDeployment, user: str, exported: Annotated[dict[str, Any], Body()]
) -> Imported:
    """Takes what `GET /api/export` returned, of any user, whole or in pieces: each an export with some of the
    memories, or some turns of a conversation. It is the operator's, since a file can say anything in
    anybody's name. All of it is checked before any of it is written, and sending it again changes nothing.
    """
    return Imported(records=await shared.memory.user(user, deployment).restore(exported))
