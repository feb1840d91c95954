"""Live calls of a server: the model and agents its settings name, and its sockets as calls know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from echoic.errors import InvalidInput, brief
from echoic.memory.service import MemoryService
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
    """What `settings` ask for; None: no live calls. Nothing is contacted.

    Raises:
        InvalidInput: the model is not known, lacks its key or packages, or takes no WebRTC where it should.
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
        manners=settings.voice_manners,
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
    except UserError as error:  # an unknown provider, or one whose key is missing: it says which
        raise InvalidInput(f"the voice model {brief(model)} cannot be used: {error}") from error
    except ImportError as error:
        raise InvalidInput(
            f"the voice model {brief(model)} needs packages: pip install 'echoic[voice]'"
        ) from error


def _agents(given: Sequence[VoiceAgent]) -> Sequence[VoiceAgent]:
    if given:
        return given
    from echoic.capability.talking import INSTRUCTIONS, NAME
    from echoic.session import VoiceAgent

    return [VoiceAgent(name=NAME, instructions=INSTRUCTIONS, greeting=GREETING)]


class PageSocket:
    """Starlette's socket, accepted, as a call knows one."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> str | bytes | None:
        """The next message; None: it is gone."""
        if self._socket.client_state is WebSocketState.DISCONNECTED:
            return None
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        return cast("str | bytes", text if text is not None else message.get("bytes", b""))

    async def send(self, message: str | bytes) -> None:
        """Send one.

        Raises:
            ConnectionError: it is gone.
        """
        try:
            if isinstance(message, str):
                await self._socket.send_text(message)
            else:
                await self._socket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise ConnectionResetError("the page is gone") from error

    async def close(self, code: int = 1000) -> None:
        """End it."""
        try:
            await self._socket.close(code)
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise ConnectionResetError("the page is gone") from error


__all__ = ["GREETING", "PageSocket", "switchboard"]
