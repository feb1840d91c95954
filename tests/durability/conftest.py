"""Children, folders and counts for the durability proofs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import scale
from durability.children import Zygote, tracing


def pytest_itemcollected(item: pytest.Item) -> None:
    """These tests kill processes and cut the power."""
    item.add_marker(pytest.mark.crash)
    item.add_marker(pytest.mark.timeout(300 * max(1, scale.SCALE)))


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder for thousands of short-lived files, in memory where there is one.

    For disks that are models, and for deaths of processes, after which the kernel keeps what was written.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="echoic-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def seed() -> int:
    """Where every history of the run begins; a failure names the number to add to it."""
    return scale.SEED


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Starts children; see `durability.children`."""
    if sys.platform != "linux":
        pytest.skip("killing and tracing children is written for Linux")
    made = Zygote(tmp_path_factory.mktemp("gates"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def strace() -> None:
    """Only where system calls can be traced; always in CI."""
    why_not = tracing()
    if why_not is not None and os.environ.get("CI") == "true":
        pytest.fail(f"{why_not}; in CI it has to be")
    if why_not is not None:
        pytest.skip(why_not)
