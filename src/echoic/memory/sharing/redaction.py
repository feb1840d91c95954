"""Personal data out of a text, by rules: written and spoken, no language model. Pure; decides nothing.

A text is read twice, as written and as said, and every rule sees both readings. What a placeholder stands
for is gone, and no rule reads across one, so that a text that was redacted is left as it is.

Time grows with the length of the text: patterns are bounded or possessive, and numbering plans are asked
about at most a fixed number of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing.addresses import addresses as street_addresses
from echoic.memory.sharing.announced import announced
from echoic.memory.sharing.birthdates import birthdates
from echoic.memory.sharing.online import addresses as network_addresses
from echoic.memory.sharing.online import emails, urls
from echoic.memory.sharing.phones import Phones
from echoic.memory.sharing.said_email import said_emails
from echoic.secrets.cards import cards, ibans
from echoic.secrets.cues import Cues
from echoic.secrets.findings import PLACEHOLDER, Finding, Redacted, merged, replaced
from echoic.secrets.identity import identities
from echoic.secrets.keys import keys
from echoic.secrets.spoken import readings, tokens
from echoic.secrets.views import View, written

_PASSES = 5
"""How often what is left between findings is read again before all of it is taken out."""

Span = tuple[int, int]
Detector = Callable[[str], Iterable[Finding]]
"""Finds personal data in a text: stretches that are not empty and lie within it."""


def redact(text: str, *, region: str | None = None, also: Detector | None = None) -> Redacted:
    """`text` with a placeholder such as "[EMAIL]" for each stretch of personal data in it.

    Redacting the result again changes nothing. Any text is accepted, empty and malformed Unicode included.

    Args:
        text: what was said or written.
        region: ISO 3166 code of the country whose national phone numbers are meant, such as "DE". Without it
            only forms that can hardly be anything but a phone number count.
        also: a further detector; what it finds is taken out as well. It is called with parts of the text.

    Raises:
        InvalidInput: no country with telephone numbers has that code.
    """
    found = detect(text, region=region, also=also)
    return Redacted(replaced(text, found), tuple(found))


def detect(text: str, *, region: str | None = None, also: Detector | None = None) -> list[Finding]:
    """What `redact` takes out, in order of place.

    Raises:
        InvalidInput: no country with telephone numbers has the code `region`.
    """
    region = _checked_region(region)
    found: list[Finding] = []
    spans = list(_between(text, (match.span() for match in PLACEHOLDER.finditer(text))))
    for _ in range(_PASSES):
        open_spans: list[Span] = []
        for start, end in spans:
            here = [_moved(f, start) for f in _look(text[start:end], region, also)]
            found += here
            if here:
                open_spans += _outside((start, end), ((f.start, f.end) for f in here))
        spans = open_spans
    # Something new shows whenever something is taken out: the text was made that way. None of it is kept.
    found += [
        Finding(hit[0].kind, *span, "remainder")
        for span in spans
        if (hit := _look(text[slice(*span)], region, also))
    ]
    return sorted(found, key=lambda f: f.start)


def _look(text: str, region: str | None, also: Detector | None) -> list[Finding]:
    """What is found in a text without placeholders, in one pass."""
    if len(text.strip()) < 2:
        return []
    plain = written(text)
    words = tokens(plain.text)
    found = [_original(plain, f) for f in (*_rules(plain, region), *said_emails(plain, words))]
    for said in readings(plain, words):
        found += [_original(said, f) for f in _rules(said, region)]
    if also is not None:
        found += also(text)
    return merged(found)


def _rules(view: View, region: str | None) -> Iterator[Finding]:
    cues = Cues(view.text)
    yield from emails(view)
    yield from urls(view)
    yield from network_addresses(view, cues)
    yield from keys(view)
    yield from announced(view)
    yield from birthdates(view)
    if any(character.isdecimal() for character in view.text):
        yield from cards(view, cues)
        yield from ibans(view)
        yield from identities(view, cues)
        yield from Phones(view, cues, region).find()
        yield from street_addresses(view)


def _original(view: View, finding: Finding) -> Finding:
    return Finding(finding.kind, *view.origin(finding.start, finding.end), finding.rule)


def _moved(finding: Finding, by: int) -> Finding:
    return Finding(finding.kind, finding.start + by, finding.end + by, finding.rule)


def _between(text: str, taken: Iterable[Span]) -> Iterator[Span]:
    return _outside((0, len(text)), taken)


def _outside(span: Span, taken: Iterable[Span]) -> Iterator[Span]:
    """What of `span` is not `taken`, which is in order; empty stretches are left out."""
    place = span[0]
    for start, end in taken:
        if start > place:
            yield place, start
        place = end
    if span[1] > place:
        yield place, span[1]


def _checked_region(region: str | None) -> str | None:
    if region is None:
        return None
    import phonenumbers

    if region.upper() in phonenumbers.SUPPORTED_REGIONS:
        return region.upper()
    raise InvalidInput(
        f"no country with telephone numbers has the code {brief(region)}: use two letters, such as 'DE'"
    )


__all__ = ["Detector", "detect", "redact"]
