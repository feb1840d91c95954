"""Whether a clause is a durable statement about its speaker, and of which kind: small and trained. Pure.

Rules cut an utterance into clauses and leave out what they are sure is none: questions, suppositions, quoted
words. What is left is weighed by a small network over the clause's sentence vector, its token vectors, and a
few thousand words and pairs of words. The weights are made by `scripts/fit_reader.py`; they belong to one
embedding model.
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

from echoic.embedding.base import Embedded
from echoic.english.guards import Ground, by_an_agent, jokes, sings
from echoic.english.repairs import repaired
from echoic.english.sentences import Sentence, sentences
from echoic.secrets import MARKER
from echoic.types import Category

MODEL: Final = "local:all-MiniLM-L6-v2:"
"""What the model's name in an embedder's spec begins with: the weights know no other's vectors."""
FEWEST, MOST = 3, 40
"""Words of a clause that is weighed: a fragment does not stand by itself, a monologue is no clause."""
_SHORT: Final = 14
"""Words of a sentence that no comma cuts: "we've moved, we're in Wells now" is said in one breath."""
PIECES: Final = 32
"""Word pieces of a clause that are looked at."""
VECTOR_SCALE, PIECE_SCALE = 14.0, 2.0
"""Bring the numbers of a unit vector, and of a projected word piece, to the size of the other features."""
_OWN: Final = frozenset(
    "i i'm i've i'd i'll me my mine myself we we're we've we'd we'll us our ours ourselves".split()
)
_SUBJECTS: Final = frozenset("i i'm i've i'd i'll my we we're we've we'd we'll our".split())
_JOINING: Final = frozenset(
    """and but so also plus because since cause then though although anyway oh well yes yeah yep no nope
    okay ok actually hello hi hey please thanks look listen see sorry""".split()
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

# What a clause of these words is not, whatever else it says: somebody else's life, dreamt, guessed, asked
# for, of now only, over, secret. Each is in many of the traps that the weights are fitted to, and in next to
# no statement.
_NOT_ONE: Final = re.compile(
    r"^(?:my|our|the|a|an|some|this|that)(?: old| new| best| next door)? (?:neighbou?rs?|boss|manager|"
    r"friends?|colleagues?|co-?workers?|landlord|teacher|hairdresser|postman|guy|man|woman|lady|fellow)\b"
    r"|^(?:my dream|one day|some day|someday|i've always wanted|i'd give anything|thank|thanks)\b"
    r"|^(?:i|we)(?:'d| would| just| only)* (?:like|want|need) (?:a|an|one|two|some) (?:tables?|taxi|cab|"
    r"tickets?|minute|second|moment|hand|refund|word|coffee|help)\b"
    r"|^(?:i|we)(?:'d| would| just| only)* (?:like|want|need|wanted) to (?:speak|talk|book|order|know|ask|"
    r"change|cancel|check|update|pay)\b"
    r"|\b(?:i|we) once\b|\bback in the \w+ties\b|\b(?:years|ages|decades) ago (?:i|we)\b"
    r"|\b(?:might|maybe|perhaps|probably|wish|i guess|i suppose|in theory|back then|right now|just now|"
    r"tonight|last night|this (?:morning|afternoon|evening)|hold on|for a (?:second|minute|moment)|"
    r"used to(?!.* (?:now|these days)\b))\b"
    r"|\b(?:joking|maskedsecret|pin|pin code|password|passcode|cvv|security code)\b"
)

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
    kind: str
    """What it is about, such as "medication"; a key of `CATEGORIES`."""
    likely: float
    """How likely it is a durable statement, from 0 to 1."""
    kept: bool
    """Whether it is kept for its own sake; else only where it takes the place of what is known."""
    sure: bool
    """Whether it is likely enough to be relied on without asking back."""

    @property
    def category(self) -> Category:
        """The category its kind belongs to."""
        return CATEGORIES[self.kind]


CATEGORIES: Final[dict[str, Category]] = {
    **dict.fromkeys(
        """medication condition allergy accessibility age birthday home move work retirement vehicle plan
        appointment reference finance possession routine language""".split(),
        "fact",
    ),
    **dict.fromkeys("family pet".split(), "entity"),
    **dict.fromkeys("diet interest dislike preference contact".split(), "preference"),
    "requirement": "requirement",
    "decision": "decision",
}
"""The kinds of durable statements, and the category of each."""


@dataclass(frozen=True)
class Weights:
    """What was fitted: a few networks alike, whose scores are averaged."""

    terms: dict[str, int]
    """Words, and pairs of words with a space between, that count; where each stands in `term`."""
    term: Floats
    """[terms]"""
    direct: Floats
    """[dimensions + 1] Of the sentence vector; the bias stands last."""
    axes: Floats
    """[dimensions, axes] What word pieces are projected to."""
    heads: Floats
    """[networks, axes, heads] Which pieces each head attends to."""
    pooled: Floats
    """[networks, heads * axes, hidden]"""
    sentence: Floats
    """[networks, dimensions + 1, hidden]"""
    out: Floats
    """[networks, hidden]"""
    kinds: Floats
    """[kinds, dimensions + 1]"""
    names: tuple[str, ...]
    """Of the kinds."""
    floor: float
    """The likelihood from which a clause is kept that takes the place of what is known."""
    keep: float
    """The likelihood from which any clause is kept."""
    sure: float
    """The likelihood from which it is not marked as unconfirmed."""

    def score(self, clause: Clause, vector: Floats, pieces: Floats) -> float:
        """The log odds that `clause` is a durable statement.

        Args:
            clause: the words.
            vector: [dimensions] its sentence vector.
            pieces: [pieces, dimensions] its word pieces, as they leave the encoder.
        """
        known = with_bias(vector[None])[0]
        projected = (pieces[:PIECES] @ self.axes) * np.float32(PIECE_SCALE)
        total = known @ self.direct + self.term[[*self._places(clause)]].sum()
        for heads, pooled, sentence, out in zip(
            self.heads, self.pooled, self.sentence, self.out, strict=True
        ):
            seen = (attention(projected, heads).T @ projected).reshape(-1)
            total += np.maximum(known @ sentence + seen @ pooled, 0) @ out
        return float(total)

    def kind(self, vector: Floats) -> str:
        """What a durable statement with that sentence vector is about."""
        return self.names[int(np.argmax(self.kinds @ with_bias(vector[None])[0]))]

    def _places(self, clause: Clause) -> Iterator[int]:
        return (self.terms[term] for term in sorted(terms_of(clause.words) & self.terms.keys()))


def with_bias(vectors: Floats) -> Floats:
    """[texts, dimensions + 1] Unit vectors as the model sees them; the last column is 1."""
    return np.pad(vectors * np.float32(VECTOR_SCALE), ((0, 0), (0, 1)), constant_values=1)


def attention(projected: Floats, heads: Floats) -> Floats:
    """[pieces, heads] How much each head attends to each piece: softmax over the pieces."""
    scores = projected @ heads
    odds: Floats = np.exp(scores - scores.max(axis=0))
    return odds / odds.sum(axis=0)  # type: ignore[no-any-return]


@functools.cache
def weights() -> Weights:
    """Those that ship with the package."""
    with files("echoic.memory.distilling").joinpath("clause_reader.npz").open("rb") as stored:
        held = np.load(stored, allow_pickle=False)
        arrays = "term direct axes heads pooled sentence out kinds".split()
        return Weights(
            terms={term: at for at, term in enumerate(str(held["terms"]).split("\n"))},
            names=tuple(map(str, held["names"])),
            floor=float(held["floor"]),
            keep=float(held["keep"]),
            sure=float(held["sure"]),
            **{name: held[name].astype(np.float32) for name in arrays},
        )


def clauses(text: str) -> list[Clause]:
    """The clauses of `text` that may be statements of the speaker's own, in order."""
    said = sentences(MARKER.sub(_MASKED, text))
    if by_an_agent(said) or sings(said):
        return []
    found: list[Clause] = []
    for sentence in said:
        if jokes(sentence):  # it says that what stood before it was one
            found.clear()
        elif not sentence.question:
            found += _of_sentence(repaired(sentence))
    return found


def _of_sentence(said: Sentence) -> Iterator[Clause]:
    ground = Ground(said, greeted=False)
    unreal = not _UNREAL.isdisjoint(token.low for token in said.tokens)
    starts = [0] if unreal else [0, *_starts(said, ground)]
    for first, end in itertools.pairwise([*starts, len(said)]):
        start, stop = _trimmed(said, first, end)
        tokens = said.tokens[start:stop]
        words = tuple(token.low for token in tokens)
        if not FEWEST <= len(words) + _contracted(words) <= MOST or _asks(words):
            continue
        if _MASKED in words or any(token.quoted for token in tokens):
            continue
        own = next((at for at in range(start, stop) if said.low(at) in _OWN), start)
        shown = all(ground.bears(at, firm=True, value_end=at) for at in (start, own))
        if shown and not _NOT_ONE.search(" ".join(words)):
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
        paused = said.gap(at) and len(said) > _SHORT
        joined = aside or paused or said.low(at - 1) in _JOINING
        if joined and said.low(at) in _SUBJECTS and ground.bears(at, firm=True, value_end=-1):
            yield at


def _contracted(words: Sequence[str]) -> bool:
    """Whether the first word is two: "I'm retired" stands by itself, "I see" does not."""
    return bool(words) and "'" in words[0]


def _asks(words: Sequence[str]) -> bool:
    """Whether it is a question by the order of its words: recognisers may write no question mark."""
    return words[0] in _ASKING and (words[1] in _INVERTED or words[1] in _ASKING)


def terms_of(words: Sequence[str]) -> set[str]:
    """Words and pairs of words of a clause; "^" and "$" stand around it, numbers are all alike."""
    alike = ["#" if any(map(str.isdigit, word)) else word for word in words]
    pairs = {f"{one} {other}" for one, other in itertools.pairwise(["^", *alike, "$"])}
    return {*alike, *pairs}


def read_clauses(read: Sequence[Clause], made: Embedded, by: Weights) -> list[Read | None]:
    """What each of `read` was taken for; None for one that is not to be kept.

    Args:
        read: the clauses.
        made: what the embedder made of their texts, and perhaps of more behind them; without word pieces
            nothing is kept.
        by: the weights.
    """
    found: list[Read | None] = []
    for at, clause in enumerate(read if made.pieces is not None else ()):
        vector, pieces = made.vectors[at], made.pieces[at]  # type: ignore[index]
        likely = float(1 / (1 + np.exp(-np.clip(by.score(clause, vector, pieces.hidden), -30, 30))))
        if likely < by.floor:
            found.append(None)
            continue
        kind, kept, sure = by.kind(vector), likely >= by.keep, likely >= by.sure
        found.append(Read(clause=clause, kind=kind, likely=likely, kept=kept, sure=sure))
    return found
