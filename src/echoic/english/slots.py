"""The slots a speaker can fill, and what is stored for each: key, category, sentence and confidence.

A one-valued slot has a fixed key ("home"), so that a later statement supersedes an earlier one. Slots with
several values have one key for each ("allergy:peanuts", "child:tom"). Confidence is a constant of the slot,
not a probability: `STATED` if nothing else can be meant, `PLAIN` for an ordinary statement, `INFERRED` if the
words could have meant something else and only the evidence around them decided.

A rule is a trigger, which is matched against folded words, and a reader for the value after it. The rules are
data (`data/rules.txt`). A trigger is a regular expression over `Sentence.line`, matched at the start of a
word and without unbounded repetition, so matching costs a constant per word. It begins with a whole literal
word (`(?:call|calls) me`, not `calls? me`): rules are found by their words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final, cast

from echoic.english.lexicon import expanded, pattern, table, triggers
from echoic.english.phrases import Value, holds_condition, slug
from echoic.english.sentences import Sentence
from echoic.text import fold, sound
from echoic.types import Category, Memory

STATED: Final = 0.95
PLAIN: Final = 0.85
INFERRED: Final = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfStatement:
    """One statement of a speaker about themselves, or its retraction."""

    key: str
    """The slot: "user_name", "home", "allergy:peanuts", "sister_name"."""
    text: str
    """The value as a speaker would repeat it; empty if a whole slot is retracted."""
    sentence: str
    """A short self-contained sentence: "The user lives in Tel Aviv."."""
    category: Category
    retracts: bool = False
    """Whether the user retracted it. In a one-valued slot this concerns only the value `text`, or any value
    if it is empty; if the key names the thing ("preference:jazz") it concerns the key as a whole."""
    deleted: bool = False
    """With `retracts`: whether the user asked to forget it, as opposed to one that no longer holds."""
    context: str | None = None
    """When it applies, if that was said: "only at work"."""
    instead: str | None = None
    """The value of the key that this one corrects: "Ann" of "my sister's called Ann, no, Anna"."""
    ends: tuple[str, ...] = ()
    """Keys whose values no longer hold if this one is new: the old address of somebody who moved."""
    introduced: bool = False
    """Whether it is a name with which one begins to speak, as does somebody who has taken the telephone."""
    confidence: float
    """The confidence of the rule: 0.95, 0.85 or 0.7. It is never computed from the words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A kind of statement, and how it is stored."""

    key: str
    """Contains {} if the thing is part of the key."""
    sentence: str
    """Contains {} for the value."""
    category: Category
    confidence: float = PLAIN


SLOTS: Final = {
    name: Slot(key=key, sentence=sentence, category=cast("Category", category), confidence=float(confidence))
    for name, row in table("slots.slots").items()
    for key, category, confidence, sentence in [row.split(" | ")]
}


def sentence_of(memory: Memory) -> str:
    """A sentence that states `memory` on its own: for "Tel Aviv", that the user lives there.

    It is the memory's own statement, or made from key and value.
    """
    key = memory.key
    if memory.statement or key is None:
        return memory.statement or memory.text
    slot = SLOTS.get(key)
    if slot is not None and "{}" not in slot.key:
        return slot.sentence.format(memory.text)
    whose = "The" if memory.visibility == "global" else "The user's"
    return ended(f"{whose} {spoken_key(key)} {be(key)} {memory.text}")


def with_context(sentence: str, context: str | None) -> str:
    """`sentence` with the condition under which it applies, unless it says that itself."""
    if not context or context.casefold() in sentence.casefold():
        return sentence
    body = sentence.rstrip(" .!?…")
    return f"{body}, {context}." if _CONDITION.match(context) else f"{body} ({context})."


_CONDITION: Final = pattern("slots.condition")


def spoken_key(key: str) -> str:
    """A key as words: "favourite_coffee" is "favourite coffee"."""
    return re.sub(r"[_:]+", " ", key).strip()


def be(key: str) -> str:
    """The verb between a key and its value."""
    return "are" if re.search(r"[^su]s$", key, re.IGNORECASE) else "is"


def ended(sentence: str) -> str:
    """`sentence` with a full stop."""
    return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


_RIVALS: Final = (frozenset(["diet:vegan", "diet:vegetarian", "diet:pescatarian"]),)
"""Keys of which only one can hold at a time: a user who is vegetarian now is no longer vegan."""
_ENDS: Final = {"employer": ("workplace",), "workplace": ("employer",)}
_OPPOSITES: Final = {"contact_time": "no_contact_time", "no_contact_time": "contact_time"}
"""Keys that cannot both hold the same value."""


def rivals(key: str, text: str) -> list[tuple[str, str]]:
    """Keys, each with a value (empty for any), that no longer hold once `key` has the value `text`."""
    gone = [(other, "") for keys in _RIVALS if key in keys for other in sorted(keys - {key})]
    opposite = _OPPOSITES.get(key)
    return [*gone, (opposite, text)] if opposite else gone


_SEVERAL: Final = frozenset("sister brother aunt uncle cousin niece nephew friend colleague".split())
"""Relations of which one may have several by name."""
_SAME_LIMIT: Final = frozenset("before after past between".split())
"""Words of times not to call of which the last one said holds."""


_MOSTLY: Final = ("only ", "just ", "except ", "unless ", "apart ", "other ", "not ", "never ")
"""Beginnings of conditions that leave little of a value known without one."""


def beside(key: str, said: str, when: str | None, known: SelfStatement | Memory) -> str | None:
    """The key under which the value `said`, under the condition `when`, stands beside the value `known` of
    `key`; None if it replaces that: both "likes music, at work" and "…, when driving" hold, as do "likes
    jazz" and "doesn't like jazz, when driving".
    """
    one, other = fold(said), fold(known.text)
    item = None
    if when and holds_condition(key, when) and known.context:
        only = when.startswith("only ") and known.context.startswith("only ")
        item = None if only or fold(when) == fold(known.context) else when
    elif when and holds_condition(key, when):
        item = None if one == other or when.startswith(_MOSTLY) else when
    elif key == "no_contact_time" and one != other:
        limit, before = one.partition(" ")[0], other.partition(" ")[0]
        item = limit if limit in _SAME_LIMIT else said
        item = None if limit == before and item == limit else item
    elif key.removesuffix("_name") in _SEVERAL:
        alike = one.startswith(other) or other.startswith(one) or set(sound(one)) & set(sound(other))
        item = None if alike else said
    return f"{key}:{slug(item)}"[:200] if item else None


def hear(
    slot: str,
    text: str,
    *,
    item: str | None = None,
    sentence: str | None = None,
    confidence: float | None = None,
) -> SelfStatement:
    """A value for a slot of `SLOTS`.

    `item` is the thing in the key if that is not the value ("jazz" of "likes jazz"); `sentence` and
    `confidence` replace the slot's own.
    """
    kept = SLOTS[slot]
    thing = slug(item if item is not None else text)
    filled = kept.sentence.count("{}") == 2
    plain = kept.sentence.format(thing, text) if filled else kept.sentence.format(text)
    return SelfStatement(
        key=kept.key.format(thing)[:200],
        text=text,
        ends=_ENDS.get(slot, ()),
        sentence=sentence or plain,
        category=kept.category,
        confidence=confidence or kept.confidence,
    )


def hear_of(relation: str, name: str) -> SelfStatement:
    """The name of a person in the user's life: "sister", "Maya" fills "sister_name"."""
    return SelfStatement(
        key=f"{relation.replace(' ', '_')}_name",
        text=name,
        sentence=f"The user's {relation} is called {name}.",
        category="entity",
        confidence=PLAIN,
    )


