"""The words that say what a number is: "call", "order number", "passport". A number alone rarely does.

The nearest cue before a number decides. Patterns are bounded, so that a text is read once however long it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

Meaning = Literal["phone", "card", "identity", "account", "thing"]
"""thing: orders, bookings, flights, rooms, versions, prices: numbers that name nobody."""

REACH = 40
"""Characters between a cue and its number, at most; a sentence's end between them cuts it."""

_NUMBER = r"(?:\s*(?:numbers?|nos?\b\.?|nr\b\.?|num\b|codes?|ids?|\#|\u2116))?(?:\s*(?:is|was|are|es|est|ist|e|:))?"
_WORDS: dict[Meaning, str] = {
    # First, so that "order number is" is not also read as the "number is" of a phone.
    "thing": r"""
        (?:order|booking|reservation|confirmation|reference|ref|tracking|invoice|tickets?|flight|trains?|bus|cases?
        |sku|items?|models?|parts?|serial|versions?|releases?|builds?|firmware|rooms?|gates?|tables?|isbn|issn|product
        |article|barcode|upc|ean|asin|lot|batch|patent|shipment|parcel|package|receipt|quote|purchase|po|job|claim
        |warranty|coupon|promo(?:\s+code)?|discount(?:\s+code)?|voucher|gift|extension|ext|pages?|chapters?|sections?
        |platform|track|channel|episode|season|doi|rfc|pedido|reserva|commande|bestellung|bestellnummer
        |buchung|ordine|prenotazione|encomenda|bestelling|timestamp|hex|hash|commit|population|lottery|score|weighs?
        |distance|code|route|highway|exit|bug|issue|pr|pull\s+request)
    """,
    "phone": r"""
        (?:(?:tele)?phones?|(?:tele)?phoned|mobile|cell(?:\s?phone)?|cellular|tel|fax|whats\s?app|signal|telegram|viber
        |call(?:s|ing|ed|back)?(?:\s+(?:me|us|him|her|them|back))?|dial(?:s|ed|ling|ing)?|ring|texts?|texted|texting
        |sms|reach(?:ed|able)?|landline|hotline|switchboard|caller\s+id|contact|number\s+(?:is|was)|my\s+number
        |(?:his|her|their|our)\s+number|telefono|telefone|telefon|telefonnummer|movil|celular|handy|handynummer
        |cellulare|portable|telefoon|nummer\s+ist|numero(?:\s+(?:es|est|e))?|llam[ae](?:me|r)?|appele[rz]|appelez-moi
        |chiama(?:mi)?|ruf(?:en)?|bel|liga(?:r)?|tlf|\u05d8\u05dc\u05e4\u05d5\u05df|\u05e0\u05d9\u05d9\u05d3)
    """,
    "account": r"""
        (?:(?:bank\s+)?accounts?|acct|a/c|routing|sort\s+code|iban|swift|policy|member(?:ship)?|loyalty|customer|client
        |subscriber|frequent\s+flyer|konto(?:nummer)?|passwords?|passcode|pins?|pin\s+code)
    """,
    "card": r"""
        (?:(?:credit|debit|payment|bank|visa|master|corporate)?\s?cards?|visa|master\s?card|amex|american\s+express
        |discover|diners|maestro|tarjeta|carte|carta|kreditkarte|cartao|pan)
    """,
    "identity": r"""
        (?:ssn|social\s+security|social|itin|national\s+(?:insurance|id(?:entity)?|identification)|nino|ni\s+number
        |tax(?:\s*payer)?\s+(?:id(?:entification)?|file|number|code)|tin|tfn|aadhaar|aadhar|pan\s+card
        |passport|pasaporte|passeport|reisepass|passaporto|driv(?:er'?s?|ing)\s+licen[cs]e|licen[cs]e|nhs|medicare
        |teudat\s+zehut|t\.?z\.?|(?:id|identity|citizen|resident|personal|government)(?:\s+(?:card|document))?
        \s+(?:numbers?|nos?|nr)|my\s+id|(?:his|her)\s+id|identity\s+card|dni|nie|nif|niss|nir|bsn|burgerservicenummer
        |codice\s+fiscale|numero\s+fiscal[e]?|steuer-?(?:id|identifikationsnummer|nummer)?|idnr|cpf|rg|cnp|pesel|svnr
        |sozialversicherungsnummer|ahv|avs|pps|ppsn|personnummer|personal\s+(?:code|identity)|cpr|hetu|fodselsnummer
        |sin\b|social\s+insurance|curp|rut|cuil|cuit|resident\s+registration|nric|fin\b|my\s+number\s+card
        |individual\s+number|securite\s+sociale|rijksregisternummer|\u05ea\.?\u05d6|\u05ea\u05e2\u05d5\u05d3\u05ea)
    """,
}
_MEANINGS: tuple[Meaning, ...] = ("identity", "thing", "account", "card", "phone")
_CUE = re.compile(
    r"(?<![^\W_])(?:"
    + "|".join(f"(?P<{meaning}>{_WORDS[meaning]})" for meaning in _MEANINGS)
    + rf")(?![^\W_])(?:{_NUMBER})",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[?!;\n]|\.\s+[A-Z]")
_AFTER = re.compile(
    r"""\W{0,3}(?:
        (?:is|was|'s|are)\s+(?:my|his|her|their|our|the)\s+(?:[a-z]+\s+){0,2}?(?:phone|number|cell|mobile|landline)
        | \((?:cell|mobile|home|work|office|landline|phone)\)
        | (?:on|for)\s+whats\s?app
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class Cues:
    """Every cue of one text, to be asked about any place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: list[int] = []
        self._meanings: list[Meaning] = []
        for cue in _CUE.finditer(text):
            self._ends.append(cue.end())
            self._meanings.append(next(meaning for meaning in _MEANINGS if cue[meaning]))

    def before(self, place: int, reach: int = REACH) -> Meaning | None:
        """What the nearest cue before `place` says is meant there; None where none is near."""
        index = bisect_right(self._ends, place) - 1
        if index < 0 or place - self._ends[index] > reach:
            return None
        if _SENTENCE_END.search(self._text, self._ends[index], place):
            return None
        return self._meanings[index]

    def phone_after(self, place: int) -> bool:
        """Whether what ends at `place` is then said to be a phone number: "555 0187 is my cell"."""
        return _AFTER.match(self._text, place) is not None


__all__ = ["Cues", "Meaning"]
