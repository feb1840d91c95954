"""What a type checker knows of the blocking memory: read by mypy in `make check`, never run.

An `ignore` that nothing needs is an error there, so each one is proof that a wrong call is found.
"""

from typing import assert_type

import echoic
import echoic.sync
from echoic.blocking import BlockingUserMemory


def greet(caller: BlockingUserMemory) -> str:
    known = caller.get("user_name")
    return known.text if known else "stranger"


def call() -> None:
    with echoic.sync.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        greet(ana)
        with ana.listen() as listening:
            assert_type(listening.final("hello"), echoic.Recall)
        ana.set("user_name", 7)  # type: ignore[arg-type]


def later(memory: echoic.MemoryService) -> echoic.UserMemory:
    return memory.user("ana")
