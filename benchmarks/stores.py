"""SQLite and PostgreSQL side by side, in one run: writes, queries, and where searching in the database pays.

    python -m benchmarks.stores                       # 100,000 memories of 1,000 users; one up to 100,000
    python -m benchmarks.stores --million             # and 1,000,000 of 10,000 users
    python -m benchmarks.stores --url postgresql://…  # a server of your own; its schemas are dropped after

Without `--url` a server is started as the tests start it: on this machine, on a Unix socket, with fsync.
Client and server share the machine's cores; nothing is pinned. The data is that of `benchmarks.speed`.

`users`: a durable write, the first and a later query of a user, embedding left out. `one_user`: load and
rank, cold and warm, against `narrow` and rank (loading from SQLite: `benchmarks.speed`). `writers`: eight
callers at once, each in a scope of its own, and what it costs that commits tell other processes.
`meant_first`: how often the memory that a question was made of came first. `bytes_a_memory`: what the files
grew by.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import machine
from benchmarks.speed import DIMENSIONS, NOW, Data, Given, fill
from echoic.memory.records import index, record_of_memory
from echoic.memory.service import MemoryService
from echoic.ranking.query import query_of
from echoic.ranking.rank import rank
from echoic.stores import store_from
from echoic.stores.base import Attach, Put, Record, Store
from echoic.types import EmbeddingSpec, Memory, Scope

SPEC = EmbeddingSpec("benchmark", DIMENSIONS)
USER = Scope("bench", "user")
SIZES = (2_000, 10_000, 25_000, 50_000, 100_000)
LIKELY = (50, 200)
"""Rows asked for of each way of searching when narrowing."""
WRITERS = 8


async def _timed(ask: Callable[..., Awaitable[Any]], *arguments: object) -> float:
    began = time.perf_counter()
    await ask(*arguments)
    return time.perf_counter() - began


Clock = Callable[[], float]


class Samples:
    """How long something takes, and how much processor time of client and server: that is what compares on a
    machine that does other things as well."""

    def __init__(self, cpu_s: Clock) -> None:
        self._cpu_s = cpu_s
        self._times: list[float] = []
        self._used = 0.0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        used, began = self._cpu_s(), time.perf_counter()
        yield
        self._times.append(time.perf_counter() - began)
        self._used += self._cpu_s() - used

    def summary(self) -> dict[str, float]:
        used = round(1000 * self._used / len(self._times), 2)
        return {**machine.percentiles(self._times), "cpu_mean_ms": used}


async def users(url: str, count: int, each: int, queries: int) -> dict[str, Any]:
    """Many users of `each` memories: what one of them waits for."""
    data, given = Data(seed=7), Given()
    store = store_from(url)
    await store.open(given.spec, index)
    asked: list[tuple[int, str]] = []
    began = time.perf_counter()
    for n in range(count):
        texts, vectors = data.memories(each)
        await fill(store, Scope("bench", f"user {n}"), texts, vectors)
        if n % max(1, count // queries) == 0:
            question, vector = data.question(texts[3], vectors[3])
            given.vectors[question] = vector
            asked.append((n, question))
    filled = time.perf_counter() - began
    await store.aclose()
    gc.collect()
    async with MemoryService(store_from(url), given) as memory:
        samples: dict[str, list[float]] = {
            "first_query": [],
            "query": [],
            "write": [],
            "query_after_a_write": [],
        }
        for name in ("first_query", "query"):
            for n, question in asked:
                user = memory.user(f"user {n}", "bench")
                samples[name].append(await _timed(user.query, question))
        for n, question in asked:
            user = memory.user(f"user {n}", "bench")
            samples["write"].append(await _timed(user.remember, "one more thing that was said"))
            samples["query_after_a_write"].append(await _timed(user.query, question))
    return {
        "memories": count * each,
        "users": count,
        "filled_in_s": round(filled, 1),
        **{name: machine.percentiles(times) for name, times in samples.items()},
    }


async def one_user(url: str, sizes: tuple[int, ...], queries: int, cpu_s: Clock) -> list[dict[str, Any]]:
    """One user who gets more and more memories: loaded and ranked, or narrowed and ranked."""
    data = Data(seed=11)
    store = store_from(url)
    await store.open(SPEC, index)
    texts, vectors = data.memories(max(sizes))
    measured, there = [], 0
    for size in sizes:
        await _grow(store, texts, vectors, there, size)
        there = size
        meant = data.rng.integers(0, size, queries).tolist()
        asked = [query_of(*data.question(texts[i], vectors[i])) for i in meant]
        found: dict[str, Any] = {"memories": size}
        best = await _loaded(url, asked, found, cpu_s)
        found["meant_first"] = sum(rows[:1] == [i] for rows, i in zip(best, meant, strict=True)) / queries
        await _narrowed(store, list(zip(asked, best, meant, strict=True)), found, cpu_s)
        print(found, file=sys.stderr, flush=True)
        measured.append(found)
    await store.aclose()
    return measured


async def _grow(store: Store, texts: list[str], vectors: Any, start: int, end: int) -> None:
    tokens = bytes(range(250)) * 8  # of the size that word pieces have
    for at in range(start, end, 1000):
        numbers = range(at, min(at + 1000, end))
        records = [
            record_of_memory(Memory(id=f"m{n}", text=texts[n], valid_from=NOW, author=USER.user))
            for n in numbers
        ]
        await store.write(USER, [Put(record=record) for record in records])
        attaches = [
            Attach(kind=record.kind, id=record.id, version=1, vector=vectors[n], tokens=tokens)
            for n, record in zip(numbers, records, strict=True)
        ]
        await store.write(USER, attaches)


async def _loaded(url: str, asked: list[Any], found: dict[str, Any], cpu_s: Clock) -> list[list[int]]:
    cold, warm, best = Samples(cpu_s), Samples(cpu_s), []
    for last in (False, True):
        store = store_from(url + "&cache_mb=4096")
        await store.open(SPEC, index)
        with cold.one():
            rank(asked[0], [await store.load(USER)])
        for query in asked if last else ():
            with warm.one():
                hits = rank(query, [await store.load(USER)])
            best.append([hit.row for hit in hits])
        found["loaded_mb"] = round((await store.load(USER)).nbytes / 1e6, 1)
        await store.aclose()
    found["cold_load_and_rank"], found["warm_load_and_rank"] = cold.summary(), warm.summary()
    return best


async def _narrowed(
    store: Any, asked: list[tuple[Any, list[int], int]], found: dict[str, Any], cpu_s: Clock
) -> None:
    for likely in LIKELY:
        samples, same, first, rows = Samples(cpu_s), 0, 0, 0
        for query, wanted, meant in asked:
            with samples.one():
                partition = await store.narrow(
                    USER, query.text, query.vector, limit=likely, include_past=False
                )
                hits = rank(query, [partition])
            rows += partition.size
            origins = [int(partition.origin[hit.row]) for hit in hits]
            same += len(set(origins) & set(wanted))
            first += origins[:1] == [meant]
        found[f"narrow_{likely}_and_rank"] = {
            **samples.summary(),
            "rows": round(rows / len(asked)),
            "same_first_ten": round(same / max(1, sum(len(wanted) for _, wanted, _ in asked)), 3),
            "meant_first": first / len(asked),
        }


async def writers(url: str, seconds: float) -> dict[str, Any]:
    """Durable writes a second of callers that write at once, each in a scope of its own."""
    store = store_from(url)
    await store.open(SPEC, index)
    until, times = time.perf_counter() + seconds, []

    async def write(caller: int) -> None:
        n = 0
        while time.perf_counter() < until:
            record = Record(kind="note", id=f"n{n}", data={"text": "one more thing that was said"})
            began = time.perf_counter()
            await store.write(Scope("bench", f"caller {caller}"), [Put(record=record)])
            times.append(time.perf_counter() - began)
            n += 1

    await asyncio.gather(*(write(caller) for caller in range(WRITERS)))
    await store.aclose()
    return {"writes_a_second": round(len(times) / seconds), **machine.percentiles(times)}


class Places:
    """Where stores are: a new file or a new schema each time."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self._count = 0
        self.schemas: list[str] = []

    def new(self, engine: str) -> str:
        self._count += 1
        if engine == "sqlite":
            return f"sqlite:///{self._folder}/{self._count}.db"
        self.schemas.append(f"echoic_benchmark_{self._count}")
        return f"{self._url}{'&' if '?' in self._url else '?'}schema={self.schemas[-1]}"

    async def bytes(self, engine: str) -> int:
        """Of the newest one."""
        if engine == "sqlite":
            return sum(path.stat().st_size for path in self._folder.glob(f"{self._count}.db*"))
        connection = await asyncpg.connect(self._url)
        size: int = await connection.fetchval(
            "select sum(pg_total_relation_size(c.oid))::bigint from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where relkind = 'r' and nspname = $1",
            self.schemas[-1],
        )
        await connection.close()
        return size

    async def drop(self) -> None:
        connection = await asyncpg.connect(self._url)
        for schema in self.schemas:
            await connection.execute(f"drop schema if exists {schema} cascade")
        await connection.close()
        self.schemas.clear()


