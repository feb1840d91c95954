"""The check digits by which numbers of cards, accounts and people are known. Arithmetic only; finds nothing.

Every function takes the compact form (no separators, letters in upper case) and answers whether it can be a
real number of its kind. None raises: what has the wrong length or alphabet is simply not one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

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

# Verhoeff 1969: the Cayley table of the dihedral group D5 and the powers of one permutation.
_D5 = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_TURNS = (
    "0123456789", "1576283094", "5803796142", "8916043527",
    "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_PPS = "WABCDEFGHIJKLMNOPQRSTUV"
_CURP = "0123456789ABCDEFGHIJKLMN\u00d1OPQRSTUVWXYZ"
# Decreto 12 marzo 1974: what a character counts at an odd place of a codice fiscale.
_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17,
            19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
        ),
        strict=True,
    )
)  # fmt: skip
# Where two people share a codice fiscale, the later one's digits become letters, from the right.
_CF_DIGITS = str.maketrans("LMNPQRSTUV", "0123456789")


def luhn(digits: str) -> bool:
    """Luhn's formula (ISO/IEC 7812-1, annex B), the check digit included."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def verhoeff(digits: str) -> bool:
    """Verhoeff's formula (1969), the check digit included."""
    state = 0
    for place, digit in enumerate(reversed(digits)):
        state = int(_D5[state][int(_TURNS[place % 8][int(digit)])])
    return state == 0


def mod11_10(digits: str) -> bool:
    """ISO/IEC 7064 MOD 11,10, the check digit included."""
    state = 5
    for digit in digits:
        state = ((state or 10) * 2 % 11 + int(digit)) % 10
    return state == 1


def card(digits: str) -> bool:
    """A payment card: a length its issuer uses, and Luhn (ISO/IEC 7812 prefixes).

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


def iban_length(country: str) -> int | None:
    """How many characters an IBAN of `country` has; None where the country has none."""
    return _IBAN_LENGTHS.get(country)


def iban(compact: str) -> bool:
    """An IBAN (ISO 13616): its country's length, and MOD 97-10 of ISO/IEC 7064."""
    if not compact.isascii() or len(compact) != _IBAN_LENGTHS.get(compact[:2]) or not compact.isalnum():
        return False
    return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1


