"""Dates of birth: a date in any form, written or said, where words say that someone was born then."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.secrets.findings import Finding
from echoic.secrets.patterns import END, START, any_of
from echoic.secrets.views import View

_CUE = re.compile(
    START
    + any_of(
        r"""(?:date|day|year|place_and_date)_of_birth birth\s?dates? birth\s?days? birth_year b-?days?
        d\.?\s?o\.?\s?b\.? born nacio naci nacid[oa] nat[oa] geboren geburtsdatum geburtstag nee? nascid[oa]
        nasci nasceu geboortedatum fecha_de_nacimiento date_de_naissance data_di_nascita data_de_nascimento
        cumpleanos anniversaire compleanno aniversario"""
    )
    + END,
    re.IGNORECASE,
)
# What may stand between: "her birthday, I believe, is on".
_LINKS = any_of(
    """is was s it's its on in at year back way of falls will be my his her their our celebrated date around
    about el il le am den em es est ist e del? the_(?:year|day|date) i think believe would actually uh um"""
)
_LINK = re.compile(rf"[\s,:=.'-]*(?:{_LINKS}{END}[\s,:=.'-]*){{0,8}}", re.IGNORECASE)

_MONTH = any_of(
    """jan(?:uary|uar)? feb(?:ruary|ruar)? mar(?:ch|s)? maerz marz apr(?:il)? may mai june? juni july? juli
    aug(?:ust)? sept?(?:ember)? oct(?:ober)? okt(?:ober)? nov(?:ember)? dec(?:ember)? dez(?:ember)? enero
    febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre janvier fevrier avril
    juin juillet aout septembre octobre novembre decembre gennaio febbraio aprile maggio giugno luglio
    settembre ottobre dicembre janeiro fevereiro marco maio junho julho setembro outubro novembro dezembro"""
)
_ONES = "first second third fourth fifth sixth seventh eighth ninth"
_NUMBER = any_of(
    rf"""[0-9]{{1,8}}(?:st|nd|rd|th)? {_ONES} tenth eleventh twelfth [a-z]{{3,6}}teenth twentieth thirtieth
    (?:twenty|thirty)[\s-]{any_of(_ONES)} one two three four five six seven eight nine ten eleven twelve
    (?:thir|four|fif|six|seven|eigh|nine)teen twenty thirty forty fifty sixty seventy eighty ninety oh hundred
    thousand"""
)
_PART = rf"(?:{_MONTH}|{_NUMBER}){END}"
_BETWEEN = r"(?:[\s,./'-]|(?:of|the|and|de|del|di|in)(?!\w)){0,12}"
_DATE = re.compile(rf"(?:the\s+)?{_PART}(?:{_BETWEEN}{_PART}){{0,9}}", re.IGNORECASE)
_BACKWARDS = re.compile(
    rf"{START}(?P<date>(?:the\s+)?{_PART}(?:{_BETWEEN}{_PART}){{0,6}})\s*(?:,\s*)?(?:is|was|'s)\s+"
    r"(?:[\w']+\s+){0,3}?(?:birth\s?day|date\s+of\s+birth|birth\s?date)",
    re.IGNORECASE,
)
# A month, a year, or two numbers: "born ten years ago" has no date.
_SURE = re.compile(rf"[0-9]{{3,8}}|[0-9]\D+[0-9]|{_MONTH}|nineteen|twenty|thousand", re.IGNORECASE)
_WINDOW = 160
"""Characters read after a cue."""


def birthdates(view: View) -> Iterator[Finding]:
    """The dates at which someone is said to have been born."""
    text = view.text
    for cue in _CUE.finditer(text):
        end = min(len(text), cue.end() + _WINDOW)
        link = _LINK.match(text, cue.end(), end)
        date = _DATE.match(text, link.end() if link else cue.end(), end)
        if date and _SURE.search(date[0]):
            yield Finding("BIRTHDATE", date.start(), date.end(), "birthdate")
    if "birth" not in text.lower():
        return
    for found in _BACKWARDS.finditer(text):
        if _SURE.search(found["date"]):
            yield Finding("BIRTHDATE", *found.span("date"), "birthdate-before")


__all__ = ["birthdates"]
