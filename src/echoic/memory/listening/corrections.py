"""What a speaker puts right: "actually it's Paula", "I live in Bos-, sorry, in Cambridge", "not Jon, John".

A correction gives no slot of its own: it is read as the slot that was filled last, and only if it is a value
of that slot's kind and nothing follows that would make it another statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from echoic.memory.listening import names, phrases, places, spoken
from echoic.memory.listening.lexicon import FUNCTION, wordlike
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.slots import SLOTS, Heard, hear, hear_of, retraction
from echoic.memory.listening.spoken import Value

_MARK: Final = (
    r"(?:no no|no wait|wait no|no sorry|sorry no|no|sorry|wait|i mean|i meant|i meant to say|actually|or rather|rather|"
    r"make that|scratch that|correction|oops|oh|well|hang on|hold on|yeah|yes|um)"
)
# "No, Paula" and "I meant Paula" correct anything; "actually it's Paula" only what has one value.
_CORRECTING: Final = re.compile(
    rf"(?P<marks>(?:{_MARK} ){{1,4}})(?P<lead>(?:it's|it is|that's|that should be|it should be|should be|in|at|to|is) )?"
)
_CONTRASTED: Final = re.compile(r"(?:it's|it is) ")
_MEANT: Final = re.compile(r"(?:^|.* )(?:i mean|i meant|i meant to say|make that|or rather|correction) ")
_GIVEN_UP: Final = re.compile(r"(?:no wait|wait no|no sorry|sorry no|scratch that|oops|no no) ")
_POLITE: Final = frozenset("please thanks thank and but not".split())


class Repair:
    """A value put right."""

    def __init__(self, heard: tuple[Heard, ...], end: int) -> None:
        self.heard = heard
        """The value that holds; where the key is made of the value, also the retraction of the old one."""
        self.end = end


def corrected(said: Sentence, at: int, previous: Sequence[Heard]) -> Repair | None:
    """What the words at `at` put right among `previous`, oldest first; None if they correct nothing."""
    if not previous:
        return None
    mark = said.match(_CORRECTING, at)
    contrasted = None if mark else said.match(_CONTRASTED, at)
    if mark is None and contrasted is None:
        return None
    start = said.at[(mark or contrasted).end()]  # type: ignore[union-attr] # one of the two is there
    meant = mark is not None and _MEANT.match(mark["marks"]) is not None
    for old in _candidates(said, previous):
        repair = _reread(said, start, old, meant=meant)
        if repair and (mark or _denies(said, repair.end, old)):
            return Repair(repair.heard, _past_denial(said, repair.end, old))
    return None


def given_up(said: Sentence, at: int) -> bool:
    """Whether the value before `at` is taken back by words that give no other."""
    return said.match(_GIVEN_UP, at) is not None


def _candidates(said: Sentence, previous: Sequence[Heard]) -> list[Heard]:
    """What may be meant: the value that is denied by name ("not Jon"), else the one given last."""
    stated = [old for old in previous if not old.retracts or old.key in SLOTS]
    denied = [old for old in stated if f"not {old.text.lower()} " in said.line]
    return denied[-1:] or stated[-1:] + [old for old in stated[-2:-1] if old.key == "user_name"]


def _reread(said: Sentence, at: int, old: Heard, *, meant: bool) -> Repair | None:
    """The value at `at` read as `old`'s kind."""
    slot, _, item = old.key.partition(":")
    if item:
        return _other_item(said, at, old, slot) if meant else None
    reader = _READERS.get(slot) or (names.stated if slot.endswith("_name") else None)
    found = reader(said, at) if reader and at < len(said) else None
    if found is None and slot == "phone":
        found = _last_digits(said, at, old.text)
    if found is None or not _ends(said, found.end) or not _plausible(said, at, found, slot):
        return None
    if slot in SLOTS:
        return Repair((hear(slot, found.text),), found.end)
    return Repair((hear_of(slot.removesuffix("_name").replace("_", " "), found.text),), found.end)


def _plausible(said: Sentence, at: int, found: Value, slot: str) -> bool:
    """A single word no list knows may still be anything: in a correction it must not be followed by more."""
    return not (slot.endswith("name") and found.end - at > 3) and not wordlike(said.low(at))  \
        if slot.endswith("name") else True


def _other_item(said: Sentence, at: int, old: Heard, slot: str) -> Repair | None:
    """"I like jazz", "I meant blues": the old thing goes, the new one comes."""
    if slot not in {"preference", "allergy", "avoids", "favourite", "least_favourite"}:
        return None
    found = phrases.item(said, at, definite=True, limit=4)
    if found is None or not _ends(said, found.end) or wordlike(said.low(at)) and said.low(at) in FUNCTION:
        return None
    if slot in {"favourite", "least_favourite"}:
        return Repair((hear(slot, found.text, item=old.key.partition(":")[2]),), found.end)
    verb = old.text.removesuffix(old.key.partition(":")[2]).strip() if slot == "preference" else ""
    return Repair((retraction(old), hear(slot, f"{verb} {found.text}".strip(), item=found.text)), found.end)


def _last_digits(said: Sentence, at: int, old: str) -> Value | None:
    """"… one two three four, sorry, one two three five": as many of the last digits as were said again."""
    run = spoken.digits(said, at)
    if run is None or not 2 <= len(run.text) < len(old):
        return None
    return Value(old[: -len(run.text)] + run.text, run.end)


def _ends(said: Sentence, end: int) -> bool:
    return said.gap(end) or said.low(end) in _POLITE


def _denies(said: Sentence, end: int, old: Heard) -> bool:
    return said.low(end) == "not" and said.line[said.starts[end] :].startswith(f"not {old.text.lower()} ") or old.retracts


def _past_denial(said: Sentence, end: int, old: Heard) -> int:
    words = f"not {old.text.lower()} "
    if end < len(said) and said.line.startswith(words, said.starts[end]):
        return said.at.get(said.starts[end] + len(words), end)
    return end


def _age(said: Sentence, at: int) -> Value | None:
    found = spoken.number(said, at)
    return Value(str(found.value), found.end) if found and 3 <= found.value <= 120 else None


_READERS: Final[dict[str, Callable[[Sentence, int], Value | None]]] = {
    "user_name": names.stated,
    "last_name": names.stated,
    "home": places.place,
    "origin": places.origin,
    "birthplace": places.place,
    "grew_up_in": places.place,
    "address": places.street,
    "employer": places.organisation,
    "occupation": lambda said, at: places.role(said, at, certain=False),
    "age": _age,
    "birthday": spoken.date,
    "email": spoken.email,
    "phone": spoken.phone,
}


def settled(heard: Sequence[Heard]) -> list[Heard]:
    """What remains of everything heard in one utterance: the last word on each key, in the order said.

    A retraction gives way to a value of the same key; what was first said and then taken back in the same breath
    is kept as a retraction only, since an earlier call may have stored it.
    """
    kept: dict[str, Heard] = {}
    for one in heard:
        earlier = kept.get(one.key)
        if one.retracts and earlier and not earlier.retracts and one.text != earlier.text:
            continue
        kept.pop(one.key, None)
        kept[one.key] = one
    return list(kept.values())


def retracted(previous: Sequence[Heard]) -> list[Heard]:
    """Everything that was given, taken back."""
    return [replace(retraction(old)) for old in settled(previous) if not old.retracts]


__all__ = ["Repair", "corrected", "given_up", "retracted", "settled"]
