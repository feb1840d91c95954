"""National identity numbers: a table of how each is written, and the check by which it is known.

Numbers that only look like any other (nine digits, one of ten passes) count where a word announces them. What
such a word announces counts as well when no check fits: a passport, a licence, a number misheard.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from echoic.secrets import checksums
from echoic.secrets.cues import Cues
from echoic.secrets.findings import Finding
from echoic.text.views import View

_SEPARATORS = re.compile(r"[\s./-]")


def _any(compact: str) -> bool:
    return bool(compact)


@dataclass(frozen=True, slots=True)
class Identity:
    """One country's number."""

    rule: str
    pattern: str
    """Compiled when first needed, and kept by `re`: most texts hold no number."""
    valid: Callable[[str], bool]
    """Given the number without separators, in upper case."""
    announced: bool
    """Whether it counts only after a word such as "passport" or "tax id"."""


def _identity(rule: str, pattern: str, valid: Callable[[str], bool], *, announced: bool = False) -> Identity:
    spaced = pattern.replace("~", "[ ./-]?")
    return Identity(rule, rf"(?<![A-Za-z0-9]){spaced}(?![A-Za-z0-9])", valid, announced)


IDENTITIES = (
    _identity("us-ssn", r"[0-9]{3}([ -])[0-9]{2}\1[0-9]{4}", checksums.us_ssn),
    _identity("us-ssn", r"[0-9]{3}~[0-9]{2}~[0-9]{4}", _any, announced=True),
    _identity(
        "uk-nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]~[0-9]{2}~[0-9]{2}~[0-9]{2}~[A-D]", checksums.uk_nino
    ),
    _identity("uk-nino", r"[A-Z]{2}~[0-9]{2}~[0-9]{2}~[0-9]{2}~[A-D]", _any, announced=True),
    _identity("uk-nhs", r"[0-9]{3}~[0-9]{3}~[0-9]{4}", checksums.uk_nhs, announced=True),
    _identity("es-dni", r"(?:[0-9]{8}|[0-9]{2}\.[0-9]{3}\.[0-9]{3})~[A-Z]", checksums.es_dni),
    _identity("es-nie", r"[XYZ]~[0-9]{7}~[A-Z]", checksums.es_dni),
    _identity(
        "it-codice-fiscale",
        r"[A-Z]{3}~[A-Z]{3}~[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}~[A-Z][0-9LMNP-V]{3}~?[A-Z]",
        checksums.it_codice_fiscale,
    ),
    _identity(
        "fr-nir", r"[1-478]~[0-9]{2}~[0-9]{2}~(?:[0-9]{2}|2[AB])~[0-9]{3}~[0-9]{3}~[0-9]{2}", checksums.fr_nir
    ),
    _identity("de-tax-id", r"[1-9][0-9]~[0-9]{3}~[0-9]{3}~[0-9]{3}", checksums.de_tax_id, announced=True),
    _identity("il-teudat-zehut", r"[0-9]{1,8}~[0-9]", checksums.il_teudat_zehut, announced=True),
    _identity("in-aadhaar", r"[2-9][0-9]{3}([ -])[0-9]{4}\1[0-9]{4}", checksums.in_aadhaar),
    _identity("in-aadhaar", r"[2-9][0-9]{11}", checksums.in_aadhaar, announced=True),
    _identity("in-pan", r"[A-Z]{3}[ABCFGHLJPT][A-Z]~[0-9]{4}~[A-Z]", _any),
    _identity("br-cpf", r"[0-9]{3}~[0-9]{3}~[0-9]{3}~[0-9]{2}", checksums.br_cpf),
    _identity("nl-bsn", r"[0-9]{4}~[0-9]{2}~[0-9]{3}", checksums.nl_bsn, announced=True),
    _identity("be-national", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}[- ][0-9]{3}[. ][0-9]{2}", checksums.be_national),
    _identity("be-national", r"[0-9]{11}", checksums.be_national, announced=True),
    _identity("pl-pesel", r"[0-9]{11}", checksums.pl_pesel, announced=True),
    _identity("pt-nif", r"[0-9]{3}~[0-9]{3}~[0-9]{3}", checksums.pt_nif, announced=True),
    _identity("ch-ahv", r"756~[0-9]{4}~[0-9]{4}~[0-9]{2}", checksums.ch_ahv),
    _identity("at-svnr", r"[0-9]{4}~[0-9]{6}", checksums.at_svnr, announced=True),
    _identity("ie-pps", r"[0-9]{7}~[A-W][A-I]?", checksums.ie_pps),
    _identity("se-personnummer", r"(?:19|20)?[0-9]{6}[-+][0-9]{4}", checksums.se_personnummer),
    _identity("se-personnummer", r"(?:19|20)?[0-9]{10}", checksums.se_personnummer, announced=True),
    _identity(
        "fi-hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]", lambda c: checksums.fi_hetu(_without_century(c))
    ),
    _identity("no-fodselsnummer", r"[0-9]{6}~[0-9]{5}", checksums.no_fodselsnummer),
    _identity("dk-cpr", r"[0-9]{6}-[0-9]{4}", checksums.dk_cpr),
    _identity("ca-sin", r"[0-9]{3}([ -])[0-9]{3}\1[0-9]{3}", checksums.ca_sin, announced=True),
    _identity("au-tfn", r"[0-9]{3}~[0-9]{3}~[0-9]{3}", checksums.au_tfn, announced=True),
    _identity("mx-curp", r"[A-Z]{4}~[0-9]{6}~[HMX][A-Z]{5}~[0-9A-Z]~?[0-9]", checksums.mx_curp),
    _identity("cl-rut", r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9K]", checksums.cl_rut),
    _identity("cl-rut", r"[0-9]{7,8}~[0-9K]", checksums.cl_rut, announced=True),
    _identity("ar-cuit", r"(?:2[0347]|3[034])-[0-9]{8}-[0-9]", checksums.ar_cuit),
    _identity("ar-cuit", r"(?:2[0347]|3[034])[0-9]{9}", checksums.ar_cuit, announced=True),
    _identity("za-id", r"[0-9]{6}~[0-9]{4}~[01][0-9]{2}", checksums.za_id, announced=True),
    _identity("kr-rrn", r"[0-9]{6}-[1-8][0-9]{6}", checksums.kr_rrn),
    _identity("cn-resident", r"[1-9][0-9]{5}~[0-9]{8}~[0-9]{3}[0-9X]", checksums.cn_resident),
    _identity("sg-nric", r"[STFGM][0-9]{7}[A-Z]", checksums.sg_nric),
    _identity("tr-tckn", r"[1-9][0-9]{10}", checksums.tr_tckn),
    _identity("jp-my-number", r"[0-9]{4}~[0-9]{4}~[0-9]{4}", checksums.jp_my_number, announced=True),
    _identity("vin", r"(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-HJ-NPR-Z0-9]{17}", checksums.vin),
    _identity("ro-cnp", r"[1-9][0-9]{12}", checksums.ro_cnp, announced=True),
)


def _without_century(compact: str) -> str:
    return compact if len(compact) == 10 else compact[:6] + compact[7:]


def identities(view: View, cues: Cues) -> Iterator[Finding]:
    """The identity numbers in a view."""
    if not any(character.isdecimal() for character in view.text):
        return
    for identity in IDENTITIES:
        for found in re.finditer(identity.pattern, view.text, re.IGNORECASE):
            if cues.directly_before(found.start()) == "order":
                continue
            if identity.announced and cues.before(found.start()) != "identity":
                continue
            if identity.valid(_SEPARATORS.sub("", found[0]).upper()):
                yield Finding("ID", found.start(), found.end(), identity.rule)


__all__ = ["IDENTITIES", "Identity", "identities"]
