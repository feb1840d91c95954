"""Rules for what the speaker settled on, and what whatever is found must be."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import phrases
from echoic.memory.listening.grammar import Reading, Rule, Spot, rule
from echoic.memory.listening.lexicon import DETERMINERS, FUNCTION, PREPOSITIONS, PRONOUNS
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.slots import hear
from echoic.memory.listening.spoken import Value

_CHOSEN: Final = frozenset(
    """
    one option plan slot room package seat table suite model version size deal offer appointment subscription
    tier bundle ticket flight train bus course class menu colour color upgrade rate policy cover coverage
    apartment unit
    """.split()
)
_BOOKABLE: Final = frozenset(
    """
    room table seat flight appointment hotel ticket suite slot venue interpreter translator entrance
    restaurant
    """.split()
)
_ATTRIBUTES: Final = re.compile(
    r"wheelchair|accessib|step-free|non-smoking|nonsmoking|quiet|vegan|vegetarian|gluten|halal|kosher|"
    r"pet-friendly|"
    r"ground-floor|hearing|large-print|high chair|parking|refundable|nonstop|non-stop|direct|receipt|"
    r"invoice|[a-z0-9]-(?:compliant|certified|approved|compatible|encrypted|ready|capable|enabled|proof|"
    r"accessible|friendly|free|rated|based|hosted|only)\b|\b(?:compliant|certified|encrypted|on-prem|"
    r"on-premises?|single sign-on|sso|encryption|audit log)\b"
)
# What one chooses among without an article ("monthly billing").
_TERMS: Final = frozenset(
    """
    billing payment payments invoicing delivery shipping pickup seating boarding financing parking coverage
    """.split()
)
_PAST: Final = re.compile(
    r"\b(?:ago|back then|at the time|in those days|used to|last (?:week|month|year|time|summer|winter)|"
    r"yesterday|once|originally|initially|at first|previously|in (?:19|20)[0-9]{2}|when i|when we) "
)
_MONEY: Final = re.compile(
    r"(?:dollars?|euros?|pounds?|bucks|quid|shekels?|yen|francs?|rupees?|cents?)|[$€£¥₪₹]"
)
_LIMITS: Final = re.compile(
    r"(?:under|below|less than|no more than|not more than|at most|within|over|above|at least|more than|"
    r"around|about|up to|"
    r"before|after|by|between|on|near|close to|within walking distance of|in) "
)
_QUALITIES: Final = frozenset(
    """
    accessible refundable quiet vegan vegetarian kosher halal gluten-free nonstop non-stop direct cheap
    waterproof dairy-free pet-friendly wheelchair-accessible organic fireproof reusable portable wireless
    cordless
    """.split()
)
# Between a thing one books and a quality of it that stays: "a room with a bath", not "a table for one".
_DESCRIBING: Final = frozenset("with without near by facing away close off".split())
_NOT_IN: Final = frozenset("order place fact person time general the".split())
_POINTING: Final = frozenset("it that this them these those him her you me one's there here us".split())


def _settled(spot: Spot) -> Reading | None:
    """After "let's book": whatever it is."""
    return _chosen(spot, known=False)


def _settled_on(spot: Spot) -> Reading | None:
    """After "I've decided on": whatever it is."""
    return _chosen(spot, known=False, verb="go with")


def _taken(spot: Spot) -> Reading | None:
    """After "I'll take": only what one chooses among ("the corner room", not "the bus")."""
    return _chosen(spot, known=True)


def _chosen(spot: Spot, *, known: bool, verb: str = "") -> Reading | None:
    """The key is the noun of what is chosen, so that a new choice supersedes it."""
    said = spot.said
    if said.low(spot.at) not in {"the", "a", "an"}:
        return _terms(spot, verb)
    thing = _thing(said, spot.at)
    if thing is None:
        return None
    head = _head(said, spot.at, thing.end)
    # "I'll take a seat": with "a" and nothing more, one only sits down
    bare = said.low(spot.at) in {"a", "an"} and thing.end - spot.at == 2
    if known and (head not in _CHOSEN or bare):
        return None
    text = f"{verb or spot.group('verb')} {thing.text}"
    return Reading((hear("decision", text, item=head),), thing.end)


def _terms(spot: Spot, verb: str) -> Reading | None:
    """Terms that take no article: "monthly billing", "express delivery"."""
    said = spot.said
    end = spot.at
    while end < len(said) and said.low(end) not in FUNCTION and not (end > spot.at and said.gap(end)):
        end += 1
    if not 2 <= end - spot.at <= 4 or said.low(end - 1) not in _TERMS or said.low(spot.at) in _ABOUT_TERMS:
        return None
    text = f"{verb or spot.group('verb')} {said.text(spot.at, end)}"
    return Reading((hear("decision", text, item=said.low(end - 1)),), end)


def _wanted_terms(spot: Spot) -> Reading | None:
    return _terms(spot, "have")


_ABOUT_TERMS: Final = frozenset("more less better cheaper faster some any no what which my your our".split())
_BASE: Final = {
    "chose": "choose",
    "chosen": "choose",
    "picked": "pick",
    "selected": "select",
    "opted for": "go for",
    "went with": "go with",
    "went for": "go for",
    "gone with": "go with",
    "gone for": "go for",
    "signed up for": "sign up for",
    "subscribed to": "subscribe to",
    "upgraded to": "upgrade to",
    "switched to": "switch to",
}


def _chose(spot: Spot) -> Reading | None:
    """After "I chose": what one chooses among, as it stands; not what was chosen once and may be over."""
    verb = _BASE[spot.group("verb")]
    if _PAST.search(spot.said.line):
        return None
    return _chosen(spot, known=True, verb=verb)


def _billed(spot: Spot) -> Reading | None:
    text = f"be billed {spot.group('often')}"
    return Reading((hear("decision", text, item="billing"),), spot.at)


def _complies(spot: Spot) -> Reading | None:
    """After "it has to support": what it must do, in as many words as were said to the end of the phrase."""
    said = spot.said
    end = _limit_end(said, spot.at)
    words = {said.low(i) for i in range(spot.at, end)}
    if not 1 <= end - spot.at <= 6 or not words.isdisjoint(_POINTING | (_NOT_IN - {"the"})):
        return None
    text = f"{spot.group('verb')} {said.text(spot.at, end)}"
    sentence = f"Whatever is found for the user must {text}."
    return Reading((hear("requirement", text, item=text, sentence=sentence),), end)


def _picked(spot: Spot) -> Reading | None:
    """After "I decided to": a choice; what else was decided in the past may be long over."""
    said = spot.said
    verb = said.match(_PICKING, spot.at)
    at = said.at[verb.end()] if verb else spot.at
    thing = _thing(said, at) if verb and said.low(at) in {"the", "a", "an"} else None
    if verb is None or thing is None:
        return None
    text = f"{verb.group().strip()} {thing.text}"
    return Reading((hear("decision", text, item=_head(said, at, thing.end)),), thing.end)


def _decided(spot: Spot) -> Reading | None:
    """After "I've decided to": everything that was decided ("move to Berlin")."""
    said = spot.said
    picked = _picked(spot)
    if picked:
        return picked
    end = _plan_end(said, spot.at)
    words = {said.low(i) for i in range(spot.at, end)}
    if end == spot.at or not words.isdisjoint(_POINTING) or end - spot.at > 10 or _cut_short(said, end):
        return None
    text = said.text(spot.at, end)
    lead = spot.group("lead")
    return Reading((hear("decision", f"{lead} {text}".strip(), item=text),), end)


_PICKING: Final = re.compile(r"(?:go with|go for|take|book|order|choose|pick|get|buy|reserve|keep) ")


def _thing(said: Sentence, at: int) -> Value | None:
    end = _plan_end(said, at)
    words = {said.low(i) for i in range(at, end)}
    if not 2 <= end - at <= 7 or not words.isdisjoint(_POINTING) or said.low(end - 1) in PREPOSITIONS:
        return None
    return Value(said.text(at, end), end)


def _cut_short(said: Sentence, end: int) -> bool:
    """Whether what follows belongs to the plan ("paint their room"), so that it would be kept in part."""
    return not said.gap(end) and said.low(end) in (PRONOUNS | DETERMINERS | PREPOSITIONS) - {
        "i",
        "i'm",
        "my",
        "we",
        "it's",
    }


def _plan_end(said: Sentence, at: int) -> int:
    index = at
    while index < len(said) and not (index > at and said.gap(index)):
        word = said.low(index)
        if word in FUNCTION and word not in _INSIDE and index != at:
            break
        index += 1
    while index > at and said.low(index - 1) in PREPOSITIONS | {"the", "a", "an", "my", "not"}:
        index -= 1
    return index


_INSIDE: Final = PREPOSITIONS | frozenset("the a an one most more next first last second my our not".split())


def _head(said: Sentence, at: int, end: int) -> str:
    """The noun of a phrase: its last word before a preposition."""
    return said.low(_head_at(said, at, end))


def _head_at(said: Sentence, at: int, end: int) -> int:
    index = at + 1
    while index < end and said.low(index) not in PREPOSITIONS:
        index += 1
    return index - 1


def _needs(spot: Spot) -> Reading | None:
    """After "I need": a thing one can book, and what it must be like ("a quiet room")."""
    said = spot.said
    found = (
        _thing(said, spot.at) if said.low(spot.at) in {"a", "an"} else phrases.item(said, spot.at, limit=4)
    )
    if found is None:
        return None
    head_at = _head_at(said, spot.at, found.end)
    # what stands before the noun describes it; what stands behind may only be for how many, when or where to
    words = head_at + 1 - spot.at - (said.low(spot.at) in {"a", "an"})
    replaced = said.low(spot.at + 1) in {"new", "different", "bigger", "better", "good", "nice"}
    lasting = head_at + 1 < found.end and said.low(head_at + 1) in _DESCRIBING
    described = said.low(head_at) in _BOOKABLE and (words > 1 or lasting) and not replaced
    if not (described or _ATTRIBUTES.search(found.text.lower())):
        return None
    return Reading((hear("requirement", found.text),), found.end)


def _must_be(spot: Spot) -> Reading | None:
    """After "it has to be": a limit or a quality. Money fills one slot, so that it can be raised."""
    said = spot.said
    limit = said.match(_LIMITS, spot.at)
    end = _limit_end(said, said.at[limit.end()]) if limit else spot.at + 1
    if limit is None:
        quality = _limit_end(said, spot.at)
        if _ATTRIBUTES.search(said.text(spot.at, quality).lower()) and quality - spot.at <= 4:
            end = quality
        elif said.low(spot.at) not in _QUALITIES:
            return None
    vague = limit is not None and (
        end <= said.at[limit.end()] or said.low(said.at[limit.end()]) in _NOT_IN | _POINTING
    )
    if vague or end - spot.at > 8:
        return None
    text = said.text(spot.at, end)
    money = _MONEY.search(text.lower()) is not None
    sentence = f"Whatever is found for the user must be {text}."
    return Reading((hear("requirement", text, item="price" if money else text, sentence=sentence),), end)


def _limit_end(said: Sentence, at: int) -> int:
    index = at
    while index < len(said) and not (index > at and said.gap(index)):
        if said.low(index) in FUNCTION and said.low(index) not in {"the", "a", "and", "next", "of"}:
            break
        index += 1
    return index


def _budget(spot: Spot) -> Reading | None:
    said = spot.said
    limit = said.match(_LIMITS, spot.at)
    end = _limit_end(said, said.at[limit.end()] if limit else spot.at)
    text = said.text(spot.at, end) if spot.at < end <= spot.at + 6 else ""
    if not (_MONEY.search(text.lower()) and re.search(r"[0-9]|hundred|thousand|ty\b|teen\b", text.lower())):
        return None
    return Reading((hear("requirement", text, item="price", sentence=f"The user's budget is {text}."),), end)


_HAVE = r"(?:i've|i have|we've|we have)"
RULES: Final[tuple[Rule, ...]] = (
    rule(rf"{_HAVE} (?:just |finally |already |now )?decided to", _decided),
    rule(rf"{_HAVE} (?:just |finally |already |now )?decided (?P<lead>not to)", _decided),
    rule(r"<i>(?:just |finally )?decided to", _picked),
    rule(r"(?:i've|i have|we've|we have|i|we) (?:just |finally )?(?:decided|settled) on", _settled_on),
    rule(
        r"(?:let's|let us) (?:just )?(?P<verb>book|go with|go for|order|reserve|schedule)",
        _settled,
        firm=False,
    ),
    rule(r"(?:let's|let us) (?:just )?(?P<verb>take|choose|pick|do)", _taken, firm=False),
    rule(
        r"(?:i'll|we'll|i will|i'm going to|i'm gonna) (?:just )?(?P<verb>go with|go for|take|choose|pick)",
        _taken,
        firm=False,
    ),
    rule(
        r"(?:i|we|i've|we've|i have|we have) (?:just |finally |already |now )?"
        rf"(?P<verb>{'|'.join(_BASE)})",
        _chose,
        firm=False,
    ),
    rule(
        r"(?:i'd like|we'd like|i would like|we would like|i want|we want)(?: to have)?",
        _wanted_terms,
        firm=False,
    ),
    rule(
        r"(?:<i>want to|i'd like to|we'd like to|i'll|we'll|<i>prefer to|i'd prefer to) "
        r"(?:pay|be billed|get billed|be charged|be invoiced) (?P<often>monthly|yearly|annually|quarterly|"
        r"weekly|every month|every year|by the month|by the year)",
        _billed,
        firm=False,
    ),
    rule(
        r"(?:please )?(?:bill|charge|invoice) (?:me|us) (?P<often>monthly|yearly|annually|quarterly|weekly|"
        r"every month|every year)",
        _billed,
        firm=False,
        request=True,
    ),
    rule(r"<i>(?:<adv>)(?:need|require|must have|have to have)", _needs, firm=False),
    rule(
        r"(?:it|the (?:system|storage|platform|software|app|solution|vendor|provider|service|data|hosting)) "
        r"(?:has to|must|needs to) (?P<verb>support|comply with|integrate with|work with|run on|stay in|"
        r"be stored in|be hosted in)",
        _complies,
        firm=False,
    ),
    rule(
        r"(?:it|everything|(?:our|my) [a-z]+|the (?:system|storage|platform|software|app|solution|vendor|"
        r"provider|service|data|hosting)|the price|the cost|the total|the rent|the room|the place) "
        r"(?:has to|have to|must|needs to|can only) be",
        _must_be,
        firm=False,
    ),
    rule(r"<my>(?:max |maximum |total )?budget is(?: only)?", _budget),
)

__all__ = ["RULES"]
