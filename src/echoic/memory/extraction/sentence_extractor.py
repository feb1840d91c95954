"""Keeps as a sentence what a user stated durably and no rule has a slot for. Needs the local encoder.

It is an extractor like any other: it runs in the background with its own cursor, and its proposals are
checked and reconciled like a language model's. With an embedder other than the one its weights were made for
it is not used, and rules learn alone.

Keys are superseded by their slot; sentences have none. A sentence replaces another if it says something else
about the same thing ("my scan is on the ninth", "my scan is on the tenth"), or if it says that something
changed ("now", "instead", "switched") and both are about the same. In doubt both are kept.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from echoic.embedding.base import Embedder, embedded
from echoic.english import listen
from echoic.english.corrections import disowned, kind_of
from echoic.english.facts import PEOPLE, PeopleSpokenOf
from echoic.english.lexicon import (
    DAYS,
    DETERMINERS,
    FUNCTION,
    MONTHS,
    NUMBERS,
    PREPOSITIONS,
    source,
    wordlike,
)
from echoic.english.listener import asks_to_remember
from echoic.english.phrases import PHONE_DIGITS, digits
from echoic.english.sentences import Sentence, Token, says_whose, sentences
from echoic.english.slots import is_of
from echoic.memory.extraction.clause_reader import (
    MODEL,
    Clause,
    Floats,
    Read,
    Weights,
    Whom,
    clauses,
    of_listener,
    of_theirs,
    read_clauses,
    weights,
)
from echoic.memory.extraction.grounding import MOST_CHANGES, instructs
from echoic.memory.extraction.known_facts import statement_of
from echoic.memory.extraction.reconciliation import Add, Change, Doubt, Fact, Reading, Retract, Supersede
from echoic.memory.extraction.rule_reader import told_by_user
from echoic.memory.extraction.turns import answers_about_another
from echoic.text import content_stems, content_words
from echoic.text.spoken_numbers import in_figures, is_bare
from echoic.types import Memory, Turn

_GIVEN_UP: Final = (
    r"any ?more|no longer|instead|gave up|given up|switched|swapped|changed|replaced|stopped|sold|quit|"
    r"cancelled|come off|came off|after all|gone (?:up|down)|doubled|put back|upgraded|divorced|"
    r"got (?:married|divorced|rid of)|split up|broke up|passed away|died|jacked in|packed in|scratch|"
    r"finished with|moved (?:out|away)|took me off|taken me off|cut off|no good|(?:is|are) gone|closed down|"
    r"(?:gone|went) over|(?:gone|going|went) back"
)
_CHANGED: Final = re.compile(
    rf"\b(?:{_GIVEN_UP}|again|sorry|moved|(?<!right )now|these days|downgraded|brought forward|gone off|"
    r"went (?:up|down)|increased|reduced|turned|left|from now on|corrected|separated|back to|rather|retired|"
    r"redundant|laid off|let me go|nowadays|as of|make it|make that)\b"
)
_ENDED: Final = re.compile(rf"\b(?:{_GIVEN_UP}|not|retired from)\b")
"""Words that end what is named, whatever else holds."""
_DENIES: Final = re.compile(
    r"(?:i|we)(?:(?:['’]m| am|['’]re| are) (?:not|no longer)| (?:do not|don['’]t|no longer|never)|"
    r"(?: have not|['’]ve not| haven['’]t)(?: got)?) (?P<rest>.+?)"
    r"(?: any ?more| any longer| now| at all| these days| actually| really)*"
)
"""A statement about the speaker with its denial."""
_STATES: Final = re.compile(
    r"(?:i|we)(?:['’](?:m|ve|re))? (?P<rest>[^,]+?)(?: (?:since|in|at|on|for|from|with) .*|,.*)?"
)
_PARTLY: Final = re.compile(r"^(?:only|just|always|even) |\b(?:with|on) (?:me|us)\b|\b(?:well|much|often)$")
"""Words of a denial of a part: "I don't have my EpiPen with me", "I don't just take statins"."""
_NOT_TOLD: Final = frozenset({"=?", "=quoted", "<said", "<says", "<told", "<if"})
"""Signs of a clause that its speaker does not state."""
_PARTED: Final = re.compile(r"\b(?:divorced|split up|broke up|passed away|died|(?:is|are) gone)\b")
"""Words that end everything about a person or an animal."""
_WHEN: Final = re.compile(
    r".*\d.*|first|second|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|twentie|thirtie|[a-z]+teen)th|"
    rf"tomorrow|today|tonight|week|weekend|fortnight|month|noon|morning|afternoon|evening|{'|'.join(MONTHS)}"
)
_OTHERS: Final = frozenset(
    "|".join(source(f"facts.{kind}") for kind in ("kin", "child", "children", "pet", "pets")).split("|")
) | frozenset(
    """mam nan nana gran grandad grandson granddaughter grandchildren stepson stepdaughter parents neighbour
    neighbor friend friends brothers sisters colleague""".split()
)
"""Words for people and animals in the speaker's life. Not a doctor, who takes the speaker off something."""
_PURPOSE: Final = re.compile(
    r"\bfor (?:my|our|the) (?!(?:moment|time|last|past|next|first|whole|rest|foreseeable|summer|winter|"
    r"week|month|year|day)\b)(\w+)"
)
_DENIED: Final = re.compile(r"(?:\b(?:not|no longer|any ?more)|n't)\b", re.IGNORECASE)
_PAST: Final = re.compile(r"(?:i|we) (?:(?:was|were) (?:at|with|on)|used to)\b", re.IGNORECASE)
_ONCE_MEANT: Final = re.compile(
    r"(?:i|we)(?:['’]d| had) (?:always|originally) "
    r"(?:said|thought|planned|meant|intended|hoped|assumed|wanted)\b"
    r"|(?:i|we) (?:was|were) (?:always |originally )?(?:going|meaning|planning|hoping) to\b",
    re.IGNORECASE,
)
"""Plans that something has come in the way of: "I'd always said sixty-five"."""
_AS_OF_NOW: Final = re.compile(r"\b(?:now|nowadays|these days)\b", re.IGNORECASE)
_ONE_AT_A_TIME: Final = frozenset(
    """age birthday home move work retirement reference contact plan vehicle finance appointment
    decision name study""".split()
)
_MANY: Final = frozenset(
    "medication condition allergy family pet interest dislike language possession requirement routine".split()
)
"""Kinds of which several hold at once: one ends another only by name."""
_SAME_KIND: Final = {"move": "home", "retirement": "work"}
_ONE_LIFE: Final = frozenset({"home", "work", "study", "name"})
_NUMBERED: Final = frozenset({"appointment", "reference"})
"""Kinds whose numbers tell one thing from another."""
_ABOUT: Final = 0.6
"""Cosine from which two sentences are about the same, if one says that it changed."""
_SAME_SENTENCE: Final = 0.8
"""Cosine from which two sentences differ in little but a value."""
_NAMED: Final = 0.45
"""Cosine from which two sentences are about the same, if one says that something it names ended."""
_VERBS: Final = frozenset("is are was has have had ends starts comes moved got goes went turned".split())
_SAYS_NOTHING: Final = frozenset(
    """have has take use get go live work like prefer want need call drive own now new still just year old
    time day week change move switch""".split()
)
_HAVING: Final = frozenset("have has get got new now still year".split())
_HOLDERS: Final = frozenset("my our the".split())
_SELF: Final = frozenset("i i'm i've i'll we we're we've we'll user's user".split())
_MINE: Final = _SELF | frozenset("i'd we'd me my mine us our ours".split())
_THIRD: Final = frozenset("he he'd he'll hes she she'd she'll shes his".split())
_POINTING: Final = _THIRD | frozenset("her hers".split())
_THIRD_ANYWHERE: Final = frozenset("him her hers".split())


