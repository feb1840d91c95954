"""A small trained classifier: whether a clause is a durable statement about its speaker, and of which kind.
Pure.

Rules cut an utterance into clauses and drop those that cannot be one: questions, suppositions, quotations.
The others are scored by a small network over the clause's sentence vector, its token vectors, and a few
thousand words and word pairs. `scripts/fit_reader.py` makes the weights, for one embedding model.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedded
from echoic.english.corrections import disowned, meant_another, repaired
from echoic.english.facts import PEOPLE
from echoic.english.lexicon import (
    AUXILIARIES,
    CONJUNCTIONS,
    DAYS,
    DETERMINERS,
    MONTHS,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    pattern,
)
from echoic.english.listener import Ground, by_an_agent, jokes, staged
from echoic.english.phrases import condition_before
from echoic.english.sentences import Sentence, sentences
from echoic.memory.extraction.rule_reader import MASKED
from echoic.secrets import MARKER
from echoic.types import Category

MODEL: Final = "local:all-MiniLM-L6-v2:"
"""The beginning of the embedding model's name: the weights fit no other model's vectors."""
FEWEST, MOST = 3, 40
"""Limits of a clause's words: a fragment cannot stand alone, and a monologue is no clause."""
_SHORT: Final = 14
"""Words of a sentence that is not cut at commas: "we've moved, we're in Wells now" is one statement."""
PIECES: Final = 32
"""Word pieces of a clause that are read."""
VECTOR_SCALE, PIECE_SCALE = 14.0, 2.0
"""Factors that bring unit vectors and projected word pieces to the size of the other features."""
_OWN: Final = frozenset(
    "i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves".split()
)
_OWNING: Final = frozenset("me my mine our ours us".split())
_SUBJECTS: Final = frozenset("i i'm i've i'd i'll my we we're we've we'd we'll our".split())
_OTHER_SUBJECTS: Final = frozenset(
    "he he's he'll she she's she'll it it's they they're they've you you're that's there's".split()
)
_SERVICE: Final = pattern("signs.service")
_OF_LISTENER: Final = pattern("signs.of_listener")
_OF_THEIRS: Final = pattern("signs.theirs")
_THEIR_CARER: Final = pattern("signs.their_carer")
_UNSURE_OF_THEM: Final = pattern("signs.unsure_of_them")
_NOT_MEANT: Final = frozenset(
    {f"={sign}" for sign in "? ?order quoted shadow shade guess wish irony hearsay media past".split()}
    | {"<=hearsay", "<=media", "<=guess", ">=hearsay"}
)
"""Features of a clause in which words for an illness or a diet are not stated of a relative."""
_NOT_MEANT_BY_ITSELF: Final = frozenset(sign for sign in _NOT_MEANT if sign[0] == "=")
"""Those of its own words."""
_JOINING: Final = frozenset(
    """and but so also plus because since cause then though although anyway oh well yes yeah yep no nope
    okay ok actually hello hi hey please thanks look listen see sorry""".split()
)
_ASIDE: Final = ("by", "the", "way")
_ALONE: Final = frozenset(["i", "we"])
_AMONG: Final = frozenset(["i", "i've", "i'd", "i'll"])
_HOLDERS: Final = frozenset(["my", "our"])
_STANDING: Final = frozenset("me it them mine that".split())
"""Pronouns that a clause may end with."""
_TELLING: Final = frozenset(
    "say says said think know guess hope wish mean sure glad afraid feel like tell told least".split()
)
_LEADS_ON: Final = PREPOSITIONS | CONJUNCTIONS | DETERMINERS | AUXILIARIES | _TELLING | PRONOUNS - _STANDING
"""Words after which "I" continues the clause they began."""
_BEHIND_LETTERS: Final = frozenset("at dot dash underscore is".split())
"""Words after a spelled word that never follow "I"."""
_POINTING: Final = DETERMINERS | frozenset(
    "one ones thing things everything anything all way time only".split()
)
_LEAST_BEFORE, _LEAST_BEHIND = 3, 4
"""Words required on either side of a cut in an utterance without punctuation."""
_ASKING: Final = frozenset(
    """what when where who whom whose which why how is are am was were do does did can could will would shall
    should have has had may might isn't aren't don't doesn't didn't can't couldn't won't wouldn't""".split()
)
_INVERTED: Final = frozenset("i you he she it we they my your the this that there".split())

