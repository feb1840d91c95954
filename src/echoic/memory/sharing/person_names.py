"""Person names: which words of a text may be a person's name, and which refer to a person. No model.

Every word that is not known to be something else counts as a name. Unknown words pass only where they cannot
be one: in lower case after an article and before a verb, a price or a word of trade ("the risotto costs").
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import Stemmer

from echoic.english.lexicon import FIRMS, PLACES
from echoic.text import fold, word_lists
from echoic.text.spoken_numbers import written

LISTS: Final = word_lists("echoic.memory.sharing")

_TOKEN = re.compile(
    r"\[(?:PHONE|EMAIL|ADDRESS)\]|[^\W\d_]+(?:['.&-][^\W\d_]+)*|[0-9]+(?:[.,:][0-9]+)*|[$\u20ac\u00a3%]|[^\s\w]"
)
_SENTENCE_ENDS = frozenset('.!?:;"(')


# Not `echoic.text.word_of`, which also works out how a word sounds: most of its cost.
_stemmer = Stemmer.Stemmer("english", 0)
_stemming = threading.Lock()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The stem of a folded word, without a possessive."""
    with _stemming:
        found: str = _stemmer.stemWord(word.removesuffix("'s"))
    return found


def stems(words: str) -> frozenset[str]:
    """The stems of `words`, which are separated by white space."""
    return frozenset(map(stem, words.split()))


def listed(*names: str) -> frozenset[str]:
    """The words of the lists of these names."""
    return frozenset(word for name in names for word in LISTS[name].split())


@cache
def listed_stems(*names: str) -> frozenset[str]:
    """The stems of the words of the lists of these names."""
    return frozenset(map(stem, listed(*names)))


NAMES: Final = listed("given names", "family names")
VOCABULARY: Final = listed(*(name for name in LISTS if name.startswith("known ")))


@dataclass(frozen=True, slots=True)
class JudgedWord:
    """One word, number, sign or placeholder of a text."""

    text: str
    """Folded."""
    stem: str
    """Empty if it is not a word."""
    capital: bool
    opens: bool
    """Whether it begins a sentence, so that its capital means nothing."""
    initials: bool = False
    """Whether it is two to five capitals: "VAT"."""


_KNOWN = frozenset(map(stem, VOCABULARY)) | stems(LISTS["known function"].replace("'", ""))
_EVERYDAY = listed_stems("everyday")
_THINGS = listed_stems("known goods", "known food")
# What may stand behind an unknown word of trade; not what a family may have, as a plan, a suite, a visit.
_MAY_FOLLOW = listed_stems(
    "known verbs", "known function", "known numbers", "known qualities", "known food"
) - listed_stems("may follow")
_FIRMS_AND_PLACES = FIRMS | PLACES
_LANGUAGES = listed("languages")
_SAID_OF_SEVERAL = frozenset(
    """are have get receive pay need come take include cost require start begin run leave earn arrive ship
    last expire work contain cover""".split()
)
_CONTRACTED = re.compile(r"(?:we|you|they|it|that|there|what)'(?:ve|re|ll|d|s)|[a-z]+n't")
# Endings that English words have and names hardly do.
_SHAPED = re.compile(
    r"(?:tions?|ments?|ness|less|ful|able|ible|ings?|ised|ized|ises|izes|ism|ists|ology|ships?|wards|ically"
    r"|ously|ively|ately|ally|ed|ers|ories|aries|ities|ures|ages|ances|ences|wear|ware|proof|free)$"
)
_SURELY_SHAPED = re.compile(r"(?:tions?|ments?|ness|ically|ously|ities|proof|wear|ware)$")
_ARTICLES = frozenset("the a an each every per".split())
# "for the bride", "by the okonkwos": whoever stands behind these may be somebody.
_TOWARDS_SOMEONE = frozenset("for of by with to from near like than and or".split())
_AFFIXES = ("non", "re", "pre", "un", "self", "mini", "multi", "semi", "anti", "co", "e")

_MONTHS = frozenset("april june august jan may".split())
_BEFORE_MONTH = frozenset(
    """in on from until till of since to through and or by every late early mid before after during
    between - \u2013 ,""".split()
)
_MODALS = frozenset({"will", "may"})
# In lower case these are colours, places and things; the other words that are also names need an article.
_LOWER_THINGS = frozenset(
    """brown white green gray hall park price wood woods ward west marina cook jean well wells burns
    miles""".split()
)
_DETERMINERS = frozenset("the a an each every per no any all this that full total half solid state".split())
_HEADINGS = frozenset({":", "of", "for", "per", "list", "range"})


