"""A whole service with its callers, on a disk, a network and a provider that fail; all of it from one seed.

A history is some lives of one store. A life ends when its process is killed or the power is cut, in the middle
of any operation of the disk, or once every caller did all of theirs. Callers survive, and ask again for what
was not answered. What was acknowledged is looked for at the end of each life and in the last one, without
faults: it must be there, once, in order, and nobody else's; what was forgotten must be in no byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import apsw
import numpy as np

# loaded before a history begins: in one, loading takes a turn of a thread, and the first history of a process would differ
import echoic.memory.block
import echoic.memory.conversation  # noqa: F401
from echoic.embedding.base import Kind, Vectors
from echoic.errors import EchoicError, EmbedderUnavailable, StoreError
from echoic.memory.compliance import Compliance
from echoic.memory.service import MemoryService
from echoic.stores import sqlite
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import writer as sqlite_writer
from echoic.types import EmbeddingSpec, Turn
from echoic_loopback.disks import Fault, Operation, PowerDisk, broken, full
from simulation.loop import SimulatedClock, SimulatedLoop, SimulatedThread, Stuck

CALLERS = ("ana", "ben", "cleo")
STEPS = 9
MOST_LIVES = 6
NAME = "a.db"
KINDS = (
    "the power was cut",
    "the process was killed",
    "a sync failed",
    "a write failed, the disk was full",
    "a request was lost",
    "an answer was lost",
    "a request came twice",
    "the embedder failed",
    "the embedder was slow",
    "the clock jumped",
)


Plant = Callable[[SQLiteStore], AbstractContextManager[Any]]
"""A mistake that is made on purpose, while the store lives."""


class Wrong(AssertionError):
    """A promise was broken."""


@dataclass
class Caller:
    """What one caller asked for, and what must be there for it."""

    user: str
    steps: list[tuple[str, Any, Any]]
    done: int = 0
    said: dict[str, str] = field(default_factory=dict)
    """Acknowledged turns, in order."""
    perhaps: dict[str, str] = field(default_factory=dict)
    """Turns that were asked for and not acknowledged."""
    values: dict[str, set[str | None]] = field(default_factory=dict)
    """What each key may hold."""
    gone: set[str] = field(default_factory=set)
    """Words that were forgotten, acknowledged."""


@dataclass
class Outcome:
    """What a history came to."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    lives: int = 0
    steps: int = 0
    digest: str = ""
    wrong: str = ""


