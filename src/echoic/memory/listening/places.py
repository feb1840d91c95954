"""Places, employers and trades as a speaker names them, up to the word where the name ends.

With capitals the name is the run of capitals; without, the words up to the next that belongs to the grammar of
the sentence, refused where they are ordinary English ("in fear", "at night").
"""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening.lexicon import AMBIGUOUS, DAYS, FIRMS, FUNCTION, GIVEN, MONTHS, PLACES, wordlike
from echoic.memory.listening.names import PARTICLES, titled
from echoic.memory.listening.sentences import Sentence, Token
from echoic.memory.listening.spoken import Value, number

# Ordinary words that many place names are made of.
_PLACE_WORDS: Final = frozenset(
    """
    new old north south east west northern southern eastern western northeast northwest southeast southwest central
    downtown uptown midtown greater upstate saint st san santa santo los las el la le de del da do dos das di rio cape
    fort port mount lake grand great little big long palm springs spring beach city town hills hill heights valley bay
    island islands park falls creek river rapids rock salt white green red black golden blue high point kingdom states
    emirates republic united county county's village bridge forest mountain view cedar oak ocean orange silver bath
    college station sioux des moines baton rouge sur upon bosnia and
    """.split()
)
_WITH_ARTICLE: Final = frozenset(
    """
    netherlands hague bronx philippines bahamas gambia maldives congo us usa uk uae states united bay east west highlands midlands
    czech dominican ivory canary faroe seychelles midwest south north northeast northwest southwest southeast cotswolds
    hamptons catskills ozarks
    """.split()
)
_REGIONS: Final = frozenset("area region suburbs county valley metroplex peninsula province district".split())
_UPPER: Final = frozenset(
    """
    us usa uk uae nyc dc sf ny ca tx fl nj il pa ibm hp nasa bbc aws bmw cnn ups kfc nhs fbi cia nbc abc cbs hsbc kpmg pwc sap
    amd tsmc usps dhl tv it mit ucla nyu lse cern who un ikea ey rbc td ge gm 3m att bt ee
    """.split()
)
_SMALL: Final = PARTICLES | frozenset("of the upon on and sur".split())
_FIELDS: Final = frozenset(
    """
    tech technology it finance banking marketing sales education healthcare retail hospitality construction insurance
    advertising publishing journalism engineering manufacturing logistics telecoms agriculture farming law accounting
    consulting government hr biotech pharma aerospace fintech media television film fashion tourism transport
    transportation childcare cybersecurity
    """.split()
)
_NOT_ORIGINS: Final = _FIELDS | frozenset(
    "support corp corporation inc ltd llc bank services service team company department insurance agency hq".split()
)
_NOT_PLACES: Final = frozenset("denial it us who families".split()) | DAYS | frozenset(MONTHS)
_FIRM_WORDS: Final = frozenset(
    """
    tech state university college bank hospital school insurance motors airlines systems group health healthcare foods
    media labs laboratory laboratories instruments electric research international consulting solutions partners
    brothers company corporation institute services energy power capital communications technologies software games
    studios pictures press general medical center centre clinic logistics telecom
    """.split()
)
_COMMON_WORKPLACES: Final = frozenset(
    """
    bank hospital school university college restaurant bakery library factory warehouse clinic supermarket startup
    hotel bar cafe café pub gym museum theatre theater airport law architecture construction insurance grocery
    nursery kindergarten pharmacy garage salon shop store firm agency company lab laboratory brewery farm zoo charity
    nonprofit non-profit church call centre center dealership studio post
    """.split()
)
_HEADS: Final = frozenset(
    """
    accountant actor actress analyst architect artist assistant attorney auditor author baker banker barber barista
    bartender biologist bookkeeper broker builder butcher buyer caregiver carer caretaker carpenter cashier ceo cfo cto coo chef chemist
    cleaner clerk coach consultant contractor cook coordinator copywriter counselor counsellor courier dancer dentist designer
    detective developer dietitian director dispatcher doctor driver economist editor electrician engineer entrepreneur estimator
    farmer filmmaker firefighter fisherman florist founder freelancer gardener geologist geophysicist guard hairdresser handyman
    housekeeper housewife homemaker hygienist illustrator inspector instructor interpreter janitor jeweler journalist judge lawyer landscaper
    lecturer librarian lifeguard linguist locksmith logistician machinist magician manager marketer mason mathematician mechanic
    midwife miner model musician nanny neurologist novelist nurse nutritionist officer operator optician optometrist owner painter
    paralegal paramedic pastor pathologist pediatrician paediatrician performer pharmacist photographer physician physicist physiotherapist
    pianist pilot planner plumber policeman policewoman politician postman potter practitioner priest principal producer professor programmer
    psychiatrist psychologist radiographer radiologist realtor receptionist recruiter reporter representative researcher roofer sailor
    salesman salesperson saleswoman scientist sculptor secretary seamstress singer soldier solicitor specialist statistician stockbroker
    student superintendent supervisor surgeon surveyor tailor teacher technician therapist trader trainer translator trucker tutor
    undergraduate undertaker underwriter upholsterer vet veterinarian violinist waiter waitress watchmaker welder woodworker writer
    zoologist aide apprentice associate freelancer president partner editor-in-chief sommelier stylist beautician esthetician
    pharmacologist historian philosopher archaeologist anthropologist sociologist geographer meteorologist astronomer
    cardiologist dermatologist oncologist anesthesiologist rabbi imam monk nun diplomat ambassador
    """.split()
)
_RANKED: Final = frozenset(
    "ceo cfo cto coo owner founder co-founder cofounder director manager head president principal chef editor".split()
)
# "a good cook", "a terrible driver" and "a future pilot" are no trades.
_NOT_TRADES: Final = frozenset(
    """
    good bad great terrible horrible awful amazing fast slow decent lousy big huge total real natural born poor
    excellent better best worse worst typical average avid former ex future aspiring wannabe would-be amateur hobby fan nervous picky
    careful safe crazy lazy loyal frequent first second third fellow backseat secret not failed
    """.split()
)
_ACRONYM_TRADES: Final = {"ceo": "CEO", "cfo": "CFO", "cto": "CTO", "coo": "COO", "phd": "PhD", "it": "IT", "hr": "HR"}


