"""What encryption at rest costs: the same work on a plain and on an encrypted SQLite store, in turn.

    python -m benchmarks.encryption [--memories 2000] [--rounds 40]

Made-up sentences, distinct by number, with random vectors of 384 dimensions and 20 word pieces each; no
encoder runs. `first search`: of a user that is not loaded. `search after a write`: the segment that changed
is opened again. Processor time, so that other work on the machine counts for little.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.load import sentence
from echoic.embedding.base import Embedded, Kind
from echoic.memory.records import record_of_turn
from echoic.memory.service import MemoryService
from echoic.partition import AXES, Pieces
from echoic.stores.base import Put, Store
from echoic.stores.encryption import EncryptedStore
from echoic.stores.sqlite import SQLiteStore
from echoic.types import EmbeddingSpec, Scope, Turn

ANA = Scope("default", "ana")


class Random:
    """Vectors and pieces that cost nothing."""

    spec = EmbeddingSpec("random", 384)
    semantic = True

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    async def open(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def embed(self, texts: Sequence[str], kind: Kind) -> Any:
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], _kind: Kind) -> Embedded:
        return Embedded(
            self._unit(len(texts), 384),
            [Pieces(self._unit(20, AXES), self._unit(20, 384), ((0, 1),) * 20) for _ in texts],
        )

    def _unit(self, rows: int, columns: int) -> Any:
        made = self._rng.standard_normal((rows, columns)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


async def timed(work: Awaitable[Any]) -> float:
    began = time.process_time()
    await work
    return time.process_time() - began


async def fill(store: Store, memories: int) -> None:
    async with MemoryService(store, Random(), sentences=False) as memory:
        backing = memory.user("ana").backing_store
        turns = [
            Turn(speaker="user", text=sentence(n), id=f"t{n}", conversation="c") for n in range(memories)
        ]
        for first in range(0, memories, 500):
            await backing.write(ANA, [Put(record=record_of_turn(t)) for t in turns[first : first + 500]])
        await memory.learn_soon("ana", "c")
        while not await memory.settle(60):
            pass


async def measure(memories: int, rounds: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Samples by operation and store, the two stores asked in turn."""
    makes: dict[str, Callable[[], Store]] = {
        "plain": lambda: SQLiteStore(folder / "plain.db"),
        "encrypted": lambda: EncryptedStore(SQLiteStore(folder / "sealed.db"), lambda _name: [bytes(32)]),
    }
    samples: dict[str, dict[str, list[float]]] = {}

    def note(what: str, name: str, seconds: float) -> None:
        samples.setdefault(what, {}).setdefault(name, []).append(seconds)

    for make in makes.values():
        await fill(make(), memories)
    for number in range(max(3, rounds // 8)):
        for name, make in makes.items():
            async with MemoryService(make(), Random(), sentences=False) as memory:
                user = memory.user("ana")
                await memory.user("somebody else").query("Who?")
                note("first search", name, await timed(user.query(f"Which lamp was {number}?")))
    services = {name: MemoryService(make(), Random(), sentences=False) for name, make in makes.items()}
    for service in services.values():
        await service.open()
    for number in range(rounds):
        for name, service in services.items():
            user = service.user("ana")
            note("search", name, await timed(user.query(f"Where was the violin, number {number}?")))
            said = f"I left {number} lamps in the {name} house."
            note("durable write", name, await timed(user.remember(said)))
            note("search after a write", name, await timed(user.query(f"How many lamps, {number}?")))
    for service in services.values():
        await service.settle(60)
        await service.aclose()
    sizes = {
        name: (folder / f"{file}.db").stat().st_size
        for name, file in (("plain", "plain"), ("encrypted", "sealed"))
    }
    found: dict[str, dict[str, Any]] = {}
    for what, by in samples.items():
        found[what] = {name: machine.percentiles(taken) for name, taken in by.items()}
        found[what]["ratio_p50"] = round(
            found[what]["encrypted"]["p50_ms"] / found[what]["plain"]["p50_ms"], 2
        )
    found["bytes"] = {**sizes, "ratio": round(sizes["encrypted"] / sizes["plain"], 2)}
    return found


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(given.memories, given.rounds, Path(folder)))
    for what, figures in found.items():
        print(what, figures)
    print(machine.save("encryption", {"memories": given.memories, **found}))


if __name__ == "__main__":
    main()
