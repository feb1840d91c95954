from __future__ import annotations

import pytest

import forked
from this_machine import only_this_machine  # noqa: F401 - for every test

pytest_plugins = ["side_by_side"]


def pytest_group_of(nodeid: str) -> str:
    """A file stays in one worker."""
    return nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        forked.begin()  # before there are workers, so that all use the same


def pytest_unconfigure() -> None:
    forked.end()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
