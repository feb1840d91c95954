"""Rules for what the speaker does for a living: employer and trade, each a slot of its own."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import employment
from echoic.memory.listening.grammar import Reading, Rule, Spot, one, rule
from echoic.memory.listening.lexicon import FUNCTION
from echoic.memory.listening.runs import closed
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.slots import PLAIN, STATED, Heard, hear

_AT: Final = frozenset("at for with".split())
# "my job is boring", "killing me", "changing": what a job is like ends as what one does.
_DOINGS: Final = frozenset(
    """
    accounting acting advertising babysitting baking banking bartending building cabinetmaking carpeting
    catering cleaning coaching coding composing construction consulting cooking counselling counseling
    dancing decorating designing dressmaking driving editing engineering farming filmmaking fishing
    fundraising gardening hairdressing housekeeping illustrating interpreting landscaping learning lecturing
    logging lobbying marketing mining modelling modeling mentoring nursing painting parenting planning
    plumbing policing printing programming proofreading publishing recruiting researching roofing sailing
    selling sewing shipbuilding singing subtitling surveying tailoring teaching testing trading training
    translating trucking tutoring underwriting upholstering welding woodworking writing
    """.split()
)
_FIGURATIVE: Final = re.compile(r"to (?:my|our|his|her|their|everyone|all|them|him|half) ")
_LASTING: Final = frozenset("for since all".split())


def _employer(spot: Spot) -> Reading | None:
    """The employer, and the trade where it follows: "at Google as an engineer"."""
    heard, end = _works_at(spot.said, spot.at)
    if not heard:
        return None
    if spot.said.low(end) == "as":
        trade = employment.role(spot.said, end + 1, certain=True)
        if trade:
            return Reading((*heard, hear("occupation", trade.text, confidence=STATED)), trade.end)
    return Reading(heard, end)


def _employer_since(spot: Spot) -> Reading | None:
    """After "I've worked at": an employer if it lasts ("for ten years"); else it may be one of many."""
    found = _employer(spot)
    return found if found and spot.said.low(found.end) in _LASTING else None


def _works_at(said: Sentence, at: int) -> tuple[tuple[Heard, ...], int]:
    firm = employment.organisation(said, at)
    if firm:
        return (hear("employer", firm.text),), firm.end
    kind = employment.workplace(said, at)
    return ((hear("workplace", kind.text),), kind.end) if kind else ((), at)


def _employee(spot: Spot) -> Reading | None:
    return _trade(spot.said, spot.at, certain=True)


def _claimed_trade(spot: Spot) -> Reading | None:
    article = spot.said.low(spot.at) in {"a", "an", "the"}
    return _trade(spot.said, spot.at, certain=False) if article else None


def _trade(said: Sentence, at: int, *, certain: bool) -> Reading | None:
    """A trade, and the employer where "at …" or "of …" follows."""
    found = employment.role(said, at, certain=certain)
    if found is None or not closed(said, found.end) or said.match(_FIGURATIVE, found.end):
        return None
    heard: tuple[Heard, ...] = (hear("occupation", found.text, confidence=STATED if certain else PLAIN),)
    joined = said.low(found.end) in _AT or (said.low(found.end) == "of" and said.low(at) == "the")
    firm = employment.organisation(said, found.end + 1) if joined else None
    return Reading((*heard, hear("employer", firm.text)), firm.end) if firm else Reading(heard, found.end)


def _occupation(spot: Spot) -> Reading | None:
    """After "my job is": a trade, or what one does ("software testing")."""
    said = spot.said
    trade = employment.role(said, spot.at, certain=True)
    if trade:
        return one(trade, lambda text: hear("occupation", text))
    end = spot.at
    while end < len(said) and said.low(end) not in FUNCTION and not (end > spot.at and said.gap(end)):
        end += 1
    words = [said.low(i) for i in range(spot.at, end)]
    gerund = 0 < len(words) <= 3 and words[-1] in _DOINGS and closed(said, end)
    return Reading((hear("occupation", said.text(spot.at, end)),), end) if gerund else None


def _industry(spot: Spot) -> Reading | None:
    return one(employment.field_of_work(spot.said, spot.at), lambda text: hear("industry", text))


def _self_employed(spot: Spot) -> Reading | None:
    return Reading((hear("occupation", "self-employed"),), spot.at)


def _started(spot: Spot) -> Reading | None:
    """After "I started at": only a named firm, since one may start at nine or at the top."""
    return one(employment.organisation(spot.said, spot.at), lambda text: hear("employer", text))


RULES: Final[tuple[Rule, ...]] = (
    rule(r"<i><not><adv>work (?:full time |part time )?(?:at|for|over at)", _employer, elides=True),
    rule(r"<im?><adv>(?:working (?:full time |part time )?(?:at|for)|employed (?:at|by))", _employer),
    rule(r"<ive>(?:<adv>)been working (?:at|for)", _employer),
    rule(r"<ive>(?:<adv>)worked (?:at|for)", _employer_since),
    rule(r"(?:i'm |i am )(?P<no>not |no longer )?<adv>self[ -]employed", _self_employed),
    rule(r"i work for myself", _self_employed),
    rule(
        r"(?:i|i've) (?:just |recently )?(?:started (?:working |a (?:new )?job |my new job )?|"
        r"got a (?:new )?job )at",
        _started,
    ),
    rule(r"i (?:just |recently |finally )?(?P<no>)(?:quit|left|lost) my job (?:at|with)", _started),
    rule(r"my (?:current )?(?:employer|company) is(?: called)?", _started),
    rule(r"<i><not><adv>work as", _employee, elides=True),
    rule(r"<im?><adv>(?:working|employed) as", _employee),
    rule(r"<i><not><adv>work in", _industry, elides=True),
    rule(r"my (?:job|occupation|profession|trade)(?: is|'s)", _occupation, firm=False),
    rule(r"(?:i'm|i am) (?P<no>not |no longer )?<adv>", _claimed_trade, firm=False),
)

__all__ = ["RULES"]
