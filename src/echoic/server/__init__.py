"""The HTTP server and its page: validation, identities and routes. It decides nothing about memory."""

from echoic.server.app import MemoryServer, create_app, uvicorn_config
from echoic.server.credentials import IdentityTokens, Principal, TokenRefused
from echoic.server.guards import CellLimiter, Rate
from echoic.server.settings import RateLimiter, ServerSettings

__all__ = [
    "CellLimiter",
    "IdentityTokens",
    "MemoryServer",
    "Principal",
    "Rate",
    "RateLimiter",
    "ServerSettings",
    "TokenRefused",
    "create_app",
    "uvicorn_config",
]