_SECRET: Final = frozenset(
    [MASKED, *"pin pin's mpin puk otp password password's passwords passcode passphrase cvv cvc".split()]
)
"""A clause with one of these words is skipped: it is about a secret, masked or not."""
_SIGNS: Final = {
    sign: pattern(f"signs.{sign}")
    for sign in """order media hearsay past now irony guess wish figure other lasting denial yours""".split()
}
"""Classes of words used as features."""
_TWICE: Final = frozenset("double treble triple".split())
_MEASURES: Final = (
    NUMBERS
    | DAYS
    | frozenset(MONTHS)
    | frozenset(
        """oh nought double treble triple first second third fourth fifth sixth seventh eighth ninth tenth
    eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
    thirtieth a the of on at in by from past to till until between and or o'clock am pm noon midday midnight
    morning afternoon evening tonight today tomorrow next this""".split()
    )
)
"""Words of numbers and times."""
_FIGURE: Final = re.compile(r"\W*\d[\d\W]*(?:st|nd|rd|th|am|pm)?")
_THEY: Final = frozenset("he he's his she she's her".split())
"""Pronouns that a clause about somebody else begins with."""
_NEAR: Final = 6
"""Words on either side of a clause that are read."""

Floats = NDArray[np.float32]
Whom = Mapping[int, str]
"""By the place of a pronoun in a sentence, whom of the speaker's it means: "my daughter"."""
_NOBODY: Final[Whom] = {}


@dataclass(frozen=True, slots=True)
class Clause:
    """Words of one speaker that can stand alone."""

    text: str
    words: tuple[str, ...]
    """Folded."""
    signs: frozenset[str] = frozenset()
    """Features from outside its words: "=?" if its sentence is a question, "<said" if "said" precedes it."""
    place: int = 0
    """How many clauses of the same turn precede it."""
    mended: bool = False
    """Whether the speaker corrected something in its sentence."""
    lead: tuple[str, ...] = ()
    """The words before it that only join it to others, folded: "sorry"."""
    named: int = 0
    """How many words at its beginning say whom of the speaker's it is about, where a pronoun was said."""
    parts: tuple[Clause, ...] = ()
    """What it is cut into if it is not kept as it is: "I'm a nurse" of "I'm a nurse, so it depends"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The classification of a clause."""

    clause: Clause
    kind: str
    """Its topic, such as "medication"; a key of `CATEGORIES`."""
    likely: float
    """How likely it is a durable statement, from 0 to 1."""
    alone: float
    """The same without what is said around it."""

    @property
    def category(self) -> Category:
        """The category its kind belongs to."""
        return CATEGORIES[self.kind]


CATEGORIES: Final[dict[str, Category]] = {
    **dict.fromkeys(
        """medication condition allergy accessibility age birthday home move work retirement vehicle plan
        appointment reference finance possession routine language study belief""".split(),
        "fact",
    ),
    **dict.fromkeys("name family pet".split(), "entity"),
    **dict.fromkeys("diet interest dislike preference contact".split(), "preference"),
    "requirement": "requirement",
    "decision": "decision",
}
"""The kinds of durable statements, and the category of each."""


@dataclass(frozen=True)
class Weights:
    """The trained weights: an ensemble of small networks whose scores are averaged."""

    terms: dict[str, int]
    """The words and bigrams used as features, with their row in `term`."""
    term: Floats
    """[terms]"""
    direct: Floats
    """[dimensions + 1] Weights of the sentence vector, then the bias."""
    axes: Floats
    """[dimensions, axes] What word pieces are projected to."""
    heads: Floats
    """[networks, axes, heads] Which pieces each head attends to."""
    pooled: Floats
    """[networks, heads * axes, hidden]"""
    sentence: Floats
    """[networks, dimensions + 1, hidden]"""
    around: Floats
    """[networks, dimensions + 1, hidden] Of the neighbouring clauses' vectors."""
    out: Floats
    """[networks, hidden]"""
    kinds: Floats
    """[kinds, dimensions + 1]"""
    names: tuple[str, ...]
    """The name of each kind."""
    floor: float
    """The least likelihood of a clause that replaces a known memory."""
    keep: float
    """The least likelihood of any clause that is kept."""
    keep_in_calls: float
    """`keep` where an agent speaks, too: there, fewer of the clauses that score as high are no statement."""
    sure: float
    """The likelihood below which a kept clause is marked as unconfirmed."""

    def score(self, clause: Clause, vector: Floats, pieces: Floats, around: Floats) -> float:
        """The log odds that `clause` is a durable statement.

        `vector` is [dimensions], its sentence vector; `pieces` [pieces, dimensions], its word pieces as the
        encoder returns them; `around` [dimensions], from `beside`.
        """
        known, light = with_bias(np.stack([vector, around]))
        projected = (pieces[:PIECES] @ self.axes) * np.float32(PIECE_SCALE)
        total = known @ self.direct + self.term[[*self._places(clause)]].sum()
        every = zip(self.heads, self.pooled, self.sentence, self.around, self.out, strict=True)
        for heads, pooled, sentence, beside, out in every:
            seen = (attention(projected, heads).T @ projected).reshape(-1)
            total += np.maximum(known @ sentence + light @ beside + seen @ pooled, 0) @ out
        return float(total)

    def kind(self, vector: Floats) -> str:
        """The topic of a durable statement with that sentence vector."""
        return self.names[int(np.argmax(self.kinds @ with_bias(vector[None])[0]))]

    def _places(self, clause: Clause) -> Iterator[int]:
        return (self.terms[term] for term in sorted(terms_of(clause) & self.terms.keys()))


