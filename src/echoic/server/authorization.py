"""Tokens of an authorization server of yours, which an MCP client gets by itself (RFC 9728, RFC 8707).

This server is the protected resource: it says whose tokens it takes, and verifies them with keys in a file.
It asks the authorization server nothing.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, Final

import jwt

from echoic.errors import InvalidInput
from echoic.server.request_callers import Principal, TokenRefused
from echoic.server.settings import AuthorizationServer
from echoic.types import checked_name

ALGORITHMS: Final = frozenset("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split())
"""Whoever verifies with these cannot sign with the same key."""
_CLAIMS: Final = ["iss", "aud", "sub", "exp"]
_NOT_GOOD: Final = "this token is not good here: get one of the authorization server that this resource names"


class IssuedTokens:
    """Recognises the tokens of one authorization server.

    Raises:
        InvalidInput: its file of keys cannot be read, or holds none to verify with.
    """

    def __init__(self, server: AuthorizationServer, deployment: str) -> None:
        self._server = server
        self._deployment = deployment
        self._changed_at, self._keys = self._read()

    @staticmethod
    def is_one(token: str) -> bool:
        """Whether a token is signed as those are: this server's own are HS256."""
        try:
            return token.isascii() and jwt.get_unverified_header(token).get("alg") in ALGORITHMS
        except jwt.InvalidTokenError:
            return False

    def verify(self, token: str, _deployment: str | None = None) -> Principal:
        """Who holds `token`.

        Raises:
            TokenRefused: forged, expired, of another server or for another resource.
        """
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                issuer=self._server.issuer,
                audience=self._server.resource,
                options={"require": _CLAIMS},
            )
            user, expires_at = checked_name(claims["sub"], "sub"), datetime.fromtimestamp(claims["exp"], UTC)
        except jwt.ExpiredSignatureError as error:
            raise TokenRefused("this token has expired; get a new one") from error
        except (jwt.PyJWTError, InvalidInput, TypeError, ValueError, OverflowError, OSError) as error:
            raise TokenRefused(_NOT_GOOD) from error
        token_id = claims.get("jti") or hashlib.sha256(token.encode()).hexdigest()
        return Principal(
            user=user,
            deployment=self._deployment,
            token_id=str(token_id),
            expires_at=expires_at,
            renewable=False,
        )

    def _key(self, name: object) -> jwt.PyJWK:
        """The key of that name; of one key alone a token need not name it."""
        if name not in self._keys and self._server.jwks_file.stat().st_mtime_ns != self._changed_at:
            self._changed_at, self._keys = self._read()  # keys were changed
        found = self._keys.get(name)
        if found is None and name is None and len(self._keys) == 1:
            (found,) = self._keys.values()
        if found is None:
            raise jwt.InvalidKeyError("no key of that name")
        return found

    def _read(self) -> tuple[int, dict[Any, jwt.PyJWK]]:
        path = self._server.jwks_file
        try:
            changed_at = path.stat().st_mtime_ns
            keys = jwt.PyJWKSet.from_dict(json.loads(path.read_bytes())).keys
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise InvalidInput(f"{path} holds no JSON Web Key Set: {type(error).__name__}") from error
        usable = {key.key_id: key for key in keys if key.algorithm_name in ALGORITHMS}
        if not usable:
            raise InvalidInput(f"{path} holds no key to verify with: one of {', '.join(sorted(ALGORITHMS))}")
        return changed_at, usable
