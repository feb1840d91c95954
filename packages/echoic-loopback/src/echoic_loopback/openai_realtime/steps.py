"""What only OpenAI Realtime does to a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from websockets.frames import CloseCode

from echoic_loopback.openai_realtime.session import OpenAISession


@dataclass(frozen=True, slots=True)
class SendsError:
    """An `error` event that no client caused."""

    message: str
    code: str | None = None
    type: str = "server_error"

    async def __call__(self, session: OpenAISession) -> None:
        error = {
            "type": self.type,
            "code": self.code,
            "message": self.message,
            "param": None,
            "event_id": None,
        }
        session.emit("error", error=error)
        await session.flush()


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Tells what is left of the limits."""

    name: Literal["requests", "tokens"] = "tokens"
    limit: int = 40_000
    remaining: int = 0
    reset_seconds: float = 30.0

    async def __call__(self, session: OpenAISession) -> None:
        entry = {
            "name": self.name,
            "limit": self.limit,
            "remaining": self.remaining,
            "reset_seconds": self.reset_seconds,
        }
        session.emit("rate_limits.updated", rate_limits=[entry])
        await session.flush()


@dataclass(frozen=True, slots=True)
class Fails:
    """The response that is due fails; with `rate_limit_exceeded` as code, because of the rate limit."""

    code: str = "rate_limit_exceeded"
    message: str = "Rate limit reached. Please try again later."
    type: str = "tokens"

    async def __call__(self, session: OpenAISession) -> None:
        await session.take_response()
        session.end_response("failed", error={"type": self.type, "code": self.code, "message": self.message})
        await session.flush()


@dataclass(frozen=True, slots=True)
class CutsShort:
    """The response under way ends early, for its length or its content: to be used in `Says.at`."""

    reason: Literal["max_output_tokens", "content_filter"] = "max_output_tokens"

    async def __call__(self, session: OpenAISession) -> None:
        session.end_response("incomplete", reason=self.reason)
        await session.flush()


@dataclass(frozen=True, slots=True)
class Expires:
    """The session reached its longest duration: the provider says so and closes."""

    async def __call__(self, session: OpenAISession) -> None:
        message = "Your session hit the maximum duration of 60 minutes."
        error = {
            "type": "invalid_request_error",
            "code": "session_expired",
            "message": message,
            "param": None,
            "event_id": None,
        }
        session.emit("error", error=error)
        await session.close(CloseCode.GOING_AWAY, message)


__all__ = ["CutsShort", "Expires", "Fails", "RateLimits", "SendsError"]
