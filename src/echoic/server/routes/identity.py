"""Identities, and the telephones linked to them.

An identity is a signed token of a user. Calls may be answered by another process on the same store, or by
none; then a link code is never redeemed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Header, Request, Response
from pydantic import Field

from echoic.adapters.twilio.callers import PhoneLines
from echoic.adapters.twilio.proofs import TYPED_DIGITS, LinkCodes, Pins
from echoic.errors import NotAllowed
from echoic.memory.assurance import PROVE
from echoic.memory.deployment_keys import Role
from echoic.server.credentials import (
    CALLER_HEADER,
    CALLER_NAME,
    MAX_CALLERS,
    NEW_CALLER,
    Minted,
    unauthorised,
)
from echoic.server.models import Name, RequestBody, ResponseModel
from echoic.server.problems import Refused, responses
from echoic.server.request_callers import (
    AsAnybody,
    AsCaller,
    AsKeyHolder,
    AsOperator,
    AsViewer,
    Credentials,
    KeyCredentials,
    OperatedDeployment,
    RequestCaller,
    Shared,
    TokenCredentials,
    recognise,
)
from echoic.types import checked_name

router = APIRouter(tags=["identity"])

PERSON_S = 900
"""How long an operator's page may act for a person before it must ask again."""


class AskIdentity(RequestBody):
    """A request for an identity."""

    deployment_id: str | None = Field(
        default=None, description="The deployment; the server's default if omitted."
    )
    user_cookie: str | None = Field(
        default=None,
        description="A valid identity to renew; you can also send it as a bearer token.",
    )


class Identity(ResponseModel):
    """A token and its user."""

    user_cookie: str = Field(description="Send it with every request. Its holder is this user.")
    user: str = Field(description="The user's id: random, and not secret.")
    deployment_id: str
    token_id: str = Field(description="The id to revoke the token by; renewing keeps it.")
    expires_at: datetime
    renewed: bool = Field(description="Whether this is the presented identity with a new expiry.")


@router.post(
    "/api/identity",
    summary="Get an identity, or renew one",
    responses=responses(401, 403, 413, 422, 429, 503),
    dependencies=[AsAnybody],
)
async def give_identity(
    shared: Shared,
    credentials: TokenCredentials,
    request: Request,
    asked: Annotated[AskIdentity | None, Body()] = None,
) -> Identity:
    """Returns a new identity, or the presented one with a new expiry. Use the new token from now on: a minute
    after its first use the presented one is refused. A forged or expired identity is refused, not replaced:
    its holder decides whether to start over.
    """
    asked = asked or AskIdentity()
    presented = credentials.credentials if credentials else asked.user_cookie
    if presented:
        minted = await _renewed(shared, request, presented, asked.deployment_id)
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


async def _renewed(shared: Shared, request: Request, token: str, deployment: str | None = None) -> Minted:
    principal = await recognise(shared, request, token, deployment)
    if not principal.renewable:
        words = "this token cannot be renewed; the backend that gave it out asks for another"
        raise Refused(403, "not_renewable", words)
    return shared.tokens.renew(principal)


class Access(ResponseModel):
    """What a credential may see."""

    role: Role | Literal["user"] = Field(
        description="user: the holder of an identity token, who sees what is theirs. Otherwise the key's."
    )
    deployment_id: str
    user: str | None = Field(description="The user of an identity token; null for a key.")


@router.get(
    "/api/access", summary="Get the role of a credential", responses=responses(401, 404, 422, 429, 503)
)
async def get_access(viewer: AsViewer) -> Access:
    """Takes an identity token or any key. A page asks this to decide what to offer; every route decides for
    itself what it allows.
    """
    return Access(role=viewer.role, deployment_id=viewer.deployment, user=viewer.user)


# -- the page: its tokens and keys are in cookies that no script can read


PageHeader = Annotated[
    str,
    Header(
        alias=CALLER_HEADER,
        description="The `caller` that an earlier answer named; 'new' before there is one. A request with "
        "this header needs no other credential: it means the cookie of that caller.",
        pattern=f"^(?:{NEW_CALLER}|{CALLER_NAME.pattern})$",
    ),
]


class CallerCookie(ResponseModel):
    """A cookie that the browser keeps, and what to name it by."""

    caller: str = Field(description="Send it as `X-Echoic-Caller`. It is not secret.")
    user: str
    deployment_id: str
    expires_at: datetime


@router.post(
    "/api/cookies",
    summary="Get or renew the page's identity, as a cookie",
    responses=responses(401, 403, 409, 413, 422, 429, 503),
    dependencies=[AsAnybody],
)
async def keep_caller(
    shared: Shared, credentials: Credentials, request: Request, response: Response, _page: PageHeader
) -> CallerCookie:
    """As `POST /api/identity` does, for pages of this server: the token is in an HttpOnly cookie, and in no
    answer. 409: the browser keeps as many callers as it may.
    """
    if credentials is not None:
        minted = await _renewed(shared, request, credentials.credentials)
    elif shared.cookies.has_room(request):
        minted = shared.tokens.mint(shared.settings.default_deployment)
    else:
        words = f"this browser keeps {MAX_CALLERS} callers already; delete this site's cookies to begin anew"
        raise Refused(409, "too_many_callers", words)
    return _kept(shared, request, response, minted)


