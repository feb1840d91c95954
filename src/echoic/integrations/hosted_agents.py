"""Webhooks of Vapi, Retell and ElevenLabs as a FastAPI router: memory for calls that run on these platforms.

    app.include_router(webhooks(service, whose=whose, vapi_secret=…, retell_key=…))

Each platform asks before a call for the memory of the caller, calls tools during it, and reports afterwards
what was said. Every request must be signed; a platform without a secret has no routes. A report that is
delivered again changes nothing, and one that could not be stored is answered 503, so that it is delivered
again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from fastapi import APIRouter, HTTPException, Request

from echoic.checks import AGENT, USER, searchable, storable
from echoic.errors import EchoicError, StoreUnavailable
from echoic.integrations import tools
from echoic.memory.assurance import Level
from echoic.memory.compliance import said_since
from echoic.memory.phone_registry import identity_of, line_key, line_of
from echoic.memory.records import PHONE_LINE, scan_all
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.prompt.answer import UNREAD
from echoic.prompt.block import WITHHELD
from echoic.types import Turn

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 5_000_000
"""The report of an hour's call has about 200,000 bytes."""
BLOCK_DEADLINE_MS: Final = 500.0
RECALL_DEADLINE_MS: Final = 400.0
UNKNOWN_CALLER: Final = "The caller is unknown: there is no memory of them, and nothing is stored."

