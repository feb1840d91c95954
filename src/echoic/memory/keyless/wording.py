"""Memories in the second person, as one says them to whom they are about: "You live in Tel Aviv." Pure.

A memory that was heard has a sentence about "the user", which is turned around; one that was set under a key
has only key and value: "Your favourite coffee is flat white."
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from echoic.english import listen
from echoic.english.slots import SLOTS, be, ended, spoken_key, with_context
from echoic.memory.conversation import OpenConversation
from echoic.memory.user import UserMemory
from echoic.types import Memory, Receipt, Turn

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


class Steps:
    """Times named steps. A step that runs twice counts once, with the sum."""

    def __init__(self) -> None:
        self.timings_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside as `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + elapsed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChanges:
    """What a turn changed."""

    stored: tuple[Memory, ...] = ()
    superseded: tuple[Memory, ...] = ()
    known: tuple[Memory, ...] = ()
    retracted: tuple[Memory, ...] = ()


async def learn(
    memory: UserMemory,
    conversation: OpenConversation,
    heard: Turn,
    *,
    ours: Iterable[tuple[str, str]],
    before: Sequence[Memory],
    steps: Steps,
) -> TurnChanges:
    """Learn from a turn that was kept.

    Args:
        memory: whose.
        conversation: the one it was said in.
        heard: the turn.
        ours: keys and values given in it for everyone.
        before: everything that held until then.
        steps: where the time it takes is noted.
    """
    with steps.step("distil"):
        await conversation.learn()
    for key, value in [] if conversation.silent else ours:
        with steps.step("set"):
            await memory.set(key, value)
    return _difference(heard, before, await memory.facts())


async def learn_name(memory: UserMemory, name: str, steps: Steps) -> TurnChanges:
    """Keep `name`, which was given as the bare answer to the agent's question for it."""
    with steps.step("set"):
        kept = await memory.set("user_name", name, category="entity")
    return TurnChanges(stored=(kept,))


def _difference(heard: Turn, before: Sequence[Memory], after: Sequence[Memory]) -> TurnChanges:
    held = {_name(memory) for memory in before}
    holds = {_name(memory) for memory in after}
    stored = tuple(memory for memory in after if _name(memory) not in held)
    gone = [memory for memory in before if _name(memory) not in holds]
    # a correction may move a key from the user's own to everyone's, so it is the key that tells
    corrected = {memory.key for memory in stored if memory.key is not None}
    said = {(item.key, item.text.casefold()) for item in listen(heard.text, []) if not item.retracts}
    return TurnChanges(
        stored=stored,
        superseded=tuple(memory for memory in gone if memory.key in corrected),
        known=tuple(m for m in after if _name(m) in held and (m.key, m.text.casefold()) in said),
        retracted=tuple(memory for memory in gone if memory.key not in corrected),
    )


def _name(memory: Memory) -> tuple[bool, str]:
    """What tells a memory from all others: an id is unique only in its scope."""
    return memory.visibility == "global", memory.id


def learned_in_words(learned: TurnChanges) -> str:
    """What was learned, said back so that the speaker can correct it; empty where nothing was."""
    parts = [_met(learned), _stored(learned), _known(learned), _retracted(learned)]
    return " ".join(part for part in parts if part)


def _met(learned: TurnChanges) -> str:
    named = [memory for memory in learned.stored if memory.key == "user_name"]
    if not named:
        return ""
    corrected = any(memory.key == "user_name" for memory in learned.superseded)
    return (
        f"I'll call you {named[0].text} from now on." if corrected else f"Nice to meet you, {named[0].text}."
    )


def _stored(learned: TurnChanges) -> str:
    own = [m for m in learned.stored if m.key != "user_name" and m.visibility == "private"]
    said = []
    if own:
        was = {memory.key: memory.text for memory in learned.superseded}
        before = [was[memory.key] for memory in own if memory.key in was]
        note = f" Before, it was {' and '.join(before)}; I keep that as history." if before else ""
        said.append(f"Noted: {_repeated(own)}{note}")
    shared = [memory for memory in learned.stored if memory.visibility == "global"]
    if shared:
        said.append(f"Noted for everyone who calls: {_repeated(shared)}")
    proposed = [memory for memory in learned.stored if memory.visibility == "proposed"]
    if proposed:
        said.append(
            f"Noted: {_repeated(proposed)} I proposed it for everyone; until the operator approves, "
            "it is yours alone."
        )
    return " ".join(said)


def _known(learned: TurnChanges) -> str:
    return f"I know: {_repeated(learned.known)}" if learned.known and not learned.stored else ""


def _repeated(memories: Iterable[Memory]) -> str:
    return listed(acknowledged(memory) for memory in memories)


def _retracted(learned: TurnChanges) -> str:
    if not learned.retracted:
        return ""
    said = " ".join(said_back(memory) for memory in learned.retracted)
    return (
        f"I no longer go by this: “{said}” It stays in your history, where only you can see it; "
        "“forget everything about me” erases that too."
    )
