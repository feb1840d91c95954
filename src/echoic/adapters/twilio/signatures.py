"""Twilio request signatures, and the tokens that name the call and step a request is for.

A signature covers URL and parameters but no time, so an intercepted request could be replayed forever. The
signed URL therefore contains a token that names call and step and expires, and for sockets one that is valid
once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import FormData
from starlette.requests import HTTPConnection, Request
from twilio.request_validator import RequestValidator

from echoic.adapters.twilio.settings import PhoneSettings

MAX_BODY_BYTES: Final = 64 * 1024
TOKEN_LIFETIME_S: Final = 4 * 3600
"""Twilio's limit of a call's duration."""
HEADER: Final = "x-twilio-signature"
NOT_SIGNED: Final = (
    "the signature is not Twilio's: is --public-url exactly the address that Twilio's console has, and the "
    "auth token that of its account?"
)
_SID = re.compile(r"CA[0-9A-Za-z]{32}")


class SignatureRefused(Exception):
    """A refused request, and its status. Strangers are not told why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Signatures:
    """Verifies Twilio's requests."""

    def __init__(self, settings: PhoneSettings) -> None:
        self._settings = settings
        self._validator = RequestValidator(settings.auth_token)
        # a key of its own, so that a token reveals nothing about a number
        self._key = hmac.digest(settings.salt.encode(), b"echoic phone tokens", hashlib.sha256)

    def base_of(self, connection: HTTPConnection) -> str:
        """Scheme and host as the caller of `connection` sees them."""
        if self._settings.public_url is not None:
            return self._settings.public_url
        scheme, host = connection.url.scheme, connection.headers.get("host", "")
        if self._settings.trust_forwarded:
            scheme = connection.headers.get("x-forwarded-proto", scheme)
            host = connection.headers.get("x-forwarded-host", host)
        return f"{'https' if scheme in {'https', 'wss'} else 'http'}://{host}"

    async def form_of(self, request: Request) -> FormData:
        """The parameters of a signed webhook.

        Raises:
            SignatureRefused: 403 forged; 400 malformed; 413 too large.
        """
        body = await _body(request)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=500, errors="strict")
        except ValueError as error:
            raise SignatureRefused(400, "the body is not a form") from error
        form = FormData([*pairs])
        query = f"?{request.url.query}" if request.url.query else ""
        if not self._signed(request, f"{self.base_of(request)}{request.url.path}{query}", form):
            raise SignatureRefused(403, NOT_SIGNED)
        return form

    def check_socket(self, connection: HTTPConnection) -> None:
        """Check the signature of a socket's handshake; raises `SignatureRefused` (403)."""
        base = self.base_of(connection)
        url = f"{'wss' if base.startswith('https') else 'ws'}{base[base.index(':') :]}{connection.url.path}"
        if not self._signed(connection, url, FormData()):
            raise SignatureRefused(403, NOT_SIGNED)

    def token(self, call: str, step: int) -> str:
        """A token that proves that a URL was issued here, when, and for which call and step."""
        issued = f"{int(time.time()):x}"
        return f"{issued}.{self._mark(call, step, issued)}"

    def check_token(self, token: str, call: str, step: int) -> None:
        """Check a token; raises `SignatureRefused` (403) if it is for another call or step, or too old."""
        issued, _, mark = token.partition(".")
        if not hmac.compare_digest(mark.encode(), self._mark(call, step, issued).encode()):
            raise SignatureRefused(403, "the token is not of this step")
        if time.time() - int(issued, 16) > TOKEN_LIFETIME_S:
            raise SignatureRefused(403, "the token is too old")

    def _mark(self, call: str, step: int, issued: str) -> str:
        return hmac.new(self._key, f"{call}\n{step}\n{issued}".encode(), hashlib.sha256).hexdigest()[:32]

    def _signed(self, connection: HTTPConnection, url: str, form: FormData) -> bool:
        given = connection.headers.getlist(HEADER)
        if len(given) != 1 or not given[0].isascii():
            return False
        try:
            return bool(self._validator.validate(url, form, given[0]))
        except ValueError:  # the host that the request names is none
            return False


def call_of(form: FormData) -> str:
    """The id of a webhook's call; raises `SignatureRefused` (400) unless there is exactly one."""
    named = form.getlist("CallSid")
    if len(named) != 1 or not isinstance(named[0], str) or not _SID.fullmatch(named[0]):
        raise SignatureRefused(400, "CallSid is missing or malformed")
    return named[0]


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise SignatureRefused(413, "the body is too large")
    return bytes(body)
