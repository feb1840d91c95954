"""WebRTC signalling: what a client posts to open a call, and an answer to its offer.

Without media the answer is a description that any browser accepts and to which nothing ever connects: the
call, its sidebands and its hang-up are real, its audio is not.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from echoic_loopback.openai_realtime.protocol import Refused


@dataclass(frozen=True, slots=True)
class Offer:
    """What opens a call."""

    sdp: str
    session: Mapping[str, Any] | None
    """The session's settings; None where a client secret already has them."""


def read_offer(content_type: str, body: bytes) -> Offer:
    """The offer in a request to `/v1/realtime/calls`: SDP alone, or a form with `sdp` and `session`.

    Raises:
        Refused: it is neither, or the SDP is not one.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/sdp":
        return Offer(_sdp(body.decode(errors="replace")), None)
    if kind != "multipart/form-data":
        raise Refused(
            "unsupported_content_type",
            "Unsupported content type. This API method only accepts 'application/sdp' and "
            f"'multipart/form-data' requests, but you specified the header 'Content-Type: {kind or 'none'}'.",
        )
    fields = _form(content_type, body)
    if "sdp" not in fields:
        raise Refused("missing_required_parameter", "Missing required parameter: 'sdp'.", param="sdp")
    return Offer(_sdp(fields["sdp"]), _session(fields.get("session")))


def answer_without_media(offer: str) -> str:
    """An SDP answer that takes every section of the offer and leads nowhere."""
    lines = offer.splitlines()
    sections = [index for index, line in enumerate(lines) if line.startswith("m=")]
    ufrag, password = secrets.token_hex(4), secrets.token_hex(16)
    fingerprint = ":".join(f"{byte:02X}" for byte in secrets.token_bytes(32))
    grouped = [
        line for line in lines[: sections[0] if sections else None] if line.startswith("a=group:BUNDLE")
    ]
    answer = ["v=0", f"o=- {secrets.randbits(60)} 1 IN IP4 127.0.0.1", "s=-", "t=0 0", *grouped]
    for place, start in enumerate(sections):
        end = sections[place + 1] if place + 1 < len(sections) else len(lines)
        answer += [lines[start], "c=IN IP4 0.0.0.0"]
        answer += [
            line for line in lines[start:end] if line.startswith(("a=mid:", "a=rtpmap:", "a=sctp-port:"))
        ]
        answer += [f"a=ice-ufrag:{ufrag}", f"a=ice-pwd:{password}", f"a=fingerprint:sha-256 {fingerprint}"]
        answer += ["a=setup:active", "a=rtcp-mux"]
        answer += [] if lines[start].startswith("m=application") else ["a=inactive"]
    return "\r\n".join([*answer, ""])


def _sdp(text: str) -> str:
    if not text.startswith("v=0"):
        raise Refused("invalid_offer", "The SDP offer could not be parsed.", param="sdp")
    return text


def _form(content_type: str, body: bytes) -> dict[str, str]:
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    fields: dict[str, str] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            fields[name] = payload.decode()
    return fields


def _session(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        session = json.loads(text)
    except ValueError:
        raise Refused("invalid_json", "Invalid 'session': not JSON.", param="session") from None
    if not isinstance(session, dict):
        raise Refused("invalid_type", "Invalid type for 'session': expected an object.", param="session")
    return session


__all__ = ["Offer", "answer_without_media", "read_offer"]
