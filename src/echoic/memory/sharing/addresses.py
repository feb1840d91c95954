"""Where someone lives: street addresses of several countries, flats, post boxes and postcodes. No place names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.memory.sharing.findings import Finding
from echoic.memory.sharing.views import View

# Words that are nothing but streets, and words that are also something else ("a 5 minute walk").
_STREETS = r"(?:streets?|str|avenue|ave?|road|rd|boulevard|blvd|lane|ln|parkway|pkwy|highway|hwy|crescent|cres|terrace|turnpike|causeway|alley|mews|esplanade|freeway|expressway|broadway|cul-de-sac)"
_ELSE = r"(?:st|drive|dr|court|ct|way|place|pl|square|sq|circle|cir|close|gardens?|row|walk|hill|quay|trail|trl|loop|path|green|grove|park|heights|hts|ridge|run|bend|point|pike|ter|wharf|yard|rise|vale|view|plaza|junction|crossing|landing|estate)"
_SAID_TYPES = re.compile(r"st|drive|court|place|square|circle|close|gardens|hill|grove|heights|ridge", re.IGNORECASE)
_WORD = r"[^\W\d_][\w'-]{0,30}\.?"
_NUMBER = r"[0-9]{1,5}(?:[ -][0-9]{1,4}){0,2}(?:-?[A-Za-z](?![\w]))?(?:\s?1/2)?"
_UNIT = r"(?:,?\s*(?:\#\s?[0-9]{1,5}[A-Za-z]?|(?:apartment|apt|flat|unit|suite|ste|floor|fl|room|rm|building|bldg)\.?\s*(?:number\s*|\#\s?)?[0-9]{0,5}-?[A-Za-z]?(?!\w)))?"
_TOWN = r"(?:,?\s+(?:[A-Z][\w'.-]{1,30}\s?){1,3},?\s+(?:[A-Z]{2}|[A-Z][a-z]{3,12})\.?,?\s+[0-9]{5}(?:-[0-9]{4})?)?"

_NUMBERED = re.compile(
    rf"(?<![\w.,:/$\u20ac\u00a3-])(?P<number>{_NUMBER}),?\s+(?P<name>(?:{_WORD}\s+){{1,4}}?)"
    rf"(?P<type>{_STREETS}|{_ELSE})\b(?P<rest>\.?(?:\s+(?:north|south|east|west|ne|nw|se|sw|[nsew])\b\.?)?)",
    re.IGNORECASE,
)
_TAIL = re.compile(_UNIT, re.IGNORECASE)
_TOWN_TAIL = re.compile(_TOWN)
_NOT_STREET = re.compile(r"\s+(?:food|market|party|parking|fair|lamps?|lights?|musicians?|artists?|style|wear|view|signs?|level|corners?)\b", re.IGNORECASE)

_NAMED = re.compile(
    rf"""(?<![^\W_])(?:
      (?:calle|c/|avenida|avda\.?|av\.|paseo|plaza|camino|carrera|rua|travessa|praca|alameda|estrada|via|viale|piazza|corso|vicolo|largo
        |rue|avenue|boulevard|bd|allee|place|quai|chemin|impasse|cours)\s+(?:(?:de|del|de\s+la|de\s+los|di|della|dei|da|do|dos|du|des|la|le|les|d'|l')\s*){{0,2}}
        (?:[^\W\d_][\w'.-]{{1,30}},?\s+){{1,4}}?(?:n(?:o|r|\u00ba|\u00b0)?\.?\s*|numero\s+|num\.?\s*)?[0-9]{{1,5}}(?![\w:%]|[.,][0-9])
    | [^\W\d_][\w-]{{1,40}}(?:strasse|str\.|straat|gasse|weg|platz|allee|laan|plein|gracht|kade|vej|gade|gatan|vagen|gata|veien|katu|tie|utca)
        \s+(?:n(?:r|o)\.?\s*)?[0-9]{{1,5}}(?:\s?[a-z](?!\w))?(?![\w:%]|[.,][0-9])
    | (?:ulica|ul\.|rehov|rechov|sokak|caddesi)\s+[^\W\d_][\w'.-]{{1,30}}(?:\s+[^\W\d_][\w'.-]{{1,30}}){{0,2}}\s+[0-9]{{1,5}}(?![\w:%]|[.,][0-9])
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_FRENCH = re.compile(
    rf"(?<![\w.,:/-])[0-9]{{1,5}}(?:\s?(?:bis|ter|quater))?,?\s+(?:rue|avenue|av\.|boulevard|bd|allee|place|quai|chemin|impasse|cours|passage|route)"
    rf"\s+{_WORD}(?:\s+{_WORD}){{0,4}}",
    re.IGNORECASE,
)
_FLAT = re.compile(
    r"(?<![^\W_])(?:apartment|apt|flat|appartement|piso|appartamento|wohnung)\.?\s*(?:number\s+|no\.?\s*|\#\s?|is\s+)?"
    r"(?:[0-9]{1,5}(?:\s?-?[a-z](?!\w))?|[a-z]-?[0-9]{1,4})(?![\w:%]|[.,][0-9])",
    re.IGNORECASE,
)
_FLAT_FALSE = re.compile(r"\s*(?:rate|percent|%|inch|years?|people|rooms?|screen|bedrooms?|dollars?|euros?|buildings?|hours?)", re.IGNORECASE)
_BOX = re.compile(r"(?<![^\W_])(?:p\.?\s?o\.?\s?box|post\s+office\s+box|postfach|apartado)\s+(?:number\s+|no\.?\s*|\#)?[0-9]{1,8}", re.IGNORECASE)
# Royal Mail PAF: the inward half is a digit and two letters, never C I K M O V.
_UK_POSTCODE = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-PR-UWYZ][0-9][0-9A-HJKPS-UW]?|[A-PR-UWYZ][A-HK-Y][0-9][0-9ABEHMNPRV-Y]?|GIR)[ -]?[0-9][ABD-HJLNP-UW-Z]{2}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_US_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|"
    "SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR"
)
_US_ZIP = re.compile(rf"(?<![\w-])(?:{_US_STATES}),?\s+[0-9]{{5}}(?:-[0-9]{{4}})?(?![\w-])")
_ZIP_CUE = re.compile(
    r"(?<![^\W_])(?:zip(?:\s?code)?|post\s?codes?|postal\s+code|postleitzahl|plz|codigo\s+postal|code\s+postal|eircode)"
    r"(?:\s*(?:is|was|:|=))?\s*(?P<value>[A-Za-z0-9]{3,5}(?:[ -]?[A-Za-z0-9]{2,5})?)(?![\w-])",
    re.IGNORECASE,
)
_CANADIAN = re.compile(r"(?<![A-Za-z0-9])[ABCEGHJ-NPRSTVXY][0-9][ABCEGHJ-NPRSTV-Z][ -][0-9][ABCEGHJ-NPRSTV-Z][0-9](?![A-Za-z0-9])", re.IGNORECASE)
# "live at 12 Elm" names no kind of street, but it is said of a home.
_HOME = re.compile(
    r"(?<![^\W_])(?:live|lives|lived|living|reside[sd]?|home\s+address|(?:my|his|her|their|our)\s+address|address)\s*(?:is|at|on|:)+\s*(?:at\s+)?"
    rf"(?P<value>{_NUMBER}\s+[^\W\d_][\w'-]{{1,30}}(?:\s+[^\W\d_][\w'-]{{1,30}}){{0,2}})",
    re.IGNORECASE,
)

