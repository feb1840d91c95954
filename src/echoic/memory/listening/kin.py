"""Rules for the people and animals in the speaker's life."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import names, spoken
from echoic.memory.listening.gazetteer import GIVEN
from echoic.memory.listening.grammar import Reading, Rule, Spot, one, rule
from echoic.memory.listening.lexicon import AUXILIARIES, FUNCTION, wordlike
from echoic.memory.listening.runs import closed
from echoic.memory.listening.slots import Heard, hear, hear_of

KIN: Final = (
    "wife|husband|partner|spouse|fiance|fiancee|girlfriend|boyfriend|mother|mom|mum|mama|father|dad|papa|"
    "sister|brother|"
    "twin sister|twin brother|older sister|younger sister|little sister|big sister|older brother|"
    "younger brother|"
    "little brother|big brother|grandmother|grandma|granny|grandfather|grandpa|aunt|uncle|cousin|niece|"
    "nephew|"
    "mother-in-law|father-in-law|sister-in-law|brother-in-law|best friend|roommate|flatmate|housemate"
)
_OTHERS: Final = (
    "friend|boss|manager|doctor|dentist|therapist|neighbour|neighbor|colleague|assistant|carer|lawyer|"
    "accountant|landlord|teacher"
)
_CHILD: Final = (
    "son|daughter|child|kid|baby|little boy|little girl|older son|younger son|eldest|oldest|youngest|"
    "older daughter|younger daughter|eldest son|youngest son|eldest daughter|youngest daughter"
)
_CHILDREN: Final = "kids|children|sons|daughters|boys|girls|twins"
_PET: Final = (
    "dog|cat|puppy|kitten|parrot|hamster|rabbit|horse|pony|bird|goldfish|guinea pig|tortoise|turtle|budgie|"
    "ferret"
)
_PETS: Final = (
    "dogs|cats|puppies|kittens|parrots|hamsters|rabbits|horses|birds|guinea pigs|budgies|ferrets|pets"
)
_IDIOM: Final = re.compile(r"in (?:this|that|the) (?:fight|race|hunt|contest|game) ")
_COUNT: Final = "one|two|three|four|five|six|seven|eight|nine|ten|[1-9]|1[0-9]"
_COUNTS: Final = {
    word: n for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_NAMED: Final = r"(?:'s name is|'s called|'s named| is called| is named| goes by| is named after)"
_NAMES: Final = r"(?:(?:'s)? names are|' names are| are called| are named)"
_SAME: Final = {
    "mom": "mother",
    "mum": "mother",
    "mama": "mother",
    "dad": "father",
    "papa": "father",
    "grandma": "grandmother",
    "granny": "grandmother",
    "grandpa": "grandfather",
    "fiancee": "fiance",
    "neighbor": "neighbour",
}
# In a text without capitals a verb after an unlisted word makes it somebody's name ("my dog biscuit is …").
_THEIR_VERBS: Final = AUXILIARIES | frozenset(
    """
    and who likes loves lives works wants needs says said just also who's always never goes went got with
    """.split()
)


# Who is named so and is no longer with the speaker: a pet that died, a partner who left.
_GONE: Final = re.compile(
    r"(?:[^ ]+ ){0,4}?(?:died|dead|passed away|passed on|ran away|was put down|had to be put down"
    r"|put to sleep|was put to sleep) "
)
_PARTNERS: Final = frozenset("wife husband partner spouse fiance girlfriend boyfriend".split())
_PARTED: Final = re.compile(
    r"(?:and (?:i|me) )?(?:are |have |had |is |has |just |recently |got |getting |finally |both )*"
    r"(?:divorced|separated|split|broke up|broken up|left me|dumped me|passed away|died) "
)


def _relation(spot: Spot) -> str:
    return relation(spot.group("kin"))


def relation(said: str) -> str:
    """A word for a relative as keys have it: "mum" is mother, "older sister" is sister."""
    return (
        _SAME.get(said, said)
        .removeprefix("older ")
        .removeprefix("younger ")
        .removeprefix("little ")
        .removeprefix("big ")
    )


def _kin_named(spot: Spot) -> Reading | None:
    found = names.stated(spot.said, spot.at)
    if found is None or spot.match.group().endswith("after "):
        return None
    return one(found, lambda text: hear_of(_relation(spot), text))


def _kin_beside(spot: Spot) -> Reading | None:
    """A name set beside the relation: "my wife Ana and I"."""
    found = names.known_or_capital(spot.said, spot.at)
    if found is None or not (_goes_on(spot, found.end) or spot.said.gap(found.end)):
        return None
    if _relation(spot) in _PARTNERS and spot.said.match(_PARTED, found.end):
        return None
    return one(found, lambda text: hear_of(_relation(spot), text))


def _goes_on(spot: Spot, end: int) -> bool:
    low = spot.said.low(end)
    return low in FUNCTION or low in _THEIR_VERBS or low.endswith(("s", "ed"))


def _child_named(spot: Spot) -> Reading | None:
    found = names.stated(spot.said, spot.at)
    return one(found, lambda text: _child(text, spot.group("kin").split()[-1]))


def _child_beside(spot: Spot) -> Reading | None:
    found = names.known_or_capital(spot.said, spot.at)
    if found is None or not _goes_on(spot, found.end):
        return None
    return one(found, lambda text: _child(text, spot.group("kin").split()[-1]))


def _child(name: str, kind: str) -> Heard:
    kind = kind if kind in {"son", "daughter"} else "child"
    return hear("child", name, sentence=f"The user has a {kind} called {name}.")


def _children(spot: Spot) -> Reading | None:
    """Their names after "I have two kids": "Tom and Ann". Without names, how many there are."""
    found, end = names.name_list(spot.said, _past_naming(spot))
    count = spot.group("count")
    if found and (_COUNTS.get(count) == len(found) or _past_naming(spot) > spot.at):
        return Reading(tuple(_child(name, "child") for name in found), end)
    text = f"{count} {spot.group('kind')}"
    return Reading((hear("children", text),), spot.at) if count and closed(spot.said, spot.at) else None


def _past_naming(spot: Spot) -> int:
    """The word after "named" or "called", where it stands there."""
    said = spot.said
    index = spot.at + (said.low(spot.at) in {"who", "their"})
    if said.low(index) == "names" and said.low(index + 1) == "are":
        return index + 2
    index += said.low(index) in {"are", "is"}
    return index + (said.low(index) in {"named", "called"})


def _child_names(spot: Spot) -> Reading | None:
    found, end = names.name_list(spot.said, spot.at)
    return Reading(tuple(_child(name, "child") for name in found), end) if found else None


def _children_are(spot: Spot) -> Reading | None:
    """After "my kids are": known or capitalised names only, since children are many things."""
    found, end = names.name_list(spot.said, spot.at)
    known = spot.said.cased or all(name.lower() in GIVEN for name in found)
    return Reading(tuple(_child(name, "child") for name in found), end) if found and known else None


def _pet_named(spot: Spot) -> Reading | None:
    """A pet's name may be any word ("whiskers", "tofu"), so long as it is the only one."""
    said, at = spot.said, spot.at
    found = names.stated(said, at) or _any_name(spot)
    if found and said.match(_GONE, found.end):
        return None
    return one(found, lambda text: _pet(text, spot.group("kind"))) if found and said.low(at) else None


