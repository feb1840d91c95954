"""The HTTP server and its page: arguments, identities and pages. Decides nothing about memory."""

from echoic.server.app import MemoryServer, create_app, uvicorn_config
from echoic.server.guards import CellLimiter, Rate
from echoic.server.settings import RateLimiter, ServerSettings
from echoic.server.tokens import Principal, TokenRefused, Tokens

__all__ = [
    "CellLimiter",
    "MemoryServer",
    "Principal",
    "Rate",
    "RateLimiter",
    "ServerSettings",
    "TokenRefused",
    "Tokens",
    "create_app",
    "uvicorn_config",
]
