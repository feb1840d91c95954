"""Authentication and authorization of requests: the dependencies that routes declare.

A route without one of these dependencies is open to everybody.
"""

from __future__ import annotations

import hmac
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeGuard

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from echoic.adapters.connections import address_of
from echoic.errors import StoreError
from echoic.memory.assurance import Level
from echoic.memory.audit import act
from echoic.memory.deployment_keys import DeploymentKey, Role, key_id
from echoic.memory.keyless import AGENT
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.server.credentials import (
    CALLER_HEADER,
    GET_ONE,
    NEW_CALLER,
    IdentityTokens,
    PageCookies,
    Principal,
    StoredKey,
    TokenRefused,
    unauthorised,
)
from echoic.server.guards import RequestLimit, counted
from echoic.server.live import EventStreams, HealthWatch, Speculations
from echoic.server.problems import Refused, is_unparsed, not_found, too_many_at_once, too_often
from echoic.server.settings import ServerSettings

if TYPE_CHECKING:
    from echoic.adapters.browser import Switchboard
    from echoic.capability.talker import Talker


class PageOrBearer(HTTPBearer):
    """A bearer token, as API clients send it, or the page's cookie that `CALLER_HEADER` names."""

    async def __call__(self, request: HTTPConnection) -> HTTPAuthorizationCredentials | None:
        """The credentials sent, or None; raises `Refused` (401) if a named cookie is missing."""
        sent, name = await super().__call__(request), request.headers.get(CALLER_HEADER)
        if sent is not None or name in {None, NEW_CALLER}:
            return sent
        cookies: PageCookies = request.app.state.served.cookies
        kept = cookies.credentials(request, name or "")
        if kept is None:
            raise unauthorised(
                "this browser sent no cookie for this caller: it is gone, or cookies are blocked"
            )
        return kept


