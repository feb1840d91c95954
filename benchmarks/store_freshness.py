"""Two processes on one store: how soon what one of them wrote is in the memory of the other.

`told`: from the moment a write is acknowledged until the scope another process has loaded holds it, with
nobody asking. `asked`: how long a `load` takes that another process makes right after the acknowledgement,
and whether it held the write; that is the promise, and a write it lacks ends the measurement. Both processes
read the one monotonic clock of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.speed import DIMENSIONS, NOW
from echoic.memory.records import index, record_of_memory
from echoic.stores import store_from
from echoic.stores.base import Put, Store
from echoic.types import EmbeddingSpec, Memory, Scope

SPEC = EmbeddingSpec("benchmark", DIMENSIONS)
USER = Scope("bench", "user")
GOAL_MS = 100.0
"""What another process wrote is to be there within this time, or by the next query, whichever is later."""
_PAUSE_S = 0.03
_LOOK_S = 0.0005
_LATE_S = 60.0


async def freshness(url: str, writes: int, *, others: int = 0, told: bool = True) -> dict[str, Any]:
    """Milliseconds after the acknowledgement, while `others` write to scopes of their own.

    Args:
        url: of a new store.
        writes: how many.
        others: how many callers.
        told: whether the store tells other processes at all.
    """
    store = store_from(url)
    await store.open(SPEC, index)
    await store.write(USER, [_note(0)])
    begun = (await store.load(USER)).version
    found: dict[str, Any] = {"writes": writes, "callers_beside": others}
    async with _busy(store, others):
        if told:
            found["told"] = await _told(store, url, begun, writes)
        found["asked"] = await _asked(store, url, writes)
    await store.aclose()
    return found


async def _told(store: Store, url: str, begun: int, writes: int) -> dict[str, float]:
    acknowledged: dict[int, int] = {}
    with _child("watch", url, str(begun + writes)) as watching:
        for n in range(1, writes + 1):
            await store.write(USER, [_note(n)])
            acknowledged[begun + n] = time.monotonic_ns()
            await asyncio.sleep(_PAUSE_S)
        seen = json.loads(await asyncio.to_thread(watching.stdout.readline))
    late = [max(0, seen[str(version)] - at) / 1e9 for version, at in acknowledged.items()]
    within = sum(1000 * one <= GOAL_MS for one in late) / len(late)
    most = round(1000 * max(late), 2)
    return {**machine.percentiles(late), "most_ms": most, "within_goal": round(within, 4)}


async def _asked(store: Store, url: str, writes: int) -> dict[str, float]:
    with _child("ask", url) as asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        late = []
        for n in range(1, writes + 1):
            await store.write(USER, [_note(n)])
            asking.stdin.write(f"{n}\n")
            asking.stdin.flush()
            late.append(float(await asyncio.to_thread(asking.stdout.readline)))
    return machine.percentiles(late)


@contextlib.asynccontextmanager
async def _busy(store: Store, count: int) -> AsyncIterator[None]:
    ended = asyncio.Event()

    async def write(caller: int) -> None:
        while not ended.is_set():
            await store.write(Scope("bench", f"caller {caller}"), [_note(0)])

    async with asyncio.TaskGroup() as callers:
        for caller in range(count):
            callers.create_task(write(caller))
        try:
            yield
        finally:
            ended.set()


@contextlib.contextmanager
def _child(*arguments: str) -> Any:
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.store_freshness", *arguments],
        cwd=Path(__file__).parent.parent,
        env=os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n", "the other process did not begin"
        yield child
    finally:
        child.kill()
        child.communicate()


def _note(n: int) -> Put:
    return Put(
        record=record_of_memory(Memory(id="said", text=f"said number {n}", valid_from=NOW, author=USER.user))
    )


async def _watch(url: str, last: int) -> None:
    """Load the scope once, and note when each later version came by itself."""
    store = store_from(url)
    await store.open(SPEC, index)
    partition = await store.load(USER)
    seen: dict[int, int] = {}
    # connected and listening, before anything is written
    await asyncio.sleep(1)
    print("ready", flush=True)
    version = partition.version
    until = time.monotonic() + _LATE_S
    while version < last and time.monotonic() < until:
        if partition.version != version:
            now = time.monotonic_ns()
            seen |= dict.fromkeys(range(version + 1, partition.version + 1), now)
            version = partition.version
        await asyncio.sleep(_LOOK_S)
    print(json.dumps(seen), flush=True)
    await store.aclose()


async def _ask(url: str) -> None:
    """For each line a load: how many seconds it took, and that it holds what the line says was written."""
    store = store_from(url)
    await store.open(SPEC, index)
    await store.load(USER)
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        began = time.perf_counter()
        partition = await store.load(USER)
        took = time.perf_counter() - began
        (record,) = await store.rows(USER, [0])
        assert record.data["text"] == f"said number {line}", (
            "the next query did not see an acknowledged write"
        )
        assert partition.version >= record.version
        print(took, flush=True)
    await store.aclose()


if __name__ == "__main__":
    what, at, *more = sys.argv[1:]
    asyncio.run(_watch(at, int(more[0])) if what == "watch" else _ask(at))


__all__ = ["GOAL_MS", "freshness"]
