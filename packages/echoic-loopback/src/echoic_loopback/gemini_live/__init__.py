"""A stand-in for Gemini Live on this machine: real clients talk to it over TLS, a script answers.

docs/loopback.md has the script language, the rules that are enforced, and what is not modelled.
"""

from __future__ import annotations

from echoic_loopback.gemini_live.server import GeminiLiveServer
from echoic_loopback.gemini_live.session import GeminiSession
from echoic_loopback.gemini_live.steps import Expires, GoAway, Handle

__all__ = ["Expires", "GeminiLiveServer", "GeminiSession", "GoAway", "Handle"]
