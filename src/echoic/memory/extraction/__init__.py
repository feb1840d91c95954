"""How what was said becomes changes to what is known: what extractors are, and what becomes of it.

`reconciliation` has the seam, and decides which of the proposed changes take effect. `rule_reader` has the
extractor that needs nothing, `sentence_extractor` the one that needs the local encoder. Who reads which turns
when is `rule_reader` and `model_reader`.
"""

from __future__ import annotations

from echoic.memory.extraction.reconciliation import (
    Add,
    Change,
    Confirm,
    Extractor,
    Fact,
    Reading,
    Retract,
    Summarizer,
    Supersede,
    TakeBack,
    Unlearn,
    Unusable,
)

__all__ = [
    "Add",
    "Change",
    "Confirm",
    "Extractor",
    "Fact",
    "Reading",
    "Retract",
    "Summarizer",
    "Supersede",
    "TakeBack",
    "Unlearn",
    "Unusable",
]
