"""Places, employers, workplaces and trades.

A place is a town, a region, a country or a street address. "I'm a nurse" names a trade and "I'm a night owl"
does not, which only a list can tell: a trade's last word must be known, unless only a trade can follow ("I
work as …").
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english.lexicon import (
    AMBIGUOUS,
    DAYS,
    FIELDS,
    FIRMS,
    FUNCTION,
    GIVEN,
    MONTHS,
    PLACES,
    table,
    wordlike,
    words,
)
from echoic.english.names import (
    PLACE_WORDS,
    UPPER,
    capitals,
    closed,
    initials,
    personal,
    plain_end,
    restored,
    titled,
)
from echoic.english.phrases import Value, number
from echoic.english.sentences import Sentence

# -- employers and trades

FIRM_WORDS: Final = words("places.firm_words")
_SAINTS: Final = frozenset(["saint", "st", "san", "santa"])
_COMMON_WORKPLACES: Final = words("places.common_workplaces")
_ANY_FIRM: Final = words("places.any_firm")
_HEADS: Final = words("places.heads")
_RANKED: Final = words("places.ranked")
# "a good cook", "a terrible driver" and "a future pilot" are no trades.
_NOT_TRADES: Final = words("places.not_trades")
_ACRONYM_TRADES: Final = table("places.acronym_trades")


def organisation(said: Sentence, at: int) -> Value | None:
    """An employer by name ("Google", "St Mary's", "the BBC"); not "night", "a bank" or "my uncle's shop"."""
    start = at + (said.low(at) == "the")
    spelled = initials(said, start)
    if spelled and spelled.text.startswith("A") and not said.cased:
        return None  # "at a t i site": an article, not a letter
    if spelled:
        return _lettered(said, spelled, article=start > at)
    if said.cased and said.low(start) not in FIRMS:
        return _capital_firm(said, at, start)
    return _plain_firm(said, start, article=start > at)


def _capital_firm(said: Sentence, at: int, start: int) -> Value | None:
    end = capitals(said, start)
    whole = start == at or closed(said, end)
    good = end > start and whole and said.low(start) not in DAYS and not personal(said, end)
    return Value(said.text(at, end), end) if good else None


def _plain_firm(said: Sentence, start: int, *, article: bool) -> Value | None:
    end = plain_end(said, start, limit=5, inside=PLACE_WORDS | FIRM_WORDS)
    words = [said.low(i) for i in range(start, end)]
    ordinary = [(wordlike(w) and w not in FIRMS) or w in FIELDS for w in words]
    if all(ordinary) or (ordinary[0] and words[0] not in PLACE_WORDS) or words[-1] in _SAINTS:
        return None
    if article and len(words) > 1 and words[-1] not in FIRM_WORDS:
        return None
    return Value(("the " if article else "") + restored(said.tokens[start:end]), end)


def _lettered(said: Sentence, letters: Value, *, article: bool) -> Value | None:
    """A firm that begins with letters: "the F B I", "J C Penney"."""
    end = letters.end
    if not closed(said, end):
        end = capitals(said, end) if said.cased else plain_end(said, end, limit=2, inside=FIRM_WORDS)
        if end == letters.end or article:
            return None
        return Value(f"{letters.text} {restored(said.tokens[letters.end : end])}", end)
    return Value(f"the {letters.text}" if article else letters.text, end)


def workplace(said: Sentence, at: int) -> Value | None:
    """A kind of workplace without a name: "a bank", "the hospital", "a law firm"."""
    if said.low(at) not in {"a", "an", "the"}:
        return None
    index = at + 1
    while index < min(len(said), at + 4) and said.low(index) in _COMMON_WORKPLACES and not said.gap(index):
        index += 1
    vague = said.low(at) == "the" and said.low(index - 1) in _ANY_FIRM
    described = said.low(index) in {"that", "which", "who", "where"}
    if index == at + 1 or vague or described or not closed(said, index):
        return None
    return Value(said.text(at, index), index)


def field_of_work(said: Sentence, at: int) -> Value | None:
    """A line of business from a closed list: "finance", "healthcare"."""
    if said.low(at) not in FIELDS or not closed(said, at + 1):
        return None
    return Value(_ACRONYM_TRADES.get(said.low(at), said.tokens[at].text), at + 1)


def role(said: Sentence, at: int, *, certain: bool) -> Value | None:
    """A trade at `at`, without its article: "high school teacher", "head of sales".

    `certain`: only a trade can follow ("I work as …"); if not, its last word must be known.
    """
    article = said.low(at) in {"a", "an", "the"}
    start = at + article
    end = _role_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not 0 < len(words) <= 5 or not _NOT_TRADES.isdisjoint(words) or words[0] in FUNCTION:
        return None
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    owned = head != "owner" or said.low(at) == "the" or not _COMMON_WORKPLACES.isdisjoint(words)
    ranked = said.low(at) == "the"  # "the head of sales" is a post, "the nurse" was mentioned before
    known = head in _RANKED if ranked else _is_trade(head)
    if not (known or (certain and article)) or not owned:
        return None
    return Value(" ".join(_ACRONYM_TRADES.get(t.low, t.text) for t in said.tokens[start:end]), end)


def _is_trade(low: str) -> bool:
    """Whether a folded word names a trade."""
    return low in _HEADS or low.endswith(("ologist", "ographer", "ician", "smith"))


def _role_end(said: Sentence, start: int) -> int:
    index = start
    while index < len(said) and not (index > start and said.gap(index)):
        word = said.low(index)
        rank_of = word == "of" and said.low(index - 1) in _RANKED and not _wordlike_start(said, index + 1)
        if word in FUNCTION and not rank_of:
            break
        index += 1
    return index


def _wordlike_start(said: Sentence, index: int) -> bool:
    """Whether the grammar goes on at `index`, or a name begins: neither continues "head of"."""
    word = said.low(index)
    if index >= len(said) or word in FUNCTION:
        return True
    return said.tokens[index].capital if said.cased else not (wordlike(word) or word in FIELDS)


# -- places

_WITH_ARTICLE: Final = words("places.with_article")
_REGIONS: Final = words("places.regions")
_LETTERED_PLACES: Final = words("places.lettered_places")
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
_AFTER_STATE: Final = words("places.after_state")


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
    """A place where one can be from; not a department or a firm."""
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
    """The end of "…, Utah" after a town that ends at `end`; `end` itself without a state."""
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
    ordinary = (word for word in words if wordlike(word) and word not in PLACE_WORDS | UPPER | PLACES)
    if any(ordinary) or not _NOT_PLACES.isdisjoint(words):
        return article and words == ["us"]
    alone = len(words) == 1 and not article
    person = words[0] in GIVEN | AMBIGUOUS and words[0] not in _ALSO_PERSONS
    return not (alone and (person or (words[0] in PLACE_WORDS - PLACES and words[0] not in UPPER)))
