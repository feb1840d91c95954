from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.memory.sharing import GLOBAL_KINDS


@pytest.fixture(params=["memory", "sqlite", "files"])
def url(request, tmp_path):
    return {
        "memory": "memory://",
        "sqlite": f"sqlite:///{tmp_path}/echoic.db",
        "files": f"files:///{tmp_path}/people",
    }[request.param]


@pytest.fixture
async def memory(url):
    """A service on every store, with the embedder that needs nothing."""
    async with echoic.open(url, embedder="lexical") as service:
        yield service


@pytest.fixture
async def auto(url):
    """The same, where what may be global is seen by all at once."""
    async with echoic.open(
        url, embedder="lexical", global_writes="auto", global_kinds=GLOBAL_KINDS
    ) as service:
        yield service


@pytest.fixture
def later():
    """Moments after one another."""
    start = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
    return lambda minutes: start + timedelta(minutes=minutes)
