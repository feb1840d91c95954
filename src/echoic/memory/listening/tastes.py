"""Rules for what the speaker can and cannot have, likes and dislikes, and when to be called."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import phrases
from echoic.memory.listening.grammar import Reading, Rule, Spot, many, one, rule
from echoic.memory.listening.lexicon import FUNCTION
from echoic.memory.listening.runs import closed
from echoic.memory.listening.slots import Heard, hear
from echoic.memory.listening.spoken import Value

_DIETS: Final = {
    "vegan": "vegan",
    "vegetarian": "vegetarian",
    "veggie": "vegetarian",
    "pescatarian": "pescatarian",
    "kosher": "kosher",
    "halal": "halal",
    "keto": "keto",
    "gluten free": "gluten-free",
    "gluten-free": "gluten-free",
    "dairy free": "dairy-free",
    "dairy-free": "dairy-free",
    "plant based": "plant-based",
    "plant-based": "plant-based",
    "low carb": "low-carb",
    "low-carb": "low-carb",
    "celiac": "coeliac",
    "coeliac": "coeliac",
}
_DIET = "|".join(map(re.escape, _DIETS))
_DRINKS: Final = "alcohol|coffee|milk|wine|beer|soda|caffeine|tea|liquor|spirits|cow's milk"
_FOODS: Final = (
    "gluten|dairy|nuts|peanuts|tree nuts|shellfish|wheat|lactose|soy|sugar|eggs|fish|seafood|caffeine|"
    "alcohol|pork|"
    "meat|red meat|milk|sesame|msg|onions|garlic|fructose|yeast|cheese|grapefruit"
)
PLURALS: Final = {
    "peanut": "peanuts",
    "nut": "nuts",
    "tree nut": "tree nuts",
    "egg": "eggs",
    "cat": "cats",
    "dog": "dogs",
    "bee": "bees",
    "bee sting": "bee stings",
    "strawberry": "strawberries",
    "almond": "almonds",
    "cashew": "cashews",
    "walnut": "walnuts",
    "tomato": "tomatoes",
    "horse": "horses",
    "wasp": "wasps",
    "prawn": "prawns",
}
_THIRD_PERSON: Final = {
    "like": "likes",
    "love": "loves",
    "adore": "adores",
    "enjoy": "enjoys",
    "hate": "hates",
    "dislike": "dislikes",
    "despise": "despises",
    "can't stand": "can't stand",
    "prefer": "prefers",
}
_PARTS: Final = r"(?:the )?(?:early |late )?(?:mornings?|afternoons?|evenings?|daytime)"
_TO: Final = r"(?:[a-z]+|[0-9:]{1,5})(?: (?:thirty|fifteen|forty five|o'clock))?(?: ?(?:am|pm|a\.m|p\.m))?"
_HOURS: Final = re.compile(
    rf"(?:(?:in|during) {_PARTS}|at night|at lunchtime|at work|at home|on (?:weekdays|weekends|sundays|"
    rf"saturdays|mondays|"
    rf"tuesdays|wednesdays|thursdays|fridays)|between {_TO} and {_TO}|(?:after|before|past) "
    rf"(?:[0-9:]{{1,5}}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midday|"
    rf"midnight|lunch|dinner|"
    rf"work|school)(?: thirty| fifteen| o'clock)?(?: ?(?:am|pm|a\.m|p\.m))?(?: in {_PARTS}| at night)?) "
)
# What makes a rule of a diet hold only now and then, or only of some of it.
_NOW_AND_THEN: Final = re.compile(
    r"(?:(?:except|apart from|other than|aside from|save for|unless|part of the|half (?:of )?the|"
    r"most of the|some of the|some days|during|at (?:home|work|lunch|dinner|parties|night)"
    r"|on (?:a )?[a-z]+days?|on (?:weekends|holidays)|for (?:lent|ramadan|january|the (?:day|week|month))) )"
)
_UNDER_CONDITIONS: Final = frozenset(
    """
    after before without with in on during past often much every unless except until when while from if late
    regularly usually normally frequently daily outside apart straight
    """.split()
)
_BRING_UP: Final = r"(?:talk about|discuss|speak about|bring up|mention|ask (?:me )?about|get into)"
_ONLY_NEGATIVE: Final = ("at work", "at home", "on sunday", "on saturday", "past")


def _allergies(spot: Spot) -> Reading | None:
    found, end = phrases.foods(spot.said, spot.at)
    return many(found, end, lambda text: hear("allergy", text))


def _named_allergy(spot: Spot) -> Reading | None:
    """The words between the article and "allergy": "I have a peanut allergy"."""
    what = spot.group("what")
    if set(what.split()) & FUNCTION or what in {"bad", "severe", "food", "new", "seasonal", "skin"}:
        return None
    what = what.removeprefix("severe ").removeprefix("bad ").removeprefix("serious ")
    return Reading((hear("allergy", PLURALS.get(what, what)),), spot.at)


def _diet(spot: Spot) -> Reading | None:
    kept = hear("diet", _DIETS[spot.group("diet")])
    whole = closed(spot.said, spot.at) and not spot.said.match(_NOW_AND_THEN, spot.at)
    return Reading((kept,), spot.at) if whole else None


def _avoids(spot: Spot) -> Reading | None:
    found, end = phrases.foods(spot.said, spot.at)
    return many(found, end, lambda text: hear("avoids", text))


def _avoids_listed(spot: Spot) -> Reading | None:
    """Of something from a closed list; "no coffee after noon" is no rule about coffee."""
    what = spot.group("what")
    if not spot.said.gap(spot.at) and spot.said.low(spot.at) in _UNDER_CONDITIONS:
        return None
    return Reading((hear("avoids", what, sentence=f"The user avoids {what}."),), spot.at)


def _intolerant(spot: Spot) -> Reading | None:
    what = spot.group("what")
    return Reading((hear("avoids", what, sentence=f"The user is {what} intolerant."),), spot.at)


def _likes(spot: Spot) -> Reading | None:
    negated = re.fullmatch(r"(?:don't|do not) (?:really |ever )?(.*)", spot.group("verb"))
    return _tastes(spot, f"doesn't {negated[1]}" if negated else _THIRD_PERSON[spot.group("verb")])


def _into(spot: Spot) -> Reading | None:
    return _tastes(spot, f"is {spot.group('verb')}")


def _tastes(spot: Spot, verb: str) -> Reading | None:
    found, end = phrases.items(spot.said, spot.at, conditional=True)

    def make(text: str) -> Heard:
        return hear("preference", f"{verb} {text}", item=text)

    return many(found, end, make)


def _interested(spot: Spot) -> Reading | None:
    """After "I'm interested in": a subject; not a flat, an offer or a thing one might buy."""
    said = spot.said
    offered = said.low(spot.at) in {"the", "a", "an", "this", "that", "your", "buying", "renting", "getting"}
    found = None if offered else _tastes(spot, f"is {spot.group('verb')}")
    return found if found and not any(_OFFERED.search(one.text) for one in found.heard) else None


_OFFERED: Final = re.compile(
    r"\b(?:buying|selling|renting|leasing|hiring|booking|upgrading|switching|cancelling|canceling|ordering|"
    r"signing|knowing|finding|hearing|seeing|getting|trying|making|scheduling|refund|pricing|prices|plans?|"
    r"quotes?|offers?|insurance|appointments?)\b",
    re.IGNORECASE,
)


def _hobby(spot: Spot) -> Reading | None:
    found, end = phrases.items(spot.said, spot.at)
    return many(found, end, lambda text: hear("hobby", text))


def _avoid_topic(spot: Spot) -> Reading | None:
    """What is not to be talked about at all; what is only not for now or with somebody is no rule."""
    said, at = spot.said, spot.at
    if said.low(at) in {"my", "our"}:
        end = at + 1
        while end < len(said) and said.low(end) not in FUNCTION and not said.gap(end):
            end += 1
        found = [Value(said.text(at, end), end)] if 1 < end - at <= 4 else []
    else:
        found, end = phrases.items(said, at)
    if said.low(end) in _UNDER_CONDITIONS | {"right", "now", "today", "yet", "to", "again"}:
        return None
    return many(found, end, lambda text: hear("avoid_topic", text))


def _answer_length(spot: Spot) -> Reading | None:
    """How long answers are to be, of all answers: "keep it short" may be about this one, so it has to end."""
    length = spot.group("length")
    kept = _LENGTHS.get(length, length)
    if not closed(spot.said, spot.at) or spot.said.low(spot.at) in {"this", "for", "today", "about"}:
        return None
    return Reading((hear("answer_length", kept),), spot.at)


_LENGTHS: Final = {
    "brief": "short",
    "shorter": "short",
    "concise": "short",
    "to the point": "short",
    "longer": "detailed",
    "long": "detailed",
    "thorough": "detailed",
}


def _prefers(spot: Spot) -> Reading | None:
    """After "I prefer": the key is what is preferred, the text keeps what to ("tea to coffee")."""
    said = spot.said
    found = phrases.item(said, spot.at, definite=True, limit=9, conditional=True)
    if found is None or said.low(spot.at) == "not":
        return None
    end = found.end
    if said.low(end) == "than" and said.low(end - 1) == "rather":
        other = phrases.item(said, end + 1, definite=True)
        end = other.end if other else end
    text = said.text(spot.at, end)
    item = re.split(r" (?:to|over|rather|instead) ", text)[0] if said.low(spot.at) != "to" else text
    return Reading((hear("preference", f"prefers {text}", item=item),), end)


def _favourite(spot: Spot) -> Reading | None:
    """After "my favourite": the key is the thing, the text the choice ("colour is blue")."""
    said = spot.said
    thing = phrases.subject(said, spot.at)
    if thing is None:
        return None
    choice = phrases.item(said, thing.end + 1, definite=True, conditional=True)
    if choice is None or said.low(thing.end + 1) in {"to", "a", "an"} or said.low(choice.end) == "or":
        return None
    slot = "least_favourite" if spot.group("least") else "favourite"
    return one(choice, lambda text: hear(slot, text, item=thing.text))


def _call_time(spot: Spot) -> Reading | None:
    said = spot.said
    when = said.match(_HOURS, spot.at)
    end = said.at.get(when.end()) if when else None
    if when is None or end is None or not closed(said, end):
        return None
    negative = bool(spot.group("never"))
    if when.group().startswith(_ONLY_NEGATIVE) and not negative:
        return None
    slot = "no_contact_time" if negative else "contact_time"
    return Reading((hear(slot, said.text(spot.at, end)),), end)


_LIKING = "like|love|adore|enjoy|hate|dislike|despise|can't stand|prefer"
RULES: Final[tuple[Rule, ...]] = (
    rule(r"(?:i'm|i am|we're) (?P<no>(?:not|no longer) )?<adv>allergic to", _allergies),
    rule(r"<ive>(?:a |an )?(?:bad |severe |serious )?allerg(?:y|ies) to", _allergies),
    rule(r"<ive>(?:a |an )(?P<what>[a-z]+(?: [a-z]+)?) allergy", _named_allergy),
    rule(
        rf"<im?><adv>(?:a |an |on a |strictly |strict )?(?:strict )?(?P<diet>{_DIET})(?: diet)?",
        _diet,
        firm=False,
    ),
    rule(
        rf"<i>(?P<no>(?:don't|do not|no longer) )?(?:<adv>)(?:eat|keep|follow a|"
        rf"follow an) (?:strictly )?(?P<diet>{_DIET})(?: diet)?",
        _diet,
    ),
    rule(r"(?:i'm|i am) <adv>(?P<what>lactose|gluten|dairy|fructose|wheat) intolerant", _intolerant),
    rule(r"<i>(?:can't|can not|don't|do not|never|won't)(?: ever| really)? eat", _avoids),
    rule(rf"<i>(?:can't|can not)(?: ever| really)? (?:have|tolerate) (?P<what>{_FOODS})", _avoids_listed),
    rule(
        rf"<i>(?:can't|can not|don't|do not|never)(?: ever| really)? drink (?P<what>{_DRINKS})",
        _avoids_listed,
        elides=True,
    ),
    rule(rf"<i>(?:try to )?avoid (?P<what>{_FOODS})", _avoids_listed),
    rule(r"<i><adv>prefer", _prefers, firm=False, elides=True),
    rule(
        r"<i><adv>(?P<verb>like|love|adore|enjoy|hate|dislike|despise|can't stand)",
        _likes,
        firm=False,
        elides=True,
    ),
    rule(
        r"<i>(?P<verb>(?:don't|do not) (?:really |ever )?(?:like|enjoy|care for))",
        _likes,
        firm=False,
        elides=True,
    ),
    rule(
        r"(?:i'm|i am) <adv>(?P<verb>(?:not )?(?:into|fond of|a (?:big |huge |massive )?fan of|"
        r"crazy about))",
        _into,
        firm=False,
    ),
    rule(r"(?:i'm|i am|we're|we are) <adv>(?P<verb>(?:not )?interested in)", _interested, firm=False),
    rule(
        r"<my>(?:main |only |biggest |other |new )?(?:hobby|hobbies|pastime|pastimes|passion) "
        r"(?:is|are|include|includes)",
        _hobby,
    ),
    rule(
        rf"(?:(?:can|could|would|will) you )?(?:please )?(?:let's not|let us not|don't|do not|never|avoid)"
        rf"(?: ever)? {_BRING_UP}",
        _avoid_topic,
        firm=False,
        request=True,
    ),
    rule(
        rf"<i>(?:(?:really |just |still )?(?:don't|do not)(?: really)? (?:want|like|wish) to|"
        rf"would rather not|'d rather not|prefer not to) {_BRING_UP}",
        _avoid_topic,
        firm=False,
    ),
    rule(
        r"(?:please |let's |let us )avoid (?:talking about|discussing|mentioning|bringing up)",
        _avoid_topic,
        firm=False,
    ),
    rule(rf"(?:i'd|we'd) (?:rather|prefer) not(?: to)? {_BRING_UP}", _avoid_topic, firm=False),
    rule(
        r"(?:(?:can|could|would|will) you )?(?:please |always |just )*(?:keep|make) (?:your |the |all )*"
        r"(?:answers?|replies|responses|explanations|it|things|everything) (?:nice and |very |really )?"
        r"(?P<length>short|brief|concise|to the point|long|detailed|thorough)",
        _answer_length,
        firm=False,
        request=True,
    ),
    rule(
        r"(?:<i>(?:<adv>)(?:prefer|like|want)|i'd (?:prefer|like)) (?:your )?(?P<length>short|shorter|brief|"
        r"concise|long|longer|detailed|thorough) (?:answers|replies|responses|explanations)",
        _answer_length,
        firm=False,
    ),
    rule(
        r"my (?:all-time |all time |absolute |personal )?(?P<least>least )?(?:favourite|favorite)", _favourite
    ),
    rule(
        r"(?:(?:can|could|would|will) you )?(?:please )?(?:only )?(?P<never>(?:don't|do not|"
        r"never) )?(?:please )?(?:ever )?"
        r"(?:call|phone|ring|text|contact|reach|message) me(?: only)?",
        _call_time,
        firm=False,
        request=True,
    ),
)

__all__ = ["PLURALS", "RULES"]