def words_of(text: str) -> list[JudgedWord]:
    """The words, numbers, signs and placeholders of `text`, in order."""
    plain = text if text.isascii() and text.isprintable() else written(text).text
    found: list[JudgedWord] = []
    opens = True
    for token in _TOKEN.findall(plain):
        if not token[0].isalpha():
            found.append(JudgedWord(token, "", capital=False, opens=opens))
        else:
            folded = token.lower() if token.isascii() else fold(token)
            initials = 1 < len(token) < 6 and token.isalpha() and token.isupper()
            found.append(
                JudgedWord(folded, stem(folded), capital=token[0].isupper(), opens=opens, initials=initials)
            )
        opens = token in _SENTENCE_ENDS or (opens and not token[0].isalnum())
    return found


def names_among(words: Sequence[JudgedWord]) -> list[str]:
    """The words that are, or may be, names."""
    return [word.text for place, word in enumerate(words) if word.stem and _may_be_name(words, place)]


def unknown_names(words: Sequence[JudgedWord], company: bool) -> list[str]:
    """The words that may be a person's name, if an operator reviews the text before it is shared.

    These are the known names and, of unknown words, only those capitalised in a text with capitals, or in the
    position of a name. `company`: whether the text begins with a company's name, judged by what is said of
    it.
    """
    shouted = all(word.capital and word.initials for word in words if len(word.stem) > 1)
    written_out = any(word.capital for word in words) and not shouted
    named = [
        place
        for place, word in enumerate(words)
        if word.stem
        and _may_be_name(words, place)
        and not _is_of_trade(words, place, written_out=written_out)
    ]
    if company:  # "Acme Tools was founded"
        named = [place for place in named if words[place].text in NAMES or place > 2]
    return [words[place].text for place in named]


def _is_of_trade(words: Sequence[JudgedWord], place: int, *, written_out: bool) -> bool:
    """Whether an unknown word is a firm, a place or a model, or written as no name is."""
    word, before = words[place], words[place - 1].text if place else ""
    bare = word.text.removesuffix("'s").removesuffix("'")
    if (bare in PLACES and before == "in") or (bare == "eve" and before in {"christmas", "year's"}):
        return True
    if bare in NAMES and not (word.stem in _KNOWN and not word.capital):
        return False
    if bare in _FIRMS_AND_PLACES or len(bare) == 1 or (word.initials and written_out):
        return True
    return _is_everyday(word, bare) or _stands_as_no_name(words, place, bare, written_out=written_out)


def _is_everyday(word: JudgedWord, bare: str) -> bool:
    """Whether lists, or its parts, show that it is not a name."""
    if bare in _LANGUAGES or _CONTRACTED.fullmatch(bare):
        return True
    if bare.startswith("un") and (stem(bare[2:]) in _KNOWN or bare.endswith(("ed", "rn", "en"))):
        return True
    if word.capital:
        return word.stem in _EVERYDAY and word.opens
    return word.stem in _EVERYDAY or ("-" in bare and any(map(_is_known, bare.split("-"))))  # "step-free"


def _stands_as_no_name(words: Sequence[JudgedWord], place: int, bare: str, *, written_out: bool) -> bool:
    """Whether capital, ending and neighbours show that it is not a name."""
    word, before = words[place], words[place - 1].text if place else ""
    after = words[place + 1] if place + 1 < len(words) else None
    if word.capital and after is not None and after.text[0].isdecimal():  # "the Pixel 9"
        return before in _ARTICLES
    if word.capital and not word.opens:  # "in Rotterdam": nobody is in somebody
        return before in {"in", "throughout", "across", "near"}
    if word.capital:
        # "Subscribers receive": of one person it would be "receives"
        several = bare.endswith("s") and after is not None and after.text in _SAID_OF_SEVERAL
        return several or _SURELY_SHAPED.search(bare) is not None
    alone = after is None or not after.stem or after.text in _TOWARDS_SOMEONE
    someone = alone and before in _TOWARDS_SOMEONE and not bare.endswith("s")
    return _SHAPED.search(bare) is not None or (written_out and not someone)


def _may_be_name(words: Sequence[JudgedWord], place: int) -> bool:
    word = words[place]
    bare = word.text.removesuffix("'s").removesuffix("'")
    if bare in NAMES:
        return not _is_thing(words, place, bare)
    if word.stem in _KNOWN or bare in VOCABULARY or all(map(_is_known, re.split(r"['.&-]", bare))):
        return False
    return not _passes(words, place)


def _is_known(part: str) -> bool:
    return not part or part in _AFFIXES or (part not in NAMES and stem(part) in _KNOWN)


