"""Every kind of fact that a text states, so that a deployment can say which of them need no operator.

`classify` asks whether a text may be shared at all, and one fact is enough for that. Here every clause
counts: "Open from 9 to 5, and refunds are never given" states hours and a policy. Wrong in one direction
only: what is not understood is "other", which no deployment lists by default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing import trade
from echoic.memory.sharing.evidence import facts_in
from echoic.memory.sharing.wording import Word, stem, stems

LESSON: Final = "lesson"
GLOBAL_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "hours": "when the business, or a part of it, is open",
        "location": "where a part of the business is",
        "contact": "how the business is reached",
        "price": "what something costs",
        "menu": "what there is to eat and drink",
        "product": "what something on sale is, has or comes with",
        "event": "what takes place at the business, and when",
        "procedure": "how something of the business is done",
        "policy": "what is allowed, required, accepted or refunded",
        "medical": "anything that touches health, medicine, treatment or what somebody may eat",
        "legal": "anything that touches law, rights, contracts, taxes or insurance",
        "safety": "anything that touches danger, emergencies, security or what is safe",
        "other": "a text that states something beside these kinds, or that is not understood as a whole",
        LESSON: "what an agent learned by serving people",
    }
)
"""What a deployment may let become global without an operator, and what each means. A text needs all the
kinds that it states."""
DEFAULT_GLOBAL_KINDS: Final = frozenset({"hours", "location"})
"""What is global by itself in the mode "auto" unless the deployment says otherwise: a lie about it is a
nuisance, where one about a price, a telephone number or a policy is worth telling."""

# Said anywhere in a text, whatever else it states.
_TOUCHED_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "price": stems(
            """dollar dollars euro euros pound pounds cent cents percent usd eur gbp $ \u20ac \u00a3 % price
            prices cost costs fee fees charge charges pay payment cash voucher discount free deposit"""
        ),
        "medical": stems(
            """vaccine vaccines vaccination vaccinated vaccinate medicine medicines medical medication drug
            drugs dose doses dosage pill pills prescription prescribe prescribed pharmacist nurse patient
            patients symptom symptoms disease diseases illness ill sick sickness infection infectious
            virus viral bacteria cancer diabetes diabetic diagnosis diagnose test tests tested treatment
            treatments treat treats treated cure cures cured heal heals healing health healthy unhealthy
            therapy therapist surgery operation pregnant pregnancy infant allergy allergies allergic
            allergen allergens allergen-free gluten gluten-free nut nuts nut-free peanut peanuts
            dairy-free lactose lactose-free celiac coeliac epilepsy asthma insulin antibiotic antibiotics
            painkiller ibuprofen aspirin paracetamol supplement supplements vitamin vitamins immune
            immunity contraindication overdose addiction addictive fever pain injury injured wound mask
            masks quarantine contagious mental depression anxiety suicide x-ray radiation sterile hygiene
            hygienic disinfect calories diet intolerance"""
        ),
        "legal": stems(
            """law laws lawful unlawful legal legally illegal illegally lawyer attorney sue sued lawsuit
            judge liability liable responsible responsibility damages compensation entitled obligation
            obligated obliged contract contracts contractual binding consent waive waived waiver warranty
            guarantee guaranteed insurance insured insurer claim claims tax taxes taxable deductible vat
            visa visas passport immigration customs permit permits licence license licensed regulation
            regulations regulated compliance gdpr privacy copyright patent police crime criminal fined
            penalty penalties arrest arrested minor minors adult adults discrimination discriminate
            statute prohibited forbidden banned verification verify identification identity authentication
            authorise authorize authorised authorized"""
        ),
        "safety": stems(
            """safe safely safety unsafe danger dangers dangerous hazard hazards hazardous harmful harmless
            harm risk risks risky toxic poison poisonous flammable explosive explode explosion fire fires
            alarm alarms emergency emergencies evacuate evacuation ambulance accident accidents drown
            drowning lifeguard electric electrical shock voltage leak leaks chemical chemicals bleach acid
            radiation helmet helmets seatbelt protective protection warning warn caution security secure
            weapon weapons gun guns knife locked unlocked unattended supervised supervision recalled
            defective defect drinkable undrinkable edible inedible expired contaminated mould mold
            asbestos choking burn burns suffocation code codes password passwords"""
        ),
    }
)
_ENDS: Final = frozenset(".!?;:")
_JOINS: Final = frozenset(
    """, and but or so because although though while whereas unless except if when which that who where then
    also plus yet since as ( ) \u2013 \u2014 / " """.split()
)
_HALVES: Final = frozenset({"a.m", "p.m"})
# What may be added to a clause without a verb of its own: "…, Monday to Friday", "… and on weekends".
_PLAIN: Final = stems(
    """monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
    mondays tuesdays wednesdays thursdays fridays saturdays sundays weekday weekdays weekend weekends
    day days daily week weeks weekly month monthly year yearly morning mornings afternoon afternoons
    evening evenings night nights noon midnight midday holiday holidays public christmas easter january
    february march april may june july august september october november december summer winter spring
    autumn am pm a.m p.m clock hour hours minutes half past quarter the a an at from to until till on in
    of for by between before after every each all most our and or closed open left right next floor
    ground first second third street one two three four five six seven eight nine ten eleven twelve
    year-round"""
)
# Of what hours and places are said; a word that describes one of them may stand before it ("gift shop").
_PLACES: Final = trade.OPEN | trade.PLACES | trade.SERVED | trade.MEALS | trade.BEGUN
_AROUND: Final = stems(
    """is are be was serve available start end begin main front back early late last thirty fifteen across
    behind near beside opposite around building roof top basement side level lower upper downstairs
    upstairs outdoor indoor located situated terrace stairs elevator entrance exit lobby desk corner
    hall north south east west check-in check-out checkin checkout visiting business working
    thanksgiving eve straight always not no only also now train station bus stop taxi food court gate
    terminal"""
)
_DESCRIBING: Final = 2
"""Words at most that describe a place."""
_KEY_WORDS: Final = 4
"""A key of more words is a sentence, and everybody would read it."""
_NUMBER = re.compile(r"[0-9][0-9.,:]*")


