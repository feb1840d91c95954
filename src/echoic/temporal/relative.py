"""Puts the date beside a day that is said relative to the day of speaking: "tomorrow", "in two weeks".

A phrase without a day of its own stays as it was said: "on Monday", past or to come, or "March 3rd", perhaps
of every year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from echoic.temporal.calendar import DAY, months_before
from echoic.temporal.rules import MONTHS_OF, latest_weekday, number

_WEEKDAY: Final = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_COUNT: Final = "[0-9]{1,2}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_PHRASE: Final = re.compile(
    rf"\b(?P<day>the day after tomorrow|the day before yesterday|today|tonight|tomorrow|yesterday"
    rf"|(?:next|last|this) (?:{_WEEKDAY})"
    rf"|in (?:{_COUNT}) (?:days?|weeks?)|(?:{_COUNT}) (?:days?|weeks?) ago)\b"
    rf"|\b(?P<week>(?:next|last|this) week(?:end)?)\b"
    rf"|\b(?P<month>(?:next|last|this) month|in (?:{_COUNT}) months?|(?:{_COUNT}) months? ago)\b"
    rf"|\b(?P<year>(?:next|last|this) year|in (?:{_COUNT}) years?|(?:{_COUNT}) years? ago)\b",
    re.IGNORECASE,
)
# "today (4 May 2026)" was resolved before; "this year's plan" is no point in time.
_SETTLED: Final = re.compile(r"\s{0,9}(?:\([^)]{0,40}(?:19|20)[0-9]{2}\)|['’]s\b)")
_DAYS_AHEAD: Final = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_UNITS_AHEAD: Final = {"last": -1, "this": 0, "next": 1}


def mentions_a_day(text: str) -> bool:
    """Whether `text` contains a phrase that `dated` would resolve."""
    return any(_open(match) for match in _PHRASE.finditer(text))


def dated(texts: Sequence[str], said_at: datetime, zone: tzinfo = UTC) -> list[str]:
    """`texts`, with the date behind every phrase that is relative to the day of speaking.

    "Flies to Rome tomorrow", said on 6 May 2026, becomes "Flies to Rome tomorrow (7 May 2026)". "Next
    Friday", said on a Wednesday, means one of two days, and both are put there.

    Args:
        texts: what will be kept.
        said_at: when it was said, aware.
        zone: the speaker's time zone.
    """
    try:
        today = said_at.astimezone(zone)
        return [_PHRASE.sub(lambda match: _shown(match, today), text) for text in texts]
    except (OverflowError, ValueError):  # said at the end of time: no calendar holds the day that is meant
        return list(texts)


def _open(match: re.Match[str]) -> bool:
    return _SETTLED.match(match.string, match.end()) is None


def _shown(match: re.Match[str], today: datetime) -> str:
    phrase = match.group()
    if not _open(match):
        return phrase
    day = _meant(phrase.lower(), today)
    if match["week"]:
        return f"{phrase} (week of {_spelled(day - day.weekday() * DAY)})"
    if match["month"]:
        return f"{phrase} ({day:%B %Y})"
    if match["year"]:
        return f"{phrase} ({day:%Y})"
    days = [_spelled(day)] + [_spelled(other) for other in _other(phrase.lower(), day, today)]
    return f"{phrase} ({' or '.join(days)})"


def _other(phrase: str, day: date, today: datetime) -> list[date]:
    """The other day that "next Friday" or "last Monday" may mean: that of the week after or before."""
    weeks = {"next": 1, "last": -1}.get(phrase.partition(" ")[0], 0)
    same_week = today.isocalendar()[:2] == day.isocalendar()[:2]
    return [day + timedelta(weeks=weeks)] if weeks and same_week else []


def _meant(phrase: str, today: datetime) -> date:
    """The day that a phrase of `_PHRASE`, in lower case, means."""
    if phrase in _DAYS_AHEAD:
        return today.date() + _DAYS_AHEAD[phrase] * DAY
    first, _, unit = phrase.rpartition(" ")
    if first in _UNITS_AHEAD and unit.endswith("day"):
        return _weekday(first, unit, today.date())
    if unit == "weekend":
        return today.date() - timedelta(days=today.weekday() - 5 - 7 * _UNITS_AHEAD[first])
    if first in _UNITS_AHEAD:
        count = _UNITS_AHEAD[first]
    elif unit == "ago":
        said, _, unit = first.rpartition(" ")
        count = -number(said)
    else:
        count = number(first.removeprefix("in "))
    unit = unit.removesuffix("s")
    if unit in MONTHS_OF:
        return months_before(today, -count * MONTHS_OF[unit]).date()
    return today.date() + count * (7 if unit == "week" else 1) * DAY


def _weekday(which: str, name: str, today: date) -> date:
    if which == "last":
        return latest_weekday(name, today, before_today=True)
    latest = latest_weekday(name, today)
    return latest if which == "this" and latest == today else latest + timedelta(weeks=1)


def _spelled(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
