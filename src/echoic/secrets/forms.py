"""Secrets recognised by their own form: cards, IBANs, national ids and keys. Pure.

Without a rule this many secrets of the labelled sentences in tests are missed: cards 26, IBANs 18, keys by
prefix, header or block 18, keys by their randomness 1, national ids 9. Ids of other countries, and ids that a
word announces, are found by that word (`labels`): forty more checks changed no result.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from echoic.text import END, START, any_of, patterns
from echoic.text.spoken_numbers import View

_PATTERNS = patterns("echoic.secrets", "forms")


class Form(NamedTuple):
    """A span of a text, and the rule that found it."""

    rule: str
    start: int
    end: int


# -- the words that say what a number is: "call", "order number", "passport"; the nearest before it decides

Meaning = Literal["phone", "card", "identity", "account", "version", "order", "thing"]
""""version", "order" and "thing" are harmless numbers: of software and texts, of what is bought or booked, of
others."""

HARMLESS: frozenset[Meaning] = frozenset({"version", "order", "thing"})

_REACH: dict[Meaning, int] = {
    "identity": 40, "account": 40, "card": 40, "phone": 40, "version": 12, "order": 24, "thing": 4,
}  # fmt: skip
"""The most characters between a cue and its number; the end of a sentence between them separates them. A cue
that makes a number harmless must be nearer than one that does not."""

_NUMBER = _PATTERNS["number"]
_WORDS: dict[Meaning, str] = {
    "identity": _PATTERNS["words"],
    "version": "versions? releases? builds? firmware chapters? sections? v rules?",
    # Before phones, so that "order number is" is not also read as their "number is".
    "order": _PATTERNS["words 2"],
    "thing": _PATTERNS["words 3"],
    "account": _PATTERNS["words 4"],
    "card": _PATTERNS["words 5"],
    "phone": _PATTERNS["words 6"],
}
_MEANINGS = "|".join(f"(?P<{meaning}>{any_of(words)})" for meaning, words in _WORDS.items())
_CUE = re.compile(f"{START}(?:{_MEANINGS}){END}{_NUMBER}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[?!;\n]|\.\s+[A-Z]")


class Cues:
    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: list[int] = []
        self._meanings: list[Meaning] = []
        for cue in _CUE.finditer(text):
            self._ends.append(cue.end())
            self._meanings.append(next(meaning for meaning in _WORDS if cue[meaning]))

    def before(self, place: int) -> Meaning | None:
        """The meaning of the nearest cue before `place`; None if none is near."""
        index = bisect_right(self._ends, place) - 1
        if index < 0:
            return None
        meaning, end = self._meanings[index], self._ends[index]
        if place - end > _REACH[meaning] or _SENTENCE_END.search(self._text, end, place):
            return None
        # "Order 12, 212 555 0187": an order has one number.
        spent = meaning in HARMLESS and any(c.isdecimal() for c in self._text[end:place])
        return None if spent else meaning

    def directly_before(self, place: int) -> Meaning | None:
        """The meaning of the cue before `place`, if no word is between them."""
        index = bisect_right(self._ends, place) - 1
        if index < 0 or any(character.isalnum() for character in self._text[self._ends[index] : place][:40]):
            return None
        return self.before(place)


# -- digits in groups, as numbers are written: "555-123 4567" is three

# Possessive, so that a long run is read once whatever follows it.
_CLUSTER = re.compile(r"[0-9]++(?:[ .,/()_\n*|-]{1,3}+[0-9]++)*+")
_GROUP = re.compile(r"[0-9]++")


@dataclass(frozen=True, slots=True)
class DigitGroup:
    digits: str
    start: int
    end: int
    gap: str
    """The text between this group and the previous one; empty for the first."""


def clusters(text: str) -> Iterator[list[DigitGroup]]:
    """The adjacent groups of `text`, separated by at most three signs or spaces."""
    for cluster in _CLUSTER.finditer(text):
        groups: list[DigitGroup] = []
        done = cluster.start()
        for group in _GROUP.finditer(text, cluster.start(), cluster.end()):
            groups.append(DigitGroup(group[0], group.start(), group.end(), text[done : group.start()]))
            done = group.end()
        yield groups


def windows(
    groups: Sequence[DigitGroup], shortest: int, longest: int, most: int
) -> Iterator[tuple[int, int]]:
    """Each (first, end) of at most `most` groups with `shortest` to `longest` digits in total."""
    for first in range(len(groups)):
        count = 0
        for last in range(first, min(first + most, len(groups))):
            count += len(groups[last].digits)
            if count > longest:
                break
            if count >= shortest:
                yield first, last + 1


def joined(groups: Sequence[DigitGroup]) -> str:
    """All digits of `groups` in order."""
    return "".join(group.digits for group in groups)


def shape(groups: Sequence[DigitGroup]) -> tuple[int, ...]:
    """How many digits each of `groups` has."""
    return tuple(len(group.digits) for group in groups)


# -- check digits

# ISO 13616 registry: the length of an IBAN by its country.
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FO FI GL NL SD FK", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN",
        21: "HR LV LI CH", 22: "BH BG CR GE DE IE ME RS GB VA", 23: "GI IL TL IQ AE OM SO",
        24: "AD CZ MD PK RO SA SK ES SE TN VG", 25: "PT ST LY", 26: "IS TR",
        27: "FR GR IT MR MC SM BI DJ", 28: "AL AZ CY DO GT HU LB PL BY SV NI HN", 29: "BR EG PS QA UA",
        30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip


def luhn(digits: str) -> bool:
    """Luhn's formula (ISO/IEC 7812-1, annex B), the check digit included."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_card(digits: str) -> bool:
    """Whether it is a payment card: a length its issuer uses, and Luhn (ISO/IEC 7812 prefixes).

    12- and 13-digit cards are left out: they are long out of use, and barcodes have that length.
    """
    return _issued(digits) and luhn(digits) and len(set(digits)) > 1


