"""Credentials: identity tokens of this server, tokens signed by others, and the cookies of its pages.

An identity token is a JSON Web Token (RFC 7519), HS256 only; a scope's user comes only from a token. Tokens
of your own sign-in, and of the authorization server of MCP clients (RFC 9728), are verified with public keys
in a file, without a request to their issuer. Tokens are never logged. Browsers send cookies with every
request, so a cookie counts only if a header names it, which another site's page cannot send.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import jwt
from fastapi import Response
from fastapi.security import HTTPAuthorizationCredentials
from jwt.algorithms import has_crypto
from starlette.requests import HTTPConnection

from echoic.errors import InvalidInput
from echoic.memory.assurance import Level
from echoic.memory.deployment_keys import key_id
from echoic.server.problems import Refused
from echoic.server.settings import AccountIssuer, AuthorizationServer, ServerSettings
from echoic.types import checked_name

ALGORITHM = "HS256"
AUDIENCE = "echoic"
_CLAIMS = ["sub", "dep", "jti", "iat", "exp", "aud"]
_VERIFIED_KEPT = 4096
"""Number of verified tokens that are cached, by hash, since callers send theirs with every request."""
_AHEAD_S = 60
"""How far the clock of the server that issued a token may be ahead."""
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_EXPIRED = "this identity has expired; ask for a new one at POST /api/identity"
_BACKENDS_EXPIRED = "this token has expired; your backend gets a new one at POST /v1/tokens"
GET_ONE: Final = (
    "a page gets one at POST /api/identity, a backend exchanges its agent key for a user's at POST /v1/tokens"
)
_NOT_OURS = f"this is no identity that this server gave out; {GET_ONE}"


class TokenRefused(Exception):
    """The token is not valid here. The message is for its holder and contains no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The identity behind a request."""

    user: str
    deployment: str
    token_id: str
    """The id to revoke it by. Renewed tokens keep it, so renewing does not evade a revocation."""
    expires_at: datetime
    renewals: int = 0
    """How often the identity was renewed."""
    renewable: bool = True
    """Whether the holder may renew it; a token that a backend requested for a user cannot be renewed."""

    @property
    def level(self) -> Level:
        """How certain the holder's identity is: "account" through a backend's own sign-in, "device" for a
        page's anonymous identity.
        """
        return "device" if self.renewable else "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """A new token, and its user."""

    token: str
    principal: Principal


class IdentityTokens:
    """Issues and verifies identity tokens."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._verified: OrderedDict[bytes, Principal] = OrderedDict()

    def mint(self, deployment: str) -> Minted:
        """A token for a new user, with a random id of 122 bits."""
        return self._minted(deployment, uuid4().hex, uuid4().hex)

    def mint_for(self, user: str, deployment: str, lifetime_s: int) -> Minted:
        """A token for `user`, requested by a backend or operator. It cannot be renewed."""
        return self._minted(deployment, user, uuid4().hex, lifetime_s, renewable=False)

    def renew(self, principal: Principal) -> Minted:
        """A token for `principal` with the same id and a new expiry. Once it is used, the previous one
        ends.
        """
        return self._minted(
            principal.deployment, principal.user, principal.token_id, renewals=principal.renewals + 1
        )

    def last_expiry(self, *, issued: bool) -> datetime:
        """When every currently valid token will have expired. Those `issued` by others, if they are accepted,
        last as long as these say.
        """
        others = self._settings.accounts is not None or self._settings.mcp_authorization is not None
        if issued and others:
            return datetime.max.replace(tzinfo=UTC)
        return datetime.now(UTC) + timedelta(seconds=self._settings.token_lifetime_s)

    def _minted(
        self,
        deployment: str,
        user: str,
        token_id: str,
        lifetime_s: int | None = None,
        *,
        renewals: int = 0,
        renewable: bool = True,
    ) -> Minted:
        now = datetime.now(UTC).replace(microsecond=0)
        principal = Principal(
            user=user,
            deployment=deployment,
            token_id=token_id,
            expires_at=now + timedelta(seconds=lifetime_s or self._settings.token_lifetime_s),
            renewals=renewals,
            renewable=renewable,
        )
        claims: dict[str, Any] = {
            "sub": principal.user,
            "dep": principal.deployment,
            "jti": principal.token_id,
            "iat": now,
            "exp": principal.expires_at,
            "aud": AUDIENCE,
        }
        if renewals:
            claims["renewals"] = renewals
        if not renewable:
            claims["renewable"] = False
        token = jwt.encode(claims, self._settings.secret, algorithm=ALGORITHM)
        return Minted(token=token, principal=principal)

    def verify(self, token: str, deployment: str | None = None) -> Principal:
        """The identity in `token`, in `deployment` or the token's own; raises `TokenRefused`.

        Its signature and claims are checked once, its expiry always.
        """
        name = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        principal = self._verified.get(name)
        if principal is None:
            principal = self._verified[name] = self._read(token)
            if len(self._verified) > _VERIFIED_KEPT:
                self._verified.popitem(last=False)
        else:
            self._verified.move_to_end(name)
            if principal.expires_at.timestamp() <= time.time():
                raise TokenRefused(_expired(renewable=principal.renewable))
        if deployment is not None and deployment != principal.deployment:
            raise TokenRefused("this identity is of another deployment; ask for one in this")
        return principal

    def _read(self, token: str) -> Principal:
        claims = self._claims(token)
        user, own, token_id = claims["sub"], claims["dep"], claims["jti"]
        renewals = claims.get("renewals", 0)
        if type(renewals) is not int or renewals < 0:
            raise TokenRefused(_NOT_OURS)
        try:
            expires_at = datetime.fromtimestamp(claims["exp"], UTC)
        except (TypeError, ValueError, OverflowError, OSError) as error:
            raise TokenRefused(_NOT_OURS) from error  # signed with the secret, but `exp` is not a time
        if not isinstance(own, str) or not user or not token_id or not self._settings.serves(own):
            raise TokenRefused("this identity is of a deployment that is not served here; ask for a new one")
        return Principal(
            user=user,
            deployment=own,
            token_id=token_id,
            expires_at=expires_at,
            renewals=renewals,
            renewable=_is_renewable(claims),
        )

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            if not token.isascii():
                raise jwt.DecodeError("not a token")
            claims = jwt.decode(
                token,
                self._settings.secret,
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                options={"require": _CLAIMS, "verify_iat": False, "verify_nbf": False},
            )
            _check_begun(claims)
        except jwt.ExpiredSignatureError as error:
            # PyJWT has verified the signature before the expiry
            read = jwt.decode(token, options={"verify_signature": False})
            raise TokenRefused(_expired(renewable=_is_renewable(read))) from error
        except (jwt.InvalidTokenError, TypeError, ValueError, OverflowError) as error:
            raise TokenRefused(_NOT_OURS) from error
        return claims


