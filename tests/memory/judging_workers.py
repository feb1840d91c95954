"""Processes that set what the rules would share, have it judged a second time, and die where they are told to.

python judging_workers.py <folder> kill <mode> <points> <seed>
python judging_workers.py <folder> split <mode> <points> <seed>
python judging_workers.py <folder> share <mode> <rounds> <seed>

The second judge agrees about every other key. With "split" there is a fault: what waits to be judged is
written by itself, after the memory, and the process dies in between. Prints one JSON line for each point. This
process stays single-threaded, so that it may fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from distilling_workers import Steps, ended, forked, stepping, told

from echoic.embedding import LexicalEmbedder
from echoic.memory.proposals import JUDGEMENT
from echoic.memory.service import MemoryService
from echoic.memory.sharing import Verdict
from echoic.stores import store_from
from echoic.stores.base import Put
from echoic.types import Scope

SPLITS = "JUDGING_SPLITS"
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
AGREED = tuple(f"{day}_hours" for day in DAYS[::2])


class EveryOther:
    """Agrees about every other key."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    async def classify(self, text: str, key: str | None) -> Verdict:
        self._steps.take()
        await asyncio.sleep(0.001)
        self._steps.take()
        return Verdict("global" if key in AGREED else "private", "model")


def split(store, steps: Steps):
    """`store` with a planted fault: what waits for its judgement is written by itself, last."""
    whole = store.write

    async def write(scope, changes):
        waiting = [
            change for change in changes if isinstance(change, Put) and change.record.kind == JUDGEMENT
        ]
        rest = [change for change in changes if change not in waiting]
        await whole(scope, rest or changes)
        if waiting and rest:
            steps.split()
            await whole(scope, waiting)

    store.write = write
    return store


def service(url: str, mode: str, steps: Steps, *, minutes: float = 0) -> MemoryService:
    """One that judges, by whose clock so many minutes have passed."""
    clock = lambda: datetime.now(UTC) + timedelta(minutes=minutes)  # noqa: E731
    store = stepping(store_from(url), steps)
    store = split(store, steps) if SPLITS in os.environ else store
    return MemoryService(
        store, LexicalEmbedder(), second_judge=EveryOther(steps), global_writes=mode, clock=clock
    )


async def tell(url: str, mode: str, heard: Path, deadly: int = 0) -> int:
    """Set every key, and note each that was acknowledged."""
    steps = Steps(deadly)
    async with service(url, mode, steps) as memory:
        for day in DAYS:
            await memory.user("ana").set(f"{day}_hours", f"The store is open on {day}, nine to five.")
            with heard.open("a") as file:
                file.write(f"{day}_hours\n")
        await memory.settle()
        steps.last()
    return steps.taken


async def go_on(url: str, mode: str, *, minutes: float = 0) -> None:
    """Judge what waits."""
    async with service(url, mode, Steps(), minutes=minutes) as memory:
        await memory.distil()


async def set_only(url: str) -> None:
    """Every key is set and waits; nobody judged it."""
    memory = service(url, "auto", Steps())
    await memory.open()
    memory._parts.judge.want = lambda *_: None
    for day in DAYS:
        await memory.user("ana").set(f"{day}_hours", f"The store is open on {day}, nine to five.")
    await memory.aclose()


async def found(url: str) -> dict[str, object]:
    """How it stands, for whoever set it and for somebody who did not."""
    store = store_from(url)
    async with MemoryService(store, LexicalEmbedder()) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        everyone = await store.scan(Scope("default", None), "memory")
        return {
            "kept": [f"{day}_hours" for day in DAYS if await ana.get(f"{day}_hours")],
            "known": len(await ana.facts()),
            "global": [f"{day}_hours" for day in DAYS if await bob.get(f"{day}_hours")],
            "versions": len(everyone),
            "proposed": sorted(memory.key for memory in await memory.proposals().list()),
            "waiting": len(await store.scan(Scope("default", "ana"), JUDGEMENT)),
        }


def kill(folder: Path, mode: str, points: int, chance: random.Random) -> None:
    """Die at `points` different steps."""
    dry = lambda: tell(f"sqlite:///{folder}/dry.db", mode, folder / "dry.txt")  # noqa: E731
    steps = told(dry)
    every = range(-len(DAYS), 0) if SPLITS in os.environ else range(1, steps + 1)
    for deadly in sorted(chance.sample(every, min(points, len(every)))):
        url, heard = f"sqlite:///{folder}/{deadly}.db", folder / f"{deadly}.txt"
        heard.touch()
        code = ended(forked(lambda: tell(url, mode, heard, deadly)))  # noqa: B023 - run at once
        # the lease of the dead holds until its time is over
        assert ended(forked(lambda: go_on(url, mode, minutes=10))) == 0  # noqa: B023
        came = told(lambda: found(url))  # noqa: B023
        print(
            json.dumps({"at": deadly, "code": code, "heard": heard.read_text().split(), **came}), flush=True
        )


def share(folder: Path, mode: str, rounds: int, _chance: random.Random) -> None:
    """Rounds of two processes that judge the same at once."""
    for number in range(rounds):
        url = f"sqlite:///{folder}/{number}.db"
        assert ended(forked(lambda: set_only(url))) == 0  # noqa: B023
        both = [forked(lambda: go_on(url, mode)) for _ in range(2)]  # noqa: B023
        codes = [ended(one) for one in both]
        print(json.dumps({"round": number, "codes": codes, **told(lambda: found(url))}), flush=True)  # noqa: B023


if __name__ == "__main__":
    place, what, how, times, seed = sys.argv[1:]
    if what == "split":
        os.environ[SPLITS] = "1"
    run = {"kill": kill, "split": kill, "share": share}[what]
    run(Path(place), how, int(times), random.Random(int(seed)))
