"""Whether a later sentence takes the place of an earlier one: "I'm on the gold plan now". Pure.

Keys are superseded by their slot; sentences have none. One replaces another where it says something else of
the same thing ("my scan is on the ninth", "my scan is on the tenth"), or where it says that something
changed ("now", "instead", "switched") and both are about the same. Where that is not plain, both are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from echoic.words import content_words

_GIVEN_UP: Final = (
    r"any ?more|no longer|instead|gave up|given up|switched|swapped|changed|replaced|stopped|sold|quit|"
    r"cancelled|come off|came off|after all|again|gone (?:up|down)|doubled|moved|put back|upgraded|divorced|"
    r"sorry|got (?:married|divorced|rid of)|split up|broke up|passed away|died|jacked in|packed in|scratch|"
    r"finished with"
)
_CHANGED: Final = re.compile(
    rf"\b(?:{_GIVEN_UP}|now|these days|downgraded|brought forward|gone off|went (?:up|down)|increased|"
    r"reduced|turned|left|from now on|corrected|separated|back to|rather|retired|redundant|laid off|"
    r"let me go|nowadays|as of|make it|make that)\b"
)
_ENDED: Final = re.compile(rf"\b(?:{_GIVEN_UP}|not|retired from)\b")
"""Says so of what is named, whatever else is so beside it."""
_ONE_AT_A_TIME: Final = frozenset(
    """age birthday home move work retirement reference contact plan vehicle finance appointment
    decision name study""".split()
)
_MANY: Final = frozenset(
    "medication condition allergy family pet interest dislike language possession requirement routine".split()
)
"""Kinds of which many hold side by side: one ends another only by name."""
_SAME_KIND: Final = {"move": "home", "retirement": "work"}
_ONE_LIFE: Final = frozenset({"home", "work"})
_ABOUT: Final = 0.6
"""Cosine of two sentences from which on they are about the same, where one says that it changed."""
_NAMED: Final = 0.45
"""The same, where it says that what it names ended."""
_VERBS: Final = frozenset("is are was has have had ends starts comes moved got goes went turned".split())
_SAYS_NOTHING: Final = frozenset(
    """have has take use get go live work like prefer want need call drive own now new still just year old
    time day week change move switch""".split()
)
_HOLDERS: Final = frozenset("my our the".split())
_SELF: Final = frozenset("i i'm i've i'll we we're we've we'll user's user".split())


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence as far as this looks at it."""

    text: str
    kind: str
    beside: str = ""
    """What was said right before and behind it in its turn, which may say that something changed."""

    @property
    def words(self) -> list[str]:
        """Folded, in order, with "'s" as a word of its own where it stands for "is"."""
        return re.sub(r"(?<=[a-z])['’]s\b", " is", self.text.casefold()).replace(",", " ").split()

    @property
    def group(self) -> str:
        """Its kind, with those in one that replace each other."""
        return _SAME_KIND.get(self.kind, self.kind)


def replaces(new: Statement, old: Statement, alike: float) -> bool:
    """Whether `new` takes the place of `old`.

    Args:
        new: said last.
        old: known before.
        alike: the cosine of their vectors.
    """
    line = f"{' '.join(new.words)} {new.beside.casefold()}"
    shared = _about(line.split()) & _about(old.words)
    if new.group == old.group and _subject(new.words) and _subject(new.words) == _subject(old.words):
        changed = new.kind in _ONE_AT_A_TIME or _CHANGED.search(line)
        return bool(changed) and new.words != old.words
    if _ENDED.search(line) and shared and (new.group == old.group or alike >= _NAMED):
        return True
    if new.group != old.group or new.kind in _MANY or not _CHANGED.search(line):
        return False
    if new.group in _ONE_LIFE and _of_speaker(new.words) and _of_speaker(old.words):
        return True
    return bool(shared) or alike >= _ABOUT


def may_replace(new: str, old: str) -> bool:
    """Whether it is worth making a vector of `old` to ask whether `new` replaces it."""
    one, other = Statement(new, "").words, Statement(old, "").words
    if not one or not other:
        return False
    return bool(_CHANGED.search(" ".join(one))) or (_subject(one) != () and _subject(one) == _subject(other))


def _about(words: Sequence[str]) -> frozenset[str]:
    """The stems of what is spoken of, without numbers and words of change."""
    stems = {word.stem for word in content_words(" ".join(words)) if not any(map(str.isdigit, word.text))}
    return frozenset(stems - _SAYS_NOTHING)


def _subject(words: Sequence[str]) -> tuple[str, ...]:
    """What is spoken of at the beginning: "my order number" of "my order number is seven"."""
    if words[0] == "i'm" or words[:2] == ["i", "am"]:
        return ("i",) if len(words) <= 5 else ()
    if words[0] not in _HOLDERS:
        return ()
    end = next((at for at, word in enumerate(words) if word in _VERBS), 0)
    return tuple(words[1:end])


def _of_speaker(words: Sequence[str]) -> bool:
    return not _SELF.isdisjoint(words)
