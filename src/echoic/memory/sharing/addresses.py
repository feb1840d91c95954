"""Where someone lives: streets with numbers, flats, boxes and postcodes of many countries. No place names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echoic.secrets.findings import Finding
from echoic.secrets.patterns import END, START, any_of
from echoic.secrets.views import View

_NAME = r"[^\W\d_][\w'.-]{1,30}"
# No time, size, percentage or decimal.
_DOOR = r"[0-9]{1,5}(?![\w:%]|[.,][0-9])"
_NUMBER = r"[0-9]{1,5}(?:[ -][0-9]{1,4}){0,2}(?:-?[A-Za-z](?![\w]))?(?:\s?1/2)?"

# Words that are nothing but streets, and words that are something else as well ("a 5 minute walk").
_STREET = any_of(
    """streets? str avenue ave? road rd boulevard blvd lane ln parkway pkwy highway hwy crescent cres terrace
    turnpike causeway alley mews esplanade freeway expressway broadway"""
)
_PERHAPS = any_of(
    """st drive dr court ct way place pl square sq circle cir close gardens? row walk hill quay trail trl
    loop path green grove park heights hts ridge run bend point pike ter wharf yard rise vale view plaza
    junction crossing landing estate"""
)
_SAID = any_of("st drive court place square circle close gardens hill grove heights ridge")
_COMPASS = any_of("north south east west ne nw se sw [nsew]")
_NUMBERED = re.compile(
    rf"(?<![\w.,:/$\u20ac\u00a3-])(?P<number>{_NUMBER}),?\s+"
    rf"(?P<name>(?:[^\W\d_][\w'-]{{0,30}}\.?\s+){{1,4}}?)"
    rf"(?P<type>{_STREET}|{_PERHAPS})\b\.?(?:\s+{_COMPASS}\b\.?)?",
    re.IGNORECASE,
)
_AFTER_STREET = any_of(
    "food market party parking fair lamps? lights? musicians? artists? style wear view signs? level corners?"
)
_NO_STREET = re.compile(rf"\s+{_AFTER_STREET}\b", re.IGNORECASE)
_INSIDE = any_of("apartment apt flat unit suite ste floor fl room rm building bldg")
_UNIT = re.compile(
    rf",?\s*(?:\#\s?[0-9]{{1,5}}[A-Za-z]?"
    rf"|{_INSIDE}\.?\s*(?:number\s*|\#\s?)?[0-9]{{0,5}}-?[A-Za-z]?(?!\w))",
    re.IGNORECASE,
)
_TOWN = re.compile(
    r",?\s+(?:[A-Z][\w'.-]{1,30}\s?){1,3},?\s+(?:[A-Z]{2}|[A-Z][a-z]{3,12})\.?,?\s+[0-9]{5}(?:-[0-9]{4})?"
)

_ROMANCE = any_of(
    r"""calle c/ avenida avda\.? av\. paseo plaza camino carrera rua travessa praca alameda estrada via viale
    piazza corso vicolo largo rue avenue boulevard bd allee place quai chemin impasse cours"""
)
_OF = any_of("de_la de_los del? di della dei da do dos du des la le les d' l'")
_GERMANIC = any_of(
    r"""strasse str\. straat gasse weg platz allee laan plein gracht kade vej gade gatan vagen gata veien katu
    tie utca"""
)
_NUMBER_WORD = r"(?:n(?:o|r|\u00ba|\u00b0)?\.?\s*|numero\s+|num\.?\s*)?"
_LETTERED_DOOR = r"[0-9]{1,5}(?:\s?[a-z](?!\w))?(?![\w:%]|[.,][0-9])"
_NAMED = re.compile(
    rf"{START}(?:{_ROMANCE}\s+(?:{_OF}\s*){{0,2}}(?:{_NAME},?\s+){{1,4}}?{_NUMBER_WORD}{_DOOR}"
    rf"|[^\W\d_][\w-]{{1,40}}{_GERMANIC}\s+{_NUMBER_WORD}{_LETTERED_DOOR}"
    rf"|(?:ulica|ul\.|rehov|rechov|sokak|caddesi)\s+{_NAME}(?:\s+{_NAME}){{0,2}}\s+{_DOOR})",
    re.IGNORECASE,
)
_RUE = any_of(r"rue avenue av\. boulevard bd allee place quai chemin impasse cours passage route")
_FRENCH = re.compile(
    rf"(?<![\w.,:/-])[0-9]{{1,5}}(?:\s?(?:bis|ter|quater))?,?\s+{_RUE}\s+{_NAME}(?:\s+{_NAME}){{0,4}}",
    re.IGNORECASE,
)

_FLAT = re.compile(
    START
    + any_of("apartment apt flat appartement piso appartamento wohnung")
    + r"\.?\s*(?:number\s+|no\.?\s*|\#\s?|is\s+)?(?:[0-9]{1,5}(?:\s?-?[a-z](?!\w))?|[a-z]-?[0-9]{1,4})"
    + r"(?![\w:%]|[.,][0-9])",
    re.IGNORECASE,
)
_NO_FLAT = re.compile(
    r"\s*"
    + any_of("rate percent % inch years? people (?:bed)?rooms? screen dollars? euros? buildings? hours?"),
    re.IGNORECASE,
)
_BOX = re.compile(
    START
    + any_of(r"p\.?\s?o\.?\s?box post_office_box postfach apartado")
    + r"\s+(?:number\s+|no\.?\s*|\#)?[0-9]{1,8}",
    re.IGNORECASE,
)

# Royal Mail PAF: the inward half is a digit and two letters, never C I K M O V.
_UK_POSTCODE = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-PR-UWYZ][0-9][0-9A-HJKPS-UW]?|[A-PR-UWYZ][A-HK-Y][0-9][0-9ABEHMNPRV-Y]?|GIR)"
    r"[ -]?[0-9][ABD-HJLNP-UW-Z]{2}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_CA_LETTER = "[ABCEGHJ-NPRSTV-Z]"
_CA_POSTCODE = re.compile(
    rf"(?<![A-Za-z0-9])[ABCEGHJ-NPRSTVXY][0-9]{_CA_LETTER}[ -][0-9]{_CA_LETTER}[0-9](?![A-Za-z0-9])",
    re.IGNORECASE,
)
_US_STATES = any_of(
    """AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND
    OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC PR"""
)
_US_ZIP = re.compile(rf"(?<![\w-]){_US_STATES},?\s+[0-9]{{5}}(?:-[0-9]{{4}})?(?![\w-])")
_POSTCODE = re.compile(
    START
    + any_of(r"zip(?:\s?code)? post\s?codes? postal_code postleitzahl plz codigo_postal code_postal eircode")
    + r"(?:\s*(?:is|was|:|=))?\s*(?P<value>[A-Za-z0-9]{3,5}(?:[ -]?[A-Za-z0-9]{2,5})?)(?![\w-])",
    re.IGNORECASE,
)

# "live at 12 Elm" names no kind of street, but it is said of a home.
_HOME = re.compile(
    START
    + any_of("live lives lived living reside[sd]? home_address (?:my|his|her|their|our)_address address")
    + rf"\s*(?:is|at|on|:)+\s*(?:at\s+)?(?P<value>{_NUMBER}(?:\s+[^\W\d_][\w'-]{{1,30}}){{1,3}}){END}",
    re.IGNORECASE,
)

# Between a number and "street" or "drive" these make a distance, a count or a way, not a name.
_NO_NAME = frozenset(
    """a an the of to on in at is are was for from with and or by per than down up off into over under near
    next past along minute minutes min mins hour hours day days week weeks month months year years
    second seconds mile miles km kms kilometer kilometers kilometre kilometres meter meters metre
    metres foot feet yard yards block blocks step steps way star stars people person persons guests
    seats tables parking tennis squash basketball food car cars bike bikes lane lanes dirt toll busy
    quiet narrow long short different other more extra free test tests hard disk flash solid usb
    dollar dollars euro euros pound pounds cent cents percent am pm o'clock oclock times time degree
    degrees door doors floor floors room rooms rate bedroom bedrooms acre acres person's minute's item
    items point points piece pieces course courses cup cups gb mb tb inch inches cm mm kg square trial
    trials round half quarter quick steep easy scenic back side main-course can will must may should
    have has had be been this that these those""".split()
)


def addresses(view: View) -> Iterator[Finding]:
    """Addresses and parts of them that lead to a door."""
    text = view.text
    yield from _numbered(text)
    for pattern, rule in ((_NAMED, "street"), (_FRENCH, "street"), (_BOX, "box"), (_FLAT, "flat")):
        for found in pattern.finditer(text):
            if not (rule == "flat" and _NO_FLAT.match(text, found.end())) and not _is_sentence(found[0]):
                yield Finding("ADDRESS", found.start(), found.end(), f"address-{rule}")
    for found in _HOME.finditer(text):
        if not _is_sentence(found["value"]):
            yield Finding("ADDRESS", *found.span("value"), "address-home")
    yield from _postcodes(text)


def _numbered(text: str) -> Iterator[Finding]:
    """A number, a name and a kind of street, with the flat and the town behind them."""
    place = 0
    while found := _NUMBERED.search(text, place):
        place = found.end("number")
        if not _is_street(found) or _NO_STREET.match(text, found.end("type")):
            continue
        place = found.end()
        for tail in (_UNIT, _TOWN):
            more = tail.match(text, place)
            place = more.end() if more else place
        yield Finding("ADDRESS", found.start(), place, "address-numbered")


def _is_street(found: re.Match[str]) -> bool:
    names = found["name"].split()
    if any(name.lower().rstrip(".") in _NO_NAME for name in names):
        return False
    if _is_any(_STREET, found):
        return True
    if found["type"][0].isupper():
        return names[0][0].isupper() and len(names) <= 3
    # "12 park drive" is said; "a 5k charity run" and "a 10 year view" are not streets.
    return names[0][0].islower() and len(names) <= 2 and _is_any(_SAID, found)


def _is_sentence(text: str) -> bool:
    """Whether words stand in `text` that no address has: "Avenue at 6"."""
    return not _NO_NAME.isdisjoint(text.lower().split()[1:])


def _is_any(kinds: str, found: re.Match[str]) -> bool:
    return re.fullmatch(kinds, found["type"], re.IGNORECASE) is not None


def _postcodes(text: str) -> Iterator[Finding]:
    for pattern in (_UK_POSTCODE, _US_ZIP, _CA_POSTCODE):
        for found in pattern.finditer(text):
            yield Finding("ADDRESS", found.start(), found.end(), "postcode")
    for found in _POSTCODE.finditer(text):
        if any(character.isdecimal() for character in found["value"]):
            yield Finding("ADDRESS", *found.span("value"), "postcode-cue")


__all__ = ["addresses"]
