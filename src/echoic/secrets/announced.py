"""What a word announces and nothing else betrays: passwords, codes, accounts, documents.

Each rule is a cue, a link ("for the alarm is now"), and a value of a shape; "the password is required" has no
value. All patterns are bounded: after a cue at most `_WINDOW` characters are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from echoic.secrets.findings import Finding, Kind
from echoic.secrets.patterns import END, START, any_of
from echoic.secrets.views import View
from echoic.words import STOP

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

_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,64})[\"'`](?!\w)")
_DIGITS = re.compile(r"[A-Za-z]{0,3}[- ]?(?:[0-9][ ./-]{0,2}){2,40}[0-9](?:[A-Za-z](?![A-Za-z]))?")
_CODE = re.compile(r"[#*]?\s?[0-9](?:[ -]{0,2}[0-9]){2,11}[#*]?(?![\w%]|[.,:][0-9])")
_SIGNED = re.compile(r"\S{2,128}")
_WORDS = re.compile(r"[^\W\d_][\w'-]{0,40}(?:[ ,]{1,2}[\w'-]{1,41}){0,23}")
_DOCUMENT = re.compile(r"[A-Za-z0-9](?:[ ./-]?[A-Za-z0-9]){3,24}")
_PLATE = re.compile(
    r"[A-Za-z0-9]{1,8}(?:[ -](?:[A-Z]{1,4}|[A-Za-z]?[0-9]{1,5}[A-Za-z]{0,3})){0,3}(?![A-Za-z0-9])"
)
_AROUND = ".,;:!?)(\"'"
_DIGIT = re.compile(r"[0-9]")
_UNITS = re.compile(
    r"\s*(?:characters?|digits?|letters?|days?|hours?|minutes?|months?|weeks?|years?|times?|percent|%)\b",
    re.IGNORECASE,
)

# What is said of a password without saying it.
_STATES = STOP | frozenset(
    """required needed necessary wrong incorrect invalid expired expiring reset changed set sent emailed
    printed written available posted displayed stored saved encrypted hashed protected secure insecure
    weak strong long short case sensitive optional mandatory unknown missing lost forgotten different same
    unique temporary new old working broken disabled enabled locked unlocked blocked asked provided given
    shown hidden updated never always important private secret confidential personal safe good bad easy
    hard simple complex compromised leaked stolen shared known visible found located kept changing
    resetting checking generated created issued valid accepted rejected denied one something anything
    nothing everything behind inside below next near case-sensitive better ready due going being made used
    mailed texted sent-out alphanumeric numeric per two-factor handled managed rotated by""".split()
)
# Alone they say how a password is; before other words they may be part of one.
_WEAK_STATES = frozenset("correct right blank empty fine perfect great terrible".split())
_ENDS = frozenset(
    "and but so because for when if which that please thanks thank or ok okay then since while until".split()
)
_MOST_WORDS = 6
_MOST_SEED_WORDS = 24


def _linked(text: str, place: int, end: int) -> int | None:
    found = _LINK.match(text, place, end)
    return found.end() if found else None


def _quoted(text: str, place: int, end: int) -> Span | None:
    found = _QUOTED.match(text, place, end)
    return found.span(1) if found else None


def _pin(text: str, place: int, end: int) -> Span | None:
    """Digits, after a link or right after the cue."""
    for start in (_linked(text, place, end), _after(text, place, end)):
        if start is None:
            continue
        if (quoted := _quoted(text, start, end)) is not None:
            return quoted
        found = _CODE.match(text, start, end)
        if found and not _UNITS.match(text, found.end()):
            return found.span()
        spelled = _spelled(text, start, end)
        if spelled is not None:
            return spelled
    return None


def _after(text: str, place: int, end: int) -> int:
    found = _NEAR.match(text, place, end)
    return found.end() if found else place


def _spelled(text: str, start: int, end: int) -> Span | None:
    """One word that is no word: it holds a digit and a letter, or a sign inside."""
    found = _SIGNED.match(text, start, end)
    if found is None:
        return None
    bare = found[0].rstrip(_AROUND)
    signs = bool(_DIGIT.search(bare)) and not bare.isdecimal()
    if (
        len(bare) < 3
        or not (signs or re.search(r"\w[@#$%^&*!~+=]|[@#$%^&*~]\w", bare))
        or _UNITS.match(text, start + len(bare))
    ):
        return None
    return start, start + len(bare)


def _password(text: str, place: int, end: int) -> Span | None:
    """A word or several, after a link; right after the cue only what is quoted or no word."""
    start = _linked(text, place, end)
    if start is None:
        near = _after(text, place, end)
        return _quoted(text, near, end) or _spelled(text, near, end) or (_code_span(text, near, end))
    found = _quoted(text, start, end) or _code_span(text, start, end) or _spelled(text, start, end)
    return found or _phrase(text, start, end, _MOST_WORDS)


def _code_span(text: str, start: int, end: int) -> Span | None:
    found = _CODE.match(text, start, end)
    return found.span() if found and not _UNITS.match(text, found.end()) else None


def _phrase(text: str, start: int, end: int, most: int) -> Span | None:
    """Plain words up to where the sentence goes on; None where the first is said of a password."""
    found = _WORDS.match(text, start, end)
    if found is None:
        return None
    last = start
    for count, word in enumerate(re.finditer(r"[^\s,]+", found[0])):
        plain = word[0].lower()
        if count == most or plain in _ENDS or (count == 0 and plain in _STATES):
            break
        last = start + word.end()
    return (start, last) if last > start and text[start:last].lower() not in _WEAK_STATES else None


def _seed(text: str, place: int, end: int) -> Span | None:
    start = _linked(text, place, end)
    return None if start is None else _phrase(text, start, end, _MOST_SEED_WORDS)


def _token(text: str, place: int, end: int) -> Span | None:
    """Eight characters or more with a digit among them."""
    start = _linked(text, place, end)
    found = _SIGNED.match(text, _after(text, place, end) if start is None else start, end)
    if found is None:
        return None
    bare = found[0].strip(_AROUND)
    first = found.start() + found[0].index(bare)
    return (first, first + len(bare)) if len(bare) >= 8 and _DIGIT.search(bare) else None


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


_DOORS = any_of(
    """doors? gates? alarms? garage safe house home building lobby apartment lock(?:box|er)? office keypad
    phone"""
)
_CODED = any_of(
    r"""access door gate alarm entry entrance keypad lock unlock safe garage security verification login
    sign-?in one-?\s?time two-?\s?factor 2fa authentication authori[sz]ation voicemail lockbox garage_door
    front_door sms puk phone"""
)
_KEYED = any_of(
    """access auth(?:entication|orization)? bearer refresh session client private licen[cs]e product
    encryption signing"""
)
_NUMBERED = r"(?=\s*(?:numbers?|nos?\b|nr\b|#|ids?\b))"
_ACCOUNTS = any_of(
    "bank checking savings? current brokerage pension sort routing swift transit branch aba giro"
)
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
        "PASSWORD",
        "password",
        _cue(
            r"""pass\s?-?(?:words?|phrases?) passwd pwd (?:secret|safe)_(?:word|phrase)
            mother'?s_maiden_name security_answer pass(?=\s*[:=]) pw(?=\s*[:=]) contrasena mot_de_passe
            passwort kennwort senha wachtwoord parola_d'ordine"""
        ),
        _password,
    ),
    Announced(
        "PASSWORD",
        "pin",
        _cue(
            rf"""pins?(?:_codes?)? pass\s?codes? pass\s?-?words?
            {_CODED}_(?:pass)?(?:code|pin|combination) otp puk (?:lock|locker|safe|vault)_combination"""
        ),
        _pin,
    ),
    Announced(
        "PASSWORD",
        "code-for",
        _cue(rf"(?:pass)?codes?(?=_(?:for|to|of)_(?:(?:the|my|our|his|her|their)_)?(?:[a-z]+_)?{_DOORS})"),
        _pin,
    ),
    Announced(
        "PASSWORD", "seed", _cue("(?:seed|recovery|backup|mnemonic)_(?:phrase|words?) mnemonic"), _seed
    ),
    Announced(
        "KEY",
        "key-cue",
        _cue(
            rf"""api[\s\x5f-]?(?:key|token|secret) secret(?:[\s\x5f-]?(?:key|token))?
            {_KEYED}[\s\x5f-]?(?:key|token|secret) token"""
        ),
        _token,
    ),
    Announced(
        "ACCOUNT",
        "account",
        _cue(
            rf"""(?:{_ACCOUNTS}_)?(?:accounts?|acct|routing|transit|sort_code|sort) a/c kontonummer
            numero_(?:de|di)_(?:cuenta|compte|conta|conto)
            {_MEMBERS}(?:_(?:card|account|policy|plan))?{_NUMBERED}
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

# "4471 is my pin", "swordfish is the password"
_SECRET = any_of(
    r"""pass\s?words? pass\s?codes? passphrases? pins? access_code door_code alarm_code gate_code"""
)
_BACKWARDS = re.compile(
    rf"{START}(?P<value>[^\s]{{3,64}})\s+(?:is|was|'s)\s+(?:my|his|her|the|our|their)\s+(?:[a-z]+\s+){{0,2}}?"
    rf"(?P<what>{_SECRET}){END}",
    re.IGNORECASE,
)


def announced(view: View) -> Iterator[Finding]:
    """Values behind their cues, and passwords before theirs."""
    text = view.text
    for rule in _RULES:
        for cue in rule.cue.finditer(text):
            value = rule.value(text, cue.end(), min(len(text), cue.end() + _WINDOW))
            if value is not None:
                yield Finding(rule.kind, *value, rule.rule)
    for found in _BACKWARDS.finditer(text):
        if _is_secret(found["value"], found["what"].lower()):
            yield Finding("PASSWORD", *found.span("value"), "password-before")


def _is_secret(value: str, what: str) -> bool:
    """Whether `value` can be what is then called a password; "that is the password" says nothing."""
    return bool(_DIGIT.search(value)) or ("word" in what and value.lower() not in _STATES | {"what", "here"})


__all__ = ["Announced", "announced"]
