"""When something happened that a question goes by ("before the move"): from what was found of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from echoic.memory.times.calendar import Calendar, milliseconds
from echoic.memory.times.phrases import EARLIEST_MS, Event
from echoic.ranking.query import Span
from echoic.types import Hit
from echoic.words import content_words

LOOKED_AT = 5
"""Hits among which the event must be clear."""
AGREE_WITHIN = timedelta(days=31)
"""How far apart the hits that speak of the event may lie; further apart, it is not clear which is meant."""
_SAID_SHARE = 2 / 3


def moment_of(event: Event, hits: Sequence[Hit]) -> datetime | None:
    """When the event was spoken of, or held; None where that is not clear.

    Clear: at least one of the first hits says two thirds of the event's words, and all that do lie within a
    month. The best of them counts.

    Args:
        event: what is asked about.
        hits: of a search for the event's words, best first.
    """
    asked = {word.stem for word in content_words(event.text)}
    speaking = [
        _said_at(hit)
        for hit in hits[:LOOKED_AT]
        if len(asked & {word.stem for word in content_words(_words_of(hit))}) >= _SAID_SHARE * len(asked)
    ]
    if not speaking or max(speaking) - min(speaking) > AGREE_WITHIN:
        return None
    return speaking[0]


def span_around(event: Event, moment: datetime, now: datetime, zone: tzinfo) -> Span | None:
    """The time that "before", "after", "since" or "until" means of an event at `moment`.

    To the day: what was said on the day of the event belongs to either side. None: it lies ahead.
    """
    at = Calendar(moment, zone)
    day = at.days(at.today)
    if event.relation in {"before", "until"}:
        return EARLIEST_MS, milliseconds(day.first if event.relation == "before" else day.after) - 1
    first, last = milliseconds(day.first), milliseconds(now)
    return (first, last) if first <= last else None


def _said_at(hit: Hit) -> datetime:
    assert hit.memory or hit.turn
    return hit.memory.valid_from if hit.memory else hit.turn.said_at  # type: ignore[union-attr]


def _words_of(hit: Hit) -> str:
    memory, said = hit.memory, hit.turn.heard_text if hit.turn else ""
    told = f"{memory.key or ''} {memory.statement or ''} {hit.text}".replace("_", " ") if memory else ""
    return f"{told} {said}"


__all__ = ["AGREE_WITHIN", "LOOKED_AT", "moment_of", "span_around"]
