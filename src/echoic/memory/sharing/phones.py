"""Telephone numbers: international ones, national ones of a given country, and others by their shape.

What `phonenumbers` calls valid is not asked of shapes that only phones have: fictional and newly given out
numbers are phone numbers too. Reads digits as `spoken` leaves them, so it needs no words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from echoic.secrets.cues import HARMLESS, Cues
from echoic.secrets.digits import Group, clusters, joined, shape, split, windows
from echoic.secrets.findings import Finding
from echoic.secrets.views import View

_SHORTEST, _LONGEST = 7, 15  # ITU-T E.164: 15 digits at most
_MOST_GROUPS = 8
_BREAK = re.compile(r"[,_*|]")
_OPENING = re.compile(r"(?:\+ ?\(?|\()$")
_MONEY_BEFORE = re.compile(
    r"(?:[$\u20ac\u00a3\u00a5\u20b9\u20aa#]|\b(?:usd|eur|gbp|rs|inr|ils|nis))\s?$", re.IGNORECASE
)
_UNIT_AFTER = re.compile(
    r"""\s?(?:[%$\u20ac\u00a3\u00a5\u20b9\u20aa\u00b0]|(?:dollars?|euros?|pounds?|cents?|yen|rupees?|shekels?|usd|eur|gbp|percent|people
    |inhabitants|residents|users|units|items|pieces|copies|visitors|guests|employees|km|kms|miles?|met(?:er|re)s?|feet
    |ft|kg|grams?|lbs?|tons?|tonnes|lit(?:er|re)s?|bytes?|[kmg]b|hz|volts?|watts?|kwh|years?|months?|days?|hours?
    |minutes?|seconds?|steps|calories|points|votes|times|million|billion|thousand|a\.?m|p\.?m|o'?clock)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
# Groupings in which no other number of that length is commonly written.
_NORTH_AMERICAN = {(3, 3, 4), (1, 3, 3, 4)}
_OPENS_TRUNK = re.compile(r"0[1-9]")
_TRUNK_LENGTHS = range(9, 13)
# Where a national number is asked of the numbering plans without a region: the plans with no trunk zero.
_PLAN_SHAPES = {
    (3, 3, 3): ("ES", "PT"),
    (2, 3, 2, 2): ("ES", "CH", "PT"),
    (3, 2, 2, 2): ("ES",),
    (2, 3, 4): ("PT", "PE", "IL"),
    (5, 5): ("IN",),
    (2, 5, 4): ("BR",),
    (2, 4, 4): ("BR", "MX"),
    (10,): ("US", "IN"),
    (4, 3, 3): ("IN", "IT"),
    (3, 7): ("US", "IT"),
    (3, 4, 3): ("IT",),
    (1, 10): ("US",),
    (11,): ("US", "BR"),
}
_COUNTING = "01234567890"
_PATIENCE = 64
"""Numbering plans are asked about so many numbers of a text; a text of more is taken by shape alone."""


class Phones:
    """The telephone numbers of one view."""

    def __init__(self, view: View, cues: Cues, region: str | None) -> None:
        self._view = view
        self._cues = cues
        self._region = region
        self._asked = 0

    def find(self) -> Iterator[Finding]:
        """Each number, the sign or bracket before it included."""
        for cluster in clusters(self._view.text):
            for part in split(cluster, _BREAK):
                for dateless in _without_dates(part):
                    yield from self._in_part(dateless)

    def _in_part(self, groups: list[Group]) -> Iterator[Finding]:
        total = sum(len(group.digits) for group in groups)
        if total < _SHORTEST:
            return
        found = self._whole(groups) if total <= _LONGEST + 4 else None
        if found is not None:
            yield self._finding(groups, found)
            return
        done = 0
        for first, last in windows(groups, _SHORTEST, _LONGEST, _MOST_GROUPS):
            if first >= done and (rule := self._inner(groups, first, last)):
                yield self._finding(groups[first:last], rule)
                done = last

    def _whole(self, groups: list[Group]) -> str | None:
        """Which rule takes all of `groups` for one number."""
        digits = joined(groups)
        if self._is_international(groups[0], digits):
            return "phone-international"
        if len(digits) > _LONGEST or self._is_quantity(groups):
            return None
        meaning = self._cues.before(groups[0].start)
        if meaning in HARMLESS:
            return None
        if meaning == "phone" or self._cues.phone_after(groups[-1].end):
            return "phone-cue"
        return self._national(groups, digits)

    def _inner(self, groups: list[Group], first: int, last: int) -> str | None:
        """Which rule takes some of `groups` for one number, others standing beside it."""
        part = groups[first:last]
        form = shape(part)
        shaped = _is_shaped(part, form, spoken=self._view.spoken)
        alone = len(part) == 1 and form[0] in {10, 11}
        trunk = part[0].digits[0] == "0"
        signed = first == 0 and self._plus(part[0])
        if not (shaped or alone or trunk or signed):
            return None
        digits = joined(part)
        # Beside other numbers an international one has no clear end: most have 11 to 13 digits.
        if first == 0 and self._is_international(part[0], digits) and 11 <= len(digits) <= 13:
            return "phone-international"
        meanings = {self._cues.before(groups[0].start), self._cues.before(part[0].start)}
        if self._is_quantity(part) or not HARMLESS.isdisjoint(meanings):
            return None
        if shaped:
            return "phone-shape"
        return self._alone(part, digits) if alone else self._beside(digits) if trunk else None

    def _alone(self, part: list[Group], digits: str) -> str | None:
        if self._view.spoken and self._was_spelled(part):
            return "phone-spoken"
        return "phone-plan" if self._has_plan(digits, _PLAN_SHAPES[(len(digits),)]) else None

    def _beside(self, digits: str) -> str | None:
        if _OPENS_TRUNK.match(digits) and len(digits) in _TRUNK_LENGTHS:
            return "phone-national" if self._has_plan(digits, ("GB", "FR", "DE")) else None
        return None

    def _plus(self, first: Group) -> bool:
        return self._view.text[max(0, first.start - 3) : first.start].rstrip(" (").endswith("+")

    def _is_international(self, first: Group, digits: str) -> bool:
        if self._plus(first):
            return _SHORTEST <= len(digits) <= _LONGEST + 4
        prefix = next((p for p in ("00", "011") if first.digits.startswith(p)), None)
        if prefix is None or len(digits) < 11 + len(prefix) - 2:
            return False
        return self._is_valid("+" + digits[len(prefix) :], None)

    def _is_quantity(self, groups: Sequence[Group]) -> bool:
        text = self._view.text
        start = groups[0].start
        if any(not group.gap.isspace() for group in groups[1:]):
            return False  # "866-555-0123 day or night" counts no days
        return bool(
            _MONEY_BEFORE.search(text, max(0, start - 5), start) or _UNIT_AFTER.match(text, groups[-1].end)
        )

    def _national(self, groups: list[Group], digits: str) -> str | None:
        form = shape(groups)
        if self._region and self._is_valid(digits, self._region):
            return "phone-region"
        if _is_shaped(groups, form, spoken=self._view.spoken):
            return "phone-shape"
        if _OPENS_TRUNK.match(digits) and len(digits) in _TRUNK_LENGTHS:
            return "phone-trunk" if self._trunk(groups, digits) else None
        if self._view.spoken and len(digits) in {10, 11} and self._was_spelled(groups):
            return "phone-spoken"
        return "phone-plan" if self._has_plan(digits, _PLAN_SHAPES.get(form, ())) else None

    def _trunk(self, groups: list[Group], digits: str) -> bool:
        """Whether digits that begin with a trunk zero are as long as phone numbers are."""
        if len(groups) == 1:
            return len(digits) in {10, 11}
        return len(digits) in {10, 11} or self._has_plan(
            digits, ("DE", "IL", "GB", "ZA", "SE", "AT", "NL", "BE", "AU")
        )

    def _was_spelled(self, groups: Sequence[Group]) -> bool:
        """Whether digits were said one by one: "twelve fourteen sixteen" stand in pairs."""
        lengths = shape(groups)
        counting = max((group.digits for group in groups), key=len)
        if counting in _COUNTING or counting[::-1] in _COUNTING or len(set(joined(groups))) == 1:
            return False
        return max(lengths) >= 3 and (len(lengths) == 1 or min(lengths) >= 2)

    def _has_plan(self, digits: str, regions: Sequence[str]) -> bool:
        return any(self._is_valid(digits, region) for region in regions)

    def _is_valid(self, number: str, region: str | None) -> bool:
        if self._asked >= _PATIENCE:
            return True
        self._asked += 1
        import phonenumbers

        try:
            return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
        except phonenumbers.NumberParseException:
            return False

    def _finding(self, groups: Sequence[Group], rule: str) -> Finding:
        start = groups[0].start
        sign = _OPENING.search(self._view.text, max(0, start - 4), start)
        return Finding("PHONE", sign.start() if sign else start, groups[-1].end, rule)


def _is_shaped(groups: Sequence[Group], form: tuple[int, ...], *, spoken: bool) -> bool:
    """Whether the grouping alone says phone: North American, or seven digits from the exchange of films."""
    if form in {(3, 4), (7,)}:
        return groups[0].digits.startswith("555")
    if form not in _NORTH_AMERICAN:
        # "five five five, oh one hundred": the last four may come in parts.
        return spoken and sum(form) == 10 and form[:2] == (3, 3)
    # "100 200 3000" are three numbers: no area code begins with 0 or 1.
    return groups[form.index(3)].digits[0] > "1" or not groups[-1].gap.isspace()


def _without_dates(groups: list[Group]) -> Iterator[list[Group]]:
    """`groups` cut at each date in it, which is left out."""
    part: list[Group] = []
    place = 0
    while place < len(groups):
        if _is_date(groups[place : place + 3]):
            if part:
                yield part
            part = []
            place += 3
            continue
        part.append(groups[place])
        place += 1
    if part:
        yield part


def _is_date(groups: Sequence[Group]) -> bool:
    if len(groups) < 3 or {groups[1].gap, groups[2].gap} - {"-", "/", ".", " "}:
        return False
    form = shape(groups)
    if groups[1].gap != groups[2].gap or form[1] > 2 or not 1 <= int(groups[1].digits) <= 31:
        return False
    year = groups[0] if form[0] == 4 else groups[2]
    others = form[1:] if form[0] == 4 else form[:2]
    return len(year.digits) == 4 and year.digits[:2] in {"19", "20"} and max(others) <= 2


__all__ = ["Phones"]
