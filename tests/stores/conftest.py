from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from pymongo import pool_shared

from stores import mongodb_server


@pytest.fixture(autouse=True)
def nothing_blocks_the_event_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("echoic", excluded_modules=["echoic.testing"]) as guard:
        # asyncpg looks for a password file where the URL has none, once for every connection it makes
        guard.functions["os.stat"].can_block_in("asyncpg/connect_utils.py", "_read_password_file")
        # pymongo looks for the mark of a container, once for every server it meets
        guard.functions["os.stat"].can_block_in("pymongo/pool_options.py", "get_container_env_info")
        yield guard


@pytest.fixture
def closed_while_connecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The MongoDB driver leaves a socket open where it is cancelled while it connects: closed here.

    Its collection would be told as a warning in whichever test runs then.
    """
    made: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(pool_shared, "socket", SimpleNamespace(**{**vars(socket), "socket": Noted}))
    yield
    for each in made:
        each.close()


@pytest.fixture(autouse=True)
def _told_what_it_ran_on(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    request.node.user_properties += [("ran on", server) for server in mongodb_server.noted()]


def pytest_sessionfinish() -> None:
    mongodb_server.drop_all()
