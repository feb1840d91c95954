"""Identities: a signed token stands for somebody we know nothing else of."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from echoic.server.callers import AsAnybody, Credentials, Shared, recognise
from echoic.server.models import Shown
from echoic.server.problems import Refused, responses
from echoic.types import checked_name

router = APIRouter(tags=["identity"])


class AskIdentity(Shown):
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
    expires_at: datetime
    renewed: bool = Field(description="Whether this is the identity that was presented, with a new term.")


@router.post(
    "/api/identity",
    summary="Get an identity, or renew one",
    responses=responses(401, 403, 413, 422, 429),
    dependencies=[AsAnybody],
)
async def give_identity(
    shared: Shared, credentials: Credentials, asked: Annotated[AskIdentity | None, Body()] = None
) -> Identity:
    """A new identity, or the one presented with a new term. One that is forged or expired is refused, not
    replaced: whoever holds it decides whether to begin anew.
    """
    asked = asked or AskIdentity()
    presented = credentials.credentials if credentials else asked.user_cookie
    if presented:
        principal = recognise(shared, presented, asked.deployment_id)
        minted = shared.tokens.mint(principal.deployment, principal.user)
    else:
        minted = shared.tokens.mint(_deployment(shared, asked.deployment_id))
    return Identity(
        user_cookie=minted.token,
        user=minted.principal.user,
        deployment_id=minted.principal.deployment,
        expires_at=minted.principal.expires_at,
        renewed=bool(presented),
    )


def _deployment(shared: Shared, asked: str | None) -> str:
    deployment = shared.settings.default_deployment if asked is None else checked_name(asked, "deploymentId")
    if not shared.settings.serves(deployment):
        raise Refused(403, "deployment_not_served", "this deployment is not served here")
    return deployment


__all__ = ["router"]
