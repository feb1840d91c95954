"""What the children of the zygote do until they are killed. Each keeps a log that outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import apsw

from durability import controls
from durability.workload import SPEC, Erase, Step, history, index, perform, vector
from echoic.errors import NotOpen, StoreError, WriteConflict
from echoic.stores.base import Attach, Drop, Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.stores.sqlite import schema as sqlite_schema
from echoic.stores.sqlite import writer as sqlite_writer
from echoic.types import EmbeddingSpec, Scope
from echoic_loopback.disks import Disk, at, killed

SHARED = Scope("shared", "everybody")


class Log:
    """Lines that survive the death of who wrote them."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())


async def write_history(
    *, path: str, log: str, seed: int, steps: int, kill_at: int = 0, control: str | None = None
) -> None:
    """Perform the history of `seed`, several writes at a time; log what was begun and what was acknowledged."""
    sqlite_writer.CHECKPOINT_PAGES = 40  # so that a short history meets many
    disk = Disk(at({kill_at}, killed)) if kill_at else None
    store = SQLiteStore(path, vfs=disk.name if disk else None)
    say, rng = Log(log), Random(seed)
    with controls.applied(store, control):
        await store.open(SPEC, index)
        for group in grouped(rng, list(history(Random(seed), steps))):
            await asyncio.gather(*(_acknowledged(store, number, step, say) for number, step in group))
        await store.aclose()
    say(f"operations {disk.operations if disk else 0}")


async def _acknowledged(store: SQLiteStore, number: int, step: Step, say: Callable[[str], None]) -> None:
    say(f"begun {number}")
    with contextlib.suppress(WriteConflict):  # refused, which is an answer too
        await perform(store, step)
    say(f"done {number}")


def grouped(rng: Random, steps: list[Step]) -> Iterator[list[tuple[int, Step]]]:
    """Consecutive writes to be asked for at once; an erasure stands alone."""
    group: list[tuple[int, Step]] = []
    for number, step in enumerate(steps):
        if group and (isinstance(step, Erase) or isinstance(group[-1][1], Erase) or rng.random() < 0.6):
            yield group
            group = []
        group.append((number, step))
    if group:
        yield group


async def only_open(*, path: str, kill_at: int = 0, older: bool = False, control: str | None = None) -> None:
    """Open the store, creating or upgrading it, and close it. `older`: this Echoic knows one schema more."""
    if older:
        sqlite_schema.MIGRATIONS = (*sqlite_schema.MIGRATIONS, *controls.NEXT_SCHEMA)
        sqlite_schema.VERSION = len(sqlite_schema.MIGRATIONS)
    disk = Disk(at({kill_at}, killed)) if kill_at else None
    store = SQLiteStore(path, vfs=disk.name if disk else None)
    with controls.applied(store, control):
        await store.open(SPEC, index)
        await store.aclose()


async def open_as_another_user(*, path: str, log: str) -> None:
    """Try to open the store as somebody who may do nothing; log the error."""
    say = Log(log)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    store = SQLiteStore(path)
    try:
        await store.open(SPEC, index)
    except StoreError as error:
        say(f"{type(error).__name__} {error}")
    else:
        say("opened")
        await store.aclose()


async def keep_writing(*, path: str, log: str, name: str, seed: float) -> None:
    """Until killed: own records, each write a step further; a shared counter; now and then close and open."""
    say, rng = Log(log), Random(seed)
    sqlite_writer.CHECKPOINT_PAGES = 30
    while True:
        store = SQLiteStore(path)
        await store.open(SPEC, index)
        for _ in range(rng.randrange(20, 200)):
            await _one_write(store, name, rng, say)
        await store.aclose()


async def _one_write(store: SQLiteStore, name: str, rng: Random, say: Callable[[str], None]) -> None:
    own = f"{name}-{rng.randrange(12)}"
    dice = rng.random()
    began = time.perf_counter()
    if dice < 0.25:
        with contextlib.suppress(WriteConflict):
            await increment(store, "common", name, say)
        return
    held = await store.read(SHARED, "memory", [own])
    version = held[0].version if held else 0
    if dice < 0.35 and held:
        change: Any = Drop(kind="memory", id=own)
        say(f"begun {own} 0")
    elif dice < 0.5 and held:
        change = Attach(kind="memory", id=own, version=version, vector=vector(rng))
        say(f"begun {own} {version}")
    else:
        text = " ".join(rng.choice(("storm", "quay", "anchor", "hull")) for _ in range(rng.randrange(1, 40)))
        record = Record(kind="memory", id=own, data={"text": f"{name} {version + 1} {text}"})
        change = Put(record=record, expect=version)
        say(f"begun {own} {version + 1}")
    await store.write(SHARED, [change])
    say(f"done {own} {time.perf_counter() - began:.6f}")


async def increment(store: SQLiteStore, counter: str, name: str, say: Callable[[str], None]) -> None:
    """One more, if nobody was faster; with the moments between which it happened.

    Raises:
        WriteConflict: somebody was.
    """
    looked = time.monotonic_ns()
    held = await store.read(SHARED, "counter", [counter])
    version = held[0].version if held else 0
    total = (held[0].data["n"] if held else 0) + 1
    record = Record(kind="counter", id=counter, data={"n": total, "by": name})
    before = time.monotonic_ns()
    say(f"saw {counter} {total - 1} {looked} {before}")
    await store.write(SHARED, [Put(record=record, expect=version)])
    say(f"counted {counter} {total} {before} {time.monotonic_ns()}")


