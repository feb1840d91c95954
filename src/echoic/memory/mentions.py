"""Finds where a memory is mentioned: which spans of which texts say it. Pure.

A value alone proves little: "Reading" is a town and a pastime, and two people may be called Marta. So a span
mentions a memory if it contains the value and is about the same thing: the memory was learned from that turn,
the rules read it there, a word of its key ("sister", or a synonym) is near, or it is next to a span that
mentions it, as in an answer to a question or an agent's echo. A unique value (an address, a number) is proof
enough.

In doubt a span counts: revealing what should have been forgotten does more harm than hiding a clause too
many.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Final

from echoic.english import listen
from echoic.english.lexicon import MONTHS, wordlike
from echoic.english.phrases import EMAIL_MARKS
from echoic.english.sentences import affirmation, sentences
from echoic.memory.records import Span, joined, masked
from echoic.ranking.indexing import AGENT, USER, key_words
from echoic.temporal.rules import ORDINALS, find_dates
from echoic.text import END, MARKER, START, STOP, fold, word_of
from echoic.text.spoken_numbers import View, is_bare, runs, views_of
from echoic.types import Memory, Turn

_WORD: Final = re.compile(r"[eE]-mails?|[^\W_]+(?:['’][^\W_]+)*")
LONG: Final = 4
"""Content words from which a value counts as a statement, which is found by most of its words."""
_SAYS_SO: Final = frozenset("yes no true false".split())
"""Values that say nothing without their key."""
_LEAST_SAID: Final = 2
"""Digits of a number that is also found in words: "one" is more often none."""
_LEAST_SPELLED: Final = 3
"""Letters of the shortest word that is spelled."""
_LEAST_GIVEN, _LEAST_REPEATED = 2, 3
"""The digits of a part of a number: in a turn that gave it, and in one that repeats it."""
NUMBER_FIGURES: Final = 9
"""Last digits of a telephone number that are compared; the prefix depends on where one dials from."""

_GENERIC: Final = frozenset("user my our the a of and is current own main primary favourite favorite".split())
# The words of a line are synonyms: the name of a key, and what people call it.
_ABOUT: Final = """
    name call called named
    home house live lives living lived city town village address residence reside move moved based location
    employer job work works working worked workplace company occupation profession career employed firm
    phone telephone mobile cell number
    email mail e-mail
    age old years
    birthday birth born birthdate
    wife spouse married
    husband spouse married
    partner spouse girlfriend boyfriend fiance fiancee
    mother mom mum mama parent
    father dad papa parent
    sister sibling sis
    brother sibling bro
    child son daughter kid baby children boy girl
    pet dog cat puppy kitten
    allergy allergies allergic intolerance intolerant
    medication medicine drug pill tablet take takes taking prescribed prescription
    condition diagnosis diagnosed illness disease
    diet eat vegetarian vegan
    car vehicle drive drives driving
    plan subscription tier
    preference prefer prefers preferred like likes love loves enjoy
    language speak speaks
    doctor gp physician
"""


def stem_of(word: str) -> str:
    return word_of(fold(word)).stem


def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _ABOUT.strip().splitlines():
        stems = frozenset(map(stem_of, line.split()))
        for stem in stems:
            found[stem] = found.get(stem, frozenset()) | stems
    return found


_MEANT: Final = _groups()
_RELATIONS: Final = frozenset(
    stem_of(word)
    for word in "wife husband partner mother father sister brother child son daughter pet dog cat friend boss"
    " aunt uncle cousin niece nephew grandmother grandfather neighbour colleague manager doctor".split()
)
"""Subjects of these verbs are the speaker's relations."""


@dataclass(frozen=True)
class ClaimToken:
    """One word of a text, with its position."""

    start: int
    end: int
    text: str
    """Folded."""
    stem: str
    stop: bool


