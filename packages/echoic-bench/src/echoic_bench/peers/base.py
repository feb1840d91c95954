"""What a peer is to the comparison: it keeps texts with their vectors, and finds them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from echoic_bench.labelled import Item

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Kept:
    """Something to keep."""

    item: Item
    text: str
    """What is embedded of it, such as "speaker: text"."""
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a peer is and how it is run."""

    name: str
    packages: Sequence[str]
    """That make it up; the first is the one it goes by."""
    form: str
    """How it keeps things here."""
    durable: bool
    """Whether what was acknowledged outlives the process."""

    @property
    def install(self) -> str:
        """The line that installs it."""
        return f"pip install {' '.join(self.packages)}" if self.packages else ""

    def missing(self) -> str | None:
        """The package that is not installed; None where all are."""
        return next((name for name in self.packages if _version(name) is None), None)

    def versions(self) -> Mapping[str, str]:
        """Of its packages."""
        return {name: found for name in self.packages if (found := _version(name)) is not None}


class Peer(Protocol):
    """One memory under comparison. Used from one task; a blocking one blocks, and is timed doing so."""

    about: About

    async def open(self, folder: Path, vectors: Mapping[str, Vector], dimensions: int) -> None:
        """Make ready.

        Args:
            folder: empty, for whatever it writes.
            vectors: of every text that will be kept or asked.
            dimensions: of the vectors.
        """
        ...

    async def add(self, user: str, one: Kept) -> None:
        """Keep one thing of a user, durable when it returns where it can be."""
        ...

    async def ready(self) -> None:
        """Wait until everything kept is found by its vector."""
        ...

    async def search(self, user: str, question: str, limit: int) -> list[tuple[str, float]]:
        """Ids of the items found among one user's with their scores, best first; higher is better."""
        ...

    async def forget(self, user: str, item: str) -> None:
        """Let one thing of a user be found no more."""
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


__all__ = ["About", "Kept", "Peer", "Vector"]