@dataclass(frozen=True, slots=True)
class Statement:
    """The features of a sentence that decide about replacement."""

    text: str
    kind: str
    beside: tuple[str, ...] = ()
    """The clauses directly before and after it in its turn, which may say that something changed."""
    sorry: bool = False
    """Whether it begins with an apology, which may correct a value."""

    @property
    def words(self) -> list[str]:
        """Folded words in order; "'s" is a word of its own if it stands for "is"."""
        return _words(self.text)

    @property
    def line(self) -> str:
        """Its words and those beside it."""
        return " ".join([*self.words, *map(str.casefold, self.beside)])

    @property
    def topic(self) -> list[str]:
        """Its words and those beside it that may name what it is about.

        In "She's gone back to her own name. Thorne with an E" it is not the speaker's name that is meant.
        """
        others = _of_another(self.words)
        near = (text for text in self.beside if others or not _of_another(_words(text)))
        return [*self.words, *" ".join(near).casefold().split()]

    @property
    def group(self) -> str:
        """Its kind, or the group of kinds that replace each other."""
        return _SAME_KIND.get(self.kind, self.kind)


def replaces(new: Statement, old: Statement, alike: float) -> bool:
    """Whether `new` replaces the older `old`; `alike` is the cosine of their vectors."""
    shared = _shared(new, old)
    return shared is not None and _ends(new, old, alike, shared)


def _denies(new: str, old: str) -> bool:
    """Whether `new` denies what `old` says: "I don't take statins any more", "I take statins"."""
    denied, stated = _DENIES.fullmatch(new.casefold()), _STATES.fullmatch(old.casefold().rstrip("."))
    if denied is None or stated is None or _DENIES.match(old.casefold()) or _PARTLY.search(denied["rest"]):
        return False
    one, other = (content_stems(match["rest"]) for match in (denied, stated))
    return bool(one) and other <= one <= content_stems(old)