def with_bias(vectors: Floats) -> Floats:
    """[texts, dimensions + 1] Scaled unit vectors with a last column of 1."""
    return np.pad(vectors * np.float32(VECTOR_SCALE), ((0, 0), (0, 1)), constant_values=1)


def beside(vectors: Floats, places: Sequence[int]) -> Floats:
    """[clauses, dimensions] Mean vectors of each clause's neighbours; `places` are `Clause.place`."""
    known = np.zeros_like(vectors)
    follows = np.array([place > 0 for place in places[1:]], np.float32)[:, None]
    count = np.zeros((len(vectors), 1), np.float32)
    known[1:] += vectors[:-1] * follows
    known[:-1] += vectors[1:] * follows
    count[1:] += follows
    count[:-1] += follows
    found: Floats = (known / np.maximum(count, 1)).astype(np.float32)
    return found


def attention(projected: Floats, heads: Floats) -> Floats:
    """[pieces, heads] How much each head attends to each piece: softmax over the pieces."""
    scores = projected @ heads
    odds: Floats = np.exp(scores - scores.max(axis=0))
    return odds / odds.sum(axis=0)  # type: ignore[no-any-return]


@functools.cache
def weights() -> Weights:
    """Load the weights that ship with the package."""
    with files("echoic.memory.extraction").joinpath("clause_reader.npz").open("rb") as stored:
        held = np.load(stored, allow_pickle=False)
        arrays = "term direct axes heads pooled sentence around out kinds".split()
        return Weights(
            terms={term: at for at, term in enumerate(str(held["terms"]).split("\n"))},
            names=tuple(map(str, held["names"])),
            floor=float(held["floor"]),
            keep=float(held["keep"]),
            keep_in_calls=float(held["keep_in_calls"]),
            sure=float(held["sure"]),
            **{name: held[name].astype(np.float32) * held[f"{name}_scale"] for name in arrays},
        )


def clauses(text: str, whom: Sequence[Whom] = ()) -> list[Clause]:
    """The clauses of `text` that may be statements about the speaker, or about those `whom` its sentences
    mean by "he" and "she", in order.
    """
    said = sentences(MARKER.sub(MASKED, text))
    if by_an_agent(said) or staged(said):
        return []
    every = [token.low for sentence in said for token in sentence.tokens]
    found: list[Clause] = []
    at = last = 0
    for sentence, theirs in zip(said, itertools.chain(whom, itertools.repeat(_NOBODY)), strict=False):
        if jokes(sentence):  # this sentence says that the one before was a joke
            found.clear()
        elif meant_another(sentence) and any(map(_is_named, found[last:])):  # or was said of the wrong one
            del found[last:]
        elif (end := disowned(sentence, 0)) is not None:  # or that it is true of somebody else
            del found[last:]
            if sentence.low(end) in _ALONE:  # "my wife does, I cycle", but "my husband does, I like both"
                start = 0 if "both" in sentence.line[sentence.starts[end] :].split() else end
                own = replace(sentence, tokens=sentence.tokens[start:])
                found += _of_sentence(own, every[: at + start], every[at + len(sentence) :], _NOBODY)
        elif not any(sentence.gap(place) and disowned(sentence, place) for place in range(1, len(sentence))):
            last = len(found)
            right = repaired(sentence)
            meant = theirs if right is sentence else _NOBODY
            read = _of_sentence(right, every[:at], every[at + len(sentence) :], meant)
            found += (replace(clause, mended=right is not sentence) for clause in read)
        at += len(sentence)
    return [replace(clause, place=place) for place, clause in enumerate(found)]


