from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

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
def closed_while_connecting() -> Iterator[None]:
    """The MongoDB driver lets go of a socket unclosed where its client is closed while it connects."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in mongodb_server.report():
        terminalreporter.write_line(line)


def pytest_sessionfinish() -> None:
    mongodb_server.drop_all()