def _shared(new: Statement, old: Statement) -> frozenset[str] | None:
    """The stems of the topics of both; None if they are about different people or sides of one."""
    line = new.line
    theirs, mine = _owner(new.words), _owner(old.words)
    if mine == "i" and _of_another(new.words):
        return None  # "I take statins", "he's stopped taking statins"
    if theirs != mine and theirs and mine and theirs not in old.words and mine not in new.words:
        return None  # "I take statins", "my husband stopped taking statins"
    purposes = _PURPOSE.findall(line), _PURPOSE.findall(" ".join(old.words))
    if all(purposes) and purposes[0] != purposes[1]:
        return None  # "I'm with Octopus for my energy", "I'm with Vodafone now for my phone"
    if theirs in {"", "i"} or _PARTED.search(line):
        return _about(new.topic) & _about(old.words)
    shared = (_stems(new.topic) & _stems(old.words)) - _stems([theirs]) - _HAVING
    # "my mum has dementia", "my mum moved in with us"
    now = [word for word in new.words if word != "now"]
    return None if not shared and new.kind in _MANY and not _other_number(now, old.words) else shared


def _ends(new: Statement, old: Statement, alike: float, shared: frozenset[str]) -> bool:
    line = new.line
    if new.kind not in _NUMBERED and _other_number(new.words, old.words):
        return True
    subject = _subject(new.words)
    says_changed = _CHANGED.search(line) or (new.sorry and _other_value(new.text, old.text))
    # kinds are guessed: "my flat number is 14" may count as a reference, and "… 41" as a home
    same_kind = new.group == old.group or (subject != ("i",) and alike >= _SAME_SENTENCE)
    if same_kind and subject and subject == _subject(old.words):
        same_side = new.kind != "appointment" or _timed(new.words) == _timed(old.words)
        changed = (new.kind in _ONE_AT_A_TIME and same_side) or says_changed
        return bool(changed) and new.words != old.words
    # "the class has moved to Friday"; a person who moved is rather somewhere else
    ended = _ENDED.search(line) or (not _owner(new.words) and "moved" in line.split())
    if ended and shared and (new.group == old.group or alike >= _NAMED):
        return True
    if new.group != old.group or new.kind in _MANY or not says_changed:
        return False
    if new.group in _ONE_LIFE and _of_speaker(new.words) and _of_speaker(old.words):
        return True
    return bool(shared) or alike >= _ABOUT


def _other_value(new: str, old: str) -> bool:
    """Whether both have one value of a kind, and not the same: "the eleventh" and "the ninth of June"."""
    values = [
        {kind_of(token): token.low for said in sentences(text) for token in said.tokens if kind_of(token)}
        for text in (new, old)
    ]
    return any(values[1].get(kind, value) != value for kind, value in values[0].items())


def _timed(words: Sequence[str]) -> bool:
    """Whether they say when: "my appointment is with Doctor Patel" does not."""
    return any(word in NUMBERS or word in DAYS or _WHEN.fullmatch(word) for word in words)


def may_replace(new: str, old: str) -> bool:
    """Whether `new` could replace `old`, so that a vector of `old` is worth computing."""
    one, other = Statement(new, "").words, Statement(old, "").words
    if not one or not other:
        return False
    line = " ".join(one)
    if _CHANGED.search(line) or _ENDED.search(line) or _other_number(one, other) or _denies(new, old):
        return True
    return _subject(one) != () and _subject(one) == _subject(other)


def _other_number(new: Sequence[str], old: Sequence[str]) -> bool:
    """Whether they differ only in their numbers: "I've got four grandchildren", "I've got five …"."""
    if list(new) == list(old) or len(new) != len(old):
        return False
    pairs = [(one, other) for one, other in zip(new, old, strict=True) if one != other]
    return all(one in NUMBERS and other in NUMBERS for one, other in pairs)


def _about(words: Sequence[str]) -> frozenset[str]:
    """The stems of the topic, without numbers and words of change."""
    return _stems(words) - _SAYS_NOTHING


def _stems(words: Sequence[str]) -> frozenset[str]:
    every = content_words(" ".join(words))
    return frozenset(word.stem for word in every if not any(map(str.isdigit, word.text)))


def _subject(words: Sequence[str]) -> tuple[str, ...]:
    """The subject at the beginning: "my order number" in "my order number is seven"."""
    if words[0] == "i'm" or words[:2] == ["i", "am"]:
        return ("i",) if len(words) <= 5 else ()
    if words[0] not in _HOLDERS:
        return ()
    end = next((at for at, word in enumerate(words) if word in _VERBS), 0)
    return tuple(words[1:end])


