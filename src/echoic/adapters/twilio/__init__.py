"""A telephone number that remembers its callers, over Twilio. Needs the extra "phone".

    phone = Phone(service, Agent("openai:gpt-5", name="robin"), PhoneSettings(auth_token=…, salt=…))
    app.include_router(phone_router(phone))

The guide is docs/phone.md. Names are imported when they are used, so that the codes that link a page and a
telephone work without the extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from echoic.adapters.twilio.callers import Caller
    from echoic.adapters.twilio.phone import Figures, Phone, PhoneCall
    from echoic.adapters.twilio.proofs import LinkCodes
    from echoic.adapters.twilio.settings import Pace, PhoneSettings, Phrases, Retention
    from echoic.adapters.twilio.webhooks import phone_app, phone_router, uvicorn_options

_WHERE: Final = {
    "PhoneCall": "phone",
    "Caller": "callers",
    "Figures": "phone",
    "LinkCodes": "proofs",
    "Pace": "settings",
    "Phone": "phone",
    "PhoneSettings": "settings",
    "Phrases": "settings",
    "Retention": "settings",
    "phone_app": "webhooks",
    "phone_router": "webhooks",
    "uvicorn_options": "webhooks",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


__all__ = [
    "Caller",
    "Figures",
    "LinkCodes",
    "Pace",
    "Phone",
    "PhoneCall",
    "PhoneSettings",
    "Phrases",
    "Retention",
    "phone_app",
    "phone_router",
    "uvicorn_options",
]