def _sum(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _dated(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def us_ssn(digits: str) -> bool:
    """A US social security number or ITIN: no check digit, but whole ranges that are never given out."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return (
        area not in {"000", "666"} and group != "00" and serial != "0000" and (area < "900" or group >= "50")
    )


def uk_nino(compact: str) -> bool:
    """A UK national insurance number: no check digit, but prefixes never given out (HMRC NIM39110)."""
    first, second = compact[0], compact[1]
    return (
        first not in "DFIQUV"
        and second not in "DFIQUVO"
        and compact[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}
    )


def uk_nhs(digits: str) -> bool:
    """A UK NHS number: 10 digits, weights 10 to 2 modulo 11 (NHS data dictionary)."""
    return -_sum(digits[:9], range(10, 1, -1)) % 11 == int(digits[9])


def es_dni(compact: str) -> bool:
    """A Spanish DNI or NIE, which has X, Y or Z for the first digit: the letter is the rest modulo 23."""
    number = compact[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdecimal() and _DNI[int(number) % 23] == compact[-1]


def it_codice_fiscale(compact: str) -> bool:
    """An Italian codice fiscale: 15 characters and a letter, the sum of two tables modulo 26."""
    head = compact[:15]
    digits = "".join(head[i] for i in (6, 7, 9, 10, 12, 13, 14)).translate(_CF_DIGITS)
    even = sum(int(c) if c.isdecimal() else ord(c) - ord("A") for c in head[1::2])
    odd = sum(_CF_ODD[c] for c in head[::2])
    return digits.isdecimal() and chr(ord("A") + (even + odd) % 26) == compact[15]


def fr_nir(compact: str) -> bool:
    """A French NIR: 13 places and their complement modulo 97; Corsica's 2A and 2B count 19 and 18."""
    number = compact[:13].replace("2A", "19").replace("2B", "18")
    return number.isdecimal() and 97 - int(number) % 97 == int(compact[13:])


def de_tax_id(digits: str) -> bool:
    """A German tax id: MOD 11,10, and exactly one of the first ten digits occurs twice or three times."""
    counts = sorted(digits[:10].count(d) for d in set(digits[:10]))
    return (
        digits[0] != "0"
        and mod11_10(digits)
        and counts[-1] in {2, 3}
        and counts[:-1] == [1] * (len(counts) - 1)
    )


def il_teudat_zehut(digits: str) -> bool:
    """An Israeli teudat zehut: 9 digits by Luhn."""
    return luhn(digits) and digits != "000000000"


def in_aadhaar(digits: str) -> bool:
    """An Indian Aadhaar: 12 digits by Verhoeff; never begins with 0 or 1 nor reads the same backwards."""
    return digits[0] > "1" and digits != digits[::-1] and verhoeff(digits)


def br_cpf(digits: str) -> bool:
    """A Brazilian CPF: two check digits modulo 11; eleven equal digits are never given out."""
    first = _sum(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _sum(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == f"{first}{second}"


def nl_bsn(digits: str) -> bool:
    """A Dutch BSN: the eleven-test, weights 9 to 2 and minus 1."""
    return digits != "000000000" and _sum(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def be_national(digits: str) -> bool:
    """A Belgian national number: 97 less the rest modulo 97, with a 2 in front for births since 2000."""
    key = int(digits[9:])
    return key in {97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97}


def pl_pesel(digits: str) -> bool:
    """A Polish PESEL: weights 1379 modulo 10; the month carries the century."""
    return _sum(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0 and 1 <= int(digits[2:4]) % 20 <= 12


def pt_nif(digits: str) -> bool:
    """A Portuguese NIF: weights 9 to 2 modulo 11, 10 counting as 0."""
    return -_sum(digits[:8], range(9, 1, -1)) % 11 % 10 == int(digits[8])


def ch_ahv(digits: str) -> bool:
    """A Swiss AHV number: 13 digits from 756, checked as an EAN-13."""
    return digits.startswith("756") and _sum(digits, (1, 3) * 6 + (1,)) % 10 == 0


def at_svnr(digits: str) -> bool:
    """An Austrian insurance number: the fourth digit is a weighted sum of the others modulo 11."""
    return _sum(digits, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11 == int(digits[3])


def ie_pps(compact: str) -> bool:
    """An Irish PPS number: weights 8 to 2 modulo 23, and 9 for the second letter given since 2013."""
    extra = max(0, _PPS.find(compact[8])) * 9 if len(compact) == 9 else 0
    return _PPS[(_sum(compact[:7], range(8, 1, -1)) + extra) % 23] == compact[7]


def se_personnummer(digits: str) -> bool:
    """A Swedish personnummer: the last ten digits by Luhn; coordination numbers add 60 to the day."""
    short = digits[-10:]
    return luhn(short) and 1 <= int(short[2:4]) <= 12 and 1 <= int(short[4:6]) % 60 <= 31


def fi_hetu(compact: str) -> bool:
    """A Finnish personal code without its century sign: 9 digits modulo 31 name the last character."""
    return compact[:9].isdecimal() and _HETU[int(compact[:9]) % 31] == compact[9]


def no_fodselsnummer(digits: str) -> bool:
    """A Norwegian national number: two sums modulo 11; D-numbers add 40 to the day."""
    return (
        _sum(digits[:10], (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
        and _sum(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
        and 1 <= int(digits[:2]) % 40 <= 31
        and 1 <= int(digits[2:4]) <= 12
    )


def dk_cpr(digits: str) -> bool:
    """A Danish CPR number: a day, a month and a serial number; it has had no check digit since 2007."""
    return _dated(2000, int(digits[2:4]), int(digits[:2]))


def ca_sin(digits: str) -> bool:
    """A Canadian SIN: 9 digits by Luhn."""
    return luhn(digits) and digits != "000000000"


def au_tfn(digits: str) -> bool:
    """An Australian tax file number: 9 weighted digits divisible by 11."""
    return _sum(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def mx_curp(compact: str) -> bool:
    """A Mexican CURP: 17 characters by their place in the alphabet, weights 18 to 2, modulo 10."""
    total = sum(_CURP.index(c) * weight for c, weight in zip(compact[:17], range(18, 1, -1), strict=True))
    return -total % 10 == int(compact[17])


def cl_rut(compact: str) -> bool:
    """A Chilean RUT: weights 2 to 7 from the right modulo 11; 10 is written K."""
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(compact[:-1])))
    return "0123456789K0"[-total % 11] == compact[-1]


def ar_cuit(digits: str) -> bool:
    """An Argentine CUIT or CUIL: weights 5432765432 modulo 11, 10 counting as 9."""
    return min(-_sum(digits[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11, 9) == int(digits[10])


def za_id(digits: str) -> bool:
    """A South African identity number: a birth date first, 13 digits by Luhn."""
    return luhn(digits) and _dated(2000, int(digits[2:4]), int(digits[4:6]))


def kr_rrn(digits: str) -> bool:
    """A South Korean resident number: 13 weighted digits modulo 11."""
    return (11 - _sum(digits[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == int(digits[12])


def cn_resident(compact: str) -> bool:
    """A Chinese resident number: a birth date inside, and MOD 11-2 of ISO/IEC 7064 (GB 11643)."""
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(compact[:17]))
    born = int(compact[6:10]), int(compact[10:12]), int(compact[12:14])
    return "10X98765432"[total % 11] == compact[17] and born[0] >= 1850 and _dated(*born)


def sg_nric(compact: str) -> bool:
    """A Singaporean NRIC or FIN: weights 2765432, an offset by century, and a letter modulo 11."""
    offset, letters = {
        "S": (0, "JZIHGFEDCBA"),
        "T": (4, "JZIHGFEDCBA"),
        "F": (0, "XWUTRQPNMLK"),
        "G": (4, "XWUTRQPNMLK"),
        "M": (3, "XWUTRQPNJLK"),
    }[compact[0]]
    return letters[(_sum(compact[1:8], (2, 7, 6, 5, 4, 3, 2)) + offset) % 11] == compact[8]


def tr_tckn(digits: str) -> bool:
    """A Turkish identity number: two check digits modulo 10."""
    numbers = [int(d) for d in digits]
    tenth = (sum(numbers[0:9:2]) * 7 - sum(numbers[1:8:2])) % 10
    return digits[0] != "0" and numbers[9] == tenth and numbers[10] == sum(numbers[:10]) % 10


def jp_my_number(digits: str) -> bool:
    """A Japanese individual number: 12 digits, weights 65432765432 modulo 11."""
    rest = _sum(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest <= 1 else 11 - rest) == int(digits[11])


def vin(compact: str) -> bool:
    """A vehicle identification number with its North American check character (49 CFR 565.15)."""
    values = "0123456789.ABCDEFGH..JKLMN.P.R..STUVWXYZ"
    total = sum(
        values.index(c) % 10 * weight
        for c, weight in zip(compact, (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2), strict=True)
    )
    return "0123456789X"[total % 11] == compact[8]


def ro_cnp(digits: str) -> bool:
    """A Romanian CNP: weights 279146358279 modulo 11, 10 counting as 1; a birth month and day inside."""
    rest = _sum(digits[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return (1 if rest == 10 else rest) == int(digits[12])
