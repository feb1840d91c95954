"""Whether a clause is a durable statement about its speaker, and of which kind: small and trained. Pure.

Rules cut an utterance into clauses and leave out what they are sure is none: questions, suppositions, quoted
words. What is left is weighed by a linear model over the clause's sentence vector and a few hundred words and
pairs of words. The weights are made by `scripts/fit_reader.py`; they belong to one embedding model.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from echoic.english.guards import Ground, by_an_agent, jokes
from echoic.english.sentences import Sentence, sentences
from echoic.secrets import MARKER
from echoic.types import Category

MODEL: Final = "local:all-MiniLM-L6-v2:"
"""What the model's name in an embedder's spec begins with: the weights know no other's vectors."""
FEWEST, MOST = 3, 40
"""Words of a clause that is weighed: a fragment does not stand by itself, a monologue is no clause."""
_VECTOR_SCALE: Final = 14.0
"""Brings the numbers of a unit vector to the size of the other features."""
_OWN: Final = frozenset(
    "i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves".split()
)
_SUBJECTS: Final = frozenset("i i'm i've i'd i'll my we we're we've we'd we'll our".split())
_JOINING: Final = frozenset(
    """and but so also plus because since cause then though although anyway oh well yes yeah yep no nope
    okay ok actually hello hi hey please thanks look listen see""".split()
)
_ASIDE: Final = ("by", "the", "way")
_MASKED: Final = "maskedsecret"
"""Stands for a marker while a text is cut into words, which takes brackets away."""
# What puts everything in its sentence in another light, wherever in it a clause begins.
_UNREAL: Final = frozenset("if unless suppose imagine pretend whether wish".split())
_ASKING: Final = frozenset(
    """what when where who whom whose which why how is are am was were do does did can could will would shall
    should have has had may might isn't aren't don't doesn't didn't can't couldn't won't wouldn't""".split()
)
_INVERTED: Final = frozenset("i you he she it we they my your the this that there".split())

# What a clause of these words is not, whatever else it says: asked for, guessed, about now, somebody else's.
_NOT_ONE: Final = re.compile(
    r"^(?:he|he's|he'd|she|she's|she'd|they|they're|they've|you|you're|you've|you'd|someone|somebody|"
    r"people|everyone|everybody|nobody|some|i'll|we'll|let|let's|tell me|give me|what|who|why|how|where)\b"
    r"|^(?:my|our|the|a|an|some|this|that)(?: old| new| best| next door)? (?:neighbou?rs?|boss|manager|"
    r"friends?|colleagues?|co-?workers?|landlord|teacher|hairdresser|postman|guy|man|woman|lady|fellow)\b"
    r"|^(?:i|we)(?:'d| would| do| just| really| only)* "
    r"(?:like|love|want|need|wanted|wish|hope|have|try) to\b"
    r"|^(?:i'm|i am|we're|we are)(?: just| only| still)? (?:calling|ringing|phoning|looking|waiting|"
    r"wondering|asking|trying|standing|sitting|going to|gonna|sorry|sure|glad|fine|ready|done|afraid|back|"
    r"here|listening)\b"
    r"|\b(?:i|we) (?:may|could|would(?! rather| prefer))\b"
    r"|\b(?:might|maybe|perhaps|probably|wish|wonder|suppose|imagine|guess|i think|i thought|in theory|"
    r"would have|right now|just now|at the moment|today|tonight|yesterday|tomorrow|"
    r"this (?:morning|afternoon|evening|week)|last night|hang on|hold on|for a (?:second|minute|moment)|"
    r"used to|when i was|as a (?:child|kid|boy|girl)|back then|in those days|joking|maskedsecret|pin|"
    r"password|passcode|cvv|security code)\b"
)
_SINCE_THEN: Final = re.compile(r"\bused to\b.*\b(?:now|these days)\b")
"""Says what is so now beside what was."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Clause:
    """Words of one speaker that may stand by themselves."""

    text: str
    words: tuple[str, ...]
    """Folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a clause was taken for."""

    clause: Clause
    category: Category
    likely: float
    """How likely it is a durable statement, from 0 to 1."""
    sure: bool
    """Whether it is likely enough to be relied on without asking back."""


@dataclass(frozen=True)
class Weights:
    """What was fitted."""

    terms: tuple[str, ...]
    """Words, and pairs of words with a space between, that count."""
    keep: Floats
    """[features + 1]: the bias stands last."""
    kinds: Floats
    """[categories, features + 1]"""
    categories: tuple[Category, ...]
    floor: float
    """The likelihood from which a clause is kept."""
    sure: float
    """The likelihood from which it is not marked as unconfirmed."""

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Where each term stands among the features."""
        return {term: at for at, term in enumerate(self.terms)}


@functools.cache
def weights() -> Weights:
    """Those that ship with the package."""
    with files("echoic.memory.distilling").joinpath("clause_reader.npz").open("rb") as stored:
        held = np.load(stored, allow_pickle=False)
        return Weights(
            terms=tuple(map(str, held["terms"])),
            keep=held["keep"].astype(np.float32),
            kinds=held["kinds"].astype(np.float32),
            categories=tuple(map(str, held["categories"])),  # type: ignore[arg-type]
            floor=float(held["floor"]),
            sure=float(held["sure"]),
        )


