"""Settings of a server, given when it is created. It reads no file and no environment variable by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from echoic.adapters.connections import Limits
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
"""An HS256 key shorter than the hash it keys is weaker than it (RFC 7518, section 3.2)."""
_HEADER = re.compile(r"[!-~]([ -~]*[!-~])?")
_HOST = re.compile(r"\*|(\*\.)?[^\s/:@*\[\]]+|\[[^\s\[\]]+\]")
_ORIGIN = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^\s/:@*\[\]?#]+|\[[0-9a-f:.]+\])(?P<port>:[0-9]{1,5})?/?"
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class RateLimiter(Protocol):
    """Says who has asked too often. The server asks once a request, after it knows who is asking."""

    async def retry_after_s(self, principal: str) -> float | None:
        """Count one request of `principal`; how long it must wait, in seconds, or None to let it pass.

        Args:
            principal: "user:<deployment>/<user>", "operator", "agent:<deployment>" for its agent keys, or
                where nobody is known "address:<address>"; "refused:<address>" for each token or key that is
                not good. An address is an IPv4 one, or the /64 of an IPv6 one.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServer:
    """The authorization server that issues tokens to MCP clients.

    Raises:
        InvalidInput: issuer or resource is no https URL (http on this machine alone).
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
    """How a server recognises callers and what it lets through.

    Raises:
        InvalidInput: a secret too short to protect anything, or no deployment to serve.
    """

    secret: str = field(repr=False)
    """Signs identity tokens; at least `MIN_SECRET_BYTES`. Not shown in a repr: logs would keep it.

    Whoever holds it can be anybody. Another secret ends every identity given out before.
    """
    deployments: frozenset[str] | None = frozenset({"default"})
    """The deployments served; None: any."""
    default_deployment: str = "default"
    """The one an identity is given in when none is named."""
    operator_key: str | None = field(default=None, repr=False)
    """Opens the operator's routes; None: there are none. Not shown in a repr."""
    agent_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The deployment of each agent key, by key. Its holder, such as an application's backend, gets tokens for
    users of that deployment and does nothing else. Several keys of one deployment let you replace one.
    """
    allowed_hosts: tuple[str, ...] = LOOPBACK
    """Names the server answers to, without port, IPv6 in brackets; others are refused (DNS rebinding)."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of other pages that may use the API, such as "https://app.example.com".

    A page served here may always. Behind a proxy that ends TLS its own https origin belongs here.
    """
    token_lifetime_s: int = 30 * 24 * 3600
    """How long an identity lasts without being renewed."""
    max_body_bytes: int = 1_000_000
    max_json_depth: int = 32
    body_deadline_s: float = 20.0
    """How long a request's body may take to arrive."""
    recall_deadline_ms: float | None = 400.0
    """How long the agent waits for a query's embedding before words must do; None: as long as it takes."""
    limiter: RateLimiter | None = None
    """`limiting.CellLimiter` counts in this process."""
    limits: Limits = field(default_factory=Limits)
    """How many connections, requests, streams and calls at once; and which proxies are believed."""
    model: str | Model | None = None
    """A language model that talks with callers, "provider:model" or one of PydanticAI's; None: rules do."""
    voice_model: str | RealtimeModel | None = None
    """A realtime model for live calls, "openai:gpt-realtime", "google:gemini-…" or one of PydanticAI's; None:
    there are none. Where its provider is, the provider's own variables say (OPENAI_BASE_URL,
    GOOGLE_GEMINI_BASE_URL).
    """
    voice_agents: Sequence[VoiceAgent] = ()
    """The agents that serve live calls; the first one begins. Empty: one that greets and answers from
    memory.
    """
    voice_transport: Transport = "websocket"
    """webrtc: audio goes between page and provider, where the model has that. Then whoever holds the page can
    read the agent's instructions and their own memory block, and talk to the model past the agent.
    """
    voice_settings: SessionSettings | None = None
    voice_page_settings: PageSettings | None = None
    """How calls treat their pages: grace time, age of what is resumed."""
    voice_limits: CallLimits | None = None
    """How many live calls at once; None: 2 of one caller, 100 in all."""
    phone_trust: Trust = "a"
    """The level of the telephone that is answered for these deployments, for the page to say what it means.
    The telephone is another process, so give both the same ECHOIC_PHONE_TRUST."""
    mcp_authorization: AuthorizationServer | None = None
    """An authorization server whose tokens /mcp takes, beside identity tokens; their `sub` is the user."""
    accounts: AccountIssuer | None = None
    """The account issuer whose tokens every route takes for a user of `default_deployment`, beside identity
    tokens."""
    beat_s: float = 15.0
    """How often a page that listens is sent a sign of life: proxies end what is silent for long."""

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
        object.__setattr__(self, "allowed_origins", origins)  # frozen, but for how they are written

    def _check_keys(self) -> None:
        if self.operator_key is not None:
            _key(self.operator_key, "operator_key")
        for key, deployment in self.agent_keys.items():
            _key(key, "an agent key")
            if not self.serves(checked_name(deployment, "the deployment of an agent key")):
                raise InvalidInput(f"an agent key is for {brief(deployment)}, a deployment not served here")
        keys = [*self.agent_keys, *filter(None, (self.operator_key, self.secret))]
        if len(set(keys)) < len(keys):
            raise InvalidInput("secret, operator_key and agent keys must differ: each allows something else")

    def serves(self, deployment: str) -> bool:
        """Whether anybody may have an identity in `deployment`."""
        return self.deployments is None or deployment in self.deployments


def _host(host: str) -> None:
    if not _HOST.fullmatch(host):
        raise InvalidInput(
            f"allowed_hosts takes names without scheme and port, IPv6 in brackets, '*.example.com' or '*', "
            f"not {brief(host)}"
        )


def _origin(origin: str) -> str:
    """`origin` as browsers send it: in small letters, without a slash at the end or a default port."""
    if origin == "null":  # of a page in a sandbox, or in a file
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
    except UnicodeEncodeError as error:  # bytes of the environment that are no text
        raise InvalidInput(f"{what} is not UTF-8") from error
    if size < MIN_SECRET_BYTES:
        raise InvalidInput(
            f"{what} has {size} bytes, {MIN_SECRET_BYTES} at least. Make one with "
            "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`."
        )
