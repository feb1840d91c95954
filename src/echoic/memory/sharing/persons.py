"""Words that speak of a person, and in which way. Names are found in `wording`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from echoic.memory.sharing.wording import JudgedWord, listed, listed_stems, stem, stems

_PRONOUNS = listed("pronouns")
RELATIONS = listed_stems("relations")
TITLES = frozenset("mr mrs ms miss dr prof mr. mrs. ms. dr. prof. professor lord lady".split())
PREFERENCES = stems(
    """prefer preference love hate enjoy want wish hope favorite favourite dislike fond adore crave need
    interested likes usual usually"""
) | {"like"}
HEALTH = listed_stems("health")
# One of them, and known, is somebody; "guests" and "each guest" are whoever comes.
_SOMEBODY = listed("somebody")
_SOMEBODIES = listed("somebodies")
_ALWAYS_SOMEBODY = frozenset("caller man woman boy girl guy lady gentleman men women boys girls guys".split())
_LIMITS = frozenset("to of for than over under least most seats fits holds maximum".split())
_ANYONE = frozenset("a an each every per any no one either".split())
# "customer service", "the member price": the person only describes a thing.
_GUEST_THINGS = listed("guest things")
# "the order desk", "car rental", "house wine": what is owned only describes a thing of the business.
_TRADE_THINGS = listed("trade things")
_KNOWN = frozenset("the this that these those two three four five six seven eight nine ten both some".split())
# Someone's own where one certain one is meant: "the order", "the house", not "an order" or "orders".
_BELONGINGS = listed("belongings")
_ALWAYS_OWN = frozenset(
    """rent salary wage income mortgage debt savings pension budget homework birthday religion house home
    apartment flat bedroom""".split()
)
_EPISODES = listed("episodes")
# Done once, unless a form of "be" stands before: "the store closed", "the store is closed".
_DONE = listed("done")
_BE = frozenset(
    """is are be been being not stays remains kept also only always usually and or , : - cannot never
    fully""".split()
)
_LASTING_AFTER = {
    "last": frozenset("entry order orders admission call bus train tour seating show".split()),
    "next": frozenset("to day business".split()),
}
_COST_BEFORE = frozenset("the a an no can may will extra additional total at of people children".split())
_LASTING_BEFORE = {
    "last": frozenset("batteries tours classes to can will sessions".split()),
    "left": frozenset("the on to turn".split()),
}
_INSTRUCTIONS = listed("instructions")
# An order that opens a text is meant for someone: the agent, or the person it was noted for.
_INSTRUCTION_OPENERS = listed("instruction openers")
_ROOMS = frozenset("room table seat suite bed unit cabin booth locker apartment".split())
DOUBTS = frozenset(
    """maybe perhaps probably possibly might supposedly apparently rumor rumour guess think heard believe
    seems""".split()
)
# "Works at the bank", "Lives near the station": a person is spoken of without being named.
_SUBJECTLESS = listed("subjectless")
_DOINGS = listed_stems("known verbs") - stems("parking delivery shipping check-in opening class glass")
_BASE_VERBS = listed("known verbs")
_RESERVED = frozenset({"reserved", "booked", "paid"})
_AFTER_SUBJECT = frozenset(
    """are can must may cannot cost require include need over under without within above up larger of : is
    take start begin""".split()
)


def about_a_person(words: Sequence[JudgedWord]) -> str | None:
    """Why `words` are private; None where nothing in them speaks of a person."""
    texts = [word.text for word in words]
    found = {word.stem for word in words}
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("person", lambda: any(text.split("'")[0] in _PRONOUNS for text in texts)),
        ("relation", lambda: bool(found & RELATIONS) or not TITLES.isdisjoint(texts)),
        ("health", lambda: bool(found & HEALTH)),
        ("preference", lambda: bool(found & PREFERENCES)),
        ("instruction", lambda: is_instruction(texts)),
        ("person", lambda: is_somebody(texts)),
        ("belonging", lambda: is_owned(texts)),
        ("episode", lambda: is_episode(texts)),
        ("doubt", lambda: "?" in texts or not DOUBTS.isdisjoint(texts)),
    )
    return next((reason for reason, holds in checks if holds()), None)


def _before(texts: Sequence[str], place: int) -> str:
    return texts[place - 1] if place else ""


def _after(texts: Sequence[str], place: int) -> str:
    return texts[place + 1] if place + 1 < len(texts) else ""


def is_instruction(texts: Sequence[str], *, open_to: frozenset[str] = frozenset()) -> bool:
    """Whether a text tells somebody what to do; it may begin with a word of `open_to`."""
    opens = next((text for text in texts if text[0].isalpha()), "")
    markup = any(sign in texts for sign in ("<", ">", "{", "}", "`", "=", "\\", "@"))
    return (
        markup
        or opens in _INSTRUCTION_OPENERS - open_to
        or not (_INSTRUCTIONS - {"always", "never"}).isdisjoint(texts)
    )


def is_somebody(texts: Sequence[str]) -> bool:
    """Whether one certain person is spoken of, or a number of them."""
    if _lacks_subject(texts) or _is_reserved(texts) or not _ALWAYS_SOMEBODY.isdisjoint(texts):
        return True
    for place, text in enumerate(texts):
        bare = text.removesuffix("'s").removesuffix("'")
        before = _before(texts, place)
        if bare in _SOMEBODY and not (before in _ANYONE or _names_a_thing(texts, place)):
            return True
        # "Room 204 pays cash": whoever is in it.
        if bare in _ROOMS and _after(texts, place).isdecimal():
            return True
        known = before in _KNOWN or before.isdecimal()
        if bare in _SOMEBODIES and known and not (_is_limit(texts, place) or _names_a_thing(texts, place)):
            return True
    return False


def _is_reserved(texts: Sequence[str]) -> bool:
    """Whether something is kept for someone, and not for guests or members in general."""
    return any(
        text in _RESERVED and (_after(texts, place) != "for" or _after(texts, place + 1) not in _SOMEBODIES)
        for place, text in enumerate(texts)
    )


def _lacks_subject(texts: Sequence[str]) -> bool:
    """Whether the text opens with what someone does: "Earns 20 dollars", but not "Returns are accepted"."""
    place = next((place for place, text in enumerate(texts) if text[0].isalpha()), None)
    if place is None:
        return False
    opens = texts[place]
    done = opens.endswith("s") and not opens.endswith("ss") and stem(opens) in _DOINGS
    follows = _after(texts, place)
    return (opens in _SUBJECTLESS or done) and follows not in _AFTER_SUBJECT | _BASE_VERBS


def _names_a_thing(texts: Sequence[str], place: int) -> bool:
    """Whether the word only describes the next: "customer service", "the member price", "a family ticket"."""
    return _after(texts, place) in _GUEST_THINGS


def _is_limit(texts: Sequence[str], place: int) -> bool:
    """Whether a number of people is a limit: "up to 8 people", "groups of 10 people", "for 2 people"."""
    return _before(texts, place - 1) in {
        "to",
        "of",
        "for",
        "than",
        "over",
        "under",
        "least",
        "most",
        "seats",
        "fits",
        "holds",
        "maximum",
    }


def is_owned(texts: Sequence[str]) -> bool:
    """Whether something is spoken of that belongs to somebody: a home, the order, an appointment."""
    own = (place for place, text in enumerate(texts) if text in _ALWAYS_OWN)
    if any(not _describes_trade(texts, place) for place in own):
        return True
    if texts and texts[0] in {"to", "for"}:  # how something is done, by whoever does it
        return False
    for place, text in enumerate(texts):
        if text.removesuffix("'s") not in _BELONGINGS:
            continue
        before = _before(texts, place)
        # At the start of a sentence an article may have been left out: "Order arrives on Friday".
        certain = before in _KNOWN or not before[-1:].isalnum()
        if certain and not _describes_trade(texts, place):
            return True
    return False


def _describes_trade(texts: Sequence[str], place: int) -> bool:
    return _after(texts, place) in _TRADE_THINGS


def is_episode(texts: Sequence[str]) -> bool:
    """Whether something is told that happened or will happen once."""
    for place, text in enumerate(texts):
        before = _before(texts, place)
        if text in _EPISODES and not _is_lasting(texts, place):
            return True
        if text in _DONE and before and before not in _BE:
            return True
        # "The dinner cost 40 dollars" is told of one dinner; "tickets cost" and "the cost" are not.
        if text == "cost" and not before.endswith("s") and before not in _COST_BEFORE:
            return True
    return False


def _is_lasting(texts: Sequence[str], place: int) -> bool:
    """Whether a word of time is part of something lasting: "last entry", "on the left", "next to"."""
    text = texts[place]
    after = _LASTING_AFTER.get(text, frozenset())
    return _after(texts, place) in after or _before(texts, place) in _LASTING_BEFORE.get(text, frozenset())
