"""Requests to the memory itself: remember this, forget that, keep this to yourself."""

from __future__ import annotations

import re
from typing import Final

from echoic.english import phrases
from echoic.english.facts import PEOPLE, relation
from echoic.english.lexicon import AUXILIARIES, GIVEN, pattern, table, words
from echoic.english.preferences import PLURALS
from echoic.english.sentences import Sentence
from echoic.english.slots import SelfStatement, hear

_REMEMBER: Final = pattern("requests.remember")
_FORGET: Final = pattern("requests.forget")
# One deletes letters and orders as well, so "delete" needs to say what, and of what kind.
_DELETE: Final = pattern("requests.delete")
_ALL: Final = pattern("requests.all")
_SCRATCH: Final = re.compile(r"(?:please )?(?:scratch|strike) that $")
_HUSH: Final = pattern("requests.hush")
_SLOT: Final = pattern("requests.slot")
_ITEM: Final = pattern("requests.item")
_SLOTS: Final = table("requests.slots")
_NOT_ASKED: Final = words("requests.not_asked")
_HUSH_WORDS: Final = 5
"""Length of "please don't write down that": a longer sentence says something else as well."""
_POLITE_REST: Final = frozenset(["", "please", "thanks", "now", "too", "for me"])
# What a clause to remember begins with. "Remember that time …" looks back, "remember that anything is
# possible" gives advice, "remember to call" is an errand and "remember that you must …" an order.
_OWN: Final = words("requests.own")
_OWN_CLAUSE: Final = pattern("requests.own_clause")
_SUBJECTS: Final = _OWN | frozenset(
    "the a an his her their he she they he's she's they're there's there".split()
)
_ORDERS: Final = pattern("requests.orders")
_MY: Final = re.compile(r"(?:my|our) (?P<thing>[a-z' -]{2,40}?) (?:is|are) ")


def remembered(said: Sentence, at: int) -> int | None:
    """The word where the clause to remember starts, if the words at `at` ask for one."""
    asked = said.match(_REMEMBER, at)
    if asked is None:
        return None
    start = said.at[asked.end()]
    if start >= len(said):
        return None
    low = said.low(start)
    named = low in GIVEN or (said.cased and said.tokens[start].capital)
    begins = low in _OWN or (bool(asked["that"]) and (low in _SUBJECTS or named))
    return start if begins else None


def asks_to_remember(said: Sentence) -> bool:
    """Whether a clause to remember starts anywhere in `said`."""
    return any(remembered(said, at) is not None for at in range(len(said)))


def note(said: Sentence, at: int) -> SelfStatement | None:
    """The clause at `at` kept as it was said. "my locker code is …" has the locker code for its key."""
    kept = phrases.clause(said, at)
    addressed = {said.low(i) for i in range(at, len(said))} & {"you", "your", "you're", "yourself"}
    if kept is None or kept.end - at < 3 or addressed or _ORDERS.search(said.line, said.starts[at]):
        return None
    own = said.match(_MY, at)
    thing = own["thing"].split() if own else []
    named = bool(thing) and len(thing) <= 4 and thing[0] not in PEOPLE and AUXILIARIES.isdisjoint(thing)
    return hear("note", kept.text, item=" ".join(thing) if named else kept.text)


def forgotten(said: Sentence, at: int) -> tuple[str, int] | None:
    """What the words at `at` ask to forget: "all", "slot:home", "item:allergy:nuts" or "clause".

    With it the word where it ends, or where the clause begins.
    """
    if said.match(_SCRATCH, at):
        return "all", len(said)
    asked = said.match(_FORGET, at) or said.match(_DELETE, at)
    if asked is None:
        return None
    start = said.at[asked.end()]
    if said.match(_ALL, start):
        return "all", len(said)
    item = said.match(_ITEM, start)
    if item and item["rest"].strip() in _POLITE_REST:
        return f"item:{_item_key(item)}", len(said)
    slot = said.match(_SLOT, start)
    if slot and slot["rest"].strip() in _POLITE_REST:
        return "slot:" + _SLOTS[slot["noun"] or slot["clause"]], len(said)
    # "forget I live in Rome" asks the same as "forget that I do"
    that = said.low(start) == "that"
    clause = said.low(start + 1) in _SUBJECTS if that else said.match(_OWN_CLAUSE, start) is not None
    return ("clause", start + that) if clause else None


def _item_key(asked: re.Match[str]) -> str:
    """The key of what "my peanut allergy", "my favourite colour" or "my sister's name" speaks of."""
    if asked["kin"]:
        return f"{relation(asked['kin']).replace(' ', '_')}_name"
    if asked["thing"]:
        return f"{'least_' if asked['least'] else ''}favourite:{phrases.slug(asked['thing'])}"
    what = asked["what"] or asked["to"]
    return f"allergy:{phrases.slug(PLURALS.get(what, what))}"


def hushed(said: Sentence) -> bool:
    """Whether the sentence asks not to keep what is being said."""
    found = _hush(said)
    return found is not None and said.low(said.at[found.start()] - 1) not in _NOT_ASKED


def only_hushes(said: Sentence) -> bool:
    """Whether the sentence asks nothing else, so that it can only mean what was said before."""
    found = _hush(said)
    return bool(found and found["keep"]) and said.match(_HUSH, 0) is not None and len(said) <= _HUSH_WORDS


def _hush(said: Sentence) -> re.Match[str] | None:
    found = _HUSH.search(said.line)
    return found if found and found.start() in said.at else None
