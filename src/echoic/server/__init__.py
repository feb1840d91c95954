"""The HTTP server and its page: arguments, identities and pages. Decides nothing about memory."""

from echoic.server.app import create_app
from echoic.server.running import uvicorn_config
from echoic.server.settings import RateLimiter, ServerSettings
from echoic.server.tokens import Principal, TokenRefused, Tokens

__all__ = [
    "Principal",
    "RateLimiter",
    "ServerSettings",
    "TokenRefused",
    "Tokens",
    "create_app",
    "uvicorn_config",
]
