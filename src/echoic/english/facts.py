"""Readers of the rules about who a speaker is: contact details, identity, work, family and animals.

`data/rules.txt` names the reader of each rule: a function of this module, or a slot of `VALUES`.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from echoic.english import names, phrases
from echoic.english.lexicon import (
    AUXILIARIES,
    DAYS,
    DETERMINERS,
    FIRMS,
    FUNCTION,
    GIVEN,
    MONTHS,
    PLACE_WORDS,
    PLACES,
    PREPOSITIONS,
    TITLES,
    pattern,
    source,
    table,
    wordlike,
    words,
)
from echoic.english.names import closed, run_end
from echoic.english.phrases import Value
from echoic.english.sentences import CONNECTING, Sentence, Token
from echoic.english.slots import INFERRED, PLAIN, STATED, RuleReading, SelfStatement, Spot, hear, hear_of, one
from echoic.text import fold

# -- contact

_ZONES: Final = table("facts.zones")
_IANA: Final = pattern("facts.iana")
_LANGUAGES: Final = words("facts.languages")
_HOW_WELL: Final = words("facts.how_well")
_MEASURES: Final = pattern("facts.measures")
_PASSING: Final = pattern("facts.passing")


def reached(spot: Spot) -> RuleReading | None:
    said, found = spot.said, phrases.phone(spot.said, spot.at)
    goes_on = found is not None and found.end < len(said) and not said.gap(found.end)
    if found and goes_on and _PASSING.match(said.line, said.starts[found.end]):
        return None  # "you can reach me on 0161 496 0123 today" gives no lasting number
    number = one(found, lambda text: hear("phone", text))
    return number or one(phrases.email(spot.said, spot.at), lambda text: hear("email", text))


def reference(spot: Spot) -> RuleReading | None:
    """After "my order number is": one key for each kind of number."""
    thing = f"{spot.group('thing')} number"
    found = phrases.code(spot.said, spot.at)
    return one(
        found,
        lambda text: hear(
            "reference", text, item=thing.replace(" ", "_"), sentence=f"The user's {thing} is {text}."
        ),
    )


def timezone(spot: Spot) -> RuleReading | None:
    return _zone(spot, spelled=False)


def in_timezone(spot: Spot) -> RuleReading | None:
    """After "I'm in": only with the word "time"; "in Israel" is a place."""
    return _zone(spot, spelled=True)


def _zone(spot: Spot, *, spelled: bool) -> RuleReading | None:
    """The zone's name, an abbreviation, an offset ("UTC plus two") or a database name ("Europe/Berlin")."""
    said, at = spot.said, spot.at
    if at < len(said) and _IANA.fullmatch(said.tokens[at].text):
        return RuleReading((hear("timezone", said.tokens[at].text),), at + 1)
    named = said.match(_NAMED_ZONE, at)
    if named and (named["time"] or not spelled):
        return RuleReading((hear("timezone", _ZONES[named["zone"]]),), said.at[named.end()])
    code = said.match(_CODE, at)
    return _offset_zone(spot, code) if code else None


_NAMED_ZONE: Final = pattern("facts.named_zone")
_CODE: Final = pattern("facts.code")


def _offset_zone(spot: Spot, code: re.Match[str]) -> RuleReading | None:
    said, end = spot.said, spot.said.at[code.end()]
    sign = {"plus": "+", "minus": "-"}.get(said.low(end), "")
    hours = phrases.number(said, end + 1) if sign else None
    offset = f"{sign}{hours.value}" if hours else code["digits"] or ""
    return RuleReading((hear("timezone", code["code"].upper() + offset),), hours.end if hours else end)


def languages(spot: Spot) -> RuleReading | None:
    """One key for each language, separated by "and" and commas; each may be "a little" or "fluent"."""
    said, index, heard = spot.said, spot.at, list[SelfStatement]()
    end = index
    while index < len(said):
        measure = said.match(_MEASURES, index)
        index = said.at[measure.end()] if measure else index
        if said.low(index) not in _LANGUAGES:
            break
        heard.append(_language(said.low(index), (measure.group() if measure else "").strip()))
        end = index = index + 1
        index += said.low(index) == "and"
    # "I don't speak French well": some French is spoken
    if spot.group("no") and said.low(end) in _HOW_WELL:
        return None
    return RuleReading(tuple(heard), end) if heard else None


def _language(low: str, measure: str) -> SelfStatement:
    name = low.capitalize()
    some = measure if measure.startswith(("a ", "some", "basic", "broken")) else ""
    return hear("language", name, sentence=f"The user speaks {some} {name}.".replace("  ", " "))


# -- identity

_ADULT: Final = range(10, 111)
_ANY_AGE: Final = range(3, 121)
_INTRODUCED: Final = frozenset("speaking calling ringing phoning here from".split())
_AGE_CLOSERS: Final = words("facts.age_closers")
_LASTING: Final = words("facts.lasting")
# Words that put a home in the past, up to some words after it ("with my parents when I was five").
_LONG_AGO: Final = pattern("facts.long_ago")
# "I moved to Paris in 2010 and to London in 2015": on to the next.
_THEN_ON: Final = pattern("facts.then_on")
_NOT_CALLED: Final = words("facts.not_called")


