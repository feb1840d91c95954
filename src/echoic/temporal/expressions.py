"""Finds expressions of time in a text: by the rules, and explicit dates.

An expression may be inside a larger one: "in March last year", "last week on Tuesday". "March" alone is the
latest one; beside "last year" it is that year's, so it is resolved again as at the end of that year.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from echoic.temporal.rules import (
    A_DAY,
    CLOSED,
    DAY,
    MONTHS_OF,
    Calendar,
    Interval,
    NamedDate,
    find_dates,
    latest_weekday,
    likely_rules,
    months_before,
    number,
    number_of_day,
)

_WHICH = re.compile(r"\b(?:(?P<how>last|this past|this) )?(?:(?P<third>early|mid|late)[- ])?$", re.IGNORECASE)
_THIRDS = {"early": (1, 10), "mid": (11, 10), "late": (21, 11)}
"""First day of the month, and days."""
BETWEEN = re.compile(r"\b(?:between|from) (?:the )?$", re.IGNORECASE)
"""Words that begin a range."""
_JOINT = r"(?: ?[-\u2013] ?| (?:to|until|till|through|(?P<and>and)) )(?:the )?"
_DAY_BEFORE = re.compile(rf"(?<![\w.,:/$-])(?P<day>{A_DAY}){_JOINT}$", re.IGNORECASE)
_DAY_BEHIND = re.compile(
    rf"{_JOINT}(?P<day>{A_DAY})\b(?![.:]\d)(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b|{CLOSED})", re.IGNORECASE
)
_BEGINS_WITH_DAY = re.compile(rf"{A_DAY}\b", re.IGNORECASE)
_UNIT = "week|month|year"
_FRAME = re.compile(
    rf"(?:earlier )?(?:last|past|this past|this) (?P<unit>{_UNIT})|the (?P<before>{_UNIT}) before last"
    rf"|(?:(?!(?:couple|few|several|half)\b)[\w-]{{1,12}} ){{1,4}}(?P<ago>{_UNIT})s? ago",
    re.IGNORECASE,
)
_UNFRAMED = re.compile(r"\b(?:today|tonight|this|weekend)\b", re.IGNORECASE)
"""Expressions relative to the moment of speaking only."""
_IN_FRAME = re.compile(r",? (?:of |in )?", re.IGNORECASE)
_OF_FRAME = re.compile(r"(?:['’]s)?,? (?:(?:in|on|at|over|during) )?(?:the )?", re.IGNORECASE)
_OPENED = re.compile(r",? (?:between|from|since|until|till|before|after) (?:the )?", re.IGNORECASE)
_LISTED = re.compile(
    r"(?: ?,| ?-|,? (?:and|or|to|until|till|through)) ?(?:(?:in|on) )?(?:the )?", re.IGNORECASE
)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Expression:
    interval: Interval
    start: int
    end: int
    past: bool = False
    """Whether its wording is in the past ("last May"); if not, the sentence decides ("in May")."""
    exact: bool = False
    """Whether it names its year, so that it means the same at any time."""
    loose: bool = False
    """Whether it is a date without a year, so that earlier years may be meant."""


def find_expressions(text: str, at: Calendar) -> list[Expression]:
    """Every expression in `text`, in order, without overlaps: the longer of two wins."""
    return _framed(text, _apart(text, at), at)


def _apart(text: str, at: Calendar) -> list[Expression]:
    """Each expression by itself, ignoring its neighbours."""
    found = sorted(
        [*_by_rules(text, at), *_by_dates(text, at)], key=lambda e: (e.start - e.end, e.start, not e.past)
    )
    kept: list[Expression] = []
    for one in found:
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda e: e.start)


def _by_rules(text: str, at: Calendar) -> Iterator[Expression]:
    for rule in likely_rules(text):
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
        with suppress(ValueError):  # such as the 31st of June, which does not exist
            yield _dated(named_date._replace(year=year), text, start, end, at)
        with suppress(ValueError):
            yield from _days_of_month(named_date._replace(year=year), text, start, end, at, behind=after)
        after = end


def _days_of_month(
    named: NamedDate, text: str, start: int, end: int, at: Calendar, *, behind: int
) -> Iterator[Expression]:
    """The days of "from 3 to 5 May" or "May 3 to 5", where `named` is the date with the month.

    Text before `behind` belongs to another date.
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
    """The year of the latest such day or month; with "last", of the latest one that is over."""
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
        return next(y for y in range(at.today.year, 0, -1) if isleap(y) and date(y, 2, 29) <= at.today)
    return at.latest(lambda year: date(year, month, day), before_today=how == "last").year


