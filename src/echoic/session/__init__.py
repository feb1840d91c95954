"""Live voice calls with memory, over OpenAI Realtime, Gemini Live or other models of PydanticAI.

    async with VoiceSession(service, user="ana", agents=[robin], model=model) as session: ...

A session needs the extra "voice". Names are imported when they are used, so that `read_calls` and `why` also
work without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echoic.memory.checkpoints import RecordSessionStore, SessionStore, as_json, from_json
    from echoic.session.agents import CallContext, VoiceAgent
    from echoic.session.call_record import (
        CallRecord,
        Exchange,
        read_call,
        read_calls,
        read_exchanges,
        read_given,
    )
    from echoic.session.call_state import SessionSettings, State
    from echoic.session.hooks import Caption, Event
    from echoic.session.playback import Flush, Frame, Playback
    from echoic.session.provider import ProviderProfile
    from echoic.session.speech_alignment import Heard, SpeechTrace, divide
    from echoic.session.text_call import TextCall
    from echoic.session.voice_call import CallLimits, VoiceSession, freeze_heap

__all__ = [
    "CallContext",
    "CallLimits",
    "CallRecord",
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
    "TextCall",
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

_MODULES = {
    "session.agents": ("CallContext", "VoiceAgent"),
    "session.call_record": (
        "CallRecord",
        "Exchange",
        "read_call",
        "read_calls",
        "read_exchanges",
        "read_given",
    ),
    "memory.checkpoints": ("RecordSessionStore", "SessionStore", "as_json", "from_json"),
    "session.speech_alignment": ("Heard", "SpeechTrace", "divide"),
    "session.hooks": ("Caption", "Event"),
    "session.call_state": ("SessionSettings", "State"),
    "session.playback": ("Flush", "Frame", "Playback"),
    "session.provider": ("ProviderProfile",),
    "session.voice_call": ("CallLimits", "VoiceSession", "freeze_heap"),
    "session.text_call": ("TextCall",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        from importlib import import_module

        return getattr(import_module(f"echoic.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
