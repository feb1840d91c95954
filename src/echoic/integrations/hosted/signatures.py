"""Whether a webhook is from Vapi, Retell or ElevenLabs: an HMAC over the very bytes that came, and its age.

Each function is given the shared secret, the body as it came, and the headers with lower-case names. Without
a secret nothing is accepted. Who repeats a request within its time is answered again; nothing is kept twice.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Final

RETELL_TOLERANCE_S: Final = 300
ELEVENLABS_TOLERANCE_S: Final = 1800
"""As long as each vendor's own verifier takes a signature for fresh, and as far into the future."""


def signed_by_vapi(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """By HMAC in `x-vapi-signature`; or the secret itself, in `x-vapi-secret` or as a bearer token.

    What Vapi signs has no time in it. A request that has a signature is judged by that alone.
    """
    if signature := headers.get("x-vapi-signature", ""):
        return _same(secret, signature.removeprefix("sha256="), _hmac(secret, body))
    given = headers.get("x-vapi-secret") or headers.get("authorization", "").removeprefix("Bearer ")
    return _same(secret, given, secret)


def signed_by_retell(
    secret: str, body: bytes, headers: Mapping[str, str], now_s: float | None = None
) -> bool:
    """By `x-retell-signature: v=MILLISECONDS,d=HEX` with the API key that Retell marks as the webhook's."""
    parts = _parts(headers.get("x-retell-signature", ""))
    stamp = parts.get("v", "")
    return _is_fresh(stamp, 1000, RETELL_TOLERANCE_S, now_s) and _same(
        secret, parts.get("d", ""), _hmac(secret, body + stamp.encode())
    )


def signed_by_elevenlabs(
    secret: str, body: bytes, headers: Mapping[str, str], now_s: float | None = None
) -> bool:
    """By `elevenlabs-signature: t=SECONDS,v0=HEX` with the secret of the webhook."""
    parts = _parts(headers.get("elevenlabs-signature", ""))
    stamp = parts.get("t", "")
    return _is_fresh(stamp, 1, ELEVENLABS_TOLERANCE_S, now_s) and _same(
        secret, parts.get("v0", ""), _hmac(secret, stamp.encode() + b"." + body)
    )


def same_secret(secret: str, given: str) -> bool:
    """Whether `given` is the secret; of an empty one never."""
    return _same(secret, given, secret)


def _parts(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(","))
    return {name: value for name, _, value in pairs}


def _is_fresh(stamp: str, per_second: int, tolerance_s: float, now_s: float | None) -> bool:
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 20):
        return False
    now_s = time.time() if now_s is None else now_s
    return abs(now_s - int(stamp) / per_second) <= tolerance_s


def _hmac(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _same(secret: str, given: str, expected: str) -> bool:
    return bool(secret) and hmac.compare_digest(given.encode(errors="replace"), expected.encode())