def retraction(heard: SelfStatement, *, deleted: bool = False) -> SelfStatement:
    """The retraction of `heard`."""
    return SelfStatement(
        key=heard.key,
        text=heard.text,
        sentence=f"No longer true: {heard.sentence}",
        category=heard.category,
        retracts=True,
        deleted=deleted,
        context=heard.context,
        confidence=heard.confidence,
    )


def is_of(key: str | None, slot: str) -> bool:
    """Whether a memory's `key` is `slot` or one of its several values: "allergy:nuts" of "allergy"."""
    return key is not None and (key == slot or key.startswith(f"{slot}:"))


def emptied(slot: str) -> SelfStatement:
    """The retraction of a slot, whatever its value, or of all its values: "my allergies"."""
    kept = SLOTS[slot]
    return SelfStatement(
        key=kept.key.removesuffix(":{}"),
        text="",
        sentence=f"The user asked to forget: {slot.replace('_', ' ')}.",
        category=kept.category,
        retracts=True,
        deleted=True,
        confidence=STATED,
    )


def emptied_item(key: str) -> SelfStatement:
    """The retraction of one key, whatever its value."""
    kind = SLOTS.get(key.partition(":")[0])
    return SelfStatement(
        key=key,
        text="",
        sentence=f"The user asked to forget: {key.replace('_', ' ').replace(':', ' ')}.",
        category=kind.category if kind else "entity",
        retracts=True,
        deleted=True,
        confidence=STATED,
    )


