"""Memory for voice agents: it lasts across calls, answers inside a pause, and can be trusted.

async with echoic.open("sqlite:///echoic.db") as memory:
    ana = memory.user("ana")
    await ana.set("user_name", "Ana")
    hits = await ana.query("what's my name?")
"""

from echoic.errors import (
    EchoicError,
    EmbedderError,
    EmbedderMissing,
    EmbedderUnavailable,
    EmbeddingMismatch,
    InvalidInput,
    NotAllowed,
    NotOpen,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    WriteConflict,
)
from echoic.opening import open  # noqa: A004 - echoic.open is the way in
from echoic.types import Conversation, Hit, Memory, Rank, Recall, Receipt, Scope, Turn

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
    "NotAllowed",
    "NotOpen",
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
    "WriteConflict",
    "__version__",
    "open",
]
