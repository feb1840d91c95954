"""SQLite and PostgreSQL side by side, in one run: writes, queries, freshness, and where native search pays.

    python -m benchmarks.stores                       # 100,000 and 1,000,000 memories; one user up to 100,000
    python -m benchmarks.stores --without-million     # 100,000 memories at most
    python -m benchmarks.stores --url postgresql://…  # a server of your own; its schemas are dropped after

Without `--url` a server is started as the tests start it, on this machine, on a Unix socket, with fsync, and
with `SERVER`'s settings.
Client and server share the machine's cores; nothing is pinned. The data is that of `benchmarks.speed`; the
encoding of questions is left out. The million are the 100,000 ten times, each under other names
(`store_copies`); they take 12 GB of disk while it runs.

`users`: a durable write, the first and a later query of a user (`store_users`). `writers`: eight callers at
once, each in a scope of its own, and what it costs that commits tell other processes. `freshness`: what one
process writes, in the memory of another (`store_freshness`). `one_user` and `threshold`: load and rank, cold
and warm, against `narrow` and rank (`store_threshold`). `bytes_a_memory`: what the files grew by.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import machine
from benchmarks.store_copies import times_in_postgres, times_in_sqlite
from benchmarks.store_freshness import freshness
from benchmarks.store_threshold import SPEC, one_user, threshold
from benchmarks.store_users import Clock, compared, fill_all, spread
from echoic.memory.records import index
from echoic.stores import store_from
from echoic.stores.base import Put, Record
from echoic.stores.postgres import CACHE_BYTES
from echoic.types import Scope

SIZES = (2_000, 10_000, 25_000, 40_000, 50_000, 60_000, 75_000, 100_000)
ENGINES = ("sqlite", "postgresql")
PARTS = ("writers", "freshness", "one_user", "users")
WRITERS = 8
EACH = 100
"""Memories of a user."""
WAIT_S = 120
"""A busy disk may let a commit wait for longer than the store would: that is measured, and ends nothing."""
SERVER = ("max_wal_size = 8GB", "checkpoint_timeout = 15min")
"""As for a server that takes many writes: else filling it would be one checkpoint after another."""


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
        self._folder, self.url = folder, url
        self._count = 0
        self.schema, self.file = "", Path()
        """Of the newest ones."""

    def new(self, engine: str) -> str:
        self._count += 1
        if engine == "sqlite":
            self.file = self._folder / f"{self._count}.db"
            return f"sqlite:///{self.file}"
        self.schema = f"echoic_benchmark_{self._count}"
        joined = "&" if "?" in self.url else "?"
        return f"{self.url}{joined}schema={self.schema}&wait_s={WAIT_S}"

    async def bytes(self, engine: str) -> int:
        """Of the newest one of `engine`."""
        if engine == "sqlite":
            return sum(path.stat().st_size for path in self._folder.glob(f"{self.file.name}*"))
        connection = await asyncpg.connect(self.url)
        size: int = await connection.fetchval(
            "select sum(pg_total_relation_size(c.oid))::bigint from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where relkind = 'r' and nspname = $1",
            self.schema,
        )
        await connection.close()
        return size

    async def drop(self) -> None:
        """Leave nothing of any of them."""
        for path in self._folder.glob("*.db*"):
            path.unlink()
        connection = await asyncpg.connect(self.url)
        for number in range(1, self._count + 1):
            await connection.execute(f"drop schema if exists echoic_benchmark_{number} cascade")
        await connection.close()


class Run:
    """One run over both engines.

    Args:
        places: for the stores.
        server_s: processor time of the server so far; 0 where it cannot be told.
        smoke: small sizes.
    """

    def __init__(self, places: Places, server_s: Clock, *, smoke: bool) -> None:
        self._places = places
        self._clocks = {"sqlite": None, "postgresql": server_s}
        self._smoke = smoke
        self.measured: dict[str, Any] = {engine: {} for engine in ENGINES}

    async def part(self, name: str, times: list[int]) -> None:
        """Measure one of `PARTS`."""
        await getattr(self, f"_{name}")(*([times] if name == "users" else []))
        await self._places.drop()

    async def _writers(self) -> None:
        seconds = 0.5 if self._smoke else 5
        for engine in ENGINES:
            self.measured[engine]["writers"] = await writers(self._places.new(engine), seconds)
        untold = self._places.new("postgresql") + "&notify=off"
        self.measured["postgresql"]["writers_untold"] = await writers(untold, seconds)

    async def _freshness(self) -> None:
        writes = 10 if self._smoke else 300
        for engine in ENGINES:
            self.measured[engine]["freshness"] = [
                await freshness(self._places.new(engine), writes, others=others, told=engine == "postgresql")
                for others in (0, WRITERS)
            ]
            print(engine, self.measured[engine]["freshness"], file=sys.stderr, flush=True)

    async def _users(self, times: list[int]) -> None:
        users, queries = (20, 20) if self._smoke else (1000, 250)
        urls = {engine: self._places.new(engine) for engine in ENGINES}
        asked, seconds = await fill_all(urls, users, EACH, queries)
        print("filled in", seconds, file=sys.stderr, flush=True)
        for many in times:
            if many > 1:
                times_in_sqlite(self._places.file, users, many)
                await times_in_postgres(self._places.url, self._places.schema, users, many)
            found = await compared(urls, self._clocks, spread(asked, users, many))
            for engine, of in found.items():
                size = await self._places.bytes(engine)
                told = {"memories": users * many * EACH, "users": users * many, **of}
                told["bytes_a_memory"] = round(size / of["records"])
                self.measured[engine].setdefault("users", []).append(told)
                print(engine, told, file=sys.stderr, flush=True)

    async def _one_user(self) -> None:
        sizes, queries = ((500, 1000), 5) if self._smoke else (SIZES, 20)
        rows = await one_user(self._places.new("postgresql"), sizes, queries, self._clocks["postgresql"])
        self.measured["postgresql"]["one_user"] = rows
        self.measured["postgresql"]["threshold"] = threshold(rows, CACHE_BYTES)


async def measure(run: Run, url: str, parts: list[str], times: list[int], *, keep: bool) -> dict[str, Any]:
    """All of `parts`; with `keep` in the results."""
    connection = await asyncpg.connect(url)
    run.measured["server"] = await connection.fetchval("select version()")
    await connection.close()
    for part in parts:
        await run.part(part, times)
        if keep:
            machine.save("stores", _merged(run.measured))
    return run.measured


def _merged(measured: dict[str, Any]) -> dict[str, Any]:
    """`measured`, and of what was kept before those parts that it lacks."""
    path = machine.RESULTS / "stores.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    return {
        **measured,
        **{engine: {**kept.get(engine, {}), **measured[engine]} for engine in ENGINES},
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-million", action="store_true", help="100,000 memories at most")
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written to results/")
    parser.add_argument("--part", choices=PARTS, help="one part only; the others stay as they were")
    parser.add_argument("--url", help="a server of your own")
    parser.add_argument("--folder", help="where to put files and the server's data (a disk, not a RAM disk)")
    return parser.parse_args()


def main() -> None:
    args = options()
    times = [1] if args.without_million else [1, 10]
    server = None
    if args.url is None:
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
        from stores.postgres_server import PostgresServer

        server = PostgresServer(durable=True, settings=SERVER, folder=args.folder)
        server.start()
    url = args.url or f"postgresql://postgres@/postgres?host={server.folder}"
    try:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            run = Run(Places(Path(folder), url), server.cpu_s if server else lambda: 0.0, smoke=args.smoke)
            parts, keep = [args.part] if args.part else list(PARTS), not args.smoke
            measured = asyncio.run(measure(run, url, parts, times, keep=keep))
    finally:
        if server is not None:
            server.remove()
    print(measured)


if __name__ == "__main__":
    main()
