"""Spoken time: dates, ranges, "two weeks ago", time zones. Pure: no store, no clock, no search.

`spans_of_phrase` finds the time that a question means, `dated` adds the date to "tomorrow" in a statement,
`dates_in` finds explicit dates, and `zone_of` finds a time zone by any of its names. Spans rank results and
hide none, so a misread phrase costs a place or two; an ambiguous phrase is ignored.

The first look-up of a time zone reads files of the zone database and blocks: call `zone_of` in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from echoic.errors import InvalidInput, brief
from echoic.temporal.expressions import BETWEEN, Expression, dated, find_expressions, mentions_a_day
from echoic.temporal.rules import (
    COUNT,
    DAY,
    WEEKDAY,
    Calendar,
    Interval,
    NamedDate,
    at_most,
    dates_in,
    find_dates,
    likely_rules,
    milliseconds,
)
from echoic.text import content_stems, content_words
from echoic.types import Hit, checked_time

Span = tuple[int, int]
"""First and last moment, in Unix milliseconds (UTC)."""

LOOKED_AT = 5
"""The first hits, among which the event of a question ("before the move") must be clear."""
AGREE_WITHIN = timedelta(days=31)
"""The largest time between hits that mention the event; beyond it the event is ambiguous."""
_SAID_SHARE = 2 / 3

EARLIEST_MS = milliseconds(datetime(1, 1, 1, tzinfo=UTC))
"""The start of a span without a beginning."""

MAX_CHARACTERS = 1000
"""How much of a question is read, from its end: people who talk at length ask at the end."""

_TO = r"to|until|till|through|-|\u2013"
_JOINED = re.compile(rf"\s{{0,9}}(?:and|{_TO})\s{{0,9}}(?:the )?", re.IGNORECASE)
_JOINED_ALONE = re.compile(rf"\s{{0,9}}(?:{_TO})\s{{0,9}}(?:the )?", re.IGNORECASE)
_TO_NOW = re.compile(rf"\s{{0,9}}(?:and|{_TO})\s{{0,9}}(?:right )?now\b", re.IGNORECASE)
_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
_OPENS = re.compile(
    rf"\b(?:(?:(?:{COUNT}|the) )?(?P<unit>day|week|month|year)s? )?"
    r"(?P<relation>before|prior to|after|since|until|till|up to)(?: the)? $",
    re.IGNORECASE,
)
_RELATION = re.compile(r"(?:before|prior to|after|since|until|till|up to)(?: the)? $", re.IGNORECASE)
"""How every match of `_OPENS` ends. It is tried first, since `COUNT` has more than a hundred words."""
_RELATION_CHARACTERS = 16
_BEFORE, _UNTIL = {"before", "prior to"}, {"until", "till", "up to"}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_LOOKS_BACK = re.compile(
    r"\b(?:did|didn['’]?t|was|were|wasn['’]?t|weren['’]?t|had|said|told|mentioned|asked|talked|spoke|discussed|went"
    r"|came|been|made|got|gave|earlier|ago|since|used to|happened|promised|agreed)\b",
    re.IGNORECASE,
)
_LOOKS_AHEAD = re.compile(
    r"\b(?:am|is|are|will|won['’]?t|shall|should|can|could|would|do|does|next|upcoming|coming|plan|plans|planning"
    r"|going to|gonna|want|tomorrow)\b|['’](?:ll|re|m)\b"
    r"|\b(?:what|where|who|when|how|it|that|there|here|he|she|let)['’]s\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\bused to\b|\b(?:previously|formerly|originally|back then|back when|at the time|in the past)\b"
    r"|\b(?:my|our|his|her|their|the)(?: own)? (?:old|former|previous|prior|earlier|last|ex|late)[ -]"
    r"(?!(?:name|time|one)\b)\w+"
    r"|\b(?:before|earlier)(?: (?:that|this|now|then))?\s*(?:[?.!,]|$)"
    r"|\b(?:at first|to begin with|in the beginning|initially|beforehand|the first time)\b"
    r"|\bno longer\b|\bnot any ?more\b|\bwhat (?:has|have) changed\b",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?P<relation>before|prior to|after|following|since|until|till) "
    r"(?P<event>(?:the|my|our|his|her|their|i|we|he|she|they|\w+['’]s) [\w'’ -]{2,60}?)"
    r"(?=\s*(?:$|[,.?!;:]|\b(?:what|where|who|whom|which|when|how|why|did|do|does|was|were|is|are)\b))",
    re.IGNORECASE,
)
# Verbs of speaking: asks for what was said, on any topic.
_SPEAKING = frozenset(
    "say said saying tell told talk talked talking mention mentioned discuss discussed speak spoke ask asked "
    "call called happen happened chat chatted conversation remember recall anything something everything "
    "everyone last late early time day week month year".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEvent:
    """An event that says when ("before the move")."""

    relation: str
    """before, after, since or until. Not "during": people seldom mention an event while it goes on (on
    LoCoMo's development half it put 3 of 9 answers out of the first five)."""
    text: str
    """The event, in the question's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The time that a question refers to."""

    ranges: tuple[Span, ...] = ()
    """(first, last) in Unix ms, UTC."""
    past: bool = False
    """Whether the past is meant, so that past memories are wanted as well."""
    loose: bool = False
    """Whether all ranges are dates without a year, resolved to the latest year: earlier ones may be meant."""
    bare: bool = False
    """Whether the question only asks for what was said then ("what did I say last Tuesday")."""
    event: NamedEvent | None = None
    """The event to look up before the range is known; `ranges` is empty then."""
    assumed: bool = False
    """Whether the user's time zone could not be read and another one was assumed."""


NOTHING = Spans()
"""The spans of a question that says nothing about time."""


def may_mean_time(text: str) -> bool:
    """Whether `spans_of_phrase` could find anything in `text`. Cheap: mostly a search for substrings."""
    text = text[-MAX_CHARACTERS:]
    if any(rule.pattern.search(text) for rule in likely_rules(text)) or find_dates(text):
        return True
    return bool(_PAST.search(text) or _EVENT.search(text))


def spans_of_phrase(text: str, now: datetime, timezone: tzinfo) -> Spans:
    """The time ranges in `text`, a spoken question, at the aware moment `now`."""
    at, text = Calendar(checked_time(now, "now"), timezone), text[-MAX_CHARACTERS:]
    past = _PAST.search(text) is not None
    found = _meant(text, find_expressions(text, at))
    if not found:
        event = _event(text)
        return Spans(past=past or (event is not None and event.relation == "before"), event=event)
    intervals = _joined(text, found, at)
    ranges = tuple(
        (EARLIEST_MS if first is None else milliseconds(first), milliseconds(after) - 1)
        for first, after in intervals
        if first is None or first < after
    )
    midnight = milliseconds(at.days(at.today).first)
    return Spans(
        ranges=ranges,
        past=past or any(last < midnight for _, last in ranges),
        loose=len(intervals) == len(found)
        and not any(_opening(text[: one.start]) or not one.loose for one in found),
        bare=_is_bare(text, found),
    )


def _meant(text: str, found: list[Expression]) -> list[Expression]:
    """Those expressions that say when something was."""
    # "last Friday on 23 January 2022": an expression with a year suffices
    if any(one.exact for one in found):
        ends = {one for first, one in pairwise(found) if first.exact and _is_range(text, first, one)}
        found = [one for one in found if one.exact or one.loose or one in ends]
    if _LOOKS_AHEAD.search(text) and not _LOOKS_BACK.search(text):
        found = [one for one in found if one.past or one.exact]
    return found


_Open = tuple[datetime | None, datetime]
"""Start (None: without a beginning) and end."""


def _joined(text: str, found: list[Expression], at: Calendar) -> list[_Open]:
    """The intervals of `found`, opened by "since" and the like, with the two of "from … to" joined."""
    intervals: list[_Open] = []
    rest = list(found)
    while rest:
        one = rest.pop(0)
        before = text[: one.start]
        if BETWEEN.search(before) and _TO_NOW.match(text, one.end):
            intervals.append((one.interval.first, at.now))
        elif rest and _is_range(text, one, rest[0]):
            last = rest.pop(0)
            first, after = _begin(text, one, last), last.interval.after
            # from June to December, asked in September, goes on
            intervals.append((first, after) if first < after else (first, at.now))
        else:
            intervals.append(_opened(_opening(before), one.interval, at))
    return intervals


def _is_range(text: str, first: Expression, last: Expression) -> bool:
    """Whether the text joins both to one range; without an opening word they must be in order."""
    before, between = text[: first.start], text[first.end : last.start]
    if BETWEEN.search(before):
        return _JOINED.fullmatch(between) is not None
    opened = _opening(before)
    if opened is not None and opened["relation"].lower() != "since":
        return False
    return bool(_JOINED_ALONE.fullmatch(between)) and first.interval.after <= last.interval.first


def _begin(text: str, first: Expression, last: Expression) -> datetime:
    """The start of a range. Of two weekdays the first precedes the last, in another week if needed."""
    begins = first.interval.first
    weekdays = all(_WEEKDAY.fullmatch(text, one.start, one.end) for one in (first, last))
    return begins - 7 * DAY if weekdays and begins >= last.interval.after else begins


def _opened(said: re.Match[str] | None, interval: Interval, at: Calendar) -> _Open:
    if said is None:
        return interval.first, interval.after
    relation, unit = said["relation"].lower(), (said["unit"] or "").lower()
    days = round(_DAYS.get(unit, 0) * at_most((said["count"] or "one").lower()))
    if relation in _BEFORE:
        return _days_before(interval.first, days, at) if days else None, interval.first
    if relation in _UNTIL:
        return None, interval.after
    if relation == "after":
        return interval.after, at.days(interval.after.date(), days).after if days else at.now
    return interval.first, at.now


def _days_before(moment: datetime, days: int, at: Calendar) -> datetime | None:
    try:
        return at.days(moment.date(), -days).after
    except OverflowError:  # before any calendar
        return None


def _opening(before: str) -> re.Match[str] | None:
    """The words at the end of `before` that relate to a time behind them: "two weeks after the"."""
    may_open = _RELATION.search(before, max(0, len(before) - _RELATION_CHARACTERS))
    return _OPENS.search(before) if may_open else None


def _event(text: str) -> NamedEvent | None:
    said = _EVENT.search(text)
    if said is None or not content_words(said["event"]):
        return None
    relation = {"prior to": "before", "following": "after", "till": "until"}.get(said["relation"].lower())
    return NamedEvent(relation=relation or said["relation"].lower(), text=said["event"].strip())


def _is_bare(text: str, found: list[Expression]) -> bool:
    rest = text
    for one in reversed(found):
        said = _opening(text[: one.start])
        rest = f"{rest[: said.start() if said else one.start]} {rest[one.end :]}"
    return all(word.text in _SPEAKING for word in content_words(rest))


def moment_of(event: NamedEvent, hits: Sequence[Hit]) -> datetime | None:
    """When the event was mentioned, or held; None if that is ambiguous.

    It is clear if at least one of the first hits (`hits` is best first) contains two thirds of the event's
    words, and all that do are within a month. The best of them counts.
    """
    asked = content_stems(event.text)
    speaking = [
        said_at(hit)
        for hit in hits[:LOOKED_AT]
        if len(asked & content_stems(_words_of(hit))) >= _SAID_SHARE * len(asked)
    ]
    if not speaking or max(speaking) - min(speaking) > AGREE_WITHIN:
        return None
    return speaking[0]


def span_around(event: NamedEvent, moment: datetime, now: datetime, zone: tzinfo) -> Span | None:
    """The span of "before", "after", "since" or "until" an event at `moment`; None if it is in the future.

    The day of the event belongs to both sides.
    """
    at = Calendar(moment, zone)
    day = at.days(at.today)
    if event.relation in {"before", "until"}:
        return EARLIEST_MS, milliseconds(day.first if event.relation == "before" else day.after) - 1
    first, last = milliseconds(day.first), milliseconds(now)
    return (first, last) if first <= last else None


def said_at(hit: Hit) -> datetime:
    assert hit.memory or hit.turn
    return hit.memory.valid_from if hit.memory else hit.turn.said_at  # type: ignore[union-attr]


def _words_of(hit: Hit) -> str:
    memory, said = hit.memory, hit.turn.heard_text if hit.turn else ""
    told = f"{memory.key or ''} {memory.statement or ''} {hit.text}".replace("_", " ") if memory else ""
    return f"{told} {said}"


ZONE_KEYS = ("time_zone", "timezone")
"""Keys of a user's time zone, in order of precedence."""

_SPOKEN: Mapping[str, str] = {
    "eastern": "America/New_York",
    "central": "America/Chicago",
    "mountain": "America/Denver",
    "pacific": "America/Los_Angeles",
    "atlantic": "America/Halifax",
    "alaska": "America/Anchorage",
    "hawaii": "Pacific/Honolulu",
    "central european": "Europe/Paris",
    "eastern european": "Europe/Athens",
    "western european": "Europe/Lisbon",
    "british": "Europe/London",
    "british summer": "Europe/London",
    "greenwich mean": "UTC",
    "india": "Asia/Kolkata",
    "israel": "Asia/Jerusalem",
    "japan": "Asia/Tokyo",
}
_CODES: Mapping[str, str] = {
    **dict.fromkeys(("est", "edt"), "America/New_York"),
    **dict.fromkeys(("cst", "cdt"), "America/Chicago"),
    **dict.fromkeys(("mst", "mdt"), "America/Denver"),
    **dict.fromkeys(("pst", "pdt"), "America/Los_Angeles"),
    **dict.fromkeys(("cet", "cest"), "Europe/Paris"),
    **dict.fromkeys(("eet", "eest"), "Europe/Athens"),
    "wet": "Europe/Lisbon",
    "bst": "Europe/London",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "aest": "Australia/Sydney",
    "acst": "Australia/Adelaide",
    "awst": "Australia/Perth",
    "msk": "Europe/Moscow",
    "sast": "Africa/Johannesburg",
}
"""Abbreviations and the place they mean: "EST" in summer means New York, not the offset."""
_OFFSET = re.compile(r"(?:utc|gmt)\s*(?:(?P<hours>[+-]\d{1,2})(?::?(?P<minutes>[0-5]\d))?)?", re.IGNORECASE)
_SUFFIX = re.compile(r"\s{0,9}(?:standard |daylight |summer )?time(?: zone)?$", re.IGNORECASE)


@lru_cache(maxsize=512)
def zone_of(name: str) -> tzinfo:
    """The zone that `name` means: "Europe/Lisbon", "Eastern", "EST", "UTC+2", "India Standard Time".

    Raises:
        InvalidInput: there is no such zone.
    """
    plain = name.strip()
    offset = _OFFSET.fullmatch(plain)
    if offset is not None:
        return _fixed(offset["hours"] or "+0", int(offset["minutes"] or 0), name)
    short = _SUFFIX.sub("", plain.lower().removeprefix("the ")).removesuffix(" standard")
    key = _SPOKEN.get(short) or _CODES.get(short) or plain
    try:
        return ZoneInfo(key)
    # a name that is a path out of the database is a ValueError, a folder of it an OSError
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if (spelled := _spellings().get(_said(plain))) is not None:
            return ZoneInfo(spelled)
        raise InvalidInput(
            f"unknown time zone {brief(name)}: give a name of the zone database, such as 'Europe/Lisbon'",
            field="timezone",
        ) from error


@cache
def _spellings() -> Mapping[str, str]:
    return {_said(name): name for name in available_timezones()}


def _said(name: str) -> str:
    """`name` as spoken: without capitals and underscores."""
    return name.casefold().replace("_", " ")


def _fixed(said_hours: str, minutes: int, name: str) -> tzinfo:
    hours = int(said_hours)
    if abs(hours) > 14:
        raise InvalidInput(f"no clock is {hours} hours from UTC: {brief(name)}", field="timezone")
    # the sign counts for the minutes too, and "-0" has one
    signed = timedelta(hours=hours, minutes=-minutes if said_hours.startswith("-") else minutes)
    return timezone(signed) if signed else UTC


__all__ = [
    "NOTHING",
    "ZONE_KEYS",
    "NamedDate",
    "NamedEvent",
    "Span",
    "Spans",
    "dated",
    "dates_in",
    "may_mean_time",
    "mentions_a_day",
    "said_at",
    "spans_of_phrase",
    "zone_of",
]
