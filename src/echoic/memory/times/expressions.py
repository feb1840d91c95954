"""Finds expressions of time in a text: by the rules, and dates that are named in so many words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date

from echoic.memory.times.calendar import Calendar, Interval
from echoic.memory.times.frames import Expression, framed
from echoic.memory.times.rules import CLOSED, RULES, Rule
from echoic.ranking.dates import A_DAY, NamedDate, find_dates, number_of_day

_WHICH = re.compile(r"\b(?:(?P<how>last|this past|this) )?(?:(?P<third>early|mid|late)[- ])?$", re.IGNORECASE)
_THIRDS = {"early": (1, 10), "mid": (11, 10), "late": (21, 11)}
"""First day of the month, and days."""
BETWEEN = re.compile(r"\b(?:between|from) (?:the )?$", re.IGNORECASE)
"""What opens a range."""
_JOINT = r"(?: ?[-\u2013] ?| (?:to|until|till|through|(?P<and>and)) )(?:the )?"
_DAY_BEFORE = re.compile(rf"(?<![\w.,:/$-])(?P<day>{A_DAY}){_JOINT}$", re.IGNORECASE)
_DAY_BEHIND = re.compile(
    rf"{_JOINT}(?P<day>{A_DAY})\b(?![.:]\d)(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b|{CLOSED})",
    re.IGNORECASE,
)
_BEGINS_WITH_DAY = re.compile(rf"{A_DAY}\b", re.IGNORECASE)


def find_expressions(text: str, at: Calendar) -> list[Expression]:
    """Every expression in `text`, in order and apart; of two that overlap, the longer."""
    return framed(text, _apart(text, at), at, lambda then: _apart(text, then))


def _apart(text: str, at: Calendar) -> list[Expression]:
    """Each by itself, whatever stands beside it."""
    found = sorted(
        [*_by_rules(text, at), *_by_dates(text, at)], key=lambda e: (e.start - e.end, e.start, not e.past)
    )
    kept: list[Expression] = []
    for one in found:
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda e: e.start)


def may_hold_time(text: str) -> bool:
    """Whether `text` holds what `find_expressions` could find. No parser is asked."""
    return any(rule.pattern.search(text) for rule in _likely(text)) or bool(find_dates(text))


def _likely(text: str) -> Iterator[Rule]:
    """The rules worth trying: to try all takes three times as long."""
    folded = text.casefold()
    return (rule for rule in RULES if rule.may_match(folded))


def _by_rules(text: str, at: Calendar) -> Iterator[Expression]:
    for rule in _likely(text):
        for said in rule.pattern.finditer(text):
            with suppress(OverflowError, ValueError):  # "200 decades ago" lies before any calendar
                interval = rule.meaning(said, at)
                if interval is not None:
                    exact = bool(said.groupdict().get("year"))
                    yield Expression(interval, *said.span("core"), past=rule.past, exact=exact)


def _by_dates(text: str, at: Calendar) -> Iterator[Expression]:
    named = find_dates(text)
    years = [named_date.year for named_date, _, _ in named if named_date.year is not None]
    after = 0
    for named_date, start, end in named:
        # "May or June 2023": a year counts for all
        year = named_date.year or (years[-1] if years else None)
        with suppress(ValueError):  # such as the 31st of June: there is no such day
            yield _dated(named_date._replace(year=year), text, start, end, at)
        with suppress(ValueError):
            yield from _days_of_month(named_date._replace(year=year), text, start, end, at, behind=after)
        after = end


def _days_of_month(
    named: NamedDate, text: str, start: int, end: int, at: Calendar, *, behind: int
) -> Iterator[Expression]:
    """All days of "from 3 to 5 May" or "May 3 to 5", where `named` is the one that says the month.

    What lies before `behind` belongs to another date.
    """
    if named.day is None:
        return
    if _BEGINS_WITH_DAY.match(text, start) and (said := _DAY_BEFORE.search(text, behind, start)):
        start, first, last = said.start("day"), number_of_day(said["day"]), named.day
    elif said := _DAY_BEHIND.match(text, end):
        end, first, last = said.end(), named.day, number_of_day(said["day"])
        named = named._replace(year=int(said["year"])) if said["year"] else named
    else:
        return
    # "on 3 and 5 May" is two days, and "from 9 to 5 May" begins at something else
    opened = BETWEEN.search(text[:start])
    if first < last and (opened or not said["and"]):
        one = _dated(named._replace(day=first), text, start, end, at)
        begins = one.interval.first
        interval = Interval(begins, at.days(begins.date().replace(day=last)).after)
        yield replace(one, interval=interval, start=opened.start() if opened else one.start)


def _dated(named: NamedDate, text: str, start: int, end: int, at: Calendar) -> Expression:
    said = _WHICH.search(text[:start])
    how, third = ((said[name] or "").lower() for name in ("how", "third")) if said else ("", "")
    year = named.year or _year_of(named, how, at)
    if named.month is None:
        interval = at.year(year)
    elif named.day is not None:
        interval = at.days(date(year, named.month, named.day))
    elif third:
        first, days = _THIRDS[third]
        interval = at.days(date(year, named.month, first), days)
    else:
        interval = at.month(year, named.month)
    return Expression(
        interval,
        said.start() if said and (how or third) else start,
        end,
        past=how in {"last", "this past"},
        exact=named.year is not None,
        loose=named.year is None and not how,
    )


def _year_of(named: NamedDate, how: str, at: Calendar) -> int:
    """The year of the latest such day or month; with "last", of one that is not going on."""
    assert named.month is not None
    month = named.month
    if how == "this":
        return at.today.year
    if named.day is None:
        first = at.latest(lambda year: date(year, month, 1))
        goes_on = (first.year, first.month) == (at.today.year, at.today.month)
        return first.year - (how == "last" and goes_on)
    day = named.day
    if (month, day) == (2, 29):  # not every year has it
        return next(y for y in range(at.today.year, 0, -1) if _is_leap(y) and date(y, 2, 29) <= at.today)
    return at.latest(lambda year: date(year, month, day), before_today=how == "last").year


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


__all__ = ["BETWEEN", "Expression", "find_expressions", "may_hold_time"]
