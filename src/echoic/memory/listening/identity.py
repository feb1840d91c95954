"""Rules for who the speaker is: name, home, origin, age and birthday."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import names, places, spoken
from echoic.memory.listening.grammar import Reading, Rule, Spot, one, rule
from echoic.memory.listening.runs import closed
from echoic.memory.listening.slots import INFERRED, PLAIN, Heard, hear

_ADULT: Final = range(10, 111)
_ANY_AGE: Final = range(3, 121)
_INTRODUCED: Final = frozenset("speaking calling here from".split())
_AGE_CLOSERS: Final = frozenset("and but i i'm i've my so now today living".split())
_LASTING: Final = frozenset("for since all my most ever".split())
# What puts a home in the past, up to some words behind it ("with my parents when I was five").
_LONG_AGO: Final = re.compile(
    r"(?:(?!and |but |so |because )[^ ]+ ){0,6}?(?:when (?:i|we) (?:was|were)|as a (?:kid|child|teenager)|"
    r"before (?:i|we)|until (?:i|we)|back in (?:the|my)|years ago but) "
)
# "I moved to Paris in 2010 and to London in 2015": on to the next.
_THEN_ON: Final = re.compile(
    r"(?:in [^ ]+ )?(?:and (?:then |later |after that )?|then |later )(?:on |back )?to (?!be |see |tell )"
)
_NOT_CALLED: Final = frozenset("asap anytime whenever daily weekly collect 24/7 directly".split())


def _stated_name(spot: Spot) -> Reading | None:
    return one(names.stated(spot.said, spot.at), lambda text: hear("user_name", text))


def _last_name(spot: Spot) -> Reading | None:
    return one(names.stated(spot.said, spot.at), lambda text: hear("last_name", text))


def _called(spot: Spot) -> Reading | None:
    """After "call me": a name, and nothing behind it that makes it something else."""
    found = names.stated(spot.said, spot.at)
    if found is None or not closed(spot.said, found.end) or spot.said.low(spot.at) in _NOT_CALLED:
        return None
    return one(found, lambda text: hear("user_name", text, confidence=PLAIN))


def _claimed_name(spot: Spot) -> Reading | None:
    found = names.claimed(spot.said, spot.at, greeted=spot.greeted)
    if found is None:
        return None
    sure = PLAIN if spot.said.cased or spot.greeted else INFERRED
    return one(found, lambda text: hear("user_name", text, confidence=sure))


def _introduced(spot: Spot) -> Reading | None:
    """After "this is" or "it's": only with a greeting before it or "speaking" after it."""
    found = names.claimed(spot.said, spot.at, greeted=True)
    if found is None or not (spot.greeted or spot.said.low(found.end) in _INTRODUCED):
        return None
    return one(found, lambda text: hear("user_name", text, confidence=PLAIN))


def _home(spot: Spot) -> Reading | None:
    found = places.place(spot.said, spot.at)
    if found is None or spot.said.match(_LONG_AGO, found.end):
        return None
    where = spot.group("where")
    if where in {"", "in", "at", "to"}:
        return one(found, lambda text: hear("home", text))
    return Reading((_near(where, found.text),), found.end)


def _home_since(spot: Spot) -> Reading | None:
    """After "I've lived in": a home if it lasts ("for years"); else it may be long ago."""
    found = _home(spot)
    return found if found and spot.said.low(found.end) in _LASTING else None


def _moved_to(spot: Spot) -> Reading | None:
    """After "I moved to": the last place, where one was moved on."""
    said = spot.said
    found = _home(spot)
    while found and (on := said.match(_THEN_ON, found.end)):
        further = places.place(said, said.at[on.end()])
        if further is None:
            break
        found = one(further, lambda text: hear("home", text))
    return found


def _near(where: str, text: str) -> Heard:
    return hear("home", f"{where} {text}", sentence=f"The user lives {where} {text}.")


def _moved(spot: Spot) -> Reading | None:
    """After "I moved from": the second place, "Berlin to Vienna"."""
    said = spot.said
    start = places.place(said, spot.at)
    if start is None or said.low(start.end) != "to":
        return None
    return one(places.place(said, start.end + 1), lambda text: hear("home", text))


def _address(spot: Spot) -> Reading | None:
    return one(places.street(spot.said, spot.at), lambda text: hear("address", text))


def _origin(spot: Spot) -> Reading | None:
    return one(places.origin(spot.said, spot.at), lambda text: hear("origin", text))


def _grew_up(spot: Spot) -> Reading | None:
    return one(places.place(spot.said, spot.at), lambda text: hear("grew_up_in", text))


def _birthplace(spot: Spot) -> Reading | None:
    return one(places.place(spot.said, spot.at), lambda text: hear("birthplace", text))


def _birth_year(spot: Spot) -> Reading | None:
    born = spoken.year(spot.said, spot.at) or spoken.number(spot.said, spot.at)
    if born is None or not (born.value >= 1900 or 30 <= born.value <= 99):
        return None
    value = born.value if born.value >= 1900 else 1900 + born.value  # "in sixty three"
    return Reading((hear("birth_year", str(value)),), born.end)


def _birthday(spot: Spot) -> Reading | None:
    return one(spoken.date(spot.said, spot.at), lambda text: hear("birthday", text))


def _age(spot: Spot) -> Reading | None:
    """A bare number is an age only where nothing is counted: "34." but not "34 minutes away"."""
    said = spot.said
    found = spoken.number(said, spot.at)
    if found is None:
        return None
    years = [said.low(found.end), said.low(found.end + 1)]
    if years[0] in {"years", "year"} and years[1] in {"old", "young", "of"}:
        end = found.end + (3 if years[1] == "of" else 2)
        return _aged(found.value, end) if found.value in _ANY_AGE else None
    counting = spoken.number(said, found.end) is not None  # "twenty, thirty minutes away"
    ends = said.gap(found.end) or said.low(found.end) in _AGE_CLOSERS
    return _aged(found.value, found.end) if found.value in _ADULT and ends and not counting else None


def _aged(value: int, end: int) -> Reading:
    return Reading((hear("age", str(value)),), end)


_NAME = r"(?:first |full |given |real |actual )?name"
RULES: Final[tuple[Rule, ...]] = (
    rule(rf"my {_NAME} (?:is|would be|will be)(?P<no> not| n't)?(?: actually| just| um)?", _stated_name),
    rule(rf"my {_NAME}(?: isn't| 's not|'s not)(?P<no>)", _stated_name),
    rule(rf"(?:my|the) {_NAME}'s", _stated_name),
    rule(r"(?:the )?name(?:'s| is)", _stated_name, firm=False),
    rule(r"my (?:last name|surname|family name)(?:'s| is)", _last_name),
    rule(r"(?:<im>)(?:called|named|known as)", _called, firm=False),
    rule(
        r"(?:you can |you may |you could |just |please |(?:my )?friends |most people |people |everyone |"
        r"everybody |"
        r"they all |feel free to )?(?:just |all |usually |also )?(?P<no>(?:don't|do not|never) )?(?:call|"
        r"calls) me",
        _called,
        firm=False,
    ),
    rule(r"i go by", _called, firm=False),
    rule(r"<i>prefer (?:to be called|to go by)", _called, firm=False),
    rule(r"(?:this is|it's|it is)", _introduced, firm=False),
    rule(
        r"<i><not><adv>(?:live|reside) (?P<where>in|near|outside of|outside|just outside|close to|around|"
        r"right outside)",
        _home,
        elides=True,
    ),
    rule(r"<ive>(?:<adv>)been (?:<adv>)living (?P<where>in|near|outside|just outside)", _home),
    rule(r"<ive>(?:<adv>)lived (?P<where>in|near|outside|just outside)", _home_since),
    rule(
        r"<im?><adv>(?:based|living|located) (?P<where>in|near|outside|just outside|out of)",
        _home,
        elides=False,
    ),
    rule(r"<i>(?:<adv>)moved (?:back |over |out |down |up )?to", _moved_to, elides=True),
    rule(r"<ive>(?:<adv>)moved (?:back |over |out |down |up )?to", _moved_to),
    rule(r"<i>(?:<adv>)moved from", _moved, elides=True),
    rule(r"<my>(?:home|house|place) is in", _home),
    rule(r"<my>(?:home |street |mailing |postal )?address is", _address),
    rule(r"<i>live at", _address),
    rule(r"<im?><adv>from", _origin),
    rule(r"<i>(?:<adv>)(?:come|hail) from", _origin, elides=True),
    rule(r"<i>(?:<adv>)grew up in", _grew_up, elides=True),
    rule(r"i was born on", _birthday, elides=True),
    rule(r"i was born in", _birth_year),
    rule(r"i was (?:born|born and raised) in", _birthplace, elides=True),
    rule(r"my (?:birthday|date of birth|dob|birth date|birthdate)(?: is|'s)(?: on)?", _birthday),
    rule(r"<im><adv>", _age, firm=False),
    rule(r"i (?:just |recently )?turned", _age, firm=False),
)
CLAIMS: Final[tuple[Rule, ...]] = (rule(r"(?:i'm|i am) (?P<no>not )?", _claimed_name, firm=False),)
"""Tried after every other rule for what follows "I'm"."""

__all__ = ["CLAIMS", "RULES"]
