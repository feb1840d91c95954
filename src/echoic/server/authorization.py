"""Tokens that others sign: your own sign-in, and the authorization server of MCP clients (RFC 9728).

They are verified with public keys in a file. Whoever signs them is asked nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

import jwt
from jwt.algorithms import has_crypto

from echoic.errors import InvalidInput
from echoic.server.credentials import Principal, TokenRefused
from echoic.server.settings import AccountIssuer, AuthorizationServer
from echoic.types import checked_name

log = logging.getLogger(__name__)

ALGORITHMS: Final = frozenset(("RS256", "ES256", "EdDSA"))
"""Whoever verifies with these cannot sign with the same key."""
_CLAIMS: Final = ["iss", "aud", "sub", "exp"]
_DEPLOYMENT_CLAIMS: Final = ("deployment", "deploymentId", "dep")
"""A token need not name the deployment; it may not name another."""
_NOT_GOOD: Final = "this token is not good here: get another from whoever signs you in"


class IssuedTokens:
    """Recognises the tokens of one issuer.

    Raises:
        InvalidInput: its file of keys cannot be read, or holds none to verify with.
    """

    def __init__(self, issuer: AccountIssuer | AuthorizationServer, deployment: str) -> None:
        self._issuer = issuer
        self._deployment = deployment
        self._read_as, self._keys = self._read()

    @staticmethod
    def is_one(token: str) -> bool:
        """Whether a token is signed as those are: this server's own are HS256."""
        try:
            return token.isascii() and jwt.get_unverified_header(token).get("alg") in ALGORITHMS
        except jwt.InvalidTokenError:
            return False

    def verify(self, token: str, deployment: str | None = None) -> Principal:
        """Who holds `token`.

        Args:
            token: as it was issued.
            deployment: the one that is asked for; None: the one its users are in.

        Raises:
            TokenRefused: forged, expired, of another issuer, for another audience or deployment.
        """
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                issuer=self._issuer.issuer,
                audience=self._issuer.audience,
                options={"require": _CLAIMS},
            )
            user, token_id = _named(claims["sub"], "sub"), claims.get("jti")
            token_id = _named(token_id, "jti") if token_id else hashlib.sha256(token.encode()).hexdigest()
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
        """The key of that name; of one key alone a token need not name it."""
        if self._file() != self._read_as:
            try:
                self._read_as, self._keys = self._read()
            except InvalidInput as error:  # nobody is let in: a key may have been taken out
                log.warning("no token of %s is accepted: %s", self._issuer.issuer, error)
                raise
        found = self._keys.get(name)
        if found is None and name is None and len(self._keys) == 1:
            (found,) = self._keys.values()
        if found is None:
            raise jwt.InvalidKeyError("no key of that name")
        return found

    def _file(self) -> tuple[int, int, int]:
        """What changes whenever the file does."""
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