def _owner(words: Sequence[str]) -> str:
    """Whom a statement is about: "i", the word for somebody else or an animal, or "" if that is not said."""
    if not _SELF.isdisjoint(words[:6]):  # "my husband and I have moved"
        return "i"
    near = words[1:4] if words[0] in _HOLDERS else ()
    end = next((at for at, word in enumerate(near) if word in _VERBS), len(near))
    return next((word for word in near[:end] if word in _OTHERS), "")


def _of_speaker(words: Sequence[str]) -> bool:
    return not _SELF.isdisjoint(words)


def _of_another(words: Sequence[str]) -> bool:
    """Whether it speaks of him or her and not of the speaker: "he's swapped me from ramipril" does both.

    "They" are rather the firm or the surgery.
    """
    third = words[0] in _THIRD or not _THIRD_ANYWHERE.isdisjoint(words)
    return third and _MINE.isdisjoint(words)


def _stands(words: Sequence[str]) -> bool:
    """Whether it says by itself of whom it is: "he's always in" does not."""
    return words[0] not in _POINTING or not _MINE.isdisjoint(words)


def _words(text: str) -> list[str]:
    return re.sub(r"(?<=[a-z])['’]s\b", " is", text.casefold()).replace(",", " ").split()


_MEANT = re.compile(r"\b(?:i meant|(?:no|sorry) i mean) ")
_PER_TURN = 24
"""Clauses scored in one turn; each costs the encoder some milliseconds."""
_HEARD = 0.5
"""Share of a clause's content words from which what the rules extracted covers it."""
_RELATIVES = content_stems(" ".join(("name named called", *_OTHERS)))
_REASONS = frozenset("because cause cos cuz since as so".split())
"""Words that begin a reason: "not the ninth, the tenth, because I'm away"."""
_MEANING = frozenset("mean meant".split())
_SMALL = FUNCTION | _MEANING
"""Words around the values of a correction."""
_MOST_COMPARED = 24
"""Memories compared with what was said; each costs the encoder some milliseconds."""
_MOST_ENDED = 3
"""Memories that one reading may end: a caller corrects a few things in a call."""
_DISBELIEVED = 0.3
"""Likelihood of a clause below which what the rules extracted from it is discarded, if it is below the floor
without what is said around it, too."""
_EVEN = 0.5
"""The least likelihood, with what is said around it, of a clause that suffices by itself."""
_LEAST = 0.1
"""The least likelihood of a clause whose words alone tell that it is a statement: "my mum's a vegan"."""
_ALWAYS_BELIEVED = re.compile(
    r"(?:(?:.*_)?name|answer_length|(?:no_)?contact_time)(?::|\Z)|(?:note|avoid_topic|requirement):"
)
"""Keys that are never discarded: names and requests hardly score as statements ("Good morning, Ada here",
"keep your answers short")."""


@dataclass(frozen=True, slots=True)
class _SaidClause:
    """A clause of a turn."""

    turn: Turn
    clause: Clause
    heard: bool
    """Whether the rules extracted it."""
    asked: bool
    """Whether the user asked in the turn to remember something, or corrected it."""
    parts: tuple[_SaidClause, ...] = ()
    """Of its clause."""