def called(spot: Spot) -> RuleReading | None:
    """After "call me": a name, with nothing after it that makes it something else."""
    found = names.stated(spot.said, spot.at)
    if found is None or not closed(spot.said, found.end) or spot.said.low(spot.at) in _NOT_CALLED:
        return None
    return one(found, lambda text: hear("user_name", text, confidence=PLAIN))


def claimed_name(spot: Spot) -> RuleReading | None:
    found = names.claimed(spot.said, spot.at, greeted=spot.greeted)
    if found is None:
        return None
    sure = PLAIN if spot.said.cased or spot.greeted else INFERRED
    return one(found, lambda text: _introduction(text, sure))


def introduced(spot: Spot) -> RuleReading | None:
    """After "this is" or "it's": with a greeting before it, "speaking" after it, or a known name alone."""
    said = spot.said
    found = names.claimed(said, spot.at, greeted=True)
    if found is None:
        return None
    known = said.low(spot.at) in GIVEN | TITLES and spot.match.group().startswith("this")
    alone = known and said.at[spot.match.start()] == 0 and said.gap(found.end)
    if not (spot.greeted or alone or said.low(found.end) in _INTRODUCED):
        return None
    return one(found, _introduction)


_THEIRS: Final = frozenset("he he's his she she's her".split())
_FOND: Final = frozenset("dear love mate pal darling again".split())
# Behind a name that is somebody else's: "it's Sarah that I spoke to".
_SOMEBODY: Final = frozenset("that who who's whose which is isn't was".split())


def addressed(spot: Spot) -> RuleReading | None:
    """After "hiya Gemma, it's" or "hiya its": a known name or, where there are capitals, two words of one.

    "Hi Gemma, it's Pickle, she's been sick" names a patient.
    """
    said = spot.said
    if any(_is_ordinary(low) for low in spot.group("whom").split() if low not in _FOND):
        return None
    found = names.claimed(said, spot.at, greeted=True)
    if found is None or said.low(found.end) in _SOMEBODY:
        return None
    words = [said.low(at) for at in range(spot.at, found.end)]
    if not (PLACE_WORDS - names.PARTICLES).isdisjoint(words):
        return None  # "it's Victoria Station I need"
    whole = said.cased and len(words) > 1 and not any(_is_ordinary(low) or low in PLACES for low in words)
    return one(found, _introduction) if words[0] in GIVEN | TITLES or whole else None


def _is_ordinary(low: str) -> bool:
    return low not in TITLES and (low in FUNCTION or wordlike(low))


def put_down(spot: Spot) -> RuleReading | None:
    """After "it's under my name": the name, behind a pause where that is written."""
    said = spot.said
    paused = said.gap(spot.at) or not said.cased
    found = names.stated(said, spot.at) if paused and spot.at < len(said) else None
    if found is None or said.low(found.end) in _SOMEBODY or said.low(found.end) == "and":
        return None
    return one(found, _introduction) if closed(said, found.end) else None


def related(spot: Spot) -> RuleReading | None:
    """After "I'm her daughter": a name behind which nothing is said of whoever has it."""
    said = spot.said
    found = names.stated(said, spot.at)
    # "I'm her carer, Edith, she's in bed", "I'm her carer, Mrs Salter, and she ..."
    if found is None or said.low(spot.at) in TITLES or said.low(found.end) in _THEIRS:
        return None
    ends = said.gap(found.end) or said.low(found.end) in names.CLOSERS
    return one(found, _introduction) if ends else None


def named_before(spot: Spot) -> RuleReading | None:
    """Before "here" or "speaking", with nothing else but a greeting: "hi, Tom Baker here"."""
    said, end = spot.said, spot.said.at[spot.match.start()]
    start = next((at for at in range(end) if said.low(at) not in CONNECTING), end)
    found = names.claimed(said, start, greeted=True) if start < end else None
    if found is None or found.end != end or not said.gap(spot.at):
        return None
    return RuleReading((_introduction(found.text),), spot.at)


def _introduction(name: str, confidence: float = PLAIN) -> SelfStatement:
    return replace(hear("user_name", name, confidence=confidence), introduced=True)


def home(spot: Spot) -> RuleReading | None:
    found = names.place(spot.said, spot.at)
    if found is None or spot.said.match(_LONG_AGO, found.end):
        return None
    where = spot.group("where")
    if where in {"", "in", "at", "to"}:
        return one(found, lambda text: hear("home", text))
    return RuleReading((_near(where, found.text),), found.end)


def home_since(spot: Spot) -> RuleReading | None:
    """After "I've lived in": a home if it lasts ("for years"); otherwise it may be long ago."""
    found = home(spot)
    return found if found and spot.said.low(found.end) in _LASTING else None


def moved_to(spot: Spot) -> RuleReading | None:
    """After "I moved to": the last place, if there were several moves.

    One that is also a bank or a supplier is not sure ("we've moved to Octopus"), except after "up to".
    """
    said = spot.said
    found = home(spot)
    while found and (on := said.match(_THEN_ON, found.end)):
        further = names.place(said, said.at[on.end()])
        if further is None:
            break
        found = one(further, lambda text: hear("home", text))
    if found is None:
        return None
    [heard] = found.heard
    sure = spot.match.group().endswith(_WAYS) or _SUPPLIERS.isdisjoint(fold(heard.text).split())
    ends = () if said.match(_MOVED_ONCE, found.end) else ("address",)
    heard = replace(heard, ends=ends, confidence=heard.confidence if sure else INFERRED)
    return RuleReading((heard,), found.end)


