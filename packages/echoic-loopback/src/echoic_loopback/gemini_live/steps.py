"""What only Gemini Live does to a session."""

from __future__ import annotations

from dataclasses import dataclass

from websockets.frames import CloseCode

from echoic_loopback.gemini_live.session import GeminiSession


@dataclass(frozen=True, slots=True)
class GoAway:
    """The provider announces that it will end the connection."""

    time_left_s: float = 50

    async def __call__(self, session: GeminiSession) -> None:
        session.emit(goAway={"timeLeft": f"{self.time_left_s:g}s"})
        await session.flush()


@dataclass(frozen=True, slots=True)
class Expires:
    """The connection reached its longest duration and is closed."""

    async def __call__(self, session: GeminiSession) -> None:
        await session.close(CloseCode.INTERNAL_ERROR, "Deadline expired before operation could complete.")


@dataclass(frozen=True, slots=True)
class Handle:
    """The provider gives out a resumption handle now, not only at the end of a turn."""

    async def __call__(self, session: GeminiSession) -> None:
        session.give_handle()
        await session.flush()


__all__ = ["Expires", "GoAway", "Handle"]