@dataclass(frozen=True, slots=True)
class Spot:
    """The place where a trigger matched."""

    said: Sentence
    match: re.Match[str]
    at: int
    """The word after the trigger."""
    greeted: bool
    """Whether nothing but a greeting came before."""

    def group(self, name: str) -> str:
        """The words of a group of the trigger; empty if it did not match."""
        return (self.match.groupdict().get(name) or "").strip()


@dataclass(frozen=True, slots=True)
class RuleReading:
    """The result of a rule at one position."""

    heard: tuple[SelfStatement, ...]
    end: int
    """The word after the last one read."""


Reader = Callable[[Spot], RuleReading | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One way of saying one thing."""

    trigger: re.Pattern[str]
    words: frozenset[str]
    """Every first word of a match of the trigger."""
    read: Reader
    firm: bool
    """Whether the trigger may begin anywhere, not only where a clause begins."""
    elides: bool
    """Whether its "i" may be left out after "and" ("I live in Oslo and work for …")."""
    request: bool
    """Whether it may be put as a question ("could you call me in the evenings?")."""
    presumed: bool
    """Whether a question takes it for granted ("can you add my husband Tom?")."""


def rules_of(readers: Mapping[str, ModuleType]) -> tuple[Rule, ...]:
    """The rules of `data/rules.txt`, with readers from the modules given for its sections."""
    found = []
    for section, reader, flags, trigger in triggers():
        whole = expanded(trigger, section)
        if not whole.endswith(
            (" )?", " ){0,2}", "[ ]")
        ):  # an optional part at its end includes its own space
            whole += " "
        words = frozenset(re.findall(r"[a-z][a-z'-]*", whole))
        read: Reader = getattr(readers[section], reader, None) or _filling(reader, readers[section])
        kinds = {flag: flag in flags for flag in ("elides", "request", "presumed")}
        found.append(Rule(re.compile(whole), words, read, firm="loose" not in flags, **kinds))
    return tuple(found)


def _filling(slot: str, readers: ModuleType) -> Reader:
    """A reader that only fills a slot."""
    value = readers.VALUES[slot]
    return lambda spot: one(value(spot.said, spot.at), lambda text: hear(slot, text))


def index_of(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """Map each word to the rules whose trigger may begin with it, in order."""
    listed = tuple(rules)
    words = frozenset[str]().union(*(one.words for one in listed))
    return {word: tuple(one for one in listed if word in one.words) for word in words}


def one(value: Value | None, make: Callable[[str], SelfStatement]) -> RuleReading | None:
    """The reading of a single value."""
    return RuleReading((make(value.text),), value.end) if value else None


def many(values: Iterable[Value], end: int, make: Callable[[str], SelfStatement]) -> RuleReading | None:
    """The reading of several values of one kind; None without any."""
    heard = tuple(make(value.text) for value in values)
    return RuleReading(heard, end) if heard else None
