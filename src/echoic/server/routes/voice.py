"""Voice calls: what the server offers, opening a call, its socket, and its WebRTC offer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Body, Request, Response
from pydantic import Field
from starlette.websockets import WebSocket

from echoic.errors import InvalidInput, NotAllowed, brief
from echoic.memory.service import MemoryService
from echoic.server.credentials import CALLER_HEADER
from echoic.server.models import RequestBody, ResponseModel
from echoic.server.problems import RETRY_S, Refused, not_found, responses
from echoic.server.request_callers import (
    AppState,
    AsAnybody,
    AsCaller,
    Shared,
    address,
    is_known_still,
    recognise,
)
from echoic.server.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.realtime import RealtimeModel

    from echoic.adapters.browser import Switchboard
    from echoic.session import VoiceAgent

GREETING: Final = (
    "Greet the caller in one short sentence: by name, if you know it, and with what you last talked about, "
    "if you remember something that matters. Else ask who you are talking to."
)


def switchboard(memory: MemoryService, settings: ServerSettings) -> Switchboard | None:
    """The switchboard that `settings` configure; None without voice calls. Contacts no provider.

    Raises:
        InvalidInput: the model is unknown, lacks its key or packages, or does not support WebRTC although
            set.
    """
    if settings.voice_model is None:
        return None
    model = _model(settings.voice_model)
    from echoic.adapters.browser import Switchboard

    return Switchboard(
        memory,
        model,
        _agents(settings.voice_agents),
        transport=settings.voice_transport,
        settings=settings.voice_settings,
        page_settings=settings.voice_page_settings,
        limits=settings.voice_limits,
        per_address=settings.limits.calls_per_address,
    )


def _model(model: str | RealtimeModel) -> RealtimeModel:
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.realtime import RealtimeModel, infer_realtime_model
    except ImportError as error:
        raise InvalidInput(f"live calls need packages ({error.name}): pip install 'echoic[voice]'") from error
    if isinstance(model, RealtimeModel):
        return model
    if not isinstance(model, str):
        raise InvalidInput(f"voice_model must be 'provider:model' or a realtime model, not {brief(model)}")
    try:
        return infer_realtime_model(model)
    except UserError as error:  # an unknown provider, or a missing key; the message says which
        raise InvalidInput(f"the voice model {brief(model)} cannot be used: {error}") from error
    except ImportError as error:
        raise InvalidInput(
            f"the voice model {brief(model)} needs packages: pip install 'echoic[voice]'"
        ) from error


def _agents(given: Sequence[VoiceAgent]) -> Sequence[VoiceAgent]:
    if given:
        return given
    from echoic.capability.talker import INSTRUCTIONS, NAME
    from echoic.session import VoiceAgent

    return [VoiceAgent(name=NAME, instructions=INSTRUCTIONS, greeting=GREETING)]


log = logging.getLogger(__name__)

router = APIRouter(tags=["voice"])
sockets = APIRouter()
"""Sockets, opened with a ticket; not part of the OpenAPI description."""

_BUSY_S = 5
"""Retry-After when there are too many calls."""
_SDP = "application/sdp"


class Voice(ResponseModel):
    """The voice calls this server offers."""

    transport: Literal["websocket", "webrtc", "none"] = Field(
        description="How audio travels. none: there are no voice calls; use /api/chat/stream."
    )
    provider: str | None = Field(
        description="The provider of the voice model.", examples=["openai", "google"]
    )
    agents: list[str] = Field(description="The agents; the first one answers.")
    greeting: bool = Field(description="Whether the agent speaks first.")


class VoiceAnswer(ResponseModel):
    """The answer about voice calls."""

    success: Literal[True] = True
    result: Voice


class OpenCall(RequestBody):
    """The call to open."""

    agent: str | None = Field(default=None, description="The agent that answers; the first by default.")
    resume: str | None = Field(default=None, description="The session to resume.")
    media: bool = Field(
        default=False, description="With `resume`: the page's WebRTC connection of that call is still up."
    )


class Admitted(ResponseModel):
    """An admitted call."""

    session: str
    conversation: str
    transport: Literal["websocket", "webrtc"]
    input_hz: int = Field(description="The sample rate of audio to send.")
    output_hz: int = Field(description="The sample rate of audio received.")
    ticket: str = Field(description="Opens one socket, once, within 30 seconds.")


@router.get("/api/voice", summary="Get the available voice calls", dependencies=[AsAnybody])
async def get_voice(shared: Shared) -> VoiceAnswer:
    """Whether there are voice calls, and their agents."""
    if shared.voice is None:
        return VoiceAnswer(result=Voice(transport="none", provider=None, agents=[], greeting=False))
    board = shared.voice
    voice = Voice(
        transport=board.transport,
        provider=board.profile.provider,
        agents=list(board.agents),
        greeting=board.greets,
    )
    return VoiceAnswer(result=voice)


@router.post(
    "/api/voice/sessions",
    summary="Open or resume a voice call",
    responses=responses(401, 404, 413, 422, 429, 503),
)
async def open_call(
    caller: AsCaller,
    shared: Shared,
    request: Request,
    asked: Annotated[OpenCall | None, Body()] = None,
) -> Admitted:
    """Returns a ticket for the socket at `/api/voice/socket`. Another user's call is not found."""
    if shared.voice is None:
        raise not_found("voice")
    from echoic.adapters.browser import NoSuchCall

    asked = asked or OpenCall()
    board, who = shared.voice, caller.principal
    try:
        admission = await board.admit(
            who.user,
            who.deployment,
            agent=asked.agent or "",
            resume=asked.resume or "",
            keeps_media=asked.media,
            is_known=lambda: is_known_still(shared, who),
            level=who.level,
            address=address(request),
            proof=request.headers.get(CALLER_HEADER, ""),
        )
    except NoSuchCall as error:
        raise not_found(str(error)) from error
    except NotAllowed as error:
        headers = {"Retry-After": str(_BUSY_S)}
        raise Refused(429, "too_many_calls", str(error), headers=headers) from error
    return Admitted(
        session=admission.session,
        conversation=admission.conversation,
        transport=board.transport,
        input_hz=board.profile.input_hz,
        output_hz=board.profile.output_hz,
        ticket=admission.ticket,
    )