@dataclass(frozen=True, slots=True)
class _ReadClause:
    """A clause that was classified."""

    said: _SaidClause
    read: Read
    vector: Floats
    parts: tuple[_ReadClause, ...] = ()
    """Those of its parts that are statements, if it is none."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A known memory, or one proposed from an earlier clause."""

    what: Memory | Add | Supersede
    statement: Statement
    vector: Floats


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Two values of a kind of which one is denied."""

    kind: str
    right: str
    wrong: str


class SentenceExtractor:
    """Scores the clauses of what a user said; see `clause_reader`. It does not open `embedder`."""

    name = "sentences"
    timeout_s = 60.0

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @classmethod
    def fitting(cls, embedder: Embedder | None) -> SentenceExtractor | None:
        """An extractor that uses `embedder`; None unless it makes the vectors that the weights fit."""
        fits = embedder is not None and embedder.semantic and embedder.spec.model.startswith(MODEL)
        return cls(embedder) if embedder is not None and fits else None

    async def open(self) -> None:
        """Do nothing: the weights are loaded with the first sentence."""

    async def aclose(self) -> None:
        """Do nothing: no resources are held."""

    async def extract(self, reading: Reading) -> Sequence[Change]:
        """See `Extractor`. Raises EmbedderUnavailable if there are no vectors."""
        turns = [*reading.context, *reading.turns]
        of_another, _ = answers_about_another(turns, of_another=reading.of_another)
        told = _with_owners(turns, told_by_user(turns, of_another))
        apart = told_by_user(turns, of_another, apart=True)
        spoken_of = any(_HE_OR_SHE.search(told.get(turn.id, "")) for turn in reading.turns)
        whom = _whom(turns, told, reading.withheld) if spoken_of else {}
        said = [
            one
            for turn in reading.turns
            for one in _readable(
                turn,
                told.get(turn.id, ""),
                apart.get(turn.id, ""),
                reading,
                whom.get(turn.id, ()),
                bare=turn.id not in of_another,
            )
        ]
        if not said:
            return []
        lines = [one.clause.text for one in said]
        held = [
            memory
            for memory in reading.known
            if any(_is_sorry(one) or may_replace(one.clause.text, statement_of(memory)) for one in said)
        ]
        held = held[-_MOST_COMPARED:]
        made = await embedded(self._embedder, [*lines, *map(statement_of, held)], "document")
        by = await asyncio.to_thread(weights)  # the first time this reads a file
        if any(turn.speaker == "agent" for turn in turns):
            by = replace(by, keep=by.keep_in_calls)
        found = read_clauses([one.clause for one in said], made, by)
        known = [
            _Held(memory, Statement(statement_of(memory), by.kind(vector)), vector)
            for memory, vector in zip(held, made.vectors[len(said) :], strict=True)
        ]
        read = await self._with_parts([*map(_ReadClause, said, found, made.vectors)], by)
        here = frozenset(turn.id for turn in (*reading.context, *reading.turns))
        return [*_disbelieved(read, reading.known, by), *_changes(read, known, by, here)]

    async def _with_parts(self, read: list[_ReadClause], by: Weights) -> list[_ReadClause]:
        """`read`, each with those of its parts that are statements, if it is none."""
        tried = [
            ()
            if _is_statement(one.read, by) and not one.said.heard
            # what was heard of the speaker is not all that is said of theirs
            else tuple(part for part in one.said.parts if not one.said.heard or part.clause.named)
            for one in read
        ]
        parts = [*itertools.chain(*tried)]
        if not parts:
            return read
        made = await embedded(self._embedder, [part.clause.text for part in parts], "document")
        scored = map(
            _ReadClause, parts, read_clauses([part.clause for part in parts], made, by), made.vectors
        )
        found = []
        for one, some in zip(read, tried, strict=True):
            every = itertools.islice(scored, len(some))
            stated = (part for part in every if not part.said.heard and _is_statement(part.read, by))
            found.append(replace(one, parts=tuple(stated)))
        return found


def _with_owners(turns: Sequence[Turn], told: dict[str, str]) -> dict[str, str]:
    """What was `told`, with what the user's next turn gives to somebody else: "I drive a Golf. Actually, my
    wife does". It takes the sentence before it away.
    """
    whole, last, asked = dict(told), "", ""
    for turn in turns:
        asked = turn.heard_text if turn.speaker == "agent" else asked
        if turn.id not in told:
            continue
        begun = next(iter(sentences(told[turn.id])), None)
        answers = any(said.question for said in sentences(asked))
        end = disowned(begun, 0) if last and begun and not answers else None
        if begun and end is not None:
            whole[last] = f"{told[last].rstrip(' .')}. {begun.text(0, end)}"
        last, asked = turn.id, ""
    return whole


_HE_OR_SHE: Final = re.compile(r"\b(?:s?he(?:['’]?[a-z]{1,2})?|his|hers?)\b", re.IGNORECASE)
"""A pronoun that may be for one of the speaker's own, also without its apostrophe: "shes"."""


def _whom(
    turns: Sequence[Turn], told: Mapping[str, str], withheld: Collection[str]
) -> dict[str, list[dict[int, str]]]:
    """By turn of the user, whom the pronouns of each of its sentences mean."""
    people = PeopleSpokenOf()
    found: dict[str, list[dict[int, str]]] = {}
    for turn in turns:
        if turn.id in withheld:
            people.forget()
        elif turn.id in told:
            found[turn.id] = people.hear(sentences(told[turn.id]))
        elif turn.speaker == "agent":
            people.hear(sentences(turn.heard_text), by_agent=True)
    return found