class OpenPerson(RequestBody):
    """The person to open."""

    user: Name = Field(description="The user's id.")


@router.post(
    "/api/cookies/people",
    tags=["operator"],
    summary="Act for a person for 15 minutes, by a cookie",
    responses=responses(401, 403, 404, 413, 422, 429, 503),
    dependencies=[AsOperator],
)
async def keep_person(
    shared: Shared,
    deployment: OperatedDeployment,
    request: Request,
    response: Response,
    asked: OpenPerson,
    _page: PageHeader,
) -> CallerCookie:
    """As `POST /v1/tokens` does, for an operator's page."""
    return _kept(shared, request, response, shared.tokens.mint_for(asked.user, deployment, PERSON_S))


def _kept(shared: Shared, request: Request, response: Response, minted: Minted) -> CallerCookie:
    who = minted.principal
    return CallerCookie(
        caller=shared.cookies.keep(request, response, minted),
        user=who.user,
        deployment_id=who.deployment,
        expires_at=who.expires_at,
    )


class SignedIn(Access):
    """What the key may see, and the name for its cookie."""

    caller: str = Field(description="Send it as `X-Echoic-Caller`. It is not secret.")


@router.post(
    "/api/cookies/key",
    summary="Sign in to the page with a key",
    responses=responses(401, 403, 404, 422, 429, 503),
)
async def keep_key(
    viewer: AsKeyHolder,
    key: KeyCredentials,
    shared: Shared,
    request: Request,
    response: Response,
    _page: PageHeader,
) -> SignedIn:
    """Send the key as a bearer token, once. The cookie says for 12 hours, or until the browser is closed,
    that you gave it, and does not hold it.
    """
    if key is None:
        raise unauthorised("this needs a key, sent as a bearer token")
    caller = shared.cookies.keep_key(request, response, key.credentials)
    return SignedIn(role=viewer.role, deployment_id=viewer.deployment, user=None, caller=caller)


class CookieDropped(ResponseModel):
    """A cookie that the browser is told to forget."""

    dropped: str = Field(description="The `caller` it was named by.")


@router.delete(
    "/api/cookies",
    summary="Sign out: forget a cookie",
    responses=responses(403, 422, 429, 503),
    dependencies=[AsAnybody],
)
async def drop_cookie(
    shared: Shared, request: Request, response: Response, page: PageHeader
) -> CookieDropped:
    """Also where what it holds is good no longer. To have the token refused wherever it is, revoke it."""
    shared.cookies.drop(request, response, page)
    return CookieDropped(dropped=page)


class Revoked(ResponseModel):
    """A revoked token."""

    revoked: str = Field(description="Its id.")


@router.post(
    "/api/identity/revoke", summary="Revoke the presented identity", responses=responses(401, 429, 503)
)
async def revoke_identity(caller: AsCaller, shared: Shared, request: Request, response: Response) -> Revoked:
    """From now on, every server of the store refuses this token and its renewals. The user's memory stays;
    `POST /api/forget` destroys it.
    """
    if named := request.headers.get(CALLER_HEADER):
        shared.cookies.drop(request, response, named)
    until = max(caller.principal.expires_at, shared.tokens.last_expiry(issued=not caller.principal.renewable))
    return await _revoke(shared, caller.principal.deployment, caller.principal.token_id, until)


@router.post(
    "/api/tokens/{token_id}/revoke",
    tags=["operator"],
    summary="Revoke a token by id",
    responses=responses(401, 404, 422, 429, 503),
    dependencies=[AsOperator],
)
async def revoke_token(shared: Shared, deployment: OperatedDeployment, token_id: str) -> Revoked:
    """From now on, the token with this id, such as a lost one, is refused. An unknown id is not an error, so
    the answer does not reveal which ids exist.
    """
    # the id does not say when its token expires: lifetimes may have been longer
    return await _revoke(shared, deployment, token_id, datetime.max.replace(tzinfo=UTC))


async def _revoke(shared: Shared, deployment: str, token_id: str, until: datetime) -> Revoked:
    await shared.memory.revocations(deployment).revoke(token_id, until)
    return Revoked(revoked=token_id)


def _deployment(shared: Shared, asked: str | None) -> str:
    deployment = shared.settings.default_deployment if asked is None else checked_name(asked, "deploymentId")
    if not shared.settings.serves(deployment):
        raise Refused(403, "deployment_not_served", "this deployment is not served here")
    return deployment


class PhoneCode(ResponseModel):
    """A code that proves the caller's identity on the telephone."""

    code: str = Field(description="Say or type it in a call. Valid once.", examples=["471902"])
    good_until: datetime


class TakePhoneCode(RequestBody):
    """A code from a call."""

    code: str = Field(
        description="The code; anything but digits is ignored.", max_length=64, examples=["4719 0283"]
    )


