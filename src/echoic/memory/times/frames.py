"""A time that says in which greater one it lies: "in March last year", "last week on Tuesday". Pure.

Alone, "March" is the latest there was; beside "last year" it is that year's. So it is read again as somebody
would mean it at the end of the greater time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from echoic.memory.times.calendar import Calendar, Interval

_UNIT = "week|month|year"
_FRAME = re.compile(
    rf"(?:earlier )?(?:last|past|this past|this) (?P<unit>{_UNIT})|the (?P<before>{_UNIT}) before last"
    rf"|(?!.*\b(?:couple|few|several|half)\b).+ (?P<ago>{_UNIT})s? ago",
    re.IGNORECASE,
)
_UNFRAMED = re.compile(r"\b(?:today|tonight|this|weekend)\b", re.IGNORECASE)
"""What goes by the moment of speaking alone."""
_IN_FRAME = re.compile(r",? (?:of |in )?", re.IGNORECASE)
_OF_FRAME = re.compile(r"(?:['’]s)?,? (?:(?:in|on|at|over|during) )?(?:the )?", re.IGNORECASE)
_OPENED = re.compile(r",? (?:between|from|since|until|till|before|after) (?:the )?", re.IGNORECASE)
_LISTED = re.compile(
    r"(?: ?,| ?-|,? (?:and|or|to|until|till|through)) ?(?:(?:in|on) )?(?:the )?", re.IGNORECASE
)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression found in a text."""

    interval: Interval
    start: int
    """Where in the text it begins."""
    end: int
    past: bool = False
    """Whether its wording lies in the past ("last May"); where not, the sentence decides ("in May")."""
    exact: bool = False
    """Whether it names its year: then it means the same whenever it is said."""
    loose: bool = False
    """Whether it is a date without its year: earlier years have it as well."""


Reading = Callable[[Calendar], Sequence[Expression]]
"""What the text says at a moment, in order and apart."""


def framed(text: str, found: Sequence[Expression], at: Calendar, read: Reading) -> list[Expression]:
    """`found`, where what lies in a greater time is put there and stands for both.

    What the greater time has several of ("on Friday last month") or none of adds nothing to it.
    """
    kept = list(found)
    for place, frame in enumerate(found):
        whole = _whole(text[frame.start : frame.end], frame, at)
        if whole is None:
            continue
        inside = _before(text, found[:place], frame) or _behind(text, frame, found[place + 1 :])
        placed = [_placed(one, whole, at, read) for one in inside]
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
    """The week, month or year of the calendar that `frame` means; None where it means none."""
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
    """Those right before `frame` that lie in it."""
    inside: list[Expression] = []
    joint, start = _IN_FRAME, frame.start
    for one in reversed(found):
        if not (_may_lie_inside(text, one) and joint.fullmatch(text[one.end : start])):
            break
        inside.insert(0, one)
        joint, start = _LISTED, one.start
    return inside


def _behind(text: str, frame: Expression, found: Sequence[Expression]) -> list[Expression]:
    """Those right behind `frame` that lie in it."""
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
    """`one`, reaching over `frame` where that is next to it; what opens it ("since") has to stand before."""
    if _IN_FRAME.fullmatch(text[one.end : frame.start]):
        return replace(one, end=frame.end)
    if _OF_FRAME.fullmatch(text[frame.end : one.start]):
        return replace(one, start=frame.start)
    return one


def _may_lie_inside(text: str, one: Expression) -> bool:
    return not (one.past or one.exact or _UNFRAMED.search(text[one.start : one.end]))


def _placed(one: Expression, whole: Interval, at: Calendar, read: Reading) -> Interval | None:
    """What `one` means in `whole`; None where it is not there exactly once."""
    latest = _as_of(one, Calendar(whole.after - _MOMENT, at.zone), read)
    if latest is None or not whole.first <= latest.first < whole.after:
        return None
    day = at.days(latest.first.date()).first
    earlier = _as_of(one, Calendar(day - _MOMENT, at.zone), read)
    return latest if earlier is None or earlier.first < whole.first else None


def _as_of(one: Expression, at: Calendar, read: Reading) -> Interval | None:
    return next((same.interval for same in read(at) if (same.start, same.end) == (one.start, one.end)), None)


__all__ = ["Expression", "Reading", "framed"]
