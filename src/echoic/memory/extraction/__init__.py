"""Extraction: how what was said becomes changes to what is known.

`reconciliation` defines the `Extractor` seam and decides which proposed changes take effect. `rule_reader`
has the extractor by rules, `sentence_extractor` the one that uses the local encoder. `rule_reader` and
`model_reader` decide which turns are read when.
"""

from __future__ import annotations

from echoic.memory.extraction.reconciliation import (
    Add,
    Change,
    Confirm,
    Doubt,
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
    "Doubt",
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
