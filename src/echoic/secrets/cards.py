"""Payment cards and IBANs, known by their check digits wherever they stand, and cards a word announces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.secrets import checksums
from echoic.secrets.cues import Cues
from echoic.secrets.digits import Group, clusters, joined, shape, windows
from echoic.secrets.findings import Finding
from echoic.text.views import View

# Ways a card is printed; anything else counts only as a whole, so that a list of numbers is no card.
_PRINTED = {
    (14,),
    (15,),
    (16,),
    (18,),
    (19,),
    (4, 4, 4, 4),
    (4, 6, 5),
    (4, 6, 4),
    (4, 4, 4, 4, 3),
    (8, 8),
    (4, 12),
    (6, 13),
}
_MOST_GROUPS = max(map(len, _PRINTED))
_SECURITY_CODE = re.compile(
    r"(?<!\w)(?:cvv2?|cvc2?|cid|csc|card\s+(?:verification|security)\s+(?:code|value|number))"
    r"(?:\s+(?:number|code))?(?:\s*(?:is|was|=|:))?\s*([0-9](?:[ -]?[0-9]){2,3})(?![0-9])",
    re.IGNORECASE,
)
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[ -]?[0-9][ -]?[0-9](?=[ .-]{0,2}[A-Za-z0-9])")
_IBAN_REST = re.compile(r"[A-Za-z0-9](?:[ .,-]{0,2}[A-Za-z0-9]){10,33}")
_SIGN = re.compile(r"[A-Za-z0-9]")


def cards(view: View, cues: Cues) -> Iterator[Finding]:
    """Card numbers and the codes on their backs."""
    for groups in clusters(view.text):
        total = sum(len(group.digits) for group in groups)
        if total < 13:
            continue
        if total <= 23 and cues.before(groups[0].start) == "card":
            yield Finding("CARD", groups[0].start, groups[-1].end, "card-cue")
            continue
        yield from _in_cluster(groups, total)
    for code in _SECURITY_CODE.finditer(view.text):
        yield Finding("CARD", code.start(1), code.end(1), "card-security-code")


def _in_cluster(groups: list[Group], total: int) -> Iterator[Finding]:
    if total <= 19 and checksums.card(joined(groups)):
        yield Finding("CARD", groups[0].start, groups[-1].end, "card")
        return
    for first, last in windows(groups, 14, 19, _MOST_GROUPS):
        part = groups[first:last]
        if shape(part) in _PRINTED and checksums.card(joined(part)):
            yield Finding("CARD", part[0].start, part[-1].end, "card")


def ibans(view: View) -> Iterator[Finding]:
    """IBANs, in groups or not."""
    for start in _IBAN_START.finditer(view.text):
        place = start.start()
        rest = _IBAN_REST.match(view.text, place)
        length = checksums.iban_length(start[0][:2].upper())
        if rest is None or length is None:
            continue
        signs = [sign.start() + place for sign in _SIGN.finditer(rest[0])][:length]
        compact = "".join(view.text[sign] for sign in signs).upper()
        end = signs[-1] + 1
        if checksums.iban(compact) and not view.text[end : end + 1].isalnum():
            yield Finding("IBAN", place, end, "iban")


__all__ = ["cards", "ibans"]