_bearer = HTTPBearer(
    scheme_name="identity",
    bearerFormat="JWT",
    auto_error=False,
    description="The `userCookie` that POST /api/identity gave out.",
)
_sent_by_page = PageOrBearer(
    scheme_name="identity", bearerFormat="JWT", auto_error=False, description=_bearer.model.description
)
_operator = PageOrBearer(
    scheme_name="operator", auto_error=False, description="The operator key the server was started with."
)
_key = HTTPBearer(
    scheme_name="key",
    auto_error=False,
    description="An agent key of the deployment, or the operator key.",
)
_REFUSED_KEPT = 1024
"""Number of addresses from which expired ones are removed."""

Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_sent_by_page)]
TokenCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
"""For routes that return a token: they ignore cookies, or scripts could read their contents."""
OperatorCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_operator)]
KeyCredentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_key)]
DeploymentId = Annotated[str | None, Query(alias="deploymentId", description="For keys: which deployment.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """The state shared by the routes of one app."""

    memory: MemoryService
    settings: ServerSettings
    tokens: IdentityTokens
    cookies: PageCookies
    verify: Callable[[str, str | None], Principal]
    """Verifies the tokens that every route accepts."""
    live: EventStreams
    speculations: Speculations
    health: HealthWatch
    talker: Talker | None = None
    """The language model that answers callers; None for rules."""
    voice: Switchboard | None = None
    """Live calls, if they are enabled."""
    busy: Counter[str] = field(default_factory=Counter)
    refused_until: dict[str, float] = field(default_factory=dict)
    """By address, the monotonic time until which keys are refused unchecked, after too many invalid ones."""

    @property
    def agent(self) -> str:
        """The name of the agent that answers callers."""
        return AGENT if self.talker is None else self.talker.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCaller:
    """An authenticated caller, and their memory."""

    principal: Principal
    memory: UserMemory


async def served(connection: HTTPConnection) -> AppState:
    """The state of this app. A coroutine, because FastAPI would run a plain function in a thread."""
    shared: AppState = connection.app.state.served
    return shared


Shared = Annotated[AppState, Depends(served)]


def address(connection: HTTPConnection) -> str:
    """The address of a request, as rate limits count it."""
    return address_of(connection.client.host if connection.client else None)


async def recognise(
    shared: AppState,
    request: HTTPConnection,
    token: str | None,
    deployment: str | None = None,
    *,
    verify: Callable[[str, str | None], Principal] | None = None,
) -> Principal:
    """The identity in `token`, checked by `verify` (by default the verifier of every route).

    Raises:
        Refused: 401 for a missing, invalid or revoked token; 429 after too many invalid ones.
        StoreUnavailable: the revocation list could not be read, so the request is refused.
    """
    if not token:
        raise unauthorised(f"no identity was sent; {GET_ONE}")
    try:
        principal = (verify or shared.verify)(token, deployment)
    except TokenRefused as error:
        await _count_refused(shared, request)
        raise unauthorised(str(error)) from error
    renewals = principal.renewals if principal.renewable else None
    until = max(principal.expires_at, shared.tokens.last_expiry(issued=False))  # only ours are renewed
    revocations = shared.memory.revocations(principal.deployment)
    if await revocations.revoked(principal.token_id, renewals, until):
        await _count_refused(shared, request)
        raise unauthorised(f"this identity was revoked, or ended because it was renewed; {GET_ONE}")
    if shared.memory.audit is not None:
        act("user", shared.memory.pseudonym(principal.user, principal.deployment), _asked(request))
    return principal


def _asked(request: HTTPConnection) -> str:
    """The request's method and route; its path may contain a key."""
    route = request.scope.get("route")
    return f"{request.scope.get('method', 'socket')} {getattr(route, 'path', 'page')}"


async def _count_refused(shared: AppState, request: HTTPConnection) -> None:
    """Count an invalid token or key; raises `Refused` (429) after too many. Valid tokens still pass: they
    cannot be guessed.
    """
    limiter, who = shared.settings.limiter, address(request)
    wait_s = await limiter.retry_after_s(f"refused:{who}") if limiter else None
    if wait_s is None:
        return
    until, now = shared.refused_until, time.monotonic()
    if len(until) > _REFUSED_KEPT:
        for name in [name for name, over in until.items() if over < now]:
            del until[name]
    until[who] = now + wait_s
    raise too_often(wait_s)


async def is_known_still(shared: AppState, principal: Principal) -> bool:
    """Whether an identity is still valid while its holder listens or talks; a renewal does not end a call.

    Raises:
        StoreUnavailable: the revocation list could not be read.
    """
    if principal.expires_at <= datetime.now(UTC):
        return False
    return not await shared.memory.revocations(principal.deployment).revoked(principal.token_id)


async def limited(shared: AppState, principal: str) -> None:
    """Count a request of `principal`; raises `Refused` (429) above its rate."""
    limiter = shared.settings.limiter
    wait_s = await limiter.retry_after_s(principal) if limiter else None
    if wait_s is not None:
        raise too_often(wait_s)


async def called(shared: AppState, request: HTTPConnection, principal: Principal) -> RequestCaller:
    """`principal` with their memory; counts the request until its answer has ended, or raises `Refused`
    (429).
    """
    name = f"user:{principal.deployment}/{principal.user}"
    await limited(shared, name)
    if shared.busy[name] >= shared.settings.limits.requests_per_identity:
        raise too_many_at_once()
    held: ExitStack = request.scope[RequestLimit.HELD]
    held.enter_context(counted(shared.busy, name))
    memory = shared.memory.user(principal.user, principal.deployment, level=principal.level)
    return RequestCaller(principal=principal, memory=memory)


async def caller(shared: Shared, credentials: Credentials, request: Request) -> RequestCaller:
    """The holder of the identity token in the Authorization header, or in the page's cookie."""
    token = credentials.credentials if credentials else None
    return await called(shared, request, await recognise(shared, request, token))


async def body_caller(shared: Shared, credentials: Credentials, request: Request) -> RequestCaller:
    """The holder of the identity token in the body's `userCookie`, in the deployment the body names, or of
    the one in the Authorization header. If both are sent they must be of the same identity.

    Runs before the body is checked, so that strangers learn nothing from validation errors.
    """
    body = await _json(request)
    return await _sent(shared, credentials, request, body.get("userCookie"), body.get("deploymentId"))


async def query_caller(
    shared: Shared,
    credentials: Credentials,
    request: Request,
    user_cookie: Annotated[
        str | None,
        Query(alias="userCookie", description="From POST /api/identity; better as a bearer token."),
    ] = None,
    deployment_id: Annotated[
        str | None, Query(alias="deploymentId", description="Must be the one the identity was given in.")
    ] = None,
) -> RequestCaller:
    """The caller of a request without a body."""
    return await _sent(shared, credentials, request, user_cookie, deployment_id)


async def _sent(
    shared: AppState,
    credentials: HTTPAuthorizationCredentials | None,
    request: Request,
    token: object,
    deployment: object,
) -> RequestCaller:
    named = deployment if isinstance(deployment, str) else None
    bearer = credentials.credentials if credentials else None
    sent = token if isinstance(token, str) and token else bearer
    principal = await recognise(shared, request, sent, named)
    if bearer and bearer != sent:
        other = await recognise(shared, request, bearer, named)
        if (other.user, other.deployment) != (principal.user, principal.deployment):
            raise unauthorised("the bearer token and 'userCookie' are two identities; send one of them")
    return await called(shared, request, principal)


async def operator(shared: Shared, credentials: OperatorCredentials, request: Request) -> None:
    """Admits the operator and, for reads, keys of the deployment with the role read-only.

    Without an operator key the route does not exist, except for keys of the deployment.
    """
    reads = request.method in {"GET", "HEAD"}
    await _let_in(shared, credentials, request, ("operator", "read-only") if reads else ("operator",))


async def auditor(shared: Shared, credentials: OperatorCredentials, request: Request) -> None:
    """Admits the operator and auditors."""
    await _let_in(shared, credentials, request, ("operator", "auditor"))


async def _let_in(
    shared: AppState,
    credentials: HTTPAuthorizationCredentials | None,
    request: Request,
    roles: Sequence[Role],
) -> None:
    by = request.query_params.get("by", "")[:80]
    if _in_store(credentials):
        key = await _stored(shared, request, credentials, request.query_params.get("deploymentId"))
        if key.role not in roles:
            raise Refused(403, "not_allowed", f"this key is for the role {key.role!r}, which may not do this")
        await limited(shared, "operator")
        act(key.role, f"key {key.id} {by}".strip(), _asked(request))
        return
    own = shared.settings.operator_key
    if own is None:
        raise Refused(404, "not_found", "not found")
    if await _matching(shared, request, credentials, [own]) is None:
        raise unauthorised("this is for the operator; send the operator key as a bearer token")
    await limited(shared, "operator")
    act("operator", by, _asked(request))


async def is_let_in_still(
    shared: AppState, credentials: HTTPAuthorizationCredentials | None, request: Request
) -> bool:
    """Whether a key that was valid still is; False if it cannot be looked up."""
    if not _in_store(credentials):
        return True  # a key that the server was started with cannot be revoked
    try:
        await _stored(shared, request, credentials, request.query_params.get("deploymentId"))
    except (Refused, StoreError):
        return False
    return True


def _in_store(credentials: HTTPAuthorizationCredentials | None) -> TypeGuard[HTTPAuthorizationCredentials]:
    """Whether a key of the deployment was sent, which the store knows."""
    return isinstance(credentials, StoredKey) or (
        credentials is not None and key_id(credentials.credentials) is not None
    )


async def _stored(
    shared: AppState,
    request: HTTPConnection,
    credentials: HTTPAuthorizationCredentials,
    deployment_id: str | None,
) -> DeploymentKey:
    """The key of the deployment that was sent.

    Raises:
        Refused: 401 for an invalid key; 429 after too many.
        StoreUnavailable: keys could not be read; nobody is admitted.
    """
    _wait_after_refusals(shared, request)
    deployment = deployment_id or shared.settings.default_deployment
    # the answer does not reveal whether the deployment is served here
    key, given = None, credentials.credentials
    if shared.settings.serves(deployment):
        keys = shared.memory.keys(deployment)
        key = await (keys.named(given) if isinstance(credentials, StoredKey) else keys.of(given))
    if key is None:
        await _count_refused(shared, request)
        raise unauthorised("this key is unknown, expired, revoked or of another deployment")
    return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A user who reads their own data, or the holder of a key."""

    role: Role | Literal["user"]
    deployment: str
    user: str | None = None
    """None for the holder of a key, who may read any user."""
    level: Level = "account"
    """How certain the identity of a token's holder is, which limits what they may see."""


async def viewer(
    shared: Shared,
    credentials: Credentials,
    request: Request,
    deployment_id: DeploymentId = None,
) -> Viewer:
    """The holder of an identity token, or of any key of the deployment."""
    if _in_store(credentials):
        key = await _stored(shared, request, credentials, deployment_id)
        named = operated_deployment(shared, deployment_id)
        await limited(shared, f"agent:{named}" if key.role == "agent" else "operator")
        act(key.role, f"key {key.id}", _asked(request))
        return Viewer(role=key.role, deployment=named)
    given = credentials.credentials if credentials else ""
    ours, found = shared.settings, _same_as(given, shared.settings.keys)
    if found is None:
        who = (await called(shared, request, await recognise(shared, request, given))).principal
        return Viewer(role="user", deployment=who.deployment, user=who.user, level=who.level)
    _wait_after_refusals(shared, request)
    if found == ours.operator_key:
        await limited(shared, "operator")
        act("operator", "", _asked(request))
        return Viewer(role="operator", deployment=operated_deployment(shared, deployment_id))
    await limited(shared, f"agent:{ours.agent_keys[found]}")
    return Viewer(role="agent", deployment=ours.agent_keys[found])


async def key_holder(viewer: Annotated[Viewer, Depends(viewer)]) -> Viewer:
    """The holder of any key of the deployment."""
    if viewer.role == "user":
        raise Refused(403, "not_allowed", "this is a user's token: sign in with a key")
    return viewer


async def reader(
    shared: Shared,
    credentials: Credentials,
    request: Request,
    deployment_id: DeploymentId = None,
) -> Viewer:
    """A user, who reads their own data; or the operator or a key with a reading role, for any user."""
    who = await viewer(shared, credentials, request, deployment_id)
    if who.role in {"user", "operator", "read-only"}:
        return who
    raise Refused(403, "not_allowed", f"this key is for the role {who.role!r}, which may not do this")


async def key_deployment(
    shared: Shared,
    credentials: KeyCredentials,
    request: Request,
    deployment_id: Annotated[
        str | None,
        Query(
            alias="deploymentId",
            description="For the operator key; an agent key acts in its own deployment only.",
        ),
    ] = None,
) -> str:
    """The deployment for whose users the holder of a key acts. Without any key, the route does not exist."""
    if _in_store(credentials):
        stored = await _stored(shared, request, credentials, deployment_id)
        named = operated_deployment(shared, deployment_id)
        if stored.role not in {"agent", "operator"}:
            raise Refused(
                403, "not_allowed", f"this key is for the role {stored.role!r}, which acts for nobody"
            )
        await limited(shared, f"agent:{named}")
        act(stored.role, f"key {stored.id}", _asked(request))
        return named
    operator_key, agent_keys = shared.settings.operator_key, shared.settings.agent_keys
    if not shared.settings.keys:
        raise Refused(404, "not_found", "not found")
    key = await _matching(shared, request, credentials, shared.settings.keys)
    if key is None:
        raise unauthorised("this needs an agent key or the operator key, sent as a bearer token")
    if key == operator_key:
        await limited(shared, "operator")
        return operated_deployment(shared, deployment_id)
    own = agent_keys[key]
    await limited(shared, f"agent:{own}")
    if deployment_id not in {None, own}:  # does not reveal whether the deployment is served here
        raise Refused(403, "not_allowed", "this key acts in its own deployment only")
    return own


async def _matching(
    shared: AppState,
    request: HTTPConnection,
    credentials: HTTPAuthorizationCredentials | None,
    keys: Sequence[str],
) -> str | None:
    """The key among `keys` that was sent; None if it is invalid, which is counted. Raises `Refused` (429)."""
    _wait_after_refusals(shared, request)
    found = _same_as(credentials.credentials if credentials else "", keys)
    if found is None:
        await _count_refused(shared, request)
    return found


def _same_as(given: str, keys: Sequence[str]) -> str | None:
    """Which of `keys` was given. Compares with every key, so that the time reveals nothing."""
    found = [key for key in keys if hmac.compare_digest(given.encode(), key.encode())]
    return found[0] if found else None


def _wait_after_refusals(shared: AppState, request: HTTPConnection) -> None:
    """Refuse (429) an address that sent too many invalid keys without checking the key, to slow down
    guessing.
    """
    wait_s = shared.refused_until.get(address(request), 0.0) - time.monotonic()
    if wait_s > 0:
        raise too_often(wait_s)


def operated_deployment(
    shared: Shared,
    deployment_id: Annotated[str | None, Query(alias="deploymentId", description="Which deployment.")] = None,
) -> str:
    """The deployment that an operator names."""
    deployment = deployment_id or shared.settings.default_deployment
    if not shared.settings.serves(deployment):
        raise not_found("deployment")
    return deployment


async def anybody(shared: Shared, request: Request) -> None:
    """Admits everybody, limited by address."""
    await limited(shared, f"address:{address(request)}")


def credential_first(admit: Callable[[Request], Awaitable[object]]) -> type[APIRoute]:
    """Routes where `admit` checks the credential of a request whose body cannot be parsed: the framework
    reads the body before any dependency, so that strangers would learn from its refusal.
    """

    class Admitting(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handled(request: Request) -> Response:
                try:
                    return await handle(request)
                except (RequestValidationError, HTTPException) as error:
                    if is_unparsed(error):
                        await admit(request)
                    raise

            return handled

    return Admitting


async def admit_user(request: Request) -> None:
    """Raise `Refused` for a request without a user's token."""
    await caller(await served(request), await _sent_by_page(request), request)


async def admit_key(request: Request) -> None:
    """Raise `Refused` for a request without a key that acts for users."""
    named = request.query_params.get("deploymentId")
    await key_deployment(await served(request), await _key(request), request, named)


async def known_to_users(_admitted: Annotated[RequestCaller, Depends(caller)], request: Request) -> None:
    """Refuse (422) the holder of a user's token a query parameter that the route does not have, as an unknown
    field of a body is. Whoever has no token is refused before it.
    """
    _only_known_parameters(request)


async def known_to_keys(_admitted: Annotated[str, Depends(key_deployment)], request: Request) -> None:
    """The same for the holder of a key."""
    _only_known_parameters(request)


def _only_known_parameters(request: Request) -> None:
    if not request.query_params:
        return
    known, waiting = set[str](), [request.scope["route"].dependant]
    while waiting:
        each = waiting.pop()
        known.update(parameter.alias for parameter in each.query_params)
        waiting += each.dependencies
    if unknown := [name for name in request.query_params if name not in known]:
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", unknown[0])}])


async def _json(request: Request) -> dict[str, object]:
    try:
        body = await request.json()
    except (ValueError, RecursionError):  # the guard does not see all brackets of a body in UTF-16
        return {}
    return body if isinstance(body, dict) else {}


AsCaller = Annotated[RequestCaller, Depends(caller)]
AsBodyCaller = Annotated[RequestCaller, Depends(body_caller)]
AsQueryCaller = Annotated[RequestCaller, Depends(query_caller)]
AsViewer = Annotated[Viewer, Depends(viewer)]
AsKeyHolder = Annotated[Viewer, Depends(key_holder)]
AsReader = Annotated[Viewer, Depends(reader)]
AsOperator = Depends(operator)
AsAuditor = Depends(auditor)
AsAnybody = Depends(anybody)
KnownToUsers = Depends(known_to_users)
KnownToKeys = Depends(known_to_keys)
OperatedDeployment = Annotated[str, Depends(operated_deployment)]
KeyDeployment = Annotated[str, Depends(key_deployment)]
