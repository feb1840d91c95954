"""Live calls from a web page: the relay of one call over a WebSocket, or WebRTC with the session beside it.

It is given Starlette's sockets, accepted, and callers that were recognised. Needs the extra "voice".
"""

from echoic.adapters.browser.call import BrowserCall
from echoic.adapters.browser.socket import FAILED, SUBPROTOCOL, PageSettings, Transport
from echoic.adapters.browser.switchboard import CallAdmission, NoSuchCall, Switchboard

__all__ = [
    "FAILED",
    "SUBPROTOCOL",
    "BrowserCall",
    "CallAdmission",
    "NoSuchCall",
    "PageSettings",
    "Switchboard",
    "Transport",
]