def _is_renewable(claims: Mapping[str, Any]) -> bool:
    return claims.get("renewable", True) is True


def _expired(*, renewable: bool) -> str:
    return _EXPIRED if renewable else _BACKENDS_EXPIRED


def _check_begun(claims: Mapping[str, Any]) -> None:
    """Raise if a token counts only from later on, or if that is no time.

    PyJWT would raise as soon as two clocks differ, and its tolerance (`leeway`) is one of expiry too.
    """
    for name in ("iat", "nbf"):
        if name in claims and int(claims[name]) > time.time() + _AHEAD_S:
            raise jwt.ImmatureSignatureError(f"{name} is in the future")


def unauthorised(error: str) -> Refused:
    return Refused(401, "unauthorised", error, headers=_CHALLENGE)


CALLER_HEADER: Final = "X-Echoic-Caller"
"""Header with the name of the cookie to use. Pages of other sites cannot send it."""
NEW_CALLER: Final = "new"
"""Sent as `CALLER_HEADER` by a page that has no cookie yet."""
CALLER_NAME: Final = re.compile("(as-|key-)?[0-9a-f]{32}")
MAX_CALLERS: Final = 16
"""Callers per browser: each request carries all of their cookies, and a header line has 8 KiB at most."""
KEY_COOKIE_S: Final = 12 * 3600
"""How long a sign-in with a key lasts."""
_PREFIX: Final = "echoic_"
_SECURE: Final = "__Host-"
"""Prefix over https: browsers accept such a cookie only from this host, and only over https."""
_PERSON: Final = "as-"
_KEY: Final = "key-"
_KEY_AUDIENCE: Final = "echoic-key"
_OTHERS: Final = 4
"""How many other cookies are left in place: of people an operator opened, and of other servers."""


class StoredKey(HTTPAuthorizationCredentials):
    """A deployment's key in the store, by id, of somebody who signed in with it. It cannot be sent as a
    header.
    """


