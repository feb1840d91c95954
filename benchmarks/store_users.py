"""Many users of a hundred memories in two stores at once: what one of them waits for in each.

Both are filled with the same data first, in processes beside each other. Then each question, and each write,
is put to one store and at once to the other, the first of the two in turns: whatever else the machine does in
between, it does to both.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import multiprocessing
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.speed import Data, Given, fill
from echoic.memory.records import index
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.stores import store_from
from echoic.types import Scope

Clock = Callable[[], float]
Asked = list[tuple[str, str, NDArray[np.float32]]]
"""User, question and its vector."""
DEPLOYMENT = "bench"
_SETTLE_S = 60.0
_NUMBERS = itertools.count()
"""What is known already would not be written again."""


class Samples:
    """How long something takes, and how much processor time of client and server.

    That is what compares on a machine that does other things as well.
    """

    def __init__(self, server_s: Clock | None) -> None:
        self._server_s = server_s or (lambda: 0.0)
        self._times: list[float] = []
        self._used = 0.0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        # to ask for the server's time takes time itself: outside of what is measured, on both sides
        server = self._server_s()
        own, began = time.process_time(), time.perf_counter()
        yield
        self._times.append(time.perf_counter() - began)
        self._used += time.process_time() - own
        self._used += self._server_s() - server

    def summary(self) -> dict[str, float]:
        used = round(1000 * self._used / len(self._times), 2)
        return {**machine.percentiles(self._times), "cpu_mean_ms": used}


def filled(url: str, count: int, each: int, queries: int) -> tuple[float, Asked]:
    """Fill a new store: how many seconds that took, and questions about what some of the users know."""
    return asyncio.run(_filled(url, count, each, queries))


async def _filled(url: str, count: int, each: int, queries: int) -> tuple[float, Asked]:
    data, asked, began = Data(seed=7), [], time.perf_counter()
    store = store_from(url)
    await store.open(Given.spec, index)
    for n in range(count):
        texts, vectors = data.memories(each)
        user = f"user {n}"
        await fill(store, Scope(DEPLOYMENT, user), texts, vectors)  # type: ignore[arg-type]
        if n % max(1, count // queries) == 0:
            asked.append((user, *data.question(texts[3], vectors[3])))
        if (n + 1) % 1000 == 0:
            print(url.partition(":")[0], n + 1, "users", file=sys.stderr, flush=True)
    await store.aclose()
    return time.perf_counter() - began, asked


class SideBySide:
    """Services over stores that hold the same.

    Args:
        memories: by engine.
        clocks: by engine, the processor time its server has used; None where there is none.
    """

    def __init__(self, memories: Mapping[str, MemoryService], clocks: Mapping[str, Clock | None]) -> None:
        self._memories, self._clocks = memories, clocks
        self._engines = list(memories)
        self.measured: dict[str, dict[str, dict[str, float]]] = {engine: {} for engine in memories}

    async def run(self, asked: Asked) -> None:
        """A first query of each user, a later one, then a write and the query right after it."""
        await self._phase("first_query", asked, lambda user, question: user.query(question))
        await self._phase("query", asked, lambda user, question: user.query(question))
        samples = {
            engine: (Samples(self._clocks[engine]), Samples(self._clocks[engine])) for engine in self._engines
        }
        for name, question, _ in asked:
            said = f"one more thing was said, number {next(_NUMBERS)}"
            for engine in self._engines:
                user = self._memories[engine].user(name, DEPLOYMENT)
                write, query = samples[engine]
                with write.one():
                    await user.remember(said)
                with query.one():
                    await user.query(question)
                # what is embedded behind it would be taken for the other store's time
                await self._memories[engine].settle(_SETTLE_S)
            self._engines.reverse()
        for engine, (write, query) in samples.items():
            self.measured[engine] |= {"write": write.summary(), "query_after_a_write": query.summary()}

    async def _phase(
        self, name: str, asked: Asked, ask: Callable[[UserMemory, str], Awaitable[object]]
    ) -> None:
        samples = {engine: Samples(self._clocks[engine]) for engine in self._engines}
        for who, question, _ in asked:
            for engine in self._engines:
                with samples[engine].one():
                    await ask(self._memories[engine].user(who, DEPLOYMENT), question)
            self._engines.reverse()
        for engine, sampled in samples.items():
            self.measured[engine][name] = sampled.summary()


async def fill_all(urls: Mapping[str, str], count: int, each: int, queries: int) -> tuple[Asked, list[float]]:
    """Fill every store with the same: questions about some users, and the seconds it took each."""
    loop, how = asyncio.get_running_loop(), (count, each, queries)
    with ProcessPoolExecutor(len(urls), multiprocessing.get_context("spawn")) as processes:
        filling = [loop.run_in_executor(processes, filled, url, *how) for url in urls.values()]
        done = await asyncio.gather(*filling)
    return done[0][1], [round(seconds, 1) for seconds, _ in done]


def spread(asked: Asked, users: int, times: int) -> Asked:
    """The same questions of users among all of the copies."""
    found = []
    for place, (user, question, vector) in enumerate(asked):
        number = int(user.removeprefix("user "))
        found.append((f"user {number + users * (place % times)}", question, vector))
    return found


async def compared(
    urls: Mapping[str, str], clocks: Mapping[str, Clock | None], asked: Asked
) -> dict[str, dict[str, Any]]:
    """By engine: durable writes and queries of the users in `asked`, and how many records there are."""
    given = Given()
    given.vectors |= {question: vector for _, question, vector in asked}
    gc.collect()
    async with _opened(urls, given) as memories:
        beside = SideBySide(memories, clocks)
        await beside.run(asked)
        records = {engine: (await memory.check())["records"] for engine, memory in memories.items()}
    return {engine: {"records": records[engine], **beside.measured[engine]} for engine in urls}


@contextlib.asynccontextmanager
async def _opened(urls: Mapping[str, str], given: Given) -> AsyncIterator[dict[str, MemoryService]]:
    async with contextlib.AsyncExitStack() as stack:
        yield {
            engine: await stack.enter_async_context(MemoryService(store_from(url), given))
            for engine, url in urls.items()
        }


__all__ = ["Asked", "Clock", "Samples", "compared", "fill_all", "spread"]
