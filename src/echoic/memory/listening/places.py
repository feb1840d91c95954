"""Places as a speaker names them: towns, regions, countries, street addresses. Anything else is refused."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening.employment import FIRM_WORDS
from echoic.memory.listening.gazetteer import AMBIGUOUS, FIRMS, GIVEN, PLACES
from echoic.memory.listening.lexicon import DAYS, FIELDS, FUNCTION, MONTHS, wordlike
from echoic.memory.listening.names import titled
from echoic.memory.listening.runs import (
    PLACE_WORDS,
    UPPER,
    capitals,
    closed,
    initials,
    personal,
    plain_end,
    restored,
)
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.spoken import Value, number

_WITH_ARTICLE: Final = frozenset(
    """
    netherlands hague bronx philippines bahamas gambia maldives congo us usa uk uae states united bay east
    west highlands midlands czech dominican ivory canary faroe seychelles midwest south north northeast
    northwest southwest southeast cotswolds hamptons catskills ozarks
    """.split()
)
_REGIONS: Final = frozenset("area region suburbs county valley metroplex peninsula province district".split())
_LETTERED_PLACES: Final = frozenset("LA DC NYC SF UK US USA UAE LAX".split())
_NOT_ORIGINS: Final = (
    FIELDS
    | (FIRM_WORDS - frozenset(["state", "press", "games", "power"]))
    | frozenset(
        """
    support corp corporation inc ltd llc bank services service team company department insurance agency hq
    """.split()
    )
)
_NOT_PLACES: Final = (
    frozenset("denial it us who families tears linux android excel slack zoom".split())
    | FIRMS
    | DAYS
    | frozenset(MONTHS)
)
_ALSO_PERSONS: Final = frozenset("georgia virginia florence".split())
# What may follow "Salt Lake City, Utah"; anything else after the comma begins a new clause.
_AFTER_STATE: Final = frozenset("and with but so for since now".split())


def place(said: Sentence, at: int) -> Value | None:
    """A town, region or country: "Tel Aviv", "Salt Lake City, Utah", "the Netherlands", "L A" as LA."""
    letters = initials(said, at)
    if letters:
        return letters if letters.text in _LETTERED_PLACES else None
    found = _capital_place(said, at) if said.cased else _plain_place(said, at)
    if found is None and said.low(at) in PLACES:
        found = _plain_place(said, at)
    if found is None or said.low(found.end - 1).endswith("'s"):
        return None
    return found


def origin(said: Sentence, at: int) -> Value | None:
    """A place one can be from; not a department or a firm."""
    found = place(said, at)
    last = said.low(found.end - 1) if found else ""
    return None if last in _NOT_ORIGINS or said.low(at) in FIELDS else found


def street(said: Sentence, at: int) -> Value | None:
    """A street address that starts with its number, to the end of the clause."""
    house = number(said, at)
    digits = re.fullmatch(r"[0-9]{1,5}[a-z]?", said.low(at)) is not None
    if house is None and not digits:
        return None
    start = at + 1 if digits or house is None else house.end
    index = start
    while index < min(len(said), at + 10) and not _street_ends(said, index):
        index += 1
    if index - start not in range(2, 9):
        return None
    words = said.text(start, index)
    lead = said.tokens[at].text if digits or house is None else str(house.value)
    return Value(f"{lead} {words if said.cased else titled(said.tokens[start:index])}", index)


def _street_ends(said: Sentence, index: int) -> bool:
    word = said.low(index)
    return word in FUNCTION and word not in {"the", "of", "down", "st", "upper", "lower"}


def _capital_place(said: Sentence, at: int) -> Value | None:
    start = at + (said.low(at) == "the")
    while said.low(start) in PLACE_WORDS and not said.tokens[start].capital:
        start += 1
    end = capitals(said, start)
    if end == start or said.low(start) in _NOT_PLACES or personal(said, end):
        return None
    end += not said.gap(end) and said.low(end) in _REGIONS
    if start > at and said.low(at) == "the" and not _takes_article(said, start, end):
        return None
    end = _state_end(said, end)
    return Value(said.text(at, end), end)


def _state_end(said: Sentence, end: int) -> int:
    """The end of "…, Utah" after a town that ends at `end`; `end` itself where no state follows."""
    if not said.gap(end) or end >= len(said):
        return end
    further = capitals(said, end)
    return further if further > end and (said.gap(further) or said.low(further) in _AFTER_STATE) else end


def _takes_article(said: Sentence, start: int, end: int) -> bool:
    """Whether "the" belongs to the name: "the Netherlands", "the Dallas area"; not "the Florida"."""
    last = said.low(end - 1)
    fits = said.low(start) in _WITH_ARTICLE or last in _REGIONS or last.endswith("s")
    return fits and closed(said, end) and not said.gap(start)


def _plain_place(said: Sentence, at: int) -> Value | None:
    article = said.low(at) == "the"
    start = at + article
    end = plain_end(said, start, limit=4)
    words = [said.low(i) for i in range(start, end)]
    region = bool(words) and article and not said.gap(end) and said.low(end) in _REGIONS
    if not words or not _is_place(words, article=article, region=region):
        return None
    end += region
    # "yoga pants", "foster care": an unknown word before a noun is no place
    if (article or PLACES.isdisjoint(words)) and not closed(said, end):
        return None
    return Value(("the " if article else "") + restored(said.tokens[start:end]), end)


def _is_place(words: list[str], *, article: bool, region: bool) -> bool:
    """Whether words without capitals can be a place: no ordinary word among them, and more than "town"."""
    if article and not region and words[0] not in _WITH_ARTICLE:
        return False
    if any(word in _NOT_PLACES or (wordlike(word) and word not in PLACE_WORDS | UPPER) for word in words):
        return article and words == ["us"]
    alone = len(words) == 1 and not article
    person = words[0] in GIVEN | AMBIGUOUS and words[0] not in _ALSO_PERSONS
    return not (alone and (person or (words[0] in PLACE_WORDS and words[0] not in UPPER)))


__all__ = ["origin", "place", "street"]
