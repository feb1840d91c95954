"""Spoken English: from an utterance to what it says about its speaker, by rules. No language model.

`listen` is the entry point. The rules are conservative: a wrong memory is worse than none. Words, patterns
and triggers are data (`data/*.txt`); the modules define their meaning. Independent of memories, stores and
users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echoic.english.listener import listen
    from echoic.english.slots import SelfStatement

__all__ = ["SelfStatement", "listen"]


def __getattr__(name: str) -> Any:
    """The rules are loaded when they are used: a store that is only asked needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from echoic.english import listener, slots

    return getattr(listener if name == "listen" else slots, name)
