"""A telephone number that remembers who calls it, over Twilio. Needs the extra "phone".

    phone = Phone(service, Agent("openai:gpt-5", name="robin"), PhoneSettings(auth_token=…, salt=…))
    app.include_router(phone_router(phone))

The guide is docs/phone.md.
"""

from __future__ import annotations

from echoic.adapters.twilio.app import phone_app, uvicorn_options
from echoic.adapters.twilio.call import Call, Figures
from echoic.adapters.twilio.callers import Caller
from echoic.adapters.twilio.phone import Phone
from echoic.adapters.twilio.settings import Pace, PhoneSettings, Retention
from echoic.adapters.twilio.simulator import CallFailed, SimulatedCall
from echoic.adapters.twilio.webhooks import phone_router

__all__ = [
    "Call",
    "CallFailed",
    "Caller",
    "Figures",
    "Pace",
    "Phone",
    "PhoneSettings",
    "Retention",
    "SimulatedCall",
    "phone_app",
    "phone_router",
    "uvicorn_options",
]
