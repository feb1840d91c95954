"""One scope, loaded for ranking: entries, packed into segments of 32 rows, laid side by side in memory.

Stores keep segments as bytes and hand over partitions; ranking reads them. Neither knows the other.
"""

from echoic.partition.entry import ITEM, MEMORY, ROW, TURN, Entry, Flag, number_of
from echoic.partition.partition import Partition, Vocabulary
from echoic.partition.segment import SEGMENT_ROWS, Segment
from echoic.partition.tokens import AXES, MAX_BYTES, MAX_PIECES, Pieces, as_packed, checked_tokens, unpacked

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
    "number_of",
    "unpacked",
]
