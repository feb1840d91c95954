"""What of a memory, a turn and an item is indexed and embedded: how they can be found, not in which order.

A store keeps what this module makes, so a change here changes the meaning of stored indexes: raise
`echoic.text.ANALYSIS` then.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from echoic.partition import ITEM, MEMORY, TURN, Entry, Flag, number_of
from echoic.text import Word, content_words, cut, fold, visible
from echoic.types import Category, Memory, Turn

USER, AGENT = "user", "agent"
"""Speakers that are roles. Any other speaker is a person's name."""

SPEAKER_FACET, KEY_FACET, SOURCE_FACET = "@", "=", "^"
"""Prefixes of the terms for a speaker's name, a memory's key, and the turn that a turn is or a memory was
learned from. No word of a text begins with them."""

# Categories that people name in questions ("what do I prefer"); nobody says "entity" or "fact".
_SPOKEN_CATEGORIES: frozenset[Category] = frozenset({"preference", "decision", "requirement", "experience"})

# The words of questions for a key: a value that a tool set has no sentence that has them. Whole keys only: no
# "home_phone" tells where the user lives. Few of them: such a value may outrank newer speech not learned yet.
_ASKED_BY = {
    "age": "old",
    "birthday": "born birth",
    "employer": "work job",
    "home": "live town city",
    "husband name": "married",
    "job": "work",
    "occupation": "work job",
    "partner name": "married",
    "wife name": "married",
}

_KEYED_WORDS = 6  # characters of a value; a longer one is a text with a title

