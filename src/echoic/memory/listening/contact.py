"""Rules for how to reach the speaker: e-mail, telephone, time zone and languages."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import spoken
from echoic.memory.listening.grammar import Reading, Rule, Spot, one, rule
from echoic.memory.listening.slots import Heard, hear

_ZONES: Final = {
    "eastern": "Eastern",
    "central": "Central",
    "mountain": "Mountain",
    "pacific": "Pacific",
    "atlantic": "Atlantic",
    "alaska": "Alaska",
    "hawaii": "Hawaii",
    "central european": "Central European Time",
    "eastern european": "Eastern European Time",
    "western european": "Western European Time",
    "british summer": "British Summer Time",
    "greenwich mean": "GMT",
    "india standard": "India Standard Time",
    "israel": "Israel Time",
    "israel standard": "Israel Standard Time",
    "japan standard": "Japan Standard Time",
}
_ZONE = "|".join(sorted(_ZONES, key=len, reverse=True))
_ZONE_CODES: Final = (
    "est|edt|cst|cdt|mst|mdt|pst|pdt|cet|cest|eet|eest|wet|gmt|utc|bst|ist|jst|aest|acst|awst|msk|sast"
)
_IANA: Final = re.compile(r"(?:Africa|America|Asia|Australia|Europe|Pacific|Atlantic)/[A-Za-z_/]{2,40}")
_LANGUAGES: Final = frozenset(
    """
    afrikaans albanian amharic arabic armenian azerbaijani basque bengali bosnian bulgarian burmese cantonese
    catalan chinese croatian czech danish dari dutch english esperanto estonian farsi finnish flemish french
    galician georgian german greek gujarati hausa hawaiian hebrew hindi hungarian icelandic igbo indonesian
    irish italian japanese kannada kazakh khmer korean kurdish lao latin latvian lithuanian macedonian malay
    malayalam maltese mandarin marathi mongolian nepali norwegian pashto persian polish portuguese punjabi
    romanian russian serbian sinhala slovak slovenian somali spanish swahili swedish tagalog tamil telugu thai
    tibetan tigrinya turkish ukrainian urdu uzbek vietnamese welsh xhosa yiddish yoruba zulu
    """.split()
)
_HOW_WELL: Final = frozenset(
    "well much fluently perfectly very so that too properly often at with yet enough natively".split()
)
_MEASURES: Final = re.compile(
    r"(?:(?:a (?:little|bit of|little bit of)|some|fluent|good|basic|broken|decent|conversational|fluently|"
    r"both|"
    r"mostly|mainly|only|also) )?"
)


def _email(spot: Spot) -> Reading | None:
    return one(spoken.email(spot.said, spot.at), lambda text: hear("email", text))


def _phone(spot: Spot) -> Reading | None:
    return one(spoken.phone(spot.said, spot.at), lambda text: hear("phone", text))


def _reached(spot: Spot) -> Reading | None:
    return _phone(spot) or _email(spot)


def _timezone(spot: Spot) -> Reading | None:
    return _zone(spot, spelled=False)


def _in_timezone(spot: Spot) -> Reading | None:
    """After "I'm in": only with the word "time", since one may be in Israel or in the mountain."""
    return _zone(spot, spelled=True)


def _zone(spot: Spot, *, spelled: bool) -> Reading | None:
    """The zone's name, an abbreviation, an offset ("UTC plus two") or a database name ("Europe/Berlin")."""
    said, at = spot.said, spot.at
    if at < len(said) and _IANA.fullmatch(said.tokens[at].text):
        return Reading((hear("timezone", said.tokens[at].text),), at + 1)
    named = said.match(_NAMED_ZONE, at)
    if named and (named["time"] or not spelled):
        return Reading((hear("timezone", _ZONES[named["zone"]]),), said.at[named.end()])
    code = said.match(_CODE, at)
    return _offset_zone(spot, code) if code else None


_NAMED_ZONE: Final = re.compile(
    rf"(?:the )?(?P<zone>{_ZONE}) (?P<time>(?:standard |daylight )?time (?:zone )?)?"
)
_CODE: Final = re.compile(rf"(?P<code>{_ZONE_CODES})(?P<digits>[+-][0-9]{{1,2}})? ")


def _offset_zone(spot: Spot, code: re.Match[str]) -> Reading | None:
    said, end = spot.said, spot.said.at[code.end()]
    sign = {"plus": "+", "minus": "-"}.get(said.low(end), "")
    hours = spoken.number(said, end + 1) if sign else None
    offset = f"{sign}{hours.value}" if hours else code["digits"] or ""
    return Reading((hear("timezone", code["code"].upper() + offset),), hours.end if hours else end)


def _languages(spot: Spot) -> Reading | None:
    """One key a language, "and" and commas between them; each may be "a little" or "fluent"."""
    said, index, heard = spot.said, spot.at, list[Heard]()
    end = index
    while index < len(said):
        measure = said.match(_MEASURES, index)
        index = said.at[measure.end()] if measure else index
        if said.low(index) not in _LANGUAGES:
            break
        heard.append(_language(said.low(index), (measure.group() if measure else "").strip()))
        end = index = index + 1
        index += said.low(index) == "and"
    # "I don't speak French well": some French is spoken
    if spot.group("no") and said.low(end) in _HOW_WELL:
        return None
    return Reading(tuple(heard), end) if heard else None


def _language(low: str, measure: str) -> Heard:
    name = low.capitalize()
    some = measure if measure.startswith(("a ", "some", "basic", "broken")) else ""
    return hear("language", name, sentence=f"The user speaks {some} {name}.".replace("  ", " "))


_PHONE = r"(?:(?:phone|cell|mobile|telephone|contact|home|work|cell phone|mobile phone|whatsapp|best) )?"
RULES: Final[tuple[Rule, ...]] = (
    rule(r"<my>(?:(?:work|personal|home|new) )?(?:email|e-mail)(?: address)?(?: is|'s)(?: at)?", _email),
    rule(r"(?:you can |please |just )?(?:email|e-mail) me (?:at|on)", _email, firm=False),
    rule(rf"<my>{_PHONE}(?:number|phone|mobile|cell)(?: is|'s)", _phone),
    rule(
        r"(?:you can |you could |please |just )?(?:reach|call|text|ring|contact|phone) me (?:at|on)",
        _reached,
        firm=False,
    ),
    rule(r"<my>time ?zone(?: is|'s)(?: in)?", _timezone),
    rule(r"<im><adv>(?:on|in)", _in_timezone, firm=False),
    rule(r"<i>(?P<no>(?:don't|do not) )?<adv>speak", _languages, elides=True),
    rule(r"<im>(?:<adv>)fluent in", _languages),
    rule(r"<my>(?:native|first|second|mother|main) (?:language|tongue) is", _languages),
)

__all__ = ["RULES"]
