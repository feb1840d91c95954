"""Scripts, audio and transport that the stand-ins for voice providers share.

`echoic_loopback.openai_realtime` and `echoic_loopback.gemini_live` are the stand-ins. Needs the `voice`
extra, h11, numpy and, for TLS, trustme.
"""

from __future__ import annotations

from echoic_loopback.realtime.audio import Speech, Word, frames, silence, speech, words_heard
from echoic_loopback.realtime.record import Event, LoopbackFailure, Record, ScriptStuck, Violation
from echoic_loopback.realtime.script import (
    Calls,
    ClientSends,
    Close,
    Drop,
    HeldTranscripts,
    InOrder,
    Pause,
    Refusal,
    Repeat,
    Reply,
    Says,
    Script,
    SendsRaw,
    Step,
    Together,
    ToolCall,
    UserSays,
)
from echoic_loopback.realtime.server import HttpRequest, HttpResponse, LoopbackServer
from echoic_loopback.realtime.session import Session
from echoic_loopback.realtime.tls import LoopbackAuthority, loopback_authority

__all__ = [
    "Calls",
    "ClientSends",
    "Close",
    "Drop",
    "Event",
    "HeldTranscripts",
    "HttpRequest",
    "HttpResponse",
    "InOrder",
    "LoopbackAuthority",
    "LoopbackFailure",
    "LoopbackServer",
    "Pause",
    "Record",
    "Refusal",
    "Repeat",
    "Reply",
    "Says",
    "Script",
    "ScriptStuck",
    "SendsRaw",
    "Session",
    "Speech",
    "Step",
    "Together",
    "ToolCall",
    "UserSays",
    "Violation",
    "Word",
    "frames",
    "loopback_authority",
    "silence",
    "speech",
    "words_heard",
]
