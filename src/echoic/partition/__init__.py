"""One scope, loaded for ranking: entries, packed into segments of 32 rows, laid side by side in memory.

Stores keep segments as bytes and hand over partitions; ranking reads them. Neither knows the other.
"""

from echoic.partition.partition import (
    AXES,
    MAX_BYTES,
    MAX_PIECES,
    Partition,
    Pieces,
    Vocabulary,
    as_packed,
    checked_tokens,
    unpacked,
)
from echoic.partition.segment import (
    ITEM,
    MEMORY,
    ROW,
    SEGMENT_ROWS,
    TURN,
    Entry,
    Flag,
    Segment,
    distinct,
    number_of,
)

__all__ = [
    "AXES",
    "ITEM",
    "MAX_BYTES",
    "MAX_PIECES",
    "MEMORY",
    "ROW",
    "SEGMENT_ROWS",
    "TURN",
    "Entry",
    "Flag",
    "Partition",
    "Pieces",
    "Segment",
    "Vocabulary",
    "as_packed",
    "checked_tokens",
    "distinct",
    "number_of",
    "unpacked",
]