def kinds_stated(words: Sequence[Word], subject: Sequence[Word]) -> frozenset[str]:
    """Each of `GLOBAL_KINDS` that `words` state, under a key whose words are `subject`."""
    stated: set[str] = {"other"} if len(subject) > _KEY_WORDS else set()
    for clause in _clauses(words):
        facts = facts_in(clause, subject, contact=any(word.text.startswith("[") for word in clause))
        stated |= facts or {"other"}
        if facts <= DEFAULT_GLOBAL_KINDS and _says_more(clause):
            stated.add("other")
    said = {word.stem or word.text for word in (*words, *subject)}
    # "gluten-free", "X-ray"
    said |= {stem(part) for word in (*words, *subject) if word.stem for part in re.split("[-.']", word.text)}
    return frozenset(stated.union(kind for kind, of_it in _TOUCHED_BY.items() if not of_it.isdisjoint(said)))


def _says_more(clause: Sequence[Word]) -> bool:
    """Whether a clause about hours or a place holds a word that is of neither: "… for members only"."""
    described = 0
    for word in reversed(clause):
        if not word.stem or word.stem in _AROUND or _is_plain(word):
            described = 0
        elif word.stem in _PLACES:
            described = _DESCRIBING
        elif not described:
            return True
        else:
            described -= 1
    return False


def _clauses(words: Iterable[Word]) -> Iterator[list[Word]]:
    """What is stated on its own: whole sentences, and parts of them that say more than when and where."""
    sentence: list[Word] = []
    before = ""
    for word in words:
        if word.text in _ENDS and before not in _HALVES:
            yield from _parts(sentence)
            sentence = []
        else:
            sentence.append(word)
        before = word.text
    yield from _parts(sentence)


def _parts(sentence: Iterable[Word]) -> Iterator[list[Word]]:
    clause: list[Word] = []
    part: list[Word] = []
    for word in [*sentence, None]:
        if word is not None and word.text not in _JOINS:
            part.append(word)
            continue
        if clause and any(not _is_plain(one) for one in part):
            yield clause
            clause = part
        else:
            clause = [*clause, *part]
        part = []
    if clause:
        yield clause


def _is_plain(word: Word) -> bool:
    return not word.stem or word.stem in _PLAIN or _NUMBER.fullmatch(word.text) is not None


def checked_kinds(kinds: Collection[str]) -> frozenset[str]:
    """`kinds` as a set.

    Raises:
        InvalidInput: it is a text, or one of them is none of `GLOBAL_KINDS`.
    """
    if isinstance(kinds, str):
        raise InvalidInput("global_kinds must be several names, such as ['hours', 'location'], not one text")
    unknown = [kind for kind in kinds if kind not in GLOBAL_KINDS]
    if unknown:
        raise InvalidInput(
            f"there is no global kind {brief(unknown[0])}: use some of {', '.join(GLOBAL_KINDS)}"
        )
    return frozenset(kinds)


__all__ = ["DEFAULT_GLOBAL_KINDS", "GLOBAL_KINDS", "LESSON", "checked_kinds", "kinds_stated"]
