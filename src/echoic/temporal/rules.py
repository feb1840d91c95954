"""Patterns of spoken time, each with the interval it means on a calendar, and explicit dates.

The patterns are strict: a general date parser reads "We" as Wednesday and "the sun" as Sunday. Weeks begin on
Monday. Seasons are those of the northern hemisphere. Holidays are fixed days, or follow from a rule of the
Gregorian calendar. An explicit date ("8 May 2023", "the third of June", "in 2019") needs no clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from math import ceil
from typing import NamedTuple

DAY_MS = 86_400_000
_MAX_YEARS = 200  # of rows, in which a month without a year is tried

_MONTHS = "january february march april may june july august september october november december".split()
MONTHS = tuple(name.capitalize() for name in _MONTHS)
_ABBREVIATED = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBER_OF_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)} | _ABBREVIATED
_UNITS = "first second third fourth fifth sixth seventh eighth ninth".split()
ORDINALS = {word: number for number, word in enumerate(_UNITS, 1)}
ORDINALS |= {
    word: number
    for number, word in enumerate(
        "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
        " twentieth".split(),
        10,
    )
}
ORDINALS |= {f"twenty{joint}{unit}": 20 + n for joint in "- " for n, unit in enumerate(_UNITS, 1)}
ORDINALS |= {"thirtieth": 30, "thirty-first": 31, "thirty first": 31}

_ANY_MONTH = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
A_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(sorted(ORDINALS, key=len, reverse=True))})"
"""Pattern of a day of the month: "8", "8th", "eighth"."""
_YEAR = r"(?:19|20)\d\d"
_NAMED = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d?-\d\d?)\b"
    rf"|\b(?P<day>{A_DAY})(?: of)? (?P<month>{_ANY_MONTH})\b\.?(?:,? (?:of )?(?P<year>{_YEAR})\b)?"
    rf"|\b(?P<month2>{_ANY_MONTH})\b\.? (?:the )?(?P<day2>{A_DAY})\b(?:,? (?:of )?(?P<year2>{_YEAR})\b)?"
    rf"|\b(?P<month3>{_ANY_MONTH})\b\.?(?:,? (?:of )?(?P<year3>{_YEAR})\b)?"
    rf"|\b(?P<year4>{_YEAR})\b",
    re.IGNORECASE,
)
# Every date contains one of these: searching for them is much faster than the pattern.
_NEEDED = (*dict.fromkeys(name[:3] for name in _MONTHS), "19", "20")
_BEFORE_A_MONTH = re.compile(
    r"\b(?:in|of|since|until|till|by|during|before|after|last|this|next|early|late|mid) $"
)
_READ_BEFORE = 12  # characters before a month; longer than any of these


class NamedDate(NamedTuple):
    """A day, month or year; None for what was not said."""

    year: int | None
    month: int | None = None
    day: int | None = None


def find_dates(text: str) -> list[tuple[NamedDate, int, int]]:
    """Each date that `text` names, with its start and end."""
    folded = text.casefold()
    if not any(piece in folded for piece in _NEEDED):
        return []
    said = ((_date_of(match), *match.span()) for match in _NAMED.finditer(text))
    return [(date, first, after) for date, first, after in said if date is not None]


def dates_in(text: str) -> tuple[NamedDate, ...]:
    """The dates that `text` names. A year applies to all months said without one ("May or June 2023")."""
    found = list(dict.fromkeys(date for date, _, _ in find_dates(text)))
    years: list[int | None] = list(dict.fromkeys(date.year for date in found if date.year is not None))
    if any(date.month for date in found):
        found = [
            date._replace(year=year)
            for date in found
            if date.month
            for year in ([date.year] if date.year is not None else years or [None])
        ]
    return tuple(dict.fromkeys(found))


def spans_of(dates: Iterable[NamedDate], years: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """First and last millisecond (Unix, UTC) of each date; of one without a year, in each of `years`.

    Of `years` the last 200 count.
    """
    found = []
    for named in dates:
        for year in [named.year] if named.year is not None else years[-_MAX_YEARS:]:
            first, after = _bounds(year, named.month, named.day)
            found.append((milliseconds(first), milliseconds(after) - 1))
    return tuple(found)


def _bounds(year: int, month: int | None, day: int | None) -> tuple[datetime, datetime]:
    if month is None:
        return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    if day is not None:
        try:
            first = datetime(year, month, day, tzinfo=UTC)
        except ValueError:  # "31 June" was said: the month is what can be looked for
            pass
        else:
            return first, first + timedelta(days=1)
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _date_of(match: re.Match[str]) -> NamedDate | None:
    if match["iso"]:
        year, month, day = map(int, match["iso"].split("-"))
        return NamedDate(year, month, day) if 1 <= month <= 12 else NamedDate(year)
    name = _first(match, "month", "month2", "month3").lower()
    said_year = _first(match, "year", "year2", "year3", "year4")
    said_day = _first(match, "day", "day2")
    if not name:
        return NamedDate(int(said_year))
    if match["month3"] and not said_year and not _means_a_month(match):
        return None
    return NamedDate(
        int(said_year) if said_year else None,
        _NUMBER_OF_MONTH[name],
        number_of_day(said_day) if said_day else None,
    )


def _first(match: re.Match[str], *groups: str) -> str:
    return next((said for group in groups if (said := match[group])), "")


def _means_a_month(match: re.Match[str]) -> bool:
    # Alone, "mar" and "jan" are names, and "may" and "march" verbs unless written or introduced as a month.
    # Only what is next to it is read: a text may consist of such words.
    name, before = match["month3"], match.string[max(match.start() - _READ_BEFORE, 0) : match.start()]
    if len(name) <= 4 and name.lower() in _ABBREVIATED and name.lower() not in _MONTHS:
        return False
    if name.lower() not in {"may", "march", "august"} or _BEFORE_A_MONTH.search(before.lower()):
        return True
    return name[0].isupper() and bool(before.strip())


def number_of_day(said: str) -> int:
    """The number of "8th", "eighth" or "twenty-first"; 0 for anything else."""
    return ORDINALS.get(said.lower()) or int(re.sub(r"\D", "", said) or 0)


DAY = timedelta(days=1)
_WEEK = 7 * DAY

PARTS: Mapping[str, tuple[time, timedelta]] = {
    "morning": (time(5), timedelta(hours=7)),
    "afternoon": (time(12), timedelta(hours=6)),
    "evening": (time(17), timedelta(hours=7)),
    "night": (time(18), timedelta(hours=10)),  # ends on the next day, as people mean it
}
"""Parts of a day: their start and length."""
SEASONS: Mapping[str, int] = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First month of each season of three."""