def clauses(text: str) -> list[Clause]:
    """The clauses of `text` that may be statements of the speaker's own, in order."""
    said = sentences(MARKER.sub(_MASKED, text))
    if by_an_agent(said):
        return []
    found: list[Clause] = []
    for sentence in said:
        if jokes(sentence):  # it says that what stood before it was one
            found.clear()
        elif not sentence.question:
            found += _of_sentence(sentence)
    return found


def _of_sentence(said: Sentence) -> Iterator[Clause]:
    ground = Ground(said, greeted=False)
    unreal = not _UNREAL.isdisjoint(token.low for token in said.tokens)
    starts = [0] if unreal else [0, *_starts(said, ground)]
    for first, end in itertools.pairwise([*starts, len(said)]):
        start, stop = _trimmed(said, first, end)
        tokens = said.tokens[start:stop]
        words = tuple(token.low for token in tokens)
        if not FEWEST <= len(words) + _contracted(words) <= MOST or _OWN.isdisjoint(words) or _asks(words):
            continue
        if _MASKED in words or any(token.quoted for token in tokens):
            continue
        own = next(at for at in range(start, stop) if said.low(at) in _OWN)
        shown = all(ground.bears(at, firm=True, value_end=at) for at in (start, own))
        if shown and _may_last(" ".join(words)):
            yield Clause(said.text(start, stop), words)


def _trimmed(said: Sentence, start: int, end: int) -> tuple[int, int]:
    """The same words without what only joins them to others."""
    while start < end and said.low(start) in _JOINING:
        start += 1
    while end > start and said.low(end - 1) in _JOINING:
        end -= 1
    aside = tuple(said.low(at) for at in range(end - len(_ASIDE), end)) == _ASIDE
    return start, end - len(_ASIDE) if aside and end - start > len(_ASIDE) else end


def _starts(said: Sentence, ground: Ground) -> Iterator[int]:
    """Where a further clause of the speaker's own begins: "… and I …", "…, we …"."""
    for at in range(FEWEST, len(said) - FEWEST + 1):
        aside = tuple(said.low(at - back) for back in (3, 2, 1)) == _ASIDE
        joined = aside or said.gap(at) or said.low(at - 1) in _JOINING
        if joined and said.low(at) in _SUBJECTS and ground.bears(at, firm=True, value_end=-1):
            yield at


def _may_last(line: str) -> bool:
    """Whether nothing in the words of a clause says that it is none that lasts."""
    return _NOT_ONE.search(line) is None or _SINCE_THEN.search(line) is not None


def _contracted(words: Sequence[str]) -> bool:
    """Whether the first word is two: "I'm retired" stands by itself, "I see" does not."""
    return bool(words) and "'" in words[0]


def _asks(words: Sequence[str]) -> bool:
    """Whether it is a question by the order of its words: recognisers may write no question mark."""
    return words[0] in _ASKING and (words[1] in _INVERTED or words[1] in _ASKING)


def terms_of(words: Sequence[str]) -> set[str]:
    """Words and pairs of words of a clause; "^" stands before the first one, numbers are all alike."""
    alike = ["#" if any(map(str.isdigit, word)) else word for word in words]
    pairs = {f"{one} {other}" for one, other in itertools.pairwise(["^", *alike])}
    return {*alike, *pairs}


def features(read: Sequence[Clause], vectors: Floats, terms: dict[str, int]) -> Floats:
    """[clauses, features + 1] What the model sees; the last column is 1.

    Args:
        read: the clauses.
        vectors: [clauses, dimensions], unit length.
        terms: where each term that counts stands.
    """
    dimensions = vectors.shape[1]
    table = np.zeros((len(read), dimensions + len(terms) + 2), np.float32)
    table[:, :dimensions] = vectors * _VECTOR_SCALE
    for row, clause in zip(table, read, strict=True):
        for term in terms_of(clause.words) & terms.keys():
            row[dimensions + terms[term]] = 1
        row[-2] = min(len(clause.words), 20) / 10
    table[:, -1] = 1
    return table


def likelihoods(table: Floats, keep: Floats) -> Floats:
    """[clauses] How likely each is a durable statement."""
    # not by BLAS, whose last bits depend on how many clauses are asked for
    likely: Floats = 1 / (1 + np.exp(-np.clip((table * keep).sum(axis=1), -30, 30)))
    return likely


def read_clauses(read: Sequence[Clause], vectors: Floats, by: Weights) -> list[Read]:
    """Those of `read` that are to be kept."""
    if not read:
        return []
    table = features(read, vectors, by.places)
    found = []
    for clause, row, likely in zip(read, table, likelihoods(table, by.keep), strict=True):
        if likely >= by.floor:
            kind = by.categories[int(np.argmax((by.kinds * row).sum(axis=1)))]
            found.append(
                Read(clause=clause, category=kind, likely=float(likely), sure=bool(likely >= by.sure))
            )
    return found