def _readable(
    turn: Turn, told: str, apart: str, reading: Reading, whom: Sequence[Whom], *, bare: bool
) -> Iterator[_SaidClause]:
    """The clauses of `turn` that may be kept; `told` is the user's words in it, and `whom` those they mean.

    What the rules extracted only `apart` from the remark behind it covers no clause that says more. Unless
    `bare`, those that it begins with count only from the first that says of whom it is.
    """
    if turn.id in reading.withheld:
        return
    # what the rules extracted may have ended: do not store it as a sentence instead
    alone = listen(told)
    only_apart = {one.key for one in listen(apart)} - {one.key for one in alone} if apart != told else set()
    kept = [memory for memory in reading.known if turn.id in memory.source]
    every = [(m.key, f"{m.text} {statement_of(m)} {m.context or ''}") for m in kept]
    every += [(one.key, f"{one.text} {one.sentence} {one.context or ''}") for one in alone]
    heard = [(words, 1.0 if key in only_apart else _HEARD) for key, words in every if not _is_of_another(key)]
    named = " ".join(words for key, words in every if _is_of_another(key))
    asked = any(asks_to_remember(said) or _MEANT.search(said.line) for said in sentences(told))
    # what "no, it's Elizabeth Taylor" fills, it corrects
    slots = {one.key.partition(":")[0] for one in alone}
    corrected = (memory.key for memory in kept if memory.key not in only_apart)
    asked = asked or any(key and key.partition(":")[0] not in slots for key in corrected)
    found = clauses(told, whom)[:_PER_TURN]
    # "It's oh seven seven double oh": a part of a number, or one of which it is not known what it is
    found = [clause for clause in found if not is_bare(in_figures(clause.text))]
    for clause in found if bare else itertools.dropwhile(lambda one: not says_whose(one.text), found):
        whole, *parts = (
            _SaidClause(
                turn, one, any(_says(*words, one) for words in heard) or _only_names(named, one), asked
            )
            for one in (clause, *clause.parts)
        )
        yield replace(whole, parts=tuple(parts))


def _is_of_another(key: str | None) -> bool:
    """Whether `key` holds whom or what animal the speaker has, and nothing of them: "sister_name"."""
    whose = (key or "").partition("_name")[0].replace("_", " ")
    return whose in PEOPLE or is_of(key, "child") or is_of(key, "pet")


_LETTERS: Final = re.compile(r"\b[a-z](?:[ ,.]+[a-z]\b){2,}", re.IGNORECASE)
"""A word that is spelled, such as a name, of which a fact holds the word."""


def _only_names(named: str, clause: Clause) -> bool:
    """Whether `clause` tells no more than whom the speaker has, which `named` holds: "my son Tom", but not
    "my son Tom has asthma".
    """
    if not named:
        return False
    more = {word.stem for word in content_words(clause.text) if word.text not in NUMBERS}
    return more <= content_stems(named) | _RELATIVES


def _says(heard: str, share: float, clause: Clause) -> bool:
    """Whether `heard`, the memories from the same turn, covers that `share` of `clause`."""
    # "he's autistic" says more than "a table for my son"
    told = " ".join(clause.words[clause.named :]) if clause.named else clause.text
    told_whole = _LETTERS.sub(lambda letters: re.sub(r"\W", "", letters[0]), told)
    text, numbers = _without_numbers(told_whole, heard)
    words = (word for word in content_words(text) if word.text not in NUMBERS)
    stems = {word.stem for word in words if not (word.text.isdigit() and word.text in heard)}
    known = content_stems(heard)
    return len(stems & known) + numbers >= share * (len(stems) + numbers)


def _without_numbers(text: str, heard: str) -> tuple[str, int]:
    """`text` without the telephone numbers of `heard`, and how many there were.

    Such a number is half of what "my mobile is 07700 900 118" says; a small figure may be there by chance.
    """
    rest: list[str] = []
    numbers = 0
    for said in sentences(text):
        at = 0
        while at < len(said):
            run = digits(said, at)
            known = run is not None and len(run.text.lstrip("+")) in PHONE_DIGITS and run.text in heard
            if run and known:
                numbers += 1
            else:
                rest.append(said.tokens[at].text)
            at = run.end if run and known else at + 1
    return (" ".join(rest), numbers) if numbers else (text, 0)


def _disbelieved(
    said: Sequence[_ReadClause], known: Sequence[Memory], by: Weights
) -> Iterator[Retract | Doubt]:
    """Retractions from clauses that score as no statement: "so I'm a vegan now".

    What stands beside a clause does not suffice: who plays a part begins as callers do, "I'm Ruth. I live in
    York". Discarding an allergy could harm its caller: it is only marked as unconfirmed.
    """
    for memory in known:
        if memory.key is None or _ALWAYS_BELIEVED.match(memory.key) or len(memory.source) != 1:
            continue
        told = content_stems(memory.text)
        beside = [one for one in said if one.said.turn.id == memory.source[0]]
        naming = [one.read for one in beside if told & content_stems(one.said.clause.text)]
        telling = naming or [one.read for one in beside]
        likely = max((read.likely for read in telling), default=1.0)
        alone = max((read.alone for read in telling), default=1.0)
        # "I've moved to York, can you change my address?" is none the less said
        believed = any(one.said.asked or "=?later" in one.said.clause.signs for one in beside)
        if likely < _DISBELIEVED and alone < by.floor and not believed:
            if memory.key.startswith("allergy:"):
                yield Doubt(known=(memory.id,), source=memory.source)
            else:
                yield Retract(known=(memory.id,), source=memory.source, mistaken=True)