# The address that is known may be later.
_MOVED_ONCE: Final = re.compile(
    r"(?:back )?in (?:19|20)[0-9]{2} |(?:[a-z0-9]{1,12} ){1,3}years? ago |(?:when|as a) "
)
_SUPPLIERS: Final = (words("facts.suppliers") | FIRMS) - PLACES
_NOT_PEOPLE: Final = (PLACES | _SUPPLIERS) - GIVEN
_WAYS: Final = tuple(f"{way} to " for way in "back over out down up".split())


def _near(where: str, text: str) -> SelfStatement:
    return hear("home", f"{where} {text}", sentence=f"The user lives {where} {text}.")


def moved(spot: Spot) -> RuleReading | None:
    """After "I moved from": the second place, "Berlin to Vienna"."""
    said = spot.said
    start = names.place(said, spot.at)
    if start is None or said.low(start.end) != "to":
        return None
    return one(names.place(said, start.end + 1), lambda text: replace(hear("home", text), ends=("address",)))


def birth_year(spot: Spot) -> RuleReading | None:
    born = phrases.year(spot.said, spot.at) or phrases.number(spot.said, spot.at)
    if born is None or not (born.value >= 1900 or 30 <= born.value <= 99):
        return None
    value = born.value if born.value >= 1900 else 1900 + born.value  # "in sixty three"
    return RuleReading((hear("birth_year", str(value)),), born.end)


def age(spot: Spot) -> RuleReading | None:
    """A bare number is an age only if it counts nothing: "34." but not "34 minutes away"."""
    said = spot.said
    found = phrases.number(said, spot.at)
    if found is None:
        return None
    years = [said.low(found.end), said.low(found.end + 1)]
    if years[0] in {"years", "year"} and years[1] in {"old", "young", "of"}:
        end = found.end + (3 if years[1] == "of" else 2)
        return _aged(found.value, end) if found.value in _ANY_AGE else None
    counting = phrases.number(said, found.end) is not None  # "twenty, thirty minutes away"
    ends = said.gap(found.end) or said.low(found.end) in _AGE_CLOSERS
    return _aged(found.value, found.end) if found.value in _ADULT and ends and not counting else None


def _aged(value: int, end: int) -> RuleReading:
    return RuleReading((hear("age", str(value)),), end)


# -- work

_AT: Final = frozenset("at for with".split())
# "my job is boring", "killing me", "changing": descriptions that end like activities.
_DOINGS: Final = words("facts.doings")
_FIGURATIVE: Final = re.compile(r"to (?:my|our|his|her|their|everyone|all|them|him|half) ")
_EMPLOYED: Final = frozenset("for since all".split())


def works_at(spot: Spot) -> RuleReading | None:
    """The employer, and the trade if it follows: "at Google as an engineer"."""
    heard, end = _works_at(spot.said, spot.at)
    if not heard:
        return None
    if spot.said.low(end) == "as":
        trade = names.role(spot.said, end + 1, certain=True)
        if trade:
            return RuleReading((*heard, hear("occupation", trade.text, confidence=STATED)), trade.end)
    return RuleReading(heard, end)


def works_at_since(spot: Spot) -> RuleReading | None:
    """After "I've worked at": an employer if it lasts ("for ten years"); otherwise it may be one of many."""
    found = works_at(spot)
    return found if found and spot.said.low(found.end) in _EMPLOYED else None


def _works_at(said: Sentence, at: int) -> tuple[tuple[SelfStatement, ...], int]:
    firm = names.organisation(said, at)
    if firm:
        return (hear("employer", firm.text),), firm.end
    kind = names.workplace(said, at)
    return ((hear("workplace", kind.text),), kind.end) if kind else ((), at)


def employee(spot: Spot) -> RuleReading | None:
    return _trade(spot.said, spot.at, certain=True)


def claimed_trade(spot: Spot) -> RuleReading | None:
    article = spot.said.low(spot.at) in {"a", "an", "the"}
    return _trade(spot.said, spot.at, certain=False) if article else None


def _trade(said: Sentence, at: int, *, certain: bool) -> RuleReading | None:
    """A trade, and the employer if "at …" or "of …" follows."""
    found = names.role(said, at, certain=certain)
    if found is None or not closed(said, found.end) or said.match(_FIGURATIVE, found.end):
        return None
    heard: tuple[SelfStatement, ...] = (
        hear("occupation", found.text, confidence=STATED if certain else PLAIN),
    )
    joined = said.low(found.end) in _AT or (said.low(found.end) == "of" and said.low(at) == "the")
    firm = names.organisation(said, found.end + 1) if joined else None
    return (
        RuleReading((*heard, hear("employer", firm.text)), firm.end)
        if firm
        else RuleReading(heard, found.end)
    )


def occupation(spot: Spot) -> RuleReading | None:
    """After "my job is": a trade, or an activity ("software testing")."""
    said = spot.said
    trade = names.role(said, spot.at, certain=True)
    if trade:
        return one(trade, lambda text: hear("occupation", text))
    end = run_end(said, spot.at)
    words = [said.low(i) for i in range(spot.at, end)]
    gerund = 0 < len(words) <= 3 and words[-1] in _DOINGS and closed(said, end)
    return RuleReading((hear("occupation", said.text(spot.at, end)),), end) if gerund else None