# Between a number and "street" or "drive" these make a distance, a count or a way, not a name.
_NO_NAME = frozenset(
    """a an the of to on in at is are was for from with and or by per than down up off into over under near next past along
    minute minutes min mins hour hours day days week weeks month months year years second seconds mile miles km kms
    kilometer kilometers kilometre kilometres meter meters metre metres foot feet yard yards block blocks step steps way
    star stars people person persons guests seats tables parking tennis squash basketball food car cars bike bikes lane
    lanes dirt toll busy quiet narrow long short different other more extra free test tests hard disk flash solid usb
    dollar dollars euro euros pound pounds cent cents percent am pm o'clock oclock times time degree degrees door doors
    floor floors room rooms rate bedroom bedrooms acre acres person's minute's item items point points piece pieces
    course courses cup cups gb mb tb inch inches cm mm kg square trial trials round half quarter quick steep
    easy scenic back side main-course can will must may should have has had be been this that these those""".split()
)


def addresses(view: View) -> Iterator[Finding]:
    """Addresses and parts of them that lead to a door."""
    text = view.text
    yield from _numbered(text)
    for pattern, rule in ((_NAMED, "address-street"), (_BOX, "address-box")):
        for found in pattern.finditer(text):
            yield Finding("ADDRESS", found.start(), found.end(), rule)
    for found in _FRENCH.finditer(text):
        yield Finding("ADDRESS", found.start(), found.end(), "address-street")
    for found in _FLAT.finditer(text):
        if not _FLAT_FALSE.match(text, found.end()):
            yield Finding("ADDRESS", found.start(), found.end(), "address-flat")
    yield from _postal(text)


def _numbered(text: str) -> Iterator[Finding]:
    """A number, a name and a kind of street, with the flat and the town behind them."""
    place = 0
    while found := _NUMBERED.search(text, place):
        place = found.end("number")
        if not _is_street(found) or _NOT_STREET.match(text, found.end("type")):
            continue
        end = found.end()
        for tail in (_TAIL, _TOWN_TAIL):
            more = tail.match(text, end)
            end = more.end() if more else end
        place = end
        yield Finding("ADDRESS", found.start(), end, "address-numbered")


def _is_street(found: re.Match[str]) -> bool:
    names = found["name"].split()
    if any(name.lower().rstrip(".") in _NO_NAME for name in names):
        return False
    if re.fullmatch(_STREETS, found["type"], re.IGNORECASE):
        return True
    if found["type"][0].isupper():
        return names[0][0].isupper() and len(names) <= 3
    # "12 park drive" is said; "a 5k charity run" and "a 10 year view" are not streets.
    return names[0][0].islower() and len(names) <= 2 and bool(_SAID_TYPES.fullmatch(found["type"]))


def _postal(text: str) -> Iterator[Finding]:
    for pattern in (_UK_POSTCODE, _US_ZIP, _CANADIAN):
        for found in pattern.finditer(text):
            yield Finding("ADDRESS", found.start(), found.end(), "postcode")
    for found in _ZIP_CUE.finditer(text):
        if any(character.isdecimal() for character in found["value"]):
            yield Finding("ADDRESS", *found.span("value"), "postcode-cue")
    for found in _HOME.finditer(text):
        if not _NO_NAME.intersection(found["value"].lower().split()):
            yield Finding("ADDRESS", *found.span("value"), "address-home")


__all__ = ["addresses"]
