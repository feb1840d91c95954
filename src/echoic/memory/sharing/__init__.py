"""The gate between a user's own memory and what all users of a deployment know. Pure: no I/O, no clock.

`weigh` decides whether a text may become global and removes telephone numbers and addresses from it. What it
cannot judge stays private.
"""

from __future__ import annotations

from echoic.memory.sharing.evidence import DEFAULT_GLOBAL_KINDS, GLOBAL_KINDS, LESSON, checked_kinds
from echoic.memory.sharing.gate import (
    MAX_FACT_CHARACTERS,
    REASONS,
    Classifier,
    Shareable,
    Verdict,
    weigh,
)

__all__ = [
    "DEFAULT_GLOBAL_KINDS",
    "GLOBAL_KINDS",
    "LESSON",
    "MAX_FACT_CHARACTERS",
    "REASONS",
    "Classifier",
    "Shareable",
    "Verdict",
    "checked_kinds",
    "weigh",
]
