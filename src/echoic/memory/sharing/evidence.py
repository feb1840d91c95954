"""The kinds of fact about a business that a text states, by rules over English words.

`fact_in` looks for one kind, which is enough for a text to be proposed. `kinds_stated` finds every kind,
clause by clause, so that a deployment can choose which need no operator: "Open from 9 to 5, and refunds are
never given" states hours and a policy. What the rules do not recognise is "other". `person_names` decides
whether a text is about a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing.person_names import LISTS, JudgedWord, listed_stems, stem, stems
from echoic.text import any_of, patterns

_PATTERNS = patterns("echoic.memory.sharing", "evidence")


def _phrase(pattern: str) -> re.Pattern[str]:
    """`pattern` as whole words of a statement."""
    return re.compile(rf"(?<!\S)(?:{pattern})(?!\S)")


_WHEN = _phrase(_PATTERNS["when"])
_AMOUNT = _PATTERNS["amount"]
_MONEY = _phrase(_AMOUNT)
_PRICE = _phrase(r"(?:costs?|starts? at|sells? for|(?:is|are)(?: only| just| priced at)?|:)" rf" {_AMOUNT}")
_FEE = _phrase(_PATTERNS["fee"])
_EAT_FREE = _phrase(
    r"(?:children|kids|seniors|students|infants|members)(?: under [0-9]+)? (?:eat|ride|enter|stay) free"
)
# "Students get a 10 percent discount", "a 10 percent discount is available for members"
_DISCOUNT = re.compile(_PATTERNS["discount"])
_WHERE = _phrase(_PATTERNS["where"])
_ROOMS = _phrase(
    any_of("fitting meeting changing conference dining waiting locker game treatment rest") + " rooms?"
)
_POLICY = _phrase(_PATTERNS["policy"])
_RULE_ITSELF = _phrase(_PATTERNS["rule itself"])
_EAT = _phrase(_PATTERNS["eat"])
_DISHES_ARE = any_of(LISTS["dishes are"])
_IS_DISH = _phrase(rf"(?:is|are)(?: also| always| not)? {_DISHES_ARE}")
_SPECIAL = _phrase(r"(?:of the day|specials?) (?:is|are)(?! (?:at|on|from)(?!\S))")
# "Available in blue" is said of goods, "available on Friday" of anything.
_PRODUCTS_ARE = any_of(LISTS["products are"])
_HAS = _phrase(any_of(LISTS["has"]) + rf"|(?:is|are) {_PRODUCTS_ARE}")
_OWNS = _phrase("has|have")
_COUNTS = frozenset("one two three four five six seven eight nine ten eleven twelve".split())
_FEATURES = listed_stems("known goods", "known food") - stems("number message key password")
_HELD = _phrase(
    r"starts?|begins?|takes? place|runs?|ends?|(?:is|are) (?:held|hosted|open|every|each|on|from)"
)
_REPEATED = _phrase(_PATTERNS["repeated"])
_SURE_EVENT = _phrase(any_of(LISTS["sure event"]))
_OPENING = _phrase(r"(?:is|are|stays?|remains?)(?: also| only| always)? (?:open|closed)|opens?|closes?")
_SERVING = _phrase(r"(?:is|are)(?: also| only| always)? (?:available|served)|served")
_BEGINNING = _phrase(r"starts?|begins?|ends?|is|are")
_HOUR = stem("hours")
_PRICE_ITSELF = stems("price cost fee rate charge")
_HOURS_ITSELF = re.compile(r"(?:the )?(?:[a-z-]+ ){0,3}hours(?: are| :|:| is)? ")
# When somebody has time, which is no business's hours.
_FREE_THEN = ("free ", "available ", "busy ", "awake ", "up ", "home ", "working ")
_STEPS = any_of(LISTS["steps"])
_TO_DO = re.compile(rf"(?:to|for) [^,:]{{3,80}}[,:] (?:first )?{_STEPS}(?!\S)")
_HANDLED = _PATTERNS["handled"]
_STEP = re.compile(rf"{_HANDLED} (?:and hold )?(?:the|a|an|each|both)(?!\S)")


# Words between what is spoken of and what is said of it.
_BETWEEN = frozenset("also now usually only always not generally normally".split())
_SILENT = frozenset({".", "!", '"', "(", ")"})


@dataclass(frozen=True, slots=True)
class _KeyedWords:
    """A text and its key, as the rules read them."""

    text: str
    """All words in lower case, separated by single spaces."""
    key: frozenset[str]

    def has(self, phrase: re.Pattern[str]) -> bool:
        """Whether the text contains `phrase`."""
        return phrase.search(self.text) is not None

    def says(self, phrase: re.Pattern[str], things: frozenset[str]) -> bool:
        """Whether `phrase` is said of one of `things`: of the noun directly before it, or of the key without
        one.

        "The cake for Saturday costs" is said of Saturday, "the bakery job starts" of a job: neither is about
        a product or a bakery.
        """
        return any(not things.isdisjoint(self._heads(found)) for found in phrase.finditer(self.text))

    def _heads(self, phrase: re.Match[str]) -> frozenset[str]:
        before = self.text[: phrase.start()].replace(" of the day", "").split()
        while before and (before[-1] in _BETWEEN or not before[-1][-1].isalpha()):
            before.pop()
        return frozenset({stem(before[-1])}) if before else self.key

    def names(self, things: frozenset[str], until: re.Match[str] | None = None) -> bool:
        """Whether one of `things` is named, in the key or before `until`."""
        text = self.text if until is None else self.text[: until.start()]
        return not things.isdisjoint(self.key.union(map(stem, text.split())))


def fact_in(words: Sequence[JudgedWord], key: frozenset[str], *, contact: bool = False) -> str | None:
    """The kind of fact that `words` state, under a key with the stems `key`; None without one.

    `contact`: whether a phone number or an address was removed from the text; then the fact can only be how
    to reach the business.
    """
    return next(_facts(words, key, contact=contact), None)


def _facts(words: Sequence[JudgedWord], key: frozenset[str], *, contact: bool) -> Iterator[str]:
    """Each kind of fact that `words` state, under a key with these stems."""
    said = _KeyedWords(" ".join(word.text for word in words if word.text not in _SILENT).strip(), key)
    if contact:
        if said.names(listed_stems("trade_reached")) and said.names(listed_stems("trade_business")):
            yield "contact"
        return
    rules: tuple[tuple[str, Callable[[_KeyedWords], bool]], ...] = (
        ("procedure", _is_procedure),
        ("event", _is_event),
        ("hours", _is_hours),
        ("price", _is_price),
        ("menu", _is_menu),
        ("policy", _is_policy),
        ("location", _is_location),
        ("product", _is_product),
    )
    yield from (reason for reason, holds in rules if holds(said))


def _is_hours(said: _KeyedWords) -> bool:
    if not said.has(_WHEN) or said.text.startswith(_FREE_THEN):
        return False
    if _HOURS_ITSELF.match(said.text) or (_HOUR in said.key and not said.has(_BEGINNING)):
        return True
    return (
        said.says(_OPENING, listed_stems("trade_open"))
        or said.says(_SERVING, listed_stems("trade_served", "trade_meals", "trade_open"))
        or said.says(_BEGINNING, listed_stems("trade_begun"))
    )


def _is_price(said: _KeyedWords) -> bool:
    if not said.has(_MONEY):
        return False
    if _DISCOUNT.match(said.text) or said.has(_EAT_FREE) or said.has(_FEE):
        return True
    if not said.key.isdisjoint(_PRICE_ITSELF):
        return not said.key.isdisjoint(listed_stems("trade_priced"))
    return said.says(_PRICE, listed_stems("trade_priced"))


def _is_menu(said: _KeyedWords) -> bool:
    dishes = listed_stems("trade_food", "trade_meals")
    # "Dinner is at seven" is a plan; "the soup is vegan" is the menu.
    if said.says(_EAT, dishes) or said.says(_IS_DISH, listed_stems("trade_food")) or said.has(_SPECIAL):
        return True
    return said.says(_EAT, listed_stems("trade_places")) and said.names(dishes)


def _is_policy(said: _KeyedWords) -> bool:
    if said.has(_RULE_ITSELF):
        return True
    rule = _POLICY.search(said.text)
    return rule is not None and said.names(listed_stems("trade_ruled"), until=rule)


def _is_location(said: _KeyedWords) -> bool:
    """Whether it says where a place is; "the bike is in the garage" does not."""
    where = _WHERE.search(said.text)
    if where is None:
        return False
    return said.says(_WHERE, listed_stems("trade_places")) or bool(_ROOMS.search(said.text, 0, where.start()))


def _is_product(said: _KeyedWords) -> bool:
    if said.says(_HAS, listed_stems("trade_goods")):
        return True
    # "The tablet has a ten inch screen", but "the phone has a new number" and "a virus".
    owns = _OWNS.search(said.text)
    return (
        owns is not None
        and said.says(_OWNS, listed_stems("trade_goods"))
        and any(
            word.isdecimal() or word in _COUNTS or stem(word) in _FEATURES
            for word in said.text[owns.end() :].split()
        )
    )


def _is_event(said: _KeyedWords) -> bool:
    held = _HELD.search(said.text)
    if held is None or not said.has(_WHEN):
        return False
    if _SURE_EVENT.search(said.text, 0, held.start()):
        return True
    return said.says(_HELD, listed_stems("trade_events")) and said.has(_REPEATED)


def _is_procedure(said: _KeyedWords) -> bool:
    return said.names(listed_stems("trade_devices")) and bool(
        _TO_DO.match(said.text) or _STEP.match(said.text)
    )


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
"""The kinds that a deployment may let become global without an operator, with their meaning. A text needs all
the kinds that it states."""
DEFAULT_GLOBAL_KINDS: Final = frozenset({"hours", "location"})
"""The default kinds in "auto" mode: a lie about them is a nuisance, while one about a price, a telephone
number or a policy is worth telling."""

# Said anywhere in a text, whatever else it states.
_TOUCHED_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "price": listed_stems("touched by price"),
        "medical": listed_stems("touched by medical"),
        "legal": listed_stems("touched by legal"),
        "safety": listed_stems("touched by safety"),
    }
)
_ENDS: Final = frozenset(".!?;:")
_JOINS: Final = frozenset(_PATTERNS["joins"].split())
_HALVES: Final = frozenset({"a.m", "p.m"})
# What may be added to a clause without a verb of its own: "…, Monday to Friday", "… and on weekends".
_PLAIN: Final = listed_stems("plain")
# Of what hours and places are said; a word that describes one of them may stand before it ("gift shop").
_PLACES: Final = listed_stems("trade_open", "trade_places", "trade_served", "trade_meals", "trade_begun")
_AROUND: Final = listed_stems("around")
_DESCRIBING: Final = 2
"""The most words that describe a place."""
_KEY_WORDS: Final = 4
"""The most words of a key; a longer one is a sentence, and everyone would read it."""
_NUMBER = re.compile(r"[0-9][0-9.,:]*")
_USERS = re.compile(r"[1-9][0-9]{0,8}")
_FORM: Final = "'hours=3,location'"


def kinds_stated(
    words: Sequence[JudgedWord], subject: Sequence[JudgedWord], key: frozenset[str]
) -> frozenset[str]:
    """Each of `GLOBAL_KINDS` that `words` state, under a key of the words `subject` with the stems `key`."""
    stated: set[str] = {"other"} if len(subject) > _KEY_WORDS else set()
    for clause in _clauses(words):
        facts = set(_facts(clause, key, contact=any(word.text.startswith("[") for word in clause)))
        stated |= facts or {"other"}
        if facts <= DEFAULT_GLOBAL_KINDS and _says_more(clause):
            stated.add("other")
    said = {word.stem or word.text for word in (*words, *subject)}
    # "gluten-free", "X-ray"
    said |= {stem(part) for word in (*words, *subject) if word.stem for part in re.split("[-.']", word.text)}
    return frozenset(stated.union(kind for kind, of_it in _TOUCHED_BY.items() if not of_it.isdisjoint(said)))


def _says_more(clause: Sequence[JudgedWord]) -> bool:
    """Whether a clause about hours or a place contains a word about something else: "… for members only"."""
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


def _clauses(words: Iterable[JudgedWord]) -> Iterator[list[JudgedWord]]:
    """The independent statements: whole sentences, and clauses that say more than when and where."""
    sentence: list[JudgedWord] = []
    before = ""
    for word in words:
        if word.text in _ENDS and before not in _HALVES:
            yield from _parts(sentence)
            sentence = []
        else:
            sentence.append(word)
        before = word.text
    yield from _parts(sentence)


def _parts(sentence: Iterable[JudgedWord]) -> Iterator[list[JudgedWord]]:
    clause: list[JudgedWord] = []
    part: list[JudgedWord] = []
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


def _is_plain(word: JudgedWord) -> bool:
    return not word.stem or word.stem in _PLAIN or _NUMBER.fullmatch(word.text) is not None


def checked_kinds(kinds: Collection[str]) -> dict[str, int]:
    """How many users must have said the same, by kind: 1 for "hours", 3 for "hours=3". InvalidInput if a kind
    is not in `GLOBAL_KINDS` or given twice, or a number is not valid.
    """
    if isinstance(kinds, dict) or not isinstance(kinds, Collection):
        raise InvalidInput(f"global_kinds must be texts like {_FORM}, not a {type(kinds).__name__}")
    needed: dict[str, int] = {}
    for given in kinds:
        if not isinstance(given, str):
            raise InvalidInput(f"global_kinds has a {type(given).__name__}: use texts like {_FORM}")
        kind, counted, users = (part.strip() for part in given.partition("="))
        if kind not in GLOBAL_KINDS:
            raise InvalidInput(
                f"there is no global kind {brief(kind)}: use some of {', '.join(GLOBAL_KINDS)}"
            )
        if kind in needed:
            raise InvalidInput(f"global_kinds has {kind} twice: use it once, as {_FORM}")
        if counted and not _USERS.fullmatch(users):
            raise InvalidInput(
                f"global_kinds has {brief(users)} for {kind}: use a number of users, 1 or more, as in {_FORM}"
            )
        needed[kind] = int(users or 1)
    return needed