class Provider:
    """An embedder somewhere else: it fails and takes its time."""

    spec = EmbeddingSpec("simulated", 16)
    semantic = False

    def __init__(self, world: World, rng: Random) -> None:
        self._world, self._rng = world, rng

    async def open(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        await asyncio.sleep(self._rng.expovariate(50))
        if self._world.strikes(0.1, "the embedder was slow", self._rng):
            await asyncio.sleep(self._rng.uniform(1, 20))
        if self._world.strikes(0.15, "the embedder failed", self._rng):
            raise EmbedderUnavailable("the provider did not answer")
        made = np.zeros((len(texts), 16), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                made[row, hashlib.sha256(word.encode()).digest()[0] % 16] += 1
            made[row, 0] += 0.1
        return made / np.linalg.norm(made, axis=1, keepdims=True)


class World:
    """One history.

    Args:
        seed: decides everything.
        folder: an empty one, for the files.
        plant: a mistake to make on purpose, with the store before it is opened.
    """

    def __init__(self, seed: int, folder: Path, plant: Plant | None = None) -> None:
        self.outcome = Outcome(seed)
        self._folder, self._plant = folder, plant or (lambda _store: contextlib.nullcontext())
        self._order, self._disk, self._net, self._provider, self._fate = (
            Random(f"{seed} {what}") for what in ("order", "disk", "network", "provider", "fate")
        )
        self.clock = SimulatedClock()
        self._ids = (f"id-{number}" for number in range(1 << 30))
        self._trace = hashlib.sha256()
        self.faulty = True
        self._loop: SimulatedLoop | None = None
        drawn = Random(f"{seed} callers")
        self.callers = [Caller(user, list(steps_of(user, drawn))) for user in CALLERS]

    # -- faults

    def strikes(self, chance: float, kind: str, rng: Random) -> bool:
        """Whether this fault happens now; counted."""
        drawn = rng.random() < chance
        if drawn and self.faulty:
            self.outcome.faults[kind] += 1
        return drawn and self.faulty

    def note(self, *what: object) -> None:
        """Something happened that must happen again, at the same time, with the same seed."""
        self._trace.update(f"{self.clock.now_s!r} {what!r}\n".encode())

    # -- lives

    def run(self) -> Outcome:
        """Live through all of it."""
        place = self._folder / "life-0"
        place.mkdir()
        random.seed(self.outcome.seed)  # pauses between attempts are drawn from it
        try:
            while any(caller.done < len(caller.steps) for caller in self.callers):
                self.outcome.lives += 1
                self.faulty = self.outcome.lives < MOST_LIVES
                place = self._live(place, self._with_callers)
            self.faulty = False
            self._live(place, self._at_last)
            self._check_bytes(place)
        except (Wrong, Stuck, EchoicError, apsw.Error) as error:
            self.outcome.wrong = f"{type(error).__name__}: {error}"
        self.outcome.digest = self._trace.hexdigest()
        return self.outcome

    def _live(self, place: Path, work: Callable[[MemoryService], Awaitable[None]]) -> Path:
        """One process, from opening to its end; where what is left of it lies."""
        remains = self._folder / f"life-{self.outcome.lives}{'' if self.faulty else '-sound'}"
        loop = self._loop = SimulatedLoop(self._order, self.clock)
        disk = PowerDisk(self._disk)
        disk.plan = self._plan(disk, place, remains, loop)
        store = SQLiteStore(place / NAME, vfs=disk.name)
        threads = mock.Mock(side_effect=lambda *_a, **_k: SimulatedThread(loop))
        with (
            mock.patch.object(sqlite, "ThreadPoolExecutor", threads),
            mock.patch.object(sqlite_writer, "ThreadPoolExecutor", threads),
            mock.patch.object(sqlite_writer, "CHECKPOINT_PAGES", 30),
            self._plant(store),
        ):
            service = MemoryService(
                store,
                Provider(self, self._provider),
                sentences=False,
                secrets="keep",  # masking is pure, and takes half of the time
                compliance=Compliance(self._folder / "compliance"),
                clock=self.clock.wall,
                new_id=lambda: next(self._ids),
            )
            main = loop.create_task(self._main(service, work))
            main.add_done_callback(lambda _done: loop.stop())
            try:
                loop.run_forever()
            finally:
                died = loop.dead
                self.outcome.steps += loop.steps
                self.note("end of a life", died)
                if died or not main.done() or main.exception() is not None:
                    loop.dead = True
                    self._bury(loop, store)
                loop.close()
        if not died:
            main.result()
        return remains if died else place

    async def _main(self, service: MemoryService, work: Callable[[MemoryService], Awaitable[None]]) -> None:
        for _ in range(200):
            try:
                await service.open()
            except StoreError:
                await asyncio.sleep(1)
            else:
                break
        else:
            raise Wrong("the store did not open in 200 attempts")
        await work(service)
        for _ in range(50):
            try:
                await service.aclose()
            except StoreError:
                await asyncio.sleep(1)
            else:
                return

    def _plan(
        self, disk: PowerDisk, place: Path, remains: Path, loop: SimulatedLoop
    ) -> Callable[[Operation], Fault | None]:
        """What befalls the operations of the disk in one life."""
        chance = self._fate.choice((0.0, 0.0, 0.01, 0.05)) if self.faulty else 0.0
        ends_at = self._fate.randrange(1, 700) if self.faulty and self._fate.random() < 0.8 else None
        power = self._fate.random() < 0.6

        def befalls(operation: Operation) -> Fault | None:
            if operation.number == ends_at and not loop.dead:
                remains.mkdir()
                if power:
                    disk.cut(remains)
                else:
                    for file in place.iterdir():  # the kernel keeps what was written
                        if not file.name.endswith(("-shm", "-lock")):
                            shutil.copyfile(file, remains / file.name)
                self.outcome.faults[KINDS[0] if power else KINDS[1]] += 1
                self.note("died", power, operation.number, operation.kind)
                loop.dead = True
                loop.call_later(1e-9, loop.stop)  # what was answered before is on its way
            if loop.dead:
                return broken
            if operation.kind == "sync" and self.strikes(chance, KINDS[2], self._fate):
                return broken
            if operation.kind == "write" and self.strikes(chance / 4, KINDS[3], self._fate):
                return full
            return None

        return befalls

    def _bury(self, loop: SimulatedLoop, store: SQLiteStore) -> None:
        """Take the dead process apart without letting it do anything."""
        for _ in range(20):
            left = [task for task in loop.tasks if not task.done()]
            if not left:
                break
            for task in left:
                task.cancel()
            loop.call_soon(loop.stop)
            loop.run_forever()
        for connection in (store._reader, store._watch, store._writer._connection):
            if connection is not None:
                with contextlib.suppress(apsw.Error):
                    connection.close(force=True)
        if store._writer._lock_file is not None:
            os.close(store._writer._lock_file)

    # -- callers

    async def _with_callers(self, service: MemoryService) -> None:
        await asyncio.gather(*(self._calls(service, caller) for caller in self.callers))
        for caller in self.callers:
            await self._check(service, caller)

    async def _calls(self, service: MemoryService, caller: Caller) -> None:
        while caller.done < len(caller.steps):
            await asyncio.sleep(self._net.expovariate(2))
            if self.strikes(0.05, "the clock jumped", self._net):
                self.clock.wall_offset_s += self._net.choice((-86400.0, -3600.0, 3600.0, 86400.0))
            what, name, text = caller.steps[caller.done]
            await getattr(self, f"_{what}")(service, caller, name, text)
            caller.done += 1
            self.outcome.acknowledged += 1
            self.note(caller.user, what, name)

    async def _asked(self, ask: Callable[[], Awaitable[Any]], *, again: bool = False) -> Any:
        """The answer to a request, asked for until it comes. `again`: it may be carried out twice."""
        net = self._net
        for _ in range(300):
            await asyncio.sleep(net.expovariate(100))
            if self.strikes(0.06, "a request was lost", net):
                await asyncio.sleep(2)
                continue
            twice = again and self.strikes(0.06, "a request came twice", net)
            copies = [asyncio.ensure_future(_later(ask, net.random())) for _ in range(twice)]
            try:
                answer = await ask()
            except StoreError:
                await asyncio.sleep(net.uniform(0, 2))
                continue
            finally:
                await asyncio.gather(*copies, return_exceptions=True)
            if self.strikes(0.06, "an answer was lost", net):
                await asyncio.sleep(2)
                continue
            return answer
        raise Wrong("a request was not answered in 300 attempts")

    async def _say(self, service: MemoryService, caller: Caller, name: str, text: str) -> None:
        caller.perhaps[name] = text

        async def ask() -> None:
            call = await service.user(caller.user).conversation("call", agent="desk")
            await call.append(Turn(speaker="user", text=text, id=name, said_at=said_at))

        said_at = self.clock.wall()
        await self._asked(ask, again=True)
        caller.said[name] = caller.perhaps.pop(name)

    async def _set(self, service: MemoryService, caller: Caller, key: str, value: str) -> None:
        user = service.user(caller.user)
        caller.values[key] = caller.values.get(key, {None}) | {value}
        await self._asked(lambda: user.set(key, value))
        caller.values[key] = {value}

    async def _forget(self, service: MemoryService, caller: Caller, key: str, _text: str) -> None:
        user, had = service.user(caller.user), caller.values.get(key, {None})
        caller.values[key] = had | {None}
        receipt = await self._asked(lambda: user.forget(key=key))
        caller.values[key] = {None}
        caller.gone |= {
            value for what, name, value in caller.steps[: caller.done] if (what, name) == ("set", key)
        }
        if not receipt.verified:
            raise Wrong(f"{caller.user}: an erasure was not verified")

    async def _recall(self, service: MemoryService, caller: Caller, _name: str, text: str) -> None:
        user = service.user(caller.user)
        found = await self._asked(lambda: user.recall(text, min_relevance=0, deadline_ms=500))
        for hit in found.hits:
            if caller.user not in hit.text:
                raise Wrong(f"{caller.user} was told what is another's: {hit.text}")

    # -- what must be there

    async def _check(self, service: MemoryService, caller: Caller) -> None:
        user = service.user(caller.user)
        call = await self._asked(lambda: user.conversation("call", begin=False))
        turns = await self._asked(call.turns) if caller.said or caller.perhaps else []
        there = [turn.id for turn in turns]
        if [name for name in there if name in caller.said] != list(caller.said):
            raise Wrong(f"{caller.user}: acknowledged {list(caller.said)}, found {there}")
        if strange := [t.id for t in turns if t.text != (caller.said | caller.perhaps).get(t.id)]:
            raise Wrong(f"{caller.user}: turns that nobody said so: {strange}")
        for key, may in caller.values.items():
            held = await self._asked(lambda key=key: user.get(key))
            value = None if held is None else held.text
            if value not in may:
                raise Wrong(f"{caller.user}: {key} is {value!r}, and may be {may}")

    async def _at_last(self, service: MemoryService) -> None:
        """Without faults everything gets its vector, and is found."""
        if not await service.settle(3600):
            raise Wrong("what waits for vectors or rules still waits after an hour without faults")
        if waiting := (await service.check())["waiting"]:
            raise Wrong(f"{waiting} records have no vector after an hour without faults")
        for caller in self.callers:
            await self._check(service, caller)
            user = service.user(caller.user)
            for text in caller.said.values():
                found = await user.recall(text, min_relevance=0, limit=20)
                if found.outcome != "complete" or text not in {hit.text for hit in found.hits}:
                    raise Wrong(f"{caller.user}: {text!r} is not found: {found.outcome}")

    def _check_bytes(self, place: Path) -> None:
        connection = apsw.Connection(str(place / NAME))
        report = connection.execute("pragma integrity_check").get
        connection.close()
        if report != "ok":
            raise Wrong(f"the file is damaged: {report}")
        gone = {word.encode() for caller in self.callers for word in caller.gone}
        for file in place.iterdir():
            content = file.read_bytes()
            if left := [word for word in gone if word in content]:
                raise Wrong(f"{file.name} holds what was forgotten: {left}")


async def _later(ask: Callable[[], Awaitable[Any]], pause_s: float) -> None:
    await asyncio.sleep(pause_s)
    await ask()


def steps_of(user: str, rng: Random) -> Iterator[tuple[str, Any, Any]]:
    """What one caller asks for. Every word of theirs names them, so that it is known wherever it turns up."""
    for number in range(STEPS):
        word = f"{user}{rng.randrange(1 << 40):x}"
        key = f"key{rng.randrange(2)}"
        what = rng.choices(("say", "set", "recall", "forget"), (5, 4, 2, 1))[0]
        text = {"say": f"The {word} stood near the pier.", "set": word}.get(what, f"Where was the {word}?")
        yield what, f"turn-{number}" if what == "say" else key, text


def lived(seed: int, folder: Path, plant: Plant | None = None) -> Outcome:
    """The history of `seed`, in an own folder inside `folder`, which is removed afterwards."""
    place = folder / f"history-{seed}"
    place.mkdir()
    try:
        return World(seed, place, plant).run()
    finally:
        shutil.rmtree(place)


def lived_alone(seed: int, plant: Plant | None = None) -> Outcome:
    """The history of `seed`, in memory where there is room for files, and without its logs."""
    logging.disable()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        return lived(seed, Path(folder), plant)


__all__ = ["KINDS", "Outcome", "World", "Wrong", "lived", "lived_alone"]