def place(said: Sentence, at: int) -> Value | None:
    """A town, region or country: "Tel Aviv", "Salt Lake City, Utah", "the Netherlands", "L A" as LA."""
    found = _initials(said, at) or (_capital_place(said, at) if said.cased else _plain_place(said, at))
    if found is None and said.low(at) in PLACES:
        found = _plain_place(said, at)
    if found is None or said.low(found.end - 1).endswith("'s"):
        return None
    return found


def origin(said: Sentence, at: int) -> Value | None:
    """A place one can be from; not a department or a firm."""
    found = place(said, at)
    last = said.low(found.end - 1) if found else ""
    return None if last in _NOT_ORIGINS or said.low(at) in _FIELDS else found


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


def organisation(said: Sentence, at: int) -> Value | None:
    """An employer by name: "Google", "St Mary's", "the BBC"; None for "night", "a bank" or "my uncle's shop"."""
    start = at + (said.low(at) == "the")
    spelled = _initials(said, start)
    if spelled:
        return _lettered(said, spelled, article=start > at)
    if said.cased and said.low(start) not in FIRMS:
        end = _capitals(said, start)
        whole = start == at or said.gap(end) or said.low(end) in FUNCTION
        good = end > start and whole and said.low(start) not in DAYS and not _personal(said, end)
        return Value(said.text(at, end), end) if good else None
    end = _plain_end(said, start, limit=5, inside=_PLACE_WORDS | _FIRM_WORDS)
    words = [said.low(i) for i in range(start, end)]
    ordinary = [wordlike(w) and w not in FIRMS or w in _FIELDS for w in words]
    if all(ordinary) or (ordinary[0] and words[0] not in _PLACE_WORDS):
        return None
    if start > at and len(words) > 1 and words[-1] not in _FIRM_WORDS:
        return None
    article = "the " if start > at else ""
    return Value(article + _restored(said.tokens[start:end]), end)


