"""One socket of a page: the messages of the protocol `echoic.voice.v1` (docs/voice_page.md), sent in order,
and counts of the audio sent each way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.realtime import RealtimeError
from starlette.websockets import WebSocket, WebSocketDisconnect

from echoic.errors import InvalidInput, brief
from echoic.session import Event
from echoic.session.hooks import Caption

Message = tuple[str, dict[str, Any]]
"""A type, and its fields."""
SUBPROTOCOL: Final = "echoic.voice.v1"
MAX_TEXT_BYTES: Final = 32 * 1024
"""Limit of one text message from the page."""
MAX_AUDIO_BYTES: Final = 48_000
"""Limit of one audio message: a second at 24 kHz, where 20 ms are expected."""
REFUSED: Final = 1008
"""RFC 6455, section 7.4.1: a message that violates the policy."""
REPLACED: Final = 4001
"""The same call was opened on another socket."""


_INCOMING: Final[dict[str, dict[str, tuple[type, Any]]]] = {
    "played": {"bytes": (int, None), "flushed": (bool, False)},
    "text": {"text": (str, None), "id": (str, "")},
    "mute": {"muted": (bool, None)},
    "barge_in": {},
    "hang_up": {},
}
"""Messages from a page: by type, the type and default of each field."""


def read(message: str) -> Message | None:
    """Parse a message of a page; None for a type of a later version, which is ignored.

    Raises:
        InvalidInput: it is not a JSON object with a type, or a field is invalid.
    """
    try:
        body = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("a message must be one JSON object; this is not JSON") from error
    kind = body.get("type") if isinstance(body, dict) else None
    if not isinstance(kind, str):
        raise InvalidInput('a message must be one JSON object with a "type"')
    fields = _INCOMING.get(kind)
    if fields is None:
        return None
    return kind, {name: _field(body, name, *field) for name, field in fields.items()}


def _field(body: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = body.get(name, default)
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not right or (kind is int and not 0 <= value < 2**53):
        raise InvalidInput(
            f"the field {brief(name)} of {brief(body['type'])} must be of type {kind.__name__}"
        )
    return value


def written(kind: str, **fields: Any) -> str:
    """A message to the page. Fields that are None are left out."""
    return json.dumps({"type": kind, **{name: value for name, value in fields.items() if value is not None}})


RESUMABLE: Final = frozenset({"left", "lost", "suspended"})
"""Reasons after which the session's checkpoint is kept."""
_TROUBLE: Final = {
    "transcription": "what you said could not be understood; please say it again",
    "StoreUnavailable": "memory cannot be reached at the moment; the call continues",
    "StoreFull": "memory is full: what you say is not stored",
}
_ANY_TROUBLE: Final = "something went wrong for a moment; if no answer comes, please say it again"


def captioned(caption: Caption) -> Message:
    fields = {
        "id": caption.id,
        "speaker": caption.speaker,
        "agent": caption.agent if caption.speaker == "agent" else None,
        "text": caption.text,
        "final": caption.final,
    }
    return "transcript", fields


def told(agent: str, event: Event) -> Message | None:  # noqa: PLR0911 - a table, as code
    """The message for `event`, while `agent` serves; None if there is none."""
    details = event.details
    match event.what:
        case "turn":
            spoken = details["speaker"] == "agent"
            fields = {
                "id": details["id"],
                "speaker": details["speaker"],
                "agent": agent if spoken else None,
                "text": details["text"],
                "final": True,
                "heard": details["heard"] if spoken else None,
            }
            return "transcript", fields
        case "state":
            return "state", {"state": details["state"]}
        case "transfer":
            return "transfer", {"agent": details["to"]}
        case "recall":
            return "recall", {
                "outcome": details["outcome"],
                "hits": details["shown"],
                "ms": details["delay_ms"],
            }
        case "barge_in":
            return "interrupted", {}
        case "error":
            return "problem", {"error": _TROUBLE.get(str(details["kind"]), _ANY_TROUBLE)}
        case _:
            return None


WAITING: Final = 1000
"""Messages that may wait for a page that does not read; one more closes its socket."""
_CLOSE_S: Final = 2.0
_GONE: Final = (WebSocketDisconnect, RuntimeError, OSError)
"""What Starlette raises if the page is gone."""


