"""Settings of a server, passed when it is created. This module reads no file and no environment variable."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from echoic.adapters.connections import Limits
from echoic.checks import RESERVED
from echoic.errors import InvalidInput, brief
from echoic.types import checked_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.models import Model
    from pydantic_ai.realtime import RealtimeModel

    from echoic.adapters.browser import PageSettings, Transport
    from echoic.adapters.twilio.settings import Trust
    from echoic.session import CallLimits, SessionSettings, VoiceAgent

MIN_SECRET_BYTES = 32
"""An HS256 key must be as long as the hash (RFC 7518, section 3.2)."""
_HEADER = re.compile(r"[!-~]([ -~]*[!-~])?")
_HOST = re.compile(r"\*|(\*\.)?[^\s/:@*\[\]]+|\[[^\s\[\]]+\]")
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^\s/:@*\[\]?#]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?/?"
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class RateLimiter(Protocol):
    """A rate limiter. The server calls it once per request, after authentication."""

    async def retry_after_s(self, principal: str) -> float | None:
        """Count one request of `principal`; returns the seconds it must wait, or None if it may pass.

        Args:
            principal: "user:<deployment>/<user>", "operator", "agent:<deployment>" for its agent keys, or
                "address:<address>" without an identity; "refused:<address>" for each invalid token or key. An
                address is an IPv4 one, or the /64 of an IPv6 one.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServer:
    """The authorization server that issues tokens to MCP clients.

    Raises:
        InvalidInput: issuer or resource is not an https URL (or http on this machine).
    """

    issuer: str
    """The issuer in its tokens (`iss`)."""
    jwks_file: Path
    """Its public keys, a JSON Web Key Set; read again when the file changes."""
    resource: str
    """The URL of /mcp as clients reach it, for which a token must be (`aud`)."""

    @property
    def audience(self) -> str:
        """The audience its tokens must have."""
        return self.resource

    def __post_init__(self) -> None:
        for name, url in (("issuer", self.issuer), ("resource", self.resource)):
            read = urlsplit(url)
            near = read.hostname in {"127.0.0.1", "localhost", "::1"}
            if read.scheme != "https" and not (read.scheme == "http" and near):
                raise InvalidInput(f"{name} must be an https URL, not {brief(url)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountIssuer:
    """The issuer of your application's own JSON Web Tokens, which act for the user in `sub`.

    Raises:
        InvalidInput: issuer or audience is empty.
    """

    issuer: str
    """The issuer in its tokens (`iss`)."""
    audience: str
    """The audience its tokens must have (`aud`)."""
    jwks_file: Path
    """Its public keys, a JSON Web Key Set; read again when the file changes."""

    def __post_init__(self) -> None:
        for name, value in (("issuer", self.issuer), ("audience", self.audience)):
            checked_name(value, f"the {name} of account tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of a server.

    Raises:
        InvalidInput: a secret or key that is too short or used twice, or an invalid deployment, host or
            origin.
    """

    secret: str = field(repr=False)
    """Signs identity tokens; at least `MIN_SECRET_BYTES`. Its holder can act as anybody; changing it ends
    every identity. Not in the repr, which may be logged."""
    deployments: frozenset[str] | None = frozenset({"default"})
    """The deployments served; None for any."""
    default_deployment: str = "default"
    """The deployment of new identities that name none."""
    operator_key: str | None = field(default=None, repr=False)
    """Grants access to the operator's routes; None disables them. Not in the repr."""
    agent_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The deployment of each agent key, by key. Its holder, such as your backend, can only get tokens for
    users of that deployment. Use several keys of one deployment to rotate them."""
    allowed_hosts: tuple[str, ...] = LOOPBACK
    """Host names the server answers to, without port, IPv6 in brackets; others are refused (DNS
    rebinding)."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of other pages that may use the API, such as "https://app.example.com". Behind a proxy that
    terminates TLS, add the server's own https origin."""
    token_lifetime_s: int = 30 * 24 * 3600
    """How long an identity lasts without renewal."""
    max_body_bytes: int = 1_000_000
    """Size limit of a request's body. Webhooks of hosted voice platforms have their own, of 5 MB."""
    max_json_depth: int = 32
    body_deadline_s: float = 20.0
    """How long a request's body may take to arrive."""
    recall_deadline_ms: float | None = 400.0
    """How long the agent waits for a query's embedding before it searches by words only; None for no
    limit."""
    limiter: RateLimiter | None = None
    """The rate limiter, such as `CellLimiter`, which counts in this process."""
    limits: Limits = field(default_factory=Limits)
    """Limits of simultaneous connections, requests, streams and calls, and trusted proxies."""
    model: str | Model | None = None
    """The language model that answers callers, "provider:model" or a PydanticAI model; None for rules."""
    voice_model: str | RealtimeModel | None = None
    """A realtime model for live calls, "openai:gpt-realtime", "google:gemini-…" or a PydanticAI model; None
    disables them. The provider's own variables (OPENAI_BASE_URL, GOOGLE_GEMINI_BASE_URL) set its address."""
    voice_agents: Sequence[VoiceAgent] = ()
    """The agents that serve live calls; the first one begins. By default one that greets and answers from
    memory."""
    voice_transport: Transport = "websocket"
    """webrtc: audio goes directly between page and provider, if the model supports that. Then the page's user
    can read the agent's instructions and their own memory block, and talk to the model without the agent."""
    voice_settings: SessionSettings | None = None
    voice_page_settings: PageSettings | None = None
    """Settings for pages of calls, such as the grace time."""
    voice_limits: CallLimits | None = None
    """Limits of simultaneous live calls; by default 2 per caller and 100 in total."""
    phone_trust: Trust = "a"
    """Which caller numbers the telephone service trusts, shown on the page. That is another process, so set
    ECHOIC_PHONE_TRUST for both."""
    mcp_authorization: AuthorizationServer | None = None
    """An authorization server whose tokens /mcp also accepts; their `sub` is the user."""
    accounts: AccountIssuer | None = None
    """The issuer whose tokens every route also accepts, for users of `default_deployment`."""
    beat_s: float = 15.0
    """Interval of heartbeats on event streams, which proxies would otherwise close."""

    def __post_init__(self) -> None:
        _strong(self.secret, "secret")
        self._check_keys()
        for deployment in self.deployments or ():
            checked_name(deployment, "deployment")
        if not self.serves(self.default_deployment):
            raise InvalidInput(
                f"default_deployment {brief(self.default_deployment)} is not among the deployments served: "
                f"{', '.join(sorted(self.deployments or ())) or 'none'}"
            )
        if self.token_lifetime_s <= 0:
            raise InvalidInput(f"token_lifetime_s must be above 0, not {brief(self.token_lifetime_s)}")
        for host in self.allowed_hosts:
            _host(host)
        origins = tuple(_origin(origin) for origin in self.allowed_origins)
        object.__setattr__(self, "allowed_origins", origins)  # normalized, although frozen

    def _check_keys(self) -> None:
        if self.operator_key is not None:
            _key(self.operator_key, "operator_key")
        for key, deployment in self.agent_keys.items():
            _key(key, "an agent key")
            if not self.serves(checked_name(deployment, "the deployment of an agent key")):
                raise InvalidInput(f"an agent key is for {brief(deployment)}, a deployment not served here")
        keys = [*self.keys, self.secret]
        if len(set(keys)) < len(keys):
            raise InvalidInput("secret, operator_key and agent keys must differ: each allows something else")

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that the server was started with."""
        return (*self.agent_keys, *filter(None, (self.operator_key,)))

    def serves(self, deployment: str) -> bool:
        """Whether `deployment` is served."""
        named = self.deployments is None or deployment in self.deployments
        return named and not deployment.startswith(RESERVED)


def _host(host: str) -> None:
    if not _HOST.fullmatch(host):
        raise InvalidInput(
            f"allowed_hosts takes names without scheme and port, IPv6 in brackets, '*.example.com' or '*', "
            f"not {brief(host)}"
        )


def _origin(origin: str) -> str:
    """`origin` as browsers send it: in lower case, without trailing slash or default port."""
    if origin == "null":  # a page in a sandbox or file
        return origin
    read = _ORIGIN.fullmatch(origin.lower())
    if read is None:
        raise InvalidInput(
            f"allowed_origins takes scheme and host, as in 'https://app.example.com', not {brief(origin)}"
        )
    default = {"http": ":80", "https": ":443"}.get(read["scheme"], "")
    port = read["port"] or ""
    return f"{read['scheme']}://{read['host']}{'' if port == default else port}"


def _key(key: str, what: str) -> None:
    _strong(key, what)
    if not _HEADER.fullmatch(key):
        raise InvalidInput(f"{what} comes in a header: ASCII, without spaces or line breaks at its ends")


def _strong(value: str, what: str) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:  # an environment variable that is not text
        raise InvalidInput(f"{what} is not UTF-8") from error
    if size < MIN_SECRET_BYTES:
        raise InvalidInput(
            f"{what} has {size} bytes, {MIN_SECRET_BYTES} at least. Make one with "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`."
        )