def _is_named(clause: Clause) -> bool:
    """Whether it says of a pronoun whom it means, or a part of it does."""
    return any(one.named for one in (clause, *clause.parts))


def _of_sentence(
    said: Sentence, before: Sequence[str], behind: Sequence[str], whom: Whom
) -> Iterator[Clause]:
    ground = Ground(said, greeted=False)
    lows = [token.low for token in said.tokens]
    starts = [0, *_starts(said, ground)]
    # "on Monday at eleven I have the appointment" is one clause
    starts = [0, *(at for first, at in itertools.pairwise(starts) if not _measures(lows[first:at]))]
    led = condition_before(said)
    if led and said.low(0) in PREPOSITIONS:  # so is "during term time I live in Durham"
        starts = [at for at in starts if at != led[1]]
    turn = [*before, *lows, *behind]
    for first, end in itertools.pairwise([*starts, len(said)]):
        whole = _named(said, (first, end), whom, turn, len(before))
        whole = whole or _clause(said, ground, (first, end), turn, len(before))
        if whole is None:
            continue
        cuts = [first, *(at for at in _cuts(said, first, end, whom) if led is None or at != led[1]), end]
        within = list(itertools.pairwise(cuts)) if len(cuts) > 2 else []
        named = [_named(said, some, whom, turn, len(before)) for some in within]
        parts = (_clause(said, ground, some, turn, len(before)) for some in within)
        # one that begins with no subject is a fragment
        own = [part for part in parts if part and part.words[0] in _SUBJECTS - _HOLDERS]
        own = [replace(part, place=at) for at, part in enumerate(own)]
        yield replace(whole, parts=(*own, *filter(None, named)))


def _named(
    said: Sentence, within: tuple[int, int], whom: Whom, turn: Sequence[str], at: int
) -> Clause | None:
    """The clause of the words `within` with whom it is about in place of its first word: "my daughter's
    allergic to nuts"; None if that is no pronoun for one of `whom`.
    """
    first, end = within
    start, _ = _trimmed(said, first, end)
    if start >= end or start not in whom or said.low(start) not in _THEY:
        return None
    if said.low(start + 1) in {"was", "were"}:  # of somebody's past, or of the dead
        return None
    token = said.tokens[start]
    words = (whom[start] + ("" if said.low(start) in {"he", "she"} else "'s")).split()
    put = [replace(token, text=word, low=word, gap=token.gap and not more) for more, word in enumerate(words)]
    read = replace(said, tokens=(*said.tokens[:start], *put, *said.tokens[start + 1 :]))
    around = [*turn[: at + start], *words, *turn[at + start + 1 :]]
    clause = _clause(read, Ground(read, greeted=False), (first, end + len(words) - 1), around, at)
    if clause is None or not clause.signs.isdisjoint(_NOT_MEANT_BY_ITSELF):
        return None
    led, told = said.line[: said.starts[start]], " ".join(clause.words[len(words) :]) + " "
    unsure = _SIGNS["hearsay"].search(led) or _SIGNS["guess"].search(led)
    unsure = unsure or _UNSURE_OF_THEM.search(told)
    return None if unsure else replace(clause, named=len(words))


def _clause(
    said: Sentence, ground: Ground, within: tuple[int, int], turn: Sequence[str], at: int
) -> Clause | None:
    """The clause of the words `within`, None if it cannot be a statement.

    `turn` are all words of the turn, of which the sentence begins at `at`.
    """
    first, end = within
    start, stop = _trimmed(said, first, end)
    tokens = said.tokens[start:stop]
    words = tuple(token.low for token in tokens)
    if not FEWEST <= len(words) + _contracted(words) <= MOST or not _SECRET.isdisjoint(words):
        return None
    if all(token.quoted for token in tokens) or _bare(words):
        return None
    left, right = turn[max(at + start - _NEAR, 0) : at + start], turn[at + stop :][:_NEAR]
    signs = {f"<{word}" for word in left} | {f">{word}" for word in right}
    for where, some in (("<=", left), ("=", words), (">=", right)):
        line = " ".join(some)
        signs |= {f"{where}{sign}" for sign, found in _SIGNS.items() if line and found.search(line)}
    own = next((at for at in range(start, stop) if said.low(at) in _OWN), start)
    shown = {
        "?": said.question and end == len(said),
        "?later": said.question and end < len(said),
        "?order": _asks(words),
        "quoted": any(token.quoted for token in tokens),
        "shadow": not ground.bears(start, firm=True, value_end=start),
        "shade": not ground.bears(own, firm=True, value_end=own),
    }
    signs |= {f"={sign}" for sign, so in shown.items() if so}
    mended = repaired(replace(said, tokens=tokens))
    words = tuple(token.low for token in mended.tokens)
    lead = tuple(token.low for token in said.tokens[first:start])
    return Clause(mended.text(0, len(mended)), words, frozenset(signs), lead=lead)


