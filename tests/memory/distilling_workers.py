"""Workers in processes of their own that distil one store, and die where they are told to.

python distilling_workers.py <folder> kill <points> <seed>
python distilling_workers.py <folder> split <points> <seed>
python distilling_workers.py <folder> share <rounds> <seed>

Every turn names a bird that no other does; the extractor appends to a list of birds what the new turns name. So
a turn read twice stands in the list twice, and one that was lost is missing. With "split" there is a fault: the
cursor is written by itself, before what was learned, and the worker dies in between. Prints one JSON line for
each point. This process stays single-threaded, so that it may fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase

from echoic.embedding import LexicalEmbedder
from echoic.memory.extraction import Add, Fact
from echoic.memory.extraction.model_reader import PROGRESS
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put
from echoic.types import Turn

TURNS = 24
CALLS = 3
SPLITS = "DISTILLING_SPLITS"
BIRDS = [f"{a}{b}bird" for a in ascii_lowercase[:5] for b in ascii_lowercase[:5]][:TURNS]


class Birdwatcher:
    """Appends the birds of the new turns to those known."""

    name = "birds"
    timeout_s = 5.0

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...

    async def extract(self, reading):
        self._steps.take()
        await asyncio.sleep(0.002)
        known = [memory.text for memory in reading.known if memory.key == "birds"]
        new = [word for turn in reading.turns for word in turn.text.split() if word in BIRDS]
        if not new:
            return []
        fact = Fact(text=" ".join([*known, *new]), key="birds")
        self._steps.take()
        return [Add(fact=fact, source=tuple(turn.id for turn in reading.turns))]


class Steps:
    """Counts the steps of a process, and ends it at one of them as `kill -9` does; below 0: in a split write."""

    def __init__(self, deadly: int = 0) -> None:
        self.taken = 0
        self._splits = 0
        self._deadly = deadly

    def take(self) -> None:
        self.taken += 1
        if self.taken == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def last(self) -> None:
        """No step is left to take: who was to die at a later one dies now. Steps fall together at times."""
        if self._deadly > self.taken:
            os.kill(os.getpid(), signal.SIGKILL)

    def split(self) -> None:
        self._splits += 1
        if self._splits == -self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def split(store, steps: Steps):
    """`store` with a planted fault: how far was read is written by itself, before what was learned."""
    whole = store.write

    async def write(scope, changes):
        cursors = [change for change in changes if isinstance(change, Put) and change.record.kind == PROGRESS]
        rest = [change for change in changes if change not in cursors]
        if cursors and rest:
            await whole(scope, cursors)
            steps.split()
        await whole(scope, rest if cursors and rest else changes)

    store.write = write
    return store


def stepping(store, steps: Steps):
    """`store`, each of whose reads and writes is a step before it begins and one after it is done."""
    for verb in ("read", "scan", "write", "load", "waiting"):
        setattr(store, verb, _stepping(getattr(store, verb), steps))
    return store


def _stepping(verb: Callable[..., Awaitable[object]], steps: Steps) -> Callable[..., Awaitable[object]]:
    async def stepped(*args, **kwargs):
        steps.take()
        found = await verb(*args, **kwargs)
        steps.take()
        return found

    return stepped


def service(url: str, steps: Steps, *, minutes: float = 0) -> MemoryService:
    """A worker, by whose clock so many minutes have passed."""
    clock = lambda: datetime.now(UTC) + timedelta(minutes=minutes)  # noqa: E731
    store = stepping(store_from(url), steps)
    store = split(store, steps) if SPLITS in os.environ else store
    return MemoryService(store, LexicalEmbedder(), extractor=Birdwatcher(steps), clock=clock, distil_every=4)


async def prepare(url: str) -> None:
    """Calls in which birds are named, in order; nobody has distilled them."""
    async with MemoryService(store_from(url), LexicalEmbedder()) as memory:
        ana = memory.user("ana")
        calls = [await ana.conversation(f"call-{n}") for n in range(CALLS)]
        start = datetime.now(UTC)
        for at, bird in enumerate(BIRDS):
            call = calls[at * CALLS // TURNS]
            when = start + timedelta(milliseconds=at)
            await call.append(
                Turn(speaker="user", text=f"Today I saw the {bird} again", id=str(at), said_at=when)
            )
        for call in calls:
            await call.complete()


async def work(url: str, deadly: int = 0, *, minutes: float = 0) -> int:
    steps = Steps(deadly)
    async with service(url, steps, minutes=minutes) as memory:
        await memory.distil()
    return steps.taken


async def found(url: str) -> dict[str, object]:
    async with MemoryService(store_from(url), LexicalEmbedder()) as memory:
        ana = memory.user("ana")
        birds = await ana.get("birds")
        versions = [m.text.split() for m in await ana.history("birds")]
        return {
            "birds": birds.text.split() if birds else [],
            "grew": all(old == new[: len(old)] for old, new in pairwise(versions)),
            "current": sum(m.key == "birds" for m in await ana.facts()),
            "statuses": sorted({"distilled" if c.distilled else c.status for c in await ana.conversations()}),
        }


def forked(coroutine: Callable[[], Awaitable[object]]) -> int:
    """Run it in a child; the child's number."""
    child = os.fork()
    if child:
        return child
    try:
        asyncio.run(coroutine())
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def told(coroutine: Callable[[], Awaitable[object]]) -> object:
    """What it returns, run in a child."""
    reader, writer = os.pipe()

    async def tell() -> None:
        os.write(writer, json.dumps(await coroutine()).encode())

    child = forked(tell)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    assert ended(child) == 0
    return json.loads(answer)


