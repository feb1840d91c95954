"""Days, months and years that a question names in so many words.

No clock: what "last Tuesday" means is the caller's to know.
Deliberately narrow: a general date parser reads "We" as Wednesday and "the sun" as Sunday in spoken text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

DAY_MS = 86_400_000
_MAX_YEARS = 200  # of rows, over which a month without a year is tried

_MONTHS = "january february march april may june july august september october november december".split()
MONTHS = tuple(name.capitalize() for name in _MONTHS)
_ABBREVIATED = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBER_OF_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)} | _ABBREVIATED
_UNITS = "first second third fourth fifth sixth seventh eighth ninth".split()
_ORDINALS = {word: number for number, word in enumerate(_UNITS, 1)}
_ORDINALS |= {
    word: number
    for number, word in enumerate(
        "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
        " twentieth".split(),
        10,
    )
}
_ORDINALS |= {f"twenty{joint}{unit}": 20 + n for joint in "- " for n, unit in enumerate(_UNITS, 1)}
_ORDINALS |= {"thirtieth": 30, "thirty-first": 31, "thirty first": 31}

_ANY_MONTH = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
A_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?|{'|'.join(sorted(_ORDINALS, key=len, reverse=True))})"
"""Pattern of a day as it is said: "8", "8th", "eighth"."""
_YEAR = r"(?:19|20)\d\d"
_NAMED = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d?-\d\d?)\b"
    rf"|\b(?P<day>{A_DAY})(?: of)? (?P<month>{_ANY_MONTH})\b\.?(?:,? (?:of )?(?P<year>{_YEAR})\b)?"
    rf"|\b(?P<month2>{_ANY_MONTH})\b\.? (?:the )?(?P<day2>{A_DAY})\b(?:,? (?:of )?(?P<year2>{_YEAR})\b)?"
    rf"|\b(?P<month3>{_ANY_MONTH})\b\.?(?:,? (?:of )?(?P<year3>{_YEAR})\b)?"
    rf"|\b(?P<year4>{_YEAR})\b",
    re.IGNORECASE,
)
# What every date has one of: to look for them is much faster than to try the pattern at every word.
_NEEDED = (*dict.fromkeys(name[:3] for name in _MONTHS), "19", "20")
_BEFORE_A_MONTH = re.compile(
    r"\b(?:in|of|since|until|till|by|during|before|after|last|this|next|early|late|mid) $"
)


class NamedDate(NamedTuple):
    """A day, month or year as far as it was said; None is what was left out."""

    year: int | None
    month: int | None = None
    day: int | None = None


def find_dates(text: str) -> list[tuple[NamedDate, int, int]]:
    """Each date that `text` names, with where it begins and ends, as it was said."""
    folded = text.casefold()
    if not any(piece in folded for piece in _NEEDED):
        return []
    said = ((_date_of(match), *match.span()) for match in _NAMED.finditer(text))
    return [(date, first, after) for date, first, after in said if date is not None]


def dates_in(text: str) -> tuple[NamedDate, ...]:
    """The dates that `text` names. A year counts for all months said without one ("May or June 2023")."""
    found = [date for date, _, _ in find_dates(text)]
    years: list[int | None] = [date.year for date in found if date.year is not None]
    if any(date.month for date in found):
        found = [
            date._replace(year=year)
            for date in found
            if date.month
            for year in ([date.year] if date.year is not None else years or [None])
        ]
    return tuple(dict.fromkeys(found))


def spans_of(dates: Iterable[NamedDate], years: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """First and last millisecond (Unix, UTC) of each date; without a year, of each of `years`."""
    found = []
    for date in dates:
        for year in [date.year] if date.year is not None else list(years)[:_MAX_YEARS]:
            first, after = _bounds(year, date.month, date.day)
            found.append((_milliseconds(first), _milliseconds(after) - 1))
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


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


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
    name, before = match["month3"], match.string[: match.start()]
    if len(name) <= 4 and name.lower() in _ABBREVIATED and name.lower() not in _MONTHS:
        return False
    if name.lower() not in {"may", "march", "august"} or _BEFORE_A_MONTH.search(before.lower()):
        return True
    return name[0].isupper() and bool(before.strip())


def number_of_day(said: str) -> int:
    """The day that "8th", "the eighth" of a month or "twenty-first" is; 0 for what is none."""
    return _ORDINALS.get(said.lower()) or int(re.sub(r"\D", "", said) or 0)
