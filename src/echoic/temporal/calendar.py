"""A calendar at one moment in one time zone: days, weeks, seasons and holidays as intervals. Reads no text.

Weeks begin on Monday. Seasons are those of the northern hemisphere. Holidays are fixed days, and those that
follow from a rule of the Gregorian calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

DAY = timedelta(days=1)
_WEEK = 7 * DAY

PARTS: Mapping[str, tuple[time, timedelta]] = {
    "morning": (time(5), timedelta(hours=7)),
    "afternoon": (time(12), timedelta(hours=6)),
    "evening": (time(17), timedelta(hours=7)),
    "night": (time(18), timedelta(hours=10)),  # reaches into the next day, as people mean it
}
"""Parts of a day: when each begins, and how long it lasts."""
SEASONS: Mapping[str, int] = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each season of three."""


class Interval(NamedTuple):
    """A half-open interval: from `first` up to, and not including, `after`. Both are aware."""

    first: datetime
    after: datetime


class Calendar:
    """The calendar of a speaker at the moment of speaking.

    Args:
        now: the moment of speaking, aware.
        zone: the speaker's time zone.
    """

    def __init__(self, now: datetime, zone: tzinfo) -> None:
        self.zone = zone
        self.now = now.astimezone(zone)
        self.today = self.now.date()

    def days(self, first: date, count: int = 1) -> Interval:
        """`count` whole days from `first` on."""
        return Interval(self._midnight(first), self._midnight(first + count * DAY))

    def part(self, day: date, name: str) -> Interval:
        """The morning, afternoon, evening or night of `day`."""
        begins, lasts = PARTS[name]
        first = datetime.combine(day, begins)
        return Interval(self._aware(first), self._aware(first + lasts))

    def week(self, day: date) -> Interval:
        """The week around `day`."""
        return self.days(day - day.weekday() * DAY, 7)

    def weekend(self, back: int) -> Interval:
        """Friday evening to Sunday night: the latest weekend that has begun, or with `back` one before it."""
        begun = self.today - ((self.today.weekday() - 5) % 7) * DAY - back * _WEEK
        return Interval(self.part(begun - DAY, "evening").first, self._midnight(begun + 2 * DAY))

    def month(self, year: int, month: int, count: int = 1) -> Interval:
        """`count` whole months; a `month` below 1 or above 12 lies in another year."""
        ends = month + count
        return Interval(self._first_of(year, month), self._first_of(year, ends))

    def year(self, year: int) -> Interval:
        """A whole year."""
        return self.month(year, 1, 12)

    def season(self, name: str, year: int | None, back: int = 0) -> Interval:
        """The season of `year`, or the latest that has begun, or with `back` one before it.

        A winter belongs to the year it begins in.
        """
        first = SEASONS[name]
        if year is None:
            year = self.today.year if self.today.month >= first else self.today.year - 1
        return self.month(year - back, first, 3)

    def latest(self, day_in: Callable[[int], date], *, before_today: bool = False) -> date:
        """The latest day up to today (or before it) among those that `day_in` gives for each year."""
        last = self.today - DAY if before_today else self.today
        return next(day for back in range(9) if (day := day_in(self.today.year - back)) <= last)

    def _first_of(self, year: int, month: int) -> datetime:
        years, months = divmod(month - 1, 12)
        return self._midnight(date(year + years, months + 1, 1))

    def _midnight(self, day: date) -> datetime:
        return self._aware(datetime.combine(day, time()))

    def _aware(self, local: datetime) -> datetime:
        return local.replace(tzinfo=self.zone)


def easter(year: int) -> date:
    """Easter Sunday of the western churches."""
    from dateutil.easter import easter as computed

    sunday: date = computed(year)
    return sunday


def thanksgiving(year: int) -> date:
    """The fourth Thursday of November."""
    first = date(year, 11, 1)
    return first + ((3 - first.weekday()) % 7) * DAY + 3 * _WEEK


FEASTS: Mapping[str, tuple[Callable[[int], date], int]] = {
    "christmas eve": (lambda year: date(year, 12, 24), 1),
    "christmas day": (lambda year: date(year, 12, 25), 1),
    "christmas": (lambda year: date(year, 12, 24), 3),
    "boxing day": (lambda year: date(year, 12, 26), 1),
    "new year's eve": (lambda year: date(year, 12, 31), 1),
    "new year's day": (lambda year: date(year, 1, 1), 1),
    "new year's": (lambda year: date(year, 1, 1), 1),
    "new year": (lambda year: date(year, 1, 1), 1),
    "valentine's day": (lambda year: date(year, 2, 14), 1),
    "valentine's": (lambda year: date(year, 2, 14), 1),
    "st patrick's day": (lambda year: date(year, 3, 17), 1),
    "easter": (lambda year: easter(year) - 2 * DAY, 4),
    "independence day": (lambda year: date(year, 7, 4), 1),
    "halloween": (lambda year: date(year, 10, 31), 1),
    "thanksgiving": (thanksgiving, 2),
}
"""Spoken name -> its first day in a year, and how many days it lasts."""


def milliseconds(moment: datetime) -> int:
    """An aware moment as Unix time in ms."""
    return round(moment.timestamp() * 1000)


def months_before(moment: datetime, months: int) -> datetime:
    """`moment`, that many calendar months earlier; of a shorter month the last day."""
    from dateutil.relativedelta import relativedelta

    earlier: datetime = moment - relativedelta(months=months)
    return earlier