class PhoneLinks(ResponseModel):
    """The telephones linked to the user."""

    phones: int = Field(
        description="The number of linked telephones. Their numbers are stored as hashes only."
    )
    pin: bool = Field(description="Whether the user has a PIN.")
    taken_at: list[datetime] = Field(
        description="When telephones of the user were linked to someone else, or unlinked in a call. "
        "Tell the user: if it was not them, they should call from that telephone and say so."
    )


class PhonePin(RequestBody):
    """A new PIN."""

    pin: str = Field(
        description="Six digits without a pattern, to say or key in during a call.",
        max_length=64,
        examples=["482913"],
    )


class HasPin(ResponseModel):
    """Whether the user has a PIN."""

    pin: bool


class Unlinked(ResponseModel):
    """The result of unlinking."""

    unlinked: int = Field(description="The number of telephones that were unlinked.")


@router.post(
    "/api/phone/code", summary="Get a code to say on the phone", responses=responses(401, 403, 429, 503)
)
async def give_code(caller: AsCaller, shared: Shared) -> PhoneCode:
    """A caller who says or types this code is served as this user for the rest of the call. The telephone is
    linked to the user for later calls only if the number is proven to be the caller's and nobody else has
    memories on it. An earlier code becomes invalid. For callers who may be told everything.
    """
    _may_prove(caller, shared)
    given = await _codes(caller, shared).give(caller.principal.user)
    return PhoneCode(code=given.code, good_until=given.good_until)


@router.post(
    "/api/phone/link",
    summary="Link the telephone a code was given on",
    responses=responses(401, 403, 413, 422, 429, 503),
)
async def take_code(caller: AsCaller, shared: Shared, asked: TakePhoneCode) -> PhoneLinks:
    """The phone agent gives this code to a caller whose number is proven. From the next call on, the
    telephone belongs to this user, and its next caller is told. A wrong, used or expired code is refused
    with 403, as is every code after too many wrong ones, and a code for a telephone on which someone has
    memories who did not prove their identity in that call. For callers who may be told everything.
    """
    _may_prove(caller, shared)
    digits = "".join(character for character in asked.code if character in "0123456789")
    proven = await _codes(caller, shared).take_proof(digits) if len(digits) == TYPED_DIGITS else None
    if proven is None:
        raise Refused(403, "code_not_good", "this code is not valid; ask for a new one on the phone")
    try:
        await _lines(caller, shared).link(proven.line, caller.principal.user, proved=proven.proved)
    except NotAllowed as error:
        raise Refused(403, "line_not_proven", f"{error}; they have to ask for the code themselves") from error
    return await _links(caller, shared)


@router.get("/api/phone/links", summary="Count linked telephones", responses=responses(401, 429, 503))
async def links(caller: AsCaller, shared: Shared) -> PhoneLinks:
    """Callers from a linked telephone are served as this user once the number is proven."""
    return await _links(caller, shared)


@router.post("/api/phone/unlink", summary="Unlink every telephone", responses=responses(401, 429, 503))
async def unlink(caller: AsCaller, shared: Shared) -> Unlinked:
    """Every linked telephone returns to its earlier memory; no memory changes. The next caller from each is
    told.
    """
    return Unlinked(unlinked=await _lines(caller, shared).unlink_user(caller.principal.user))


@router.post(
    "/api/phone/pin",
    summary="Set a PIN for the phone",
    responses=responses(401, 403, 413, 422, 429, 503),
)
async def set_pin(caller: AsCaller, shared: Shared, asked: PhonePin) -> HasPin:
    """With the PIN, the user can prove their identity on telephones that are linked to them or on which they
    gave a code once, even without carrier attestation. A new PIN replaces the old one. After five wrong
    attempts within a day, over all telephones, no PIN is accepted until a day after the first. For callers
    who may be told everything.
    """
    _may_prove(caller, shared)
    await _pins(caller, shared).set(caller.principal.user, asked.pin)
    return HasPin(pin=True)


@router.delete("/api/phone/pin", summary="Remove the PIN", responses=responses(401, 429, 503))
async def clear_pin(caller: AsCaller, shared: Shared) -> HasPin:
    """Remove the PIN: none is accepted for this user any more."""
    await _pins(caller, shared).clear(caller.principal.user)
    return HasPin(pin=False)


async def _links(caller: RequestCaller, shared: Shared) -> PhoneLinks:
    lines, user = _lines(caller, shared), caller.principal.user
    return PhoneLinks(
        phones=len(await lines.linked_to(user)),
        pin=await _pins(caller, shared).has(user),
        taken_at=await lines.taken_from(user),
    )


def _may_prove(caller: RequestCaller, shared: Shared) -> None:
    """Raise NotAllowed where a proof on the telephone would open more than this caller is told."""
    if shared.memory.assurance[caller.memory.level] != "sensitive":
        raise NotAllowed(f"a proof for the telephone: {PROVE}")


def _codes(caller: RequestCaller, shared: Shared) -> LinkCodes:
    return LinkCodes(shared.memory, caller.principal.deployment)


def _lines(caller: RequestCaller, shared: Shared) -> PhoneLines:
    return PhoneLines(shared.memory, caller.principal.deployment)


def _pins(caller: RequestCaller, shared: Shared) -> Pins:
    return Pins(shared.memory, caller.principal.deployment, shared.settings.secret)
