"""Identity tokens: who is asking, signed by us. The only place where a scope's user comes from.

JSON Web Tokens (RFC 7519), HS256 and nothing else. A token is shown to nobody but its owner and never logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import jwt

from echoic.memory.assurance import Level
from echoic.server.settings import ServerSettings

ALGORITHM = "HS256"
AUDIENCE = "echoic"
_CLAIMS = ["sub", "dep", "jti", "iat", "exp", "aud"]
_NOT_OURS = "this is no identity that this server gave out; POST /api/identity gives one"


class TokenRefused(Exception):
    """The token does not say who is asking. The message is for its holder and names no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is asking."""

    user: str
    deployment: str
    token_id: str
    """What it is revoked by. It stays when an identity is renewed, so nobody renews a way past it."""
    expires_at: datetime
    renewable: bool = True
    """Whether its holder may ask for a new term. A token that a backend got for a user ends when it says."""

    @property
    def level(self) -> Level:
        """What is known of its holder: a backend's own sign-in, or a page's anonymous identity."""
        return "device" if self.renewable else "account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """A new token, and whose it is."""

    token: str
    principal: Principal


class IdentityTokens:
    """Gives out identities and recognises them."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def mint(self, deployment: str) -> Minted:
        """A token for somebody new: 122 random bits, so that nobody is met by guessing."""
        return self._minted(deployment, uuid4().hex, uuid4().hex)

    def mint_for(self, user: str, deployment: str, lifetime_s: int) -> Minted:
        """A token for `user`, asked for by somebody who may act for them. It cannot be renewed."""
        return self._minted(deployment, user, uuid4().hex, lifetime_s, renewable=False)

    def renew(self, principal: Principal) -> Minted:
        """The token of `principal` under its id, with a new term."""
        return self._minted(principal.deployment, principal.user, principal.token_id)

    def last_expiry(self) -> datetime:
        """When every token that is good now will have expired."""
        return datetime.now(UTC) + timedelta(seconds=self._settings.token_lifetime_s)

    def _minted(
        self,
        deployment: str,
        user: str,
        token_id: str,
        lifetime_s: int | None = None,
        *,
        renewable: bool = True,
    ) -> Minted:
        now = datetime.now(UTC).replace(microsecond=0)
        principal = Principal(
            user=user,
            deployment=deployment,
            token_id=token_id,
            expires_at=now + timedelta(seconds=lifetime_s or self._settings.token_lifetime_s),
            renewable=renewable,
        )
        claims = {
            "sub": principal.user,
            "dep": principal.deployment,
            "jti": principal.token_id,
            "iat": now,
            "exp": principal.expires_at,
            "aud": AUDIENCE,
        }
        if not renewable:
            claims["renewable"] = False
        token = jwt.encode(claims, self._settings.secret, algorithm=ALGORITHM)
        return Minted(token=token, principal=principal)

    def verify(self, token: str, deployment: str | None = None) -> Principal:
        """Who holds `token`.

        Args:
            token: as it was given out.
            deployment: the one that is asked for; None: whichever the token is of.

        Raises:
            TokenRefused: forged, damaged, expired, or of another deployment.
        """
        claims = self._claims(token)
        user, own, token_id = claims["sub"], claims["dep"], claims["jti"]
        try:
            expires_at = datetime.fromtimestamp(claims["exp"], UTC)
        except (TypeError, ValueError, OverflowError, OSError) as error:
            raise TokenRefused(_NOT_OURS) from error  # signed by somebody with the secret, but no time
        if not isinstance(own, str) or not user or not token_id or not self._settings.serves(own):
            raise TokenRefused("this identity is of a deployment that is not served here; ask for a new one")
        if deployment is not None and deployment != own:
            raise TokenRefused("this identity is of another deployment; ask for one in this")
        return Principal(
            user=user,
            deployment=own,
            token_id=token_id,
            expires_at=expires_at,
            renewable=claims.get("renewable", True) is True,
        )

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            if not token.isascii():
                raise jwt.DecodeError("not a token")
            return jwt.decode(
                token,
                self._settings.secret,
                algorithms=[ALGORITHM],
                audience=AUDIENCE,
                options={"require": _CLAIMS},
            )
        except jwt.ExpiredSignatureError as error:
            raise TokenRefused(
                "this identity has expired; ask for a new one at POST /api/identity"
            ) from error
        except jwt.InvalidTokenError as error:
            raise TokenRefused(_NOT_OURS) from error