def _changes(
    said: Sequence[_ReadClause], known: list[_Held], by: Weights, here: frozenset[str]
) -> list[Change]:
    """The statements of `said` to store, in order, and what each replaces in `known`.

    `here` are the ids of the turns of this call.
    """
    found: list[Change] = []
    ended = 0
    said = list(said)  # grows by the parts of what is not kept
    for at, each in enumerate(said):
        one, read, vector = each.said, each.read, each.vector
        if len(found) == MOST_CHANGES:
            break
        if instructs(one.clause.text) or _ONCE_MEANT.match(one.clause.text):
            continue
        contrast = None if one.heard else _contrast(one.clause)
        if contrast:
            for wrong, put in _put_right(contrast, one.turn, known, here):
                found = [*(change for change in found if change is not wrong.what), put]
                right = replace(wrong, what=put, statement=replace(wrong.statement, text=put.fact.text))
                known = [*(held for held in known if held is not wrong), right]
            if contrast.kind != "name" or any(_has(contrast.right, held, here) for held in known):
                continue  # alone it says nothing; "Mrs Adeyemi, not Folake" does
        denied = [held for held in known if _is_denied_by(one.clause, held)]
        unlikely = read.likely < (_DISBELIEVED if one.heard else by.floor) and not _is_certain(read)
        unread = unlikely or of_listener(one.clause) or _overtaken(said[at : at + 2], by)
        if unread and not denied:
            said[at + 1 : at + 1] = each.parts
            continue
        near = [said[place].said for place in (at - 1, at + 1) if 0 <= place < len(said)]
        near = [] if one.clause.named else near
        beside = tuple(o.clause.text for o in near if o.turn is one.turn and one not in o.parts)
        statement = Statement(one.clause.text, read.kind, beside, _is_sorry(one))
        able = (held for held in known if not (contrast and _is_keyed(held)))
        # whom "she" means is concluded, not said
        sure = read.likely >= by.sure and _stands(statement.words) and not one.clause.named
        able = (held for held in able if sure or not _is_relied_on(held) or _says_changed(statement))
        gone = denied or [held for held in able if _gives_way(held, one, statement, vector)]
        if not (gone or one.clause.mended or _is_statement(read, by)):
            said[at + 1 : at + 1] = each.parts
            continue
        # what is corrected before it was stored is never stored
        found = [change for change in found if all(held.what is not change for held in gone)]
        ids = tuple(held.what.id for held in gone if isinstance(held.what, Memory))[: _MOST_ENDED - ended]
        ids += tuple(name for held in gone if isinstance(held.what, Supersede) for name in held.what.known)
        ended += len(ids)
        known = [held for held in known if held not in gone]
        if one.heard or (denied and not _is_statement(read, by)):
            found += [Retract(known=ids, source=(one.turn.id,))] if ids else []
            said[at + 1 : at + 1] = each.parts
            continue
        change = _kept(read, one.turn, ids, sure=sure)
        found.append(change)
        known.append(_Held(change, statement, vector))
    return found


def _is_statement(read: Read, by: Weights) -> bool:
    """Whether a clause is stored that neither replaces anything nor corrects itself.

    A turn of a call goes from one thing to another: what stands beside a clause need not tell anything of
    it, and may take a part of its likelihood, but not most of it.
    """
    even = read.likely >= _EVEN and read.alone >= by.keep
    return even or read.likely >= by.keep or _is_certain(read)


def _is_certain(read: Read) -> bool:
    """Whether the words of a clause alone tell that it states something of the speaker's own people."""
    return max(read.likely, read.alone) >= _LEAST and of_theirs(read.clause)


def _contrast(clause: Clause) -> _Contrast | None:
    """The two values of a clause that names nothing else: "not the ninth, the tenth"."""
    said = next(iter(sentences(clause.text)), None)
    if said is not None:
        reason = next((at for at in range(1, len(said)) if said.low(at) in _REASONS), len(said))
        said = replace(said, tokens=said.tokens[:reason])
    if said is None or (said.low(0) == "i" and said.low(1) not in _MEANING):
        return None
    runs: list[tuple[str, int, int]] = []
    for at, token in enumerate(said.tokens):
        kind = kind_of(token) or ("name" if said.cased and _is_name(token) else "")
        if kind and runs and runs[-1][0] == kind and runs[-1][2] == at and not said.gap(at):
            runs[-1] = (kind, runs[-1][1], at + 1)
        elif kind:
            runs.append((kind, at, at + 1))
        elif token.low in _SELF - {"i"} or not (token.low in _SMALL or _WHEN.fullmatch(token.low)):
            return None
    denied = [_is_denied(said, start) for _, start, _ in runs]
    if len(runs) != 2 or runs[0][0] != runs[1][0] or sum(denied) != 1:
        return None
    one, other = (said.text(start, end) for _, start, end in runs)
    return _Contrast(runs[0][0], other, one) if denied[0] else _Contrast(runs[0][0], one, other)