@sockets.websocket("/api/voice/socket")
async def voice_socket(socket: WebSocket, shared: Shared, ticket: str = "", caller: str = "") -> None:
    """The call's events, and its audio unless that goes over WebRTC; see docs/voice_page.md.

    A ticket that the page got with a cookie opens only a socket that sends the same cookie, from a page of
    this server.
    """
    if caller and not await _brings_cookie(socket, shared, caller):
        await socket.close(1008)
        return
    call = shared.voice.redeem(ticket, caller) if shared.voice is not None else None
    if call is None:
        await socket.close(1008)  # before it is accepted, so that the client gets 403
        return
    from echoic.adapters.browser import SUBPROTOCOL

    offered = socket.scope.get("subprotocols", [])
    await socket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
    await call.serve(socket)


async def _brings_cookie(socket: WebSocket, shared: AppState, caller: str) -> bool:
    """Whether the cookie with that name is valid. The request's origin, if any, was checked before."""
    kept = shared.cookies.credentials(socket, caller) if "origin" in socket.headers else None
    try:
        await recognise(shared, socket, kept.credentials if kept else None)
    except Refused:
        return False
    return True


@router.post(
    "/api/voice/sessions/{session}/offer",
    summary="Answer a WebRTC offer",
    response_class=Response,
    responses={
        200: {"description": "The answer, as SDP.", "content": {_SDP: {"schema": {"type": "string"}}}},
        **responses(401, 404, 413, 422, 429, 503),
    },
    openapi_extra={"requestBody": {"content": {_SDP: {"schema": {"type": "string"}}}, "required": True}},
)
async def answer_offer(caller: AsCaller, shared: Shared, session: str, request: Request) -> Response:
    """Connects the page's audio to the provider. The provider's key stays on the server, which controls the
    call.
    """
    if shared.voice is None:
        raise not_found("call")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _SDP:
        raise Refused(422, "invalid_input", f"an offer is sent as {_SDP}")
    from echoic.adapters.browser import FAILED, NoSuchCall

    sdp, who = (await request.body()).decode(errors="replace"), caller.principal
    try:
        answer = await shared.voice.offer(who.user, who.deployment, session, sdp, level=who.level)
    except NoSuchCall as error:
        raise not_found("call") from error
    except FAILED as error:
        log.warning("an offer was not answered: %s", type(error).__name__)
        headers = {"Retry-After": str(RETRY_S)}
        words = "the voice model could not be reached; try again in a moment"
        raise Refused(503, "model_unavailable", words, headers=headers) from error
    return Response(answer, media_type=_SDP)
