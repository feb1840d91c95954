"""A process of its own that copies, to be killed. Prints a line for each page that was written.

python copying_child.py fill <url> | copy <from> <to> | same <from> <to>
"""

from __future__ import annotations

import asyncio
import os
import sys

from echoic.stores import store_from
from echoic.stores.bulk_copy import content_of, copy_store
from echoic.testing.store_histories import ANA, attach, memory, note, opened, put
from echoic.types import Scope

KINDS = ("note",)
COUNT = 1000


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def fill(url: str) -> None:
    async with opened(store_from(url)) as store:
        for scope in (ANA, Scope("acme", None)):
            await store.write(scope, [put(memory(f"m{n}", f"likes number {n}")) for n in range(COUNT)])
            await store.write(scope, [put(note(f"n{n}", n=n)) for n in range(COUNT // 4)])
            await store.write(
                scope, [attach(r, r.seq) for r in await store.scan(scope, "memory", limit=COUNT)]
            )


async def copy(source: str, target: str) -> None:
    async with opened(store_from(source)) as ours, opened(store_from(target)) as theirs:
        before = sum([(await content_of(theirs, at, KINDS)).records for at in await theirs.scopes()])
        # only pages beyond what was there already are told, for whoever counts them to kill this
        done = await copy_store(
            ours, theirs, KINDS, vectors=True, progress=lambda n, _: say(n) if n > before else None
        )
    say("new", done.new)


async def same(source: str, target: str) -> None:
    async with opened(store_from(source)) as ours, opened(store_from(target)) as theirs:
        assert await ours.scopes() == await theirs.scopes()
        for at in await ours.scopes():
            assert await content_of(ours, at, KINDS) == await content_of(theirs, at, KINDS)


if __name__ == "__main__":
    asyncio.run({"fill": fill, "copy": copy, "same": same}[sys.argv[1]](*sys.argv[2:]))
    say("done")