Platform = Literal["vapi", "retell", "elevenlabs"]
Signed = Callable[[str, bytes, Mapping[str, str]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCaller:
    """The caller, as a platform reports them."""

    platform: Platform
    number: str
    """The caller's number in E.164; empty if there is none, as for a call from a web page."""
    outbound: bool
    """Whether the agent called them. The number of an incoming call proves nothing, as it can be faked."""
    payload: Mapping[str, Any]
    """The whole request, including what your own backend gave the call, such as `metadata`."""


Whose = Callable[[HostedCaller], Awaitable[str | None]]
"""Returns the user of a call; None if unknown: then nothing is recalled or stored."""


class HostedWebhooks:
    """The state shared by the routes of all platforms. Created by `webhooks`."""

    def __init__(self, service: MemoryService, whose: Whose, deployment: str, level: Level) -> None:
        self._service, self._whose, self._deployment, self._level = service, whose, deployment, level

    async def user(
        self, platform: Platform, number: object, payload: Mapping[str, Any], *, outbound: bool
    ) -> UserMemory | None:
        """The caller's memory."""
        given = number.strip() if isinstance(number, str) else ""
        caller = HostedCaller(platform=platform, number=given, outbound=outbound, payload=payload)
        try:
            name = (await self._whose(caller) or "").strip()
        except StoreUnavailable as error:
            raise HTTPException(503, "could not look up the caller; try again") from error
        return self._service.user(name, self._deployment, level=self._level) if name else None

    async def block(self, user: UserMemory | None) -> str:
        """The memory block for the start of a call."""
        if user is None:
            return UNKNOWN_CALLER
        try:
            return (await user.block(deadline_ms=BLOCK_DEADLINE_MS)).text
        except EchoicError as error:
            log.warning("the memory of a call could not be read: %s", type(error).__name__)
            return UNREAD

    async def use(
        self, user: UserMemory | None, tool: object, arguments: object, *, conversation: str = ""
    ) -> str:
        """The answer of one of `integrations.tools`, on one line as the platforms require, or its refusal."""
        if user is None:
            return UNKNOWN_CALLER
        try:
            given: Any = json.loads(arguments) if isinstance(arguments, str) and arguments else arguments
            answer = await tools.call(user, str(tool), given or {}, conversation=conversation)
        except EchoicError as error:
            return tools.refusal(error)
        except (ValueError, RecursionError):
            return "the arguments are not JSON"
        return json.dumps(answer, ensure_ascii=False)

    async def documents(self, user: UserMemory | None, said: str) -> list[dict[str, Any]]:
        """The memories for `said`, in the form of a Vapi knowledge base."""
        if user is None or not searchable(said):
            return []
        try:
            recall = await user.recall(searchable(said), limit=5, deadline_ms=RECALL_DEADLINE_MS)
        except EchoicError as error:
            log.warning("memory could not be searched for a call: %s", type(error).__name__)
            return [{"content": UNREAD, "similarity": 1.0}]
        found = [
            {"content": hit.text, "similarity": hit.relevance, "uuid": each.id}
            for hit in recall.hits
            if (each := hit.memory or hit.turn) is not None
        ]
        return [*found, *([{"content": WITHHELD, "similarity": 1.0}] if recall.withheld else [])]

    async def keep(self, user: UserMemory | None, conversation: str, turns: Iterable[Turn | None]) -> None:
        """Store the turns of a finished call; answers 503 if the store fails, so that the platform delivers
        it again.
        """
        if user is None:
            return
        reported = [turn for turn in turns if turn is not None]
        try:
            said = await said_since(user.backing_store, user.scope, conversation, reported)
            if reported and not said:  # the call was forgotten
                return
            opened = await user.conversation(conversation)
            await opened.append(*said)
            await opened.complete()
        except StoreUnavailable as error:
            log.warning("a call is not kept yet: %s", type(error).__name__)
            raise HTTPException(503, "the call could not be stored; deliver it again") from error
        except EchoicError as error:  # such as a forgotten call: delivering it again would not help
            log.error("a call is not kept: %s", type(error).__name__)  # noqa: TRY400 - no content


async def _read(request: Request, secret: str, signed: Signed) -> dict[str, Any]:
    """The JSON object in the body of a signed request."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, "the body is too large")
    if not signed(secret, body, request.headers):
        raise HTTPException(401, "the signature is missing, wrong or too old")
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "the body is not JSON") from error
    if not isinstance(payload, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return payload


def _at(value: Any, *path: str) -> Any:
    """The value at `path`; None if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _turn(
    conversation: str, number: int, said: dict[str, Any], text: object, *, heard: object = None, at_s: object
) -> Turn | None:
    """Turn `number` of a report; None if it has no words."""
    speaker = {"user": USER, "bot": AGENT, "assistant": AGENT, "agent": AGENT}.get(str(said.get("role")))
    if speaker is None or not isinstance(text, str) or not storable(text).strip():
        return None
    part = storable(heard) if isinstance(heard, str) and heard != text else None
    said_at = datetime.now(UTC)
    if isinstance(at_s, int | float) and 0 < at_s < 1e11:
        said_at = datetime.fromtimestamp(0, UTC) + timedelta(seconds=at_s)
    return Turn(
        speaker=speaker, text=storable(text), heard=part, said_at=said_at, id=f"{conversation}:{number}"
    )


def by_number(
    service: MemoryService, salt: str, *, deployment: str = "default", trust_incoming: bool = False
) -> Whose:
    """Identify users by their telephone number, as `echoic phone` does with the same secret.

    Args:
        service: the open memory service, which stores the lines that are linked to users.
        salt: the secret that numbers are hashed with.
        deployment: the deployment of the users.
        trust_incoming: whether to believe the number of an incoming call, which can be faked. If not, only
            called parties are known.
    """

    async def whose(caller: HostedCaller) -> str | None:
        line = identity_of(caller.number, salt) if caller.outbound or trust_incoming else None
        if line is None:
            return None
        lines = service.user(line, deployment)  # only the deployment's scope is read
        key = line_key(line)
        known = line_of(await scan_all(lines.backing_store, lines.scope.everyone, PHONE_LINE, key=key))
        # on a line that several people use, the caller is not known here
        return None if known.people else known.linked or line

    return whose


def webhooks(
    service: MemoryService,
    *,
    whose: Whose,
    vapi_secret: str = "",
    vapi_assistant: str = "",
    retell_key: str = "",
    elevenlabs_secret: str = "",
    deployment: str = "default",
    level: Level = "attested",
) -> APIRouter:
    """The routes of the platforms that have a secret here.

    Args:
        service: the open memory service.
        whose: returns the user of a call, or None. A number alone is no proof of identity.
        level: how certain the identity that `whose` returns is; "account" if the caller signed in
            (docs/assurance.md).
        vapi_secret: the secret of the server URL.
        vapi_assistant: the id of the assistant that takes calls, for `assistant-request`.
        retell_key: the API key that Retell marks for webhooks.
        elevenlabs_secret: the secret of the post-call webhook. ElevenLabs signs neither the conversation
            initiation webhook nor tools: give these the secret as the header `x-echoic-secret`.
        deployment: the deployment of the users.
    """
    router, hooks = APIRouter(), HostedWebhooks(service, whose, deployment, level)
    if vapi_secret:
        _vapi(router, hooks, vapi_secret, vapi_assistant)
    if retell_key:
        _retell(router, hooks, retell_key)
    if elevenlabs_secret:
        _elevenlabs(router, hooks, elevenlabs_secret)
    return router


def _vapi(router: APIRouter, hooks: HostedWebhooks, secret: str, assistant: str) -> None:
    @router.post("/vapi")
    async def vapi(request: Request) -> dict[str, Any]:
        """Vapi's server URL."""
        message = _at(await _read(request, secret, signed_by_vapi), "message") or {}
        call = _at(message, "call") or {}
        conversation = f"vapi:{name}" if (name := _at(call, "id")) else ""
        number = _at(call, "customer", "number") or _at(message, "customer", "number")
        user = await hooks.user("vapi", number, message, outbound=_at(call, "type") == "outboundPhoneCall")
        match _at(message, "type"):
            case "assistant-request":
                overrides = {"variableValues": {"memory": await hooks.block(user)}}
                named = {"assistantId": assistant} if assistant else {}
                return {**named, "assistantOverrides": overrides}
            case "tool-calls":
                results = []
                for each in _items(_at(message, "toolCallList") or _at(message, "toolCalls")):
                    function = _at(each, "function") or each
                    given = _at(function, "arguments") or _at(function, "parameters")
                    answer = await hooks.use(user, _at(function, "name"), given, conversation=conversation)
                    results.append({"toolCallId": each.get("id"), "result": answer})
                return {"results": results}
            case "knowledge-base-request":
                messages = _items(_at(message, "messages"))
                said = [each.get("content") for each in messages if each.get("role") == "user"]
                return {"documents": await hooks.documents(user, str(said[-1] or "") if said else "")}
            case "end-of-call-report" if conversation:
                turns = (
                    _turn(conversation, n, each, each.get("message"), at_s=_seconds(each.get("time")))
                    for n, each in enumerate(_items(_at(message, "artifact", "messages")))
                )
                await hooks.keep(user, conversation, turns)
        return {}


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else None


def _retell(router: APIRouter, hooks: HostedWebhooks, key: str) -> None:
    @router.post("/retell")
    async def retell(request: Request) -> dict[str, Any]:
        """Retell's inbound webhook, its custom functions and its call events, in one."""
        payload = await _read(request, key, signed_by_retell)
        call = _at(payload, "call") or _at(payload, "call_inbound") or {}
        conversation = f"retell:{name}" if (name := _at(call, "call_id")) else ""
        outbound = _at(call, "direction") == "outbound"
        number = _at(call, "to_number" if outbound else "from_number")
        user = await hooks.user("retell", number, payload, outbound=outbound)
        if "call_inbound" in payload:
            return {"call_inbound": {"dynamic_variables": {"memory": await hooks.block(user)}}}
        if "name" in payload and "args" in payload:
            answer = await hooks.use(user, payload["name"], payload["args"], conversation=conversation)
            return {"result": answer}
        if _at(payload, "event") == "call_ended" and conversation:
            began_s = _seconds(_at(call, "start_timestamp"))
            turns = (
                _turn(conversation, n, each, each.get("content"), at_s=_word_at(began_s, each))
                for n, each in enumerate(_items(_at(call, "transcript_object")))
            )
            await hooks.keep(user, conversation, turns)
        return {}


def _word_at(began_s: float | None, utterance: dict[str, Any]) -> float | None:
    words = _items(utterance.get("words"))
    start = words[0].get("start") if words else None
    return began_s + start if began_s is not None and isinstance(start, int | float) else began_s


def _elevenlabs(router: APIRouter, hooks: HostedWebhooks, secret: str) -> None:
    def by_header(given: str, body: bytes, headers: Mapping[str, str]) -> bool:
        del body
        return _same(given, headers.get("x-echoic-secret", ""), given)

    @router.post("/elevenlabs/start")
    async def start(request: Request) -> dict[str, Any]:
        """The conversation initiation webhook: what an incoming call begins with."""
        payload = await _read(request, secret, by_header)
        user = await hooks.user("elevenlabs", _at(payload, "caller_id"), payload, outbound=False)
        variables = {"memory": await hooks.block(user)}
        return {"type": "conversation_initiation_client_data", "dynamic_variables": variables}

    @router.post("/elevenlabs/tools/{tool}")
    async def use(tool: str, request: Request) -> dict[str, Any]:
        """A webhook tool; give it `system__caller_id` as the parameter `caller_id`."""
        payload = await _read(request, secret, by_header)
        given = {name: value for name, value in payload.items() if name != "caller_id"}
        user = await hooks.user("elevenlabs", _at(payload, "caller_id"), payload, outbound=False)
        return {"result": await hooks.use(user, tool, given)}

    @router.post("/elevenlabs/ended")
    async def ended(request: Request) -> dict[str, Any]:
        """The post-call webhook, with the transcript."""
        payload = await _read(request, secret, signed_by_elevenlabs)
        data = _at(payload, "data") or {}
        if _at(payload, "type") == "post_call_transcription" and (name := _at(data, "conversation_id")):
            variables = _at(data, "conversation_initiation_client_data", "dynamic_variables")
            phone = _at(data, "metadata", "phone_call")
            number = _at(phone, "external_number") or _at(variables, "system__caller_id")
            outbound = _at(phone, "direction") == "outbound"
            user = await hooks.user("elevenlabs", number, payload, outbound=outbound)
            conversation, began_s = f"elevenlabs:{name}", _at(data, "metadata", "start_time_unix_secs")
            turns = (
                _elevenlabs_turn(conversation, n, began_s, each)
                for n, each in enumerate(_items(_at(data, "transcript")))
            )
            await hooks.keep(user, conversation, turns)
        return {}


def _elevenlabs_turn(conversation: str, number: int, began_s: object, said: dict[str, Any]) -> Turn | None:
    spoken, written = said.get("message"), said.get("original_message")
    at_s = None
    if isinstance(began_s, int | float) and isinstance(after_s := said.get("time_in_call_secs"), int | float):
        at_s = began_s + after_s
    # an interrupted answer has the written text beside the heard one
    return _turn(conversation, number, said, written or spoken, heard=spoken, at_s=at_s)


# -- signatures: an HMAC over the bytes received, and its age
# A request repeated within its time is answered again; nothing is stored twice.

RETELL_TOLERANCE_S: Final = 300
ELEVENLABS_TOLERANCE_S: Final = 1800
"""The tolerance of each vendor's own verifier, to the past and to the future."""


def signed_by_vapi(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """Check an HMAC in `x-vapi-signature`, or the secret in `x-vapi-secret` or as a bearer token.

    Vapi's signature has no timestamp. If there is a signature, only that counts.
    """
    if signature := headers.get("x-vapi-signature", ""):
        return _same(secret, signature.removeprefix("sha256="), _hmac(secret, body))
    given = headers.get("x-vapi-secret") or headers.get("authorization", "").removeprefix("Bearer ")
    return _same(secret, given, secret)


def signed_by_retell(
    secret: str, body: bytes, headers: Mapping[str, str], now_s: float | None = None
) -> bool:
    """Check `x-retell-signature: v=MILLISECONDS,d=HEX` with the API key that Retell marks for webhooks."""
    parts = _parts(headers.get("x-retell-signature", ""))
    stamp = parts.get("v", "")
    return _is_fresh(stamp, 1000, RETELL_TOLERANCE_S, now_s) and _same(
        secret, parts.get("d", ""), _hmac(secret, body + stamp.encode())
    )


def signed_by_elevenlabs(
    secret: str, body: bytes, headers: Mapping[str, str], now_s: float | None = None
) -> bool:
    """Check `elevenlabs-signature: t=SECONDS,v0=HEX` with the secret of the webhook."""
    parts = _parts(headers.get("elevenlabs-signature", ""))
    stamp = parts.get("t", "")
    return _is_fresh(stamp, 1, ELEVENLABS_TOLERANCE_S, now_s) and _same(
        secret, parts.get("v0", ""), _hmac(secret, stamp.encode() + b"." + body)
    )


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