# Saying when: 2.6 points of R@10 on questions about time, on LoCoMo's development half.
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|recently|just|ago|last|the other day|years? old|since \d"
    r"|(?:next|this) (?:week|weekend|month|year|morning|afternoon|evening|spring|summer|autumn|fall|winter)"
    r"|for \w+ years?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:19|20)\d\d"
    # "march" and "may" are verbs more often than months
    r"|january|february|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|couple|few|several|both"
    r"|once|twice|first|second|third)\b",
    re.IGNORECASE,
)
_QUESTION_MARKS = ("?", "？", "؟")
_STOPS = (*_QUESTION_MARKS, *".!。！…")
# Beginnings of questions without punctuation.
_OPENING = re.compile(
    r"\W*(?:(?:so|and|but|well|okay|ok|um|uh)\s+)*"
    r"(?:whose|(?:who|what|where|how)(?:'?s)?|when|which|why"
    r"|(?:do|does|did|are|is|was|were|have|has|can|could|would|will|should)(?:n't)?"
    r" (?:i|you|we|they|he|she|it|there|that|this|your|my|the))\b",
    re.IGNORECASE,
)

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[_\-./:#]+")


def entry_of_memory(memory: Memory) -> Entry:
    """The entry of `memory`: its statement if it has one, else "key in words: text".

    Without a statement it is found by the words of questions for its key, too: home by "live".
    A leading "user" of the key is left out ("name: Pavel" for user_name). (MiniLM, the memories of
    benchmarks/keyvalue alone: the right one comes first for 91 % of questions with it, for 93 % without.)

    A memory that is no longer current is PAST, and UNHEARD if it was deleted. Its speaker is its author.
    It belongs to no session, because the turns written before and after it say nothing about it.
    """
    key = key_words(memory.key).removeprefix(f"{USER} ") if memory.key else ""
    text = memory.statement or (f"{key}: {memory.text}" if key else memory.text)
    flags = flags_of(text)
    if not memory.current:
        flags |= Flag.PAST | Flag.UNHEARD if memory.deleted else Flag.PAST
    if key and len(content_words(memory.text)) <= _KEYED_WORDS:
        flags |= Flag.KEYED
    spoken = memory.category if memory.category in _SPOKEN_CATEGORIES else ""
    words = _mentioned(
        [key, memory.text, memory.statement or _ASKED_BY.get(key, ""), memory.context or "", spoken]
    )
    author = fold(memory.author) if memory.author else ""
    if key:
        words = (*words, (key_facet(content_words(key)), 0))
    if author not in {"", USER, AGENT}:
        words = (*words, (speaker_facet(author), 0))
    words = (*words, *((source_facet(name), 0) for name in dict.fromkeys(memory.source)))
    return Entry(
        text=text,
        kind=MEMORY,
        words=words,
        characters=len(text),
        speaker=number_of(author),
        said_at_ms=Entry.milliseconds(memory.valid_from),
        flags=flags,
    )


def entry_of_turn(turn: Turn) -> Entry:
    """The entry of `turn`: its heard words, preceded by the speaker's name if that is a person's.

    A turn of which nothing was heard, or all was forgotten, has no words and is UNHEARD: it is never found.
    """
    heard = visible(turn.heard_text)
    speaker = fold(turn.speaker)
    # MiniLM on LoCoMo: R@10 44 with the speaker's name before their words, 31 without it.
    text = heard if not heard or speaker in {USER, AGENT} else f"{turn.speaker}: {heard}"
    words = Entry.counted(content_words(text))
    if text != heard:
        words = (*words, (speaker_facet(speaker), 0))
    if heard and speaker != AGENT:  # nothing is learned from an agent's words
        words = (*words, (source_facet(turn.id), 0))  # last: see `sources`
    return Entry(
        text=text,
        kind=TURN,
        words=words,
        characters=len(heard),
        session=number_of(turn.conversation),
        speaker=number_of(speaker),
        said_at_ms=Entry.milliseconds(turn.said_at),
        flags=flags_of(heard) if heard else Flag.UNHEARD,
    )


def entry_of_item(text: str, group: str, updated_at: datetime) -> Entry:
    """The entry of an item of the kind `group`: UNHEARD, so that only a search for such items finds it.

    See `Partition.items`.
    """
    return Entry(
        text=text,
        kind=ITEM,
        words=Entry.counted(content_words(text)),
        characters=len(text),
        session=number_of(group),
        said_at_ms=Entry.milliseconds(updated_at),
        flags=flags_of(text) | Flag.UNHEARD,
    )


def flags_of(text: str) -> Flag:
    """The flags QUESTION, ASKING, TIME and NUMBER of `text`."""
    flags = Flag.NONE
    if _asks(text):
        flags |= Flag.QUESTION
    if ends_asking(text):
        flags |= Flag.ASKING
    if _TIME.search(text):
        flags |= Flag.TIME
    if _NUMBER.search(text):
        flags |= Flag.NUMBER
    return flags


def key_words(key: str) -> str:
    """A key in words: "user_name", "userName" and "user.name" are all "user name"."""
    return " ".join(_JOINTS.sub(" ", _CAMEL.sub(" ", key)).split()).lower() or key


def speaker_facet(speaker: str) -> Word:
    """The term for a speaker's folded name: rows keep only the number of the name.

    Its count in the index is 0, so that it adds nothing to a score or a length.
    """
    facet = f"{SPEAKER_FACET}{number_of(speaker):08x} {' '.join(cut(speaker))}"
    return Word(facet, facet, ())


def source_facet(turn_id: str) -> Word:
    """The term shared by a turn and the memories learned from it; its count is 0 too."""
    facet = f"{SOURCE_FACET}{number_of(turn_id):08x}"
    return Word(facet, facet, ())


def source_term(turn_id: str) -> int:
    """The number of the `source_facet` of a turn."""
    return zlib.crc32(source_facet(turn_id).stem.encode())


def key_facet(words: Iterable[Word]) -> Word:
    """The term for a memory's key, or for the key that `words` of a question would name.

    In any order and form ("name of my dog" names dog_name); its count is 0 too.
    """
    facet = KEY_FACET + " ".join(sorted({word.stem for word in words}))
    return Word(facet, facet, ())


def key_terms(stems: Sequence[str], most: int) -> dict[int, int]:
    """The numbers of the `key_facet`s of up to `most` neighbouring words, with how many words each takes.

    Of one that is named twice, the longer naming counts.
    """
    # the bytes of words are in the order of the words
    coded, begun = [stem.encode() for stem in stems], zlib.crc32(KEY_FACET.encode())
    found = {zlib.crc32(one, begun): 1 for one in coded}
    for count in range(2, min(most, len(coded)) + 1):
        for first in range(len(coded) - count + 1):
            words = sorted({*coded[first : first + count]})
            found[zlib.crc32(b" ".join(words), begun)] = count
    return found


def speaker_of_facet(facet: str) -> tuple[int, tuple[str, ...]]:
    """The number and the words of the name in a `speaker_facet`."""
    number, *words = facet.removeprefix(SPEAKER_FACET).split(" ")
    return int(number, 16), tuple(word for word in words if word)


def _mentioned(fields: Iterable[str]) -> tuple[tuple[Word, int], ...]:
    # The most of any one field, not the sum: a statement repeats key and text ("The user's name is Ana").
    # Words are joined by stem, so that "names" in one field and "name" in another are not two.
    counts: dict[str, tuple[Word, int]] = {}
    for field in fields:
        words = content_words(field)
        in_field = Counter(word.stem for word in words)
        for word in words:
            if in_field[word.stem] > counts.get(word.stem, (word, 0))[1]:
                counts[word.stem] = (word, in_field[word.stem])
    return tuple(counts.values())


def _asks(text: str) -> bool:
    return any(mark in text for mark in _QUESTION_MARKS) or _unpunctuated_question(text)


def ends_asking(text: str) -> bool:
    """Whether `text` ends with a question mark, or begins like a question and ends with no mark."""
    return text.rstrip().endswith(_QUESTION_MARKS) or _unpunctuated_question(text)


def _unpunctuated_question(text: str) -> bool:
    return not text.rstrip().endswith(_STOPS) and _OPENING.match(text) is not None
