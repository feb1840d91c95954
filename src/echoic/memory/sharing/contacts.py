"""Telephone numbers, e-mail addresses and street addresses in a text, and other long numbers. Pure.

What is found is taken out of a text before it is shared, or keeps it private. The rules are coarse on
purpose: finding too much costs only that a text stays private. Of 4,998 labelled calls these end differently
without a rule (`python -m benchmarks.sharing`): long numbers 6, e-mail addresses 2, streets 2, identifiers 1,
digits that are said 1. E-mail addresses that are said, and postcodes, decide only where personal data stands
behind a fact, as `test_nothing_personal_is_ever_left_in_what_is_shared` makes up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from echoic.memory.sharing.wording import LISTS
from echoic.text.lists import END, START, any_of
from echoic.text.spoken import readings, tokens
from echoic.text.views import View, written

Contact = Literal["PHONE", "EMAIL", "ADDRESS"]
"""What is taken out of a text that is shared; "[PHONE]" and so on stand in its place."""

_EMAIL: Final = re.compile(r"[^\s@<>()\[\],;:\"]{1,320}@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_][\w-]{0,62}")
# "ana at example dot com", but not "visit us online at example dot com".
_SAID_EMAIL: Final = re.compile(
    rf"(?<!\S)(?!{any_of(LISTS['no mailbox'])})(\S+)(?:\s+sign)?\s+(?:at|@|\(at\)|arroba|chiocciola)\s+"
    r"(?:[\w-]+\s+){0,8}?(?:[\w-]+\s*(?:dot|\(dot\)|\.|punto|punkt|ponto|point)\s*){1,4}"
    rf"{any_of(LISTS['top level domains'])}\b",
    re.IGNORECASE,
)
_LONG: Final = re.compile(r"\+?(?:\((?=[0-9]{1,6}\)))?[0-9](?:[ .,/()\n*_|-]{0,3}[0-9]){5,}")
"""Six digits with hardly a sign between them are some number of somebody's, whatever it is called."""
_NO_LONG: Final = re.compile(
    r"(?<![0-9.])(?:[01]?[0-9]|2[0-4])[.:][0-5][0-9](?![0-9]|[.][0-9])"  # 9.30
    r"|[$\u20ac\u00a3] ?[0-9]{1,3}(?:[.,]?[0-9]{3})?(?:[.,][0-9]{2})?(?![0-9])"  # $1,299.00
    r"|(?<![0-9.,])[0-9]{1,3}(?:[.,]?[0-9]{3})?(?:[.,][0-9]{2})? ?(?:[$\u20ac\u00a3]|dollars|euros|pounds)"
)
"""Hours and prices, in which a business tells of itself."""
_IDENTIFIER: Final = re.compile(
    r"(?<!\w)(?:(?=\w*[^\W\d_])(?=(?:\w*\d){5})|(?=(?:\w*[A-Z]){2})(?=(?:\w*\d){4}))\w{6,}(?!\w)"
    r"|\bend(?:s|ed|ing)\s+(?:in|with)\s+[0-9]"
)
"""Letters and four digits in one word, and the last digits of a card: of somebody as well."""
_REACHED: Final = re.compile(
    START
    + any_of("(?:tele)?phones? tel call(?:ed|s|ing)? lines? hotline helpline numbers? fax contact reach text")
    + END,
    re.IGNORECASE,
)
_PHONE_DIGITS: Final = range(7, 16)
"""ITU-T E.164: 15 digits at most."""

_STREETS: Final = any_of(LISTS["streets"])
_ADDRESS: Final = re.compile(
    r"(?<![\w.,:/$\u20ac\u00a3-])[0-9]{1,5}[A-Za-z]?,?\s+(?P<name>(?:[^\W\d_][\w'-]{0,30}\.?\s+){1,4}?)"
    rf"(?P<type>{_STREETS})\b\.?(?:,?\s+(?:apartment|apt|flat|unit|suite)\.?\s+\w{{1,5}}\b)?",
    re.IGNORECASE,
)
_POSTCODE: Final = re.compile(
    r"(?<!\w)(?:[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}|[A-Z]{2},? [0-9]{5}(?:-[0-9]{4})?)(?!\w)"
)
"""British and American ones."""
_NO_STREET_NAME: Final = frozenset(LISTS["no street name"].split())


@dataclass(frozen=True, slots=True)
class ContactSpan:
    """A stretch of a text."""

    kind: Contact | None
    """None: a number that is nobody's telephone."""
    start: int
    end: int


def contacts(text: str) -> list[ContactSpan]:
    """What is found in `text`, written or said, in order and apart."""
    plain = written(text)
    found: list[ContactSpan] = []
    for view in (plain, *readings(plain, tokens(plain.text))):
        found += [ContactSpan(each.kind, *view.origin(each.start, each.end)) for each in _in_view(view)]
    united: list[ContactSpan] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if united and each.start < united[-1].end:
            last = united.pop()
            each = ContactSpan(last.kind and each.kind, last.start, max(last.end, each.end))  # noqa: PLW2901 - the two as one
        united.append(each)
    return united


def _in_view(view: View) -> Iterator[ContactSpan]:
    text = view.text
    for pattern in (_EMAIL, _SAID_EMAIL):
        yield from (ContactSpan("EMAIL", *each.span()) for each in pattern.finditer(text))
    if not any(character.isdecimal() for character in text):
        return
    reached = _REACHED.search(text) is not None
    for each in _LONG.finditer(_NO_LONG.sub(lambda known: ":" * len(known[0]), text)):
        count = sum(character.isdecimal() for character in each[0])
        yield ContactSpan("PHONE" if reached and count in _PHONE_DIGITS else None, *each.span())
    yield from (ContactSpan(None, *each.span()) for each in _IDENTIFIER.finditer(text))
    yield from (ContactSpan("ADDRESS", *each.span()) for each in _POSTCODE.finditer(text))
    for each in _ADDRESS.finditer(text):
        if _NO_STREET_NAME.isdisjoint(each["name"].lower().split()):
            yield ContactSpan("ADDRESS", *each.span())


def without_contacts(text: str) -> tuple[str, list[ContactSpan]]:
    """`text` with a placeholder for each of its `contacts`, and these."""
    found = contacts(text)
    pieces: list[str] = []
    done = 0
    for each in found:
        pieces += (text[done : each.start], f"[{each.kind}]")
        done = each.end
    return "".join((*pieces, text[done:])), found
