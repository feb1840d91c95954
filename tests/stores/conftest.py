from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def nothing_blocks_the_event_loop() -> Iterator[BlockBuster]:
    with blockbuster_ctx("echoic", excluded_modules=["echoic.testing"]) as guard:
        yield guard
