"""What `echoic.sync` hands out, as types: every verb of the asynchronous classes, blocking.

    from echoic.blocking import BlockingUserMemory

    def greet(caller: BlockingUserMemory) -> str: ...

Type checkers and editors read the stub beside this module, which `scripts/blocking.py` writes. When a program
runs, the names stand for empty protocols: they are for annotations alone.
"""

from functools import cache
from types import new_class
from typing import Protocol


@cache
def __getattr__(name: str) -> type:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return new_class(name, (Protocol,))  # type: ignore[arg-type]


__all__ = [  # noqa: F822 - made when they are asked for
    "BlockingAgentExperience",
    "BlockingDeploymentKeys",
    "BlockingEmbedder",
    "BlockingGlobalFacts",
    "BlockingItems",
    "BlockingMemoryService",
    "BlockingOpenConversation",
    "BlockingProposals",
    "BlockingRevocations",
    "BlockingSpeculation",
    "BlockingStore",
    "BlockingUserMemory",
]
