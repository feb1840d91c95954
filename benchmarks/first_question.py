"""The first question after a write beside the second: what was written is laid out before anybody asks.

    python -m benchmarks.first_question

One user's turns on SQLite, synthetic as in `benchmarks.speed`, whose questions have their vectors already. A
turn is appended; after the pause that follows a turn in a call, two questions are asked, one right after the
other. Every second round appends nothing, to tell what the pause alone costs: `without a write`. `append` is
the durable write, which returns before anything is laid out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.speed import Data, Given, fill
from echoic.memory.service import MemoryService
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Scope, Turn

SIZES = (1_000, 10_000)
ROUNDS = 60
PAUSE_S = 0.2


async def measure(rows: int, folder: Path) -> dict[str, Any]:
    data, given = Data(7), Given()
    texts, vectors = data.memories(rows)
    asked = [data.question(texts[n], vectors[n]) for n in range(4 * ROUNDS + 1)]
    given.know(asked)
    store = SQLiteStore(folder / f"{rows}.db")
    names = ("first", "second", "first without a write", "second without a write", "append")
    times: dict[str, list[float]] = {name: [] for name in names}
    async with MemoryService(store, given, sentences=False) as memory:
        await fill(store, Scope("default", "ana"), texts, vectors)
        ana = memory.user("ana", "default")
        call = await ana.conversation("call")
        await ana.recall(asked[-1][0])
        for number in range(2 * ROUNDS):
            writes = number % 2 == 0
            if writes:
                await _timed(call.append(Turn(speaker="user", text=texts[number])), times["append"])
            await asyncio.sleep(PAUSE_S)
            for name, (text, _) in zip(
                names[:2] if writes else names[2:4], asked[2 * number : 2 * number + 2], strict=True
            ):
                await _timed(ana.recall(text), times[name])
    found = {name: machine.percentiles(each) for name, each in times.items()}
    p50 = {name: statistics.median(each) for name, each in times.items()}
    return {
        "rows": rows,
        **found,
        "first over second": round(p50["first"] / p50["second"], 2),
        "without a write": round(p50["first without a write"] / p50["second without a write"], 2),
        "first over first without a write": round(p50["first"] / p50["first without a write"], 2),
    }


async def _timed(work: Awaitable[object], times: list[float]) -> None:
    began = time.perf_counter()
    await work
    times.append(time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = {"by_rows": [asyncio.run(measure(rows, Path(folder))) for rows in SIZES]}
    print(json.dumps(measured, indent=1))
    if not args.dry:
        print(machine.save("first_question", measured))


if __name__ == "__main__":
    main()
