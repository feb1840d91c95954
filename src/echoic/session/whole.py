"""A session as its parts see it: what it was given, and what they may ask of it. `VoiceSession` is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from echoic.session.agents import InCall, VoiceAgent
from echoic.session.live import SessionSettings


class Session(InCall, Protocol):
    """The whole that a part belongs to."""

    agents: Mapping[str, VoiceAgent]
    """Who may serve, by name."""
    settings: SessionSettings
    deps: Any
    """The application's own."""

    def agent(self, name: str) -> VoiceAgent:
        """One of the session's agents.

        Raises:
            InvalidInput: there is none of that name.
        """
        ...


__all__ = ["Session"]
