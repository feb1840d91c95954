"""Time zones by the names that people and databases give them.

The first look-up of a zone reads files of the zone database, so it blocks: call `zone_of` in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from echoic.errors import InvalidInput, brief

ZONE_KEYS = ("time_zone", "timezone")
"""Keys under which a user's time zone is remembered, the stronger one first."""

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
    "est": "America/New_York",
    "edt": "America/New_York",
    "cst": "America/Chicago",
    "cdt": "America/Chicago",
    "mst": "America/Denver",
    "mdt": "America/Denver",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "cet": "Europe/Paris",
    "cest": "Europe/Paris",
    "eet": "Europe/Athens",
    "eest": "Europe/Athens",
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
"""Abbreviations, with the place they mean: "EST" in summer means New York, not the offset."""
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
            f"unknown time zone {brief(name)}: give a name of the zone database, such as 'Europe/Lisbon'"
        ) from error


@cache
def _spellings() -> Mapping[str, str]:
    return {_said(name): name for name in available_timezones()}


def _said(name: str) -> str:
    """`name` as it is said aloud: without capitals and underscores."""
    return name.casefold().replace("_", " ")


def _fixed(said_hours: str, minutes: int, name: str) -> tzinfo:
    hours = int(said_hours)
    if abs(hours) > 14:
        raise InvalidInput(f"no clock is {hours} hours from UTC: {brief(name)}")
    # the sign counts for the minutes too, and "-0" has one
    signed = timedelta(hours=hours, minutes=-minutes if said_hours.startswith("-") else minutes)
    return timezone(signed) if signed else UTC
