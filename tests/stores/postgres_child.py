"""A process of its own on a PostgreSQL store. Prints a line when it is ready and one for each acknowledged write.

python postgres_child.py <url> write|count|echo|serve|work <number> [<name>]
"""

from __future__ import annotations

import asyncio
import os
import sys

from echoic.embedding import LexicalEmbedder
from echoic.errors import WriteConflict
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Store
from echoic.testing.store_histories import ANA, attached, memory, note, opened, put, unit
from echoic.types import Scope, Turn

SHARED = Scope("acme", "everybody's counter")


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def write(store: Store, start: int, name: str) -> None:
    """Number after number: a counter, a memory and its vector in one batch, until killed."""
    scope = Scope("acme", name)
    for n in range(start, start + 1_000_000):
        await store.write(
            scope,
            [
                put(note("count", n=n)),
                put(memory(f"m{n}", f"likes number {n}")),
                attached("memory", f"m{n}", 1, unit(n)),
            ],
        )
        say(n)


async def count(store: Store, times: int, name: str) -> None:
    """Add one, again and again, against whoever else does; each time with a memory that says who and when."""
    done = 0
    while done < times:
        found = await store.read(SHARED, "note", ["n"])
        version, n = (found[0].version, found[0].data["n"]) if found else (0, 0)
        try:
            await store.write(
                SHARED,
                [put(note("n", n=n + 1), version), put(memory(f"{name} {done}", f"made it {n + 1}"), 0)],
            )
        except WriteConflict:
            continue
        done += 1
        say(n + 1)
    say("done")


async def echo(store: Store, _number: int, _name: str) -> None:
    """For each line a write of that text and of its vector; the line comes back when it was acknowledged."""
    loop = asyncio.get_running_loop()
    while text := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        records = await store.scan(ANA, "memory")
        await store.write(ANA, [put(memory("said", text)), put(memory(f"m{len(records)}", text))])
        say(text)


async def serve(url: str, turns: int, user: str) -> None:
    """A server in a call: turn after turn is appended, each says another name."""
    async with MemoryService(store_from(url), LexicalEmbedder(64)) as memory:
        call = await memory.user(user).conversation(f"call of {user}")
        say("ready")
        for n in range(turns):
            await call.append(Turn(speaker="user", text=f"My name is {name_of(n)}", id=str(n)))
            say(n)
        say("done")


async def work(url: str) -> None:
    """A worker: learns from whatever was said, until killed."""
    async with MemoryService(store_from(url), LexicalEmbedder(64)) as memory:
        say("ready")
        while True:
            await memory.distil()


def name_of(n: int) -> str:
    """A first name that nobody has."""
    return f"Pavel{chr(97 + n // 26)}{chr(97 + n % 26)}"


async def main() -> None:
    if sys.argv[2] == "serve":
        return await serve(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    if sys.argv[2] == "work":
        return await work(sys.argv[1])
    url, mode, number, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), (sys.argv[4:] or ["ana"])[0]
    async with opened(store_from(url)) as store:
        say("ready")
        await {"write": write, "count": count, "echo": echo}[mode](store, number, name)
    return None


if __name__ == "__main__":
    asyncio.run(main())