def _cuts(said: Sentence, first: int, end: int, whom: Whom) -> Iterator[int]:
    """Where another clause begins within those words, whoever it is about: "…, so …", "… because I …"."""
    for at in range(first + 1, end):
        subject = said.low(at) in _SUBJECTS or said.low(at) in _OTHER_SUBJECTS
        joined = said.low(at - 1) in _JOINING or (subject and _goes_on(said, at, meant=at in whom))
        opens = subject and (said.gap(at) or joined)
        conjunction = said.gap(at) and said.low(at) in _JOINING
        if (opens or conjunction) and not _paired(said, at) and not _spelled(said, at):
            yield at


def _goes_on(said: Sentence, at: int, *, meant: bool) -> bool:
    """Whether the subject at `at` begins a clause without a pause: "with Doctor Aziz she's gentle".

    `meant`: whether it is known who it is: "about my son he's asthmatic".
    """
    near = {said.low(at - back) for back in (2, 3)}
    own = said.low(at)[1:2] == "'" or meant
    return said.low(at - 1) not in _LEADS_ON and (own or near.isdisjoint(_POINTING))


def of_listener(clause: Clause) -> bool:
    """Whether it is only about the listener, or offers or reports a service, as what an agent says is.

    What the listener may or must do or has wrong, and to whom they speak, is a caller's: "you can write Sow",
    "your engineer must ring first", "you're talking to a retired teacher".
    """
    line = " ".join(clause.words) + " "
    if _SERVICE.match(line):
        return _OWNING.isdisjoint(clause.words)
    # "with us" is with the company
    return _OF_LISTENER.match(line) is not None and _OWN.isdisjoint(line.replace(" with us ", " ").split())


def of_theirs(clause: Clause) -> bool:
    """Whether it states an allergy, an illness, a medicine or a diet of a relative or an animal of the
    speaker, or for whom the speaker cares: "my mum's a vegan".
    """
    line = " ".join(clause.words) + " "
    said = _OF_THEIRS.match(line) or _THEIR_CARER.match(line)
    return said is not None and _NOT_MEANT.isdisjoint(clause.signs) and not _UNSURE_OF_THEM.search(line)


def _bare(words: Sequence[str]) -> bool:
    """Whether they are only letters, figures or a time, which say of nothing that it is so."""
    return _measures(words) or all(len(word) <= 1 or word in _TWICE for word in words)


def _measures(words: Sequence[str]) -> bool:
    parts = (part for word in words for part in word.split("-") if part)
    return all(part in _MEASURES or _FIGURE.fullmatch(part) for part in parts)


def _trimmed(said: Sentence, start: int, end: int) -> tuple[int, int]:
    """The range without leading and trailing words that only join it to others."""
    while start < end and said.low(start) in _JOINING:
        start += 1
    while end > start and said.low(end - 1) in _JOINING:
        end -= 1
    aside = tuple(said.low(at) for at in range(end - len(_ASIDE), end)) == _ASIDE
    return start, end - len(_ASIDE) if aside and end - start > len(_ASIDE) else end


def _starts(said: Sentence, ground: Ground) -> Iterator[int]:
    """Where another clause about the speaker begins: "… and I …", "…, we …"."""
    for at in range(FEWEST - _contracted([said.low(0)]), len(said) - FEWEST + 1):
        aside = tuple(said.low(at - back) for back in (3, 2, 1)) == _ASIDE
        past = "used to " in said.line[: said.starts[at]]
        paused = said.gap(at) and (said.question or past or len(said) > _SHORT)
        parted = said.question and (said.gap(at) or said.low(at - 1) in _JOINING)
        if _asks_at(said, at) and (parted or _runs_on(said, at)):
            yield at
            continue
        joined = aside or paused or said.low(at - 1) in _JOINING or _runs_on(said, at)
        if (
            joined
            and said.low(at) in _SUBJECTS
            and not _paired(said, at)
            and not _spelled(said, at)
            and ground.bears(at, firm=True, value_end=-1)
        ):
            yield at