def _any_name(spot: Spot) -> spoken.Value | None:
    said, at = spot.said, spot.at
    if said.low(at) in FUNCTION or not closed(said, at + 1) or (said.cased and not said.tokens[at].capital):
        return None
    return spoken.Value(names.titled(said.tokens[at : at + 1]), at + 1) if at < len(said) else None


def _pet_beside(spot: Spot) -> Reading | None:
    said, at = spot.said, spot.at
    found = names.known_or_capital(said, at)
    if (
        found is None
        and said.cased
        and at < len(said)
        and said.tokens[at].capital
        and said.low(at) not in FUNCTION
    ):
        found = spoken.Value(said.tokens[at].text, at + 1)
    if found is None and not said.cased and not wordlike(said.low(at)) and said.low(at + 1) in _THEIR_VERBS:
        found = names.stated(said, at)
    if (
        found is None
        or not (_goes_on(spot, found.end) or said.gap(found.end))
        or said.match(_GONE, found.end)
    ):
        return None
    return one(found, lambda text: _pet(text, spot.group("kind")))


def _pet(name: str, kind: str) -> Heard:
    article = "an" if kind[:1] in "aeiou" else "a"
    return hear("pet", name, sentence=f"The user has {article} {kind} called {name}.")


def _pets(spot: Spot) -> Reading | None:
    """Their names after "I have two dogs": "Rex and Bella". Without names, how many there are."""
    found, end = names.name_list(spot.said, _past_naming(spot))
    kind = spot.group("kind")
    count = spot.group("count")
    if found and (_COUNTS.get(count) == len(found) or _past_naming(spot) > spot.at or not count):
        return Reading(tuple(_pet(name, "pet") for name in found), end)
    if not count or not closed(spot.said, spot.at):
        return None
    return Reading((hear("pet_kind", f"{count} {kind}", item=kind),), spot.at)