def _is_name(token: Token) -> bool:
    return token.capital and token.low not in _SMALL and not wordlike(token.low)


def _is_denied(said: Sentence, at: int) -> bool:
    """Whether "not" stands before the word at `at`, or before its article or preposition."""
    while said.low(at - 1) in DETERMINERS | PREPOSITIONS and not said.gap(at):
        at -= 1
    return said.low(at - 1) == "not"


def _put_right(
    contrast: _Contrast, turn: Turn, known: Sequence[_Held], here: frozenset[str]
) -> list[tuple[_Held, Add | Supersede]]:
    """The last statement of this call with the wrong value, and what puts it right, if there is one."""
    for held in reversed(known):
        what = held.what
        text = what.text if isinstance(what, Memory) else what.fact.text
        again = _has(contrast.right, held, here) or len(_standing(contrast.wrong).findall(text)) != 1
        if _is_keyed(held) or again or not _has(contrast.wrong, held, here):
            continue
        text = _standing(contrast.wrong).sub(lambda _: contrast.right, text)
        if isinstance(what, Memory):
            fact = Fact(text=text, category=what.category)
            put: Add | Supersede = Supersede(known=(what.id,), fact=fact, source=(turn.id,))
        else:
            put = replace(what, fact=replace(what.fact, text=text), source=(*what.source, turn.id))
        return [(held, put)]
    return []


def _is_keyed(held: _Held) -> bool:
    """Whether it fills a slot, so that rules correct it: they know whose name the agent spoke of."""
    return isinstance(held.what, Memory) and held.what.key is not None


def _is_relied_on(held: _Held) -> bool:
    """Whether it fills a slot and is confirmed."""
    return isinstance(held.what, Memory) and held.what.key is not None and held.what.confirmed


def _says_changed(said: Statement) -> bool:
    """Whether it says of the speaker that something changed: not "Tom moved out, it's just Ben at home"."""
    mine = not (_SELF | {"me"}).isdisjoint(said.line.split())
    return _PARTED.search(said.line) is not None or (mine and _CHANGED.search(said.line) is not None)


def _has(value: str, held: _Held, here: frozenset[str]) -> bool:
    """Whether `held`, if it was said in the call of the turns `here`, contains `value`."""
    of_call = here.issuperset(held.what.source)
    return of_call and _standing(value).search(held.statement.text) is not None


def _standing(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(value)}(?![\w-])", re.IGNORECASE)


def _is_sorry(one: _SaidClause) -> bool:
    """Whether it begins with an apology: "sorry, it's the eleventh we fly"."""
    return "sorry" in one.clause.lead


def _is_denied_by(clause: Clause, held: _Held) -> bool:
    """Whether `clause` denies the sentence `held`; rules know what ends a slot."""
    told = _NOT_TOLD.isdisjoint(clause.signs)
    return told and not _is_keyed(held) and _denies(clause.text, held.statement.text)


def _overtaken(said: Sequence[_ReadClause], by: Weights) -> bool:
    """Whether the second of two clauses ends the first: "I was at Lloyds, I'm at Monzo now"."""
    if len(said) < 2 or said[0].said.turn is not said[1].said.turn:
        return False
    past, now = said
    known = now.read.likely >= by.floor and _AS_OF_NOW.search(now.said.clause.text)
    return bool(known and _PAST.match(past.said.clause.text))


def _gives_way(held: _Held, one: _SaidClause, statement: Statement, vector: Floats) -> bool:
    """Whether `one` replaces `held`."""
    memory = held.what if isinstance(held.what, Memory) else None
    if memory is None and held.what.source == (one.turn.id,):
        statement = replace(statement, beside=())  # a neighbouring clause is not replaced
        about, denied = _about(statement.words), _DENIED.search(one.clause.text)
        if denied and not about & _about(held.statement.words):
            return False  # "we've bought in Whitby, we don't rent any more"
        if about and about < _about(held.statement.words) and not denied:
            return False  # "I'm coming on the tenth, I'm coming after all"
    # a rule supersedes memories with a slot
    if memory and (one.turn.id in memory.source or (one.heard and memory.key)):
        return False
    return replaces(statement, held.statement, float(np.dot(vector, held.vector)))


def _kept(read: Read, turn: Turn, ended: tuple[str, ...], *, sure: bool) -> Add | Supersede:
    text = read.clause.text
    fact = Fact(text=text[0].upper() + text[1:], category=read.category, sure=sure)
    if ended:
        return Supersede(known=ended, fact=fact, source=(turn.id,))
    return Add(fact=fact, source=(turn.id,))
