"""The words that say what a number is: "call", "order number", "passport". A number alone rarely does.

The nearest cue before a number decides. Patterns are bounded, so that a text is read once however long it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

from echoic.text.lists import END, START, any_of

Meaning = Literal["phone", "card", "identity", "account", "version", "order", "thing"]
"""version, order, thing: numbers of nobody; of software and texts, of what is bought or booked, of others."""

HARMLESS: frozenset[Meaning] = frozenset({"version", "order", "thing"})

_REACH: dict[Meaning, int] = {
    "identity": 40, "account": 40, "card": 40, "phone": 40, "version": 12, "order": 24, "thing": 4,
}  # fmt: skip
"""Characters between a cue and its number, at most; a sentence's end between them cuts it. What says that a
number is harmless must stand closer than what says that it is not."""

_NUMBER = (
    r"(?:\s*(?:numbers?|nos?\b\.?|nr\b\.?|num\b|codes?|ids?|#|\u2116))?"
    r"(?:\s*(?:is|was|are|es|est|ist|e|:))?"
)
_ID_OF = (
    r"(?:id|identity|citizen|resident|personal|government)(?:\s+(?:card|document))?\s+(?:numbers?|nos?|nr)"
)
_WORDS: dict[Meaning, str] = {
    "identity": rf"""
        ssn social_security social itin national_(?:insurance|id(?:entity)?|identification) nino ni_number
        tax(?:\s*payer)?_(?:id(?:entification)?|file|number|code) tin tfn aadhaa?r pan_card passport
        pasaporte passeport reisepass passaporto driv(?:er'?s?|ing)_licen[cs]e licen[cs]e nhs medicare
        teudat_zehut t\.?z\.? {_ID_OF} my_id (?:his|her)_id identity_card dni nie nif niss nir bsn
        burgerservicenummer codice_fiscale numero_fiscale? steuer-?(?:id|identifikationsnummer|nummer)?
        idnr cpf cnp pesel svnr sozialversicherungsnummer ahv avs ppsn? personnummer
        personal_(?:code|identity) cpr hetu fodselsnummer sin social_insurance curp rut cui[lt]
        resident_registration nric fin my_number_card individual_number securite_sociale
        rijksregisternummer \u05ea\.?\u05d6 \u05ea\u05e2\u05d5\u05d3\u05ea
    """,
    "version": "versions? releases? builds? firmware chapters? sections? v rules?",
    # Before phones, so that "order number is" is not also read as their "number is".
    "order": r"""
        order booking reservation confirmation reference ref tracking invoice tickets? cases? shipment
        parcel package receipt purchase po claim pedido reserva commande bestellung bestellnummer buchung
        ordine prenotazione encomenda bestelling
    """,
    "thing": r"""
        flight trains? bus sku items? models? parts? serial rooms? gates? tables? isbn issn product
        article barcode upc ean asin lot batch patent quote job warranty coupon promo(?:_code)?
        discount(?:_code)? voucher gift extension ext pages? platform track channel episode season doi rfc
        timestamp hex hash commit lottery code route highway exit bug issue pr pull_request
    """,
    "account": r"""
        (?:bank_)?accounts? acct a/c routing sort_code iban swift policy member(?:ship)? loyalty customer
        client subscriber frequent_flyer konto(?:nummer)? passwords? passcode pins? pin_code
    """,
    "card": r"""
        (?:(?:credit|debit|payment|bank|visa|master|corporate)?\s?cards?) visa master\s?card amex
        american_express discover diners maestro tarjeta carte carta kreditkarte cartao pan
    """,
    "phone": r"""
        (?:tele)?phone[sd]? mobile cell(?:\s?phone)? cellular tel fax whats\s?app signal telegram viber
        call(?:s|ing|ed|back)?(?:_(?:me|us|him|her|them|back))? dial(?:s|ed|ling|ing)? ring
        text(?:s|ed|ing)? sms reach(?:ed|able)?_(?:me|us|him|her|them|out|at|on|you|my) landline hotline
        switchboard caller_id (?:area|country|dial(?:ling)?)_code contact number_(?:is|was) my_number
        (?:his|her|their|our)_number telefono telefone telefon telefonnummer movil celular handy
        handynummer cellulare portable telefoon nummer_ist numero(?:_(?:es|est|e))? llam[ae](?:me|r)?
        appele[rz] chiama(?:mi)? ruf(?:en)? bel liga(?:r)? tlf \u05d8\u05dc\u05e4\u05d5\u05df
        \u05e0\u05d9\u05d9\u05d3
    """,
}
_GROUPS = "|".join(f"(?P<{meaning}>{any_of(words)})" for meaning, words in _WORDS.items())
_CUE = re.compile(f"{START}(?:{_GROUPS}){END}{_NUMBER}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[?!;\n]|\.\s+[A-Z]")


class Cues:
    """Every cue of one text, to be asked about any place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: list[int] = []
        self._meanings: list[Meaning] = []
        for cue in _CUE.finditer(text):
            self._ends.append(cue.end())
            self._meanings.append(next(meaning for meaning in _WORDS if cue[meaning]))

    def before(self, place: int) -> Meaning | None:
        """What the nearest cue before `place` says is meant there; None where none is near."""
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
        """The same, of a cue that no word parts from `place`."""
        index = bisect_right(self._ends, place) - 1
        if index < 0 or any(character.isalnum() for character in self._text[self._ends[index] : place][:40]):
            return None
        return self.before(place)


__all__ = ["HARMLESS", "Cues", "Meaning"]
