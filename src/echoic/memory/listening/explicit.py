"""What a speaker asks of the memory itself: remember this, forget that, keep this to yourself."""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening import phrases
from echoic.memory.listening.lexicon import AUXILIARIES, GIVEN
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.slots import Heard, hear

_ASKING: Final = r"(?:(?:can|could|will|would) you (?:please )?|(?:i want|i need|i'd like) you to |please |just |also |always )?"
REMEMBER: Final = re.compile(
    rf"{_ASKING}(?:please )?(?:remember|don't forget|do not forget|never forget|don't you forget|make a note|take a note|note down|"
    r"write down|make sure you remember|make sure to remember|keep in mind|bear in mind)(?P<that> that| this)? "
)
FORGET: Final = re.compile(rf"{_ASKING}(?:please )?(?:forget|delete|erase|remove|disregard|unlearn)(?: the fact)? (?:that )?")
_BARE: Final = re.compile(
    r"(?:(?:that|this|what i (?:just )?(?:said|told you)|everything i (?:just )?(?:said|told you)|i said (?:that|anything)|"
    r"i ever said that|all that|all of that)(?: please| now)? $)"
)
SCRATCH: Final = re.compile(r"(?:please )?(?:scratch that|strike that|delete that|forget i said that) $")
HUSH: Final = re.compile(
    r"(?:please )?(?:(?:don't|do not) (?:remember|save|store|record|keep|write down|note|note down|memorize) (?:this|that|it|any of "
    r"(?:this|that))|off the record|this is off the record|keep (?:this|that) (?:between us|to yourself|private)|"
    r"between you and me|just between us) "
)
_SLOT: Final = re.compile(
    r"(?:about )?(?:(?:my|our) (?P<noun>name|email|e-mail|email address|phone number|phone|number|address|birthday|age|job|"
    r"employer|time zone|timezone|location|home)|(?P<clause>where i live|how old i am|where i work|what i do|where i'm from|"
    r"who i am|when i was born)) (?P<rest>.*)"
)
_SLOTS: Final = {
    "name": "user_name",
    "who i am": "user_name",
    "email": "email",
    "e-mail": "email",
    "email address": "email",
    "phone number": "phone",
    "phone": "phone",
    "number": "phone",
    "address": "address",
    "birthday": "birthday",
    "when i was born": "birthday",
    "age": "age",
    "how old i am": "age",
    "job": "occupation",
    "what i do": "occupation",
    "employer": "employer",
    "where i work": "employer",
    "time zone": "timezone",
    "timezone": "timezone",
    "location": "home",
    "home": "home",
    "where i live": "home",
    "where i'm from": "origin",
}
_POLITE_REST: Final = frozenset(["", "please", "thanks", "now", "too", "for me"])
# What a clause to remember begins with. "Remember that time …" looks back, "remember that anything is possible"
# gives advice, "remember to call" is an errand and "remember that you must …" an order.
_OWN: Final = frozenset("i i'm i've i'll my our we we're we've".split())
_SUBJECTS: Final = _OWN | frozenset("the a an his her their he she they he's she's they're there's there".split())
_ORDERS: Final = re.compile(r"\b(?:ignore|obey|instructions?|system prompt|admin(?:istrator)?|you (?:are|must|should|will))\b")
_MY: Final = re.compile(r"(?:my|our|the) (?P<thing>[a-z' -]{2,40}?) (?:is|are) ")


def remembered(said: Sentence, at: int) -> int | None:
    """The word where the clause to remember starts, if the words at `at` ask for one."""
    asked = said.match(REMEMBER, at)
    if asked is None:
        return None
    start = said.at[asked.end()]
    if start >= len(said):
        return None
    low = said.low(start)
    named = low in GIVEN or (said.cased and said.tokens[start].capital)
    begins = low in _OWN or (bool(asked["that"]) and (low in _SUBJECTS or named))
    return start if begins else None


def note(said: Sentence, at: int) -> Heard | None:
    """The clause at `at` kept as it was said. "my locker code is …" has the locker code for its key."""
    kept = phrases.clause(said, at)
    addressed = {said.low(i) for i in range(at, len(said))} & {"you", "your", "you're", "yourself"}
    if kept is None or kept.end - at < 3 or addressed or _ORDERS.search(said.line, said.starts[at]):
        return None
    own = said.match(_MY, at)
    simple = own is not None and not AUXILIARIES & set(own["thing"].split()) and len(own["thing"].split()) <= 4
    mine = simple and said.low(at) in {"my", "our"}
    return hear("note", kept.text, item=own["thing"] if own and mine else kept.text.lower())


def forgotten(said: Sentence, at: int) -> tuple[str, int] | None:
    """What the words at `at` ask to forget: ("all", …), ("slot:home", …) or ("clause", first word of it)."""
    if said.match(SCRATCH, at):
        return "all", len(said)
    asked = said.match(FORGET, at)
    if asked is None:
        return None
    bare = re.sub(r"that $", "", asked.group())
    start = said.at[asked.end()]
    if asked.group().endswith("that ") and start == len(said) or _BARE.match(said.line, at_offset(said, start)) or (
        bare != asked.group() and _polite(said, start)
    ):
        return "all", len(said)
    slot = said.match(_SLOT, start)
    if slot and slot["rest"].strip() in _POLITE_REST:
        return "slot:" + _SLOTS[slot["noun"] or slot["clause"]], len(said)
    clause = asked.group().endswith("that ") and start < len(said)
    return ("clause", start) if clause else None


def at_offset(said: Sentence, index: int) -> int:
    """Where the word `index` starts in the line; the line's end past the last one."""
    return said.starts[index] if index < len(said) else len(said.line)


def _polite(said: Sentence, start: int) -> bool:
    return said.line[at_offset(said, start) :].strip() in _POLITE_REST


def hushed(said: Sentence) -> bool:
    """Whether the sentence asks that what is said now be not kept."""
    found = HUSH.search(said.line)
    return found is not None and found.start() in said.at and said.low(said.at[found.start()] - 1) not in {
        "i", "we", "you", "they", "to", "why"
    }


__all__ = ["forgotten", "hushed", "note", "remembered"]