def _lettered(said: Sentence, letters: Value, *, article: bool) -> Value | None:
    """A firm that begins with letters: "the F B I", "J C Penney"."""
    end = letters.end
    if not (said.gap(end) or said.low(end) in FUNCTION):
        end = _capitals(said, end) if said.cased else _plain_end(said, end, limit=2, inside=_FIRM_WORDS)
        if end == letters.end or article:
            return None
        return Value(f"{letters.text} {_restored(said.tokens[letters.end : end])}", end)
    return Value(f"the {letters.text}" if article else letters.text, end)


def workplace(said: Sentence, at: int) -> Value | None:
    """A kind of workplace without a name: "a bank", "the hospital", "a law firm"."""
    if said.low(at) not in {"a", "an", "the"}:
        return None
    index = at + 1
    while index < min(len(said), at + 4) and said.low(index) in _COMMON_WORKPLACES and not said.gap(index):
        index += 1
    ended = said.gap(index) or said.low(index) in FUNCTION
    return Value(said.text(at, index), index) if index > at + 1 and ended else None


def field_of_work(said: Sentence, at: int) -> Value | None:
    """A line of business from a closed list: "finance", "healthcare"."""
    ended = said.gap(at + 1) or said.low(at + 1) in FUNCTION
    if said.low(at) not in _FIELDS or not ended:
        return None
    return Value(_ACRONYM_TRADES.get(said.low(at), said.tokens[at].text), at + 1)


def role(said: Sentence, at: int, *, certain: bool) -> Value | None:
    """A trade, without its article: "high school teacher", "head of sales".

    Args:
        said: the sentence.
        at: the first word, which may be an article.
        certain: whether the frame admits only trades ("I work as …"); otherwise the last word must be a known one.
    """
    article = said.low(at) in {"a", "an", "the"}
    start = at + article
    end = _role_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not 0 < len(words) <= 5 or not _NOT_TRADES.isdisjoint(words) or words[0] in FUNCTION:
        return None
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    if not (is_trade(head) or (certain and article)):
        return None
    if said.low(at) == "the" and head not in _RANKED:
        return None
    return Value(" ".join(_ACRONYM_TRADES.get(t.low, t.text) for t in said.tokens[start:end]), end)


def is_trade(low: str) -> bool:
    """Whether a folded word names a trade."""
    return low in _HEADS or low.endswith(("ologist", "ographer", "ician", "smith"))


def _role_end(said: Sentence, start: int) -> int:
    index = start
    while index < len(said) and not (index > start and said.gap(index)):
        word = said.low(index)
        rank_of = word == "of" and said.low(index - 1) in _RANKED and not wordlike_start(said, index + 1)
        if word in FUNCTION and not rank_of:
            break
        index += 1
    return index


def wordlike_start(said: Sentence, index: int) -> bool:
    """Whether the grammar goes on at `index`, or a name begins: neither continues "head of"."""
    if index >= len(said) or said.low(index) in FUNCTION:
        return True
    return said.tokens[index].capital if said.cased else not (wordlike(said.low(index)) or said.low(index) in _FIELDS)


def _initials(said: Sentence, at: int) -> Value | None:
    """Letters said one by one: "l a" is LA, "g t e" is GTE. A last "i" may be the next clause's."""
    end = at
    while end < min(len(said), at + 5) and len(said.low(end)) == 1 and said.low(end).isalpha():
        end += 1
        if said.gap(end):
            break
    if end - at >= 3 and said.low(end - 1) == "i" and not said.gap(end):
        end -= 1
    if not 2 <= end - at <= 4 or any(said.tokens[i].foreign for i in range(at, end)):
        return None
    return Value("".join(said.low(i) for i in range(at, end)).upper(), end)


def _capital_place(said: Sentence, at: int) -> Value | None:
    start = at + (said.low(at) == "the")
    while said.low(start) in _PLACE_WORDS and not said.tokens[start].capital:
        start += 1
    end = _capitals(said, start)
    if end == start or said.low(start) in _NOT_PLACES or _personal(said, end):
        return None
    end += not said.gap(end) and said.low(end) in _REGIONS
    if start > at and said.low(at) == "the" and not _takes_article(said, start, end):
        return None
    if said.gap(end) and end < len(said) and said.tokens[end].capital:
        further = _capitals(said, end)
        if further > end and (said.gap(further) or said.low(further) in {"and", "with", "but", "so", "for", "since"}):
            end = further
    return Value(said.text(at, end), end)


