"""Secrets: what is said and must not be stored. Finds them and puts a marker in their place.

`mask` reads one text, `mask_turn` one turn of a conversation, `mask_json` a tool's JSON. Pure: no I/O, no
clock, no model; independent of memories.
"""

from __future__ import annotations

from echoic.secrets.dialogue import CONTEXT, Said, leans_on_context, mask_turn
from echoic.secrets.labels import SECRETS
from echoic.secrets.masking import MARKER, Known, Masked, SecretSpan, mask, mask_json, mask_named, replaced
from echoic.text.spoken_numbers import is_bare

__all__ = [
    "CONTEXT",
    "MARKER",
    "SECRETS",
    "Known",
    "Masked",
    "Said",
    "SecretSpan",
    "is_bare",
    "leans_on_context",
    "mask",
    "mask_json",
    "mask_named",
    "mask_turn",
    "replaced",
]
