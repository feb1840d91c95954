"""What a session starts with: what is known of a user and of serving them, as text for a model.

Quoted data in frames of ours, within a token budget, in an order that keeps providers' prompt caches hitting.
"""

from __future__ import annotations

from echoic.memory.block.maker import DEFAULT_BUDGET_TOKENS, BlockMaker
from echoic.memory.block.packing import Block, Section
from echoic.memory.block.quoting import quoted
from echoic.memory.block.sections import SECTIONS
from echoic.memory.block.tokens import estimate_tokens

__all__ = [
    "DEFAULT_BUDGET_TOKENS",
    "SECTIONS",
    "Block",
    "BlockMaker",
    "Section",
    "estimate_tokens",
    "quoted",
]