class Interval(NamedTuple):
    """A half-open interval: `first` is included, `after` is not. Both are aware."""

    first: datetime
    after: datetime


class Calendar:
    """The speaker's calendar at the moment of speaking `now` (aware), in their time zone."""

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
        """Friday evening to Sunday night: the latest weekend that has begun, or `back` weekends before it."""
        begun = self.today - ((self.today.weekday() - 5) % 7) * DAY - back * _WEEK
        return Interval(self.part(begun - DAY, "evening").first, self._midnight(begun + 2 * DAY))

    def month(self, year: int, month: int, count: int = 1) -> Interval:
        """`count` whole months; a `month` below 1 or above 12 is in another year."""
        ends = month + count
        return Interval(self._first_of(year, month), self._first_of(year, ends))

    def year(self, year: int) -> Interval:
        return self.month(year, 1, 12)

    def season(self, name: str, year: int | None, back: int = 0) -> Interval:
        """The season of `year`, or the latest that has begun, or `back` years before it.

        A winter belongs to the year it begins in.
        """
        first = SEASONS[name]
        if year is None:
            year = self.today.year if self.today.month >= first else self.today.year - 1
        return self.month(year - back, first, 3)

    def latest(self, day_in: Callable[[int], date], *, before_today: bool = False) -> date:
        """The latest day up to today (or before it) among those that `day_in` returns for each year."""
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
    """`moment`, that many calendar months earlier; in a shorter month its last day."""
    from dateutil.relativedelta import relativedelta

    earlier: datetime = moment - relativedelta(months=months)
    return earlier


_DIGITS = "one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}
_NUMBERS = {word: n for n, word in enumerate(_DIGITS + _TEENS, 1)} | _TENS
_NUMBERS |= {
    f"{ten}{joint}{unit}": value + n
    for ten, value in _TENS.items()
    for n, unit in enumerate(_DIGITS, 1)
    for joint in " -"
}
_VAGUE = {f"{a}couple{of}": (1.5, 3.0) for a in ("a ", "") for of in (" of", "")}
_VAGUE |= {"a few": (2.0, 5.0), "few": (2.0, 5.0), "several": (3.0, 8.0)}
"""At least and at most, in units."""
_UP_LATE = time(4)
"""Until this hour "tonight" means the evening before."""
_DAYS_OF = {
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "fortnight": 14.0,
    "month": 30.44,
    "year": 365.24,
    "decade": 3652.4,
}
MONTHS_OF = {"month": 1, "year": 12, "decade": 120}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()

COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted([*_NUMBERS, *_VAGUE], key=len, reverse=True))}|an?)"
_UNIT = rf"(?P<unit>{'|'.join(_DAYS_OF)})"
_PART = r"(?: (?P<part>morning|afternoon|evening|night))?"
WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})(?: (?:morning|afternoon|evening|night))?"
"""Pattern of a weekday, or a part of it, by its name alone."""
_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})"
_FEASTS = [name.replace("'", "['’]?") for name in sorted(FEASTS, key=len, reverse=True)]
_FEAST = f"(?P<feast>{'|'.join(_FEASTS)})"
_LAST = r"(?P<how>last|past|this past)"
_SEASON = rf"(?P<season>{'|'.join(SEASONS)})"
_LATER_DAY = r"(?P<day>\d{1,2}(?:st|nd|rd|th)|(?:(?:twenty|thirty)[- ])?[a-z]+(?:st|nd|rd|th))"
_RELATION = r"(?:on|since|until|till|by|before|after|from|between|and|to) "
_OF_YEAR = r"(?:,? (?:of |in )?(?P<year>(?:19|20)\d\d))?"
CLOSED = (
    r"(?=\s*(?:$|[,.?!;]|and\b|what\b|where\b|who\b|when\b|how\b|did\b|do\b|was\b|were\b|we\b|i\b|you\b))"
)
"""Pattern of what may follow a number that stands alone."""
_ANY_LATER_DAY = _LATER_DAY.replace("P<day>", ":")
_TO_A_DAY = rf"(?= (?:to|until|till|through) the {_ANY_LATER_DAY}{CLOSED})"


class TimeRule(NamedTuple):
    """One pattern. Its group "core" is the expression; the text before that group only introduces it."""

    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str], Calendar], Interval | None]
    past: bool
    """Whether its wording is in the past; if not, the sentence decides."""
    needs: tuple[str, ...]
    """Casefolded substrings, one of which every match contains: they rule out most texts."""


