"""The order of hits: how records are indexed, how questions are read, and which rows answer them best.

Pure: no store, no clock, no await. Start reading at `rank`.
"""

from echoic.ranking.fusion import FUSIONS
from echoic.ranking.indexing import entry_of_memory, entry_of_turn
from echoic.ranking.query import Query, query_of
from echoic.ranking.rank import FLOOR, LEXICAL_FLOOR, RankedRow, rank
from echoic.temporal import Span

__all__ = [
    "FLOOR",
    "FUSIONS",
    "LEXICAL_FLOOR",
    "Query",
    "RankedRow",
    "Span",
    "entry_of_memory",
    "entry_of_turn",
    "query_of",
    "rank",
]
