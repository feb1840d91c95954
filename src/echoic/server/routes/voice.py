"""Live calls: whether there are any, opening one, its socket, and its WebRTC offer."""

from __future__ import annotations

import logging
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Request, Response, WebSocket
from pydantic import Field

from echoic.errors import NotAllowed
from echoic.server.callers import AsAnybody, AsCaller, Served, Shared, address, is_known_still
from echoic.server.models import Asked, Shown
from echoic.server.problems import RETRY_S, Refused, not_found, responses
from echoic.server.voice import PageSocket

log = logging.getLogger(__name__)

router = APIRouter(tags=["voice"])
sockets = APIRouter()
"""A ticket is what opens these; they are no operations of the HTTP interface."""

_BUSY_S = 5
"""What a caller is told to wait where there are too many calls."""
_SDP = "application/sdp"


class Voice(Shown):
    """What live calls there are."""

    transport: Literal["websocket", "webrtc", "none"] = Field(
        description="Which way the audio goes. none: there are no live calls; type, or use /api/chat/stream."
    )
    provider: str | None = Field(description="Whose model speaks.", examples=["openai", "google"])
    agents: list[str] = Field(description="Who serves; the first one begins.")
    greeting: bool = Field(description="Whether the agent speaks first.")


class VoiceAnswer(Shown):
    """The same, as an answer."""

    success: Literal[True] = True
    result: Voice


class OpenCall(Asked):
    """Which call to open."""

    agent: str | None = Field(default=None, description="Who is to begin; the first where it is left out.")
    resume: str | None = Field(default=None, description="The session to go on with.")
    media: bool = Field(
        default=False, description="With `resume`: the page's WebRTC connection of that call is still up."
    )


class Admitted(Shown):
    """A call to be opened."""

    session: str
    conversation: str
    transport: Literal["websocket", "webrtc"]
    input_hz: int = Field(description="Of the audio to send.")
    output_hz: int = Field(description="Of the audio that comes.")
    ticket: str = Field(description="Opens one socket, once, within half a minute.")


@router.get("/api/voice", summary="Whether there are live calls", dependencies=[AsAnybody])
async def get_voice(shared: Shared) -> VoiceAnswer:
    """And who would serve them."""
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
    summary="Open a live call, or go on with one",
    responses=responses(401, 404, 413, 422, 429, 503),
)
async def open_call(
    caller: AsCaller,
    shared: Shared,
    request: Request,
    asked: Annotated[OpenCall | None, Body()] = None,
) -> Admitted:
    """A ticket for the socket at `/api/voice/socket`. A call of somebody else's is answered like none."""
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
            address=address(request),
        )
    except NoSuchCall as error:
        raise not_found(str(error)) from error
    except NotAllowed as error:
        raise _too_many(error) from error
    return Admitted(
        session=admission.session,
        conversation=admission.conversation,
        transport=board.transport,
        input_hz=board.profile.input_hz,
        output_hz=board.profile.output_hz,
        ticket=admission.ticket,
    )


@sockets.websocket("/api/voice/socket")
async def voice_socket(socket: WebSocket, shared: Shared, ticket: str = "") -> None:
    """The call's events, and its audio where that goes through here; docs/voice_page.md has the messages."""
    call = shared.voice.redeem(ticket) if shared.voice is not None else None
    if call is None:
        await socket.close(1008)  # before it is accepted: 403
        return
    from echoic.adapters.browser import SUBPROTOCOL, serve

    offered = socket.scope.get("subprotocols", [])
    await socket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
    await serve(call, PageSocket(socket))


@router.post(
    "/api/voice/sessions/{session}/offer",
    summary="Send the call's audio straight to the provider",
    response_class=Response,
    responses={
        200: {"description": "The answer, as SDP.", "content": {_SDP: {"schema": {"type": "string"}}}},
        **responses(401, 404, 413, 422, 429, 503),
    },
    openapi_extra={"requestBody": {"content": {_SDP: {"schema": {"type": "string"}}}, "required": True}},
)
async def answer_offer(caller: AsCaller, shared: Shared, session: str, request: Request) -> Response:
    """Answers a WebRTC offer. The provider's key stays here; the server steers the call from beside."""
    if shared.voice is None:
        raise not_found("call")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _SDP:
        raise Refused(422, "invalid_input", f"an offer is sent as {_SDP}")
    sdp = (await request.body()).decode(errors="replace")
    return Response(
        await _answered(caller.principal.user, caller.principal.deployment, shared, session, sdp),
        media_type=_SDP,
    )


async def _answered(user: str, deployment: str, shared: Served, session: str, sdp: str) -> str:
    from echoic.adapters.browser import FAILED, NoSuchCall

    assert shared.voice is not None
    try:
        return await shared.voice.offer(user, deployment, session, sdp)
    except NoSuchCall as error:
        raise not_found("call") from error
    except FAILED as error:
        log.warning("an offer was not answered: %s", type(error).__name__)
        headers = {"Retry-After": str(RETRY_S)}
        words = "the voice model could not be reached; try again in a moment"
        raise Refused(503, "model_unavailable", words, headers=headers) from error


def _too_many(error: NotAllowed) -> Refused:
    return Refused(429, "too_many_calls", str(error), headers={"Retry-After": str(_BUSY_S)})


__all__ = ["router", "sockets"]
