"""Questions during a backlog of texts that wait for their vectors, beside questions when nothing waits.

    python -m benchmarks.backlog

One user with embedded turns asks ten questions a second, each anew encoded, of a store on SQLite: first while
nothing waits, then while many turns of others do. Printed are both, their ratios, and how many of the waiting
texts were embedded meanwhile: a backlog that questions stop for good would be no better.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.keyvalue import people
from echoic.embedding import embedder_from
from echoic.memory.service import MemoryService
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Turn

TURNS, QUESTIONS, EVERY_S = 600, 100, 0.1


async def measure(waiting: int, embedder: str, path: Path) -> dict[str, Any]:
    said = [turn.text for person in people(2) for turn in person.turns]
    async with MemoryService(SQLiteStore(path), embedder_from(embedder), sentences=False) as memory:
        ana = memory.user("ana")
        await _say(memory, "ana", said[:TURNS])
        if not await memory.settle(3600):
            raise RuntimeError("not everything got its vector")
        await ana.recall("What did I say first?")
        idle = [await _asked(ana, f"{said[n]} and number {n}?") for n in range(QUESTIONS)]
        for user in range(waiting // 1000):
            await _say(memory, f"user-{user}", [f"{said[n % len(said)]} {user} {n}" for n in range(1000)])
        before = (await memory.check())["waiting"]
        busy = [await _asked(ana, f"{said[n]} and again {n}?") for n in range(QUESTIONS)]
        after = (await memory.check())["waiting"]
        await memory._parts.background.stop()  # the rest of the backlog is not waited for
    found = {"idle": machine.percentiles(idle), "backlog": machine.percentiles(busy)}
    ratios = {p: round(found["backlog"][p] / found["idle"][p], 2) for p in ("p50_ms", "p95_ms")}
    return {"embedder": embedder, **found, "ratio": ratios, "waiting before": before, "waiting after": after}


async def _say(memory: MemoryService, user: str, texts: list[str]) -> None:
    call = await memory.user(user).conversation("call")
    await call.append(*(Turn(speaker="user", text=text) for text in texts))


async def _asked(user: Any, text: str) -> float:
    await asyncio.sleep(EVERY_S)
    began = time.perf_counter()
    await user.recall(text)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiting", type=int, default=10_000, help="texts, in thousands of a user each")
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = asyncio.run(measure(args.waiting, args.embedder, Path(folder) / "memory.db"))
    print(json.dumps(measured, indent=1))
    if not args.dry:
        print(machine.save("backlog", measured))


if __name__ == "__main__":
    main()