def _takes_article(said: Sentence, start: int, end: int) -> bool:
    """Whether "the" belongs to the name: "the Netherlands", "the Dallas area"; not "the Florida"."""
    last = said.low(end - 1)
    closed = said.gap(end) or said.low(end) in FUNCTION
    fits = said.low(start) in _WITH_ARTICLE or last in _REGIONS or last.endswith("s")
    return closed and fits and not said.gap(start)


def _personal(said: Sentence, end: int) -> bool:
    """Whether what was read is somebody's ("Ana's house"); "St Mary's" is not."""
    last = said.low(end - 1)
    return last.endswith("'s") and (end < len(said) and not said.gap(end) and said.low(end) not in FUNCTION)


def _capitals(said: Sentence, start: int) -> int:
    """The end of the run of capitals at `start`, over small words between them."""
    index = start
    while index < min(len(said), start + 8):
        token = said.tokens[index]
        if index > start and token.gap:
            break
        if token.capital and (token.low not in FUNCTION or token.text.isupper() and token.low in _UPPER):
            index += 1
            continue
        bridge = token.low in _SMALL and token.low != "and" or token.text == "&"
        nexts = said.tokens[index + 1] if index + 1 < len(said) else None
        if index == start or not bridge or nexts is None or nexts.gap or not nexts.capital or nexts.low in FUNCTION:
            break
        index += 2
    return index


def _plain_place(said: Sentence, at: int) -> Value | None:
    article = said.low(at) == "the"
    start = at + article
    end = _plain_end(said, start, limit=4)
    words = [said.low(i) for i in range(start, end)]
    if not words or words[0] in _NOT_PLACES or (article and words[0] not in _WITH_ARTICLE):
        return None
    ordinary = [w for w in words if (wordlike(w) and w not in _PLACE_WORDS and w not in _UPPER) or w in _NOT_PLACES]
    proper = [w for w in words if w not in _PLACE_WORDS and not wordlike(w)]
    if ordinary or not (proper or len(words) > 1 or words[0] in _UPPER or article):
        return None
    cut = said.low(end) in _REGIONS or not article or said.gap(end) or said.low(end) in FUNCTION
    if not cut:
        return None
    known_person = len(words) == 1 and words[0] in (GIVEN | AMBIGUOUS) and words[0] not in {"georgia", "virginia", "florence"}
    return None if known_person else Value(("the " if article else "") + _restored(said.tokens[start:end]), end)


def _plain_end(said: Sentence, start: int, *, limit: int, inside: frozenset[str] = _PLACE_WORDS) -> int:
    """Where the words of a name end in a text without capitals; `start` where there are more than `limit`.

    Ordinary words end it, but for those that names of this kind are made of (`inside`).
    """
    index = start
    while index < len(said) and not (index > start and said.gap(index)):
        word = said.low(index)
        bridge = word in _SMALL and index > start and word not in {"and", "the", "on"}
        bridge = bridge and index + 1 < len(said) and not wordlike(said.low(index + 1))
        ends = word in FUNCTION and word not in _UPPER
        if not bridge and (ends or (index > start and wordlike(word) and word not in inside)):
            break
        index += 1
    return index if index - start <= limit else start


def _restored(tokens: tuple[Token, ...]) -> str:
    """The words with the capitals of a place or a firm."""
    if any(token.capital and not token.foreign for token in tokens):
        return " ".join(token.text for token in tokens)
    words = []
    for i, token in enumerate(tokens):
        small = i > 0 and token.low in _SMALL
        words.append(token.text if small else token.text.upper() if token.low in _UPPER else titled((token,)))
    return " ".join(words)


__all__ = ["field_of_work", "is_trade", "organisation", "origin", "place", "role", "street", "workplace"]
