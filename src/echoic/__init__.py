"""Memory for voice agents: it lasts across calls, answers inside a pause, and can be trusted.

async with echoic.open("sqlite:///echoic.db") as memory:
    ana = memory.user("ana")
    await ana.set("user_name", "Ana")
    hits = await ana.query("what's my name?")
"""

import typing as _typing

from echoic.errors import (
    EchoicError,
    EmbedderError,
    EmbedderMissing,
    EmbedderUnavailable,
    EmbeddingMismatch,
    InvalidInput,
    NotAllowed,
    NotOpen,
    QuotaExceeded,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    WriteConflict,
)
from echoic.opening import open  # noqa: A004 - echoic.open is the way in
from echoic.types import Conversation, Hit, Memory, Rank, Recall, Receipt, Scope, Turn

if _typing.TYPE_CHECKING:
    from echoic import sync
    from echoic.memory.conversation import OpenConversation
    from echoic.memory.quota import Quota
    from echoic.memory.service import MemoryService
    from echoic.memory.user import UserMemory

__version__ = "0.1.0"

__all__ = [
    "Conversation",
    "EchoicError",
    "EmbedderError",
    "EmbedderMissing",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "Hit",
    "InvalidInput",
    "Memory",
    "MemoryService",
    "NotAllowed",
    "NotOpen",
    "OpenConversation",
    "Quota",
    "QuotaExceeded",
    "Rank",
    "Recall",
    "Receipt",
    "Scope",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "Turn",
    "UserMemory",
    "WriteConflict",
    "__version__",
    "open",
    "sync",
]

# What is only handed out is imported when it is named, as for an annotation: it would slow the import down.
_HANDED_OUT = {
    "MemoryService": "echoic.memory.service",
    "OpenConversation": "echoic.memory.conversation",
    "Quota": "echoic.memory.quota",
    "UserMemory": "echoic.memory.user",
}


def __getattr__(name: str) -> _typing.Any:
    from importlib import import_module

    if name == "sync":  # a module, which most programs do not use
        return import_module("echoic.sync")
    if name in _HANDED_OUT:
        return getattr(import_module(_HANDED_OUT[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
