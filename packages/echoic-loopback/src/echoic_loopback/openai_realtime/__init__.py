"""A stand-in for OpenAI Realtime on this machine: real clients talk to it, a script answers.

docs/loopback.md has the script language, the rules that are enforced, and what is not modelled.
"""

from __future__ import annotations

from echoic_loopback.openai_realtime.conversation import Conversation, Item
from echoic_loopback.openai_realtime.server import OpenAIRealtimeServer
from echoic_loopback.openai_realtime.session import OpenAISession
from echoic_loopback.openai_realtime.steps import CutsShort, Expires, Fails, RateLimits, SendsError

__all__ = [
    "Conversation",
    "CutsShort",
    "Expires",
    "Fails",
    "Item",
    "OpenAIRealtimeServer",
    "OpenAISession",
    "RateLimits",
    "SendsError",
]
