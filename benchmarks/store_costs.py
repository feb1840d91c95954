"""What PostgreSQL costs: bytes of a memory, processor time of an operation, how callers spread over shards.

    python -m benchmarks.store_costs

Starts a server as the tests do, on this machine, on a Unix socket, with fsync. Processor time is what
compares on a machine that does other things as well. The data is that of `benchmarks.speed`, with word pieces
of 2 KB.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import machine
from benchmarks.speed import NOW, Data
from benchmarks.store_simulation import Callers, simulated
from benchmarks.store_threshold import SPEC
from echoic.memory.records import index, record_of_memory
from echoic.stores import store_from
from echoic.stores.base import Attach, Drop, Put, Record
from echoic.stores.postgres.schema import TABLES
from echoic.types import Memory, Scope

PIECES = bytes(range(250)) * 8
SCHEMA = "costs"


def _records(texts: list[str]) -> list[Record]:
    return [
        record_of_memory(Memory(id=f"m{n:028d}", text=text, valid_from=NOW, author="u"))
        for n, text in enumerate(texts)
    ]


def _attach(record: Record, vector: Any) -> Attach:
    return Attach(kind=record.kind, id=record.id, version=1, vector=vector, tokens=PIECES)


async def bytes_a_memory(url: str, count: int, each: int = 100) -> dict[str, Any]:
    """By table, as calls write them and after the tables were rewritten; and what goes into the log."""
    data, store = Data(3), store_from(url)
    await store.open(SPEC, index)
    for n in range(count):
        texts, vectors = data.memories(each)
        records, scope = _records(texts), Scope("bench", f"user {n}")
        for at in range(0, each, 10):
            await store.write(scope, [Put(record=record) for record in records[at : at + 10]])
        for at in range(0, each, 32):
            await store.write(
                scope, [_attach(r, vectors[at + i]) for i, r in enumerate(records[at : at + 32])]
            )
    connection = await asyncpg.connect(url.partition("&schema")[0])
    found: dict[str, Any] = {"memories": count * each, "as_written": await _sizes(connection, count * each)}
    found["loaded"] = round((await store.load(Scope("bench", "user 0"))).nbytes / each)
    for name, change in (
        ("log_a_write", lambda n: Put(record=records[n])),
        ("log_an_attach", lambda n: _attach(records[n], vectors[n])),
    ):
        before = await connection.fetchval("select pg_current_wal_lsn()::text")
        for n in range(each):
            await store.write(Scope("bench", "another"), [change(n)])
        sql = "select pg_current_wal_lsn() - $1::text::pg_lsn"
        found[name] = round(float(await connection.fetchval(sql, before)) / each)
    await store.aclose()
    for table in TABLES:
        await connection.execute(f"vacuum full {SCHEMA}.{table}")
    found["rewritten"] = await _sizes(connection, count * each)
    await connection.close()
    return found


async def _sizes(connection: asyncpg.Connection, memories: int) -> dict[str, int]:
    sql = "select pg_total_relation_size($1::text::regclass)"
    return {table: round(await connection.fetchval(sql, f"{SCHEMA}.{table}") / memories) for table in TABLES}


async def operations(url: str, server_s: Callable[[], float], times: int) -> dict[str, Any]:
    """Milliseconds of processor time, of the server and of the client."""
    data, store = Data(5), store_from(url)
    await store.open(SPEC, index)
    texts, vectors = data.memories(2 * times)
    records = _records(texts)
    found: dict[str, Any] = {}

    def whose(n: int) -> Scope:
        return Scope("costs", f"user {n % 10}")

    async def measured(name: str, count: int, ask: Callable[[int], Awaitable[object]]) -> None:
        server, client = server_s(), time.process_time()
        for n in range(count):
            await ask(n)
        found[name] = {
            "server_ms": round(1000 * (server_s() - server) / count, 3),
            "client_ms": round(1000 * (time.process_time() - client) / count, 3),
        }

    async def first_load(n: int) -> None:
        store._fresh.clear()
        await store.load(whose(n))

    async def write_ten(n: int) -> None:
        at = times + 10 * n
        await store.write(Scope("costs", "ten"), [Put(record=record) for record in records[at : at + 10]])

    await measured("write one", times, lambda n: store.write(whose(n), [Put(record=records[n])]))
    await measured("write ten", times // 10, write_ten)
    await measured("attach one", times, lambda n: store.write(whose(n), [_attach(records[n], vectors[n])]))
    await measured(f"first load of {times // 10}", times // 4, first_load)
    await measured("load, nothing new", times, lambda _: store.load(whose(times // 4 - 1)))
    await measured("rows, ten", times, lambda n: store.rows(whose(n), range(10)))
    await measured(
        "erase one, with vacuum", 20, lambda n: store.erase(whose(n), [Drop(kind="memory", id=records[n].id)])
    )
    await store.aclose()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small sizes, nothing written to results/")
    args = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from stores.postgres_server import PostgresServer

    server = PostgresServer(durable=True)
    server.start()
    try:
        url = server.url(SCHEMA)
        measured = {
            "bytes": asyncio.run(bytes_a_memory(url, 3 if args.smoke else 150)),
            "operations": asyncio.run(operations(url, server.cpu_s, 100 if args.smoke else 1000)),
        }
    finally:
        server.remove()
    measured["simulated"] = simulated(Callers(count=100_000 if args.smoke else 10_000_000))
    print(measured if args.smoke else machine.save("store_costs", measured))


if __name__ == "__main__":
    main()
