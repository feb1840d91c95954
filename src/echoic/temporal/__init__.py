"""Time as people say it: dates, ranges, "two weeks ago", time zones. Pure: no store, no clock, no search.

`spans_of_phrase` reads which time a question means, `dated` puts the date beside "tomorrow" in a statement,
`dates_in` finds dates that are named outright, and `zone_of` finds a time zone by any of its names.
"""

from __future__ import annotations

from echoic.temporal.expressions import dated, mentions_a_day
from echoic.temporal.questions import (
    NOTHING,
    ZONE_KEYS,
    NamedEvent,
    Span,
    Spans,
    may_mean_time,
    spans_of_phrase,
    zone_of,
)
from echoic.temporal.rules import NamedDate, dates_in, find_dates, spans_of

__all__ = [
    "NOTHING",
    "ZONE_KEYS",
    "NamedDate",
    "NamedEvent",
    "Span",
    "Spans",
    "dated",
    "dates_in",
    "find_dates",
    "may_mean_time",
    "mentions_a_day",
    "spans_of",
    "spans_of_phrase",
    "zone_of",
]
