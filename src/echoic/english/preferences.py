"""Readers of the rules about what a speaker likes, avoids, chooses and needs.

`data/rules.txt` names the reader of each rule: a function of this module.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english import phrases
from echoic.english.lexicon import DETERMINERS, FUNCTION, PREPOSITIONS, PRONOUNS, pattern, table, words
from echoic.english.names import closed, run_end
from echoic.english.phrases import Value
from echoic.english.sentences import Sentence
from echoic.english.slots import RuleReading, Spot, hear, many, one

# -- likes, diets and calls

_ALLERGIC: Final = pattern("preferences.allergic")
_DIETS: Final = table("preferences.diets")
PLURALS: Final = table("preferences.plurals")
_THIRD_PERSON: Final = table("preferences.third_person")
_HOURS: Final = pattern("preferences.hours")
# Words that limit a diet to some times or some foods.
_NOW_AND_THEN: Final = pattern("preferences.now_and_then")
_UNDER_CONDITIONS: Final = words("preferences.under_conditions")
_ONLY_NEGATIVE: Final = ("at work", "at home", "on sunday", "on saturday", "past")


def allergies(spot: Spot) -> RuleReading | None:
    found, end = phrases.foods(spot.said, spot.at)
    return many(found, end, lambda text: hear("allergy", text))


def named_allergy(spot: Spot) -> RuleReading | None:
    """The words between the article and "allergy": "I have a peanut allergy"."""
    what = spot.group("what")
    if set(what.split()) & FUNCTION or what in {"bad", "severe", "food", "new", "seasonal", "skin"}:
        return None
    what = what.removeprefix("severe ").removeprefix("bad ").removeprefix("serious ")
    return RuleReading((hear("allergy", PLURALS.get(what, what)),), spot.at)


def allergic_object(spot: Spot) -> RuleReading | None:
    """What one cannot have for an allergy: "I can't have shellfish, I'm allergic to it"."""
    found, end = phrases.foods(spot.said, spot.at)
    return many(found, end, lambda text: hear("allergy", text)) if names_allergy(spot.said, end) else None


def names_allergy(said: Sentence, at: int) -> bool:
    """Whether "I'm allergic" or "I'm allergic to it" is said at `at`, and nothing that one is allergic to."""
    found = said.match(_ALLERGIC, at)
    end = said.at.get(found.end()) if found else None
    return end is not None and (said.gap(end) or said.low(end) in {"so", "and", "but"})


def diet(spot: Spot) -> RuleReading | None:
    kept = hear("diet", _DIETS[spot.group("diet")])
    whole = closed(spot.said, spot.at) and not spot.said.match(_NOW_AND_THEN, spot.at)
    return RuleReading((kept,), spot.at) if whole else None


def avoids(spot: Spot) -> RuleReading | None:
    found, end = phrases.foods(spot.said, spot.at)
    return many(found, end, lambda text: hear("avoids", text))


def avoids_listed(spot: Spot) -> RuleReading | None:
    """Something from a closed list; "no coffee after noon" says nothing about coffee in general."""
    what = spot.group("what")
    if not spot.said.gap(spot.at) and spot.said.low(spot.at) in _UNDER_CONDITIONS:
        return None
    return RuleReading((hear("avoids", what, sentence=f"The user avoids {what}."),), spot.at)


def intolerant(spot: Spot) -> RuleReading | None:
    what = spot.group("what")
    return RuleReading((hear("avoids", what, sentence=f"The user is {what} intolerant."),), spot.at)


def likes(spot: Spot) -> RuleReading | None:
    negated = re.fullmatch(r"(?:don't|do not) (?:really |ever )?(.*)", spot.group("verb"))
    return _tastes(spot, f"doesn't {negated[1]}" if negated else _THIRD_PERSON[spot.group("verb")])


def into(spot: Spot) -> RuleReading | None:
    return _tastes(spot, f"is {spot.group('verb')}")


def _tastes(spot: Spot, verb: str) -> RuleReading | None:
    found, end = phrases.items(spot.said, spot.at, conditional=True)
    return many(found, end, lambda text: hear("preference", f"{verb} {text}", item=text))


def interested(spot: Spot) -> RuleReading | None:
    """After "I'm interested in": a subject; not a flat, an offer or a thing one might buy."""
    said = spot.said
    offered = said.low(spot.at) in {"the", "a", "an", "this", "that", "your", "buying", "renting", "getting"}
    found = None if offered else _tastes(spot, f"is {spot.group('verb')}")
    return found if found and not any(_OFFERED.search(one.text) for one in found.heard) else None


_OFFERED: Final = pattern("preferences.offered")


def hobby(spot: Spot) -> RuleReading | None:
    found, end = phrases.items(spot.said, spot.at)
    return many(found, end, lambda text: hear("hobby", text))


def avoid_topic(spot: Spot) -> RuleReading | None:
    """A topic to avoid entirely; one to avoid only now, or with some people, does not count."""
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


def answer_length(spot: Spot) -> RuleReading | None:
    """How long all answers should be: "keep it short" may be about this one, so it must end there."""
    length = spot.group("length")
    kept = _LENGTHS.get(length, length)
    if not closed(spot.said, spot.at) or spot.said.low(spot.at) in {"this", "for", "today", "about"}:
        return None
    return RuleReading((hear("answer_length", kept),), spot.at)


_LENGTHS: Final = table("preferences.lengths")


def prefers(spot: Spot) -> RuleReading | None:
    """After "I prefer": the key is what is preferred, the text keeps the alternative ("tea to coffee")."""
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
    return RuleReading((hear("preference", f"prefers {text}", item=item),), end)


def favourite(spot: Spot) -> RuleReading | None:
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


def call_time(spot: Spot) -> RuleReading | None:
    said = spot.said
    when = said.match(_HOURS, spot.at)
    end = said.at.get(when.end()) if when else None
    if when is None or end is None or not closed(said, end):
        return None
    negative = bool(spot.group("never"))
    if when.group().startswith(_ONLY_NEGATIVE) and not negative:
        return None
    slot = "no_contact_time" if negative else "contact_time"
    return RuleReading((hear(slot, said.text(spot.at, end)),), end)


# -- choices and requirements

_CHOSEN: Final = words("preferences.chosen")
_BOOKABLE: Final = words("preferences.bookable")
_ATTRIBUTES: Final = pattern("preferences.attributes")
# Choices without an article ("monthly billing").
_TERMS: Final = words("preferences.terms")
_PAST: Final = pattern("preferences.past")
_MONEY: Final = pattern("preferences.money")
_LIMITS: Final = pattern("preferences.limits")
_QUALITIES: Final = words("preferences.qualities")
# Between a thing one books and a quality of it that stays: "a room with a bath", not "a table for one".
_DESCRIBING: Final = words("preferences.describing")
_NOT_IN: Final = words("preferences.not_in")
_LIMITING: Final = frozenset("the a and next of".split())
_POINTING: Final = words("preferences.pointing")


def settled(spot: Spot) -> RuleReading | None:
    """After "let's book": anything."""
    return _chosen(spot, known=False)


def settled_on(spot: Spot) -> RuleReading | None:
    """After "I've decided on": anything."""
    return _chosen(spot, known=False, verb="go with")


def taken(spot: Spot) -> RuleReading | None:
    """After "I'll take": only what one chooses among ("the corner room", not "the bus")."""
    return _chosen(spot, known=True)


def _chosen(spot: Spot, *, known: bool, verb: str = "") -> RuleReading | None:
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
    return RuleReading((hear("decision", text, item=head),), thing.end)


def _terms(spot: Spot, verb: str) -> RuleReading | None:
    """Terms that take no article: "monthly billing", "express delivery"."""
    said = spot.said
    end = run_end(said, spot.at)
    if not 2 <= end - spot.at <= 4 or said.low(end - 1) not in _TERMS or said.low(spot.at) in _ABOUT_TERMS:
        return None
    text = f"{verb or spot.group('verb')} {said.text(spot.at, end)}"
    return RuleReading((hear("decision", text, item=said.low(end - 1)),), end)


def wanted_terms(spot: Spot) -> RuleReading | None:
    return _terms(spot, "have")


_ABOUT_TERMS: Final = words("preferences.about_terms")
_BASE: Final = table("preferences.base")


def chose(spot: Spot) -> RuleReading | None:
    """After "I chose": what one chooses among; not what was chosen once and may be over."""
    verb = _BASE[spot.group("verb")]
    if _PAST.search(spot.said.line):
        return None
    return _chosen(spot, known=True, verb=verb)


def billed(spot: Spot) -> RuleReading | None:
    text = f"be billed {spot.group('often')}"
    return RuleReading((hear("decision", text, item="billing"),), spot.at)


def complies(spot: Spot) -> RuleReading | None:
    """After "it has to support": a requirement, to the end of the phrase."""
    said = spot.said
    end = run_end(said, spot.at, _LIMITING)
    words = {said.low(i) for i in range(spot.at, end)}
    if not 1 <= end - spot.at <= 6 or not words.isdisjoint(_POINTING | (_NOT_IN - {"the"})):
        return None
    text = f"{spot.group('verb')} {said.text(spot.at, end)}"
    sentence = f"Whatever is found for the user must {text}."
    return RuleReading((hear("requirement", text, item=text, sentence=sentence),), end)


def picked(spot: Spot) -> RuleReading | None:
    """After "I decided to": a choice; other past decisions may be long over."""
    said = spot.said
    verb = said.match(_PICKING, spot.at)
    at = said.at[verb.end()] if verb else spot.at
    thing = _thing(said, at) if verb and said.low(at) in {"the", "a", "an"} else None
    if verb is None or thing is None:
        return None
    text = f"{verb.group().strip()} {thing.text}"
    return RuleReading((hear("decision", text, item=_head(said, at, thing.end)),), thing.end)


def decided(spot: Spot) -> RuleReading | None:
    """After "I've decided to": any decision ("move to Berlin")."""
    said = spot.said
    choice = picked(spot)
    if choice:
        return choice
    end = _plan_end(said, spot.at)
    words = {said.low(i) for i in range(spot.at, end)}
    if end == spot.at or not words.isdisjoint(_POINTING) or end - spot.at > 10 or _cut_short(said, end):
        return None
    text = said.text(spot.at, end)
    lead = spot.group("lead")
    return RuleReading((hear("decision", f"{lead} {text}".strip(), item=text),), end)


_PICKING: Final = re.compile(r"(?:go with|go for|take|book|order|choose|pick|get|buy|reserve|keep) ")


def _thing(said: Sentence, at: int) -> Value | None:
    end = _plan_end(said, at)
    words = {said.low(i) for i in range(at, end)}
    if not 2 <= end - at <= 7 or not words.isdisjoint(_POINTING) or said.low(end - 1) in PREPOSITIONS:
        return None
    return Value(said.text(at, end), end)


def _cut_short(said: Sentence, end: int) -> bool:
    """Whether the next words belong to the plan ("paint their room"), so that it would be kept in part."""
    following = (PRONOUNS | DETERMINERS | PREPOSITIONS) - {"i", "i'm", "my", "we", "it's"}
    return not said.gap(end) and said.low(end) in following


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


def needs(spot: Spot) -> RuleReading | None:
    """After "I need": a thing one can book, and its properties ("a quiet room")."""
    said = spot.said
    found = (
        _thing(said, spot.at) if said.low(spot.at) in {"a", "an"} else phrases.item(said, spot.at, limit=4)
    )
    if found is None:
        return None
    head_at = _head_at(said, spot.at, found.end)
    # words before the noun describe it; words after it may only say how many, when or where to
    words = head_at + 1 - spot.at - (said.low(spot.at) in {"a", "an"})
    replaced = said.low(spot.at + 1) in {"new", "different", "bigger", "better", "good", "nice"}
    lasting = head_at + 1 < found.end and said.low(head_at + 1) in _DESCRIBING
    described = said.low(head_at) in _BOOKABLE and (words > 1 or lasting) and not replaced
    if not (described or _ATTRIBUTES.search(found.text.lower())):
        return None
    return RuleReading((hear("requirement", found.text),), found.end)


def must_be(spot: Spot) -> RuleReading | None:
    """After "it has to be": a limit or a quality. Money fills one slot, so that it can be raised."""
    said = spot.said
    limit = said.match(_LIMITS, spot.at)
    end = run_end(said, said.at[limit.end()], _LIMITING) if limit else spot.at + 1
    if limit is None:
        quality = run_end(said, spot.at, _LIMITING)
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
    return RuleReading((hear("requirement", text, item="price" if money else text, sentence=sentence),), end)


def budget(spot: Spot) -> RuleReading | None:
    said = spot.said
    limit = said.match(_LIMITS, spot.at)
    end = run_end(said, said.at[limit.end()] if limit else spot.at, _LIMITING)
    text = said.text(spot.at, end) if spot.at < end <= spot.at + 6 else ""
    if not (_MONEY.search(text.lower()) and re.search(r"[0-9]|hundred|thousand|ty\b|teen\b", text.lower())):
        return None
    return RuleReading(
        (hear("requirement", text, item="price", sentence=f"The user's budget is {text}."),), end
    )
