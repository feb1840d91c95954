"""Days said as seen from the day of speaking ("tomorrow", "in two weeks"), with the day they mean put beside.

Only phrases that a strict expression found reach the date parser: on free text it reads "We" as Wednesday.
What has no day of its own stays as it was said: "on Monday", past or to come, or "March 3rd", perhaps of
every year.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_WEEKDAY: Final = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_NUMBER: Final = "[0-9]{1,2}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_PHRASE: Final = re.compile(
    rf"\b(?P<day>the day after tomorrow|the day before yesterday|today|tonight|tomorrow|yesterday"
    rf"|(?:next|last|this) (?:{_WEEKDAY})"
    rf"|in (?:{_NUMBER}) (?:days?|weeks?)|(?:{_NUMBER}) (?:days?|weeks?) ago)\b"
    rf"|\b(?P<week>(?:next|last|this) week(?:end)?)\b"
    rf"|\b(?P<month>(?:next|last|this) month|in (?:{_NUMBER}) months?|(?:{_NUMBER}) months? ago)\b"
    rf"|\b(?P<year>(?:next|last|this) year|in (?:{_NUMBER}) years?|(?:{_NUMBER}) years? ago)\b",
    re.IGNORECASE,
)
# "today (4 May 2026)" was resolved before; "this year's plan" is no point in time.
_SETTLED: Final = re.compile(r"\s*(?:\([^)]*(?:19|20)[0-9]{2}\)|['’]s\b)")
_PAST: Final = ("last ", "the day before")


def mentions_a_day(text: str) -> bool:
    """Whether `text` holds a phrase that `dated` would look at. Costs microseconds."""
    return any(_open(match) for match in _PHRASE.finditer(text))


async def dated(texts: Sequence[str], said_at: datetime, zone: tzinfo = UTC) -> list[str]:
    """`texts`, each with the day meant behind every phrase that counts from the day of speaking.

    "Flies to Rome tomorrow", said on 6 May 2026, becomes "Flies to Rome tomorrow (7 May 2026)". "Next
    Friday", said on a Wednesday, means one of two days, and both are put there.

    Args:
        texts: what will be kept.
        said_at: when it was said, aware.
        zone: where the speaker's days begin and end.
    """
    if not any(map(mentions_a_day, texts)):
        return list(texts)
    # the parser reads its tables on first use, and takes milliseconds for some phrases
    return await asyncio.to_thread(_all_dated, texts, said_at, zone)


def _all_dated(texts: Sequence[str], said_at: datetime, zone: tzinfo) -> list[str]:
    try:
        there = said_at.astimezone(zone)
        return [_PHRASE.sub(lambda match: _shown(match, there), text) for text in texts]
    except OverflowError:  # said at the end of time: no calendar holds the day that is meant
        return list(texts)


def _open(match: re.Match[str]) -> bool:
    return _SETTLED.match(match.string, match.end()) is None


def _shown(match: re.Match[str], said_at: datetime) -> str:
    phrase = match.group()
    moment = _moment(phrase.lower(), said_at) if _open(match) else None
    if moment is None:
        return phrase
    if match["week"]:
        return f"{phrase} (week of {_day(moment - timedelta(days=moment.weekday()))})"
    if match["month"]:
        return f"{phrase} ({moment:%B %Y})"
    if match["year"]:
        return f"{phrase} ({moment:%Y})"
    days = [_day(moment)] + [_day(other) for other in _other(phrase.lower(), moment, said_at)]
    return f"{phrase} ({' or '.join(days)})"


def _other(phrase: str, moment: datetime, said_at: datetime) -> list[datetime]:
    """The other day that "next Friday" or "last Monday" may mean: that of the week after or before."""
    weeks = {"next": 1, "last": -1}.get(phrase.partition(" ")[0], 0)
    same_week = said_at.date().isocalendar()[:2] == moment.date().isocalendar()[:2]
    return [moment + timedelta(weeks=weeks)] if weeks and same_week else []


def _moment(phrase: str, said_at: datetime) -> datetime | None:
    import dateparser

    if phrase.startswith("this ") and not phrase.endswith(("day", "end")):
        return said_at  # this week, month or year
    if phrase.endswith("weekend"):
        weeks = {"last": -1, "this": 0, "next": 1}[phrase.partition(" ")[0]]
        return said_at - timedelta(days=said_at.weekday() - 5 - 7 * weeks)
    settings = {
        "RELATIVE_BASE": said_at.replace(tzinfo=None),
        "PREFER_DATES_FROM": "past" if phrase.startswith(_PAST) else "future",
    }
    found: datetime | None = dateparser.parse(
        phrase.removeprefix("the "), languages=["en"], settings=settings
    )
    return found


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


__all__ = ["dated", "mentions_a_day"]
