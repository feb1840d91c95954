"""How calls treat the sockets of their pages, and how a provider's failure shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pydantic_ai.exceptions import ModelAPIError, UserError
from pydantic_ai.realtime import RealtimeError

from echoic.errors import InvalidInput, brief

Transport = Literal["websocket", "webrtc"]
"""websocket: audio goes through this process. webrtc: between page and provider, steered from beside."""
FAILED: Final = (RealtimeError, ModelAPIError, UserError)
"""How PydanticAI says that a model could not be reached, or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """Times and measures.

    Raises:
        InvalidInput: one that leaves no time, or lets no audio pass.
    """

    grace_s: float = 20.0
    """How long a call waits for its caller to come back."""
    ticket_s: float = 30.0
    """How long a ticket is good."""
    resume_within_s: float = 3600.0
    """How old the last sign of a call may be for it to be resumed."""
    check_s: float = 15.0
    """How often it is seen whether a caller's identity is still good."""
    ahead_ms: int = 1000
    """Of audio at most on its way to the page: enough for a bad moment, and little to throw away."""
    pace: float = 1.25
    """How much faster than time a microphone may be."""
    burst_s: float = 15.0
    """Of audio that may come at once, as after a bad moment of the network."""

    def __post_init__(self) -> None:
        for name in ("grace_s", "ticket_s", "resume_within_s", "check_s", "ahead_ms", "burst_s"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0, not {brief(getattr(self, name))}")
        if not self.pace >= 1:
            raise InvalidInput(
                f"pace must be at least 1, not {brief(self.pace)}: a microphone is as fast as time"
            )


__all__ = ["FAILED", "Manners", "Transport"]