def killed(url: str, deadly: int) -> dict[str, object]:
    """One worker dies at this step; then another, later, goes on."""
    assert ended(forked(lambda: prepare(url))) == 0
    code = ended(forked(lambda: work(url, deadly)))
    # the lease of the dead holds until its time is over
    assert ended(forked(lambda: work(url, minutes=10))) == 0
    return {"code": code, **told(lambda: found(url))}


def kill(folder: Path, points: int, chance: random.Random) -> None:
    """Die at `points` different steps of a distillation."""
    url = f"sqlite:///{folder}/dry.db"
    assert ended(forked(lambda: prepare(url))) == 0
    steps = told(lambda: work(url))
    every = range(-CALLS, 0) if SPLITS in os.environ else range(1, steps + 1)
    for deadly in sorted(chance.sample(every, min(points, len(every)))):
        came = killed(f"sqlite:///{folder}/{deadly}.db", deadly)
        print(json.dumps({"at": deadly, "of": steps, **came}), flush=True)


def shared(url: str, dies_after_s: float | None) -> dict[str, object]:
    """Two workers at once; where they die, two others go on when their leases have run out."""
    assert ended(forked(lambda: prepare(url))) == 0
    workers = [forked(lambda: work(url)) for _ in range(2)]
    if dies_after_s is not None:
        time.sleep(dies_after_s)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            ended(worker)
        workers = [forked(lambda: work(url, minutes=10)) for _ in range(2)]
    return {"codes": [ended(worker) for worker in workers], **told(lambda: found(url))}


def share(folder: Path, rounds: int, chance: random.Random) -> None:
    """Rounds of two workers; in every other one they are killed at a random moment."""
    for number in range(rounds):
        dies_after_s = chance.uniform(0.02, 0.2) if number % 2 else None
        came = shared(f"sqlite:///{folder}/{number}.db", dies_after_s)
        print(json.dumps({"round": number, **came}), flush=True)


if __name__ == "__main__":
    place, what, times, seed = sys.argv[1:]
    if what == "split":
        os.environ[SPLITS] = "1"
    {"kill": kill, "split": kill, "share": share}[what](Path(place), int(times), random.Random(int(seed)))
