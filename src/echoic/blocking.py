"""The types of `echoic.sync`: every method of the asynchronous classes, blocking. For annotations only.

    from echoic.blocking import BlockingUserMemory

    def greet(caller: BlockingUserMemory) -> str: ...

Type checkers and editors read the stub beside this module, which `scripts/blocking.py` writes. At run time
the names are empty protocols.
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