class PageCookies:
    """The cookies of the page, each of one caller, one key, or one person whom an operator opened.

    A cookie's name is derived from its owner, so that nobody can replace another's cookie with their own.
    """

    def __init__(self, settings: ServerSettings, tokens: IdentityTokens) -> None:
        self._settings, self._tokens = settings, tokens

    def keep(self, connection: HTTPConnection, response: Response, minted: Minted) -> str:
        """Set a cookie with a token; returns its name."""
        name, principal = self._name_of(minted.principal), minted.principal
        lifetime_s = round((principal.expires_at - datetime.now(UTC)).total_seconds())
        self._set(connection, response, name, minted.token, lifetime_s)
        return name

    def keep_key(self, connection: HTTPConnection, response: Response, key: str) -> str:
        """Set a session cookie that says that `key` was given; returns its name.

        It does not contain the key, since browsers would also send it to other services on the same host.
        """
        name = self._key_name(key)
        claims: dict[str, Any] = {
            "sub": name,
            "aud": _KEY_AUDIENCE,
            "exp": datetime.now(UTC) + timedelta(seconds=KEY_COOKIE_S),
        }
        if stored := key_id(key):
            claims["key"] = stored
        value = jwt.encode(claims, self._settings.secret, algorithm=ALGORITHM)
        self._set(connection, response, name, value, None)
        return name

    def drop(self, connection: HTTPConnection, response: Response, name: str) -> None:
        """Delete a cookie; does nothing if the name is invalid."""
        if not CALLER_NAME.fullmatch(name):
            return
        response.delete_cookie(f"{_SECURE}{_PREFIX}{name}", secure=True, httponly=True, samesite="strict")
        if not _is_secure(connection):
            response.delete_cookie(f"{_PREFIX}{name}", httponly=True, samesite="strict")

    def credentials(self, connection: HTTPConnection, name: str) -> HTTPAuthorizationCredentials | None:
        """The credentials in the cookie with that name; None if there is none or it belongs to another name.

        The token may have expired or been revoked, which is checked later.
        """
        value = connection.cookies.get(f"{_SECURE}{_PREFIX}{name}")
        if value is None and not _is_secure(connection):
            value = connection.cookies.get(f"{_PREFIX}{name}")
        if value is None:
            return None
        if name.startswith(_KEY):
            return self._key(name, value)
        try:
            principal = self._tokens.verify(value)
        except TokenRefused:
            # an old one of ours, which whoever checks it refuses; not a key or another issuer's token, which
            # count for whoever put them there
            if not _is_signed_here(value):
                return None
        else:
            if self._name_of(principal) != name:
                return None
        return HTTPAuthorizationCredentials(scheme="Bearer", credentials=value)

    def has_room(self, connection: HTTPConnection) -> bool:
        """Whether this browser may have another caller."""
        return sum(self._is_caller(name, value) for name, value in _ours(connection)) < MAX_CALLERS

    # -- inside

    def _set(
        self, connection: HTTPConnection, response: Response, name: str, value: str, max_age_s: int | None
    ) -> None:
        secure = _is_secure(connection)
        full = f"{_SECURE if secure else ''}{_PREFIX}{name}"
        response.set_cookie(full, value, max_age_s, secure=secure, httponly=True, samesite="strict")
        # browsers send the oldest first
        others = [
            each
            for each, kept in _ours(connection)
            if each != name and not each.startswith(_KEY) and not self._is_caller(each, kept)
        ]
        for each in others[:-_OTHERS]:
            self.drop(connection, response, each)

    def _key(self, name: str, value: str) -> HTTPAuthorizationCredentials | None:
        try:
            claims = jwt.decode(
                value,
                self._settings.secret,
                algorithms=[ALGORITHM],
                audience=_KEY_AUDIENCE,
                options={"require": ["sub", "aud", "exp"]},
            )
        except jwt.InvalidTokenError:
            return None
        if claims["sub"] != name:
            return None
        if "key" in claims:
            return StoredKey(scheme="Bearer", credentials=claims["key"])
        for key in self._settings.keys:
            if self._key_name(key) == name:
                return HTTPAuthorizationCredentials(scheme="Bearer", credentials=key)
        return None

    def _is_caller(self, name: str, value: str) -> bool:
        try:
            principal = self._tokens.verify(value)
        except TokenRefused:
            return False
        return principal.renewable and self._name_of(principal) == name

    def _name_of(self, principal: Principal) -> str:
        hashed = self._hashed("caller", principal.deployment, principal.user)
        return hashed if principal.renewable else f"{_PERSON}{hashed}"

    def _key_name(self, key: str) -> str:
        return _KEY + self._hashed("key", key)

    def _hashed(self, *parts: str) -> str:
        """A keyed hash, which reveals nothing without the secret."""
        secret = self._settings.secret.encode()
        return hmac.new(secret, json.dumps(parts).encode(), hashlib.sha256).hexdigest()[:32]


def _is_signed_here(value: str) -> bool:
    """Whether `value` is a token with the algorithm of this server; its signature is not checked."""
    try:
        return value.isascii() and jwt.get_unverified_header(value).get("alg") == ALGORITHM
    except jwt.InvalidTokenError:
        return False


def _ours(connection: HTTPConnection) -> list[tuple[str, str]]:
    """Names and values of the cookies set by Echoic servers."""
    named = [(name.removeprefix(_SECURE), value) for name, value in connection.cookies.items()]
    return [(name.removeprefix(_PREFIX), value) for name, value in named if name.startswith(_PREFIX)]


