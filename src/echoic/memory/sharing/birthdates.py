"""Dates of birth: a date in any form, written or said, where words say that someone was born then. No other dates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.memory.sharing.findings import Finding
from echoic.memory.sharing.views import View

_CUE = re.compile(
    r"""(?<![^\W_])(?:
      (?:date|day|year|place\s+and\s+date)\s+of\s+birth | birth\s?dates? | birth\s?days? | b-?days? | d\.?\s?o\.?\s?b\.?
    | born | birth\s+year | nacio | naci | nacid[oa] | nat[oa] | geboren | geburtsdatum | geburtstag | nee? | nascid[oa]
    | nasci | nasceu | geboortedatum | fecha\s+de\s+nacimiento | date\s+de\s+naissance | data\s+di\s+nascita
    | data\s+de\s+nascimento | cumpleanos | anniversaire | compleanno | aniversario
    )(?![^\W_])""",
    re.IGNORECASE | re.VERBOSE,
)
# What may stand between: "his birthday, if I remember well, is on the".
_LINK = re.compile(
    r"""[\s,:=.'-]*(?:(?:is|was|s|it's|its|on|in|at|year|back|way|of|falls|will|be|(?:my|his|her|their|our)|celebrated
    |date|around|about|el|il|le|am|den|em|es|est|ist|e|de|del|i|think|believe|would|actually|uh|um)(?![^\W_])[\s,:=.'-]*){0,8}""",
    re.IGNORECASE | re.VERBOSE,
)
_MONTH = r"""(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch|s)?|maerz|marz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?
    |sept?(?:ember)?|oct(?:ober)?|okt(?:ober)?|nov(?:ember)?|dec(?:ember)?|dez(?:ember)?
    |enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre
    |janvier|fevrier|avril|juin|juillet|aout|septembre|octobre|novembre|decembre
    |gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre
    |janeiro|fevereiro|marco|maio|junho|julho|setembro|outubro|novembro|dezembro)"""
_NUMBER = r"""(?:[0-9]{1,8}(?:st|nd|rd|th)?|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth
    |[a-z]{3,6}teenth|twentieth|thirtieth|(?:twenty|thirty)[\s-](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)
    |one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen
    |twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|oh|hundred|thousand)"""
_BETWEEN = r"(?:[\s,./'-]|of(?!\w)|the(?!\w)|and(?!\w)|de(?!\w)|del(?!\w)|di(?!\w)|in(?!\w)){0,12}"
_DATE = re.compile(
    rf"(?:the\s+)?(?:{_MONTH}|{_NUMBER})(?![^\W_])(?:{_BETWEEN}(?:{_MONTH}|{_NUMBER})(?![^\W_])){{0,9}}", re.IGNORECASE | re.VERBOSE
)
_SURE = re.compile(rf"[0-9]{{3,8}}|[0-9]\D+[0-9]|{_MONTH}|nineteen|twenty|thousand", re.IGNORECASE | re.VERBOSE)
_BEFORE = re.compile(
    rf"""(?<![^\W_])(?P<date>(?:the\s+)?(?:{_MONTH}|{_NUMBER})(?![^\W_])(?:{_BETWEEN}(?:{_MONTH}|{_NUMBER})(?![^\W_])){{0,6}})
    \s*(?:,\s*)?(?:is|was|'s)\s+(?:[\w']+\s+){{0,3}}?(?:birth\s?day|date\s+of\s+birth|birth\s?date)""",
    re.IGNORECASE | re.VERBOSE,
)
_WINDOW = 160


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
    for found in _BEFORE.finditer(text):
        if _SURE.search(found["date"]):
            yield Finding("BIRTHDATE", *found.span("date"), "birthdate-before")


__all__ = ["birthdates"]