def _framed(text: str, found: Sequence[Expression], at: Calendar) -> list[Expression]:
    """`found`, with expressions inside a larger one resolved there: "in March last year" is one interval.

    An expression that the larger time contains several times or not at all ("on Friday last month") adds
    nothing to it.
    """
    kept = list(found)
    for place, frame in enumerate(found):
        whole = _whole(text[frame.start : frame.end], frame, at)
        if whole is None:
            continue
        inside = _before(text, found[:place], frame) or _behind(text, frame, found[place + 1 :])
        placed = [_placed(text, one, whole, at) for one in inside]
        kept = [one for one in kept if one not in inside]
        if not inside:
            continue
        kept.remove(frame)
        if None in placed:
            start, end = min(frame.start, inside[0].start), max(frame.end, inside[-1].end)
            kept.append(replace(frame, start=start, end=end))
        else:
            kept += [
                _with_frame(text, replace(one, interval=interval, past=frame.past, loose=False), frame)
                for one, interval in zip(inside, placed, strict=True)
                if interval is not None
            ]
    return sorted(kept, key=lambda one: one.start)


def _whole(said: str, frame: Expression, at: Calendar) -> Interval | None:
    """The calendar week, month or year that `frame` means, if it means one."""
    match = _FRAME.fullmatch(said)
    if match is None:
        return None
    unit = (match["unit"] or match["before"] or match["ago"]).lower()
    # what was "two years ago" reaches half a year to either side
    day = (frame.interval.first + (frame.interval.after - frame.interval.first) / 2).date()
    if unit == "week":
        return at.week(day)
    return at.month(day.year, day.month) if unit == "month" else at.year(day.year)


def _before(text: str, found: Sequence[Expression], frame: Expression) -> list[Expression]:
    """Expressions directly before `frame` that are inside it."""
    inside: list[Expression] = []
    joint, start = _IN_FRAME, frame.start
    for one in reversed(found):
        if not (_may_lie_inside(text, one) and joint.fullmatch(text[one.end : start])):
            break
        inside.insert(0, one)
        joint, start = _LISTED, one.start
    return inside


def _behind(text: str, frame: Expression, found: Sequence[Expression]) -> list[Expression]:
    """Expressions directly after `frame` that are inside it."""
    inside: list[Expression] = []
    joints, end = (_OF_FRAME, _OPENED), frame.end
    for one in found:
        between = text[end : one.start]
        if not (_may_lie_inside(text, one) and any(joint.fullmatch(between) for joint in joints)):
            break
        inside.append(one)
        joints, end = (_LISTED, _LISTED), one.end
    return inside


def _with_frame(text: str, one: Expression, frame: Expression) -> Expression:
    """`one`, extended over an adjacent `frame`; an opening word ("since") must precede both."""
    if _IN_FRAME.fullmatch(text[one.end : frame.start]):
        return replace(one, end=frame.end)
    if _OF_FRAME.fullmatch(text[frame.end : one.start]):
        return replace(one, start=frame.start)
    return one


def _may_lie_inside(text: str, one: Expression) -> bool:
    return not (one.past or one.exact or _UNFRAMED.search(text[one.start : one.end]))


def _placed(text: str, one: Expression, whole: Interval, at: Calendar) -> Interval | None:
    """What `one` means inside `whole`, if it occurs there exactly once: resolved as at the end of `whole`."""
    latest = _as_of(text, one, Calendar(whole.after - _MOMENT, at.zone))
    if latest is None or not whole.first <= latest.first < whole.after:
        return None
    day = at.days(latest.first.date()).first
    earlier = _as_of(text, one, Calendar(day - _MOMENT, at.zone))
    return latest if earlier is None or earlier.first < whole.first else None