async def measure(
    places: Places, cpu_s: Clock, *, sizes: tuple[int, ...], counts: list[int], queries: int
) -> dict[str, Any]:
    measured: dict[str, Any] = {"sqlite": {}, "postgresql": {}}
    connection = await asyncpg.connect(places._url)
    measured["server"] = await connection.fetchval("select version()")
    await connection.close()
    for engine in ("sqlite", "postgresql"):
        of = measured[engine]
        if counts:
            of["writers"] = await writers(places.new(engine), 5)
        if counts and engine == "postgresql":
            of["writers_untold"] = await writers(places.new(engine) + "&notify=off", 5)
        for count in counts:
            found = await users(places.new(engine), count, 100, queries)
            found["bytes_a_memory"] = round(await places.bytes(engine) / found["memories"])
            of.setdefault("users", []).append(found)
            print(engine, found, file=sys.stderr, flush=True)
        if engine == "postgresql" and sizes:
            of["one_user"] = await one_user(places.new(engine), sizes, min(queries, 20), cpu_s)
        await places.drop()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="also 1,000,000 memories of 10,000 users")
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written to results/")
    parser.add_argument("--part", choices=["users", "one_user"], help="one part only; nothing is written")
    parser.add_argument("--url", help="a server of your own")
    parser.add_argument("--folder", help="where to put files and the server's data (a disk, not a RAM disk)")
    args = parser.parse_args()
    sizes = (500, 1000) if args.smoke else SIZES
    counts = [20] if args.smoke else [1_000, 10_000] if args.million else [1_000]
    sizes = () if args.part == "users" else sizes
    counts = [] if args.part == "one_user" else counts
    server = None
    if args.url is None:
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
        from stores.postgres_server import PostgresServer

        server = PostgresServer(durable=True, folder=args.folder)
        server.start()

    def cpu_s() -> float:
        return time.process_time() + (server.cpu_s() if server is not None else 0.0)

    url = args.url or f"postgresql://postgres@/postgres?host={server.folder}"
    try:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            places = Places(Path(folder), url)
            queries = 20 if args.smoke else 200
            measured = asyncio.run(measure(places, cpu_s, sizes=sizes, counts=counts, queries=queries))
    finally:
        if server is not None:
            server.remove()
    print(measured if args.smoke or args.part else machine.save("stores", measured))


if __name__ == "__main__":
    main()
