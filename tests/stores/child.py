"""A process of its own on a files store. Prints a line when it is ready and one for each acknowledged write.

python child.py <folder> write|in-place|count|hold|fill <number>
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from pathlib import Path

from echoic.errors import StoreFull, WriteConflict
from echoic.stores.base import Attach
from echoic.stores.files import FilesStore
from echoic.stores.files import disk as files_disk
from echoic.testing.store_histories import ANA, memory, note, opened, put, unit
from echoic.types import Scope

USERS = (ANA, Scope("default", "../bob"))


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def in_place(path: Path, data: bytes, *, overwrite_old: bool = False) -> files_disk.FileStamp | None:
    """How not to do it: truncate the file, and write it again."""
    with path.open("wb") as stream:
        for start in range(0, len(data), 64):
            stream.write(data[start : start + 64])
            stream.flush()
    return files_disk.seen(path)


async def write(folder: Path, start: int) -> None:
    """Number after number: a counter, a memory and its vector in one batch, one user after the other."""
    async with opened(FilesStore(folder)) as store:
        say("ready")
        for n in range(start, start + 100_000):
            batch = [
                put(note("count", n=n)),
                put(memory(f"m{n}", f"likes number {n}")),
                Attach(kind="memory", id=f"m{n}", version=1, vector=unit(n)),
            ]
            await store.write(USERS[n % 2], batch)
            say(n)


async def count(folder: Path, times: int) -> None:
    """Add one, again and again, against whoever else does."""
    async with opened(FilesStore(folder)) as store:
        say("ready")
        done = 0
        while done < times:
            found = await store.read(ANA, "note", ["n"])
            version, n = (found[0].version, found[0].data["n"]) if found else (0, 0)
            try:
                await store.write(ANA, [put(note("n", n=n + 1), version)])
            except WriteConflict:
                continue
            done += 1
        say("done")


async def fill(folder: Path, limit: int) -> None:
    """Write until a file may grow no more, then go on in a smaller one."""
    async with opened(FilesStore(folder)) as store:
        await store.write(ANA, [put(note("n", n=0))])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        n = 0
        try:
            while True:
                await store.write(ANA, [put(note("n", n=n + 1)), put(memory(f"m{n}", "likes tea " * 20))])
                n += 1
        except StoreFull as error:
            say("full", n, error)
        say("reads", (await store.read(ANA, "note", ["n"]))[0].data["n"])
        await store.write(USERS[1], [put(note("n", n=1))])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.write(ANA, [put(note("n", n=-1))])
        say("resumed")


def hold(folder: Path) -> None:
    """Hold a user's lock until killed."""
    with files_disk.locked(folder / "acme" / "ana.lock"):
        say("ready")
        time.sleep(600)


def main() -> None:
    folder, mode, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if mode == "hold":
        hold(folder)
    elif mode == "in-place":
        files_disk.replace = in_place  # type: ignore[assignment]
        asyncio.run(write(folder, number))
    else:
        asyncio.run({"write": write, "count": count, "fill": fill}[mode](folder, number))


if __name__ == "__main__":
    main()
