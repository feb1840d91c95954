"""Self-corrections within one sentence, put right: "in Leeds, no sorry, York" becomes "in York". Pure.

The words behind a mark ("no sorry", "i mean") replace as much of the words before it as they are alike to:
from the same word on, the same kind of word (a number, a weekday, a month), or else the last word or name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from echoic.english.lexicon import FUNCTION
from echoic.english.sentences import Sentence, Token

_MARK: Final = re.compile(
    r"(?:(?:well )?used to (?:but )?(?:now|these days) (?:it's|i'm at|i'm with|at|for) |"
    r"(?P<firm>(?:no )?(?:i tell a lie|hang on|hold on|scratch that|make that|i meant|i mean|or rather|"
    r"correction)(?: no| sorry)? |(?:no no|no sorry|sorry no|no wait|wait no|sorry wait|sorry i mean|oops) "
    r"(?:it's |i mean )?)|(?P<weak>(?:no|sorry) (?:it's )?))"
)
_NUMBER: Final = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half
    quarter double""".split()
)
_ORDINAL: Final = re.compile(
    r"(?:(?:twenty|thirty)-)?(?:[0-9]{1,2}(?:st|nd|rd)|first|second|third|twentieth|thirtieth|"
    r"(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|(?:thir|four|fif|six|seven|eigh|nine)teen)th)"
)
_DAYS: Final = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_MONTHS: Final = frozenset(
    "january february march april may june july august september october november december".split()
)
_OPENING: Final = frozenset("a an the my our at in on for to from i".split())
_SPEAKER: Final = frozenset("i my our we".split())
_LAST_DIGITS: Final = 3
"""So many digits, and fewer than stood before, put the last ones right."""
_MOST_INSTEAD: Final = 3
"""Words behind a weak mark that may be a correction of the last word before it."""


def repaired(said: Sentence) -> Sentence:
    """`said` with its first self-correction put right; itself where there is none."""
    for match in _MARK.finditer(said.line):
        start, end = said.at.get(match.start()), said.at.get(match.end())
        if start is None or end is None or not 0 < start < end < len(said):
            continue
        tokens = _put_right(said, start, end, weak=match["weak"] is not None)
        if tokens:
            return replace(said, tokens=tokens)
    return said


def _put_right(said: Sentence, start: int, end: int, *, weak: bool) -> tuple[Token, ...] | None:
    before, after = said.tokens[:start], said.tokens[end:]
    again = _same_word(before, after)
    if before[-1].low in {"and", "if"}:
        return None
    if again is not None and (not weak or said.gap(start) or after[0].low in _OPENING):
        gap = before[again].gap
        return (*before[:again], replace(after[0], gap=gap), *after[1:])
    if _kind(after[0]):
        return _same_kind(before, after)
    paused = said.gap(start) and said.gap(end)
    if len(before) < 2 or (weak and not paused) or len(after) > _MOST_INSTEAD or after[0].low in FUNCTION:
        return None
    last = len(before) - 1
    while last > 1 and after[0].capital and before[last - 1].capital and before[last].capital:
        last -= 1
    return (*before[:last], replace(after[0], gap=False), *after[1:])


def _same_word(before: tuple[Token, ...], after: tuple[Token, ...]) -> int | None:
    """The last place in `before` of the first word of `after`, if it is taken up again there."""
    lows = [token.low for token in before]
    if len(after) < 2 or after[0].low not in lows:
        return None
    if after[0].low in _SPEAKER and after[1].low not in lows:
        return None  # "my number is four, hang on, my pen is dry"
    return len(lows) - 1 - lows[::-1].index(after[0].low)


def _same_kind(before: tuple[Token, ...], after: tuple[Token, ...]) -> tuple[Token, ...] | None:
    """`after` in place of the last number, day or month of `before`, with what stood behind that one."""
    kind = _kind(after[0])
    stop = next((at + 1 for at in range(len(before) - 1, -1, -1) if _kind(before[at]) == kind), 0)
    start = stop
    while start > 0 and _kind(before[start - 1]) == kind:
        start -= 1
    if start == stop:
        return None
    length = next((at for at, token in enumerate(after) if _kind(token) != kind), len(after))
    if _LAST_DIGITS <= length < stop - start:
        start = stop - length
    behind = before[stop:]
    if behind and len(after) > length and _alike(after[length].low, behind[0].low):
        behind = ()
    value = (replace(after[0], gap=before[start].gap), *after[1:length])
    return (*before[:start], *value, *behind, *after[length:])


def _alike(one: str, other: str) -> bool:
    """Whether they are one word: "tablet" and "tablets"."""
    return one.removesuffix("s") == other.removesuffix("s")


def _kind(token: Token) -> str:
    """What kind of value a word is; "" for any other."""
    low = token.low
    if any(c.isdigit() for c in low) or all(part in _NUMBER for part in low.split("-")):
        return "number"
    if low in _DAYS:
        return "day"
    if low in _MONTHS and low != "may":
        return "month"
    return "ordinal" if _ORDINAL.fullmatch(low) else ""
