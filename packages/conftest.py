from __future__ import annotations

import pytest

import forked
from this_machine import only_this_machine  # noqa: F401 - for every test


def pytest_sessionfinish() -> None:
    forked.end()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
