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
    NotKept,
    NotOpen,
    QuotaExceeded,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    WriteConflict,
)
from echoic.factory import open  # noqa: A004 - echoic.open is the way in
from echoic.types import (
    Category,
    Consent,
    Conversation,
    Cut,
    Directives,
    EmbeddingSpec,
    Experience,
    Hit,
    Lesson,
    Memory,
    Outcome,
    Profile,
    Rank,
    Recall,
    Receipt,
    Scope,
    Turn,
)

if _typing.TYPE_CHECKING:
    from echoic import sync
    from echoic.embedding.base import Embedder
    from echoic.memory.audit import acting
    from echoic.memory.background import Jobs
    from echoic.memory.conversation import OpenConversation, Transcript
    from echoic.memory.deployment_keys import DeploymentKey, DeploymentKeys, Revocations
    from echoic.memory.experience import AgentExperience
    from echoic.memory.extraction.reconciliation import Distilled
    from echoic.memory.global_facts import GlobalFacts
    from echoic.memory.guarded_store import Quota
    from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, Recalled, ToolUsed
    from echoic.memory.items import FoundItems, Item, Items
    from echoic.memory.proposals import Proposals
    from echoic.memory.service import MemoryOptions, MemoryService
    from echoic.memory.speculation import Speculation
    from echoic.memory.tasks import ConversationPage, ListedConversation, Result, Task, TaskMessage
    from echoic.memory.user import UserMemory
    from echoic.prompt.answer import Packed
    from echoic.prompt.block import Block
    from echoic.stores.base import Store

__version__ = "0.1.0"

__all__ = [
    "AgentExperience",
    "Block",
    "CallWritten",
    "Category",
    "Consent",
    "Conversation",
    "ConversationPage",
    "Cut",
    "DeploymentKey",
    "DeploymentKeys",
    "Directives",
    "Distilled",
    "EchoicError",
    "Embedder",
    "EmbedderError",
    "EmbedderMissing",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "EmbeddingSpec",
    "Experience",
    "Extraction",
    "Failure",
    "Forgotten",
    "FoundItems",
    "GlobalFacts",
    "Hit",
    "InvalidInput",
    "Item",
    "Items",
    "Jobs",
    "Lesson",
    "ListedConversation",
    "Memory",
    "MemoryOptions",
    "MemoryService",
    "NotAllowed",
    "NotKept",
    "NotOpen",
    "OpenConversation",
    "Outcome",
    "Packed",
    "Profile",
    "Proposals",
    "Quota",
    "QuotaExceeded",
    "Rank",
    "Recall",
    "Recalled",
    "Receipt",
    "Result",
    "Revocations",
    "Scope",
    "Speculation",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "Task",
    "TaskMessage",
    "ToolUsed",
    "Transcript",
    "Turn",
    "UserMemory",
    "WriteConflict",
    "__version__",
    "acting",
    "open",
    "sync",
]

# These are imported when they are named, as in an annotation: `import echoic` stays light.
_HANDED_OUT = {
    "AgentExperience": "echoic.memory.experience",
    "Block": "echoic.prompt.block",
    "CallWritten": "echoic.memory.hooks",
    "ConversationPage": "echoic.memory.tasks",
    "DeploymentKey": "echoic.memory.deployment_keys",
    "DeploymentKeys": "echoic.memory.deployment_keys",
    "Distilled": "echoic.memory.extraction.reconciliation",
    "Embedder": "echoic.embedding.base",
    "Extraction": "echoic.memory.hooks",
    "Forgotten": "echoic.memory.hooks",
    "FoundItems": "echoic.memory.items",
    "GlobalFacts": "echoic.memory.global_facts",
    "Item": "echoic.memory.items",
    "Items": "echoic.memory.items",
    "Jobs": "echoic.memory.background",
    "ListedConversation": "echoic.memory.tasks",
    "MemoryOptions": "echoic.memory.service",
    "MemoryService": "echoic.memory.service",
    "OpenConversation": "echoic.memory.conversation",
    "Packed": "echoic.prompt.answer",
    "Proposals": "echoic.memory.proposals",
    "Quota": "echoic.memory.guarded_store",
    "Recalled": "echoic.memory.hooks",
    "Result": "echoic.memory.tasks",
    "Revocations": "echoic.memory.deployment_keys",
    "Speculation": "echoic.memory.speculation",
    "Store": "echoic.stores.base",
    "Task": "echoic.memory.tasks",
    "TaskMessage": "echoic.memory.tasks",
    "ToolUsed": "echoic.memory.hooks",
    "Transcript": "echoic.memory.conversation",
    "Failure": "echoic.memory.hooks",
    "UserMemory": "echoic.memory.user",
    "acting": "echoic.memory.audit",
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
