"""Live calls from a web page: the relay of one call over a WebSocket, or WebRTC with the session beside it.

Knows no web framework: it is given sockets (`Socket`) and callers that were recognised. Needs the extra
"voice".
"""

from echoic.adapters.browser.browser_call import BrowserCall
from echoic.adapters.browser.socket import FAILED, PageSettings, Socket, Transport
from echoic.adapters.browser.switchboard import CallAdmission, NoSuchCall, Switchboard, serve
from echoic.adapters.browser.wire import SUBPROTOCOL

__all__ = [
    "FAILED",
    "SUBPROTOCOL",
    "BrowserCall",
    "CallAdmission",
    "NoSuchCall",
    "PageSettings",
    "Socket",
    "Switchboard",
    "Transport",
    "serve",
]