async def count_up(*, path: str, log: str, name: str, times: int, tasks: int, control: str | None) -> None:
    """`tasks` tasks, each adding one `times` times to the same counter, trying again after a conflict."""
    say = Log(log)
    store = SQLiteStore(path)
    with controls.applied(store, control):
        await store.open(SPEC, index)

        async def add() -> None:
            done = 0
            while done < times:
                with contextlib.suppress(WriteConflict):
                    await increment(store, "counter", name, say)
                    done += 1

        await asyncio.gather(*(add() for _ in range(tasks)))
        await store.aclose()


async def keep_reading(*, path: str, log: str) -> None:
    """Until killed: load, scan and check that a partition agrees with its records."""
    say = Log(log)
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    newest = 0
    while True:
        partition = await store.load(SHARED)
        assert partition.version >= newest, f"went back from {newest} to {partition.version}"
        newest = partition.version
        for record in await store.scan(SHARED, "memory"):
            text = record.data["text"].split()
            assert text[1] == str(record.version), f"{record.id} at {record.version} says {text[1]}"
        say(f"read {newest}")
        await asyncio.sleep(0.005)


async def keep_erasing(*, path: str, log: str, name: str) -> None:
    """Until killed: fill a scope and erase it."""
    say = Log(log)
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    scope = Scope("shared", name)
    while True:
        for number in range(5):
            record = Record(kind="memory", id=str(number), data={"text": f"secret {number} of {name}"})
            await store.write(scope, [Put(record=record)])
        receipt = await store.erase(scope)
        assert receipt.verified
        assert await store.scan(scope, "memory") == []
        say(f"erased {receipt.records['memory']}")
        await asyncio.sleep(0.05)


async def keep_checkpointing(*, path: str) -> None:
    """Until killed: checkpoints of every kind by a program that knows nothing of our lock."""
    connection = apsw.Connection(path)
    connection.set_busy_timeout(2_000)
    for number in range(1 << 30):
        kind = ("passive", "full", "restart", "truncate")[number % 4]
        with contextlib.suppress(apsw.BusyError):
            connection.execute(f"pragma wal_checkpoint({kind})").fetchall()
        await asyncio.sleep(0.01)


async def hold_open(*, path: str, log: str, spec: tuple[str, int]) -> None:
    """Open the store, load every scope, and stay until killed."""
    store = SQLiteStore(path)
    await store.open(EmbeddingSpec(*spec), index)
    for scope in await store.scopes():
        await store.load(scope)
    Log(log)("open")
    await asyncio.sleep(3600)


async def fork_in_turn(*, path: str, log: str, control: str | None) -> None:
    """Fork while the writer has its turn, then die in it. The child tries the store and stays until told."""
    say = Log(log)
    store = SQLiteStore(path)
    with controls.applied(store, control):
        await store.open(SPEC, index)
        inside = threading.Event()
        store._writer.alone(lambda _: (inside.set(), time.sleep(3600)))
        inside.wait()
        if os.fork():
            while not lines(Path(log)):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            store._writer.submit(lambda _: None)
        except NotOpen as error:
            say(f"child NotOpen {error}")
        else:
            say("child took it")
        until = time.monotonic() + 60
        while time.monotonic() < until and not Path(f"{log}-end").exists():
            time.sleep(0.02)
        os._exit(0)


async def fork_and_read(*, path: str, log: str) -> None:
    """Fork with the store open; the child tries to read from it and to open it again."""
    say = Log(log)
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    await store.scan(SHARED, "memory")
    child = os.fork()
    if not child:
        for what, asked in (("read", store.scan(SHARED, "memory")), ("open", store.open(SPEC, index))):
            try:
                asked.send(None)  # as far as it goes without a loop, which is in the parent
            except NotOpen as error:
                say(f"{what} NotOpen {error}")
            except StopIteration:
                say(f"{what} done")
            else:
                say(f"{what} waits")
        os._exit(0)
    os.waitpid(child, 0)
    say(f"parent {len(await store.scan(SHARED, 'memory'))}")
    await store.aclose()


async def visit(*, path: str, log: str) -> None:
    """Open the store, count the records of the shared scope, and close it."""
    store = SQLiteStore(path)
    await store.open(SPEC, index)
    Log(log)(f"found {len(await store.scan(SHARED, 'memory'))}")
    await store.aclose()


def lines(log: Path) -> list[list[str]]:
    """What a log holds, by words. A line that was cut short by death is left out."""
    if not log.exists():
        return []
    return [line.split() for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


PROGRAMS: dict[str, Callable[..., Awaitable[None]]] = {
    program.__name__: program
    for program in (
        write_history,
        only_open,
        open_as_another_user,
        keep_writing,
        count_up,
        keep_reading,
        keep_erasing,
        keep_checkpointing,
        hold_open,
        fork_in_turn,
        fork_and_read,
        visit,
    )
}
