"""Identities: a signed token stands for somebody we know nothing else of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Request
from pydantic import Field

from echoic.server.callers import (
    AsAnybody,
    AsCaller,
    AsOperator,
    Credentials,
    OperatedDeployment,
    Shared,
    recognise,
)
from echoic.server.models import Asked, Shown
from echoic.server.problems import Refused, responses
from echoic.types import checked_name

router = APIRouter(tags=["identity"])


class AskIdentity(Asked):
    """Which identity is wanted."""

    deployment_id: str | None = Field(default=None, description="The server's default if left out.")
    user_cookie: str | None = Field(
        default=None,
        description="An identity that still holds, to have it renewed; or send it as a bearer token.",
    )


class Identity(Shown):
    """A token, and whose it is."""

    user_cookie: str = Field(description="Send it with every request. Whoever has it is this user.")
    user: str = Field(description="The user's id: random, and not a password.")
    deployment_id: str
    token_id: str = Field(description="What the token is revoked by. It stays when it is renewed.")
    expires_at: datetime
    renewed: bool = Field(description="Whether this is the identity that was presented, with a new term.")


@router.post(
    "/api/identity",
    summary="Get an identity, or renew one",
    responses=responses(401, 403, 413, 422, 429, 503),
    dependencies=[AsAnybody],
)
async def give_identity(
    shared: Shared,
    credentials: Credentials,
    request: Request,
    asked: Annotated[AskIdentity | None, Body()] = None,
) -> Identity:
    """A new identity, or the one presented with a new term. One that is forged or expired is refused, not
    replaced: whoever holds it decides whether to begin anew.
    """
    asked = asked or AskIdentity()
    presented = credentials.credentials if credentials else asked.user_cookie
    if presented:
        minted = shared.tokens.renew(await recognise(shared, request, presented, asked.deployment_id))
    else:
        minted = shared.tokens.mint(_deployment(shared, asked.deployment_id))
    return Identity(
        user_cookie=minted.token,
        user=minted.principal.user,
        deployment_id=minted.principal.deployment,
        token_id=minted.principal.token_id,
        expires_at=minted.principal.expires_at,
        renewed=bool(presented),
    )


class Revoked(Shown):
    """A token that is good no longer."""

    revoked: str = Field(description="Its id.")


@router.post("/api/identity/revoke", summary="End the identity presented", responses=responses(401, 429, 503))
async def revoke_identity(caller: AsCaller, shared: Shared) -> Revoked:
    """The token that was sent, and every renewal of it, is refused from now on, by every server of the store.
    What is kept of the user stays; `POST /api/forget` destroys it.
    """
    return await _revoke(shared, caller.principal.deployment, caller.principal.token_id)


@router.post(
    "/api/tokens/{token_id}/revoke",
    tags=["operator"],
    summary="End somebody's identity",
    responses=responses(401, 404, 422, 429, 503),
    dependencies=[AsOperator],
)
async def revoke_token(shared: Shared, deployment: OperatedDeployment, token_id: str) -> Revoked:
    """The token of this id, such as one that was lost, is refused from now on. An id that was never given
    out is no error: nobody learns from the answer which ids there are.
    """
    return await _revoke(shared, deployment, token_id)


async def _revoke(shared: Shared, deployment: str, token_id: str) -> Revoked:
    await shared.memory.revocations(deployment).revoke(token_id, shared.tokens.last_expiry())
    return Revoked(revoked=token_id)


def _deployment(shared: Shared, asked: str | None) -> str:
    deployment = shared.settings.default_deployment if asked is None else checked_name(asked, "deploymentId")
    if not shared.settings.serves(deployment):
        raise Refused(403, "deployment_not_served", "this deployment is not served here")
    return deployment


__all__ = ["router"]