def self_employed(spot: Spot) -> RuleReading | None:
    return RuleReading((hear("occupation", "self-employed"),), spot.at)


# -- family and animals

_IDIOM: Final = re.compile(r"in (?:this|that|the) (?:fight|race|hunt|contest|game) ")
_COUNTS: Final = {
    word: n for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_SAME: Final = table("facts.same")
# In a text without capitals a verb after an unlisted word makes it a name ("my dog biscuit is …").
_THEIR_VERBS: Final = AUXILIARIES | frozenset(
    """
    and who likes loves lives works wants needs says said just also who's always never goes went got with
    """.split()
)


_NAMING: Final = frozenset(
    "call calls called calling bless titled play plays played lost buried mean".split()
)
"""Words before "me brother Paul" that make it a name, a blessing or a part, or tell of a death."""
_GIVING: Final = frozenset("get got give gave buy bought send sent order ordered owe make made".split())
_WHEN: Final = frozenset("yesterday today tomorrow tonight please here there now too instead again".split())
_NAME_WORDS: Final = 3
"""The most words of a name with "'s"."""
# Relations that ended: a pet that died, a partner who left.
_GONE: Final = pattern("facts.gone")
_PARTNERS: Final = words("facts.partners")
_PARTED: Final = pattern("facts.parted")


def _relation(spot: Spot) -> str:
    return relation(spot.group("kin"))


def relation(said: str) -> str:
    """The word for a relative in keys: "mum" is mother, "older sister" is sister."""
    return re.sub(r"^(?:older|younger|little|big) ", "", _SAME.get(said, said))


def kin_named(spot: Spot) -> RuleReading | None:
    found = names.stated(spot.said, spot.at)
    if found is None or spot.match.group().endswith("after "):
        return None
    return one(found, lambda text: hear_of(_relation(spot), text))


def kin_beside(spot: Spot) -> RuleReading | None:
    """A name beside the relation: "my wife Ana and I"."""
    found = _beside(spot)
    if found is None:
        return None
    if _relation(spot) in _PARTNERS and spot.said.match(_PARTED, found.end):
        return None
    return one(found, lambda text: hear_of(_relation(spot), text))


def _beside(spot: Spot) -> Value | None:
    """The name of somebody directly behind the relation, also one with "'s": "my son Tom's got asthma"."""
    said, at = spot.said, spot.at
    start = said.at[spot.match.start()]
    before = said.low(start - 1)
    leads = said.gap(start) or before in CONNECTING
    # behind a comma may be somebody who is spoken to: "send it to my sister, Tom"
    if before in _NAMING or said.low(at) in _NOT_PEOPLE or (said.gap(at) and not leads):
        return None
    owner = _with_clitic(said, at)
    found = names.known_or_capital(said, at) if owner is None else owner
    if found is None and said.low(at) in GIVEN:  # "my uncle chidi nwosu"
        found = names.stated(said, at)
    if found is None or not PEOPLE.isdisjoint(fold(found.text).split()):
        return None
    low = said.low(found.end)
    first = said.low(at).removesuffix("'s")
    given = before in _GIVING  # "I bought my son Jordan trainers", "I got my wife Chanel for Christmas"
    known = first in GIVEN and not given and (found.end == at + 1 or not said.cased)
    sure = (first in GIVEN and not given) or leads  # "my kid Cudi tickets"
    if first not in GIVEN and (given or owner or said.gap(at)):
        return None  # "my dad Parkinson's is worse", "my son, Ritalin."
    if not (said.cased or owner) and first in GIVEN and found.end > at + 1:
        found = Value(said.tokens[at].text.capitalize(), at + 1)  # "my husband tom parcel is late"
        low = said.low(found.end)
    goes_on = _goes_on(spot, found.end) if sure else low in FUNCTION or low in _THEIR_VERBS
    return found if owner or known or goes_on or said.gap(found.end) or low in _WHEN else None


def _with_clitic(said: Sentence, at: int) -> Value | None:
    """A name that ends with "'s", which is no part of it."""
    end = next((index + 1 for index in range(at, at + _NAME_WORDS) if said.low(index).endswith("'s")), None)
    if end is None or any(said.gap(index) for index in range(at + 1, end)):
        return None
    last = said.tokens[end - 1]
    bare = replace(last, text=last.text[:-2], low=last.low[:-2])
    cut = replace(said, tokens=(*said.tokens[at : end - 1], bare))
    found = names.known_or_capital(cut, 0)
    return Value(found.text, end) if found and found.end == len(cut) else None


def kin_apart(spot: Spot) -> RuleReading | None:
    """A name between commas on either side of the relation: "put my sister, Ann, she's near", "but Priya, my
    boss, says".
    """
    said, start = spot.said, spot.said.at[spot.match.start()]
    parted = _relation(spot) in _PARTNERS and _PARTED.search(said.line, said.starts[spot.at])
    if parted or not (said.cased and said.gap(spot.at)):
        return None
    behind = names.known_or_capital(said, spot.at)
    if behind and behind.end < len(said) and said.gap(behind.end) and _goes_on(spot, behind.end):
        # "my brother, Imran, and Saira" may be three
        listed = said.low(behind.end) in _LISTING or not PEOPLE.isdisjoint(fold(behind.text).split())
        return None if listed else one(behind, lambda text: _apart(spot, text))
    low = said.low(spot.at)
    does = low in AUXILIARIES or (low not in FUNCTION and low.endswith(("s", "ed")))
    before = names.known_or_capital(said, start - 1) if start and said.gap(start) else None
    # "Tom, my wife, she's ill" and "thanks, Tom, my wife, …" speak to Tom
    if not (does and before and before.end == start) or (start > 1 and said.gap(start - 1)):
        return None
    return RuleReading((_apart(spot, before.text),), spot.at)


def kin_told(spot: Spot) -> RuleReading | None:
    """A name that "that's my husband" follows: "me, Josh, that's my husband", not "sorry, Dave, that's …"."""
    said, start = spot.said, spot.said.at[spot.match.start()]
    ends = said.gap(spot.at) or said.low(spot.at) in _LISTING or said.low(spot.at) in _THEIRS
    found = names.known_or_capital(said, start - 1) if start > 1 else None
    if not ends or found is None or found.end != start or said.low(start - 2) not in _POINTING:
        return None
    if said.low(start - 1) in _NOT_PEOPLE:
        return None
    return RuleReading((_apart(spot, found.text),), spot.at)


def _apart(spot: Spot, name: str) -> SelfStatement:
    kin = spot.group("kin")
    return _child(name, kin.split()[-1]) if kin in _CHILD else hear_of(_relation(spot), name)


def _goes_on(spot: Spot, end: int) -> bool:
    low = spot.said.low(end)
    return low in FUNCTION or low in _THEIR_VERBS or low.endswith(("s", "ed"))


def who_is_called(said: Sentence, before: Sentence | None) -> Sentence:
    """`said` with whom the speaker has just named in place of "she's called": "I'd like to add my sister.
    Her name's Ann." is "my sister is called Ann". Unchanged if it may be somebody else.
    """
    found = _CALLED_SO.search(said.line)
    start = said.at.get(found.start()) if found else None
    if found is None or start is None or said.tokens[start].quoted:
        return said
    near = [(said, start)]
    if before and start < _NEAR_PRONOUN:
        near.append((before, len(before)))
    for sentence, end in near:
        named = list(_RELATED_TO_ME.finditer(sentence.line, 0, sentence.starts[end]))
        if not named:
            continue
        last = named[-1]
        fits = last["either"] or (last["female"] if found["she"] else last["male"])
        if not fits or not _alone_between(sentence, last.end() + 1, end):
            return said
        kin = sentence.tokens[sentence.at[last.start()] : sentence.at[last.end() + 1]]
        words = (replace(token, gap=at == 0) for at, token in enumerate((*kin, *_IS_CALLED)))
        return replace(said, tokens=(*said.tokens[:start], *words, *said.tokens[said.at[found.end() + 1] :]))
    return said


def _alone_between(said: Sentence, after: int, end: int) -> bool:
    """Whether nobody else is named between the offset `after` and the word `end`."""
    if _BETWEEN.search(said.line, after - 1, said.starts[end]):
        return False
    names = (token for token in said.tokens[said.at[after] : end] if token.low not in FUNCTION)
    return not any(token.low in GIVEN or (said.cased and token.capital) for token in names)


class PeopleSpokenOf:
    """Those of whom a call speaks, turn by turn, to tell whom "he" and "she" mean."""

    def __init__(self) -> None:
        self._people: deque[_Person] = deque(maxlen=_MOST_SPOKEN_OF)
        self._named: dict[str, _Person] = {}
        self._turn = 0

    def hear(self, said: Sequence[Sentence], *, by_agent: bool = False) -> list[dict[int, str]]:
        """By sentence, the words for the speaker's own relative or animal that each "he" or "she" stands for,
        by the place of the pronoun: "my daughter".

        A pronoun that may mean anybody else has none: whoever else was spoken of in this turn or, if nobody
        was, in the answer to the turn before, or else ever.
        """
        self._turn += not by_agent
        return [self._hear(sentence, by_agent=by_agent) for sentence in said]

    def forget(self) -> None:
        """Take nobody for known: what was said next is not read."""
        self._people.clear()
        self._named.clear()

    def _hear(self, said: Sentence, *, by_agent: bool) -> dict[int, str]:
        spoken_of = _people_in(said, by_agent=by_agent)
        # "she's ill, my mum": whom it means is said behind the pronoun
        behind = max((at for at, (end, _) in spoken_of.items() if said.gap(at) and said.gap(end)), default=0)
        meant: dict[int, str] = {}
        last: _Person | None = None
        at = ended = 0
        while at < len(said):
            sex = _SEX_OF.get(said.low(at).partition("'")[0])
            if said.tokens[at].quoted:
                end = at
            elif at in spoken_of:
                end, last = spoken_of[at]
                self._speak_of(last, by_agent=by_agent)
            elif (end := _name_end(said, at)) > at:
                ahead = spoken_of[end][1] if end in spoken_of and said.gap(end) else None
                beside = last if ended == at or said.low(at - 1) in _CALLING else ahead
                last = self._name(said, (at, end), beside, by_agent=by_agent)
            elif sex and not by_agent:
                # "my nephew Harry he's ill"
                beside = last if ended == at and last and last.words and last.sex in {sex, ""} else None
                other = at < behind or (said.low(at) == "him" and _is_object(said, ended, at))
                one = beside or (None if other else self._meant(sex))
                last = replace(one, sex=sex) if one else _Person("", sex, stays=True)
                self._speak_of(last, by_agent=False)
                meant |= {at: one.words} if one else {}
            ended = end if end > at else ended
            at = max(end, at + 1)
        return meant

    def _speak_of(self, one: _Person, *, by_agent: bool) -> None:
        self._people.append(replace(one, turn=self._turn, by_agent=by_agent))

    def _name(
        self, said: Sentence, within: tuple[int, int], beside: _Person | None, *, by_agent: bool
    ) -> _Person | None:
        """Note the name `within`, and tell whose it is: of somebody `beside` it ("my wife, Ann", "Ann, my
        wife"), or who had it before; None if it is not known.
        """
        start, end = within
        lows = [said.low(at).removesuffix("'s") for at in range(start, end)]
        if beside is not None:
            self._named.update(dict.fromkeys(lows, beside))
            return beside
        known = next((self._named[low] for low in lows if low in self._named), None)
        alone = by_agent and said.gap(start) and said.gap(end)  # "How old is he, Ann?"
        if known is not None or not (alone or _is_addressed(said, start, end)):
            self._speak_of(known or _Person("", ""), by_agent=by_agent)
        return known

    def _meant(self, sex: str) -> _Person | None:
        """The one of the speaker's own whom a pronoun of that `sex` means, None in doubt."""
        fits = [one for one in self._people if one.sex in {sex, ""}]
        here = [one for one in fits if one.turn == self._turn and not one.by_agent]
        asked = [one for one in fits if one.turn == self._turn - 1 and one.by_agent]
        ever = [one for one in fits if one.stays or one.turn == self._turn - 1]
        near = here or asked or (ever if ever and ever[-1].turn >= self._turn - _REACH else [])
        whose = {relation(one.words.removeprefix("my ")) for one in near}
        return near[-1] if len(whose) == 1 and near[-1].words else None


def _is_object(said: Sentence, end: int, at: int) -> bool:
    """Whether the word at `at` is an object of somebody whose words end at `end`, and so means another: "my
    dad will let him in".
    """
    between = range(end, at)
    parted = any(said.gap(place) or said.low(place) in CONNECTING | _SUBJECTS for place in between)
    return 0 < end < at and not parted


@dataclass(frozen=True, slots=True)
class _Person:
    """Somebody who was spoken of."""

    words: str
    """Who they are of the speaker's: "my daughter"; empty if they are not."""
    sex: str
    """"he", "she", or empty if that is not known."""
    turn: int = 0
    by_agent: bool = False
    stays: bool = False
    """Whether a pronoun long after may mean them: the speaker's own, and whoever one meant before."""


def _people_in(said: Sentence, *, by_agent: bool) -> dict[int, tuple[int, _Person]]:
    """Those of whom `said` speaks other than by name: by the first word for each, where the words end."""
    found: dict[int, tuple[int, _Person]] = {}
    taken: set[int] = set()
    own = _ASKED.finditer(said.line) if by_agent else _OWN_PEOPLE.finditer(said.line)
    for match in itertools.chain(own, _ANYBODY.finditer(said.line)):
        start, end = said.at[match.start()], said.at[match.end() + 1]
        if taken.isdisjoint(range(start, end)):
            words = _own_words(said, match)
            found[start] = end, _Person(words, _sex(match), stays=bool(words))
            taken.update(range(start, end))
    for at in range(len(said)):
        if at not in taken and names.is_trade(said.low(at).removesuffix("'s")):
            found[at] = at + 1, _Person("", "")
    return found


def _sex(match: re.Match[str]) -> str:
    groups = match.groupdict()
    if groups["female"] or groups.get("mother"):
        return "she"
    return "he" if groups["male"] or groups.get("father") else ""


def _own_words(said: Sentence, match: re.Match[str]) -> str:
    """The words for the speaker's own relative or animal of `match`; empty if it is somebody else's."""
    groups = match.groupdict()
    before = said.low(said.at[match.start()] - 1)
    if parent := groups.get("mother") or groups.get("father"):
        owned = before in DETERMINERS | _OWNING or before.endswith(("'s", "s'"))
        return "" if owned else f"my {parent}"
    like = (groups.get("like") or "").strip()
    several = said.cased and groups.get("of") == "s"
    if groups.get("noun") is None or several or like in _NOT_THE_ONE | PEOPLE or like.endswith("s"):
        return ""
    return f"my {like} {groups['noun']}" if like in _IN_A_WAY else f"my {groups['noun']}"


def _is_addressed(said: Sentence, start: int, end: int) -> bool:
    """Whether the name is of whoever speaks or is spoken to ("hi, Ann", "this is Ann", "Ann speaking"), or of
    no person: "St Ann".
    """
    before = said.low(start - 1)
    told = before == "is" and said.low(start - 2) in {"name", "this", "it"}
    return told or before in _CALLING | _ADDRESSING | _SAINTS or said.low(end) in _INTRODUCED


def _name_end(said: Sentence, at: int) -> int:
    """Where the name of somebody that begins at `at` ends; `at` itself without one."""
    end = at
    while end < len(said) and _is_name(said, end) and not (end > at and said.gap(end)):
        end += 1
    return end


def _is_name(said: Sentence, at: int) -> bool:
    token = said.tokens[at]
    low = token.low.removesuffix("'s")
    if low in GIVEN or low in TITLES:
        return True
    known = low in FUNCTION or low in _NOT_PEOPLE or low in DAYS
    if known or token.text.isupper() or (said.cased and not token.capital):
        return False
    before, behind = said.low(at - 1), said.low(at + 1)
    if not said.cased:
        spoken = before == "to" and said.low(at - 2) in _SPEAKING
        return (spoken or before in _MEETING) and not wordlike(low)
    one_of_two = 0 < at < len(said) - 1 and not said.gap(at + 1) and _is_written_as_name(said.tokens[at + 1])
    if one_of_two and before not in PREPOSITIONS | DETERMINERS:
        return True
    does = low != token.low or behind in AUXILIARIES or behind in _THEIR_VERBS
    return (does or before in _BESIDE_SOMEBODY) and not wordlike(low) and low not in PLACE_WORDS


def _is_written_as_name(token: Token) -> bool:
    return (
        token.capital
        and not token.text.isupper()
        and token.low not in FUNCTION | _NOT_PEOPLE | DAYS | PLACE_WORDS
    )


_OWN_PEOPLE: Final = pattern("people.own")
_ASKED: Final = pattern("people.asked")
_ANYBODY: Final = pattern("people.somebody")
_MOST_SPOKEN_OF: Final = 32
"""The last mentions of people that are looked at."""
_REACH: Final = 2
"""Turns of the speaker in which the only one spoken of may not be mentioned."""
_SEX_OF: Final = {
    **dict.fromkeys("he him his himself".split(), "he"),
    **dict.fromkeys("she her hers herself".split(), "she"),
}
_OWNING: Final = frozenset("his her their your its".split())
_NOT_THE_ONE: Final = frozenset("ex late former other second first new previous future best".split())
"""Words before a relative of whom there is another, or who is one no more."""
_IN_A_WAY: Final = frozenset("step half great foster god grand".split())
_SUBJECTS: Final = frozenset("i we you they he she it i'm i've i'll they're we're you're".split())
_MEETING: Final = frozenset("with met told asked saw rang by".split())
_SPEAKING: Final = frozenset("spoke speak speaking talked talk talking married".split())
_CALLING: Final = frozenset("called named name's".split())
_ADDRESSING: Final = frozenset(
    "thanks thank you cheers hi hello hiya morning afternoon it's i'm im this".split()
)
"""Words before a name of whoever is spoken to, or speaks."""
_SAINTS: Final = frozenset(["st", "saint"])
_BESIDE_SOMEBODY: Final = frozenset(
    "with and to by saw met told asked like loves likes watching than called named name's".split()
)


def child_named(spot: Spot) -> RuleReading | None:
    found = names.stated(spot.said, spot.at)
    return one(found, lambda text: _child(text, spot.group("kin").split()[-1]))


def child_beside(spot: Spot) -> RuleReading | None:
    found = _beside(spot)
    return one(found, lambda text: _child(text, spot.group("kin").split()[-1])) if found else None


def _child(name: str, kind: str) -> SelfStatement:
    kind = kind if kind in {"son", "daughter"} else "child"
    return hear("child", name, sentence=f"The user has a {kind} called {name}.")


def children(spot: Spot) -> RuleReading | None:
    """Their names after "I have two kids": "Tom and Ann"; without names, their number."""
    found, end = names.name_list(spot.said, _past_naming(spot))
    count = spot.group("count")
    if found and (_COUNTS.get(count) == len(found) or _past_naming(spot) > spot.at):
        return RuleReading(tuple(_child(name, "child") for name in found), end)
    text = f"{count} {spot.group('kind')}"
    return RuleReading((hear("children", text),), spot.at) if count and closed(spot.said, spot.at) else None


def _past_naming(spot: Spot) -> int:
    """The index after "named" or "called", if present."""
    said = spot.said
    index = spot.at + (said.low(spot.at) in {"who", "their"})
    if said.low(index) == "names" and said.low(index + 1) == "are":
        return index + 2
    index += said.low(index) in {"are", "is"}
    return index + (said.low(index) in {"named", "called"})


def child_names(spot: Spot) -> RuleReading | None:
    found, end = names.name_list(spot.said, spot.at)
    return RuleReading(tuple(_child(name, "child") for name in found), end) if found else None


def pet_named(spot: Spot) -> RuleReading | None:
    """A pet's name may be any word ("whiskers", "tofu"), if it is the only one."""
    said, at = spot.said, spot.at
    found = names.stated(said, at) or _any_name(spot)
    if found and said.match(_GONE, found.end):
        return None
    return one(found, lambda text: _pet(text, spot.group("kind"))) if found and said.low(at) else None


def _any_name(spot: Spot) -> Value | None:
    said, at = spot.said, spot.at
    if said.low(at) in FUNCTION or not closed(said, at + 1) or (said.cased and not said.tokens[at].capital):
        return None
    return Value(names.titled(said.tokens[at : at + 1]), at + 1) if at < len(said) else None


def pet_beside(spot: Spot) -> RuleReading | None:
    said, at = spot.said, spot.at
    owner = _with_clitic(said, at)
    found = owner or names.known_or_capital(said, at)
    if found is None and said.cased:
        dated = said.low(at) in DAYS or said.low(at) in MONTHS
        capital = at < len(said) and said.tokens[at].capital and said.low(at) not in FUNCTION and not dated
        found = Value(said.tokens[at].text, at + 1) if capital else None
    elif found is None and not wordlike(said.low(at)) and said.low(at + 1) in _THEIR_VERBS:
        found = names.stated(said, at)
    if found is None or said.match(_GONE, found.end):
        return None
    if not (owner or _goes_on(spot, found.end) or said.gap(found.end) or said.low(found.end) in _WHEN):
        return None
    return one(found, lambda text: _pet(text, spot.group("kind")))


def _pet(name: str, kind: str) -> SelfStatement:
    article = "an" if kind[:1] in "aeiou" else "a"
    return hear("pet", name, sentence=f"The user has {article} {kind} called {name}.")


def pets(spot: Spot) -> RuleReading | None:
    """Their names after "I have two dogs": "Rex and Bella"; without names, their number."""
    found, end = names.name_list(spot.said, _past_naming(spot))
    kind = spot.group("kind")
    count = spot.group("count")
    if found and (_COUNTS.get(count) == len(found) or _past_naming(spot) > spot.at or not count):
        return RuleReading(tuple(_pet(name, "pet") for name in found), end)
    if not count or not closed(spot.said, spot.at):
        return None
    return RuleReading((hear("pet_kind", f"{count} {kind}", item=kind),), spot.at)


def one_pet(spot: Spot) -> RuleReading | None:
    """After "I have a dog": its name if given, else that there is one."""
    kind = spot.group("kind")
    if spot.said.low(spot.at) in {"named", "called"}:
        return pet_named(Spot(spot.said, spot.match, spot.at + 1, spot.greeted))
    beside = spot.said.cased and spot.said.gap(spot.at) and names.known_or_capital(spot.said, spot.at)
    if beside and spot.said.gap(beside.end):
        return one(beside, lambda text: _pet(text, kind))
    article = "an" if kind[:1] in "aeiou" else "a"
    if spot.said.match(_IDIOM, spot.at) or not closed(spot.said, spot.at):
        return None
    return RuleReading((hear("pet_kind", f"{article} {kind}", item=kind),), spot.at)


_CHILD: Final = frozenset(source("facts.child").split("|"))
_LISTING: Final = frozenset("and or please".split())
_POINTING: Final = frozenset("and me with by from to for it's its is does or him her".split())
"""Words before a name that is not spoken to."""
_CALLED_SO: Final = pattern("facts.called_so")
_RELATED_TO_ME: Final = pattern("facts.introduced")
_BETWEEN: Final = pattern("facts.between")
_NEAR_PRONOUN: Final = 3
"""Words of a sentence before a pronoun that means somebody in the sentence before: "and she's called"."""
_IS_CALLED: Final = tuple(Token(word, word, gap=False, quoted=False) for word in ("is", "called"))

PEOPLE: Final = frozenset(
    "|".join(source(f"facts.{kind}") for kind in ("kin", "others", "child", "children")).split("|")
)
"""Words for people in the speaker's life."""


def _spoken_age(said: Sentence, at: int) -> Value | None:
    found = phrases.number(said, at)
    return Value(str(found.value), found.end) if found and found.value in _ANY_AGE else None


VALUES: Final[dict[str, Callable[[Sentence, int], Value | None]]] = {
    "user_name": names.stated,
    "last_name": names.stated,
    "home": names.place,
    "origin": names.origin,
    "birthplace": names.place,
    "grew_up_in": names.place,
    "address": names.street,
    "employer": names.organisation,
    "industry": names.field_of_work,
    "occupation": lambda said, at: names.role(said, at, certain=False),
    "age": _spoken_age,
    "birthday": phrases.birthday,
    "email": phrases.email,
    "phone": phrases.phone,
    "work_email": phrases.email,
    "work_phone": phrases.phone,
    "home_phone": phrases.phone,
}
"""The reader of each slot's value, for rules without a reader of their own and for corrections."""

# -- the name that an answer begins with

_BEHIND_OTHERS: Final = pattern("answers.behind_others")
_SLIP_BEHIND: Final = pattern("answers.slip_behind")
_BEFORE_REMARK: Final = FUNCTION | names.CLOSERS | frozenset(["same", "old"])
"""Words that begin a remark behind a name; "Dr Patel told me" says what he did."""
_NAME_WORDS_SAID: Final = 4
"""The most words of a name in front of a remark."""


def name_answered(said: Sentence, start: int) -> int | None:
    """Where the name ends that the answer `said` gives at the word `start`, before a remark: "joan ogden no
    middle name".

    None if nothing follows it, if it is not certain where it ends, or if what follows may put it right or
    give it to somebody else.
    """
    found = names.stated(said, start)
    if found is None or found.end >= len(said) or found.end - start > _NAME_WORDS_SAID:
        return None
    end = found.end
    if end - start == 1 and said.low(start) not in GIVEN:
        return None
    if said.low(end) in AUXILIARIES or not (said.gap(end) or said.low(end) in _BEFORE_REMARK):
        return None
    return None if said.match(_BEHIND_OTHERS, end) or said.match(_SLIP_BEHIND, end) else end