def _ago(said: re.Match[str], at: Calendar) -> Interval:
    """The day of "three days ago"; half a unit around "two weeks ago", which is vague."""
    unit, count = _group(said, "unit"), _group(said, "count")
    if count in _VAGUE:
        return _between(at, unit, *_VAGUE[count])
    if _group(said, "half"):
        return _between(at, unit, number(count) + 0.25, number(count) + 0.75)
    now, days = _counted_from(at, unit), _DAYS_OF[unit]
    if unit in MONTHS_OF:
        moment = months_before(now, number(count) * MONTHS_OF[unit])
    else:
        moment = now - timedelta(days=number(count) * days)
    if days < 1:
        half = timedelta(days=days / 2)
        return Interval(moment - half, moment + half)
    aside = int(days // 2)
    return at.days(moment.date() - aside * DAY, 2 * aside + 1)


def _weekdays_ago(said: re.Match[str], at: Calendar) -> Interval | None:
    """The day of "two Fridays ago"; for a vague number, from the first to the last possible one."""
    count, part = _group(said, "count"), _group(said, "part")
    least, most = (ceil(bound) for bound in _VAGUE.get(count) or (number(count),) * 2)
    if not least:
        return None
    latest = latest_weekday(_group(said, "weekday"), at.today, before_today=True)
    first, last = (latest - 7 * (number - 1) * DAY for number in (most, least))
    days = [at.part(day, part) if part else at.days(day) for day in (first, last)]
    return Interval(days[0].first, days[1].after)


def _counted_from(at: Calendar, unit: str) -> datetime:
    """Now, in UTC for hours, which pass whatever clocks do meanwhile; days are those of the calendar."""
    return at.now.astimezone(UTC) if _DAYS_OF[unit] < 1 else at.now


def _between(at: Calendar, unit: str, least: float, most: float) -> Interval:
    days, now = _DAYS_OF[unit], _counted_from(at, unit)
    first, after = now - timedelta(days=most * days), now - timedelta(days=least * days)
    if days < 1:
        return Interval(first, after)
    return Interval(at.days(first.date()).first, at.days(after.date()).after)


def _in_the_last(said: re.Match[str], at: Calendar) -> Interval:
    most = at_most(_group(said, "count") or "one")
    return Interval(_between(at, _group(said, "unit"), most, most).first, at.now)


def _group(said: re.Match[str], name: str) -> str:
    return (said.groupdict().get(name) or "").lower()


def at_most(count: str) -> float:
    """The most that a spoken `COUNT`, in lower case, may mean: 3 for "a couple of"."""
    return _VAGUE[count][1] if count in _VAGUE else number(count)


def number(said: str) -> int:
    """The value of "a", "3" or "twenty-one"."""
    return 1 if said in {"a", "an"} else _NUMBERS.get(said) or int(said)


def _day(back: int, name: str = "") -> Callable[[re.Match[str], Calendar], Interval]:
    def meaning(said: re.Match[str], at: Calendar) -> Interval:
        day, part = at.today - back * DAY, name or _group(said, "part")
        if part and not back and at.now.time() < _UP_LATE and at.now < at.part(day, part).first:
            day -= DAY  # shortly after midnight this means the evening before
        return at.part(day, part) if part else at.days(day)

    return meaning


def _before(back: int) -> Callable[[re.Match[str], Calendar], Interval]:
    """The calendar week, month, year or weekend, `back` before the current one."""

    def meaning(said: re.Match[str], at: Calendar) -> Interval:
        unit, today = _group(said, "unit"), at.today
        if unit == "week":
            return at.week(today - back * 7 * DAY)
        if unit == "month":
            return at.month(today.year, today.month - back)
        if unit == "year":
            return at.year(today.year - back)
        # on a Sunday "last weekend" is the one before, on a Monday it has just been
        return at.weekend(back if today.weekday() >= 5 else max(back - 1, 0))

    return meaning


def latest_weekday(name: str, today: date, *, before_today: bool = False) -> date:
    """The latest day of that name: today, unless only days before it count."""
    since = (today.weekday() - _WEEKDAYS.index(name)) % 7
    return today - (since or 7 * before_today) * DAY


def _weekday(*, before_today: bool) -> Callable[[re.Match[str], Calendar], Interval]:
    def meaning(said: re.Match[str], at: Calendar) -> Interval:
        day = latest_weekday(_group(said, "weekday"), at.today, before_today=before_today)
        part = _group(said, "part")
        return at.part(day, part) if part else at.days(day)

    return meaning


_LATEST_WEEKDAY, _LAST_WEEKDAY = _weekday(before_today=False), _weekday(before_today=True)


def _day_of_month(said: re.Match[str], at: Calendar) -> Interval | None:
    number = number_of_day(_group(said, "day"))
    for back in range(3):
        first = at.month(at.today.year, at.today.month - back).first.date()
        day = first + (number - 1) * DAY
        if day.month == first.month and day <= at.today:
            return at.days(day)
    return None


def _feast(said: re.Match[str], at: Calendar) -> Interval:
    name = _group(said, "feast").replace("’", "").replace("'", "")
    day_in, count = next(feast for known, feast in FEASTS.items() if known.replace("'", "") == name)
    year = _group(said, "year")
    day = day_in(int(year)) if year else at.latest(day_in, before_today=bool(_group(said, "how")))
    return at.days(day, count)


def _season(said: re.Match[str], at: Calendar) -> Interval:
    name, year = _group(said, "season"), _group(said, "year")
    latest = at.season(name, int(year) if year else None)
    is_now = latest.first <= at.now < latest.after
    return at.season(name, None, 1) if is_now and _group(said, "how") == "last" else latest


def _rule(
    core: str,
    meaning: Callable[[re.Match[str], Calendar], Interval | None],
    *,
    needs: str,
    intro: str = "",
    past: bool = True,
) -> TimeRule:
    pattern = re.compile(rf"\b{intro}(?P<core>{core})\b", re.IGNORECASE)
    return TimeRule(pattern, meaning, past, tuple(needs.split()))


_SEASONS = " ".join(SEASONS)
_FEAST_WORDS = " ".join(name.split("'")[0].split()[-1] for name in FEASTS)

RULES: tuple[TimeRule, ...] = (
    _rule(
        rf"half an? {_UNIT} ago",
        lambda said, at: _between(at, _group(said, "unit"), 0.35, 0.65),
        needs="ago",
    ),
    _rule(rf"{COUNT} {_UNIT}s? ago", _ago, needs="ago"),
    _rule(rf"{COUNT}(?P<half> and a half) {_UNIT}s? ago", _ago, needs="ago"),
    _rule(rf"{COUNT} {_UNIT}s?(?P<half> and a half) ago", _ago, needs="ago"),
    _rule(rf"{COUNT} {_WEEKDAY}{_PART}s? ago", _weekdays_ago, needs="ago"),
    _rule(rf"the (?:last|past) {COUNT} {_UNIT}s?(?! of\b)", _in_the_last, needs="last past"),
    _rule(
        rf"the (?:last|past) {_UNIT}(?! of\b)",
        _in_the_last,
        needs="last past",
        intro="(?:in|over|during|within|for) ",
    ),
    _rule(rf"(?:the|this|these) past {_UNIT}(?! of\b)", _in_the_last, needs="past"),
    _rule(rf"yesterday{_PART}", _day(1), needs="yesterday"),
    _rule(r"(?:the )?day before yesterday", _day(2), needs="yesterday"),
    _rule(r"last (?:night|evening)", _day(1, "night"), needs="last"),
    _rule(r"(?:the )?night before last", _day(2, "night"), needs="last"),
    _rule(r"the other (?:day|night|week)", lambda _, at: at.days(at.today - 10 * DAY, 10), needs="other"),
    _rule(rf"{_LAST} (?P<unit>week|weekend|month|year)(?! of\b)", _before(1), needs="last past"),
    _rule(r"the (?P<unit>week|weekend|month|year) before last", _before(2), needs="last"),
    _rule(rf"{_LAST} {_WEEKDAY}{_PART}", _LAST_WEEKDAY, needs="last past"),
    _rule(rf"{_LAST} {_SEASON}", _season, needs="last past"),
    _rule(rf"{_LAST} {_FEAST}", _feast, needs="last past"),
    # these may be in the future as well
    _rule(r"(?:earlier )?today", _day(0), needs="today", past=False),
    _rule(r"tonight", _day(0, "night"), needs="tonight", past=False),
    _rule(r"this (?P<part>morning|afternoon|evening)", _day(0), needs="this", past=False),
    _rule(
        r"(?:earlier )?this (?P<unit>week|weekend|month|year)(?! of\b)", _before(0), needs="this", past=False
    ),
    _rule(
        r"the weekend",
        lambda _, at: at.weekend(0),
        needs="weekend",
        intro="(?:at|on|over|during) ",
        past=False,
    ),
    _rule(
        rf"(?:this )?{_WEEKDAY}{_PART}",
        _LATEST_WEEKDAY,
        needs="day",
        intro=f"{_RELATION}(?:the )?",
        past=False,
    ),
    _rule(
        rf"{_WEEKDAY}{_PART}",
        _LATEST_WEEKDAY,
        needs="day",
        intro=rf"(?:from|between) {WEEKDAY}(?: ?[-\u2013] ?| through )",
        past=False,
    ),
    _rule(rf"this {_WEEKDAY}{_PART}", _LATEST_WEEKDAY, needs="this", past=False),
    _rule(rf"{_WEEKDAY} (?P<part>morning|afternoon|evening|night)", _LATEST_WEEKDAY, needs="day", past=False),
    # only if no noun follows: not "on the first floor"
    _rule(
        rf"the {_LATER_DAY}(?:{CLOSED}|{_TO_A_DAY})",
        _day_of_month,
        needs="st nd rd th",
        intro=_RELATION,
        past=False,
    ),
    _rule(
        rf"the {_LATER_DAY}{CLOSED}",
        _day_of_month,
        needs="through",
        intro=rf"(?:from|on) the {_ANY_LATER_DAY} through ",
        past=False,
    ),
    _rule(
        rf"{_SEASON}{_OF_YEAR}",
        _season,
        needs=_SEASONS,
        intro=rf"(?:{_RELATION}|in |over |during )(?:the )?",
        past=False,
    ),
    _rule(rf"this {_SEASON}", _season, needs="this", past=False),
    _rule(rf"{_SEASON} (?:of |in )?(?P<year>(?:19|20)\d\d)", _season, needs=_SEASONS, past=False),
    _rule(rf"{_FEAST}{_OF_YEAR}", _feast, needs=_FEAST_WORDS, past=False),
)
"""All patterns. Of two that overlap in a text the longer match counts."""
_PIECES = tuple(dict.fromkeys(piece for rule in RULES for piece in rule.needs))
"""The pieces of text of which each rule needs one."""


def likely_rules(text: str) -> Iterable[TimeRule]:
    """The rules worth trying, in order: to try all takes three times as long."""
    folded = text.casefold()
    there = {piece for piece in _PIECES if piece in folded}
    return [rule for rule in RULES if not there.isdisjoint(rule.needs)] if there else ()