@dataclass(frozen=True)
class Claim:
    """The content of one memory, prepared for finding it in turns."""

    key: str | None
    value: tuple[str, ...]
    """Stems of the value's content words in order; of all its words if it has none."""
    text: str
    """The value, folded."""
    subject: frozenset[str]
    """Stems of which at least one shows that a text is about the same; empty without a key."""
    stems: frozenset[str]
    """The stems of the whole statement."""
    sources: frozenset[str]
    """The turns it was learned from."""
    named: bool
    """Whether the value is capitalised."""
    telling: bool
    """Whether the value is unique: an e-mail address, a number of four digits or more that is no year."""

    @classmethod
    def of(cls, memory: Memory) -> Claim:
        said = memory.statement or memory.text
        keyed = _words_of(memory.key or "")
        says_so = fold(memory.text).strip(" .!") in _SAYS_SO and bool(keyed)
        content = [word.stem for word in (keyed if says_so else cut_up(memory.text)) if not word.stop]
        whole = {word.stem for word in cut_up(said) if not word.stop and word.text not in _GENERIC}
        whole -= {stem_of("user"), stem_of("user's"), fold(memory.author or "")}
        about = subject_of(memory.key or "")
        is_year = stem_of("year") in about and len(memory.text) == LONG and memory.text.isdecimal()
        return cls(
            key=memory.key,
            value=tuple(content or [word.stem for word in cut_up(memory.text)]),
            text=" ".join(word.text for word in keyed) if says_so else fold(memory.text).strip(" .!?"),
            subject=about,
            stems=frozenset(whole),
            sources=frozenset(memory.source),
            named=memory.text[:1].isupper() and not says_so,
            telling=says_so
            or "@" in memory.text
            or (sum(c.isdigit() for c in memory.text) >= LONG and not is_year),
        )

    @property
    def is_statement(self) -> bool:
        """Whether it is found by most of its words instead of a value."""
        return len(self.value) >= LONG or self.key is None

    @property
    def figures(self) -> str:
        """The digits that distinguish the number."""
        return "".join(c for c in self.text if c.isdigit())[-NUMBER_FIGURES:]

    @cached_property
    def as_said(self) -> re.Pattern[str] | None:
        """How an address, a day or a number may be said, in a view of a text."""
        if "@" in self.text:
            return _address(self.text)
        # a sort code or a membership number may look like a day: "11-08-24"
        is_day = not _SHORT_DAY.fullmatch(self.text) or not _OF_DAYS.isdisjoint(self.subject)
        if is_day and (days := _days(self.text)):
            return re.compile("|".join(map(_day, days)), re.IGNORECASE)
        if self.telling and self.figures:
            between = r"[\s().\-]*"
            return re.compile(rf"(?:\+?\d[\d\s().\-]*)?{between.join(self.figures)}(?!\d)")
        number = self.text.isdecimal() and len(self.text) >= _LEAST_SAID
        return re.compile(rf"(?<![\d.,]){self.text}(?![.,]?\d)") if number else None

    @cached_property
    def as_spelled(self) -> re.Pattern[str]:
        """The value, or a word of it, in a view of a text that joins spelled letters."""
        words = [word.text for word in cut_up(self.text)]
        ways = [r"\W*".join(words), *(word for word in words if len(word) >= _LEAST_SPELLED)]
        return re.compile(f"{START}(?:{'|'.join(ways)}){END}", re.IGNORECASE)

    @property
    def in_parts(self) -> bool:
        """Whether it is a number that was given over several turns."""
        return len(self.sources) > 1 and not self.is_statement and len(self.figures) == NUMBER_FIGURES

    @property
    def is_common(self) -> bool:
        """Whether the value is an ordinary word as well: "reading"."""
        return len(self.text.split()) == 1 and wordlike(self.text)

    @property
    def calls(self) -> bool:
        """Whether it is the speaker's name."""
        return not self.relates and stem_of("name") in self.subject

    @property
    def relates(self) -> bool:
        """Whether it is about somebody the speaker knows."""
        return bool(self.subject & _RELATIONS)


def _words_of(key: str) -> list[ClaimToken]:
    return [word for word in cut_up(key_words(key)) if word.text not in _GENERIC]