def _one_pet(spot: Spot) -> Reading | None:
    """After "I have a dog": its name where one is given, else that there is one."""
    kind = spot.group("kind")
    if spot.said.low(spot.at) in {"named", "called"}:
        return _pet_named(Spot(spot.said, spot.match, spot.at + 1, spot.greeted))
    beside = (
        names.known_or_capital(spot.said, spot.at) if spot.said.cased and spot.said.gap(spot.at) else None
    )
    if beside and spot.said.gap(beside.end):
        return one(beside, lambda text: _pet(text, kind))
    article = "an" if kind[:1] in "aeiou" else "a"
    if spot.said.match(_IDIOM, spot.at):
        return None
    return (
        Reading((hear("pet_kind", f"{article} {kind}", item=kind),), spot.at)
        if closed(spot.said, spot.at)
        else None
    )


PEOPLE: Final = frozenset(f"{KIN}|{_OTHERS}|{_CHILD}|{_CHILDREN}".split("|"))
"""Words for people in somebody's life."""
RULES: Final[tuple[Rule, ...]] = (
    rule(rf"<my>(?P<kin>{_CHILD}){_NAMED}", _child_named),
    rule(rf"<my>(?P<kin>{_CHILDREN}){_NAMES}", _child_names),
    rule(rf"<my>(?P<kin>{_CHILDREN}) are", _children_are),
    rule(
        rf"<ive>(?P<count>{_COUNT}|a couple of|several) (?:young |little |small |grown |"
        rf"adult )?(?P<kind>{_CHILDREN})",
        _children,
        elides=True,
    ),
    rule(
        rf"<ive>(?:a |one )(?:little |young )?(?P<kin>{_CHILD})(?: who's| who is)? (?:named|called)",
        _child_named,
    ),
    rule(rf"<my>(?P<kin>{_CHILD})", _child_beside, firm=False),
    rule(rf"<my>(?P<kin>{KIN}|{_OTHERS}){_NAMED}", _kin_named),
    rule(rf"<my>(?P<kin>{KIN})", _kin_beside, firm=False),
    rule(rf"<ive>(?:a |an |one )(?P<kin>{KIN}) (?:named|called)", _kin_named),
    rule(rf"<my>(?P<kind>{_PET}){_NAMED}", _pet_named),
    rule(rf"<my>(?P<kind>{_PETS}){_NAMES}", _pets),
    rule(rf"<ive>(?P<count>{_COUNT}) (?P<kind>{_PETS})", _pets, elides=True),
    rule(rf"<ive>(?:a |an |one )(?:little |new |pet |old )?(?P<kind>{_PET})", _one_pet, elides=True),
    rule(
        rf"and (?:a |an )(?:little |new |pet |old )?(?P<kind>{_PET}) (?:named|called)", _pet_named, firm=False
    ),
    rule(rf"<my>(?:new |pet |old |little )?(?P<kind>{_PET})", _pet_beside, firm=False),
)

__all__ = ["KIN", "PEOPLE", "RULES", "relation"]
