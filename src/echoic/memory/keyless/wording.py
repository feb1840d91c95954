"""Memories in the second person, as one says them to whom they are about: "You live in Tel Aviv." Pure.

A memory that was heard has a sentence about "the user", which is turned around; one that was set under a key
has only key and value: "Your favourite coffee is flat white."
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from echoic.english.slots import SLOTS, be, ended, spoken_key, with_context
from echoic.types import Memory, Receipt

_ABOUT: Final = re.compile(r"^The user('s)? (?:(\w+(?:['’]\w+)?) )?", re.IGNORECASE)
_IRREGULAR: Final = {
    "is": "are",
    "isn't": "aren't",
    "was": "were",
    "wasn't": "weren't",
    "has": "have",
    "hasn't": "haven't",
    "does": "do",
    "doesn't": "don't",
    "goes": "go",
}
_YOURS: Final = {"they": "you", "their": "your", "them": "you", "themselves": "yourself"}
_ASKED: Final = "The user asked to remember: "
_DIET: Final = "diet:"
# A trade takes an article, a company or a field does not; what begins so has one, or needs none.
_DETERMINED: Final = re.compile(r"(?:an?|the|my|your|our|self|unemployed|retired|freelance)\b", re.IGNORECASE)


def said_back(memory: Memory) -> str:
    """`memory` as a sentence to whom it is about, with its full stop, and with when it applies."""
    return with_context(_said_back(memory), _to_them(memory.context or ""))


def _said_back(memory: Memory) -> str:
    own = _own_words(memory)
    if own:
        return own
    statement = memory.statement or _statement(memory)
    if statement:
        return second_person(statement)
    if memory.key is None:
        return ended(memory.text)
    whose = "Your" if memory.visibility == "private" else "The"
    return ended(f"{whose} {spoken_key(memory.key)} {be(memory.key)} {memory.text}")


def acknowledged(memory: Memory) -> str:
    """`memory` as one repeats it when it was just said: of what was to be remembered, only that."""
    return ended(memory.text) if (memory.key or "").startswith("note:") else said_back(memory)


def _to_them(context: str) -> str:
    """A condition about whoever is spoken of, said to them: "when you are driving" of "they are driving"."""
    return " ".join(_YOURS.get(word.casefold(), word) for word in context.split())


def second_person(sentence: str) -> str:
    """What is said of "the user", said to them; a sentence about something else stays as it is."""
    if sentence.startswith(_ASKED):
        return ended(f"You asked me to remember: {sentence.removeprefix(_ASKED)}")
    found = _ABOUT.match(sentence)
    if found is None:
        return ended(sentence)
    owns, verb = found.groups()
    if owns:
        return ended(f"Your {sentence[found.end(1) + 1 :]}")
    return ended(f"You {_with_you(verb or '')} {sentence[found.end() :]}")


def listed(sentences: Iterable[str]) -> str:
    """Several, as one that goes on after a colon: "your name is Pavel and you love jazz." as one sentence."""
    parts = [_lowered(sentence.removesuffix(".")) for sentence in sentences]
    if len(parts) < 2:
        return ended("".join(parts))
    if any(":" in part or ", " in part for part in parts):
        return ended("; ".join(parts))
    joint = " and " if len(parts) == 2 else ", and "
    return ended(", ".join(parts[:-1]) + joint + parts[-1])


def receipt_in_words(receipt: Receipt) -> str:
    """What an erasure removed, and whether that was checked."""
    removed = [
        _counted(receipt.memories, "memory", "memories"),
        _counted(receipt.turns, "turn"),
        _counted(receipt.conversations, "conversation"),
        _counted(receipt.vectors, "vector"),
        _counted(receipt.other, "other record"),
        _counted(receipt.rewritten, "passage of a text", "passages of texts"),
    ]
    said = ", ".join(part for part in removed if part) or "nothing, for nothing was kept"
    checked = (
        "I searched what is stored afterwards, and none of it is left."
        if receipt.verified
        else "I could not verify afterwards that none of it is left; please tell whoever runs this."
    )
    return f"Done. Erased: {said}. {checked}"


def _own_words(memory: Memory) -> str:
    """Where the turned-around sentence would be stiff."""
    key = memory.key or ""
    if key == "user_name":
        return ended(f"Your name is {memory.text}")
    if key == "occupation":
        return ended(f"You're {_with_article(memory.text)}")
    if key.startswith(_DIET):
        return ended(f"You're {memory.text}")
    if key.startswith("favourite:") and memory.text:
        return ended(f"Your favourite {key.partition(':')[2]} is {memory.text}")
    return ""


def _statement(memory: Memory) -> str:
    """The sentence of the slot that `memory.key` names, for one that was set and not heard."""
    slot = SLOTS.get(memory.key or "")
    return slot.sentence.format(memory.text) if slot and "{}" not in slot.key else ""


def _with_you(verb: str) -> str:
    low = verb.lower().replace("’", "'")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low.endswith("ies") and len(low) > 4:
        return verb[:-3] + "y"
    if re.search(r"(?:ss|x|zz|ch|sh|o)es$", low):
        return verb[:-2]
    return verb.removesuffix("s") if not low.endswith("ss") else verb


def _with_article(trade: str) -> str:
    if _DETERMINED.match(trade):
        return trade
    return f"an {trade}" if trade[:1].lower() in "aeiou" else f"a {trade}"


def _lowered(sentence: str) -> str:
    """For the middle of a sentence; only words of ours lose their capital, a name never does."""
    first = sentence.split(" ", 1)[0]
    return sentence[:1].lower() + sentence[1:] if first in {"You", "Your", "You're", "The"} else sentence


def _counted(number: int, one: str, many: str = "") -> str:
    if number == 0:
        return ""
    return f"{number} {one if number == 1 else many or one + 's'}"