def subject_of(key: str) -> frozenset[str]:
    """Stems of what memories under `key` are about, with synonyms."""
    keyed = _words_of(key)
    about = [word for word in keyed if word.text not in {"name", "names"}] or keyed
    return frozenset(stem for word in about for stem in _MEANT.get(word.stem, {word.stem}))


def cut_up(text: str) -> list[ClaimToken]:
    """The words of `text` with their positions."""
    found = []
    # an accent may be a character of its own, which is no letter and yet part of the word
    letters = text if text.isascii() else "".join("x" if unicodedata.combining(c) else c for c in text)
    for match in _WORD.finditer(letters):
        folded = fold(text[match.start() : match.end()]).replace("-", "")
        found.append(ClaimToken(match.start(), match.end(), folded, word_of(folded).stem, folded in STOP))
    return found


def _address(text: str) -> re.Pattern[str]:
    """An e-mail address, also as it is said: "ana at gmail dot com". Another text with "@": as written."""
    names: dict[str, list[str]] = {}
    name, _, host = text.partition("@")
    if name and "." in host and not any(map(str.isspace, text)):
        for word, mark in (("at", "@"), *EMAIL_MARKS.items()):
            names.setdefault(mark, []).append(word)
    said = [rf"(?:{re.escape(c)}|\b(?:{'|'.join(names[c])})\b)" if c in names else re.escape(c) for c in text]
    return re.compile(START + r"\s*".join(said) + END, re.IGNORECASE)


