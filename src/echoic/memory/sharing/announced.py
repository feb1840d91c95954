"""What a word announces and nothing else betrays: secrets, memberships, documents, plates.

Each rule is a cue, a link ("for the alarm is now"), and a value of a shape; "the password is required" has no
value. All patterns are bounded: after a cue at most `_WINDOW` characters are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from echoic.secrets import values
from echoic.secrets.announced import labelled
from echoic.secrets.findings import Finding, Kind
from echoic.secrets.labels import Secret
from echoic.secrets.patterns import END, START, any_of
from echoic.secrets.views import View

_WINDOW = 200
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Announced:
    """One kind of value and what announces it."""

    kind: Kind
    rule: str
    cue: re.Pattern[str]
    value: Callable[[str, int, int], Span | None]
    """Given the text, where the cue ends, and how far to read: the value, or None."""


def _cue(words: str) -> re.Pattern[str]:
    return re.compile(START + any_of(words) + END, re.IGNORECASE)


_VERB = (
    START
    + any_of("is was are were will_be would_be 's es est ist e equals became changed_to set_to to_be")
    + END
)
_FILLER = any_of(
    "now still just currently actually always also simply probably like uh um the_word set_to : -"
)
# "for the front door", "of my savings account": who or what it opens, then the verb.
_WHOSE = r"(?:for|to|of|on|at|in|with|from)\s+(?:[\w'-]+\s+){0,4}?[\w'-]+?"
_LINK = re.compile(
    rf"\s*(?:(?:numbers?|no\.?|code|#)\s*)?(?:{_WHOSE})??\s*(?:{_VERB}|[=:])\s*(?:{_FILLER}\s*){{0,3}}",
    re.IGNORECASE,
)
_NEAR = re.compile(
    r"\s*(?:(?:numbers?|no\.?|nr\.?|code|id|#)\s*){0,2}"
    r"(?:that\s+)?(?:ending|ends|ended)?(?:\s+(?:in|with))?\s*[:#]?\s*",
    re.IGNORECASE,
)

_DIGITS = re.compile(r"[A-Za-z]{0,3}[- ]?(?:[0-9][ ./-]{0,2}){2,40}[0-9](?:[A-Za-z](?![A-Za-z]))?")
_DOCUMENT = re.compile(r"[A-Za-z0-9](?:[ ./-]?[A-Za-z0-9]){3,24}")
_PLATE = re.compile(
    r"[A-Za-z0-9]{1,8}(?:[ -](?:[A-Z]{1,4}|[A-Za-z]?[0-9]{1,5}[A-Za-z]{0,3})){0,3}(?![A-Za-z0-9])"
)
_DIGIT = re.compile(r"[0-9]")


def _linked(text: str, place: int, end: int) -> int | None:
    found = _LINK.match(text, place, end)
    return found.end() if found else None


def _after(text: str, place: int, end: int) -> int:
    found = _NEAR.match(text, place, end)
    return found.end() if found else place


def _pin(text: str, place: int, end: int) -> Span | None:
    """Digits, after a link or right after the cue."""
    for start in (_linked(text, place, end), _after(text, place, end)):
        found = values.digits(text, start, 3, 12) if start is not None else None
        if found is not None:
            return found
    return None


def _account(text: str, place: int, end: int) -> Span | None:
    """Four digits or more, letters before them allowed."""
    for start in (_linked(text, place, end), _after(text, place, end)):
        found = _DIGITS.match(text, start, end) if start is not None else None
        if found and len(_DIGIT.findall(found[0])) >= 4:
            return found.span()
    return None


def _document(text: str, place: int, end: int) -> Span | None:
    """Letters and digits, four digits or more."""
    for start in (_linked(text, place, end), _after(text, place, end)):
        found = _DOCUMENT.match(text, start, end) if start is not None else None
        if found is None:
            continue
        # Words before or after the number belong to the sentence.
        kept = [
            part
            for part in re.finditer(r"[^\s]+", found[0])
            if _DIGIT.search(part[0]) or (len(part[0]) <= 6 and part[0].isupper())
        ]
        if kept and kept[0].start() == 0 and _is_document("".join(part[0] for part in kept)):
            return found.start(), found.start() + kept[-1].end()
    return None


def _is_document(value: str) -> bool:
    digits = len(_DIGIT.findall(value))
    return digits >= 5 or (digits == 4 and not value.isdecimal())


def _plate(text: str, place: int, end: int) -> Span | None:
    for start in (_linked(text, place, end), _after(text, place, end)):
        found = _PLATE.match(text, start, end) if start is not None else None
        if found and len(_DIGIT.findall(found[0])) >= 2 and re.search("[A-Za-z]|[0-9]{5}", found[0]):
            return found.span()
    return None


_NUMBERED = r"(?=\s*(?:numbers?|nos?\b|nr\b|#|ids?\b))"
_MEMBERS = any_of(
    """member(?:ship)? loyalty frequent_flyer customer client subscriber policy policyholder insurance
    mileage rewards? bonus pension brokerage patron library"""
)
_HOLDERS = any_of(
    """id identity citizen resident personal government state military voter student employee patient
    badge staff health_card health_insurance green_card visa_application alien residence_permit"""
)
_LAST_FOUR = (
    r"last\s+(?:four|4)(?:\s+digits)?\s+(?:of|on)\s+(?:(?:my|his|her|their|the|that)\s+)?(?:[a-z]+\s+)?"
)
_RULES = (
    Announced(
        "ACCOUNT",
        "account",
        _cue(
            rf"""accounts? acct {_MEMBERS}(?:_(?:card|account|policy|plan))?{_NUMBERED}
            (?:cards?|visa|mastercard|amex)(?=_(?:that_)?(?:ending|ends|ended)\b)"""
        ),
        _account,
    ),
    Announced(
        "ID", "last-four", _cue(rf"{_LAST_FOUR}(?:ssn|social(?:_security)?(?:_number)?|id|passport)"), _pin
    ),
    Announced(
        "ACCOUNT", "last-four", _cue(rf"{_LAST_FOUR}(?:cards?|visa|mastercard|amex|account|number)"), _pin
    ),
    Announced(
        "ACCOUNT", "last-four", _cue(r"last\s+(?:four|4)(?:\s+digits)?(?=\s+(?:is|are|was|were)\b)"), _pin
    ),
    Announced("ACCOUNT", "iban-cue", _cue("iban international_bank_account"), _document),
    Announced(
        "ID",
        "id-cue",
        _cue(
            rf"""ssn social_security social itin national_(?:insurance|id|identity|identification)
            tax_(?:id|file|number|code) tin aadhaa?r passport pasaporte passeport reisepass
            driv(?:er'?s?|ing)_licen[cs]e nhs medicare medicaid teudat_zehut
            {_HOLDERS}(?:_(?:card|document|permit))?{_NUMBERED} medical_record mrn identity_card dni nif
            bsn codice_fiscale steuer-?(?:id|nummer) steueridentifikationsnummer cpf pesel personnummer
            vehicle_identification vin imei social_insurance numero_de_(?:identidad|dni)"""
        ),
        _document,
    ),
    Announced(
        "ID",
        "plate",
        _cue(
            """(?:licen[cs]e|number|registration|car)_plates? (?:my|his|her|their)_plate plate_number
            registration_number"""
        ),
        _plate,
    ),
)

_KINDS: dict[Secret, Kind] = {
    "card": "CARD",
    "API key": "KEY",
    "account number": "ACCOUNT",
    "ID number": "ID",
}


def announced(view: View) -> Iterator[Finding]:
    """Values behind their cues: secrets, and numbers by which somebody is known."""
    text = view.text
    for secret, span in labelled(view):
        yield Finding(_KINDS.get(secret, "PASSWORD"), *span, "secret")
    for rule in _RULES:
        for cue in rule.cue.finditer(text):
            value = rule.value(text, cue.end(), min(len(text), cue.end() + _WINDOW))
            if value is not None:
                yield Finding(rule.kind, *value, rule.rule)


__all__ = ["Announced", "announced"]