def _issued(digits: str) -> bool:
    length = len(digits)
    if length < 14 or length > 19:
        return False
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if length == 15:
        return two in {34, 37}
    if length == 14:
        return two in {36, 38, 39} or 300 <= three <= 305
    if digits[0] == "4" or 51 <= two <= 55 or 2221 <= four <= 2720:
        return length in {16, 19}
    return (
        two in {50, 56, 57, 58, 60, 62, 63, 64, 65, 67, 81, 82}
        or 3528 <= four <= 3589
        or 2200 <= four <= 2205
    )


def is_iban(compact: str) -> bool:
    """Whether it is an IBAN (ISO 13616): its country's length, and MOD 97-10 of ISO/IEC 7064."""
    if not compact.isascii() or len(compact) != _IBAN_LENGTHS.get(compact[:2]) or not compact.isalnum():
        return False
    return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1


def _sum(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _us_ssn(digits: str) -> bool:
    """A US social security number or ITIN: no check digit, but whole ranges that are never issued."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return (
        area not in {"000", "666"} and group != "00" and serial != "0000" and (area < "900" or group >= "50")
    )


def _fr_nir(compact: str) -> bool:
    """A French NIR: 13 places and their complement modulo 97; Corsica's 2A and 2B count 19 and 18."""
    number = compact[:13].replace("2A", "19").replace("2B", "18")
    return number.isdecimal() and 97 - int(number) % 97 == int(compact[13:])


def _br_cpf(digits: str) -> bool:
    """A Brazilian CPF: two check digits modulo 11; eleven equal digits are never issued."""
    first = _sum(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _sum(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == f"{first}{second}"


def _be_national(digits: str) -> bool:
    """A Belgian national number: 97 minus the rest modulo 97, with a 2 in front since 2000."""
    key = int(digits[9:])
    return key in {97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97}


def _ch_ahv(digits: str) -> bool:
    """A Swiss AHV number: 13 digits from 756, checked as an EAN-13."""
    return digits.startswith("756") and _sum(digits, (1, 3) * 6 + (1,)) % 10 == 0


def _cn_resident(compact: str) -> bool:
    """A Chinese resident number: a birth date inside, and MOD 11-2 of ISO/IEC 7064 (GB 11643)."""
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(compact[:17]))
    born = int(compact[6:10]), int(compact[10:12]), int(compact[12:14])
    return "10X98765432"[total % 11] == compact[17] and born[0] >= 1850 and _is_date(*born)


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


# -- cards and IBANs

# Ways a card is printed; anything else counts only as a whole, so that a list of numbers is no card.
_PRINTED = {
    (14,), (15,), (16,), (18,), (19,),
    (4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (8, 8), (4, 12), (6, 13),
}  # fmt: skip
_MOST_GROUPS = max(map(len, _PRINTED))
_SECURITY_CODE = re.compile(_PATTERNS["security code"], re.IGNORECASE)
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[ -]?[0-9][ -]?[0-9](?=[ .-]{0,2}[A-Za-z0-9])")
_IBAN_REST = re.compile(r"[A-Za-z0-9](?:[ .,-]{0,2}[A-Za-z0-9]){10,33}")
_SIGN = re.compile(r"[A-Za-z0-9]")


def cards(view: View, cues: Cues) -> Iterator[Form]:
    """Card numbers and the codes on their backs."""
    for groups in clusters(view.text):
        total = sum(len(group.digits) for group in groups)
        if total < 13:
            continue
        if total <= 23 and cues.before(groups[0].start) == "card":
            yield Form("card-cue", groups[0].start, groups[-1].end)
            continue
        yield from _in_cluster(groups, total)
    for code in _SECURITY_CODE.finditer(view.text):
        yield Form("card-security-code", code.start(1), code.end(1))


def _in_cluster(groups: list[DigitGroup], total: int) -> Iterator[Form]:
    if total <= 19 and is_card(joined(groups)):
        yield Form("card", groups[0].start, groups[-1].end)
        return
    for first, last in windows(groups, 14, 19, _MOST_GROUPS):
        part = groups[first:last]
        if shape(part) in _PRINTED and is_card(joined(part)):
            yield Form("card", part[0].start, part[-1].end)


def ibans(view: View) -> Iterator[Form]:
    """IBANs, in groups or not."""
    for start in _IBAN_START.finditer(view.text):
        place = start.start()
        rest = _IBAN_REST.match(view.text, place)
        length = _IBAN_LENGTHS.get(start[0][:2].upper())
        if rest is None or length is None:
            continue
        signs = [sign.start() + place for sign in _SIGN.finditer(rest[0])][:length]
        compact = "".join(view.text[sign] for sign in signs).upper()
        end = signs[-1] + 1
        if is_iban(compact) and not view.text[end : end + 1].isalnum():
            yield Form("iban", place, end)


# -- national ids

_IDS: Final[dict[str, Callable[[str], bool]]] = {
    r"[0-9]{3}([ -])[0-9]{2}\1[0-9]{4}": _us_ssn,
    r"[1-478]~[0-9]{2}~[0-9]{2}~(?:[0-9]{2}|2[AB])~[0-9]{3}~[0-9]{3}~[0-9]{2}": _fr_nir,
    r"[0-9]{3}~[0-9]{3}~[0-9]{3}~[0-9]{2}": _br_cpf,
    r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}[- ][0-9]{3}[. ][0-9]{2}": _be_national,
    r"756~[0-9]{4}~[0-9]{4}~[0-9]{2}": _ch_ahv,
    r"[1-9][0-9]{5}~[0-9]{8}~[0-9]{3}[0-9X]": _cn_resident,
}
"""Formats whose check digits suffice; of others one in ten order numbers would pass."""
_ID_PATTERNS: Final = [
    (re.compile(rf"(?<![A-Za-z0-9]){pattern.replace('~', '[ ./-]?')}(?![A-Za-z0-9])", re.IGNORECASE), valid)
    for pattern, valid in _IDS.items()
]
_LIKE_SSN: Final = re.compile(r"(?<![A-Za-z0-9])[0-9]{3}[ ./-]?[0-9]{2}[ ./-]?[0-9]{4}(?![A-Za-z0-9])")
_SEPARATORS: Final = re.compile(r"[\s./-]")
_OWN_CPF: Final = re.compile(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}[-./ ][0-9]{2}|[0-9]{9}-[0-9]{2}")
"""A CPF as only a CPF is written. Telephone numbers have eleven digits too, and one in a hundred passes."""
_PLUS: Final = re.compile(r"\+[0-9 ./()-]*$")
_LONGEST_TELEPHONE: Final = 15
"""Digits behind a plus sign (ITU-T E.164)."""


def ids(view: View, cues: Cues) -> Iterator[Form]:
    """National identity numbers, and numbers grouped like one after a word for it, whatever their digits."""
    for found in _LIKE_SSN.finditer(view.text):
        if cues.before(found.start()) == "identity" and not _is_telephone(found, cues):
            yield Form("id", *found.span())
    for pattern, valid in _ID_PATTERNS:
        for found in pattern.finditer(view.text):
            number = _SEPARATORS.sub("", found[0]).upper()
            if cues.directly_before(found.start()) == "order" or not valid(number):
                continue
            if not _is_telephone(found, cues) and (valid is not _br_cpf or _is_cpf(found, cues)):
                yield Form("id", *found.span())


def _is_cpf(found: re.Match[str], cues: Cues) -> bool:
    """Whether a number with a CPF's check digits is written or announced as one."""
    return _OWN_CPF.fullmatch(found[0]) is not None or cues.before(found.start()) == "identity"


def _is_telephone(found: re.Match[str], cues: Cues) -> bool:
    """Whether a plus sign begins the number, or nothing separates its digits after a word for telephones."""
    if found[0].isdecimal() and cues.before(found.start()) == "phone":
        return True
    plus = _PLUS.search(found.string, max(0, found.start() - _LONGEST_TELEPHONE), found.start())
    number = found.string[plus.start() : found.end()] if plus else ""
    return 0 < sum(map(str.isdecimal, number)) <= _LONGEST_TELEPHONE


# -- keys

# Prefixes as their issuers publish them, each with the shortest tail they give out.
_PREFIXED = re.compile(_PATTERNS["prefixed"], re.VERBOSE)
_BEARER = re.compile(r"(?<!\w)(?:bearer|basic)\s+([A-Za-z0-9+/_.=~-]{16,}+)", re.IGNORECASE)
BLOCK = re.compile(r"-----\s?BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|MESSAGE)[A-Z0-9 ]{0,20}-----")
_BLOCK_END = re.compile(r"-----\s?END [A-Z0-9 ]{0,60}-----")
_RANDOM = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{20,}+={0,2}")
_LEAST_ENTROPY = 3.5
"""Bits per character. English reaches about 4 over its alphabet too, so the mix of classes is checked first.
"""


def keys(view: View) -> Iterator[Form]:
    """Keys and tokens by prefix, private key blocks, and strings that are too random to be anything else."""
    text = view.text
    yield from _blocks(text)
    for found in _PREFIXED.finditer(text):
        yield Form("key-prefix", found.start(), found.end())
    for found in _BEARER.finditer(text):
        if any(character.isdecimal() for character in found[1]):
            yield Form("key-bearer", found.start(1), found.end(1))
    for found in _RANDOM.finditer(text):
        if _is_random(found[0]):
            yield Form("key-entropy", found.start(), found.end())


def _blocks(text: str) -> Iterator[Form]:
    begin = BLOCK.search(text)
    while begin:
        end = _BLOCK_END.search(text, begin.end())
        # A key that was cut off is still secret.
        last = end.end() if end else len(text)
        yield Form("key-block", begin.start(), last)
        begin = BLOCK.search(text, last)


def _is_random(token: str) -> bool:
    """Whether letters of both cases and digits alternate as only in generated strings."""
    classes = [("l" if c.islower() else "u" if c.isupper() else "d") for c in token if c.isalnum()]
    if len(set(classes)) < 3 or classes.count("d") < 2:
        return False
    turns = sum(a != b for a, b in pairwise(classes))
    return turns * 4 >= len(classes) and _entropy(token) >= _LEAST_ENTROPY


def _entropy(text: str) -> float:
    """Shannon entropy of the characters of `text`, in bits per character; 0 if it is empty."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