def _is_secure(connection: HTTPConnection) -> bool:
    """Whether the page was loaded over https, also behind a proxy that does not forward the scheme."""
    origin = connection.headers.get("origin", "")
    return connection.url.scheme in {"https", "wss"} or origin.lower().startswith("https://")


log = logging.getLogger(__name__)

ALGORITHMS: Final = frozenset(("RS256", "ES256", "EdDSA"))
"""Asymmetric algorithms: the key that verifies cannot sign."""
_ISSUED_CLAIMS: Final = ["iss", "aud", "sub", "exp"]
_DEPLOYMENT_CLAIMS: Final = ("deployment", "deploymentId", "dep")
"""Claims that may name the deployment, if they do it must be this one."""
_NOT_GOOD: Final = "this token is not good here: get another from whoever signs you in"


class IssuedTokens:
    """Verifies the tokens of another issuer; raises `InvalidInput` if its keys cannot be read."""

    def __init__(self, issuer: AccountIssuer | AuthorizationServer, deployment: str) -> None:
        self._issuer = issuer
        self._deployment = deployment
        self._read_as, self._keys = self._read()

    @staticmethod
    def is_one(token: str) -> bool:
        """Whether a token is signed with one of these algorithms; this server's own use HS256."""
        try:
            return token.isascii() and jwt.get_unverified_header(token).get("alg") in ALGORITHMS
        except jwt.InvalidTokenError:
            return False

    def is_own(self, token: str) -> bool:
        """Whether a token says that it is of this issuer, for this audience."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            return False
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        return claims.get("iss") == self._issuer.issuer and self._issuer.audience in named

    def verify(self, token: str, deployment: str | None = None) -> Principal:
        """The identity in `token`, in `deployment` or the one its users are in; raises `TokenRefused`."""
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                issuer=self._issuer.issuer,
                audience=self._issuer.audience,
                options={"require": _ISSUED_CLAIMS, "verify_iat": False, "verify_nbf": False},
            )
            _check_begun(claims)
            user, token_id = _named(claims["sub"], "sub"), claims.get("jti")
            # without the signature, which has other spellings
            unsigned = token.rpartition(".")[0]
            token_id = _named(token_id, "jti") if token_id else hashlib.sha256(unsigned.encode()).hexdigest()
            expires_at = datetime.fromtimestamp(claims["exp"], UTC)
        except jwt.ExpiredSignatureError as error:
            raise TokenRefused("this token has expired; get a new one") from error
        except (jwt.PyJWTError, InvalidInput, TypeError, ValueError, OverflowError, OSError) as error:
            raise TokenRefused(_NOT_GOOD) from error
        named = [claims[name] for name in _DEPLOYMENT_CLAIMS if name in claims]
        if any(one != self._deployment for one in (deployment or self._deployment, *named)):
            raise TokenRefused("this token is not for this deployment")
        return Principal(
            user=user,
            deployment=self._deployment,
            token_id=token_id,
            expires_at=expires_at,
            renewable=False,
        )

    def _key(self, name: object) -> jwt.PyJWK:
        """The key with that id, which a token may omit if there is only one."""
        if self._file() != self._read_as:
            try:
                self._read_as, self._keys = self._read()
            except InvalidInput as error:  # refuse all tokens: a key may have been removed
                log.warning("no token of %s is accepted: %s", self._issuer.issuer, error)
                raise
        found = self._keys.get(name)
        if found is None and name is None and len(self._keys) == 1:
            (found,) = self._keys.values()
        if found is None:
            raise jwt.InvalidKeyError("no key of that name")
        return found

    def _file(self) -> tuple[int, int, int]:
        """Changes whenever the file does."""
        found = self._issuer.jwks_file.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> tuple[tuple[int, int, int], dict[Any, jwt.PyJWK]]:
        path = self._issuer.jwks_file
        if not has_crypto:
            raise InvalidInput("to verify with public keys needs cryptography: pip install 'echoic[signing]'")
        try:
            read_as = self._file()
            keys = jwt.PyJWKSet.from_dict(json.loads(path.read_bytes())).keys
        except (OSError, ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise InvalidInput(f"{path} holds no JSON Web Key Set: {type(error).__name__}") from error
        usable = {
            key.key_id: key
            for key in keys
            if key.algorithm_name in ALGORITHMS
            and key.public_key_use in {None, "sig"}
            and not hasattr(key.key, "sign")  # a private key does not belong there
        }
        if not usable:
            raise InvalidInput(f"{path} holds no key to verify with: one of {', '.join(sorted(ALGORITHMS))}")
        return read_as, usable


def _named(value: object, what: str) -> str:
    """`value` as a name without control or invisible characters."""
    name = checked_name(value, what)
    if not name.isprintable():
        raise InvalidInput(f"{what} holds control characters")
    return name
