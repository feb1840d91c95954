"""A page's WebRTC offer, relayed to the provider with the server's own key, which the page never sees."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.realtime import RealtimeError, RealtimeModel, WebRTCSession

from echoic.adapters.browser.manners import FAILED
from echoic.errors import InvalidInput
from echoic.session import ProviderProfile, SessionSettings

MAX_SDP_CHARACTERS: Final = 64 * 1024
_FROM_THE_PAGE: Final = frozenset({400, 422})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the page is told, and the call it opened."""

    sdp: str
    call: str
    """The provider's id of it."""


async def answered(model: RealtimeModel, sdp: str, settings: SessionSettings) -> Answer:
    """Have the provider answer an offer. Until a session is beside the call, nobody speaks on it.

    Neither instructions nor memory are in what is sent here: the sideband brings them.

    Args:
        model: that will speak.
        sdp: the page's offer.
        settings: of the session that will be beside the call.

    Raises:
        InvalidInput: this is no offer, or not one that the provider takes.
        RealtimeError, ModelAPIError, UserError: the provider could not be reached, or refused.
    """
    if not sdp.startswith("v=0") or len(sdp) > MAX_SDP_CHARACTERS:
        raise InvalidInput("the body must be a WebRTC offer, as RTCPeerConnection.createOffer makes it")
    first = settings.recalls_first
    try:
        answer = await model.answer_webrtc_offer(
            sdp, model_settings=ProviderProfile.of(model).settings(None, recall_first=first)
        )
    except ModelHTTPError as error:
        if error.status_code in _FROM_THE_PAGE:
            raise InvalidInput("the provider does not take this offer; make a new one") from error
        raise
    except FAILED:
        raise
    except Exception as error:  # the transport's own, of whichever HTTP client PydanticAI uses
        raise RealtimeError(model_name=model.model_name, message=type(error).__name__) from error
    return Answer(sdp=answer.sdp, call=answer.session.session_id)


async def hung_up(model: RealtimeModel, answer: Answer) -> None:
    """End a call that nobody came to steer. One that cannot be reached ends when its caller leaves."""
    with contextlib.suppress(Exception):
        await model.hang_up(WebRTCSession(model.system, session_id=answer.call))


__all__ = ["MAX_SDP_CHARACTERS", "Answer", "answered", "hung_up"]