_Day = tuple[int | None, int, int]
"""A year, with two digits if no more were said, a month, and a day."""
_NUMERIC_DAY: Final = re.compile(r"([0-9]{1,4})[/.-]([0-9]{1,2})[/.-]([0-9]{2,4})")
_SHORT_DAY: Final = re.compile(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{2,4}")
_OF_DAYS: Final = frozenset(map(stem_of, "birthday date day anniversary".split()))
_APART: Final = r"(?:[\s,./-]|\b(?:of|the|in)\b)+"


def _days(text: str) -> list[_Day]:
    """The days that `text` may be: either of two for "04/05/1950"."""
    if found := _NUMERIC_DAY.fullmatch(text):
        first, second, last = map(int, found.groups())
        days = [(first, second, last)] if first > 31 else [(last, second, first), (last, first, second)]
        return [(year, month, day) for year, month, day in days if 1 <= month <= 12 and 1 <= day <= 31]
    return [
        (date.year, date.month, date.day)
        for date, *span in find_dates(text)
        if date.month and date.day and span == [0, len(text)]
    ]


def _ordinal(number: int) -> str:
    words = [word for word, value in ORDINALS.items() if value == number]
    # "twenty first", in a view that reads the "twenty"
    words += [rf"{number // 10}0[\s-]+{word}" for word, value in ORDINALS.items() if value == number % 10]
    return "|".join([*words, rf"0?{number}(?:st|nd|rd|th)"])


def _day(said: _Day) -> str:
    """The pattern of a day with its year, if that is known: by name, by number, or in figures."""
    year, month, day = said
    named = rf"{MONTHS[month - 1][:3]}(?:t|{MONTHS[month - 1][3:]})?\.?"
    on = rf"(?:{_ordinal(day)}|0?{day})"
    if year is None:
        return rf"{START}(?:{on}{_APART}{named}|{named}{_APART}{on}){END}"
    of = rf"(?:{named}|{_ordinal(month)})"
    century = str(year // 100) if year > 99 else "(?:19|20)"
    full, short = rf"{century}\s*{year % 100:02}", rf"(?:{century}\s*|')?{year % 100:02}"
    ways = [rf"(?:{on}{_APART}{of}|{of}{_APART}{on}){_APART}{short}", rf"{full}-0?{month}-0?{day}"]
    ways += [
        rf"0?{first}{apart}0?{second}{apart}{born}"
        for first, second in ((day, month), (month, day))
        for apart, born in ((r"[\s/.-]+", full), ("[/.-]", short))
    ]
    # without marks only with every zero: "451950" is another number
    ways += [rf"{first:02}\s*{second:02}\s*{full}" for first, second in ((day, month), (month, day))]
    return rf"{START}(?:{'|'.join(ways)}){END}"


TOLD_WITHIN: Final = timedelta(minutes=10)
"""How long before a memory without a source turn, as a tool stores it, its turn may have been said."""
_SOURCE_SHARE, _OTHER_SHARE = 0.5, 0.75
"""Share of a statement's words a span must have: in a turn it was learned from, and in any other."""
_EMPTY: Final = frozenset(map(stem_of, "has have user says said wants called".split()))
"""Words of a statement that a sentence may lack."""
_SHORT: Final = 3
"""The most content words, besides the value, of a reply that depends on what precedes it."""

_BREAK: Final = re.compile(
    r"[.!?…;:]+(?=\s|$)|\n+|,(?=\s)|\s[-–—]+\s|—"
    r"|\b(?:and|but|so|because|cause|while|although|though|plus|then|anyway|actually)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?…]+(?=\s|$)|\n+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_OWNER: Final = {
    speaker: re.compile(rf"\b(?:{whose}|his|her|their)\s+([^\W\d_]+)", re.IGNORECASE)
    for speaker, whose in ((USER, "my|our"), (AGENT, "your"), ("", "my|our|your|the user's"))
}
_SELF: Final = frozenset(
    "i i'm i've i'd i'll im ive my me mine myself we we're we've our us you you're you've your yours user"
    " user's name's".split()
)

_START, _END = attrgetter("start"), attrgetter("end")


class TextPassage:
    """One text being searched."""

    def __init__(self, text: str, speaker: str | None) -> None:
        # placeholders of removed words say nothing
        self.text = MARKER.sub(lambda found: " " * len(found.group()), text) if "[" in text else text
        self.gaps = self.text != text
        self.speaker = speaker
        self._breaks: dict[re.Pattern[str], list[Span]] = {}
        self._occurrences: dict[Claim, list[Span]] = {}
        self.words = cut_up(text)
        self.cased = any(c.isupper() for c in text) and not text.isupper()

    @cached_property
    def content(self) -> list[ClaimToken]:
        return [word for word in self.words if not word.stop]

    @cached_property
    def _views(self) -> list[View]:
        return views_of(self.text)

    @cached_property
    def _spelling(self) -> list[View]:
        """The views that join spelled letters, if any are."""
        letters = sum(len(word.text) == 1 for word in self.words)
        return [view for view in self._views if view.spoken] if letters >= _LEAST_SPELLED else []

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words)

    def occurrences(self, claim: Claim) -> list[Span]:
        """Every place where the value of `claim` occurs, in order."""
        if claim not in self._occurrences:
            self._occurrences[claim] = self._occurring(claim)
        return self._occurrences[claim]

    def _occurring(self, claim: Claim) -> list[Span]:
        if _UNSPACED.search(claim.text):
            folded = fold(self.text)
            if len(folded) != len(self.text):
                return [(0, len(self.text))] if claim.text in folded else []
            return [(m.start(), m.end()) for m in re.finditer(re.escape(claim.text), folded)]
        if claim.as_said and (found := self._where(claim.as_said)):
            return found
        all_stop = all(stem in STOP for stem in claim.value)
        words, size = (self.words if all_stop else self.content), len(claim.value)
        found = []
        for at in range(len(words) - size + 1) if size else ():
            if all(word.stem == stem for word, stem in zip(words[at : at + size], claim.value, strict=True)):
                first, last = words[at].start, words[at + size - 1].end
                # in a text with capitals a town is capitalised, and a pastime is not
                if not (self.cased and claim.named and size == 1 and self.text[first].islower()):
                    found.append((first, last))
        for view in self._spelling:
            for match in claim.as_spelled.finditer(view.text):
                first, last = view.origin(*match.span())
                if last - first > len(match[0]):  # words that are not spelled are in a view as well
                    found.append((first, last))
        return joined(found)

    def _where(self, pattern: re.Pattern[str]) -> list[Span]:
        # "oh seven seven double oh" as well
        return joined(
            view.origin(*found.span()) for view in self._views for found in pattern.finditer(view.text)
        )

    def parts(self, claim: Claim, *, source: bool) -> list[Span]:
        """Where a turn that gave a part of a number, or one that repeats it, says that part."""
        digits = re.sub(r"\D", "", claim.text)
        is_only_number = source and is_bare(self.text)
        least = _LEAST_GIVEN if source else _LEAST_REPEATED
        said = [(run, view.origin(*at)) for view in self._views for run, *at in runs(view)]
        return joined(
            at
            for run, at in said
            if is_only_number or (len(run) >= least and run in digits and (source or self._is_alone(run, at)))
        )

    def _is_alone(self, run: str, at: Span) -> bool:
        """Whether the clause says only this number, where "a refund of 412 pounds" counts something."""
        first, last = self.clause(at)
        return is_bare(self.text[first : at[0]] + run + self.text[at[1] : last])

    def sentence(self, at: Span) -> Span:
        return self._between(_SENTENCE_END, at, at)

    def clause(self, at: Span, kept: Sequence[Span] = ()) -> Span:
        """The clause around `at`; separators inside `kept`, in order, do not count ("fish and chips")."""
        return self._between(_BREAK, at, self.sentence(at), kept)

    def _breaks_of(self, breaks: re.Pattern[str]) -> list[Span]:
        if breaks not in self._breaks:
            self._breaks[breaks] = [found.span() for found in breaks.finditer(self.text)]
        return self._breaks[breaks]

    def _between(self, breaks: re.Pattern[str], at: Span, whole: Span, kept: Sequence[Span] = ()) -> Span:
        first, last = (0, len(self.text)) if breaks is _SENTENCE_END else whole
        found = self._breaks_of(breaks)

        def divides(place: int) -> bool:
            last_kept = bisect_left(kept, found[place][1], key=itemgetter(0)) - 1
            return last_kept < 0 or kept[last_kept][1] <= found[place][0]

        # the nearest on either side: this runs for each word, and must not read the whole text each time
        before = range(bisect_right(found, at[0], key=lambda span: span[1]) - 1, -1, -1)
        after = range(bisect_left(found, at[1], key=lambda span: span[0]), len(found))
        if (near := next(filter(divides, before), None)) is not None:
            first = max(first, found[near][1])
        if (near := next(filter(divides, after), None)) is not None:
            last = min(last, found[near][0])
        while first < at[0] and self.text[first].isspace():
            first += 1
        while last > at[1] and self.text[last - 1].isspace():
            last -= 1
        return first, last

    def clauses(self, within: Span) -> Iterator[Span]:
        at = within[0]
        while at < within[1]:
            place = bisect_left(self.words, at, key=_START)
            if place == len(self.words) or (word := self.words[place]).end > within[1]:
                return
            clause = self.clause((word.start, word.end))
            yield clause
            at = max(clause[1], word.end)

    def divided(self, whole: Span) -> list[Span]:
        """The clauses of `whole`, without what separates them and without empty ones."""
        breaks = [found for found in self._breaks_of(_BREAK) if whole[0] <= found[0] and found[1] <= whole[1]]
        starts, ends = [whole[0], *(last for _, last in breaks)], [*(first for first, _ in breaks), whole[1]]
        clauses = (self.within(clause) for clause in zip(starts, ends, strict=True))
        return [(words[0].start, words[-1].end) for words in clauses if words]

    def within(self, span: Span) -> list[ClaimToken]:
        first = bisect_left(self.words, span[0], key=_START)
        return self.words[first : bisect_right(self.words, span[1], key=_END)]

    def is_about(self, span: Span, claim: Claim) -> bool:
        """Whether `span` is about the subject of `claim`, and nobody else's."""
        words = self.within(span)
        occurring = self.occurrences(claim)
        first, after = (bisect_left(occurring, place, key=itemgetter(0)) for place in span)
        at = occurring[first:after]
        value = {word.stem for one in at for word in self.within(one)}
        if not {word.stem for word in words} & (claim.subject - value):
            return False
        # "my parents live in Reading" is about them; "prescribed by my doctor" is about what precedes it
        owned = self.owned((span[0], min((first for first, _ in at), default=span[1])))
        if owned - claim.subject - claim.stems and not owned & claim.subject:
            return False
        said_of_self = not _SELF.isdisjoint(word.text for word in words)
        return claim.relates or said_of_self or self.speaker not in {USER, AGENT}

    def owned(self, span: Span) -> set[str]:
        """Stems of what is named with a possessive in `span` ("my boss")."""
        pattern = _OWNER.get(self.speaker or "", _OWNER[""])
        return {stem_of(word) for word in pattern.findall(self.text[span[0] : span[1]])}

    def beside(self, claim: Claim) -> list[ClaimToken]:
        """The content words besides the value of `claim`."""
        at = self.occurrences(claim)
        return [
            word
            for word in self.content
            if word.stem not in claim.value and not any(one[0] <= word.start < one[1] for one in at)
        ]

    def is_anothers(self, span: Span, claim: Claim) -> bool:
        """Whether `span` says the same value about something else."""
        owned = self.owned(span)
        if owned & claim.subject:
            return False
        heard = [one for one in listen(self.text[span[0] : span[1]]) if fold(one.text) == claim.text]
        keys = {one.key for one in heard}
        if keys and claim.key not in keys:
            about = {word.stem for key in keys for word in cut_up(key_words(key))}
            return about.isdisjoint(claim.subject)
        return bool(owned - claim.stems - {stem_of(word) for word in claim.text.split()}) and not keys

    def hears(self, span: Span, claim: Claim) -> bool:
        """Whether the rules extract `claim` from `span`, however it is put ("forty two")."""
        heard = [one for one in listen(self.text[span[0] : span[1]]) if one.key == claim.key and one.text]
        told = {fold(one.text).strip(" .") for one in heard}
        figures = {"".join(c for c in text if c.isdigit())[-NUMBER_FIGURES:] for text in told}
        if claim.text in told or claim.text.partition(",")[0] in told:  # a day may be said without its year
            return True
        return claim.telling and bool(claim.figures) and claim.figures in figures


@dataclass
class _Mentioned:
    """The mentions found so far in one conversation."""

    near: dict[int, int] = field(default_factory=dict)
    """By claim, the position of the last turn that mentions it."""
    asked: TextPassage | None = None
    """The previous turn."""


def said_in(turns: Sequence[Turn], memories: Sequence[Memory]) -> dict[str, list[Span]]:
    """The spans of each turn's heard words that say one of `memories`; `turns` are in order."""
    claims = [_told(claim, memory, turns) for memory in memories if (claim := Claim.of(memory)).value]
    found: dict[str, list[Span]] = {}
    talks: dict[str, list[Turn]] = {}
    for turn in turns:
        talks.setdefault(turn.conversation, []).append(turn)
    for talk in talks.values():
        for turn, spans in _in_talk(talk, claims):
            found[turn.id] = spans
    return found


def said_in_text(text: str, memories: Sequence[Memory]) -> list[Span]:
    """The spans of a text without a speaker, such as a summary, that say one of `memories`."""
    passage = TextPassage(text, None)
    return joined(span for claim in claims_of(memories) for span in _spans(passage, claim, source=False))


def mentioned_in(turn: Turn, claims: Sequence[Claim]) -> bool:
    """Whether a turn contains the value of one of `claims`, whatever it says with it."""
    passage = TextPassage(turn.heard_text, turn.speaker)
    return any(not claim.is_statement and passage.occurrences(claim) for claim in claims)


def claims_of(memories: Sequence[Memory]) -> list[Claim]:
    return [claim for memory in memories if (claim := Claim.of(memory)).value]


def _told(claim: Claim, memory: Memory, turns: Sequence[Turn]) -> Claim:
    """`claim`, with the turn in which a tool was told it, if the memory cites none."""
    if claim.sources or claim.is_statement:
        return claim
    for turn in reversed(turns):
        before = memory.valid_from - turn.said_at
        if turn.speaker != AGENT and timedelta(0) <= before <= TOLD_WITHIN:
            passage = TextPassage(turn.heard_text, turn.speaker)
            at = passage.occurrences(claim)
            if at and not all(passage.is_anothers(passage.clause(one), claim) for one in at):
                return replace(claim, sources=frozenset([turn.id]))
    return claim


def _in_talk(talk: Sequence[Turn], claims: Sequence[Claim]) -> Iterator[tuple[Turn, list[Span]]]:
    seen = _Mentioned()
    yes = [_affirms(talk, place, claims) for place in range(len(talk))]
    asked: dict[str, set[str]] = defaultdict(set)  # by question, which may be asked twice, who affirms it
    for place, affirms in enumerate(yes):
        if affirms:
            asked[_last_said(talk[place - 1])].add(talk[place].id)
    for place, turn in enumerate(talk):
        passage = TextPassage(turn.heard_text, turn.speaker)
        spans: list[Span] = []
        for number, claim in enumerate(claims):
            close = place - seen.near.get(number, -9) <= 2
            source = turn.id in claim.sources
            if source and yes[place]:
                more = _all_sentences(passage)[:1] or [(0, len(passage.text))]
                more += _spans(passage, claim, source=False, before=seen.asked, close=True)
            elif (
                turn.speaker == AGENT
                and asked
                and not claim.sources.isdisjoint(asked.get(_last_said(turn), ()))
            ):
                more = _all_sentences(passage)[-1:]
            else:
                more = _spans(passage, claim, source=source, before=seen.asked, close=close and place > 0)
            if more:
                seen.near[number] = place
                spans += more
        if spans:
            yield turn, joined(spans)
        seen.asked = passage


def _last_said(turn: Turn) -> str:
    said = sentences(turn.heard_text)
    return said[-1].line if said else ""


def _affirms(talk: Sequence[Turn], place: int, claims: Sequence[Claim]) -> bool:
    """Whether what `claims` say was learned from a yes at `place`: "Are you vegan?", "Yes"."""
    turn, before = talk[place], talk[place - 1] if place else None
    if before is None or before.speaker != AGENT or not any(turn.id in claim.sources for claim in claims):
        return False
    asked, said = sentences(before.heard_text), sentences(turn.heard_text)
    return bool(asked and said and affirmation(asked[-1], said))


def _spans(
    passage: TextPassage,
    claim: Claim,
    *,
    source: bool,
    before: TextPassage | None = None,
    close: bool = False,
) -> list[Span]:
    if not passage.text:
        return []
    if claim.is_statement:
        share = _SOURCE_SHARE if source or close else _OTHER_SHARE
        spans = _stated(passage, claim, share, whole=not source and passage.speaker != AGENT)
    else:
        spans = _valued(passage, claim, source=source, before=before, close=close)
    # where words are removed already there is nothing left to find
    if spans or not source or passage.speaker == AGENT or passage.gaps:
        return spans
    return _reworded(passage, claim)


def _valued(
    passage: TextPassage, claim: Claim, *, source: bool, before: TextPassage | None, close: bool
) -> list[Span]:
    at = passage.occurrences(claim)
    found: list[Span] = []
    others: list[Span] = []
    # by sentence, the words of the subject if it is about that; a long turn may be one sentence or clause
    about: dict[Span, list[ClaimToken]] = {}
    for clause, sentence in dict.fromkeys((passage.clause(one, at), passage.sentence(one)) for one in at):
        if claim.telling or passage.hears(clause, claim) or passage.is_about(clause, claim):
            found.append(clause)
        elif not passage.is_anothers(clause, claim):
            if sentence not in about:
                means = passage.is_about(sentence, claim) and not _divided(passage, sentence, claim)
                about[sentence] = [w for w in passage.within(sentence) if w.stem in claim.subject and means]
            if about[sentence]:
                found.append(_reaching(passage, clause, about[sentence]))
            else:
                others.append(clause)
    if not found and not at and claim.key and claim.key in _RULED:
        found = [c for c in _all_clauses(passage) if passage.hears(c, claim)]
    if claim.in_parts and not found and (source or (close and passage.speaker == AGENT)):
        found = passage.parts(claim, source=source)
    # beside a span that says it, in an answer and in an echo, the value alone is meant
    beside = bool(found) and (passage.cased or not claim.is_common)
    calls = claim.calls and passage.speaker == AGENT
    alone = source and not found
    if (
        beside
        or alone
        or calls
        or _answers(passage, claim, before)
        or (close and _echoes(passage, claim, others))
    ):
        found += others
    return found


def _answers(passage: TextPassage, claim: Claim, before: TextPassage | None) -> bool:
    """Whether it is a short reply to a question for it."""
    return (
        before is not None
        and before.speaker != passage.speaker
        and not before.stems.isdisjoint(claim.subject)
        and len(passage.beside(claim)) <= _SHORT
    )


def _echoes(passage: TextPassage, claim: Claim, others: Sequence[Span]) -> bool:
    """Whether it repeats what was just said: by the agent, or by the user in a few words."""
    return bool(others) and (passage.speaker == AGENT or len(passage.beside(claim)) <= 1)


def _divided(passage: TextPassage, sentence: Span, claim: Claim) -> bool:
    """Whether another clause of the sentence mentions the subject with a value of its own."""
    about = [c for c in passage.clauses(sentence) if {w.stem for w in passage.within(c)} & claim.subject]
    return any(listen(passage.text[first:last]) for first, last in about)


def _reaching(passage: TextPassage, clause: Span, words: Sequence[ClaimToken]) -> Span:
    """The clause, extended to the nearest of `words`, which are in order."""
    first, after = bisect_left(words, clause[0], key=_END), bisect_right(words, clause[1], key=_START)
    near = words[max(first - 1, 0) : after + 1]
    nearest = min(near, key=lambda word: min(abs(word.start - clause[1]), abs(word.end - clause[0])))
    around = passage.clause((nearest.start, nearest.end))
    return min(clause[0], around[0]), max(clause[1], around[1])


def _stated(passage: TextPassage, claim: Claim, share: float, *, whole: bool) -> list[Span]:
    """The clauses of each sentence that has the given share of a statement's words.

    With `whole`, another word in the place of one of them ("my friend …" for "my sister …") makes a different
    statement.
    """
    wanted = claim.stems | (frozenset(claim.value) if len(claim.value) >= LONG else frozenset())
    if not wanted:
        return []
    found = []
    for sentence in _all_sentences(passage):
        words = [word for word in passage.within(sentence) if word.stem in wanted]
        said = {word.stem for word in words}
        if len(said) < max(1, share * len(wanted)):
            continue
        more = any(not word.stop and word.stem not in wanted for word in passage.within(sentence))
        if (whole or share >= _OTHER_SHARE) and more and wanted - said - _EMPTY:
            continue
        found += [passage.clause((word.start, word.end)) for word in words]
    return found


def _reworded(passage: TextPassage, claim: Claim) -> list[Span]:
    """The spans in a source turn that say `claim` in other words: the closest ones, else all."""
    wanted = claim.stems | claim.subject
    counted = {s: len({w.stem for w in passage.within(s)} & wanted) for s in _all_clauses(passage)}
    best = max(counted.values(), default=0)
    return [s for s, count in counted.items() if count == best] if best else [(0, len(passage.text))]


def _all_sentences(passage: TextPassage) -> list[Span]:
    return list(dict.fromkeys(passage.sentence((word.start, word.end)) for word in passage.words))


def _all_clauses(passage: TextPassage) -> list[Span]:
    return [clause for sentence in _all_sentences(passage) for clause in passage.clauses(sentence)]


_RULED: Final[Mapping[str, None]] = dict.fromkeys(
    "age birthday phone work_phone home_phone email work_email birth_year timezone".split()
)
"""Keys whose values are said in other words than those stored."""


__all__ = ["Span", "claims_of", "joined", "masked", "mentioned_in", "said_in", "said_in_text"]