def _as_of(text: str, one: Expression, at: Calendar) -> Interval | None:
    """The meaning of the same words at another moment."""
    again = (other for other in _apart(text, at) if (other.start, other.end) == (one.start, one.end))
    return next((other.interval for other in again), None)


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
# "A week from tomorrow", "the day after next Tuesday", "a week last Friday" and "tomorrow week" mean other
# days; "the last week" and "his last year" are stretches, and "the Today programme" is a name. "For a week
# from tomorrow" begins tomorrow. "Her" is left out: "I saw her last week". "Nights from tomorrow" begin
# then, too.
_STRETCH: Final = "days?|weeks?|fortnights?|months?|years?|weekends?|mornings?|afternoons?|evenings?|nights?"
_MANY: Final = (
    rf"the|another|few|several|couple of|dozen|hundred|[0-9]{{3,4}}|[a-z]{{3,5}}(?:teen|ty)|{_COUNT}"
)
_LASTING: Final = (
    r"(?P<lasting>\b(?:for (?:about |another |at least )?|every |each |all |this |next |last ))?"
)
_NAMED_BEFORE: Final = re.compile(r"\b(?:the|every|each)\s{1,4}$", re.IGNORECASE)
_OWNED_BEFORE: Final = re.compile(r"\b(?:my|your|his|its|our|their)\s{1,4}$", re.IGNORECASE)
_JOINED_BEFORE: Final = re.compile(
    rf"{_LASTING}\b(?:(?:{_WEEKDAY}) (?:after|before)"
    rf"|(?:{_MANY}) (?:(?:full|whole|more) )?(?:{_STRETCH}) (?:from|after|before|ago))\s{{1,4}}$",
    re.IGNORECASE,
)
_WEEKS_BEFORE: Final = re.compile(
    rf"{_LASTING}\b(?:(?:{_MANY}) (?:(?:full|whole|more) )?(?:week|fortnight|month|year)s?|week|fortnight)"
    r"(?: on)?\s{1,4}$",
    re.IGNORECASE,
)
_JOINED_BEHIND: Final = re.compile(r"\s{1,4}(?:week|fortnight)\b", re.IGNORECASE)
_COUNTED_BEHIND: Final = re.compile(
    rf" (?:or (?:so|{_COUNT})|an? (?:{_STRETCH})|(?:(?:from|after|before|on) )?(?:the day|today|tonight"
    rf"|tomorrow|yesterday|(?:(?:next|last|this) )?(?:{_WEEKDAY})|(?:next|last|this) (?:{_STRETCH})))\b",
    re.IGNORECASE,
)
_BEFORE_READ: Final = 48
"""Characters before a phrase; longer than what these patterns need."""
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
    """Whether `text` contains a phrase of those that `dated` resolves, also inside a longer one."""
    return any(_open(match) for match in _PHRASE.finditer(text))


def dated(texts: Sequence[str], said_at: datetime, zone: tzinfo = UTC) -> list[str]:
    """`texts`, with the date after every phrase that is relative to the day `said_at` (aware) in `zone`.

    A phrase inside a longer expression ("a week from tomorrow") stays without one.

    "Flies to Rome tomorrow", said on 6 May 2026, becomes "Flies to Rome tomorrow (7 May 2026)". "Next
    Friday", said on a Wednesday, means one of two days, and both are added.
    """
    try:
        today = said_at.astimezone(zone)
        return [_PHRASE.sub(lambda match: _shown(match, today), text) for text in texts]
    except (OverflowError, ValueError):  # the day meant is outside the calendar
        return list(texts)


def _open(match: re.Match[str]) -> bool:
    return _SETTLED.match(match.string, match.end()) is None


def _is_part(match: re.Match[str]) -> bool:
    """Whether a phrase is inside a longer expression, which means another time."""
    text, (start, end) = match.string, match.span()
    before = text[max(0, start - _BEFORE_READ) : start]
    phrase = match.group().lower()
    counted = phrase.startswith("in ") or phrase.endswith(" ago")
    owned = not match["day"] or phrase.startswith("last")
    joined = _JOINED_BEFORE.search(before) or (match["day"] and not counted and _WEEKS_BEFORE.search(before))
    # "two days ago on Monday" is that Monday; "two weeks ago on Monday" is not the day two weeks ago
    same_day = " day" in phrase and text[end : end + 4].lower() == " on "
    return bool(
        _NAMED_BEFORE.search(before)
        or (owned and _OWNED_BEFORE.search(before))
        or (joined and not joined["lasting"])
        or _JOINED_BEHIND.match(text, end)
        or (counted and not same_day and _COUNTED_BEHIND.match(text, end))
    )


def _shown(match: re.Match[str], today: datetime) -> str:
    phrase = match.group()
    if not _open(match) or _is_part(match):
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
    """The other day that "next Friday" or "last Monday" may mean, a week later or earlier."""
    weeks = {"next": 1, "last": -1}.get(phrase.partition(" ")[0], 0)
    same_week = today.isocalendar()[:2] == day.isocalendar()[:2]
    return [day + timedelta(weeks=weeks)] if weeks and same_week else []


def _meant(phrase: str, today: datetime) -> date:
    """The day that a lower-case phrase of `_PHRASE` means."""
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
