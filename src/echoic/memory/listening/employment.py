"""Employers, workplaces and trades as a speaker names them. A trade is one only if its last word is known.

"I'm a nurse" is a trade and "I'm a night owl" is not: only a list can tell. Where the frame admits nothing
but a trade ("I work as …") any word will do.
"""

from __future__ import annotations

from typing import Final

from echoic.memory.listening.gazetteer import FIRMS
from echoic.memory.listening.lexicon import DAYS, FIELDS, FUNCTION, wordlike
from echoic.memory.listening.runs import (
    PLACE_WORDS,
    capitals,
    closed,
    initials,
    personal,
    plain_end,
    restored,
)
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.spoken import Value

FIRM_WORDS: Final = frozenset(
    """
    tech state university college bank hospital school insurance motors airlines systems group health
    healthcare foods media labs laboratory laboratories instruments electric research international consulting
    solutions partners brothers company corporation institute services energy power capital communications
    technologies software games studios pictures press general medical center centre clinic logistics telecom
    """.split()
)
_SAINTS: Final = frozenset(["saint", "st", "san", "santa"])
_COMMON_WORKPLACES: Final = frozenset(
    """
    bank hospital school university college restaurant bakery library factory warehouse clinic supermarket
    startup hotel bar cafe café pub gym museum theatre theater airport law architecture construction insurance
    grocery nursery kindergarten pharmacy garage salon shop store firm agency company lab laboratory brewery
    farm zoo charity nonprofit non-profit church business call centre center dealership studio post
    """.split()
)
_ANY_FIRM: Final = frozenset("company firm agency business store shop startup".split())
_HEADS: Final = frozenset(
    """
    accountant actor actress analyst architect artist assistant attorney auditor author baker banker barber
    barista bartender biologist bookkeeper broker builder butcher buyer caregiver carer caretaker carpenter
    cashier ceo cfo cto coo chef chemist cleaner clerk coach consultant contractor cook coordinator copywriter
    counselor counsellor courier dancer dentist designer detective developer dietitian director dispatcher
    doctor driver economist editor electrician engineer entrepreneur estimator farmer filmmaker firefighter
    fisherman florist founder freelancer gardener geologist geophysicist guard hairdresser handyman
    housekeeper housewife homemaker hygienist illustrator inspector instructor interpreter janitor jeweler
    journalist judge lawyer landscaper lecturer librarian lifeguard linguist locksmith logistician machinist
    magician manager marketer mason mathematician mechanic midwife miner model musician nanny neurologist
    novelist nurse nutritionist officer operator optician optometrist owner painter paralegal paramedic pastor
    pathologist pediatrician paediatrician performer pharmacist photographer physician physicist
    physiotherapist pianist pilot planner plumber policeman policewoman politician postman potter practitioner
    priest principal producer professor programmer psychiatrist psychologist radiographer radiologist realtor
    receptionist recruiter reporter representative researcher roofer sailor salesman salesperson saleswoman
    scientist sculptor secretary seamstress singer soldier solicitor specialist statistician stockbroker
    student superintendent supervisor surgeon surveyor tailor teacher technician therapist trader trainer
    translator trucker tutor undergraduate undertaker underwriter upholsterer vet veterinarian violinist
    waiter waitress watchmaker welder woodworker writer zoologist aide apprentice associate president partner
    editor-in-chief sommelier stylist beautician esthetician pharmacologist historian philosopher
    archaeologist anthropologist sociologist geographer meteorologist astronomer cardiologist dermatologist
    oncologist anesthesiologist rabbi imam monk nun diplomat ambassador
    """.split()
)
_RANKED: Final = frozenset(
    """
    ceo cfo cto coo owner founder co-founder cofounder director manager head president principal chef editor
    """.split()
)
# "a good cook", "a terrible driver" and "a future pilot" are no trades.
_NOT_TRADES: Final = frozenset(
    """
    good bad great terrible horrible awful amazing fast slow decent lousy big huge total real natural born
    poor excellent better best worse worst typical average avid former ex future aspiring wannabe would-be
    amateur hobby fan nervous picky careful safe crazy lazy loyal frequent first second third fellow backseat
    secret not failed
    """.split()
)
_ACRONYM_TRADES: Final = {
    "ceo": "CEO",
    "cfo": "CFO",
    "cto": "CTO",
    "coo": "COO",
    "phd": "PhD",
    "it": "IT",
    "hr": "HR",
}


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
    """A trade, without its article: "high school teacher", "head of sales".

    Args:
        said: the sentence.
        at: the first word, which may be an article.
        certain: whether the frame admits only trades ("I work as …"); if not, its last word must be known.
    """
    article = said.low(at) in {"a", "an", "the"}
    start = at + article
    end = _role_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not 0 < len(words) <= 5 or not _NOT_TRADES.isdisjoint(words) or words[0] in FUNCTION:
        return None
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    owned = head != "owner" or said.low(at) == "the" or not _COMMON_WORKPLACES.isdisjoint(words)
    ranked = said.low(at) == "the"  # "the head of sales" has a post, "the nurse" is somebody spoken of before
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


__all__ = ["FIRM_WORDS", "field_of_work", "organisation", "role", "workplace"]