class Allowance:
    """Limits a microphone's PCM16 audio at `rate_hz` to `pace` times real time, plus a burst of `burst_s`."""

    def __init__(self, rate_hz: int, *, pace: float, burst_s: float) -> None:
        self._bytes_per_s = 2 * rate_hz * pace
        self._most = 2 * rate_hz * burst_s
        self._left = self._most
        self._at_s = time.monotonic()

    def take(self, size: int) -> bool:
        now_s = time.monotonic()
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._bytes_per_s)
        self._at_s = now_s
        self._left -= size
        return self._left >= 0


class CallSocket:
    """One accepted socket of a call. Keep `run` running while messages are sent."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._waiting: asyncio.Queue[str | bytes | int] = asyncio.Queue()
        self._gone = asyncio.Event()
        self.sent_bytes = 0
        self.played_bytes = 0
        """Bytes of audio that the page reported as played."""
        self.offset = 0
        """Bytes that earlier sockets of the call had played."""
        self.ending = False
        """Whether it closes once all waiting messages were sent."""

    @property
    def gone(self) -> bool:
        return self._gone.is_set()

    def say(self, kind: str, **fields: object) -> None:
        self._put(written(kind, **fields))

    def sound(self, pcm: bytes) -> None:
        self.sent_bytes += len(pcm)
        self._put(pcm)

    def flush(self) -> None:
        """Make the page drop audio it has not played, and drop audio that was not sent."""
        kept: list[str | bytes | int] = []
        while not self._waiting.empty():
            message = self._waiting.get_nowait()
            if isinstance(message, bytes):
                self.sent_bytes -= len(message)
            else:
                kept.append(message)
        for message in kept:
            self._waiting.put_nowait(message)
        self.say("flush")

    def end(self, code: int = 1000) -> None:
        """Close the socket once all waiting messages were sent."""
        self.ending = True
        self._put(code)

    async def wait_gone(self) -> None:
        await self._gone.wait()

    async def receive(self) -> str | bytes | None:
        """The next message; None if the socket is gone.

        Raises:
            InvalidInput: it is too large.
        """
        try:
            received = await self._socket.receive()
        except RuntimeError:  # already gone
            return None
        if received["type"] == "websocket.disconnect":
            return None
        text = received.get("text")
        message: str | bytes = text if text is not None else received.get("bytes", b"")
        most = MAX_AUDIO_BYTES if isinstance(message, bytes) else MAX_TEXT_BYTES
        if len(message) > most:
            raise InvalidInput(f"a message may have at most {most} bytes; send audio in frames of 20 ms")
        return message

    async def run(self) -> None:
        try:
            while True:
                message = await self._waiting.get()
                if isinstance(message, int):
                    await self._close(message)
                    return
                if isinstance(message, str):
                    await self._socket.send_text(message)
                else:
                    await self._socket.send_bytes(message)
        except _GONE:
            return
        finally:
            self._gone.set()

    def _put(self, message: str | bytes | int) -> None:
        if self._waiting.qsize() < WAITING:
            self._waiting.put_nowait(message)
        else:
            self._gone.set()

    async def _close(self, code: int) -> None:
        with contextlib.suppress(TimeoutError, *_GONE):
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(code)


Transport = Literal["websocket", "webrtc"]
"""websocket: audio goes through this process. webrtc: directly between page and provider."""
FAILED: Final = (RealtimeError, ModelAPIError, UserError)
"""PydanticAI's errors if a model cannot be reached, or refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """Time limits and sizes of a page's connection.

    Raises:
        InvalidInput: a value that is not above 0, or a `pace` below 1.
    """

    grace_s: float = 20.0
    """How long a call waits for its caller to come back."""
    ticket_s: float = 30.0
    """How long a ticket is valid."""
    resume_within_s: float = 3600.0
    """Maximum age of a checkpoint for resuming its call."""
    check_s: float = 15.0
    """How often a caller's identity is checked again."""
    ahead_ms: int = 1000
    """Limit of audio on its way to the page: enough for a network stall."""
    pace: float = 1.25
    """How much faster than real time audio may arrive."""
    burst_s: float = 15.0
    """Audio that may arrive at once, as after a network stall."""

    def __post_init__(self) -> None:
        for name in ("grace_s", "ticket_s", "resume_within_s", "check_s", "ahead_ms", "burst_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0, not {brief(getattr(self, name))}")
        if not self.pace >= 1:
            raise InvalidInput(
                f"pace must be at least 1, not {brief(self.pace)}: a microphone sends in real time"
            )