def _is_thing(words: Sequence[JudgedWord], place: int, bare: str) -> bool:
    """Whether a word that can be a name is not one here."""
    word = words[place]
    before = words[place - 1].text if place else ""
    after = words[place + 1] if place + 1 < len(words) else None
    if bare not in VOCABULARY and bare not in _LOWER_THINGS:
        return False
    if bare in _MONTHS and (before in _BEFORE_MONTH or (after is not None and after.text[0].isdecimal())):
        return bare != "may" or word.capital or before in _BEFORE_MONTH
    if after is not None and after.stem in _THINGS and (word.opens or not word.capital):
        return True
    if word.opens:
        return bare == "price" and after is not None and after.text in _HEADINGS | {"is"}
    if word.capital:
        return False
    return bare in _LOWER_THINGS or bare in _MODALS or before in _DETERMINERS


def _passes(words: Sequence[JudgedWord], place: int) -> bool:
    """Whether an unknown word is where no name can be: after an article, before a verb or a trade word."""
    word = words[place]
    if word.capital or word.text.endswith(("'s", "'")):
        return False
    first = place
    while first and place - first < 2 and _describes(words[first - 1]):
        first -= 1
    if not first or words[first - 1].text not in _ARTICLES:
        return False
    if first > 1 and words[first - 2].text in _TOWARDS_SOMEONE:
        return False
    after = words[place + 1] if place + 1 < len(words) else None
    return after is None or not after.stem or after.stem in _MAY_FOLLOW


def _describes(word: JudgedWord) -> bool:
    return (
        bool(word.stem)
        and not word.capital
        and word.stem in _KNOWN
        and word.text not in _ARTICLES
        and word.text not in NAMES
    )


def phrase_stems(words: Iterable[JudgedWord]) -> frozenset[str]:
    return frozenset(word.stem for word in words if word.stem)


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
_ANYONE = frozenset("a an each every per any no one either".split())
# "customer service", "the member price": the person only describes a thing.
_GUEST_THINGS = listed("guest things")
# "the order desk", "car rental", "house wine": what is owned only describes a thing of the business.
_TRADE_THINGS = listed("trade things")
_KNOWN_VERBS = frozenset(
    "the this that these those two three four five six seven eight nine ten both some".split()
)
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
# A number of people behind these is a limit: "up to 8 people", "groups of 10 people", "for 2 people".
_LIMITS = frozenset("to of for than over under least most seats fits holds maximum".split())
_AFTER_SUBJECT = frozenset(
    """are can must may cannot cost require include need over under without within above up larger of : is
    take start begin""".split()
)


def about_a_person(words: Sequence[JudgedWord]) -> str | None:
    """Why `words` are private; None if nothing in them is about a person."""
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
    """Whether a text gives an order; it may begin with a word of `open_to`."""
    opens = next((text for text in texts if text[0].isalpha()), "")
    markup = any(sign in texts for sign in ("<", ">", "{", "}", "`", "=", "\\", "@"))
    return (
        markup
        or opens in _INSTRUCTION_OPENERS - open_to
        or not (_INSTRUCTIONS - {"always", "never"}).isdisjoint(texts)
    )


def is_somebody(texts: Sequence[str]) -> bool:
    """Whether it mentions one particular person, or a number of them."""
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
        counted = before in _KNOWN_VERBS or before.isdecimal()
        counted = counted and _before(texts, place - 1) not in _LIMITS
        if bare in _SOMEBODIES and counted and not _names_a_thing(texts, place):
            return True
    return False


def _is_reserved(texts: Sequence[str]) -> bool:
    """Whether something is kept for a person, rather than for guests or members in general."""
    return any(
        text in _RESERVED and (_after(texts, place) != "for" or _after(texts, place + 1) not in _SOMEBODIES)
        for place, text in enumerate(texts)
    )


def _lacks_subject(texts: Sequence[str]) -> bool:
    """Whether the text begins with what a person does: "Earns 20 dollars", but not "Returns are accepted"."""
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


def is_owned(texts: Sequence[str]) -> bool:
    """Whether it mentions something that belongs to a person: a home, the order, an appointment."""
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
        certain = before in _KNOWN_VERBS or not before[-1:].isalnum()
        if certain and not _describes_trade(texts, place):
            return True
    return False


def _describes_trade(texts: Sequence[str], place: int) -> bool:
    return _after(texts, place) in _TRADE_THINGS


def is_episode(texts: Sequence[str]) -> bool:
    """Whether it tells something that happened or will happen once."""
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