def _paired(said: Sentence, at: int) -> bool:
    """Whether "I" at `at` is one of two subjects: "my wife and I are vegetarian"."""
    if said.low(at) not in _AMONG or said.low(at - 1) != "and" or said.gap(at) or said.gap(at - 1):
        return False
    first = next((place for place in range(at - 2, max(at - 6, -1), -1) if said.low(place) in _HOLDERS), at)
    other = [said.low(place) for place in range(first + 1, at - 1)]
    if not other or not (said.gap(first) or said.low(first - 1) in _JOINING):
        return False
    named = all(said.tokens[place].capital for place in range(first + 2, at - 1))
    if other[-1] in PEOPLE or (other[0] in PEOPLE and named):
        return True
    # "my ex and I": one word that begins the sentence is no clause by itself
    return len(other) == 1 and all(said.low(place) in _JOINING for place in range(first))


def _spelled(said: Sentence, at: int) -> bool:
    """Whether the word at `at` is one of the letters of "M I T C H" or "e l i at", not "vitamin D I take"."""
    first = last = at
    while first and _is_letter(said.low(first - 1)):
        first -= 1
    while last + 1 < len(said) and _is_letter(said.low(last + 1)):
        last += 1
    letters = {said.low(place) for place in range(first, last + 1)}
    lettered = _is_letter(said.low(at)) and not letters <= {"i", "a"}
    return lettered and (last > at or said.low(at + 1) in _BEHIND_LETTERS)


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()


def _runs_on(said: Sentence, at: int) -> bool:
    """Whether a clause about the speaker begins without a pause: "… any more I'm at Lloyds now"."""
    if not _LEAST_BEFORE <= at <= len(said) - _LEAST_BEHIND or said.low(at - 1) in _LEADS_ON:
        return False
    if _asks_at(said, at) and said.low(at + 1) in {"you", "there"}:
        return True
    if "'" in said.low(at):
        return True
    # "the tablets I take": the clause belongs to the noun before it
    near = {said.low(at - back) for back in (2, 3)}
    if said.low(at) in _HOLDERS:  # "don't let anyone smoke my daughter's got asthma"
        return said.match(_OF_THEIRS, at) is not None
    return said.low(at) in _ALONE and near.isdisjoint(_POINTING)


def _contracted(words: Sequence[str]) -> bool:
    """Whether the first word is a contraction: "I'm retired" can stand alone, "I see" cannot."""
    return bool(words) and "'" in words[0]


def _asks_at(said: Sentence, at: int) -> bool:
    return _asks([said.low(at), said.low(at + 1)])


def _asks(words: Sequence[str]) -> bool:
    """Whether the word order is that of a question; recognisers may write no question mark."""
    return words[0] in _ASKING and (words[1] in _INVERTED or words[1] in _ASKING)


def terms_of(clause: Clause) -> set[str]:
    """Words, bigrams and features of a clause, between "^" and "$"; all numbers are one term."""
    alike = ["#" if any(map(str.isdigit, word)) else word for word in clause.words]
    pairs = {f"{one} {other}" for one, other in itertools.pairwise(["^", *alike, "$"])}
    return {*alike, *pairs, *clause.signs}


def read_clauses(read: Sequence[Clause], made: Embedded, by: Weights) -> list[Read]:
    """Classify each clause of `read`, in order.

    `made` begins with the embeddings of their texts; without word pieces nothing is read.
    """
    found = []
    around = beside(made.vectors[: len(read)], [clause.place for clause in read])
    for at, clause in enumerate(read if made.pieces is not None else ()):
        vector, pieces = made.vectors[at], made.pieces[at]  # type: ignore[index]
        likely = alone = _likelihood(by.score(clause, vector, pieces.hidden, around[at]))
        if likely < by.keep:  # who decides to store asks no more
            by_itself = replace(clause, signs=frozenset(s for s in clause.signs if s[0] not in "<>"))
            alone = _likelihood(by.score(by_itself, vector, pieces.hidden, np.zeros_like(around[at])))
        found.append(Read(clause=clause, kind=by.kind(vector), likely=likely, alone=alone))
    return found


def _likelihood(odds: float) -> float:
    """From 0 to 1, of log odds."""
    return float(1 / (1 + np.exp(-np.clip(odds, -30, 30))))
