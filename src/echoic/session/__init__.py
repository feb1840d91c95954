"""Live voice calls with a memory: one session over OpenAI Realtime, Gemini Live, or what PydanticAI adds.

    async with VoiceSession(service, user="ana", agents=[robin], model=model) as session: ...

Needs the extra "voice".
"""

from __future__ import annotations

from echoic.session.agents import CallContext, VoiceAgent
from echoic.session.calls import Call, Exchange, read_call, read_calls, read_exchanges, read_given
from echoic.session.captions import Caption
from echoic.session.checkpoints import RecordSessionStore, SessionStore, as_json, from_json
from echoic.session.collector import freeze_heap
from echoic.session.heard import Heard, SpeechTrace, divide
from echoic.session.hooks import Event
from echoic.session.limits import CallLimits
from echoic.session.live import SessionSettings, State
from echoic.session.playback import Flush, Frame, Playback
from echoic.session.profile import ProviderProfile
from echoic.session.session import VoiceSession

__all__ = [
    "Call",
    "CallContext",
    "CallLimits",
    "Caption",
    "Event",
    "Exchange",
    "Flush",
    "Frame",
    "Heard",
    "Playback",
    "ProviderProfile",
    "RecordSessionStore",
    "SessionSettings",
    "SessionStore",
    "SpeechTrace",
    "State",
    "VoiceAgent",
    "VoiceSession",
    "as_json",
    "divide",
    "freeze_heap",
    "from_json",
    "read_call",
    "read_calls",
    "read_exchanges",
    "read_given",
]
