from __future__ import annotations

import contextlib

import pytest

from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from loopback_wire_types import check_gemini, check_openai
from stores import mongodb_server
from stores.conftest import closed_while_connecting  # noqa: F401 - by tests of the MongoDB stand-in


@pytest.fixture
def openai_server():
    """The stand-in; when it is left, everything it sent is held against the published types."""

    @contextlib.asynccontextmanager
    async def serving(*scripts, **options):
        async with OpenAIRealtimeServer(*scripts, **options) as server:
            yield server
        for session in server.sessions:
            check_openai(session)

    return serving


@pytest.fixture
def gemini_server():
    """The stand-in, trusted; when it is left, everything it sent is held against the published types."""

    @contextlib.asynccontextmanager
    async def serving(*scripts, **options):
        async with GeminiLiveServer(*scripts, **options) as server:
            with server.trusted():
                yield server
        for session in server.sessions:
            check_gemini(session)

    return serving


@pytest.fixture(autouse=True)
def _no_foreign_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def pytest_sessionfinish() -> None:
    mongodb_server.drop_all()
